"""Codecs against the oracle: every row over every format, every combination of members, refusals. POL-2, POL-11 to POL-13."""

import itertools
import tomllib
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle, oracle_codecs
from .. import strategies as g
from ..bridge import Mismatch, agree, floats, patterns, require_bits
from ..oracle import INF32, SIGN32
from ..oracle_codecs import MEMBERS, C

ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in tomllib.loads((files(qs) / "presets.toml").read_text("utf-8"))["codec"]
}
BY_THRESHOLDS = tuple(name for name, row in ROWS.items() if row.get("rounding") == "thresholds")
FP4 = tuple(
    oracle_codecs.pattern_of(sign + number)
    for sign in ("", "-")
    for number in ("0x0p+0", "0x1.555556p-8", "0x1.555556p-1", "0x1p+0", "0x1.555556p-2", "0x1p-1", "0x1.555556p-3", "0x1p-2")
)  # fmt: skip
LOOKUPS = {**g.LOOKUPS, "fp4": g.Lookup("q4f", FP4)}

Encode = Callable[..., Any]


@cache
def inputs(value: str) -> tuple[int, ...]:
    """Every number of the format, every tie, what lies beyond, each with its neighbours; zeros, tiny, huge, NaN, Inf."""
    edges = {*g.thresholds(value), *g.around(g.POWERS[::7]), *g.SPECIAL, *g.random_patterns(13, 100)}
    return tuple(sorted({p ^ sign for p in edges for sign in (0, SIGN32)}))


def lookup_inputs(value: str, table: tuple[int, ...], codec: C) -> tuple[int, ...]:
    """The same for a table, and every threshold of the codec with its neighbours on both sides of zero."""
    turns = {*g.around(codec.thresholds, 2), *table, *g.thresholds(value, table), *g.SPECIAL, *g.around(g.POWERS[::7])}
    return tuple(sorted({p ^ sign for p in turns for sign in (0, SIGN32)}))


def check_row(value: str, name: str, encode: Encode = qs.encode, decode: Encode = qs.decode) -> None:
    """One codec over one format: every code, every edge."""
    codec = C.of(ROWS[name])
    codes, numbers = oracle.valid_codes(value), inputs(value)
    expected = [oracle_codecs.encode(value, p, codec) for p in numbers]
    require_bits(f"{name} {value} encode", expected, encode(floats(numbers), value, codec=name), numbers)
    expected = [oracle_codecs.decode(value, code, codec) for code in codes]
    require_bits(f"{name} {value} decode", expected, decode(np.array(codes, np.uint8), value, codec=name), codes)


def check_lookup(name: str, lookup: str, encode: Encode = qs.encode) -> bool:
    """One codec over one table: refused on both sides, or the same codes. True where it is covered."""
    codec, (value, table) = C.of(ROWS[name]), LOOKUPS[lookup]
    numbers = lookup_inputs(value, table, codec)
    both = agree(
        f"{name} {lookup}",
        lambda: [oracle_codecs.encode(value, p, codec, table) for p in numbers],
        lambda: encode(floats(numbers), value, table=floats(table), codec=name),
    )
    if both is not None:
        require_bits(f"{name} {lookup}", both[0], both[1], numbers)
        codes = oracle.valid_codes(value, lookup=True)
        expected = [oracle_codecs.decode(value, code, codec, table) for code in codes]
        decoded = qs.decode(np.array(codes, np.uint8), value, table=floats(table), codec=name)
        require_bits(f"{name} {lookup} decode", expected, decoded, codes)
    return both is not None


@pytest.mark.parametrize("name", [name for name in ROWS if name not in BY_THRESHOLDS])
@pytest.mark.parametrize("value", g.VALUES)
def test_every_row_over_every_format(value: str, name: str) -> None:
    check_row(value, name)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_over_tables(name: str) -> None:
    covered = [lookup for lookup in LOOKUPS if check_lookup(name, lookup)]
    assert bool(covered) == (C.of(ROWS[name]).rounding in ("even", "thresholds"))


@pytest.mark.parametrize("name", BY_THRESHOLDS)
@pytest.mark.parametrize("value", g.VALUES)
def test_thresholds_are_refused_in_symmetric_mode(value: str, name: str) -> None:
    codec = C.of(ROWS[name])
    assert (
        agree(name, partial(oracle_codecs.encode, value, 0, codec), partial(qs.encode, [0.0], value, codec=name))
        is None
    )
    code = np.array([0], np.uint8)
    assert (
        agree(name, partial(oracle_codecs.decode, value, 0, codec), partial(qs.decode, code, value, codec=name)) is None
    )


