"""Layout operations on a device: codes and scale codes move, nothing is encoded again. Rules OPS-1 to OPS-13; reshape: OPS-9.

As quantspec's, and on packed tensors too: words in, words out, each word of the result gathered straight from the source's,
without a byte for a code in between. `padding` says how packed tensors are read, as in `unpack`.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from quantspec import CANONICAL_CONTAINER, Codec, Packed, Recipe, Scheme, ShapeError
from quantspec.blocks import check_array_shape
from quantspec.stores import Store

from .choice import Given
from .dequantize import dequantize, dequantize_packed
from .fields import View
from .geometry import Shape, blocks_along
from .host import Machine
from .moves import (
    Made,
    Source,
    Stored,
    axis_of,
    extents_of,
    is_whole,
    moved,
    refuse,
    scheme_with,
    taken,
)
from .packing import Strictness, pack, require_strictness, unpack
from .quantize import quantize
from .quantize_words import quantize_packed
from .reshape import Regrid
from .tensors import DevicePacked

__all__ = [
    "expand",
    "flip",
    "permute",
    "repack",
    "requantize",
    "reshape",
    "select",
    "slice_axis",
    "take",
    "transpose",
]


def _views(source: Source) -> tuple[View, View]:
    """Codes and scale grid as they are; without a block level the grid is not looked at."""
    return View.of(source.shape), View.of((1,) * len(source.shape) if source.grid is None else source.grid)


def permute(machine: Machine, tensor: Stored, axes: Sequence[int], padding: Strictness = "refuse") -> Made:
    """Axis i of the result is axis `axes[i]`; block extents and the packed axis follow. Rule OPS-2."""
    return _permuted(taken(machine, tensor, padding), axes)


def _permuted(source: Source, axes: Sequence[int]) -> Made:
    rank = len(source.shape)
    if not isinstance(axes, Iterable):
        raise ShapeError("OPS-2", f"axes={axes!r}; allowed: a sequence, each of the {rank} axes once")
    order = [axis_of(axis, rank, f"axes[{i}]") for i, axis in enumerate(axes)]
    if sorted(order) != list(range(rank)):
        raise ShapeError("OPS-2", f"axes={tuple(axes)}; allowed: each of the {rank} axes once")
    extents = extents_of(source)
    d = rank - 1 - order.index(source.scheme.packed_axis(rank)) if rank else 0
    scheme = scheme_with(source.scheme, [extents[axis] for axis in order], d)
    return moved(source, scheme, *(view.permuted(order) for view in _views(source)))


def transpose(machine: Machine, tensor: Stored, axis0: int, axis1: int, padding: Strictness = "refuse") -> Made:
    """Two axes exchanged. Rule OPS-2."""
    source = taken(machine, tensor, padding)
    rank = len(source.shape)
    order = list(range(rank))
    a, b = axis_of(axis0, rank, "axis0"), axis_of(axis1, rank, "axis1")
    order[a], order[b] = b, a
    return _permuted(source, order)


def slice_axis(
    machine: Machine, tensor: Stored, axis: int, start: int, stop: int, padding: Strictness = "refuse"
) -> Made:
    """Elements start to stop (not included) of an axis; start a multiple of the block extent, stop free. Rule OPS-3."""
    source = taken(machine, tensor, padding)
    axis = axis_of(axis, len(source.shape))
    size, extent = source.shape[axis], extents_of(source)[axis]
    if not (is_whole(start) and is_whole(stop)) or not 0 <= start <= stop <= size:
        raise ShapeError("OPS-3", f"start={start}, stop={stop} on axis {axis}; allowed: 0 <= start <= stop <= {size}")
    if start % extent:
        refuse("OPS-3", f"start={start} on axis {axis} is not a multiple of the block extent {extent}")
    start, count = int(start), int(stop) - int(start)
    codes, grid = _views(source)
    return moved(
        source, source.scheme, codes.cut(axis, start, count), grid.cut(axis, start // extent, -(-count // extent))
    )


def take(machine: Machine, tensor: Stored, axis: int, indices: Sequence[int], padding: Strictness = "refuse") -> Made:
    """Whole slices of an axis, in the order of `indices` (repeats allowed); the axis has block extent 1. Rule OPS-4."""
    source = taken(machine, tensor, padding)
    axis = axis_of(axis, len(source.shape))
    chosen = _chosen(source, axis, indices)
    return moved(source, source.scheme, *(view.picks(axis, chosen) for view in _views(source)))


def _chosen(source: Source, axis: int, indices: Sequence[int]) -> tuple[int, ...]:
    """Indices that may be taken. Rule OPS-4."""
    size, extent = source.shape[axis], extents_of(source)[axis]
    if not isinstance(indices, Iterable):
        raise ShapeError("OPS-4", f"indices={indices!r}; allowed: a sequence of integers from 0 to {size - 1}")
    indices = list(indices)
    for place, index in enumerate(indices):
        if not is_whole(index) or not 0 <= index < size:
            raise ShapeError(
                "OPS-4", f"indices[{place}]={index!r} on axis {axis}; allowed: an integer from 0 to {size - 1}"
            )
    if extent != 1:
        refuse("OPS-4", f"indices={indices[:8]} on axis {axis}, which has block extent {extent}; allowed: extent 1")
    return tuple(int(index) for index in indices)


def select(machine: Machine, tensor: Stored, axis: int, index: int, padding: Strictness = "refuse") -> Made:
    """One slice of an axis, the axis dropped; dropping the packed axis gives d = 0. Rule OPS-5."""
    source = taken(machine, tensor, padding)
    rank = len(source.shape)
    axis = axis_of(axis, rank)
    (index,) = _chosen(source, axis, [index])
    packed = source.scheme.packed_axis(rank)
    d = 0 if packed == axis else source.scheme.store.d - (1 if axis > packed else 0)
    scheme = scheme_with(source.scheme, [extent for i, extent in enumerate(extents_of(source)) if i != axis], d)
    return moved(source, scheme, *(view.dropped(axis, index) for view in _views(source)))


def flip(machine: Machine, tensor: Stored, axis: int, padding: Strictness = "refuse") -> Made:
    """An axis in reverse; its size is a multiple of the block extent, or one block holds all of it. Rule OPS-6."""
    source = taken(machine, tensor, padding)
    axis = axis_of(axis, len(source.shape))
    size, extent = source.shape[axis], extents_of(source)[axis]
    if size % extent and size > extent:
        refuse(
            "OPS-6",
            f"axis {axis} has size {size}, no multiple of the block extent {extent} (partial block at {size - size % extent})",
        )
    return moved(source, source.scheme, *(view.reversed(axis) for view in _views(source)))


def expand(machine: Machine, tensor: Stored, shape: Sequence[int], padding: Strictness = "refuse") -> Made:
    """Axes of size 1 repeated to the sizes of `shape`, new leading axes too; a block's scale repeats with it. Rule OPS-7."""
    source = taken(machine, tensor, padding)
    new, old = check_array_shape(shape), source.shape
    added = len(new) - len(old)
    if added < 0:
        raise ShapeError("OPS-7", f"shape={new} has rank {len(new)}, the tensor {len(old)}; allowed: the same or more")
    for axis, (size, grown) in enumerate(zip(old, new[added:], strict=True)):
        if size not in (1, grown):
            raise ShapeError(
                "OPS-7", f"shape[{axis + added}]={grown}, the tensor has {size} there; only an axis of size 1 grows"
            )
    codes, grid = _views(source)
    blocks = new if source.grid is None else blocks_along(new, source.scheme)
    return moved(source, source.scheme, codes.spread(new), grid.spread(blocks))


