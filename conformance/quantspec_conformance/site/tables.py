"""Pages that are tables: all combinations and their rule sets, differences between formats, the rules, the source.

Every function returns {docname: markdown}. Numbers and rules come from the reference and the spec when they run.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import quantspec as qs
from quantspec import VALUES, Block, ScaleType, Scheme
from quantspec.stores import STORES

from ..errors import DamagedError
from ..spec import CHAPTERS, rule_key, rules
from .combinations import MODES, Combination, combinations, rule_set, scale_choices

__all__ = [
    "PAIRS", "Pair", "Sets", "choice_label", "combination_pages", "difference_pages", "numbered", "pages", "rule_pages",
    "source_pages",
]  # fmt: skip

Rules = tuple[str, ...]
Level = TypeVar("Level", Block, ScaleType)

#: The page on which the rules of a chapter stand.
CHAPTER_PAGES = {
    "scheme": "1-scheme.md", "values": "2-values.md", "scales": "3-scales.md", "blocks": "4-blocks.md",
    "quantize": "5-quantize.md", "packing": "6-packing.md", "layout": "7-layout.md", "operations": "7-layout.md",
    "policies": "8-conformance.md", "conformance": "8-conformance.md",
}  # fmt: skip


def _render(template: str, **context: object) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, autoescape=False,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"by_area": _by_area, "plain": _plain}
    return environment.get_template(template).render(**context)


def _plain(text: str) -> str:
    """Text in which no character means anything to markdown, back quotes apart."""
    return re.sub(r"([\\*_|<$\[\]])", r"\\\1", text)


def _by_area(ids: Iterable[str]) -> str:
    """Rules in reading order, a semicolon between areas."""
    areas: dict[str, list[str]] = {}
    for rule_id in sorted(ids, key=rule_key):
        areas.setdefault(rule_id[:3], []).append(rule_id)
    return "; ".join(", ".join(members) for members in areas.values())


def pages() -> dict[str, str]:
    """All pages of this module."""
    return combination_pages() | difference_pages() | rule_pages() | source_pages()


@dataclass(frozen=True, slots=True)
class Sets:
    """The distinct rule sets, numbered from 1 in the order in which combinations() meets them, and their three parts.

    A set is `core`, the part of its value and mode, and the part of its scale choice, together: exactly.
    """

    numbers: dict[Rules, int]
    core: frozenset[str]
    of_value: dict[tuple[str, str], frozenset[str]]
    of_choice: dict[tuple[str | None, str | None], frozenset[str]]
    of_set: dict[Rules, list[Combination]]


def numbered(rows: Iterable[Combination]) -> Sets:
    """The sets of the defined combinations. DamagedError where one is not the union of its three parts."""
    defined = [row for row in rows if row.refused_by is None]
    members: dict[Rules, list[Combination]] = {}
    for row in defined:
        members.setdefault(row.rules, []).append(row)
    core = frozenset.intersection(*map(frozenset, members))
    by_value = _shared(((row.value, row.mode), row.rules) for row in defined)
    by_choice = _shared(((row.tensor, row.block), row.rules) for row in defined)
    for row in defined:
        if core | by_value[row.value, row.mode] | by_choice[row.tensor, row.block] != set(row.rules):
            raise DamagedError(f"the rules of {row} are not those of its value, its mode and its scale choice")
    return Sets(
        {key: number for number, key in enumerate(members, 1)}, core,
        {key: part - core for key, part in by_value.items()}, {key: part - core for key, part in by_choice.items()},
        members,
    )  # fmt: skip


def _shared(pairs: Iterable[tuple[Any, Rules]]) -> dict[Any, frozenset[str]]:
    """The rules that all entries of a key have."""
    found: dict[Any, frozenset[str]] = {}
    for key, ids in pairs:
        found[key] = found.get(key, frozenset(ids)) & frozenset(ids)
    return found


def choice_label(tensor: str | None, block: str | None) -> str:
    """`b-ue4m3 t-f32`: the scale types as the parts of a scheme's text spell them."""
    return " ".join([f"b-{block}"] * (block is not None) + [f"t-{tensor}"] * (tensor is not None))


