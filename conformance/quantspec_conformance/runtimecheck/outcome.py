"""What became of a row."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["BAD", "Outcome", "Status"]

Status = Literal["ok", "mismatch", "crash", "timeout", "refused", "missing"]

#: What makes the check fail. A runtime that is not installed is reported, and fails only a strict check.
BAD: tuple[Status, ...] = ("mismatch", "crash", "timeout", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a row: `count` is how many things were right, or how many were wrong where it is bad."""

    status: Status
    detail: str = ""
    count: int = 0
    first: str = ""  #: the first thing that was wrong, in full
    repro: str = ""  #: a command line that shows it
    device: str = ""
    install: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """For the result file."""
        found = asdict(self)
        return {**found, "install": list(self.install), "notes": list(self.notes), "seconds": round(self.seconds, 1)}
