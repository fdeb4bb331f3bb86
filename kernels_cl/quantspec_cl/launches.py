"""Launches: a tensor as rows, and how its elements are dealt out to work-items. Whole numbers only; no element is looked at."""

import math
from dataclasses import dataclass

from quantspec import Scheme

from .geometry import Shape, grid_walk

__all__ = ["GROUP", "Launch", "Walk", "rows", "tiles"]

GROUP = 8  #: elements of the smallest vector
LOCAL = 64  #: work-items of a work-group, at most
WIDE = (64, 32, 16, 8, 4, 2, 1)  #: of which along a row
NO_SHIFT = 64  #: what a kernel takes for "not a power of two"


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel, its work-items, and the numbers after the arrays."""

    kernel: str
    sizes: Shape
    local: Shape
    numbers: Shape


@dataclass(frozen=True, slots=True)
class Walk:
    """A tensor as rows of elements, and its blocks along and across them."""

    length: int  #: elements a row
    extent: int  #: of a block along the row, no longer than it
    rows: int  #: rows; of a batch, where the tensor is tiled
    deep: int  #: rows a block, where the tensor is tiled
    batch: int
    grid: Shape  #: of what is outside, as `grid_walk` gives it

    @classmethod
    def of(cls, scheme: Scheme, shape: Shape, *, tiled: bool, joined: bool) -> "Walk":
        """The rows of a tensor that has elements: where they are `joined`, as long as the blocks allow. Rules BLK-1 to BLK-4."""
        extents = shape if scheme.block is None else scheme.extents(len(shape))
        if joined and not tiled:
            flat = grid_walk(shape, extents)
            axes = flat[0]
            length, extent = (flat[4 * axes - 3], flat[4 * axes - 2]) if axes else (1, 1)
            return cls(length, extent, math.prod(shape) // length, 1, 1, (max(axes - 1, 0), *flat[1 : 4 * axes - 3]))
        inner = 2 if tiled else 1
        outer = grid_walk(shape[:-inner], extents[:-inner])
        length, batch = shape[-1], math.prod(shape[:-inner])
        extent = min(extents[-1], length)
        if tiled:
            return cls(length, extent, shape[-2], min(extents[-2], shape[-2]), batch, outer)
        return cls(length, extent, batch, 1, 1, outer)

    @property
    def fits(self) -> bool:
        """True where no group of elements has some in one block and some in another, or each is a block."""
        return self.holds(GROUP)

    def holds(self, lanes: int) -> bool:
        """The same of vectors of so many elements."""
        return self.extent % lanes == 0 or self.extent in (1, self.length)

    def whole(self, lanes: int) -> bool:
        """True where every row starts where a vector may, and ends so too, unless there is but one."""
        return self.length % lanes == 0 or self.rows == 1

    @property
    def each(self) -> bool:
        """True where every element of a row has a scale of its own."""
        return self.extent == 1 < self.length

    @property
    def groups(self) -> int:
        """Groups of elements a row, the last maybe not whole."""
        return -(-self.length // GROUP)

    @property
    def groups_a_block(self) -> int:
        """Groups of elements a block."""
        return self.groups if self.extent == self.length else max(self.extent // GROUP, 1)

    def numbers(self, stride: int) -> Shape:
        """What every kernel takes: length, stride of words, rows, blocks a row, groups a block and their shift."""
        shift = self.groups_a_block.bit_length() - 1 if self.groups_a_block.bit_count() == 1 else NO_SHIFT
        if self.extent == self.length:
            shift = NO_SHIFT - 1  # one block: no group is in another
        return (self.length, stride, self.rows, -(-self.length // self.extent), self.groups_a_block, shift)


def rows(walk: Walk, lanes: int, vectors: int, numbers: Shape) -> tuple[Launch, ...]:
    """Whole work-groups of work-items that take so many `vectors` of a row, then the ends of the rows."""
    found, taken, a_block = [], 0, max(walk.groups_a_block * GROUP // lanes, 1)
    items = walk.length // (lanes * vectors) if walk.whole(lanes) else 0
    if items:
        wide = next(wide for wide in WIDE if items % wide * 64 <= items)  # few elements are left to the ends
        taken = items // wide * wide
        sharing = vectors if walk.extent == walk.length else math.gcd(a_block, vectors)
        tall = math.gcd(walk.rows, LOCAL // wide)
        found.append(Launch("dequantize_rows", (taken, walk.rows), (wide, tall), (*numbers, sharing - 1)))
    start = taken * lanes * vectors
    if start < walk.length:
        sizes, local = _rounded(-(-(walk.length - start) // lanes), walk.rows)
        found.append(Launch("dequantize_ends", sizes, local, (*numbers, start)))
    return tuple(found)


def tiles(walk: Walk, across: int, fields: int, numbers: Shape, tall: int) -> tuple[Launch, ...]:
    """Work-items that take `across` columns, `fields` rows deep; `tall` of a work-group lie below one another."""
    sizes, local = _rounded(-(-walk.length // across), -(-walk.rows // fields), LOCAL // tall)
    high = -(-walk.rows // walk.deep)
    return (Launch("dequantize_tiles", (*sizes, walk.batch), (*local, 1), (*numbers, walk.deep, high)),)


def _rounded(across: int, down: int, most: int = LOCAL) -> tuple[Shape, Shape]:
    """Work-items and a work-group, at most so wide, for a kernel in which those outside do nothing."""
    wide = min(1 << (across - 1).bit_length(), most)
    tall = min(1 << (down - 1).bit_length(), LOCAL // wide)
    return (-(-across // wide) * wide, -(-down // tall) * tall), (wide, tall)
