"""Which bit of a stored tensor holds which bit of which code: asked from the reference, never worked out here.

`to_bytes` only moves bits, so a few tensors whose codes count their own elements in binary tell where every bit goes.
Rules PAK-1 to PAK-6, LAY-1 to LAY-3, VAL-4.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import VALUES, Quantized, Scheme
from quantspec.tensor import level_shapes
from quantspec.values import extend

__all__ = ["Bit", "Byte", "Part", "Piece", "holders", "pieces", "row_of_width", "store_holders"]

Part = Literal["element", "block", "tensor"]
Kind = Literal["code", "copy", "zero", "padding", "unused"]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bit:
    """What a stored bit holds: bit `place` of the code of an element, of a block's scale or of the tensor's scale."""

    part: Part
    index: Shape
    place: int


#: Eight bits, the lowest first; None is a bit that holds nothing.
Byte = tuple[Bit | None, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring bits of one byte that belong together.

    `code` holds bits of a code, `copy` the sign again (VAL-4), `zero` extends a code with zeros (VAL-4), `padding` is of a
    field that no code fills (PAK-3), `unused` of no field (PAK-5).
    """

    kind: Kind
    byte: int
    low: int  #: lowest bit of the byte
    bits: int
    field: int  #: field of the word; 0 for scales
    first: Bit | None  #: what the lowest bit holds


def holders(scheme: Scheme, shape: Shape) -> tuple[Byte, ...]:
    """The bytes of a tensor under a scheme, each as what its bits hold. Rules LAY-1 to LAY-3, PAK-1 to PAK-6, VAL-4."""
    found: list[Bit | None] = [None] * (8 * quantspec.byte_count(scheme, shape))
    for part, extents, width in _parts(scheme, shape):
        for place in range(width):
            for position, flat in _positions(scheme, shape, part, extents, place):
                if found[position] is not None:
                    raise AssertionError(f"bit {position} of {scheme.text} {shape} holds two things")
                found[position] = Bit(part, tuple(int(i) for i in np.unravel_index(flat, extents)), place)
    return tuple(tuple(found[start : start + 8]) for start in range(0, len(found), 8))


def store_holders(scheme: Scheme, shape: Shape) -> tuple[Byte, ...]:
    """The bytes of the values alone: `holders` without the scales. Rule LAY-1."""
    words = int(np.prod(quantspec.words_shape(scheme, shape)))
    return holders(scheme, shape)[: words * scheme.store.word_bytes(scheme.value.bits)]


def row_of_width(bits: int) -> str:
    """The first value format of a width: what a map of a store by width is drawn for."""
    return next(row.name for row in VALUES.values() if row.bits == bits)


def _parts(scheme: Scheme, shape: Shape) -> Iterator[tuple[Part, Shape, int]]:
    """What is stored: the part, its shape, the bits of one code of it."""
    yield "element", shape, scheme.value.bits
    grid, _ = level_shapes(scheme, shape)
    if scheme.block is not None and grid is not None:
        yield "block", grid, scheme.block.scale.bits
    if scheme.tensor is not None:
        yield "tensor", (), scheme.tensor.bits


def _positions(scheme: Scheme, shape: Shape, part: Part, extents: Shape, place: int) -> Iterator[tuple[int, int]]:
    """Stored bit positions that follow bit `place` of a part's codes, each with the flat index of the code."""
    names = np.arange(1, int(np.prod(extents)) + 1)
    counted = np.zeros(8 * quantspec.byte_count(scheme, shape), np.int64)
    for digit in range(len(names).bit_length()):
        codes = ((names >> digit & 1) << place).reshape(extents)
        counted += _stored_bits(scheme, shape, part, codes).astype(np.int64) << digit
    for position in np.flatnonzero(counted):
        yield int(position), int(counted[position]) - 1


def _stored_bits(scheme: Scheme, shape: Shape, part: Part, codes: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bits of the tensor in which one part has these codes and all else is zero."""
    grid, _ = level_shapes(scheme, shape)
    fields = codes if part == "element" else np.zeros(shape, np.uint8)
    scales = tensor = None
    if scheme.block is not None and grid is not None:
        scales = (codes if part == "block" else np.zeros(grid)).astype(scheme.block.scale.code_dtype)
    if scheme.tensor is not None:
        tensor = (codes if part == "tensor" else np.zeros(())).astype(scheme.tensor.code_dtype)
    record = Quantized(scheme, extend(np.asarray(fields), scheme.value, lookup=scheme.is_lookup), scales, tensor)
    return np.unpackbits(np.frombuffer(quantspec.to_bytes(record), np.uint8), bitorder="little")


def pieces(scheme: Scheme, held: Sequence[Byte]) -> tuple[Piece, ...]:
    """The pieces of every byte, from its top bit down. Rules PAK-1, PAK-3, PAK-5, VAL-4."""
    found = []
    for byte, bits in enumerate(held):
        marks = [_mark(scheme, held, byte, low) for low in range(8)]
        for _, run in groupby(reversed(range(8)), key=marks.__getitem__):
            lows = list(run)
            kind, field, _ = marks[lows[-1]]
            found.append(Piece(kind, byte, lows[-1], len(lows), field, bits[lows[-1]]))
    return tuple(found)


def _mark(scheme: Scheme, held: Sequence[Byte], byte: int, low: int) -> tuple[Kind, int, object]:
    """Kind, field and holder of a bit: equal for the bits of one piece."""
    bit = held[byte][low]
    if any(other is not None and other.part != "element" for other in held[byte]):
        return "unused" if bit is None else "code", 0, bit and (bit.part, bit.index)
    size, per_word = scheme.store.word_bytes(scheme.value.bits), scheme.store.codes_per_word(scheme.value.bits)
    width = scheme.store.field_bits(scheme.value.bits)
    start, number = byte - byte % size, 8 * (byte % size) + low
    field = number // width
    if bit is not None:
        lower = held[byte][low - 1] if low else None
        return "copy" if lower == bit else "code", field, bit.index
    if field >= per_word:
        return "unused", per_word, None
    used = any(held[start + n // 8][n % 8] is not None for n in range(field * width, (field + 1) * width))
    return ("zero", field, None) if used else ("padding", -1, None)
