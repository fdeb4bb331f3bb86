"""What a check of an adapter found: one line each, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["VERDICTS", "Finding", "exit_code", "finding_lines"]

VERDICTS = ("ok", "warn", "bad")
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
    """For the terminal: a line a finding, a second one with the hint."""
    lines: list[str] = []
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        lines.append(f"{_LABELS[finding.verdict]} {finding.check:{width}}  {finding.text}")
        if finding.hint and finding.verdict != "ok":
            lines.append(f"{'':{width + 7}}{finding.hint}")
    counted = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in VERDICTS}
    lines.append(", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count))
    return lines
