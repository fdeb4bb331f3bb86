"""Products: every path gives the reference's bits, from words and from codes, whatever the numbers and the build."""

from collections.abc import Callable
from itertools import product as combinations
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.program import all_programs

from .agreement import same_bits, same_refusal
from .conftest import opened
from .data import floats, numbers
from .test_dequantize_fast import tensor_of

pytestmark = pytest.mark.opencl

FAST = "product_columns"
STORES = ("native", "packed_native_0", "packed_native_1", "packed_u32_0", "packed_u32_1")
LEVELS = ("b32x1-ue8m0", "b3x2-f16", "b16x1-ue4m3.t-f32", "b1-f32", "b7-bf16.t-f16", "t-f32", "t-ue8m0")
TYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
OUTPUTS = ("f32", "f16", "bf16")

#: Value formats in turn with stores and levels, so that each meets each of the others' rows.
SCHEMES = [
    f"{value}.{store}.{LEVELS[i % len(LEVELS)]}"
    for i, (value, store) in enumerate(combinations(qs.VALUES, STORES))
    if i % 2 == 0
]
LOOKUPS = ["q4s.packed_u32_1.lut-nf4.b16x1-f32", "q4f.native.lut-nf4.b5-ue4m3.t-f32"]

#: A scheme for each way that weights and scales lie, a shape, rows of x, and what they are written in.
FAST_CASES = [
    ("e2m1.packed_native_1.b32x1-ue8m0", (64, 24), 1, "f32"),
    ("e2m1.packed_u32_1.b16x1-ue4m3.t-f32", (96, 8), 3, "bf16"),
    ("e2m1.packed_native_0.b32-ue8m0", (64, 72), 1, "f32"),
    ("q4s.packed_u32_1.b64x1-f16", (160, 16), 2, "f16"),
    ("q4f.packed_native_0.b8x8-f32", (32, 40), 5, "f32"),
    ("e4m3.packed_u32_1.b32x1-ue8m0", (64, 16), 9, "f32"),
    ("e5m2.native.b128x128-f32", (160, 264), 1, "f32"),
    ("q8s.native.t-f32", (64, 32), 2, "f32"),
    ("q2s.packed_native_1.b16x1-bf16", (64, 16), 1, "f32"),
    ("q4s.packed_u32_1.lut-nf4.b32x1-f32", (96, 16), 1, "f32"),
]
GENERIC_CASES = [
    ("e2m1.packed_native_1.b32x1-ue8m0", (60, 24), "K=60 is no multiple of 32"),
    ("e2m1.packed_native_1.b32x1-ue8m0", (64, 19), "N=19 is no multiple of 8"),
    ("e2m3.packed_u32_1.b32x1-ue8m0", (64, 16), "fields of 6 bits"),
    ("q4s.packed_u32_1.b24x1-f16", (96, 16), "block extent 24 along K"),
    ("q4s.packed_u32_1.b32x3-f16", (96, 16), "block extent 3 along N"),
    ("e2m1.packed_native_1.b32x1-ue8m0", (0, 16), "a sum of none"),
]


def tame(text: str, shape: tuple[int, int], seed: int) -> qs.Quantized:
    """Weights as models have them."""
    return qs.quantize(np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 16, text)


def tame_numbers(shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float32]:
    """Activations as models have them: Gaussian, some zero, runs in which some are tiny."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(np.float32)
    x[rng.random(shape) < 0.1] = 0
    x[rng.random(shape) < 0.01] *= np.float32(1e-30)
    return x


def agrees(session: qc.Session, x: npt.NDArray[Any], w: qs.Quantized, dtype: str, kernel: str = "generic") -> qc.Path:
    """Words and codes give the reference's bits, words by the kernel meant."""
    expected = qs.product(x, w, dtype)
    what = f"{x.dtype} {x.shape} times {w.scheme.text} {w.shape} to {dtype}"
    same_bits(session.product(x, w, dtype), expected, f"codes: {what}")
    found = session.product(session.machine.upload(x), session.put_packed(qs.pack(w)), dtype)
    same_bits(found, expected, f"words: {what}")
    assert found.path is not None and found.path.name == kernel, f"{found.path}, not {kernel}"
    return found.path


