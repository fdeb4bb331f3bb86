"""Containers against the oracle: words and bytes both ways, padding, lengths, conversion, refusals. POL-3, POL-14 to POL-18."""

import itertools
import random
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle, oracle_containers
from .. import strategies as g
from ..bridge import Mismatch, agree, reference_scheme, reference_tensor, require_bits, require_content, require_same
from ..oracle import S, Shape
from ..oracle_containers import K

ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row for row in tomllib.loads((files(qs) / "presets.toml").read_text("utf-8"))["container"]
}
STORES = (
    ("native", 0),
    ("packed_native", 0),
    ("packed_native", 1),
    ("packed_u32", 0),
    ("packed_u32", 1),
    ("packed_u32", 2),
)
LEVELS: tuple[dict[str, Any], ...] = (
    {"tensor": "f32"},
    {"block": (4,), "block_type": "f16"},
    {"block": (8,), "block_type": "ue8m0", "tensor": "ue4m3"},
    {"block": (32,), "block_type": "ue4m3"},
    {"block": (2, 6), "block_type": "ue4m3", "tensor": "f32"},
    {"block": (3,), "block_type": "bf16"},
    {"block": (), "block_type": "ue8m0"},
)
SHAPES: tuple[Shape, ...] = (
    (),
    (0,),
    (1,),
    (7,),
    (8,),
    (32,),
    (3, 5),
    (2, 16),
    (9, 32),
    (2, 3, 8),
    (3, 0, 4),
    (2, 2, 3, 4),
)

ToBytes = Callable[..., bytes]


@cache
def cases() -> tuple[tuple[S, Shape], ...]:
    """Schemes of every width, store and sort of levels, at every shape that they fit; a third of them."""
    found = []
    values = ("q8s", "q4f", "q2s", "e2m1", "e3m2")
    for i, (value, (store, d), levels, shape) in enumerate(itertools.product(values, STORES, LEVELS, SHAPES)):
        s = S(value, store, d, **levels)
        fits = d < max(len(shape), 1) and len(s.block or ()) <= len(shape)
        if fits and (i % 3 == 0 or ("block" in levels and len(shape) in (1, 2))):
            found.append((s, shape))
    return tuple(found)


def check(
    s: S, shape: Shape, k: K, row: qs.Container | str, source: random.Random, to_bytes: ToBytes = qs.to_bytes
) -> bool:
    """One container over one scheme and shape; False where both sides refuse."""
    q, what = g.content(s, shape, source), f"{k} {s} {shape}"
    scheme, tensor = reference_scheme(s), reference_tensor(q, shape, s)
    both = agree(what, lambda: oracle_containers.to_bytes(q, shape, s, k), lambda: to_bytes(tensor, container=row))
    packed = agree(what, lambda: oracle_containers.pack(q.codes, shape, s, k), lambda: qs.pack(tensor, container=row))
    size = agree(what, lambda: oracle_containers.byte_length(s, shape, k), lambda: qs.byte_count(scheme, shape, row))
    require_same(f"{what}: refusals", both is None, size is None)
    if both is None or packed is None or size is None:
        return False
    require_same(f"{what}: length", size[0], size[1])
    require_same(
        f"{what}: words_shape", oracle_containers.words(s, shape, k).shape or (1,), qs.words_shape(scheme, shape, row)
    )
    require_bits(f"{what}: words", packed[0], packed[1].words)
    require_same(f"{what}: bytes", both[0].hex(), both[1].hex())
    back = qs.split(both[0], scheme, shape, container=row)
    require_content(f"{what}: split", q, back, shape, s)
    require_content(f"{what}: unpack", q, qs.unpack(qs.convert(packed[1], "canonical")), shape, s)
    again = qs.convert(qs.convert(packed[1], "canonical"), row)
    require_bits(f"{what}: there and back", packed[0], again.words)
    return True


def flipped(data: bytes, source: random.Random) -> bytes:
    """One bit turned over, or one byte drawn."""
    at, changed = source.randrange(len(data)), bytearray(data)
    changed[at] = changed[at] ^ 1 << source.randrange(8) if source.random() < 0.6 else source.randrange(256)
    return bytes(changed)


def check_reading(data: bytes, s: S, shape: Shape, k: K, row: qs.Container | str, **ignore: str) -> None:
    """Bytes that may be dirty: the same content, or refused on both sides."""
    what = f"{k} {s} {shape} {data.hex()} {ignore}"
    read = partial(qs.split, data, reference_scheme(s), shape, container=row, **ignore)  # type: ignore[arg-type]
    both = agree(what, lambda: oracle_containers.from_bytes(data, shape, s, k, **ignore), read)
    if both is not None:
        require_content(what, both[0], both[1], shape, s)


def draws(name: str, count: int) -> Iterator[tuple[S, Shape, random.Random]]:
    source = random.Random(name)
    for s, shape in source.sample(cases(), min(count, len(cases()))):
        yield s, shape, source


def check_row(name: str, to_bytes: ToBytes = qs.to_bytes, count: int = 400) -> int:
    k = K.of(ROWS[name])
    return sum(check(s, shape, k, name, source, to_bytes) for s, shape, source in draws(name, count))


