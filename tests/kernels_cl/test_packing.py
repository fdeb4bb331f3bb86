"""Packing: every store and packed axis, lines of every length, what is dirty on read. PAK-1 to PAK-8."""

from functools import partial

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_error, same_outcome, same_refusal, same_storage

pytestmark = pytest.mark.opencl

VALUES = tuple(qs.VALUES)


def stores(rank: int) -> list[str]:
    return ["native", *(f"{kind}_{d}" for kind in ("packed_native", "packed_u32") for d in range(max(rank, 1)))]


def tensor(scheme: qs.Scheme, shape: tuple[int, ...], seed: int = 0) -> qs.Quantized:
    """Any codes and any scale codes under a scheme."""
    rng = np.random.default_rng(seed)
    row = scheme.value
    fields = rng.integers(0, row.mask, shape, np.uint8, endpoint=True)
    sign = 0 if scheme.is_lookup or not row.is_integer else row.sign_bit
    codes = np.asarray(np.where(fields & sign, fields | (0xFF & ~row.mask), fields)).astype(np.uint8)
    scale_codes = tensor_code = None
    if scheme.block is not None:
        grid = [-(-size // extent) for size, extent in zip(shape, scheme.extents(len(shape)), strict=True)]
        limit = scheme.block.scale.magnitude_mask | scheme.block.scale.sign_bit
        scale_codes = rng.integers(0, limit, grid, np.uint64, endpoint=True).astype(scheme.block.scale.code_dtype)
    if scheme.tensor is not None:
        limit = scheme.tensor.magnitude_mask | scheme.tensor.sign_bit
        tensor_code = np.array(rng.integers(0, limit, (), np.uint64, endpoint=True), scheme.tensor.code_dtype)
    return qs.Quantized(scheme, codes, scale_codes, tensor_code)


@pytest.mark.parametrize("value", VALUES)
def test_every_store_and_length_of_line(session: qc.Session, value: str) -> None:
    for length in range(18):
        for store in stores(1):
            quantized = tensor(qs.Scheme.parse(f"{value}.{store}.t-ue8m0"), (length,), length)
            same_storage(session, session.put(quantized), quantized)


@pytest.mark.parametrize(
    "shape", [(), (1,), (5, 7), (3, 1, 6), (2, 5, 3, 4), (0, 3), (3, 0), (2, 3, 0, 2), (1, 2, 2, 1, 3, 5)]
)
def test_every_packed_axis(session: qc.Session, shape: tuple[int, ...]) -> None:
    for value in ("q8s", "q4f", "q2s", "e2m1", "e3m2"):
        for store in stores(len(shape)):
            for levels in (
                "t-f32",
                "b1-f16",
                *(("b2-ue4m3.t-bf16",) if shape else ()),
                *(("b3x2-f32",) if len(shape) > 1 else ()),
            ):
                quantized = tensor(qs.Scheme.parse(f"{value}.{store}.{levels}"), shape, 5)
                same_storage(session, session.put(quantized), quantized)


def test_records_given_to_pack_are_checked(session: qc.Session) -> None:
    quantized = tensor(qs.Scheme.parse("q4s.packed_u32_0.t-f32"), (3, 9))
    quantized.codes[1, 4] = 0x08
    same_refusal(session, "pack", quantized)


def spoiled(packed: qs.Packed, line: int, word: int, bit: int) -> qs.Packed:
    words = packed.words.copy()
    words.reshape(-1, words.shape[-1])[line, word] |= words.dtype.type(1 << bit)
    return qs.Packed(packed.scheme, packed.shape, words, packed.scale_codes, packed.tensor_scale_code)


def spoiled_bytes(packed: qs.Packed, line: int, word: int, bit: int) -> bytes:
    """The byte stream of such words, as a foreign writer may leave it."""
    data = bytearray(qs.to_bytes(packed))
    size = packed.scheme.store.word_bytes(packed.scheme.value.bits)
    data[(line * packed.words.shape[-1] + word) * size + bit // 8] |= 1 << bit % 8
    return bytes(data)


@pytest.mark.parametrize(
    "text", ["q4s.packed_u32_0", "q2f.packed_native_1", "e2m3.packed_native_0", "e2m3.packed_u32_1", "q8s.packed_u32_0"]
)
@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (1, 1), (5, 8)])
def test_each_bit_that_holds_no_code(session: qc.Session, text: str, shape: tuple[int, int]) -> None:
    """A set bit is refused with its place wherever it holds no code, read anyway on demand, and a code's bit changes a code."""
    scheme = qs.Scheme.parse(f"{text}.b2-f16")
    packed = qs.pack(tensor(scheme, shape))
    lines, words = int(np.prod(packed.words.shape[:-1])), packed.words.shape[-1]
    bits = 24 if text == "e2m3.packed_native_0" else 8 * packed.words.itemsize
    for line in {0, lines - 1}:
        for bit in range(bits):
            given = spoiled(packed, line, words - 1, bit)
            same_outcome(session, "unpack", given)
            same_outcome(session, "unpack", given, padding="ignore")
            same_outcome(session, "split", spoiled_bytes(packed, line, words - 1, bit), scheme, shape)


def test_the_first_dirty_word_is_found(session: qc.Session) -> None:
    scheme = qs.Scheme.parse("q4s.packed_u32_1.t-f32")
    packed = qs.pack(tensor(scheme, (13, 1500)))
    for line, word, bit in ((700, 1, 20), (1499, 1, 31), (511, 1, 25), (0, 1, 23)):
        packed = spoiled(packed, line, word, bit)
        same_refusal(session, "unpack", packed)


def test_bytes_that_are_not_codes_in_native(session: qc.Session) -> None:
    for text, byte in (
        ("q4s.native.t-f32", 0x0F),
        ("e2m1.native.t-f32", 0x10),
        ("e3m2.native.t-f32", 0x40),
        ("q2s.native.t-f32", 2),
    ):
        scheme = qs.Scheme.parse(text)
        words = np.zeros((4, 5), np.uint8)
        words[2, 3] = byte
        given = qs.Packed(scheme, (4, 5), words, None, np.array(0, np.uint32))
        same_refusal(session, "unpack", given)
        same_refusal(session, "unpack", given, padding="ignore")


def test_options_are_refused_by_name(session: qc.Session) -> None:
    quantized = tensor(qs.Scheme.parse("q4s.packed_u32_0.t-f32"), (9,))
    other = qs.Container("other", "high", "some", "swapped", "row-major")
    same_refusal(session, "unpack", qs.pack(quantized), padding="drop")
    same_refusal(session, "pack", quantized, container=other)
    same_refusal(session, "to_bytes", quantized, container=other)
    same_refusal(session, "to_bytes", qs.pack(quantized), container=other)


@pytest.mark.parametrize("wrong", [None, 5, b"12", np.zeros(4, np.uint8), "packed", "quantized"])
def test_what_is_no_record_is_refused(session: qc.Session, wrong: object) -> None:
    """QNT-12: an array, bytes or the other record, where a record with a scheme is meant."""
    quantized = tensor(qs.Scheme.parse("q4s.packed_u32_0.t-f32"), (9,))
    records = {"packed": qs.pack(quantized), "quantized": quantized}
    given = records[wrong] if isinstance(wrong, str) else wrong
    for verb in ("dequantize", "pack", "unpack", "to_bytes"):
        if isinstance(given, qs.Packed) and verb in ("unpack", "to_bytes"):
            continue
        if isinstance(given, qs.Quantized) and verb != "unpack":
            continue
        assert "[QNT-12]" in same_refusal(session, verb, given)


@pytest.mark.parametrize(("text", "bit"), [("q4s.packed_u32_0", 31), ("e2m3.packed_native_0", 20), ("e2m1.native", 6)])
def test_to_bytes_writes_no_dirty_words(session: qc.Session, text: str, bit: int) -> None:
    scheme = qs.Scheme.parse(f"{text}.t-f32")
    packed = qs.pack(tensor(scheme, (3,)))
    given = spoiled(packed, 0, 0, bit)
    parts = session.packed(given.scheme, given.shape, given.words, given.scale_codes, given.tensor_scale_code)
    for each in (given, session.put_packed(given), parts):
        refused = same_error(partial(session.to_bytes, each), partial(qs.to_bytes, given))
        assert ("[VAL-5]" if scheme.store.kind == "native" else "[PAK-7]") in refused
