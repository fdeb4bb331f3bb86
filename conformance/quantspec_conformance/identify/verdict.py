"""What was found: for each part of each format the ways that agree with everything, and what refutes the others."""

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Counterexample", "Exempt", "Found", "Nearest", "PartFound", "Refuted", "by_axis", "outcome_code"]

IDENTIFIED, EXCEPT, NONE, CHANGES, SILENT, LACKING = (
    "identified",
    "identified, except",
    "none of the known",
    "answers change",
    "refuses",
    "not offered",
)


def by_axis(listed: list[dict[str, str]]) -> dict[str, list[str]]:
    """Axis -> its ways, each once."""
    found: dict[str, list[str]] = {}
    for ways in listed:
        for axis, way in ways.items():
            if way not in found.setdefault(axis, []):
                found[axis].append(way)
    return found


@dataclass(frozen=True, slots=True)
class Counterexample:
    """One question, its place where it differs, what is expected there and what came."""

    x: tuple[str, ...]  #: patterns of the block, or of the tensor's blocks one after another
    place: str
    expected: str
    got: str
    family: str = ""


@dataclass(frozen=True, slots=True)
class Refuted:
    """A way along an axis, and the question that refutes it where all else is as found."""

    axis: str
    way: str
    by: Counterexample


@dataclass(frozen=True, slots=True)
class Nearest:
    """A way that agrees most often where none agrees always."""

    ways: list[dict[str, str]]  #: they disagree on the same questions
    agrees: int
    of: int
    families: dict[str, tuple[int, int]]  #: family -> agreements, questions; those with a disagreement


@dataclass(frozen=True, slots=True)
class Exempt:
    """A domain in which ways that agree everywhere else do not: agreements there, questions, the smallest that differs."""

    domain: str
    what: str
    agrees: int
    of: int
    by: Counterexample | None


@dataclass(slots=True)
class PartFound:
    """One part: a stage of quantize, the codec of encode, the expression of dequantize, the container."""

    part: str
    outcome: str
    ways: list[dict[str, str]] = field(default_factory=list)  #: equal on everything tried
    refuted: list[Refuted] = field(default_factory=list)
    nearest: list[Nearest] = field(default_factory=list)
    counterexample: Counterexample | None = None
    exempt: list[Exempt] = field(default_factory=list)  #: where the ways that are left do not agree
    tried: int = 0

    @property
    def axes(self) -> dict[str, list[str]]:
        """Axis -> the ways that are left."""
        return by_axis(self.ways)


@dataclass(slots=True)
class Found:
    """One format of one implementation."""

    scheme: str
    outcome: str
    parts: list[PartFound] = field(default_factory=list)
    recipes: list[str] = field(default_factory=list)  #: rows that agree with everything
    codecs: list[str] = field(default_factory=list)
    presets: list[str] = field(default_factory=list)
    path: list[dict[str, Any]] = field(default_factory=list)
    blocks: int = 0
    requests: int = 0
    given: bool = False  #: scales were given: it chooses none
    asked_as: str = ""  #: the recipe that the requests name
    refusals: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """For --json."""
        return asdict(self)


def outcome_code(found: list[Found]) -> int:
    """The exit code: 0 everything that is offered is known, 1 something is not, 3 nothing is offered."""
    offered = [one for one in found if one.outcome != LACKING]
    if not offered:
        return 3
    return 0 if all(one.outcome == IDENTIFIED for one in offered) else 1
