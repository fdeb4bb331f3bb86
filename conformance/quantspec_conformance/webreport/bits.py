"""A difference drawn: both patterns bit by bit in their fields, the bits that differ, the numbers, the element behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quantspec import QuantspecError

from ..compare import Difference
from ..examples import Entry, Tensor
from ..implementations.law import example_of
from ..patterns import hexadecimal
from ..protocol.messages import Request
from ..site.boxes import MEANINGS, numbers
from ..suite.blame import element_of
from ..suite.case import Case
from ..suite.outcome import SuiteMismatch
from .formats import scheme_of
from .layout import Field, layout_of

__all__ = ["Bit", "Drawing", "Row", "drawings", "reading"]


@dataclass(frozen=True, slots=True)
class Bit:
    """One bit: its place, 0 the lowest, its value, its field, whether it differs, and whether a field begins with it."""

    place: int
    value: int
    field: Field
    differs: bool
    opens: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One pattern: whose it is, in hexadecimal, bit by bit, and its number where it is one."""

    name: str
    text: str
    bits: tuple[Bit, ...]
    number: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """One entry that differs. `behind` is what the law has at its element: name, pattern, number."""

    part: str
    index: str
    flat: int
    fields: tuple[Field, ...]
    rows: tuple[Row, Row]
    behind: tuple[tuple[str, str, str], ...]
    changed: str


def drawings(case: Case | None, mismatch: SuiteMismatch) -> list[Drawing]:
    """A drawing of each difference that was kept."""
    patterns = [pattern for row in mismatch.first for pattern in (row.expected, row.actual)]
    fields = layout_of(case, mismatch.part, max(patterns, default=0))
    width = sum(field.bits for field in fields)
    return [
        _drawing(case, mismatch.part, row, fields)
        for row in mismatch.first
        if min(row.expected, row.actual) >= 0 and max(row.expected, row.actual) >> width == 0
    ]


def _drawing(case: Case | None, part: str, row: Difference, fields: Sequence[Field]) -> Drawing:
    width = sum(field.bits for field in fields)
    xor = row.expected ^ row.actual
    rows = [
        Row(name, hexadecimal(pattern, width), tuple(_bits(pattern, xor, fields)), reading(case, part, pattern))
        for name, pattern in (("expected", row.expected), ("actual", row.actual))
    ]
    count = xor.bit_count()
    names = dict.fromkeys(bit.field.name for bit in rows[0].bits if bit.differs)
    changed = f"{count} bit{'s' * (count != 1)}: {', '.join(names)}"
    index = ", ".join(map(str, row.index))
    try:
        behind = () if case is None else tuple(_behind(case, part, row.index))
    except (QuantspecError, ValueError, IndexError):  # an index from a file, and none of this case
        behind = ()
    return Drawing(part, f"({index})", row.flat, tuple(fields), (rows[0], rows[1]), behind, changed)


def _bits(pattern: int, xor: int, fields: Sequence[Field]) -> list[Bit]:
    place = sum(field.bits for field in fields)
    found: list[Bit] = []
    for field in fields:
        for number in range(field.bits):
            place -= 1
            found.append(Bit(place, pattern >> place & 1, field, bool(xor >> place & 1), number == 0))
    return found


def reading(case: Case | None, part: str, pattern: int) -> str:
    """The number of a pattern of a part of a case; nothing where it is none."""
    tensor = None if case is None else case.outputs.get(part, case.inputs.get(part, case.intermediates.get(part)))
    if case is None or tensor is None:
        return ""
    words = dict(case.words)
    if part in case.outputs and "new_scheme" in words:
        words["scheme"] = words["new_scheme"]
    try:
        found = numbers(
            example_of(Request(case.op, words, case.inputs)), part, Entry(Tensor(tensor.dtype, (1,), (pattern,)))
        )
    except (QuantspecError, ValueError):
        return ""
    return found[0] if found else ""


def _behind(case: Case, part: str, index: tuple[int, ...]) -> list[tuple[str, str, str]]:
    """Inputs and quantities in between at the element that an entry belongs to, as far as their shapes tell."""
    element = element_of(case, part, index)
    if element is None:
        return []
    main = next((case.inputs[name].shape for name in ("x", "codes", "scale_codes") if name in case.inputs), ())
    found: list[tuple[str, str, str]] = []
    tensors: Mapping[str, Tensor] = {**case.inputs, **case.intermediates}
    for name, tensor in tensors.items():
        position = None if name == "table" else _place(case, tensor, main, element)
        if position is None:
            continue
        pattern = tensor.patterns[int(np.ravel_multi_index(position, tensor.shape)) if position else 0]
        meaning = MEANINGS.get(name, name)
        label = name if meaning == name else f"{name}, {meaning}"
        if position == element and element != index:
            label = f"{name} at ({', '.join(map(str, element))})"
        found.append((label, hexadecimal(pattern, 8 * tensor.array().itemsize), reading(case, name, pattern)))
    return found


def _place(case: Case, tensor: Tensor, main: tuple[int, ...], element: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where a tensor holds what belongs to an element: at it, at its block, or its only entry."""
    if tensor.shape == main and len(element) == len(main) and all(i < n for i, n in zip(element, main, strict=True)):
        return element
    if len(tensor.patterns) == 1:
        return (0,) * len(tensor.shape)
    scheme = scheme_of(case)
    if scheme is None or scheme.block is None or len(tensor.shape) != len(element) or len(main) != len(element):
        return None
    block = tuple(i // extent for i, extent in zip(element, scheme.extents(len(main)), strict=True))
    grid = tuple(-(-n // extent) for n, extent in zip(main, scheme.extents(len(main)), strict=True))
    return block if tensor.shape == grid and all(i < n for i, n in zip(block, grid, strict=True)) else None
