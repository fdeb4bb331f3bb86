"""quantize about thresholds: amax where the scale rule steps, elements where the code does."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from quantspec import SCALES, ScaleType, Scheme, ValueFormat

from ...examples import Tensor
from .common import Ask, bits32, f32, rng_of
from .scales import code_bits, spread_codes
from .schemes import ask
from .values import Bits, both_signs, midpoints

__all__ = ["class_pairs", "positions", "quotients", "scale_steps"]


def _edges(row: ValueFormat, codes: Any, scale: ScaleType, g: float = 1.0) -> Bits:
    """amax at H times the number of each scale code (times g), and two patterns to each side; a smaller element beside each."""
    half = np.float32(float(row.half_range))
    with np.errstate(all="ignore"):
        edge = (code_bits(codes, scale).view(np.float32) * half * np.float32(g)).view(np.uint32)
    keys = np.clip(edge.astype(np.int64)[:, None] + np.arange(-2, 3), 0, 0x7F7FFFFF).astype(np.uint32)
    lesser = np.where(keys > 0x00800000, keys - np.uint32(0x00800000), keys >> np.uint32(1)) | np.uint32(0x80000000)
    return np.stack([keys, lesser], -1).reshape(len(edge), -1)


def scale_steps(row: ValueFormat) -> Iterator[Ask]:
    """Blocks of two about every threshold of the scale rule: all codes of 8-bit types, a spread of the others."""
    for scale in SCALES.values():
        codes = spread_codes(scale, 256)
        if scale.size > 1:
            codes = codes[:: max(1, len(codes) // 64)]
        scheme = Scheme(row, "native", block=(2, scale))
        x = _edges(row, codes, scale)
        yield ask(
            scheme,
            "edges",
            "amax about H times each scale",
            {"x": f32(x, x.shape)},
            "scale-rounding",
            "scale-underflow",
            "scale-overflow",
        )
        if scale.size == 1:
            both = Scheme(row, "native", block=(2, scale), tensor="f32")
            x = _edges(row, codes, scale, 0.3)
            given = {"x": f32(x, x.shape), "tensor_scale": f32(bits32(0.3), ())}
            yield ask(
                both, "edges", "amax about H times each block scale times g", given, "scale-rounding", "decode-order"
            )


def quotients(row: ValueFormat) -> Iterator[Ask]:
    """Elements about s times each middle of two codes, for scales that no reciprocal serves."""
    scheme = Scheme(row, "native", tensor="f32")
    for pattern in (0x40400000, 0x3DCCCCCD, 0x3FAAAAAB, 0x00000007):
        s = np.array(pattern, np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            x = (midpoints(row).view(np.float32) * s).view(np.uint32)
        near = ((x & np.uint32(0x7FFFFFFF)).astype(np.int64)[:, None] + np.arange(-2, 3)).reshape(-1)
        signs = np.repeat(x & np.uint32(0x80000000), 5)
        found = np.clip(near, 0, 0x7F800000).astype(np.uint32) | signs
        given = {"x": f32(found), "tensor_scale": f32([pattern], ())}
        yield ask(
            scheme,
            f"s-{pattern:08x}",
            f"about s times each middle, s = {pattern:08X}",
            given,
            "tie",
            "reciprocal",
            "double-rounding",
            "ftz",
        )


#: A number of each class: zero, subnormal, ordinary, largest, infinity, NaN.
CLASSES = (0x00000000, 0x00012345, 0x3FC00000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001)


def class_pairs(row: ValueFormat) -> Iterator[Ask]:
    """Every two classes of number, each with both signs, beside one another and at the two ends of a block."""
    members = both_signs(CLASSES)
    pairs = np.array([(a, b) for a in members for b in members], np.uint32)
    x = np.full((len(pairs), 2, 4), 0x3F000000, np.uint32)
    x[:, 0, :2], x[:, 1, 3], x[:, 1, 0] = pairs, pairs[:, 0], pairs[:, 1]
    for levels in ("b4-ue8m0", "b4-f16"):
        scheme = Scheme.parse(f"{row.name}.native.{levels}")
        given = {"x": f32(x, (2 * len(pairs), 4))}
        yield ask(scheme, "pairs", "every two classes in one block", given, "nan-code", "sat-vs-inf", "zero-block")


def positions(row: ValueFormat) -> Iterator[Ask]:
    """The largest element at every place of whole and partial blocks, of either sign."""
    x = (2 * rng_of(f"positions.{row.name}").random((37, 37)) - 1).astype(np.float32)  # exact, then rounded once
    x[np.arange(37), np.arange(37)] = 50 * np.where(np.arange(37) % 2 == 0, 1, -1)
    for levels in ("b16-ue8m0", "b5x3-f16"):
        scheme = Scheme.parse(f"{row.name}.native.{levels}")
        yield ask(
            scheme, "every-place", "the largest element at every place", {"x": Tensor.of(x)}, "partial-block", "axis"
        )
