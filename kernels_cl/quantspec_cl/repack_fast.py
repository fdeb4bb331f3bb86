"""Repack, fast: where lines that run down become lines that run across, as in a transpose or another packed axis."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from .fields import Fields, View
from .geometry import Shape, walk_of
from .host import DeviceArray, Machine
from .paths import FAST_FROM, Path, generic
from .program import Program, register

__all__ = ["Plan", "plan", "run"]

FILES = ("prelude.cl", "repack_fast.cl")
WIDTHS = (2, 4, 8, 16, 32)  #: bits of a number
SIDE = 8  #: words of a line that a work-item takes, and of a line that it writes
WORD = 4  #: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """What the kernel `turn` takes, and over what."""

    width: int
    sizes: Shape
    source: Shape  #: from a matrix to its first word in the source
    target: Shape  #: and in the result
    numbers: Shape
    path: Path


def plan(machine: Machine, own: Fields, result: Fields, view: View) -> Plan | Path:
    """How to move the numbers of a view fast; or the generic path, with what is in the way."""
    size, strides = math.prod(view.shape), view.strides(own.strides)
    if machine.choice == "generic":
        return generic("path='generic'")
    if machine.choice == "auto" and size < FAST_FROM:
        return generic(f"{size} elements, fewer than {FAST_FROM}")
    if (own.size, result.size) != (WORD, WORD) or own.width != result.width or not own.dense or not result.dense:
        return generic("words or lines that are not whole words of four bytes, or fields of other widths")
    if view.flat or view.picked is not None or view.back is not None or len(view.shape) < 2:
        return generic("not linear, or backwards")
    along, outer, fields = result.order[-1], result.order[:-1], result.fields
    columns = next((axis for axis in outer if strides[axis] == 1 and view.shape[axis] > 1), None)
    if columns is None:
        return generic("no lines that run the other way")
    batch = [axis for axis in outer if axis != columns]
    starts = [strides[axis] for axis in (*batch, along)] + [view.offset(own.strides)]
    if any(start % fields for start in starts):
        return generic("lines that do not begin with a word")
    sizes = [view.shape[axis] for axis in batch]
    length, wide = view.shape[along], view.shape[columns]
    a_line, down = -(-wide // fields), -(-length // fields)
    return Plan(
        result.width,
        (-(-down // SIDE), -(-a_line // SIDE), math.prod(sizes)),
        walk_of(sizes, [strides[axis] // fields for axis in batch]),
        walk_of(sizes, [result.strides[axis] // fields for axis in batch]),
        (starts[-1] // fields, length, strides[along] // fields, wide, a_line, result.strides[columns] // fields),
        Path("turn", f"{length} lines of {wide} become {wide} of {length}"),
    )


def run(machine: Machine, planned: Plan, array: DeviceArray, to: DeviceArray) -> Path:
    """Move the numbers."""
    walks = machine.constant(planned.source), machine.constant(planned.target)
    machine.run(_program(planned.width), "turn", planned.sizes, array, to, *walks, *planned.numbers)
    return planned.path


def _program(width: int) -> Program:
    return Program(FILES, (f"-DWIDTH={width}",))


@register
def programs() -> Iterator[Program]:
    """A program for every width of a number."""
    yield from map(_program, WIDTHS)
