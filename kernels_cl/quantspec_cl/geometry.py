"""Geometry: shapes, extents and strides as the kernels walk them. Whole numbers only; no element is looked at.

Everything is worked out here from the rules' words, not taken from the reference: the two must agree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quantspec import Scheme

__all__ = [
    "WHOLE",
    "Lines",
    "Regions",
    "blocks_along",
    "grid_walk",
    "lines_of",
    "regions_of",
    "stored_order",
    "strides_of",
    "walk_of",
]

Shape = tuple[int, ...]

#: A grid of one block that holds the whole tensor, for kernels that only ask which block an element is in.
WHOLE: Shape = (0,)


def strides_of(shape: Shape) -> Shape:
    """Elements from one index to the next along each axis, row-major."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(shape)])


def blocks_along(shape: Shape, scheme: Scheme) -> Shape:
    """Blocks along each axis; the scheme has a block level. Rules BLK-1, BLK-2."""
    return tuple(-(-size // extent) for size, extent in zip(shape, scheme.extents(len(shape)), strict=True))


def grid_walk(shape: Shape, extents: Sequence[int]) -> Shape:
    """[axes, (size, extent, blocks, stride) each], axes joined where the blocks allow it. Rules BLK-1 to BLK-4.

    Two neighbours join if the inner one lies in one block, or if the outer extent is 1 and the inner axis is whole blocks;
    at most six axes are left, since extents before the block's own are 1.
    """
    joined: list[tuple[int, int]] = []
    for size, extent in zip(reversed(shape), reversed(extents), strict=True):
        clipped = max(min(extent, size), 1)
        if size == 1:
            continue
        if joined:
            inner, inner_extent = joined[0]
            if inner_extent == inner:
                joined[0] = (size * inner, clipped * inner)
                continue
            if clipped == 1 and inner % inner_extent == 0:
                joined[0] = (size * inner, inner_extent)
                continue
        joined.insert(0, (size, clipped))
    strides = strides_of(tuple(size for size, _ in joined))
    flat = [len(joined)]
    for (size, extent), stride in zip(joined, strides, strict=True):
        flat += [size, extent, -(-size // extent), stride]
    return tuple(flat)


def walk_of(sizes: Sequence[int], strides: Sequence[int]) -> Shape:
    """[axes, (size, stride) each] for the kernels' `walk`, axes joined where one continues the other."""
    joined: list[tuple[int, int]] = []
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if joined and stride == joined[0][0] * joined[0][1]:
            joined[0] = (size * joined[0][0], joined[0][1])
        else:
            joined.insert(0, (size, stride))
    return (len(joined), *(number % 2**64 for pair in joined for number in pair))


def stored_order(scheme: Scheme, rank: int) -> Shape:
    """The tensor's axes as they are stored: the packed one and the innermost exchanged. Rules PAK-2, LAY-3."""
    order = list(range(rank))
    if rank > 0:
        packed = rank - 1 - scheme.store.d
        order[packed], order[rank - 1] = rank - 1, packed
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a tensor under a store. Rules PAK-1 to PAK-4, PAK-6."""

    word_bytes: int  #: of a word in the byte stream
    word_size: int  #: of a word in memory
    width: int  #: bits of a field
    fields: int  #: codes a word
    count: int  #: lines
    length: int  #: codes a line
    step: int  #: from one code of a line to the next, in tensor order
    words: int  #: words a line
    walk: Shape  #: from a line to its first code
    words_shape: Shape

    @property
    def padding(self) -> int:
        """Padding fields a line."""
        return self.words * self.fields - self.length


def lines_of(scheme: Scheme, shape: Shape) -> Lines:
    """How the codes of a tensor lie in lines of words. Rules PAK-1 to PAK-4, PAK-6."""
    bits, store = scheme.value.bits, scheme.store
    order, strides = stored_order(scheme, len(shape)), strides_of(shape)
    length, step = (shape[order[-1]], strides[order[-1]]) if order else (1, 1)
    outer = [shape[axis] for axis in order[:-1]]
    fields = store.codes_per_word(bits)
    words = -(-length // fields)
    return Lines(
        word_bytes=store.word_bytes(bits),
        word_size=store.word_dtype(bits).itemsize,
        width=store.field_bits(bits),
        fields=fields,
        count=math.prod(outer),
        length=length,
        step=step,
        words=words,
        walk=walk_of(outer, [strides[axis] for axis in order[:-1]]),
        words_shape=(*outer, words),
    )


@dataclass(frozen=True, slots=True)
class Regions:
    """Where the parts of a byte stream start. Rule LAY-1."""

    blocks: int
    tensor: int
    total: int


def regions_of(scheme: Scheme, shape: Shape) -> Regions:
    """Starts of block scales and tensor scale, and the length of a tensor's bytes. Rules LAY-1, LAY-4."""
    lines = lines_of(scheme, shape)
    blocks = lines.count * lines.words * lines.word_bytes
    tensor = (
        blocks if scheme.block is None else blocks + math.prod(blocks_along(shape, scheme)) * scheme.block.scale.size
    )
    return Regions(blocks, tensor, tensor if scheme.tensor is None else tensor + scheme.tensor.size)
