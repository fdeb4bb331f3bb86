"""What a page says about a scale type: facts, codes, what `encode_scale` gives. Rules SCL-1 to SCL-3, SCL-15 to SCL-18."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

import numpy as np

import quantspec
from quantspec import ScaleError, ScaleType

from .. import patterns
from .cells import Fact, as_float32, binary32, code_name, decimal, exactly, hexadecimal_float, table

__all__ = ["code_table", "description", "facts", "landmarks", "rounding_table", "scale_rules"]

PLAIN = (0.0, 0.001, 0.3, 5.0, 100.0)
AWKWARD = (-0.0, -1.0, -0.3, np.inf, -np.inf, np.nan)


def description(scale: ScaleType) -> str:
    """What the type is, in a sentence. Rules SCL-1 to SCL-3."""
    parts = [f"{_exponent_bits(scale)} exponent bits", f"{scale.mantissa_bits} mantissa bits", f"bias {scale.bias}"]
    sign = "signed" if scale.signed else "unsigned"
    zero = "" if scale.has_zero else "; it has no zero"
    return f"A scale in {scale.size} byte{'s' * (scale.size > 1)}, {sign}: {', '.join(parts)}{zero}."


def scale_rules(scale: ScaleType) -> str:
    """The rules that say it, by what they say."""
    own = "" if scale.has_zero else ", SCL-3"
    refused = ", SCL-2" if scale.bits < 8 * scale.size else ""
    return (
        f"Bits SCL-1{own}{refused}; rounding up SCL-8, SCL-15; to nearest SCL-16; sign, NaN and infinities SCL-17; "
        "reading SCL-18; a zero scale SCL-9; two levels SCL-11, SCL-12."
    )


def facts(scale: ScaleType) -> list[Fact]:
    """Name, value and rules of each fact. Rules SCL-1 to SCL-3, SCL-11."""
    infinity = "none" if scale.infinity_code is None else _code(scale, scale.infinity_code)
    return [
        ("bytes", str(scale.size), "SCL-1, LAY-2"),
        ("fields from the top", "|".join(map(str, _field_widths(scale))), "SCL-1"),
        ("bias", str(scale.bias), "SCL-1"),
        ("sign", "yes" if scale.signed else "no", "SCL-1"),
        ("zero", _code(scale, 0) if scale.has_zero else "none", "SCL-9"),
        ("smallest positive", _numbered(scale, int(scale.has_zero)), "SCL-1"),
        ("largest finite", _numbered(scale, scale.largest_code), "SCL-1"),
        ("Inf", infinity, "SCL-18"),
        ("NaN written", _code(scale, scale.nan_code), "SCL-1, SCL-17"),
        ("top, what the largest block scale is mapped to under a tensor scale", decimal(scale.block_top), "SCL-11"),
        ("refused on read", _refused(scale) or "nothing", "SCL-2, SCL-18"),
    ]


def _exponent_bits(scale: ScaleType) -> int:
    return scale.bits - scale.signed - scale.mantissa_bits


def _field_widths(scale: ScaleType) -> list[int]:
    return [width for width in (int(scale.signed), _exponent_bits(scale), scale.mantissa_bits) if width]


def _code(scale: ScaleType, code: int) -> str:
    return code_name(code, 2 * scale.size)


def _decode(scale: ScaleType, code: int) -> float:
    return float(quantspec.decode_scale(np.array([code], scale.code_dtype), scale)[0])


def _numbered(scale: ScaleType, code: int) -> str:
    number = _decode(scale, code)
    return f"{decimal(number)} ({_code(scale, code)}, {hexadecimal_float(number)})"


def _refused(scale: ScaleType) -> str:
    """The codes that have a bit the type lacks. Rules SCL-2, SCL-18."""
    first, end = 1 << scale.bits, 1 << 8 * scale.size
    return f"{_code(scale, first)} to {_code(scale, end - 1)}" if first < end else ""


def _fields(scale: ScaleType, code: int) -> str:
    cut = patterns.fields(code, sign=int(scale.signed), exponent=_exponent_bits(scale), mantissa=scale.mantissa_bits)
    return f"`{cut}`"


def code_table(scale: ScaleType) -> str:
    """Every code of a type of one byte, and the midpoints; nothing for wider ones. Rules SCL-1 to SCL-3, SCL-16."""
    if scale.size > 1:
        return ""
    rows = []
    for code in range(1 << scale.bits):
        number = _decode(scale, code)
        last = code >= scale.largest_code
        middle = None if last else as_float32((Fraction(number) + Fraction(_decode(scale, code + 1))) / 2)
        goes = "" if middle is None else _encoded(scale, middle, "nearest")[0]
        shown = "" if middle is None else exactly(float(middle))
        rows.append([
            _code(scale, code), _fields(scale, code), decimal(number), hexadecimal_float(number), shown, goes,
            _remark(scale, code),
        ])  # fmt: skip
    if _refused(scale):
        rows.append([_refused(scale), "", "refused on read", "", "", "", "SCL-2"])
    return table(["code", "fields", "number", "in hex", "midpoint above", "nearest there", "note"], rows)


def _remark(scale: ScaleType, code: int) -> str:
    names = [name for name, mark in _marks(scale) if mark == code]
    return ", ".join(names)


def _marks(scale: ScaleType) -> Iterator[tuple[str, int]]:
    """Codes worth a name. Rules SCL-1 to SCL-3."""
    normal, one = 1 << scale.mantissa_bits, int(_encode(scale, np.float32(1), "up"))
    if scale.has_zero:
        yield from (
            ("zero", 0),
            ("smallest subnormal", 1),
            ("largest subnormal", normal - 1),
            ("smallest normal", normal),
        )
    else:
        yield "smallest", 0
    yield from (("1", one), ("next above 1", one + 1), ("largest finite", scale.largest_code))
    if scale.infinity_code is not None:
        yield "Inf", scale.infinity_code
    yield from (("first NaN", scale.first_nan_code), ("NaN written", scale.nan_code))
    if scale.signed:
        yield from (("-0", scale.sign_bit), ("-1", scale.sign_bit | one))


def landmarks(scale: ScaleType) -> str:
    """The codes worth a name. Rules SCL-1 to SCL-3, SCL-18."""
    rows = []
    for name, code in _marks(scale):
        number = _decode(scale, code)
        rows.append([name, _code(scale, code), _fields(scale, code), decimal(number), hexadecimal_float(number)])
    return table(["landmark", "code", "fields", "number", "in hex"], rows)


def rounding_table(scale: ScaleType) -> str:
    """What `encode_scale` gives for plain numbers, ties, the ends and the awkward ones. Rules SCL-15, SCL-16, SCL-17."""
    rows = []
    for remark, x in _samples(scale):
        up, nearest = _encoded(scale, x, "up"), _encoded(scale, x, "nearest")
        rows.append([patterns.number(binary32(x)), remark, *up, *nearest])
    return table(["number", "note", "up", "reads as", "nearest", "reads as"], rows)


def _samples(scale: ScaleType) -> Iterator[tuple[str, np.float32]]:
    """Numbers with a remark; those that are no binary32 are left out."""
    one = int(_encode(scale, np.float32(1), "up"))
    steps = [Fraction(_decode(scale, code)) for code in (one, one + 1, one + 2)]
    smallest, top = Fraction(_decode(scale, int(scale.has_zero))), Fraction(_decode(scale, scale.largest_code))
    half = (top - Fraction(_decode(scale, scale.largest_code - 1))) / 2
    exact = [
        ("half the smallest", smallest / 2), ("1.5 times the smallest", smallest * 3 / 2),
        ("tie above 1", (steps[0] + steps[1]) / 2), ("the next tie", (steps[1] + steps[2]) / 2),
        ("half of the last step above the largest", top + half), ("the last step above the largest", top + 2 * half),
    ]  # fmt: skip
    yield from (("", np.float32(number)) for number in PLAIN)
    for remark, number in exact:
        x = as_float32(number)
        if x is not None:
            yield remark, x
    yield from (("", np.float32(number)) for number in AWKWARD)


def _encode(scale: ScaleType, x: np.float32, rounding: Literal["up", "nearest"]) -> int:
    return int(quantspec.encode_scale(x, scale, rounding))


def _encoded(scale: ScaleType, x: np.float32, rounding: Literal["up", "nearest"]) -> tuple[str, str]:
    """The code and its number, or the rule that refuses. Rules SCL-15 to SCL-17, SCL-20."""
    try:
        code = _encode(scale, x, rounding)
    except ScaleError as refusal:
        return "refused", refusal.rule
    return _code(scale, code), decimal(_decode(scale, code))
