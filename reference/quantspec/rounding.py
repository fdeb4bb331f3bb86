"""The few primitives that decide bits: binary32 patterns, rounding to a narrower significand, single IEEE steps.

Everything here works on unsigned 32-bit patterns. A magnitude is a pattern with bit 31 clear; patterns of magnitudes
order as their numbers do, so every comparison of numbers below is one of integers.
"""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .errors import DtypeError, HostError
from .tracing import note, rule

__all__ = [
    "F32",
    "INF",
    "MAGNITUDE",
    "QNAN",
    "SIGN",
    "SMALLEST",
    "Bits",
    "add",
    "canonical",
    "divide",
    "is_nan",
    "is_tie",
    "multiply",
    "narrow",
    "order_key",
    "require_subnormals",
    "round_exponent",
    "round_significand",
    "scaled",
    "subtract",
    "take_literals",
    "to_bits",
    "to_float",
    "widen",
]

Bits = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

SIGN = np.uint32(0x80000000)
MAGNITUDE = np.uint32(0x7FFFFFFF)
INF = np.uint32(0x7F800000)
QNAN = np.uint32(0x7FC00000)
SMALLEST = np.uint32(1)  # 2^-149, the smallest positive binary32


def to_bits(x: F32) -> Bits:
    """The patterns of binary32 numbers, same shape."""
    return x.view(np.uint32)


def to_float(bits: Bits) -> F32:
    """The binary32 numbers of patterns, same shape."""
    return bits.view(np.float32)


def is_nan(bits: Bits) -> npt.NDArray[np.bool_]:
    """True where the pattern is a NaN."""
    return (bits & MAGNITUDE) > INF


def order_key(bits: Bits) -> npt.NDArray[np.int32]:
    """Integers that order as the numbers do, the two zeros equal; NaN patterns have no place in the order."""
    magnitude = (bits & MAGNITUDE).view(np.int32)
    return np.where(bits >= SIGN, -magnitude, magnitude)


@rule("QNT-1")
def widen(x: npt.ArrayLike, *, argument: str = "x", refused_by: str = "QNT-1") -> Bits:
    """Patterns of f32, f16 or bf16 input widened exactly to binary32; any strides and byte order, C order out. QNT-1.

    A Python number or list of numbers is taken as binary32 when every one of them is exactly a binary32 number.
    """
    try:
        array = np.asarray(x)
    except ValueError as error:  # a ragged list
        raise DtypeError(refused_by, f"{argument} is not an array: {error}") from None
    if not isinstance(x, np.ndarray | np.generic) and array.dtype in (np.float64, np.int64):
        array = take_literals(array, argument=argument, refused_by=refused_by)
    native = array.dtype.newbyteorder("=")
    if native == np.float32:
        return np.asarray(array, np.float32, order="C").view(np.uint32)
    if native == np.float16:
        return _widen_half(array.astype(np.float16, order="C").view(np.uint16))
    if native == ml_dtypes.bfloat16:
        return array.astype(ml_dtypes.bfloat16, order="C").view(np.uint16).astype(np.uint32) << np.uint32(16)
    raise DtypeError(
        refused_by,
        f"{argument} has dtype {array.dtype}; allowed: float32, float16, bfloat16 (convert it first: nothing is rounded silently)",
    )


def take_literals(array: npt.NDArray[Any], *, argument: str, refused_by: str) -> F32:
    """Python numbers have no width: take them (float64 or int64 here) as binary32 where that loses nothing. Rule QNT-1."""
    wide = array.astype(np.float64)
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    exact = (single == wide) | np.isnan(wide)
    if array.dtype == np.int64:
        exact &= np.abs(wide) < 2.0**53  # beyond, the way through binary64 may have rounded
    if not exact.all():
        lost = array[~exact].ravel()[0]
        raise DtypeError(refused_by, f"{argument} holds {lost!r}, which is not exactly a float32; pass a float32 array")
    return single


