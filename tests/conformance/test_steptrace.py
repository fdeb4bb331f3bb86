"""Steps under a recipe: each value is that of the oracle, the lines fit, and a failure block shows where a liar parts."""

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import quantspec as qs
from quantspec import Quantized, Recipe
from quantspec.interpreter import run as run_steps
from quantspec.rounding import widen
from quantspec_conformance import state
from quantspec_conformance.implementations.law import Law, example_of, tell
from quantspec_conformance.protocol.messages import Answer, Ok, Request
from quantspec_conformance.state import State
from quantspec_conformance.steptext import trace_lines
from quantspec_conformance.steptrace import Stage, StepTrace, Value, policy_text, trace_back, trace_forth
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.triage.block import failure_block, failure_json
from quantspec_conformance.triage.element import explain_case
from quantspec_conformance.triage.find import find_case
from quantspec_conformance.verbs import VERBS

from ..bridge import oracle_scheme
from ..oracle import S
from ..oracle_recipes import R, run
from .suites import shipped

ROWS = {row["name"]: row for row in tomllib.loads((files(qs) / "presets.toml").read_text("utf-8"))["recipe"]}
FACTS = ("H", "max", "emax", "top")


@cache
def cases() -> tuple[Case, ...]:
    """Cases under a recipe: of each recipe, scheme and operation the smallest and the largest that is not large."""
    found: dict[tuple[str, str, str], list[Case]] = {}
    for case in shipped():
        if "recipe" in case.words and case.outputs and 0 < case.elements <= 4096:
            found.setdefault((case.words["recipe"], case.words["scheme"], case.op), []).append(case)
    return tuple(
        case
        for group in found.values()
        for case in (min(group, key=_size), *[max(group, key=_size)] * (len(group) > 1))
    )


def _size(case: Case) -> tuple[int, str]:
    return case.elements, case.id


