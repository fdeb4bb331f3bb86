"""Recipes: the canonical row against the hand-written rules, the language, what is refused. Rules POL-1, POL-5 to POL-10."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
from quantspec.choice import given_scales
from quantspec.following import Following
from quantspec.interpreter import Facts, power_of_two, run
from quantspec.quantize import effective_scale
from quantspec.rounding import to_bits, widen
from quantspec.steps import OPERATIONS, program
from quantspec.values import encode_bits

F32 = npt.NDArray[np.float32]


def single(numbers: Any) -> F32:
    return np.array(numbers, np.float32)


VALUES = ("q8f", "q8s", "q4f", "q2s", "e4m3", "e5m2", "e2m1", "e3m2", "e2m3")
TYPES = ("f32", "f16", "bf16", "ue8m0", "ue4m3")
LEVELS = [
    *(f".t-{tensor}" for tensor in TYPES),
    *(f".b{extents}-{block}" for extents, block in itertools.product(("4", "2x3"), TYPES)),
    *(f".b4-{block}.t-{tensor}" for block, tensor in itertools.product(TYPES, TYPES)),
]


def floats(*patterns: int) -> F32:
    return np.array(patterns, np.uint32).view(np.float32)


def data() -> Iterator[tuple[str, F32]]:
    """Families in which a step that is left out shows: specials, subnormals, the top, zeros, ties, anything."""
    random = np.random.default_rng(6)
    yield "normal", random.standard_normal((6, 10)).astype(np.float32)
    yield "patterns", random.integers(0, 2**32, (6, 10), np.uint32).view(np.float32)
    tiny = random.integers(0, 0x100, (6, 10)).astype(np.uint32)
    yield (
        "subnormal",
        (tiny | np.where(random.random((6, 10)) < 0.5, np.uint32(1 << 31), np.uint32(0))).view(np.float32),
    )
    yield "top", (np.uint32(0x7F7FFFFF) - random.integers(0, 3, (6, 10)).astype(np.uint32)).view(np.float32)
    yield "zeros", np.where(random.random((6, 10)) < 0.5, np.float32(0), np.float32(-0.0)).astype(np.float32)
    yield "ties", (random.integers(-30, 31, (6, 10)) / 4).astype(np.float32)
    yield (
        "infinities",
        np.where(random.random((6, 10)) < 0.7, np.float32(-np.inf), np.float32(np.nan)).astype(np.float32),
    )
    yield "empty", np.zeros((0, 10), np.float32)


def followed(x: F32, scheme: qs.Scheme, recipe: qs.Recipe, tensor_scale: F32 | None = None) -> qs.Quantized:
    """quantize by the steps of a recipe's row, the canonical one too."""
    bits = widen(x)
    own = Following.of(scheme, recipe, x.shape)
    given = given_scales("tensor_scale", tensor_scale, "tensor_scale_code", None, scheme.tensor, scheme)
    block, tensor = own.choose(bits, None, given)
    codes_of_blocks, code_of_tensor = (None if level is None else level.codes for level in (block, tensor))
    own.stored(codes_of_blocks, code_of_tensor, effective_scale(scheme, codes_of_blocks, code_of_tensor))

    def spread(scale: F32) -> F32:
        if scale.shape == () or scheme.block is None:
            return scale
        return qs.blocks.spread(scale, x.shape, scheme.extents(x.ndim))

    codes = encode_bits(own.quotient(bits, spread), scheme.value, scheme.table)
    return qs.Quantized(scheme, codes, codes_of_blocks, code_of_tensor)


def dequantized(q: qs.Quantized, recipe: qs.Recipe) -> F32:
    own = Following.of(q.scheme, recipe, q.shape)
    own.stored(q.scale_codes, q.tensor_scale_code, effective_scale(q.scheme, q.scale_codes, q.tensor_scale_code))

    def spread(scale: F32) -> F32:
        if scale.shape == () or q.scheme.block is None:
            return scale
        return qs.blocks.spread(scale, q.shape, q.scheme.extents(len(q.shape)))

    return own.numbers(qs.decode(q.codes, q.scheme.value, table=q.scheme.table), spread)


