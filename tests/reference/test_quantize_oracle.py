"""quantize with chosen scales against the oracle: scale codes, codes and the saturation report.

What comes out is dequantized too.
"""

import itertools
import math
import random
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import (
    REFERENCE,
    Verbs,
    agree,
    all_widened,
    check_bytes,
    check_dequantize,
    check_quantize,
    floats,
    patterns,
)
from ..oracle import INF32, MAX32, NAN32, SIGN32, Q, S, Shape

Table = tuple[int, ...] | None
ELEMENTS = pytest.mark.parametrize(("value", "table"), g.ELEMENTS.values(), ids=g.ELEMENTS)


def seed_of(s: S) -> int:
    """The same data for a scheme in every run."""
    return zlib.crc32(f"{s.value} {s.tensor} {s.block} {s.block_type} {s.table is None}".encode())


def affordable(count: int, table: Table) -> int:
    """A third where the table has 256 entries: the oracle checks all of them for every element."""
    return count // 3 if len(table or ()) == 256 else count


def flat(rows: Sequence[Sequence[int]]) -> list[int]:
    return [p for row in rows for p in row]


def check(x: Sequence[int], shape: Shape, s: S, verbs: Verbs = REFERENCE, **given: Any) -> Q | None:
    """quantize, and dequantize of what came out. The oracle's content, None where both refuse."""
    q = check_quantize(x, shape, s, verbs=verbs, **given)
    if q is not None:
        check_dequantize(q, shape, s, verbs=verbs)
    return q


# ---------------------------------------------------------------- every element, level and scale type


def check_tensor_only(value: str, table: Table, kind: str, count: int, verbs: Verbs = REFERENCE) -> None:
    """Each constructed row is a tensor of its own."""
    s = S(value, "native", tensor=kind, table=table)
    for row in g.Rows(s, seed_of(s)).rows(affordable(count, table)):
        check(row, (16,), s, verbs)


def check_block_only(value: str, table: Table, kind: str, count: int, verbs: Verbs = REFERENCE) -> None:
    """Each constructed row is a block; a shorter last block in a second tensor."""
    s = S(value, "native", block=(16,), block_type=kind, table=table)
    rows = g.Rows(s, seed_of(s)).rows(affordable(count, table))
    check(flat(rows), (len(rows), 16), s, verbs)
    check(flat(rows)[: 16 * 9 + 5], (16 * 9 + 5,), s, verbs)


def check_two_levels(value: str, table: Table, tensor: str, kind: str, count: int, verbs: Verbs = REFERENCE) -> None:
    s = S(value, "native", tensor=tensor, block=(8,), block_type=kind, table=table)
    for rows in g.two_level_tensors(s, seed_of(s), count, affordable(6, table), 8):
        check(flat(rows), (len(rows), 8), s, verbs)


@ELEMENTS
@pytest.mark.parametrize("kind", g.SCALE_TYPES)
def test_tensor_level_only(value: str, table: Table, kind: str) -> None:
    check_tensor_only(value, table, kind, 45)


@ELEMENTS
@pytest.mark.parametrize("kind", g.SCALE_TYPES)
def test_block_level_only(value: str, table: Table, kind: str) -> None:
    check_block_only(value, table, kind, 105)


@ELEMENTS
@pytest.mark.parametrize("tensor", g.SCALE_TYPES)
def test_two_levels(value: str, table: Table, tensor: str) -> None:
    for kind in g.SCALE_TYPES:
        check_two_levels(value, table, tensor, kind, 5)


# ---------------------------------------------------------------- inputs named one by one


TYPE_PAIRS = list(itertools.product(g.SCALE_TYPES, g.SCALE_TYPES))


@pytest.mark.parametrize(("tensor", "kind"), TYPE_PAIRS)
def test_largest_float_under_every_pair_of_types(tensor: str, kind: str) -> None:
    """q2s has H = 1: raw is FLT_MAX itself, far above what any small type holds."""
    for value in ("q2s", "e2m1", "q8f"):
        s = S(value, "native", tensor=tensor, block=(4,), block_type=kind)
        check([MAX32, SIGN32 | MAX32, g.ONE, 0, g.ONE, 1, SIGN32, 0], (2, 4), s)
        check([SIGN32 | MAX32] * 3, (3,), s)
        check([0, 0, 0, 0, MAX32], (5,), s)


