"""Upstream's expected numbers: quantize, each tensor also held to the oracle bit for bit."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec as qs

from .. import bridge, oracle
from ..bridge import Verbs
from .facts import (
    F32,
    Case,
    arange_input,
    bits_of,
    burn,
    code_bytes,
    exact,
    formula_bits,
    product_bits,
    shows,
    single,
    tensor_scheme,
    within,
)

TWO_LEVEL = "two-level-ue4m3-roundtrip"
SCALE_DTYPE = "flex-scale-dtype"


def checked(verbs: Verbs, x: F32, scheme: qs.Scheme, **given: Any) -> qs.Quantized:
    """The quantized tensor, after it was held bit for bit to the oracle's, its numbers too."""
    s, shape = bridge.oracle_scheme(scheme), x.shape
    bits: dict[str, Any] = {name: bridge.patterns(array) for name, array in given.items()}
    if "tensor_scale" in bits:
        (bits["tensor_scale"],) = bits["tensor_scale"]
    content = bridge.check_quantize(bridge.patterns(x), shape, s, verbs=verbs, **bits)
    assert content is not None
    bridge.check_dequantize(content, shape, s, verbs=verbs)
    q: qs.Quantized = verbs.quantize(x, scheme, **given)
    return q


def stored(q: qs.Quantized) -> npt.NDArray[Any]:
    """The scale codes of a one-level tensor, flat."""
    codes = q.tensor_scale_code if q.scale_codes is None else q.scale_codes
    assert codes is not None
    return codes.ravel()


@burn("quantize_range", "quantize_blocks")
def test_quantize_over_a_range(verbs: Verbs, case: Case) -> None:
    block = (case["block"], "f32") if "block" in case else None
    q = checked(verbs, single(case["input"]), qs.Scheme(case["value"].lower(), block=block))
    assert q.codes.tolist() == code_bytes(case["codes"]).tolist()
    low, high = case["range"]
    assert set(stored(q).tolist()) == {formula_bits((1, max(abs(low), abs(high)), 127))}
    assert bits_of(verbs.dequantize(q)) == bits_of(single(case["dequantized"]))


@burn("quantize_with_scale", left_out=(TWO_LEVEL,))
def test_quantize_with_a_given_scale(verbs: Verbs, case: Case) -> None:
    scheme, x = qs.Scheme.from_burn(case["scheme"]), single(case["input"]).reshape(case["shape"])
    if "scales_formula" in case:
        scales = np.array([formula_bits(f) for f in case["scales_formula"]], np.uint32)
        q = checked(verbs, x, scheme, scales=scales.view(np.float32))
    else:
        bits = int(single(case["scale"]).view(np.uint32)) if "scale" in case else formula_bits(case["scale_formula"])
        scales = np.array([bits], np.uint32)
        q = checked(verbs, x, scheme, tensor_scale=scales.view(np.float32))
    assert stored(q).tolist() == scales.tolist(), "the tensor keeps the scale it is given"
    codes = q.codes.ravel().tolist()
    if "codes" in case:
        assert codes == code_bytes(case["codes"]).tolist()
    for place, code in case.get("codes_at", {}).items():
        assert codes[int(place)] == code & 0xFF
    if "dequant_abs_tol" in case:
        bounds = {"absolute": case["dequant_abs_tol"], "relative": case.get("dequant_rel_tol", 0)}
        assert within(verbs.dequantize(q), x, **bounds)