def _widen_half(half: npt.NDArray[np.uint16]) -> Bits:
    """binary16 patterns to binary32 patterns by integers: the sign of a NaN survives, subnormals are not flushed."""
    magnitude = half & np.uint16(0x7FFF)
    finite = scaled(*split_fields(magnitude, mantissa_bits=10, bias=15))
    special = np.where(magnitude > 0x7C00, QNAN, INF)
    sign = (half & np.uint16(0x8000)).astype(np.uint32) << np.uint32(16)
    return np.asarray(np.where(magnitude >= 0x7C00, special, finite) | sign)


def split_fields(code: npt.NDArray[Any], *, mantissa_bits: int, bias: int) -> tuple[Bits, npt.NDArray[np.int32]]:
    """A magnitude code of a float format as n * 2^k: the integer significand n and the exponent k of its unit."""
    wide = code.astype(np.uint32)
    exponent = (wide >> np.uint32(mantissa_bits)).astype(np.int32)
    fraction = wide & np.uint32((1 << mantissa_bits) - 1)
    implicit = np.where(exponent > 0, np.uint32(1 << mantissa_bits), np.uint32(0))
    return fraction | implicit, np.maximum(exponent, 1) - np.int32(bias + mantissa_bits)


def is_tie(magnitude: Bits, *, mantissa_bits: int, bias: int) -> npt.NDArray[np.bool_]:
    """True where a magnitude lies midway between two neighbouring codes of a float format (for tracing only)."""
    finer = round_significand(np.minimum(magnitude, INF), mantissa_bits=mantissa_bits + 1, bias=bias, up=False)
    n, k = split_fields(finer, mantissa_bits=mantissa_bits + 1, bias=bias)
    return np.asarray((scaled(n, k) == magnitude) & (n % 2 == 1))


def scaled(n: Bits, k: npt.NDArray[np.int32]) -> Bits:
    """The pattern of n * 2^k, exactly; n below 2^24, the product a binary32 number."""
    unscaled = n.astype(np.float32).view(np.uint32).astype(np.int64)  # an integer is never subnormal
    normal = unscaled + (k.astype(np.int64) << 23)
    subnormal = n.astype(np.int64) << np.clip(k + 149, 0, 31)
    return np.where(n == 0, 0, np.where(normal >= 0x800000, normal, subnormal)).astype(np.uint32)


def round_significand(magnitude: Bits, *, mantissa_bits: int, bias: int, up: bool) -> Bits:
    """Codes of finite magnitudes in a float format with subnormals whose exponent range has no upper end.

    Nearest, ties to even, or (up) the smallest representable number not below. The code is exponent field and mantissa
    field side by side, so a carry out of the mantissa lands in the exponent where it belongs.
    """
    if mantissa_bits == 23:
        return magnitude  # binary32 itself: nothing to drop
    exponent = np.maximum(magnitude >> np.uint32(23), np.uint32(1))
    significand = magnitude - ((exponent - np.uint32(1)) << np.uint32(23))  # with the implicit bit of a normal number
    above = exponent.view(np.int32) - np.int32(128 - bias)  # binades above the format's smallest normal number
    field = np.maximum(above, 0)
    dropped = np.minimum(field - above + np.int32(23 - mantissa_bits), 25).view(np.uint32)
    if up:
        significand += (np.uint32(1) << dropped) - np.uint32(1)
    else:
        odd = (significand >> dropped) & np.uint32(1)
        significand += odd
        significand += (np.uint32(1) << (dropped - np.uint32(1))) - np.uint32(1)
    rounded: Bits = (significand >> dropped) + (field.view(np.uint32) << np.uint32(mantissa_bits))
    return rounded


