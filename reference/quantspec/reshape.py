"""Reshape: the same elements in row-major order under another shape. Rule OPS-9."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from . import blocks
from .errors import ShapeError
from .moves import extents_of, moved, refuse, scheme_with
from .tensor import Quantized, require_record
from .tracing import rule

__all__ = ["reshape"]


@rule("OPS-9")
def reshape(tensor: Quantized, shape: Sequence[int]) -> Quantized:
    """The same elements in row-major order under another shape, where its blocks are again a grid of boxes. Rule OPS-9.

    Schemes without a block level always reshape. The packed axis keeps its d where the new rank has it, else d = 0.
    """
    require_record(tensor, Quantized)
    new = blocks.check_array_shape(shape)
    if int(np.prod(new, dtype=object)) != tensor.codes.size:
        raise ShapeError(
            "OPS-9", f"shape={new} has {int(np.prod(new, dtype=object))} elements, the tensor {tensor.codes.size}"
        )
    if new == tensor.shape:
        return moved(tensor, tensor.scheme, tensor.codes, tensor.scale_codes)
    d = tensor.scheme.store.d if tensor.scheme.store.d < max(len(new), 1) else 0
    codes = tensor.codes.reshape(new)
    if tensor.scheme.block is None or tensor.scale_codes is None:
        return moved(tensor, scheme_with(tensor.scheme, (), d), codes, None)
    if not codes.size:
        scheme = scheme_with(tensor.scheme, tensor.scheme.block.extents, d)
        if len(tensor.scheme.block.extents) > len(new):
            refuse("OPS-9", f"shape={new} has rank {len(new)}, the block rank {len(tensor.scheme.block.extents)}")
        grid = blocks.grid_shape(new, scheme.extents(len(new)))
        return moved(tensor, scheme, codes, np.empty(grid, tensor.scale_codes.dtype))
    extents, first = _regridded(tensor, new)
    return moved(tensor, scheme_with(tensor.scheme, extents, d), codes, tensor.scale_codes.reshape(-1)[first])


def _regridded(tensor: Quantized, new: tuple[int, ...]) -> tuple[tuple[int, ...], npt.NDArray[np.intp]]:
    """Extents under which the old blocks are boxes of the new shape, and the old block of each new one. Rule OPS-9."""
    old_extents = extents_of(tensor)
    grid = blocks.grid_shape(tensor.shape, old_extents)
    numbers = np.arange(int(np.prod(grid)), dtype=np.intp).reshape(grid)
    owner = blocks.spread(numbers, tensor.shape, old_extents).reshape(new)  # the old block of each element
    extents = tuple(_run(owner, axis, tensor.shape, old_extents) for axis in range(len(new)))
    first = owner[tuple(slice(None, None, extent) for extent in extents)]
    boxed = blocks.spread(first, new, extents) == owner
    if not boxed.all() or np.unique(first).size != first.size:
        wrong = np.argwhere(~boxed)
        where = f"index {tuple(int(i) for i in wrong[0])}" if len(wrong) else "the origin"
        refuse(
            "OPS-9",
            f"shape={new}: blocks of extents {old_extents} on {tensor.shape} are not boxes of one size there (extents {extents} "
            f"from the origin fail at {where})",
        )
    return extents, first


def _run(owner: npt.NDArray[np.intp], axis: int, old_shape: tuple[int, ...], old_extents: tuple[int, ...]) -> int:
    """Extent on a new axis: indices from the origin in the origin's block; an axis that stays keeps a longer extent."""
    line = owner[tuple(slice(None) if i == axis else 0 for i in range(owner.ndim))]
    leaves = line != line[0]
    run = int(np.argmax(leaves)) if leaves.any() else len(line)
    old_axis = axis - owner.ndim + len(old_shape)
    if old_axis >= 0 and old_shape[old_axis] == len(line) and min(old_extents[old_axis], len(line)) == run:
        return old_extents[old_axis]
    return run
