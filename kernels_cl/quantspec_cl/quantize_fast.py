"""Quantize, fast: straight to words or codes by a program that knows the formats, scales chosen on the way. SCL-4 to SCL-14."""

import math
from dataclasses import dataclass

import numpy as np

from quantspec import Scheme, Table

from .blocks import largest
from .choice import Fixed, chosen_single
from .cuts import LOCAL, Cut, cut
from .formats import FLOATS
from .geometry import blocks_along, lines_of
from .host import DeviceArray
from .inputs import Numbers
from .paths import FAST_FROM, Path, generic
from .quantize_programs import amax_program, facts_of, program_of
from .scales import Encoded, decoded_scale
from .tensors import Flags
from .trust import trust

__all__ = ["Levels", "Plan", "plan", "run"]

PIECE = 1 << 13  #: elements of a whole tensor's amax that a work-item looks at
MOST_ENTRIES = 16  #: of a table whose thresholds are gone through one by one
NEAR_ZERO, NEAR_ONE = 0x37800000, (0x35800000, 0x49800000)  # 2^-16; 2^-20 and 2^20


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What quantizing wrote: words or codes, and each level's scales."""

    out: DeviceArray
    blocks: Encoded | None
    single: Encoded | None
    flags: Flags | None  #: of saturated block scales

    @property
    def codes(self) -> tuple[DeviceArray | None, DeviceArray | None]:
        """Scale codes of the blocks and of the tensor."""
        return None if self.blocks is None else self.blocks.codes, None if self.single is None else self.single.codes

    @property
    def tensor_flag(self) -> DeviceArray | None:
        """Not 0 where the tensor scale saturated."""
        return None if self.single is None else self.single.saturated


@dataclass(frozen=True, slots=True)
class Plan:
    """How to quantize: the cut into work-items, and the facts that the program is told."""

    cut: Cut
    facts: tuple[tuple[str, int | str], ...]
    words: bool
    path: Path


def plan(numbers: Numbers, scheme: Scheme, given: Fixed, *, words: bool) -> Plan | Path:
    """How to quantize to words (or codes, a byte each) fast; or the generic path, with what is in the way."""
    machine, shape = numbers.array.machine, numbers.array.shape
    size = math.prod(shape)
    if machine.choice == "generic":
        return generic("path='generic'")
    if machine.choice == "auto" and size < FAST_FROM:
        return generic(f"{size} elements, fewer than {FAST_FROM}")
    if size == 0:
        return generic("no elements")
    found = cut(scheme, shape, words=words)
    if isinstance(found, str):
        return generic(found)
    unfit = _unfit(scheme.table)
    if unfit:
        return generic(unfit)
    known = trust(machine)
    if scheme.table is not None and not known.comparisons:
        return generic(f"comparisons of vectors cannot be counted here: {known.reason}")
    facts = facts_of(FLOATS[numbers.array.dtype], scheme, found, given, known)
    return Plan(found, tuple(facts.items()), words, Path(found.kernel, found.reason))


def _unfit(table: Table | None) -> str | None:
    """What keeps a table from being searched eight numbers at a time."""
    if table is None:
        return None
    if len(table.bits) > MOST_ENTRIES:
        return f"a table of {len(table.bits)} entries, more than {MOST_ENTRIES}"
    if table.indices.tolist() != list(range(len(table.bits))):
        return "a table whose entries do not ascend"
    largest = max(bits & 0x7FFFFFFF for bits in table.bits)
    if min(abs(key) for key in table.thresholds.tolist()) < NEAR_ZERO or not NEAR_ONE[0] <= largest <= NEAR_ONE[1]:
        return "a table with entries very near 0 or very far from 1"
    return None


def run(planned: Plan, numbers: Numbers, scheme: Scheme, given: Fixed, into: DeviceArray | None = None) -> Levels:
    """Words (or codes) and scales of a tensor; `given` are those that an argument fixes."""
    machine, found = numbers.array.machine, planned.cut
    single, blocks, flags = given.single, given.blocks, None
    if scheme.tensor is not None and single is None:
        single = chosen_single(scheme, _tensor_amax(numbers))
    g = (
        machine.formats
        if single is None or scheme.tensor is None
        else decoded_scale(machine, single.codes, scheme.tensor)
    )
    scales = machine.formats if blocks is None else blocks.codes
    if blocks is not None and blocks.saturated is not None:
        flags = Flags(blocks.saturated, blocks.codes.shape)
    if scheme.block is not None and blocks is None:
        scales = machine.empty(blocks_along(numbers.array.shape, scheme), scheme.block.scale.code_dtype)
        if dict(planned.facts)["SATURABLE"]:
            array = machine.empty((found.flags,), np.uint8)
            flags = Flags(
                array,
                scales.shape,
                found.blocks_a_flag,
                found.line_blocks,
                scheme.tensor is not None and given.single is None,
            )
        blocks = Encoded(scales, None)
    out = _output(numbers, scheme, planned, into)
    head = (numbers.array, g, machine.lookup(scheme.table).buffer, scales, out)
    saturated = machine.formats if flags is None else flags.array
    program, tail = program_of(found.kernel, planned.facts), (saturated, *found.numbers)
    machine.run(program, found.kernel, found.sizes, *head, *tail, local=found.local)
    return Levels(out.written_by(planned.path), blocks, single, flags)


def _output(numbers: Numbers, scheme: Scheme, planned: Plan, into: DeviceArray | None) -> DeviceArray:
    machine, shape = numbers.array.machine, numbers.array.shape
    if not planned.words:
        return machine.empty(shape, np.uint8, into)
    return machine.empty(lines_of(scheme, shape).words_shape, scheme.store.word_dtype(scheme.value.bits), into)


def _tensor_amax(numbers: Numbers) -> DeviceArray:
    """amax of the whole tensor, one element. Rule SCL-5."""
    machine, size = numbers.array.machine, numbers.array.size
    pieces = machine.empty((-(-size // PIECE),), np.uint32)
    program = amax_program(FLOATS[numbers.array.dtype])
    local = min(LOCAL, machine.info.max_work_group)
    items = -(-pieces.size // local) * local
    machine.run(
        program,
        "amax_pieces",
        (items,),
        machine.formats,
        numbers.row,
        numbers.array,
        pieces,
        PIECE,
        size,
        local=(local,),
    )
    return largest(pieces)
