"""The byte stream against the oracle: scales in it, its length, ue4m3's bit 7, and the limits of shapes."""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import (
    REFERENCE,
    Mismatch,
    Refusal,
    Verbs,
    agree,
    check_bytes,
    outcome,
    reference_scheme,
    require_content,
    require_same,
)
from ..oracle import Q, S, Shape

GRIDS: tuple[tuple[Shape, Shape], ...] = (
    ((), ()), ((7,), (3,)), ((0,), (2,)), ((5, 6), (2, 4)), ((5, 6), (4,)), ((4, 6), (2, 1)), ((3, 0), (2, 2)), ((2, 3), ()),
    ((3, 5, 7), (2, 2, 3)), ((3, 5, 7), (2, 1, 1)), ((3, 5, 7), (5, 2)), ((4, 1, 6), (2, 1, 4)), ((2, 3, 3, 4), (2, 2, 1, 3)),
    ((5, 4), (2**31 - 1,)), ((2, 3, 4), (100, 1, 2)),
)  # fmt: skip


def check_scales(store: str, tensor: str | None, kind: str, verbs: Verbs = REFERENCE) -> None:
    """Both levels' bytes over every grid and every packed axis."""
    source = random.Random(f"{store} {tensor} {kind}")
    for shape, block in GRIDS:
        for d in range(1 if store == "native" else max(len(shape), 1)):
            s = S(source.choice(g.VALUES), store, d, tensor, block, kind)
            check_bytes(g.content(s, shape, source), shape, s, verbs=verbs)


@pytest.mark.parametrize("kind", g.SCALE_TYPES)
@pytest.mark.parametrize("tensor", [None, *g.SCALE_TYPES])
@pytest.mark.parametrize("store", ["native", "packed_native", "packed_u32"])
def test_scales_in_the_stream(store: str, tensor: str | None, kind: str) -> None:
    check_scales(store, tensor, kind)


@pytest.mark.parametrize("store", ["native", "packed_native", "packed_u32"])
@pytest.mark.parametrize("value", g.VALUES)
def test_any_other_length_is_refused(value: str, store: str) -> None:
    """One byte and one word more or less, nothing at all: both refuse, the reference naming both lengths."""
    s = S(value, store, 0, "f16", (2,), "ue8m0")
    for shape in ((), (0,), (3,), (2, 5)):
        if len(shape) < 1:
            s = replace(s, block=())
        data = oracle.to_bytes(g.content(s, shape, random.Random(4)), shape, s)
        for other in {b"", data[:-1], data[1:], data + b"\0", data + data, data + b"\0\0\0\0"} - {data}:
            have = outcome(partial(qs.split, other, reference_scheme(s), shape))
            assert isinstance(outcome(partial(oracle.split, other, shape, s)), Refusal)
            assert isinstance(have, Refusal) and "LAY-4" in have.reason
            assert str(len(other)) in have.reason and str(len(data)) in have.reason


def check_bit7(verbs: Verbs = REFERENCE) -> None:
    """Every byte as a ue4m3 scale at either level: bit 7 refused, or cleared where the import says so."""
    for tensor, block in ((None, "ue4m3"), ("ue4m3", None), ("ue4m3", "f16"), ("f32", "ue4m3"), ("ue4m3", "ue4m3")):
        s = S("q8s", "native", 0, tensor, None if block is None else (2,), block)
        zero = Q([1, 2], None if block is None else [0], None if tensor is None else 0)
        data = oracle.to_bytes(zero, (2,), s)
        places = [i for i, level in enumerate((tensor, block)) if level == "ue4m3"]
        for place, byte, option in itertools.product(places, range(256), ("refuse", "ignore")):
            stream = bytearray(data)
            stream[-1 if place == 0 else 2] = byte
            what = f"split {stream.hex()} as {s} {option}"
            both = agree(
                what,
                partial(oracle.split, bytes(stream), (2,), s, ue4m3_bit7=option),
                partial(verbs.split, bytes(stream), reference_scheme(s), (2,), ue4m3_bit7=option),
            )
            if both is not None:
                require_content(what, both[0], both[1], (2,), s)
            require_same(f"{what}: refused", byte >= 0x80 and option == "refuse", both is None)


def test_bit_7_of_ue4m3() -> None:
    check_bit7()


def test_bit_7_option_leaves_other_types_alone() -> None:
    """f16 and bf16 scales with their sign bit set, ue8m0 of 80 and above: read as they are under either option."""
    for kind, code in (("f16", 0xBC00), ("bf16", 0xBF80), ("f32", 0xBF800000), ("ue8m0", 0xFF), ("ue8m0", 0x80)):
        s = S("q8s", "native", 0, None, (2,), kind)
        data = oracle.to_bytes(Q([1, 2], [code]), (2,), s)
        options: tuple[Literal["refuse", "ignore"], ...] = ("refuse", "ignore")
        for option in options:
            q = qs.split(data, reference_scheme(s), (2,), ue4m3_bit7=option)
            require_content("split", oracle.split(data, (2,), s, ue4m3_bit7=option), q, (2,), s)


