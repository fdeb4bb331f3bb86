"""Dequantize by specialised programs: the reference's bits, from words and from codes, and by the kernels meant."""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.opening import open_machine
from quantspec_cl.program import all_programs

from .agreement import same_bits, same_refusal
from .conftest import opened
from .data import SPECIAL, neighbours

pytestmark = pytest.mark.opencl

ROWS, ENDS, TILES = "dequantize_rows", "dequantize_ends", "dequantize_tiles"

#: A scheme for each way that codes lie in memory and each way that scales do; a shape; the kernels that are meant to run.
CASES = [
    ("e2m1.packed_native_0.b32-ue8m0", (5, 64), "f32", ROWS),
    ("e2m1.packed_u32_0.b16-ue4m3.t-f32", (48, 80), "f32", ROWS),
    ("e2m1.packed_native_0.b16-ue4m3.t-f32", (7, 37), "bf16", ENDS),
    ("e2m1.packed_native_1.b16x1-ue8m0", (70, 19), "f32", TILES),
    ("e4m3.native.b128x128-f32", (130, 304), "f32", ROWS),
    ("e4m3.packed_u32_1.b8x8-bf16", (2, 21, 24), "f16", TILES),
    ("e5m2.packed_native_0.b32-ue8m0", (3, 3, 2080), "f16", ROWS),
    ("e5m2.native.t-f32", (37, 29), "bf16", ROWS),
    ("e3m2.packed_native_0.b32-ue8m0", (9, 104), "f32", ROWS),
    ("e3m2.packed_u32_1.b32x1-f16", (33, 9), "f32", TILES),
    ("e2m3.packed_u32_0.b40-ue4m3", (11, 80), "bf16", ROWS),
    ("e2m3.packed_u32_0.b64-f16.t-bf16", (3, 67), "f32", ENDS),
    ("e2m3.packed_native_1.b1-ue4m3", (14, 11), "f32", TILES),
    ("q8s.native.b1-f32", (3, 67), "f32", ROWS),
    ("q8f.packed_u32_0.b16x1-f16.t-f32", (40, 72), "f16", ROWS),
    ("q4s.packed_u32_0.b1-ue8m0.t-bf16", (6, 41), "bf16", ENDS),
    ("q4s.packed_u32_1.b32x1-f16", (128, 40), "f32", TILES),
    ("q4f.packed_native_0.lut-nf4.b64-f32", (5, 192), "f16", ROWS),
    ("q4f.packed_u32_1.lut-nf4.b16x16-bf16", (3, 20, 17), "f32", TILES),
    ("q2f.packed_native_0.b24-bf16", (4, 72), "f32", ROWS),
    ("q2s.packed_u32_0.b2x16-f32", (3, 5, 32), "f32", ROWS),
    ("q2s.packed_u32_1.b2x3x16-f16", (3, 37, 33), "f16", TILES),
    ("q4s.packed_u32_0.b12-f16", (4, 24), "f32", "generic"),
    ("q4s.packed_u32_2.b32-f16", (2, 3, 32), "f32", "generic"),
    ("q8s.native.b32-f32", (0, 32), "f32", "generic"),
]

FLAT = [(value, scale) for value in qs.VALUES for scale in ("ue8m0", "ue4m3")]


LANES = (8, 16)  #: of a vector, whatever the device would choose


@cache
def fast(*options: str, lanes: int | None = None) -> qc.Session:
    """A poisoned session on the chosen device that takes a specialised program wherever there is one."""
    return qc.Session(open_machine(opened().info.index, options, True, choice="fast", lanes=lanes))


