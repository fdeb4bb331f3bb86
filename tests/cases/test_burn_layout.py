"""Upstream's expected layouts: words, bytes, lengths, refusals, blocks and layout operations."""

import numpy as np
import pytest

import quantspec as qs

from .. import oracle
from ..bridge import Verbs
from .facts import (
    Case,
    arange_input,
    bits_of,
    burn,
    code_bytes,
    exact,
    product_bits,
    refusal,
    single,
    tensor_scheme,
    within,
)


def scale_stream(scale: str, numbers: list[float]) -> bytes:
    """Scales as stored, little-endian, by the oracle; all of them exact in their type."""
    patterns = [int(bits) for bits in single(numbers).view(np.uint32)]
    codes = [oracle.encode_scale(scale, bits) for bits in patterns]
    assert [oracle.decode_scale(scale, code) for code in codes] == patterns, "the case's scales need no rounding"
    return b"".join(code.to_bytes(oracle.SCALE_BYTES[scale], "little") for code in codes)


def stream(case: Case, scheme: qs.Scheme) -> bytes:
    """The bytes of a case's native codes and scales, put together here."""
    data = bytes(code_bytes(case["codes"]).tolist())
    if scheme.block is None:
        assert scheme.tensor is not None
        return data + scale_stream(scheme.tensor.name, case["scales"])
    data += scale_stream(scheme.block.scale.name, case["scales"])
    return data if scheme.tensor is None else data + scale_stream(scheme.tensor.name, [case["global_scale"]])