def traces(case: Case) -> Iterator[tuple[Quantized, StepTrace]]:
    """The traces of the first, a middle and the last element of a case."""
    told = State(example_of(case.request))
    with np.errstate(all="ignore"):
        VERBS[case.op](told)
        tensor = told.tensor
        assert tensor is not None
        for flat in {0, tensor.codes.size // 2, tensor.codes.size - 1}:
            element = tuple(int(i) for i in np.unravel_index(flat, tensor.shape))
            if case.op == "quantize":
                yield tensor, trace_forth(tensor, widen(told.need("x")), element, tuple(case.inputs))
            else:
                codec = qs.Codec.of(case.words.get("codec", "canonical"))
                y = int(case.outputs["y"].patterns[flat])
                yield tensor, trace_back(tensor, codec, element, f"0x{y:08X}")


def bits(value: Value) -> int:
    """A value as the oracle holds it."""
    return int(value.bits, 16) if value.bits else int(value.number == "yes")


def check(stage: Stage, recipe: R, scheme: S, chosen: str) -> None:
    """Every step is the oracle's, run from what the stage finds."""
    program = recipe.stages[stage.name]
    found = {value.text: bits(value) for value in stage.found if value.text not in FACTS}
    assert len(stage.steps) == len(program) > 0
    for number, value in enumerate(stage.steps):
        assert value.text.startswith(f"{program[number].name} = ")
        assert bits(value) == run(program[: number + 1], found, scheme, chosen), (stage.name, value, found)


def test_every_step_is_that_of_the_oracle() -> None:
    recipes = {name: R.of(row) for name, row in ROWS.items()}
    seen = set()
    for case in cases():
        for tensor, trace in traces(case):
            scheme = oracle_scheme(tensor.scheme)
            assert trace.recipe == case.words["recipe"]
            for stage in trace.stages:
                chosen = scheme.block_type if stage.gives == "scale_codes" else scheme.tensor
                check(stage, recipes[trace.recipe], scheme, chosen or "")
                seen.add((trace.recipe, stage.name))
    known = {case.words["recipe"] for case in cases()}
    assert {name for name, _ in seen} == known
    assert len(known) > 20
    assert {stage for _, stage in seen} == {"single", "tensor", "block", "element", "decode"}


def test_what_a_stage_ends_in_is_what_the_case_expects() -> None:
    """The last step of a scale is the stored scale's number, and the result shown is the case's own pattern."""
    for case in cases():
        for tensor, trace in traces(case):
            for stage in trace.stages:
                expected = case.outputs[stage.gives]
                place = {"scale_codes": trace.block, "tensor_scale_code": ()}.get(stage.gives, trace.element)
                assert place is not None
                pattern = int(expected.patterns[int(np.ravel_multi_index(place, expected.shape)) if place else 0])
                assert int(stage.result.split()[0], 16) == pattern
                if stage.gives.endswith(("codes", "code")) and stage.gives != "codes":
                    block = tensor.scheme.block
                    kind = tensor.scheme.tensor if stage.gives[0] == "t" or block is None else block.scale
                    assert kind is not None
                    number = qs.decode_scale(np.array([pattern], kind.code_dtype), kind)
                    assert bits(stage.steps[-1]) == int(number.view(np.uint32)[0])


def test_a_trace_with_one_wrong_bit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The liar of the test above: an interpreter whose second step is one ulp off."""
    kept: Any = run_steps

    def lying(steps: Any, *rest: Any) -> Any:
        ran = kept(steps, *rest)
        name = steps[min(1, len(steps) - 1)].name
        off: Any = np.asarray(ran.names[name])
        moved = ~off if off.dtype == np.bool_ else (off.view(np.uint32) ^ np.uint32(1)).view(np.float32)
        return replace(ran, names={**ran.names, name: moved})

    monkeypatch.setattr("quantspec_conformance.steptrace.run", lying)
    with pytest.raises(AssertionError):
        test_every_step_is_that_of_the_oracle()


def test_lines_fit_a_terminal_and_are_steps_in_order() -> None:
    for case in cases():
        for _, trace in traces(case):
            widest = "0x00000001  0|00000000|00000000000000000000001  +1.40129846e-45 (0x1p-149)"
            for actual in ("", widest):
                lines = list(trace_lines(trace, parts=trace.stages[-1].gives if actual else "", actual=actual))
                assert max(map(len, lines)) <= 100, max(lines, key=len)
            steps = [value.text for stage in trace.stages for value in stage.steps]
            places = [number for number, line in enumerate(lines) if any(f" {step}  " in line for step in steps)]
            assert len(places) == len(steps)
    policies: list[qs.Codec | qs.Container] = [*qs.CODECS.values(), *qs.CONTAINERS.values()]
    for policy in policies:
        assert len(policy_text(policy)) < 100
    assert policy_text(qs.CODECS["burn-cpu"]) == "burn-cpu: rounding away"


# ---------------------------------------------------------------- failure blocks


class WrongStep(Law):
    """The law, with one step of one recipe taken otherwise."""

    def __init__(self, name: str, stage: str, old: str, new: str) -> None:
        row = qs.RECIPES[name]
        steps = [step.text for step in row.steps(stage)]
        place = steps.index(old)
        wrong: dict[str, Any] = {stage: (*steps[:place], *new.split("; "), *steps[place + 1 :])}
        self.rows = {**qs.RECIPES, name: replace(row, **wrong)}

    def handle(self, request: Request) -> Answer:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "RECIPES", self.rows)
            return super().handle(request)


LIARS = {
    "a scale rounded up": ("nvfp4-te", "block", "block_scale = rne[T](ratio)", "block_scale = up[T](ratio)"),
    "another power of two": ("ocp-mx", "single", "power = pow2[floor](a)", "power = pow2[ceil](a)"),
    "no reciprocal": ("burn-flex", "element", "q = mul(x, inverse)", "q = div(x, s)"),
    "a reciprocal": (
        "burn-ndarray",
        "element",
        "q = div(x, repaired)",
        "reciprocal = div(0x1p+0, repaired); q = mul(x, reciprocal)",
    ),
    "a division for a factor": ("nvfp4-te", "decode", "y = mul(whole, 0x1.861862p-12)", "y = div(whole, 0x1.5p+11)"),
}


def failing(name: str, stage: str, old: str, new: str) -> tuple[Case, Any]:
    """The first case on which a wrong step shows in the part that its stage gives."""
    liar = WrongStep(name, stage, old, new)
    op = "dequantize" if stage == "decode" else "quantize"
    part = {"element": "codes", "decode": "y"}.get(stage, "scale_codes")
    for case in shipped():
        if case.words.get("recipe") == name and case.op == op and case.outputs:
            result = judge(case, liar.handle(case.request))
            if result.mismatch is not None and result.mismatch.part == part:
                return case, result
    raise AssertionError(f"no case under {name} finds {new}")


@pytest.mark.parametrize("lie", LIARS)
def test_a_wrong_step_is_visible_in_the_block(lie: str) -> None:
    name, stage, old, new = LIARS[lie]
    case, result = failing(name, stage, old, new)
    lines = failure_block(case, result, "py:liar.py:Liar").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(" recipe "))
    assert f" {name} (amax " in lines[start]
    end = next(number for number, line in enumerate(lines) if line.startswith(" rules "))
    assert max(map(len, lines[start:end])) <= 100
    shown = "\n".join(lines[start:end])
    before, here = shown.split(", actual", 1)
    assert "<- here" in here
    assert ", the same" not in here
    assert all(f" {step.text}  " in before for step in qs.RECIPES[name].steps(stage))
    hint = " ".join(shown.partition(" fits ")[2].split())
    assert f"`{new}` in place of `{old}` gives" in hint


def test_the_json_of_a_block_carries_the_steps() -> None:
    case, result = failing(*LIARS["a reciprocal"])
    written = json.loads(json.dumps(failure_json(case, result, "py:liar.py:Liar")))["followed"]
    assert (written["recipe"], written["part"]) == ("burn-ndarray", "codes")
    assert written["codec"].startswith("burn-cpu")
    (*_, last) = written["steps"]["stages"]
    assert [step["text"] for step in last["steps"]] == [
        step.text for step in qs.RECIPES["burn-ndarray"].steps("element")
    ]
    assert all(len(step["bits"]) in (0, 10) for step in last["steps"])
    assert written["suspects"]


def test_a_case_without_a_policy_has_no_steps() -> None:
    case = next(case for case in shipped() if case.op == "quantize" and case.outputs and not case.policies)
    answer = tell(case.request).answer
    assert isinstance(answer, Ok)
    tensor = answer.tensors["codes"]
    wrong = Ok({**answer.tensors, "codes": replace(tensor, patterns=(tensor.patterns[0] ^ 1, *tensor.patterns[1:]))})
    result = judge(case, wrong)
    assert result.bad
    assert failure_json(case, result, "x")["followed"] is None


@pytest.mark.parametrize(("op", "axis"), [("encode", "codec"), ("pack", "container"), ("to_bytes", "container")])
def test_a_codec_and_a_container_are_one_line(op: str, axis: str) -> None:
    case = next(case for case in shipped() if case.op == op and axis in case.policies and case.outputs)
    part, tensor = next(iter(case.outputs.items()))
    flipped = replace(tensor, patterns=(tensor.patterns[0] ^ 1, *tensor.patterns[1:]))
    text = failure_block(case, judge(case, Ok({**case.outputs, part: flipped}, case.told)), "x")
    assert f" {axis:9s} {case.policies[axis]}" in text
    assert "<- here" not in text


def test_one_element_of_a_case_follows_its_recipe() -> None:
    case = next(case for case in cases() if case.words["recipe"] == "burn-flex" and case.op == "quantize")
    text = "\n".join(explain_case(find_case([case], case.id)))
    recipe: Recipe = qs.RECIPES["burn-flex"]
    assert "recipe     burn-flex, amax ignore-nan" in text
    assert all(step.text in text for step in (*recipe.steps("element"),))


def test_a_trace_is_plain_data() -> None:
    _, trace = next(traces(cases()[0]))
    as_data: Callable[[Any], Any] = asdict
    assert json.loads(json.dumps(as_data(trace)))["recipe"] == trace.recipe
