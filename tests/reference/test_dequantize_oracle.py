"""dequantize against the oracle: every code, scales of every sort, every output type."""

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import REFERENCE, Mismatch, check_dequantize
from ..oracle import Q, S
from .test_quantize_oracle import ELEMENTS, Table


@ELEMENTS
@pytest.mark.parametrize("kind", g.SCALE_TYPES)
def test_dequantize_of_every_code(value: str, table: Table, kind: str) -> None:
    """All legal codes times scales of every sort of a block, a tensor and both, to each output type."""
    legal = oracle.valid_codes(value, table is not None)
    source = random.Random(f"{value} {kind}")
    scales = [*g.edge_scale_codes(kind), *(g.scale_code(kind, source) for _ in range(4))]
    some = source.sample(legal, min(len(legal), 12))
    for code in scales[:: 1 if len(legal) <= 16 else 7]:
        check_dequantize(
            Q(legal, None, code), (len(legal),), S(value, "native", tensor=kind, table=table), outputs=g.OUTPUTS
        )
    q = Q(some * len(scales), scales)
    shape = (len(scales), len(some))
    check_dequantize(q, shape, S(value, "native", block=(len(some),), block_type=kind, table=table), outputs=g.OUTPUTS)
    for tensor in g.SCALE_TYPES:
        s = S(value, "native", tensor=tensor, block=(len(some),), block_type=kind, table=table)
        for code in source.sample(g.edge_scale_codes(tensor), 2):
            check_dequantize(replace_tensor(q, code), shape, s, outputs=(source.choice(g.OUTPUTS),))


def replace_tensor(q: Q, code: int) -> Q:
    return Q(q.codes, q.scale_codes, code)


@pytest.mark.parametrize("out", ["f16", "bf16"])
def test_outputs_are_rounded_once(out: str) -> None:
    """Scales that put a product next to every kind of midpoint of the output, subnormal and overflow included."""
    every = g.positive_scales(out)
    numbers = every[::97]
    middles = [
        oracle.rn32((oracle.value(a) + oracle.value(b)) / 2) for a, b in zip(numbers, every[1::97], strict=False)
    ]
    limit = g.bits(65520) if out == "f16" else g.bits(Fraction(2) ** 128 - Fraction(2) ** 119)
    scales = g.around([*middles, *numbers, limit, oracle.rn32(oracle.value(every[0]) / 2)])
    s = S("q2s", "native", block=(2,), block_type="f32")
    check_dequantize(Q([1, 0xFF] * len(scales), scales), (len(scales), 2), s, outputs=(out,))


@settings(g.PROPERTY, max_examples=200)
@given(t=g.tensors())
def test_dequantize_of_anything(t: oracle.T) -> None:
    check_dequantize(*t, outputs=g.OUTPUTS)


# ---------------------------------------------------------------- liars


def twice_rounded(q: qs.Quantized, out: str) -> Any:
    """s * v narrowed factor by factor instead of once at the end."""
    assert q.scale_codes is not None and q.scheme.block is not None
    v, s = qs.decode(q.codes, q.scheme.value), qs.decode_scale(q.scale_codes, q.scheme.block.scale)
    with np.errstate(all="ignore"):
        return (v * s.astype(np.float16).astype(np.float32)).astype(np.float16) if out == "f16" else v * s


def output_changed(change: Callable[[Any], Any]) -> Callable[..., Any]:
    def dequantize(q: qs.Quantized, out: str) -> Any:
        return change(qs.dequantize(q, out))

    return dequantize


def truncated(q: qs.Quantized, out: str) -> Any:
    """bf16 by cutting the lower half off."""
    y = qs.dequantize(q, "f32")
    return (
        (y.view(np.uint32) >> 16).astype(np.uint16).view(ml_dtypes.bfloat16) if out == "bf16" else qs.dequantize(q, out)
    )


DEQUANTIZE_LIARS: dict[str, Callable[..., Any]] = {
    "factors narrowed first": twice_rounded,
    "bf16 truncated": truncated,
    "f16 subnormals flushed": output_changed(lambda y: np.where(np.abs(y) < 2.0**-14, 0, y).astype(y.dtype)),
    "f32 subnormals flushed": output_changed(lambda y: np.where(np.abs(y) < 2.0**-126, 0, y).astype(y.dtype)),
    "NaN with a payload": output_changed(lambda y: np.where(np.isnan(y), y.dtype.type("-nan"), y).astype(y.dtype)),
    "overflow saturates": output_changed(
        lambda y: np.where(np.isinf(y), np.copysign(np.float32(1), y), y).astype(y.dtype)
    ),
}


@pytest.mark.parametrize("name", DEQUANTIZE_LIARS)
def test_a_dequantize_that_lies_is_caught(name: str) -> None:
    s = S("q4f", "native", block=(16,), block_type="f32")
    scales = [p & 0x7FFFFFFF for p in (*g.SPECIAL, *g.random_patterns(5, 200))] + g.around(g.POWERS[::8])
    q = Q(oracle.valid_codes("q4f") * len(scales), scales)
    with pytest.raises(Mismatch):
        check_dequantize(
            q, (len(scales), 16), s, verbs=replace(REFERENCE, dequantize=DEQUANTIZE_LIARS[name]), outputs=g.OUTPUTS
        )
