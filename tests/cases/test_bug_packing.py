"""Reported faults of packing and bytes: field order, padding, sizes, endianness, alignment, bad parameters."""

import struct
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from ..bridge import Verbs
from .facts import Case, bits_of, bug, code_bytes, expected_bits, f32, hexes, mapped, refusal, tensor_scheme

ONE_F32 = np.array(0x3F800000, np.uint32)


def packed_words(verbs: Verbs, codes: npt.NDArray[np.uint8], scheme: qs.Scheme) -> Any:
    """Words of codes, by way of the records."""
    return verbs.pack(qs.Quantized(scheme, codes, None, ONE_F32)).words.tolist()


def unpacked(verbs: Verbs, words: npt.NDArray[Any], scheme: qs.Scheme, shape: tuple[int, ...]) -> Any:
    """Codes of words, by way of the records."""
    return verbs.unpack(qs.Packed(scheme, shape, words, None, ONE_F32)).codes.tolist()


def q4_fields(fields: Any) -> npt.NDArray[np.uint8]:
    """Unsigned fields of four bits as codes of q4f."""
    return code_bytes(mapped(fields, lambda field: field - 16 if field >= 8 else field))


@bug("BC-077")
def test_the_first_code_is_in_the_low_nibble(verbs: Verbs, case: Case) -> None:
    for value in ("e2m1", "q4f"):
        codes = code_bytes(case["input"][f"{value}_codes"])
        scheme = tensor_scheme(value, "packed_native_0")
        assert packed_words(verbs, codes, scheme) == hexes(case["expected"][f"{value}_bytes"])


@bug("BC-079")
def test_fields_are_in_linear_order(verbs: Verbs, case: Case) -> None:
    words = np.array([hexes(case["input"]["word"])], np.uint32)
    codes = unpacked(verbs, words, tensor_scheme("q4f", "packed_u32_0"), (8,))
    assert codes == q4_fields(case["expected"]["linear"]).tolist()
    assert qs.CONTAINERS["awq-i32"].fields == (0, 2, 4, 6, 1, 3, 5, 7), "the interleaved order has a name of its own"
    interleaved = qs.Container("awq", field_order="interleaved", bias="half")
    for read in (qs.from_bytes, qs.split):
        with pytest.raises(qs.UnsupportedError, match="field_order='interleaved'; allowed: low") as error:
            read(bytes(8), "q4f.packed_u32_0.t-f32", (8,), container=interleaved)
        assert refusal(error)[0] == "POL-3"


@bug("BC-081")
def test_rank_three_packs_line_by_line(verbs: Verbs, case: Case) -> None:
    codes, scheme = q4_fields(case["input"]["fields"]), tensor_scheme("q4f", "packed_u32_0")
    assert qs.words_shape(scheme, (2, 2, 9)) == tuple(case["expected"]["word_shape"])
    words = packed_words(verbs, codes, scheme)
    assert words == hexes(case["expected"]["words"])
    assert unpacked(verbs, np.array(words, np.uint32), scheme, (2, 2, 9)) == codes.tolist()


@bug("BC-083")
def test_negative_high_nibbles(verbs: Verbs, case: Case) -> None:
    codes, scheme = code_bytes(case["input"]), tensor_scheme("q4f", "packed_native_0")
    words = packed_words(verbs, codes, scheme)
    assert words == hexes(case["expected"]["bytes"])
    assert unpacked(verbs, np.array(words, np.uint8), scheme, (8,)) == codes.tolist()


@bug("BC-085")
def test_six_bit_codes_native_and_dense(verbs: Verbs, case: Case) -> None:
    native, dense = case["expected"]["one_of"]
    codes = code_bytes(case["input"]["codes"])
    for value in ("e3m2", "e2m3"):
        for store, expected in (("native", native["bytes"]), ("packed_native_0", dense["bytes"])):
            q = qs.Quantized(tensor_scheme(value, store), codes, None, ONE_F32)
            assert list(verbs.to_bytes(q)[:-4]) == hexes(expected)
        five = np.tile(codes, 2)[:5]  # five codes of six bits and two unused bits in a word of 32
        word = sum(code << 6 * i for i, code in enumerate(five.tolist()))
        assert packed_words(verbs, five, tensor_scheme(value, "packed_u32_0")) == [word]


