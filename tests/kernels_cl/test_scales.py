"""Scales: every code, every narrow number, what is refused. SCL-1 to SCL-3, SCL-15 to SCL-21."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_outcome, same_refusal
from .data import HALVES, SPECIAL, floats, neighbours, patterns

pytestmark = pytest.mark.opencl

TYPES = tuple(qs.SCALES)


def codes_of(scale: str) -> npt.NDArray[Any]:
    """Every code of a type that is legal on read; of f32 the decisive ones and many others."""
    row = qs.SCALES[scale]
    if row.size == 4:
        rng = np.random.default_rng(5)
        return np.concatenate([SPECIAL, rng.integers(0, 1 << 32, 1 << 17, dtype=np.uint32)])
    codes = np.arange(1 << 8 * row.size).astype(row.code_dtype)
    return np.asarray(codes[codes & ~row.code_dtype.type(row.magnitude_mask | row.sign_bit) == 0])


def deciding(scale: str) -> npt.NDArray[np.float32]:
    """Non-negative numbers and NaNs: representable ones, midpoints, their neighbours, every exponent, specials."""
    known = qs.decode_scale(codes_of(scale)[: 1 << 16], scale).astype(np.float64)
    known = np.unique(known[np.isfinite(known) & (known >= 0)])
    middle = ((known[1:] + known[:-1]) / 2).astype(np.float32)
    rng = np.random.default_rng(6)
    near = neighbours(np.concatenate([patterns(known.astype(np.float32)), patterns(middle)]), 1)
    near = np.concatenate([near, rng.integers(0, 1 << 32, 1 << 15, dtype=np.uint32), SPECIAL])
    return floats(near[(near < 0x80000000) | ((near & 0x7FFFFFFF) > 0x7F800000)])


@pytest.mark.parametrize("scale", TYPES)
def test_every_code_decodes(build: qc.Session, scale: str) -> None:
    same_bits(build.decode_scale(codes_of(scale), scale), qs.decode_scale(codes_of(scale), scale), scale)


@pytest.mark.parametrize("scale", TYPES)
@pytest.mark.parametrize("rounding", ["up", "nearest"])
def test_numbers_where_rounding_decides(build: qc.Session, scale: str, rounding: Any) -> None:
    x = deciding(scale)
    same_bits(build.encode_scale(x, scale, rounding), qs.encode_scale(x, scale, rounding), f"{scale} {rounding}")
    if qs.SCALES[scale].signed:
        negative = x if rounding == "nearest" else qs.decode_scale(codes_of(scale), scale)
        negative = -np.abs(negative[np.isfinite(negative) | np.isnan(negative)])
        same_bits(build.encode_scale(negative, scale, rounding), qs.encode_scale(negative, scale, rounding), scale)


@pytest.mark.parametrize("scale", TYPES)
@pytest.mark.parametrize(("dtype", "infinity"), [(np.float16, 0x7C00), (ml_dtypes.bfloat16, 0x7F80)])
@pytest.mark.parametrize("rounding", ["up", "nearest"])
def test_every_narrow_number_is_encoded_or_refused(
    session: qc.Session, scale: str, dtype: type, infinity: int, rounding: Any
) -> None:
    legal: npt.NDArray[Any] = HALVES[(HALVES < 0x8000) | (infinity < (HALVES & 0x7FFF))].view(dtype)
    same_bits(session.encode_scale(legal, scale, rounding), qs.encode_scale(legal, scale, rounding), scale)
    for last in (0x8000, 0x8001, 0x8100, 0xBC01, 0xC900, 0xFBFF, 0xFC00, 0xFF7F, 0xFF80):
        given: npt.NDArray[Any] = np.concatenate([HALVES[:40], HALVES[[last]]]).view(dtype)[None]
        same_outcome(session, "encode_scale", given, scale, rounding)


def test_bit_7_of_ue4m3(session: qc.Session) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(16, 16)
    same_refusal(session, "decode_scale", codes, "ue4m3")
    for scale in ("ue4m3", "ue8m0"):
        found = session.decode_scale(codes, scale, ue4m3_bit7="ignore")
        same_bits(found, qs.decode_scale(codes, scale, ue4m3_bit7="ignore"), scale)


def test_other_refusals_are_the_references(session: qc.Session) -> None:
    x, codes = np.ones((2, 2), np.float32), np.zeros(2, np.uint8)
    same_refusal(session, "encode_scale", x, "f64")
    same_refusal(session, "encode_scale", x, "f16", "down")
    same_refusal(session, "encode_scale", x.astype(float), "f16")
    same_refusal(session, "encode_scale", -x / 3, "f16")
    same_refusal(session, "encode_scale", -x, "ue8m0")
    same_refusal(session, "encode_scale", -x * 0, "ue4m3", "nearest")
    same_refusal(session, "encode_scale", -x * np.float32(np.inf), "f32")
    same_refusal(session, "decode_scale", x, "f16")
    same_refusal(session, "decode_scale", codes, "ue4m3", ue4m3_bit7="clear")
    same_refusal(session, "decode_scale", codes, "ue8m0", ue4m3_bit7="clear")


def test_the_dtype_of_scales_is_a_rule_of_scales(session: qc.Session) -> None:
    wrong, x = np.ones((), np.float64), np.ones(4, np.float32)
    for given in (wrong, [0.1], [[1], [2, 3]], "text"):
        assert "[SCL-19]" in same_refusal(session, "quantize", x, "q8s.native.t-f32", tensor_scale=given)
        assert "[SCL-15]" in same_refusal(session, "encode_scale", given, "f32")
