"""Whose bits came: each liar's wrong step, preset, codec or container is named, where every bit agrees and nowhere else."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

import quantspec as qs
from quantspec.interpreter import run
from quantspec.rounding import widen
from quantspec_conformance.cli import main
from quantspec_conformance.implementations.law import Told, tell
from quantspec_conformance.protocol.messages import Ok
from quantspec_conformance.steptrace import following
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.triage.block import FailureBlock, block_record, failure_json

from ..fakes import HighNibbleFirst, TiesToZero
from .test_triage import ADDRESS, SEEDED, changed, made, old, quarters

RNG = np.random.default_rng(7)
X = np.concatenate([RNG.normal(size=(4, 64)), np.zeros((1, 64))]).astype(np.float32)
X[3] *= np.float32(1e-38)
NAN = np.where(np.arange(64) == 40, np.float32(np.nan), X[:1])


def policies(scheme: str, recipe: str, codec: str = "canonical") -> dict[str, str]:
    return {"scheme": scheme, "recipe": recipe, "codec": codec}


def stage(case: Case, name: str) -> dict[str, npt.NDArray[np.float32]]:
    """The numbers of a stage that chooses a scale, as the law has them."""
    x, recipe = case.inputs["x"].array(), qs.Recipe.of(case.words["recipe"])
    with np.errstate(all="ignore"):
        own = following(qs.quantize(x, case.words["scheme"], recipe=recipe), widen(x))
        own_type = None if own.scheme.block is None else own.scheme.block.scale
        names = {each: number for each, number in own.names.items() if each in ("A", "a", "g")}
        found = run(recipe.steps(name), names, own.facts, own_type).names
    return {each: np.asarray(number, np.float32) for each, number in found.items()}


def told(case: Case) -> Told:
    return tell(case.request)


def right(case: Case) -> Ok:
    answer = told(case).answer
    assert isinstance(answer, Ok)
    return answer


def under(case: Case, **words: str) -> Ok:
    """What the law answers under other policies."""
    return right(replace(case, words={**case.words, **words}))


def floored(case: Case, raw: str, scale: str) -> Ok:
    """Block scales cut off: the largest not above."""
    numbers = qs.decode_scale(np.arange(0x7F if scale == "ue4m3" else 0xFF, dtype=np.uint8), scale)
    codes = np.maximum(np.searchsorted(numbers, stage(case, "single")[raw], "right") - 1, 0)
    return changed(right(case), "scale_codes", lambda _: codes)


def rounded(case: Case, name: str, step: str, how: str) -> Ok:
    codes = qs.encode_scale(stage(case, name)[step], "ue4m3", how)  # type: ignore[arg-type]
    return changed(right(case), "scale_codes", lambda _: codes)


NVFP4 = "e2m1.native.b16-ue4m3.t-f32"
MX = "e2m1.native.b32-ue8m0"
CUBE = made("quantize", policies("q4s.native.b32-ue8m0", "burn-cube", "burn-cube"), x=X[:3])
NEAREST = made("quantize", policies("e2m1.native.b16-ue4m3", "jax-nvfp4"), x=X)
TORCHAO = made("quantize", policies(NVFP4, "nvfp4-torchao"), x=X)
FLEX = made(
    "quantize", policies("q8f.native.b32-f32", "burn-flex", "burn-cpu"), x=RNG.normal(size=(8, 64)).astype(np.float32)
)
NVIDIA = made("quantize", policies(MX, "nvidia-mx", "ptx"), x=X)
OCP = made("quantize", policies(MX, "ocp-mx"), x=NAN)
TE = made("quantize", policies(NVFP4, "nvfp4-te", "ptx"), x=X)
_ANSWER = right(TE).tensors
READ = made("dequantize", policies(NVFP4, "nvfp4-te"), **{name: part.array() for name, part in _ANSWER.items()})
TIES = made("quantize", policies(MX, "ocp-mx"), x=quarters((8, 64)))
#: Liar -> the case, its answer, the part, the stage that it leaves, what has its bits.
LIARS: dict[str, tuple[Case, Callable[[], Ok], str, str, str]] = {
    "floors where the recipe rounds up": (
        CUBE, lambda: floored(CUBE, "raw", "ue8m0"), "scale_codes", "single",
        "`raw` cut off to ue8m0 in place of `scale = up[T](raw)` gives all ",
    ),
    "rounds up where the recipe takes the nearest": (
        NEAREST, lambda: rounded(NEAREST, "single", "ratio", "up"), "scale_codes", "single",
        "`scale = up[T](ratio)` in place of `scale = rne[T](ratio)` gives ",
    ),
    "leaves a limit out": (
        TORCHAO, lambda: rounded(TORCHAO, "block", "ratio", "nearest"), "scale_codes", "block",
        "`above` = `ratio` in place of `above = max(ratio, 0x1p-6)` gives ",
    ),
    "divides where the recipe multiplies by the reciprocal": (
        FLEX, lambda: under(FLEX, recipe="burn-ndarray"), "codes", "element",
        "`q = div(x, s)` in place of `q = mul(x, inverse)` gives ",
    ),
    "skips a NaN": (
        OCP, lambda: changed(right(OCP), "scale_codes", lambda codes: np.where(codes == 0xFF, skipped(), codes)),
        "scale_codes", "single", "`amax ignore-nan` in place of `amax all` gives the entry that differs and leaves the rest",
    ),
    "has the floor rule": (
        NVIDIA, lambda: under(NVIDIA, recipe="ocp-mx"), "scale_codes", "single",
        "presets ocp-mx, gfloat-mx, in the whole answer",
    ),
    "reads the tensor scale as a multiplier": (
        READ, lambda: under(READ, recipe="nvfp4-torchao"), "y", "decode", "nvfp4-torchao, ",
    ),
    "has another rule for ties": (
        TIES, lambda: under(TIES, codec="ties-away"), "codes", "element", "codecs ties-away, burn-cpu, in the whole answer",
    ),
}  # fmt: skip


def skipped() -> int:
    """The scale code that the block with the NaN has without it."""
    clean = replace(OCP, inputs={"x": made("quantize", OCP.words, x=np.nan_to_num(NAN, nan=0.0)).inputs["x"]})
    return int(right(clean).tensors["scale_codes"].array()[0, 1])


def block(case: Case, answer: Ok) -> FailureBlock:
    result = judge(case, answer)
    assert result.outcome == "fail"
    return block_record(case, result, ADDRESS)


def said(found: FailureBlock) -> tuple[str, ...]:
    """Everything that a block says of whose bits came."""
    return (*found.alike, *(() if found.followed is None else found.followed.suspects))


@pytest.mark.parametrize("name", LIARS)
def test_a_liars_wrong_step_is_on_its_block(name: str) -> None:
    case, lie, part, where, alike = LIARS[name]
    found = block(case, lie())
    text = found.text()
    assert found.part == part
    assert any(alike in line for line in said(found)), said(found)
    assert found.followed is not None and found.followed.steps is not None
    last = found.followed.steps.stages[-1]
    assert last.name == where
    recipe = qs.Recipe.of(case.words["recipe"])
    assert [(step.text, step.rule) for step in last.steps] == [(step.text, step.rule) for step in recipe.steps(where)]
    for step in recipe.steps(where):
        assert any(f" {step.text} " in line and line.endswith(f"  {step.rule}") for line in text.splitlines())
    label = ""
    for line in text.splitlines():
        label = line[1:10].strip() or label
        assert label in ("IL", "also", "expected", "actual", "repro", "pattern", "scale") or len(line) <= 100, line


@pytest.mark.parametrize("name", LIARS)
def test_a_wrong_bit_under_a_recipe_names_a_rule_of_the_recipe(name: str) -> None:
    """Not SCL-8, QNT-5 or QNT-9, the rules of canonical results, which have no say here."""
    case, lie, _, where, _ = LIARS[name]
    result = judge(case, lie())
    assert result.rule in {"VAL-7", *(step.rule for step in qs.Recipe.of(case.words["recipe"]).steps(where))}
    assert {result.rule} <= set(result.rules)
    assert not {"SCL-8", "QNT-5", "QNT-9"} & set(result.rules)


@pytest.mark.parametrize("name", LIARS)
def test_what_a_block_says_of_presets_is_true(name: str) -> None:
    """Each preset that is named gives the part that came, and in the whole answer means all of it."""
    case, lie, part, _, _ = LIARS[name]
    answer = lie()
    for line in block(case, answer).alike:
        kind, _, rest = line.partition(" ")
        if not kind.startswith("preset"):
            continue
        names, _, far = rest.rpartition(", in ")
        for preset in names.partition(" and ")[0].split(", "):
            row = qs.Preset.of(preset)
            other = under(case, recipe=row.recipe.name, codec=row.codec.name)
            assert other.tensors[part] == answer.tensors[part]
            assert far != "the whole answer" or other.tensors == answer.tensors


def with_scales(answer: Ok, codes: npt.NDArray[np.int64]) -> Ok:
    return changed(answer, "scale_codes", lambda _: codes)


def at(place: int, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return np.asarray(np.arange(codes.size).reshape(codes.shape) == place % codes.size)


def test_bits_of_nobody_are_said_to_be_nobodys() -> None:
    """One entry otherwise, and nothing has the bits any more: there is no nearest."""
    floor = under(NVIDIA, recipe="ocp-mx")
    assert block(NVIDIA, floor).alike
    codes = floor.tensors["scale_codes"].array()
    for place in range(3):
        moved = np.where(at(place, codes), codes - 9, codes)
        assert said(block(NVIDIA, with_scales(floor, moved))) == ()


def test_where_not_all_is_known_the_line_says_so() -> None:
    """A result keeps eight entries; the count of all of them must agree too."""
    x = np.random.default_rng(3).normal(size=(20, 64)).astype(np.float32)
    case = made("quantize", policies("e2m1.native.b16-ue4m3", "jax-nvfp4"), x=x)
    wrong = rounded(case, "single", "ratio", "up")
    found = block(case, wrong)
    assert found.count > 8
    assert any(
        line.endswith(f"gives the first 8 entries that differ, and {found.count} in all") for line in said(found)
    )
    assert any(
        f"in the first 8 wrong entries of scale_codes, and {found.count} are wrong there too" in line
        for line in said(found)
    )
    right_ones = np.flatnonzero(right(case).tensors["scale_codes"].array() == wrong.tensors["scale_codes"].array())
    more = changed(wrong, "scale_codes", lambda codes: np.where(at(int(right_ones[-1]), codes), codes - 9, codes))
    assert block(case, more).count == found.count + 1
    assert said(block(case, more)) == ()


def test_canonical_cases_codecs_and_containers_too() -> None:
    ties = SEEDED["ties-to-zero"].case
    answer = old(TiesToZero()).handle(ties.request)
    assert isinstance(answer, Ok)
    found = block(ties, answer)
    assert any("ties-toward-zero" in line for line in found.alike)
    assert found.followed is None
    x = np.array([0.25, 0.75, 2.5], np.float32)
    coded = made("encode", {"value": "e2m1", "codec": "ptx"}, x=x)
    assert " bits of   codecs ties-away, " in block(coded, under(coded, codec="ties-away")).text()
    words = {"scheme": "e2m1.packed_native_0.b16-ue8m0", "container": "ggml-blocks"}
    codes = RNG.integers(0, 16, (5, 32)).astype(np.uint8)
    case = made("pack", words, codes=codes, scale_codes=np.full((5, 2), 127, np.uint8))
    assert " bits of   containers canonical, " in block(case, under(case, container="canonical")).text()
    plain = SEEDED["nibble-order"].case
    answer = old(HighNibbleFirst()).handle(plain.request)
    assert isinstance(answer, Ok)
    assert any("high-nibble" in line for line in block(plain, answer).alike)
    assert failure_json(plain, judge(plain, answer), ADDRESS)["alike"] == list(block(plain, answer).alike)


# ---------------------------------------------------------------- names on the command line


def explained(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["explain", *arguments])
    return result.exit_code, result.output


def test_explain_takes_presets_and_given_scales() -> None:
    code, text = explained("q8f.native.b32-f32", "3.5,1", "--recipe", "onnx-qdq", "--scale", "0.5")
    assert code == 0
    assert any(line.split() == ["q", "=", "div(x,", "s)", "0x40E00000", "+7", "POL-6"] for line in text.splitlines())
    assert "single" not in text.partition("rules,")[0]
    code, text = explained("e2m1.native.b16-ue4m3.t-f32", "0.3,1.75,-6", "--preset", "nvfp4-te", "--tensor-scale", "7")
    assert code == 0
    assert (
        "codec      ptx: nan positive" in text and "\ntensor " not in text.partition("\n\n")[2].partition("rules,")[0]
    )
    assert any(
        line.split() == ["block", "a:", "amax", "of", "the", "block", "0x40C00000", "+6", "POL-8"]
        for line in text.splitlines()
    )
    assert explained("q4f.packed_native_0.lut-nf4.b64-f32", "1", "--preset", "bnb-nf4")[0] == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("7", "--recipe", "ocp_mxx"), "--recipe 'ocp_mxx' is none; near: ocp-mx"),
        (("7", "--recipe", "ocp_mxx"), "all of them: quantspec presets, spec/10-policies.md"),
        (("7", "--preset", "nvfp4"), "near: nvfp4-te, "),
        (
            ("7", "--recipe", "compressed-tensors-mx"),
            "is a preset: --preset compressed-tensors-mx, or its recipe: --recipe mx-comp",
        ),
        (("7", "--recipe", "ptx"), "it is a codec: --codec ptx"),
        (("7", "--preset", "nvfp4-te@3"), "the version defined is nvfp4-te@d0067d0"),
        (("7", "--preset", "bnb-nf4"), "the preset covers q4f"),
        (("7", "--recipe", "ggml-q8_0"), "the recipe covers values q8f, q8s"),
        (("7", "--recipe", "onnx-qdq"), "chooses no scales; missing: --scale VALUE [POL-10]"),
        (("7", "--recipe", "ocp-mx", "--tensor-scale", "2"), "has no such level; allowed: --scale"),
        (("7", "--scale", "2"), "go with --recipe, --codec or --preset"),
    ],
)
def test_what_explain_does_not_take_is_said(words: tuple[str, ...], expected: str) -> None:
    code, text = explained("e2m1.native.b2-ue8m0", *words)
    assert code == 2
    assert expected in text


def presets(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["presets", *arguments])
    assert result.exit_code == 0
    return result.output


def test_presets_lists_every_name_and_shows_each() -> None:
    listed = presets()
    assert max(map(len, listed.splitlines())) <= 100
    names = {word.strip(",") for word in listed.split()}
    for rows in (qs.PRESETS, qs.RECIPES, qs.CODECS, qs.CONTAINERS):
        assert set(rows) <= names
    for name in (*qs.PRESETS, *qs.RECIPES, *qs.CODECS, *qs.CONTAINERS):
        assert name in presets(name)
    assert "           block    block_scale = rne[T](ratio)" in presets("nvfp4-te")
    wrong = CliRunner().invoke(main, ["presets", "mxlx"])
    assert wrong.exit_code == 2
    assert "near: mlx" in wrong.output
