"""Numbers for fused uses: tensors that hold any binary32 number, special numbers, and numbers about the ties of f16 and bf16."""

import numpy as np
import numpy.typing as npt

from quantspec import Scheme

from ...examples import Tensor
from ...implementations.law import tell
from ...protocol.messages import Ok, Request
from .common import data_for, rng_of, scheme_request, typed
from .values import NANS, both_signs, specials

__all__ = [
    "CARRIER", "CLASSES", "about_ties", "any_numbers", "carried", "close_to", "negated", "quantized", "random_bits", "wide",
]  # fmt: skip

Bits = npt.NDArray[np.uint32]
#: A scheme under which every element has a scale of its own: with codes of 1 the elements are any binary32 numbers.
CARRIER = "q8s.native.b1-f32"
#: Zeros, subnormals, ordinary numbers, infinities and a NaN.
CLASSES = both_signs([0x00000000, 0x00012345, 0x3FC00000, 0x7F7FFFFF, 0x7F800000, 0x7FA00001])
SIGN = np.uint32(0x80000000)


def carried(patterns: npt.ArrayLike, shape: tuple[int, ...] | None = None) -> dict[str, Tensor]:
    """The tensors, under CARRIER, that hold these numbers."""
    scales = typed("u32", patterns, shape)
    return {"codes": typed("u8", np.ones(scales.shape, np.uint8)), "scale_codes": scales}


def any_numbers() -> Bits:
    """Special numbers and ordinary ones of both signs: every two of them meet in the cases of pairs."""
    return np.concatenate([specials()[: -len(NANS) + 3], both_signs([0x3FC00000, 0x33800000, 0x4B000001, 0x007FFFFE])])


def random_bits(key: str, count: int, low: int = 100, high: int = 154) -> Bits:
    """Random numbers of either sign whose exponent fields lie from low up to, not including, high."""
    rng = rng_of(key)
    parts = [
        rng.integers(0, 2, (count,)) << 31,
        rng.integers(low, high, (count,)) << 23,
        rng.integers(0, 1 << 23, (count,)),
    ]
    return np.asarray(parts[0] | parts[1] | parts[2]).astype(np.uint32)


def close_to(key: str, numbers: Bits, apart: int = 26) -> Bits:
    """For each number one of either sign whose exponent lies at most so far away: their sum loses some bits."""
    rng = rng_of(key)
    exponents = (numbers >> np.uint32(23) & np.uint32(0xFF)).astype(np.int64)
    moved = np.clip(exponents + rng.integers(-apart, apart + 1, numbers.shape), 0, 254)
    signs, mantissas = rng.integers(0, 2, numbers.shape), rng.integers(0, 1 << 23, numbers.shape)
    return np.asarray((signs << 31) | (moved << 23) | mantissas).astype(np.uint32)


def wide(key: str, shape: tuple[int, ...]) -> Bits:
    """Numbers whose sums depend on their order: exponents spread over 2^16, in a given shape."""
    count = int(np.prod(shape))
    return random_bits(key, count, 119, 136).reshape(shape)


def negated(patterns: npt.ArrayLike) -> Bits:
    """The numbers with the other sign; NaN stays as it is."""
    bits = np.asarray(patterns, np.uint32)
    return np.where((bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000), bits, bits ^ SIGN)


def about_ties(dtype: str) -> Bits:
    """Binary32 numbers at and beside the ties between neighbours of a 16-bit type, over all of its exponents; both signs."""
    if dtype == "bf16":
        codes = np.unique(
            np.concatenate([np.arange(0, 0x7F80, 509), np.array([0, 1, 2, 0x7F, 0x80, 0x3F80, 0x7F7E, 0x7F7F])])
        )
        middle = (codes.astype(np.uint32) << np.uint32(16)) | np.uint32(0x8000)
    else:
        codes = np.unique(
            np.concatenate([np.arange(0, 0x7C00, 491), np.array([0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x7BFE, 0x7BFF])])
        )
        low = codes.astype(np.uint16).view(np.float16).astype(np.float32)
        next_code = np.minimum(codes + 1, 0x7BFF).astype(np.uint16).view(np.float16).astype(np.float32)
        high = np.where(codes == 0x7BFF, np.float32(65536), next_code)
        middle = np.asarray((low + high) / np.float32(2), np.float32).view(np.uint32)
    near = (middle.astype(np.int64)[:, None] + np.arange(-1, 2)).reshape(-1).astype(np.uint32)
    return both_signs(np.concatenate([near, np.array([0x7F7FFFFF, 0x7F800000, 0x7FC00001, 0x00000001], np.uint32)]))


def quantized(key: str, scheme: Scheme, shape: tuple[int, ...], family: str = "normal") -> dict[str, Tensor]:
    """Codes and scale codes that the law gives to drawn data: scales of an ordinary size."""
    words, table = scheme_request(scheme)
    answer = tell(Request("quantize", words, {"x": data_for(key, family, shape, scheme), **table})).answer
    if not isinstance(answer, Ok):
        raise AssertionError(f"{key}: {answer}")
    return dict(answer.tensors)
