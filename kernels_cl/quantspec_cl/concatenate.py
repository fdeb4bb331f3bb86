"""Concatenate on a device: tensors joined along an axis, part after part straight into the result's words. Rule OPS-8."""

import math
from collections.abc import Sequence

from quantspec import Packed, Quantized, ShapeError
from quantspec.blocks import check_array_shape
from quantspec.tensor import require_record

from .fields import Fields, View
from .geometry import blocks_along
from .host import DeviceArray, Machine
from .moves import Made, Source, Stored, axis_of, extents_of, refuse, remade, taken
from .packing import Strictness
from .placing import fill
from .tensors import DevicePacked

__all__ = ["concatenate"]


def concatenate(machine: Machine, parts: Sequence[Stored], axis: int = 0, padding: Strictness = "refuse") -> Made:
    """Tensors joined along an axis: one scheme, bit-equal tensor scales, whole blocks but in the last. Rule OPS-8.

    Parts without elements are skipped. All parts are packed, or none is.
    """
    parts = list(parts)
    if not parts:
        raise ShapeError("OPS-8", "parts is empty; allowed: one tensor or more")
    packed, sources = isinstance(parts[0], Packed | DevicePacked), []
    for number, part in enumerate(parts):
        if isinstance(part, Packed | DevicePacked) != packed:
            require_record(part, Packed if packed else Quantized, argument=f"parts[{number}]")
        sources.append(taken(machine, part, padding, argument=f"parts[{number}]"))
    first = sources[0]
    axis = axis_of(axis, len(first.shape))
    for number, source in enumerate(sources):
        _require_like(first, source, axis, number)
    extent = extents_of(first)[axis]
    return _joined(_filled(sources, axis, extent), axis, extent)


def _require_like(first: Source, source: Source, axis: int, number: int) -> None:
    """Refuse a part of another scheme or shape than the first."""
    policies = [(each.scheme, each.record.recipe, each.record.codec) for each in (first, source)]
    if policies[0] != policies[1]:
        refuse("OPS-8", f"parts[{number}] is {_told(source)}, parts[0] is {_told(first)}")
    pairs = enumerate(zip(first.shape, source.shape, strict=False))
    if len(source.shape) != len(first.shape) or any(a != b for i, (a, b) in pairs if i != axis):
        raise ShapeError(
            "OPS-8",
            f"parts[{number}] has shape {source.shape}, parts[0] {first.shape}; allowed: equal but for axis {axis}",
        )


def _told(source: Source) -> str:
    return f"{source.scheme.text} by {source.record.recipe.name} and {source.record.codec.name}"


def _filled(sources: Sequence[Source], axis: int, extent: int) -> Sequence[Source]:
    """The parts with elements, if there are any; refused where they do not fit together."""
    filled = [(number, source) for number, source in enumerate(sources) if math.prod(source.shape)]
    for place, (number, source) in enumerate(filled):
        size = source.shape[axis]
        if size % extent and place < len(filled) - 1:
            refuse("OPS-8", f"parts[{number}] has size {size} on axis {axis}, no multiple of the block extent {extent}")
        if _tensor_code(source) != _tensor_code(filled[0][1]):
            refuse("OPS-8", f"parts[{number}] has another tensor scale than parts[{filled[0][0]}]")
    return [source for _, source in filled] or sources


def _tensor_code(source: Source) -> int | None:
    code = source.record.tensor_scale_code
    return None if code is None else code.machine.element(code, 0)


def _joined(sources: Sequence[Source], axis: int, extent: int) -> Made:
    """One after another along an axis, which all but the last fill with whole blocks."""
    first = sources[0]
    shape = tuple(sum(s.shape[i] for s in sources) if i == axis else n for i, n in enumerate(first.shape))
    check_array_shape(shape, argument="codes.shape")
    machine, scheme, result = first.array.machine, first.scheme, first.fields_of(first.scheme, shape)
    to, grid = machine.empty(result.array_shape, first.array.dtype), None
    if first.record.scale_codes is not None:
        grid = machine.empty(blocks_along(shape, scheme), first.record.scale_codes.dtype)
    start = 0
    for source in sources:
        path = fill(source.array, source.fields, to, result, View.of(source.shape), axis, start)
        to = to.written_by(path)
        if grid is not None and source.record.scale_codes is not None:
            _fill_grid(source.record.scale_codes, grid, axis, start // extent)
        start += source.shape[axis]
    return remade(first.record, scheme, shape, to, grid)


def _fill_grid(part: DeviceArray, grid: DeviceArray, axis: int, start: int) -> None:
    size = part.dtype.itemsize
    own, result = Fields.of_numbers(part.shape, size), Fields.of_numbers(grid.shape, size)
    fill(part, own, grid, result, View.of(part.shape), axis, start)
