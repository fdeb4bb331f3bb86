"""The kinds of fault that the reports show, over every scale type and pair of them: rounding, zeros, extremes, order.

Expected bits are the oracle's; each test names the reports it generalises.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import quantspec as qs

from .. import bridge, oracle
from ..bridge import Verbs
from .facts import bits_of, f32_of_bits
from .test_kinds import SCALES, SIGN, SPECIAL, VALUES, around, powers


def scale_boundaries(kind: str) -> list[int]:
    """Non-negative numbers at and around the codes of a scale type and their midpoints: all of ue8m0 and ue4m3."""
    if kind in ("ue8m0", "ue4m3"):
        values = [oracle.value(oracle.rn32(Fraction(v, 2**150))) for v in oracle.small_scale_values(kind)[0]]
        found = [oracle.rn32(x) for a, b in itertools.pairwise(values) for x in (a, (a + b) / 2, b)]
    else:
        top = oracle.wide_inf(kind)
        codes = sorted({*range(20), *range(top - 20, top), *range(0, top, top // 500), *(1 << i for i in range(15))})
        found = [oracle.widen(c, kind) for c in codes if c < top]
        found += [oracle.rn32((oracle.value(a) + oracle.value(b)) / 2) for a, b in itertools.pairwise(found)]
    return [b for b in around([*found, *SPECIAL]) if b < SIGN]


@pytest.mark.parametrize("rounding", ["up", "nearest"])
@pytest.mark.parametrize("kind", SCALES)
def test_encode_scale_at_boundaries(verbs: Verbs, kind: str, rounding: str) -> None:
    """BC-017, 039, 049, 051, 055, 057, 061: both roundings at every step, saturation, NaN."""
    bits = [*scale_boundaries(kind), *powers()]
    expected = [oracle.encode_scale(kind, b, rounding) for b in bits]
    assert verbs.encode_scale(f32_of_bits(bits), kind, rounding).tolist() == expected


@pytest.mark.parametrize("kind", SCALES)
def test_negative_scales_one_by_one(verbs: Verbs, kind: str) -> None:
    """BC-075, 129: a sign is kept where the type has one and the number is exact, else refused; never dropped."""
    largest = oracle.largest_finite(kind)
    for magnitude in (0, 1, 0x3F800000, 0x3FA00000, 0x3FA00001, largest, largest + 1, 0x7F800000):
        for rounding in ("up", "nearest"):
            x = f32_of_bits([SIGN | magnitude])
            bridge.agree(
                f"{kind} {rounding} -{magnitude:x}",
                lambda m=magnitude, r=rounding: oracle.encode_scale(kind, SIGN | m, r),  # type: ignore[misc]
                lambda x=x, r=rounding: verbs.encode_scale(x, kind, r),  # type: ignore[misc]
            )


@pytest.mark.parametrize("kind", SCALES)
def test_every_scale_code_decodes_and_encodes_back(verbs: Verbs, kind: str) -> None:
    """BC-041, 053, 075, 111: every code of the small types, many of the wide ones."""
    width = 8 * oracle.SCALE_BYTES[kind]
    width_used = 7 if kind == "ue4m3" else width
    codes = range(0, 2**width_used, max(1, 2**width_used // 8209))  # an odd step: every low bit takes part
    numbers = verbs.decode_scale(np.array(codes, f"u{width // 8}"), kind)
    decoded = bits_of(numbers)
    assert decoded == [oracle.decode_scale(kind, code) for code in codes]
    finite = [(code, b) for code, b in zip(codes, decoded, strict=True) if oracle.is_finite(b)]
    for rounding in ("up", "nearest"):
        back = verbs.encode_scale(f32_of_bits([b for _, b in finite]), kind, rounding)
        assert back.tolist() == [code for code, _ in finite]


@pytest.mark.parametrize("value", VALUES)
def test_ue8m0_scales_next_to_powers_of_two(verbs: Verbs, value: str) -> None:
    """BC-059, 061, 063, 065: H * 2^k and its neighbours for every k: exponents from bits, no floor but the type's."""
    half = oracle.H(value)
    bits = sorted({oracle.rn32(half * oracle.power2(k)) + step for k in range(-160, 125) for step in (-1, 0, 1)} - {-1})
    bits = [b for b in bits if oracle.is_finite(b)]
    s = oracle.S(value, "native", block=(), block_type="ue8m0")
    expected = [oracle.encode_scale("ue8m0", oracle.raw_scale([b], s)) for b in bits]
    q = verbs.quantize(f32_of_bits(bits), qs.Scheme(value, block=((), "ue8m0")))
    assert q.scale_codes.tolist() == expected


LEVELS = [(None, b) for b in SCALES] + [(t, None) for t in SCALES] + list(itertools.product(SCALES, SCALES))
LEVEL_IDS = [f"{t or 'no'}-{b or 'no'}" for t, b in LEVELS]


def level_scheme(value: str, tensor: str | None, block: str | None, extent: int = 16) -> qs.Scheme:
    """A scheme with the levels that are named."""
    return qs.Scheme(value, tensor=tensor, block=None if block is None else ((extent,), block))