def round_exponent(magnitude: Bits, *, bias: int, up: bool) -> Bits:
    """Codes of finite magnitudes in a format of powers of two 2^(code - bias), no zero; nearest is by value. SCL-16.

    Between 2^k and 2^(k+1) the midpoint is 1.5 * 2^k; a tie goes to the even code. At most 2^-bias is code 0.
    """
    note("SCL-3")
    wide = magnitude.astype(np.int64)
    shift = np.where(wide > 0, 24 - _bit_length(wide), 0)  # subnormals: as many places left as make them normal
    fraction = (wide << np.maximum(shift, 0)) & 0x7FFFFF
    exponent = np.where(wide >= 0x800000, wide >> 23, 1 - shift) - 127 + bias
    even = exponent % 2 == 0
    grows = fraction > 0 if up else (fraction > 0x400000) | ((fraction == 0x400000) & ~even)
    return np.maximum(np.where(wide == 0, 0, exponent + grows), 0).astype(np.uint32)


def _bit_length(n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bits of positive integers, at most 24 (a normal binary32 needs no shift)."""
    small = np.minimum(n, 0x800000).astype(np.float32).view(np.uint32)
    return (small >> np.uint32(23)).astype(np.int64) - 126


def narrow(bits: Bits, *, mantissa_bits: int, bias: int, infinity: int, nan: int) -> Bits:
    """Codes of binary32 numbers in a narrower IEEE format: one rounding, ties to even, overflow to Inf. QNT-10, QNT-11.

    NaN gives the canonical, positive one; otherwise the sign is the caller's to put back.
    """
    magnitude = bits & MAGNITUDE
    code = round_significand(np.minimum(magnitude, INF), mantissa_bits=mantissa_bits, bias=bias, up=False)
    code = np.minimum(code, np.uint32(infinity))
    return np.where(magnitude > INF, np.uint32(nan), code)


def require_subnormals() -> None:
    """Some libraries switch a process to flush-to-zero when they load; every product below would then be wrong. CNF-6."""
    with np.errstate(all="ignore"):
        half_normal = np.array([0x00800000], np.uint32).view(np.float32) * np.float32(0.5)
        kept = half_normal.view(np.uint32)[0] == 0x00400000
        read = (np.array([0x00400000], np.uint32).view(np.float32) * np.float32(2)).view(np.uint32)[0] == 0x00800000
    if not (kept and read):
        raise HostError(
            "CNF-6",
            "this process flushes subnormal numbers to zero (FTZ or DAZ is set, often by a library built with -ffast-math); "
            "the reference needs IEEE 754 arithmetic: run it in a process without that library",
        )


def divide(x: F32, s: F32 | np.float32) -> F32:
    """x / s, one binary32 division, rounded to nearest even; specials as IEEE 754 (a NaN's sign is not to be used)."""
    require_subnormals()
    with np.errstate(all="ignore"):
        return np.asarray(np.divide(x, s, dtype=np.float32))


def multiply(s: F32, v: F32) -> F32:
    """s * v, one binary32 multiplication, rounded to nearest even; overflow gives Inf; every NaN is 7FC00000."""
    require_subnormals()
    with np.errstate(all="ignore"):
        return canonical(np.asarray(np.multiply(s, v, dtype=np.float32)))


def add(x: F32, y: F32) -> F32:
    """x + y, one binary32 addition, rounded to nearest even; overflow gives Inf; every NaN is 7FC00000."""
    require_subnormals()
    with np.errstate(all="ignore"):
        return canonical(np.asarray(np.add(x, y, dtype=np.float32)))


def subtract(x: F32, y: F32) -> F32:
    """x - y, one binary32 subtraction, rounded to nearest even; overflow gives Inf; every NaN is 7FC00000."""
    require_subnormals()
    with np.errstate(all="ignore"):
        return canonical(np.asarray(np.subtract(x, y, dtype=np.float32)))


def canonical(x: F32) -> F32:
    """The same numbers, every NaN as 7FC00000."""
    bits = to_bits(x)
    return to_float(np.where(is_nan(bits), QNAN, bits))
