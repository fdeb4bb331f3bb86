"""The exported strategies: every value is legal, the boundaries are hit, what is found shrinks to something small."""

import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import quantspec
from quantspec import SCALES, VALUES, QuantspecError, Scheme
from quantspec_conformance.testing.elements import legal_codes
from quantspec_conformance.testing.strategies import (
    DTYPES,
    blocks,
    codes,
    patterns,
    scale_codes,
    schemes,
    shapes,
    tensors,
)

from .conftest import environment

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
QUICK = settings(max_examples=40, deadline=None, database=None, suppress_health_check=CHECKS)
SEARCH = settings(max_examples=600, deadline=None, database=None, derandomize=True, suppress_health_check=CHECKS)
SCHEMES = (
    "e2m1.native.b16-ue4m3.t-f32", "e4m3.native.t-f32", "q4s.packed_native_0.b32-f16", "q8s.packed_u32_1.b2x4-ue8m0",
    "q4f.native.lut-nf4.b64-f32", "e5m2.native.b3-bf16.t-f16",
)  # fmt: skip


def examples_of(strategy: st.SearchStrategy[Any], count: int = 300) -> list[Any]:
    """What a strategy gives, the same at every run."""
    found: list[Any] = []

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=CHECKS,
    )  # fmt: skip
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def fired(x: Any, scheme: str) -> Sequence[str]:
    """The rules that a tensor meets."""
    with np.errstate(all="ignore"), quantspec.trace() as trace:
        quantspec.quantize(x, scheme)
    return trace.rules()


@QUICK
@given(st.data(), st.sampled_from(list(VALUES)))
def test_codes_are_legal(data: st.DataObject, value: str) -> None:
    code = data.draw(codes(value))
    quantspec.decode(np.array([code], np.uint8), value)


@QUICK
@given(st.data(), st.sampled_from(list(SCALES)), st.booleans())
def test_scale_codes_are_legal(data: st.DataObject, scale: str, finite: bool) -> None:
    code = data.draw(scale_codes(scale, finite=finite))
    number = float(quantspec.decode_scale(np.array([code], SCALES[scale].code_dtype), scale)[0])
    assert not finite or 0 < number < float("inf")


@QUICK
@given(st.data(), st.sampled_from(("f32", "f16", "bf16", "f64", "u8", "u16", "u32", "i32")))
def test_patterns_fit_their_dtype(data: st.DataObject, dtype: str) -> None:
    width = {"f32": 32, "f16": 16, "bf16": 16, "f64": 64, "u8": 8, "u16": 16, "u32": 32, "i32": 32}[dtype]
    assert 0 <= data.draw(patterns(dtype)) < 1 << width


@QUICK
@given(st.data(), st.integers(0, 4))
def test_schemes_have_tensors_of_their_rank(data: st.DataObject, rank: int) -> None:
    scheme = data.draw(schemes(rank=rank))
    scheme.require_shape((2,) * rank)
    assert Scheme.parse(scheme.text) == scheme


def test_schemes_keep_to_what_is_asked() -> None:
    chosen = schemes(values=("e2m1", "q4s"), stores=("native",), scales=("ue4m3",), levels=("block",), lookup=False)
    for scheme in examples_of(chosen, 50):
        assert scheme.value.name in ("e2m1", "q4s") and scheme.store.text == "native" and scheme.tensor is None
        assert scheme.block is not None and scheme.block.scale.name == "ue4m3" and not scheme.is_lookup


@QUICK
@given(st.data(), st.sampled_from(SCHEMES), st.sampled_from(list(DTYPES)))
def test_tensors_are_quantized(data: st.DataObject, scheme: str, dtype: str) -> None:
    x = data.draw(tensors(scheme, dtypes=(dtype,)))
    assert x.dtype == DTYPES[dtype]
    with np.errstate(all="ignore"):
        assert quantspec.quantize(x, scheme).shape == x.shape


@QUICK
@given(tensors())
def test_tensors_of_any_scheme_are_quantized(x: Any) -> None:
    with np.errstate(all="ignore"):
        assert quantspec.quantize(x, "e2m1.native.b16-ue4m3.t-f32").shape == x.shape


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 5)])
def test_tensors_have_the_shape_that_is_asked(shape: tuple[int, ...]) -> None:
    assert {x.shape for x in examples_of(tensors("e2m1", shapes=shape), 20)} == {shape}


def test_blocks_have_the_size_of_the_scheme() -> None:
    assert {block.shape for block in examples_of(blocks("q8s.native.b2x4-ue8m0"), 20)} == {(8,)}
    assert {block.shape for block in examples_of(blocks("e2m1", size=5), 20)} == {(5,)}
    assert {block.dtype for block in examples_of(blocks("e4m3"), 20)} == {np.dtype(np.float32)}
    assert max(block.size for block in examples_of(blocks("e2m1.native.b2147483647-f32"), 5)) <= 1024


