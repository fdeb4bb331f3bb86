"""One request that tells ways apart: which agree with its answer, and the first place where each of the others does not."""

from collections.abc import Callable, Sequence

import numpy as np

from .layout import Array
from .verdict import IDENTIFIED, NONE, Counterexample, Nearest, PartFound, Refuted

__all__ = ["judge_single"]


def judge_single(
    part: str, labels: Sequence[dict[str, str]], predicted: Array, got: Array, shown: Callable[[int], tuple[str, ...]],
    digits: int = 2,
) -> PartFound:  # fmt: skip
    """A verdict: `predicted` has a row for each of the labels, `shown` gives the input of a place."""
    agrees = predicted == got
    alive = np.flatnonzero(agrees.all(axis=1))
    found = PartFound(part, IDENTIFIED if len(alive) else NONE, tried=got.size)

    def by(index: int) -> Counterexample:
        place = int(np.argmin(agrees[index]))
        expected, came = int(predicted[index, place]), int(got[place])
        return Counterexample(shown(place), f"[{place}]", f"{expected:0{digits}X}", f"{came:0{digits}X}")

    if not len(alive):
        order = np.argsort(-agrees.sum(axis=1), kind="stable")
        alike = (agrees == agrees[order[0]]).all(axis=1)
        best = [label for label, same in zip(labels, alike, strict=True) if same]
        found.nearest = [Nearest(best, int(agrees[order[0]].sum()), got.size, {})]
        found.counterexample = by(int(order[0]))
        return found
    found.ways = [dict(labels[index]) for index in alive.tolist()]
    base, seen = labels[int(alive[0])], found.axes
    for index, label in enumerate(labels):
        other = [axis for axis in label if label[axis] != base.get(axis)]
        if len(other) == 1 and label[other[0]] not in seen.get(other[0], []) and not agrees[index].all():
            found.refuted.append(Refuted(other[0], label[other[0]], by(index)))
    return found
