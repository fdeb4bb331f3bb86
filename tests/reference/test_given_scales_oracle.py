"""quantize under given scales against the oracle: values and codes of either level, static tensor scales, refusals."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import REFERENCE, Mismatch, all_widened, check_quantize, floats, reference_scheme
from ..oracle import INF32, MAX32, NAN32, SIGN32, S, Shape
from .test_quantize_oracle import ELEMENTS, TYPE_PAIRS, Table, check, flat, seed_of

EDGES = (0, SIGN32, 1, *(g.bits(n) for n in ("1", "-1", "0.1", "-0.1", "448", "449", "65504", "70000")))

scale_numbers = st.one_of(
    st.sampled_from(EDGES),
    st.sampled_from(g.SPECIAL),
    g.patterns32,
    st.integers(-8, 8).map(lambda e: oracle.rn32(Fraction(2) ** e)),
    st.sampled_from(g.positive_scales("ue4m3")),
)


GIVEN = ("scales", "scale_codes", "tensor_scale", "tensor_scale_code")


@settings(g.PROPERTY, max_examples=400)
@given(data=st.data(), shape=g.shapes(largest_rank=3, largest_size=5))
def test_any_given_scales(data: st.DataObject, shape: Shape) -> None:
    """Values and codes for either level, legal or not, also for a level that is not there and of wrong number."""
    s = data.draw(g.schemes(len(shape)))
    cells, size = math.prod(oracle.grid(shape, s)), math.prod(shape)
    source = random.Random(data.draw(g.seeds))
    x = flat(g.Rows(s, source.getrandbits(32)).rows(-(-size // 16)))[:size]
    kinds = data.draw(st.lists(st.sampled_from(GIVEN), max_size=2, unique=True))
    given: dict[str, Any] = {}
    count = cells if data.draw(st.integers(0, 9)) else cells + data.draw(st.sampled_from((-1, 1)))
    drawn = data.draw(st.lists(scale_numbers, min_size=1, max_size=4))
    if "scales" in kinds:
        given["scales"] = [source.choice(drawn) for _ in range(max(count, 0))]
    if "scale_codes" in kinds:
        given["scale_codes"] = [g.scale_code(s.block_type or "ue8m0", source) for _ in range(max(count, 0))]
    if "tensor_scale" in kinds:
        given["tensor_scale"] = drawn[0]
    if "tensor_scale_code" in kinds:
        given["tensor_scale_code"] = g.scale_code(s.tensor or "ue8m0", source)
    check(x, shape, s, **given)


def given_values(kind: str) -> list[int]:
    """Values that a given scale of the type may have: representable, not representable, beyond, 0, NaN, Inf; negatives."""
    scales = g.positive_scales(kind)
    positive = [*scales[:2], *scales[-2:], *scales[:: max(1, len(scales) // 6)]]
    negative = [p | SIGN32 for p in positive] + [SIGN32] if kind in oracle.WIDE else []
    return [
        0,
        1,
        *positive,
        *g.around(positive[2:5]),
        *negative,
        MAX32,
        INF32,
        NAN32,
        SIGN32 | NAN32,
        g.bits("0.3"),
        g.bits(1000),
    ]


@ELEMENTS
@pytest.mark.parametrize("kind", g.SCALE_TYPES)
def test_given_scales_of_one_level(value: str, table: Table, kind: str) -> None:
    """Each legal value and each edge code as a block's scale and as a tensor's, over ties and specials."""
    s = S(value, "native", block=(8,), block_type=kind, table=table)
    t = S(value, "native", tensor=kind, table=table)
    make = g.Rows(s, seed_of(s), 8)
    values, codes = given_values(kind), list(g.edge_scale_codes(kind))
    over_values = [
        make.ties(p & 0x7FFFFFFF if oracle.is_finite(p) and not oracle.is_zero(p) else g.ONE) for p in values
    ]
    over_codes = make.rows(len(codes))
    check(flat(over_values), (len(values), 8), s, scales=values)
    check(flat(over_codes), (len(codes), 8), s, scale_codes=codes)
    for p, row in zip(values, over_values, strict=True):
        check(row, (8,), t, tensor_scale=p)
    for code, row in zip(codes, over_codes, strict=True):
        check(row, (8,), t, tensor_scale_code=code)


@pytest.mark.parametrize(("tensor", "kind"), TYPE_PAIRS)
def test_given_scales_of_two_levels(tensor: str, kind: str) -> None:
    """Both levels given, in values and codes; the tensor scale alone; block scales alone, which is refused."""
    for value, table in (g.ELEMENTS["q4s"], g.ELEMENTS["e5m2"], g.ELEMENTS["nf4"]):
        s = S(value, "native", tensor=tensor, block=(8,), block_type=kind, table=table)
        make = g.Rows(s, seed_of(s), 8)
        values, codes = given_values(kind), list(g.edge_scale_codes(kind))
        x, y = flat(make.rows(len(values))), flat(make.rows(len(codes)))
        for p in make.source.sample(given_values(tensor), 2):
            check(x, (len(values), 8), s, tensor_scale=p, scales=values)
            check(y, (len(codes), 8), s, tensor_scale=p, scale_codes=codes)
        for code in make.source.sample(g.edge_scale_codes(tensor), 2):
            check(x, (len(values), 8), s, tensor_scale_code=code, scales=values)
            check(y, (len(codes), 8), s, tensor_scale_code=code, scale_codes=codes)
        assert check_quantize(x, (len(values), 8), s, scales=values) is None
        assert check_quantize(y, (len(codes), 8), s, scale_codes=codes) is None


@pytest.mark.parametrize(("tensor", "kind"), TYPE_PAIRS)
def test_static_tensor_scale(tensor: str, kind: str) -> None:
    """A tensor scale alone fixes g; block scales follow it and may saturate; g must be finite and above 0."""
    for value, table in (g.ELEMENTS["e2m1"], g.ELEMENTS["one side, no zero"]):
        s = S(value, "native", tensor=tensor, block=(8,), block_type=kind, table=table)
        make = g.Rows(s, seed_of(s) + 1, 8)
        for p in given_values(tensor)[::2]:
            check(flat(make.source.sample(make.rows(15), 4)), (4, 8), s, tensor_scale=p)
        for code in g.edge_scale_codes(tensor)[::2]:
            check(flat(make.source.sample(make.rows(15), 4)), (4, 8), s, tensor_scale_code=code)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_given_scales_of_16_bits(kind: str) -> None:
    s = S("q4s", "native", tensor="f32", block=(2,), block_type="f32")
    numbers = [1, 0x3C01, 0x7BFF, 0x0400, 0x7C01, 0x0001, 0]
    wide = [all_widened(kind)[p] for p in numbers]
    x = flat([[g.ONE, g.bits("-0.3")]] * 7)
    want = oracle.quantize(x, (7, 2), s, scales=wide, tensor_scale=wide[1])
    have = qs.quantize(
        floats(x, "f32", (7, 2)),
        reference_scheme(s),
        scales=floats(numbers, kind, (7, 1)),
        tensor_scale=floats(numbers[1:2], kind),
    )
    assert have.codes.ravel().tolist() == want.codes
    assert have.scale_codes is not None and have.scale_codes.ravel().tolist() == want.scale_codes
    assert have.tensor_scale_code is not None and int(have.tensor_scale_code) == want.tensor_scale_code


def test_scales_of_another_shape_are_refused() -> None:
    """Exactly the grid: not flat, not transposed, not broadcast."""
    scheme, x = qs.Scheme("q4s", block=((2,), "f16")), np.ones((3, 4), np.float32)
    for shape in ((6,), (2, 3), (1, 3, 2), (1, 2), (3, 1), (), (1, 1)):
        with pytest.raises(qs.QuantspecError):
            qs.quantize(x, scheme, scales=np.ones(shape, np.float32))
        with pytest.raises(qs.QuantspecError):
            qs.quantize(x, scheme, scale_codes=np.ones(shape, np.uint16))
    assert qs.quantize(x, scheme, scales=np.ones((3, 2), np.float32)).scale_codes is not None


def test_a_given_scale_that_is_not_refused_is_caught() -> None:
    """-0.1 stored as the nearest f16, a tensor scale of 0 taken."""

    def lenient(x: Any, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
        for name in ("scales", "tensor_scale"):
            if name in given:
                given[name] = np.abs(given[name]) + np.float32(1)
        return qs.quantize(x, scheme, **given)

    liar = replace(REFERENCE, quantize=lenient)
    with pytest.raises(Mismatch):
        check([g.ONE], (1,), S("q4s", "native", block=(2,), block_type="f16"), liar, scales=[g.bits("-0.1")])
    with pytest.raises(Mismatch):
        check([g.ONE], (1,), S("q4s", "native", tensor="f32", block=(2,), block_type="f16"), liar, tensor_scale=0)