@burn("bytes_round_trip")
def test_bytes_there_and_back(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.from_burn(case["scheme"])
    data = stream(case, scheme)
    q = verbs.split(data, scheme, case["shape"])
    assert q.codes.ravel().tolist() == code_bytes(case["codes"]).tolist()
    for level, numbers in ((q.scale_codes, case["scales"]), (q.tensor_scale_code, [case["global_scale"]])):
        if level is not None and len(numbers) == level.size and numbers != [None]:
            row = scheme.block.scale if level is q.scale_codes and scheme.block else scheme.tensor
            assert row is not None
            assert bits_of(verbs.decode_scale(level.ravel(), row)) == bits_of(single(numbers))
    assert verbs.to_bytes(q) == data
    assert qs.byte_count(scheme, case["shape"]) == len(data) == case.get("total_bytes", len(data))
    if "dequantized_at" in case:
        y = verbs.dequantize(q)
        assert bits_of(y.ravel()) == product_bits(int(single(case["scales"][0]).view(np.uint32)), case["codes"])
        for place, (number, tolerance) in case["dequantized_at"].items():
            assert within(y.ravel()[[int(place)]], single([number]), absolute=tolerance)


@burn("bytes_property")
def test_two_levels_go_through_bytes_bit_for_bit(verbs: Verbs, case: Case) -> None:
    assert case["property"] == "bytes round trip is bit exact"
    q = verbs.quantize(arange_input(case), qs.Scheme.from_burn(case["scheme"]))
    again = verbs.split(verbs.to_bytes(q), q.scheme, q.shape)
    assert again == q
    assert bits_of(verbs.dequantize(again)) == bits_of(verbs.dequantize(q))


# ---------------------------------------------------------------- refusals and acceptances


@burn("error", only=("bytes-err-missing-global",))
def test_a_missing_tensor_scale_is_refused(verbs: Verbs, case: Case) -> None:
    scheme, codes = qs.Scheme.from_burn(case["scheme"]), code_bytes(case["codes"])
    scales = single(case["scales"]).view(np.uint32)
    with pytest.raises(qs.ScaleError, match="tensor_scale_code is missing") as error:
        qs.Quantized(scheme, codes, scales)
    assert refusal(error)[0] == "SCL-22"
    with pytest.raises(qs.ScaleError, match="block scales alone are given") as error:
        verbs.quantize(np.zeros(8, np.float32), scheme, scale_codes=scales)
    assert refusal(error)[0] == "SCL-23"


@burn("error", only=("pk-len-refused",))
def test_values_whose_lines_are_not_padded_are_refused(verbs: Verbs, case: Case) -> None:
    with pytest.raises(qs.EncodingError, match=r"data has 13 bytes.*has exactly 16") as error:
        verbs.split(bytes(case["value_bytes"] + 4), qs.Scheme.from_burn(case["scheme"]), case["shape"])
    assert refusal(error)[0] == "LAY-4"
    assert qs.byte_count(qs.Scheme.from_burn(case["scheme"]), case["shape"]) == case["expected_value_bytes"] + 4


@burn("error", only=("bytes-err-narrow-global",))
def test_a_tensor_scale_of_any_type_is_defined(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.from_burn(case["scheme"])
    assert scheme.text == "q8s.native.b4-ue4m3.t-f16"
    data = stream(case, scheme)
    q = verbs.split(data, scheme, case["shape"])
    assert bits_of(verbs.dequantize(q)) == [0] * 8
    assert verbs.to_bytes(q) == data


@burn("error", only=("cube-err-last-dim", "cube-err-block-small"))
def test_words_need_not_divide_a_line_or_a_block(verbs: Verbs, case: Case) -> None:
    scheme, x = qs.Scheme.from_burn(case["scheme"]), single(case["input"]).reshape(case["shape"])
    q = verbs.quantize(x, scheme)
    native = verbs.quantize(x, qs.Scheme(scheme.value, tensor=scheme.tensor, block=scheme.block))
    assert q.codes.tolist() == native.codes.tolist()
    assert verbs.split(verbs.to_bytes(q), scheme, x.shape) == q


@burn("quantizable")
def test_every_scheme_is_quantizable(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.from_burn(case["scheme"])
    x = np.linspace(-2, 3, 9, dtype=np.float32)
    q = verbs.quantize(x, scheme)
    assert verbs.split(verbs.to_bytes(q), scheme, (9,)) == q
    assert within(verbs.dequantize(q), x, absolute=0.05)
    assert qs.Scheme.from_burn(scheme.to_burn()) == scheme


# ---------------------------------------------------------------- words


@burn("pack_u32_flat", "pack_layout")
def test_codes_pack_to_words(verbs: Verbs, case: Case) -> None:
    ((kind, d),) = case.get("store", {"PackedU32": 0}).items()
    assert kind == "PackedU32"
    scheme = tensor_scheme(case["value"].lower(), f"packed_u32_{d}")
    codes = code_bytes(case["codes"]).reshape(case.get("shape", -1))
    q = qs.Quantized(scheme, codes, None, np.array(0x3F800000, np.uint32))
    packed = verbs.pack(q)
    assert packed.words.ravel().tolist() == case["words"]
    assert verbs.unpack(packed) == q
    assert np.frombuffer(verbs.to_bytes(q)[:-4], "<u4").tolist() == case["words"]


@burn("unpack_u32_flat")
def test_words_unpack_to_codes(verbs: Verbs, case: Case) -> None:
    scheme = tensor_scheme(case["value"].lower(), "packed_u32_0")
    packed = qs.Packed(
        scheme, (case["numel"],), np.array(case["words"], np.uint32), None, np.array(0x3F800000, np.uint32)
    )
    assert verbs.unpack(packed).codes.tolist() == code_bytes(case["codes"]).tolist()


@burn("pack_layout_bytes")
def test_codes_pack_to_bytes(verbs: Verbs, case: Case) -> None:
    assert case["store"] == {"PackedNative": 0}
    scheme = tensor_scheme(case["value"].lower(), "packed_native_0", "ue8m0")
    q = qs.Quantized(scheme, code_bytes(case["codes"]), None, np.array(0x7F, np.uint8))
    assert list(verbs.to_bytes(q)) == [*case["bytes"], 0x7F]


@burn("pack_property")
def test_codes_pack_along_any_axis(verbs: Verbs, case: Case) -> None:
    stores = [
        {"PackedU32": "packed_u32", "PackedNative": "packed_native"}[s] for s in case.get("stores", ["PackedU32"])
    ]
    for value in case["values"]:
        for store in stores:
            for shape in case["shapes"]:
                _pack_along_any_axis(verbs, qs.VALUES[value.lower()], store, tuple(shape))


def _pack_along_any_axis(verbs: Verbs, value: qs.ValueFormat, store: str, shape: tuple[int, ...]) -> None:
    """Pack and unpack along every axis; the length is lines times words a line."""
    fields = (np.arange(np.prod(shape)) * 7 % 2**value.bits).astype(int).tolist()
    codes = np.array([oracle.extend(value.name, field) for field in fields], np.uint8).reshape(shape)
    for d in range(len(shape)):
        scheme = tensor_scheme(value.name, f"{store}_{d}", "ue8m0")
        q = qs.Quantized(scheme, codes, None, np.array(0x7F, np.uint8))
        assert verbs.unpack(verbs.pack(q)) == q
        data, length = verbs.to_bytes(q), shape[len(shape) - 1 - d]
        lines, n = np.prod(shape) // length, scheme.store.codes_per_word(value.bits)
        assert len(data) - 1 == lines * -(-length // n) * scheme.store.word_bytes(value.bits)
        assert verbs.split(data, scheme, shape) == q


@burn("scale_layout")
def test_block_scales_follow_the_packed_axis_in_bytes_only(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.from_burn(case["scheme"])
    scales = single(case["scales_row_major"]).reshape(2, 2)
    q = verbs.quantize(np.zeros(case["shape"], np.float32), scheme, scales=scales)
    assert q.scale_codes is not None
    assert bits_of(q.scale_codes) == bits_of(scales)
    data = verbs.to_bytes(q)
    assert np.frombuffer(data[-16:], "<f4").tolist() == case["scales_stored"]
    assert verbs.split(data, scheme, q.shape) == q


@burn("data_len")
def test_the_length_of_the_bytes(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.from_burn(case["scheme"])
    assert qs.byte_count(scheme, case["shape"]) == case["total_bytes"]
    q = verbs.quantize(np.ones(case["shape"], np.float32), scheme)
    assert len(verbs.to_bytes(q)) == case["total_bytes"]


# ---------------------------------------------------------------- blocks


@burn("num_blocks")
def test_there_is_one_scale_a_block(verbs: Verbs, case: Case) -> None:
    q = verbs.quantize(np.ones(case["shape"], np.float32), qs.Scheme("q8s", block=(case["block"], "f32")))
    assert q.scale_codes is not None
    assert list(q.scale_codes.shape) == case["num_blocks"]


@burn("block_canonical")
def test_leading_ones_are_dropped(case: Case) -> None:
    given, normal = (qs.Scheme("q8s", block=(case[key], "f32")) for key in ("input", "canonical"))
    assert given.block is not None
    assert list(given.block.extents) == case["canonical"]
    assert given == normal
    assert hash(given) == hash(normal)


@burn("block_to_dims")
def test_extents_at_a_rank(case: Case) -> None:
    assert qs.Scheme("q8s", block=(case["block"], "f32")).extents(case["rank"]) == tuple(case["dims"])


@burn("block_swap", "block_permute")
def test_blocks_follow_their_axes(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme("q8s", block=(case["block"], "f16"), tensor="f32")
    shape = [3 * extent for extent in case["block"]]
    q = verbs.quantize(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), scheme)
    turned = qs.transpose(q, *case["dims"]) if "dims" in case else qs.permute(q, case["axes"])
    assert turned.scheme == qs.Scheme("q8s", block=(case["result"], "f16"), tensor="f32")
    axes = case.get("axes", (1, 0))
    assert bits_of(verbs.dequantize(turned)) == bits_of(verbs.dequantize(q).transpose(axes))


# ---------------------------------------------------------------- layout operations


@burn("layout_op")
def test_layout_operations_move_codes(verbs: Verbs, case: Case) -> None:
    q = verbs.quantize(single(case["input"]).reshape(case["shape"]), qs.Scheme.from_burn(case["scheme"]))
    name, *arguments = case["op"]
    y = verbs.dequantize(q)
    if name == "swap_dims":
        moved, expected = qs.transpose(q, *arguments), y.swapaxes(*arguments)
    elif name == "select":  # upstream's select keeps the axis: it is `take` here
        moved, expected = qs.take(q, *arguments), y[arguments[1]]
    else:
        assert name == "flip"
        moved, expected = qs.flip(q, *arguments[0]), np.flip(y, arguments[0])
    assert list(moved.shape) == case["out_shape"]
    assert bits_of(verbs.dequantize(moved)) == bits_of(expected)
    assert within(expected.ravel(), single(case["dequantized"]), absolute=case["abs_tol"])


@burn("quantize_then_permute_tolerance")
def test_dequantize_after_permute(verbs: Verbs, case: Case) -> None:
    x, axes = arange_input(case), case["axes"]
    q = verbs.quantize(x, qs.Scheme.from_burn(case["scheme"]))
    turned = qs.permute(q, axes)
    y = verbs.dequantize(turned)
    assert bits_of(y) == bits_of(verbs.dequantize(q).transpose(axes))
    assert within(y, x.transpose(axes), absolute=case["abs_tol"], relative=case["rel_tol"])
    assert verbs.split(verbs.to_bytes(turned), turned.scheme, turned.shape) == turned


@burn("reshape_commutes")
def test_reshape_commutes_with_dequantize(verbs: Verbs, case: Case) -> None:
    q = verbs.quantize(arange_input(case), qs.Scheme.from_burn(case["scheme"]))
    new = tuple(case["new_shape"])
    turned = qs.reshape(verbs.unpack(verbs.pack(q)), new)
    assert turned.shape == new
    assert turned.scheme == q.scheme
    assert bits_of(verbs.dequantize(turned)) == bits_of(verbs.dequantize(q).reshape(new))
    assert exact(verbs.dequantize(verbs.split(verbs.to_bytes(turned), turned.scheme, new))) == exact(
        verbs.dequantize(q)
    )
