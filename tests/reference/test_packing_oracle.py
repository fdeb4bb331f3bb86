"""pack, unpack and the words in the byte stream against the oracle: every value, every store, every packed axis."""

import itertools
import math
import random
import re
from collections.abc import Callable
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
    Mismatch,
    Refusal,
    Verbs,
    agree,
    check_bytes,
    outcome,
    reference_scheme,
    reference_tensor,
    require_bits,
    require_content,
    require_same,
)
from ..oracle import Q, S, Shape

STORES = (("native", 0), *((kind, d) for kind in ("packed_native", "packed_u32") for d in range(3)))
STORE = pytest.mark.parametrize(("store", "d"), STORES, ids=[f"{kind}_{d}" for kind, d in STORES])
VALUE = pytest.mark.parametrize("value", g.VALUES)
PACKED = [(kind, d) for kind, d in STORES if kind != "native" and d < 2]

SHAPES: tuple[Shape, ...] = (
    (), (0,), (1,), (2,), (5,), (17,), (33,), (1, 1), (3, 5), (5, 3), (7, 16), (0, 4), (4, 0), (1, 9), (9, 1),
    (2, 3, 5), (5, 2, 3), (3, 7, 1), (2, 0, 3), (4, 3, 6), (2, 3, 2, 3), (1, 5, 1, 2), (3, 1, 0, 2), (2, 1, 2, 9),
)  # fmt: skip


@VALUE
@STORE
def test_words_and_bytes_of_every_rank(value: str, store: str, d: int) -> None:
    """Random codes at ranks 0 to 4, empty and odd sizes; an axis that is not there is refused by both."""
    source = random.Random(f"{value} {store} {d}")
    for shape in SHAPES:
        for table in (None, g.NF4) if oracle.BITS[value] == 4 and value in oracle.INTEGER_RANGE else (None,):
            s = S(value, store, d, "ue8m0", table=table)
            fits = d < max(len(shape), 1)
            check_bytes(g.content(s, shape, source) if fits else Q([0] * math.prod(shape), None, 0), shape, s)


@VALUE
@STORE
def test_every_code_in_every_field(value: str, store: str, d: int) -> None:
    """Line j holds one code at field i of the word and zeros elsewhere, for all codes and fields; then all ones but one."""
    s = S(value, store, 0, "ue8m0")
    word_bytes, n = oracle.word_format(s)
    legal = oracle.valid_codes(value)
    for other in (0, legal[-1]):
        codes: list[int] = []
        for code, i in itertools.product(legal, range(n)):
            codes += [other] * i + [code] + [other] * (n - 1 - i)
        shape = (len(legal) * n, n)
        data = qs.to_bytes(reference_tensor(Q(codes, None, 0), shape, s))
        require_same("bytes", oracle.to_bytes(Q(codes, None, 0), shape, s).hex(), data.hex())
        require_bits("codes", codes, qs.split(data, reference_scheme(s), shape).codes)
        assert len(data) == len(legal) * n * word_bytes + 1


# ---------------------------------------------------------------- padding


def place(reason: str, s: S) -> tuple[int, int, int]:
    """Byte offset, line, and field counted over the line, from the message of either side."""
    found = {name: int(number) for name, number in re.findall(r"\b(byte|line|word|field) (\d+)", reason)}
    return found["byte"], found["line"], found.get("word", 0) * oracle.word_format(s)[1] + found["field"]


def check_read(data: bytes, shape: Shape, s: S, verbs: Verbs = REFERENCE, **options: str) -> None:
    """split on both sides; where both refuse padding they name the same place. Of two faults either may be told."""
    what = f"split {data.hex()} as {s} shape {shape} {options}"
    want = outcome(lambda: oracle.split(data, shape, s, **options))
    have = outcome(lambda: verbs.split(data, reference_scheme(s), shape, **options))
    if isinstance(want, Refusal) or isinstance(have, Refusal):
        require_same(f"{what}: refused", isinstance(want, Refusal), isinstance(have, Refusal))
        cleared = outcome(lambda: oracle.split(data, shape, s, **(options | {"padding": "ignore"})))
        told = isinstance(want, Refusal) and "dirty padding" in want.reason and not isinstance(cleared, Refusal)
        if told and isinstance(want, Refusal) and isinstance(have, Refusal):
            require_same(f"{what}: rule", True, "PAK-7" in have.reason)
            require_same(f"{what}: place", place(want.reason, s), place(have.reason, s))
        return
    require_content(what, want, have, shape, s)


