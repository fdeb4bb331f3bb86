"""Reported faults of codecs: rounding, saturation, NaN, signs, element types, lookup."""

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from ..bridge import Verbs
from .facts import (
    Case,
    bits_of,
    bug,
    code_bytes,
    expected_bits,
    f32,
    f32_of_bits,
    hexes,
    refusal,
    single,
    tensor_scheme,
)

ONE = np.float32(1)


def given_one(verbs: Verbs, x: npt.NDArray[np.float32], value: str) -> list[int]:
    """Codes of a tensor quantized with the tensor scale 1."""
    codes: list[int] = verbs.quantize(x, tensor_scheme(value), tensor_scale=ONE).codes.tolist()
    return codes


@bug("BC-001")
def test_a_tie_goes_to_the_even_code(verbs: Verbs, case: Case) -> None:
    assert verbs.encode(f32(case["input"]), "e4m3").tolist() == hexes(case["expected"]["codes"])


@bug("BC-003")
def test_ties_go_both_up_and_down(verbs: Verbs, case: Case) -> None:
    codes = verbs.encode(f32(case["input"]), "e4m3")
    assert codes.tolist() == hexes(case["expected"]["codes"])
    assert bits_of(verbs.decode(codes, "e4m3")) == expected_bits(case["expected"]["decoded"])


@bug("BC-005")
def test_encode_does_not_round_through_f16(verbs: Verbs, case: Case) -> None:
    for value in ("e4m3", "e5m2"):
        x = f32(case["input"][value])
        assert verbs.encode(x, value).tolist() == hexes(case["expected"][value])
        assert verbs.encode(x.astype(np.float16), value).tolist() != hexes(case["expected"][value])


@bug("BC-007")
def test_every_finite_code_survives_decode_and_encode(verbs: Verbs, case: Case) -> None:
    assert verbs.encode(f32(case["input"]["e2m1"]), "e2m1").tolist() == hexes(case["expected"]["e2m1"])
    for value in ("e2m1", "e3m2", "e2m3", "e4m3", "e5m2"):
        row = qs.VALUES[value]
        codes = np.array([sign | m for sign in (0, row.sign_bit) for m in range(row.largest_code + 1)], np.uint8)
        assert verbs.encode(verbs.decode(codes, value), value).tolist() == codes.tolist()


@bug("BC-009")
def test_ties_below_one_with_a_given_ue8m0_scale(verbs: Verbs, case: Case) -> None:
    for part, expected in zip(case["input"], case["expected"], strict=True):
        scale = code_bytes([part["scale_code"]])
        q = verbs.quantize(f32(part["x"]), "e2m1.native.b32-ue8m0", scale_codes=scale)
        assert q.codes.tolist() == hexes(expected["codes"])


@bug("BC-011")
def test_halves_round_to_even_before_packing(verbs: Verbs, case: Case) -> None:
    even = case["expected"]["one_of"][0]
    q = verbs.quantize(f32(case["input"]), "q4f.packed_u32_0.t-f32", tensor_scale=ONE)
    assert q.codes.tolist() == code_bytes(even["codes"]).tolist()
    assert verbs.pack(q).words.tolist() == hexes(even["words"])


@bug("BC-013")
def test_the_quotient_is_a_division_not_a_reciprocal(verbs: Verbs, case: Case) -> None:
    x, scale = f32(case["input"]["x"]), code_bytes([case["input"]["scale_code"]])
    s = verbs.decode_scale(scale, "ue4m3")
    assert bits_of(x / s) == expected_bits(case["expected"]["quotient_f32"])
    q = verbs.quantize(x, "e2m1.native.b16-ue4m3", scale_codes=scale)
    assert q.codes.tolist() == hexes(case["expected"]["codes"])
    assert verbs.encode(x * (ONE / s), "e2m1").tolist() == [0x4], "the input tells the two apart"


