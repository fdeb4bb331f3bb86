"""Placing: the numbers that a view names, written where a result wants them, by the kernel `move` or a faster one."""

import math

from . import repack_fast
from .fields import Fields, Move, View
from .geometry import walk_of
from .host import DeviceArray
from .paths import Path, generic
from .repack_fast import picks_of

__all__ = ["fill", "viewed"]

KEPT = Path("kept", "the numbers stay where they are in memory")


def viewed(
    array: DeviceArray, own: Fields, result: Fields, view: View, clean: bool = True, sign: int = 0
) -> DeviceArray:
    """The numbers that a view names, in an array of their own unless they lie in memory as they are wanted.

    `clean`: the source's padding is known to be 0. `sign`: the bit of a field that fills the rest of a byte.
    """
    if _stays(own, result, view) and (clean or not own.padded):
        return array.reshaped(result.array_shape).written_by(KEPT)
    to = array.machine.empty(result.array_shape, array.dtype if own.size == result.size else f"u{result.size}")
    return to.written_by(fill(array, own, to, result, view, sign=sign))


def _stays(own: Fields, result: Fields, view: View) -> bool:
    """True where every number of the result has the place that it has in the source, and there are no others."""
    if (own.size, own.width, own.fields, own.words) != (result.size, result.width, result.fields, result.words):
        return False
    if math.prod(view.shape) != math.prod(own.shape) or view.picked is not None or own.words == 0:
        return False
    if view.flat:
        return walk_of(view.shape, result.strides) == walk_of(own.shape, own.strides)
    strides = zip(view.shape, view.strides(own.strides), result.strides, strict=True)
    return view.offset(own.strides) == 0 and all(size == 1 or a == b for size, a, b in strides)


def fill(
    array: DeviceArray,
    own: Fields,
    to: DeviceArray,
    result: Fields,
    view: View,
    axis: int = -1,
    start: int = 0,
    sign: int = 0,
) -> Path:
    """Write the numbers that a view names into the result, where an axis is given from `start` of it on."""
    if math.prod(view.shape) == 0:
        return generic("no elements")
    result, own = result.widened(own)
    machine, move = array.machine, Move.of(own, result, view, axis, start)
    planned = repack_fast.plan(machine, move, view)
    if not isinstance(planned, Path):
        return repack_fast.run(machine, planned, array, to)
    _launch(move, array, to, sign if own.width < result.width else 0)
    return planned


def _launch(move: Move, array: DeviceArray, to: DeviceArray, sign: int) -> None:
    """Run the kernel that takes every move."""
    machine, own, result = array.machine, move.own, move.result
    machine.launch(
        "move",
        move.items,
        *(array, own.size, own.width, own.fields, to, result.size, result.width, result.fields, sign),
        *(machine.constant(move.lines), machine.constant(move.targets), int(move.straight)),
        *(machine.constant(move.source or (0,)), picks_of(machine, move), len(move.indices), move.inner, move.stride),
        *(move.offset, move.start, move.length, move.step % 2**64, move.a_line, move.target, move.items),
    )
