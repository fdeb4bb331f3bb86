"""One request that tells ways apart: which agree with its answer, and the first place where each of the others does not."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .domains import subsets
from .layout import Array
from .verdict import EXCEPT, IDENTIFIED, NONE, Counterexample, Exempt, Nearest, PartFound, Refuted

__all__ = ["judge_single"]


def judge_single(
    part: str, labels: Sequence[dict[str, str]], predicted: Array, got: Array, shown: Callable[[int], tuple[str, ...]],
    digits: int = 2, domains: Mapping[str, tuple[Array, str]] | None = None,
) -> PartFound:  # fmt: skip
    """A verdict: `predicted` has a row for each of the labels, `shown` gives the input of a place.

    `domains`: name -> which places are in it, and what it is; where no way agrees everywhere, those that agree outside the
    fewest of them.
    """
    agrees = predicted == got
    names = () if agrees.all(axis=1).any() else _exempt(agrees, domains or {})
    outside = np.zeros(got.shape, bool)
    for name in names:
        outside |= (domains or {})[name][0]
    alive = np.flatnonzero((agrees | outside).all(axis=1))
    found = PartFound(part, (EXCEPT if names else IDENTIFIED) if len(alive) else NONE, tried=got.size)

    def by(index: int, among: Array) -> Counterexample:
        place = int(np.argmin(agrees[index] | ~among))
        expected, came = int(predicted[index, place]), int(got[place])
        return Counterexample(shown(place), f"[{place}]", f"{expected:0{digits}X}", f"{came:0{digits}X}")

    everywhere = np.ones(got.shape, bool)
    if not len(alive):
        order = np.argsort(-agrees.sum(axis=1), kind="stable")
        alike = (agrees == agrees[order[0]]).all(axis=1)
        best = [label for label, same in zip(labels, alike, strict=True) if same]
        found.nearest = [Nearest(best, int(agrees[order[0]].sum()), got.size, {})]
        found.counterexample = by(int(order[0]), everywhere)
        return found
    found.ways = [dict(labels[index]) for index in alive.tolist()]
    nearest = int(alive[np.argmax(agrees[alive].sum(axis=1))])
    for name in names:
        among, what = (domains or {})[name]
        wrong = among & ~agrees[nearest]
        counts = int((among & agrees[nearest]).sum()), int(among.sum())
        found.exempt.append(Exempt(name, what, *counts, by(nearest, among) if wrong.any() else None))
    base, seen = labels[int(alive[0])], found.axes
    for index, label in enumerate(labels):
        other = [axis for axis in label if label[axis] != base.get(axis)]
        if len(other) == 1 and label[other[0]] not in seen.get(other[0], []) and not (agrees[index] | outside).all():
            found.refuted.append(Refuted(other[0], label[other[0]], by(index, ~outside)))
    return found


def _exempt(agrees: Array, domains: Mapping[str, tuple[Array, str]]) -> tuple[str, ...]:
    """The fewest domains outside of which a way agrees; none where there are none, or they hold more than half of the places."""
    for names in subsets(tuple(domains)):
        outside = np.any([domains[name][0] for name in names], axis=0)
        if (agrees | outside).all(axis=1).any() and 2 * int(outside.sum()) <= outside.size:
            return names
    return ()
