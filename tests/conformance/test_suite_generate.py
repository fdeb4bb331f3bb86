"""The generator: the same bytes each time, every rule and threshold covered, and nothing passes that knows nothing."""

import ast
import itertools
import json
import random
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import quantspec
from quantspec import VALUES, Scheme
from quantspec.values import DECODED
from quantspec_conformance.errors import DamagedError, UsageError
from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.spec import rules
from quantspec_conformance.suite.case import BUGS, Case
from quantspec_conformance.suite.generate import Place, generate, plans, schemes
from quantspec_conformance.suite.generate.common import Ask, accepted, with_refusals
from quantspec_conformance.suite.generate.cover import cover
from quantspec_conformance.suite.generate.metamorphic import BLOCK, PLACES
from quantspec_conformance.suite.generate.release import LEDGER, ledger_of, load_ledger, stale, write_suites
from quantspec_conformance.suite.generate.thresholds import CLASSES
from quantspec_conformance.suite.generate.values import finite_numbers, legal_codes
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.suite.store import files_of, load_suite, vectors_root

from .suites import IGNORANT, passes, shipped

AREAS = ("SCH", "VAL", "SCL", "BLK", "QNT", "PAK", "LAY", "OPS", "PRD", "POL")
#: Rules that refuse what a request of the protocol cannot say.
NOT_ASKED = {
    "SCH-1": "a scheme is always a text or members",
    "POL-5": "a request names a recipe of the file, whose steps were checked when it was read",
    "POL-9": "no recipe of the file gives a number that the type of its scale lacks",
    "POL-18": "no operation of the protocol moves words between containers",
    "POL-19": "a request names a recipe, a codec and a container, never a preset",
    "QNT-12": "a request always names a scheme: a bare array does not occur",
}
SMALL = (
    Place("e2m1", "encode", "boundary", 1),
    Place("q2s", "quantize", "pairwise", 1),
    Place("scheme", "take", "first", 0),
)


def refusing() -> set[str]:
    """The rules that the reference refuses by: the first argument of every error that it makes."""
    found: set[str] = set()
    for path in Path(quantspec.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name.endswith("Error") or name in ("_refuse", "fail"):
                    texts = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "rule_id")]
                    found |= {text.value for text in texts if isinstance(text, ast.Constant) and text.value in rules()}
    return {rule_id for rule_id in found if rule_id.split("-")[0] in AREAS}


def test_the_committed_files_are_those_of_the_generator() -> None:
    assert stale(vectors_root(), levels=(0,), chosen=lambda place: True) == []
    seed = random.SystemRandom().randrange(10**6)
    third = random.Random(seed)
    drawn = {plan.place for plan in plans(1) if third.random() < 1 / 3}
    assert stale(vectors_root(), levels=(1,), chosen=lambda place: place in drawn) == [], f"seed {seed}"


def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_suites(tmp_path / name, chosen=lambda place: place in SMALL)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(files) >= 5
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert write_suites(tmp_path / "a", chosen=lambda place: place in SMALL) == []


def chosen(place: Place) -> bool:
    return place in SMALL


def test_a_flipped_bit_and_a_wrong_case_are_stale(tmp_path: Path) -> None:
    write_suites(tmp_path, chosen=chosen)
    assert stale(tmp_path, chosen=chosen) == []
    data = tmp_path / "e2m1/encode/boundary.safetensors"
    spoiled = bytearray(data.read_bytes())
    spoiled[-1] ^= 1
    data.write_bytes(spoiled)
    (found,) = stale(tmp_path, chosen=chosen)
    assert found.startswith(
        "e2m1/encode/boundary.safetensors: not what the generator writes: case encode.e2m1.boundary."
    )
    write_suites(tmp_path, chosen=chosen)
    path = tmp_path / "scheme/take/first.json"
    content = json.loads(path.read_text("ascii"))
    case = next(case for case in content["cases"] if case["out"] and case["out"]["codes"]["bits"])
    bits = case["out"]["codes"]["bits"]
    wrong = f"{int(bits[:2], 16) ^ 1:02X}{bits[2:]}"
    before = json.dumps(case["out"]["codes"])
    line = json.dumps(case)
    after = line.replace(f'"out": {{"codes": {before}', f'"out": {{"codes": {before.replace(bits, wrong)}')
    path.write_text(path.read_text("ascii").replace(line, after))
    assert any(not passes(read, Law().handle(read.request)) for read in load_suite(path)), (
        "the file is sound, its bit is wrong"
    )
    assert any(
        f"scheme/take/first.json: not what the generator writes: case {case['id']}" in line
        for line in stale(tmp_path, chosen=chosen)
    )
    path.unlink()
    assert "scheme/take/first.json: missing" in stale(tmp_path, chosen=chosen)


