"""A failed case under a recipe, codec or container: the steps of the first wrong block, and a step that explains what came."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from quantspec import Codec, Container, Quantized, QuantspecError, Recipe
from quantspec.rounding import widen

from ..implementations.law import example_of
from ..outside import printable
from ..state import State
from ..steptext import trace_lines, wrapped
from ..steptrace import StepTrace, policy_text, trace_back, trace_forth
from ..suite.blame import element_of
from ..suite.case import Case
from ..suite.outcome import SuiteMismatch
from ..verbs import VERBS
from .anatomy import Anatomy
from .frame import Index
from .suspects import suspects

__all__ = ["Followed", "case_steps", "followed"]

AXES = ("recipe", "codec", "container")


@dataclass(frozen=True, slots=True)
class Followed:
    """Recipe, codec and container that a case names, and its recipe on the first entry that differs, step by step."""

    recipe: str
    codec: str
    container: str
    steps: StepTrace | None = None
    part: str = ""  #: the part that differs
    actual: str = ""  #: what came in place of what its stage gives
    suspects: tuple[str, ...] = ()  #: steps that, taken in place of one of the recipe, give all that came

    def lines(self) -> Iterator[str]:
        """The lines in a failure block."""
        trace = self.steps
        if self.recipe:
            amax = f" (amax {trace.amax})" if trace is not None else ""
            of = _place(trace) if trace is not None else ""
            yield from wrapped("recipe", f"{self.recipe}{amax}{of}")
        for label, text in (("codec", self.codec), ("container", self.container)):
            yield from wrapped(label, text) if text else ()
        if trace is not None:
            yield from trace_lines(trace, parts=self.part, actual=self.actual)
        for number, text in enumerate(self.suspects):
            yield from wrapped("" if number else "fits", text)


def _place(trace: StepTrace) -> str:
    block = "" if trace.block is None else f"block {trace.block}, "
    return f", steps for {block}element {trace.element}"


def followed(anatomy: Anatomy, mismatch: SuiteMismatch) -> Followed | None:
    """What a case is under, with the steps of its first wrong entry; None where it names no policy."""
    case = anatomy.case
    if not mismatch.first or not any(axis in case.words for axis in AXES):
        return None
    state = State(example_of(case.request))
    rows = state.policies(*AXES)
    try:
        recipe = Recipe.of(rows["recipe"]).name if "recipe" in rows else ""
        codec = policy_text(Codec.of(rows["codec"])) if "codec" in rows else ""
        container = policy_text(Container.of(rows["container"])) if "container" in rows else ""
    except QuantspecError:  # a case that asks for a refusal
        return None
    plain = Followed(recipe, codec, container)
    part, first = mismatch.part, mismatch.first[0]
    element = (0,) * _rank(case) if part == "tensor_scale_code" else element_of(case, part, first.index)
    trace = None if element is None else case_steps(anatomy, element, part)
    if trace is None:
        return plain
    actual = printable(anatomy.shown(part, first.actual))
    found = suspects(case, Recipe.of(trace.recipe), mismatch)
    return Followed(recipe, codec, container, trace, part, actual, found)


def _rank(case: Case) -> int:
    return next((len(case.inputs[name].shape) for name in ("x", "codes") if name in case.inputs), 0)


def case_steps(anatomy: Anatomy, element: Index, part: str = "") -> StepTrace | None:
    """The steps by which a case that names a policy quantizes an element, up to a part, or dequantizes it; else None."""
    case = anatomy.case
    if case.op not in ("quantize", "dequantize") or not any(axis in case.words for axis in AXES):
        return None
    state = State(example_of(case.request))
    try:
        VERBS[case.op](state)
    except QuantspecError:
        return None
    tensor = state.tensor
    if not isinstance(tensor, Quantized):
        return None
    if case.op == "quantize":
        return trace_forth(tensor, widen(state.need("x")), element, tuple(case.inputs), part or "codes")
    y = case.outputs["y"]
    came = int(np.ravel_multi_index(element, y.shape)) if y.shape else 0
    codec = Codec.of(state.policies("codec").get("codec", "canonical"))
    return trace_back(tensor, codec, element, anatomy.shown("y", y.patterns[came]))
