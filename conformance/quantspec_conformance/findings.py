"""What a check of an adapter found: one line each, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["VERDICTS", "WIDTH", "Finding", "count_line", "exit_code", "finding_lines", "row_lines"]

VERDICTS = ("ok", "warn", "bad")
WIDTH = 17  #: of the longest name of a check, for rows that are printed as they come
_LABELS = {"ok": "ok  ", "warn": "WARN", "bad": "BAD "}
#: Checks without which nothing else can be said: no usable adapter.
_FIRST = ("start",)


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is the name of what was looked at, `text` what was seen, `hint` what to do where it is not ok."""

    check: str
    verdict: str
    text: str
    hint: str = ""

    @property
    def bad(self) -> bool:
        """True where no run should begin."""
        return self.verdict == "bad"


def exit_code(findings: Sequence[Finding]) -> int:
    """0: nothing bad; 1: something is; 3: there is no adapter to speak of."""
    if any(finding.bad and finding.check in _FIRST for finding in findings):
        return 3
    return 1 if any(finding.bad for finding in findings) else 0


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """For the terminal: the rows of all findings, and how many there are of each verdict."""
    width = max((len(finding.check) for finding in findings), default=0)
    rows = [line for finding in findings for line in row_lines(finding, width)]
    return [*rows, count_line(findings)]


def row_lines(finding: Finding, width: int = WIDTH) -> list[str]:
    """One finding: a line, further lines of its text and the hint below it, indented."""
    first, *more = finding.text.splitlines() or [""]
    more += finding.hint.splitlines() if finding.verdict != "ok" else []
    row = f"{_LABELS[finding.verdict]} {finding.check:{width}}  {first}"
    return [row, *(f"{'':{width + 7}}{line}" for line in more)]


def count_line(findings: Sequence[Finding]) -> str:
    """The last line: findings by verdict."""
    counted = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count)
