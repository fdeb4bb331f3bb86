"""Two runs side by side: what is fixed, what broke, whose wrong bits changed, what is no longer supported, what one run lacks."""

import json
from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from ..expect.verdict import ResultLike
from ..outside import printable
from ..suite.outcome import BAD

__all__ = ["GROUPS", "Run", "compare_runs", "diff_runs"]

#: Groups of differences in the order of the lines, and whether one of them is worse than before.
GROUPS = {
    "broken": True,
    "changed": True,
    "lost": True,
    "unsupported": True,
    "other": False,
    "fixed": False,
    "supported": False,
    "added": False,
}
TITLES = {
    "broken": "passed before, wrong now",
    "changed": "wrong in both, in another way",
    "lost": "only in the first run",
    "unsupported": "ran before, no longer supported or not run",
    "other": "another outcome",
    "fixed": "wrong before, passes now",
    "supported": "not supported before, passes now",
    "added": "only in the second run",
}
ABSENT = ("unsupported", "skipped", "notrun")


@runtime_checkable
class Run(Protocol):
    """A run that was read from a file."""

    @property
    def results(self) -> Iterable[ResultLike]:
        """Its results."""
        ...


def _rows(run: "Iterable[ResultLike] | Run") -> dict[str, ResultLike]:
    rows: Iterable[ResultLike] = run.results if isinstance(run, Run) else run
    return {row.id: row for row in rows}


def compare_runs(a: "Iterable[ResultLike] | Run", b: "Iterable[ResultLike] | Run") -> dict[str, list[dict[str, Any]]]:
    """The cases of each group, with both outcomes and rules."""
    left, right = _rows(a), _rows(b)
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in GROUPS}
    for case_id in dict.fromkeys([*left, *right]):
        before, after = left.get(case_id), right.get(case_id)
        group = _group(before, after)
        if group:
            groups[group].append(
                {
                    "id": case_id,
                    "before": "" if before is None else before.outcome,
                    "after": "" if after is None else after.outcome,
                    "rule_before": "" if before is None else before.rule,
                    "rule_after": "" if after is None else after.rule,
                    "digest_before": "" if before is None else before.digest,
                    "digest_after": "" if after is None else after.digest,
                }
            )
    return groups


def _group(before: ResultLike | None, after: ResultLike | None) -> str:
    """The group of a case; "" where nothing changed."""
    if before is None or after is None:
        return "added" if before is None else "lost"
    old, new = before.outcome, after.outcome
    if old == new:
        return "changed" if old in BAD and (before.digest, before.rule) != (after.digest, after.rule) else ""
    if new in ABSENT:
        return "" if old in ABSENT else "unsupported"
    if old in ABSENT:
        return "supported" if new == "pass" else "broken" if new in BAD else "other"
    if new == "pass":
        return "fixed"
    if new in BAD:
        return "changed" if old in BAD else "broken"
    return "other"


def diff_runs(
    a: "Iterable[ResultLike] | Run", b: "Iterable[ResultLike] | Run", *, most: int = 50, as_json: bool = False
) -> tuple[list[str], int]:
    """The lines that say how the second run differs from the first, `most` cases a group; the exit code: 1 where it is worse.

    Worse is: broken, wrong in another way, lost, no longer supported.
    """
    groups = compare_runs(a, b)
    code = int(any(rows and GROUPS[name] for name, rows in groups.items()))
    if as_json:
        return [json.dumps({**groups, "worse": bool(code)}, ensure_ascii=False)], code
    lines = []
    for name, rows in groups.items():
        if rows:
            lines.append(f"{name:12s} {len(rows)}  {TITLES[name]}")
            lines += [f"  {_line(row)}" for row in rows[:most]]
            lines += [f"  ... and {len(rows) - most} more"] if len(rows) > most else []
    return lines or ["the same: no case differs"], code


def _line(row: dict[str, Any]) -> str:
    before, after = (
        f"{row[side] or '(none)'}{f' [{row[rule]}]' if row[rule] else ''}"
        for side, rule in (("before", "rule_before"), ("after", "rule_after"))
    )
    return printable(f"{row['id']}  {before} -> {after}")
