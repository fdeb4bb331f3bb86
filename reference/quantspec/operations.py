"""Layout operations: codes and scale codes move, nothing is encoded again. Rules OPS-1 to OPS-13; reshape: `reshape`.

Each takes and returns a `Quantized`; packing the result packs it anew, so word boundaries never refuse. A result that
would not be made of the same codes and scales is refused; `requantize` is the separate, lossy way.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from . import blocks
from .errors import ShapeError
from .moves import axis_of, extents_of, is_whole, moved, refuse, scheme_with
from .packing import pack, unpack
from .quantize import dequantize, quantize
from .recipes import Codec, Recipe
from .reshape import reshape
from .scheme import Scheme
from .stores import Store
from .tensor import Quantized, require_record
from .tracing import rule
from .words import Packed

__all__ = [
    "concatenate",
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

Stored = TypeVar("Stored", Packed, Quantized)


@rule("OPS-2")
def permute(tensor: Quantized, axes: Sequence[int]) -> Quantized:
    """Axis i of the result is axis `axes[i]`; block extents and the packed axis follow. Rule OPS-2."""
    require_record(tensor, Quantized)
    rank = len(tensor.shape)
    if not isinstance(axes, Iterable):
        raise ShapeError("OPS-2", f"axes={axes!r}; allowed: a sequence, each of the {rank} axes once")
    order = [axis_of(axis, rank, f"axes[{i}]") for i, axis in enumerate(axes)]
    if sorted(order) != list(range(rank)):
        raise ShapeError("OPS-2", f"axes={tuple(axes)}; allowed: each of the {rank} axes once")
    extents = extents_of(tensor)
    d = rank - 1 - order.index(tensor.scheme.packed_axis(rank)) if rank else 0
    scheme = scheme_with(tensor.scheme, [extents[axis] for axis in order], d)
    scales = None if tensor.scale_codes is None else tensor.scale_codes.transpose(order)
    return moved(tensor, scheme, tensor.codes.transpose(order), scales)


@rule("OPS-2")
def transpose(tensor: Quantized, axis0: int, axis1: int) -> Quantized:
    """Two axes exchanged. Rule OPS-2."""
    require_record(tensor, Quantized)
    rank = len(tensor.shape)
    order = list(range(rank))
    a, b = axis_of(axis0, rank, "axis0"), axis_of(axis1, rank, "axis1")
    order[a], order[b] = b, a
    return permute(tensor, order)


@rule("OPS-3")
def slice_axis(tensor: Quantized, axis: int, start: int, stop: int) -> Quantized:
    """Elements start to stop (not included) of an axis; start a multiple of the block extent, stop free. Rule OPS-3."""
    require_record(tensor, Quantized)
    axis = axis_of(axis, len(tensor.shape))
    size, extent = tensor.shape[axis], extents_of(tensor)[axis]
    if not (is_whole(start) and is_whole(stop)) or not 0 <= start <= stop <= size:
        raise ShapeError("OPS-3", f"start={start}, stop={stop} on axis {axis}; allowed: 0 <= start <= stop <= {size}")
    if start % extent:
        refuse("OPS-3", f"start={start} on axis {axis} is not a multiple of the block extent {extent}")
    start, stop = int(start), int(stop)
    first, count = start // extent, -(-(stop - start) // extent)
    codes = tensor.codes[_at(axis, slice(start, stop))]
    scales = None if tensor.scale_codes is None else tensor.scale_codes[_at(axis, slice(first, first + count))]
    return moved(tensor, tensor.scheme, codes, scales)


def _at(axis: int, index: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (index,)


@rule("OPS-4")
def take(tensor: Quantized, axis: int, indices: Sequence[int]) -> Quantized:
    """Whole slices of an axis, in the order of `indices` (repeats allowed); the axis has block extent 1. Rule OPS-4."""
    require_record(tensor, Quantized)
    axis = axis_of(axis, len(tensor.shape))
    size, extent = tensor.shape[axis], extents_of(tensor)[axis]
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
    chosen = np.array(indices, np.intp)
    scales = None if tensor.scale_codes is None else np.take(tensor.scale_codes, chosen, axis=axis)
    return moved(tensor, tensor.scheme, np.take(tensor.codes, chosen, axis=axis), scales)


@rule("OPS-5")
def select(tensor: Quantized, axis: int, index: int) -> Quantized:
    """One slice of an axis, the axis dropped; dropping the packed axis gives d = 0. Rule OPS-5."""
    require_record(tensor, Quantized)
    rank = len(tensor.shape)
    axis = axis_of(axis, rank)
    kept = take(tensor, axis, [index])
    packed = tensor.scheme.packed_axis(rank)
    d = 0 if packed == axis else tensor.scheme.store.d - (1 if axis > packed else 0)
    scheme = scheme_with(tensor.scheme, [extent for i, extent in enumerate(extents_of(tensor)) if i != axis], d)
    scales = None if kept.scale_codes is None else kept.scale_codes.squeeze(axis)
    return moved(tensor, scheme, kept.codes.squeeze(axis), scales)


@rule("OPS-6")
def flip(tensor: Quantized, axis: int) -> Quantized:
    """An axis in reverse; its size is a multiple of the block extent, or one block holds all of it. Rule OPS-6."""
    require_record(tensor, Quantized)
    axis = axis_of(axis, len(tensor.shape))
    size, extent = tensor.shape[axis], extents_of(tensor)[axis]
    if size % extent and size > extent:
        refuse(
            "OPS-6",
            f"axis {axis} has size {size}, no multiple of the block extent {extent} (partial block at {size - size % extent})",
        )
    scales = None if tensor.scale_codes is None else np.flip(tensor.scale_codes, axis)
    return moved(tensor, tensor.scheme, np.flip(tensor.codes, axis), scales)


@rule("OPS-7")
def expand(tensor: Quantized, shape: Sequence[int]) -> Quantized:
    """Axes of size 1 repeated to the sizes of `shape`, new leading axes too; a block's scale repeats with it. Rule OPS-7."""
    require_record(tensor, Quantized)
    new = blocks.check_array_shape(shape)
    added = len(new) - len(tensor.shape)
    if added < 0:
        raise ShapeError(
            "OPS-7", f"shape={new} has rank {len(new)}, the tensor {len(tensor.shape)}; allowed: the same or more"
        )
    for axis, (old, size) in enumerate(zip(tensor.shape, new[added:], strict=True)):
        if old not in (1, size):
            raise ShapeError(
                "OPS-7", f"shape[{axis + added}]={size}, the tensor has {old} there; only an axis of size 1 grows"
            )
    codes = np.broadcast_to(tensor.codes, new)
    scales = tensor.scale_codes
    if scales is not None:
        grid = blocks.grid_shape(new, (1,) * added + extents_of(tensor))
        scales = np.broadcast_to(scales, grid)
    return moved(tensor, tensor.scheme, codes, scales)