@pytest.mark.parametrize("kind", g.SCALE_TYPES)
@ELEMENTS
def test_next_above_the_smallest_power(value: str, table: Table, kind: str) -> None:
    """H * 2^-127 and its neighbours: ue8m0 code 0 or 1."""
    h = oracle.value(oracle.rn32(oracle.H(value, table)))
    edge = oracle.rn32(h / 2**127)
    for peak in g.around([edge], 3):
        for s in (
            S(value, "native", tensor=kind, table=table),
            S(value, "native", block=(2,), block_type=kind, table=table),
        ):
            check([peak, SIGN32 | peak], (2,), s)


@pytest.mark.parametrize("kind", g.SCALE_TYPES)
@ELEMENTS
def test_smallest_blocks(value: str, table: Table, kind: str) -> None:
    """amax from 2^-149 up: raw is 0 before it is made 2^-149."""
    s = S(value, "native", block=(2,), block_type=kind, table=table)
    x = flat([[m, SIGN32 | m // 2] for m in range(120)])
    check(x, (240,), s)
    for tensor in g.SCALE_TYPES:
        check(x[:50], (50,), replace(s, tensor=tensor))


EMPTY_OF_FINITE = {
    "zeros": [0, SIGN32, 0, 0],
    "NaN": [NAN32, SIGN32 | NAN32, 0x7F800001, 0xFFABCDEF],
    "Inf": [INF32, SIGN32 | INF32, INF32, INF32],
    "Inf and one": [INF32, SIGN32 | INF32, g.ONE, NAN32],
    "Inf and zero": [INF32, SIGN32, SIGN32 | INF32, 0],
}


@ELEMENTS
@pytest.mark.parametrize("name", EMPTY_OF_FINITE)
def test_blocks_without_an_amax(value: str, table: Table, name: str) -> None:
    """A zero scale (or ue8m0's smallest): every element of every kind meets it, also where a table has no zero."""
    row = EMPTY_OF_FINITE[name]
    one_level = [*((None, kind) for kind in g.SCALE_TYPES), *((kind, None) for kind in g.SCALE_TYPES)]
    for tensor, kind in (*one_level, *random.Random(f"{value} {name}").sample(TYPE_PAIRS, 8)):
        s = S(value, "native", tensor=tensor, block=None if kind is None else (4,), block_type=kind, table=table)
        if not tensor or not kind or name == "zeros":
            check(row, (4,), s)
        check([*row, g.bits("3.25"), g.ONE, SIGN32, g.bits("-0.1")], (2, 4), s)


@pytest.mark.parametrize("kind", g.SCALE_TYPES)
def test_nf4_far_outside_its_table(kind: str) -> None:
    """Quotients of 1e10 and more: the index is that of the nearest extreme."""
    value, table = g.LOOKUPS["nf4"]
    s = S(value, "native", tensor=kind, table=table)
    x = [g.bits(n) for n in ("1e10", "-1e10", "3e38", "-3e38", "1", "0.99999")]
    check([*x, INF32, SIGN32 | INF32, NAN32], (9,), s, tensor_scale=g.ONE)
    q = oracle.quantize(x[:2], (2,), s, tensor_scale=g.ONE)
    assert q.codes == [15, 0]


def test_minus_one_of_q2_in_native_is_ff() -> None:
    for value in ("q2s", "q2f"):
        s = S(value, "native", tensor="f32")
        x = [g.bits(-1), g.ONE, 0]
        q = check_quantize(x, (3,), s, tensor_scale=g.ONE)
        assert q is not None and q.codes == [0xFF, 1, 0]
        check_bytes(q, (3,), s)
        byte = np.array([3], np.uint8)
        assert agree("03", partial(oracle.decode, value, 3), partial(qs.decode, byte, value)) is None


# ---------------------------------------------------------------- shapes


SHAPES: tuple[Shape, ...] = (
    (), (0,), (1,), (5,), (33,), (40,), (3, 5), (4, 7), (9, 21), (0, 3), (3, 0), (2, 3, 5), (3, 4, 6), (2, 0, 3), (5, 1, 9),
    (2, 2, 3, 5), (1, 1, 1, 7), (2, 3, 2, 2, 3),
)  # fmt: skip
BLOCKS: tuple[Shape | None, ...] = (
    None, (), (2,), (5,), (16,), (2**31 - 1,), (2, 3), (3, 2), (2, 1), (4, 100), (2, 3, 2), (3, 1, 4), (2, 2, 2, 2)
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@ELEMENTS
def test_shapes_blocks_and_stores(value: str, table: Table, shape: Shape) -> None:
    """Partial blocks, N-D blocks, odd lines, several words a line, every packed axis: from numbers to bytes and back."""
    source = random.Random(f"{value} {shape} {table is None}")
    rank, size = len(shape), math.prod(shape)
    blocks = [b for b in BLOCKS if b is None or len(b) <= rank]
    for store, block in zip(("native", "packed_native", "packed_u32"), source.choices(blocks, k=3), strict=True):
        kind = None if block is None else source.choice(g.SCALE_TYPES)
        tensor = source.choice((None, *g.SCALE_TYPES))
        d = 0 if store == "native" else source.randrange(max(rank, 1))
        s = S(value, store, d, tensor, block, kind, table)
        rows = g.Rows(s, source.getrandbits(32)).rows(-(-size // 16) + 1)
        source.shuffle(rows)
        x = flat(rows)[:size]
        q = check(x, shape, s)
        assert q is not None
        check_bytes(q, shape, s)


NAMED_LAYOUTS = {
    "axis swap, several words a line": ((40, 3), S("q4s", "packed_u32", 1, "f32")),
    "axis swap of the first of three": ((5, 3, 4), S("q2f", "packed_native", 2, None, (2, 2), "f16")),
    "N-D grid swap": ((4, 6, 10), S("e2m1", "packed_u32", 1, "f32", (2, 3, 5), "ue4m3")),
    "N-D grid swap of the first": ((6, 5, 9), S("q8s", "packed_u32", 2, None, (4, 2, 4), "bf16")),
    "five six-bit codes in four bytes": ((3, 5), S("e3m2", "packed_u32", 0, None, (5,), "ue8m0")),
    "six six-bit codes in two words": ((6, 2), S("e2m3", "packed_u32", 1, "bf16")),
    "five six-bit codes in six bytes": ((2, 5), S("e2m3", "packed_native", 0, None, (3,), "ue8m0")),
    "a scale an element": ((3, 4), S("q4f", "packed_native", 1, "f16", (), "f32")),
    "a scalar": ((), S("e3m2", "packed_u32", 0, None, (), "ue8m0")),
}


@pytest.mark.parametrize("name", NAMED_LAYOUTS)
def test_named_layouts(name: str) -> None:
    shape, s = NAMED_LAYOUTS[name]
    size = math.prod(shape)
    x = flat(g.Rows(s, seed_of(s)).rows(-(-size // 16)))[:size]
    q = check(x, shape, s)
    assert q is not None
    check_bytes(q, shape, s)


@settings(g.PROPERTY, max_examples=150)
@given(data=st.data(), shape=g.shapes(largest_size=5))
def test_any_numbers_and_scheme(data: st.DataObject, shape: Shape) -> None:
    s = data.draw(g.schemes(len(shape)))
    size = math.prod(shape)
    x = data.draw(st.lists(g.patterns32, min_size=min(size, 40), max_size=min(size, 40)))
    x = [x[i % len(x)] for i in range(size)] if size else []
    check(x, shape, s)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 2, 2, 2, 2, 2)], ids=str)
def test_schemes_that_do_not_fit_are_refused(shape: Shape) -> None:
    """Block rank above the tensor's, a packed axis that is not there, too many extents."""
    for store, d, block in itertools.product(
        ("native", "packed_native", "packed_u32"),
        range(8),
        (None, (2,), (2, 1, 1), (2,) * 5, (2,) * 6, (1, 2, 1, 1, 1, 1), (0, 2)),
    ):
        s = S("q4s", store, d, None, block, None if block is None else "f16")
        x = [g.ONE] * math.prod(shape)
        check_quantize(x, shape, s)


# ---------------------------------------------------------------- inputs of other types and strides


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@ELEMENTS
def test_halves_are_widened(value: str, table: Table, kind: str) -> None:
    """Every NaN, subnormal and Inf of 16 bits among ordinary numbers, given in their own type."""
    chosen = [*range(0, 1 << 16, 257), 0x7C01, 0xFC01, 0x7F81, 0xFFFF, 0x8000, 1, 0x8001]
    source = random.Random(16)
    source.shuffle(chosen)
    wide = [all_widened(kind)[p] for p in chosen]
    for s in (
        S(value, "native", block=(4,), block_type="f16", table=table),
        S(value, "native", tensor="f32", block=(4,), block_type="ue4m3", table=table),
    ):
        assert check_quantize(wide, (len(wide),), s, x=floats(chosen, kind)) is not None


def test_strides_and_byte_orders_change_nothing() -> None:
    s = S("e4m3", "native", tensor="f32", block=(2, 3), block_type="ue8m0")
    x = floats(flat(g.Rows(s, 7).rows(6)), "f32", (8, 12))
    for view in (
        x.T,
        x[::-1],
        x[:, ::-2],
        x[1::3, 2:9],
        x.reshape(4, 2, 12).swapaxes(0, 2),
        x[None, :, 3:4],
        np.asfortranarray(x),
    ):
        for other in (view, view.astype(view.dtype.newbyteorder(">")) if not np.isnan(view).any() else view):
            assert check_quantize(patterns(view), view.shape, s, x=other) is not None
    swapped = x.view(np.uint32).byteswap().view(np.dtype(np.float32).newbyteorder(">" if np.little_endian else "<"))
    assert check_quantize(patterns(x), x.shape, s, x=swapped) is not None
    broadcast = np.broadcast_to(x[0, :3], (4, 3))
    assert check_quantize(patterns(broadcast), (4, 3), s, x=broadcast) is not None


# ---------------------------------------------------------------- tensors that are worked on in parts

PARTED: tuple[tuple[Shape, Shape | None], ...] = (
    ((17,), (4,)), ((17,), None), ((5, 9), (2, 4)), ((5, 9), (3, 1)), ((9, 5), ()), ((3, 4, 5), (2, 3, 2)),
    ((2, 3, 2, 5), (2, 1, 2)),
)  # fmt: skip


@pytest.mark.parametrize("tile", [1, 6, 10, 23])
def test_parts_of_a_tensor_meet_without_a_seam(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference takes large tensors tile by tile: here with tiles of a few elements."""
    monkeypatch.setattr("quantspec.blocks.TILE", tile)
    for (shape, block), tensor in itertools.product(PARTED, (None, "f16")):
        s = S("e2m1", "native", tensor=tensor, block=block, block_type=None if block is None else "bf16")
        size = math.prod(shape)
        assert check(flat(g.Rows(s, size).rows(-(-size // 16)))[:size], shape, s) is not None


LARGE = (
    ((300_000,), (32,)),
    ((70, 3000), (3, 16)),
    ((3000, 70), (16, 1)),
    ((40, 90, 50), (4, 8, 2)),
    ((2, 70_001), (7,)),
)


@pytest.mark.parametrize(("shape", "block"), LARGE, ids=str)
def test_large_tensors_equal_their_parts(shape: Shape, block: Shape) -> None:
    """More elements than one tile: any run of whole blocks alone gives the same codes, scales and numbers."""
    scheme = qs.Scheme("q4s", tensor="f32", block=(block, "f16"))
    source = np.random.default_rng(31)
    x = source.standard_normal(shape, np.float32) * np.exp2(source.integers(-20, 20, shape)).astype(np.float32)
    scale = np.float32(2**-9)
    whole = qs.quantize(x, scheme, tensor_scale=scale)
    numbers = qs.dequantize(whole)
    assert whole.scale_codes is not None
    extents = scheme.extents(len(shape))
    for _ in range(12):
        starts = [int(source.integers(0, -(-n // e))) for n, e in zip(shape, extents, strict=True)]
        cells = tuple(slice(i, i + 5) for i in starts)
        part = tuple(slice(i * e, (i + 5) * e) for i, e in zip(starts, extents, strict=True))
        alone = qs.quantize(x[part], scheme, tensor_scale=scale)
        assert alone.scale_codes is not None
        assert np.array_equal(alone.codes, whole.codes[part])
        assert np.array_equal(alone.scale_codes, whole.scale_codes[cells])
        assert np.array_equal(patterns(qs.dequantize(alone)), patterns(numbers[part]))