@pytest.mark.parametrize("value", VALUES)
def test_the_canonical_row_gives_the_bits_of_the_rules(value: str) -> None:
    for levels, (family, x) in itertools.product(LEVELS, data()):
        scheme = qs.Scheme.parse(f"{value}.native{levels}")
        expected = qs.quantize(x, scheme)
        found = followed(x, scheme, qs.CANONICAL)
        assert found == expected, (scheme.text, family)
        y = qs.dequantize(expected)
        assert to_bits(dequantized(expected, qs.CANONICAL)).tolist() == to_bits(y).tolist(), (scheme.text, family)


def test_the_canonical_row_gives_the_bits_of_the_rules_for_tables() -> None:
    for levels, (family, x) in itertools.product(LEVELS, data()):
        scheme = qs.Scheme.parse(f"q4f.native.lut-nf4{levels}")
        assert followed(x, scheme, qs.CANONICAL) == qs.quantize(x, scheme), (scheme.text, family)


STEPS = [
    (stage, number)
    for stage in ("single", "tensor", "block", "element")
    for number in range(len(getattr(qs.CANONICAL, stage)))
]


@pytest.mark.parametrize(("stage", "number"), STEPS, ids=[f"{stage}-{number}" for stage, number in STEPS])
def test_a_liar_with_another_constant_or_operation_is_noticed(stage: str, number: int) -> None:
    """Each step in turn is given another operation of its kind, or another constant; some tensor then has other bits."""
    steps = list(qs.CANONICAL.steps(stage))
    step = steps[number]
    other = {"div": "mul", "mul": "add", "min": "max", "max": "min", "eq0": "gt0", "gt0": "isnan"}.get(step.op)
    if other is not None:
        steps[number] = replace(step, op=other)
    elif step.op == "sel":
        steps[number] = replace(step, args=(step.args[0], step.args[2], step.args[1]))
    else:
        steps[number] = replace(step, op="rne")
    changed: dict[str, Any] = {stage: tuple(steps)}
    liar = replace(qs.CANONICAL, name="liar", **changed)
    levels = {"single": (".t-ue4m3", ".b4-f16"), "element": (".b4-f32",)}.get(
        stage, (".b4-ue4m3.t-f16", ".b4-f32.t-f32")
    )
    given = [None] if stage != "block" else [None, floats(1), floats(0x7F000000)]
    for text, (_, x), g in itertools.product(levels, data(), given):
        for value in ("e4m3", "q2s"):
            scheme = qs.Scheme.parse(f"{value}.native{text}")
            try:
                if g is not None and scheme.tensor != qs.SCALES["f32"]:
                    continue
                if followed(x, scheme, liar, g) != qs.quantize(x, scheme, tensor_scale=g):
                    return
            except qs.UnsupportedError:
                return  # a scale that its type lacks
    pytest.fail(f"{step.text} may be {steps[number].text} without a change")


# ---------------------------------------------------------------- the language