@bug("BC-087")
def test_each_line_is_padded_on_its_own(verbs: Verbs, case: Case) -> None:
    codes, scheme = q4_fields(case["input"]["fields"]), tensor_scheme("q4f", "packed_u32_0")
    assert list(codes.shape) == case["input"]["shape"]
    assert qs.words_shape(scheme, codes.shape) == tuple(case["expected"]["word_shape"])
    assert packed_words(verbs, codes, scheme) == hexes(case["expected"]["words"])
    assert qs.byte_count(scheme, codes.shape) == case["expected"]["bytes_total"] + 4


@bug("BC-089")
def test_odd_lengths_take_whole_bytes(verbs: Verbs, case: Case) -> None:
    for shape, size in zip(case["input"]["shapes"], case["expected"]["bytes"], strict=True):
        assert qs.byte_count("e2m1.packed_native_0.t-f32", shape) == size + 4
        q = verbs.quantize(np.ones(shape, np.float32), "e2m1.packed_native_0.t-f32")
        assert len(verbs.to_bytes(q)) == size + 4


@bug("BC-111")
def test_bytes_are_little_endian(verbs: Verbs, case: Case) -> None:
    part, expected = case["input"], case["expected"]
    word = np.array([hexes(part["word"])], np.uint32)
    for scale in ("f16", "f32", "bf16"):
        scheme = tensor_scheme("q4f", "packed_u32_0", scale)
        codes = verbs.encode_scale(f32(part[scale]), scale).reshape(())
        data = bytes(hexes(expected["word_bytes"]) + hexes(expected[f"{scale}_bytes"]))
        for order in ("<", ">"):
            wide, narrow = word.astype(word.dtype.newbyteorder(order)), codes.astype(codes.dtype.newbyteorder(order))
            assert verbs.to_bytes(qs.Packed(scheme, (8,), wide, None, narrow)) == data
        read = verbs.from_bytes(data, scheme, (8,))
        assert read.words.tolist() == word.tolist()
        assert read.tensor_scale_code is not None
        assert bits_of(verbs.decode_scale(read.tensor_scale_code, scale).reshape(1)) == expected_bits(part[scale])


@bug("BC-117")
def test_bytes_read_as_signed_nibbles_and_back(verbs: Verbs, case: Case) -> None:
    words, scheme = code_bytes(case["input"]["bytes"]), tensor_scheme("q4f", "packed_native_0")
    codes = code_bytes(case["expected"]["codes"])
    assert unpacked(verbs, words, scheme, (6,)) == codes.tolist()
    assert packed_words(verbs, codes, scheme) == words.tolist()