def codes_of(scheme: qs.Scheme, size: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Every code of a scheme, in turn and then at random, with zeros among them."""
    every = np.arange(1 << scheme.value.bits, dtype=np.uint8)
    if scheme.value.is_integer and not scheme.is_lookup:
        half = np.uint8(scheme.value.sign_bit)
        every = (every ^ half) - half
    rng = np.random.default_rng(seed)
    chosen = rng.choice(every, size)
    zeros = np.repeat(rng.random(size // 8 + 1) < 0.1, 8)[
        :size
    ]  # whole groups of them, of both signs where there are two
    chosen[zeros] &= np.uint8(0 if scheme.value.is_integer else scheme.value.sign_bit)
    chosen[: every.size] = every[:size]
    return chosen


def scales_of(scale: qs.ScaleType, size: int, seed: int = 0) -> npt.NDArray[np.unsignedinteger]:
    """Scale codes of all kinds: zeros, subnormals, ends of the range, infinities, NaNs, negatives; then usual ones."""
    rng = np.random.default_rng(seed)
    if scale.size == 4:
        hard = np.concatenate([SPECIAL, neighbours(SPECIAL), rng.integers(0, 1 << 32, 64, np.uint32)])
    else:
        hard = np.arange(1 << 8 * scale.size, dtype=scale.code_dtype)
        hard = hard[(hard & ~np.uint32(scale.magnitude_mask | scale.sign_bit)) == 0]
    usual = qs.encode_scale(np.exp(3 * rng.standard_normal(size)).astype(np.float32), scale)
    return np.where(rng.random(size) < 0.5, rng.choice(hard, size), usual).astype(scale.code_dtype)


def tensor_of(text: str, shape: tuple[int, ...], tensor_code: int | None = None, seed: int = 0) -> qs.Quantized:
    """A tensor of any codes under any scales; a tensor scale of a full mantissa, unless it is given."""
    scheme = qs.Scheme.parse(text)
    codes = codes_of(scheme, int(np.prod(shape)), seed).reshape(shape)
    scales = single = None
    if scheme.block is not None:
        grid = tuple(-(-size // extent) for size, extent in zip(shape, scheme.extents(len(shape)), strict=True))
        scales = scales_of(scheme.block.scale, int(np.prod(grid)), seed).reshape(grid)
    if scheme.tensor is not None:
        code = qs.encode_scale(np.float32(0.78901234), scheme.tensor)
        single = np.array(code if tensor_code is None else tensor_code, scheme.tensor.code_dtype)
    return qs.Quantized(scheme, codes, scales, single)


def agrees(session: qc.Session, tensor: qs.Quantized, dtype: str, kernel: str, *, words: bool = True) -> None:
    """One verb gives the reference's bits, by the kernel meant."""
    found = session.dequantize_packed(qs.pack(tensor), dtype) if words else session.dequantize(tensor, dtype)
    same_bits(found, qs.dequantize(tensor, dtype), f"{tensor.scheme.text} of {tensor.shape} to {dtype}")
    assert found.path is not None and found.path.name == kernel, f"{found.path}, not {kernel}"


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(("text", "shape", "dtype", "kernel"), CASES)
def test_words_give_the_references_bits(text: str, shape: tuple[int, ...], dtype: str, kernel: str, lanes: int) -> None:
    for seed in range(3):
        agrees(fast(lanes=lanes), tensor_of(text, shape, seed=seed), dtype, kernel)


def test_vectors_of_sixteen_are_taken_where_they_fit() -> None:
    """Blocks, rows and a work-item consist of them; the reason says so."""
    session = fast(lanes=16)
    for text, shape, lanes in (
        ("e2m1.packed_native_0.b32-ue8m0", (5, 64), 16),
        ("q2s.packed_u32_0.b16-f16", (3, 48), 16),
        ("e3m2.packed_native_0.b32-ue8m0", (9, 96), 16),
        ("q4s.packed_u32_1.b32x1-f16", (64, 21), 16),
        ("e5m2.native.t-f32", (37, 29), 16),
        ("q4s.packed_u32_0.b8-f16", (4, 64), 8),
        ("e3m2.packed_u32_0.b40-ue8m0", (11, 80), 8),
        ("e2m1.packed_u32_0.b16-ue8m0", (3, 40), 8),
    ):
        path = session.dequantize_packed(qs.pack(tensor_of(text, shape))).path
        assert path is not None and f"{lanes} at once" in path.reason, f"{text} of {shape}: {path}"


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(("value", "scale"), FLAT)
def test_every_code_under_every_scale_code(value: str, scale: str, lanes: int) -> None:
    scheme, row = qs.Scheme.parse(f"{value}.native.b256-{scale}"), qs.SCALES[scale]
    scales = np.arange(1 << row.bits, dtype=np.uint8)[:, None]
    codes = np.broadcast_to(codes_of(scheme, 256), (scales.size, 256))
    agrees(fast(lanes=lanes), qs.Quantized(scheme, codes, scales), "f32", ROWS, words=False)


@pytest.mark.parametrize("scale", ["f16", "bf16"])
def test_every_code_under_every_scale_code_of_two_bytes(scale: str) -> None:
    scheme = qs.Scheme.parse(f"e2m1.native.b16-{scale}")
    scales = np.arange(1 << 16, dtype=np.uint16)[:, None]
    codes = np.broadcast_to(codes_of(scheme, 16), (scales.size, 16))
    agrees(fast(), qs.Quantized(scheme, codes, scales), "f32", ROWS, words=False)


def two_levels(session: qc.Session) -> None:
    """Block scales under tensor scales of all kinds: products that are subnormal, overflow, are zero or no number."""
    for code in (*SPECIAL[::3].tolist(), 0x3F9D70A5, 0x00ABCDEF, 0x7E87654B, 0x02FEDCBB, 0xBF812345):
        agrees(session, tensor_of("e2m1.packed_u32_0.b16-ue4m3.t-f32", (48, 80), code), "f32", ROWS)


def far_scales(session: qc.Session) -> None:
    """Scales at both ends of the range, against codes of all kinds, to each type of numbers."""
    for seed in range(4):
        agrees(session, tensor_of("q8s.native.b1-f32", (3, 67), seed=seed), "f32", ROWS)
        agrees(session, tensor_of("e5m2.packed_native_0.b32-ue8m0", (3, 3, 2080), seed=seed), "f16", ROWS)
        agrees(session, tensor_of("e2m3.packed_u32_0.b40-ue4m3", (11, 80), seed=seed), "bf16", ROWS)


CHECKS: tuple[Callable[[qc.Session], None], ...] = (two_levels, far_scales)


@pytest.mark.parametrize("options", [(), ("-cl-denorms-are-zero",), ("-cl-fast-relaxed-math",)], ids=str)
@pytest.mark.parametrize("check", CHECKS)
def test_the_kernels_pass_every_check_under_every_build(
    options: tuple[str, ...], check: Callable[[qc.Session], None]
) -> None:
    check(fast(*options))


FLUSHING = "-cl-denorms-are-zero"
FAULTS: dict[str, tuple[Callable[[qc.Session], None], tuple[str, ...]]] = {
    "QNT-10 ties go up": (far_scales, ("-DEVEN(bits)=1u",)),
    "QNT-10 ties go down": (far_scales, ("-DEVEN(bits)=0u",)),
    "SCL-14 a subnormal product by a float": (two_levels, ("-DNORMAL_FROM=-30", FLUSHING)),
    "QNT-9 a subnormal result by a float": (far_scales, ("-DMARGIN=30u", FLUSHING)),
    "VAL-2 no sign": (far_scales, ("-DVALUE_SIGN(top)=((Uints)(0u))",)),
    "VAL-12 a NaN code is a number": (far_scales, ("-DIS_NAN(moved)=((Ints)(0))",)),
    "CNF-3 numbers are not written": (far_scales, ("-DSTREAM(v,a)=(void)(v)",)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_noticed(fault: str) -> None:
    check, options = FAULTS[fault]
    with pytest.raises(AssertionError, match="differ"):
        check(fast(*options))


def test_a_session_that_falls_back_is_noticed_as_a_liar() -> None:
    generic = qc.Session(open_machine(opened().info.index, (), True, choice="generic"))
    for check in CHECKS:
        with pytest.raises(AssertionError, match="not dequantize_rows"):
            check(generic)


def test_small_tensors_take_no_program_unless_asked() -> None:
    small, large = tensor_of("e2m1.native.b32-ue8m0", (4, 64)), tensor_of("e2m1.native.b32-ue8m0", (1024, 64))
    session = qc.Session(open_machine(opened().info.index, (), True))
    path = session.dequantize(small).path
    assert path == qc.Path("generic", "256 elements, fewer than 65536")
    agrees(session, large, "f32", ROWS, words=False)


def test_words_are_refused_as_unpack_refuses_them() -> None:
    tensor = tensor_of("q4s.packed_native_0.b32-f16", (4, 35))
    packed = fast().put_packed(qs.pack(tensor))
    words = packed.words.get()
    words[2, -1] |= 0x10
    dirty = fast().packed(tensor.scheme, tensor.shape, words, packed.scale_codes)
    with pytest.raises(qs.EncodingError, match="PAK-7") as found:
        fast().dequantize_packed(dirty)
    with pytest.raises(qs.EncodingError, match="PAK-7") as expected:
        fast().unpack(dirty)
    assert str(found.value) == str(expected.value)
    same_bits(fast().dequantize_packed(dirty, padding="ignore"), qs.dequantize(tensor), "padding ignored")
    with pytest.raises(qs.UnsupportedError, match="PAK-8"):
        fast().dequantize_packed(packed, padding="other")  # type: ignore[arg-type]
    with pytest.raises(qs.DtypeError, match="QNT-10"):
        fast().dequantize_packed(packed, "f64")
    with pytest.raises(qs.DtypeError, match="QNT-12"):
        fast().dequantize_packed(words)  # type: ignore[arg-type]
    same_refusal(fast(), "dequantize", words)


def test_the_familys_programs_are_listed() -> None:
    listed = all_programs()
    assert sum("dequantize_fast.cl" in program.files for program in listed) > 50
    assert len(set(listed)) == len(listed)