COMBINATIONS = [
    dict(zip(MEMBERS, members, strict=True))
    for members in itertools.product(*MEMBERS.values())
    if members[0] != "thresholds"
]


def check_combination(value: str, members: dict[str, str], numbers: Sequence[int], encode: Encode = qs.encode) -> None:
    given: dict[str, Any] = dict(members)
    row, codec = qs.Codec("drawn", **given), C("drawn", **given)
    what = f"{value} {members}"
    require_bits(
        what, [oracle_codecs.encode(value, p, codec) for p in numbers], encode(floats(numbers), value, codec=row)
    )
    codes = oracle.valid_codes(value)
    decoded = qs.decode(np.array(codes, np.uint8), value, codec=row)
    require_bits(what, [oracle_codecs.decode(value, code, codec) for code in codes], decoded, codes)


@pytest.mark.parametrize("value", ("e4m3", "e5m2", "e2m1", "e2m3", "q4s", "q2f"))
def test_every_combination_of_members(value: str) -> None:
    """Each combination meets zeros, NaNs, infinities, ties of both parities and both signs, and the end of the range."""
    top = g.entries(value)[-1]
    ties = [*g.midpoints(value)[:3], *g.midpoints(value)[-3:], g.bits(top), g.bits(top * 9 / 8), g.bits(top * 2)]
    numbers = [p for tie in (*ties, 0, 1, INF32, 0x7FC00000) for p in (tie, tie ^ SIGN32)]
    for members in COMBINATIONS[:: 1 if value == "e4m3" else 7]:
        check_combination(value, members, numbers)


@settings(g.PROPERTY, max_examples=60)
@given(
    value=st.sampled_from(g.VALUES),
    members=st.sampled_from(COMBINATIONS),
    numbers=st.lists(g.patterns32, min_size=1, max_size=12),
)
def test_any_codec_of_any_numbers(value: str, members: dict[str, str], numbers: list[int]) -> None:
    check_combination(value, members, numbers)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_without_a_meaning_is_refused(member: str) -> None:
    with pytest.raises(qs.UnsupportedError):
        qs.encode([1.0], "e4m3", codec=qs.Codec.read({"name": "drawn", member: "nearest"}))


# ---------------------------------------------------------------- liars


def instead(name: str) -> Encode:
    """encode by another codec than the one asked for."""

    def encode(x: Any, value: str, *, codec: str, **table: Any) -> Any:
        return qs.encode(x, value, codec=name, **table)

    return encode


def masked(change: Callable[[int], int]) -> Encode:
    """encode of changed numbers."""

    def encode(x: Any, value: str, **more: Any) -> Any:
        return qs.encode(floats([change(p) for p in patterns(x)]), value, **more)

    return encode


LIARS: dict[str, tuple[str, str, Encode]] = {
    "ties to even for ties away": ("q8s", "ties-away", instead("canonical")),
    "ties away for ties toward zero": ("e2m1", "ties-toward-zero", instead("ties-away")),
    "floor of x + 1/2 for the floor": ("q4f", "ggml-q4_0", instead("ties-away")),
    "saturated where it overflows": ("e4m3", "ml-dtypes", instead("canonical")),
    "NaN keeps its sign": ("e5m2", "ptx", instead("canonical")),
    "NaN is zero": ("e2m1", "ptx", instead("canonical")),
    "the other zero of a NaN": ("e2m1", "ml-dtypes", instead("burn-cube")),
    "NaN of integers": ("q8f", "onnx", instead("burn-cube")),
    "-0 is written": ("e2m1", "compressed-tensors", instead("canonical")),
    "underflow loses its sign": ("e2m1", "compressed-tensors", instead("mlx-fp4")),
    "one step too large": ("e2m3", "canonical", masked(lambda p: p + 1 if 0 < p < INF32 - 1 else p)),
}  # fmt: skip


@pytest.mark.parametrize("liar", LIARS)
def test_an_encode_that_lies_is_caught(liar: str) -> None:
    value, name, encode = LIARS[liar]
    with pytest.raises(Mismatch):
        check_row(value, name, encode)


def test_a_decode_that_lies_is_caught() -> None:
    with pytest.raises(Mismatch):
        check_row("e2m1", "ggml-mxfp4", decode=lambda codes, value, codec: qs.decode(codes, value))


@pytest.mark.parametrize("name", BY_THRESHOLDS)
def test_thresholds_that_lie_are_caught(name: str) -> None:
    """A number on a threshold taken for one above it."""
    on = set(C.of(ROWS[name]).thresholds)
    lookup = "nf4" if name == "bnb-nf4" else "fp4"
    with pytest.raises(Mismatch):
        check_lookup(name, lookup, masked(lambda p: g.stepped(p, 1) if p in on else p))
