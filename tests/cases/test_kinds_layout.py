"""The kinds of fault that the reports show, over stores and shapes: packing, bytes, blocks, strides, layout operations."""

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from .. import bridge, oracle
from ..bridge import Verbs
from .facts import F32, bits_of, refusal, single

VALUES, SCALES = tuple(qs.VALUES), tuple(qs.SCALES)
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (2, 3, 5), (3, 1, 2, 4)]
KINDS = [("native", 0), *((kind, d) for kind in ("packed_native", "packed_u32") for d in range(3))]


def content(shape: tuple[int, ...], s: oracle.S, seed: int = 0) -> oracle.Q:
    """Codes and scale codes that go through all that the formats have."""
    codes = oracle.valid_codes(s.value, s.table is not None)
    blocks = None
    if s.block_type is not None:
        top = 0x7F if s.block_type == "ue4m3" else 256 ** oracle.SCALE_BYTES[s.block_type]
        blocks = [(i * 2654435761 + seed) % top for i in range(math.prod(oracle.grid(shape, s)))]
    tensor = None if s.tensor is None else (0x35 + seed) % 0x7F
    return oracle.Q([codes[(i * 7 + seed) % len(codes)] for i in range(math.prod(shape))], blocks, tensor)


@pytest.mark.parametrize(("store", "d"), KINDS)
@pytest.mark.parametrize("value", VALUES)
def test_words_and_bytes_of_every_store(verbs: Verbs, value: str, store: str, d: int) -> None:
    """BC-077, 081, 083, 085, 087, 089, 117, 141, 147, 149: any value, axis and shape, there and back."""
    for shape, scale in zip(SHAPES, itertools.cycle(SCALES)):
        if d < max(len(shape), 1):
            block = () if len(shape) < 2 else (2, 3)
            s = oracle.S(value, store, d, "ue8m0", block, scale)
            bridge.check_bytes(content(shape, s), shape, s, verbs=verbs)


