"""The marker `rule`: tests of others that show a rule. Wrong ids are errors of collection, outcomes become a file."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quantspec

from ..outside import kind_of, printable, reason_of
from ..spec import AREAS, RULE_ID, rule_key, rules
from ..testsfile import SCHEMA

__all__ = ["RuleTests", "faults", "rules_of", "target_of"]

MARK = "rule"
#: Name of the property that carries the rules of a test to whoever collects the reports.
PROPERTY = "quantspec_rules"


def rules_of(item: pytest.Item) -> tuple[str, ...]:
    """The rules that a test is marked with, its class's and module's too, in reading order."""
    named = {word for mark in item.iter_markers(MARK) for word in mark.args if isinstance(word, str)}
    return tuple(sorted((word for word in named if word in rules()), key=rule_key))


def faults(items: Iterable[pytest.Item], *, strict: bool) -> list[str]:
    """What is wrong with the markers of some tests, a line each.

    Not strict: only ids that look like ours. The plugin is loaded wherever quantspec is installed, and a project may have a
    marker `rule` of its own, about other rules.
    """
    found: dict[str, None] = {}
    for item in items:
        for mark in item.iter_markers(MARK):
            for fault in _faults(mark, strict):
                found[f"{item.nodeid}: {fault}"] = None
    return list(found)


def _faults(mark: pytest.Mark, strict: bool) -> Iterator[str]:
    if strict and (mark.kwargs or not mark.args):
        yield f"@pytest.mark.rule needs ids of rules and nothing else, as in rule({next(iter(rules()))!r})"
    for word in mark.args:
        if isinstance(word, str) and RULE_ID.fullmatch(word):
            if word not in rules():
                area = word.partition("-")[0]
                known = [rule_id for rule_id in rules() if rule_id.startswith(f"{area}-")]
                yield f"@pytest.mark.rule({word!r}): no such rule; allowed: {known[0]} to {known[-1]}"
        elif strict:
            shown = printable(repr(word))[:60]
            yield f"@pytest.mark.rule({shown}): no id of a rule; allowed: one of {', '.join(AREAS)}, a hyphen, a number"


def target_of(config: pytest.Config, text: str) -> Path:
    """The file that --qs-rules names. pytest.UsageError where nothing can be written there."""
    path = config.invocation_params.dir / text
    shown = f"--qs-rules: {printable(text)[:120]!r}"
    if not text.strip() or not path.parent.is_dir():
        raise pytest.UsageError(f"{shown}: allowed: a file in a folder that is there")
    kind = kind_of(path.stat().st_mode) if path.exists() else None
    if kind is not None:
        raise pytest.UsageError(f"{shown} is {kind}; allowed: a regular file, or a new one")
    return path


class RuleTests:
    """The hooks of a run with --qs-rules. Workers of pytest-xdist only send; the file is written where the run ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, str] = {}
        self.rules: dict[str, tuple[str, ...]] = {}
        self.written = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Have the rules of a test travel with its reports."""
        for item in items:
            named = rules_of(item)
            if named:
                item.user_properties.append((PROPERTY, " ".join(named)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of a test that is marked; a test that is run again has its last one."""
        named = str(dict(report.user_properties).get(PROPERTY, ""))
        if not named:
            return
        self.rules[report.nodeid] = tuple(named.split())
        outcome = _outcome(report)
        if outcome:
            self.outcomes[report.nodeid] = outcome

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, unless nothing was to be run."""
        ended = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERNAL_ERROR)
        if hasattr(session.config, "workerinput") or session.config.option.collectonly or session.exitstatus in ended:
            return
        try:
            self.path.write_text(self.text(session.config.rootpath.name), "ascii", newline="\n")
        except OSError as error:
            self.written = f"--qs-rules: {str(self.path)!r} cannot be written: {reason_of(error)}"
            session.exitstatus = pytest.ExitCode.USAGE_ERROR
            return
        shown = {rule_id for named in self.rules.values() for rule_id in named}
        self.written = f"{len(self.outcomes)} tests of {len(shown)} rules written to {printable(str(self.path))}"

    def text(self, project: str) -> str:
        """The content of the file: rules in reading order, tests by name; the same outcomes give the same bytes."""
        found: dict[str, list[dict[str, Any]]] = {}
        for test in sorted(self.outcomes):
            for rule_id in self.rules[test]:
                found.setdefault(rule_id, []).append({"test": test, "outcome": self.outcomes[test]})
        record = {
            "schema": SCHEMA,
            "quantspec": quantspec.__version__,
            "project": project,
            "rules": {rule_id: found[rule_id] for rule_id in sorted(found, key=rule_key)},
        }
        return json.dumps(record, indent=1) + "\n"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where the file is."""
        if self.written:
            terminalreporter.write_line(f"quantspec: {self.written}")


def _outcome(report: pytest.TestReport) -> str:
    """What a phase of a test makes of it; "" where it says nothing new."""
    foreseen = hasattr(report, "wasxfail")
    if report.when != "call":  # a set-up that skips or breaks, a tear-down that breaks
        return "error" if report.failed else ("xfailed" if foreseen else "skipped") if report.skipped else ""
    if report.skipped:
        return "xfailed" if foreseen else "skipped"
    return "failed" if report.failed else "xpassed" if foreseen else "passed"
