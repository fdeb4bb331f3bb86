"""Drawn recipes against the oracle, and what the language refuses. POL-1, POL-5 to POL-9."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import agree
from ..oracle import S
from ..oracle_recipes import AMAX, CHOOSING, FACTS, POW2, SIGNATURES, STAGES, R
from .test_recipes_oracle import CODECS, FP4, NF4, TYPES, check, codec

CONSTANTS = (
    "0x0p+0", "-0x0p+0", "0x1p+0", "-0x1p+0", "0x1.8p+1", "0x1.5p+11", "0x1p-149", "0x1p-126", "0x1p+126", "0x1.fffffep+127",
    "0x1.555556p-3", "inf", "0x1.921fb6p+1",
)  # fmt: skip
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
            kinds = POW2 if op == "pow2" else [kind for kind in SIGNATURES[op][1] if kind != "T" or stage in CHOOSING]
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
    st.one_of(st.sampled_from(g.SPECIAL), st.sampled_from(g.POWERS), st.floats(-9, 9, width=32).map(g.bits), g.patterns32),
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
@given(numbers=st.lists(st.one_of(st.sampled_from(g.SPECIAL), g.patterns32), min_size=70, max_size=210), width=st.sampled_from((31, 33, 64, 70)))
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
    "no such amax": {"amax": "max"},  # type: ignore[dict-item]
}
PLAIN = {"single": ["scale = abs(a)"], "element": ["q = div(x, s)"], "decode": ["y = mul(s, v)"]}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_program_without_a_meaning_is_refused_before_it_runs(what: str) -> None:
    row = {"name": "drawn", **PLAIN, **MALFORMED[what]}
    assert agree(what, lambda: R.of(row), lambda: qs.Recipe.of(qs.Recipe.read(row))) is None


@pytest.mark.parametrize("value", g.VALUES)
@pytest.mark.parametrize("rule", POW2)
def test_every_rule_for_a_power_of_two_in_every_format(rule: str, value: str) -> None:
    """Each threshold and its neighbours through both clamps; integers have no even and no fit."""
    row = {"name": "drawn", "amax": "all", **PLAIN, "single": [f"scale = pow2[{rule}](a)"]}
    tops = [oracle.rn32(m * oracle.power2(e)) for e in (-127, -126, -125, 0, 3, 126, 127) for m in MANTISSAS[value]]
    numbers = [p for p in g.around([*tops, *g.POWERS[::10], 0, 1]) if p < oracle.INF32] + [oracle.INF32, oracle.NAN32]
    s = S(value, "native", block=(), block_type="ue8m0")
    check(numbers, (len(numbers),), s, R.of(row), codec("canonical"), row=qs.Recipe.read(row))


MANTISSAS = {value: (1, *(oracle.Fraction(m, 32) for m in (48, 56, 58, 60, 62)), oracle.Fraction(127, 64), oracle.H(value) / oracle.power2(e)) for value, e in
    {"q8f": 6, "q8s": 6, "q4f": 2, "q4s": 2, "q2f": 0, "q2s": 0, "e4m3": 8, "e5m2": 15, "e2m1": 2, "e3m2": 4, "e2m3": 2}.items()}  # fmt: skip
