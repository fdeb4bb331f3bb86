"""The page of neighbouring formats side by side: members, rules, the numbers that rules take, and one example.

`pages` returns {docname: Markdown}. Numbers come from the reference, and rule sets from `combinations`, when it runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

import quantspec as qs
from quantspec import Block, ScaleType, Scheme

from ..spec import rule_key, rules
from .cells import shortest
from .combinations import rule_set
from .render import render

__all__ = ["EXAMPLE", "PAIRS", "Pair", "pages"]

Level = TypeVar("Level", Block, ScaleType)


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


def _codes(x: list[float], scheme: Scheme) -> npt.NDArray[np.uint8]:
    return qs.encode(np.array(x, np.float32), scheme.value, table=scheme.table)


def _range(scheme: Scheme) -> str:
    low, high = qs.decode(_codes([-np.inf, np.inf], scheme), scheme.value, table=scheme.table)
    return f"{shortest(low)} to {shortest(high)}"


def _infinity(scheme: Scheme) -> str:
    code = scheme.value.infinity_code
    return "none" if code is None else f"{code:02X}, {code | scheme.value.sign_bit:02X}"


def _of(level: Level | None, read: Callable[[Level], str | float]) -> str:
    """What `read` says of a scale level, where the scheme has it."""
    if level is None:
        return ABSENT
    found = read(level)
    return found if isinstance(found, str) else shortest(np.float32(found))


#: Numbers that rules take from the scheme: a name, the rules (any of which must be in the scheme's set), the number.
PARAMETERS: tuple[tuple[str, tuple[str, ...], Callable[[Scheme], str]], ...] = (
    ("bits of a value", ("SCH-2",), lambda s: str(s.value.bits)),
    ("range of what encode gives", ("VAL-8", "QNT-8"), _range),
    ("code of a NaN", ("VAL-9", "VAL-10", "QNT-8"), lambda s: f"{_codes([np.nan], s)[0]:02X}"),
    ("codes of infinities", ("VAL-3",), _infinity),
    ("H, what amax is divided by", ("SCL-4",), lambda s: shortest(np.float32(s.half_range))),
    ("top, what the largest block scale is mapped to", ("SCL-11",), lambda s: _of(s.block, lambda b: b.scale.block_top)),
    ("extents of a block", ("BLK-1",), lambda s: _of(s.block, lambda b: "x".join(map(str, b.extents)))),
    ("bytes of a block scale", ("SCL-1",), lambda s: _of(s.block, lambda b: str(b.scale.size))),
    ("largest block scale", ("SCL-1",), lambda s: _of(s.block, lambda b: float(b.scale.largest))),
    ("bytes of the tensor scale", ("SCL-1",), lambda s: _of(s.tensor, lambda t: str(t.size))),
    ("bytes of a word", ("PAK-1",), lambda s: str(s.store.word_bytes(s.value.bits))),
    ("codes a word", ("PAK-1",), lambda s: str(s.store.codes_per_word(s.value.bits))),
    ("packed axis of a 2-D tensor", ("PAK-2",), lambda s: str(s.packed_axis(2))),
    ("bytes of a 4096x4096 tensor", ("LAY-1",), lambda s: f"{qs.byte_count(s, LARGE):,}"),
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
            scales += [f"{level} {code:0{2 * row.size}X} = {shortest(value)}" for code, value in pairs]
    back = [shortest(value) for value in qs.dequantize(q).reshape(-1)]
    return Side([f"{code:02X}" for code in q.codes.reshape(-1).tolist()], back, scales, qs.to_bytes(q).hex(" ").upper())


def pages() -> dict[str, str]:
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
    numbers = [shortest(value) for value in EXAMPLE.reshape(-1)]
    return {"differences": render("differences", sections=sections, numbers=numbers, shape=EXAMPLE.shape)}