def test_files_of_no_suite_are_stale_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(plan for plan in plans(0) if plan.place in SMALL)
    monkeypatch.setattr("quantspec_conformance.suite.generate.release.plans", lambda level: few if level == 0 else ())
    write_suites(tmp_path)
    assert stale(tmp_path) == []
    shutil.copytree(tmp_path / "scheme", tmp_path / "more")
    assert "more/take/first.json: no suite of the generator" in stale(tmp_path)
    assert "more/take/first.json" in write_suites(tmp_path)
    assert stale(tmp_path) == []


def test_an_id_neither_vanishes_nor_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_suites(tmp_path, chosen=chosen)
    known = load_ledger(tmp_path)
    ids = dict(known["ids"])
    gone = sorted(ids)[0]
    rest = {case_id: level for case_id, level in ids.items() if case_id != gone}
    with pytest.raises(UsageError, match="no longer generated; ids are for ever"):
        ledger_of(known, rest, (0, 1))
    with pytest.raises(UsageError, match="allowed: a case that is no longer generated, and a reason"):
        ledger_of(known, rest, (0, 1), retire={gone: ""})
    with pytest.raises(UsageError, match="allowed: a case that is no longer generated, and a reason"):
        ledger_of(known, ids, (0, 1), retire={gone: "not gone"})
    after = ledger_of(known, rest, (0, 1), retire={gone: "said the wrong thing"})
    assert after["retired"] == {gone: "said the wrong thing"}
    assert gone not in after["ids"]
    with pytest.raises(UsageError, match=r"was retired \(said the wrong thing\); take a new id"):
        ledger_of(after, ids, (0, 1))
    before = (tmp_path / LEDGER).read_bytes()
    with pytest.raises(UsageError, match="no longer generated"):
        write_suites(tmp_path, chosen=lambda place: place in SMALL[:1])
    assert (tmp_path / LEDGER).read_bytes() == before
    assert stale(tmp_path, chosen=chosen) == []


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    for text in (
        "{",
        "[]",
        '{"schema": "ids-2", "ids": {}, "retired": {}}',
        '{"schema": "ids-1", "ids": {"a": 9}, "retired": {}}',
        '{"schema": "ids-1", "ids": {}, "retired": {"a": ""}}',
    ):
        (tmp_path / LEDGER).write_text(text)
        with pytest.raises(DamagedError, match="no ledger of ids"):
            load_ledger(tmp_path)


def test_the_ledger_holds_every_shipped_id() -> None:
    assert load_ledger(vectors_root())["ids"] == {case.id: case.level for case in shipped()}


def test_the_law_passes_every_case() -> None:
    law = Law()
    assert [case.id for case in shipped() if not passes(case, law.handle(case.request))] == []


def test_the_judge_passes_the_law() -> None:
    law = Law()
    sample = [case for number, case in enumerate(shipped()) if number % 9 == 0]
    assert {judge(case, law.handle(case.request)).outcome for case in sample} == {"pass"}


@pytest.mark.parametrize("name", IGNORANT)
def test_who_knows_nothing_passes_less_than_a_twentieth(name: str) -> None:
    positive = [case for case in shipped() if case.refusal is None]
    passed = [case for case in positive if passes(case, IGNORANT[name](case))]
    assert len(passed) < 0.05 * len(positive), f"{name}: {len(passed)} of {len(positive)}"


def test_every_rule_has_a_case_and_a_refusal_where_it_refuses() -> None:
    positive: dict[str, list[str]] = defaultdict(list)
    negative: dict[str, list[str]] = defaultdict(list)
    for case in shipped():
        for rule_id in case.rules:
            positive[rule_id].append(case.id)
        if case.refusal is not None:
            negative[case.refusal.rule].append(case.id)
    testable = [
        rule for rule in rules().values() if rule.binding and rule.testable == "yes" and rule.id.split("-")[0] in AREAS
    ]
    assert len(testable) > 80
    assert [rule.id for rule in testable if not positive[rule.id] and rule.id not in NOT_ASKED] == []
    needed = refusing() - set(NOT_ASKED)
    assert len(needed) > 40
    assert sorted(rule_id for rule_id in needed if not negative[rule_id]) == []


