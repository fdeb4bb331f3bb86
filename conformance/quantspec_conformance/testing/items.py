"""Cases as pytest items: a collector without a file, one implementation a process, outcomes as pytest's own."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from ..errors import HarnessError
from ..suite.case import LEVELS, Case
from ..suite.outcome import OUTCOMES, CaseResult
from .chosen import chosen
from .judged import Expected, Judged
from .profiles import PROFILES, met
from .settings import Settings
from .shown import shown
from .source import load_cases
from .subject import Subject

__all__ = ["NODE", "CaseFailure", "CaseItem", "SuiteCollector", "SuitePlugin"]

#: The node that the cases are under: quantspec::case.id
NODE = "quantspec"


class CaseFailure(Exception):
    """A case that did not come out as expected; its text is the failure block."""


class CaseItem(pytest.Item):
    """One case as an item."""

    def __init__(self, *, case: Case, subject: Subject, expected: Expected, **members: Any) -> None:
        super().__init__(**members)
        self.case = case
        self.subject = subject
        self.expected = expected
        self.extra_keyword_matches.update((*case.rules, *case.bugs, *case.features))

    def runtest(self) -> None:
        """Ask, judge, compare with what is expected. CaseFailure where it is not so."""
        result = self.subject.ask(self.case)
        judged = self.expected.judge(result, self.subject.info)
        self._report(result, judged)
        if judged.verdict == "fail":
            raise CaseFailure(shown(self.case, result, self.subject.address, judged.note))
        if judged.verdict == "xfail":
            pytest.xfail(judged.note)
        if judged.verdict == "skip":
            pytest.skip(judged.note)

    def _report(self, result: CaseResult, judged: Judged) -> None:
        """Properties for JUnit, and for the summary of a run that is split over workers."""
        rows = (
            ("outcome", result.outcome),
            ("rule", result.rule),
            ("digest", result.digest),
            ("comparison", judged.comparison),
        )
        self.user_properties.extend((name, value) for name, value in rows if value)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure block; a traceback only for a fault of the harness itself."""
        if isinstance(excinfo.value, CaseFailure):
            return str(excinfo.value).rstrip()
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[str, None, str]:
        """No file; the headline of a failure."""
        return NODE, None, f"case {self.name}"


class SuiteCollector(pytest.Collector):
    """The node `quantspec`, which lies in no file."""

    def __init__(self, *, cases: Sequence[Case], subject: Subject, expected: Expected, **members: Any) -> None:
        super().__init__(**members)
        self.cases = cases
        self.subject = subject
        self.expected = expected

    def collect(self) -> Iterable[pytest.Item]:
        """An item a case, in the order of the suite."""
        for case in self.cases:
            yield CaseItem.from_parent(
                self, name=case.id, nodeid=f"{NODE}::{case.id}", case=case, subject=self.subject, expected=self.expected
            )


