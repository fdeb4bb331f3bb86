"""Streams: pieces of a device that takes little give the bits, the reports and the refusals of the whole."""

import threading
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.pieces import cut_up

from .agreement import same_bits, same_error
from .conftest import opened
from .data import numbers

pytestmark = pytest.mark.opencl

SCHEMES = (
    "e2m1.packed_native_0.b32-ue8m0",
    "q4s.packed_u32_1.b3x16-f16",
    "e2m3.packed_u32_0.b8-f32",
    "e2m1.packed_native_0.b16-ue4m3.t-bf16",
    "q8s.native.b2x2-ue4m3.t-f32",
    "q8s.native.t-f32",
    "e4m3.packed_u32_2.b4-ue8m0",
)
SHAPES = ((37, 50), (3, 5, 64), (1300,))


@cache
def small() -> qc.Session:
    """A session whose device takes arrays of 2048 bytes: 512 elements a piece."""
    index = opened().info.index
    return qc.open_device(index, poison=True, max_allocation=2048)


CASES = [
    (scheme, shape)
    for scheme in map(qs.Scheme.parse, SCHEMES)
    for shape in SHAPES
    if len(shape) > max(scheme.store.d, 0 if scheme.block is None else len(scheme.block.extents) - 1)
]


@pytest.mark.parametrize(("scheme", "shape"), CASES, ids=lambda each: getattr(each, "text", None))
def test_pieces_give_the_bits_of_the_whole(scheme: qs.Scheme, shape: tuple[int, ...]) -> None:
    stream = small().stream()
    for seed in (1, 2):
        x = numbers(seed, shape)
        expected = qs.quantize(x, scheme)
        found = stream.quantize(x, scheme)
        assert found == expected and found.saturation == expected.saturation
        packed = stream.quantize_packed(x, scheme)
        words = qs.pack(expected)
        same_bits(packed.words, words.words, scheme.text)
        same_bits(packed.scale_codes, words.scale_codes, scheme.text)
        same_bits(packed.tensor_scale_code, words.tensor_scale_code, scheme.text)
        same_bits(stream.dequantize(expected, "bf16"), qs.dequantize(expected, "bf16"), scheme.text)
        same_bits(stream.dequantize_packed(packed), qs.dequantize(expected), scheme.text)


def test_what_is_too_large_at_once_is_refused_and_says_how() -> None:
    with pytest.raises(qs.UnsupportedError, match="stream"):
        small().quantize(np.ones(4096, np.float32), SCHEMES[0])
    with pytest.raises(qs.UnsupportedError, match="hold 1024 elements; allowed in one piece: 512"):
        small().stream().quantize(np.ones(4096, np.float32), "q8s.native.b1024-f32")


def test_given_scales_are_cut_with_the_tensor() -> None:
    x, stream = numbers(3, (60, 48)), small().stream()
    rng = np.random.default_rng(4)
    scales, tensor = rng.uniform(0.01, 900, (60, 3)).astype(np.float32), np.float32(0.37)
    codes = rng.integers(0, 127, (60, 3), dtype=np.uint8)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("e2m1.native.b16-ue4m3", {"scales": scales}),
        ("e2m1.native.b16-ue4m3", {"scale_codes": codes}),
        ("e2m1.native.b16-ue4m3.t-f32", {"tensor_scale": tensor}),
        ("e2m1.native.b16-ue4m3.t-f32", {"tensor_scale": tensor, "scale_codes": codes}),
        ("q8s.native.t-f32", {"tensor_scale": tensor}),
    ]
    for scheme, given in cases:
        found, expected = stream.quantize(x, scheme, **given), qs.quantize(x, scheme, **given)
        assert found == expected and found.saturation == expected.saturation, (scheme, given)


def test_refusals_name_the_place_in_the_whole() -> None:
    x, stream = np.ones((60, 48), np.float32), small().stream()
    scales = np.ones((60, 3), np.float32)
    scales[47, 1] = -1
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (x, {"scales": scales}),
        (x, {"scales": scales[1:]}),
        (x.astype(np.float64), {}),
        (x, {"tensor_scale": 1.0}),
        (np.float32(1), {}),
    ]
    for array, given in wrong:
        arguments = (array, "e2m1.native.b16-ue4m3")
        same_error(partial(stream.quantize, *arguments, **given), partial(qs.quantize, *arguments, **given))
    packed = qs.pack(qs.quantize(numbers(5, (200, 9)), "q4s.packed_u32_0.b3-f16"))
    words = packed.words.copy()
    words[133, 1] |= 0x80000000
    dirty = qs.Packed(packed.scheme, packed.shape, words, packed.scale_codes)
    assert "line 133" in same_error(partial(stream.dequantize_packed, dirty), partial(qs.unpack, dirty))
    found = stream.dequantize_packed(dirty, padding="ignore")
    same_bits(found, qs.dequantize(qs.unpack(dirty, padding="ignore")), "dirty words")
    not_one: Any = x
    same_error(partial(stream.dequantize, not_one), partial(qs.dequantize, not_one))


def test_progress_is_told_of_every_piece() -> None:
    x, told = numbers(6, (64, 64)), list[tuple[int, int]]()
    stream = small().stream(lambda *at: told.append(at))
    stream.quantize(x, "e2m1.native.b32-ue8m0")
    assert told == [(done, 4096) for done in range(512, 4097, 512)]
    told.clear()
    stream.quantize(x, "q8s.native.t-f32")  # two passes
    assert told == [(done, 8192) for done in range(512, 8193, 512)]
    told.clear()
    stream.quantize(x[:0], "q8s.native.t-f32")
    assert all(done == total == 0 for done, total in told)


def test_an_interrupt_leaves_a_session_that_works() -> None:
    x = numbers(7, (64, 64))

    def interrupt(done: int, _: int) -> None:
        if done > 2000:
            raise KeyboardInterrupt

    for scheme in SCHEMES[:2]:
        with pytest.raises(KeyboardInterrupt):
            small().stream(interrupt).quantize_packed(x, scheme)
        assert small().stream().quantize(x, scheme) == qs.quantize(x, scheme)


def test_pieces_are_a_partition() -> None:
    scheme = qs.Scheme.parse("q4s.packed_u32_1.b3x16-f16")
    seen = np.zeros((7, 45, 50), int)
    for piece in cut_up(scheme, seen.shape, 1000, words=True):
        assert piece.size <= 1000 and piece.starts[1] % 24 == 0 and piece.starts[2] % 16 == 0
        seen[piece.elements] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "1"])
def test_a_largest_allocation_that_is_none_is_refused(most: Any) -> None:
    with pytest.raises(qc.DeviceError, match="max_allocation="):
        qc.open_device(opened().info.index, max_allocation=most)


def test_threads_may_stream_at_once() -> None:
    x, found = numbers(8, (60, 64)), dict[str, Any]()
    threads = [
        threading.Thread(target=lambda scheme=scheme: found.update({scheme: small().stream().quantize(x, scheme)}))
        for scheme in SCHEMES[:5]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {scheme: qs.quantize(x, scheme) for scheme in SCHEMES[:5]}