def combination_pages(rows: tuple[Combination, ...] | None = None) -> dict[str, str]:
    """`combinations`, a cell for each combination, and `combinations-sets`, each set once with the anchor `set-<n>`."""
    rows = combinations() if rows is None else rows
    sets = numbered(rows)
    counts = {
        "total": len(rows), "defined": sum(row.refused_by is None for row in rows), "distinct": len(sets.numbers),
        "refused": sum(row.refused_by is not None for row in rows), "refusing": _by_area({*_refusing(rows)}),
        "values": len(VALUES), "modes": len(MODES), "stores": len(STORES), "choices": len(scale_choices()),
    }  # fmt: skip
    cells = {(r.value, r.mode, r.store, r.tensor, r.block): _cell(r, sets) for r in rows}
    columns = [(mode, store) for mode in MODES for store in STORES]
    tables = {
        value: [
            (choice_label(*choice), [cells[value, mode, store, *choice] for mode, store in columns])
            for choice in scale_choices()
        ]
        for value in VALUES
    }
    heads = [f"{mode} {store.replace('_', '_<wbr>')}" for mode, store in columns]
    return {
        "combinations": _render("combinations.md.j2", heads=heads, tables=tables, **counts),
        "combinations-sets": _render("combinations-sets.md.j2", sets=sets, **_parts(sets), **counts),
    }


def _refusing(rows: Iterable[Combination]) -> Iterator[str]:
    return (row.refused_by for row in rows if row.refused_by is not None)


def _cell(row: Combination, sets: Sets) -> str:
    number = sets.numbers.get(row.rules)
    return row.refused_by or f"[S{number}](#set-{number})"


def _parts(sets: Sets) -> dict[str, Any]:
    """The parts of values and of scale choices with names (V1, C1), and for each set its two."""
    values = {part: f"V{i}" for i, part in enumerate(dict.fromkeys(sets.of_value.values()), 1)}
    choices = {part: f"C{i}" for i, part in enumerate(dict.fromkeys(sets.of_choice.values()), 1)}
    listed = []
    for ids, number in sets.numbers.items():
        rows = sets.of_set[ids]
        first = rows[0]
        parts = (values[sets.of_value[first.value, first.mode]], choices[sets.of_choice[first.tensor, first.block]])
        listed.append((number, len(rows), parts, set(ids) - sets.core))
    return {
        "value_parts": [(name, _keys(sets.of_value, part, " ".join), part) for part, name in values.items()],
        "choice_parts": [
            (name, _keys(sets.of_choice, part, lambda key: choice_label(*key)), part) for part, name in choices.items()
        ],
        "listed": listed,
    }  # fmt: skip


