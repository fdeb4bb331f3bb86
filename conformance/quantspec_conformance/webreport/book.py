"""All that the pages draw on: runs, cases, rules, and which page tells what."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .. import doccases
from ..spec import Rule
from ..suite.case import Case
from ..suite.outcome import BAD, CaseResult
from ..testsfile import RuleTest
from .formats import format_of, in_order
from .runs import ReportRun
from .text import slug

__all__ = ["UNTOUCHED", "Book", "feature_of"]

#: Outcomes of a case that no request was made for, or that was turned down: it was not executed.
UNTOUCHED = ("unsupported", "skipped", "notrun")


@dataclass(frozen=True)
class Book:
    """Runs with their labels, the cases by id, the rules by id. Not slotted: it keeps what it has worked out."""

    runs: Sequence[ReportRun]
    cases: Mapping[str, Case]
    rules: Mapping[str, Rule]
    tests: Mapping[str, Sequence[RuleTest]] = field(default_factory=dict)  #: of others, by rule

    @cached_property
    def ids(self) -> list[str]:
        """Every case, of the suite and of the runs."""
        return list(dict.fromkeys([*self.cases, *(case_id for run in self.runs for case_id in run.results)]))

    @cached_property
    def formats(self) -> dict[str, list[str]]:
        """Cases by format, formats in the order of the tables."""
        found: dict[str, list[str]] = {}
        for case_id in self.ids:
            found.setdefault(self.format(case_id), []).append(case_id)
        return {name: found[name] for name in in_order(found)}

    def format(self, case_id: str) -> str:
        """The format of a case."""
        return format_of(self.cases.get(case_id), case_id)

    @cached_property
    def told(self) -> list[str]:
        """Cases that have a page: those that some run answered, and not as is due. What was not tried says nothing of a case."""
        silent = ("pass", *UNTOUCHED)
        return [case_id for case_id in self.ids if any(row.outcome not in silent for _, row in self.of_case(case_id))]

    def told_first(self, case_ids: Iterable[str]) -> list[str]:
        """The same cases, those with a page before the others."""
        return sorted(case_ids, key=lambda case_id: case_id not in self.told_set)

    def untried(self, case_ids: Iterable[str]) -> list[str]:
        """Cases that have no page, and that some run did not try."""
        return [
            case_id
            for case_id in case_ids
            if case_id not in self.told_set and any(row.outcome in UNTOUCHED for _, row in self.of_case(case_id))
        ]

    @cached_property
    def columns(self) -> list[tuple[str, list[ReportRun]]]:
        """The runs by implementation, for a matrix: name, and its runs, one a policy and version."""
        found: dict[str, list[ReportRun]] = {}
        for run in self.runs:
            found.setdefault(run.name, []).append(run)
        return list(found.items())

    def heading(self, run: ReportRun) -> str:
        """A run below the name of its implementation: its policy, or its label where another run has the same one."""
        same = [other for other in self.runs if (other.name, other.policy) == (run.name, run.policy)]
        return run.policy if run.policy and len(same) == 1 else run.label

    @cached_property
    def in_columns(self) -> list[ReportRun]:
        """The runs in the order of the columns."""
        return [run for _, runs in self.columns for run in runs]

    @cached_property
    def told_set(self) -> frozenset[str]:
        """The same, to look up in."""
        return frozenset(self.told)

    @cached_property
    def _pages(self) -> dict[str, str]:
        found: dict[str, str] = {}
        taken: set[str] = set()
        for case_id in self.told:
            name = slug(case_id)
            while name in taken:  # an id that is made to look like what another is shortened to
                name += "_"
            taken.add(name)
            found[case_id] = f"case-{name}.html"
        return found

    def page(self, case_id: str) -> str:
        """The page of a case; nothing where it has none."""
        return self._pages.get(case_id, "")

    def rule_page(self, rule_id: str) -> str:
        """The page of a rule; nothing where the spec has no such rule."""
        return f"rule-{rule_id}.html" if rule_id in self.rules else ""

    def rule_title(self, rule_id: str) -> str:
        """The title of a rule; nothing where the spec has no such rule."""
        return self.rules[rule_id].title if rule_id in self.rules else ""

    def of_case(self, case_id: str) -> list[tuple[ReportRun, CaseResult]]:
        """What became of a case in each run that has it."""
        return [(run, run.results[case_id]) for run in self.runs if case_id in run.results]

    def counts(self, run: ReportRun, case_ids: Iterable[str]) -> dict[str, int]:
        """Cases of a run by outcome."""
        found: dict[str, int] = {}
        for case_id in case_ids:
            row = run.results.get(case_id)
            if row is not None:
                found[row.outcome] = found.get(row.outcome, 0) + 1
        return {outcome: found[outcome] for outcome in run.totals if outcome in found}

    @cached_property
    def by_rule(self) -> dict[str, list[str]]:
        """Cases by the rules that the law follows in them."""
        found: dict[str, list[str]] = {}
        for case_id, case in self.cases.items():
            for rule_id in case.rules:
                found.setdefault(rule_id, []).append(case_id)
        return found

    @cached_property
    def breakers(self) -> dict[str, dict[str, list[str]]]:
        """Rule -> key of a run -> cases that are wrong by it there; "" for those that no rule is named for."""
        found: dict[str, dict[str, list[str]]] = {}
        for run in self.runs:
            for case_id, row in run.results.items():
                if row.outcome in BAD:
                    found.setdefault(row.rule, {}).setdefault(run.key, []).append(case_id)
        return found

    @cached_property
    def examples(self) -> dict[str, list[dict[str, Any]]]:
        """Worked examples of the spec by rule, those first that are there to show it."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in doccases.load()["cases"]:
            for rule_id in dict.fromkeys([*row["shows"], *row["rules"]]):
                found.setdefault(rule_id, []).append(row)
        return {name: sorted(rows, key=lambda row: name not in row["shows"]) for name, rows in found.items()}

    @cached_property
    def never_by_reason(self) -> list[tuple[str, list[str]]]:
        """The same by what the first run that has them said of them, the most cases first."""
        found: dict[str, list[str]] = {}
        for case_id in self.never_run:
            said = next((feature_of(row) for _, row in self.of_case(case_id)), "in no run")
            found.setdefault(said, []).append(case_id)
        return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))

    @cached_property
    def never_run(self) -> list[str]:
        """Cases that no run executed: nothing is known of them."""
        return [case_id for case_id in self.ids if all(row.outcome in UNTOUCHED for _, row in self.of_case(case_id))]


def feature_of(row: CaseResult) -> str:
    """What a case was turned down for: its reason begins with that."""
    return (row.reason.split(maxsplit=1) or [row.outcome])[0].rstrip(":")
