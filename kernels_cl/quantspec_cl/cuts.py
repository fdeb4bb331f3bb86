"""Cuts: how a tensor is divided among the work-items of the fast quantizers. Whole numbers only. BLK-1 to BLK-4, PAK-1 to PAK-4."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from quantspec import Scheme

from .geometry import Shape, blocks_along, lines_of

__all__ = ["Cut", "cut"]

EIGHT = 8  #: lanes of a vector
VIRTUAL = 32  #: the extent of the pieces that a tensor without blocks is cut into
LONGEST = 1 << 12  #: the extent of a block that one work-item takes eight of
MOST = 1 << 15  #: elements of a block that one work-item takes
LOCAL = 16  #: work-items of a group


@dataclass(frozen=True, slots=True)
class Cut:
    """A launch: kernel, facts of its program, work-items, and the numbers after the arrays; flags of saturated scales."""

    kernel: str
    facts: Mapping[str, int]
    sizes: Shape
    local: Shape
    numbers: Shape
    flags: int  #: bytes
    blocks_a_flag: int
    line_blocks: int  #: blocks from one line of flags to the next
    reason: str


@dataclass(frozen=True, slots=True)
class _Words:
    """How the fields of a line lie: codes, a byte each, are words of one field."""

    width: int
    fields: int
    size: int  #: bytes of a word in memory
    line: int  #: bytes a line
    joined: bool  #: lines follow one another without padding
    across: bool  #: lines run along the axis before the last

    @classmethod
    def of(cls, scheme: Scheme, shape: Shape, *, words: bool) -> "_Words":
        """A word of 32 bits without padding is four bytes, each a word of its own: bytes are in the same order."""
        if not words:
            return cls(8, 1, 1, shape[-1] if shape else 1, True, False)
        lines = lines_of(scheme, shape)
        joined, across = lines.padding == 0, scheme.store.d == 1
        if joined and lines.fields * lines.width == 8 * lines.word_size:
            return cls(lines.width, 8 // lines.width, 1, lines.words * lines.word_size, joined, across)
        return cls(lines.width, lines.fields, lines.word_size, lines.words * lines.word_size, joined, across)

    @property
    def facts(self) -> dict[str, int]:
        """What the program is told."""
        return {"WIDTH": self.width, "FIELDS": self.fields, "WORD_SIZE": self.size}


def cut(scheme: Scheme, shape: Shape, *, words: bool) -> Cut | str:
    """How to cut a tensor that has elements; or what is in the way."""
    if words and scheme.store.d > 1:
        return f"packed axis {scheme.store.d}, neither the innermost nor the one before it"
    lines = _Words.of(scheme, shape, words=words)
    if lines.fields & (lines.fields - 1):
        return f"words of {lines.fields} codes"
    if scheme.block is None:
        if lines.across:
            return _tiles(scheme, shape, lines, VIRTUAL, 1)
        return _rows(shape, lines, VIRTUAL, math.prod(shape) if lines.joined else shape[-1])
    extents = [min(extent, size) for extent, size in zip(scheme.extents(len(shape)), shape, strict=True)]
    if any(extent > 1 for extent in extents[:-2]):
        return f"blocks {scheme.block.extents} on an axis before the last two"
    high, wide = (1, *extents)[-2:]
    if high == 1 and not lines.across:
        length = math.prod(shape) if lines.joined and shape[-1] % wide == 0 else shape[-1]
        return _rows(shape, lines, wide, length)
    return _tiles(scheme, shape, lines, high, wide)


def _rows(shape: Shape, words: _Words, extent: int, length: int) -> Cut | str:
    """Eight blocks of a line a work-item."""
    if extent % EIGHT or extent % words.fields:
        return f"block extent {extent} is no multiple of {max(EIGHT, words.fields)}"
    if extent > LONGEST or length < EIGHT * extent:
        return f"lines of {length} elements in blocks of {extent}: allowed at most {LONGEST}, and eight blocks a line"
    lines, blocks = math.prod(shape) // length, -(-length // extent)
    eights = -(-blocks // EIGHT)
    wide = min(1 << (eights - 1).bit_length(), LOCAL)
    tall = LOCAL // wide if lines > 1 else 1
    return Cut(
        "quantize_rows",
        {**words.facts, "EXTENT": extent},
        (-(-eights // wide) * wide, -(-lines // tall) * tall),
        (wide, tall),
        (length, lines, blocks, eights, words.line),
        lines * eights,
        EIGHT,
        blocks,
        f"{length} elements a line, blocks of {extent}",
    )


def _tiles(scheme: Scheme, shape: Shape, words: _Words, high: int, wide: int) -> Cut | str:
    """Eight blocks of one column each a work-item, or one wider block."""
    rows, columns, matrices = shape[-2], shape[-1], math.prod(shape[:-2])
    piece = (32 // words.width if 32 % words.width == 0 else words.fields) if words.across else 1
    uneven = not words.across and max(wide, EIGHT) % words.fields
    if (wide % EIGHT and wide != 1) or high % piece or uneven:
        return f"blocks of {high} x {wide} do not divide into vectors of {EIGHT} and words of {max(piece, words.fields)} codes"
    if high * wide > MOST or columns < EIGHT:
        return (
            f"blocks of {high} x {wide} in {columns} columns: allowed at most {MOST} elements, at least {EIGHT} columns"
        )
    span = max(wide, EIGHT)
    tiles, across = -(-rows // high), -(-columns // span)
    # words down the columns: a group reads whole lines of the cache, and some way along each row
    group, tall = (8, LOCAL // 8) if words.across else (min(1 << (across - 1).bit_length(), LOCAL), 1)
    facts = {"ROWS": high, "COLUMNS": wide, "ACROSS": int(words.across), "PIECE": piece}
    grid = (1,) if scheme.block is None else blocks_along(shape, scheme)
    return Cut(
        "quantize_tiles",
        {**words.facts, **facts},
        (-(-across // group) * group, -(-tiles // tall) * tall, matrices),
        (group, tall, 1),
        (rows, columns, tiles, across, words.line),
        matrices * tiles * across,
        EIGHT if wide == 1 else 1,
        grid[-1],
        f"blocks of {high} x {wide}" + (", words down the columns" if words.across else ""),
    )
