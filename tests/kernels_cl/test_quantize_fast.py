"""Quantize, fast: specialised programs give the reference's bits, whatever the data, the device's arithmetic and the cut."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.trust import trust

from .agreement import same_bits, same_error, same_quantized
from .conftest import BUILDS, opened
from .data import F32, HALVES, f32, floats, midpoints, neighbours, numbers, patterns

pytestmark = pytest.mark.opencl

#: Arithmetic that is not trusted: what takes its place must give the same bits.
NO_QUOTIENTS = ("-DOVER(a,b)=((a)*(1.0f/(b)))",)
NO_FMA = (*NO_QUOTIENTS, "-DFMA(a,b,c)=((a)*(b)+(c))")
NO_COMPARISONS = ("-DIS_ABOVE(a,b)=(((a)>(b))*255)",)  # as Oclgrind 21.10 has them


def fast(*options: str) -> qc.Session:
    """A poisoned session that takes a specialised program wherever there is one."""
    return opened(*options, path="fast")


def scales_of(x: F32, scheme: qs.Scheme) -> npt.NDArray[Any]:
    """The effective scale of each element, by the reference: what dequantize multiplies the code of 1 with."""
    quantized = qs.quantize(x, scheme)
    shape = x.shape
    scale = np.ones(shape)
    if quantized.tensor_scale_code is not None and scheme.tensor is not None:
        scale *= np.float64(qs.decode_scale(quantized.tensor_scale_code, scheme.tensor))
    if quantized.scale_codes is not None and scheme.block is not None:
        blocks = qs.decode_scale(quantized.scale_codes, scheme.block.scale).astype(np.float64)
        for axis, extent in enumerate(scheme.extents(len(shape))):
            blocks = np.repeat(blocks, extent, axis).take(range(shape[axis]), axis)
        scale *= blocks
    return scale.astype(np.float32).astype(np.float64)


def hard(scheme: qs.Scheme, shape: tuple[int, int], seed: int) -> F32:
    """Every quotient at a tie of encode or next to one; zeros, subnormals and specials among them; blocks of many exponents."""
    rng = np.random.default_rng(seed)
    rows = np.ldexp(1.0, rng.choice([0, 0, 0, 0, 0, 3, -8, -30, -37, -60, -99, -130, 60, 88, 119], (shape[0], 1)))
    columns = np.ldexp(1.0, rng.integers(-3, 3, (1, shape[1] // 8))).repeat(8, 1)
    with np.errstate(over="ignore", under="ignore"):
        x = (rng.standard_normal(shape) * rows * columns).astype(np.float32)
        if scheme.tensor is not None:
            x[np.abs(x) > 1e3] = 0  # else the tensor scale leaves zeros only
        near = neighbours(patterns(midpoints(scheme.value.name, scheme.table)), 0)
        made = (floats(rng.choice(near, shape)).astype(np.float64) * scales_of(x, scheme)).astype(np.float32)
    bits = patterns(made) + rng.integers(-1, 2, shape).astype(np.uint32)
    kept = (np.abs(floats(bits)) >= np.abs(x)) | (rng.random(shape) < 0.2) | ~np.isfinite(floats(bits))
    bits = np.where(kept, patterns(x), bits)
    choice = rng.random(shape)
    bits[choice < 0.05] &= np.uint32(0x80000000)
    bits[choice > 0.98] &= np.uint32(0x807FFFFF)
    bits[-4:, ::97] = rng.choice(
        f32(0x7F800000, 0x7FC12345, 0xFFFFFFFF, 0x7F7FFFFF, 1).view(np.uint32), bits[-4:, ::97].shape
    )
    bits[-8:-6] &= np.uint32(0x80000000)
    return floats(bits)


def same(session: qc.Session, x: npt.NDArray[Any], text: str | qs.Scheme, **given: Any) -> qc.DevicePacked:
    """quantize and quantize_packed give the reference's bits and report, by specialised programs; the packed tensor."""
    scheme = qs.Scheme.of(text)
    expected = qs.quantize(x, scheme, **given)
    found, packed = session.quantize(x, scheme, **given), session.quantize_packed(x, scheme, **given)
    what = f"{scheme.text} of {x.shape} {x.dtype}"
    same_quantized(found, expected, what)
    same_bits(packed.words, qs.pack(expected).words, f"{what}: words")
    same_bits(packed.scale_codes, expected.scale_codes, f"{what}: scale codes beside words")
    same_bits(packed.tensor_scale_code, expected.tensor_scale_code, f"{what}: tensor scale code beside words")
    assert packed.saturation == expected.saturation, what
    for path in (found.path, packed.path):
        assert path is not None and path.name in ("quantize_rows", "quantize_tiles"), f"{what}: {path}"
    return packed


