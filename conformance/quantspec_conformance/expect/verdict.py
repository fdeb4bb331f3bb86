"""One entry against one result: what is looked at, the signature of a wrong result, and how they compare."""

import re
from typing import Protocol

from ..spec import rules
from .records import Entry

__all__ = ["CHANGED", "MismatchLike", "ResultLike", "signature", "verdict"]

#: Verdicts of a result that is wrong in another way than its entry says.
CHANGED = ("outcome", "signature", "digest")
#: Outcomes that tell nothing of the implementation.
SILENT = ("notrun", "skipped")
_PART = re.compile(r"[a-z0-9_-]{1,40}")


class MismatchLike(Protocol):
    """What a signature needs of a mismatch."""

    @property
    def part(self) -> str:
        """The tensor or word that differs."""
        ...

    @property
    def kind(self) -> str:
        """How."""
        ...


class ResultLike(Protocol):
    """What expectations need of a result: a CaseResult, or a record of a result file."""

    @property
    def id(self) -> str:
        """Id of the case."""
        ...

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        ...

    @property
    def rule(self) -> str:
        """The rule that was broken, or ""."""
        ...

    @property
    def mismatch(self) -> MismatchLike | None:
        """How bits differ, where they do."""
        ...

    @property
    def digest(self) -> str:
        """Of the wrong answer, or ""."""
        ...


def signature(result: ResultLike) -> str:
    """part/kind/rule of a wrong result: `codes/bits/QNT-5`; `-/wrong-error/SCL-20` where no bits were compared."""
    rule = result.rule if result.rule in rules() else "-"  # an implementation may name any
    if result.mismatch is None:
        return f"-/{result.outcome}/{rule}"
    part = result.mismatch.part if _PART.fullmatch(result.mismatch.part) else "-"
    return f"{part}/{result.mismatch.kind}/{rule}"


def verdict(entry: Entry, result: ResultLike) -> str:
    """How one entry sees one result: "", xfail, waived or xpass; `outcome`, `signature` or `digest` for what changed."""
    if result.outcome != entry.outcome:
        if result.outcome in SILENT or (entry.kind == "flaky" and result.outcome == "pass"):
            return ""
        return "xpass" if result.outcome == "pass" else "outcome"
    if entry.signature:
        pairs = zip(entry.signature.split("/"), signature(result).split("/"), strict=True)
        if any(wanted not in ("*", actual) for wanted, actual in pairs):
            return "signature"
    if entry.digest and result.digest not in entry.digest:
        return "digest"
    return "waived" if entry.kind == "waiver" else "xfail"
