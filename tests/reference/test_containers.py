"""Containers: words and streams of other stacks, converted exactly both ways. Rules POL-3, POL-10, POL-14 to POL-18."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
from quantspec.containers import swizzle, unswizzle

F32 = npt.NDArray[np.float32]


def codes_of(numbers: list[int]) -> npt.NDArray[np.uint8]:
    return np.array(numbers, np.uint8)


def tensor(scheme: str, shape: tuple[int, ...], seed: int = 0) -> qs.Quantized:
    return qs.quantize(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), scheme)


HELD: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "canonical": [("q4s.packed_u32_1.b2x3-f16.t-f32", (4, 7))],
    "high-nibble": [
        ("e2m1.packed_native_0.b16-ue4m3.t-f32", (3, 21)),
        ("q2f.packed_native_1.t-f32", (3, 5)),
        ("e3m2.packed_u32_0.b4-ue8m0", (2, 9)),
        ("q4f.packed_native_0.lut-nf4.b4-f32", (7,)),
    ],
    "split-half": [("q4f.packed_native_0.b32-f16", (2, 64)), ("e2m1.packed_native_0.b16-ue4m3.t-f32", (3, 32))],
    "ggml-blocks": [("e2m1.packed_native_0.b32-ue8m0", (2, 3, 64))],
    "ggml-q4_0": [("q4f.packed_native_0.b32-f16", (2, 64))],
    "ggml-q8_0": [("q8s.native.b32-f16", (2, 64)), ("q8f.packed_native_0.b32-f16", (64,))],
    "compressed-tensors-i32": [
        ("q4f.packed_u32_0.b32-bf16", (2, 45)),
        ("q8f.packed_u32_0.t-f32", (3, 5)),
        ("q2f.packed_u32_1.b4-f16", (17, 3)),
    ],
    "gptq-i32": [("q4f.packed_u32_1.b8x1-f16", (19, 5)), ("q4f.packed_u32_2.t-f32", (9, 2, 3))],
    "awq-i32": [("q4f.packed_u32_0.b8-f16", (2, 21))],
    "mlx-u32": [
        ("e2m1.packed_u32_0.b16-ue4m3.t-f32", (2, 40)),
        ("e3m2.packed_u32_0.b32-ue8m0", (2, 70)),
        ("e2m3.packed_u32_1.b4-ue8m0", (11, 3)),
    ],
    "cublas-128x4": [("e2m1.packed_native_0.b16-ue4m3.t-f32", (130, 96)), ("e4m3.native.b32-ue8m0", (2, 3, 170))],
}


@pytest.mark.parametrize("name", qs.CONTAINERS)
def test_every_container_is_converted_exactly_both_ways(name: str) -> None:
    for scheme, shape in HELD[name]:
        q = tensor(scheme, shape)
        canonical = qs.pack(q)
        there = qs.convert(canonical, name)
        assert there.container == qs.CONTAINERS[name]
        assert qs.unpack(there) == q
        back = qs.convert(there, "canonical")
        assert back.words.tolist() == canonical.words.tolist()
        data = qs.to_bytes(there)
        assert data == qs.to_bytes(q, container=name) == qs.to_bytes(canonical, container=name)
        assert len(data) == qs.byte_count(scheme, shape, name)
        assert qs.split(data, scheme, shape, container=name) == q
        assert qs.to_bytes(qs.from_bytes(data, scheme, shape, container=name), container="canonical") == qs.to_bytes(q)


@pytest.mark.parametrize("name", qs.CONTAINERS)
def test_an_empty_tensor_has_no_words_in_any_container(name: str) -> None:
    scheme, shape = HELD[name][0]
    q = tensor(scheme, (0, *shape[1:]))
    data = qs.to_bytes(q, container=name)
    assert qs.split(data, scheme, q.shape, container=name) == q


def record(scheme: str, codes: Any, **levels: Any) -> qs.Quantized:
    return qs.Quantized(qs.Scheme.of(scheme), codes, **levels)


def bytes_of(codes: list[int], scheme: str, container: str, **levels: Any) -> str:
    return qs.to_bytes(record(scheme, np.array(codes, np.uint8), **levels), container=container).hex()


ONE = np.array(0x3F800000, np.uint32)


def test_two_nibbles_in_a_byte_by_who_packs_them() -> None:
    one: dict[str, Any] = {"tensor_scale_code": ONE}
    assert bytes_of([2, 12, 7], "e2m1.packed_native_0.t-f32", "canonical", **one)[:4] == "c207"
    assert bytes_of([2, 12, 7], "e2m1.packed_native_0.t-f32", "high-nibble", **one)[:4] == "2c70"
    block = {"scale_codes": codes_of([127])}
    assert (
        bytes_of(list(range(8)), "e2m1.packed_native_0.b8-ue8m0", "split-half", **block)
        == "4051627f7f"[:2] + "5162737f"
    )


def test_ggml_blocks() -> None:
    codes = [(i % 16) - 8 & 0xFF for i in range(32)]
    half = {"scale_codes": np.array([0x3C00], np.uint16)}
    assert bytes_of(codes, "q4f.packed_native_0.b32-f16", "ggml-q4_0", **half) == "003c" + "".join(
        f"{i:x}{i:x}" for i in range(16)
    )
    assert bytes_of(list(range(32)), "q8s.native.b32-f16", "ggml-q8_0", **half) == "003c" + bytes(range(32)).hex()
    mx = [i % 16 for i in range(32)]
    assert bytes_of(mx, "e2m1.packed_native_0.b32-ue8m0", "ggml-blocks", scale_codes=codes_of([128])) == "80" + "".join(
        f"{i:x}{i:x}" for i in range(16)
    )


def test_offset_binary_dense_words() -> None:
    one: dict[str, Any] = {"tensor_scale_code": ONE}
    assert bytes_of([0xF8, 0, 7], "q4f.packed_u32_0.t-f32", "compressed-tensors-i32", **one)[:8] == "800f0000"
    q = record("e3m2.packed_u32_0.t-f32", codes_of([1, 2, 3, 4, 5, 63]), tensor_scale_code=ONE)
    words = qs.pack(q, container="mlx-u32").words
    stream = sum(int(code) << 6 * i for i, code in enumerate(q.codes))
    assert words.tolist() == [stream & 0xFFFFFFFF, stream >> 32]


def test_awq_places_and_gptq_axes() -> None:
    one: dict[str, Any] = {"tensor_scale_code": ONE}
    q = record("q4f.packed_u32_0.t-f32", qs.encode(np.arange(-8, 0, dtype=np.float32), "q4f"), **one)
    fields = [int(qs.pack(q, container="awq-i32").words[0]) >> 4 * i & 15 for i in range(8)]
    assert fields == [0, 2, 4, 6, 1, 3, 5, 7]
    w = tensor("q4f.packed_u32_1.b8x1-f16", (16, 3))
    words = qs.pack(w, container="gptq-i32").words
    assert words.shape == (2, 3)
    assert words.tolist() == [
        [sum(((int(c) + 8) & 15) << 4 * i for i, c in enumerate(w.codes[8 * r : 8 * r + 8, k])) for k in range(3)]
        for r in range(2)
    ]
    data = qs.to_bytes(w, container="gptq-i32")
    assert w.scale_codes is not None
    assert data[24:] == w.scale_codes.astype("<u2").tobytes()


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (128, 4), (129, 5), (300, 9), (0, 3)])
def test_scale_tiles_follow_the_formula(rows: int, columns: int) -> None:
    scales = np.random.default_rng(2).integers(1, 255, (rows, columns)).astype(np.uint8)
    out = swizzle(scales)
    assert out.size == -(-rows // 128) * -(-columns // 4) * 512
    for r in range(rows):
        for c in range(columns):
            place = ((r // 128) * -(-columns // 4) + c // 4) * 512 + (r % 32) * 16 + ((r % 128) // 32) * 4 + c % 4
            assert out[place] == scales[r, c]
    assert np.count_nonzero(out) == scales.size
    assert unswizzle(out, scales.shape, padding="refuse").tolist() == scales.tolist()


def test_padding_that_is_not_zero_is_refused_or_ignored() -> None:
    scheme, shape = "e2m1.packed_native_0.b16-ue4m3.t-f32", (3, 21)
    q = tensor(scheme, shape)
    for container, place in (("high-nibble", 10), ("cublas-128x4", 33 + 511)):
        data = bytearray(qs.to_bytes(q, container=container))
        data[place] |= 0x01
        with pytest.raises(qs.EncodingError) as error:
            qs.split(data, scheme, shape, container=container)
        assert error.value.rule == "PAK-7"
        assert qs.split(data, scheme, shape, container=container, padding="ignore") == q
        cleaned = qs.from_bytes(data, scheme, shape, container=container, padding="ignore")
        assert qs.to_bytes(cleaned) == qs.to_bytes(q, container=container)


def test_bit_7_of_a_scale_is_ignored_where_the_container_says_so() -> None:
    q = tensor("e2m1.packed_native_0.b16-ue4m3.t-f32", (1, 16))
    data = bytearray(qs.to_bytes(q, container="cublas-128x4"))
    data[8] |= 0x80
    assert qs.split(data, q.scheme, q.shape, container="cublas-128x4") == q


REFUSED: dict[str, tuple[Any, str, str]] = {
    "unknown": (
        lambda: qs.pack(tensor("q4s.packed_u32_0.t-f32", (8,)), container="high"),
        "POL-3",
        "container='high' is not defined; defined: canonical",
    ),
    "member": (
        lambda: qs.pack(tensor("q4s.packed_u32_0.t-f32", (8,)), container=qs.Container("x", "middle")),
        "POL-3",
        "field_order='middle'",
    ),
    "fields": (
        lambda: qs.pack(tensor("q4s.packed_u32_0.t-f32", (8,)), container=qs.Container("x", "permuted", fields=(0, 0))),
        "POL-3",
        "each place once",
    ),
    "bias": (
        lambda: qs.pack(tensor("e2m1.packed_u32_0.t-f32", (8,)), container="compressed-tensors-i32"),
        "POL-10",
        "integer values",
    ),
    "native": (lambda: qs.pack(tensor("e2m1.native.t-f32", (8,)), container="high-nibble"), "POL-10", "a packed store"),
    "ragged": (
        lambda: qs.pack(tensor("q4f.packed_native_0.b32-f16", (40,)), container="ggml-q4_0"),
        "POL-10",
        "shape .40,.",
    ),
    "levels": (
        lambda: qs.pack(tensor("e2m1.packed_native_0.b32-ue8m0.t-f32", (64,)), container="ggml-blocks"),
        "POL-10",
        "one level",
    ),
    "words": (
        lambda: qs.pack(tensor("q4f.packed_native_0.t-f32", (8,)), container="awq-i32"),
        "POL-10",
        "8 codes a word",
    ),
    "tiles": (
        lambda: qs.to_bytes(tensor("e2m1.packed_native_0.b16-f16", (32,)), container="cublas-128x4"),
        "POL-10",
        "one byte",
    ),
    "dense": (lambda: qs.byte_count("q4f.packed_native_0.t-f32", (8,), "mlx-u32"), "POL-10", "packed_u32_d"),
}


@pytest.mark.parametrize(("call", "rule", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refusals(call: Any, rule: str, message: str) -> None:
    with pytest.raises(qs.UnsupportedError, match=message) as error:
        call()
    assert error.value.rule == rule
