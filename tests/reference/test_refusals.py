"""Bad input: each refusal has its class, its rule, and a message that names argument, value, what is allowed and where."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import quantspec as qs

NVFP4 = qs.Scheme.parse("e2m1.packed_native_0.b16-ue4m3.t-f32")
Q4 = qs.Scheme.parse("q4s.packed_u32_0.t-f32")
SIX = qs.Scheme.parse("e3m2.packed_u32_0.t-f32")
X = np.zeros((2, 33), np.float32)
ROW = np.zeros(3, np.float32)
SHORTS: Any = np.zeros(8, np.int16)


def q4_bytes(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words) + bytes(4)


REFUSED: dict[str, tuple[type[qs.QuantspecError], str, str, Callable[[], object]]] = {
    # inputs
    "f64 input": (qs.DtypeError, "QNT-1", "x has dtype float64; allowed: float32, float16, bfloat16", lambda: qs.quantize(X.astype("f8"), NVFP4)),
    "int input": (qs.DtypeError, "QNT-1", "x has dtype int32", lambda: qs.quantize(X.astype("i4"), NVFP4)),
    "complex input": (qs.DtypeError, "QNT-1", "x has dtype complex64", lambda: qs.encode(X.astype("c8"), "e4m3")),
    "object input": (qs.DtypeError, "QNT-1", "x has dtype object", lambda: qs.encode(np.array([None]), "e4m3")),
    "fp8 input": (qs.DtypeError, "QNT-1", "x has dtype float8_e5m2", lambda: qs.encode(X.astype(ml_dtypes.float8_e5m2), "e4m3")),
    "python number that float32 cannot hold": (qs.DtypeError, "QNT-1", "x holds np.float64(0.1), which is not exactly a float32", lambda: qs.encode([0.5, 0.1], "e4m3")),
    "ragged list": (qs.DtypeError, "QNT-1", "x is not an array: ", lambda: qs.encode([[1.0], [2.0, 3.0]], "e4m3")),
    "text input": (qs.DtypeError, "QNT-1", "x has dtype <U3", lambda: qs.encode("1.5", "e4m3")),
    "array for a record": (qs.DtypeError, "QNT-12", "tensor is a ndarray; allowed: Quantized, which has the scheme", lambda: qs.dequantize(X)),  # type: ignore[arg-type]
    "record of codes for one of words": (qs.DtypeError, "QNT-12", "packed is a Quantized; allowed: Packed", lambda: qs.unpack(qs.quantize(X, Q4))),  # type: ignore[arg-type]
    "scheme": (qs.SchemeError, "SCH-1", "scheme=None; allowed: a Scheme or the text of one", lambda: qs.quantize(X, None)),  # type: ignore[arg-type]
    # shapes
    "size for a shape": (qs.ShapeError, "LAY-5", "shape=9; allowed: a sequence of sizes, one an axis", lambda: qs.split(b"", Q4, 9)),  # type: ignore[arg-type]
    "axis for axes": (qs.ShapeError, "OPS-2", "axes=1; allowed: a sequence, each of the 2 axes once", lambda: qs.permute(qs.quantize(X, Q4), 1)),  # type: ignore[arg-type]
    "negative size of words": (qs.ShapeError, "LAY-5", "shape[0]=-2", lambda: qs.words_shape(Q4, (-2,))),
    "block rank": (qs.ShapeError, "SCH-13", "block=b2x16-f32 has rank 2, the tensor (16,) has rank 1", lambda: qs.quantize(X[0, :16], "q8s.native.b2x16-f32")),
    "packed axis": (qs.ShapeError, "SCH-14", "store=packed_u32_1 packs axis 1 from the innermost, the tensor (33,) has rank 1; allowed: d from 0 to 0", lambda: qs.quantize(X[0], "q8s.packed_u32_1.t-f32")),
    "negative size": (qs.ShapeError, "LAY-5", "shape[1]=-1; allowed: an integer of 0 or more", lambda: qs.split(b"", Q4, (2, -1))),
    "float size": (qs.ShapeError, "LAY-5", "shape[0]=2.0", lambda: qs.split(b"", Q4, (2.0,))),  # type: ignore[arg-type]
    "too many elements": (qs.ShapeError, "LAY-5", "allowed: at most 2^63-1", lambda: qs.byte_count(Q4, (2**32, 2**31))),
    "too many bytes": (qs.ShapeError, "LAY-5", "bytes under q8s.packed_u32_1.t-f32; allowed: at most 2^63-1", lambda: qs.byte_count("q8s.packed_u32_1.t-f32", (1, 2**62))),
    "more axes than an array has": (qs.UnsupportedError, "CNF-5", "shape of 70 axes, largest 1, is more than this implementation holds; allowed: at most 60 axes", lambda: qs.split(b"", Q4, (1,) * 70)),
    "an empty tensor of a size that no array has": (qs.UnsupportedError, "CNF-5", "shape of 2 axes, largest 4611686018427387904, is more", lambda: qs.split(bytes(4), Q4, (0, 2**62))),
    # codes
    "codes dtype": (qs.DtypeError, "VAL-4", "codes has dtype int8; allowed: uint8, one code a byte", lambda: qs.decode(np.zeros(3, np.int8), "q8s")),
    "code not sign-extended": (qs.EncodingError, "VAL-5", "codes[1] is the byte 0x0F, which is not a 4-bit code of q4f sign-extended", lambda: qs.decode(np.array([1, 15], np.uint8), "q4f")),
    "code not zero-extended": (qs.EncodingError, "VAL-5", "codes[0, 1] is the byte 0xF1, which is not a 4-bit code of e2m1 zero-extended", lambda: qs.decode(np.array([[1, 0xF1]], np.uint8), "e2m1")),
    "lookup index out of the table": (qs.EncodingError, "VAL-5", "codes[0] is the byte 0xFF, which is not a 4-bit code of q4s zero-extended", lambda: qs.decode(np.array([255], np.uint8), "q4s", table=qs.NF4)),
    "native byte on read": (qs.EncodingError, "VAL-5", "codes[0] is the byte 0x03", lambda: qs.split(b"\x03\x00\x00\x00\x00", "q2s.native.t-f32", (1,))),
    "table for a minifloat": (qs.SchemeError, "SCH-8", "a table is given with value='e2m1'", lambda: qs.encode(ROW, "e2m1", table=qs.NF4)),
    "table of the wrong length": (qs.SchemeError, "SCH-11", "table has 16 entries; a field of 8 bits needs exactly 256", lambda: qs.encode(ROW, "q8s", table=qs.NF4)),
    # words and bytes
    "too few bytes": (qs.EncodingError, "LAY-4", "data has 15 bytes; a tensor (3, 3) of q4s.packed_u32_0.t-f32 has exactly 16", lambda: qs.split(bytes(15), Q4, (3, 3))),
    "too many bytes given": (qs.EncodingError, "LAY-4", "data has 17 bytes", lambda: qs.split(bytes(17), Q4, (3, 3))),
    "not bytes": (qs.EncodingError, "LAY-1", "data is str; allowed: bytes-like or a uint8 array of one axis", lambda: qs.split("00", Q4, (3, 3))),  # type: ignore[arg-type]
    "bytes of another dtype": (qs.EncodingError, "LAY-1", "data is int16 of shape (8,)", lambda: qs.split(SHORTS, Q4, (3, 3))),
    "dirty padding": (qs.EncodingError, "PAK-7", "byte 5: line 1, word 0 of the line, field 3 of the word: bits that hold no code", lambda: qs.split(q4_bytes(0, 0x1000, 0), Q4, (3, 3))),
    "dirty unused bits": (qs.EncodingError, "PAK-7", "byte 3: line 0, word 0 of the line, field 5 of the word", lambda: qs.split((1 << 30).to_bytes(4, "little") + bytes(4), SIX, (5,))),
    "padding option": (qs.UnsupportedError, "PAK-8", "padding='keep'; allowed: 'refuse', 'ignore'", lambda: qs.split(bytes(16), Q4, (3, 3), padding="keep")),  # type: ignore[arg-type]
    "ue4m3 bit 7": (qs.EncodingError, "SCL-2", "block scales[1] is 0x81: bit 7 of a ue4m3 scale must be 0", lambda: qs.split(bytes(16) + b"\x01\x81" + bytes(4), NVFP4, (32,))),
    "ue4m3 option": (qs.UnsupportedError, "SCL-2", "ue4m3_bit7='clear'; allowed: 'refuse', 'ignore'", lambda: qs.decode_scale(np.array([1], np.uint8), "ue4m3", ue4m3_bit7="clear")),
    "words dtype": (qs.DtypeError, "PAK-1", "words has dtype int64; words of q4s.packed_u32_0.t-f32 are uint32", lambda: qs.unpack_words(np.zeros((3, 1), np.int64), Q4, (3, 3))),
    "word of more than three bytes": (qs.EncodingError, "PAK-1", "words[1] is 0x1000000; words of e3m2.packed_native_0.t-f32 have 3 bytes", lambda: qs.unpack_words(np.array([0, 1 << 24], np.uint32), qs.Scheme.parse("e3m2.packed_native_0.t-f32"), (8,))),
    "words shape": (qs.ShapeError, "LAY-4", "words has shape (3, 2); allowed: exactly (3, 1)", lambda: qs.unpack_words(np.zeros((3, 2), np.uint32), Q4, (3, 3))),
    # scales
    "scale type": (qs.SchemeError, "SCH-5", "scale='e8m0' is not a scale type; allowed: f32, f16, bf16, ue8m0, ue4m3", lambda: qs.encode_scale(ROW, "e8m0")),
    "rounding": (qs.UnsupportedError, "SCL-15", "rounding='down'; allowed: 'up', 'nearest'", lambda: qs.encode_scale(ROW, "f16", "down")),  # type: ignore[arg-type]
    "scales shape": (qs.ShapeError, "SCL-19", "scales has shape (2, 2); allowed: exactly (2, 3), one scale a block", lambda: qs.quantize(X, NVFP4, scales=np.ones((2, 2), "f4"), tensor_scale=np.float32(1))),
    "tensor scale shape": (qs.ShapeError, "SCL-19", "tensor_scale has shape (2,); allowed: exactly ()", lambda: qs.quantize(X, NVFP4, tensor_scale=np.ones(2, "f4"))),
    "encode_scale dtype": (qs.DtypeError, "SCL-15", "x has dtype float64", lambda: qs.encode_scale(X.astype("f8"), "f16")),
    "dirty padding, as words": (qs.EncodingError, "PAK-7", "byte 1: line 0, word 0 of the line, field 3", lambda: qs.from_bytes(q4_bytes(0x1000, 0, 0), Q4, (3, 3))),
    "native byte, as words": (qs.EncodingError, "VAL-5", "is the byte 0x55", lambda: qs.from_bytes(b"\x55" + bytes(4), "q4s.native.t-f32", (1,))),
    "dirty words, written": (qs.EncodingError, "PAK-7", "byte 0: line 0", lambda: qs.to_bytes(qs.Packed(Q4, (1,), np.array([0xFFFFFFF1], np.uint32), None, np.array(0, np.uint32)))),
    "index of select": (qs.ShapeError, "OPS-4", "indices[0]=9 on axis 0; allowed: an integer from 0 to 1", lambda: qs.select(qs.quantize(X, Q4), 0, 9)),
    "array for a tensor to flip": (qs.DtypeError, "QNT-12", "tensor is a ndarray; allowed: Quantized", lambda: qs.flip(X, 0)),  # type: ignore[arg-type]
    "number that float32 cannot hold": (qs.DtypeError, "QNT-1", "x holds np.int64(9007199254740993)", lambda: qs.encode([2**53 + 1], "q8s")),
    "scales dtype": (qs.DtypeError, "SCL-19", "scales has dtype float64", lambda: qs.quantize(X, "q8s.native.b16-f32", scales=np.ones((2, 3)))),
    "scale codes dtype": (qs.DtypeError, "SCL-21", "scale_codes has dtype uint8; codes of f16 are uint16", lambda: qs.quantize(X, "q8s.native.b16-f16", scale_codes=np.ones((2, 3), "u1"))),
    "scales of a missing level": (qs.ScaleError, "SCL-22", "scales is given; q4s.packed_u32_0.t-f32 has no such level", lambda: qs.quantize(X, Q4, scales=np.ones((2, 3), "f4"))),
    "tensor scale of a missing level": (qs.ScaleError, "SCL-22", "tensor_scale is given; q8s.native.b16-f32 has no such level", lambda: qs.quantize(X, "q8s.native.b16-f32", tensor_scale=np.float32(1))),
    "values and codes": (qs.ScaleError, "SCL-22", "tensor_scale and tensor_scale_code are both given; allowed: one of them", lambda: qs.quantize(X, Q4, tensor_scale=np.float32(1), tensor_scale_code=np.uint32(1))),
    "block scales alone": (qs.ScaleError, "SCL-23", "block scales alone are given", lambda: qs.quantize(X, NVFP4, scales=np.ones((2, 3), "f4"))),
    "zero tensor scale alone": (qs.ScaleError, "SCL-23", "tensor_scale is 0.0 (code 0x0 of f32)", lambda: qs.quantize(X, NVFP4, tensor_scale=np.float32(0))),
    "NaN tensor scale alone": (qs.ScaleError, "SCL-23", "tensor_scale is nan", lambda: qs.quantize(X, NVFP4, tensor_scale=np.float32(np.nan))),
    "negative tensor scale alone": (qs.ScaleError, "SCL-23", "tensor_scale is -1.0", lambda: qs.quantize(X, NVFP4, tensor_scale=np.float32(-1))),
    "negative scale, unsigned type": (qs.ScaleError, "SCL-20", "scales[2] is -0.0 (0x80000000): ue8m0 has no sign", lambda: qs.quantize(ROW, "e2m1.native.b1-ue8m0", scales=np.array([1, 2, -0.0], "f4"))),
    "negative scale that is not exact": (qs.ScaleError, "SCL-20", "(0xBDCCCCCD): a negative scale is kept only if it is exactly a finite f16", lambda: qs.quantize(ROW, "e2m1.native.t-f16", tensor_scale=np.float32(-0.1))),
    "minus infinity": (qs.ScaleError, "SCL-20", "tensor_scale[] is -inf", lambda: qs.quantize(ROW, "e2m1.native.t-f32", tensor_scale=np.float32(-np.inf))),
    "missing level of a record": (qs.ScaleError, "SCL-22", "scale_codes is missing; q8s.native.b16-f32 has that level", lambda: qs.Quantized(qs.Scheme.parse("q8s.native.b16-f32"), np.zeros(3, "u1"))),
    # options
    "output dtype": (qs.DtypeError, "QNT-10", "dtype='f64'; allowed: 'f32', 'f16', 'bf16'", lambda: qs.dequantize(qs.quantize(X, Q4), "f64")),
    "output that is no dtype": (qs.DtypeError, "QNT-10", "dtype=7; allowed: 'f32', 'f16', 'bf16'", lambda: qs.dequantize(qs.quantize(X, Q4), 7)),  # type: ignore[arg-type]
    "recipe": (qs.UnsupportedError, "POL-1", "recipe='te' is not defined; defined: canonical", lambda: qs.quantize(X, Q4, recipe=qs.Recipe("te"))),
    "value format": (qs.SchemeError, "SCH-2", "value='e4m4' is not a value format", lambda: qs.encode(ROW, "e4m4")),
    # layout operations
    "axis": (qs.ShapeError, "OPS-1", "axis=2; allowed: an integer from -2 to 1", lambda: qs.flip(qs.quantize(X, Q4), 2)),
    "axes": (qs.ShapeError, "OPS-2", "axes=(0, 0); allowed: each of the 2 axes once", lambda: qs.permute(qs.quantize(X, Q4), (0, 0))),
    "slice inside a block": (qs.LayoutError, "OPS-3", "start=8 on axis 1 is not a multiple of the block extent 16; the codes and scales cannot be kept, use requantize", lambda: qs.slice_axis(qs.quantize(X, NVFP4), 1, 8, 33)),
    "slice out of range": (qs.ShapeError, "OPS-3", "start=0, stop=34 on axis 1; allowed: 0 <= start <= stop <= 33", lambda: qs.slice_axis(qs.quantize(X, NVFP4), 1, 0, 34)),
    "take through a block": (qs.LayoutError, "OPS-4", "on axis 1, which has block extent 16", lambda: qs.take(qs.quantize(X, NVFP4), 1, [0])),
    "index for indices": (qs.ShapeError, "OPS-4", "indices=0; allowed: a sequence of integers from 0 to 1", lambda: qs.take(qs.quantize(X, Q4), 0, 0)),  # type: ignore[arg-type]
    "fraction of a slice": (qs.ShapeError, "OPS-3", "start=0.5, stop=1 on axis 0", lambda: qs.slice_axis(qs.quantize(X, Q4), 0, 0.5, 1)),  # type: ignore[arg-type]
    "take out of range": (qs.ShapeError, "OPS-4", "indices[1]=-1 on axis 0; allowed: an integer from 0 to 1", lambda: qs.take(qs.quantize(X, NVFP4), 0, [0, -1])),
    "flip of a partial block": (qs.LayoutError, "OPS-6", "axis 1 has size 33, no multiple of the block extent 16 (partial block at 32)", lambda: qs.flip(qs.quantize(X, NVFP4), 1)),
    "expand": (qs.ShapeError, "OPS-7", "shape[0]=4, the tensor has 2 there; only an axis of size 1 grows", lambda: qs.expand(qs.quantize(X, NVFP4), (4, 33))),
    "concatenate after a partial block": (qs.LayoutError, "OPS-8", "parts[0] has size 33 on axis 1, no multiple of the block extent 16", lambda: qs.concatenate([qs.quantize(X, NVFP4)] * 2, 1)),
    "concatenate other tensor scale": (qs.LayoutError, "OPS-8", "parts[1] has another tensor scale than parts[0]", lambda: qs.concatenate([qs.quantize(X, Q4), qs.quantize(X + 1, Q4)])),
    "concatenate nothing": (qs.ShapeError, "OPS-8", "parts is empty", lambda: qs.concatenate([])),
    "reshape through blocks": (qs.LayoutError, "OPS-9", "are not boxes of one size there", lambda: qs.reshape(qs.quantize(X, NVFP4), (66,))),
    "reshape count": (qs.ShapeError, "OPS-9", "shape=(2, 34) has 68 elements, the tensor 66", lambda: qs.reshape(qs.quantize(X, NVFP4), (2, 34))),
    "six extents": (qs.LayoutError, "SCH-7", "the result has 6 block extents (2, 2, 2, 2, 2, 1); allowed: at most 5", lambda: qs.permute(qs.quantize(np.zeros((2,) * 6, "f4"), "q8s.native.b2x2x2x2x2-f32"), (1, 2, 3, 4, 5, 0))),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_by_its_rule_with_a_message_that_helps(case: str) -> None:
    error, rule, message, call = REFUSED[case]
    with pytest.raises(qs.QuantspecError) as refused:
        call()
    assert (type(refused.value), refused.value.rule) == (error, rule)
    assert message in str(refused.value)
    assert re.search(r" \[[A-Z]{3}-[0-9]+\]$", str(refused.value))


def test_the_padding_can_be_ignored_on_import_but_not_the_native_byte_rule() -> None:
    dirty = q4_bytes(0x321, 0xF654, 0x987)
    codes = qs.split(dirty, Q4, (3, 3), padding="ignore").codes
    assert codes.tolist() == [[1, 2, 3], [4, 5, 6], [7, 0xF8, 0xF9]]
    with pytest.raises(qs.EncodingError):
        qs.split(b"\x03\x00\x00\x00\x00", "q2s.native.t-f32", (1,), padding="ignore")


def test_bit_7_of_ue4m3_is_cleared_on_import() -> None:
    data = bytes(16) + b"\x01\x81" + bytes(4)
    scale_codes = qs.split(data, NVFP4, (32,), ue4m3_bit7="ignore").scale_codes
    assert scale_codes is not None
    assert scale_codes.tolist() == [1, 1]


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_input_is_the_same_in_any_byte_order_and_strides_and_is_not_changed(order: str, dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal((6, 34)).astype(dtype)
    for view in (x, x.T, x[::-1, ::2], x[:, 1:], np.asfortranarray(x)):
        same: Any = view.astype(order + dtype)
        kept = same.copy()
        assert qs.quantize(same, NVFP4) == qs.quantize(np.ascontiguousarray(view), NVFP4)
        assert same.tobytes() == kept.tobytes()


def test_bfloat16_widens_exactly() -> None:
    patterns = np.arange(65536, dtype=np.uint16)
    wide = patterns.astype(np.uint32) << 16
    narrow = qs.encode(patterns.view(ml_dtypes.bfloat16), "e5m2")
    assert narrow.tolist() == qs.encode(wide.view(np.float32), "e5m2").tolist()


def test_float16_widens_exactly() -> None:
    patterns = np.arange(65536, dtype=np.uint16)
    half = patterns.view(np.float16)
    assert qs.encode(half, "e5m2").tolist() == qs.encode(half.astype(np.float32), "e5m2").tolist()
