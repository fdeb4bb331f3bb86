"""A run as the report reads it: the header of a result file with what the results say, in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..errors import UsageError
from ..resultset.record import RunRecord
from ..suite.outcome import BAD, OUTCOMES, CaseResult
from .text import clean, slug

__all__ = ["CAPABILITIES", "ReportRun", "Source", "labelled"]

#: Fields of an identity that list what an implementation does; an empty list means everything of the kind.
CAPABILITIES = ("ops", "values", "stores", "scales", "modes", "levels")
LABEL = 60

#: What a run is made of.
Source: TypeAlias = "RunRecord | ReportRun | tuple[Mapping[str, Any], Sequence[CaseResult]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRun:
    """One run: `key` names its pages, `label` its column; results by case id, the last of an id counts."""

    header: Mapping[str, Any]
    results: Mapping[str, CaseResult]
    foreseen: Mapping[str, tuple[str, str]]  #: case id -> expected outcome, comparison with it; "" where there is none
    footer: Mapping[str, Any] | None = field(default_factory=dict)  #: None: the run did not come to one
    key: str = ""
    label: str = ""
    policy: str = ""  #: the policies that it declares, as far as other runs of the implementation declare others

    @classmethod
    def of(cls, record: Source) -> "ReportRun":
        """The run of a RunRecord, of a pair (header, results), or itself. UsageError for anything else."""
        if isinstance(record, cls):
            return record
        if isinstance(record, tuple):
            header, results = record
            footer: Mapping[str, Any] | None = {}
        elif isinstance(record, RunRecord):
            header, results, footer = record.header, record.results, record.footer
        else:
            raise UsageError(f"a run has a header and results; {type(record).__name__} has none")
        foreseen = {row.id: (_word(row, "expected"), _word(row, "comparison")) for row in results}
        return cls(header=header, results={row.id: row for row in results}, foreseen=foreseen, footer=footer)

    def part(self, name: str) -> Mapping[str, Any]:
        """An object of the header; empty where it is missing or none."""
        found = self.header.get(name)
        return found if isinstance(found, Mapping) else {}

    @property
    def identity(self) -> Mapping[str, Any]:
        """What the implementation said of itself, and its address."""
        return self.part("implementation")

    @property
    def name(self) -> str:
        """The name from the handshake; two runs with one name are runs of one implementation."""
        return str(self.identity.get("name") or self.identity.get("address") or "unnamed")

    @property
    def policies(self) -> Mapping[str, str]:
        """Axis -> the policy that it declares."""
        found = self.identity.get("policies")
        return {str(axis): str(value) for axis, value in found.items()} if isinstance(found, Mapping) else {}

    @property
    def address(self) -> str:
        """What `--impl` takes."""
        return str(self.identity.get("address") or "")

    @property
    def suite(self) -> str:
        """Digest of the suite; only runs of one suite are compared."""
        return str(self.part("suite").get("digest") or "")

    @property
    def page(self) -> str:
        """File name of its page."""
        return f"implementation-{self.key}.html"

    @property
    def totals(self) -> dict[str, int]:
        """Cases by outcome, in the order of OUTCOMES; outcomes that are unknown here come last."""
        counted = Counter(row.outcome for row in self.results.values())
        order = [*OUTCOMES, *sorted(set(counted) - set(OUTCOMES))]
        return {outcome: counted[outcome] for outcome in order if counted[outcome]}

    @property
    def bad(self) -> int:
        """Cases that are wrong or broke."""
        return sum(count for outcome, count in self.totals.items() if outcome in BAD)

    @property
    def caveats(self) -> list[str]:
        """Why its numbers are not those of a whole run."""
        found = ["a quick run: not conformance"] if self.header.get("quick") else []
        if self.footer is None:
            found.append("the file has no end: the run was broken off, or goes on")
        elif self.footer.get("interrupted") or not self.footer.get("complete", True):
            found.append("the run did not reach its end")
        return found


def _word(row: CaseResult, name: str) -> str:
    return str(getattr(row, name, "") or "")


def _policy(run: ReportRun, runs: Sequence[ReportRun]) -> str:
    """`[axis value, ...]`: the axes on which runs of one implementation differ; "" where they agree."""
    others = [other.policies for other in runs if other.name == run.name]
    axes = sorted({axis for policies in others for axis in policies})
    told = [
        f"{axis} {run.policies.get(axis, 'not declared')}"
        for axis in axes
        if len({policies.get(axis) for policies in others}) > 1
    ]
    return f"[{', '.join(told)}]" if told else ""


def labelled(runs: Sequence[ReportRun]) -> list[ReportRun]:
    """The runs with a label and a key each that no other has: name, version and policy, then the address, then a number."""
    runs = [replace(run, policy=_policy(run, runs)) for run in runs]
    names = [
        " ".join(str(part) for part in (run.name, run.identity.get("version") or "", run.policy) if part)
        for run in runs
    ]
    longer = [
        f"{name} ({run.address})" if names.count(name) > 1 and run.address else name
        for name, run in zip(names, runs, strict=True)
    ]
    found: list[ReportRun] = []
    for number, (name, run) in enumerate(zip(longer, runs, strict=True)):
        again = longer[:number].count(name)
        label = clean(name, LABEL) + (f" #{again + 1}" if longer.count(name) > 1 else "")
        key = f"{number + 1}-{slug(run.name)[:40].strip('-.')}"
        found.append(replace(run, key=key, label=label))
    return found