def test_level_0_has_a_negative_with_a_control_for_every_rule_that_refuses() -> None:
    first = {case.refusal.rule for case in shipped() if case.refusal is not None and case.level == 0}
    assert sorted(refusing() - set(NOT_ASKED) - first) == []
    by_id = {case.id: case for case in shipped()}
    for case in shipped():
        if case.refusal is not None:
            assert by_id[case.control].refusal is None
            assert by_id[case.control].suite == case.suite


def test_what_saturated_is_asked_for_apart() -> None:
    told = {case.told["saturated"] for case in shipped() if "report" in case.features}
    assert any(text.startswith("0 ") for text in told)
    assert any(text.endswith("tensor yes") for text in told)
    assert len(told) > 5


def test_every_bug_is_hunted() -> None:
    assert {bug for case in shipped() for bug in case.bugs} == set(BUGS)


def only(op: str, form: str, suite: str) -> list[Case]:
    found = [case for case in shipped() if case.suite == f"{form}/{op}/{suite}"]
    assert found
    return found


@pytest.mark.parametrize("name", VALUES)
def test_every_code_is_produced_and_consumed_and_every_tie_is_there(name: str) -> None:
    row = VALUES[name]
    every = set(legal_codes(row).tolist())
    consumed = {
        code for case in only("decode", name, "codes") if case.refusal is None for code in case.inputs["codes"].patterns
    }
    assert every <= consumed
    cases = [case for case in only("encode", name, "boundary") if case.refusal is None]
    produced = {code for case in cases for code in case.outputs["codes"].patterns}
    numbers = DECODED[name]
    unmade = {
        code for code in every if not np.isfinite(numbers[code]) or (row.is_integer and numbers[code] < row.lowest)
    }
    unmade -= set() if row.nan_code is None else {row.nan_code, row.nan_code | row.sign_bit}
    assert produced == every - unmade
    given = {pattern for case in cases if case.inputs["x"].dtype == "f32" for pattern in case.inputs["x"].patterns}
    finite = finite_numbers(row).view(np.float32)
    for low, high in itertools.pairwise(finite):
        middle = np.array((np.float64(low) + np.float64(high)) / 2, np.float32)
        beside = [middle, np.nextafter(middle, np.float32(-np.inf)), np.nextafter(middle, np.float32(np.inf))]
        assert {int(number.view(np.uint32)) for number in beside} <= given, f"{low} {high}"


@pytest.mark.parametrize(("name", "count"), [("ue8m0", 256), ("ue4m3", 128), ("f16", 65536), ("bf16", 65536)])
def test_every_scale_code_is_read(name: str, count: int) -> None:
    read = {
        code
        for case in only("decode_scale", name, "codes")
        if case.refusal is None
        for code in case.inputs["scale_codes"].patterns
    }
    assert set(range(count)) <= read


@pytest.mark.parametrize("name", ["ue8m0", "ue4m3"])
@pytest.mark.parametrize("rounding", ["up", "nearest"])
def test_every_8_bit_scale_code_is_written(name: str, rounding: str) -> None:
    cases = [
        case
        for case in only("encode_scale", name, "boundary")
        if case.refusal is None and case.words["rounding"] == rounding
    ]
    assert len({code for case in cases for code in case.outputs["scale_codes"].patterns}) == (
        256 if name == "ue8m0" else 128
    )


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("scale", ["ue8m0", "ue4m3"])
def test_every_threshold_of_the_scale_rule_is_crossed(name: str, scale: str) -> None:
    (case,) = [
        case for case in only("quantize", name, "scale-steps") if case.words["scheme"] == f"{name}.native.b2-{scale}"
    ]
    codes = set(case.outputs["scale_codes"].patterns)
    largest = np.array([[0x7F7FFFFF, 0]], np.uint32).view(np.float32)
    top = quantspec.quantize(largest, case.words["scheme"]).scale_codes
    assert top is not None
    assert codes >= set(range(1, int(top[0, 0]) + 1))


@pytest.mark.parametrize("name", VALUES)
def test_classes_meet_in_a_block_and_the_largest_stands_at_every_place(name: str) -> None:
    for case in only("quantize", name, "class-pairs"):
        rows = np.array(case.inputs["x"].patterns, np.uint32).reshape(-1, 4)
        members = {int(sign | number) for number in CLASSES for sign in (0, 1 << 31)}
        for first, second in ((0, 1), (3, 0)):
            found = {(int(row[first]), int(row[second])) for row in rows}
            assert found >= set(itertools.product(members, members))
    for case in only("quantize", name, "positions"):
        x = case.inputs["x"].array()
        assert {int(place) for place in np.abs(x).argmax(axis=1)} == set(range(37))