def repack(machine: Machine, tensor: Stored, store: str | Store, padding: Strictness = "refuse") -> Made:
    """The same codes and scale codes under another store: another kind, another packed axis, or both. Rule OPS-13."""
    if isinstance(tensor, Packed | DevicePacked) and tensor.container != CANONICAL_CONTAINER:
        made = _repacked(taken(machine, unpack(machine, tensor, padding), padding), store)
        return made if isinstance(made, DevicePacked) else pack(machine, made, tensor.container)
    return _repacked(taken(machine, tensor, padding), store)


def _repacked(source: Source, store: str | Store) -> Made:
    own = source.scheme
    scheme = Scheme(own.value, store, mode=own.mode, tensor=own.tensor, block=own.block, table=own.table)
    return moved(source, scheme, *_views(source))


def reshape(machine: Machine, tensor: Stored, shape: Sequence[int], padding: Strictness = "refuse") -> Made:
    """The same elements in row-major order under another shape, where its blocks are again a grid of boxes. Rule OPS-9."""
    source = taken(machine, tensor, padding)
    new, scheme = check_array_shape(shape), source.scheme
    if math.prod(new) != math.prod(source.shape):
        raise ShapeError("OPS-9", f"shape={new} has {math.prod(new)} elements, the tensor {math.prod(source.shape)}")
    codes, grid = _views(source)
    if new == source.shape:
        return moved(source, scheme, codes, grid)
    d = scheme.store.d if scheme.store.d < max(len(new), 1) else 0
    extents: Sequence[int] = ()
    if scheme.block is not None and 0 in new:
        extents = scheme.block.extents
        if len(extents) > len(new):
            refuse("OPS-9", f"shape={new} has rank {len(new)}, the block rank {len(extents)}")
    elif scheme.block is not None:
        extents = _regridded(machine, source, new)
    scheme = scheme_with(scheme, extents, d)
    blocks = () if scheme.block is None else blocks_along(new, scheme)
    return moved(source, scheme, codes.flattened(new), grid.flattened(blocks))


def _regridded(machine: Machine, source: Source, new: Shape) -> Shape:
    """Extents under which the blocks are boxes of the new shape. Rules OPS-9, OPS-11."""
    old = extents_of(source)
    regrid = Regrid.of(source.shape, old, new)
    if not regrid.fits:
        walks = machine.constant(regrid.blocks), machine.constant(regrid.boxes)
        first = machine.search("first_torn", math.prod(new), *walks)
        index = None if first is None else tuple(int(i) for i in np.unravel_index(first, new))
        refuse(
            "OPS-9",
            f"shape={new}: blocks of extents {old} on {source.shape} are not boxes of one size there (extents "
            f"{regrid.extents} from the origin fail at {'the origin' if index is None else f'index {index}'})",
        )
    return regrid.extents


def requantize(
    machine: Machine,
    tensor: Stored,
    scheme: Scheme | str,
    padding: Strictness = "refuse",
    recipe: Recipe | str | None = None,
    codec: Codec | str | None = None,
) -> Made:
    """The tensor dequantized to f32 and quantized again under a scheme: lossy, scales chosen anew. Rule OPS-12.

    By the tensor's own recipe and codec, unless others are named; words come back in their container.
    """
    block, single = Given("scales", None, "scale_codes", None), Given("tensor_scale", None, "tensor_scale_code", None)
    if isinstance(tensor, Packed | DevicePacked):
        numbers = dequantize_packed(machine, tensor, padding=padding)
        by = tensor.recipe if recipe is None else recipe, tensor.codec if codec is None else codec
        return quantize_packed(machine, numbers, scheme, block, single, *by, tensor.container)
    require_strictness(padding)
    numbers = dequantize(machine, tensor)
    by = tensor.recipe if recipe is None else recipe, tensor.codec if codec is None else codec
    return quantize(machine, numbers, scheme, block, single, *by)
