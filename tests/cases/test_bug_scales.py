"""Reported faults of scales: narrow types, ue8m0, zero blocks, two levels, order of steps."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from .. import oracle
from ..bridge import Verbs
from .facts import (
    Case,
    bits_of,
    bug,
    code_bytes,
    exact,
    expected_bits,
    f32,
    f32_of_bits,
    hexes,
    refusal,
    single,
    tensor_scheme,
)

NVFP4 = "e2m1.native.b16-ue4m3.t-f32"


def as_code(number: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
    """One f32 as the scale code of a tensor scale."""
    return number.reshape(()).view(np.uint32)


def nvfp4(codes: list[str], block: str, g: npt.NDArray[np.float32]) -> qs.Quantized:
    """A one-block tensor with its codes and both scales given."""
    return qs.Quantized(qs.Scheme.parse(NVFP4), code_bytes(codes), code_bytes([block]), as_code(g))


def chosen_scale(verbs: Verbs, amax: npt.NDArray[np.float32], value: str) -> list[int]:
    """The ue8m0 codes that blocks of one element get."""
    codes = verbs.quantize(amax, f"{value}.native.b1-ue8m0").scale_codes
    assert codes is not None
    listed: list[int] = codes.tolist()
    return listed


@bug("BC-017")
def test_bf16_scales_are_rounded_by_their_bits(verbs: Verbs, case: Case) -> None:
    x, expected = f32(case["input"]), case["expected"]
    assert verbs.encode_scale(x, "bf16", "nearest").tolist() == hexes(expected["nearest_even"])
    assert verbs.encode_scale(x, "bf16", "up").tolist() == hexes(expected["round_up"])
    below = np.array(hexes(expected["toward_zero"]), np.uint16)
    assert bits_of(verbs.decode_scale(below, "bf16")) == expected_bits(expected["toward_zero_decoded"])
    with pytest.raises(qs.UnsupportedError, match=r"'toward_zero'.*'up', 'nearest'"):
        verbs.encode_scale(x, "bf16", "toward_zero")


@bug("BC-027")
@pytest.mark.parametrize("scale", ["ue4m3", "ue8m0"])
def test_a_nan_is_skipped_wherever_it_stands(verbs: Verbs, case: Case, scale: str) -> None:
    assert "documented skip rule" in case["expected"]["property"]
    x = np.ones((9, 16), np.float32)
    places = [(pattern, p) for pattern in (0x7F800001, 0x7FC00000, 0xFFC00000) for p in (0, 7, 15)]
    for block, (pattern, p) in enumerate(places):
        x.view(np.uint32)[block, p] = pattern
    q = verbs.quantize(x, f"e2m1.native.b16-{scale}")
    plain = verbs.quantize(np.ones((1, 16), np.float32), f"e2m1.native.b16-{scale}")
    assert q.scale_codes is not None
    assert plain.scale_codes is not None
    assert q.scale_codes.tolist() == plain.scale_codes.tolist() * 9
    for block, (_, p) in enumerate(places):
        expected = plain.codes[0].tolist()
        expected[p] = 0
        assert q.codes[block].tolist() == expected


@bug("BC-029")
def test_the_nan_code_of_ue8m0_is_read_as_nan(verbs: Verbs, case: Case) -> None:
    canonical = case["expected"]["one_of"][2]
    q = verbs.quantize(f32(case["input"]), "e4m3.native.b2-ue8m0")
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == hexes(canonical["scale_codes"])
    assert q.codes.tolist() == hexes(canonical["codes"])
    codes = np.arange(256, dtype=np.uint8)
    invalid = qs.Quantized(qs.Scheme.parse("e4m3.native.b256-ue8m0"), codes, code_bytes(["0xff"]))
    assert bits_of(verbs.dequantize(invalid)) == [0x7FC00000] * 256
    assert verbs.encode_scale(single([np.nan]), "ue8m0").tolist() == [0xFF]


@bug("BC-031")
def test_infinity_saturates_and_a_huge_number_is_no_infinity(verbs: Verbs, case: Case) -> None:
    infinite, huge = (verbs.quantize(f32(x), "e4m3.native.b4-ue8m0") for x in case["input"])
    assert infinite.scale_codes is not None
    assert huge.scale_codes is not None
    # 1 / 448 rounds up to 2^-8, where 1 is 256 and Inf the largest code: 448 * 2^-8 is the most the block can express
    assert infinite.scale_codes.tolist() == [0x77]
    assert infinite.codes.tolist() == [0x7E, 0x78, 0x00, 0xF8]
    assert bits_of(verbs.dequantize(infinite)) == expected_bits(["0x1.cp0", "0x1p0", "0x0p0", "-0x1p0"])
    # FLT_MAX / 448 rounds up to 2^120; FLT_MAX is 255.99 there and reads back as 256 * 2^120, an overflow (QNT-9)
    assert huge.scale_codes.tolist() == [0xF7] != hexes(case["expected"][1]["scale_codes"])
    assert huge.codes.tolist() == [0x78, *hexes(case["expected"][1]["codes"])[1:]]
    assert bits_of(verbs.dequantize(huge))[0] == 0x7F800000


@bug("BC-039")
def test_f16_scales_keep_subnormals(verbs: Verbs, case: Case) -> None:
    x = f32(case["input"])
    assert verbs.encode_scale(x, "f16", "nearest").tolist() == hexes(case["expected"]["bits"])
    assert verbs.encode_scale(x, "f16", "up").tolist() == [0x0002, 0x0001, 0x0001, 0x0001]


@bug("BC-041")
def test_ue8m0_scales_apply_at_both_ends(verbs: Verbs, case: Case) -> None:
    scales = code_bytes([part["scale_code"] for part in case["input"]])
    codes = code_bytes([part["code"] for part in case["input"]])
    q = qs.Quantized(qs.Scheme.parse("e2m1.native.b1-ue8m0"), codes, scales)
    assert bits_of(verbs.dequantize(q)) == expected_bits(case["expected"]["f32"])
    assert bits_of(verbs.dequantize(q, "bf16")) == hexes(case["expected"]["bf16_bits"])


@bug("BC-043")
def test_a_subnormal_product_of_scales_is_kept(verbs: Verbs, case: Case) -> None:
    part, kept = case["input"], case["expected"]["one_of"][0]
    q = nvfp4([part["code"]], part["block_scale_code"], f32(part["global"]))
    assert bits_of(verbs.dequantize(q)) == expected_bits(kept["value"])


@bug("BC-045")
def test_a_zero_row_gives_zeros_beside_an_ordinary_one(verbs: Verbs, case: Case) -> None:
    q, expected = verbs.quantize(f32(case["input"]), "e4m3.native.b4-f32"), case["expected"]
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == [[0], expected_bits(expected["scale_row1"])]
    assert q.codes.tolist() == [hexes(expected["codes_row0"]), hexes(expected["codes_row1"])]
    assert bits_of(verbs.dequantize(q))[0] == expected_bits(expected["row0_dequantized"])


@bug("BC-047")
def test_a_zero_tensor_in_two_levels(verbs: Verbs, case: Case) -> None:
    q = verbs.quantize(f32(case["input"]), NVFP4)
    assert q.scale_codes is not None
    assert q.tensor_scale_code is not None
    assert q.codes.tolist() == hexes(case["expected"]["codes"])
    assert q.scale_codes.tolist() == [0x00, 0x00]
    assert int(q.tensor_scale_code) == 0x00800000, "2^-126"
    assert bits_of(verbs.dequantize(q)) == expected_bits(case["expected"]["dequantized"])


@bug("BC-049")
def test_ue4m3_scales_saturate(verbs: Verbs, case: Case) -> None:
    x = f32(case["input"]["ue4m3"])
    for rounding in ("up", "nearest"):
        codes = verbs.encode_scale(x, "ue4m3", rounding)
        assert codes.tolist() == hexes(case["expected"]["codes"])
    q = verbs.quantize(np.repeat(single([0, 0.1]), 16), NVFP4)
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == [0x00, 0x7E]
    assert bits_of(verbs.dequantize(q))[:16] == [0] * 16


@bug("BC-051")
def test_ue8m0_rounds_every_fraction_up(verbs: Verbs, case: Case) -> None:
    assert verbs.encode_scale(f32(case["input"]), "ue8m0", "up").tolist() == hexes(case["expected"]["codes"])


@bug("BC-053")
def test_ue8m0_decodes_at_both_ends(verbs: Verbs, case: Case) -> None:
    decoded = bits_of(verbs.decode_scale(code_bytes(case["input"]), "ue8m0"))
    assert decoded == expected_bits(case["expected"]["values"])
    assert decoded[:4] == hexes(case["expected"]["f32_bits"][:4])
    one = qs.Quantized(qs.Scheme.parse("e4m3.native.b1-ue8m0"), code_bytes(["0x38"]), code_bytes(["0x00"]))
    assert bits_of(verbs.dequantize(one)) == expected_bits(case["expected"]["dequantize_1.0_with_code_0"])


@bug("BC-055")
def test_a_scale_byte_does_not_leak_into_its_neighbours(verbs: Verbs, case: Case) -> None:
    x, expected = f32(case["input"]), case["expected"]
    for rounding in ("up", "nearest"):
        codes = verbs.encode_scale(x, "ue8m0", rounding)
        assert codes.tolist() == hexes(expected["bytes"])
    q = verbs.quantize(np.zeros(8, np.float32), "q8s.native.b1-ue8m0", scales=x)
    stream = verbs.to_bytes(q)[8:]
    assert np.frombuffer(stream, "<u4").tolist() == hexes(expected["words_le"])


@bug("BC-057")
def test_the_canonical_scale_never_clips(verbs: Verbs, case: Case) -> None:
    q, rceil = verbs.quantize(f32(case["input"]), "e4m3.native.b32-ue8m0"), case["expected"]["rceil"]
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == hexes(rceil["scale_codes"]) != hexes(case["expected"]["ocp_floor"]["scale_codes"])
    assert q.codes.tolist() == hexes(rceil["codes"])
    assert bits_of(verbs.dequantize(q)) == expected_bits(rceil["dequantized"])


@bug("BC-059")
def test_amax_stays_in_f32(verbs: Verbs, case: Case) -> None:
    scale = chosen_scale(verbs, f32(case["input"]["amax"]), "e4m3")
    assert scale == hexes(case["expected"]["rceil"]) != hexes(case["expected"]["ocp_floor"])


@bug("BC-061")
def test_exponents_come_from_bits_next_to_powers_of_two(verbs: Verbs, case: Case) -> None:
    # amax / 6 is 1.33, 2^26.4 and 2^26.4: the powers of two not below are 2, 2^27 and 2^27
    scale = chosen_scale(verbs, f32(case["input"]["amax"]), "e2m1")
    assert scale == [0x80, 0x9A, 0x9A] != hexes(case["expected"]["ocp_floor"])


@bug("BC-063")
def test_a_scale_next_to_the_bottom_of_ue8m0(verbs: Verbs, case: Case) -> None:
    q = verbs.quantize(f32(case["input"]), "e4m3.native.b32-ue8m0")
    assert q.scale_codes is not None
    # the note's ceiling rule: 0x01, 2^-126. The codes are those under 2^-127 one exponent lower, the clipped one not
    assert q.scale_codes.tolist() == [0x01] != hexes(case["expected"]["scale_codes"])
    floor = hexes(case["expected"]["codes"])
    assert q.codes.tolist() == [0x77, *(code - 8 for code in floor[1:])]


@bug("BC-065")
def test_no_absolute_epsilon_crushes_a_small_block(verbs: Verbs, case: Case) -> None:
    q = verbs.quantize(f32(case["input"]), "e4m3.native.b4-ue8m0")
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == hexes(case["expected"]["rceil"]["scale_codes"])
    assert q.codes.tolist() == hexes(case["expected"]["rceil"]["codes"])


@bug("BC-067")
def test_the_tensor_scale_is_a_multiplier(verbs: Verbs, case: Case) -> None:
    part, stored = case["input"], f32(case["input"]["stored_global"])
    inverted = nvfp4([part["code"]], part["block_scale_code"], np.float32(1) / stored)
    assert bits_of(verbs.dequantize(inverted)) == expected_bits(case["expected"]["value"])
    misread = nvfp4([part["code"]], part["block_scale_code"], stored)
    assert bits_of(verbs.dequantize(misread)) == expected_bits(case["expected"]["if_misread_as_multiplier"])


@bug("BC-069")
def test_a_single_level_rounds_a_tiny_scale_up(verbs: Verbs, case: Case) -> None:
    q, up = verbs.quantize(f32(case["input"]), "e2m1.native.b16-ue4m3"), case["expected"]["round_up"]
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == hexes(up["scale_codes"]) != hexes(case["expected"]["nearest"]["scale_codes"])
    assert q.codes.tolist() == hexes(up["codes"])
    assert bits_of(verbs.dequantize(q))[:1] == expected_bits(up["first_dequantized"])
    zero = verbs.quantize(f32(case["input"]), "e2m1.native.b16-ue4m3", scale_codes=code_bytes(["0x00"]))
    assert bits_of(verbs.dequantize(zero)) == [0] * 16, "the vanished block of the nearest rule: zeros, no NaN"


@bug("BC-071")
def test_tiny_tensors_in_two_levels(verbs: Verbs, case: Case) -> None:
    first, second, third = case["input"]["cases"]
    for x, relative in ((f32(first), True), (f32(second), False), (f32_of_bits(third["x_bits"]), False)):
        q = verbs.quantize(x, NVFP4)
        assert q.scale_codes is not None
        assert q.tensor_scale_code is not None
        assert int(q.tensor_scale_code) == 0x00800000, "the floor 2^-126 of the tensor scale"
        assert q.scale_codes.tolist() != [0x7F]
        amax = exact(x)[0]
        for y in exact(verbs.dequantize(q)):
            assert abs(y) <= 2 * amax, "upstream's bound"
            assert not relative or abs(y - amax) <= amax / 4, "upstream's bound"


@bug("BC-073")
def test_the_scales_are_multiplied_first(verbs: Verbs, case: Case) -> None:
    part, (first, late) = case["input"], case["expected"]["one_of"]
    y = verbs.dequantize(nvfp4([part["code"]], part["block_scale_code"], f32(part["global"])))
    assert bits_of(y) == expected_bits(first["value"]) != expected_bits(late["value"])


@bug("BC-075")
def test_ue4m3_is_e4m3_without_a_sign(verbs: Verbs, case: Case) -> None:
    decoded = verbs.decode_scale(code_bytes(case["input"]), "ue4m3")
    assert bits_of(decoded) == expected_bits(case["expected"]["values"])
    for code in range(0x80, 0x100):
        with pytest.raises(qs.EncodingError, match="bit 7 of a ue4m3 scale must be 0") as error:
            verbs.decode_scale(np.array([code], np.uint8), "ue4m3")
        assert refusal(error)[0] == "SCL-2"
    every = np.arange(256, dtype=np.uint8)
    ignored = verbs.decode_scale(every, "ue4m3", ue4m3_bit7="ignore")
    assert bits_of(ignored) == bits_of(verbs.decode_scale(every[:128], "ue4m3")) * 2


@bug("BC-129")
def test_negative_scales_are_read(verbs: Verbs, case: Case) -> None:
    accepted, scale = case["expected"]["one_of"][0], f32(case["input"]["scale"])
    code = scale.astype(np.float16).view(np.uint16).reshape(())
    q = qs.Quantized(tensor_scheme("q4f", scale="f16"), code_bytes(case["input"]["codes"]), None, code)
    assert bits_of(verbs.dequantize(q)) == expected_bits(accepted["values"])
    again = verbs.quantize(verbs.dequantize(q), q.scheme, tensor_scale=scale)
    assert again == q, "a negative scale that f16 holds exactly may be given too"


@bug("BC-131")
def test_an_f16_scale_saturates(verbs: Verbs, case: Case) -> None:
    q, saturates = verbs.quantize(f32(case["input"]), "q8s.native.t-f16"), case["expected"]["one_of"][0]
    assert q.tensor_scale_code is not None
    assert [int(q.tensor_scale_code)] == hexes(saturates["scale_bits"])
    assert q.codes.tolist() == code_bytes(saturates["codes"]).tolist()
    assert bits_of(verbs.dequantize(q))[:1] == expected_bits(saturates["dequantized_first"])
    assert q.saturation == qs.Saturation(count=0, first=None, tensor=True)


@bug("BC-133")
def test_arithmetic_is_f32_for_an_f16_input(verbs: Verbs, case: Case) -> None:
    x, expected = f32(case["input"]).astype(np.float16), case["expected"]
    q = verbs.quantize(x, "e5m2.native.t-f16")
    assert q.tensor_scale_code is not None
    assert [int(q.tensor_scale_code)] == hexes(expected["scale_bits_round_up"]) != hexes(expected["scale_bits_nearest"])
    assert q.codes.tolist() == hexes(expected["codes"])
    raw = oracle.divide32(oracle.rn32(exact(x)[2]), oracle.rn32(Fraction(57344)))
    assert [oracle.encode_scale("f16", raw, "nearest")] == hexes(expected["scale_bits_nearest"])
