"""Narrowing: the question that splits what is left best is asked next; who disagrees with the answer is out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .asking import ANSWERED
from .domains import DOMAINS, blocks_in, subsets
from .evidence import Evidence
from .layout import Array
from .predictions import ANY, Measured

__all__ = ["Stage", "Step", "agreement", "excepted", "exempted", "keep", "narrow", "places", "splits"]

_REFUSALS = 12  #: questions of a path that may be refused before it is given up
_STEPS = 60


class Stage(Protocol):
    """What has ways, each of which predicts answers."""

    def predict(self, which: Sequence[int], at: Measured, tensor: Array, scales: Array) -> Array:
        """Predictions of some of the ways, (ways, count, width)."""
        ...

    def observed(self, tensor: Array, scales: Array, codes: Array) -> Array:
        """What was answered, (count, width)."""
        ...

    def label(self, index: int) -> tuple[tuple[str, str], ...]:
        """Axes and ways of one."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One question of a decision path: how many were left before, in how many kinds they answer, how many agree."""

    stage: str
    question: int
    before: int
    kinds: int
    after: int


def agreement(
    stage: Stage, alive: Sequence[int], evidence: Evidence, which: Array, exempt: tuple[str, ...] = ()
) -> Array:
    """Which ways agree with which answered questions, but for the places of exempt domains: (ways, questions)."""
    if not len(which) or not alive:
        return np.ones((len(alive), len(which)), bool)
    agrees = places(stage, alive, evidence, which)
    if exempt:
        agrees |= exempted(agrees.shape[-1], exempt, evidence, which)
    return np.asarray(agrees.all(axis=-1))


def places(stage: Stage, alive: Sequence[int], evidence: Evidence, which: Array) -> Array:
    """Which ways agree with which places of answers: (ways, questions, width)."""
    answers = evidence.answers.at(which)
    predicted = stage.predict(alive, evidence.measured.take(which), answers.tensor, answers.scales)
    observed = stage.observed(answers.tensor, answers.scales, answers.codes)
    return np.asarray((predicted == observed) | (predicted == ANY))


def exempted(width: int, names: tuple[str, ...], evidence: Evidence, which: Array) -> Array:
    """Places of answers that lie in blocks of a domain, (questions, width); one place for all blocks is in it with any."""
    found = blocks_in(names, evidence.layout, evidence.pool.bits[which])
    if width < found.shape[1]:
        return np.asarray(found.any(axis=1, keepdims=True))
    return np.repeat(found, width // found.shape[1], axis=1)


def keep(
    stage: Stage, alive: Sequence[int], evidence: Evidence, which: Array, exempt: tuple[str, ...] = ()
) -> list[int]:
    """The ways that agree with every answer."""
    agrees = agreement(stage, alive, evidence, which, exempt)
    return [index for index, row in zip(alive, agrees, strict=True) if row.all()]


def excepted(stage: Stage, count: int, evidence: Evidence, which: Array) -> tuple[list[int], tuple[str, ...]]:
    """The ways that agree everywhere outside the fewest domains, and those; none where that takes more than MOST.

    Of as many domains those with the fewest places. Where more than half of the questions lie wholly inside, nothing was found.
    """
    every = tuple(DOMAINS)
    alive = keep(stage, range(count), evidence, which, every)
    if not alive or not len(which):
        return [], ()
    agrees = places(stage, alive, evidence, which)
    best: tuple[tuple[int, int], list[int], tuple[str, ...]] | None = None
    for names in subsets(every):
        if best is not None and len(names) > best[0][0]:
            break
        outside = exempted(agrees.shape[-1], names, evidence, which)
        good = np.flatnonzero((agrees | outside).all(axis=(1, 2)))
        weight = (len(names), int(outside.sum()))
        if len(good) and 2 * int(outside.all(axis=1).sum()) <= len(which) and (best is None or weight < best[0]):
            best = (weight, [alive[index] for index in good], names)
    return ([], ()) if best is None else best[1:]


def splits(stage: Stage, alive: Sequence[int], at: Measured, tensor: Array, scales: Array) -> Array:
    """One number for each prediction of each way, equal where the predictions are: (ways, questions)."""
    predicted = stage.predict(alive, at, tensor, scales)
    weights = np.random.default_rng(1).integers(1, 2**62, predicted.shape[-1]) * 2 + 1
    with np.errstate(over="ignore"):
        return np.asarray((predicted.astype(np.int64) * weights).sum(axis=-1))


def _entropy(keys: Array) -> Array:
    """Entropy of the answers to each question, in bits, every way counted once."""
    ways, questions = keys.shape
    ordered = np.sort(keys, axis=0)
    new = np.ones((ways + 1, questions), bool)
    new[1:-1] = ordered[1:] != ordered[:-1]
    column, row = np.nonzero(new.T)
    length = np.diff(row)
    inside = length > 0
    part = length[inside] / ways
    found = np.zeros(questions)
    np.add.at(found, column[:-1][inside], -part * np.log2(part))
    return found


def _replay(name: str, stage: Stage, alive: list[int], evidence: Evidence, path: list[Step]) -> list[int]:
    """The ways that agree with all answers so far; the questions that put some of them out are steps of the path too."""
    which = evidence.answered
    agrees = agreement(stage, alive, evidence, which)
    good = np.ones(len(alive), bool)
    for column, question in enumerate(which):
        before = int(good.sum())
        good &= agrees[:, column]
        if good.sum() < before:
            path.append(Step(name, int(question), before, 0, int(good.sum())))
    return [index for index, one in zip(alive, good, strict=True) if one]


def narrow(name: str, stage: Stage, alive: list[int], evidence: Evidence, path: list[Step]) -> list[int]:
    """The ways that agree with all answers so far and with those to the questions that are asked here."""
    alive = _replay(name, stage, alive, evidence, path)
    left = evidence.open
    if len(alive) < 2 or not len(left):
        return alive
    tensor, scales = evidence.scales(left)
    keys = splits(stage, alive, evidence.measured.take(left), tensor, scales)
    weight = (evidence.pool.bits[left] & 0x7FFFFFFF != 0).sum(axis=(1, 2)) * 1e-6
    refused = 0
    for _ in range(_STEPS):
        entropy = _entropy(keys)
        if len(alive) < 2 or entropy.max(initial=0.0) < 1e-9 or refused > _REFUSALS:
            break
        best = int(np.argmax(np.where(entropy > 1e-9, entropy - weight, -1)))
        question = left[best : best + 1]
        kinds = len(np.unique(keys[:, best]))
        evidence.ask(question)
        status = int(evidence.answers.status[question[0]])
        if status == ANSWERED:
            agrees = agreement(stage, alive, evidence, question)[:, 0]
            path.append(Step(name, int(question[0]), len(alive), kinds, int(agrees.sum())))
            alive = [index for index, good in zip(alive, agrees, strict=True) if good]
            keys = keys[agrees]
        else:
            refused += 1
        rest = np.arange(len(left)) != best
        left, keys, weight = left[rest], keys[:, rest], weight[rest]
        if not len(left) or not evidence.asking.budget.left:
            break
    return alive
