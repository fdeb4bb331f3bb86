"""The generated tables of the site: every combination once, its rules as traced, and pages that say what the records say."""

import re
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import quantspec as qs
from quantspec.stores import STORES
from quantspec_conformance.errors import DamagedError
from quantspec_conformance.site import combination_pages, differences, rule_index, sources
from quantspec_conformance.site.combinations import MODES, Combination, combinations, rule_set, scale_choices
from quantspec_conformance.site.probes import DEFINING
from quantspec_conformance.spec import rule_key, rules

MXFP4, NVFP4 = "e2m1.packed_native_0.b32-ue8m0", "e2m1.packed_native_0.b16-ue4m3.t-f32"
RULE_IDS = re.compile(r"\b[A-Z]{3}-[0-9]+\b")
SET = re.compile(
    r"^\(set-(\d+)\)=\n\*\*S(\d+)\*\*: core, (V\d+), (C\d+); (\d+) combinations\. Beyond the core: (.*)\.$", re.M
)


def section(page: str, heading: str) -> str:
    """The text below a heading of level 2, up to the next."""
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, the head and the rule below it left out."""
    found = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in found[2:]]


def described(page: str) -> dict[tuple[str, ...], str]:
    """What the page of combinations says: value, mode, store and label of the scale choice -> the cell."""
    columns = list(product(MODES, STORES))
    found: dict[tuple[str, ...], str] = {}
    for value in qs.VALUES:
        for label, *cells in rows(section(page, value)):
            for (mode, store), cell in zip(columns, cells, strict=True):
                found[value, mode, store, label.strip("`")] = cell
    return found


def sets_of(page: str) -> dict[str, tuple[int, tuple[str, ...]]]:
    """What the page of sets says: anchor -> combinations, and all the rules, those of the core included."""
    core = RULE_IDS.findall(section(page, "Core"))
    return {
        f"[S{name}](#set-{anchor})": (int(count), tuple(sorted([*core, *RULE_IDS.findall(own)], key=rule_key)))
        for anchor, name, _, _, count, own in SET.findall(page)
    }


def faults(pages: dict[str, str], records: tuple[Combination, ...]) -> list[str]:
    """Combinations of which the pages do not say what the records say."""
    cells, sets = described(pages["combinations"]), sets_of(pages["combinations-sets"])
    wrong = []
    for row in records:
        cell = cells.pop(
            (row.value, row.mode, row.store, combination_pages.choice_label(row.tensor, row.block)), "missing"
        )
        if cell != row.refused_by and sets.get(cell, (0, ()))[1] != row.rules:
            wrong.append(f"{row}: {cell}")
    used = Counter(described(pages["combinations"]).values())
    wrong += [f"{cell} is said to have {count}" for cell, (count, _) in sets.items() if used[cell] != count]
    return wrong + [f"{key} is no combination" for key in cells]


def test_every_combination_is_defined_or_refused_by_one_rule() -> None:
    found = combinations()
    keys = {(row.value, row.mode, row.store, row.tensor, row.block) for row in found}
    assert len(found) == len(keys) == 11 * 2 * 3 * 35 == 2310
    assert Counter(row.refused_by for row in found) == {None: 1785, "SCH-8": 525}
    for row in found:
        refused = row.mode == "lookup" and not qs.VALUES[row.value].is_integer
        assert row.refused_by == ("SCH-8" if refused else None)
        assert bool(row.rules) != refused
        assert list(row.rules) == sorted(set(row.rules), key=rule_key)


def test_scale_choices() -> None:
    kinds = Counter((tensor is not None, block is not None) for tensor, block in scale_choices())
    assert kinds == {(True, False): 5, (False, True): 5, (True, True): 25}


def test_every_rule_is_in_a_set() -> None:
    known = {
        rule.id for rule in rules().values() if rule.id[:3] in DEFINING and rule.testable == "yes" and rule.binding
    }
    used = {rule for row in combinations() for rule in row.rules}
    assert used <= known
    assert known - used == set()
    assert {row.refused_by for row in combinations()} - {None} <= known


def test_rules_that_tell_formats_apart() -> None:
    mx, nv = set(rule_set(MXFP4)), set(rule_set(NVFP4))
    assert {"SCL-10", "SCL-11", "SCL-12", "SCL-2", "QNT-4"} <= nv - mx
    assert {"SCL-3", "SCL-8"} == mx - nv
    assert rule_set("q4s.packed_u32_2.lut-nf4.b3x5-f16") == rule_set("q4s.native.lut-nf4.b64-f16")


@pytest.mark.parametrize(
    ("scheme", "has", "lacks"),
    [
        ("e5m2.native.t-f32", "VAL-3 VAL-9 BLK-5", "VAL-10 BLK-1 LAY-3 SCL-2"),
        ("q8s.native.t-f32", "VAL-1 VAL-10 VAL-13 SCL-7", "VAL-2 VAL-9 QNT-7"),
        ("q2s.native.t-f32", "VAL-13", "SCL-7"),  # H is 1: no quotient is lost
        ("q4f.native.lut-nf4.t-f32", "QNT-7 QNT-8 SCH-10 SCH-11 SCH-12 SCH-16", "VAL-1 VAL-6 QNT-6"),
        ("e2m1.packed_u32_0.b2-ue4m3.t-ue8m0", "SCL-2 SCL-3 SCL-13 SCL-23 PAK-7 PAK-8", "SCL-8"),
    ],
)
def test_sets_of_known_schemes(scheme: str, has: str, lacks: str) -> None:
    found = set(rule_set(scheme))
    assert found >= set(has.split()) and not found & set(lacks.split())


def test_the_pages_say_what_the_records_say() -> None:
    pages = combination_pages.pages()
    assert faults(pages, combinations()) == []
    assert len(described(pages["combinations"])) == 2310
    numbers = [int(anchor) for anchor, name, *_ in SET.findall(pages["combinations-sets"]) if anchor == name]
    assert numbers == list(range(1, len({row.rules for row in combinations()} - {()}) + 1))
    top = pages["combinations"].split("\n## ")[0]
    assert "2310 combinations" in top and "1785 of them are defined, 525 are refused by SCH-8" in top
    assert f"{len(numbers)} distinct" in top


def test_the_parts_of_a_set_add_up_to_it() -> None:
    page = combination_pages.pages()["combinations-sets"]
    parts = {
        name: set(RULE_IDS.findall(own))
        for kind in ("value and mode", "scale choice")
        for name, _, own in rows(section(page, f"Rules of a {kind}"))
    }
    for _, _, value, choice, _, own in SET.findall(page):
        assert set(RULE_IDS.findall(own)) == parts[value] | parts[choice]


def test_liar_two_cells_exchanged() -> None:
    pages = combination_pages.pages()
    line = next(line for line in pages["combinations"].splitlines() if line.startswith("| `b-ue4m3 t-f32`"))
    cells = line.split(" | ")
    cells[1], cells[4] = cells[4], cells[1]
    pages["combinations"] = pages["combinations"].replace(line, " | ".join(cells), 1)
    assert len(faults(pages, combinations())) == 2


def test_liar_a_rule_left_out_of_a_set() -> None:
    pages = combination_pages.pages()
    pages["combinations-sets"] = pages["combinations-sets"].replace("QNT-4, QNT-6", "QNT-6", 1)
    assert len(faults(pages, combinations())) > 0


def test_liar_a_combination_left_out_and_one_that_has_its_own_rules() -> None:
    found = combinations()
    assert len(faults(combination_pages.pages(), found[1:])) == 1
    odd = (replace(found[0], rules=(*found[0].rules, "OPS-1")), *found[1:])
    with pytest.raises(DamagedError, match="not those of its value"):
        combination_pages.pages(odd)


def differing(page: str, pair: differences.Pair) -> list[str]:
    """Numbers of a pair's example that the page does not give as the reference does."""
    wrong = []
    sides = [qs.quantize(differences.EXAMPLE, scheme) for _, scheme in (pair.left, pair.right)]
    table = [row for row in rows(section(page, pair.title).split("The example")[1]) if len(row) == 5]
    assert len(table) == differences.EXAMPLE.size
    for i, (x, *cells) in enumerate(table):
        if np.float32(x) != differences.EXAMPLE.reshape(-1)[i]:
            wrong.append(x)
        for q, code, back in zip(sides, cells[::2], cells[1::2], strict=True):
            value = qs.dequantize(q).reshape(-1)[i]
            if int(code, 16) != q.codes.reshape(-1)[i] or np.float32(back).tobytes() != value.tobytes():
                wrong.append(f"{x}: {code} {back}")
    return wrong + [
        q.scheme.text for q in sides if f"`{qs.to_bytes(q).hex(' ').upper()}`" not in section(page, pair.title)
    ]