@pytest.mark.parametrize("text", [*SCHEMES, *LOOKUPS])
def test_every_scheme(session: qc.Session, text: str) -> None:
    seed = [*SCHEMES, *LOOKUPS].index(text)
    size, columns, kind = (7 * seed) % 101, 1 + seed % 5, TYPES[seed % 3]
    w = tensor_of(text, (size, columns), seed=seed)
    with np.errstate(all="ignore"):
        x = numbers(seed, (2, 1, size)).astype(kind)
    agrees(session, x, w, OUTPUTS[seed // 3 % 3])
    agrees(session, tame_numbers((size,), seed), tame(text, (size, columns), seed), "f32")


@pytest.mark.parametrize("text", SCHEMES)
def test_every_scheme_from_codes(session: qc.Session, text: str) -> None:
    seed = SCHEMES.index(text)
    size, other = (7 * seed) % 101, SCHEMES[(11 * seed + 5) % len(SCHEMES)]
    w, x = tensor_of(text, (size, 1 + seed % 4), seed=seed), tensor_of(other, (3, size), seed=seed + 1)
    expected = qs.product_codes(x, w, OUTPUTS[seed % 3])
    for form in (w, qs.pack(w)):
        same_bits(session.product_codes(x, form, OUTPUTS[seed % 3]), expected, f"{other} times {text}, K={size}")


@pytest.mark.parametrize(("text", "shape", "rows", "dtype"), FAST_CASES)
def test_specialised_programs(text: str, shape: tuple[int, int], rows: int, dtype: str) -> None:
    session = opened(path="fast")
    for seed in range(2):
        hostile = tensor_of(text, shape, seed=seed)
        agrees(session, numbers(seed, (rows, shape[0])), hostile, dtype, FAST)
        agrees(session, tame_numbers((rows, shape[0]), seed), hostile, dtype, FAST)
        path = agrees(session, tame_numbers((rows, shape[0]), seed), tame(text, shape, seed), dtype, FAST)
        assert "hard cases" in path.reason


@pytest.mark.parametrize(("text", "shape", "reason"), GENERIC_CASES)
def test_what_no_specialised_program_takes(text: str, shape: tuple[int, int], reason: str) -> None:
    path = agrees(opened(path="fast"), tame_numbers((2, shape[0]), 0), tame(text, shape, 0), "f32")
    assert reason in path.reason


def test_small_matrices_take_no_program_unless_asked(session: qc.Session) -> None:
    path = agrees(session, tame_numbers((1, 32), 0), tame("q8s.native.t-f32", (32, 8), 0), "f32")
    assert path == qc.Path("generic", "256 weights, fewer than 65536")


def fused_sums(session: qc.Session) -> None:
    """Sums that are wrong with two roundings, with other runs and with flushed numbers."""
    for seed in range(3):
        w = tame("q8s.packed_u32_1.b32x1-f32", (96, 16), seed)
        agrees(session, tame_numbers((2, 96), seed), w, "f32", kernel_of(session))
        tiny = qs.quantize(np.ldexp(qs.dequantize(w), -70), w.scheme)
        agrees(session, np.ldexp(tame_numbers((2, 96), seed), -60), tiny, "f32", kernel_of(session))
        agrees(
            session, numbers(seed, (2, 96)), tensor_of(w.scheme.text, (96, 16), seed=seed), "f32", kernel_of(session)
        )


def kernel_of(session: qc.Session) -> str:
    """What is meant to run: nothing that uses floats, where a build allows what IEEE 754 does not."""
    return (
        FAST if session.machine.choice == "fast" and "-cl-fast-relaxed-math" not in session.build_options else "generic"
    )


def cancelled_sums(session: qc.Session) -> None:
    """Sums of codes that cancel, that are special, and whose segments are cut by both factors."""
    for v_x, v_w in (("e5m2", "e5m2"), ("e4m3", "q8f"), ("e5m2", "e4m3"), ("q8s", "q4f")):
        x = tensor_of(f"{v_x}.native.b6-f32.t-f32", (3, 66), seed=3)
        codes = x.codes.copy()
        codes[:, 33:] = np.roll(codes[:, :33], 1, axis=0)
        x = qs.Quantized(x.scheme, codes, x.scale_codes, x.tensor_scale_code)
        w = tensor_of(f"{v_w}.packed_u32_1.b4x3-ue8m0", (66, 5), seed=4)
        same_bits(session.product_codes(x, qs.pack(w)), qs.product_codes(x, w), f"{v_x} times {v_w}")
        tamed, weights = tame(f"{v_x}.native.b6-f32", (3, 66), 5), tame(f"{v_w}.native.b4x1-f32", (66, 5), 6)
        same_bits(session.product_codes(tamed, weights), qs.product_codes(tamed, weights), f"{v_x} times {v_w}")


CHECKS: tuple[Callable[[qc.Session], None], ...] = (fused_sums, cancelled_sums)


@pytest.mark.parametrize("check", CHECKS)
def test_the_kernels_pass_every_check_under_every_build(build: qc.Session, check: Callable[[qc.Session], None]) -> None:
    check(build)


@pytest.mark.parametrize("options", [(), ("-cl-denorms-are-zero",), ("-cl-fast-relaxed-math",)], ids=str)
def test_specialised_programs_pass_under_every_build(options: tuple[str, ...]) -> None:
    fused_sums(opened(*options, path="fast"))


FLUSHING = "-cl-denorms-are-zero"
FAULTS: dict[str, tuple[Callable[[qc.Session], None], Any, tuple[str, ...]]] = {
    "PRD-1 two roundings": (fused_sums, "generic", ("-DSTEP(a,b,p)=sum_of(multiply(a,b),p)",)),
    "PRD-4 runs of 16": (fused_sums, "generic", ("-DRUN=16u",)),
    "PRD-12 cut from where a segment begins": (cancelled_sums, "generic", ("-DNEXT_CUT(at,extent)=((at)+(extent))",)),
    "PRD-1 two float roundings": (fused_sums, "fast", ("-DFLOAT_STEP(x,w,p)=((x)*(w)+(p))",)),
    "PRD-5 a run starts at 1": (fused_sums, "fast", ("-DSUM_START=1.0f",)),
    "PRD-1 floats for all numbers": (fused_sums, "fast", ("-DRUN_OK(low,high)=1u", FLUSHING)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_noticed(fault: str) -> None:
    check, path, options = FAULTS[fault]
    with pytest.raises(AssertionError, match="differ"):
        check(opened(*options, path=path))


def test_refusals_are_the_references(session: qc.Session) -> None:
    w, row = tame("q8s.native.t-f32", (6, 5), 0), qs.quantize(np.ones(3, np.float32), "q8s.native.t-f32")
    lookup = tame("q4s.native.lut-nf4.t-f32", (6, 5), 0)
    x = np.ones((2, 6), np.float32)
    xq = qs.quantize(x, "e2m1.native.b2-f16")
    products = [(x, row), (x[:, 1:], w), (np.float32(1), w), (x.astype("f8"), w), (x, w, "f64"), ([[0.1] * 6], w)]
    for arguments in (*products, (np.ones((0, 7), np.float32), w)):
        same_refusal(session, "product", *arguments)
    for arguments in ((xq, lookup), (lookup, w), (w, w), (row, row), (xq, w, "u8"), (x, w)):
        same_refusal(session, "product_codes", *arguments)
    with pytest.raises(qs.DtypeError, match="w is a ndarray"):
        session.product(x, x)  # type: ignore[arg-type]


def test_dirty_words_are_refused(session: qc.Session) -> None:
    packed = qs.pack(tame("q4s.packed_u32_1.b32x1-f16", (35, 4), 0))
    words = packed.words.copy()
    words[0, -1] |= np.uint32(1 << 31)
    dirty = session.packed(packed.scheme, packed.shape, words, packed.scale_codes)
    with pytest.raises(qs.EncodingError, match="PAK-7"):
        session.product(np.ones(35, np.float32), dirty)


def test_no_rows_and_no_columns(session: qc.Session) -> None:
    w = tame("q8s.native.t-f32", (6, 5), 0)
    none = qs.quantize(np.zeros((6, 0), np.float32), "q8s.native.b3x2-f16")
    for x, matrix in ((np.ones((0, 6), np.float32), w), (np.ones((2, 3, 6), np.float32), none)):
        same_bits(session.product(x, matrix), qs.product(x, matrix), "product")
        codes = qs.quantize(x, "e2m1.native.b2-f16")
        same_bits(session.product_codes(codes, matrix), qs.product_codes(codes, matrix), "product_codes")


def test_fma_of_hard_numbers(session: qc.Session) -> None:
    """A product of one index added to that of another: every alignment, cancellation, ties, subnormals."""
    rng = np.random.default_rng(1)
    c = rng.integers(0, 1 << 32, 4096, np.uint32)
    a = rng.integers(1 << 29, 3 << 29, 4096, np.uint32) | (rng.integers(0, 2, 4096, np.uint32) << np.uint32(31))
    with np.errstate(all="ignore"):
        b = (-floats(c) / floats(a)).astype(np.float32)
    near = b.view(np.uint32) + rng.integers(-2, 3, 4096).astype(np.uint32)
    scales = np.stack([np.full(4096, 0x3F800000, np.uint32), near])
    w = qs.Quantized("q8s.native.b1-f32", np.ones((2, 4096), np.uint8), scales)  # type: ignore[arg-type]
    for place in range(0, 4096, 97):
        column = qs.slice_axis(w, 1, place, place + 97) if place + 97 < 4096 else qs.slice_axis(w, 1, place, 4096)
        x = floats(np.array([c[place], a[place]], np.uint32))
        same_bits(session.product(x, column), qs.product(x, column), f"fma {place}")


def test_the_familys_programs_are_listed() -> None:
    assert sum("products_fast.cl" in program.files for program in all_programs()) > 20
