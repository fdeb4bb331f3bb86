"""What a page says about a value format: facts and every code, asked from `decode` and `encode`. Rules VAL-1 to VAL-13."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import TABLES, Scheme, ValueFormat

from .. import patterns
from ..families import legal_codes
from .cells import Fact, as_float32, code_name, decimal, exactly, hexadecimal_float, table

__all__ = ["code_table", "description", "facts", "saturation", "value_rules"]


def description(row: ValueFormat) -> str:
    """What the format is, in a sentence. Rules VAL-1, VAL-2."""
    if row.is_integer:
        return f"A two's complement integer of {row.bits} bits; encode yields {row.lowest} to {row.highest}."
    top = f"its largest number is {decimal(row.half_range)}"
    return (
        f"A floating-point number of {row.bits} bits: sign, {row.exponent_bits} exponent bits, "
        f"{row.mantissa_bits} mantissa bit{'s' * (row.mantissa_bits > 1)}, bias {row.bias}; {top}."
    )


def value_rules(row: ValueFormat) -> str:
    """The rules that say it, by what they say."""
    layout, nan = ("VAL-1", "VAL-10") if row.is_integer else ("VAL-2", "VAL-10" if row.nan_code is None else "VAL-9")
    return (
        f"Layout and range {layout}; special codes VAL-3; the byte of a code VAL-4, VAL-5; rounding VAL-6, VAL-7; "
        f"saturation VAL-8; NaN {nan}; zero VAL-11; reading VAL-12{', VAL-13' * row.is_integer}; scale SCL-4."
    )


def facts(row: ValueFormat) -> list[Fact]:
    """Name, value and rules of each fact. Rules VAL-1 to VAL-11, SCL-4."""
    nan = [f"{sign}NaN to {code_name(_encode(row, number))}" for sign, number in (("+", np.nan), ("-", -np.nan))]
    shared = [
        ("H, what amax is divided by", decimal(row.half_range), "SCL-4"),
        ("NaN encodes", ", ".join(nan), "VAL-10" if row.nan_code is None else "VAL-9"),
        ("a number saturates", saturation(row), "VAL-7, VAL-8"),
        ("the dtype that reads a code byte", f"`{row.dtype.name}`", ""),
    ]
    return [("bits", str(row.bits), ""), *(_integer_facts(row) if row.is_integer else _float_facts(row)), *shared]


def _integer_facts(row: ValueFormat) -> list[Fact]:
    tables = [f"`{name}`" for name, entries in TABLES.items() if len(entries.bits) == 1 << row.bits]
    unwritten = [code_name(int(code)) for code in legal_codes(Scheme(row)) if _decode(row, code) < row.lowest]
    return [
        ("range of encode", f"{row.lowest} to {row.highest}", "VAL-1, VAL-8"),
        ("codes that encode never yields", ", ".join(unwritten) or "none", "VAL-13"),
        ("Inf, NaN, -0", "none", "VAL-3, VAL-11"),
        ("in lookup mode", f"the field is an index from 0 to {row.mask}, its byte zero-extended", "VAL-4, QNT-7"),
        ("registered tables of this length", ", ".join(tables) or "none", "SCH-16"),
    ]


def _float_facts(row: ValueFormat) -> list[Fact]:
    codes = legal_codes(Scheme(row))
    numbers = quantspec.decode(codes, row)
    normal = 1 << row.mantissa_bits

    def those(mask: npt.NDArray[np.bool_]) -> str:
        return " ".join(code_name(int(code)) for code in codes[mask]) or "none"

    def at(code: int) -> str:
        return f"{decimal(_decode(row, code))} ({code_name(code)}, {hexadecimal_float(_decode(row, code))})"

    return [
        ("fields from the top", f"1|{row.exponent_bits}|{row.mantissa_bits}", "VAL-2"),
        ("bias", str(row.bias), "VAL-2"),
        ("largest finite", at(row.largest_code), "VAL-2"),
        ("smallest normal", at(normal), "VAL-2"),
        ("smallest subnormal", at(1), "VAL-2"),
        ("Inf", those(np.isinf(numbers)), "VAL-3"),
        ("NaN", those(np.isnan(numbers)), "VAL-3"),
        ("-0", those((numbers == 0) & np.signbit(numbers)), "VAL-11"),
    ]


def saturation(row: ValueFormat) -> str:
    """The first number on each side that saturates, or the last that does not: found by asking which rules fire. VAL-8."""
    if row.is_integer:
        return f"upwards {_first(row, 0)}, downwards {_first(row, 1)}"
    return f"{_first(row, 0)}, in magnitude"


def _first(row: ValueFormat, sign: int) -> str:
    """`from x` where the tie x saturates, else `beyond x`, the last tie that stays. Rules VAL-7, VAL-8."""
    low, high = 0, 0x7F7FFFFF
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if "VAL-8" in _fired(row, middle, sign)[1] else (middle + 1, high)
    for word, pattern in (("from", low), ("beyond", low - 1)):
        number, fired = _fired(row, pattern, sign)
        if "VAL-7" in fired:
            return f"{word} {decimal(number)}"
    raise AssertionError(f"{row.name} does not begin to saturate at a tie")


def _fired(row: ValueFormat, pattern: int, sign: int) -> tuple[float, tuple[str, ...]]:
    """A binary32 number, and the rules that fire when it is encoded."""
    x = np.array([pattern | sign << 31], np.uint32).view(np.float32)
    with quantspec.trace() as trace:
        quantspec.encode(x, row)
    return float(x[0]), trace.rules((0,))


def _encode(row: ValueFormat, number: float | np.float32) -> int:
    return int(quantspec.encode(np.float32(number), row))


def _decode(row: ValueFormat, code: int) -> float:
    return float(quantspec.decode(np.array([code], np.uint8), row)[0])


def code_table(row: ValueFormat) -> str:
    """Every code: fields, number, neighbours, the midpoint above and where it goes. Rules VAL-1 to VAL-13."""
    scheme = Scheme(row)
    codes = [int(code) for code in legal_codes(scheme)]
    numbers = {code: _decode(row, code) for code in codes}
    finite = [code for code in codes if np.isfinite(numbers[code])]
    ordered = sorted(finite, key=lambda code: (numbers[code], not np.signbit(numbers[code])))
    rows = []
    for code in codes:
        own = numbers[code]
        above = next((other for other in ordered if numbers[other] > own and code in finite), None)
        below = next((other for other in reversed(ordered) if numbers[other] < own and code in finite), None)
        rows.append([
            code_name(code), f"`{patterns.value_fields(code, scheme)}`", decimal(own), hexadecimal_float(own),
            "" if below is None else code_name(below), *_above(row, own, above, numbers), _remarks(row, code, own),
        ])  # fmt: skip
    header = ["code", "fields", "number", "in hex", "below", "above", "midpoint above", "goes to", "note"]
    return table(header, rows)


def _above(row: ValueFormat, own: float, above: int | None, numbers: dict[int, float]) -> list[str]:
    """The next code up, the number half way to it, and the code that a number there gets. Rules VAL-6, VAL-7."""
    if above is None:
        return ["", "", ""]
    middle = (Fraction(own) + Fraction(numbers[above])) / 2
    x = as_float32(middle)
    if x is None:
        raise AssertionError(f"a midpoint of {row.name} is no binary32 number: {middle}")
    return [code_name(above), exactly(middle), code_name(_encode(row, x))]


def _remarks(row: ValueFormat, code: int, own: float) -> str:
    """What is special about a code. Rules VAL-3, VAL-8, VAL-9, VAL-11, VAL-13."""
    if np.isnan(own):
        written = code in (_encode(row, np.nan), _encode(row, -np.nan))
        return "NaN, written for NaN" if written else "NaN, never written: VAL-9"
    if np.isinf(own):
        return "never written: VAL-8"
    if _encode(row, own) != code:
        return "never written: VAL-13"
    magnitude = code & (row.sign_bit - 1)
    if row.is_integer:
        return {row.lowest: "lowest", row.highest: "highest"}.get(int(own), "")
    if own == 0:
        return "-0" if np.signbit(own) else "+0"
    if magnitude == row.largest_code:
        return "largest magnitude"
    return "subnormal" if magnitude < 1 << row.mantissa_bits else ""
