"""Numbers that decide a format's bits: its numbers, the midpoints between them, the steps of its scales, as binary32."""

from functools import cache

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import SCALES, VALUES, ScaleType, Scheme
from quantspec.values import extend

__all__ = [
    "HUGE", "LARGEST", "SPECIALS", "SUBNORMALS", "finest", "legal_codes", "midpoints", "numbers", "positive_scale_codes",
    "scale_edges", "scheme_of", "special_patterns", "stepped", "value_edges",
]  # fmt: skip

F32 = npt.NDArray[np.float32]
LARGEST = 0x7F7FFFFF
#: The largest numbers, where products and scales overflow.
HUGE = (LARGEST, 0x80000000 | LARGEST, LARGEST - 1, 0x7F000000, 0xFF000000, 0x7EFFFFFF, 0x7F400000)
#: Infinities and NaNs of both signs, quiet and signalling, with payloads.
SPECIALS = (
    0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFABCDEF,
)  # fmt: skip
SUBNORMALS = (1, 2, 3, 0x400000, 0x7FFFFF, 0x800000, 0x80000001, 0x807FFFFF)
#: dtype -> bits of a pattern, of its mantissa.
_FLOATS = {"f32": (32, 23), "f16": (16, 10), "bf16": (16, 7), "f64": (64, 52)}


def special_patterns(dtype: str) -> tuple[int, ...]:
    """The patterns of a float dtype where classes begin and end, of both signs; 0 first."""
    bits, mantissa = _FLOATS[dtype]
    sign, infinity = 1 << (bits - 1), (1 << (bits - 1)) - (1 << mantissa)
    one = ((1 << (bits - mantissa - 2)) - 1) << mantissa
    magnitudes = (
        0, one, 1, 2, (1 << mantissa) - 1, 1 << mantissa, one + 1, one - 1, infinity - 1, infinity, infinity | 1 << (mantissa - 1),
        infinity + 1, sign - 1,
    )  # fmt: skip
    return (*magnitudes, *(sign | magnitude for magnitude in magnitudes))


@cache
def legal_codes(scheme: Scheme) -> tuple[int, ...]:
    """Every code byte of a scheme's elements: 0 first, then by magnitude."""
    codes = extend(np.arange(1 << scheme.value.bits, dtype=np.uint8), scheme.value, lookup=scheme.is_lookup)
    return tuple(sorted(codes.tolist(), key=lambda code: (code & (scheme.value.sign_bit - 1), code)))


@cache
def value_edges(scheme: Scheme) -> tuple[int, ...]:
    """Codes where something begins or ends: zeros, the smallest and largest of both signs, infinities, NaNs."""
    row = scheme.value
    if row.is_integer:
        fields = [0, 1, row.mask, row.highest & row.mask, row.lowest & row.mask, row.sign_bit]
    else:
        ends = [0, 1, (1 << row.mantissa_bits) - 1, 1 << row.mantissa_bits, row.largest_code]
        ends += [code for code in (row.infinity_code, row.first_nan_code, row.nan_code) if code is not None]
        fields = [*ends, *(row.sign_bit | code for code in ends)]
    found = extend(np.array(fields, np.uint8), row, lookup=scheme.is_lookup)
    return tuple(dict.fromkeys(found.tolist()))


@cache
def numbers(scheme: Scheme) -> F32:
    """The distinct finite numbers that codes stand for, ascending."""
    decoded = quantspec.decode(np.array(legal_codes(scheme), np.uint8), scheme.value, table=scheme.table)
    return np.unique(decoded[np.isfinite(decoded)])


@cache
def midpoints(scheme: Scheme) -> F32:
    """Halfway between neighbouring numbers: where rounding decides."""
    grid = numbers(scheme).astype(np.float64)
    middle = ((grid[1:] + grid[:-1]) / 2).astype(np.float32)
    return middle[np.isfinite(middle)]


def finest(scheme: Scheme) -> ScaleType:
    """The scale type that the block, or else the tensor, stores."""
    row = scheme.tensor if scheme.block is None else scheme.block.scale
    return SCALES["f32"] if row is None else row


@cache
def scale_edges(name: str) -> tuple[int, ...]:
    """Legal scale codes where something begins or ends; that of 1 first."""
    row = SCALES[name]
    one = row.bias << row.mantissa_bits
    found = [one, one + 1, one - 1, 0, 1, row.largest_code, row.largest_code - 1]
    found += [(1 << row.mantissa_bits) - 1, 1 << row.mantissa_bits] if row.mantissa_bits else []
    found += [row.first_nan_code, row.nan_code]
    found += [] if row.infinity_code is None else [row.infinity_code]
    found += [row.sign_bit | code for code in found] if row.signed else []
    return tuple(dict.fromkeys(found))


@cache
def positive_scale_codes(name: str) -> tuple[int, int]:
    """The smallest and the largest code of a positive finite scale."""
    row = SCALES[name]
    return (1 if row.has_zero else 0), row.largest_code


def stepped(patterns: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    """Patterns moved by steps of one, those of finite numbers kept finite and of their sign."""
    magnitude = patterns & np.uint32(0x7FFFFFFF)
    moved = np.clip(magnitude.astype(np.int64) + by, 0, LARGEST).astype(np.uint32)
    return np.where(magnitude > LARGEST, patterns, moved | (patterns & np.uint32(0x80000000)))


def scheme_of(fmt: Scheme | str) -> Scheme:
    """A scheme, the scheme of a text, or a value format alone, which has one f32 scale."""
    if isinstance(fmt, str) and fmt in VALUES:
        return Scheme(fmt)
    return Scheme.of(fmt)