@bug("BC-015")
def test_f64_is_refused_and_a_cast_to_f32_is_the_callers(verbs: Verbs, case: Case) -> None:
    refused = case["expected"]["one_of"][1]
    for name, rule in (("f16", "SCL-15"), ("e4m3", "QNT-1")):
        x = np.array([float.fromhex(text) for text in case["input"][name]], np.float64)
        with pytest.raises(qs.DtypeError, match=rf"float64.*\[{rule}\]"):
            _encoded(verbs, x, name)
        assert _encoded(verbs, x.astype(np.float32), name) == hexes(refused[name])
    with pytest.raises(qs.DtypeError, match=r"float64.*\[QNT-1\]"):
        verbs.quantize(np.zeros(2, np.float64), "q8s.native.t-f32")
    with pytest.raises(qs.DtypeError, match=r"scales.*float64.*\[SCL-19\]"):
        verbs.quantize(np.zeros(2, np.float32), "q8s.native.b2-f32", scales=np.ones(1, np.float64))
    with pytest.raises(qs.DtypeError, match=r"tensor_scale.*float64.*\[SCL-19\]"):
        verbs.quantize(np.zeros(2, np.float32), "q8s.native.t-f32", tensor_scale=np.float64(1))


def _encoded(verbs: Verbs, x: npt.NDArray[np.float64] | npt.NDArray[np.float32], name: str) -> list[int]:
    """Codes in a value format, or in a scale type rounded to nearest."""
    codes = verbs.encode(x, name) if name in qs.VALUES else verbs.encode_scale(x, name, "nearest")
    listed: list[int] = codes.tolist()
    return listed


@bug("BC-019")
def test_e5m2_saturates_at_its_largest_finite_number(verbs: Verbs, case: Case) -> None:
    saturates = case["expected"]["one_of"][0]
    assert verbs.encode(f32(case["input"]), "e5m2").tolist() == hexes(saturates["codes"])


@bug("BC-021")
def test_overshoot_clamps_where_there_is_no_nan(verbs: Verbs, case: Case) -> None:
    for value, texts in case["input"].items():
        assert verbs.encode(f32(texts), value).tolist() == hexes(case["expected"][value])
        assert given_one(verbs, f32(texts), value) == hexes(case["expected"][value])


@bug("BC-023")
def test_specials_of_e5m2_in_every_output_type(verbs: Verbs, case: Case) -> None:
    codes = code_bytes(case["input"])
    assert bits_of(verbs.decode(codes, "e5m2")) == expected_bits(case["expected"]["values"])
    q = qs.Quantized(tensor_scheme("e5m2"), codes, None, np.array(0x3F800000, np.uint32))
    assert bits_of(verbs.dequantize(q, "f32")) == expected_bits(case["expected"]["values"])
    # Inf, -Inf, four NaN, and 57344 = 1.75 * 2^15: exponent field 15 + bias, then fraction .11
    assert bits_of(verbs.dequantize(q, "f16")) == [0x7C00, 0xFC00, 0x7E00, 0x7E00, 0x7E00, 0x7E00, 0x7B00]
    assert bits_of(verbs.dequantize(q, "bf16")) == [0x7F80, 0xFF80, 0x7FC0, 0x7FC0, 0x7FC0, 0x7FC0, 0x4760]


@bug("BC-025")
def test_nan_stays_nan_where_the_format_has_one(verbs: Verbs, case: Case) -> None:
    x = f32(case["input"])
    assert given_one(verbs, x, "e4m3") == hexes(case["expected"]["e4m3"])
    assert given_one(verbs, x, "e5m2") == [0x3C, 0x7E, 0xC0]
    assert given_one(verbs, -x, "e4m3") == [0xB8, 0xFF, 0x40], "a NaN keeps its sign bit"
    assert given_one(verbs, x, "e2m1") == [0x2, 0x0, 0xC]
    for value in ("q8f", "q8s", "q4f", "q4s"):
        assert given_one(verbs, x, value) == [1, 0, 0xFE]
    assert given_one(verbs, x, "q2f") == [1, 0, 0xFE]
    assert given_one(verbs, x, "q2s") == [1, 0, 0xFF]


@bug("BC-033")
def test_an_underflow_keeps_its_sign(verbs: Verbs, case: Case) -> None:
    for value in ("e2m1", "e4m3", "e5m2"):
        assert verbs.encode(f32(case["input"]), value).tolist() == hexes(case["expected"][value])
        assert given_one(verbs, f32(case["input"]), value) == hexes(case["expected"][value])


