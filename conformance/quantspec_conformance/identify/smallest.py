"""The smallest counterexample: fewer and fewer numbers, as long as no known way answers as the implementation does."""

from dataclasses import dataclass

import numpy as np

from .asking import ANSWERED, Asking
from .layout import Array
from .narrowing import Stage
from .predictions import ANY, Measured

__all__ = ["Disagreement", "smallest"]

ROUNDS = 8
_MOST = 40  #: questions of a round


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A question, the place in the prediction that differs, what was expected there and what came."""

    bits: Array
    place: int
    expected: int
    got: int
    scales: Array
    tensor: int


def differing(
    stage: Stage, way: int, bits: Array, asking: Asking, given: tuple[Array, Array] | None
) -> list[Disagreement | None]:
    """How each of some questions differs from a way; None where it does not, or where there is no answer."""
    answers = asking.ask(bits, None if given is None else given[1], None if given is None else given[0])
    at = Measured(bits)
    predicted = stage.predict([way], at, answers.tensor, answers.scales)[0]
    observed = stage.observed(answers.tensor, answers.scales, answers.codes)
    wrong = (predicted != observed) & (predicted != ANY)
    found: list[Disagreement | None] = []
    for row in range(len(bits)):
        if answers.status[row] != ANSWERED or not wrong[row].any():
            found.append(None)
            continue
        place = int(np.argmax(wrong[row]))
        expected, got = int(predicted[row, place]), int(observed[row, place])
        found.append(Disagreement(bits[row], place, expected, got, answers.scales[row], int(answers.tensor[row])))
    return found


def smallest(
    stage: Stage, way: int, bits: Array, asking: Asking, given: tuple[Array, Array] | None
) -> Disagreement | None:
    """The question with the fewest numbers that still differs, beginning with one; None where it differs no more."""
    first = differing(stage, way, bits[np.newaxis], asking, given)[0]
    if first is None:
        return None
    best = first
    for _ in range(ROUNDS):
        tried = _fewer(best.bits)
        if not len(tried) or asking.budget.left < len(tried) * tried.shape[1]:
            break
        many = None if given is None else (np.repeat(given[0], len(tried), 0), np.repeat(given[1], len(tried), 0))
        found = [one for one in differing(stage, way, tried, asking, many) if one is not None]
        if not found:
            break
        best = min(found, key=lambda one: int((one.bits != 0).sum()))
    return best


def _fewer(bits: Array) -> Array:
    """The same question with fewer numbers: one or two of them left, a half away, one away."""
    flat = bits.reshape(-1)
    places = np.flatnonzero(flat)
    if len(places) < 2:
        return np.zeros((0, *bits.shape), np.uint32)
    magnitude = np.where((flat & 0x7FFFFFFF) <= 0x7F800000, flat & 0x7FFFFFFF, 0)
    largest = int(np.argmax(magnitude))
    kept: list[Array] = [np.array([largest])]
    if len(places) > 2:
        kept += [np.unique([largest, place]) for place in places[:_MOST] if place != largest]
        half = len(places) // 2
        kept += [np.union1d(part, [largest]) for part in (places[:half], places[half:])]
    if len(places) <= 8:
        kept += [places[places != place] for place in places]
    out = np.zeros((len(kept), flat.size), np.uint32)
    for row, some in enumerate(kept):
        out[row, some] = flat[some]
    fewer = out[(out != 0).sum(axis=1) < len(places)]
    return np.unique(fewer, axis=0).reshape(-1, *bits.shape)
