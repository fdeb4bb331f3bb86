"""Kinds of amax: the number that a recipe looks at to choose the scale of a block or a tensor. Rule POL-8."""

import numpy as np

from . import blocks
from .rounding import F32, INF, MAGNITUDE, QNAN, SIGN, Bits, add, divide, to_bits, to_float
from .tracing import rule

__all__ = ["AMAX", "amax_of"]

RUN = 32
#: Kinds of amax: which elements count, and what is made of them.
AMAX = ("finite", "all", "ignore-nan", "signed", "absmean")


@rule("POL-8")
def amax_of(bits: Bits, extents: tuple[int, ...], kind: str) -> F32:
    """amax of each block, on the grid's shape; blocks as wide as the tensor give the tensor's. Rules POL-8, BLK-4.

    A block without elements that count has amax 0.
    """
    if kind == "finite":
        return to_float(blocks.amax(bits, extents))
    lines = _lines(bits, extents)
    magnitude = lines & MAGNITUDE
    exists = lines != _ABSENT
    counted = exists & ((magnitude < INF) if kind == "absmean" else (magnitude <= INF))
    if kind == "absmean":
        return _mean(np.where(counted, magnitude, np.uint32(0)), counted)
    largest = np.max(np.where(counted, magnitude, np.uint32(0)), axis=-1, initial=np.uint32(0))
    if kind == "signed":
        first = np.argmax((magnitude == largest[..., np.newaxis]) & counted, axis=-1) if lines.shape[-1] else None
        negative = None if first is None else np.take_along_axis(lines, first[..., np.newaxis], -1)[..., 0] & SIGN
        return to_float(largest if negative is None else largest | np.where(largest > 0, negative, np.uint32(0)))
    if kind == "all":
        largest = np.where(((magnitude > INF) & exists).any(axis=-1), QNAN, largest)
    return to_float(largest)


#: A pattern that no element has once NaN patterns are made canonical: a place of a block beyond the tensor.
_ABSENT = np.uint32(0xFFFFFFFF)


def _lines(bits: Bits, extents: tuple[int, ...]) -> Bits:
    """Grid shape and, last, the elements of each block in row-major order; NaN patterns canonical but for their sign."""
    grid = blocks.grid_shape(bits.shape, extents)
    sizes = [min(extent, max(size, 1)) for size, extent in zip(bits.shape, extents, strict=True)]
    clean = np.where((bits & MAGNITUDE) > INF, QNAN | (bits & SIGN), bits)
    padding = [(0, count * size - length) for count, size, length in zip(grid, sizes, bits.shape, strict=True)]
    whole = np.pad(clean, padding, constant_values=_ABSENT) if padding else clean
    parts = [part for pair in zip(grid, sizes, strict=True) for part in pair]
    rank = len(grid)
    order = [2 * axis for axis in range(rank)] + [2 * axis + 1 for axis in range(rank)]
    within = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
    return whole.reshape(parts).transpose(order).reshape(*grid, within)


def _mean(magnitude: Bits, counted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> F32:
    """The sum of magnitudes by runs of 32 from +0, the runs added from +0, divided by their count. Rule POL-8."""
    x = to_float(magnitude)
    total = np.zeros(x.shape[:-1], np.float32)
    for start in range(0, x.shape[-1], RUN):
        part = np.zeros(x.shape[:-1], np.float32)
        for index in range(start, min(start + RUN, x.shape[-1])):
            part = add(part, x[..., index])
        total = add(total, part)
    count = counted.sum(axis=-1, dtype=np.int64)
    mean = divide(total, np.maximum(count, 1).astype(np.float32))
    return to_float(np.where(count > 0, to_bits(mean), np.uint32(0)))
