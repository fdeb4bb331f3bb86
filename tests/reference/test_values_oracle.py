"""encode and decode of every value format and of lookup tables against the oracle."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import REFERENCE, Mismatch, Verbs, agree, all_widened, floats, patterns, require_bits, require_same

Table = tuple[int, ...] | None

FORMATS: dict[str, tuple[str, Table]] = {**{value: (value, None) for value in g.VALUES}, **g.LOOKUPS}


@cache
def points(value: str, table: Table) -> tuple[int, ...]:
    """Thresholds of a format, special numbers, powers of two and random patterns, with signs and neighbours."""
    found = [*g.thresholds(value, table), *g.SPECIAL, *g.around(g.POWERS), *g.random_patterns(1, 2048)]
    return tuple(sorted({p ^ sign for p in found for sign in (0, oracle.SIGN32)}))


@cache
def expected_codes(value: str, table: Table) -> tuple[int, ...]:
    return tuple(oracle.encode(value, p, table) for p in points(value, table))


def check_points(value: str, table: Table, verbs: Verbs = REFERENCE) -> None:
    inputs = points(value, table)
    lookup = None if table is None else floats(table)
    codes = verbs.encode(floats(inputs), value, table=lookup)
    require_same("dtype", np.dtype(np.uint8), codes.dtype)
    require_bits(f"encode {value} {table}", expected_codes(value, table), codes, inputs)


def check_decode(value: str, table: Table, verbs: Verbs = REFERENCE) -> None:
    """All 256 bytes: each decoded on both sides, or refused on both."""
    lookup = None if table is None else qs.Table.of(floats(table))  # once: 256 calls would each find the thresholds
    for code in range(256):
        what = f"decode {value} {table} of {code:02x}"
        byte = np.array([code], np.uint8)
        both = agree(what, partial(oracle.decode, value, code, table), partial(verbs.decode, byte, value, table=lookup))
        if both is not None:
            require_bits(what, [both[0]], both[1])


@pytest.mark.parametrize(("value", "table"), FORMATS.values(), ids=FORMATS)
class TestEveryFormat:
    def test_decode_of_every_byte(self, value: str, table: Table) -> None:
        check_decode(value, table)

    def test_decode_of_all_legal_bytes_at_once(self, value: str, table: Table) -> None:
        legal = oracle.valid_codes(value, table is not None)
        array = np.array(legal, np.uint8)
        decoded = qs.decode(array, value, table=None if table is None else floats(table))
        require_bits(f"decode {value}", [oracle.decode(value, code, table) for code in legal], decoded)

    def test_encode_of_thresholds_and_their_neighbours(self, value: str, table: Table) -> None:
        check_points(value, table)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", [*g.VALUES, "nf4", "signed zeros", "one side, no zero", "far apart", "scattered"])
def test_encode_of_every_half_number(name: str, kind: str) -> None:
    """All 65536 numbers of a 16-bit type, given in that type: the widening is under test too."""
    value, table = FORMATS[name]
    every = range(1 << 16) if len(table or ()) < 256 else range(0, 1 << 16, 5)
    wide = [all_widened(kind)[p] for p in every]
    codes = qs.encode(floats(every, kind), value, table=None if table is None else floats(table))
    require_bits(f"encode {name} from {kind}", [oracle.encode(value, w, table) for w in wide], codes, wide)
    same = qs.encode(floats(wide), value, table=None if table is None else floats(table))
    assert np.array_equal(codes, same)


def test_two_numbers_of_a_code_apart_every_code_is_reached() -> None:
    """The data is worth its name: each code that encode can give is among the expected ones, below-range q*s apart."""
    for value in g.VALUES:
        reached = set(expected_codes(value, None))
        legal = set(oracle.valid_codes(value))
        unreachable = {c for c in legal if c not in reached}
        for code in unreachable:
            number = oracle.decode(value, code)
            special = not oracle.is_finite(number)
            below_range = (
                value in oracle.INTEGER_RANGE and value.endswith("s") and code == 256 - 2 ** (oracle.BITS[value] - 1)
            )
            assert special or below_range, (value, code)


tables4 = st.lists(g.finite32, min_size=4, max_size=4).filter(lambda t: any(not oracle.is_zero(e) for e in t))


@settings(g.PROPERTY, max_examples=300)
@given(table=tables4, value=st.sampled_from(("q2f", "q2s")), extra=st.lists(g.patterns32, max_size=20))
def test_any_table_of_four(table: list[int], value: str, extra: list[int]) -> None:
    """Entries in any order, equal or not, of any size: the lowest index of the nearest, in exact arithmetic."""
    inputs = [*g.thresholds(value, tuple(table)), *extra, *g.SPECIAL]
    codes = qs.encode(floats(inputs), value, table=floats(table))
    require_bits(f"encode {table}", [oracle.encode(value, x, table) for x in inputs], codes, inputs)
    require_bits(f"decode {table}", table, qs.decode(np.arange(4, dtype=np.uint8), value, table=floats(table)))


@settings(g.PROPERTY, max_examples=25)
@given(
    seed=g.seeds,
    size=st.sampled_from((16, 256)),
    pool=st.lists(g.finite32.filter(lambda p: p << 1 != 0), min_size=1, max_size=40),
)
def test_any_large_table(seed: int, size: int, pool: list[int]) -> None:
    """4 and 8 bits: entries drawn with repetition from a pool, with neighbours and zeros among them."""
    source = random.Random(seed)
    wide = [p for p in [*g.around(pool), 0, oracle.SIGN32] if oracle.is_finite(p)]
    table = (pool[0], *(source.choice(wide) for _ in range(size - 1)))
    value = source.choice(("q4f", "q4s")) if size == 16 else source.choice(("q8f", "q8s"))
    inputs = source.sample(g.thresholds(value, table), k=min(300, len(g.thresholds(value, table))))
    codes = qs.encode(floats(inputs), value, table=floats(table))
    require_bits(f"encode {table}", [oracle.encode(value, x, table) for x in inputs], codes, inputs)


BAD_TABLES = {
    "empty": (),
    "zeros": (0,) * 4,
    "zeros of both signs": (0, oracle.SIGN32) * 2,
    "three": (g.ONE,) * 3,
    "five": (g.ONE,) * 5,
    "Inf": (g.ONE, oracle.INF32) * 2,
    "NaN": (g.ONE, oracle.NAN32) * 2,
}


@pytest.mark.parametrize("table", BAD_TABLES.values(), ids=BAD_TABLES)
@pytest.mark.parametrize("value", ["q2s", "q4f", "e2m1"])
def test_tables_that_both_refuse(value: str, table: tuple[int, ...]) -> None:
    entries, byte = floats(table), np.zeros(1, np.uint8)
    assert (
        agree("encode", partial(oracle.encode, value, 0, table), partial(qs.encode, floats([0]), value, table=entries))
        is None
    )
    assert (
        agree("decode", partial(oracle.decode, value, 0, table), partial(qs.decode, byte, value, table=entries)) is None
    )


# ---------------------------------------------------------------- liars


Encode = Callable[..., Any]


def nudged(step: Callable[[int], int]) -> Encode:
    """encode of inputs moved by a step: what a rounding with other ties, or with less precision, amounts to."""

    def encode(x: Any, value: str, **options: Any) -> Any:
        return qs.encode(floats([step(p) if oracle.is_finite(p) else p for p in patterns(x)]), value, **options)

    return encode


def remapped(source: Callable[[int], bool], code: int) -> Encode:
    """encode that gives one code to some inputs."""

    def encode(x: Any, value: str, **options: Any) -> Any:
        codes = qs.encode(x, value, **options)
        codes[np.array([source(p) for p in patterns(x)], bool)] = code
        return codes

    return encode


def away(p: int) -> int:
    return p + 1 if p & 0x7FFFFFFF < oracle.MAX32 else p


def toward_zero(p: int) -> int:
    return p - 1 if not oracle.is_zero(p) else p


def flushed(p: int) -> int:
    return p & oracle.SIGN32 if p & 0x7F800000 == 0 else p


def upward(p: int) -> int:
    return g.stepped(p, 1) if not oracle.is_zero(p) else p


def negative_nan(p: int) -> bool:
    return oracle.is_nan(p) and p >= oracle.SIGN32


def decode_with_payload(codes: Any, value: str, **options: Any) -> Any:
    decoded = qs.decode(codes, value, **options)
    return floats([p | 1 if oracle.is_nan(p) else p for p in patterns(decoded)])


def decode_any_byte(codes: Any, value: str, **options: Any) -> Any:
    return qs.decode(codes & (2 ** oracle.BITS[value] - 1), value, **options)


LIARS: dict[str, tuple[str, Encode]] = {
    "ties away": ("q4s", nudged(away)),
    "ties away, minifloat": ("e2m1", nudged(away)),
    "ties toward zero": ("e4m3", nudged(toward_zero)),
    "ties up": ("q8s", nudged(upward)),
    "subnormal inputs flushed, lookup": ("scattered", nudged(flushed)),
    "sign of NaN lost": ("e4m3", remapped(negative_nan, 0x7F)),
    "NaN of e5m2 is 7F": ("e5m2", remapped(lambda p: oracle.is_nan(p) and p < oracle.SIGN32, 0x7F)),
    "-0 lost": ("e2m1", remapped(lambda p: p == oracle.SIGN32, 0)),
    "Inf overflows": ("e5m2", remapped(lambda p: p == oracle.INF32, 0x7C)),
    "NaN is -0": ("e2m3", remapped(negative_nan, 0x20)),
    "NaN saturates": ("q4f", remapped(oracle.is_nan, 7)),
    "NaN is index 0": ("nf4", remapped(oracle.is_nan, 0)),
    "highest of equal entries": ("signed zeros", remapped(oracle.is_zero, 2)),
    "Inf is the entry nearest 0": ("one side, no zero", remapped(lambda p: p == oracle.INF32, 3)),
    "lookup ties up": ("nf4", nudged(upward)),
}


@pytest.mark.parametrize("name", LIARS)
def test_an_encode_that_lies_is_caught(name: str) -> None:
    format_name, lie = LIARS[name]
    with pytest.raises(Mismatch):
        check_points(*FORMATS[format_name], verbs=replace(REFERENCE, encode=lie))


def test_lookup_in_float_arithmetic_is_caught() -> None:
    """The nearest entry by rounded differences is not the nearest entry."""

    def encode(x: Any, value: str, *, table: Any) -> Any:
        with np.errstate(all="ignore"):
            distance = np.abs(np.asarray(x, np.float32)[:, None] - table[None, :])
        return np.where(np.isfinite(x), np.argmin(distance, axis=1), qs.encode(x, value, table=table)).astype(np.uint8)

    for name in ("neighbours", "far apart", "scattered"):
        with pytest.raises(Mismatch):
            check_points(*FORMATS[name], verbs=replace(REFERENCE, encode=encode))


@pytest.mark.parametrize(
    ("value", "lie"), [("e4m3", decode_with_payload), ("q4s", decode_any_byte), ("e3m2", decode_any_byte)]
)
def test_a_decode_that_lies_is_caught(value: str, lie: Callable[..., Any]) -> None:
    with pytest.raises(Mismatch):
        check_decode(value, None, replace(REFERENCE, decode=lie))


def test_agreement_needs_both_outcomes() -> None:
    def refuse() -> Sequence[int]:
        raise qs.QuantspecError("VAL-5", "no")

    with pytest.raises(Mismatch):
        agree("one refuses", lambda: [1], refuse)
    with pytest.raises(Mismatch):
        agree("the other refuses", lambda: oracle.decode("e2m1", 0x40), lambda: 1)
