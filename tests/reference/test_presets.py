"""Presets: what stacks were seen to give, case by case, and the file that says so. Rule POL-19; facts: tests/cases."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
from quantspec.containers import Container
from quantspec.rows import read

F32 = npt.NDArray[np.float32]


def single(numbers: Any) -> F32:
    return np.array(numbers, np.float32)


def codes_of(numbers: list[int]) -> npt.NDArray[np.uint8]:
    return np.array(numbers, np.uint8)


FORMATS = json.loads((Path(__file__).parents[1] / "cases" / "formats.json").read_text("utf-8"))
NVFP4 = "e2m1.native.b16-ue4m3.t-f32"


def floats(*patterns: int) -> F32:
    return np.array(patterns, np.uint32).view(np.float32)


def by(preset: str, x: Any, scheme: str, **given: Any) -> qs.Quantized:
    row = qs.Preset.of(preset)
    return qs.quantize(np.asarray(x, np.float32), scheme, recipe=row.recipe, codec=row.codec, **given)


# ---------------------------------------------------------------- MX: which power of two

MODES = {"FLOOR": "ocp-mx", "CEIL": "ceil", "RCEIL": "rceil", "EVEN": "even", "CT_EVEN": "even1"}


@pytest.mark.parametrize("mode", MODES)
def test_the_scale_of_every_mode_in_the_table(mode: str) -> None:
    seen = 0
    for row in FORMATS["golden"]["e8m0_scale_by_mode"]["rows"]:
        x = floats(int(row["amax_f32_bits"], 16))
        if not np.isfinite(x).all():
            continue  # open in the standard, and answered by each stack on its own: below
        for value, modes in row.items():
            if value == "amax_f32_bits":
                continue
            q = qs.quantize(x, f"{value}.native.b32-ue8m0", recipe=MODES[mode])
            assert q.scale_codes is not None
            assert q.scale_codes.tolist() == [modes[mode]], (row["amax_f32_bits"], value)
            seen += 1
    assert seen > 60


#: recipe, value, amax, scale code: tables "corner rules", "who says what" 21 to 25, and the runs of the peers.
SCALES_OF_BLOCKS = [
    ("ocp-mx", "e2m1", 7.0, 0x7F),
    ("nvidia-mx", "e2m1", 7.0, 0x80),
    ("even", "e2m1", 7.0, 0x80),
    ("ceil", "e2m1", 7.0, 0x80),
    ("even", "e4m3", 1.8, 119),
    ("even1", "e4m3", 1.8, 120),
    ("ocp-mx", "e4m3", 1.8, 119),
    ("nvidia-mx", "e4m3", 1.8, 120),
    ("ocp-mx", "e2m1", np.nextafter(np.float32(1024), np.float32(0)), 127 + 7),
    ("fit", "e4m3", 464, 127),
    ("fit", "e4m3", 465, 128),
    ("rceil", "e4m3", floats(0x39E00001)[0], 0x6C),
    ("nvidia-mx", "e4m3", floats(0x39E00001)[0], 0x6C),
    ("ocp-mx", "e2m1", 0.0, 0),
    ("nvidia-mx", "e2m1", 0.0, 0),
    ("mlx-mx", "e2m1", 0.0, 0x7F),
    ("ggml-mxfp4", "e2m1", 0.0, 0),
    ("ocp-mx", "e2m1", np.inf, 0xFE),
    ("nvidia-mx", "e2m1", np.inf, 0xFE),
    ("even", "e2m1", np.inf, 0xFD),
    ("ceil", "e4m3", np.inf, 0xF7),
    ("rceil", "e2m1", np.inf, 0xFE),
    ("ocp-mx", "e2m1", np.nan, 0xFF),
    ("even", "e2m1", np.nan, 0xFF),
    ("nvidia-mx", "e2m1", np.nan, 0),
    ("rceil", "e4m3", floats(0x04600001)[0], 1),
    ("nvidia-mx", "e4m3", floats(0x04600001)[0], 0),
    ("gfloat-mx", "e2m1", floats(0x447FFFFB)[0], 127 + 8),
    ("gfloat-mx", "e2m1", floats(0x447FFFFA)[0], 127 + 7),
    ("gfloat-mx", "e2m1", np.inf, 0xFE),
    ("gfloat-mx", "e2m1", np.nan, 0xFF),
    ("gguf-mxfp4", "e2m1", np.nextafter(np.float32(1024), np.float32(0)), 127 + 8),
    ("gguf-mxfp4", "e2m1", np.inf, 0),
    ("torchao-rceil", "e4m3", floats(0x39E00001)[0], 0x6B),
    ("torchao-rceil", "e4m3", floats(0x39E0000B)[0], 0x6C),
    ("torchao-rceil", "e2m1", np.inf, 0xFE),
    ("torchao-floor", "e4m3", np.inf, 0xF7),
    ("torchao-even", "e2m1", 7.0, 0x80),
    ("torchao-ceil", "e2m1", 4.1, 0x80),
    ("jax-mxfp8", "e4m3", np.nan, 0),
    ("jax-mxfp8", "e4m3", np.inf, 0xFF),
    ("mlx-mxfp8", "e4m3", np.inf, 0x80),
    ("mlx-mxfp8", "e4m3", 0.0, 0x7F),
]


@pytest.mark.parametrize(
    ("recipe", "value", "amax", "code"),
    SCALES_OF_BLOCKS,
    ids=[f"{r}-{v}-{float(a)}" for r, v, a, _ in SCALES_OF_BLOCKS],
)
def test_the_scale_of_one_block(recipe: str, value: str, amax: float, code: int) -> None:
    x = np.zeros(32, np.float32)
    x[5] = amax
    q = qs.quantize(x, f"{value}.native.b32-ue8m0", recipe=recipe)
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == [code]


def test_blocks_that_floor_clips_and_up_does_not() -> None:
    assert by("ocp-mx", [7, 5, 0.3], "e2m1.native.b3-ue8m0").codes.tolist() == [7, 6, 1]
    assert qs.dequantize(by("nvidia-mx", [7, 5, 0.3], "e2m1.native.b3-ue8m0")).tolist() == [8.0, 4.0, 0.0]


def test_a_block_with_inf_or_nan() -> None:
    inf = by("ocp-mx", [np.inf, -1, 1], "e2m1.native.b3-ue8m0")
    assert inf.codes.tolist() == [7, 8, 0], "clamped, the others far below: as gfloat and torchao ran"
    nan = by("ocp-mx", [np.nan, 1], "e4m3.native.b2-ue8m0")
    assert nan.codes.tolist() == [0x7F, 0x7F]
    assert np.isnan(qs.dequantize(nan)).all()
    lost = by("nvidia-mx", [np.nan, 6], "e2m1.native.b2-ue8m0")
    assert (lost.scale_codes.tolist() if lost.scale_codes is not None else None, lost.codes.tolist()) == (
        [0x7F],
        [7, 7],
    )


# ---------------------------------------------------------------- NVFP4

#: preset: block scale of zeros beside 2688, codes; of 2688e-6 beside 2688; of 1e-12 * 2688
ZEROS = {
    "nvfp4-te": (0x00, 0),
    "nvfp4-torchao": (0x08, 0),
    "nvfp4-modelopt": (0x38, 0),
    "nvfp4-compressed-tensors": (0x20, 0),
    "mlx": (0x00, 0),
}
TINY = {
    "nvfp4-te": (0x00, 7),
    "nvfp4-torchao": (0x08, 0),
    "nvfp4-modelopt": (0x01, 3),
    "nvfp4-compressed-tensors": (0x20, 0),
    "mlx": (0x00, 0),
}


@pytest.mark.parametrize("preset", ZEROS)
def test_a_block_of_zeros_and_a_tiny_block(preset: str) -> None:
    x = np.zeros((3, 16), np.float32)
    x[0] = 2688
    x[2] = 2688e-6
    q = by(preset, x, NVFP4)
    assert q.scale_codes is not None
    assert q.scale_codes.ravel().tolist() == [0x7E, ZEROS[preset][0], TINY[preset][0]]
    assert q.codes[0].tolist() == [7] * 16
    assert [q.codes[1, 0], q.codes[2, 0]] == [ZEROS[preset][1], TINY[preset][1]]


STORED = {
    "nvfp4-te": 0x42280000,
    "mlx": 0x42280000,
    "nvfp4-torchao": 0x3C800000,
    "nvfp4-modelopt": 0x3C800000,
    "nvfp4-compressed-tensors": 0x42800000,
}


@pytest.mark.parametrize("preset", STORED)
def test_three_meanings_of_the_stored_tensor_scale(preset: str) -> None:
    """42 is 2688/64: A, A/2688 or 2688/A is stored, and each is read back by its own recipe."""
    x = np.linspace(-42, 42, 32, dtype=np.float32).reshape(2, 16)
    q = by(preset, x, NVFP4)
    assert q.tensor_scale_code is not None
    assert int(q.tensor_scale_code) == STORED[preset]
    y = qs.dequantize(q)
    assert float(np.abs(y - x).max()) <= 42 / 6
    wrong = qs.dequantize(replace(q, recipe=qs.CANONICAL))
    assert (y.tolist() == wrong.tolist()) == (STORED[preset] == 0x3C800000)


ALL_ZERO = {
    "nvfp4-te": 0x00,
    "nvfp4-torchao": 0x7F,
    "nvfp4-modelopt": 0x7F,
    "nvfp4-compressed-tensors": 0x20,
    "mlx": 0x7E,
}


@pytest.mark.parametrize("preset", ALL_ZERO)
def test_a_tensor_of_zeros(preset: str) -> None:
    q = by(preset, np.zeros(16), NVFP4)
    assert q.scale_codes is not None
    assert q.scale_codes.tolist() == [ALL_ZERO[preset]]
    lost = ALL_ZERO[preset] == 0x7F
    assert np.isnan(qs.dequantize(q)).all() == lost


def test_the_order_of_the_two_divisions_shows() -> None:
    """x 41000000 in a block of amax 43400000: one stack gives 0, the others 1 (peers, NVFP4 ties)."""
    found = set()
    for amax in np.float32(86016) / np.arange(72, 448, 8, dtype=np.float32):  # scales of 192 that ue4m3 nearly has
        x = np.zeros((2, 16), np.float32)
        x[0, 0], x[1, 0], x[1, 1] = amax, floats(0x43400000)[0], floats(0x41000000)[0]
        found.add(
            tuple(
                int(by(preset, x, NVFP4).codes[1, 1])
                for preset in ("nvfp4-modelopt", "nvfp4-compressed-tensors", "nvfp4-torchao")
            )
        )
    assert any(len(set(row)) > 1 for row in found)


def test_recipes_part_on_bfloat16_data_and_hardly_anywhere_else() -> None:
    x = (
        np.random.default_rng(5).standard_normal((64, 64)).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    ).view(np.float32)
    codes = {preset: by(preset, x, NVFP4) for preset in ZEROS}
    base = codes["nvfp4-modelopt"]
    for preset, q in codes.items():
        assert np.count_nonzero(q.codes & 7 != base.codes & 7) <= 0.02 * x.size, preset
    decoded = [qs.dequantize(q).view(np.uint32) for q in codes.values()]
    assert any((decoded[0] != other).any() for other in decoded[1:]), "the same codes read as other bits"


@pytest.mark.parametrize("stage", ["block", "element", "decode"])
@pytest.mark.parametrize("preset", ZEROS)
def test_a_liar_that_swaps_two_factors_or_changes_a_constant_is_noticed(preset: str, stage: str) -> None:
    """The first multiplication or division with its operands exchanged (a division) or taken from another name."""
    row = qs.Preset.of(preset)
    steps = list(row.recipe.steps(stage))
    place = next(i for i, step in enumerate(steps) if step.op in ("mul", "div"))
    step = steps[place]
    first, second = step.args
    steps[place] = replace(step, args=(second, first)) if step.op == "div" else replace(step, args=(first, "0x1.8p+0"))
    changed: dict[str, Any] = {stage: tuple(steps)}
    liar = replace(row.recipe, name="liar", **changed)
    x = np.random.default_rng(7).standard_normal((8, 32)).astype(np.float32)
    honest = by(preset, x, NVFP4)
    told = qs.quantize(x, NVFP4, recipe=liar, codec=row.codec)
    assert (qs.dequantize(told).view(np.uint32) != qs.dequantize(honest).view(np.uint32)).any()


# ---------------------------------------------------------------- Burn

#: value, alpha, x, then the codes by division with ties away, reciprocal with ties away, division with ties to even.
BURN = [
    ("q8f", 5, -5, -127, -128, -127), ("q8s", 18, 9, 63, 64, 63), ("q4s", 46, 23, 4, 3, 4), ("q2s", 82, 41, 1, 0, 0),
    ("q2f", 13, -13, -2, -1, -2), ("q2s", 2, 1, 1, 1, 0), ("q8f", 3, 1, 43, 43, 42), ("q4f", 3, 1, 3, 3, 2),
]  # fmt: skip


@pytest.mark.parametrize(("value", "alpha", "x", "away", "reciprocal", "even"), BURN)
def test_burn_by_back_end(value: str, alpha: int, x: int, away: int, reciprocal: int, even: int) -> None:
    for preset, code in (("burn-ndarray", away), ("burn-flex", reciprocal), ("burn-cube", even)):
        q = by(preset, [x, alpha], f"{value}.native.t-f32")
        assert int(q.codes.view(np.int8)[0]) == code, preset


def test_burn_on_zeros_infinities_and_nan() -> None:
    zeros = by("burn-ndarray", [0, 0], "q8s.native.t-f32")
    assert zeros.tensor_scale_code is not None
    assert int(zeros.tensor_scale_code) == 0
    tenth = qs.dequantize(replace(zeros, codes=codes_of([127, 0])))
    assert tenth.view(np.uint32).tolist()[0] == int(np.float32(12.7).view(np.uint32))
    for scheme, code in (
        ("q8s.native.t-f32", 0x00800000),
        ("q8s.native.t-ue4m3", 1),
        ("q8s.native.t-f16", 1),
        ("q8s.native.t-bf16", 0x0080),
    ):
        flex = by("burn-flex", [0, -0.0, np.nan], scheme)
        assert flex.tensor_scale_code is not None
        assert int(flex.tensor_scale_code) == code
        assert flex.codes.tolist() == [0, 0, 0]
    collapsed = by("burn-flex", [np.inf, 1, -1], "q8s.native.t-f32")
    assert collapsed.codes.tolist() == [127, 127, 0x81], "an infinite scale becomes 2^-126, and everything saturates"
    cube = by("burn-cube", [np.inf, 1, -1], "q8s.native.t-f32")
    assert cube.codes.tolist() == [127, 0, 0]
    with pytest.raises(qs.UnsupportedError, match=r"isnan\(q\)"):
        by("burn-ndarray", [np.inf, 1], "q8s.native.t-f32")
    assert by(
        "burn-cube", [0.3, 0.25, 2.4, 100, np.nan], "e2m1.native.t-f32", tensor_scale=np.float32(1)
    ).codes.tolist() == [1, 0, 4, 7, 0]


# ---------------------------------------------------------------- integers and tables


def test_ggml_scales_and_codes() -> None:
    x = np.arange(-16, 16, dtype=np.float32)
    eight = by("ggml-q8_0", x, "q8s.native.b32-f16")
    assert eight.scale_codes is not None
    assert eight.scale_codes.tolist() == [int(np.float16(np.float32(16) / np.float32(127)).view(np.uint16))]
    assert eight.codes.view(np.int8).tolist()[:3] == [-127, -119, -111]
    four = by("ggml-q4_0", x, "q4f.packed_native_0.b32-f16")
    assert four.scale_codes is not None
    assert four.scale_codes.tolist() == [0x4000], "-16 / -8"
    assert four.codes.view(np.int8).tolist()[:5] == [-8, -7, -7, -6, -6], "x/d + 8.5, cut"
    negative = by("ggml-q4_0", -x, "q4f.packed_native_0.b32-f16")
    assert negative.scale_codes is not None
    assert negative.scale_codes.tolist() == [0xC000], "the scale has the sign of the largest element, turned"


#: preset, scheme, x, scale codes, codes: measured by running the peers.
EDGES = [
    ("torchao-rceil", "e4m3.native.b32-ue8m0", [0x04000000], [0], [0]),  # 2^-119 by nothing: B13
    ("torchao-floor", "e4m3.native.b32-ue8m0", [0x04000000], [0], [0x70]),  # by 2^-126: B13
    ("torchao-floor", "e4m3.native.b32-ue8m0", [0x7FC00000, 0xBF800000], [0xFF], [0x7F, 0x80]),
    ("torchao-rceil", "e4m3.native.b32-ue8m0", [0xFFC00000, 0xBF800000], [0xFF], [0x7F, 0x7F]),
    ("gfloat-mx", "e5m2.native.b32-ue8m0", [0x7FC00000, 0x3F800000], [0xFF], [0xFF, 0xFF]),
    ("mlx-mxfp8", "e4m3.native.b32-ue8m0", [0x7FC00000, 0x3F800000], [0x80], [0x7E, 0x7E]),
    ("mlx-nvfp4", "e2m1.native.b16-ue4m3", [0x7FC00000, 0x3F800000], [0x7E], [0, 0]),
    ("jax-nvfp4", "e2m1.native.b16-ue4m3", [0x3DE3FFFF, 0x80000000], [0x0A], [0x07, 0x08]),
    ("gguf-q4_0", "q4f.packed_native_0.b32-f16", [0xC1000000, 0x7F800000], [0xFC00], [0, 0xF8]),
    ("compressed-tensors-int", "q8f.native.b32-f32", [0], [0x34000000], [0]),
]


@pytest.mark.parametrize(("preset", "scheme", "x", "scales", "expected"), EDGES)
def test_edges_as_the_peers_have_them(
    preset: str, scheme: str, x: list[int], scales: list[int], expected: list[int]
) -> None:
    block = np.zeros(16 if "b16" in scheme else 32, np.float32)
    block[: len(x)] = floats(*x)
    q = by(preset, block, scheme)
    assert q.scale_codes is not None
    assert (q.scale_codes.tolist(), q.codes.tolist()[: len(x)]) == (scales, expected)


def test_the_logarithm_of_numbers_next_to_every_power_of_two() -> None:
    """POL-20 against the logarithm itself: binary64's is exact enough where no number is nearer than 2^-30 to a tie."""
    powers = np.arange(1, 255, dtype=np.int64) << 23
    bits = (powers[:, np.newaxis] + np.arange(-100, 101)).reshape(-1)
    a = floats(*bits[bits > 0].tolist())
    x = np.zeros((len(a), 2), np.float32)
    x[:, 1] = a
    found = by("gfloat-mx", x, "e4m3.native.b2-ue8m0").scale_codes
    wanted = np.floor(np.log2(a.astype(np.float64)).astype(np.float32)).astype(np.int64) - 8
    assert found is not None
    assert np.array_equal(found.reshape(-1), np.clip(wanted, -127, 127) + 127)
    up = by("torchao-rceil", x, "e4m3.native.b2-ue8m0").scale_codes
    with np.errstate(divide="ignore"):
        ratio = np.log2((a / np.float32(448)).astype(np.float64)).astype(np.float32)
    assert up is not None
    assert np.array_equal(up.reshape(-1), np.clip(np.ceil(ratio), -127, 127).astype(np.int64) + 127)
    plain = by("ocp-mx", x, "e4m3.native.b2-ue8m0").scale_codes
    assert plain is not None
    assert 1000 < int(np.count_nonzero(plain != found)) < 20000, "the floor rule is another"


