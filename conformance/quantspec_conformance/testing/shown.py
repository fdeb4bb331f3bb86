"""A result as the text of a failing item."""

from ..outside import printable
from ..suite.case import Case
from ..suite.outcome import CaseResult
from ..triage.block import failure_block

__all__ = ["shown"]


def shown(case: Case, result: CaseResult, address: str, note: str = "") -> str:
    """The failure block, after one line that says what went wrong: that is what a summary shows of it.

    `note` is what expectations say; a case that passed against them has nothing but that.
    """
    if result.outcome == "pass":
        return note
    rule = f" [{result.rule}]" if result.rule else ""
    reason = printable(result.reason.partition("\n")[0])[:200]
    head = note or f"{result.outcome}: {reason}{rule}"
    return f"{head}\n{failure_block(case, result, address)}"