FACTS = Facts(qs.VALUES["e2m1"].half_range, qs.VALUES["e2m1"].half_range, qs.VALUES["e2m1"], 448.0)
NAN, INF = 0x7FC00000, 0x7F800000
ONE, TWO, ZERO, MINUS_ZERO = 0x3F800000, 0x40000000, 0, 0x80000000
STEP_CASES = [
    ("mul(a, H)", [ONE], [0x40C00000]),
    ("div(a, 0x0p+0)", [ONE, MINUS_ZERO], [INF, NAN]),
    ("sub(a, 0x1p+0)", [ONE], [ZERO]),
    ("add(a, 0x1p-149)", [1], [2]),
    ("min(a, 0x1p+0)", [NAN, TWO, MINUS_ZERO], [NAN, ONE, MINUS_ZERO]),
    ("fmin(a, 0x1p+0)", [NAN, TWO], [ONE, ONE]),
    ("max(a, 0x0p+0)", [MINUS_ZERO, NAN], [ZERO, NAN]),
    ("fmax(a, 0x0p+0)", [MINUS_ZERO, 0xFFC00001], [ZERO, ZERO]),
    ("abs(a)", [0xBF800000, 0xFFC00000], [ONE, NAN]),
    ("neg(a)", [ONE, ZERO, NAN], [0xBF800000, MINUS_ZERO, NAN]),
    ("up[ue4m3](a)", [0x3F800001, 0x43E00001, NAN, INF], [0x3F900000, 0x43E00000, NAN, 0x43E00000]),
    (
        "rne[ue4m3](a)",
        [0x3F880000, 0x3F980000, 0x43F80000, MINUS_ZERO, 0x80000001, 0xBF800000],
        [ONE, 0x3FA00000, 0x43E00000, ZERO, ZERO, 0xBF800000],
    ),
    ("up[f32](a)", [INF, 0x3F800001], [INF, 0x3F800001]),
    (
        "up[ue8m0](a)",
        [ZERO, 0x3F800001, INF, MINUS_ZERO, 0x80000001, 0xBF800001],
        [0x00400000, TWO, 0x7F000000, 0x00400000, 0x80400000, 0xC0000000],
    ),
    ("rne[ue8m0](a)", [MINUS_ZERO, 0x80000001, 0xBF800001], [0x00400000, 0x80400000, 0xBF800000]),
    ("up[f16](a)", [MINUS_ZERO, 0x80000001], [MINUS_ZERO, 0xB3800000]),
    ("narrow[f16](a)", [0x3F801000, 0x477FF000], [ONE, INF]),
    ("narrow[bf16](a)", [0x3F808000, 0x3F818000], [ONE, 0x3F820000]),
    ("pow2[floor](a)", [0x40E00000, ZERO, INF, NAN], [ONE, 0x00400000, 0x7E800000, NAN]),
    ("pow2[rceil](a)", [0x40E00000, 0x40C00000, INF], [TWO, ONE, 0x7F000000]),
    (
        "pow2[logfloor](a)",
        [0x447FFFFB, 0x447FFFFA, ZERO, INF, NAN],
        [0x43800000, 0x43000000, 0x00400000, 0x7F000000, NAN],
    ),
    ("pow2[logceil](a)", [0x40C00000, 0x40C00001, ZERO, INF, NAN], [ONE, TWO, 0x00400000, 0x7F000000, NAN]),
]


@pytest.mark.parametrize(("step", "given", "expected"), STEP_CASES, ids=[case[0] for case in STEP_CASES])
def test_one_step(step: str, given: list[int], expected: list[int]) -> None:
    ran = run(program([f"scale = {step}"]), {"a": floats(*given)}, FACTS)
    assert to_bits(np.asarray(ran.result)).tolist() == expected


def test_every_operation_has_a_case() -> None:
    shown = {case[0].split("(")[0].split("[")[0] for case in STEP_CASES} | {"sel", "eq0", "isnan", "isfinite", "gt0"}
    assert shown == set(OPERATIONS)


def test_conditions_choose() -> None:
    for name, expected in (
        ("eq0", [1, 1, 0, 0, 0, 0]),
        ("isnan", [0, 0, 0, 0, 0, 1]),
        ("isfinite", [1, 1, 1, 1, 0, 0]),
        ("gt0", [0, 0, 1, 0, 1, 0]),
    ):
        ran = run(
            program([f"c = {name}(a)", "scale = sel(c, 0x1p+0, 0x0p+0)"]),
            {"a": floats(ZERO, MINUS_ZERO, 1, 0xBF800000, INF, 0xFFC00000)},
            FACTS,
        )
        assert ran.result.tolist() == expected, name


def test_power_of_two_rules_on_every_exponent_and_around_every_threshold() -> None:
    """Against the definition in whole numbers, and for the subnormal and the largest numbers too."""
    exponents = np.repeat(np.arange(1, 255, dtype=np.uint32) << np.uint32(23), 9)
    around = np.array([0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x600000, 0x600001, 0x680001, 0x7FFFFF], np.uint32)
    patterns = np.concatenate([exponents + np.tile(around, 254), np.arange(1, 64, dtype=np.uint32), around[2:]])
    for name in ("e4m3", "e5m2", "e2m1", "e3m2", "e2m3"):
        row = qs.VALUES[name]
        facts = Facts(row.half_range, row.half_range, row, 1.0)
        for kind in ("floor", "ceil", "rceil", "even", "even1", "fit"):
            found = to_bits(power_of_two(patterns.view(np.float32), kind, facts))
            expected = [wanted_power(int(p), kind, row) for p in patterns]
            assert found.tolist() == expected, (name, kind)


