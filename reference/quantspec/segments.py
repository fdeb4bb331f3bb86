"""Segments: the stretches of the summed axis on which every block scale is constant, and their exact sums. PRD-12 to PRD-15."""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from . import blocks
from .errors import UnsupportedError
from .fma import lost_in_sum, round_to_odd
from .rounding import F32, canonical
from .scales import decode_codes as decode_scale_codes
from .tensor import Quantized
from .tracing import note, rule
from .values import Codes, ValueFormat, decode_codes

__all__ = ["Side", "cuts", "segment_sum"]

PART = 2**6  # elements of a segment that are summed at a time, so that what is held does not grow with it
LONGEST = 2**31  # elements of the summed axis; up to here the sums below stay within their integers
LIMB, LOWER = np.int64(16), np.int64(2**16 - 1)  # bits of the lower limb of an integer image, and its mask
CARRY, BELOW = np.int64(32), np.int64(2**32 - 1)  # bits of the lower part of a sum, and its mask
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class Side:
    """One factor of a product as a matrix [rows, K]: codes, and the scale of each block along K."""

    codes: Codes  #: [rows, K]
    value: ValueFormat
    extent: int  #: block extent along K; all of K without a block level
    scales: F32  #: [rows, blocks along K]; 1 without a block level

    @classmethod
    @rule("PRD-15")
    def of(cls, tensor: Quantized) -> "Side":
        """A tensor [..., K] with its leading axes as rows. Rules PRD-12, PRD-15."""
        *lead, size = tensor.shape
        rows, scheme = math.prod(lead), tensor.scheme
        codes = tensor.codes.reshape(rows, size)
        if scheme.block is None or tensor.scale_codes is None:
            return cls(codes, scheme.value, max(size, 1), np.ones((rows, 1), np.float32))
        *outer, extent = scheme.extents(len(tensor.shape))
        stored = decode_scale_codes(tensor.scale_codes, scheme.block.scale)
        along = stored.shape[-1]
        scales = blocks.spread(stored, (*lead, along), (*outer, 1)).reshape(rows, along)
        return cls(codes, scheme.value, extent, scales)

    @property
    def unit(self) -> int:
        """u: every finite number of the value format is a whole number of 2^-u."""
        return 0 if self.value.is_integer else self.value.bias + self.value.mantissa_bits - 1

    def numbers(self, rows: slice, part: slice) -> F64:
        """The numbers of codes, exactly, in binary64."""
        return decode_codes(self.codes[rows, part], self.value).astype(np.float64)

    def scale(self, rows: slice, start: int) -> F32:
        """The block scale of each row at index `start` of K."""
        return self.scales[rows, start // self.extent]


@rule("PRD-12")
def cuts(size: int, *extents: int) -> list[tuple[int, int]]:
    """Start and stop of each segment: [0, size) cut at the multiples of every extent. Rule PRD-12."""
    if size > LONGEST:
        raise UnsupportedError("CNF-5", f"x.shape[-1]={size}; this implementation sums at most {LONGEST} elements")
    starts = sorted({start for extent in extents for start in range(0, size, extent)})
    return list(zip(starts, [*starts[1:], size], strict=False))


@rule("PRD-13")
def segment_sum(x: Side, w: Side, rows: slice, columns: slice, segment: tuple[int, int]) -> F32:
    """D: the sum of the products of numbers over a segment, exact, then rounded once. Rules PRD-13, PRD-14.

    Shape [rows, columns]. Integer images (the numbers over their units) are cut into two limbs, whose products are summed
    in 64-bit integers: `high` * 2^32 + `low` in units of 2^-(u_x + u_w).
    """
    high: I64 = np.zeros((), np.int64)
    low: I64 = np.zeros((), np.int64)
    ieee: F64 = np.zeros((), np.float64)
    for start in range(segment[0], segment[1], PART):
        part = slice(start, min(start + PART, segment[1]))
        a, b = x.numbers(rows, part), w.numbers(columns, part)
        with np.errstate(invalid="ignore"):  # infinities of both signs, parts apart: NaN
            ieee = ieee + _products(a, b)
        (a_high, a_low), (b_high, b_low) = _limbs(a, x.unit), _limbs(b, w.unit)
        middle = _products(a_high, b_low) + _products(a_low, b_high)
        low = low + _products(a_low, b_low) + ((middle & LOWER) << LIMB)
        high = high + _products(a_high, b_high) + (middle >> LIMB) + (low >> CARRY)
        low = low & BELOW
    special = ~np.isfinite(ieee)  # in no order can finite numbers of value formats overflow binary64
    note("PRD-14", special)
    return canonical(np.where(special, ieee.astype(np.float32), _rounded(high, low, x.unit + w.unit)))


def _products(a: npt.NDArray[Number], b: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Sums of products over the last axis, every product taken (no BLAS, which may skip a product with 0)."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.einsum("mk,nk->mn", a, b))


def _limbs(numbers: F64, unit: int) -> tuple[I64, I64]:
    """The integer images of numbers as upper and lower limb, the lower one not negative; 0 for NaN and infinities."""
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    image = np.ldexp(finite, unit).astype(np.int64)
    return image >> LIMB, image & LOWER


def _rounded(high: I64, low: I64, unit: int) -> F32:
    """(high * 2^32 + low) * 2^-unit rounded once to binary32; a sum of zero is +0.

    A sum beyond 63 bits is first rounded to odd: its last bit tells whether anything lay below it.
    """
    wide = np.abs(high) >= 1 << 31
    number = np.where(wide, high | (low != 0), (np.where(wide, 0, high) << CARRY) + low)
    upper = np.ldexp((number >> CARRY).astype(np.float64), 32)
    lower = (number & BELOW).astype(np.float64)
    total = upper + lower
    odd = round_to_odd(total, lost_in_sum(upper, lower, total))
    rounded: F32 = np.ldexp(odd, np.where(wide, 32, 0) - unit).astype(np.float32)
    return rounded