def _keys(parts: Mapping[Any, frozenset[str]], part: frozenset[str], label: Callable[[Any], str]) -> str:
    return ", ".join(label(key) for key, own in parts.items() if own == part)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two schemes side by side, each with the name under which it is known."""

    title: str
    left: tuple[str, Scheme]
    right: tuple[str, Scheme]


def _pair(left: str, left_text: str, right: str, right_text: str) -> Pair:
    return Pair(f"{left} and {right}", (left, Scheme.parse(left_text)), (right, Scheme.parse(right_text)))


#: Neighbours that are often taken for one another.
PAIRS = (
    _pair("MXFP4", "e2m1.packed_native_0.b32-ue8m0", "NVFP4", "e2m1.packed_native_0.b16-ue4m3.t-f32"),
    _pair("MXFP8", "e4m3.native.b32-ue8m0", "FP8 per tensor", "e4m3.native.t-f32"),
    _pair("MXFP6 E3M2", "e3m2.packed_native_0.b32-ue8m0", "MXFP6 E2M3", "e2m3.packed_native_0.b32-ue8m0"),
    _pair("MXFP4", "e2m1.packed_native_0.b32-ue8m0", "MXFP8", "e4m3.native.b32-ue8m0"),
    _pair("q8s", "q8s.native.b32-f16", "q8f", "q8f.native.b32-f16"),
    _pair("q4s in blocks", "q4s.packed_native_0.b64-f32", "NF4", "q4s.packed_native_0.lut-nf4.b64-f32"),
    _pair("e4m3 per tensor", "e4m3.native.t-f32", "e5m2 per tensor", "e5m2.native.t-f32"),
    _pair("MXFP4 in bytes", "e2m1.packed_native_0.b32-ue8m0", "MXFP4 in u32 words", "e2m1.packed_u32_0.b32-ue8m0"),
    _pair("packed_native_0", "e2m1.packed_native_0.b32-ue8m0", "packed_native_1", "e2m1.packed_native_1.b32-ue8m0"),
)
ABSENT = "not used"
LARGE = (4096, 4096)
#: The numbers that both sides of a pair quantize: two rows, so that two blocks and both packed axes show, of a length
#: that leaves padding.
EXAMPLE = np.array([[0.3, 1.75, -6, 0.02, 2.5, -0.75], [0.001, -0.004, 0.0072, 0, 0.01, -0.002]], np.float32)


def _number(value: float | np.floating[Any]) -> str:
    """The shortest digits that give the binary32 number back."""
    exact = np.float32(value)
    written = np.format_float_positional(exact, trim="-")
    return written if len(written) < 20 else np.format_float_scientific(exact, trim="-", exp_digits=1)


def _codes(x: list[float], scheme: Scheme) -> npt.NDArray[np.uint8]:
    return qs.encode(np.array(x, np.float32), scheme.value, table=scheme.table)


def _range(scheme: Scheme) -> str:
    low, high = qs.decode(_codes([-np.inf, np.inf], scheme), scheme.value, table=scheme.table)
    return f"{_number(low)} to {_number(high)}"


def _infinity(scheme: Scheme) -> str:
    code = scheme.value.infinity_code
    return "none" if code is None else f"{code:02X}, {code | scheme.value.sign_bit:02X}"


def _of(level: Level | None, read: Callable[[Level], str | float]) -> str:
    """What `read` says of a scale level, where the scheme has it."""
    if level is None:
        return ABSENT
    found = read(level)
    return found if isinstance(found, str) else _number(found)


#: Numbers that rules take from the scheme: a name, the rules (any of which must be in the scheme's set), the number.
PARAMETERS: tuple[tuple[str, Rules, Callable[[Scheme], str]], ...] = (
    ("bits of a value", ("SCH-2",), lambda s: str(s.value.bits)),
    ("range of what encode gives", ("VAL-8", "QNT-8"), _range),
    ("code of a NaN", ("VAL-9", "VAL-10", "QNT-8"), lambda s: f"{_codes([np.nan], s)[0]:02X}"),
    ("codes of infinities", ("VAL-3",), _infinity),
    ("H, what amax is divided by", ("SCL-4",), lambda s: _number(float(s.half_range))),
    ("top, what the largest block scale is mapped to", ("SCL-11",), lambda s: _of(s.block, lambda b: b.scale.block_top)),
    ("extents of a block", ("BLK-1",), lambda s: _of(s.block, lambda b: "x".join(map(str, b.extents)))),
    ("bytes of a block scale", ("SCL-1",), lambda s: _of(s.block, lambda b: str(b.scale.size))),
    ("largest block scale", ("SCL-1",), lambda s: _of(s.block, lambda b: float(b.scale.largest))),
    ("bytes of the tensor scale", ("SCL-1",), lambda s: _of(s.tensor, lambda t: str(t.size))),
    ("bytes of a word", ("PAK-1",), lambda s: str(s.store.word_bytes(s.value.bits))),
    ("codes a word", ("PAK-1",), lambda s: str(s.store.codes_per_word(s.value.bits))),
    ("packed axis of a 2-D tensor", ("PAK-2",), lambda s: str(s.packed_axis(2))),
    ("bytes of a 4096x4096 tensor", ("LAY-1",), lambda s: f"{qs.byte_count(s, LARGE):,}".replace(",", " ")),
    ("bits an element, scales included", ("LAY-1",), lambda s: f"{qs.byte_count(s, LARGE) * 8 / 4096**2:.7g}"),
)  # fmt: skip


def _parameters(pair: Pair) -> Iterator[tuple[str, str, str, str]]:
    """Name, rules, left and right of each parameter that differs; `not used` where no rule of the scheme takes it."""
    schemes = (pair.left[1], pair.right[1])
    owned = [set(rule_set(scheme.text)) for scheme in schemes]
    for name, ids, read in PARAMETERS:
        left, right = (read(s) if own.intersection(ids) else ABSENT for s, own in zip(schemes, owned, strict=True))
        if left != right:
            yield name, ", ".join(rule for rule in ids if rule in owned[0] | owned[1]), left, right


def _members(scheme: Scheme) -> dict[str, str]:
    """The six members as texts. Rule SCH-1."""
    block, table, tensor = scheme.block, scheme.table, scheme.tensor
    return {
        "value": scheme.value.name, "store": scheme.store.text, "mode": scheme.mode,
        "tensor": "none" if tensor is None else tensor.name, "block": "none" if block is None else block.text,
        "table": "none" if table is None else table.name,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """What a scheme makes of the example."""

    codes: list[str]
    back: list[str]
    scales: list[str]
    data: str


def _side(scheme: Scheme) -> Side:
    q = qs.quantize(EXAMPLE, scheme)
    scales = []
    for level, codes, row in (
        ("block", q.scale_codes, None if scheme.block is None else scheme.block.scale),
        ("tensor", q.tensor_scale_code, scheme.tensor),
    ):
        if codes is not None and row is not None:
            values = qs.decode_scale(codes, row)
            pairs = zip(codes.reshape(-1).tolist(), values.reshape(-1), strict=True)
            scales += [f"{level} {code:0{2 * row.size}X} = {_number(value)}" for code, value in pairs]
    back = [_number(value) for value in qs.dequantize(q).reshape(-1)]
    return Side([f"{code:02X}" for code in q.codes.reshape(-1).tolist()], back, scales, qs.to_bytes(q).hex(" "))


def difference_pages() -> dict[str, str]:
    """`differences`: members, rules, parameters and one example of each of PAIRS."""
    known, sections = rules(), []
    for pair in PAIRS:
        (_, left), (_, right) = pair.left, pair.right
        ours, theirs = set(rule_set(left.text)), set(rule_set(right.text))
        members = zip(_members(left).items(), _members(right).values(), strict=True)
        sections.append(
            {
                "pair": pair,
                "members": [(name, a, b) for (name, a), b in members if a != b],
                "only": [
                    (name, [known[rule] for rule in sorted(own - other, key=rule_key)])
                    for name, own, other in ((pair.left[0], ours, theirs), (pair.right[0], theirs, ours))
                ],
                "shared": len(ours & theirs),
                "parameters": list(_parameters(pair)),
                "sides": (_side(left), _side(right)),
            }
        )
    numbers = [_number(value) for value in EXAMPLE.reshape(-1)]
    return {"differences": _render("differences.md.j2", sections=sections, numbers=numbers, shape=EXAMPLE.shape)}


def rule_pages() -> dict[str, str]:
    """`rules`: every rule in the order of the chapters, and the rules of each policy axis."""
    listed = list(rules().values())
    axes: dict[str, list[str]] = {}
    for rule in listed:
        if rule.axis:
            axes.setdefault(rule.axis, []).append(rule.id)
    chapters = {name: page for name, page in CHAPTER_PAGES.items() if name in CHAPTERS}
    return {"rules": _render("rules.md.j2", rules=listed, axes=sorted(axes.items()), chapters=chapters)}


def source_pages() -> dict[str, str]:
    """`source/<module>` for every module of the reference, and `source/index`.

    Line n of a module has the anchor `L-<n>` (pygments writes `<a id="L-12" ...>` before the line), and its number links
    to it. Colours are classes under `.highlight`.
    """
    formatter = HtmlFormatter(lineanchors="L", linenos="inline", anchorlinenos=True, wrapcode=True)
    found, index = {}, []
    for path in sorted(Path(qs.__file__).parent.glob("*.py")):
        text = path.read_text("utf-8")
        html = re.sub(r'(<a id="L-\d+") name="L-\d+"', r"\1", highlight(text, PythonLexer(), formatter))
        title = _plain(path.stem)
        found[f"source/{path.stem}"] = _render("source.md.j2", title=title, html=html.rstrip())
        index.append((path.stem, title, (ast.get_docstring(ast.parse(text)) or "").split("\n")[0], text.count("\n")))
    return found | {"source/index": _render("source-index.md.j2", modules=index)}