def wanted_power(pattern: int, kind: str, row: qs.ValueFormat) -> int:
    """The pattern of the power of two, by fractions."""
    from fractions import Fraction

    a = Fraction(float(floats(pattern)[0]))
    exponent = a.numerator.bit_length() - a.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > a
    m = a / Fraction(2) ** exponent
    emax = {"e4m3": 8, "e5m2": 15, "e2m1": 2, "e3m2": 4, "e2m3": 2}[row.name]
    bits = {"e4m3": 3, "e5m2": 2, "e2m1": 1, "e3m2": 2, "e2m3": 3}[row.name]
    fit = m > Fraction(29, 16) if row.name == "e4m3" else m >= 2 - Fraction(1, 2 ** (bits + 1))
    raised = {
        "floor": False,
        "ceil": m > 1,
        "rceil": m > row.half_range / 2**emax,
        "even": m >= 2 - Fraction(1, 2 ** (bits + 1)),
        "even1": m >= Fraction(7, 4),
        "fit": fit,
    }[kind]
    code = max(min(exponent - emax + raised, 127), -127) + 127
    return code << 23 if code else 0x00400000


GOOD: dict[str, Any] = {"single": ("scale = up[T](a)",), "element": ("q = div(x, s)",), "decode": ("y = mul(s, v)",)}
BAD_STEPS = {
    "no-step": ("scale", "allowed: name = op"),
    "unknown-operation": ("scale = sqrt(a)", "no operation 'sqrt'"),
    "call-of-python": ("scale = __import__('os')", "allowed: name = op"),
    "nested": ("scale = up[T](div(a, H))", "allowed: name = op"),
    "no-bracket": ("scale = up(a)", r"\[\]; allowed: up\[T\]"),
    "wrong-bracket": ("scale = up[f8](a)", r"\[f8\]; allowed"),
    "surplus-bracket": ("scale = div[T](a, H)", "div without brackets"),
    "arity": ("scale = div(a)", "1 arguments; div takes 2"),
    "unknown-name": ("scale = div(a, b)", "no name 'b'"),
    "decimal-constant": ("scale = mul(a, 0.5)", "neither a name nor a number"),
    "too-fine-a-constant": ("scale = mul(a, 0x1.00000001p+0)", "no binary32 number"),
    "too-large-a-constant": ("scale = mul(a, 0x1p+128)", "no binary32 number"),
    "number-for-condition": ("scale = sel(a, a, a)", "'a' is a number"),
    "condition-as-result": ("scale = isnan(a)", "must be a number"),
    "wrong-result": ("raw = abs(a)", "gives 'scale'"),
}


@pytest.mark.parametrize(("step", "message"), BAD_STEPS.values(), ids=list(BAD_STEPS))
def test_a_step_without_a_meaning_is_refused(step: str, message: str) -> None:
    with pytest.raises(qs.UnsupportedError, match=message) as error:
        qs.Recipe("mine", **{**GOOD, "single": (step,)})
    assert error.value.rule == "POL-5"


def test_a_name_is_given_once_and_the_result_last() -> None:
    for lines, message in (
        (("r = abs(a)", "r = abs(a)", "scale = abs(r)"), "has a meaning already"),
        (("a = abs(a)", "scale = abs(a)"), "has a meaning already"),
        (("scale = abs(a)", "r = abs(a)"), "gives 'scale'"),
        (("r = abs(a)",) * 65, "at most 64"),
    ):
        with pytest.raises(qs.UnsupportedError, match=message):
            qs.Recipe("mine", **{**GOOD, "single": lines})
    with pytest.raises(qs.UnsupportedError, match="tensor and block"):
        qs.Recipe("mine", **GOOD, tensor=("tensor_scale = abs(A)",))
    with pytest.raises(qs.UnsupportedError, match="given_only"):
        qs.Recipe("mine", **GOOD, given_only=True)
    for member, value in (
        ("amax", "largest"),
        ("values", ("int8",)),
        ("scales", ("f64",)),
        ("modes", ("affine",)),
        ("refuse", ("isnan(y)",)),
    ):
        members: dict[str, Any] = {**GOOD, member: value}
        with pytest.raises(qs.UnsupportedError, match=f"{member}="):
            qs.Recipe("mine", **members)


