"""The oracle for codecs: rules POL-2 and POL-11 to POL-13, written from their texts alone.

A codec is a record with the members of a row of ``presets.toml``; encode finds the two neighbours of a number by their
exact values. Conventions are those of `oracle`: binary32 patterns, codes are native bytes, what is refused raises
`Refused`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from . import oracle
from .oracle import (
    BITS,
    INTEGER_RANGE,
    MINIFLOAT,
    MINIFLOAT_NAN,
    SIGN32,
    is_inf,
    is_nan,
    refuse_if,
    rn32,
    sign_of,
    units,
)

MEMBERS: dict[str, tuple[str, ...]] = {
    "rounding": ("even", "away", "toward-zero", "half-up", "down", "thresholds"),
    "overflow": ("saturate", "ieee"),
    "nan": (
        *("format", "positive", "max", "signed-max", "zero", "signed-zero", "inverted-zero", "negative-zero"),
        *("ones", "positive-ones", "negative-ones"),
    ),
    "nan_integer": ("zero", "lowest", "highest"),
    "zero_sign": ("keep", "underflow", "drop"),
    "negative_zero": ("keep", "drop"),
}


@dataclass(frozen=True)
class C:
    """A codec. Thresholds are binary32 patterns, ascending as numbers."""

    name: str
    rounding: str = "even"
    overflow: str = "saturate"
    nan: str = "format"
    zero_sign: str = "keep"
    nan_integer: str = "zero"
    negative_zero: str = "keep"
    thresholds: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    signed: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> C:
        numbers = tuple(pattern_of(text) for text in row.get("thresholds", ()))
        return cls(**{**row, "thresholds": numbers, "order": tuple(row.get("order", ()))})


CANONICAL = C("canonical")


def pattern_of(text: str) -> int:
    """A hexadecimal number, exactly a binary32, as its pattern."""
    number = float.fromhex(text)
    bits = rn32(Fraction(number)) | (SIGN32 if text.startswith("-") else 0)
    exact = oracle.is_finite(bits) and oracle.value(bits) == Fraction(number)
    refuse_if(not exact, f"{text} is no binary32 number")
    return bits


# ---------------------------------------------------------------- candidates


@cache
def candidates(val: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ascending exact values (units) of the format with one number more at each end, and a rank for each.

    The rank counts from zero, so that its parity is that of the code and of the integer; ranks beyond `last_rank` are
    the numbers that the format lacks.
    """
    if val in INTEGER_RANGE:
        low, high = INTEGER_RANGE[val]
        ranks = range(low - 1, high + 2)
        return tuple(n << 150 for n in ranks), tuple(ranks)
    fraction_bits, bias, largest = MINIFLOAT[val]
    half = [int(oracle.float_magnitude(code, fraction_bits, bias) * 2**150) for code in range(largest + 2)]
    return (*(-v for v in reversed(half[1:])), *half), tuple(range(-largest - 1, largest + 2))


def rounded(x: int, val: str, rounding: str) -> int:
    """The rank that a finite number (units) rounds to, the first one beyond the range standing for all that follow."""
    values, ranks = candidates(val)
    above = bisect_left(values, x)
    if above == len(values):
        return ranks[-1]
    if values[above] == x or above == 0:
        return ranks[above]
    low, high = values[above - 1], values[above]
    lower, upper = ranks[above - 1], ranks[above]
    if rounding == "down":
        return lower
    if x - low != high - x:
        return lower if x - low < high - x else upper
    larger, smaller = (upper, lower) if x > 0 else (lower, upper)
    tie = {"even": lower if lower % 2 == 0 else upper, "away": larger, "toward-zero": smaller, "half-up": upper}
    return tie[rounding]


def last_rank(val: str, negative: bool) -> int:
    if val in INTEGER_RANGE:
        return INTEGER_RANGE[val][0 if negative else 1]
    return -MINIFLOAT[val][2] if negative else MINIFLOAT[val][2]


# ---------------------------------------------------------------- encode, decode


