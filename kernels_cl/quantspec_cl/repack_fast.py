"""Repack, fast: lines that run down become lines that run across, or stay lines; words of four bytes, eight at a time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyopencl as cl

from .fields import Move, View
from .geometry import Shape, walk_of
from .host import DeviceArray, Machine
from .paths import FAST_FROM, Path, generic
from .program import Program, register

__all__ = ["Plan", "picks_of", "plan", "programs", "run"]

FILES = ("prelude.cl", "repack_fast.cl")
WIDTHS = (2, 4, 8, 16, 32)  #: bits of a number
SIDE = 8  #: words of a vector
WORD = 4  #: bytes
PIECE = 32  #: vectors that a work-item of `copy_lines` takes on a CPU: there each is a work-group


@dataclass(frozen=True, slots=True)
class Cut:
    """What a work-item takes: on CPUs as much as the stack holds in the cache, on GPUs as little as there is."""

    width: int
    across: int = 1  #: vectors of a line, in `turn`
    down: int = 1  #: vectors of a line of the result
    piece: int = 1  #: vectors of a line, in `copy_lines`
    local: int = 64  #: work-items of a work-group, along a line of the result

    @classmethod
    def of(cls, width: int, kind: str) -> "Cut":
        """For numbers of so many bits on a kind of device."""
        return cls(width, 4, min(width, SIDE), PIECE, 1) if kind == "cpu" else cls(width)

    @property
    def program(self) -> Program:
        """The program that is told so."""
        facts = {"WIDTH": self.width, "ACROSS": self.across, "DOWN": self.down, "PIECE": self.piece}
        return Program(FILES, tuple(f"-D{name}={number}" for name, number in facts.items()))


@dataclass(frozen=True, slots=True)
class Plan:
    """Over what a kernel is run, and what it takes after the arrays."""

    cut: Cut
    sizes: Shape
    walks: tuple[Shape, Shape]  #: in the source and in the result
    numbers: Shape
    path: Path
    picks: Move | None = None  #: whose indices are picked, for the kernel that takes them


def plan(machine: Machine, move: Move, view: View) -> Plan | Path:
    """How to move numbers fast; or the generic path, with what is in the way."""
    size = math.prod(view.shape)
    if machine.choice == "generic":
        return generic("path='generic'")
    if machine.choice == "auto" and size < FAST_FROM:
        return generic(f"{size} elements, fewer than {FAST_FROM}")
    if not move.linear or move.own.size != WORD or not move.own.dense:
        return generic("not whole words of four bytes on both sides, or numbers that do not lie evenly apart")
    cut = Cut.of(move.own.width, machine.info.kind)
    if move.step == 1:
        return _copied(move, cut)
    columns = _columns(move, view)
    return (
        generic("lines that neither stay lines nor run across")
        if columns is None
        else _turned(move, view, columns, cut)
    )


def _copied(move: Move, cut: Cut) -> Plan:
    """Lines stay lines; those that follow one another on both sides are one."""
    lines, targets, length = move.lines, move.targets, move.length
    count = move.items // move.a_line
    whole = move.start == 0 and length % move.own.fields == 0 and not move.indices
    if whole and lines in ((0,), (1, count, length)) and targets in ((0,), (1, count, move.a_line)):
        lines, targets, length, count = (0,), (0,), length * count, 1
    words = -(-(move.start % move.own.fields + length) // move.own.fields)
    numbers = (len(move.indices), move.inner, move.stride, move.offset, move.start, length, move.target)
    path = Path("copy_lines", f"{count} lines of {length}")
    return Plan(cut, (-(-words // (SIDE * cut.piece)), count), (lines, targets), numbers, path, move)


def _columns(move: Move, view: View) -> int | None:
    """The axis of the result along which the source's lines run, where all of them begin with a word."""
    strides, fields = view.strides(move.own.strides), move.own.fields
    if move.start or view.flat or view.picked is not None or move.target:
        return None
    across = [axis for axis in move.result.order[:-1] if strides[axis] == 1 and view.shape[axis] > 1]
    if not across or any(strides[axis] % fields for axis in range(len(strides)) if axis != across[0]):
        return None
    return None if move.offset % fields else across[0]


def _turned(move: Move, view: View, columns: int, cut: Cut) -> Plan:
    """Lines that run along an axis become lines that run along another."""
    strides, result, fields = view.strides(move.own.strides), move.result, move.own.fields
    batch = [axis for axis in result.order[:-1] if axis != columns]
    sizes = [view.shape[axis] for axis in batch]
    wide, a_line = view.shape[columns], -(-view.shape[columns] // fields)
    return Plan(
        cut,
        (-(-move.a_line // (SIDE * cut.down)), -(-a_line // (SIDE * cut.across)), math.prod(sizes)),
        (
            walk_of(sizes, [strides[axis] // fields for axis in batch]),
            walk_of(sizes, [result.strides[axis] // fields for axis in batch]),
        ),
        *(
            (
                move.offset // fields,
                move.length,
                move.step // fields % 2**64,
                wide,
                a_line,
                result.strides[columns] // fields,
            ),
            Path("turn", f"{move.length} lines of {wide} become {wide} of {move.length}"),
        ),
    )


def run(machine: Machine, planned: Plan, array: DeviceArray, to: DeviceArray) -> Path:
    """Move the numbers."""
    cut = planned.cut
    arrays: list[DeviceArray | cl.Buffer] = [array, to, *(machine.constant(walk) for walk in planned.walks)]
    if planned.picks is not None:
        arrays.append(picks_of(machine, planned.picks))
    wide = min(cut.local, machine.local_size)
    sizes = (-(-planned.sizes[0] // wide) * wide, *planned.sizes[1:])
    local = (wide, *(1 for _ in sizes[1:]))
    machine.run(cut.program, planned.path.name, sizes, *arrays, *planned.numbers, local=local)
    return planned.path


def picks_of(machine: Machine, move: Move) -> DeviceArray | cl.Buffer:
    """The picked indices; an array that no kernel reads, where there are none."""
    return machine.upload(np.array(move.indices, np.uint64)) if move.indices else machine.formats


@register
def programs() -> Iterator[Program]:
    """A program for every width of a number and kind of device."""
    for width in WIDTHS:
        yield from (Cut.of(width, kind).program for kind in ("cpu", "gpu"))