def test_a_recipe_of_your_own_is_followed_and_carried() -> None:
    mine = qs.Recipe("mine", **{**GOOD, "single": ("scale = rne[T](a)",), "decode": ("t = mul(s, v)", "y = neg(t)")})
    x = single([1, -2, 3])
    q = qs.quantize(x, "q4s.packed_native_0.b3-f32", recipe=mine)
    assert qs.dequantize(q).tolist() == [-0.0, 3.0, -3.0]
    for kept in (qs.unpack(qs.pack(q)), qs.flip(qs.flip(q, 0), 0), qs.repack(q, "packed_u32_0"), qs.reshape(q, (1, 3))):
        assert kept.recipe == mine
    assert qs.split(qs.to_bytes(q), q.scheme, (3,), recipe=mine) == q
    assert qs.chain(q, ["neg"]).tolist() == [0.0, -3.0, 3.0]
    assert qs.product(np.ones((1, 3), np.float32), qs.permute(qs.reshape(q, (1, 3)), (1, 0))).tolist() == [[0.0]]
    assert qs.requantize(q, "q8s.native.t-f32").recipe == mine
    assert qs.requantize(q, "q8s.native.t-f32", recipe="canonical").recipe == qs.CANONICAL
    with pytest.raises(qs.UnsupportedError, match="not defined here"):
        qs.product_codes(q, qs.permute(qs.reshape(q, (1, 3)), (1, 0)))
    with pytest.raises(qs.LayoutError, match="by mine and canonical"):
        qs.concatenate([qs.quantize(x, q.scheme), q])


NOTHING: Any = None
QUANTIZED: Any = qs.Quantized
REFUSED = {
    "unknown": (
        lambda x: qs.quantize(x, "q8s.native.t-f32", recipe="te"),
        "POL-1",
        "recipe='te' is not defined; defined: canonical, ocp-mx",
    ),
    "name-alone": (lambda x: qs.quantize(x, "q8s.native.t-f32", recipe=qs.Recipe("te")), "POL-1", "recipe='te'"),
    "no-recipe": (lambda x: qs.quantize(x, "q8s.native.t-f32", recipe=NOTHING), "POL-1", "recipe=None"),
    "value": (
        lambda x: qs.quantize(x, "q8s.native.b4-ue8m0", recipe="ocp-mx"),
        "POL-10",
        "recipe='ocp-mx' with q8s.native.b4-ue8m0",
    ),
    "scale": (lambda x: qs.quantize(x, "e2m1.native.b4-f16", recipe="ocp-mx"), "POL-10", "covers scales ue8m0"),
    "one-level": (lambda x: qs.quantize(x, "e2m1.native.b4-ue4m3", recipe="nvfp4-te"), "POL-10", "two levels"),
    "two-levels": (lambda x: qs.quantize(x, "e2m1.native.b4-ue8m0.t-f32", recipe="ocp-mx"), "POL-10", "one level"),
    "tensor-scale": (
        lambda x: qs.quantize(x, "e2m1.native.b4-ue4m3.t-f16", recipe="nvfp4-te"),
        "POL-10",
        "tensor scales f32",
    ),
    "lookup": (lambda x: qs.quantize(x, "q4f.native.lut-nf4.t-f32", recipe="burn-flex"), "POL-10", "mode symmetric"),
    "partial": (lambda x: qs.quantize(x, "q8s.native.b4-f16", recipe="ggml-q8_0"), "POL-10", "whole blocks"),
    "given-only": (lambda x: qs.quantize(x, "q8s.native.t-f32", recipe="onnx-qdq"), "POL-10", "chooses no scales"),
    "data": (
        lambda x: qs.quantize(x * np.nan, "q8s.native.t-f32", recipe="burn-ndarray"),
        "POL-10",
        r"isnan\(q\) at \[0\]",
    ),
    "read": (
        lambda x: QUANTIZED("e2m1.native.b4-f16", np.zeros(5, np.uint8), np.zeros(2, np.uint16), recipe="te"),
        "POL-1",
        "te",
    ),
}