@pytest.mark.parametrize("scheme", SCHEMES)
def test_tensors_meet_ties_steps_zeros_and_nan(scheme: str) -> None:
    """What random numbers do not meet: ties in one tensor of twenty at least, and every other boundary now and then."""
    found = examples_of(tensors(scheme))
    rules = Counter(rule for x in found for rule in dict.fromkeys(fired(x, scheme)))
    if not Scheme.parse(scheme).is_lookup:  # a tie of a table has no rule of its own
        assert rules["VAL-7"] > len(found) / 20
    assert rules["QNT-2"] > 0  # NaN
    assert rules["SCL-9"] + rules["SCL-13"] > 5  # a scale of zero, or the floor of the tensor scale
    bits = np.concatenate([x.reshape(-1).view(np.uint32) for x in found])
    magnitude = bits & np.uint32(0x7FFFFFFF)
    assert ((magnitude > 0) & (magnitude < 0x800000)).any() and (bits == 0x80000000).any()
    assert ((magnitude >= 0x7F000000) & (magnitude <= 0x7F800000)).any()  # the largest numbers, infinities


def test_random_numbers_meet_no_ties_which_is_why_these_strategies_exist() -> None:
    """The liar: a strategy of ordinary numbers fails the check above."""
    source = np.random.default_rng(0)
    drawn = [source.standard_normal((3, 20)).astype(np.float32) for _ in range(100)]
    assert sum("VAL-7" in fired(x, SCHEMES[0]) for x in drawn) < 5


@pytest.mark.parametrize("scheme", ["q4s.native.b4-f16", "e2m1.native.b8-ue8m0", "e4m3.native.b4-ue4m3"])
def test_steps_of_scales_are_met_on_both_sides(scheme: str) -> None:
    """Largest magnitudes at H times a scale of the type, and one pattern above it, where the scale is the next one."""
    row = Scheme.parse(scheme)
    assert row.block is not None
    met = Counter[str]()
    for block in examples_of(blocks(row)):
        finite = block[np.isfinite(block)]
        peak = np.max(np.abs(finite), initial=np.float32(0))
        if peak == 0:
            continue
        with np.errstate(all="ignore"):
            code = quantspec.quantize(block, scheme).scale_codes
            scale = quantspec.decode_scale(np.asarray(code), row.block.scale).reshape(-1)[0]
            met["at"] += bool(np.float32(scale * np.float32(row.half_range)) == peak)
            below = np.array([peak.view(np.uint32) - 1], np.uint32).view(np.float32)
            met["above"] += bool(
                quantspec.quantize(below, f"{row.value.name}.native.b1-{row.block.scale.name}").scale_codes != code
            )
    assert met["at"] > 20 and met["above"] > 1


@pytest.mark.parametrize("value", list(VALUES))
def test_every_code_of_small_formats_is_drawn(value: str) -> None:
    legal = set(legal_codes(Scheme(value)))
    drawn = set(examples_of(codes(value), 1500))
    assert drawn <= legal
    assert len(legal) > 16 or drawn == legal


@pytest.mark.parametrize("scale", list(SCALES))
def test_scale_codes_meet_every_class(scale: str) -> None:
    row = SCALES[scale]
    drawn = np.array(examples_of(scale_codes(scale)), row.code_dtype)
    number = quantspec.decode_scale(drawn, scale)
    assert np.isnan(number).any() and (number == 1).any()
    assert not row.has_zero or (number == 0).any()
    assert not row.signed or ((number < 0).any() and np.isinf(number).any())


def test_what_is_found_shrinks() -> None:
    """A tie alone: two elements that are not zero, one of them the largest of its block."""
    scheme = "e2m1.native.b16-ue8m0"
    x = find(tensors(scheme, shapes=(4,)), lambda x: "VAL-7" in fired(x, scheme), settings=SEARCH)
    assert np.count_nonzero(x) == 2
    nan = find(tensors(scheme), lambda x: bool(np.isnan(x).any()), settings=SEARCH)
    assert nan.size == 1
    assert find(codes("e4m3"), lambda code: True, settings=SEARCH) == 0
    assert find(scale_codes("ue8m0"), lambda code: True, settings=SEARCH) == 127
    assert find(patterns("f16"), lambda pattern: pattern > 0x7C00, settings=SEARCH) in (0x7E00, 0x7C01, 0x8000)
    assert find(shapes(), lambda shape: True, settings=SEARCH) == (1,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: patterns("f8"), "dtype='f8'; allowed: f32"),
        (lambda: scale_codes("ue5m3"), "scale='ue5m3'; allowed: f32"),
        (lambda: tensors("e2m1", dtypes=("f64",)), "dtypes: 'f64'; allowed: f32, f16, bf16"),
    ],
)
def test_a_wrong_argument_says_what_is_allowed(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_text_that_is_no_scheme_is_refused_at_once() -> None:
    with pytest.raises(QuantspecError, match="e9m9"):
        tensors("e9m9")
    with pytest.raises(QuantspecError, match="e9m9"):
        blocks("e9m9")


def test_without_hypothesis_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['hypothesis'] = None\nimport quantspec_conformance.testing.strategies"
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert found.returncode == 1
    assert (
        "ImportError: quantspec_conformance.testing.strategies needs Hypothesis: pip install hypothesis" in found.stderr
    )