#: One for each kind of kernel: how x is divided, which way blocks and words run, how many levels.
KINDS = (
    "e2m1.packed_u32_0.b32-ue8m0",
    "e2m1.packed_native_0.b16-ue4m3.t-f32",
    "q8s.native.b32-f32",
    "q4f.packed_u32_1.b16x1-f16",
    "e4m3.native.t-f32",
)
OTHERS = (
    *("q4s.packed_native_0.lut-nf4.b64-f32", "e5m2.native.b128-bf16", "q2s.packed_u32_0.b64-ue4m3"),
    *("e3m2.packed_native_0.b32-ue8m0", "q8f.packed_u32_1.t-ue8m0", "q4s.packed_native_0.b16x16-f16"),
    *("e2m3.packed_native_1.b32x1-f32", "q2f.packed_native_0.b32x1-bf16.t-f16", "e4m3.packed_u32_0.b8-ue8m0.t-bf16"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [*BUILDS.values(), NO_QUOTIENTS, NO_FMA], ids=[*BUILDS, "no quotients", "no fma"])
def test_every_kind_under_every_build(options: tuple[str, ...], kind: str) -> None:
    same(fast(*options), hard(qs.Scheme.parse(kind), (96, 256), 1), kind)


@pytest.mark.parametrize("text", OTHERS)
def test_every_format(text: str) -> None:
    session, scheme = fast(), qs.Scheme.parse(text)
    same(session, hard(scheme, (96, 256), 2), scheme)
    same(session, numbers(3, (64, 256)), scheme)


def test_what_is_trusted_is_measured() -> None:
    assert trust(fast().machine).sums and trust(fast().machine).products
    assert not trust(fast(*NO_QUOTIENTS).machine).quotients and trust(fast(*NO_QUOTIENTS).machine).fma
    assert not trust(fast(*NO_FMA).machine).fma
    assert not trust(fast("-cl-fast-relaxed-math").machine).sums
    assert trust(fast().machine).comparisons and not trust(fast(*NO_COMPARISONS).machine).comparisons


def test_what_cannot_be_counted_is_left_to_the_generic_path() -> None:
    """Thresholds of a table are counted by comparisons of vectors; formats without a table need none."""
    session = fast(*NO_COMPARISONS)
    for text, kernel in (("q4s.native.lut-nf4.b64-f32", "generic"), ("q4s.native.b64-f32", "quantize_rows")):
        x = hard(qs.Scheme.parse(text), (96, 256), 2)
        found = session.quantize(x, text)
        assert found.path is not None and found.path.name == kernel
        assert found.get() == qs.quantize(x, text)


def test_every_half() -> None:
    """All patterns of the two 16-bit types, and hard ones among numbers of one kind."""
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = HALVES.view(dtype).reshape(256, 256)
        for each in (x, np.random.default_rng(4).permutation(x.reshape(-1)).reshape(x.shape)):
            same(fast(), each, "e2m1.packed_u32_0.b32-ue8m0")
        with np.errstate(over="ignore", invalid="ignore"):
            mixed, tensor = (
                numbers(5, (64, 256)).astype(dtype),
                hard(qs.Scheme.parse(KINDS[4]), (64, 256), 6).astype(dtype),
            )
        same(fast(), mixed, KINDS[2])
        same(fast(), tensor, KINDS[4])


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("e2m1.packed_u32_0.b32-ue8m0", [(3, 260), (5, 257), (1, 289), (2, 3, 288), (11, 32), (513,), (3, 8200)]),
        ("q4f.packed_u32_1.b16x1-f16", [(40, 24), (37, 29), (3, 33, 9), (16, 8)]),
        ("q4s.packed_native_0.b16x16-f16", [(40, 40), (33, 19), (2, 17, 16)]),
        ("q2s.packed_u32_0.t-f16", [(257,), (3, 270), (2, 2, 512)]),
    ],
)
def test_ends_of_lines(text: str, shapes: list[tuple[int, ...]]) -> None:
    for shape in shapes:
        same(fast(), numbers(sum(shape), shape), text)