def test_onnx_and_bitnet_and_bitsandbytes() -> None:
    given = by("onnx-qdq", [0.05, 0.15, -0.25, np.nan, np.inf], "q8f.native.t-f32", tensor_scale=np.float32(0.1))
    assert given.codes.view(np.int8).tolist() == [0, 2, -2, -128, 127]
    bit = by("bitnet-absmean", [-0.9, -0.3, 0.0, 0.6], "q2s.native.t-f32")
    assert bit.codes.view(np.int8).tolist() == [-1, -1, 0, 1]
    assert bit.tensor_scale_code is not None
    assert qs.dequantize(bit)[3] == np.float32(1) / qs.decode_scale(bit.tensor_scale_code, "f32")
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    nf4 = by("bnb-nf4", x, "q4f.packed_native_0.lut-nf4.b64-f32")
    assert nf4.scale_codes is not None
    assert nf4.scale_codes.tolist() == [0x3F800000]
    assert (nf4.codes[0], nf4.codes[-1]) == (0, 15)
    assert qs.to_bytes(nf4, container="high-nibble")[0] == (nf4.codes[0] << 4) | nf4.codes[1]
    table = qs.Preset.of("bnb-fp4").table
    scheme = qs.Scheme("q4f", "packed_native_0", mode="lookup", block=((64,), "f32"), table=table)
    assert qs.Preset.of("bnb-fp4").covers(scheme)
    fp4 = qs.quantize(x, scheme, recipe="bnb-4bit", codec="bnb-fp4")
    assert (fp4.codes[0], fp4.codes[-1]) == (11, 3)


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize("name", qs.PRESETS)
def test_every_preset_quantizes_a_scheme_that_it_covers_and_reads_it_back(name: str) -> None:
    row = qs.Preset.of(name)
    assert qs.Preset.of(row.id) is row
    pattern = row.schemes[0]
    text = {"*": "e4m3.native.t-f32", "q*": "q8s.native.t-f32"}.get(pattern, pattern.replace("b*", "b64"))
    text = text.replace(".*.", ".packed_native_0." if "128x4" not in row.container.name else ".native.")
    if "lut-*" in text:
        scheme = qs.Scheme("q4f", "packed_native_0", mode="lookup", block=((64,), "f32"), table=row.table)
    else:
        scheme = qs.Scheme.parse(text)
    assert row.require(scheme) == scheme
    x = np.random.default_rng(4).standard_normal((4, 64)).astype(np.float32)
    given = {"tensor_scale": np.float32(0.5)} if row.recipe.given_only else {}
    q = qs.quantize(x, scheme, recipe=row.recipe, codec=row.codec, **given)
    data = qs.to_bytes(q, container=row.container)
    back = qs.split(data, scheme, q.shape, recipe=row.recipe, codec=row.codec, container=row.container)
    assert back == q
    y = qs.dequantize(back)
    assert np.isfinite(y).all()
    assert float(np.abs(y - x).mean()) < 0.9