@pytest.mark.parametrize(("call", "rule", "message"), REFUSED.values(), ids=list(REFUSED))
def test_what_a_recipe_does_not_cover_is_refused(call: Any, rule: str, message: str) -> None:
    with pytest.raises(qs.UnsupportedError, match=message) as error:
        call(np.ones(5, np.float32))
    assert error.value.rule == rule


def test_a_scale_that_its_type_lacks_is_refused() -> None:
    mine = qs.Recipe("mine", **{**GOOD, "single": ("scale = abs(a)",)})
    assert qs.quantize(single([1.5]), "e4m3.native.t-f16", recipe=mine).tensor_scale_code == 0x3E00
    with pytest.raises(qs.UnsupportedError, match="is no number of ue8m0") as error:
        qs.quantize(single([1.5]), "e4m3.native.t-ue8m0", recipe=mine)
    assert error.value.rule == "POL-9"


def test_a_refused_element_is_named_by_its_place_in_the_whole_tensor() -> None:
    x = np.ones((40, 4096), np.float32)  # more than one tile
    x[30, 5] = np.nan  # makes the scale of its block a NaN, and so each of its quotients
    with pytest.raises(qs.UnsupportedError, match=r"isnan\(q\) at \[30, 0\]"):
        qs.quantize(x, "q8s.native.b32-f32", recipe="burn-ndarray")


# ---------------------------------------------------------------- amax

AMAX_CASES: dict[str, Any] = {
    "finite": [[3, -5, np.nan, np.inf], 5.0],
    "all": [[3, -5, np.inf, 1], np.inf],
    "all-nan": [[3, -5, np.nan, np.inf], np.nan],
    "ignore-nan": [[3, -5, np.nan, 1], 5.0],
    "ignore-nan-inf": [[np.nan, -np.inf, 1, 1], np.inf],
    "signed": [[3, -5, 5, np.nan], -5.0],
    "signed-first": [[3, 5, -5, 1], 5.0],
    "absmean": [[-1, 2, np.nan, np.inf], 1.5],
    "absmean-none": [[np.nan, np.inf, np.nan, np.inf], 0.0],
}


@pytest.mark.parametrize("case", AMAX_CASES)
def test_kinds_of_amax(case: str) -> None:
    from quantspec.amax import AMAX, amax_of

    kind = next(name for name in sorted(AMAX, key=len, reverse=True) if case.startswith(name))
    block, expected = AMAX_CASES[case]
    x = np.array([block, block[::-1]], np.float32)
    if case != "signed":
        found = amax_of(widen(x), (1, 4), kind)
        assert to_bits(found.ravel()[:1]).tolist() == to_bits(single([expected])).tolist()
    assert (
        to_bits(amax_of(widen(np.array(block, np.float32)), (9,), kind)).tolist()
        == to_bits(single([expected])).tolist()
    )


def test_absmean_adds_in_runs_of_32() -> None:
    """2^24 and then ones: each run of 32 is summed before it meets the others."""
    from quantspec.amax import amax_of

    x = np.ones(65, np.float32)
    x[0] = 2.0**24
    run_of_ones = np.float32(2.0**24)  # 2^24 + 1 ties to 2^24, 31 times over
    expected = np.float32(np.float32(run_of_ones + np.float32(32)) + np.float32(1)) / np.float32(65)
    assert to_bits(amax_of(widen(x), (65,), "absmean")).tolist() == to_bits(single([expected])).tolist()


def test_kinds_of_amax_take_blocks_of_any_rank() -> None:
    from quantspec.amax import amax_of

    x = np.random.default_rng(1).standard_normal((5, 3, 7)).astype(np.float32)
    for extents in ((1, 1, 1), (2, 1, 3), (5, 3, 7), (8, 2, 4)):
        expected = amax_of(widen(x), extents, "finite")
        for kind in ("all", "ignore-nan"):
            assert amax_of(widen(x), extents, kind).tolist() == expected.tolist()
        assert np.abs(amax_of(widen(x), extents, "signed")).tolist() == expected.tolist()
        assert amax_of(widen(x), extents, "absmean").shape == expected.shape
    assert amax_of(widen(np.float32(-3)), (), "signed").tolist() == -3.0
