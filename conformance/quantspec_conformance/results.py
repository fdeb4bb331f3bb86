"""What a run found: outcomes by scheme, failures in detail, and what was left out."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .compare import EXPECTED, OUTCOMES
from .errors import INTERRUPTED
from .failure import Failure

__all__ = ["DeviceResult", "RunResult"]


@dataclass(slots=True)
class DeviceResult:
    """The outcomes of one device."""

    label: str
    identity: dict[str, Any] = field(default_factory=dict)
    schemes: dict[str, Counter[str]] = field(default_factory=dict)
    families: Counter[str] = field(default_factory=Counter)
    refusal_rules: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)  #: failures by `step part`
    restarts: int = 0  #: how often its process was started again after a crash
    ended: str = ""  #: why the device did not reach the end
    unusable: str = ""  #: why it could not be opened

    def record(self, scheme: str, outcome: str, count: int = 1) -> None:
        """Count an outcome of a scheme."""
        self.schemes.setdefault(scheme, Counter())[outcome] += count

    @property
    def totals(self) -> dict[str, int]:
        """Cases by outcome, those that occurred, in the order of `OUTCOMES`."""
        counted: Counter[str] = Counter()
        for row in self.schemes.values():
            counted.update(row)
        return {outcome: counted[outcome] for outcome in OUTCOMES if counted[outcome]}

    @property
    def as_expected(self) -> bool:
        """True where every case ran and passed, or was refused on both sides."""
        return not (self.unusable or self.ended or self.restarts) and all(
            outcome in EXPECTED for outcome in self.totals
        )


@dataclass(slots=True)
class RunResult:
    """The outcomes of a run."""

    devices: list[DeviceResult]
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 as expected, 1 an unexpected outcome, 3 no usable device, 130 a run cut short, whatever it found until then."""
        if self.interrupted:
            return INTERRUPTED
        if self.devices and all(device.unusable for device in self.devices):
            return 3
        return 0 if all(device.as_expected for device in self.devices) else 1


def cell_counts(rows: Mapping[str, Counter[str]], members: Iterable[str]) -> tuple[int, int, Counter[str]]:
    """Of some schemes: how many are as expected throughout, how many were run, and their outcomes."""
    good = run = 0
    outcomes: Counter[str] = Counter()
    for text in members:
        row = rows.get(text)
        if not row:
            continue
        outcomes.update(row)
        if any(outcome != "notrun" for outcome in row):
            run += 1
            good += all(outcome in EXPECTED for outcome in row)
    return good, run, outcomes