def test_names_and_versions() -> None:
    assert qs.Preset.of("nvfp4-torchao@0.18.0").recipe.name == "nvfp4-torchao"
    for wrong, message in (
        ("nvfp4", "not defined; defined: canonical, ocp-mx"),
        ("nvfp4-te@1", "the version defined is nvfp4-te@d0067d0"),
        (None, "None"),
    ):
        with pytest.raises(qs.UnsupportedError, match=message) as error:
            qs.Preset.of(wrong)  # type: ignore[arg-type]
        assert error.value.rule == "POL-19"
    with pytest.raises(qs.UnsupportedError, match="covers e2m1"):
        qs.Preset.of("nvfp4-te").require("q8s.native.t-f32")


@pytest.mark.parametrize(
    ("of", "wrong", "hint"),
    [
        (qs.Recipe.of, "ocp_mx", " (near: ocp-mx)"),
        (qs.Recipe.of, "ocp-mx@1.0", " (ocp-mx is a preset; its recipe: ocp-mx)"),
        (
            qs.Recipe.of,
            "compressed-tensors-mx",
            " (compressed-tensors-mx is a preset; its recipe: mx-compressed-tensors)",
        ),
        (qs.Codec.of, "ptxx", " (near: ptx)"),
        (qs.Codec.of, "mlx", " (mlx is a preset; its codec: mlx-fp4)"),
        (qs.Codec.of, "entirely different", ""),
        (Container.of, "mlx", " (mlx is a preset; its container: mlx-u32)"),
        (Container.of, "high_nibble", " (near: high-nibble)"),
        (qs.Preset.of, "torchao-cel", " (near: torchao-ceil)"),
        (qs.Preset.of, None, ""),
    ],
)
def test_a_misspelt_name_gets_the_one_that_was_meant(of: Callable[[Any], object], wrong: object, hint: str) -> None:
    with pytest.raises(qs.UnsupportedError, match="is not defined; defined: canonical, ") as error:
        of(wrong)
    listed, _, _ = error.value.message.partition(" (")
    assert error.value.message == listed + hint


