"""Quantizers that lie, each of which the comparison with the oracle must catch."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import REFERENCE, Mismatch, check_quantize, floats, patterns, scale_codes_array
from ..oracle import INF32, SIGN32, S
from .test_quantize_oracle import check_block_only, check_two_levels

Quantize = Callable[..., Any]


def recoded(x: Any, q: qs.Quantized, change: Callable[[qs.Quantized], qs.Quantized]) -> qs.Quantized:
    """Codes chosen again under changed scales: a quantize that picked those scales."""
    changed = change(q)
    again = qs.quantize(x, q.scheme, scale_codes=changed.scale_codes, tensor_scale_code=changed.tensor_scale_code)
    return replace(again, saturation=q.saturation)


def scale_changed(change: Callable[[Any], Any]) -> Quantize:
    """quantize whose block scale codes are changed before use."""

    def quantize(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
        q = qs.quantize(x, scheme, **given)

        def changed(q: qs.Quantized) -> qs.Quantized:
            assert q.scale_codes is not None
            return replace(q, scale_codes=change(q.scale_codes).astype(q.scale_codes.dtype))

        return recoded(x, q, changed)

    return quantize


def input_changed(change: Callable[[int], int]) -> Quantize:
    """quantize of a changed input."""

    def quantize(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
        return qs.quantize(floats([change(p) for p in patterns(x)], "f32", x.shape), scheme, **given)

    return quantize


def codes_from(quotient: Callable[[Any, Any], Any]) -> Quantize:
    """quantize whose quotients are computed another way (blocks of 16, block level only)."""

    def quantize(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
        q = qs.quantize(x, scheme, **given)
        if x.ndim != 2 or q.scale_codes is None or scheme.block is None:
            return q
        s = qs.decode_scale(q.scale_codes, scheme.block.scale)
        with np.errstate(all="ignore"):
            other = np.asarray(quotient(x, s), np.float32)
        ordinary = np.isfinite(x) & np.isfinite(s) & (s != 0)
        return replace(q, codes=np.where(ordinary, qs.encode(other, scheme.value), q.codes).astype(np.uint8))

    return quantize


def saturation_changed(change: Callable[[qs.Saturation], qs.Saturation]) -> Quantize:
    def quantize(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
        q = qs.quantize(x, scheme, **given)
        return replace(q, saturation=change(q.saturation))

    return quantize


def infinity_counts(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
    """amax over all elements, infinities as FLT_MAX."""
    q = qs.quantize(np.where(np.isinf(x), np.copysign(np.float32(3.4028235e38), x), x), scheme, **given)
    return qs.quantize(x, scheme, scale_codes=q.scale_codes, tensor_scale_code=q.tensor_scale_code)


def unfloored(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
    """Two levels without the 2^-126 floor of g (f32 tensor scale)."""
    q = qs.quantize(x, scheme, **given)
    if q.tensor_scale_code != 0x00800000:
        return q
    return qs.quantize(x, scheme, tensor_scale_code=np.uint32(0x00400000))


def flush_f16(codes: Any) -> Any:
    return np.where(codes & 0x7C00 == 0, 0, codes)


BLOCK_LIARS: dict[str, tuple[str, str, Quantize]] = {
    "scale rounded down": ("q4s", "f16", scale_changed(lambda c: np.where(c > 0, c - 1, 0))),
    "scale one up": ("e2m1", "bf16", scale_changed(lambda c: np.where(c < 0x7F7F, c + 1, c))),
    "subnormal scales flushed": ("q8s", "f16", scale_changed(flush_f16)),
    "smallest ue8m0 is one more": ("e4m3", "ue8m0", scale_changed(lambda c: np.maximum(c, 1))),
    "smallest f32 lost": ("q8f", "f32", scale_changed(lambda c: np.where(c == 1, 0, c))),
    "subnormal inputs flushed": ("q2s", "f32", input_changed(lambda p: p & SIGN32 if p & 0x7F800000 == 0 else p)),
    "sign of NaN lost": ("e5m2", "f32", input_changed(lambda p: p & 0x7FFFFFFF if oracle.is_nan(p) else p)),
    "sign of zero lost": ("e3m2", "f16", input_changed(lambda p: 0 if oracle.is_zero(p) else p)),
    "NaN is Inf": ("e4m3", "bf16", input_changed(lambda p: INF32 if oracle.is_nan(p) else p)),
    "reciprocal": ("q8s", "f32", codes_from(lambda x, s: x * (np.float32(1) / s))),
    "reciprocal, minifloat": ("e2m3", "f16", codes_from(lambda x, s: x * (np.float32(1) / s))),
    "half away": ("q4f", "ue8m0", codes_from(lambda x, s: np.trunc(x / s + np.copysign(np.float32(0.5), x)))),
    "half up": ("q4s", "ue8m0", codes_from(lambda x, s: np.floor(x / s + np.float32(0.5)))),
    "quotient in double": ("q8s", "f32", codes_from(lambda x, s: np.rint(np.float64(x) / s))),
    "infinities count": ("q8s", "bf16", infinity_counts),
    "no saturation report": ("q2s", "ue4m3", saturation_changed(lambda r: qs.Saturation())),
    "saturation count short": ("q2s", "f16", saturation_changed(lambda r: replace(r, count=max(r.count - 1, 0)))),
    "first of saturated wrong": (
        "q2s",
        "f16",
        saturation_changed(lambda r: replace(r, first=r.first and (r.first[0] + 1, 0))),
    ),
}


@pytest.mark.parametrize("name", BLOCK_LIARS)
def test_a_quantize_that_lies_is_caught(name: str) -> None:
    value, kind, lie = BLOCK_LIARS[name]
    with pytest.raises(Mismatch):
        check_block_only(value, None, kind, 300, replace(REFERENCE, quantize=lie))


TWO_LEVEL_LIARS: dict[str, tuple[str, str, str, Quantize]] = {
    "no floor of g": ("e2m1", "f32", "ue4m3", unfloored),
    "block scale rounded down": ("e2m1", "f32", "ue4m3", scale_changed(lambda c: np.where(c > 0, c - 1, 0))),
    "small block scale lost": ("q4s", "f16", "ue4m3", scale_changed(lambda c: np.where(c == 1, 0, c))),
    "tensor saturation unreported": ("q2s", "f16", "ue4m3", saturation_changed(lambda r: replace(r, tensor=False))),
    "blocks of a saturated tensor unreported": (
        "q2s",
        "f16",
        "ue4m3",
        saturation_changed(lambda r: qs.Saturation(0, None, r.tensor)),
    ),
}


@pytest.mark.parametrize("name", TWO_LEVEL_LIARS)
def test_a_two_level_quantize_that_lies_is_caught(name: str) -> None:
    value, tensor, kind, lie = TWO_LEVEL_LIARS[name]
    with pytest.raises(Mismatch):
        check_two_levels(value, None, tensor, kind, 30, replace(REFERENCE, quantize=lie))


def test_codes_taken_as_scales_are_a_mismatch() -> None:
    """The comparison itself: one bit of one scale code, of one code and of the tensor scale."""
    s = S("q4s", "native", tensor="f32", block=(2,), block_type="ue4m3")
    x = [g.ONE, g.bits("0.3"), g.bits(-7), 0]

    def lying(field: str, array: Any) -> Quantize:
        return lambda x, scheme, **given: replace(qs.quantize(x, scheme, **given), **{field: array})

    q = oracle.quantize(x, (4,), s)
    assert q.scale_codes is not None and q.tensor_scale_code is not None
    for lie in (
        lying("codes", np.array([q.codes[0], q.codes[1] ^ 1, *q.codes[2:]], np.uint8)),
        lying("scale_codes", scale_codes_array("ue4m3", [q.scale_codes[0] ^ 1, q.scale_codes[1]], (2,))),
        lying("tensor_scale_code", scale_codes_array("f32", [q.tensor_scale_code ^ 1], ())),
    ):
        with pytest.raises(Mismatch):
            check_quantize(x, (4,), s, verbs=replace(REFERENCE, quantize=lie))