def check_dirty(value: str, store: str, d: int, verbs: Verbs = REFERENCE) -> None:
    """Each padding bit alone, on each of two lines: refused with its place, and read past under padding="ignore"."""
    s = S(value, store, d, "ue8m0")
    word_bytes, n = oracle.word_format(s)
    source = random.Random(f"{value} {store}")
    for length in sorted({1, n - 1, n, n + 1, 2 * n + 1} - {0}):
        shape = (2, length) if d == 0 else (length, 2)
        data = oracle.to_bytes(g.content(s, shape, source), shape, s)
        line_bytes = -(-length // n) * word_bytes
        full, rest = divmod(length, n)
        for line, bit in itertools.product(range(2), range(8 * line_bytes)):
            word, at = divmod(bit, 8 * word_bytes)
            holds_code = at < oracle.BITS[value] * (n if word < full else rest)
            if holds_code:
                continue
            dirty = bytearray(data)
            dirty[line * line_bytes + bit // 8] |= 1 << bit % 8
            assert isinstance(outcome(partial(oracle.split, bytes(dirty), shape, s)), Refusal)
            check_read(bytes(dirty), shape, s, verbs)
            check_read(bytes(dirty), shape, s, verbs, padding="ignore")


@VALUE
@pytest.mark.parametrize(("store", "d"), PACKED)
def test_every_padding_bit(value: str, store: str, d: int) -> None:
    check_dirty(value, store, d)


@VALUE
def test_native_bytes_are_not_padding(value: str) -> None:
    """A byte that is not its own extension is refused, with padding="ignore" too."""
    s = S(value, "native", tensor="ue8m0")
    for byte, padding in itertools.product(range(256), ("refuse", "ignore")):
        check_read(bytes([0, byte, 127]), (2,), s, padding=padding)


@settings(g.PROPERTY, max_examples=400)
@given(data=st.data(), shape=g.shapes(largest_rank=3, largest_size=5))
def test_any_bytes(data: st.DataObject, shape: Shape) -> None:
    """Bytes of the right number, few of them wrong: both read the same, or both refuse."""
    s = data.draw(g.schemes(len(shape)))
    source = random.Random(data.draw(g.seeds))
    stream = bytearray(oracle.to_bytes(g.content(s, shape, source), shape, s))
    for _ in range(data.draw(st.integers(0, 2)) if stream else 0):
        stream[source.randrange(len(stream))] ^= 1 << source.randrange(8)
    check_read(
        bytes(stream),
        shape,
        s,
        padding=data.draw(st.sampled_from(("refuse", "ignore"))),
        ue4m3_bit7=data.draw(st.sampled_from(("refuse", "ignore"))),
    )


@settings(g.PROPERTY, max_examples=200)
@given(t=g.tensors())
def test_any_tensor(t: oracle.T) -> None:
    check_bytes(*t)


@settings(g.PROPERTY, max_examples=100)
@given(data=st.data(), t=g.tensors(g.shapes(largest_rank=2, largest_size=7)))
def test_any_words(data: st.DataObject, t: oracle.T) -> None:
    """Words with bits flipped, unpacked from the record instead of the bytes."""
    q, shape, s = t
    words = oracle.pack(q.codes, shape, s)
    source = random.Random(data.draw(g.seeds))
    for _ in range(data.draw(st.integers(0, 1)) if words else 0):
        words[source.randrange(len(words))] ^= 1 << source.randrange(8 * oracle.word_format(s)[0])
    stream = oracle.words_to_bytes(words, s)
    rest = oracle.to_bytes(q, shape, s)[len(stream) :]
    padding = data.draw(st.sampled_from(("refuse", "ignore")))
    packed = qs.pack(reference_tensor(q, shape, s))
    dirty = replace(packed, words=np.array(words, packed.words.dtype).reshape(packed.words.shape))
    both = agree(
        f"unpack {s} {shape}",
        lambda: oracle.split(stream + rest, shape, s, padding),
        lambda: qs.unpack(dirty, padding=padding),  # type: ignore[arg-type]
    )
    if both is not None:
        require_content("unpack", both[0], both[1], shape, s)


@VALUE
@pytest.mark.parametrize("store", ["native", "packed_native", "packed_u32"])
def test_codes_that_are_not_their_own_extension(value: str, store: str) -> None:
    """pack refuses them, each alone; a scheme of the same width in lookup takes other bytes."""
    for code, table in itertools.product(range(256), (None, g.NF4)):
        if table is not None and oracle.BITS[value] != 4:
            continue
        s = S(value, store, 0, "ue8m0", table=table)
        both = agree(f"pack {code:02x} of {s}", partial(oracle.pack, [0, code], (2,), s), partial(packed, code, s))
        if both is not None:
            require_bits("words", both[0], both[1])


def packed(code: int, s: S) -> Any:
    return qs.pack_codes(np.array([0, code], np.uint8), reference_scheme(s))


# ---------------------------------------------------------------- liars


def native_twin(q: qs.Quantized) -> tuple[Any, int, int, int]:
    """Codes as stored by the reference's rule, width of a field, codes a word, bytes a word."""
    scheme, bits = q.scheme, q.scheme.value.bits
    axis = scheme.packed_axis(q.codes.ndim)
    return (
        np.atleast_1d(np.swapaxes(q.codes, axis, -1)),
        bits,
        scheme.store.codes_per_word(bits),
        scheme.store.word_bytes(bits),
    )


def packing(
    *,
    move: bool = False,
    high_first: bool = False,
    big_endian: bool = False,
    dense: bool = False,
    ones: bool = False,
) -> Callable[..., bytes]:
    """A packer for packed stores with one thing done another way; with nothing changed it is right."""

    def to_bytes(q: Any) -> bytes:
        if not isinstance(q, qs.Quantized):
            return qs.to_bytes(q)
        lines, bits, n, size = native_twin(q)
        if move:
            lines = np.atleast_1d(np.moveaxis(q.codes, q.scheme.packed_axis(q.codes.ndim), -1))
        rows = [lines.ravel().tolist()] if dense else lines.reshape(-1, lines.shape[-1]).tolist()
        data = b""
        for row in rows:
            for start in range(0, len(row), n):
                chunk = row[start : start + n]
                chunk += [255 if ones else 0] * (n - len(chunk))
                places = range(n - 1, -1, -1) if high_first else range(n)
                word = sum((c & (1 << bits) - 1) << bits * i for c, i in zip(chunk, places, strict=True))
                data += word.to_bytes(size, "big" if big_endian else "little")
        return data + qs.to_bytes(q)[-1:]  # the tensor scale, one byte

    return to_bytes


LIARS: dict[str, dict[str, bool]] = {
    "moved, not swapped": {"move": True},
    "highest field first": {"high_first": True},
    "big-endian words": {"big_endian": True},
    "lines not padded apart": {"dense": True},
    "padded with ones": {"ones": True},
}


def check_rank_three(verbs: Verbs) -> None:
    for value, kind in (
        ("q4s", "packed_u32"),
        ("q2f", "packed_u32"),
        ("e3m2", "packed_native"),
        ("e3m2", "packed_u32"),
    ):
        for shape in ((3, 5, 7), (2, 4, 3)):
            s = S(value, kind, 2, "ue8m0")
            check_bytes(g.content(s, shape, random.Random(3)), shape, s, verbs=verbs)


def test_the_packer_of_the_liars_is_right_when_it_does_not_lie() -> None:
    check_rank_three(replace(REFERENCE, to_bytes=packing()))


@pytest.mark.parametrize("name", LIARS)
def test_a_packer_that_lies_is_caught(name: str) -> None:
    with pytest.raises(Mismatch):
        check_rank_three(replace(REFERENCE, to_bytes=packing(**LIARS[name])))


def zero_extending(data: Any, scheme: qs.Scheme, shape: Shape, **options: Any) -> qs.Quantized:
    """split that reads integer fields as unsigned (as far as a record holds them: the sign bit dropped)."""
    q = qs.split(data, scheme, shape, **options)
    return replace(q, codes=np.where(q.codes >= 0x80, q.codes & 1, q.codes).astype(np.uint8))


def careless(data: Any, scheme: qs.Scheme, shape: Shape, **options: Any) -> qs.Quantized:
    return qs.split(data, scheme, shape, padding="ignore")


def too_careful(data: Any, scheme: qs.Scheme, shape: Shape, **options: Any) -> qs.Quantized:
    return qs.split(data, scheme, shape)


def misplaced(data: Any, scheme: qs.Scheme, shape: Shape, **options: Any) -> qs.Quantized:
    """Refuses at the right time, with the wrong line."""
    try:
        return qs.split(data, scheme, shape, **options)
    except qs.EncodingError as error:
        raise qs.EncodingError(error.rule, error.message.replace("line 1", "line 0")) from None


@pytest.mark.parametrize("split", [careless, too_careful, misplaced])
def test_a_reader_of_padding_that_lies_is_caught(split: Callable[..., Any]) -> None:
    for value, store in (("e3m2", "packed_u32"), ("q4s", "packed_native")):
        with pytest.raises(Mismatch):
            check_dirty(value, store, 0, replace(REFERENCE, split=split))


def test_fields_without_their_sign_are_caught() -> None:
    with pytest.raises(Mismatch):
        check_rank_three(replace(REFERENCE, split=zero_extending))