RECIPE = """
[[recipe]]
name = "mine"
amax = "finite"
single = ["scale = up[T](a)"]
element = ["q = div(x, s)"]
decode = ["y = mul(s, v)"]
"""
PRESET = """
[[preset]]
name = "mine"
version = "1"
recipe = "mine"
codec = "canonical"
container = "canonical"
schemes = ["*"]
stack = "mine"
source = "here"
evidence = "defined"
"""


def test_a_file_of_your_own() -> None:
    found = qs.read_presets(RECIPE + PRESET)
    assert list(found) == ["mine"]
    assert qs.quantize(single([3]), "q4s.native.t-f16", recipe=found["mine"].recipe).codes.tolist() == [1]


HOSTILE = {
    "not-toml": ("recipe = [", "not TOML"),
    "table": ("[tool]\nx = 1", "table 'tool'"),
    "not-an-array": ("[recipe]\nname = 'x'", "table 'recipe'"),
    "not-a-row": ("recipe = [1]", "allowed: a table"),
    "no-name": ("[[codec]]\nrounding = 'even'", "name=None"),
    "name": ("[[codec]]\nname = '../x'", "lower-case words"),
    "member": (RECIPE + "exec = 'rm'", r"recipe 'mine': members=\['exec'\]"),
    "codec-member": ("[[codec]]\nname = 'x'\nrounding = 'up'", "rounding='up'; allowed: even"),
    "codec-threshold": (
        "[[codec]]\nname = 'x'\nrounding = 'thresholds'\nthresholds = ['1.5']\norder = [0, 1]",
        "hexadecimal",
    ),
    "container-member": ("[[container]]\nname = 'x'\nfields = [0, 2]", "each place once"),
    "wrong-kind": (RECIPE.replace('"finite"', "3"), "amax=3"),
    "amax": (RECIPE.replace('"finite"', '"largest"'), "amax='largest'; allowed: finite"),
    "steps-no-list": (RECIPE.replace('["q = div(x, s)"]', '"q = div(x, s)"'), "a list of texts"),
    "step": (RECIPE.replace("div(x, s)", "pow(x, s)"), "no operation 'pow'"),
    "no-decode": (RECIPE.replace('decode = ["y = mul(s, v)"]', ""), "steps of both"),
    "shipped-name": (RECIPE.replace('"mine"', '"canonical"'), "recipe 'canonical' stands twice"),
    "unknown-recipe": (PRESET, "recipe='mine'; allowed: canonical"),
    "no-schemes": (RECIPE + PRESET.replace('["*"]', "[]"), "patterns of schemes"),
    "evidence": (
        RECIPE + PRESET.replace('"defined"', '"rumour"'),
        "evidence='rumour'; allowed: defined, measured, read",
    ),
    "twice": (RECIPE + PRESET + PRESET, "preset 'mine' stands twice"),
    "flag": (RECIPE + "whole_blocks = 1", "whole_blocks=1; allowed: true, false"),
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_file_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(qs.UnsupportedError, match=message):
        qs.read_presets(text)


def test_the_shipped_file_uses_every_codec_container_and_recipe_or_says_it_for_users() -> None:
    assert set(read((Path(qs.__file__).parent / "presets.toml").read_text("utf-8"))) == {
        "codec",
        "container",
        "recipe",
        "preset",
    }
    unused = set(qs.RECIPES) - {row.recipe.name for row in qs.PRESETS.values()}
    assert unused == {"ceil", "rceil", "even1"}, "kept for the rules that torchao and mlx offer by these names"


def test_the_steps_of_the_canonical_row_saturate_in_f32_as_the_rules_do() -> None:
    """H below 1 takes the raw scale beyond binary32. Rule SCL-8."""
    scheme = qs.Scheme("q2s", "native", tensor="f32", mode="lookup", table=qs.Table.of([0.5, -0.25, 0, 0.125]))
    steps = replace(qs.Recipe.of("canonical"), name="mine")
    x = np.array([3.4028235e38, 1], np.float32)
    by_rules, by_steps = qs.quantize(x, scheme), qs.quantize(x, scheme, recipe=steps)
    assert by_rules.tensor_scale_code is not None and by_steps.tensor_scale_code is not None
    assert int(by_rules.tensor_scale_code) == int(by_steps.tensor_scale_code) == 0x7F7FFFFF
    assert by_rules.codes.tolist() == by_steps.codes.tolist()