@pytest.mark.parametrize("pair", differences.PAIRS, ids=lambda pair: pair.title)
def test_differences(pair: differences.Pair) -> None:
    page = differences.pages()["differences"]
    assert differing(page, pair) == []
    text = section(page, pair.title)
    left, right = set(rule_set(pair.left[1].text)), set(rule_set(pair.right[1].text))
    assert set(re.findall(r"^- ([A-Z]{3}-\d+) ", text, re.M)) == left ^ right
    sizes = [f"{qs.byte_count(scheme, (4096, 4096)):,}" for _, scheme in (pair.left, pair.right)]
    assert (f"| {sizes[0]} | {sizes[1]} |" in text) == (sizes[0] != sizes[1])


def test_liar_one_number_of_an_example() -> None:
    page, pair = differences.pages()["differences"], differences.PAIRS[0]
    assert len(differing(page.replace("| 0.3 | 01 |", "| 0.3 | 02 |", 1), pair)) == 1


def test_rule_index() -> None:
    page = rule_index.pages()["rules"]
    listed, axes = page.split("\n## By policy axis\n")
    assert [row[0] for row in rows(listed)] == list(rules())
    assert {(axis, rule) for axis, ids in rows(axes) for rule in RULE_IDS.findall(ids)} == {
        (rule.axis, rule.id) for rule in rules().values() if rule.axis
    }


def test_source_pages_have_an_anchor_a_line() -> None:
    pages = sources.pages()
    modules = sorted(Path(qs.__file__).parent.glob("*.py"))
    assert pages.keys() == {f"source/{path.stem}" for path in modules} | {"source/index"}
    for path in modules:
        page = pages[f"source/{path.stem}"]
        lines = len(path.read_text("utf-8").splitlines())
        assert re.findall(r'<a id="L-(\d+)">', page) == [str(n) for n in range(1, lines + 1)]
        assert "style=" not in page.split("<pre>")[0]


def test_every_page_begins_with_its_title() -> None:
    made = combination_pages.pages() | differences.pages() | rule_index.pages() | sources.pages()
    for name, page in made.items():
        assert page.startswith("# ") and page.endswith("\n"), name
        assert "\u2014" not in page, name
