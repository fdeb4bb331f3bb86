"""The matrix: every value, store, mode and scale choice as a scheme; the block extents rotate over the rows.

Schemes that differ only in their store form a group: they share codes, scale codes and data, which the runner uses to
compute the reference side once for all of them.
"""

import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from quantspec import SCALES, TABLES, VALUES, Scheme, SchemeError, Table

from .errors import DamagedError, UsageError

__all__ = [
    "EXTENTS",
    "MATRIX_TABLES",
    "SIZES",
    "STORES",
    "Group",
    "caret",
    "group_of",
    "groups",
    "parse",
    "schemes",
    "select",
]

#: Stores by packed axis d; `native` has none and goes with the innermost.
STORES: dict[int, tuple[str, ...]] = {
    0: ("native", "packed_native_0", "packed_u32_0"),
    1: ("packed_native_1", "packed_u32_1"),
    2: ("packed_native_2", "packed_u32_2"),
}

#: Block extents in rotation: a box, the sizes of NVFP4 and MX, a scale an element, a size that leaves partial blocks, a
#: block longer than every axis, a box over three axes. The order makes MXFP4 and NVFP4 themselves members of the matrix.
EXTENTS: tuple[tuple[int, ...], ...] = ((2, 16), (16,), (32,), (), (3,), (1000,), (2, 3, 4))

#: Schemes of the full matrix: symmetric and lookup.
SIZES = (2695, 1470)


def _full_mantissas() -> Table:
    """256 fixed entries, unsorted, with duplicates and both zeros, that use all 24 bits of their significand."""
    state, patterns = 8, []
    for _ in range(256):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64  # Knuth's MMIX generator
        sign, exponent, mantissa = state >> 63, 118 + (state >> 40) % 10, (state >> 8) & 0x7FFFFF | 1
        patterns.append(sign << 31 | exponent << 23 | mantissa)
    patterns[1], patterns[128] = 0x00000000, 0x80000000
    patterns[255], patterns[7] = patterns[2], patterns[85]
    return _table(patterns)


def _table(patterns: list[int]) -> Table:
    return Table.of(np.array(patterns, np.uint32).view(np.float32))


#: The table of lookup schemes, by the bits of an index.
MATRIX_TABLES: dict[int, Table] = {
    2: _table([0x3F5A9C8F, 0xBEC7B3A1, 0x3DFB1E45, 0xBEC7B3A1]),
    4: TABLES["nf4"],
    8: _full_mantissas(),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Schemes that differ in their store only. `lookup` makes the codes indices into the table of the value's width."""

    value: str
    lookup: bool
    tensor: str | None
    block: str | None
    extents: tuple[int, ...]
    number: int

    def scheme(self, store: str) -> Scheme:
        """The scheme of the group with this store."""
        table = MATRIX_TABLES[VALUES[self.value].bits] if self.lookup else None
        block = None if self.block is None else (self.extents or (1,), self.block)
        mode = "lookup" if self.lookup else "symmetric"
        return Scheme(self.value, store, mode=mode, tensor=self.tensor, block=block, table=table)

    @property
    def row(self) -> str:
        """The row of the result table: the value, or the value and `lut`."""
        return f"{self.value} lut" if self.lookup else self.value


def _scale_choices() -> list[tuple[str | None, str | None]]:
    """Tensor and block scale types: 5 tensor only, 5 block only, 25 of both."""
    types = list(SCALES)
    single = [(tensor, None) for tensor in types] + [(None, block) for block in types]
    return [*single, *((tensor, block) for tensor in types for block in types)]


@cache
def groups() -> tuple[Group, ...]:
    """All groups. The extents rotate so that every value and every scale choice meets every one of them."""
    rows = [(value, False) for value in VALUES] + [(name, True) for name, row in VALUES.items() if row.is_integer]
    found: list[Group] = []
    for i, (value, lookup) in enumerate(rows):
        for j, (tensor, block) in enumerate(_scale_choices()):
            extents = EXTENTS[(i + j) % len(EXTENTS)]
            found.append(Group(value, lookup, tensor, block, extents, len(found)))
    return tuple(found)


@cache
def schemes() -> dict[str, tuple[Group, Scheme]]:
    """The full matrix by scheme text. DamagedError where it has not the size it must have."""
    found: dict[str, tuple[Group, Scheme]] = {}
    for group in groups():
        for stores in STORES.values():
            for store in stores:
                scheme = group.scheme(store)
                found[scheme.text] = (group, scheme)
    sizes = (sum(not group.lookup for group, _ in found.values()), sum(group.lookup for group, _ in found.values()))
    if sizes != SIZES:
        raise DamagedError(f"the matrix has {sizes} schemes (symmetric, lookup); it must have {SIZES}")
    return found


def parse(text: str, *, tables: Sequence[Table] = ()) -> Scheme:
    """The scheme of a text; the digests of the matrix's tables, and of `tables`, are known. UsageError with a caret."""
    try:
        return Scheme.parse(text, tables=[*MATRIX_TABLES.values(), *tables])
    except SchemeError as error:
        raise UsageError(caret(text, error)) from None


def caret(text: str, error: SchemeError) -> str:
    """The refusal of a scheme's text with the text below it and a caret under the position."""
    if error.position is None or not text.isprintable() or len(text) > 120:
        return str(error)
    return f"{error}\n  {text}\n  {' ' * error.position}^"


def group_of(scheme: Scheme) -> Group:
    """The group of a scheme that the matrix need not contain."""
    block = None if scheme.block is None else scheme.block.scale.name
    extents = () if scheme.block is None else scheme.block.extents
    tensor = None if scheme.tensor is None else scheme.tensor.name
    return Group(scheme.value.name, scheme.is_lookup, tensor, block, extents, -1)


def select(patterns: Sequence[str], *, quick: bool = False) -> dict[str, tuple[Group, Scheme]]:
    """Schemes of the matrix that match any of the glob patterns (all where none is given).

    A pattern without wildcards may name a scheme outside the matrix, for example with other extents. `quick` thins the
    matrix. Raises UsageError for a pattern that matches nothing.
    """
    full = schemes()
    base = {text: full[text] for text in _thinned()} if quick else full
    if not patterns:
        return dict(base)
    found: dict[str, tuple[Group, Scheme]] = {}
    for pattern in patterns:
        matched = [text for text in base if fnmatch.fnmatchcase(text, pattern)]
        if not matched and quick:
            matched = [text for text in full if fnmatch.fnmatchcase(text, pattern)]
        if not matched:
            if any(character in pattern for character in "*?["):
                raise UsageError(
                    f"--only {pattern!r} matches none of the {len(full)} schemes of the matrix; "
                    "texts look like e2m1.packed_native_0.b16-ue4m3.t-f32 (the block extents rotate over the matrix; a whole "
                    "scheme, without wildcards, may have any)"
                )
            scheme = parse(pattern)
            found[scheme.text] = (group_of(scheme), scheme)
        found |= {text: full[text] for text in matched}
    return found


def _thinned() -> Iterator[str]:
    """Two scale choices for each row and store: together they still meet every scale choice and every extent."""
    choices = len(_scale_choices())
    stores = [store for row in STORES.values() for store in row]
    for group in groups():
        row, choice = divmod(group.number, choices)
        for k, store in enumerate(stores):
            if choice in ((row * 3 + k * 11) % choices, (row * 3 + k * 11 + 18) % choices):
                yield group.scheme(store).text
