"""Layout operations: codes and scale codes move, nothing is encoded again. Rules OPS-1 to OPS-12.

Each takes and returns a `Quantized`; packing the result packs it anew, so word boundaries never refuse. A result that
would not be made of the same codes and scales is refused; `requantize` is the separate, lossy way.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from . import blocks
from .blocks import MOST_EXTENTS, Block
from .errors import LayoutError, ShapeError
from .quantize import dequantize, quantize
from .scheme import Scheme
from .stores import Store
from .tensor import Quantized, require_record
from .tracing import rule

__all__ = [
    "concatenate",
    "expand",
    "flip",
    "permute",
    "requantize",
    "reshape",
    "select",
    "slice_axis",
    "take",
    "transpose",
]


def _extents(tensor: Quantized) -> tuple[int, ...]:
    """Extents on every axis; 1 everywhere without a block level, where no axis refuses."""
    rank = len(tensor.shape)
    return (1,) * rank if tensor.scheme.block is None else tensor.scheme.extents(rank)


def _axis(axis: int, rank: int, argument: str = "axis") -> int:
    """An axis as a number from 0; negative ones count from the last."""
    if not _is_whole(axis) or not -rank <= axis < rank:
        raise ShapeError("OPS-1", f"{argument}={axis!r}; allowed: an integer from {-rank} to {rank - 1} (rank {rank})")
    return int(axis) % rank


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


@rule("OPS-11")
def _refuse(rule_id: str, what: str) -> NoReturn:
    raise LayoutError(rule_id, f"{what}; the codes and scales cannot be kept, use requantize (lossy)")


@rule("OPS-10")
def _scheme(scheme: Scheme, extents: Sequence[int], d: int) -> Scheme:
    """The scheme with these extents on the axes and this packed axis. Rule OPS-10."""
    block = None
    if scheme.block is not None:
        kept = list(extents)
        while kept and kept[0] == 1:
            del kept[0]
        if len(kept) > MOST_EXTENTS:
            _refuse("SCH-7", f"the result has {len(kept)} block extents {tuple(kept)}; allowed: at most {MOST_EXTENTS}")
        block = Block(tuple(kept), scheme.block.scale)
    store = Store(scheme.store.kind, d) if scheme.store.packed else scheme.store
    return Scheme(scheme.value, store, mode=scheme.mode, tensor=scheme.tensor, block=block, table=scheme.table)


@rule("OPS-1")
def _moved(
    tensor: Quantized, scheme: Scheme, codes: npt.NDArray[np.uint8], scale_codes: npt.NDArray[Any] | None
) -> Quantized:
    """The tensor with its codes and scale codes in new places. Rule OPS-1."""
    return Quantized(scheme, codes, scale_codes, tensor.tensor_scale_code, tensor.recipe)


@rule("OPS-2")
def permute(tensor: Quantized, axes: Sequence[int]) -> Quantized:
    """Axis i of the result is axis `axes[i]`; block extents and the packed axis follow. Rule OPS-2."""
    require_record(tensor, Quantized)
    rank = len(tensor.shape)
    if not isinstance(axes, Iterable):
        raise ShapeError("OPS-2", f"axes={axes!r}; allowed: a sequence, each of the {rank} axes once")
    order = [_axis(axis, rank, f"axes[{i}]") for i, axis in enumerate(axes)]
    if sorted(order) != list(range(rank)):
        raise ShapeError("OPS-2", f"axes={tuple(axes)}; allowed: each of the {rank} axes once")
    extents = _extents(tensor)
    d = rank - 1 - order.index(tensor.scheme.packed_axis(rank)) if rank else 0
    scheme = _scheme(tensor.scheme, [extents[axis] for axis in order], d)
    scales = None if tensor.scale_codes is None else tensor.scale_codes.transpose(order)
    return _moved(tensor, scheme, tensor.codes.transpose(order), scales)


@rule("OPS-2")
def transpose(tensor: Quantized, axis0: int, axis1: int) -> Quantized:
    """Two axes exchanged. Rule OPS-2."""
    require_record(tensor, Quantized)
    rank = len(tensor.shape)
    order = list(range(rank))
    a, b = _axis(axis0, rank, "axis0"), _axis(axis1, rank, "axis1")
    order[a], order[b] = b, a
    return permute(tensor, order)


@rule("OPS-3")
def slice_axis(tensor: Quantized, axis: int, start: int, stop: int) -> Quantized:
    """Elements start to stop (not included) of an axis; start a multiple of the block extent, stop free. Rule OPS-3."""
    require_record(tensor, Quantized)
    axis = _axis(axis, len(tensor.shape))
    size, extent = tensor.shape[axis], _extents(tensor)[axis]
    if not (_is_whole(start) and _is_whole(stop)) or not 0 <= start <= stop <= size:
        raise ShapeError("OPS-3", f"start={start}, stop={stop} on axis {axis}; allowed: 0 <= start <= stop <= {size}")
    if start % extent:
        _refuse("OPS-3", f"start={start} on axis {axis} is not a multiple of the block extent {extent}")
    start, stop = int(start), int(stop)
    first, count = start // extent, -(-(stop - start) // extent)
    codes = tensor.codes[_at(axis, slice(start, stop))]
    scales = None if tensor.scale_codes is None else tensor.scale_codes[_at(axis, slice(first, first + count))]
    return _moved(tensor, tensor.scheme, codes, scales)


def _at(axis: int, index: slice) -> tuple[slice, ...]:
    return (slice(None),) * axis + (index,)


@rule("OPS-4")
def take(tensor: Quantized, axis: int, indices: Sequence[int]) -> Quantized:
    """Whole slices of an axis, in the order of `indices` (repeats allowed); the axis has block extent 1. Rule OPS-4."""
    require_record(tensor, Quantized)
    axis = _axis(axis, len(tensor.shape))
    size, extent = tensor.shape[axis], _extents(tensor)[axis]
    if not isinstance(indices, Iterable):
        raise ShapeError("OPS-4", f"indices={indices!r}; allowed: a sequence of integers from 0 to {size - 1}")
    indices = list(indices)
    for place, index in enumerate(indices):
        if not _is_whole(index) or not 0 <= index < size:
            raise ShapeError(
                "OPS-4", f"indices[{place}]={index!r} on axis {axis}; allowed: an integer from 0 to {size - 1}"
            )
    if extent != 1:
        _refuse("OPS-4", f"indices={indices[:8]} on axis {axis}, which has block extent {extent}; allowed: extent 1")
    chosen = np.array(indices, np.intp)
    scales = None if tensor.scale_codes is None else np.take(tensor.scale_codes, chosen, axis=axis)
    return _moved(tensor, tensor.scheme, np.take(tensor.codes, chosen, axis=axis), scales)


@rule("OPS-5")
def select(tensor: Quantized, axis: int, index: int) -> Quantized:
    """One slice of an axis, the axis dropped; dropping the packed axis gives d = 0. Rule OPS-5."""
    require_record(tensor, Quantized)
    rank = len(tensor.shape)
    axis = _axis(axis, rank)
    kept = take(tensor, axis, [index])
    packed = tensor.scheme.packed_axis(rank)
    d = 0 if packed == axis else tensor.scheme.store.d - (1 if axis > packed else 0)
    scheme = _scheme(tensor.scheme, [extent for i, extent in enumerate(_extents(tensor)) if i != axis], d)
    scales = None if kept.scale_codes is None else kept.scale_codes.squeeze(axis)
    return _moved(tensor, scheme, kept.codes.squeeze(axis), scales)


@rule("OPS-6")
def flip(tensor: Quantized, axis: int) -> Quantized:
    """An axis in reverse; its size is a multiple of the block extent, or one block holds all of it. Rule OPS-6."""
    require_record(tensor, Quantized)
    axis = _axis(axis, len(tensor.shape))
    size, extent = tensor.shape[axis], _extents(tensor)[axis]
    if size % extent and size > extent:
        _refuse(
            "OPS-6",
            f"axis {axis} has size {size}, no multiple of the block extent {extent} (partial block at {size - size % extent})",
        )
    scales = None if tensor.scale_codes is None else np.flip(tensor.scale_codes, axis)
    return _moved(tensor, tensor.scheme, np.flip(tensor.codes, axis), scales)


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
        grid = blocks.grid_shape(new, (1,) * added + _extents(tensor))
        scales = np.broadcast_to(scales, grid)
    return _moved(tensor, tensor.scheme, codes, scales)


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
    axis = _axis(axis, len(first.shape))
    for number, part in enumerate(parts):
        _require_like(first, part, axis, number)
    filled = [(number, part) for number, part in enumerate(parts) if part.codes.size]
    lead = filled[0][1] if filled else first
    extent = _extents(first)[axis]
    for place, (number, part) in enumerate(filled):
        if part.shape[axis] % extent and place < len(filled) - 1:
            _refuse(
                "OPS-8",
                f"parts[{number}] has size {part.shape[axis]} on axis {axis}, no multiple of the block extent {extent}",
            )
        if part.tensor_scale_code is not None and lead.tensor_scale_code != part.tensor_scale_code:
            _refuse("OPS-8", f"parts[{number}] has another tensor scale than parts[{filled[0][0]}]")
    joined = [part for _, part in filled] or list(parts)
    codes = np.concatenate([part.codes for part in joined], axis)
    scales = None
    if first.scale_codes is not None:
        grid = blocks.grid_shape(codes.shape, _extents(first))
        found = [part.scale_codes for part in joined if part.scale_codes is not None]
        scales = np.concatenate(found, axis) if codes.size else np.empty(grid, first.scale_codes.dtype)
    return _moved(lead, first.scheme, codes, scales)


def _require_like(first: Quantized, part: Quantized, axis: int, number: int) -> None:
    if part.scheme != first.scheme or part.recipe != first.recipe:
        _refuse("OPS-8", f"parts[{number}] is {part.scheme.text}, parts[0] is {first.scheme.text}")
    others = [(i, a, b) for i, (a, b) in enumerate(zip(first.shape, part.shape, strict=False)) if a != b and i != axis]
    if len(part.shape) != len(first.shape) or others:
        raise ShapeError(
            "OPS-8",
            f"parts[{number}] has shape {part.shape}, parts[0] {first.shape}; allowed: equal but for axis {axis}",
        )


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
        return _moved(tensor, tensor.scheme, tensor.codes, tensor.scale_codes)
    d = tensor.scheme.store.d if tensor.scheme.store.d < max(len(new), 1) else 0
    codes = tensor.codes.reshape(new)
    if tensor.scheme.block is None or tensor.scale_codes is None:
        return _moved(tensor, _scheme(tensor.scheme, (), d), codes, None)
    if not codes.size:
        scheme = _scheme(tensor.scheme, tensor.scheme.block.extents, d)
        if len(tensor.scheme.block.extents) > len(new):
            _refuse("OPS-9", f"shape={new} has rank {len(new)}, the block rank {len(tensor.scheme.block.extents)}")
        grid = blocks.grid_shape(new, scheme.extents(len(new)))
        return _moved(tensor, scheme, codes, np.empty(grid, tensor.scale_codes.dtype))
    extents, first = _regridded(tensor, new)
    return _moved(tensor, _scheme(tensor.scheme, extents, d), codes, tensor.scale_codes.reshape(-1)[first])


def _regridded(tensor: Quantized, new: tuple[int, ...]) -> tuple[tuple[int, ...], npt.NDArray[np.intp]]:
    """Extents under which the old blocks are boxes of the new shape, and the old block of each new one. Rule OPS-9."""
    old_extents = _extents(tensor)
    grid = blocks.grid_shape(tensor.shape, old_extents)
    numbers = np.arange(int(np.prod(grid)), dtype=np.intp).reshape(grid)
    owner = blocks.spread(numbers, tensor.shape, old_extents).reshape(new)  # the old block of each element
    extents = tuple(_run(owner, axis, tensor.shape, old_extents) for axis in range(len(new)))
    first = owner[tuple(slice(None, None, extent) for extent in extents)]
    boxed = blocks.spread(first, new, extents) == owner
    if not boxed.all() or np.unique(first).size != first.size:
        wrong = np.argwhere(~boxed)
        where = f"index {tuple(int(i) for i in wrong[0])}" if len(wrong) else "the origin"
        _refuse(
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


@rule("OPS-12")
def requantize(tensor: Quantized, scheme: Scheme | str) -> Quantized:
    """The tensor dequantized to f32 and quantized again under a scheme: lossy, scales chosen anew. Rule OPS-12."""
    return quantize(dequantize(tensor), scheme, recipe=tensor.recipe)
