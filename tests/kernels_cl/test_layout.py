"""Layout: bytes and back, exact lengths, exchanged scale axes, imports that are read anyway. LAY-1 to LAY-7."""

from functools import partial

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_error, same_refusal, same_storage
from .test_packing import spoiled_bytes, tensor

pytestmark = pytest.mark.opencl


@pytest.mark.parametrize("scale", list(qs.SCALES))
def test_scales_are_written_in_exchanged_axes(session: qc.Session, scale: str) -> None:
    for store in ("packed_u32_0", "packed_u32_1", "packed_native_2", "native"):
        scheme = qs.Scheme.parse(f"q4f.{store}.b2x3x2-{scale}.t-{scale}")
        quantized = tensor(scheme, (5, 7, 9), 3)
        same_storage(session, session.put(quantized), quantized)


def test_lengths_are_exact(session: qc.Session) -> None:
    data = qs.to_bytes(tensor(qs.Scheme.parse("q4s.packed_u32_1.b2-f16.t-f32"), (9, 5)))
    text = "q4s.packed_u32_1.b2-f16.t-f32"
    for given in (data[:-1], data + b"\0", b""):
        same_refusal(session, "from_bytes", given, text, (9, 5))
        same_refusal(session, "split", given, text, (9, 5))


def test_any_bytes_like_input(session: qc.Session) -> None:
    quantized = tensor(qs.Scheme.parse("e2m3.packed_native_0.b4-ue8m0"), (3, 10))
    data = qs.to_bytes(quantized)
    raw = np.frombuffer(data, np.uint8)
    for given in (
        data,
        bytearray(data),
        memoryview(data),
        raw,
        np.repeat(raw, 2)[::2],
        memoryview(np.repeat(raw, 2).tobytes())[::2],
        session.to_bytes(quantized),
    ):
        found = session.split(given, quantized.scheme, (3, 10))
        same_bits(found.codes, quantized.codes, str(type(given)))
        same_bits(found.scale_codes, quantized.scale_codes, str(type(given)))


def test_refusals_are_the_references(session: qc.Session) -> None:
    text, data = "q4s.packed_u32_0.b2-f16", bytes(8)
    same_refusal(session, "from_bytes", "text", text, (4,))
    same_refusal(session, "from_bytes", np.zeros((2, 4), np.uint8), text, (4,))
    same_refusal(session, "from_bytes", np.zeros(8, np.int8), text, (4,))
    same_refusal(session, "from_bytes", data, text, (-4,))
    same_refusal(session, "from_bytes", data, text, (2**62, 4))
    same_refusal(session, "from_bytes", data, text, (2**61,))
    same_refusal(session, "from_bytes", data, text, ())
    same_refusal(session, "from_bytes", data, "q4s.packed_u32_1.t-f32", (4,))
    same_refusal(session, "from_bytes", data, "q4s.packed_u33_1.t-f32", (4,))
    same_refusal(session, "from_bytes", data, text, (4,), recipe=qs.Recipe("other"))
    same_refusal(session, "from_bytes", data, text, (4,), ue4m3_bit7="clear")
    same_refusal(session, "split", data, text, (4,), padding="drop")


def test_bit_7_of_ue4m3_is_refused_or_cleared(session: qc.Session) -> None:
    for text, spoil in (
        ("e2m1.packed_native_1.b2x4-ue4m3", 25),
        ("e2m1.native.t-ue4m3", -1),
        ("e2m1.native.b16-ue4m3.t-ue4m3", -2),
    ):
        quantized = tensor(qs.Scheme.parse(text), (6, 7))
        data = bytearray(qs.to_bytes(quantized))
        data[spoil] |= 0x80
        text_of = same_refusal(session, "split", data, text, (6, 7))
        assert "bit 7" in text_of
        found = session.from_bytes(data, text, (6, 7), ue4m3_bit7="ignore")
        expected = qs.from_bytes(data, text, (6, 7), ue4m3_bit7="ignore")
        same_bits(found.scale_codes, expected.scale_codes, text)
        same_bits(found.tensor_scale_code, expected.tensor_scale_code, text)
        assert found.get().scale_codes is None or bool((found.get().words == expected.words).all())


def test_any_bytes_read_back_as_themselves(build: qc.Session) -> None:
    """from_bytes then to_bytes of random bytes is the identity, whatever they mean."""
    rng = np.random.default_rng(9)
    for text in (
        "e5m2.packed_u32_1.b3-f16",
        "q8s.native.b2x2-ue8m0.t-f32",
        "q2f.packed_native_1.b4-bf16",
        "e3m2.packed_native_0.t-f16",
    ):
        data = rng.integers(0, 256, qs.byte_count(text, (4, 8)), np.uint8)
        packed = build.from_bytes(data, text, (4, 8))
        assert build.to_bytes(packed).get().tobytes() == data.tobytes()
        same_bits(packed.words, qs.from_bytes(data, text, (4, 8)).words, text)


@pytest.mark.parametrize("text", ["q4s.packed_u32_0.b2-f16", "e2m3.packed_native_1.b2x2-ue4m3.t-f32"])
def test_dirty_words_are_refused_or_cleared_on_read(session: qc.Session, text: str) -> None:
    packed = qs.pack(tensor(qs.Scheme.parse(text), (3, 5)))
    data = spoiled_bytes(packed, 2, packed.words.shape[-1] - 1, 23)
    for each in (data, session.machine.upload(np.frombuffer(data, np.uint8))):
        refused = same_error(
            partial(session.from_bytes, each, text, (3, 5)), partial(qs.from_bytes, data, text, (3, 5))
        )
        assert "[PAK-7]" in refused and refused == same_refusal(session, "split", data, text, (3, 5))
        read = session.from_bytes(each, text, (3, 5), padding="ignore")
        same_bits(read.words, packed.words, text)
        same_bits(read.scale_codes, packed.scale_codes, text)
        assert session.to_bytes(read).get().tobytes() == qs.to_bytes(packed)
    assert "[PAK-8]" in same_refusal(session, "from_bytes", data, text, (3, 5), padding="drop")


def test_native_bytes_are_codes_whatever_padding_says(session: qc.Session) -> None:
    for text, shape in (("q4s.native.t-f32", (2, 3)), ("e2m1.native.t-f32", ())):
        data = bytearray(qs.to_bytes(tensor(qs.Scheme.parse(text), shape)))
        data[0] = 0x18
        for padding in ("refuse", "ignore"):
            for verb in ("from_bytes", "split"):
                assert "[VAL-5]" in same_refusal(session, verb, data, text, shape, padding=padding)


def test_lengths_come_before_scales_and_scales_before_padding(session: qc.Session) -> None:
    text = "e2m1.packed_native_0.t-ue4m3"
    data = bytearray(qs.to_bytes(tensor(qs.Scheme.parse(text), (3,))))
    data[1], data[2] = data[1] | 0x80, data[2] | 0x80
    for given, options, rule in (
        (data + b"\0", {}, "LAY-4"),
        (data, {}, "SCL-2"),
        (data, {"ue4m3_bit7": "ignore"}, "PAK-7"),
    ):
        assert f"[{rule}]" in same_refusal(session, "from_bytes", given, text, (3,), **options)