@settings(g.PROPERTY, max_examples=600)
@given(data=st.data(), rank=st.integers(0, 4))
def test_byte_counts_of_any_shape(data: st.DataObject, rank: int) -> None:
    """Sizes up to beyond 2^63: the same count, or both refuse."""
    size = st.one_of(
        st.integers(0, 40), st.integers(0, 2**33), st.integers(0, 63).map(lambda e: 2**e), st.just(2**63 - 1)
    )
    shape = tuple(data.draw(st.lists(size, min_size=rank, max_size=rank)))
    s = data.draw(g.schemes(rank))
    both = agree(
        f"byte count of {s} {shape}",
        lambda: oracle.byte_length(shape, s),
        lambda: qs.byte_count(reference_scheme(s), shape),
    )
    if both is not None:
        require_same("byte count", both[0], both[1])


def test_byte_counts_at_the_limit() -> None:
    """Element counts and byte lengths next to 2^63 - 1."""
    stores = ("native", "packed_native", "packed_u32")
    for value, store, kind in itertools.product(("q8s", "q2s", "e3m2"), stores, ("ue8m0", "f32")):
        for block in (None, (), (4,), (2**31 - 1,)):
            s = S(value, store, 0, "f32" if block is None else None, block, None if block is None else kind)
            for n in (
                2**63,
                2**63 - 1,
                2**63 - 4,
                2**63 - 5,
                2**62,
                2**61,
                2**61 - 1,
                (2**63 - 1) // 5,
                (2**63 - 1) // 3 * 4,
            ):
                for shape in ((n,), (n, 1), (1, n), (2, n // 2), (n, 0)):
                    both = agree(
                        f"{s} {shape}",
                        partial(oracle.byte_length, shape, s),
                        partial(qs.byte_count, reference_scheme(s), shape),
                    )
                    if both is not None:
                        require_same(f"{s} {shape}", both[0], both[1])


def test_sources_of_bytes_are_equal() -> None:
    """bytes, bytearray, memoryview and uint8 arrays, strided ones too."""
    shape, s = (3, 5), S("q4s", "packed_u32", 1, "f16", (2, 2), "bf16")
    data = oracle.to_bytes(g.content(s, shape, random.Random(8)), shape, s)
    spread = np.zeros(2 * len(data), np.uint8)
    spread[::2] = np.frombuffer(data, np.uint8)
    backwards = spread[::2][::-1].copy()
    for other in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), spread[::2], backwards[::-1]):
        require_content("split", oracle.split(data, shape, s), qs.split(other, reference_scheme(s), shape), shape, s)


# ---------------------------------------------------------------- liars


def stream(change: Callable[[qs.Quantized, bytes, bytes, bytes], bytes]) -> Callable[..., bytes]:
    """to_bytes whose three parts are put together another way."""

    def to_bytes(q: Any) -> bytes:
        data = qs.to_bytes(q)
        block = 0 if q.scale_codes is None else q.scale_codes.nbytes
        tensor = 0 if q.tensor_scale_code is None else q.tensor_scale_code.nbytes
        end = len(data) - tensor
        return change(q, data[: end - block], data[end - block : end], data[end:])

    return to_bytes


def grid_bytes(q: qs.Quantized, order: Literal["C", "F"] = "C", swap: bool = False) -> bytes:
    if q.scale_codes is None:
        return b""
    return (q.scale_codes.byteswap() if swap else q.scale_codes).tobytes(order)


LIARS: dict[str, Callable[[qs.Quantized, bytes, bytes, bytes], bytes]] = {
    "tensor scale first": lambda q, values, blocks, tensor: values + tensor + blocks,
    "scales before values": lambda q, values, blocks, tensor: blocks + values + tensor,
    "grid in tensor axes": lambda q, values, blocks, tensor: values + grid_bytes(q) + tensor,
    "grid in Fortran order": lambda q, values, blocks, tensor: values + grid_bytes(q, "F") + tensor,
    "big-endian scales": lambda q, values, blocks, tensor: values + grid_bytes(q, swap=True) + tensor,
    "padded to four bytes": lambda q, values, blocks, tensor: values + b"\0" * (-len(values) % 4) + blocks + tensor,
}


@pytest.mark.parametrize("name", LIARS)
def test_a_stream_that_lies_is_caught(name: str) -> None:
    with pytest.raises(Mismatch):
        check_scales("packed_native", "f16", "bf16", replace(REFERENCE, to_bytes=stream(LIARS[name])))


def test_a_grid_read_in_stored_axes_is_caught() -> None:
    def split(data: bytes, scheme: qs.Scheme, shape: Shape) -> qs.Quantized:
        q = qs.split(data, scheme, shape)
        if q.scale_codes is None or q.scale_codes.ndim < 2:
            return q
        return replace(q, scale_codes=np.swapaxes(q.scale_codes, 0, -1).reshape(q.scale_codes.shape))

    with pytest.raises(Mismatch):
        check_scales("packed_u32", None, "f32", replace(REFERENCE, split=split))


def test_a_bit_7_that_passes_is_caught() -> None:
    def split(data: bytes, scheme: qs.Scheme, shape: Shape, **options: Any) -> qs.Quantized:
        return qs.split(data, scheme, shape, ue4m3_bit7="ignore")

    with pytest.raises(Mismatch):
        check_bit7(replace(REFERENCE, split=split))


def test_the_grids_hold_what_they_are_for() -> None:
    """An exchange of axes shows only where the exchanged grid differs from the grid."""
    telling = [math.prod(oracle.grid(shape, S("q8s", "native", 0, None, block, "f16"))) for shape, block in GRIDS]
    assert sum(cells > 3 for cells in telling) >= 8
