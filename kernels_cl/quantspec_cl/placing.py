"""Placing: the numbers that a view names, written where a result wants them, by the kernel `move` or a faster one."""

import math
from dataclasses import dataclass

import numpy as np

from . import repack_fast
from .fields import Fields, View
from .geometry import Shape, walk_of
from .host import DeviceArray
from .paths import Path, generic

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
    result, own = result.widened(own) or (result, own)
    planned: repack_fast.Plan | Path = generic("parts are joined one after another")
    if axis < 0:
        planned = repack_fast.plan(array.machine, own, result, view)
    if not isinstance(planned, Path):
        return repack_fast.run(array.machine, planned, array, to)
    _Move.of(own, result, view, axis, start).launch(array, to, sign if own.width < result.width else 0)
    return planned


@dataclass(frozen=True, slots=True)
class _Move:
    """What the kernel `move` takes: see operations.cl. Fields of the source, but `targets` and `target`: words of the result."""

    own: Fields
    result: Fields
    lines: Shape
    targets: Shape
    source: Shape  #: from positions in row-major order to fields, where the view is flat
    indices: Shape
    inner: int  #: lines from one index of the picked axis to the next; 0: it is the lines' own
    stride: int  #: fields from one index of the picked axis to the next
    offset: int
    start: int
    length: int
    step: int
    a_line: int
    target: int
    items: int

    @classmethod
    def of(cls, own: Fields, result: Fields, view: View, axis: int, start: int) -> "_Move":
        """The part of a result that begins at `start` of an axis; all of it where the axis is -1."""
        shape, strides, fields = view.shape, view.strides(own.strides), result.fields
        along, outer = (result.order[-1], result.order[:-1]) if result.order else (-1, ())
        length, step = (shape[along], strides[along]) if shape else (1, 1)
        inside = start if axis == along else 0
        a_line = -(-(inside + length) // fields) - inside // fields
        sizes = [shape[i] for i in outer]
        indices, inner, stride, own_strides = (), 0, 0, list(strides)
        if view.picked is not None:
            chosen, indices = view.picked
            if chosen != along:
                inner = math.prod(sizes[outer.index(chosen) + 1 :])
                stride, own_strides[chosen] = strides[chosen], 0
        return cls(
            *(own, result, walk_of(sizes, [own_strides[i] for i in outer])),
            walk_of(sizes, [result.strides[i] // fields for i in outer]),
            walk_of(own.shape, own.strides) if view.flat else (),
            *(indices, inner, stride, view.offset(own.strides), inside, length, 1 if length == 1 else step, a_line),
            0 if axis < 0 or axis == along else start * result.strides[axis] // fields,
            math.prod(sizes) * a_line,
        )

    def launch(self, array: DeviceArray, to: DeviceArray, sign: int) -> None:
        """Run it."""
        machine, own, result = array.machine, self.own, self.result
        straight = self.source[2:] in ((), (1,))
        picks = machine.upload(np.array(self.indices, np.uint64)) if self.indices else machine.formats
        machine.launch(
            "move",
            self.items,
            *(array, own.size, own.width, own.fields, to, result.size, result.width, result.fields, sign),
            *(machine.constant(self.lines), machine.constant(self.targets), int(straight)),
            *(machine.constant(self.source or (0,)), picks, len(self.indices), self.inner, self.stride),
            *(self.offset, self.start, self.length, self.step % 2**64, self.a_line, self.target, self.items),
        )