def encode_integer(val: str, bits: int, codec: C) -> int:
    low, high = INTEGER_RANGE[val]
    if is_nan(bits):
        return {"zero": 0, "lowest": low, "highest": high}[codec.nan_integer] % 256
    if is_inf(bits):
        return (low if sign_of(bits) else high) % 256
    return max(low, min(high, rounded(units(bits), val, codec.rounding))) % 256


def nan_code(val: str, negative: bool, codec: C) -> int:
    sign_bit, largest = 1 << (BITS[val] - 1), MINIFLOAT[val][2]
    with_nan = val in MINIFLOAT_NAN
    if codec.nan == "max":
        return largest
    if codec.nan == "signed-max":
        return largest | (sign_bit if negative else 0)
    if codec.nan.endswith("ones"):
        signed = {"ones": negative, "positive-ones": False, "negative-ones": True}[codec.nan]
        without = {"ones": 0, "positive-ones": largest, "negative-ones": sign_bit | largest}[codec.nan]
        return sign_bit - 1 | (sign_bit if signed else 0) if with_nan else without
    if codec.nan == "positive":
        return MINIFLOAT_NAN[val] if with_nan else largest
    if with_nan:
        return MINIFLOAT_NAN[val] | (sign_bit if negative else 0)
    zero_is_negative = {"signed-zero": negative, "inverted-zero": not negative, "negative-zero": True}.get(
        codec.nan, False
    )
    return sign_bit if zero_is_negative else 0


def overflow_code(val: str, codec: C) -> int:
    """The magnitude of what lies beyond the range."""
    beyond = {"e5m2": 0x7C, "e4m3": 0x7F}
    return beyond.get(val, MINIFLOAT[val][2]) if codec.overflow == "ieee" else MINIFLOAT[val][2]


def encode_minifloat(val: str, bits: int, codec: C) -> int:
    negative = sign_of(bits) != 0
    if is_nan(bits):
        return nan_code(val, negative, codec)
    sign = 2 ** (BITS[val] - 1) if negative else 0
    if is_inf(bits):
        return sign | overflow_code(val, codec)
    rank = rounded(units(bits), val, codec.rounding)
    if abs(rank) > MINIFLOAT[val][2]:
        return sign | overflow_code(val, codec)
    if rank == 0 and (codec.zero_sign == "drop" or (codec.zero_sign == "underflow" and units(bits) == 0)):
        return 0
    return sign | abs(rank)


def check_covered(codec: C, val: str, table: Sequence[int] | None) -> None:
    if codec.rounding == "thresholds":
        codes = len(codec.order) * (2 if codec.signed else 1)
        refuse_if(table is None or len(table) != codes, f"codec {codec.name}: by thresholds, lookup of {codes} entries")
    else:
        refuse_if(table is not None and codec.rounding != "even", f"codec {codec.name}: no lookup")


def encode_thresholds(val: str, bits: int, codec: C) -> int:
    if is_nan(bits):
        return codec.order[0]
    x = ordered(bits)
    if not codec.signed:
        return codec.order[bisect_left([ordered(t) for t in codec.thresholds], x)]
    code = codec.order[bisect_left([ordered(t) for t in codec.thresholds], abs(x))]
    return code | (2 ** (BITS[val] - 1) if x < 0 else 0)


def ordered(bits: int) -> int:
    """A number, infinities included, as an integer in the same order; both zeros are 0."""
    return -(bits & 0x7FFFFFFF) if sign_of(bits) else bits


def encode(val: str, bits: int, codec: C = CANONICAL, table: Sequence[int] | None = None) -> int:
    check_covered(codec, val, table)
    if table is not None:
        oracle.check_table(val, table)
        return (
            encode_thresholds(val, bits, codec) if codec.rounding == "thresholds" else oracle.encode(val, bits, table)
        )
    return encode_integer(val, bits, codec) if val in INTEGER_RANGE else encode_minifloat(val, bits, codec)


def decode(val: str, code: int, codec: C = CANONICAL, table: Sequence[int] | None = None) -> int:
    check_covered(codec, val, table)
    v = oracle.decode(val, code, table)
    return 0 if codec.negative_zero == "drop" and oracle.is_zero(v) else v
