"""Reshape: whether blocks are again a grid of boxes under another shape, worked out from shapes and extents alone. Rule OPS-9.

A reshape that is done leaves the scale codes where they are: a block's first element is the first of its box in row-major
order, before and after, so the blocks follow one another as they did.
"""

from dataclasses import dataclass

from .geometry import Shape, grid_walk, strides_of

__all__ = ["Regrid", "first_inside"]


def first_inside(step: int, modulus: int, low: int, high: int) -> int | None:
    """The smallest j of 0 or more with low <= j * step mod modulus <= high; None where there is none. 0 <= low <= high < modulus.

    If no multiple of the step lies between the ends, one less some multiple of the modulus does: the same question for
    smaller numbers, as in Euclid's algorithm.
    """
    step %= modulus
    if low == 0:
        return 0
    if step == 0:
        return None
    j = -(-low // step)
    if j * step <= high:
        return j
    wraps = first_inside(modulus, step, -high % step, -low % step)
    return None if wraps is None else -(-(low + modulus * wraps) // step)


@dataclass(frozen=True, slots=True)
class Regrid:
    """The blocks of a tensor that has elements, and the boxes that another shape would have in their place."""

    blocks: Shape  #: as `grid_walk` gives them
    boxes: Shape
    extents: Shape  #: of the boxes

    @classmethod
    def of(cls, shape: Shape, extents: Shape, new: Shape) -> "Regrid":
        """The boxes by the runs from the origin. Rule OPS-9."""
        blocks = grid_walk(shape, extents)
        runs = tuple(_run(blocks, stride, size) for stride, size in zip(strides_of(new), new, strict=True))
        boxes = tuple(
            _kept(axis - len(new) + len(shape), new[axis], run, shape, extents) for axis, run in enumerate(runs)
        )
        return cls(blocks, grid_walk(new, boxes), boxes)

    @property
    def fits(self) -> bool:
        """True where each box holds exactly the elements of a block: joined as far as they can be, both are the same grid."""
        return self.blocks == self.boxes


def _run(blocks: Shape, stride: int, size: int) -> int:
    """Consecutive indices from the origin, of an axis of this stride, whose elements lie in the origin's block."""
    run = size
    for axis in range(blocks[0]):
        along, extent, _, step = blocks[1 + 4 * axis : 5 + 4 * axis]
        if extent < along:
            leaves = first_inside(stride, along * step, extent * step, along * step - 1)
            run = run if leaves is None else min(run, leaves)
    return run


def _kept(old: int, size: int, run: int, shape: Shape, extents: Shape) -> int:
    """An axis that keeps its size and its place from the right keeps its extent, where that is as good as the run."""
    stays = old >= 0 and shape[old] == size and min(extents[old], size) == run
    return extents[old] if stays else run