@burn("quantize_with_scale", only=(TWO_LEVEL,))
def test_quantize_with_both_scales_given(verbs: Verbs, case: Case) -> None:
    assert case["input_rule"] == "row r, col k: (k-15)*0.01*cycle[r%4] in f32"
    cycle, g = single(case["block_scales_cycle"]), single(case["global_scale"])
    rows, columns = case["shape"]
    blocks = np.tile(cycle, rows // 4).reshape(rows, 1)
    k = np.arange(columns, dtype=np.float32) - np.float32(15)
    x = (k * g) * blocks
    q = checked(verbs, x, qs.Scheme.from_burn(case["scheme"]), scales=blocks, tensor_scale=g)
    assert q.codes.tolist() == [code_bytes(list(range(-15, 17))).tolist()] * rows
    assert within(verbs.dequantize(q), x, relative=case["rel_tol"])


@burn("quantize_dynamic", left_out=(SCALE_DTYPE,))
def test_quantize_with_chosen_scales(verbs: Verbs, case: Case) -> None:
    x = single(case["input"]).reshape(case["shape"]) if "input" in case else arange_input(case)
    q = checked(verbs, x, qs.Scheme.from_burn(case["scheme"]))
    listed = [case["derived_scale"]] if "derived_scale" in case else case.get("derived_scales")
    if "scales_formula" in case:
        assert stored(q).tolist() == [formula_bits(f) for f in case["scales_formula"]]
    elif listed is not None:
        assert bits_of(verbs.decode_scale(stored(q), "f32")) == bits_of(single(listed))
    else:
        assert shows(case["scales_approx"][0], exact(verbs.decode_scale(stored(q), "f32"))[0])
    if "scales_shape" in case:
        assert q.scale_codes is not None
        assert list(q.scale_codes.shape) == case["scales_shape"]
    codes = case.get("codes", case.get("derived_codes", case.get("derived_codes_half_even")))
    if codes is not None:
        assert q.codes.ravel().tolist() == code_bytes(codes).tolist()
    bounds = {"absolute": case.get("dequant_abs_tol", 0), "relative": case.get("dequant_rel_tol", 0)}
    assert not any(bounds.values()) or within(verbs.dequantize(q), x, **bounds)


@burn("quantize_dynamic", only=(SCALE_DTYPE,))
def test_a_chosen_scale_is_rounded_up_to_its_type(verbs: Verbs, case: Case) -> None:
    assert case["property"] == "stored scale == round_up_UE4M3(exact) and != exact"
    q = checked(verbs, single(case["input"]).reshape(case["shape"]), qs.Scheme.from_burn(case["scheme"]))
    raw = formula_bits((2, 4.5, 254))
    scale = verbs.decode_scale(stored(q), "ue4m3")
    assert stored(q).tolist() == [oracle.encode_scale("ue4m3", raw)]
    assert exact(scale)[0] > oracle.value(raw)


@burn("dequantize_then_mul10")
def test_codes_of_an_ascending_input(verbs: Verbs, case: Case) -> None:
    q = checked(verbs, single(case["input"]), qs.Scheme.from_burn(case["scheme"]))
    assert q.codes.tolist() == case["derived_codes"]
    times_10 = verbs.dequantize(q) * np.float32(10)
    assert bits_of(times_10) == [
        oracle.multiply32(oracle.rn32(Fraction(10)), y)
        for y in product_bits(stored(q).tolist()[0], case["derived_codes"])
    ]
    for shown, number in zip(case["dequantized_times_10"], exact(times_10), strict=True):
        assert abs(number - Fraction(repr(shown))) <= Fraction(repr(shown)) / 10**6, (
            "upstream prints about seven digits"
        )


@burn("round_trip_tolerance", "transpose_then_quantize_tolerance")
def test_a_round_trip_stays_within_upstreams_bound(verbs: Verbs, case: Case) -> None:
    x = arange_input(case)
    if case["kind"] == "transpose_then_quantize_tolerance":
        x = x.T
        assert not x.flags.c_contiguous
    scheme = qs.Scheme.from_burn(case["scheme"])
    q = checked(verbs, np.ascontiguousarray(x), scheme)
    assert verbs.quantize(x, scheme) == q, "strides do not count"
    assert within(verbs.dequantize(q), x, absolute=case["abs_tol"], relative=case["rel_tol"])
    assert verbs.split(verbs.to_bytes(q), scheme, x.shape) == q


@burn("round_trip_unit_scale")
def test_a_round_trip_at_scale_one(verbs: Verbs, case: Case) -> None:
    x, scheme = single(case["input"]), qs.Scheme.from_burn(case["scheme"])
    q = checked(verbs, x, scheme, scales=np.ones(oracle.grid(x.shape, bridge.oracle_scheme(scheme)), np.float32))
    y = verbs.dequantize(verbs.split(verbs.to_bytes(q), scheme, x.shape))
    if "output" in case:
        assert bits_of(y) == bits_of(single(case["output"]))
    else:
        # the step is 32 from 256 on and 16 below: 300 = 9.4 steps, 130 = 8.1, 200 = 12.5, a tie to the even 12
        assert y.tolist() == [288, -288, 448, -448, 256, -256, 128, 192]
        assert within(y, x, relative=case["rel_tol"])


@burn("round_trip_given_scale")
def test_a_round_trip_with_a_requested_scale(verbs: Verbs, case: Case) -> None:
    x, scheme = single(case["input"]), qs.Scheme.from_burn(case["scheme"])
    q = checked(verbs, x, scheme, scales=single([case["requested_scale"]]))
    assert bits_of(verbs.decode_scale(stored(q), "ue8m0")) == bits_of(single([case["stored_scale"]]))
    assert bits_of(verbs.dequantize(q)) == bits_of(single(case["output"]))


@burn("round_trip_property")
def test_a_power_of_two_scale_round_trips_exactly(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.from_burn(case["scheme"])
    codes = np.tile(np.arange(16, dtype=np.uint8), 2)
    for exponent in case["exponents"]:
        scale = np.ldexp(np.float32(1), exponent).reshape(1)
        x = verbs.decode(codes, "e2m1") * scale
        q = checked(verbs, x, scheme, scales=scale)
        assert q.codes.tolist() == codes.tolist()
        assert bits_of(verbs.dequantize(q)) == bits_of(x)


@burn("store_agreement")
def test_stores_decode_alike(verbs: Verbs, case: Case) -> None:
    x = single(case["input"])
    for value in case["values"]:
        decoded = []
        for store in ("native", "packed_u32_0", "packed_native_0"):
            q = checked(verbs, x, tensor_scheme(value.lower(), store), tensor_scale=single([1]))
            decoded.append(bits_of(verbs.dequantize(verbs.split(verbs.to_bytes(q), q.scheme, x.shape))))
        assert decoded[0] == decoded[1] == decoded[2]
