"""Upstream's expected numbers: codecs, scales and dequantize; and that no case of the file is forgotten."""

from fractions import Fraction
from typing import Any

import numpy as np

import quantspec as qs

from .. import oracle
from ..bridge import Verbs
from . import test_burn_layout, test_burn_quantize
from .facts import (
    BURN,
    TESTED,
    Case,
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
from .ledger import BURN_DIFFERS, BURN_LEFT_OUT

MODULES = (test_burn_layout, test_burn_quantize)


def test_every_case_is_tested_or_left_out() -> None:
    assert all(module.__doc__ for module in MODULES), "imported, so their cases are registered"
    assert TESTED["burn"] | set(BURN_LEFT_OUT) == set(BURN)
    assert not TESTED["burn"] & set(BURN_LEFT_OUT)
    assert set(BURN_DIFFERS) <= TESTED["burn"]


def test_nothing_is_left_out() -> None:
    assert BURN_LEFT_OUT == {}


# ---------------------------------------------------------------- codecs


@burn("decode")
def test_a_code_decodes(verbs: Verbs, case: Case) -> None:
    special = {"NaN": 0x7FC00000, "Infinity": 0x7F800000}
    value = case["value"]
    expected = special[value] if isinstance(value, str) else int(single(value).view(np.uint32))
    assert bits_of(verbs.decode(code_bytes([case["code"]]), case["format"].lower())) == [expected]


@burn("round_to_format")
def test_a_number_rounds_to_the_format(verbs: Verbs, case: Case) -> None:
    value = case["value"].lower()
    decoded = verbs.decode(verbs.encode(single([case["scaled"]]), value), value)
    assert bits_of(decoded) == bits_of(single([case["decoded"]]))


@burn("round_to_integer")
def test_a_number_rounds_to_an_integer(verbs: Verbs, case: Case) -> None:
    codes = verbs.encode(single([case["scaled"]]), case["value"].lower())
    assert codes.tolist() == code_bytes([case["code"]]).tolist()


@burn("encode")
def test_numbers_encode(verbs: Verbs, case: Case) -> None:
    x, name = single(case["input"]), case["format"].lower()
    if name in qs.SCALES:
        assert verbs.encode_scale(x, name).tolist() == case["codes"]
        return
    codes = verbs.encode(x, name)
    assert codes.tolist() == case["codes"]
    if "decoded" in case:
        assert bits_of(verbs.decode(codes, name)) == bits_of(single(case["decoded"]))
    if case.get("property") == "0x7F decodes to NaN":
        assert bits_of(verbs.decode(code_bytes([0x7F]), name)) == [0x7FC00000]


@burn("encode_bytes")
def test_numbers_encode_to_packed_bytes(verbs: Verbs, case: Case) -> None:
    scheme = tensor_scheme(case["format"].lower(), "packed_native_0")
    q = verbs.quantize(single(case["input"]), scheme, tensor_scale=np.float32(1))
    assert list(verbs.to_bytes(q)[:-4]) == case["bytes"]
    assert bits_of(verbs.dequantize(q)) == bits_of(single(case["decoded"]))


# ---------------------------------------------------------------- scales


@burn("scale_size")
def test_a_stored_scale_takes_its_types_bytes(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme("q8s", block=((1,), case["dtype"].lower()))
    n = len(case["inputs"])
    q = verbs.quantize(np.zeros(n, np.float32), scheme, scales=single(case["inputs"]))
    assert len(verbs.to_bytes(q)) == n + n * case["bytes_per_scale"]


@burn("scale_codec_property")
def test_a_scale_rounded_up_is_stable(verbs: Verbs, case: Case) -> None:
    x = single(case["inputs"])
    for dtype in case["dtypes"]:
        codes = verbs.encode_scale(x, dtype.lower(), "up")
        up = verbs.decode_scale(codes, dtype.lower())
        for rounding in ("up", "nearest"):
            assert verbs.encode_scale(up, dtype.lower(), rounding).tolist() == codes.tolist()
        for before, after in zip(exact(x), exact(up), strict=True):
            assert after >= before or before >= 500


@burn("scale_round")
def test_scales_round_up_and_saturate(verbs: Verbs, case: Case) -> None:
    name = case["dtype"].lower()
    codes = verbs.encode_scale(single(case["inputs"]), name)
    if "outputs" in case:
        assert bits_of(verbs.decode_scale(codes, name)) == bits_of(single(case["outputs"]))
    else:
        assert case["property"] == "all store the same scale"
        assert set(codes.tolist()) == {0xFE}


ABS_MEAN = ("cal-absmean-tensor", "cal-absmean-block")


@burn("calibrate", only=ABS_MEAN)
def test_a_mean_of_magnitudes_sets_the_scale(case: Case) -> None:
    """Upstream gives the range from minus the mean to the mean; in q2s its scale is the mean itself."""
    block = None if case["block"] is None else (case["block"], "f32")
    x = single(case["input"]).reshape(case["shape"])
    for value, half in (("q2s", 1), ("q8s", 127)):
        q = qs.quantize(x, qs.Scheme(value, block=block), recipe="burn-absmean", codec="burn-cpu")
        scales = q.tensor_scale_code if q.scale_codes is None else q.scale_codes
        assert scales is not None
        expected = [
            formula_bits((1, mean, half)) for mean in case["max"]
        ]  # upstream's sum of decimals is exact, ours rounds
        assert all(abs(int(a) - b) <= 1 for a, b in zip(scales.ravel(), expected, strict=True))
        assert case["min"] == [-mean for mean in case["max"]]
        assert q.scale_codes is None or list(q.scale_codes.shape) == case["range_shape"]


@burn("matmul")
def test_a_product_is_upstreams_within_its_bounds(case: Case) -> None:
    """w is quantized; where only x is, both sides are transposed, and where both are, x is dequantized."""
    sides: dict[str, Any] = {}
    for name in ("lhs", "rhs"):
        x = single(case[name]["data"]).reshape(case[name]["shape"])
        scheme = qs.Scheme.from_burn(case["scheme"])
        sides[name] = qs.quantize(x, scheme) if case[name]["quantized"] else x
    left, right = sides["lhs"], sides["rhs"]
    if not case["rhs"]["quantized"]:
        y = qs.product(np.ascontiguousarray(right.T), qs.permute(left, (1, 0))).T
    else:
        y = qs.product(qs.dequantize(left) if case["lhs"]["quantized"] else left, right)
    assert within(y, single(case["expected"]).reshape(y.shape), relative=case.get("rel_tol", 0.02))


@burn("calibrate", left_out=ABS_MEAN)
def test_a_min_max_range_sets_the_scale(verbs: Verbs, case: Case) -> None:
    block = None if case["block"] is None else (case["block"], "f32")
    q = verbs.quantize(single(case["input"]).reshape(case["shape"]), qs.Scheme("q8s", block=block))
    ends = zip(case["min"], case["max"], strict=True)
    expected = [formula_bits((1, max(abs(low), abs(high)), 127)) for low, high in ends]
    scales = q.tensor_scale_code if q.scale_codes is None else q.scale_codes
    assert scales is not None
    assert scales.ravel().tolist() == expected
    assert q.scale_codes is None or list(q.scale_codes.shape) == case["range_shape"]


def range_tensor(verbs: Verbs, case: Case) -> qs.Quantized:
    """A tensor with one block of four for each range of the case, the ends of the range first."""
    x = np.zeros((len(case["min"]), 4), np.float32)
    x[:, 0], x[:, 1] = single(case["min"]), single(case["max"])
    q: qs.Quantized = verbs.quantize(x, qs.Scheme.from_burn(case["scheme"]))
    return q


@burn("qparams", only=("qp-tensor", "qp-block"))
def test_scales_of_a_range(verbs: Verbs, case: Case) -> None:
    q = range_tensor(verbs, case)
    level, scales = ("tensor", q.tensor_scale_code) if q.scale_codes is None else ("block", q.scale_codes)
    assert (q.scheme.block is None) == (level == "tensor")
    assert scales is not None
    ends = zip(case["min"], case["max"], strict=True)
    assert scales.ravel().tolist() == [formula_bits((1, max(abs(low), abs(high)), 127)) for low, high in ends]
    for shown, scale in zip(case["scales"], exact(verbs.decode_scale(scales, "f32")), strict=True):
        assert shows(shown, scale)


@burn("qparams", only=("qp-two-level", "qp-two-level-zero"))
def test_two_levels_of_a_range(verbs: Verbs, case: Case) -> None:
    q = range_tensor(verbs, case)
    assert q.scale_codes is not None
    assert q.tensor_scale_code is not None
    g = verbs.decode_scale(q.tensor_scale_code, "f32")
    if case["id"] == "qp-two-level-zero":
        assert case["property"] == "global > 0 and all scales finite"
        assert bits_of(g) == 0x00800000
        assert q.scale_codes.ravel().tolist() == [0] * 4
        return
    blocks = exact(verbs.decode_scale(q.scale_codes, "ue4m3"))
    assert max(blocks) == Fraction(case["max_scale"])
    for low, high, b in zip(case["min"], case["max"], blocks, strict=True):
        raw = oracle.value(formula_bits((1, max(abs(low), abs(high)), 127)))
        assert raw <= exact(g)[0] * b <= raw * Fraction(9, 8), "rounded up by less than a step of ue4m3"


# ---------------------------------------------------------------- dequantize


@burn("dequantize")
def test_codes_times_a_scale(verbs: Verbs, case: Case) -> None:
    scale = single(case["scale"])
    codes = code_bytes(case["codes"]).reshape(case["shape"])
    y = verbs.dequantize(qs.Quantized(tensor_scheme(case["value"].lower()), codes, None, scale.view(np.uint32)))
    assert bits_of(y.ravel()) == product_bits(int(scale.view(np.uint32)), case["codes"])
    assert all(shows(shown, number) for shown, number in zip(case["dequantized"], exact(y), strict=True))


@burn("dequantize_words")
def test_words_dequantize(verbs: Verbs, case: Case) -> None:
    value, words = case["value"].lower(), np.array(case["words"], np.uint32)
    scale = case.get("scale_dtype", "F32").lower()
    block = (case["block"], scale) if "block" in case else None
    scheme = qs.Scheme(value, "packed_u32_0", tensor="f32", block=block)
    tensor = single(case["global_scale" if block else "scale"]).view(np.uint32)
    blocks = verbs.encode_scale(single(case["scales"]), scale) if block else None
    if blocks is not None:
        assert bits_of(verbs.decode_scale(blocks, scale)) == bits_of(single(case["scales"])), "stored without rounding"
    shape = (words.size * scheme.store.codes_per_word(scheme.value.bits),)
    q = verbs.unpack(qs.Packed(scheme, shape, words, blocks, tensor))
    if "codes" in case:
        assert q.codes.tolist() == code_bytes(case["codes"]).tolist()
    if "code_values" in case:
        assert bits_of(verbs.decode(q.codes, value)) == bits_of(single(case["code_values"]))
    assert bits_of(verbs.dequantize(q)) == bits_of(single(case["dequantized"]))


@burn("dequantize_lookup")
def test_words_of_indices_dequantize(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme(case["value"].lower(), "packed_u32_0", mode="lookup", table=single(case["table"]))
    words, scale = np.array(case["words"], np.uint32), single(case["scale"]).view(np.uint32)
    q = verbs.unpack(qs.Packed(scheme, (words.size * 8,), words, None, scale))
    assert q.codes.tolist() == case["fields"]
    assert bits_of(verbs.dequantize(q)) == bits_of(single(case["dequantized"]))