@pytest.mark.parametrize("name", ROWS)
def test_every_row_over_schemes_and_shapes(name: str) -> None:
    assert check_row(name) > 0


@pytest.mark.parametrize("name", ROWS)
def test_dirty_bytes_of_every_row(name: str) -> None:
    k = K.of(ROWS[name])
    for s, shape, source in draws(name, 300):
        try:
            data = oracle_containers.to_bytes(g.content(s, shape, source), shape, s, k)
        except oracle.Refused:
            continue
        for i in range(3 if data else 0):
            changed = flipped(data, source)
            check_reading(changed, s, shape, k, name)
            check_reading(changed, s, shape, k, name, padding="ignore")
            if i == 0:
                check_reading(changed, s, shape, k, name, ue4m3_bit7="ignore")
                check_reading(data[:-1], s, shape, k, name)
                check_reading(data + b"\0", s, shape, k, name)


TILED = [
    (S("e2m1", "packed_native", 0, "f32", (2,), "ue4m3"), shape)
    for shape in ((129, 10), (128, 8), (1, 1), (5, 40), (2, 65, 7), (33, 9), (0, 4))
] + [
    (S("e4m3", "native", 0, None, (1, 2), "ue8m0"), (130, 3)),
    (S("q4s", "packed_u32", 0, None, (2, 2), "ue4m3"), (300, 6)),
]


@pytest.mark.parametrize(("s", "shape"), TILED)
def test_tiles_of_scales(s: S, shape: Shape) -> None:
    """More rows than a tile has, more columns, fewer; a stray bit anywhere in the padding."""
    k, source = K.of(ROWS["cublas-128x4"]), random.Random(16)
    assert check(s, shape, k, k.name, source)
    data = oracle_containers.to_bytes(g.content(s, shape, source), shape, s, k)
    for _ in range(6 if data else 0):
        check_reading(flipped(data, source), s, shape, k, k.name)


MEMBERS = {
    "field_order": ("low", "high", "split-half", "permuted"),
    "bias": ("none", "half"),
    "word_order": ("swapped", "in-place", "dense"),
    "scale_layout": ("row-major", "128x4"),
    "stream": ("regions", "scale-first"),
    "padding": ("refuse", "ignore"),
    "ue4m3_bit7": ("refuse", "ignore"),
}


@settings(g.PROPERTY, max_examples=300)
@given(
    case=st.integers(0, len(cases()) - 1),
    members=st.fixed_dictionaries({name: st.sampled_from(choices) for name, choices in MEMBERS.items()}),
    seed=st.integers(0, 2**32),
)
def test_any_container(case: int, members: dict[str, str], seed: int) -> None:
    """Any members together, over any case: covered by both or by neither."""
    (s, shape), source = cases()[case], random.Random(seed)
    n = oracle.word_format(s)[1]
    fields = tuple(source.sample(range(n), n)) if members["field_order"] == "permuted" else ()
    row = {"name": "drawn", **members, **({"fields": list(fields)} if fields else {})}
    made = agree(f"{row}", lambda: K.of(row), lambda: qs.Container.read(row))
    if made is not None and check(s, shape, made[0], made[1], source):
        data = oracle_containers.to_bytes(g.content(s, shape, source), shape, s, made[0])
        if data:
            check_reading(flipped(data, source), s, shape, made[0], made[1])


# ---------------------------------------------------------------- liars


def nibbles_swapped(tensor: Any, *, container: str) -> bytes:
    return bytes((byte >> 4 | byte << 4) & 0xFF for byte in qs.to_bytes(tensor, container=container))


def words_reversed(tensor: Any, *, container: str) -> bytes:
    data = qs.to_bytes(tensor, container=container)
    return data[3::-1] + data[4:] if len(data) > 4 else data


def instead(name: str, **members: Any) -> ToBytes:
    """The bytes of another container than the one asked for."""
    row = replace(qs.CONTAINERS[name], **members)
    return lambda tensor, *, container: qs.to_bytes(tensor, container=row)


LIARS: dict[str, tuple[str, ToBytes]] = {
    "the wrong half of a byte": ("high-nibble", instead("canonical")),
    "the wrong half of every byte": ("high-nibble", nibbles_swapped),
    "neighbours for halves of a block": ("split-half", instead("canonical")),
    "no bias": ("compressed-tensors-i32", instead("mlx-u32")),
    "swapped for in place": ("gptq-i32", instead("gptq-i32", word_order="swapped")),
    "the inverse order of fields": ("awq-i32", instead("awq-i32", fields=(0, 4, 1, 5, 2, 6, 3, 7))),
    "whole fields for dense words": ("mlx-u32", instead("canonical")),
    "rows for tiles": ("cublas-128x4", instead("canonical")),
    "regions for blocks": ("ggml-q8_0", instead("canonical")),
    "big-endian": ("canonical", words_reversed),
}


@pytest.mark.parametrize("liar", LIARS)
def test_bytes_that_lie_are_caught(liar: str) -> None:
    name, to_bytes = LIARS[liar]
    with pytest.raises(Mismatch):
        check_row(name, to_bytes)
