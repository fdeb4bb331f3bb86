"""Quantize and dequantize: scale choice at one and two levels, given scales, all scale codes on read, reports. SCL, QNT."""

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_error, same_quantized, same_refusal, same_verbs
from .data import SPECIAL, f32, floats, neighbours, numbers, patterns, ties

pytestmark = pytest.mark.opencl

VALUES = tuple(qs.VALUES)
TYPES = tuple(qs.SCALES)
LEVELS = [*(f"t-{t}" for t in TYPES), *(f"b8-{b}" for b in TYPES), *(f"b8-{b}.t-{t}" for b, t in product(TYPES, TYPES))]
RAMP = qs.Table.of([-6, -1.75, 0, 4.5])
TINY = qs.Table.of(f32(0x80000001, 0, 5, 3))


def extremes(seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Blocks of 8 whose amax is each end of the range, and blocks of every kind between."""
    ends = np.array(
        [0x7F7FFFFF, 0x7F000000, 0x7E800001, 1, 2, 0x007FFFFF, 0x00800000, 0x0C000000, 0x34000000, 0x47800000],
        np.uint32,
    )
    blocks = np.tile(SPECIAL[:1], (len(ends), 8))
    blocks[:, 3] = ends
    blocks[:, 5] = ends >> np.uint32(1)
    return np.concatenate([floats(blocks).ravel(), numbers(seed, (256,))])


@pytest.mark.parametrize("levels", LEVELS)
def test_every_level_and_type_pair(build: qc.Session, levels: str) -> None:
    for value, x in (("q4s", extremes(1)), ("e4m3", extremes(2)), ("e2m1", numbers(3, (40, 9)))):
        same_verbs(build, x, f"{value}.native.{levels}")


@pytest.mark.parametrize("levels", LEVELS)
def test_one_end_of_the_range_alone(session: qc.Session, levels: str) -> None:
    """The tensor scale is decided by the largest block: each extreme alone, so that nothing larger hides it."""
    for bits in (
        0x7F7FFFFF,
        0x7F000001,
        0x7E800000,
        0x43800000,
        0x00800000,
        0x007FFFFF,
        0x00000400,
        0x00000001,
        0x80000000,
    ):
        for value in ("q8f", "e5m2", "q2s"):
            same_verbs(session, f32(bits, 0, 0x80000001, bits >> 2), f"{value}.packed_u32_0.{levels}")


@pytest.mark.parametrize("value", VALUES)
def test_ties_of_the_quotient(build: qc.Session, value: str) -> None:
    """x at and next to every tie of x / s, for scales whose significands end in ones, and for subnormal scales."""
    for scale in (0.0123, 1 / 3, 127.5, 2.0**-130, 3.7e-40, 1.1e38):
        exact = np.float32(scale)
        scheme = qs.Scheme.parse(f"{value}.packed_native_0.t-f32")
        x = ties(scheme, float(exact), 11, 2048)
        same_verbs(build, x, scheme, tensor_scale=exact)
        two = qs.Scheme.parse(f"{value}.native.b64-bf16.t-f32")
        blocks = np.full(32, np.float32(1.375))
        same_verbs(build, ties(two, float(exact) * 1.375, 12, 2048), two, tensor_scale=exact, scales=blocks)


@pytest.mark.parametrize("value", ["q8s", "q8f", "q4s", "q4f", "q2s", "q2f"])
def test_lookup(build: qc.Session, value: str) -> None:
    rng = np.random.default_rng(13)
    count = 1 << qs.VALUES[value].bits
    for table in (
        qs.Table.of(rng.standard_normal(count).astype(np.float32)),
        qs.Table.of(floats(rng.integers(0, 0x7F800000, count, dtype=np.uint32))),
        qs.Table.of(floats(np.arange(1, count + 1, dtype=np.uint32))),
    ):
        choices: list[dict[str, Any]] = [
            {"tensor": "f32"},
            {"block": (16, "f16")},
            {"block": (16, "ue4m3"), "tensor": "bf16"},
        ]
        for levels in choices:
            scheme = qs.Scheme(value, "packed_u32_0", mode="lookup", table=table, **levels)
            same_verbs(build, numbers(14, (3, 90)), scheme)
            same_verbs(build, ties(scheme, 1.0, 15, 300), scheme)


@pytest.mark.parametrize("scale", TYPES)
@pytest.mark.parametrize("value", ["q8s", "e5m2", "e2m1", "q2f"])
def test_every_scale_code_is_read(build: qc.Session, scale: str, value: str) -> None:
    """Any legal scale code times any code: products that round, overflow, fall in the subnormals, NaN, Inf, negative, zero."""
    row = qs.SCALES[scale]
    codes = np.arange(256, dtype=np.uint8)
    if qs.VALUES[value].bits < 8:
        codes = codes[:4] if qs.VALUES[value].is_integer else codes[:16]
        codes = np.where(codes > 1, codes | 0xFC, codes).astype(np.uint8) if qs.VALUES[value].is_integer else codes
    if row.size == 4:
        scales = np.random.default_rng(16).choice(np.concatenate([SPECIAL, neighbours(SPECIAL)]), 600).astype(np.uint32)
    else:
        scales = np.arange(1 << 8 * row.size)[:: 251 if row.size == 2 else 1].astype(row.code_dtype)
        scales = scales[scales & ~row.code_dtype.type(row.magnitude_mask | row.sign_bit) == 0]
    tensor = qs.Quantized(
        qs.Scheme.parse(f"{value}.native.b{codes.size}-{scale}"), np.tile(codes, (scales.size, 1)), scales[:, None]
    )
    for dtype in ("f32", "f16", "bf16"):
        same_bits(build.dequantize(tensor, dtype), qs.dequantize(tensor, dtype), f"{value} {scale} {dtype}")


@pytest.mark.parametrize(("block", "tensor"), list(product(TYPES, TYPES)))
def test_any_two_scale_codes_make_one_scale(session: qc.Session, block: str, tensor: str) -> None:
    """s = g * b, and x / s for any s: given codes need not be sensible."""
    rng = np.random.default_rng(17)
    for tensor_code in _some_codes(tensor, rng, 12):
        codes = _some_codes(block, rng, 64)
        scheme = qs.Scheme.parse(f"e4m3.native.b16-{block}.t-{tensor}")
        same_verbs(session, numbers(18, (1024,)), scheme, scale_codes=codes, tensor_scale_code=tensor_code)


def _some_codes(scale: str, rng: np.random.Generator, count: int) -> np.ndarray[Any, np.dtype[Any]]:
    row = qs.SCALES[scale]
    codes = rng.integers(0, row.magnitude_mask | row.sign_bit, count, np.uint64, endpoint=True).astype(row.code_dtype)
    codes[: count // 4] = rng.choice(
        [0, 1, row.largest_code, row.nan_code, row.infinity_code or 2, row.sign_bit], count // 4
    )
    return codes


def test_given_scales_in_every_way(session: qc.Session) -> None:
    x = numbers(19, (6, 20))
    grid = (3, 3)
    values = np.abs(numbers(20, grid)) + np.float32(0)
    values[~np.isfinite(values)] = np.float32(0.3)
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        with np.errstate(over="ignore"):
            given = values.astype(dtype)
        for block in TYPES:
            same_verbs(session, x, f"q4f.packed_u32_1.b2x8-{block}", scales=given)
            same_verbs(session, x, f"q4f.packed_u32_1.b2x8-{block}.t-f32", scales=given, tensor_scale=[[0.75]])
    odd = np.array([[np.nan, np.inf, 0], [3e38, 1e-45, 1.5], [-0.0, -1.5, -2.0]], np.float32)
    same_verbs(session, x, "q4f.native.b2x8-f16", scales=odd)
    same_verbs(session, x, "q4f.native.b2x8-f16", scales=odd.astype(">f4").T.copy().T)


@pytest.mark.parametrize(("block", "tensor"), list(product(TYPES, TYPES)))
def test_a_given_tensor_scale_leaves_the_blocks_to_choose(build: qc.Session, block: str, tensor: str) -> None:
    row = qs.SCALES[tensor]
    for code in {1, row.largest_code, row.largest_code // 2, row.largest_code // 3}:
        given = np.array(code, row.code_dtype)
        same_verbs(build, extremes(21), f"e2m1.native.b8-{block}.t-{tensor}", tensor_scale_code=given)


def test_saturation_is_reported(session: qc.Session) -> None:
    x = np.full((40, 64), np.float32(1e30))
    x[:17] = 1
    x[17, :40] = 2
    for scheme in (
        "q8s.native.b16-f16",
        "q8s.native.b16-ue4m3",
        "q8s.native.b16-f16.t-f16",
        "e2m1.native.b3x5-ue4m3.t-ue4m3",
    ):
        same_verbs(session, x, scheme)
    same_verbs(session, x, "q8s.native.b16-f16.t-f16", tensor_scale=np.float32(1))
    same_verbs(session, np.zeros((300, 700), np.float32) + np.float32(1e30), "q2s.native.b1-f16")
    given = np.full((40, 4), np.float32(1e9))
    given[:3] = np.nan
    same_verbs(session, x, "q8s.native.b16-f16", scales=given)


def test_results_stay_on_the_device_and_feed_the_next_verb(session: qc.Session) -> None:
    x = numbers(22, (8, 48))
    on_device = session.dequantize(qs.quantize(x, "e4m3.native.b8-f32"), "bf16")
    host = qs.dequantize(qs.quantize(x, "e4m3.native.b8-f32"), "bf16")
    same_quantized(
        session.quantize(on_device, "q4s.native.b16-f16"),
        qs.quantize(host, "q4s.native.b16-f16"),
        "from a device array",
    )
    scales = session.decode_scale(np.full((8, 3), 130, np.uint8), "ue8m0")
    same_quantized(
        session.quantize(on_device, "q4s.native.b16-f16", scales=scales),
        qs.quantize(host, "q4s.native.b16-f16", scales=np.full((8, 3), np.float32(8))),
        "scales from a device array",
    )


def test_pyopencl_arrays_are_read_in_place_or_closed_up(session: qc.Session) -> None:
    import pyopencl.array as cl_array

    x = numbers(23, (12, 40))
    array = cl_array.to_device(session.queue, x)
    scheme = "q8s.native.b8-f32"
    for given, host in (
        (array, x),
        (array[3:], x[3:]),
        (array[:, 4:36], x[:, 4:36]),
        (array.T, x.T),
        (array[::-1, ::2], x[::-1, ::2]),
    ):
        same_quantized(session.quantize(given, scheme), qs.quantize(host, scheme), f"{given.strides}")
    codes = cl_array.to_device(session.queue, qs.encode(x, "e4m3"))
    same_bits(session.decode(codes[:, 5:9], "e4m3"), qs.decode(qs.encode(x, "e4m3")[:, 5:9], "e4m3"), "a slice")
    wide = cl_array.to_device(session.queue, np.zeros(x.shape))
    same_error(lambda: session.quantize(wide, scheme), lambda: qs.quantize(np.zeros(x.shape), scheme))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", np.float16, np.dtype(np.float32), ml_dtypes.bfloat16])
def test_outputs(session: qc.Session, dtype: Any) -> None:
    x = floats(np.concatenate([neighbours(np.arange(0x0E000000, 0x48000000, 0x00FFF123)), SPECIAL]))
    for scheme in ("e5m2.native.b1-f32", "q8s.native.b1-f32"):
        tensor = qs.quantize(x, scheme)
        same_bits(session.dequantize(tensor, dtype), qs.dequantize(tensor, dtype), f"{scheme} {dtype}")


def test_refusals_are_the_references_in_their_order(session: qc.Session) -> None:
    x, grid = np.ones((4, 8), np.float32), np.ones((4, 2), np.float32)
    bad = np.full((4, 2), 0x80, np.uint8)
    tensor = qs.quantize(x, "q8s.native.b4-ue4m3.t-f16")
    cases: list[tuple[Any, str, dict[str, Any]]] = [
        (x, "q8s.native", {}),
        (x.astype(int), "q8s.native.b4-f32", {}),
        (x, "q8s.native.b4x4x4-f32", {}),
        (x, "q8s.packed_u32_2.t-f32", {}),
        (x, "q8s.native.b4-f32", {"tensor_scale": 1.0}),
        (x, "q8s.native.t-f32", {"scales": grid}),
        (x, "q8s.native.t-f32", {"scale_codes": bad}),
        (x, "q8s.native.b4-f32", {"scales": grid, "scale_codes": grid}),
        (x, "q8s.native.b4-f32", {"scales": grid.astype(float)}),
        (x, "q8s.native.b4-f32", {"scales": grid[:3]}),
        (x, "q8s.native.b4-f32", {"scale_codes": grid}),
        (x, "q8s.native.b4-f16", {"scales": -grid[:3] / 3}),
        (x, "q8s.native.b4-ue8m0", {"scales": -grid}),
        (x, "q8s.native.b4-ue4m3", {"scale_codes": bad}),
        (x, "q8s.native.b4-ue4m3", {"scale_codes": bad[:1] & 0x7F}),
        (x, "q8s.native.t-f16", {"tensor_scale": grid[0]}),
        (x, "q8s.native.t-f16", {"tensor_scale": np.float32(-0.1)}),
        (x, "q8s.native.t-ue4m3", {"tensor_scale_code": np.uint8(0x81)}),
        (x, "q8s.native.b4-f32.t-f16", {"scales": grid}),
        (x, "q8s.native.b4-f32.t-f16", {"tensor_scale": np.float32(0)}),
        (x, "q8s.native.b4-f32.t-f16", {"tensor_scale": np.float32(-1.5)}),
        (x, "q8s.native.b4-f32.t-f16", {"tensor_scale": np.float32(np.nan)}),
        (x, "q8s.native.b4-f32.t-f16", {"tensor_scale_code": np.uint16(0x7C00)}),
        (x, "q8s.native.b4-f32.t-f16", {"tensor_scale_code": np.uint16(0)}),
        (x, "q8s.native.t-f32", {"recipe": qs.Recipe("other")}),
    ]
    for given, scheme, options in cases:
        same_refusal(session, "quantize", given, scheme, **options)
    same_refusal(session, "dequantize", tensor, "f64")
    same_refusal(session, "dequantize", tensor, np.float64)
    same_refusal(session, "dequantize", tensor, codec=qs.Codec("other", "to-odd", "saturate", "format", "keep"))


def test_a_refused_scale_is_the_first(session: qc.Session) -> None:
    x = np.ones((700, 2), np.float32)
    scales = np.ones((700, 2), np.float32)
    for first in (0, 511, 512, 1023, 1399):
        scales.reshape(-1)[first:] = np.float32(-1 / 3)
        text = same_refusal(session, "quantize", x, "q8s.native.b1-f16", scales=scales)
        assert text.startswith(f"scales[{first // 2}, {first % 2}]")
        scales[:] = 1


@pytest.mark.parametrize("value", VALUES)
def test_the_division_by_half_the_range(build: qc.Session, value: str) -> None:
    """A scale an element, in f32: every bit of amax / H shows."""
    rng = np.random.default_rng(26)
    x = floats(np.concatenate([SPECIAL, neighbours(SPECIAL), rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32)]))
    scheme = f"{value}.native.b1-f32"
    same_quantized(build.quantize(x, scheme), qs.quantize(x, scheme), scheme)


def test_quantize_does_not_change_its_input(session: qc.Session) -> None:
    x = numbers(24, (5, 33))
    before = patterns(x).copy()
    session.quantize(x, "e2m1.packed_native_0.b16-ue4m3.t-f32").get()
    np.testing.assert_array_equal(patterns(x), before)


def test_tiny_tables(session: qc.Session) -> None:
    for table in (RAMP, TINY):
        for levels in ("f32", "ue8m0", "ue4m3"):
            scheme = qs.Scheme("q2s", "packed_native_0", mode="lookup", table=table, block=(4, levels), tensor="f16")
            same_verbs(session, extremes(25), scheme)


@pytest.mark.parametrize("wrong", [None, 5, b"q8s.native.t-f32"])
def test_a_scheme_is_a_scheme_or_its_text(session: qc.Session, wrong: object) -> None:
    x = np.ones(4, np.float32)
    assert "[SCH-1]" in same_refusal(session, "quantize", x, wrong)
    for verb in ("from_bytes", "split"):
        same_refusal(session, verb, bytes(8), wrong, (4,))
    for call in (lambda: session.quantized(wrong, x), lambda: session.packed(wrong, (4,), x)):  # type: ignore[arg-type]
        with pytest.raises(qs.SchemeError, match="SCH-1"):
            call()
