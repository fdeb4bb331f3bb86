"""Results of peers as they are recorded: peers/results, a summary of each and the matrix."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..peers.table import folder
from ..suite.outcome import BAD

__all__ = ["KINDS", "matrix", "share", "summary", "tally"]

#: What a reader asks first: right bits, other bits, no answer for the format.
KINDS = ("pass", "differ", "unsupported")


@cache
def summary(peer: str) -> dict[str, Any] | None:
    """The summary of a peer; None where it was not run."""
    path = folder() / "results" / f"{peer}.summary.json"
    found: dict[str, Any] | None = json.loads(path.read_text("utf-8")) if path.exists() else None
    return found


@cache
def matrix() -> dict[str, Any]:
    """Every group of cases by peer."""
    found: dict[str, Any] = json.loads((folder() / "results" / "matrix.json").read_text("utf-8"))
    return found


def tally(outcomes: Mapping[str, int]) -> dict[str, int]:
    """Outcomes in three kinds; whatever is neither right nor unsupported differs."""
    known = {"pass": "pass", "known": "pass", "unsupported": "unsupported", **dict.fromkeys(BAD, "differ")}
    found: dict[str, int] = dict.fromkeys(KINDS, 0)
    for outcome, count in outcomes.items():
        found[known.get(outcome, "unsupported")] += count
    return found


def share(counts: Mapping[str, int]) -> str:
    """The share of right bits among what was answered, in whole per cent; 100 and 0 only where it is exact."""
    right, answered = counts["pass"], counts["pass"] + counts["differ"]
    if not answered:
        return ""
    if right in (0, answered):
        return "100 %" if right else "0 %"
    return f"{min(99, max(1, round(100 * right / answered)))} %"
