"""Pieces: a tensor too large for one array, cut into boxes of whole blocks and whole words. Whole numbers only."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from quantspec import Scheme, UnsupportedError

from .geometry import Shape, lines_of, stored_order

__all__ = ["Piece", "cut_up"]

Slices = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a tensor, from an index along each axis to another."""

    starts: Shape
    stops: Shape
    scheme: Scheme
    fields: int  #: codes a word

    @property
    def elements(self) -> Slices:
        """The box itself."""
        return tuple(map(slice, self.starts, self.stops))

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def shape(self) -> Shape:
        """Elements along each axis."""
        return tuple(stop - start for start, stop in zip(self.starts, self.stops, strict=True))

    @property
    def first_block(self) -> Shape:
        """The grid index of its first block."""
        extents = self.scheme.extents(len(self.starts))
        return tuple(start // extent for start, extent in zip(self.starts, extents, strict=True))

    @property
    def blocks(self) -> Slices:
        """Its part of the scale grid."""
        extents = self.scheme.extents(len(self.starts))
        ends = (-(-stop // extent) for stop, extent in zip(self.stops, extents, strict=True))
        return tuple(map(slice, self.first_block, ends))

    @property
    def words(self) -> Slices:
        """Its part of the words, in stored order."""
        order = stored_order(self.scheme, len(self.starts))
        if not order:
            return (slice(None),)
        found = [slice(self.starts[axis], self.stops[axis]) for axis in order]
        last = found[-1]
        found[-1] = slice(last.start // self.fields, -(-last.stop // self.fields))
        return tuple(found)


def cut_up(scheme: Scheme, shape: Shape, most: int, *, words: bool) -> Iterator[Piece]:
    """Boxes of at most `most` elements, outer axes cut first; no block, and no word where `words`, is in two of them.

    Raises UnsupportedError where a block, or its words, have more elements. Rule CNF-5.
    """
    fields = lines_of(scheme, shape).fields
    sizes = _sizes(shape, _units(scheme, shape, fields if words else 1), most)
    for starts in product(*(range(0, max(size, 1), step) for size, step in zip(shape, sizes, strict=True))):
        stops = (min(start + step, size) for start, step, size in zip(starts, sizes, shape, strict=True))
        yield Piece(starts, tuple(stops), scheme, fields)


def _units(scheme: Scheme, shape: Shape, fields: int) -> Shape:
    """What a cut along each axis is a multiple of."""
    rank = len(shape)
    extents = scheme.extents(rank) if scheme.block is not None else (1,) * rank
    units = [min(extent, max(size, 1)) for extent, size in zip(extents, shape, strict=True)]
    if units:
        packed = stored_order(scheme, rank)[-1]
        units[packed] = math.lcm(units[packed], fields) if units[packed] < shape[packed] else units[packed]
    return tuple(units)


def _sizes(shape: Shape, units: Sequence[int], most: int) -> Shape:
    sizes = [max(size, 1) for size in shape]
    for axis, unit in enumerate(units):
        if math.prod(sizes) > most and 0 not in shape:
            fit = most // (math.prod(sizes) // sizes[axis])
            sizes[axis] = min(max(fit // unit, 1) * unit, sizes[axis])
    if math.prod(sizes) > most and 0 not in shape:
        raise UnsupportedError(
            "CNF-5",
            f"a block of the tensor {tuple(shape)}, or its words, hold {math.prod(sizes)} elements; allowed in one piece: {most}",
        )
    return tuple(sizes)
