"""The fused multiply-add of binary32, exactly, through binary64 with rounding to odd. Rule PRD-1."""

import numpy as np
import numpy.typing as npt

from .rounding import F32, canonical, require_subnormals
from .tracing import rule

__all__ = ["fma", "lost_in_sum", "round_to_odd"]

F64 = npt.NDArray[np.float64]


@rule("PRD-1")
def fma(x: F32, y: F32, z: F32) -> F32:
    """x * y + z with one rounding, to nearest even; subnormals kept, overflow gives Inf; every NaN is 7FC00000. PRD-1.

    The product of two binary32 numbers is a binary64 number. Its sum with z is rounded to odd in binary64: what that sum
    lost survives in its last bit, so the rounding to binary32 is the only one that counts.
    """
    require_subnormals()
    with np.errstate(all="ignore"):
        product = np.asarray(x.astype(np.float64) * y)  # exact: 48 bits
        total = np.asarray(product + z)
        return canonical(round_to_odd(total, lost_in_sum(product, z, total)).astype(np.float32))


def lost_in_sum(x: F64, y: npt.NDArray[np.floating], total: F64) -> F64:
    """x + y - total, exactly, where total is x + y rounded to nearest in binary64 (Knuth's TwoSum); NaN beside Inf."""
    back = total - x
    return (x - (total - back)) + (y - back)


def round_to_odd(total: F64, lost: F64) -> F64:
    """total + lost rounded to odd: of the two binary64 numbers around an inexact sum, the one with an odd last bit.

    `total` is the sum rounded to nearest and `lost` what that left out; what is no number counts as nothing lost.
    """
    bits = total.view(np.uint64)
    even = (bits & np.uint64(1)) == 0
    outward = (lost > 0) == (total > 0)
    moved = np.where(outward, bits + np.uint64(1), bits - np.uint64(1))
    return np.where(even & (np.abs(lost) > 0), moved, bits).view(np.float64)
