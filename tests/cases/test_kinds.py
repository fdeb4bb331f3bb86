"""The kinds of fault that the reports show, over every value format: codecs, quotients, lookup, memory, parts.

Expected bits are the oracle's; each test names the reports it generalises.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from .. import bridge, oracle
from ..bridge import Verbs
from .facts import F32, bits_of, f32_of_bits, single

VALUES, SCALES = tuple(qs.VALUES), tuple(qs.SCALES)
SPECIAL = [0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF]
SIGN = 0x80000000


def around(magnitudes: Sequence[int]) -> list[int]:
    """Patterns of magnitudes and of their neighbours, both signs."""
    near = sorted({m + step for m in magnitudes for step in (-1, 0, 1) if 0 <= m + step <= 0x7FFFFFFF})
    return [sign | m for sign in (0, SIGN) for m in near]


def powers() -> list[int]:
    """Patterns of every power of two of binary32."""
    return [oracle.rn32(oracle.power2(e)) for e in range(-149, 128)]


def boundaries(value: str) -> list[int]:
    """Every number of a format, every midpoint of two neighbours, their neighbours, and the specials."""
    decoded = [bits & ~SIGN for bits in oracle.symmetric_decoded(value).values() if oracle.is_finite(bits)]
    numbers = sorted({oracle.value(bits) for bits in decoded})
    midpoints = [oracle.rn32((a + b) / 2) for a, b in itertools.pairwise(numbers)]
    largest = oracle.rn32(numbers[-1] + (numbers[-1] - numbers[-2]) / 2)
    return around([*decoded, *midpoints, largest, *SPECIAL])


@pytest.mark.parametrize("value", VALUES)
def test_encode_at_every_boundary(verbs: Verbs, value: str) -> None:
    """BC-001, 003, 007, 009, 011, 019, 021, 025, 033, 145: ties, sticky bits, overshoot, signs, NaN."""
    bits = boundaries(value)
    assert verbs.encode(f32_of_bits(bits), value).tolist() == [oracle.encode(value, b) for b in bits]


@pytest.mark.parametrize("value", VALUES)
def test_encode_at_every_power_of_two(verbs: Verbs, value: str) -> None:
    """BC-005, 037: no shift count wraps, no exponent does, nothing goes through a narrower type."""
    bits = around(powers())
    assert verbs.encode(f32_of_bits(bits), value).tolist() == [oracle.encode(value, b) for b in bits]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("value", VALUES)
def test_encode_of_narrow_inputs(verbs: Verbs, value: str, kind: str) -> None:
    """BC-023, 039, 133: f16 and bf16 widen exactly, subnormals and NaN signs too."""
    patterns = [
        *range(0, 2**16, 97),
        *range(16),
        *range(0x7BF0, 0x7C10),
        *range(0xFBF0, 0xFC10),
        *range(0x7F70, 0x7F90),
    ]
    expected = [oracle.encode(value, bridge.widened(p, kind)) for p in patterns]
    assert verbs.encode(bridge.floats(patterns, kind), value).tolist() == expected


@pytest.mark.parametrize("value", VALUES)
def test_every_code_decodes_and_encodes_back(verbs: Verbs, value: str) -> None:
    """BC-007, 035, 113: every code, subnormal or not; a NaN or infinity is what encode writes for it."""
    codes = oracle.valid_codes(value)
    numbers = verbs.decode(np.array(codes, np.uint8), value)
    assert bits_of(numbers) == [oracle.decode(value, code) for code in codes]
    back = verbs.encode(numbers, value).tolist()
    assert back == [oracle.encode(value, b) for b in bits_of(numbers)]
    if value in oracle.INTEGER_RANGE:
        low, high = oracle.INTEGER_RANGE[value]
        survivors = high - low + 1
    else:  # the finite codes, and the one NaN code that encode writes for 7FC00000
        survivors = sum(map(oracle.is_finite, bits_of(numbers))) + (value in oracle.MINIFLOAT_NAN)
    assert sum(code == b for code, b in zip(codes, back, strict=True)) == survivors


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("value", VALUES)
def test_quotients_next_to_midpoints(verbs: Verbs, value: str, scale: str) -> None:
    """BC-013: x at midpoint * s and its neighbours, for scales with long fractions: a reciprocal moves some of them."""
    codes = {
        "f32": [0x3DCCCCCD, 0x00000003, 0x3EAAAAAB], "f16": [0x2E66, 0x0003, 0x3555], "bf16": [0x3DCD, 0x0003, 0x3EAB],
        "ue8m0": [0x00, 0x01, 0x7E], "ue4m3": [0x07, 0x35, 0x01],
    }[scale]  # fmt: skip
    numbers = boundaries(value)
    midpoints = [b for b in numbers if oracle.is_finite(b)][:: max(1, len(numbers) // 24)]
    for code in codes:
        s = oracle.decode_scale(scale, code)
        bits = [x for m in midpoints for x in (oracle.multiply32(s, m),) if oracle.is_finite(x)]
        bits = [x for b in bits for x in (b, b + 1, (b - 1) % 2**32) if not oracle.is_nan(x)]
        bridge.check_quantize(
            bits, (len(bits),), oracle.S(value, "native", tensor=scale), verbs=verbs, tensor_scale_code=code
        )


@pytest.mark.parametrize("value", ["q8f", "q8s", "q4f", "q4s", "q2f", "q2s"])
def test_lookup_with_hard_tables(verbs: Verbs, value: str) -> None:
    """BC-157, 159, 161: unsorted, repeated, both zeros, exact ties, full range: the nearest entry, the lowest index."""
    n = 1 << oracle.BITS[value]
    rng = np.random.default_rng(n)
    for table in (
        single(rng.normal(size=n)),
        single(rng.permutation(np.arange(n) // 2 * 2) - n // 2),
        f32_of_bits(([0x80000000, 0x00000000, 0x7F7FFFFF, 0xFF7FFFFF] * n)[:n]),
        f32_of_bits(list(range(1, n + 1))),
    ):
        entries = bits_of(table)
        ordered = sorted({oracle.value(b) for b in entries})
        midpoints = [abs((a + b) / 2) for a, b in itertools.pairwise(ordered)]
        bits = around([*(oracle.rn32(m) for m in midpoints), *(b & ~SIGN for b in entries), *SPECIAL])
        expected = [oracle.encode(value, b, entries) for b in bits]
        assert verbs.encode(f32_of_bits(bits), value, table=table).tolist() == expected
        every = np.arange(n, dtype=np.uint8)
        assert bits_of(verbs.decode(every, value, table=table)) == entries


TABLE_SOURCES = [np.float32, np.float16, bridge.FLOATS["bf16"]]


@pytest.mark.parametrize("dtype", TABLE_SOURCES, ids=["f32", "f16", "bf16"])
def test_nothing_shares_memory_with_its_source(verbs: Verbs, dtype: Any) -> None:
    """BC-103, 161: tables, codes, scales, words and bytes are copied in; a later write to the source changes nothing."""
    table: npt.NDArray[Any] = np.linspace(-1, 1, 16).astype(dtype)
    scheme = qs.Scheme("q4f", "packed_native_0", mode="lookup", table=table, block=((2,), "f32"), tensor="f32")
    codes, scales = np.arange(16, dtype=np.uint8), np.ones(8, np.uint32)
    g = np.array(0x3F800000, np.uint32)
    q = qs.Quantized(scheme, codes, scales, g)
    words = verbs.pack(q).words.copy()
    packed = qs.Packed(scheme, (16,), words, scales, g)
    stream = bytearray(verbs.to_bytes(q))
    read, parts = verbs.from_bytes(stream, scheme, (16,)), verbs.split(stream, scheme, (16,))
    before = [bits_of(verbs.dequantize(t)) for t in (q, verbs.unpack(packed), verbs.unpack(read), parts)]
    name = scheme.text
    for source in (table, codes, scales, g, words):
        source[...] = 0
    stream[:] = bytes(len(stream))
    assert [bits_of(verbs.dequantize(t)) for t in (q, verbs.unpack(packed), verbs.unpack(read), parts)] == before
    assert scheme.text == name
    assert verbs.quantize(single(np.zeros(16)), scheme).codes.tolist() == [7] * 16, (
        "entries -1/15 and 1/15 tie: the lower index"
    )


def random_input(shape: tuple[int, ...], seed: int) -> F32:
    """Numbers over many binades."""
    rng = np.random.default_rng(seed)
    return single(rng.normal(size=shape) * np.exp2(rng.integers(-20, 20, size=shape)))


PARTS = ("e2m1.native.b16-ue4m3.t-f32", "q4s.packed_u32_0.b32-f16", "e4m3.native.t-bf16", "q2f.native.b7x13-ue8m0")


@pytest.mark.parametrize("text", PARTS)
def test_a_part_is_quantized_as_in_the_whole(verbs: Verbs, text: str) -> None:
    """BC-095, 097, 115, 119, 123, 143: the same block alone, in the middle, at the end, in a tensor larger than any tile."""
    scheme = qs.Scheme.parse(text)
    x = random_input((350, 300), 7)
    whole = verbs.quantize(x, scheme)
    given = {} if scheme.tensor is None else {"tensor_scale_code": whole.tensor_scale_code}
    for start, stop in ((0, 7), (7, 14), (210, 245), (343, 350)):
        part = verbs.quantize(x[start:stop], scheme, **given)
        assert part.codes.tolist() == qs.slice_axis(whole, 0, start, stop).codes.tolist()
        assert part == qs.slice_axis(whole, 0, start, stop)
        assert bits_of(verbs.dequantize(part)) == bits_of(verbs.dequantize(whole)[start:stop])
