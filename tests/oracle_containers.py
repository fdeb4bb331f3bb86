"""The oracle for containers: rules POL-3 and POL-14 to POL-18, written from their texts alone.

A container is a record with the members of a row of ``presets.toml``. Both directions go through one list that says
for each bit field of the values which code it holds (`places`) and one that says where each scale lies
(`scale_offsets`): writing fills a field of zero bits, reading takes the same fields out and asks that the rest be zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import oracle
from .oracle import BITS, INTEGER_RANGE, SCALE_BYTES, Q, S, Shape, extents, flat, grid, indices, refuse_if


@dataclass(frozen=True)
class K:
    """A container."""

    name: str
    field_order: str = "low"
    bias: str = "none"
    word_order: str = "swapped"
    scale_layout: str = "row-major"
    stream: str = "regions"
    padding: str = "refuse"
    ue4m3_bit7: str = "refuse"
    fields: tuple[int, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> K:
        members: dict[str, Any] = {**row, "fields": tuple(row.get("fields", ()))}
        made = cls(**members)
        refuse_if(
            made.stream == "scale-first" and made.scale_layout == "128x4", "tiles of scales apart from their words"
        )
        return made


CANONICAL = K("canonical")


@dataclass(frozen=True)
class Words:
    """Where codes lie: words in the order of the stream, and of each code (row-major) its word and the bit it starts at.

    A field of a dense container may go on in the next word.
    """

    shape: Shape
    bits: int
    of_code: tuple[tuple[int, int], ...]


def word_bits(s: S) -> int:
    return 8 * oracle.word_format(s)[0]


def check_covered(s: S, shape: Shape, k: K) -> None:
    """Refuse what the fields, the words and the stream of a container do not fit."""
    oracle.check(s, shape)
    n, width, inner = oracle.word_format(s)[1], BITS[s.value], extents(s, len(shape))[-1:] or (1,)
    size = shape[-1] if shape else 1
    whole = s.block is not None and size % inner[0] == 0 and s.d == 0
    what = f"container {k.name} and {s} of shape {shape}"
    refuse_if(k.field_order != "low" and s.store == "native", f"{what}: words of several fields")
    biased = s.value in INTEGER_RANGE and (s.store != "native" or width == 8)
    refuse_if(k.bias == "half" and not biased, f"{what}: fields of integers")
    if k.field_order == "permuted":
        refuse_if(len(k.fields) != n, f"{what}: {len(k.fields)} fields, words of {n}")
    if k.field_order == "split-half":
        refuse_if(s.store != "packed_native" or n != 2 or width * 2 != word_bits(s), f"{what}: pairs of codes")
        refuse_if(not whole or inner[0] % 2 != 0, f"{what}: whole blocks of an even extent")
    fits = s.store == "packed_u32" and k.field_order == "low"
    refuse_if(k.word_order == "dense" and not fits, f"{what}: dense words are of packed_u32, lowest first")
    if k.scale_layout == "128x4":
        refuse_if(s.block_type is None or SCALE_BYTES[s.block_type] != 1 or s.d != 0, f"{what}: scales of one byte")
    if k.stream == "scale-first":
        refuse_if(s.tensor is not None or len(s.block or ()) != 1, f"{what}: one level, of blocks in one axis")
        refuse_if(not whole or inner[0] % n != 0, f"{what}: whole blocks of whole words")


def place(j: int, n: int, k: K, inner: int) -> tuple[int, int]:
    """Word of the line and field of the word of code j of a line."""
    if k.field_order == "split-half":
        block, i = divmod(j, inner)
        return block * (inner // 2) + i % (inner // 2), i // (inner // 2)
    word, i = divmod(j, n)
    if k.field_order == "permuted":
        return word, k.fields.index(i)
    return word, n - 1 - i if k.field_order == "high" else i


@cache
def words(s: S, shape: Shape, k: K) -> Words:
    check_covered(s, shape, k)
    n, width = oracle.word_format(s)[1], BITS[s.value]
    bits = word_bits(s)
    axes = oracle.swap_axes(shape, s)
    stored = tuple(shape[a] for a in axes)
    _lines, length = oracle.line_format(stored)
    dense = k.word_order == "dense"
    a_line = -(-length * width // 32) if dense else -(-length // n)
    inner = (extents(s, len(shape))[-1:] or (1,))[0]
    in_place = k.word_order == "in-place" and s.store != "native" and bool(shape)
    packed = len(shape) - 1 - s.d
    words_shape = (*stored[:-1], a_line)
    if in_place:
        words_shape = (*shape[:packed], a_line, *shape[packed + 1 :])
    of_code = []
    for index in indices(shape):
        swapped = tuple(index[a] for a in axes)
        line, j = (flat(swapped[:-1], stored[:-1]), swapped[-1]) if shape else (0, 0)
        if dense:
            word, bit = divmod(j * width, 32)
        else:
            word, field = place(j, n, k, inner)
            bit = field * width
        where = flat((*index[:packed], word, *index[packed + 1 :]), words_shape) if in_place else line * a_line + word
        of_code.append((where, bit))
    return Words(words_shape, bits, tuple(of_code))


def field_of(code: int, s: S, k: K) -> int:
    width = BITS[s.value]
    half = 1 << (width - 1) if k.bias == "half" else 0
    return (code + half) % (1 << width)


def code_of(field: int, s: S, k: K) -> int:
    width = BITS[s.value]
    return oracle.extend(
        s.value, (field - (2 ** (width - 1) if k.bias == "half" else 0)) % 2**width, s.table is not None
    )


def pack(codes: Sequence[int], shape: Shape, s: S, k: K) -> list[int]:
    layout = words(s, shape, k)
    result = [0] * math.prod(layout.shape)
    for code, (word, bit) in zip(codes, layout.of_code, strict=True):
        oracle.check_code(s.value, code, s.table is not None)
        if s.store == "native":
            result[word] = code if k.bias == "none" else field_of(code, s, k)
            continue
        field = field_of(code, s, k) << bit
        result[word] |= field % 2**layout.bits
        if field >> layout.bits:
            result[word + 1] |= field >> layout.bits
    return result


def unpack(given: Sequence[int], shape: Shape, s: S, k: K, padding: str = "refuse") -> list[int]:
    layout, width = words(s, shape, k), BITS[s.value]
    refuse_if(len(given) != math.prod(layout.shape), f"{len(given)} words, expected {math.prod(layout.shape)}")
    codes = []
    for word, bit in layout.of_code:
        if s.store == "native" and k.bias == "none":
            oracle.check_code(s.value, given[word], s.table is not None)
            codes.append(given[word])
            continue
        both = given[word] | (given[word + 1] << layout.bits if bit + width > layout.bits else 0)
        codes.append(code_of(both >> bit & 2**width - 1, s, k))
    if padding == "refuse" and k.padding == "refuse":
        refuse_if(pack(codes, shape, s, k) != list(given), "padding or unused bits are not zero")
    return codes


# ---------------------------------------------------------------- bytes


def stored_grid(s: S, shape: Shape, k: K) -> list[int]:
    """Places (row-major, tensor axes) of the scales in the order of the stream."""
    cells = grid(shape, s)
    axes = oracle.swap_axes(shape, s)
    if k.word_order == "in-place":
        axes = list(range(len(shape)))
    return oracle.transposed(range(math.prod(cells)), cells, axes)[0]


def tile_offset(r: int, c: int, columns: int) -> int:
    return ((r // 128) * -(-columns // 4) + c // 4) * 512 + (r % 32) * 16 + ((r % 128) // 32) * 4 + c % 4


def scale_region(s: S, shape: Shape, k: K) -> tuple[list[int], int]:
    """Byte offset in its region of each block scale (row-major, tensor axes), and the bytes of the region."""
    cells = grid(shape, s)
    count, size = math.prod(cells), SCALE_BYTES[s.block_type or "f32"]
    if k.scale_layout == "128x4":
        columns = cells[-1] if cells else 1
        rows = math.prod(cells[:-1])
        length = -(-rows // 128) * -(-columns // 4) * 512
        return [tile_offset(*divmod(i, columns), columns) for i in range(count)], length
    offsets = [0] * count
    for position, i in enumerate(stored_grid(s, shape, k)):
        offsets[i] = position * size
    return offsets, count * size


def value_and_scale_offsets(s: S, shape: Shape, k: K) -> tuple[list[int], list[int], int]:
    """Byte offset of each word, of each block scale, and the length of both regions."""
    layout, size = words(s, shape, k), word_bits(s) // 8
    count = math.prod(layout.shape)
    if s.block_type is None:
        return [i * size for i in range(count)], [], count * size
    scale_bytes = SCALE_BYTES[s.block_type]
    if k.stream == "scale-first":
        extent, n = extents(s, len(shape))[-1] if shape else 1, oracle.word_format(s)[1]
        run = extent // n
        block = scale_bytes + run * size
        offsets = [i // run * block + scale_bytes + i % run * size for i in range(count)]
        scales = [i * block for i in range(math.prod(grid(shape, s)))]
        return offsets, scales, count * size + len(scales) * scale_bytes
    in_region, length = scale_region(s, shape, k)
    return [i * size for i in range(count)], [count * size + o for o in in_region], count * size + length


def byte_length(s: S, shape: Shape, k: K) -> int:
    return value_and_scale_offsets(s, shape, k)[2] + (SCALE_BYTES[s.tensor] if s.tensor is not None else 0)


def to_bytes(q: Q, shape: Shape, s: S, k: K) -> bytes:
    oracle.check_content(q, shape, s)
    of_word, of_scale, end = value_and_scale_offsets(s, shape, k)
    data = bytearray(byte_length(s, shape, k))

    def put(offset: int, size: int, number: int) -> None:
        data[offset : offset + size] = number.to_bytes(size, "little")

    for offset, word in zip(of_word, pack(q.codes, shape, s, k), strict=True):
        put(offset, word_bits(s) // 8, word)
    for offset, code in zip(of_scale, q.scale_codes or (), strict=True):
        put(offset, SCALE_BYTES[s.block_type or "f32"], code)
    if s.tensor is not None and q.tensor_scale_code is not None:
        put(end, SCALE_BYTES[s.tensor], q.tensor_scale_code)
    return bytes(data)


def from_bytes(data: bytes, shape: Shape, s: S, k: K, padding: str = "refuse", ue4m3_bit7: str = "refuse") -> Q:
    expected = byte_length(s, shape, k)
    refuse_if(len(data) != expected, f"{len(data)} bytes, expected {expected}")
    of_word, of_scale, end = value_and_scale_offsets(s, shape, k)
    bit7 = "ignore" if "ignore" in (ue4m3_bit7, k.ue4m3_bit7) else "refuse"
    size = word_bits(s) // 8
    given = [int.from_bytes(data[o : o + size], "little") for o in of_word]
    q = Q(unpack(given, shape, s, k, padding))
    if s.block_type is not None:
        size = SCALE_BYTES[s.block_type]
        q.scale_codes = [oracle.read_scales(data[o : o + size], s.block_type, bit7)[0] for o in of_scale]
        if k.scale_layout == "128x4" and padding == k.padding == "refuse":
            padded = set(range(end - scale_region(s, shape, k)[1], end)) - set(of_scale)
            refuse_if(any(data[o] for o in padded), "padding of the tiles of scales is not zero")
    if s.tensor is not None:
        q.tensor_scale_code = oracle.read_scales(data[end:], s.tensor, bit7)[0]
    return q
