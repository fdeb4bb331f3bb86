"""What the bits of a pattern mean: class and sign of each, and its text. Formats are rows of the reference's tables."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from quantspec import SCALES, VALUES, ScaleType, Scheme, ValueFormat

from .. import patterns

__all__ = ["CLASSES", "Format", "format_of", "usual_format"]

#: Classes of a pattern. `illegal` is a code that the format lacks, `pattern` one of no known format.
CLASSES = ("zero", "subnormal", "normal", "inf", "nan", "illegal", "pattern")
ZERO, SUBNORMAL, NORMAL, INF, NAN, ILLEGAL, PATTERN = range(len(CLASSES))
Patterns = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of patterns: size in bytes, the sign's bit (0: none), the class of magnitudes, the text of a pattern."""

    name: str
    size: int
    sign_bit: int
    show: Callable[[int], str]
    classify: Callable[[Patterns], npt.NDArray[np.int8]]

    def classes(self, codes: Patterns) -> npt.NDArray[np.int8]:
        """Index into CLASSES of each pattern."""
        return self.classify(codes.astype(np.uint64))

    def negative(self, codes: Patterns) -> npt.NDArray[np.bool_]:
        """Where the sign is set."""
        return np.asarray((codes.astype(np.uint64) & np.uint64(self.sign_bit)) != 0)


def _floats(
    *, bits: int, sign_bit: int, mantissa_bits: int, has_zero: bool, first_nan: int | None, infinity: int | None
) -> Callable[[Patterns], npt.NDArray[np.int8]]:
    """Classes of sign, exponent and mantissa; bits above the format's make a code illegal."""
    width = np.uint64((1 << bits) - 1)
    least_normal = (1 << mantissa_bits) if has_zero else 0

    def classify(codes: Patterns) -> npt.NDArray[np.int8]:
        magnitude = codes & width & ~np.uint64(sign_bit)
        found = np.where(magnitude < np.uint64(least_normal), SUBNORMAL, NORMAL)
        found = np.where((magnitude == 0) & has_zero, ZERO, found)
        found = found if first_nan is None else np.where(magnitude >= np.uint64(first_nan), NAN, found)
        found = found if infinity is None else np.where(magnitude == np.uint64(infinity), INF, found)
        return np.where(codes & ~width, ILLEGAL, found).astype(np.int8)

    return classify


def _integers(bits: int, size: int) -> Callable[[Patterns], npt.NDArray[np.int8]]:
    """Classes of two's complement; a code that is not its own sign extension is illegal."""
    field, sign = np.uint64((1 << bits) - 1), np.uint64(1 << (bits - 1))
    above = np.uint64((1 << 8 * size) - 1) & ~field

    def classify(codes: Patterns) -> npt.NDArray[np.int8]:
        extended = np.where(codes & sign, (codes & field) | above, codes & field)
        return np.where(extended != codes, ILLEGAL, np.where(codes == 0, ZERO, NORMAL)).astype(np.int8)

    return classify


def _value(row: ValueFormat) -> Format:
    scheme = Scheme(row)
    if row.is_integer:  # the byte is sign-extended: its top bit is the sign
        return Format(row.name, 1, 0x80, lambda code: patterns.value_code(code, scheme), _integers(row.bits, 1))
    classify = _floats(
        bits=row.bits, sign_bit=row.sign_bit, mantissa_bits=row.mantissa_bits, has_zero=True, first_nan=row.first_nan_code,
        infinity=row.infinity_code,
    )  # fmt: skip
    return Format(row.name, 1, row.sign_bit, lambda code: patterns.value_code(code, scheme), classify)


def _scale(row: ScaleType) -> Format:
    classify = _floats(
        bits=row.bits, sign_bit=row.sign_bit, mantissa_bits=row.mantissa_bits, has_zero=row.has_zero,
        first_nan=row.first_nan_code, infinity=row.infinity_code,
    )  # fmt: skip
    return Format(row.name, row.size, row.sign_bit, lambda code: _scale_text(code, row), classify)


def _scale_text(code: int, row: ScaleType) -> str:
    if row.name == "f32":
        return patterns.binary32(code)
    return patterns.scale_code(code, row) if row.infinity_code is None else patterns.output_pattern(code, row.name)


def _double() -> Format:
    def show(code: int) -> str:
        number = float(np.array([code], np.uint64).view(np.float64)[0])
        return f"0x{code:016X}  {patterns.fields(code, sign=1, exponent=11, mantissa=52)}  {number!r}"

    classify = _floats(
        bits=64, sign_bit=1 << 63, mantissa_bits=52, has_zero=True, first_nan=(0x7FF << 52) + 1, infinity=0x7FF << 52
    )
    return Format("f64", 8, 1 << 63, show, classify)


def _plain(size: int, kind: str) -> Format:
    """Integers of the host, and bytes of no known format."""

    def show(code: int) -> str:
        signed = code - (1 << 8 * size) if kind == "i" and code >> (8 * size - 1) else code
        return f"0x{code:0{2 * size}X}  {signed}"

    if kind == "i":
        return Format(f"i{8 * size}", size, 1 << (8 * size - 1), show, _integers(8 * size, size))
    return Format(f"u{8 * size}", size, 0, show, lambda codes: np.full(codes.shape, PATTERN, np.int8))


@cache
def format_of(name: str) -> Format:
    """The format of a name: a value format or a scale type, f32, f16 and bf16 among them, or f64. ValueError for another."""
    if name in VALUES:
        return _value(VALUES[name])
    if name in SCALES:
        return _scale(SCALES[name])
    if name == "f64":
        return _double()
    raise ValueError(f"fmt={name!r}; allowed: {', '.join([*VALUES, *SCALES, 'f64'])}")


def usual_format(dtype: np.dtype[Any]) -> Format:
    """The format that a dtype tells by itself; for unsigned integers patterns of none."""
    if dtype.kind in "iub" and dtype.name.rstrip("0123456789") in ("int", "uint", "bool"):
        return _plain(
            dtype.itemsize, "i" if dtype.kind == "i" and dtype.itemsize > 1 else "u" if dtype.kind != "i" else "i"
        )
    rows: dict[np.dtype[Any], str] = {np.dtype(np.float64): "f64"}
    for scale in SCALES.values():
        if scale.name != "ue4m3":  # e4m3's dtype is the value format's first
            rows.setdefault(_dtype(scale.ml_dtype), scale.name)
    for value in VALUES.values():
        if not value.is_integer:
            rows.setdefault(value.dtype, value.name)
    return format_of(rows[dtype]) if dtype in rows else _plain(dtype.itemsize, "u")


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))