def test_given_scales() -> None:
    rng = np.random.default_rng(7)
    x = numbers(8, (64, 256))
    gaussian = rng.standard_normal((64, 256)).astype(np.float32)
    for text, codes in (("e2m1.packed_u32_0.b32-ue8m0", 256), ("q4s.packed_u32_0.b16-ue4m3.t-f32", 128)):
        scheme = qs.Scheme.parse(text)
        grid = (64, 256 // scheme.extents(2)[1])
        given: dict[str, Any] = {"scale_codes": rng.integers(0, codes, grid, np.uint8)}
        for tensor in (1.0, 0.0123, 1e-42, 3e38, np.nan) if scheme.tensor is not None else (None,):
            if tensor is not None:
                given["tensor_scale"] = np.float32(tensor)
            for each in (x, gaussian):
                same(fast(), each, scheme, **given)
    scales = (rng.standard_normal((4, 256)) ** 2).astype(np.float32)
    same(fast(), x, "q4f.packed_u32_1.b16x1-f16", scales=scales.astype(np.float16))
    for number in (0.0123, -0.5, 0.0, np.inf, 1e-44):
        same(fast(), gaussian, "e4m3.native.t-f32", tensor_scale_code=np.float32(number).view(np.uint32))


def test_saturated_scales_are_counted() -> None:
    """Bits that stand for blocks: the count, and the first, wherever it lies in its byte."""
    for first in (0, 7, 8, 77, 255):
        x = np.ones((32, 256), np.float32)
        x.reshape(-1, 32)[first:, 5] = 1e9
        assert same(fast(), x, "q2s.packed_u32_0.b32-ue4m3").saturation.count == 256 - first
        x = np.ones((64, 64), np.float32)
        x[16 * (first % 4), first % 64 :] = 3e38
        same(fast(), x, "q4f.packed_u32_1.b16x1-f16")
    two = "q4s.native.b32-ue4m3.t-f16"
    for scale in (1e-3, 1.0):
        same(fast(), np.full((4, 256), 1e6, np.float32), two, tensor_scale=np.float32(scale))
    same(fast(), np.full((4, 256), 3e38, np.float32), two)
    same(fast(), np.full((4, 256), 3, np.float32), two)


@pytest.mark.parametrize(
    ("text", "shape", "reason"),
    [
        ("e2m3.packed_u32_0.b32-ue8m0", (8, 320), "words of 5 codes"),
        ("q4s.packed_u32_2.b32-ue8m0", (8, 8, 320), "packed axis 2"),
        ("q4s.packed_u32_0.b24x20-f32", (48, 320), "do not divide"),
        ("q4s.packed_u32_0.b12-f32", (48, 240), "no multiple of 8"),
        ("q4s.packed_u32_0.b2x2x8-f32", (8, 8, 320), "before the last two"),
        ("q4s.packed_u32_1.b32-f32", (8, 320), "do not divide"),
        ("q8s.packed_u32_0.b32-f32", (0, 32), "no elements"),
    ],
)
def test_what_no_program_takes_says_why(text: str, shape: tuple[int, ...], reason: str) -> None:
    x = numbers(9, shape)
    packed = fast().quantize_packed(x, text)
    assert packed.path is not None and packed.path.name == "generic" and reason in packed.path.reason
    same_bits(packed.words, qs.pack(qs.quantize(x, text)).words, text)


def test_the_choice_of_path() -> None:
    text, small, large = "q8s.native.b32-f32", numbers(10, (4, 256)), numbers(10, (256, 256))
    auto, generic = opened(), opened(path="generic")
    for session, x, name in ((auto, small, "generic"), (auto, large, "quantize_rows"), (generic, large, "generic")):
        for path in (session.quantize(x, text).path, session.quantize_packed(x, text).path):
            assert path is not None and path.name == name and path.reason


def test_refusals_are_those_of_quantize(session: qc.Session) -> None:
    x, grid = np.ones((8, 256), np.float32), np.ones((8, 8), np.float32)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("q8s.packed_u32_2.t-f32", {}),
        ("q8s.native.b32-f32", {"tensor_scale": 1.0}),
        ("q8s.native.b32-f32.t-f32", {"scales": grid}),
        ("q8s.native.b32-f32.t-f32", {"tensor_scale": np.float32(-1)}),
        ("q8s.native.b32-f32", {"recipe": qs.Recipe("other")}),
    ]
    for text, given in cases:
        for each in (session, fast()):
            same_error(partial(each.quantize_packed, x, text, **given), partial(qs.quantize, x, text, **given))


@dataclass(frozen=True)
class Fault:
    """A step of the fast kernels that a definition breaks, and the check that must notice."""

    options: tuple[str, ...]
    check: Callable[[qc.Session], object]


def kind(text: str) -> Callable[[qc.Session], object]:
    """The check of one scheme."""
    return lambda session: same(session, hard(qs.Scheme.parse(text), (96, 256), 1), text)


UNCORRECTED = ("-DCORRECTED(q,x,s,inverse)=(q)", "-DFIRST_QUOTIENT(x,inverse,rest)=((x)*(inverse))")
SUBNORMAL_AMAX = ("-DLOWEST_AMAX=1u", "-DHIGHEST_AMAX=0x7B800000u")
INFINITE_AMAX = ("-DLOWEST_AMAX=0x12800000u", "-DHIGHEST_AMAX=0x7FFFFFFFu")
ANY_SCALE = ("-DLOWEST_SCALE=0u", "-DHIGHEST_SCALE=0x7F7FFFFFu", "-cl-denorms-are-zero")
FAULTS = {
    "the quotient is not corrected": Fault((*NO_QUOTIENTS, *UNCORRECTED), kind(KINDS[2])),
    "scales are cut off": Fault(("-DABOVE(one,bits)=0u",), kind(KINDS[0])),
    "a tiny amax is taken for a normal one": Fault(SUBNORMAL_AMAX, kind(KINDS[0])),
    "infinities count": Fault(INFINITE_AMAX, kind(KINDS[0])),
    "any scale divides": Fault(ANY_SCALE, kind(KINDS[4])),
    "sums round up": Fault(("-DROUND_MAGIC=8388608.0f",), kind(KINDS[2])),
    "outside the guard ties go up": Fault(("-DTIE(q)=1u",), kind(KINDS[0])),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_broken_step_is_noticed(fault: Fault) -> None:
    with pytest.raises(AssertionError):
        fault.check(fast(*fault.options))
