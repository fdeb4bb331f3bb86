"""Runs of one implementation over time: the share of cases that pass, and what changed from each run to the next."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .agreement import Comparison, compare
from .book import Book
from .runs import ReportRun

__all__ = ["Point", "Series", "trends"]

#: The drawing of a series: its width and height, and the edge that keeps the dots inside.
WIDTH, HEIGHT, EDGE = 240, 48, 4


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a series: its share in per mille, its place in the drawing, what changed since the run before it."""

    run: ReportRun
    passed: int
    total: int
    x: int
    y: int
    change: Comparison | None
    page: str  #: of the comparison; "" where the suites differ

    @property
    def other_suite(self) -> bool:
        """True where the run before was one of another suite: only cases that both have can be compared."""
        return self.change is not None and not self.page


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of one implementation under one policy, the earliest first."""

    name: str
    points: tuple[Point, ...]

    @property
    def line(self) -> str:
        """The points of the line, as SVG has them."""
        return " ".join(f"{point.x},{point.y}" for point in self.points)


def trends(book: Book, compared: Sequence[Comparison]) -> list[Series]:
    """A series for each implementation, and policy of it, that was run more than once."""
    groups: dict[tuple[str, str], list[ReportRun]] = {}
    for run in book.runs:
        groups.setdefault((run.name, run.policy), []).append(run)
    pages = {frozenset((row.first.key, row.second.key)): row.page for row in compared}
    return [
        Series(" ".join(part for part in (name, policy) if part), _points(runs, pages))
        for (name, policy), runs in groups.items()
        if len(runs) > 1
    ]


def _points(runs: Sequence[ReportRun], pages: dict[frozenset[str], str]) -> tuple[Point, ...]:
    ordered = sorted(runs, key=_order)  # stable: what has no date comes last, as it was given
    found: list[Point] = []
    for run, x in zip(ordered, _places(ordered), strict=True):
        passed, total = run.totals.get("pass", 0), len(run.results)
        y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * passed // max(total, 1)
        before = found[-1].run if found else None
        change = None if before is None else compare(before, run)
        page = "" if before is None else pages.get(frozenset((before.key, run.key)), "")
        found.append(Point(run, passed, total, x, y, change, page))
    return tuple(found)


def _moment(run: ReportRun) -> float | None:
    """When a run began; None where its header does not tell."""
    try:
        read = datetime.fromisoformat(str(run.header.get("started", "")))
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _order(run: ReportRun) -> float:
    moment = _moment(run)
    return math.inf if moment is None else moment


def _places(runs: Sequence[ReportRun]) -> list[int]:
    """Places along the drawing: by time where every run tells one, else evenly."""
    moments = [_moment(run) for run in runs]
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(runs) or known[0] == known[-1]:
        known = [float(number) for number in range(len(runs))]
    span = known[-1] - known[0]
    return [EDGE + round((WIDTH - 2 * EDGE) * (moment - known[0]) / span) for moment in known]