@rule("OPS-8")
def concatenate(parts: Sequence[Quantized], axis: int = 0) -> Quantized:
    """Tensors joined along an axis: one scheme, bit-equal tensor scales, whole blocks but in the last. Rule OPS-8.

    Parts without elements are skipped. Raises ShapeError, LayoutError.
    """
    parts = list(parts)
    if not parts:
        raise ShapeError("OPS-8", "parts is empty; allowed: one tensor or more")
    for number, part in enumerate(parts):
        require_record(part, Quantized, argument=f"parts[{number}]")
    first = parts[0]
    axis = axis_of(axis, len(first.shape))
    for number, part in enumerate(parts):
        _require_like(first, part, axis, number)
    filled = [(number, part) for number, part in enumerate(parts) if part.codes.size]
    lead = filled[0][1] if filled else first
    extent = extents_of(first)[axis]
    for place, (number, part) in enumerate(filled):
        if part.shape[axis] % extent and place < len(filled) - 1:
            refuse(
                "OPS-8",
                f"parts[{number}] has size {part.shape[axis]} on axis {axis}, no multiple of the block extent {extent}",
            )
        if part.tensor_scale_code is not None and lead.tensor_scale_code != part.tensor_scale_code:
            refuse("OPS-8", f"parts[{number}] has another tensor scale than parts[{filled[0][0]}]")
    joined = [part for _, part in filled] or list(parts)
    codes = np.concatenate([part.codes for part in joined], axis)
    scales = None
    if first.scale_codes is not None:
        grid = blocks.grid_shape(codes.shape, extents_of(first))
        found = [part.scale_codes for part in joined if part.scale_codes is not None]
        scales = np.concatenate(found, axis) if codes.size else np.empty(grid, first.scale_codes.dtype)
    return moved(lead, first.scheme, codes, scales)


def _require_like(first: Quantized, part: Quantized, axis: int, number: int) -> None:
    if part.scheme != first.scheme or part.recipe != first.recipe or part.codec != first.codec:
        refuse(
            "OPS-8",
            f"parts[{number}] is {part.scheme.text} by {part.recipe.name} and {part.codec.name}, parts[0] is "
            f"{first.scheme.text} by {first.recipe.name} and {first.codec.name}",
        )
    others = [(i, a, b) for i, (a, b) in enumerate(zip(first.shape, part.shape, strict=False)) if a != b and i != axis]
    if len(part.shape) != len(first.shape) or others:
        raise ShapeError(
            "OPS-8",
            f"parts[{number}] has shape {part.shape}, parts[0] {first.shape}; allowed: equal but for axis {axis}",
        )


@rule("OPS-12")
def requantize(
    tensor: Quantized, scheme: Scheme | str, *, recipe: Recipe | str | None = None, codec: Codec | str | None = None
) -> Quantized:
    """The tensor dequantized to f32 and quantized again under a scheme: lossy, scales chosen anew. Rule OPS-12.

    By the tensor's own recipe and codec, unless others are named.
    """
    by = tensor.recipe if recipe is None else recipe
    return quantize(dequantize(tensor), scheme, recipe=by, codec=tensor.codec if codec is None else codec)


@rule("OPS-13")
def repack(tensor: Stored, store: str | Store) -> Stored:
    """The same codes and scale codes under another store: another kind, another packed axis, or both. Rule OPS-13.

    A `Packed` comes back as `Packed`, a `Quantized` as `Quantized`. Raises SchemeError for what is no store, ShapeError
    where the tensor has no such axis, and what `unpack` raises for words that may not be read.

    >>> q = quantize(np.float32([1, -2, 3, -7, 5]), "q4s.packed_u32_0.t-f32", tensor_scale=np.float32(1))
    >>> [hex(word) for word in pack(repack(q, "packed_native_0")).words]
    ['0xe1', '0x93', '0x5']
    """
    if isinstance(tensor, Packed):
        return pack(repack(unpack(tensor), store), container=tensor.container)
    require_record(tensor, Quantized)
    own = tensor.scheme
    scheme = Scheme(own.value, store, mode=own.mode, tensor=own.tensor, block=own.block, table=own.table)
    levels = tensor.scale_codes, tensor.tensor_scale_code
    return Quantized(scheme, tensor.codes, *levels, tensor.recipe, codec=tensor.codec)
