"""Reported faults of kernels: launch sizes, unwritten outputs, subnormals, alignment, reductions, build options, lanes.

Each runs on the reference and on the device; the last tests are about the device's own inputs and options.
"""

from typing import TYPE_CHECKING

import numpy as np
import pytest

import quantspec as qs

from ..bridge import Verbs
from .facts import Case, bits_of, bug, code_bytes, expected_bits, f32, f32_of_bits, hexes, tensor_scheme

if TYPE_CHECKING:
    from quantspec_cl import Session

NVFP4 = "e2m1.native.b16-ue4m3.t-f32"


@bug("BC-123")
def test_row_counts_around_the_group_size(verbs: Verbs, case: Case) -> None:
    part, expected = case["input"], case["expected"]
    assert part["x"] == "all 1.0"
    for rows in part["rows"]:
        q = verbs.quantize(np.ones((rows, part["cols"]), np.float32), NVFP4)
        assert [int(q.tensor_scale_code)] == expected_bits(expected["global"])
        assert (q.scale_codes == hexes(expected["every_block_scale_code"])).all()
        assert q.scale_codes.shape == (rows, part["cols"] // 16)
        assert (q.codes == hexes(expected["every_code"])).all()
        assert (verbs.dequantize(q).view(np.uint32) == expected_bits(expected["every_value"])).all()


@bug("BC-125")
def test_every_output_is_written(verbs: Verbs, case: Case) -> None:
    scheme, n = tensor_scheme("q2f", "packed_u32_0"), case["input"]["n"]
    words = np.array([hexes(case["input"]["word"])], np.uint32)
    q = verbs.unpack(qs.Packed(scheme, (n,), words, None, np.array(0x3F000000, np.uint32)))
    assert bits_of(verbs.dequantize(q)) == expected_bits(case["expected"]["values"])
    for part in range(1, n):  # less than a word, a vector or a work-group: nothing of the poison may show
        data = verbs.to_bytes(qs.slice_axis(q, 0, 0, part))
        back = verbs.split(data, scheme, (part,))
        assert bits_of(verbs.dequantize(back)) == expected_bits(case["expected"]["values"])[:part]


@bug("BC-139")
def test_only_a_subnormal_result_is_subnormal(verbs: Verbs, case: Case) -> None:
    kept, codes = case["expected"]["one_of"][0], code_bytes(case["input"]["codes"])
    q = qs.Quantized(qs.Scheme.parse("e2m1.native.b32-ue8m0"), codes, code_bytes([case["input"]["scale_code"]]))
    assert bits_of(verbs.dequantize(q)) == hexes(kept["f32_bits"])
    again = verbs.quantize(f32_of_bits(kept["f32_bits"]), q.scheme, scale_codes=q.scale_codes)
    assert again.codes.tolist() == codes.tolist(), "subnormal inputs and scales are kept too"


@bug("BC-141")
def test_words_at_an_odd_byte_offset(verbs: Verbs, case: Case) -> None:
    part, supported = case["input"], case["expected"]["one_of"][0]
    stream = bytes([*hexes(part["bytes"]), 0x7F])
    scheme = tensor_scheme("q4f", "packed_u32_0", "ue8m0")
    for data in (memoryview(stream)[part["byte_offset"] :], np.frombuffer(stream, np.uint8)[part["byte_offset"] :]):
        packed = verbs.from_bytes(data, scheme, (8 * part["words"],))
        assert packed.words.tolist() == hexes(supported["words"])


@bug("BC-143")
def test_a_reduction_over_partly_filled_groups(verbs: Verbs, case: Case) -> None:
    x, expected = f32(case["input"]), case["expected"]
    scheme = tensor_scheme("q8s")
    streams = {verbs.to_bytes(verbs.quantize(x, scheme)) for _ in range(100)}
    assert len(streams) == 1
    assert [int.from_bytes(streams.pop()[-4:], "little")] == expected_bits(expected["scale"])
    for size in (1, 63, 64, 65, 255, 256, 257, 1023, 1025):
        for place in {0, size // 2, size - 1}:
            tensor = np.zeros(size, np.float32)
            tensor[place] = f32(expected["amax"])[0]
            q = verbs.quantize(tensor, scheme)
            assert [int(q.tensor_scale_code)] == expected_bits(expected["scale"])
            assert q.codes.tolist() == [127 if i == place else 0 for i in range(size)]


@bug("BC-145")
def test_nan_and_infinity_exist(verbs: Verbs, case: Case) -> None:
    x, saturating = f32_of_bits(case["input"]["x_bits"]), case["expected"]["one_of"][0]
    q = verbs.quantize(x, tensor_scheme("e4m3"), tensor_scale=np.float32(1))
    assert q.codes.tolist() == hexes(saturating["codes"])


@bug("BC-147")
def test_elements_keep_their_order(verbs: Verbs, case: Case) -> None:
    x = np.arange(*case["input"]["x_arange"], dtype=np.float32)
    q = verbs.quantize(x, tensor_scheme("q8f", "packed_u32_0"), tensor_scale=np.float32(1))
    assert q.codes.tolist() == list(range(*case["expected"]["q8f_codes_arange"]))
    assert verbs.pack(q).words.tolist() == hexes(case["expected"]["q8f_words"])
    narrow = np.arange(-8, 8, dtype=np.float32)
    q = verbs.quantize(narrow, tensor_scheme("q4f", "packed_u32_0"), tensor_scale=np.float32(1))
    assert verbs.pack(q).words.tolist() == [0xFEDCBA98, 0x76543210]
    assert verbs.dequantize(verbs.unpack(verbs.pack(q))).tolist() == narrow.tolist()


# ---------------------------------------------------------------- the device's own inputs and options


@pytest.mark.opencl
@bug("BC-141")
def test_a_device_array_at_an_odd_byte_offset(session: "Session", case: Case) -> None:
    from pyopencl import array as cl_array

    part, supported = case["input"], case["expected"]["one_of"][0]
    stream = np.array([*hexes(part["bytes"]), 0x7F], np.uint8)
    view = cl_array.to_device(session.queue, stream)[part["byte_offset"] :]
    assert view.offset % 4 == part["byte_offset"]
    packed = session.from_bytes(view, tensor_scheme("q4f", "packed_u32_0", "ue8m0"), (8 * part["words"],))
    assert packed.get().words.tolist() == hexes(supported["words"])


@pytest.mark.opencl
@bug("BC-145")
@pytest.mark.parametrize(
    "option", ["-cl-fast-relaxed-math", "-cl-finite-math-only", "-cl-denorms-are-zero", "-cl-mad-enable"]
)
def test_relaxed_build_options_change_no_bit(session: "Session", case: Case, option: str) -> None:
    import quantspec_cl

    assert session.build_options == (), "none of them is an option of ours"
    relaxed = quantspec_cl.open_device(session.info.index, build_options=[option], poison=True)
    saturating = case["expected"]["one_of"][0]
    scheme = tensor_scheme("e4m3")
    q = relaxed.quantize(f32_of_bits(case["input"]["x_bits"]), scheme, tensor_scale=np.float32(1)).get()
    assert q.codes.tolist() == hexes(saturating["codes"])
    tiny = qs.Quantized(qs.Scheme.parse("e2m1.native.b32-ue8m0"), code_bytes([2, 4]), code_bytes([0]))
    assert bits_of(relaxed.dequantize(tiny).get()) == [0x00400000, 0x00800000]
