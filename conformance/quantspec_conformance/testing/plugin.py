"""The pytest plugin: cases as items with --qs-impl, the marker `rule`, and the fixture `spec`. PYTEST_DONT_REWRITE

It is loaded into every test run of an environment that quantspec is installed in, so it imports nothing but pytest: numpy
and the suite come with an option, with the first test that asks for `spec`, or with the first that is marked with a rule.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .spec import Spec

__all__ = ["OPTIONS", "pytest_addoption", "pytest_configure", "pytest_make_collect_report", "spec"]

#: Option -> name in the namespace, what the value is called, help.
OPTIONS: dict[str, tuple[str, str, str]] = {
    "--qs-impl": (
        "qs_impl",
        "ADDRESS",
        "implementation to test: reference, py:FILE.py:Class, exec:COMMAND, opencl:N, files:DIR",
    ),
    "--qs-select": ("qs_select", "EXPR", "only the cases that the expression selects"),
    "--qs-level": ("qs_level", "0|1|2", "the cases up to this level; 0 unless given"),
    "--qs-profile": ("qs_profile", "NAME", "only the cases of a profile; the summary says whether it is met"),
    "--qs-expect": ("qs_expect", "FILE", "expectations: what is expected to fail must fail as it did (strict)"),
    "--qs-timeout": ("qs_timeout", "SECONDS", "time-out of a request; 10 unless given"),
    "--qs-rules": (
        "qs_rules",
        "FILE",
        "write the outcomes of tests marked with rule(...) for `quantspec report --tests`",
    ),
}
#: The option that goes without --qs-impl.
RULES = "qs_rules"
MARKER = "rule(id, ...): the rules of quantspec that a test shows, as in rule('VAL-7'); --qs-rules writes them down"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options; their values are checked in pytest_configure, which says what is wrong in one line."""
    group = parser.getgroup("quantspec", "quantspec: conformance of block-quantized formats, bit for bit")
    for option, (name, value, text) in OPTIONS.items():
        group.addoption(option, dest=name, metavar=value, default=None, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """With --qs-impl the suite joins the run; without an option nothing happens. UsageError for a bad option."""
    config.addinivalue_line("markers", MARKER)
    rules: str | None = config.getoption(RULES)
    if rules is not None:
        from .rulemarks import RuleTests, target_of

        config.pluginmanager.register(RuleTests(target_of(config, rules)), "quantspec-rules")
    if all(config.getoption(name) is None for name, _, _ in OPTIONS.values() if name != RULES):
        return
    from .items import SuitePlugin
    from .settings import Settings

    config.pluginmanager.register(SuitePlugin(Settings.of(config)), "quantspec-suite")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A marker that names no rule is an error of the file that it is in, whoever collects it."""
    report = yield
    marked = [node for node in report.result or () if isinstance(node, pytest.Item) and node.get_closest_marker("rule")]
    if marked:
        from .rulemarks import faults

        found = faults(marked, strict=collector.config.getoption(RULES) is not None)
        if found:
            report.outcome, report.longrepr, report.result = "failed", "\n".join(found), []
    return report


@pytest.fixture(scope="session")
def spec() -> "Spec":
    """The reference: `spec.encode`, `spec.decode`, `spec.quantize`, ..., and the rules as `spec.rules`."""
    from .spec import Spec

    return Spec()