def test_a_block_has_the_same_codes_wherever_it_lies() -> None:
    tagged: dict[str, list[Case]] = defaultdict(list)
    for case in shipped():
        if case.provenance.startswith("metamorphic:"):
            tagged[case.provenance].append(case)
    assert len(tagged) == 3 * len(VALUES)
    for tag, cases in tagged.items():
        blocks = set()
        for case in cases:
            shape, axis, origin = PLACES[case.id.rsplit(".", 1)[1]]
            box = tuple(slice(i, i + BLOCK) if k == axis else slice(i, i + 1) for k, i in enumerate(origin))
            blocks.add(tuple(case.outputs["codes"].array()[box].reshape(-1).tolist()))
            assert case.outputs["codes"].shape == shape
        assert len(cases) == len(PLACES), tag
        assert len(blocks) == 1, tag


def test_every_pair_of_members_meets_but_for_what_the_rules_refuse() -> None:
    found = schemes.combinations()
    for hole in found.holes:
        (one, a), (two, b) = hole.items()
        assert not schemes._fits(one, a, two, b), f"{hole} fits and is in no row"
    texts = {case.words["scheme"] for case in shipped() if case.suite.endswith("/quantize/pairwise")}
    assert texts == {schemes.scheme_of(row).text for row in found.rows}


def test_a_row_that_is_there_stays_where_a_level_is_added() -> None:
    before = cover({"a": (1, 2, 3), "b": (1, 2), "c": (1, 2)}, lambda *levels: True)
    rows = tuple((row["a"] - 1, row["b"] - 1, row["c"] - 1) for row in before.rows)  # type: ignore[operator]
    after = cover({"a": (1, 2, 3, 4), "b": (1, 2), "c": (1, 2)}, lambda *levels: True, known=rows)
    assert after.rows[: len(rows)] == before.rows
    assert {(row["a"], row["b"]) for row in after.rows} == {(a, b) for a in (1, 2, 3, 4) for b in (1, 2)}


def test_three_at_a_time_meet() -> None:
    made = cover(dict.fromkeys("abcd", (0, 1, 2)), lambda *levels: True, strength=3)
    for names in ("abc", "abd", "acd", "bcd"):
        assert len({tuple(row[name] for name in names) for row in made.rows}) == 27
    assert len(made.rows) < 60


def test_a_request_that_the_law_answers_otherwise_is_no_case() -> None:
    place = Place("e2m1", "encode", "x", 0)
    good = Ask(slug="a", title="a", words={"value": "e2m1"}, tensors={"x": shipped_x()})
    bad = Ask(slug="b", title="b", words={"value": "e4m4"}, tensors={"x": shipped_x()})
    with pytest.raises(DamagedError, match="meant as positive; the law says"):
        list(accepted(place, [bad]))
    with pytest.raises(DamagedError, match="meant as negative; the law says"):
        list(with_refusals(place, good, [good]))
    with pytest.raises(DamagedError, match="is not the id of a case"):
        list(accepted(place, [Ask(slug="Not An Id", title="a", words=good.words, tensors=good.tensors)]))


def shipped_x() -> Tensor:
    return next(case.inputs["x"] for case in shipped() if case.op == "encode")


def test_level_1_cases_are_small_and_level_2_is_made_on_demand() -> None:
    assert max(case.elements for case in shipped()) <= 4096
    plan = next(plan for plan in plans(2) if plan.place == Place("e2m1", "quantize", "large", 2))
    assert max(case.elements for case in plan.suite().cases) == 1 << 16
    threewise = next(plan for plan in plans(2) if plan.place == Place("q2f", "dequantize", "threewise", 2))
    assert len(threewise.suite().cases) > 60
    with pytest.raises(DamagedError, match="there are 0, 1, 2"):
        plans(3)


def test_the_files_are_small_enough_to_ship() -> None:
    files = [path for path in vectors_root().rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 20_000_000  # unpacked: what the wheel may have packed


def test_level_0_goes_through_the_public_generator() -> None:
    suites = list(generate(0))
    assert {suite.level for suite in suites} == {0}
    assert all(f"{suite.place}.json" in files_of(suite) for suite in suites)
    assert {Scheme.parse(text).value.name for text in schemes.FIRST if ".lut." not in text} == set(VALUES)