@pytest.mark.parametrize(("tensor", "block"), LEVELS, ids=LEVEL_IDS)
def test_no_finite_element_makes_a_special_scale(verbs: Verbs, tensor: str | None, block: str | None) -> None:
    """BC-027, 029, 031: NaN and Inf are skipped by amax wherever they stand; finite neighbours keep their codes."""
    for value in ("e2m1", "e4m3", "q4s"):
        scheme = level_scheme(value, tensor, block)
        plain = verbs.quantize(np.ones((10, 16), np.float32), scheme)
        for special in (0x7F800001, 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000):
            x = np.ones((10, 16), np.float32)
            for row, place in enumerate((0, 7, 15)):
                x.view(np.uint32)[3 * row, place] = special
            q = verbs.quantize(x, scheme)
            assert plain.scale_codes is None or q.scale_codes.tolist() == plain.scale_codes.tolist()
            assert q.tensor_scale_code == plain.tensor_scale_code
            finite = np.isfinite(x)
            assert q.codes[finite].tolist() == plain.codes[finite].tolist()


@pytest.mark.parametrize(("tensor", "block"), LEVELS, ids=LEVEL_IDS)
def test_zero_blocks_are_zeros(verbs: Verbs, tensor: str | None, block: str | None) -> None:
    """BC-045, 047, 049: zero beside zero, beside tiny, beside ordinary: zeros back, finite scales, no NaN code."""
    for value in VALUES if None in (tensor, block) else ("q4f", "e2m1", "e4m3"):
        for other in (0.0, 2.0**-149, 0.1, 3e38):
            x = np.zeros((2, 16), np.float32)
            x[1] = other
            x[0, 1::2] = -0.0
            q = verbs.quantize(x, level_scheme(value, tensor, block))
            sign = 0 if value in oracle.INTEGER_RANGE else 1 << oracle.BITS[value] - 1
            assert q.codes[0].tolist() == [0, sign] * 8
            y = verbs.dequantize(q)
            assert (y[0] == 0).all()
            assert not np.isnan(y).any()


@pytest.mark.parametrize(("tensor", "block"), LEVELS, ids=LEVEL_IDS)
def test_tiny_and_huge_tensors(verbs: Verbs, tensor: str | None, block: str | None) -> None:
    """BC-043, 063, 065, 069, 071, 131: amax from the smallest number to the largest, scales and codes by the oracle."""
    bits = [*powers()[::69], 0x7F7FFFFF, 0x7EFFFFFF, 0x00000003, 0x477FE000]
    for value in ("e2m1", "q2s"):  # q2s: amax is the raw scale, up to the largest number
        s = bridge.oracle_scheme(level_scheme(value, tensor, block, extent=2))
        for b in bits:
            block_bits = [b, oracle.multiply32(b, 0x3F19999A), SIGN | oracle.multiply32(b, 0x3E800000), 0]
            content = bridge.check_quantize(block_bits, (4,), s, verbs=verbs)
            assert content is not None
            bridge.check_dequantize(content, (4,), s, verbs=verbs)


SCALE_SAMPLE = {
    "f32": [
        0,
        1,
        0x3F800000,
        0x3DCCCCCD,
        0x7F7FFFFF,
        0x7F800000,
        0x7FC00001,
        0x80000000,
        0xBF99999A,
        0xFF800000,
        0xFFC00000,
    ],
    "f16": [0, 1, 0x3C00, 0x2E66, 0x7BFF, 0x7C00, 0x7E01, 0x8000, 0xBCCD, 0xFC00, 0xFE00],
    "bf16": [0, 1, 0x3F80, 0x3DCD, 0x7F7F, 0x7F80, 0x7FC1, 0x8000, 0xBF9A, 0xFF80, 0xFFC0],
    "ue8m0": [0x00, 0x01, 0x10, 0x7F, 0x80, 0xFE, 0xFF],
    "ue4m3": [0x00, 0x01, 0x07, 0x08, 0x38, 0x3D, 0x7E, 0x7F],
}


@pytest.mark.parametrize(("tensor", "block"), LEVELS, ids=LEVEL_IDS)
def test_scales_of_every_kind_apply_in_one_order(verbs: Verbs, tensor: str | None, block: str | None) -> None:
    """BC-023, 041, 043, 053, 073, 115, 129, 139: subnormal, huge, negative and special scales, in every output type."""
    tensor_codes = [None] if tensor is None else SCALE_SAMPLE[tensor]
    for value, step in (("e2m1", 7), ("e5m2", 31)):
        codes = oracle.valid_codes(value)[::step]
        s = bridge.oracle_scheme(level_scheme(value, tensor, block, extent=1))
        blocks = None if block is None else SCALE_SAMPLE[block]
        rows = len(blocks or [0])
        for tensor_code in tensor_codes:
            shape = (len(codes), rows)
            flat = [code for code in codes for _ in range(rows)]
            scale_codes = None if blocks is None else blocks * len(codes)
            content = oracle.Q(flat, scale_codes, tensor_code)
            outputs = ("f32", "f16", "bf16") if None in (tensor, block) else ("f32",)
            bridge.check_dequantize(content, shape, s, verbs=verbs, outputs=outputs)
