"""Covering: few rows in which every pair, or every three, of the levels of different factors meet.

Ids rest on what a row says, not on its number. To add a level later, give the rows of before as `known`: the rows that are
there stay, others are added.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Cover", "cover"]

Row = tuple[int, ...]
#: Whether two levels of two factors (by name and level) may stand in one row.
Fits = Callable[[str, object, str, object], bool]


@dataclass(frozen=True, slots=True)
class Cover:
    """The rows, as levels by factor, and the combinations that no row can hold."""

    rows: tuple[dict[str, object], ...]
    holes: tuple[dict[str, object], ...]


def cover(
    factors: Mapping[str, Sequence[object]], fits: Fits, *, strength: int = 2, known: Sequence[Row] = ()
) -> Cover:
    """Rows for every fitting combination of `strength` levels; greedy, and the same wherever it runs."""
    names = tuple(factors)
    sizes = [len(factors[name]) for name in names]
    fit = {
        (i, a, j, b): fits(names[i], factors[names[i]][a], names[j], factors[names[j]][b])
        for i, j in itertools.permutations(range(len(names)), 2)
        for a in range(sizes[i])
        for b in range(sizes[j])
    }
    work = _Work(sizes, fit, strength)
    for row in known:
        work.add(row)
    holes: list[dict[str, object]] = []
    for wanted in work.combinations():
        if wanted in work.open:
            found = work.row_with(dict(wanted))
            if found is None:
                holes.append({names[i]: factors[names[i]][a] for i, a in wanted})
            else:
                work.add(found)
    rows = tuple({name: factors[name][a] for name, a in zip(names, row, strict=True)} for row in work.rows)
    return Cover(rows, tuple(holes) + tuple(_misfits(factors, names, fit) if strength == 2 else ()))


def _misfits(
    factors: Mapping[str, Sequence[object]], names: Sequence[str], fit: Mapping[tuple[int, int, int, int], bool]
) -> list[dict[str, object]]:
    return [
        {names[i]: factors[names[i]][a], names[j]: factors[names[j]][b]}
        for (i, a, j, b), allowed in fit.items()
        if i < j and not allowed
    ]


class _Work:
    """Which combinations are still open, and the rows so far."""

    def __init__(self, sizes: Sequence[int], fit: Mapping[tuple[int, int, int, int], bool], strength: int) -> None:
        self.sizes, self.fit, self.strength = sizes, fit, strength
        self.rows: list[Row] = []
        self.open = set(self.combinations())

    def combinations(self) -> list[tuple[tuple[int, int], ...]]:
        """Every combination whose levels fit pair by pair, in order, most levels first."""
        chosen = sorted(
            itertools.combinations(range(len(self.sizes)), self.strength),
            key=lambda group: [-self.sizes[i] for i in group],
        )
        found = []
        for group in chosen:
            for levels in itertools.product(*(range(self.sizes[i]) for i in group)):
                wanted = tuple(zip(group, levels, strict=True))
                if all(self.fit[*p, *q] for p, q in itertools.combinations(wanted, 2)):
                    found.append(wanted)
        return found

    def add(self, row: Row) -> None:
        """Take a row in: what it holds is no longer open."""
        self.rows.append(row)
        self.open.difference_update(itertools.combinations(enumerate(row), self.strength))

    def row_with(self, chosen: dict[int, int]) -> Row | None:
        """A row that holds the chosen levels and, factor by factor, most of what is open; None where nothing fits."""
        missing = [i for i in range(len(self.sizes)) if i not in chosen]
        if not missing:
            return tuple(chosen[i] for i in range(len(self.sizes)))
        i = missing[0]
        turn = len(self.rows)
        levels = [
            (turn + k) % self.sizes[i]
            for k in range(self.sizes[i])
            if all(self.fit[i, (turn + k) % self.sizes[i], j, b] for j, b in chosen.items())
        ]
        for level in sorted(levels, key=lambda level: -self._gain(i, level, chosen)):
            row = self.row_with({**chosen, i: level})
            if row is not None:
                return row
        return None

    def _gain(self, i: int, level: int, chosen: Mapping[int, int]) -> int:
        others = itertools.combinations(chosen.items(), self.strength - 1)
        return sum(tuple(sorted([*group, (i, level)])) in self.open for group in others)