@bug("BC-035")
def test_every_subnormal_code_decodes(verbs: Verbs, case: Case) -> None:
    codes = code_bytes(case["input"])
    assert bits_of(verbs.decode(codes, "e4m3")) == expected_bits(case["expected"]["values"])
    assert bits_of(verbs.decode_scale(codes, "ue4m3")) == expected_bits(case["expected"]["values"])


@bug("BC-037")
def test_far_below_the_smallest_subnormal_is_zero(verbs: Verbs, case: Case) -> None:
    for value in ("e5m2", "e4m3"):
        assert verbs.encode(f32(case["input"]), value).tolist() == hexes(case["expected"][value])


@bug("BC-113")
def test_one_byte_means_what_its_format_says(verbs: Verbs, case: Case) -> None:
    byte, expected = code_bytes([case["input"]["byte"]]), case["expected"]
    assert bits_of(verbs.decode(byte, "e4m3")) == expected_bits(expected["e4m3"])
    assert bits_of(verbs.decode(byte, "e5m2")) == expected_bits(expected["e5m2"])
    assert bits_of(verbs.decode_scale(byte, "ue8m0")) == expected_bits(expected["ue8m0"])
    assert verbs.decode(byte, "q8f").tolist() == [expected["q8f"]]
    assert bits_of(verbs.decode(byte, "e3m2")) == expected_bits(expected["e3m2_low6"])
    assert bits_of(verbs.decode(byte, "e2m3")) == expected_bits(expected["e2m3_low6"])
    for untagged in (None, "", "f8", "float8"):
        with pytest.raises(qs.SchemeError, match=r"not a value format; allowed: q8f") as error:
            verbs.decode(byte, untagged)
        assert refusal(error)[0] == "SCH-2"


@bug("BC-127")
def test_full_range_and_symmetric_range_differ_at_the_bottom(verbs: Verbs, case: Case) -> None:
    for value in ("q8f", "q8s"):
        assert given_one(verbs, f32(case["input"]), value) == code_bytes(case["expected"][value]).tolist()


@bug("BC-157")
def test_lookup_takes_the_nearest_entry(verbs: Verbs, case: Case) -> None:
    table = f32(case["input"]["table"])
    assert tuple(bits_of(table)) == qs.NF4.bits
    scheme = qs.Scheme("q4f", mode="lookup", table=table)
    q = verbs.quantize(f32(case["input"]["x"]), scheme, tensor_scale=ONE)
    assert q.codes.tolist() == case["expected"]["indices"]
    assert verbs.encode(f32(case["input"]["x"]), "q4f", table=table).tolist() == case["expected"]["indices"]


@bug("BC-159")
def test_an_index_is_an_unsigned_field(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme("q2f", "packed_u32_0", mode="lookup", table=f32(case["input"]["table"]))
    words = np.array([hexes(case["input"]["word"])], np.uint32)
    packed = qs.Packed(scheme, (case["input"]["n"],), words, None, np.array(0x40000000, np.uint32))
    assert bits_of(verbs.dequantize(verbs.unpack(packed))) == expected_bits(case["expected"]["values"])
    for value, size in (("q4f", 16), ("q8f", 256)):
        table = np.arange(1, size + 1, dtype=np.float32)
        assert verbs.decode(np.array([size - 1], np.uint8), value, table=table).tolist() == [size]
        assert verbs.encode(single([1e9, -1e9]), value, table=table).tolist() == [size - 1, 0]


@bug("BC-161")
def test_a_tensor_owns_its_table(verbs: Verbs, case: Case) -> None:
    table = f32(case["input"]["table"])
    q = verbs.quantize(f32(case["input"]["x"]), qs.Scheme("q4f", mode="lookup", table=table), tensor_scale=ONE)
    table[case["expected"]["index"]] = 99
    assert q.codes.tolist() == [case["expected"]["index"]]
    assert bits_of(verbs.dequantize(q)) == expected_bits(case["expected"]["value"])
    assert q.scheme.table is not None
    with pytest.raises(ValueError, match="read-only"):
        q.scheme.table.entries[0] = 99
    largest = f32_of_bits([0x7F7FFFFF, 0xFF7FFFFF, 0x00000001, 0x80000001])
    assert verbs.encode(largest, "q4f", table=q.scheme.table).tolist() == [15, 0, 7, 7], (
        "every finite number has an entry"
    )
