"""One step of a recipe taken otherwise: which other step, in place of it, gives all that an implementation answered.

A run keeps the first entries that differ and counts all of them, so a recipe that gives the same first ones and the same
count, and the law's bits elsewhere, is a strong hint and no proof. The recipes are run by the reference.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from quantspec import CODECS, QuantspecError, Recipe, dequantize, quantize
from quantspec.amax import AMAX
from quantspec.interpreter import run
from quantspec.rounding import INF, MAGNITUDE, SIGN, to_bits, widen
from quantspec.scales import SCALES, round_up
from quantspec.scales import decode_codes as decode_scale_codes
from quantspec.steps import CHOOSING, CONDITIONS, POW2, STAGES, Assignment

from ..implementations.law import example_of
from ..state import State
from ..steptrace import following
from ..suite.case import Case
from ..suite.outcome import SuiteMismatch
from .crop import Patterns

__all__ = ["suspects"]

#: Entries beyond which nothing is tried, and hints that are given.
MOST_ENTRIES, MOST_HINTS = 1 << 16, 3
#: Operations that real kernels take for each other.
PAIRS = {"up": "rne", "rne": "up", "min": "fmin", "fmin": "min", "max": "fmax", "fmax": "max"}


def suspects(case: Case, recipe: Recipe, mismatch: SuiteMismatch) -> tuple[str, ...]:
    """The other steps, as text, that explain every difference of a part: the entries that are kept, and how many there are."""
    wanted = case.outputs[mismatch.part]
    if len(wanted.patterns) > MOST_ENTRIES or mismatch.kind not in ("bits", "poison"):
        return ()
    law, found = np.array(wanted.patterns, np.uint64), []
    for text, came in _answers(case, recipe, mismatch.part):
        same = came.shape == law.shape and all(int(came[each.flat]) == each.actual for each in mismatch.first)
        if same and int(np.count_nonzero(came != law)) == mismatch.count:
            found.append(f"{text} {_all(mismatch)}")
    return tuple(found[:MOST_HINTS])


def _answers(case: Case, recipe: Recipe, part: str) -> Iterator[tuple[str, Patterns]]:
    """A part of the answer with one step otherwise: that step in words, and the patterns, flat."""
    stages = _stages(case, part)
    down = _cut_off(case, recipe, stages[0], part)
    if down is not None:
        yield down
    for text, other in _others(recipe, stages):
        try:
            yield text, _answer(case, other, part)
        except (QuantspecError, ValueError):
            continue


def _cut_off(case: Case, recipe: Recipe, stage: str, part: str) -> tuple[str, Patterns] | None:
    """The scale codes where the last step, up or rne, takes the largest magnitude not above; None where there is none such."""
    step = recipe.steps(stage)[-1] if recipe.steps(stage) else None
    if stage not in CHOOSING or step is None or step.op not in ("up", "rne"):
        return None
    state = State(example_of(case.request))
    scheme, bits = state.scheme, widen(state.need("x"))
    with np.errstate(all="ignore"):
        own = following(quantize(state.need("x"), scheme, recipe=recipe, **_given(state)), bits)
        names = {name: own.names[name] for name in STAGES[stage][1] if name in own.names}
        level = scheme.tensor if scheme.block is None or stage == "tensor" else scheme.block.scale
        scale = level if step.kind == "T" else SCALES[step.kind]
        if scale is None or scale != level or scale.mantissa_bits == 23:
            return None
        raw = to_bits(np.asarray(run(own.recipe.steps(stage), names, own.facts, level).names[step.args[0]], np.float32))
    largest = to_bits(np.asarray(np.float32(scale.largest)))
    magnitude = np.where((raw & MAGNITUDE) > INF, largest, np.minimum(raw & MAGNITUDE, largest))
    codes, _ = round_up(magnitude, scale)
    down = codes - ((to_bits(decode_scale_codes(codes, scale)) > magnitude) & (codes > 0))
    down = np.where((raw & MAGNITUDE) > INF, scale.nan_code, down | np.where(raw >= SIGN, scale.sign_bit, 0))
    text = f"`{step.args[0]}` cut off to {scale.name} in place of `{step.text}`"
    return text, np.broadcast_to(down, case.outputs[part].shape).reshape(-1).astype(np.uint64)


def _given(state: State) -> dict[str, Any]:
    """Scales that the case gives."""
    return {name: state.array(name) for name in ("scales", "scale_codes", "tensor_scale", "tensor_scale_code")}


def _all(mismatch: SuiteMismatch) -> str:
    """What was compared: all that differ where all are kept, else those that are, and how many differ."""
    count, kept = mismatch.count, len(mismatch.first)
    if count > kept:
        return f"gives the first {kept} entries that differ, and {count} in all"
    return f"gives {'the entry that differs' if count == 1 else f'all {count} entries that differ'} and leaves the rest"


def _stages(case: Case, part: str) -> tuple[str, ...]:
    """The stages that a part comes from."""
    scheme = State(example_of(case.request)).scheme
    both = scheme.block is not None and scheme.tensor is not None
    scale = "tensor" if part == "tensor_scale_code" else "block"
    return {"codes": ("element",), "y": ("decode",)}.get(part, (scale if both else "single",))


def _answer(case: Case, recipe: Recipe, part: str) -> Patterns:
    """A part of what the reference answers by another recipe, flat."""
    state = State(example_of(case.request))
    codec = state.policies("codec").get("codec", CODECS["canonical"])
    with np.errstate(all="ignore"):
        if case.op == "quantize":
            q = quantize(state.need("x"), state.scheme, recipe=recipe, codec=codec, **_given(state))
            came = np.asarray(getattr(q, part))
        else:
            to = state.word("to", "f32")
            came = dequantize(replace(state.quantized(), recipe=recipe), to, codec=codec)
    flat = np.ascontiguousarray(came).reshape(-1)
    return flat.view(f"u{flat.dtype.itemsize}").astype(np.uint64)


def _others(recipe: Recipe, stages: tuple[str, ...]) -> Iterator[tuple[str, Recipe]]:
    """Recipes that take one step otherwise, and that step in words."""
    if set(stages) <= set(CHOOSING):
        for kind in AMAX:
            if kind != recipe.amax:
                yield f"`amax {kind}` in place of `amax {recipe.amax}`", replace(recipe, amax=kind)
    for stage in stages:
        steps = recipe.steps(stage)
        for number, step in enumerate(steps):
            for text, instead in _instead(step, steps):
                otherwise: dict[str, Any] = {stage: (*steps[:number], *instead, *steps[number + 1 :])}
                try:
                    changed = replace(recipe, **otherwise)
                except QuantspecError:
                    continue
                yield text, changed


def _hexadecimal(number: float) -> str:
    """The nearest binary32 number as a step spells it."""
    mantissa, _, exponent = float(np.float32(number)).hex().partition("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def _instead(step: Assignment, steps: tuple[Assignment, ...]) -> Iterator[tuple[str, tuple[Assignment, ...]]]:
    """Steps to put in place of one, and what that is in words."""
    made = {each.name: each for each in steps}
    name, args = step.name, step.args

    def other(op: str, arguments: tuple[str, ...], kind: str = "") -> tuple[str, tuple[Assignment, ...]]:
        new = Assignment(name, op, arguments, kind)
        return f"`{new.text}` in place of `{step.text}`", (new,)

    if step.op in PAIRS:
        yield other(PAIRS[step.op], args, step.kind)
    for kind in POW2 if step.op == "pow2" else ():
        if kind != step.kind:
            yield other("pow2", args, kind)
    if step.op == "div":
        inverse = Assignment("reciprocal", "div", ("0x1p+0", args[1]))
        new = Assignment(name, "mul", (args[0], inverse.name))
        yield f"`{inverse.text}; {new.text}` in place of `{step.text}`", (inverse, new)
    for place, argument in enumerate(args if step.op == "mul" else ()):
        source = made.get(argument)
        if source is not None and source.op == "div" and source.args[0] == "0x1p+0":
            yield other("div", (args[1 - place], source.args[1]))
        if argument.lstrip("-").startswith("0x") and float.fromhex(argument):
            yield other("div", (args[1 - place], _hexadecimal(1 / float.fromhex(argument))))
    for argument in args if step.op not in CONDITIONS else ():
        _, instead = other("mul", (argument, "0x1p+0"))
        yield f"`{name}` = `{argument}` in place of `{step.text}`", instead
