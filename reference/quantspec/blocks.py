"""Blocks on a tensor: extents, the scale grid, and the way between elements and blocks. Rules BLK-1 to BLK-5."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import SchemeError, ShapeError, UnsupportedError
from .rounding import INF, MAGNITUDE, Bits
from .scales import ScaleType, scale_type
from .tracing import note, rule

__all__ = ["Block", "amax", "check_shape", "grid_shape", "normal_block", "spread", "tiles"]

LARGEST_COUNT = 2**63 - 1
MOST_AXES = 60  # numpy has 64; a few are needed to view blocks and fields
LARGEST_EXTENT = 2**31 - 1
MOST_EXTENTS = 5
TILE = 2**16  # elements, about: a tile holds at least one block
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Block:
    """Block extents, right-aligned to the trailing axes, leading 1s dropped, and the type of a block's scale."""

    extents: tuple[int, ...]
    scale: ScaleType

    @property
    def text(self) -> str:
        """The block as a scheme's text spells it; no extents left is `b1`, a scale an element."""
        return f"b{'x'.join(map(str, self.extents or (1,)))}-{self.scale.name}"


@rule("SCH-6", "SCH-7")
def normal_block(block: "Block | tuple[int | Sequence[int], str | ScaleType]") -> Block:
    """Extents in normal form: leading 1s dropped, at most five left, each 1 to 2^31-1. Rules SCH-5, SCH-6, SCH-7."""
    try:
        given, name = (block.extents, block.scale) if isinstance(block, Block) else block
    except (TypeError, ValueError):
        raise SchemeError(
            "SCH-6", f"block={block!r}; allowed: (extents, scale type), for example ((2, 16), 'f16')"
        ) from None
    scale = scale_type(name, argument="block scale")
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    for axis, extent in enumerate(listed):
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or not 1 <= extent <= LARGEST_EXTENT:
            raise SchemeError("SCH-6", f"block extent [{axis}]={extent!r}; allowed: an integer from 1 to 2^31-1")
    extents = [int(extent) for extent in listed if isinstance(extent, int | np.integer)]
    while extents and extents[0] == 1:
        del extents[0]
    if len(extents) > MOST_EXTENTS:
        raise SchemeError(
            "SCH-7", f"block={tuple(extents)} has {len(extents)} extents; allowed: at most {MOST_EXTENTS}"
        )
    return Block(tuple(extents), scale)


@rule("LAY-5")
def check_shape(shape: Sequence[int], *, argument: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of extents, each 0 or more, at most 2^63-1 elements. Rule LAY-5."""
    if isinstance(shape, str | bytes) or not isinstance(shape, Iterable):
        raise ShapeError("LAY-5", f"{argument}={shape!r}; allowed: a sequence of sizes, one an axis")
    extents = []
    for axis, size in enumerate(shape):
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
            raise ShapeError("LAY-5", f"{argument}[{axis}]={size!r}; allowed: an integer of 0 or more")
        extents.append(int(size))
    if math.prod(extents) > LARGEST_COUNT:
        raise ShapeError(
            "LAY-5", f"{argument}={tuple(extents)} has {math.prod(extents)} elements; allowed: at most 2^63-1"
        )
    return tuple(extents)


def check_array_shape(shape: Sequence[int], *, argument: str = "shape") -> tuple[int, ...]:
    """`check_shape`, and a shape that numpy can hold: empty tensors may have sizes that no array has. Rules LAY-5, CNF-5."""
    extents = check_shape(shape, argument=argument)
    if len(extents) > MOST_AXES or math.prod(size for size in extents if size) > LARGEST_COUNT // 64:
        raise UnsupportedError(
            "CNF-5",
            f"{argument} of {len(extents)} axes, largest {max(extents, default=0)}, is more than this implementation holds; "
            f"allowed: at most {MOST_AXES} axes, and 2^57 elements counting an axis of size 0 as 1",
        )
    return extents


@rule("BLK-2")
def grid_shape(shape: tuple[int, ...], extents: tuple[int, ...]) -> tuple[int, ...]:
    """Blocks along each axis: ceil(size / extent); `extents` has the tensor's rank. Rules BLK-2, BLK-4."""
    return tuple(-(-size // extent) for size, extent in zip(shape, extents, strict=True))


@rule("SCL-5", "BLK-1")
def amax(bits: Bits, extents: tuple[int, ...]) -> Bits:
    """Largest finite magnitude of each block, as a pattern; 0 where a block has none. Rules SCL-5, BLK-4.

    Partial blocks count the elements that exist. `bits` has the tensor's shape; the grid's shape out.
    """
    if any(size % extent for size, extent in zip(bits.shape, extents, strict=True)):
        note("BLK-4")
    grid = np.empty(grid_shape(bits.shape, extents), np.uint32)
    for tile, blocks in tiles(bits.shape, extents):
        magnitude = bits[tile] & MAGNITUDE
        largest = np.where(magnitude < INF, magnitude, np.uint32(0))
        for axis, extent in reversed(list(enumerate(extents))):
            if extent > 1:
                starts = np.arange(0, largest.shape[axis], extent)
                largest = np.maximum.reduceat(largest, starts, axis=axis)
        grid[blocks] = largest
    return grid


def tiles(shape: tuple[int, ...], extents: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Parts of a tensor made of whole blocks, and their parts of the grid; row-major, none for an empty tensor.

    Element-wise steps go part by part, so that what they hold in between does not grow with the tensor.
    """
    sides = []
    for axis, (size, extent) in enumerate(zip(shape, extents, strict=True)):
        room = TILE // max(math.prod(shape[axis + 1 :]), 1)
        step = max(room // extent, 1) * extent
        sides.append([slice(start, min(start + step, size)) for start in range(0, size, step)])
    for tile in itertools.product(*sides):
        blocks = tuple(
            slice(part.start // extent, -(-part.stop // extent)) for part, extent in zip(tile, extents, strict=True)
        )
        yield tile, blocks


@rule("BLK-1", "BLK-3")
def spread(grid: npt.NDArray[Scalar], shape: tuple[int, ...], extents: tuple[int, ...]) -> npt.NDArray[Scalar]:
    """Each block's entry for each of its elements: the grid repeated along every axis, cut to the tensor's shape.

    Rules BLK-1, BLK-3, BLK-4.
    """
    if any(size % extent for size, extent in zip(shape, extents, strict=True)):
        note("BLK-4")
    full: npt.NDArray[Any] = grid
    for axis, (size, extent) in enumerate(zip(shape, extents, strict=True)):
        if extent > 1:
            full = np.repeat(full, min(extent, max(size, 1)), axis=axis)
            full = full[(slice(None),) * axis + (slice(size),)]
    return full
