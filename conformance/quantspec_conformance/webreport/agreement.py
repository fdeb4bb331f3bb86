"""What several runs say together: the same wrong bits in several implementations, and what changed from one run to another."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from ..suite.outcome import BAD, CaseResult
from .book import UNTOUCHED, Book
from .runs import ReportRun

__all__ = ["KINDS", "Agreement", "Change", "Comparison", "agreements", "compare", "comparisons"]

#: Outcomes that are an answer, and not the one that is due.
ANSWERED = ("fail", "reject-missing", "wrong-error")


@dataclass(frozen=True, slots=True)
class Agreement:
    """A case that implementations of different names answered in the same wrong way."""

    case_id: str
    digest: str
    runs: tuple[ReportRun, ...]
    others: int  #: runs that executed the case and answered otherwise
    passed: int  #: those of them that passed


def agreements(book: Book) -> list[Agreement]:
    """Every group of two or more implementations with one wrong answer; the largest groups first."""
    found: list[Agreement] = []
    for case_id in book.told:
        groups: dict[str, list[ReportRun]] = {}
        rows = book.of_case(case_id)
        for run, row in rows:
            if row.outcome in ANSWERED and row.digest:
                groups.setdefault(row.digest, []).append(run)
        executed = sum(row.outcome not in UNTOUCHED for _, row in rows)
        passed = sum(row.outcome == "pass" for _, row in rows)
        for digest, runs in groups.items():
            if len({run.name for run in runs}) > 1:
                found.append(Agreement(case_id, digest, tuple(runs), executed - len(runs), passed))
    return sorted(found, key=lambda row: (-len(row.runs), row.passed))


@dataclass(frozen=True, slots=True)
class Change:
    """A case in two runs; None where a run has no result of it."""

    case_id: str
    before: CaseResult | None
    after: CaseResult | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of one suite, what changed by kind, and how many cases did not."""

    first: ReportRun
    second: ReportRun
    changes: Mapping[str, tuple[Change, ...]]
    same: int

    @property
    def page(self) -> str:
        """File name of its page."""
        return f"diff-{self.first.key}-{self.second.key}.html"


#: Kinds of change, with what each means.
KINDS = {
    "broken": "passes in the first, is wrong in the second",
    "fixed": "is wrong in the first, passes in the second",
    "changed": "wrong in both, with other bits or another outcome",
    "other": "the outcome changed between pass, unsupported, known and not run",
    "new": "only in the second",
    "gone": "only in the first",
}


def comparisons(book: Book) -> list[Comparison]:
    """Every pair of runs of one suite."""
    return [compare(a, b) for a, b in combinations(book.runs, 2) if a.suite and a.suite == b.suite]


def compare(first: ReportRun, second: ReportRun) -> Comparison:
    """What changed from one run to another; the cases that only one of them has are new or gone."""
    found: dict[str, list[Change]] = {name: [] for name in KINDS}
    same = 0
    for case_id in dict.fromkeys([*first.results, *second.results]):
        change = Change(case_id, first.results.get(case_id), second.results.get(case_id))
        kind = _kind(change.before, change.after)
        if kind:
            found[kind].append(change)
        else:
            same += 1
    return Comparison(first, second, {name: tuple(rows) for name, rows in found.items()}, same)


def _kind(before: CaseResult | None, after: CaseResult | None) -> str:
    """The kind of a change; nothing where all is as it was."""
    if before is None or after is None:
        return "new" if before is None else "gone"
    wrong = (before.outcome in BAD, after.outcome in BAD)
    if all(wrong):
        return "changed" if (before.outcome, before.digest) != (after.outcome, after.digest) else ""
    if before.outcome == after.outcome:
        return ""
    if wrong[1] and before.outcome == "pass":
        return "broken"
    if wrong[0] and after.outcome == "pass":
        return "fixed"
    return "other"