@pytest.mark.parametrize("store", ["packed_native", "packed_u32"])
@pytest.mark.parametrize("value", VALUES)
def test_every_padding_bit_counts(verbs: Verbs, value: str, store: str) -> None:
    """BC-125, 153: one dirty bit of padding, or a bit that no field uses, is refused where it is, and ignored on request."""
    s = oracle.S(value, store, 0, "ue8m0")
    shape = (2, 3)
    q = content(shape, s)
    data = oracle.to_bytes(q, shape, s)
    width, line = 8 * (len(data) - 1) // 2, 3 * oracle.BITS[value]
    for bit in range(line, width):
        for row in range(2):
            dirty = bytearray(data)
            dirty[(row * width + bit) // 8] ^= 1 << (row * width + bit) % 8
            place = f"byte {(row * width + bit) // 8}:.*line {row}"
            with pytest.raises(qs.EncodingError, match=place) as error:
                verbs.split(bytes(dirty), bridge.reference_scheme(s), shape)
            assert refusal(error)[0] == "PAK-7"
            read = verbs.split(bytes(dirty), bridge.reference_scheme(s), shape, padding="ignore")
            assert read.codes.ravel().tolist() == q.codes


@pytest.mark.parametrize("value", VALUES)
def test_bytes_of_a_wrong_length(verbs: Verbs, value: str) -> None:
    """BC-087, 089, 149: one byte less or more, or the unpadded length, names both lengths."""
    for store in ("native", "packed_native_0", "packed_u32_0"):
        scheme = qs.Scheme(value, store, block=((2,), "f16"), tensor="f32")
        size = qs.byte_count(scheme, (3, 3))
        for wrong in (0, 1, size - 1, size + 1, 2 * size):
            with pytest.raises(qs.EncodingError, match=f"data has {wrong} bytes.*exactly {size} ") as error:
                verbs.split(bytes(wrong), scheme, (3, 3))
            assert refusal(error)[0] == "LAY-4"


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("store", "d"), KINDS)
def test_sizes_beyond_32_bits(value: str, store: str, d: int) -> None:
    """BC-135, 137: counts are exact up to 2^63 - 1 and refused above, whatever integer type a shape is given in."""
    scheme = qs.Scheme(value, store if store == "native" else f"{store}_{d}", block=((255,), "f16"), tensor="f32")
    n, width = scheme.store.codes_per_word(scheme.value.bits), scheme.store.word_bytes(scheme.value.bits)
    for shape in ((2**16, 3, 2**31 + 16), (2**31 - 1, 1, 7), (3, 2**40, 5), (0, 2**62, 2)):
        length = shape[2 - scheme.store.d]
        lines = math.prod(shape) // length if length else 0
        words = lines * -(-length // n) * width
        expected = words + 2 * shape[0] * shape[1] * -(-shape[2] // 255) + 4
        assert qs.byte_count(scheme, shape) == expected
        assert qs.byte_count(scheme, np.array(shape, np.int64)) == expected  # type: ignore[arg-type]
    for shape in ((2**32, 2**31, 1), (2**21, 2**21, 2**21), (2**62, 1, 2)):
        with pytest.raises(qs.ShapeError, match=r"allowed: at most 2\^63-1") as error:
            qs.byte_count(scheme, shape)
        assert refusal(error)[0] == "LAY-5"


# ---------------------------------------------------------------- blocks and strides


def surrounded(x: F32, poison: float) -> F32:
    """A view of the same numbers in memory that is full of other ones."""
    memory = np.full([size + 4 for size in x.shape], poison, np.float32)
    view = memory[tuple(slice(2, size + 2) for size in x.shape)]
    view[...] = x
    return view


@pytest.mark.parametrize("block", [(), (4,), (2, 3), (5, 1), (2, 2, 2), (300,), (2**31 - 1, 4)], ids=str)
@pytest.mark.parametrize("value", ["q8s", "e2m1", "e5m2"])
def test_partial_blocks_see_only_their_elements(verbs: Verbs, value: str, block: tuple[int, ...]) -> None:
    """BC-091, 093, 095, 101, 109, 119, 121: every shape, extents longer than an axis, memory around it poisoned."""
    for shape in ((3, 5, 7), (1, 1, 1), (2, 4, 6), (1, 9, 1)):
        x = single(np.random.default_rng(5).normal(size=shape))
        s = oracle.S(value, "native", 0, None, block, "f32")
        for poison in (1e30, np.nan):
            bridge.check_quantize(bridge.patterns(x), shape, s, verbs=verbs, x=surrounded(x, poison))


def views(x: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """The same numbers with other strides, order and flags."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    shifted = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    locked = x.copy()
    locked.flags.writeable = False
    return {
        "fortran": np.asfortranarray(x),
        "reversed": x[::-1, ::-1].copy()[::-1, ::-1],
        "every second": wide[..., ::2],
        "turned": np.ascontiguousarray(x.T).T,
        "unaligned": shifted,
        "read-only": locked,
    }


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    "text", ["q8s.native.t-f32", "e2m1.packed_u32_1.b2x3-ue4m3.t-f32", "e4m3.packed_native_0.b4-ue8m0"]
)
def test_strides_and_byte_order_do_not_count(verbs: Verbs, text: str, kind: str) -> None:
    """BC-101, 103, 111: transposed, reversed, strided, unaligned, read-only, big-endian; and no input is changed."""
    x = np.random.default_rng(3).normal(size=(5, 8)).astype(bridge.FLOATS[kind])
    expected = verbs.quantize(x, text)
    given = views(x)
    if kind != "bf16":  # numpy knows no byte order of bfloat16
        given["big-endian"] = x.astype(x.dtype.newbyteorder(">"))
    for name, view in given.items():
        before = view.tobytes()
        assert verbs.quantize(view, text) == expected, name
        assert verbs.encode(view, "e4m3").tolist() == verbs.encode(x, "e4m3").tolist(), name
        assert view.tobytes() == before, name


@pytest.mark.parametrize("order", ["<", ">"])
def test_codes_and_words_of_either_byte_order(verbs: Verbs, order: str) -> None:
    """BC-111, 151: scale codes and words are numbers, whatever their bytes in memory; streams are little-endian."""
    x = single(np.linspace(-3, 5, 24)).reshape(3, 8)
    for scale in ("f32", "f16", "bf16"):
        scheme = qs.Scheme("q4s", "packed_u32_0", block=((2, 4), scale), tensor=scale)
        q = verbs.quantize(x, scheme)
        codes, g = (a.astype(a.dtype.newbyteorder(order)) for a in (q.scale_codes, q.tensor_scale_code))
        assert qs.Quantized(scheme, q.codes, codes, g) == q
        assert verbs.quantize(x, scheme, scale_codes=codes, tensor_scale_code=g) == q
        assert bits_of(verbs.decode_scale(codes, scale)) == bits_of(verbs.decode_scale(q.scale_codes, scale))
        words = verbs.pack(q).words
        packed = qs.Packed(scheme, q.shape, words.astype(words.dtype.newbyteorder(order)), codes, g)
        stream = verbs.to_bytes(packed)
        assert stream == verbs.to_bytes(q)
        assert stream[:4] == int(words[0, 0]).to_bytes(4, "little")


# ---------------------------------------------------------------- layout operations


@pytest.mark.parametrize(("store", "d"), KINDS)
@pytest.mark.parametrize("block", [None, (), (3,), (2, 1, 4), (2, 3, 1)], ids=str)
def test_layout_operations_commute_with_dequantize(
    verbs: Verbs, store: str, d: int, block: tuple[int, ...] | None
) -> None:
    """BC-105, 107, 109, 119: permute, slice and flip move codes with their scales, in memory and through bytes."""
    scheme = qs.Scheme(
        "e2m1", store if store == "native" else f"{store}_{d}", block=None if block is None else (block, "f16")
    )
    q = verbs.quantize(single(np.random.default_rng(11).normal(size=(4, 6, 8))), scheme)
    y = bits_of(verbs.dequantize(q))
    cases = [(qs.permute(q, axes), np.transpose(y, axes)) for axes in itertools.permutations(range(3))]
    extents = (1, 1, 1) if block is None else scheme.extents(3)
    for axis, (size, extent) in enumerate(zip(q.shape, extents, strict=True)):
        for start, stop in itertools.combinations_with_replacement(range(size + 1), 2):
            if start % extent:
                with pytest.raises(
                    qs.LayoutError, match=f"axis {axis}.*multiple of the block extent {extent}.*requantize"
                ):
                    qs.slice_axis(q, axis, start, stop)
            elif start == 0 or stop - start in (1, 2):
                at = (slice(None),) * axis + (slice(start, stop),)
                cases.append((qs.slice_axis(q, axis, start, stop), np.array(y)[at]))
        if size % extent == 0:
            cases.append((qs.flip(q, axis), np.flip(y, axis)))
    for moved, expected in cases:
        back = verbs.split(verbs.to_bytes(moved), moved.scheme, moved.shape)
        assert back == moved
        assert bits_of(verbs.dequantize(back)) == expected.tolist()


def test_requantize_is_the_lossy_way(verbs: Verbs) -> None:
    """BC-105, 107: what a layout operation refuses, requantize does: dequantize, then quantize anew."""
    x = single(np.random.default_rng(2).normal(size=(4, 6)))
    q = verbs.quantize(x, "q4s.packed_u32_0.b4-f16")
    again = qs.requantize(q, "q4s.native.b3-f16")
    assert again == verbs.quantize(verbs.dequantize(q), "q4s.native.b3-f16")
    assert qs.slice_axis(again, 1, 3, 6).shape == (4, 3)
