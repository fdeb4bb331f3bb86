"""A run of the suite in memory, and its cases as JSON. Patterns are hexadecimal text, so that no reader rounds them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..compare import Difference
from ..spec import rules
from ..suite.case import CASE_ID
from ..suite.outcome import OUTCOMES, CaseResult, SuiteMismatch

__all__ = ["COMPARISONS", "CaseRecord", "RunRecord", "clip"]

#: An outcome against the expectations: none speaks of it, failed as expected, passed against it, other wrong bits, waived.
COMPARISONS = ("", "xfail", "xpass", "changed", "waived")
#: Outcomes that need no expectation.
NEUTRAL = ("pass", "unsupported", "skipped", "notrun")
#: Bounds of result.schema.json. Texts of an implementation are cut to them, never refused.
TEXT, WORD, PART, ID, RULES, FIRST, BUCKETS, BUCKET = 4096, 256, 64, 256, 256, 1024, 16, 1024


def clip(text: str, limit: int = TEXT) -> str:
    """A text of at most `limit` characters; what is cut is counted at its end."""
    if len(text) <= limit:
        return text
    room = limit - len(f" [cut: {len(text)} more]")
    return f"{text[:room]} [cut: {len(text) - room} more]" if room > 0 else text[:limit]


def _mismatch(found: SuiteMismatch) -> SuiteMismatch:
    """A mismatch within the bounds."""
    buckets = {clip(name, BUCKET): count for name, count in list(found.buckets.items())[:BUCKETS]}
    first = found.first[:FIRST]
    part, message, pattern = clip(found.part, PART), clip(found.message), clip(found.pattern)
    return SuiteMismatch(part, found.kind, message, found.count, found.total, first, buckets, pattern)


@dataclass(frozen=True, slots=True)
class CaseRecord(CaseResult):
    """The outcome of a case with what the expectations foresaw, and how the two compare."""

    expected: str = "pass"
    comparison: str = ""

    @classmethod
    def of(cls, result: CaseResult, *, expected: str = "pass", comparison: str = "") -> "CaseRecord":
        """A result as a record within the bounds of the file. A rule that an implementation made up stays in the reason only.

        ValueError for an id, outcome or comparison that no file can hold: a fault of the harness, not of an implementation.
        """
        if not CASE_ID.fullmatch(result.id) or len(result.id) > ID:
            raise ValueError(f"{result.id!r} is not the id of a case")
        if result.outcome not in OUTCOMES or expected not in OUTCOMES or comparison not in COMPARISONS:
            raise ValueError(f"{result.id}: {result.outcome!r} {expected!r} {comparison!r} are not what a case can be")
        table = rules()
        return cls(
            result.id,
            result.outcome,
            clip(result.reason),
            result.rule if result.rule in table else "",
            tuple(rule for rule in result.rules if rule in table)[:RULES],
            None if result.mismatch is None else _mismatch(result.mismatch),
            result.digest,
            result.seconds,
            result.retries,
            expected,
            comparison,
        )

    @property
    def unexpected(self) -> bool:
        """True where the run is not as expected: a fault that nobody foresaw, other wrong bits, or a pass against all hope."""
        return self.comparison in ("xpass", "changed") or (not self.comparison and self.outcome not in NEUTRAL)

    def as_json(self) -> dict[str, Any]:
        """The record as the file holds it."""
        found = self.mismatch
        return {
            "record": "case",
            "id": self.id,
            "outcome": self.outcome,
            "expected": self.expected,
            "comparison": self.comparison,
            "reason": self.reason,
            "rule": self.rule,
            "rules": list(self.rules),
            "mismatch": None if found is None else _mismatch_json(found),
            "digest": self.digest,
            "seconds": self.seconds,
            "retries": self.retries,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "CaseRecord":
        """The record of an object that follows the schema."""
        found = content["mismatch"]
        return cls(
            content["id"],
            content["outcome"],
            content["reason"],
            content["rule"],
            tuple(content["rules"]),
            None if found is None else _mismatch_of(found),
            content["digest"],
            float(content["seconds"]),
            int(content["retries"]),
            content["expected"],
            content["comparison"],
        )


def _mismatch_json(found: SuiteMismatch) -> dict[str, Any]:
    return {
        "part": found.part,
        "kind": found.kind,
        "message": found.message,
        "count": found.count,
        "total": found.total,
        "first": [
            {
                "index": list(row.index),
                "flat": row.flat,
                "expected": f"0x{row.expected:X}",
                "actual": f"0x{row.actual:X}",
            }
            for row in found.first
        ],
        "buckets": dict(found.buckets),
        "pattern": found.pattern,
    }


def _mismatch_of(content: Mapping[str, Any]) -> SuiteMismatch:
    first = tuple(
        Difference(tuple(map(int, row["index"])), int(row["flat"]), int(row["expected"], 16), int(row["actual"], 16))
        for row in content["first"]
    )
    buckets = {name: int(count) for name, count in content["buckets"].items()}
    count, total = int(content["count"]), int(content["total"])
    return SuiteMismatch(
        content["part"], content["kind"], content["message"], count, total, first, buckets, content["pattern"]
    )


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run: header and footer as the file holds them, the cases in order. No footer: the run was killed, or goes on."""

    header: dict[str, Any]
    results: tuple[CaseRecord, ...]
    footer: dict[str, Any] | None = None

    @property
    def complete(self) -> bool:
        """True where the run came to its end and left no case out."""
        return self.footer is not None and bool(self.footer["complete"])

    @property
    def totals(self) -> dict[str, int]:
        """Cases by outcome, those that occurred, in the order of OUTCOMES."""
        counted = Counter(result.outcome for result in self.results)
        return {outcome: counted[outcome] for outcome in OUTCOMES if counted[outcome]}

    @property
    def by_id(self) -> dict[str, CaseRecord]:
        """The cases by id."""
        return {result.id: result for result in self.results}

    @property
    def unexpected(self) -> tuple[CaseRecord, ...]:
        """The cases that are not as expected."""
        return tuple(result for result in self.results if result.unexpected)