class SuitePlugin:
    """The hooks of a run with --qs-impl."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.subject = Subject(settings.impl, settings.timeout)
        self.expected = Expected()
        self.cases: list[Case] = []
        self.wanted: list[str] = []  #: case ids that the command line names; none: all
        self.results: dict[str, CaseResult] = {}
        self.info: dict[str, str] = {}
        self.problems: list[str] = []
        self.unusable = ""  #: why the implementation cannot be used, where it cannot

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Choose the cases: what is wrong with an option shows before anything is collected, or a worker started."""
        settings = self.settings
        runs_here = not session.config.option.collectonly and not hasattr(session.config, "workerinput")
        try:
            self.cases = chosen(load_cases(settings.level), select=settings.select, profile=settings.profile)
            self.expected = Expected.read(settings.expect)
            if runs_here and not settings.impl.startswith("opencl:"):  # a device takes seconds to be found
                self.subject.open()
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Take the ids of cases out of the arguments: no file has their name."""
        config = session.config
        ids = [argument for argument in config.args if _case_id(argument) is not None]
        self.wanted = [_case_id(argument) or "" for argument in ids]
        config.args = [argument for argument in config.args if argument not in ids]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the cases, before -k, -m and --deselect look at the items."""
        cases = self._wanted_cases()
        collector = SuiteCollector.from_parent(
            session, name=NODE, nodeid=NODE, cases=cases, subject=self.subject, expected=self.expected
        )
        items.extend(item for item in session.genitems(collector) if isinstance(item, pytest.Item))

    def _wanted_cases(self) -> list[Case]:
        if not any(self.wanted):
            return self.cases
        by_id = {case.id: case for case in self.cases}
        for case_id in self.wanted:
            if case_id and case_id not in by_id:
                raise pytest.UsageError(
                    f"not found: {NODE}::{case_id} (no such case among the {len(by_id)} chosen ones)"
                )
        return self.cases if "" in self.wanted else [by_id[case_id] for case_id in dict.fromkeys(self.wanted)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the outcome of each case, wherever it ran."""
        if report.when == "call" and report.nodeid.startswith(f"{NODE}::"):
            case_id = report.nodeid.removeprefix(f"{NODE}::")
            properties = dict(report.user_properties)
            outcome = str(properties.get("outcome", "error"))
            self.results[case_id] = CaseResult(case_id, outcome, rule=str(properties.get("rule", "")))

    def pytest_report_header(self) -> str:
        """What is tested, and with what."""
        chosen_by = f", profile {self.settings.profile}" if self.settings.profile else ""
        return f"quantspec: {self.settings.impl}, {len(self.cases)} cases up to level {self.settings.level}{chosen_by}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The outcomes of the cases, and whether the profile is met."""
        if not self.results:
            return
        counts = {name: sum(result.outcome == name for result in self.results.values()) for name in OUTCOMES}
        terminalreporter.section("quantspec")
        terminalreporter.write_line(", ".join(f"{count} {name}" for name, count in counts.items() if count))
        lines = _claim(self.settings, self.cases, self.results) if self.settings.profile else []
        for line in [*lines, *(f"--qs-expect: {problem}" for problem in self.problems)]:
            terminalreporter.write_line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Greet the implementation before the first case: where it cannot be used no case says anything, and the run ends.

        A worker of pytest-xdist runs nothing then, and lets the process that started it say so.
        """
        if session.config.option.collectonly or not any(isinstance(item, CaseItem) for item in session.items):
            return None
        try:
            self.subject.greet()
        except HarnessError as error:
            if not hasattr(session.config, "workeroutput"):
                raise pytest.UsageError(str(error)) from None
            self.unusable = str(error)
            return True
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker found out about the implementation. pytest.UsageError where it cannot be used."""
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        self.info = self.info or dict(output.get("quantspec", {}))
        unusable = str(output.get("quantspec_unusable", ""))
        if unusable and not self.unusable:
            self.unusable = unusable  # once: the other workers end while the run is being ended
            raise pytest.UsageError(unusable)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the implementation; hold the expectations against the whole run, where it ends."""
        self.info = self.info or self.subject.info
        self.subject.close()
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["quantspec"] = self.info
            output["quantspec_unusable"] = self.unusable
        elif self.info:
            ids = [case.id for case in load_cases(LEVELS[-1])]
            self.problems = self.expected.problems(self.results.values(), self.info, ids)
            if self.problems and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _claim(settings: Settings, cases: Sequence[Case], results: dict[str, CaseResult]) -> list[str]:
    """The claim of a profile in words. A selection narrows what ran, never what the profile asks for."""
    profile = PROFILES[settings.profile]
    listed = chosen(load_cases(settings.level), profile=settings.profile) if settings.select else cases
    is_met, reasons = met(profile, results, cases=listed)
    head = f"profile {profile.name}: {'met' if is_met else 'not met'} at level {settings.level} ({len(listed)} cases)"
    return [head, *(f"  {reason}" for reason in reasons)]


def _case_id(argument: str) -> str | None:
    """The case that an argument names, "" for all of them; None for an argument that is a file's."""
    head, mark, case_id = argument.partition("::")
    named = head.replace("\\", "/").rsplit("/", 1)[-1] == NODE
    return case_id if mark and named else None
