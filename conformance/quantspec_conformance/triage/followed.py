"""A failed case under a recipe, codec or container: the steps of the first wrong block, and a step that explains what came."""

from collections.abc import Iterator
from dataclasses import dataclass

from quantspec import Codec, Container, Quantized, QuantspecError, Recipe
from quantspec.rounding import widen

from ..implementations.law import example_of
from ..outside import printable
from ..state import State
from ..steptext import trace_lines, wrapped
from ..steptrace import StepTrace, policy_text, trace_back, trace_forth
from ..suite.blame import element_of
from ..suite.outcome import SuiteMismatch
from ..verbs import VERBS
from .anatomy import Anatomy
from .suspects import suspects

__all__ = ["Followed", "followed"]

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
    if not any(axis in case.words for axis in AXES):
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
    if case.op not in ("quantize", "dequantize") or not mismatch.first:
        return plain
    first = mismatch.first[0]
    element = element_of(case, mismatch.part, first.index)
    if mismatch.part == "tensor_scale_code":
        element = (0,) * len(case.inputs["x"].shape)
    if element is None:
        return plain
    VERBS[case.op](state)
    tensor = state.tensor
    if not isinstance(tensor, Quantized):
        return plain
    if case.op == "quantize":
        bits = widen(state.need("x"))
        trace = trace_forth(tensor, bits, element, tuple(case.inputs), mismatch.part)
    else:
        codec_row = Codec.of(rows.get("codec", "canonical"))
        trace = trace_back(tensor, codec_row, element, anatomy.shown("y", first.expected))
    actual = printable(anatomy.shown(mismatch.part, first.actual))
    found = suspects(case, tensor.recipe, mismatch)
    return Followed(recipe, codec, container, trace, mismatch.part, actual, found)
