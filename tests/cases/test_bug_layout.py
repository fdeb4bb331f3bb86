"""Reported faults of blocks, shapes, strides, layout operations and memory."""

import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from ..bridge import Verbs
from .facts import Case, bits_of, bug, code_bytes, expected_bits, f32, hexes, leaves, refusal


def scale_codes(q: qs.Quantized) -> npt.NDArray[np.uint8]:
    """The block scales of a tensor that has them."""
    assert q.scale_codes is not None
    return q.scale_codes


@bug("BC-091")
def test_amax_of_a_partial_block_sees_only_elements_that_exist(verbs: Verbs, case: Case) -> None:
    memory = np.full(64, 1e30, np.float32)
    memory[:5] = f32(case["input"])
    q = verbs.quantize(memory[:5], "q8s.native.b4-f32")
    assert scale_codes(q).tolist() == expected_bits(case["expected"]["scales"])
    assert q.codes.tolist() == code_bytes(case["expected"]["codes"]).tolist()


@bug("BC-093")
def test_partial_blocks_in_any_dimension(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme("e4m3", block=((128, 128), "f32"))
    for shape, grid in zip(case["input"]["shapes"], case["expected"]["scale_shapes"], strict=True):
        size = qs.byte_count(scheme, shape)
        assert size == np.prod(shape) + 4 * np.prod(grid)
        read = verbs.from_bytes(bytes(size), scheme, shape)
        assert read.scale_codes is not None
        assert read.scale_codes.shape == tuple(grid)
        if np.prod(shape) < 2**18:
            assert scale_codes(verbs.quantize(np.ones(shape, np.float32), scheme)).shape == tuple(grid)


@bug("BC-095")
def test_the_block_size_changes_only_the_scale(verbs: Verbs, case: Case) -> None:
    assert case["input"]["x"] == "16 values, block 64"
    x = np.linspace(-3, 5, 16, dtype=np.float32)
    for value, mode, table in (("q4f", "lookup", qs.NF4), ("e2m1", "symmetric", None)):
        whole = verbs.quantize(x, qs.Scheme(value, mode=mode, table=table))
        assert whole.tensor_scale_code is not None
        for extent in range(16, 256):
            q = verbs.quantize(x, qs.Scheme(value, mode=mode, table=table, block=((extent,), "f32")))
            assert q.codes.tolist() == whole.codes.tolist()
            assert scale_codes(q).tolist() == [int(whole.tensor_scale_code)]


@bug("BC-097")
def test_an_empty_part_between_two_others(verbs: Verbs, case: Case) -> None:
    scheme = qs.Scheme.parse("e4m3.native.b32-ue8m0")
    x = np.linspace(-7, 9, 6 * 32, dtype=np.float32).reshape(6, 32)
    parts = [verbs.quantize(part, scheme) for part in (x[:4], x[4:4], x[4:])]
    assert [list(part.shape) for part in parts] == case["input"]["shapes"]
    assert scale_codes(parts[1]).shape == (0, 1)
    assert verbs.dequantize(parts[1]).shape == (0, 32)
    assert verbs.to_bytes(parts[1]) == b""
    assert verbs.split(b"", scheme, (0, 32)) == parts[1]
    assert qs.concatenate(parts, 0) == verbs.quantize(x, scheme)


@bug("BC-099")
def test_a_scalar(verbs: Verbs, case: Case) -> None:
    x, expected = f32(case["input"]["x"]).reshape(()), case["expected"]
    for store in ("native", "packed_native_0", "packed_u32_0"):
        q = verbs.quantize(x, qs.Scheme("q8s", store))
        assert q.codes.shape == verbs.dequantize(q).shape == tuple(expected["shape_back"])
        assert q.codes.reshape(1).tolist() == expected["codes"]
        assert q.tensor_scale_code is not None
        assert [int(q.tensor_scale_code)] == expected_bits([expected["scale"]])
        assert verbs.split(verbs.to_bytes(q), q.scheme, ()) == q
    assert qs.words_shape(qs.Scheme("q8s", "packed_u32_0"), ()) == (1,)
    for text, rule in (("q8s.native.b4-f32", "SCH-13"), ("q8s.packed_u32_1.t-f32", "SCH-14")):
        with pytest.raises(qs.ShapeError, match="has rank 0") as error:
            verbs.quantize(x, text)
        assert refusal(error)[0] == rule


@bug("BC-101")
def test_a_transposed_view_equals_a_copy(verbs: Verbs, case: Case) -> None:
    view = f32(case["input"]["base"]).T
    assert not view.flags.c_contiguous
    q = verbs.quantize(view, "q8s.native.t-f32")
    assert list(q.shape) == case["expected"]["shape"]
    assert q.codes.tolist() == case["expected"]["codes"]
    assert q.tensor_scale_code is not None
    assert [int(q.tensor_scale_code)] == expected_bits(case["expected"]["scale"])
    assert verbs.quantize(view.copy(), "q8s.native.t-f32") == q


@bug("BC-103")
def test_inputs_are_never_modified(verbs: Verbs, case: Case) -> None:
    assert case["expected"]["property"] == "input bytes identical before and after"
    x = np.linspace(-3, 5, 24, dtype=np.float32).reshape(4, 6)
    x[1, 2], x[3, 3] = np.nan, -np.inf
    legal = ("e4m3.packed_u32_1.b3-ue8m0", "e2m1.native.b4-ue4m3.t-f32", "q2s.native.t-f16")
    for dtype in (np.float32, np.float16, np.float64, np.int32):
        with np.errstate(invalid="ignore"):
            given = x.astype(dtype)
        before = given.tobytes()
        for text in (*legal, "q8s.native.b4x2x2-f16"):
            for scales in (None, np.full((4, 2), -np.inf, np.float32)):
                refused = dtype in (np.float64, np.int32) or text not in legal or scales is not None
                try:
                    verbs.quantize(given, text, scales=scales)
                except qs.QuantspecError:
                    assert refused
                else:
                    assert not refused
                assert given.tobytes() == before
                assert scales is None or np.isneginf(scales).all()


@bug("BC-105")
def test_transpose_moves_the_packed_axis_and_the_blocks(verbs: Verbs, case: Case) -> None:
    part, expected = case["input"], case["expected"]
    scheme = qs.Scheme("q4f", "packed_u32_0", block=((1, 4), "f32"))
    words = np.array(hexes(part["words"]), np.uint32)
    packed = qs.Packed(scheme, tuple(part["shape"]), words, f32(part["scales"]).view(np.uint32))
    turned = qs.transpose(verbs.unpack(packed), 0, 1)
    assert turned.shape == tuple(expected["shape"])
    assert turned.scheme == qs.Scheme("q4f", "packed_u32_1", block=((4, 1), "f32"))
    assert bits_of(verbs.dequantize(turned)) == expected_bits(expected["values"])
    assert verbs.pack(turned).words.tolist() == words.tolist(), "the packed axis stayed where it was in memory"
    assert verbs.split(verbs.to_bytes(turned), turned.scheme, turned.shape) == turned
    assert qs.transpose(turned, 0, 1) == verbs.unpack(packed)


@bug("BC-107")
def test_slices_of_packed_tensors(verbs: Verbs, case: Case) -> None:
    part, expected = case["input"], case["expected"]
    scheme, stream = qs.Scheme.parse("e2m1.packed_native_0.t-ue8m0"), bytes(leaves(hexes(part["bytes"])))
    q = verbs.split(stream + b"\x7f", scheme, part["shape"])
    row = qs.slice_axis(q, 0, 1, 2)
    assert row.codes.tolist() == [hexes(expected["row1_codes"])]
    offset = expected["row1_byte_offset"]
    assert verbs.to_bytes(row)[:-1] == stream[offset:]
    columns = qs.slice_axis(qs.slice_axis(q, 0, 0, 1), 1, 1, 4)
    assert columns.codes.tolist() == [hexes(expected["cols_codes"])]
    assert list(verbs.to_bytes(columns)[:-1]) == hexes(expected["cols_bytes_if_repacked"])


@bug("BC-109")
def test_contiguous_runs_share_a_scale(verbs: Verbs, case: Case) -> None:
    part = case["input"]
    scheme = qs.Scheme("q8f", block=((1, 2), "f32"))
    q = qs.Quantized(scheme, code_bytes(part["codes"]), f32(part["scales"]).view(np.uint32))
    assert bits_of(verbs.dequantize(q)) == expected_bits(case["expected"]["values"])


@bug("BC-115")
def test_the_scale_byte_is_decoded_at_every_size(verbs: Verbs, case: Case) -> None:
    part = case["input"]
    for scale in ("ue8m0", "ue4m3"):
        for byte, value in zip(part[f"{scale}_bytes"], expected_bits(case["expected"][scale]), strict=True):
            for size in part["sizes"]:
                codes = np.full(size, hexes(part["code"]), np.uint8)
                block = qs.Quantized(qs.Scheme("e2m1", block=((32,), scale)), codes, code_bytes([byte]))
                whole = qs.Quantized(qs.Scheme("e2m1", tensor=scale), codes, None, code_bytes(byte))
                assert bits_of(verbs.dequantize(block)) == bits_of(verbs.dequantize(whole)) == [value] * size


@bug("BC-119")
def test_scales_are_dense_and_row_major(verbs: Verbs, case: Case) -> None:
    part = case["input"]
    rows, columns = part["shape"]
    stream = bytes([hexes(part["code"].split()[0])] * rows * columns + hexes(part["scale_bytes_flat"]))
    q = verbs.split(stream, "e2m1.native.b32-ue8m0", (rows, columns))
    values = bits_of(verbs.dequantize(q).reshape(rows, columns // 32, 32))
    expected = expected_bits(case["expected"]["row_values_by_block"])
    assert values == [[[value] * 32 for value in row] for row in expected]
    assert verbs.to_bytes(q) == stream


@bug("BC-121")
def test_the_scale_grid_has_the_tensors_rank(verbs: Verbs, case: Case) -> None:
    shape = tuple(case["input"]["shape"])
    for block, grid in zip(case["input"]["blocks"], case["expected"]["scale_shapes"], strict=True):
        scheme = qs.Scheme("q4s", block=(block, "f32"))
        q = verbs.quantize(np.ones(shape, np.float32), scheme)
        assert scale_codes(q).shape == tuple(grid)
        if grid != grid[::-1]:
            with pytest.raises(qs.ShapeError, match="one scale a block") as error:
                verbs.quantize(np.ones(shape, np.float32), scheme, scales=np.ones(grid[::-1], np.float32))
            assert refusal(error)[0] == "SCL-19"


@bug("BC-155")
def test_dequantize_makes_no_scale_of_the_tensors_size(case: Case) -> None:
    shape = tuple(case["input"]["shape"])
    scheme = qs.Scheme("q4s", "packed_u32_0", block=((1, 32), "f16"))
    q = qs.Quantized(scheme, np.ones(shape, np.uint8), np.full((shape[0], shape[1] // 32), 0x3C00, np.uint16))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        y = qs.dequantize(q)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert y.nbytes <= peak, "tracemalloc sees numpy's memory"
    assert 2 * peak <= 3 * y.nbytes, f"peak {peak} bytes for an output of {y.nbytes}"
    assert (y == 1).all()
