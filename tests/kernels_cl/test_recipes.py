"""Recipes, codecs and containers on the device: every row gives the reference's bits, or its refusal. Rules POL-1 to POL-19."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec.codecs import CODECS, NANS
from quantspec.containers import CONTAINERS
from quantspec.recipes import RECIPES
from quantspec.steps import Assignment
from quantspec_cl.program import all_programs
from quantspec_cl.recipes import codes_program, numbers_program, scales_program

from .agreement import same_bits, same_error, same_quantized, same_refusal
from .data import F32, SPECIAL, f32, floats, midpoints, neighbours, numbers, patterns, ties

pytestmark = pytest.mark.opencl

#: Pattern of a preset's schemes -> schemes that stand for it.
SCHEMES = {
    "*": (
        "q8s.native.b16-f32",
        "e2m1.packed_native_0.b16-ue4m3.t-f32",
        "e4m3.native.t-f32",
        "q4s.native.lut-nf4.b8-f16",
    ),
    "q*": ("q8s.native.b16-f32", "q4f.packed_native_1.b2x16-ue4m3.t-f32", "q2s.packed_u32_0.t-f16"),
}
FP4 = qs.Preset.of("bnb-fp4").table


def schemes_of(preset: qs.Preset) -> Iterator[qs.Scheme]:
    """Schemes that a preset covers: its patterns, filled in."""
    for pattern in preset.schemes:
        for text in SCHEMES.get(pattern, (pattern.replace(".*", ".packed_u32_0", 1).replace("b*", "b16"),)):
            if "lut-*" in text:
                plain = qs.Scheme.of(text.replace("lut-*", "lut-nf4"))
                yield replace(plain, table=FP4)
            else:
                yield qs.Scheme.of(text)


@cache
def families(scheme: qs.Scheme) -> tuple[F32, ...]:
    """Tensors of one scheme: any pattern, ties, finite numbers, zeros, a lone tiny number, the largest, partial blocks, none."""
    gaussian = np.random.default_rng(11).standard_normal((6, 64)).astype(np.float32)
    gaussian[2, 5], gaussian[3, :32] = np.float32(1e-44), 0
    finite = np.nan_to_num(numbers(7, (6, 64)), nan=0.5, posinf=3e38, neginf=-3e38)
    spiked = gaussian.copy()
    spiked[1, 3], spiked[4, 40] = np.nan, -np.inf
    found = [numbers(5, (6, 64)), gaussian, finite, spiked, ties(scheme, 0.0123, 3, 6 * 64).reshape(6, 64)]
    found += [np.zeros((2, 32), np.float32), -gaussian[:2, :32] * np.float32(1e30), gaussian[:3, :35], finite[:0]]
    return tuple(found)


def same_policies(session: qc.Session, x: npt.NDArray[Any], scheme: qs.Scheme, preset: qs.Preset, **given: Any) -> bool:
    """Every verb that a policy has a part in agrees; False where the reference refuses the tensor, as the device then does."""
    by: dict[str, Any] = {"recipe": preset.recipe, "codec": preset.codec}
    what = f"{preset.id} {scheme.text} {x.shape}"
    try:
        expected = qs.quantize(x, scheme, **by, **given)
    except qs.QuantspecError:
        same_refusal(session, "quantize", x, scheme, **by, **given)
        return False
    found = session.quantize(x, scheme, **by, **given)
    same_quantized(found, expected, what)
    assert found.get() == expected and found.codec == preset.codec and found.recipe == preset.recipe
    for dtype in ("f32", "f16", "bf16"):
        same_bits(session.dequantize(found, dtype), qs.dequantize(expected, dtype), f"dequantize {what} to {dtype}")
    same_words(session, found, expected, preset.container)
    return True


def same_words(session: qc.Session, found: qc.DeviceQuantized, expected: qs.Quantized, container: qs.Container) -> None:
    """Words and bytes in a container, and the way back; or the same refusal."""
    scheme, shape, what = expected.scheme, expected.shape, f"{container.name} {expected.scheme.text} {expected.shape}"
    try:
        words = qs.pack(expected, container=container)
    except qs.UnsupportedError:
        same_error(partial(session.pack, found, container=container), partial(qs.pack, expected, container=container))
        return
    packed, data = session.pack(found, container=container), qs.to_bytes(words)
    same_bits(packed.words, words.words, f"pack {what}")
    assert packed.container == container and packed.codec == expected.codec and packed.get().container == container
    assert session.to_bytes(packed).get().tobytes() == data, f"to_bytes {what}"
    assert session.to_bytes(found, container=container).get().tobytes() == data, f"to_bytes {what}"
    assert session.to_bytes(packed, container="canonical").get().tobytes() == qs.to_bytes(expected), what
    by: dict[str, Any] = {"recipe": expected.recipe, "container": container, "codec": expected.codec}
    again = session.from_bytes(data, scheme, shape, **by)
    same_bits(again.words, words.words, f"from_bytes {what}: words")
    same_bits(again.scale_codes, expected.scale_codes, f"from_bytes {what}: scale codes")
    same_bits(again.tensor_scale_code, expected.tensor_scale_code, f"from_bytes {what}: tensor scale code")
    assert session.split(data, scheme, shape, **by).get() == replace(expected, saturation=qs.Saturation())
    same_bits(session.unpack(packed).codes, expected.codes, f"unpack {what}")
    same_bits(session.dequantize_packed(again), qs.dequantize(expected), f"dequantize_packed {what}")


# ---------------------------------------------------------------- presets and recipes


@pytest.mark.parametrize("name", qs.PRESETS)
def test_every_preset_gives_the_bits_of_the_reference(session: qc.Session, name: str) -> None:
    preset, made = qs.Preset.of(name), 0
    for scheme in schemes_of(preset):
        for x in families(scheme):
            made += same_policies(session, x, scheme, preset)
            if preset.recipe.given_only and scheme.tensor is None and scheme.block is not None:
                grid = tuple(-(-n // e) for n, e in zip(x.shape, scheme.extents(x.ndim), strict=True))
                made += same_policies(session, x, scheme, preset, scales=np.full(grid, 0.0123, np.float32))
            elif preset.recipe.given_only and scheme.tensor is not None:
                made += same_policies(session, x, scheme, preset, tensor_scale=np.float32(0.0123))
    assert made, "every tensor was refused"


@pytest.mark.parametrize("name", [name for name in RECIPES if all(p.recipe.name != name for p in qs.PRESETS.values())])
def test_every_other_recipe(session: qc.Session, name: str) -> None:
    recipe = RECIPES[name]
    preset = replace(qs.Preset.of("canonical"), recipe=recipe)
    for value in recipe.values or ("q8s",):
        scheme = qs.Scheme.of(f"{value}.native.b32-{(recipe.scales or ('f32',))[0]}")
        assert sum(same_policies(session, x, scheme, preset) for x in families(scheme)[:5])


def test_the_canonical_row_by_its_steps_is_the_canonical_recipe(session: qc.Session) -> None:
    mine = replace(qs.CANONICAL, name="mine")
    for text in (*SCHEMES["*"], "q4f.native.b3x5-bf16.t-f16", "e5m2.native.b8-ue8m0", "q2f.native.t-ue4m3"):
        for x in families(qs.Scheme.of(text)):
            found, expected = session.quantize(x, text, recipe=mine), qs.quantize(x, text)
            same_quantized(found, qs.quantize(x, text, recipe=mine), text)
            same_bits(found.codes, expected.codes, text)
            same_bits(found.scale_codes, expected.scale_codes, text)
            same_bits(session.dequantize(found, "f16"), qs.dequantize(expected, "f16"), text)


def test_scales_that_are_given_and_half_and_bfloat_inputs(session: qc.Session) -> None:
    x = numbers(9, (4, 64))
    for name in ("nvfp4-te", "nvfp4-modelopt"):
        preset, scheme = qs.Preset.of(name), qs.Scheme.of("e2m1.native.b16-ue4m3.t-f32")
        assert same_policies(session, np.nan_to_num(x), scheme, preset, tensor_scale=np.float32(0.0123))
        codes = np.arange(16, dtype=np.uint8).reshape(4, 4)
        both: dict[str, Any] = {"scale_codes": codes, "tensor_scale": np.float32(7.7)}
        assert same_policies(session, x, scheme, preset, **both)
        assert not same_policies(session, x, scheme, preset, scale_codes=codes)
        assert not same_policies(session, x, scheme, preset, tensor_scale=np.float32(0))
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    for dtype in (np.float16, qs.dequantize(qs.quantize(x, "e4m3.native.t-f32"), "bf16").dtype):
        rounded = half.astype(np.float32).astype(dtype)
        assert same_policies(session, rounded, qs.Scheme.of("q4f.packed_native_0.b32-f16"), qs.Preset.of("ggml-q4_0"))


def test_the_means_of_long_and_of_partial_blocks(session: qc.Session) -> None:
    preset = qs.Preset.of("burn-absmean")
    x = numbers(13, (5, 7, 101))
    for text in (
        "q4s.native.b2x3x40-f32",
        "q8f.native.b2x16-f32",
        "q8f.native.t-f32",
        "q2s.native.b64-bf16",
        "q8s.native.b7x1000-f32",
    ):
        assert same_policies(session, x, qs.Scheme.of(text), preset)


def test_a_negative_number_may_have_the_largest_magnitude_first_or_last(session: qc.Session) -> None:
    mine = replace(
        qs.Preset.of("ggml-q4_0"), recipe=replace(RECIPES["ggml-q4_0"], name="mine", whole_blocks=False, scales=())
    )
    long = np.ones(9001, np.float32)
    long[[4095, 4096, 9000]] = -8, 8, -8
    rows = np.array([[1, -3, 3, 2], [3, -3, 0, 0], [-0.0, 0, 0, -0.0], [np.nan, np.inf, -np.inf, 1]], np.float32)
    assert same_policies(session, long, qs.Scheme.of("q4f.native.b9001-f32"), mine)
    same_policies(session, rows, qs.Scheme.of("q4f.native.b4-f32"), mine)
    assert same_policies(session, rows[:3], qs.Scheme.of("q4f.native.b2x4-f32"), mine)


UNSIGNED = ("up[ue8m0](n)", "rne[ue8m0](n)", "up[ue4m3](n)", "rne[ue4m3](n)", "up[f16](n)")


@pytest.mark.parametrize("step", UNSIGNED)
def test_a_zero_has_no_sign_in_an_unsigned_type(session: qc.Session, step: str) -> None:
    mine = qs.Recipe(
        "mine",
        amax="signed",
        single=("n = neg(a)", f"scale = {step}"),
        element=("q = add(x, s)",),
        decode=("y = mul(s, v)",),
    )
    x = np.array([[0, 0], [1, 0], [2.0**-149, 0], [-3, 2]], np.float32)
    same_quantized(
        session.quantize(x, "q8s.native.b2-f32", recipe=mine), qs.quantize(x, "q8s.native.b2-f32", recipe=mine), step
    )


EVERYTHING: dict[str, Any] = {
    "single": (
        *("h = max(a, 0x1p-100)", "n = neg(h)", "m = min(n, a)", "w = abs(m)", "p = pow2[rceil](w)", "k = sub(w, p)"),
        *("u = up[ue4m3](k)", "r = rne[f16](k)", "i = isnan(u)", "z = sel(i, r, u)", "f = narrow[bf16](z)"),
        *("j = fmax(f, emax)", "l = fmin(j, inf)", "v0 = mul(l, max)", "e = isfinite(v0)", "t = sel(e, v0, H)"),
        "scale = rne[T](t)",
    ),
    "element": (
        "c = gt0(x)",
        "y0 = add(x, top)",
        "d = sel(c, x, y0)",
        "o = eq0(s)",
        "e = sel(o, A, s)",
        "q = div(d, e)",
    ),
    "decode": ("d = sub(v, 0x1.8p-3)", "n = narrow[f16](d)", "y = mul(n, s)"),
}


@pytest.mark.parametrize("kind", ["finite", "all", "ignore-nan", "signed", "absmean"])
def test_a_recipe_of_ones_own_with_every_operation(session: qc.Session, kind: str) -> None:
    mine = qs.Recipe("own", kind, **EVERYTHING)
    preset = replace(qs.Preset.of("canonical"), recipe=mine)
    for text in ("e4m3.native.b8-f16", "q4s.native.t-bf16", "q4s.native.lut-nf4.b2x4-f32", "e2m1.native.b16-ue4m3"):
        for x in families(qs.Scheme.of(text))[:5]:
            same_policies(session, x, qs.Scheme.of(text), preset)


# ---------------------------------------------------------------- text


PLAIN = re.compile(r"-D[A-Z_]+=[A-Za-z0-9_=().,\[\]&^?:+]+")


def test_definitions_hold_nothing_that_a_shell_or_a_compiler_would_cut() -> None:
    listed = [program for program in all_programs() if any("recipe" in name for name in program.files)]
    assert len(listed) > 30
    for program in listed:
        for definition in program.definitions:
            assert PLAIN.fullmatch(definition), definition
            assert len(definition) < 2000


def test_names_of_a_hostile_recipe_reach_no_program(session: qc.Session) -> None:
    evil = 'q); } __kernel void evil(__global uint* y) { y[0] = 1; } /* " -DQNAN=0'
    element = ("t = div(x, s)", "q = abs(t)")
    mine = qs.Recipe(evil, single=["scale = up[T](a)"], element=element, decode=["y = mul(s, v)"])
    steps = (Assignment(evil, "abs", ("a",)), Assignment("scale", "up", ("a",), "T"))
    named = qs.Recipe("named", single=steps, element=element, decode=["y = mul(s, v)"])
    for recipe in (mine, named):
        for program in (scales_program(recipe), codes_program(recipe), numbers_program(recipe)):
            assert all(PLAIN.fullmatch(definition) for definition in program.definitions)
            assert "evil" not in program.source and "evil" not in "".join(program.definitions)
        x = numbers(2, (4, 16))
        same_quantized(
            session.quantize(x, "q8s.native.b4-f32", recipe=recipe),
            qs.quantize(x, "q8s.native.b4-f32", recipe=recipe),
            "evil",
        )


# ---------------------------------------------------------------- refusals


def test_what_a_row_does_not_cover_is_refused_alike(session: qc.Session) -> None:
    x, one, two = numbers(4, (2, 32)), "e4m3.native.b32-ue8m0", "e2m1.native.b16-ue4m3.t-f32"
    odd = np.ones((2, 33), np.float32)
    steps: dict[str, Any] = {"element": ["q = div(x, s)"], "decode": ["y = mul(s, v)"]}
    above = qs.Recipe("above", single=["scale = mul(a, 0x1.8p+0)"], **steps)
    even = qs.Recipe("even-of-integers", single=["p = pow2[even](a)", "scale = up[T](p)"], **steps)
    x[0, :3] = np.nan, 0, 1
    stages: dict[str, Any] = {"single": ["scale = up[T](a)"], **steps}
    refusing = [qs.Recipe("not", refuse=(what,), **stages) for what in ("isnan(x)", "gt0(A)", "gt0(a)", "eq0(q)")]
    cases: list[tuple[npt.NDArray[Any], str, dict[str, Any], str]] = [
        (x, one, {"recipe": "no such"}, "POL-1"),
        (x, one, {"recipe": qs.Recipe("a name")}, "POL-1"),
        (x, one, {"codec": "no such"}, "POL-2"),
        (x, one, {"codec": qs.Codec("mine", rounding="up")}, "POL-2"),
        (x, one, {"codec": "bnb-nf4"}, "POL-10"),
        (x, "q4s.native.lut-nf4.b8-f16", {"codec": "ties-away"}, "POL-10"),
        (x, "q8s.native.b32-f32", {"recipe": "ocp-mx"}, "POL-10"),
        (x, two, {"recipe": "ocp-mx"}, "POL-10"),
        (x, "e2m1.native.b16-ue4m3", {"recipe": "nvfp4-te"}, "POL-10"),
        (odd, "q8s.native.b32-f16", {"recipe": "ggml-q8_0"}, "POL-10"),
        (x, "q8s.native.b32-f32", {"recipe": "onnx-qdq"}, "POL-10"),
        (odd, one, {"recipe": above}, "POL-9"),
        (-odd, one, {"recipe": replace(above, amax="signed")}, "POL-9"),
        (odd, "q8s.native.b32-f32", {"recipe": even}, "POL-10"),
        *((x, "e4m3.native.b8-f32", {"recipe": each}, "POL-10") for each in refusing),
    ]  # fmt: skip
    for data, scheme, options, rule in cases:
        assert f"[{rule}]" in same_refusal(session, "quantize", data, scheme, **options)
    same_refusal(session, "pack", qs.quantize(x, one), container="no such")
    same_refusal(session, "decode", np.array([1], np.uint8), "e4m3", codec="bnb-fp4")
    same_refusal(session, "encode", x, "q4s", table=qs.NF4, codec="ggml-q4_0")
    same_refusal(session, "encode_scale", x, "f32", codec="ties-away")


# ---------------------------------------------------------------- codecs

SHORT_OF_HALF = 0xBEFFFFFF  #: -(1/2 - 2^-25), whose fraction above -1 is no binary32 number


def encodes(session: qc.Session) -> None:
    """Every codec with every value format where encode decides; codes back to numbers."""
    for codec in CODECS.values():
        if codec.rounding == "thresholds":
            near = neighbours(patterns(np.array(codec.thresholds, np.float32)))
            x = floats(np.concatenate([near, SPECIAL]))
            found = session.encode(x, "q4s", table=qs.NF4, codec=codec)
            same_bits(found, qs.encode(x, "q4s", table=qs.NF4, codec=codec), codec.name)
            continue
        for value in qs.VALUES:
            bits = np.concatenate([neighbours(patterns(midpoints(value))), SPECIAL])
            x = floats(bits)
            same_bits(session.encode(x, value, codec=codec), qs.encode(x, value, codec=codec), f"{codec.name} {value}")
            codes = qs.encode(x, value)
            same_bits(session.decode(codes, value, codec=codec), qs.decode(codes, value, codec=codec), codec.name)


def test_every_codec(session: qc.Session) -> None:
    encodes(session)


def test_members_of_codecs_in_every_combination(session: qc.Session) -> None:
    x = floats(
        np.concatenate(
            [SPECIAL, neighbours(patterns(np.array([0.5, 1.5, 2.5, 6, 7, 448, 464, 57344, 61440], np.float32)))]
        )
    )
    for number, nan in enumerate(NANS):
        for rounding in ("even", "away", "toward-zero", "half-up", "down"):
            codec = qs.Codec(
                "mine", rounding, ("saturate", "ieee")[number % 2], nan, ("keep", "underflow", "drop")[number % 3],
                ("zero", "lowest", "highest")[number % 3], ("keep", "drop")[number % 2],
            )  # fmt: skip
            for value in ("q8f", "q2s", "e4m3", "e5m2", "e2m1"):
                what = f"{rounding} {nan} {value}"
                same_bits(session.encode(x, value, codec=codec), qs.encode(x, value, codec=codec), what)
            q = session.quantize(x, "e5m2.native.t-f32", tensor_scale=np.float32(1), codec=codec)
            expected = qs.quantize(x, "e5m2.native.t-f32", tensor_scale=np.float32(1), codec=codec)
            same_quantized(q, expected, "e5m2")
            same_bits(session.dequantize(q), qs.dequantize(expected), "dequantize")


def test_a_number_just_short_of_a_half_is_no_tie(session: qc.Session) -> None:
    """POL-12 by the law: -(1/2 - 2^-25) is nearer to 0 than to -1."""
    for codec in ("ties-away", "ties-toward-zero", "burn-cpu"):
        found = session.encode(f32(SHORT_OF_HALF, SHORT_OF_HALF & 0x7FFFFFFF, 0xBF000000), "q8s", codec=codec).get()
        assert found.view(np.int8).tolist() == [0, 0, 0 if codec == "ties-toward-zero" else -1]


# ---------------------------------------------------------------- containers

BOXED = (
    *("q4s.packed_native_0.b16-f32", "q4f.packed_native_0.b32-f16", "q8s.native.b32-f16", "q4s.packed_u32_0.b8-f32"),
    *(
        "q4s.packed_u32_1.b2x3-f32",
        "e2m3.packed_u32_0.b32-ue8m0",
        "e3m2.packed_u32_1.b32-ue8m0",
        "q2f.packed_u32_0.t-f32",
    ),
    *("e2m1.packed_u32_0.b16-ue4m3.t-f32", "e2m1.packed_native_0.b16-ue4m3.t-f32", "q4s.packed_u32_2.b4-bf16"),
    *("e2m1.packed_native_0.b32-ue8m0", "q4f.packed_native_0.lut-nf4.b32-f32", "e2m3.packed_native_0.b8-ue8m0"),
)
SHAPES = ((6, 64), (3, 70), (2, 3, 96), (33,), (130, 80), (5, 0), (1, 32))


def boxes(session: qc.Session) -> None:
    """Every container with schemes and shapes that it holds or refuses."""
    for text in BOXED:
        for shape in SHAPES:
            scheme = qs.Scheme.of(text)
            try:
                scheme.require_shape(shape)
            except qs.QuantspecError:
                continue
            expected = qs.quantize(np.nan_to_num(numbers(3, shape), posinf=1, neginf=-1), scheme)
            found = session.put(expected)
            for container in CONTAINERS.values():
                same_words(session, found, expected, container)


def test_every_container(session: qc.Session) -> None:
    boxes(session)


def test_words_and_streams_that_are_not_clean(session: qc.Session) -> None:
    rng = np.random.default_rng(8)
    for text, shape in (
        *(("q4s.packed_u32_0.b8-f32", (3, 13)), ("e2m1.packed_u32_0.b16-ue4m3.t-f32", (3, 40))),
        *(
            ("q4s.packed_native_1.b4-bf16", (5, 9)),
            ("q8s.native.b32-f16", (2, 32)),
            ("e3m2.packed_u32_1.b32-ue8m0", (5, 37)),
        ),
    ):
        scheme = qs.Scheme.of(text)
        for container in [*CONTAINERS.values(), qs.Container("lax", "high", padding="ignore")]:
            try:
                size = qs.byte_count(scheme, shape, container)
            except qs.UnsupportedError:
                continue
            data = rng.integers(0, 256, size, dtype=np.uint8)
            for padding in ("refuse", "ignore"):
                options: dict[str, Any] = {"padding": padding, "container": container}
                for verb in ("split", "from_bytes"):
                    try:
                        expected = getattr(qs, verb)(data, scheme, shape, **options)
                    except qs.QuantspecError:
                        same_refusal(session, verb, data, scheme, shape, **options)
                        continue
                    found = getattr(session, verb)(data, scheme, shape, **options)
                    part = "codes" if verb == "split" else "words"
                    same_bits(getattr(found, part), getattr(expected, part), f"{verb} {text} {container.name}")
                    same_bits(found.scale_codes, expected.scale_codes, f"{verb} {text} {container.name}")


def test_one_container_becomes_another(session: qc.Session) -> None:
    packed = qs.pack(
        qs.quantize(numbers(5, (4, 64)), "q4s.packed_u32_0.b16-f32", codec="ties-away"), container="gptq-i32"
    )
    for name in ("canonical", "awq-i32", "high-nibble", "compressed-tensors-i32"):
        same_bits(session.convert(packed, name).words, qs.convert(packed, name).words, name)
    found, expected = session.repack(packed, "packed_u32_1"), qs.repack(packed, "packed_u32_1")
    same_bits(found.words, expected.words, "repack")
    assert (found.container, found.codec) == (expected.container, expected.codec)
    with pytest.raises(qs.UnsupportedError, match="POL-3"):
        session.transpose(packed, 0, 1)


# ---------------------------------------------------------------- carried along


def test_recipe_and_codec_go_along(session: qc.Session) -> None:
    x, text = numbers(6, (8, 32)), "e2m1.packed_native_0.b32-ue8m0"
    by: dict[str, Any] = {"recipe": "ggml-mxfp4", "codec": "ggml-mxfp4"}
    expected, found = qs.quantize(x, text, **by), session.quantize(x, text, **by)
    other = session.quantize(x, text, recipe="ggml-mxfp4")
    same_error(
        partial(session.concatenate, [found, other], 0),
        partial(qs.concatenate, [expected, qs.quantize(x, text, recipe="ggml-mxfp4")], 0),
    )
    for made in (
        session.concatenate([found, found]),
        session.slice_axis(found, 0, 2, 5),
        session.repack(found, "native"),
    ):
        assert (made.recipe.name, made.codec.name) == ("ggml-mxfp4", "ggml-mxfp4")
    again = session.requantize(session.pack(found), "e2m1.packed_native_0.b32-ue8m0")
    assert again.codec.name == "ggml-mxfp4"
    same_bits(session.unpack(again).codes, qs.requantize(expected, text).codes, "requantize")
    same_bits(session.dequantize(found, codec="canonical"), qs.dequantize(expected, codec="canonical"), "another codec")
    streamed = session.stream(piece_bytes=256).dequantize(expected)
    same_bits(streamed, qs.dequantize(expected), "stream")
    w = session.quantized(text, expected.codes, expected.scale_codes, recipe="ocp-mx")
    plain = replace(expected, recipe=RECIPES["ocp-mx"], codec=qs.CANONICAL_CODEC)
    same_bits(session.product(x.T, w), qs.product(x.T, plain), "product")
    same_bits(session.chain(w, [("abs",)]), np.abs(qs.dequantize(w.get())), "chain")
    for call in (session.product, lambda a, b: session.chain(b, [("abs",)])):
        with pytest.raises(qs.UnsupportedError, match="POL-2"):
            call(x.T, found)
        with pytest.raises(qs.UnsupportedError, match="POL-1"):
            call(x.T, session.quantize(x, "q2s.native.t-f32", recipe="bitnet-absmean"))


def test_words_straight_from_numbers(session: qc.Session) -> None:
    x = numbers(15, (4, 64))
    for name in ("ggml-q4_0", "mlx", "bnb-nf4"):
        preset = qs.Preset.of(name)
        scheme, clean = next(schemes_of(preset)), np.nan_to_num(x, posinf=1, neginf=2)
        by: dict[str, Any] = {"recipe": preset.recipe, "codec": preset.codec}
        found = session.quantize_packed(clean, scheme, container=preset.container, **by)
        same_bits(found.words, qs.pack(qs.quantize(clean, scheme, **by), container=preset.container).words, name)
        numbers_of = session.dequantize_packed(found, "bf16")
        same_bits(numbers_of, qs.dequantize(qs.quantize(clean, scheme, **by), "bf16"), name)
    big = np.random.default_rng(1).standard_normal((64, 2048)).astype(np.float32)  # the size at which fast paths begin
    listed: tuple[dict[str, Any], ...] = ({"recipe": "rceil"}, {"codec": "ties-away"}, {"container": "high-nibble"})
    for options in listed:
        policy: dict[str, Any] = {key: options[key] for key in options if key != "container"}
        text = "e2m1.packed_native_0.b32-ue8m0"
        expected = qs.quantize(big, text, **policy)
        made = session.quantize_packed(big, text, **options)
        same_bits(made.words, qs.pack(expected, container=options.get("container", "canonical")).words, str(options))
        same_bits(session.dequantize_packed(made), qs.dequantize(expected), str(options))


# ---------------------------------------------------------------- liars


def powers(session: qc.Session) -> None:
    """Largest magnitudes next to where a rule raises the exponent."""
    x = np.zeros((16, 32), np.float32)
    x[:, 3] = f32(*(start + k for start in (0x3FF80000, 0x3FF00000, 0x3FE00000) for k in range(-2, 3)), 0x3F800000)
    for name in ("even", "even1", "rceil"):
        expected = qs.quantize(x, "e4m3.native.b32-ue8m0", recipe=name)
        same_quantized(session.quantize(x, "e4m3.native.b32-ue8m0", recipe=name), expected, name)


SIGNED = qs.Recipe("signed", "signed", single=["scale = up[T](a)"], element=["q = div(x, s)"], decode=["y = mul(s, v)"])


def signs(session: qc.Session) -> None:
    """Scales below zero."""
    for step in UNSIGNED:
        test_a_zero_has_no_sign_in_an_unsigned_type(session, step)
    x = families(qs.Scheme.of("q8s.native.b8-f16"))[1]
    expected = qs.quantize(x, "q8s.native.b8-f16", recipe=SIGNED)
    same_quantized(session.quantize(x, "q8s.native.b8-f16", recipe=SIGNED), expected, "signed")


def nans(session: qc.Session) -> None:
    """Elements that are NaN, of both signs."""
    expected = qs.quantize(floats(SPECIAL), "e4m3.native.b32-ue8m0", recipe="ocp-mx")
    same_quantized(session.quantize(floats(SPECIAL), "e4m3.native.b32-ue8m0", recipe="ocp-mx"), expected, "ocp-mx")


def logarithms(session: qc.Session) -> None:
    """Numbers next to every power of two, zeros, infinities and NaN, whose logarithm in binary32 may be a whole number."""
    powers = (np.arange(1, 255, dtype=np.int64)[:, np.newaxis] << 23) + np.arange(-96, 97)
    small = (1 << np.arange(23, dtype=np.int64))[:, np.newaxis] + np.arange(-3, 4)
    bits = np.concatenate([powers.reshape(-1), small.reshape(-1), [0x7F7FFFFF, 0x7F800000, 0x7FC00000]])
    x = floats(np.abs(bits).astype(np.uint32)).reshape(-1, 1)
    for name, scheme in (
        ("gfloat-mx", "e2m1.native.b1-ue8m0"),
        ("torchao-rceil", "e4m3.native.b1-ue8m0"),
        ("torchao-rceil", "e2m3.native.b1-ue8m0"),
    ):
        same_quantized(
            session.quantize(x, scheme, recipe=name), qs.quantize(x, scheme, recipe=name), f"{name} {scheme}"
        )


@pytest.mark.parametrize("check", [powers, signs, nans, logarithms], ids=["powers", "signs", "nans", "logarithms"])
def test_what_the_liars_are_asked(session: qc.Session, check: Callable[[qc.Session], None]) -> None:
    check(session)


def means(session: qc.Session) -> None:
    test_the_means_of_long_and_of_partial_blocks(session)


@dataclass(frozen=True)
class Fault:
    """A rule broken by a definition, and the check that must see it."""

    name: str
    option: str
    check: Callable[[qc.Session], None]


FAULTS = (
    Fault("POL-12 a tie goes toward zero", "-DTIE_AWAY=0u", encodes),
    Fault("POL-12 down is toward zero", "-DROUNDS_DOWN(negative)=0", encodes),
    Fault("POL-13 no sign is inverted", "-DNAN_SIGN(rule,sign,bit)=(sign)", encodes),
    Fault("POL-7 a threshold is not reached", "-DEVEN_THRESHOLD(limit)=((limit)+1u)", powers),
    Fault("POL-20 a logarithm is exact", "-DLOGARITHM_LOSES=0u", logarithms),
    Fault("POL-20 a logarithm is coarser", "-DLOGARITHM_LOSES=96u", logarithms),
    Fault("POL-6 a sign is lost", "-DNARROWED_UP(x,number,f)=(number)", signs),
    Fault("POL-6 a zero keeps its sign", "-DNARROWED_UP(x,number,f)=((number)|((x)&SIGN))", signs),
    Fault("POL-10 a NaN loses its sign", "-DQUOTIENT_NAN(x)=QNAN", nans),
    Fault("POL-8 runs of 16", "-DRUN=16u", means),
    Fault("POL-14 no bias", "-DBIASED(code,bias)=(code)", boxes),
    Fault("POL-16 rows of a tile are exchanged with columns", "-DROWS_APART=1u", boxes),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_liar_is_noticed(session: qc.Session, fault: Fault) -> None:
    machine = replace(session.machine, options=(fault.option,), programs={})
    with pytest.raises(AssertionError):
        fault.check(qc.Session(machine))