@bug("BC-135")
def test_flat_positions_beyond_32_bits(case: Case) -> None:
    for (row, column, columns), offset in zip(case["input"]["row_col_ncols"], case["expected"]["offsets"], strict=True):
        rows = np.int32(row)  # sizes of a narrow type must not make the product wrap
        before = qs.byte_count("q8s.native.t-ue8m0", (rows, np.int32(columns))) - 1  # type: ignore[arg-type]
        assert before + column == offset
        assert qs.byte_count("q4f.packed_u32_0.t-ue8m0", (offset + 1,)) == -(-(offset + 1) // 8) * 4 + 1


@bug("BC-137")
def test_the_size_limit_is_stated_and_holds(verbs: Verbs, case: Case) -> None:
    elements = case["input"]["elements"]
    assert qs.byte_count("q2s.packed_u32_0.b255-f16", (elements,)) == elements // 16 * 4 + -(-elements // 255) * 2
    largest = 2**63 - 1
    assert qs.byte_count("q2s.packed_u32_0.t-f16", (largest,)) == -(-largest // 16) * 4 + 2
    with pytest.raises(qs.ShapeError, match=r"allowed: at most 2\^63-1") as error:
        qs.byte_count("q2s.packed_u32_0.t-f16", (largest + 1,))
    assert refusal(error)[0] == "LAY-5"
    # the last block and word of the tensor of 2^31 + 16 elements, in one whose length is the same modulo 255 and 16
    x = np.zeros(elements % (255 * 16) + 255 * 16, np.float32)
    x[-16:] = 1
    q = verbs.quantize(x, "q2s.packed_u32_0.b255-f16")
    assert q.scale_codes is not None
    assert verbs.pack(q).words[-1:].tolist() == [0x55555555]
    assert q.scale_codes[-1:].tolist() == [0x3C00]


@bug("BC-149")
def test_sizes_of_values_and_of_both_levels(verbs: Verbs, case: Case) -> None:
    tensors = (
        ("q8s.native.t-f32", (512, 512)),
        ("q4s.packed_u32_0.t-f16", (3, 3)),
        ("e2m1.packed_native_0.b16-ue4m3.t-f32", (4, 64)),
        ("q2s.packed_u32_0.b32-bf16", (2, 70)),
    )
    expected = case["expected"]
    values, scales, global_ = (expected[key] for key in ("value_bytes", "scale_bytes", "global_bytes"))
    for (text, shape), regions in zip(tensors, zip(values, scales, global_, strict=True), strict=True):
        assert qs.byte_count(text, shape) == sum(regions)
        assert len(verbs.to_bytes(verbs.quantize(np.zeros(shape, np.float32), text))) == sum(regions)
        q = verbs.quantize(np.zeros(shape, np.float32), text)
        assert verbs.pack(q).words.size * q.scheme.store.word_bytes(q.scheme.value.bits) == regions[0]
        levels = [0 if level is None else level.nbytes for level in (q.scale_codes, q.tensor_scale_code)]
        assert sum(levels) == sum(regions[1:])


@bug("BC-151")
def test_sections_of_odd_length_are_read(verbs: Verbs, case: Case) -> None:
    # three bytes of values before the case's ten put both scale regions at odd offsets
    data = bytes([0x21, 0x43, 0x05, *hexes(case["input"]["bytes"])])
    scheme = qs.Scheme.parse("e2m1.packed_native_0.b2-f16.t-f32")
    for start in range(4):
        q = verbs.split(memoryview(bytes(start) + data)[start:], scheme, (5,))
        assert q.codes.tolist() == [1, 2, 3, 4, 5]
        assert q.scale_codes is not None
        assert q.tensor_scale_code is not None
        assert bits_of(verbs.decode_scale(q.scale_codes, "f16")) == expected_bits(case["expected"]["f16"])
        assert [int(q.tensor_scale_code)] == expected_bits(case["expected"]["global"])
        assert verbs.to_bytes(q) == data
    assert struct.unpack("<f", data[-4:]) == (Fraction(1),)


@bug("BC-153")
def test_bad_parameters_are_refused_where_the_scheme_is_built(verbs: Verbs, case: Case) -> None:
    assert case["input"]["schemes"][0] == "block [0]"
    for extents in ((0,), (4, 0), (-1,), (2**31,), (1.5,), (True,), ("4",)):
        with pytest.raises(qs.SchemeError, match=r"allowed: an integer from 1 to 2\^31-1") as error:
            qs.Scheme("q8s", block=(extents, "f32"))  # type: ignore[arg-type]
        assert refusal(error)[0] == "SCH-6"
    for value in ("q0s", "q3s", "q16f", "e8m0"):
        with pytest.raises(qs.SchemeError, match="is not a value format") as error:
            qs.Scheme(value)
        assert refusal(error)[0] == "SCH-2"
    with pytest.raises(qs.SchemeError, match="is not a scale type") as error:
        qs.Scheme("q8s", block=((4,), "f64"))
    assert refusal(error)[0] == "SCH-5"
    with pytest.raises(qs.SchemeError, match="field of an integer format") as error:
        qs.Scheme("e4m3", mode="lookup", table=np.ones(256, np.float32))
    assert refusal(error)[0] == "SCH-8"
    for call in (
        lambda scheme, shape: qs.byte_count(scheme, shape),
        lambda scheme, shape: verbs.quantize(np.zeros(shape, np.float32), scheme),
        lambda scheme, shape: verbs.from_bytes(b"", scheme, shape),
    ):
        with pytest.raises(
            qs.ShapeError, match=r"packs axis 3 from the innermost.*allowed: d from 0 to 1"
        ) as shape_error:
            call("q8s.packed_u32_3.t-f32", (2, 2))
        assert refusal(shape_error)[0] == "SCH-14"
    for defined in ("e3m2.packed_u32_0.b32-ue8m0", "e2m1.native.b16-ue4m3.t-f16", "q8s.native.t-f16"):
        assert qs.Scheme.parse(defined).text == defined
