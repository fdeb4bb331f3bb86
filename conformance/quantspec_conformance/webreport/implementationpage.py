"""The page of an implementation: who it is, what it does, what it got wrong by rule, what it lacks, what it knows of."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..suite.outcome import CaseResult
from .book import Book, feature_of
from .runs import CAPABILITIES, ReportRun

__all__ = ["ByRule", "Lack", "by_rule", "capabilities", "comparisons_of", "facts", "known", "lacks"]

_IDENTITY = ("name", "version", "language", "device", "driver", "build", "source", "issues", "address")
_LIMITS = ("max_rank", "max_elements", "max_in_flight", "deterministic")


@dataclass(frozen=True, slots=True)
class ByRule:
    """Failures that one rule is named for."""

    rule: str
    title: str
    results: tuple[CaseResult, ...]


@dataclass(frozen=True, slots=True)
class Lack:
    """A feature that it does not have, and the cases that ask for it."""

    feature: str
    results: tuple[CaseResult, ...]
    reasons: tuple[tuple[str, int], ...]  #: in full, the most frequent first


def _said(value: Any) -> str:
    """A value of a header in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_said(part)}" for name, part in value.items() if part not in ("", None))
    return "" if value is None else str(value)


def facts(run: ReportRun) -> list[tuple[str, str]]:
    """Identity and run: name and value of what is known."""
    rows = [(name, _said(run.identity.get(name))) for name in _IDENTITY]
    rows.append(("protocol", _said(run.header.get("protocol"))))
    for name in ("run", "started", "suite", "spec", "selection", "seed", "host"):
        rows.append((name, _said(run.header.get(name))))
    if run.footer is not None:
        rows.append(("ended", _said(run.footer.get("ended"))))
    command = run.header.get("command")
    rows.append(("command", " ".join(map(str, command)) if isinstance(command, (list, tuple)) else _said(command)))
    return [(name, value) for name, value in rows if value]


def capabilities(run: ReportRun) -> list[tuple[str, str]]:
    """What it says it does; an empty list is everything."""
    rows = [(name, _said(run.identity.get(name)) or "all") for name in CAPABILITIES]
    for name in _LIMITS:
        value = run.identity.get(name)
        if value is not None:
            rows.append((name.replace("_", " "), "any" if value == 0 and value is not False else _said(value)))
    policies = run.identity.get("policies")
    return [*rows, *([("policies", _said(policies))] if policies else [])]


def by_rule(book: Book, run: ReportRun) -> list[ByRule]:
    """Failures by rule, the most first."""
    found = [
        ByRule(rule, book.rule_title(rule), tuple(run.results[case_id] for case_id in found[run.key]))
        for rule, found in book.breakers.items()
        if run.key in found
    ]
    return sorted(found, key=lambda row: (-len(row.results), row.rule))


def lacks(run: ReportRun) -> list[Lack]:
    """What cases were turned down for, the most cases first. A reason begins with its feature."""
    found: dict[str, list[CaseResult]] = {}
    for row in run.results.values():
        if row.outcome == "unsupported":
            found.setdefault(feature_of(row), []).append(row)
    rows = [
        Lack(feature, tuple(results), tuple(Counter(row.reason for row in results).most_common()))
        for feature, results in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row.results), row.feature))


def known(run: ReportRun) -> list[tuple[str, str, list[CaseResult]]]:
    """Issues that the implementation names itself: address or word, message, cases."""
    found: dict[tuple[str, str], list[CaseResult]] = {}
    for row in run.results.values():
        if row.outcome == "known":
            url, _, message = row.reason.partition(" ")
            found.setdefault((url, message), []).append(row)
    return [(url, message, rows) for (url, message), rows in found.items()]


def comparisons_of(run: ReportRun) -> dict[str, list[CaseResult]]:
    """Cases by what their outcome is against the expectations (xfail, xpass, changed, waived)."""
    names = Counter(comparison for _, comparison in run.foreseen.values() if comparison)
    return {
        name: [run.results[case_id] for case_id, (_, comparison) in run.foreseen.items() if comparison == name]
        for name in sorted(names)
    }
