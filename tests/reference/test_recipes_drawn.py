"""Drawn recipes against the oracle, and what the language refuses. POL-1, POL-5 to POL-9."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import REFERENCE, Mismatch, agree
from ..oracle import Q, S
from ..oracle_recipes import AMAX, CHOOSING, CONDITIONS, FACTS, LOGARITHMS, POW2, SIGNATURES, STAGES, R
from .test_recipes_oracle import CODECS, FP4, NF4, TYPES, check, check_decode, codec

CONSTANTS = (
    "0x0p+0",
    "-0x0p+0",
    "0x1p+0",
    "-0x1p+0",
    "0x1.8p+1",
    "0x1.5p+11",
    "0x1p-149",
    "0x1p-126",
    "0x1p+126",
    "0x1.fffffep+127",
    "0x1.555556p-3",
    "inf",
    "0x1.921fb6p+1",
)
ARITHMETIC = ("mul", "div", "add", "sub", "abs", "neg", "min", "max", "fmin", "fmax", "narrow", "sel", "cond")


@st.composite
def programs(draw: st.DrawFn, stage: str) -> list[str]:
    """A few steps over what the stage finds, most operands being results; a scale is mostly rounded to its type at last."""
    result, inputs = STAGES[stage]
    names, lines = [*inputs, *inputs, *FACTS], []

    def operand() -> str:
        return draw(st.sampled_from(names)) if draw(st.integers(0, 4)) else draw(st.sampled_from(CONSTANTS))

    def step(name: str, op: str) -> None:
        if op == "cond":  # a condition is used by a selection at once
            lines.append(f"{name}c = {draw(st.sampled_from(('eq0', 'isnan', 'isfinite', 'gt0')))}({operand()})")
            lines.append(f"{name} = sel({name}c, {operand()}, {operand()})")
        elif op == "sel":
            lines.append(f"{name}c = gt0({operand()})")
            lines.append(f"{name} = sel({name}c, {operand()}, {operand()})")
        elif op in ("up", "rne", "pow2"):  # of magnitudes
            kinds = (
                (*POW2, *LOGARITHMS)
                if op == "pow2"
                else [kind for kind in SIGNATURES[op][1] if kind != "T" or stage in CHOOSING]
            )
            lines.append(f"{name}m = abs({operand()})")
            lines.append(f"{name} = {op}[{draw(st.sampled_from(sorted(kinds)))}]({name}m)")
        elif op == "narrow":
            lines.append(f"{name} = narrow[{draw(st.sampled_from(('f16', 'bf16')))}]({operand()})")
        else:
            lines.append(f"{name} = {op}({', '.join(operand() for _ in SIGNATURES[op][0])})")
        names.append(name)
        names.append(name)

    for i in range(draw(st.integers(0, 4))):
        step(f"n{i}", draw(st.sampled_from((*ARITHMETIC, "up", "rne", "pow2"))))
    if stage in CHOOSING and draw(st.integers(0, 7)):
        lines.append(f"last = abs({names[-1]})")
        lines.append(f"{result} = {draw(st.sampled_from(('up', 'rne')))}[T](last)")
    else:
        step(result, draw(st.sampled_from(ARITHMETIC)))
    return lines


@st.composite
def schemes(draw: st.DrawFn) -> S:
    table = draw(st.sampled_from((None, None, None, NF4, FP4)))
    value = draw(st.sampled_from(g.VALUES if table is None else ("q4f", "q4s")))
    levels = draw(st.sampled_from(("block", "block", "tensor", "both", "both")))
    kind, whole = draw(st.sampled_from(TYPES)), draw(st.sampled_from(TYPES))
    block = None if levels == "tensor" else draw(st.sampled_from(((3,), (2, 2), (2, 9), ())))
    tensor = None if levels == "block" else whole
    return S(value, "native", 0, tensor, block, None if block is None else kind, table)


NUMBERS = st.lists(
    st.one_of(
        st.sampled_from(g.SPECIAL), st.sampled_from(g.POWERS), st.floats(-9, 9, width=32).map(g.bits), g.patterns32
    ),
    min_size=12,
    max_size=12,
)


@settings(g.PROPERTY, max_examples=450)
@given(
    s=schemes(),
    stages=st.fixed_dictionaries({stage: programs(stage) for stage in STAGES}),
    amax=st.sampled_from(sorted(AMAX)),
    coding=st.sampled_from(sorted(CODECS)),
    numbers=NUMBERS,
    tensor_scale=st.sampled_from((None, None, None, g.ONE, g.bits("0.3"), oracle.INF32, g.bits(-1))),
)
def test_any_recipe(
    s: S, stages: dict[str, list[str]], amax: str, coding: str, numbers: list[int], tensor_scale: int | None
) -> None:
    """Any program of the language over any scheme and numbers: the same bits, or refused on both sides."""
    row: dict[str, Any] = {"name": "drawn", "amax": amax, "modes": ["symmetric", "lookup"], **stages}
    whole = tensor_scale if s.tensor is not None else None
    both = agree(f"{row}", lambda: R.of(row), lambda: qs.Recipe.read(row))
    assert both is not None, row
    check(numbers, (2, 6), s, both[0], codec(coding), row=both[1], tensor_scale=whole)


@settings(g.PROPERTY, max_examples=40)
@given(
    numbers=st.lists(
        st.one_of(st.sampled_from(g.SPECIAL[5:12]), *[st.floats(-9, 9, width=32).map(g.bits)] * 9),
        min_size=70,
        max_size=210,
    ),
    width=st.sampled_from((31, 33, 64, 70)),
)
def test_any_mean(numbers: list[int], width: int) -> None:
    """absmean over several runs of 32 places, in blocks and over tensors that end in part of one."""
    steps = {"single": ["scale = abs(a)"], "element": ["q = div(x, s)"], "decode": ["y = mul(s, v)"]}
    row = {"name": "drawn", "amax": "absmean", **steps}
    flat, square = numbers[: len(numbers) // 2 * 2], (2, len(numbers) // 2)
    for s, shape in (
        (S("q8s", "native", tensor="f32"), square),
        (S("q8s", "native", block=(width,), block_type="f32"), square),
        (S("q8s", "native", block=(2, width), block_type="f32"), square),
        (S("q8s", "native", block=(3, 5), block_type="f32"), square),
    ):
        check(flat, shape, s, R.of(row), codec("canonical"), row=qs.Recipe.read(row))


@pytest.mark.parametrize("shape", [(4, 26), (4, 10), (9, 70), (3, 5, 41)])
@pytest.mark.parametrize("block", [(4, 16), (8, 32), (2, 64), (3, 3, 16)])
def test_the_places_of_a_mean(shape: tuple[int, ...], block: tuple[int, ...]) -> None:
    """absmean of blocks that are partial along several axes: where a run ends shows in the sum."""
    if len(block) > len(shape):
        return
    rng = np.random.default_rng(len(shape) * 1000 + block[-1])
    numbers = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, shape))).astype(np.float32)
    row = {"name": "drawn", **PLAIN, "amax": "absmean"}
    s = S("q8s", "native", block=block, block_type="f32")
    check(
        numbers.view(np.uint32).reshape(-1).tolist(), shape, s, R.of(row), codec("canonical"), row=qs.Recipe.read(row)
    )


# ---------------------------------------------------------------- single operations

#: What v takes, from a table of finite numbers, and s takes, a scale of binary32 for each element: first every special
#: one beside every v, then the numbers of the scale types, their midpoints and powers of two, and what is next to them.
TABLE = (*g.SPECIAL[:3], *g.SPECIAL[4:8], *(g.SPECIAL[i] for i in (13, 14, 16, 18, 20)), *g.random_patterns(9, 4))
SCALES = (
    *(p for p in g.SPECIAL for _ in TABLE),
    *(
        p
        for kind in ("f16", "bf16", "ue4m3", "ue8m0")
        for p in g.around(g.positive_scales(kind)[:: 1 if kind[0] == "u" else 611])
    ),
    *(
        oracle.rn32(oracle.value(p) * ratio)
        for ratio in (Fraction(17, 16), Fraction(3, 2))
        for p in g.positive_scales("ue4m3")
    ),
    *(p + half for half in (0x8000, 0x1000, 0x400000) for p in g.POWERS),
)


def check_operation(line: str, scales: Sequence[int], decode: Callable[..., Any] = qs.dequantize) -> None:
    """One step as the whole decode stage: its operands are v, from a table, and s, a scale for each element."""
    row = {"name": "drawn", **PLAIN, "modes": ["lookup"], "decode": [*line.split("; ")]}
    s = S("q4f", "native", block=(), block_type="f32", table=TABLE)
    q = Q([i % len(TABLE) for i in range(len(scales))], list(scales))
    check_decode(
        q,
        (len(scales),),
        s,
        R.of(row),
        codec("canonical"),
        qs.Recipe.read(row),
        "canonical",
        replace(REFERENCE, dequantize=decode),
    )


OF_TWO = [op for op, (takes, _) in SIGNATURES.items() if takes == "nn"]
OF_MAGNITUDES = [
    f"m = abs(s); y = {op}[{kind}](m)" for op in ("up", "rne", "pow2") for kind in SIGNATURES[op][1]
    if kind not in ("T", "even", "fit")
]  # fmt: skip
LINES = [
    *(f"y = {op}({operands})" for op in OF_TWO for operands in ("v, s", "s, v", "s, s")),
    *(f"y = {op}(s)" for op in ("abs", "neg", "narrow[f16]", "narrow[bf16]")),
    *(f"c = {op}(s); y = sel(c, v, s)" for op in CONDITIONS),
    *OF_MAGNITUDES,
]


@pytest.mark.parametrize("line", LINES)
def test_every_operation_alone(line: str) -> None:
    check_operation(line, SCALES)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("op", ("up", "rne"))
def test_a_rounding_of_numbers_below_zero(op: str, kind: str) -> None:
    check_operation(f"n = neg(s); y = {op}[{kind}](n)", SCALES)


OPERATION_LIARS = {
    "the reciprocal": ("y = div(v, s)", "i = div(0x1p+0, s); y = mul(v, i)"),
    "the other zero": ("y = min(s, v)", "c = gt0(v); m = sub(s, v); d = gt0(m); y = sel(d, v, s)"),
    "a NaN that is lost": ("y = max(v, s)", "y = fmax(v, s)"),
    "up for nearest": ("m = abs(s); y = rne[f16](m)", "m = abs(s); y = up[f16](m)"),
    "narrowed for nearest": ("m = abs(s); y = rne[f16](m)", "y = narrow[f16](s)"),
    "an infinite number": ("c = isfinite(s); y = sel(c, v, s)", "c = isnan(s); y = sel(c, s, v)"),
    "a subnormal of no value": ("y = add(v, s)", "z = mul(s, 0x1p-24); t = mul(z, 0x1p+24); y = add(v, t)"),
}


@pytest.mark.parametrize("liar", OPERATION_LIARS)
def test_an_operation_that_lies_is_caught(liar: str) -> None:
    line, lie = OPERATION_LIARS[liar]

    def decode(tensor: qs.Quantized) -> Any:
        return qs.dequantize(replace(tensor, recipe=replace(tensor.recipe, decode=lie.split("; "))))

    with pytest.raises(Mismatch):
        check_operation(line, SCALES, decode)


# ---------------------------------------------------------------- refusals

MALFORMED: dict[str, dict[str, Sequence[str]]] = {
    "no operation": {"single": ["scale = sqrt(a)"]},
    "no operand": {"single": ["scale = abs()"]},
    "one operand too few": {"single": ["scale = mul(a)"]},
    "one too many": {"single": ["scale = abs(a, a)"]},
    "a name of another stage": {"single": ["scale = abs(x)"]},
    "the amax of the tensor in single": {"single": ["scale = abs(A)"]},
    "a name before it is given": {"single": ["n = abs(m)", "m = abs(a)", "scale = mul(n, m)"]},
    "a name of another stage's step": {"single": ["n = abs(a)", "scale = abs(n)"], "element": ["q = mul(x, n)"]},
    "a name given twice": {"single": ["n = abs(a)", "n = abs(a)", "scale = abs(n)"]},
    "an input given again": {"single": ["a = abs(a)", "scale = abs(a)"]},
    "a fact given again": {"single": ["max = abs(a)", "scale = abs(a)"]},
    "infinity given": {"single": ["inf = abs(a)", "scale = abs(a)"]},
    "no result": {"single": ["n = abs(a)"]},
    "a result before the last step": {"single": ["scale = abs(a)", "n = abs(a)"]},
    "a condition for a number": {"single": ["n = eq0(a)", "scale = abs(n)"]},
    "a number for a condition": {"single": ["scale = sel(a, a, a)"]},
    "a condition for a result": {"single": ["scale = eq0(a)"]},
    "a decimal constant": {"single": ["scale = abs(1.5)"]},
    "a constant of binary64": {"single": ["scale = abs(0x1.0000001p+0)"]},
    "a constant beyond binary32": {"single": ["scale = abs(0x1p+128)"]},
    "a constant below binary32": {"single": ["scale = abs(0x1p-150)"]},
    "no kind": {"single": ["scale = up(a)"]},
    "a kind too many": {"single": ["scale = abs[f16](a)"]},
    "no such scale type": {"single": ["scale = up[f64](a)"]},
    "no such rule": {"single": ["scale = pow2[round](a)"]},
    "no such float": {"single": ["scale = narrow[f32](a)"]},
    "a type where none is chosen": {"element": ["q = up[T](x)"]},
    "a type where none is chosen, decoding": {"decode": ["y = up[T](v)"]},
    "no program": {"single": ["scale"]},
    "nested operations": {"single": ["scale = abs(mul(a, a))"]},
    "no element": {"element": []},
    "no decode": {"decode": []},
    "a condition that is none": {"refuse": ["abs(x)"]},
    "a condition on what is not there": {"refuse": ["isnan(s)"]},
    "no such amax": {"amax": "max"},
}
PLAIN = {"amax": "all", "single": ["scale = abs(a)"], "element": ["q = div(x, s)"], "decode": ["y = mul(s, v)"]}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_program_without_a_meaning_is_refused_before_it_runs(what: str) -> None:
    row: dict[str, Any] = {"name": "drawn", **PLAIN, **MALFORMED[what]}
    assert agree(what, lambda: R.of(row), lambda: qs.Recipe.of(qs.Recipe.read(row))) is None
    assert agree(what, lambda: R.of(row), lambda: qs.quantize([], "q8s.native.t-f32", recipe=qs.Recipe(**row))) is None


def test_the_program_that_the_refused_ones_change_is_none_of_them() -> None:
    row = {"name": "drawn", **PLAIN}
    assert agree("plain", lambda: R.of(row), lambda: qs.Recipe.of(qs.Recipe.read(row))) is not None


@pytest.mark.parametrize("value", g.VALUES)
@pytest.mark.parametrize("rule", (*POW2, *LOGARITHMS))
def test_every_rule_for_a_power_of_two_in_every_format(rule: str, value: str) -> None:
    """Each threshold and its neighbours through both clamps; integers have no even and no fit."""
    row = {"name": "drawn", **PLAIN, "single": [f"scale = pow2[{rule}](a)"]}
    tops = [oracle.rn32(m * oracle.power2(e)) for e in (-127, -126, -125, 0, 3, 126, 127) for m in MANTISSAS[value]]
    numbers = [p for p in g.around([*tops, *g.POWERS[::10], 0, 1]) if p < oracle.INF32] + [oracle.INF32, oracle.NAN32]
    s = S(value, "native", block=(), block_type="ue8m0")
    check(numbers, (len(numbers),), s, R.of(row), codec("canonical"), row=qs.Recipe.read(row))


MANTISSAS: dict[str, tuple[int | Fraction, ...]] = {
    value: (
        1,
        *(Fraction(m, 32) for m in (48, 56, 58, 60, 62)),
        Fraction(127, 64),
        oracle.H(value) / oracle.power2(e),
    )
    for value, e in {
        "q8f": 6,
        "q8s": 6,
        "q4f": 2,
        "q4s": 2,
        "q2f": 0,
        "q2s": 0,
        "e4m3": 8,
        "e5m2": 15,
        "e2m1": 2,
        "e3m2": 4,
        "e2m3": 2,
    }.items()
}
