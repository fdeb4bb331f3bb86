"""The data are what their names say: ties tie, scale steps lie at steps, and every draw can be made again."""

import numpy as np
import pytest

import quantspec
from quantspec import SCALES, Scheme
from quantspec.rounding import widen
from quantspec_conformance import matrix
from quantspec_conformance.cases import data, plan_case
from quantspec_conformance.families import FAMILIES, draw_codes, draw_scale_codes

ONE_EACH = ["q8f.native.b16-f32", "q4s.native.t-f16", "e2m1.native.b16-ue4m3.t-f32", "e4m3.native.b3-ue8m0"]
LUT = "q4f.native.b16-f32".replace("native.", "native.lut-nf4.")


def drawn(text: str, family: str, shape: str = "3x70") -> np.ndarray:
    return data(plan_case(f"{text}/{shape}/{family}"), 0).x


@pytest.mark.parametrize("text", ONE_EACH)
def test_ties_are_ties_of_the_scale_that_is_chosen(text: str) -> None:
    x = drawn(text, "ties")
    with quantspec.trace() as trace, np.errstate(all="ignore"):
        quantspec.quantize(x, text)
    tied = np.mean(["VAL-7" in trace.rules((i, j)) for i in range(3) for j in range(70)])
    assert tied > 0.15, f"{text}: {tied:.0%} of the elements tie"


def test_ties_of_a_table_lie_at_its_thresholds() -> None:
    x = drawn(LUT, "ties")
    scheme = Scheme.parse(LUT)
    below, above = (np.nextafter(x, np.float32(to)) for to in (-np.inf, np.inf))
    q = quantspec.quantize(x, scheme)
    codes = [
        quantspec.quantize(y, scheme, scale_codes=q.scale_codes).codes
        for y in (np.nextafter(below, np.float32(-np.inf)), np.nextafter(above, np.float32(np.inf)))
    ]
    assert np.mean(codes[0] != codes[1]) > 0.5


@pytest.mark.parametrize("text", ["q8s.native.b16-f16", "e2m1.native.b3-ue8m0", "q4f.native.b1-ue4m3"])
def test_scale_steps_lie_on_both_sides_of_a_step(text: str) -> None:
    x, scheme = drawn(text, "scale-steps"), Scheme.parse(text)
    assert scheme.block is not None
    codes = quantspec.quantize(x, scheme).scale_codes
    beside = [
        quantspec.quantize(
            (widen(x) + np.uint32(d) * (widen(x) & np.uint32(0x7FFFFFFF) < 0x7F7FFFF0)).view(np.float32), text
        )
        for d in (2, 2**32 - 2)
    ]
    assert codes is not None
    moved = [np.mean(other.scale_codes != codes) for other in beside]
    assert max(moved) > 0.05, f"{text}: the scales move in {moved}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_drawn_again_from_its_case(family: str) -> None:
    first, again = drawn("e2m1.native.b16-f16", family), drawn("e2m1.native.b16-f16", family)
    assert first.dtype == again.dtype
    assert np.array_equal(widen(first), widen(again))
    other = drawn("e2m1.packed_u32_0.b16-f16", family)
    assert np.array_equal(widen(first), widen(other)), "schemes of a group share their data"


@pytest.mark.parametrize(
    ("family", "pattern"),
    [("nan", 0x7F800001), ("inf", 0x7F800000), ("negative-zero", 0x80000000), ("flt-max", 0x7F7FFFFF)],
)
def test_families_hold_what_they_are_named_after(family: str, pattern: int) -> None:
    bits = widen(drawn("q8s.native.b16-f32", family)).ravel()
    mask = np.uint32(0xFFFFFFFF if pattern == 0x80000000 else 0x7FFFFFFF)
    assert ((bits & mask) == pattern).any()


def test_next_above_lies_above_the_step_of_ue8m0() -> None:
    q = quantspec.quantize(drawn("q8s.native.b1-ue8m0", "next-above"), "q8s.native.b1-ue8m0")
    assert q.scale_codes is not None
    assert set(q.scale_codes.ravel().tolist()) == {0, 1}


@pytest.mark.parametrize("name", SCALES)
def test_drawn_scale_codes_are_legal_and_hold_the_special_ones(name: str) -> None:
    row = SCALES[name]
    codes = draw_scale_codes(np.random.default_rng(0), row, (4000,))
    numbers = quantspec.decode_scale(codes, row)
    assert np.isnan(numbers).any()
    assert np.signbit(numbers).any() == row.signed
    assert np.isinf(numbers).any() == (row.infinity_code is not None)
    finite = draw_scale_codes(np.random.default_rng(0), row, (4000,), finite=True)
    assert np.isfinite(quantspec.decode_scale(finite, row)).all()


def test_drawn_codes_are_all_the_legal_ones() -> None:
    scheme = matrix.parse("q4s.native.t-f32")
    codes = draw_codes(np.random.default_rng(0), scheme, (2000,))
    assert set(quantspec.decode(codes, "q4s").tolist()) == set(range(-8, 8))
