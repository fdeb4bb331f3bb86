"""What the outcome of a case means for its item: pytest's own words, with or without expectations."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from ..expect.apply import Compared, apply
from ..expect.records import Expectations, read
from ..outside import printable
from ..suite.outcome import CaseResult

__all__ = ["Expected", "Judged", "verdict_of"]

Verdict = Literal["pass", "fail", "xfail", "skip"]
#: Problems of a file with expectations that no single case shows; the others fail the item of their case.
_OF_THE_FILE = ("implementation", "when", "stale", "unmatched", "ceiling", "contradiction")


@dataclass(frozen=True, slots=True)
class Judged:
    """What becomes of the item, why, and how that compares with what was expected."""

    verdict: Verdict
    note: str = ""
    comparison: str = ""


def verdict_of(result: CaseResult) -> Judged:
    """Without expectations: bad fails, what the implementation knows is an xfail, what it does not do is skipped."""
    if result.bad:
        return Judged("fail")
    if result.outcome == "pass":
        return Judged("pass")
    return Judged("xfail" if result.outcome == "known" else "skip", printable(result.reason) or result.outcome)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expectations of a file; none where there is no file."""

    content: Expectations | None = None
    today: date = date.min

    @classmethod
    def read(cls, path: Path | None) -> "Expected":
        """The expectations of a file. UsageError where it cannot be read."""
        return cls() if path is None else cls(read(path), date.today())

    def judge(self, result: CaseResult, info: Mapping[str, str]) -> Judged:
        """Strict: an expected failure that passes fails, and so does one whose bits are not those that were expected."""
        if self.content is None:
            return verdict_of(result)
        row = apply(self.content, [result], info, self.today).results[0]
        if row.comparison in ("xfail", "waived"):
            return Judged("xfail", self._entry(row), row.comparison)
        if row.comparison in ("xpass", "changed"):
            said = "passed" if row.comparison == "xpass" else f"is wrong in another way ({result.outcome})"
            return Judged("fail", f"{row.comparison}: {result.id} {said}; expected: {self._entry(row)}", row.comparison)
        return verdict_of(result)

    def _entry(self, row: Compared) -> str:
        """What an entry says, on one line."""
        if self.content is None or not row.entry:
            return row.expected
        entry = self.content.entries[row.entry - 1]
        return printable(
            " ".join(part for part in (f"entry {row.entry}: {row.expected}, {entry.reason}", entry.url) if part)
        )

    def problems(self, results: Iterable[CaseResult], info: Mapping[str, str], suite_ids: Collection[str]) -> list[str]:
        """What is wrong with the file itself after a run, a line each: stale, unmatched, contradictory."""
        if self.content is None:
            return []
        found = apply(self.content, results, info, self.today, suite_ids=suite_ids).problems
        return [str(problem) for problem in found if problem.kind in _OF_THE_FILE]
