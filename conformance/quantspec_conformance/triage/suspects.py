"""One step of a recipe taken otherwise: which other step, in place of it, gives all that an implementation answered.

A run keeps the first entries that differ and counts all of them, so a recipe that gives the same first ones and the same
count, and the law's bits elsewhere, is a strong hint and no proof. The recipes are run by the reference.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from quantspec import CODECS, QuantspecError, Recipe, dequantize, quantize
from quantspec.steps import CONDITIONS, POW2, Assignment

from ..implementations.law import example_of
from ..state import State
from ..suite.case import Case
from ..suite.outcome import SuiteMismatch
from .crop import Patterns

__all__ = ["suspects"]

#: Entries beyond which nothing is tried, and hints that are given.
MOST_ENTRIES, MOST_HINTS = 1 << 16, 3
#: Operations that real kernels take for each other.
PAIRS = {"up": "rne", "rne": "up", "min": "fmin", "fmin": "min", "max": "fmax", "fmax": "max"}


def suspects(case: Case, recipe: Recipe, mismatch: SuiteMismatch) -> tuple[str, ...]:
    """The other steps, as text, that explain every difference of a part; those that explain the kept ones where none does."""
    wanted = case.outputs[mismatch.part]
    if len(wanted.patterns) > MOST_ENTRIES or mismatch.kind not in ("bits", "poison"):
        return ()
    law, whole, some = np.array(wanted.patterns, np.uint64), [], []
    for text, other in _others(recipe, _stages(case, mismatch.part)):
        try:
            came = _answer(case, other, mismatch.part)
        except (QuantspecError, ValueError):
            continue
        if came.shape != law.shape or any(int(came[each.flat]) != each.actual for each in mismatch.first):
            continue
        count = int(np.count_nonzero(came != law))
        if count == mismatch.count:
            whole.append(f"{text} gives {_all(count)} and leaves the rest")
        else:
            some.append(f"{text} gives the first {_entries(len(mismatch.first))}, but changes {count}")
    return tuple((whole or some)[:MOST_HINTS])


def _all(count: int) -> str:
    return "the entry that differs" if count == 1 else f"all {count} entries that differ"


def _entries(count: int) -> str:
    return f"{count} of them" if count != 1 else "of them"


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
            levels = ("scales", "scale_codes", "tensor_scale", "tensor_scale_code")
            given = {name: state.array(name) for name in levels}
            q = quantize(state.need("x"), state.scheme, recipe=recipe, codec=codec, **given)
            came = np.asarray(getattr(q, part))
        else:
            to = state.word("to", "f32")
            came = dequantize(replace(state.quantized(), recipe=recipe), to, codec=codec)
    flat = np.ascontiguousarray(came).reshape(-1)
    return flat.view(f"u{flat.dtype.itemsize}").astype(np.uint64)


def _others(recipe: Recipe, stages: tuple[str, ...]) -> Iterator[tuple[str, Recipe]]:
    """Recipes that take one step otherwise, and that step in words."""
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
