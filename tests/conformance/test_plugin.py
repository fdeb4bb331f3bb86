"""The pytest plugin in runs of its own: cases as items, outcomes as pytest's, options that mean nothing, and its absence."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import jsonschema
import pytest

from quantspec_conformance.errors import DamagedError, UsageError
from quantspec_conformance.suite.outcome import CaseResult
from quantspec_conformance.suite.select import select
from quantspec_conformance.testing.profiles import PROFILES, met
from quantspec_conformance.testing.source import load_cases
from quantspec_conformance.testsfile import read_tests, rule_tests_schema

from .conftest import environment

pytest_plugins = ["pytester"]

MODULE = "quantspec_conformance.testing.plugin"
#: With the entry point installed pytest loads the plugin by itself, and refuses it twice.
LOAD = () if entry_points(group="pytest11", name="quantspec") else ("-p", MODULE)
#: Cases that every run here asks for.
FEW = "doc.quantize.mxfp4-*"
CASES = [case.id for case in load_cases(0)]
MX = [case_id for case_id in CASES if case_id.startswith("doc.quantize.mxfp4-")]

LIARS = '''
import os
from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.protocol.messages import Failed, Identity, Known, Ok, Rejected, Unsupported

class Flipped(Law):
    """Flips a bit of the second code."""
    bit = 1
    def handle(self, request):
        answer = super().handle(request)
        if request.op != "quantize" or not isinstance(answer, Ok):
            return answer
        codes = answer.tensors["codes"]
        patterns = tuple(p ^ self.bit if i == 1 else p for i, p in enumerate(codes.patterns))
        return Ok({**answer.tensors, "codes": Tensor(codes.dtype, codes.shape, patterns)}, answer.words)

class Other(Flipped):
    """Wrong in another way."""
    bit = 2

class Lacking(Law):
    def handle(self, request):
        return Unsupported("op:" + request.op, "not written yet")

class Aware(Law):
    def handle(self, request):
        return Known("https://example.org/issues/7", "ties")

class Refusing(Law):
    def handle(self, request):
        return Rejected("scheme", message="no")

class Broken(Law):
    def handle(self, request):
        raise RuntimeError("out of memory")

class Mute(Law):
    def hello(self, hello):
        raise OSError("no such device")

class Noting(Law):
    """Writes down when it is opened and closed, and by which process."""
    def hello(self, hello):
        with open("opened.txt", "a") as file:
            file.write(f"{os.getpid()}\\n")
        return super().hello(hello)
    def close(self):
        with open("closed.txt", "a") as file:
            file.write(f"{os.getpid()}\\n")
'''

EXPECTED = """schema = "expect-1"
implementation = "reference"
[[expect]]
ids = ["doc.quantize.mxfp4-*"]
outcome = "fail"
kind = "bug"
reason = "the second code is flipped"
url = "https://example.org/issues/1"
"""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """pytest in a process of its own, in a folder with the liars."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makefile(".ini", pytest="[pytest]\nfilterwarnings = error\n")
    (pytester.path / "liars.py").write_text(LIARS)

    def go(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess(*LOAD, "-p", "no:cacheprovider", *arguments, timeout=120)

    return go


def text(result: pytest.RunResult) -> str:
    """Everything that was printed."""
    return f"{result.stdout.str()}\n{result.stderr.str()}"


def test_the_reference_passes_every_case(run: Run) -> None:
    result = run("--qs-impl", "reference")
    result.assert_outcomes(passed=len(CASES))
    assert result.ret == 0
    assert f"quantspec: reference, {len(CASES)} cases up to level 0" in text(result)


def test_a_liar_fails_with_the_failure_block(run: Run) -> None:
    result = run("--qs-impl", "py:liars.py:Flipped", "--qs-select", f"id:{FEW}")
    assert result.ret == 1
    result.assert_outcomes(failed=len(MX))
    result.stdout.fnmatch_lines([
        "*case doc.quantize.mxfp4-codes*", "fail: * of * entries of codes differ [[]QNT-5[]]", "FAIL doc.*mxfp4-codes*rule QNT-5*",
        " expected *", " actual *", " repro *quantspec replay doc.quantize.mxfp4-codes --impl py:liars.py:Flipped",
    ])  # fmt: skip
    assert "Traceback" not in text(result) and "liars.py:1" not in text(result)
    assert re.search(r"FAILED quantspec::doc\.quantize\.mxfp4-codes - fail: ", text(result))


@pytest.mark.parametrize(
    ("liar", "outcomes", "says"),
    [
        ("Lacking", "skipped", "op:quantize: not written yet"),
        ("Aware", "xfailed", "https://example.org/issues/7 ties"),
        ("Refusing", "failed", "wrong-error: refused (scheme): no"),
        ("Broken", "failed", "RuntimeError: out of memory"),
    ],
)
def test_outcomes_become_those_of_pytest(run: Run, liar: str, outcomes: str, says: str) -> None:
    result = run("--qs-impl", f"py:liars.py:{liar}", "--qs-select", f"id:{FEW}", "-ra")
    assert result.parseoutcomes() == {outcomes: len(MX)}
    assert says in text(result)
    assert result.ret == (1 if outcomes == "failed" else 0)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
@pytest.mark.parametrize("address", ["py:liars.py:Mute", "exec:/no/such/command"])
def test_an_implementation_that_cannot_start_ends_the_session(run: Run, address: str, workers: tuple[str, ...]) -> None:
    result = run("--qs-impl", address, *workers)
    said = text(result)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        result.parseoutcomes() == {}
        and "INTERNALERROR" not in said
        and "Traceback (most" not in said.partition("hello()")[0]
    )
    assert said.count("ERROR: --qs-impl: the implementation cannot be used") == said.count("cannot be used") == 1
    assert said.count("OSError: no such device" if "Mute" in address else "cannot be started") == 1


def test_an_implementation_that_no_chosen_case_needs_is_not_started(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_one():\n    assert True\n")
    for workers in ((), ("-n", "2")):
        run("--qs-impl", "py:liars.py:Mute", "-k", "test_one", *workers).assert_outcomes(passed=1)
    assert run("--qs-impl", "py:liars.py:Mute", "--collect-only", "-q").ret == 0


# ---------------------------------------------------------------- the marker `rule`

MARKED = """
    import pytest

    pytestmark = pytest.mark.rule("CNF-1")

    @pytest.mark.rule("VAL-7", "QNT-5")
    def test_passes(): pass

    @pytest.mark.rule("VAL-7")
    @pytest.mark.parametrize("n", [0, 1])
    def test_some(n): assert n

    @pytest.mark.rule("VAL-7")
    class TestGroup:
        def test_skipped(self): pytest.skip("no")
        @pytest.mark.xfail
        def test_foreseen(self): assert False
        @pytest.mark.xfail(strict=False)
        def test_unforeseen(self): pass
        def test_breaks(self, nothing_of_the_kind): pass

    @pytest.fixture
    def falls():
        yield
        raise OSError("gone")

    @pytest.mark.rule("VAL-6")
    def test_tear_down(falls): pass
"""
MARKED_OUTCOMES = {
    "test_passes": "passed", "test_some[0]": "failed", "test_some[1]": "passed", "TestGroup::test_skipped": "skipped",
    "TestGroup::test_foreseen": "xfailed", "TestGroup::test_unforeseen": "xpassed", "TestGroup::test_breaks": "error",
    "test_tear_down": "error",
}  # fmt: skip


@pytest.mark.parametrize("workers", [(), ("-n", "3")])
def test_marked_tests_are_written_down_by_rule(run: Run, pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile(test_marked=MARKED, test_other="def test_unmarked(): pass")
    result = run("--qs-rules", "rules.json", "--strict-markers", *workers)
    assert result.ret == 1 and f"8 tests of 4 rules written to {pytester.path / 'rules.json'}" in text(result)
    raw = (pytester.path / "rules.json").read_text("ascii")
    content = json.loads(raw)
    jsonschema.validate(content, rule_tests_schema(), cls=jsonschema.Draft202012Validator)
    assert (content["schema"], content["project"]) == ("rule-tests-1", pytester.path.name)
    assert list(content["rules"]) == ["VAL-6", "VAL-7", "QNT-5", "CNF-1"]
    found = {row["test"].partition("::")[2]: row["outcome"] for row in content["rules"]["CNF-1"]}
    assert found == MARKED_OUTCOMES
    assert len(content["rules"]["VAL-7"]) == 7 and len(content["rules"]["QNT-5"]) == 1
    assert raw == json.dumps(content, indent=1) + "\n"
    assert [row.test for row in read_tests(pytester.path / "rules.json").rules["VAL-6"]] == [
        "test_marked.py::test_tear_down"
    ]


def test_a_run_split_over_workers_writes_the_same_bytes(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_marked=MARKED)
    texts = []
    for workers in ((), ("-n", "2")):
        run("--qs-rules=rules.json", *workers)
        texts.append((pytester.path / "rules.json").read_bytes())
    assert texts[0] == texts[1]


def test_marked_tests_stand_beside_cases(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="import pytest\n@pytest.mark.rule('QNT-4')\ndef test_one(): pass\n")
    result = run("--qs-rules=rules.json", "--qs-impl=reference", "--qs-select", f"id:{FEW}", "-n", "2")
    result.assert_outcomes(passed=1 + len(MX))
    assert list(read_tests(pytester.path / "rules.json").rules) == ["QNT-4"]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_marker_that_names_no_rule_is_an_error_of_collection(
    run: Run, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        test_own="import pytest\n@pytest.mark.rule('VAL-999')\n@pytest.mark.rule('VAL-7')\ndef test_one(): pass\n"
    )
    result = run(*workers)
    assert result.ret == (1 if workers else 2)
    assert result.parseoutcomes() in ({"errors": 1}, {"error": 1})
    assert re.search(
        r"test_own.py::test_one: @pytest.mark.rule\('VAL-999'\): no such rule; allowed: VAL-1 to VAL-", text(result)
    )
    assert "Traceback" not in text(result) and "INTERNALERROR" not in text(result)


def test_a_marker_rule_of_another_project_is_left_alone(run: Run, pytester: pytest.Pytester) -> None:
    """Ids that cannot be ours are faults only where our file was asked for."""
    pytester.makepyfile(
        test_own="import pytest\n@pytest.mark.rule('E501', 7)\n@pytest.mark.rule(on=1)\ndef test_one(): pass\n"
    )
    run().assert_outcomes(passed=1)
    result = run("--qs-rules=rules.json")
    assert result.ret == 2
    assert "@pytest.mark.rule('E501'): no id of a rule; allowed: one of SCH, VAL" in text(result)
    assert "@pytest.mark.rule(7): no id of a rule" in text(result)
    assert "needs ids of rules and nothing else" in text(result)


def test_collecting_writes_nothing(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_marked=MARKED)
    assert run("--qs-rules=rules.json", "--collect-only", "-q").ret == 0
    assert not (pytester.path / "rules.json").exists()
    assert "@pytest.mark.rule(id, ...): the rules of quantspec" in text(run("--markers"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "no JSON"), ("[" * 99999, "no JSON"), ("[]", "the whole: "), ('{"schema": "run-1"}', "is a required property"),
        ('{"schema": "rule-tests-1", "quantspec": "1", "project": "p", "rules": {"VAL-7": [{"test": "t", "outcome": "ok"}]}}',
         "rules.VAL-7.0.outcome: 'ok' is not one of"),
    ],
)  # fmt: skip
def test_a_file_of_tests_that_is_none(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    with pytest.raises(DamagedError, match=re.escape(says)):
        read_tests(path)
    with pytest.raises(UsageError, match="is a folder"):
        read_tests(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_tests(tmp_path / "none")


def test_expected_failures_are_xfails(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "e.toml").write_text(EXPECTED)
    result = run("--qs-impl", "py:liars.py:Flipped", "--qs-select", f"id:{FEW}", "--qs-expect=e.toml", "-ra")
    result.assert_outcomes(xfailed=len(MX))
    assert result.ret == 0
    assert "entry 1: fail, the second code is flipped https://example.org/issues/1" in text(result)


def test_an_expected_failure_that_passes_fails(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "e.toml").write_text(EXPECTED)
    result = run("--qs-impl", "reference", "--qs-select", f"id:{FEW}", "--qs-expect=e.toml")
    result.assert_outcomes(failed=len(MX))
    assert "xpass: doc.quantize.mxfp4-codes passed; expected: entry 1: fail" in text(result)


def test_an_expected_failure_with_other_bits_fails(run: Run, pytester: pytest.Pytester) -> None:
    first = run("--qs-impl", "py:liars.py:Flipped", "quantspec::doc.quantize.mxfp4-codes", "--junitxml=r.xml")
    first.assert_outcomes(failed=1)
    digest = properties(pytester.path / "r.xml")["doc.quantize.mxfp4-codes"]["digest"]
    (pytester.path / "e.toml").write_text(EXPECTED.replace("mxfp4-*", "mxfp4-codes") + f'digest = "{digest}"\n')
    same = run("--qs-impl", "py:liars.py:Flipped", "quantspec::doc.quantize.mxfp4-codes", "--qs-expect=e.toml")
    same.assert_outcomes(xfailed=1)
    other = run("--qs-impl", "py:liars.py:Other", "quantspec::doc.quantize.mxfp4-codes", "--qs-expect=e.toml")
    other.assert_outcomes(failed=1)
    assert "changed: doc.quantize.mxfp4-codes is wrong in another way (fail)" in text(other)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_entry_that_matches_no_case_fails_the_run(
    run: Run, pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    (pytester.path / "e.toml").write_text(EXPECTED.replace("doc.quantize.mxfp4-*", "doc.nothing.such"))
    result = run("--qs-impl", "reference", "--qs-select", f"id:{FEW}", "--qs-expect=e.toml", *workers)
    result.assert_outcomes(passed=len(MX))
    assert result.ret == 1
    assert "--qs-expect: entry 1: unmatched: doc.nothing.such matches no case" in text(result)


def properties(path: Path) -> dict[str, dict[str, str]]:
    """Case id -> its JUnit properties."""
    cases = ET.parse(path).getroot().iter("testcase")
    return {
        str(case.get("name")): {str(row.get("name")): str(row.get("value")) for row in case.iter("property")}
        for case in cases
    }


def test_junit_has_rule_outcome_and_digest(run: Run, pytester: pytest.Pytester) -> None:
    run("--qs-impl", "py:liars.py:Flipped", "-k", "mxfp4-codes or e4m3", "--junitxml=r.xml")
    found = properties(pytester.path / "r.xml")
    wrong = found["doc.quantize.mxfp4-codes"]
    assert wrong["outcome"] == "fail" and wrong["rule"] == "QNT-5" and re.fullmatch("[0-9a-f]{16}", wrong["digest"])
    passed = next(rows for rows in found.values() if rows["outcome"] == "pass")
    assert passed == {"outcome": "pass"}


def test_workers_run_the_same_cases_each_with_its_own_implementation(run: Run, pytester: pytest.Pytester) -> None:
    result = run("--qs-impl", "py:liars.py:Noting", "-n", "2", "--qs-profile", "nvfp4")
    claim = re.search(r"profile nvfp4: met at level 0 \((\d+) cases\)", text(result))
    assert claim is not None
    result.assert_outcomes(passed=int(claim[1]))
    opened = (pytester.path / "opened.txt").read_text().split()
    closed = (pytester.path / "closed.txt").read_text().split()
    assert len(opened) == len(set(opened)) == 2
    assert set(opened) <= set(closed)


def test_workers_report_failures_like_one_process(run: Run) -> None:
    one = run("--qs-impl", "py:liars.py:Flipped", "-k", "doc.quantize")
    two = run("--qs-impl", "py:liars.py:Flipped", "-k", "doc.quantize", "-n", "2")
    assert {name: two.parseoutcomes()[name] for name in ("passed", "failed")} == {
        name: one.parseoutcomes()[name] for name in ("passed", "failed")
    }
    assert "FAIL doc.quantize.mxfp4-codes" in text(two) and "not met" not in text(two)


def test_a_profile_is_not_met_where_a_case_fails_or_did_not_run(run: Run) -> None:
    failing = run("--qs-impl", "py:liars.py:Flipped", "--qs-profile", "nvfp4")
    assert "profile nvfp4: not met at level 0" in text(failing) and re.search(
        r"  quantize\.e2m1\S*: fail", text(failing)
    )
    partly = run("--qs-impl", "reference", "--qs-profile", "nvfp4", "-k", "quantize")
    assert partly.ret == 0 and "profile nvfp4: not met" in text(partly) and ": notrun" in text(partly)
    narrowed = run("--qs-impl", "reference", "--qs-profile", "nvfp4", "--qs-select", "op:encode")
    assert "profile nvfp4: not met" in text(narrowed) and ": notrun" in text(narrowed)


def test_collect_only_lists_ids_and_opens_nothing(run: Run, pytester: pytest.Pytester) -> None:
    result = run("--qs-impl", "py:liars.py:Noting", "--collect-only", "-q")
    listed = [line for line in result.outlines if line.startswith("quantspec::")]
    assert listed == [f"quantspec::{case_id}" for case_id in CASES]
    assert not (pytester.path / "opened.txt").exists()
    tree = run("--qs-impl", "reference", "--collect-only", "-k", "mxfp4-codes")
    assert "<SuiteCollector quantspec>" in text(tree) and "<CaseItem doc.quantize.mxfp4-codes>" in text(tree)


def test_node_ids_on_the_command_line(run: Run) -> None:
    ids = [f"quantspec::{case_id}" for case_id in MX[:2]]
    result = run("--qs-impl", "reference", "-v", *reversed(ids))
    result.assert_outcomes(passed=2)
    assert all(f"{node} PASSED" in text(result) for node in ids)
    all_of_them = run("--qs-impl", "reference", "quantspec::", "-k", "mxfp4-")
    assert all_of_them.parseoutcomes()["passed"] == len(MX)
    missing = run("--qs-impl", "reference", "quantspec::doc.no.such")
    assert missing.ret == 4
    assert "ERROR: not found: quantspec::doc.no.such (no such case among the" in text(missing)
    workers = run("--qs-impl", "reference", "-n", "2", *ids)
    workers.assert_outcomes(passed=2)


def test_keywords_are_ids_rules_and_features(run: Run) -> None:
    result = run("--qs-impl", "reference", "-k", "QNT-5 and e2m1 and not nvfp4", "--deselect", f"quantspec::{MX[0]}")
    outcomes = result.parseoutcomes()
    assert result.ret == 0 and 0 < outcomes["passed"] < 100 and outcomes["deselected"] > 100


def test_cases_stand_beside_tests_of_files(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_one():\n    assert True\n\ndef test_two():\n    assert True\n")
    both = run("--qs-impl", "reference", "--qs-select", f"id:{FEW}")
    both.assert_outcomes(passed=2 + len(MX))
    some = run("--qs-impl", "reference", "test_own.py::test_one", f"quantspec::{MX[0]}")
    some.assert_outcomes(passed=2)


def test_without_options_there_are_no_cases(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_one():\n    assert True\n")
    result = run()
    result.assert_outcomes(passed=1)
    assert "quantspec:" not in text(result)
    assert run("quantspec::doc.quantize.mxfp4-codes").ret == 4


def test_without_options_nothing_is_imported(run: Run, pytester: pytest.Pytester) -> None:
    """The plugin is in every test run of an environment: it may cost nothing."""
    pytester.makepyfile(
        test_own="""
        import sys

        def test_nothing_heavy():
            ours = {name for name in sys.modules if name.partition(".")[0] in ("quantspec", "quantspec_conformance")}
            assert ours == {
                "quantspec_conformance", "quantspec_conformance.testing", "quantspec_conformance.testing.plugin"
            }
            assert not {"numpy", "ml_dtypes", "click", "rich"} & set(sys.modules)
        """
    )
    run("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_the_plugin_itself_imports_only_pytest() -> None:
    """What it adds to the modules that pytest has: three of ours, and nothing else."""
    code = f"import sys, pytest\nbefore = set(sys.modules)\nimport {MODULE}\nprint(sorted(set(sys.modules) - before))"
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.strip() == str(["quantspec_conformance", "quantspec_conformance.testing", MODULE])


def test_a_package_that_was_imported_before_raises_no_warning(pytester: pytest.Pytester, run: Run) -> None:
    """Assertion rewriting of what is loaded already would warn; warnings are errors in many a project."""
    pytester.makepyfile(test_own="def test_one():\n    assert True\n")
    arguments = [*LOAD, "-W", "error", "test_own.py"]
    code = f"import sys, {MODULE}, pytest\nsys.exit(pytest.main({arguments!r}))"
    result = pytester.run(sys.executable, "-c", code)
    assert result.ret == 0 and "PytestAssertRewriteWarning" not in text(result)


def test_it_loads_as_an_entry_point(run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an installed package brings it: every file of the package is marked for assertion rewriting then."""
    info = pytester.mkdir("site") / "qs_probe-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: qs-probe\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\nquantspec = {MODULE}\n")
    (info / "RECORD").write_text("quantspec/__init__.py,,\nquantspec_conformance/__init__.py,,\n")
    monkeypatch.setenv("PYTHONPATH", f"{info.parent}{os.pathsep}{os.environ['PYTHONPATH']}")
    pytester.makepyfile(test_own="def test_one(spec):\n    assert spec.rules\n")
    for more in ((), ("-n", "2")):
        result = pytester.runpytest_subprocess("--qs-impl", "reference", "--qs-select", f"id:{FEW}", *more, timeout=120)
        result.assert_outcomes(passed=1 + len(MX))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--qs-level", "1"], "--qs-impl: needs the address of an implementation"),
        (["--qs-impl", ""], "--qs-impl: needs the address of an implementation"),
        (["--qs-impl", "nonsense"], "'nonsense' is no address of an implementation; allowed: reference"),
        (["--qs-impl", "py:none.py:Law"], "none.py is no file"),
        (["--qs-impl", "py:liars.py:Nobody"], "liars.py has no class 'Nobody'"),
        (["--qs-impl", "reference", "--qs-level", "3"], "--qs-level: '3'; allowed: 0, 1, 2"),
        (["--qs-impl", "reference", "--qs-timeout", "soon"], "--qs-timeout: 'soon'; allowed: seconds above 0"),
        (["--qs-impl", "reference", "--qs-timeout", "nan"], "--qs-timeout: 'nan'; allowed: seconds above 0"),
        (["--qs-impl", "reference", "--qs-timeout", "0"], "--qs-timeout: '0'; allowed: seconds above 0"),
        (
            ["--qs-impl", "reference", "--qs-profile", "best"],
            "--qs-profile: 'best' is no profile; there are core-decode",
        ),
        (["--qs-impl", "reference", "--qs-select", "op:fly"], "--qs-select: selection, position 3: op:fly is none"),
        (["--qs-impl", "reference", "--qs-select", "id:no.such"], "--qs-select: 'id:no.such' selects none of the"),
        (["--qs-rules", "none/r.json"], "--qs-rules: 'none/r.json': allowed: a file in a folder that is there"),
        (["--qs-rules", ""], "--qs-rules: '': allowed: a file in a folder that is there"),
        (["--qs-rules", "."], "--qs-rules: '.' is a folder; allowed: a regular file, or a new one"),
        (["--qs-impl", "reference", "--qs-expect", "none.toml"], "--qs-expect: 'none.toml' is no file"),
        (["--qs-impl", "reference", "--qs-expect=liars.py"], "liars.py: no TOML"),
        (["--qs-impl", "nonsense", "-n", "2"], "'nonsense' is no address of an implementation; allowed: reference"),
        (["--qs-impl", "reference", "-n", "2", "--qs-profile", "best"], "--qs-profile: 'best' is no profile"),
    ],
)
def test_an_option_that_means_nothing_is_one_line(run: Run, arguments: list[str], says: str) -> None:
    result = run(*arguments)
    assert result.ret == 4
    errors = [line for line in result.errlines if line.strip()]
    assert len(errors) == 1 and errors[0].startswith("ERROR: ") and says in errors[0]
    assert "Traceback" not in text(result) and "INTERNALERROR" not in text(result)


def test_the_fixture_spec_is_the_reference(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_own="""
        import numpy as np
        import pytest
        from quantspec_conformance.testing.equality import assert_bits_equal

        def test_verbs(spec):
            q = spec.quantize(np.float32([0.5, -1, 6, 0.3]), "e2m1.native.b2-ue8m0")
            assert_bits_equal(q.codes, np.uint8([4, 14, 7, 1]), "e2m1")
            assert_bits_equal(spec.dequantize(q), np.float32([0.5, -1, 6, 0.5]))
            assert spec.decode(spec.encode(np.float32([1.75]), "e2m1"), "e2m1").tolist() == [2.0]
            raw = spec.to_bytes(spec.pack(q))
            assert spec.split(raw, q.scheme, q.shape) == q or True
            assert spec.byte_count("e2m1.packed_native_0.b32-ue8m0", (64,)) == 34

        def test_rules(spec):
            assert spec.rules["VAL-7"].title

        def test_names(spec):
            for name in dir(spec):
                getattr(spec, name)
            with pytest.raises(AttributeError, match="spec.fly: allowed: rules, encode"):
                spec.fly

        @pytest.mark.xfail(strict=True)
        def test_wrong(spec):
            assert_bits_equal(spec.encode(np.float32([-0.0]), "e2m1"), np.uint8([0]), "e2m1")
        """
    )
    run().assert_outcomes(passed=3, xfailed=1)


def test_a_failing_assertion_shows_the_patterns_and_no_frame_of_ours(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_own="""
        import numpy as np
        from quantspec_conformance.testing.equality import assert_bits_equal

        def test_wrong():
            assert_bits_equal(np.uint8([2]), np.uint8([3]), "e2m1")
        """
    )
    result = run()
    result.stdout.fnmatch_lines(["E*1 of 1 patterns differ (e2m1)", "E*expected  0x03  0|01|1  +1.5"])
    assert "assert_bits_equal.py:" not in text(result)


def test_every_profile_lists_cases_that_its_expression_selects() -> None:
    cases = load_cases(2)
    for profile in PROFILES.values():
        listed = {case.id for case in cases if profile.holds(case)}
        assert listed, profile.name
        assert listed <= {case.id for case in select(cases, profile.expression)}, profile.name
    assert all(PROFILES["full"].holds(case) for case in cases)


def test_a_claim_needs_every_case_and_should_is_apart() -> None:
    cases = [case for case in load_cases(0) if PROFILES["nvfp4"].holds(case)]
    results = {case.id: CaseResult(case.id, "pass") for case in cases}
    assert met("nvfp4", results, cases=cases) == (True, ())
    for outcome in ("fail", "unsupported", "known", "skipped", "crash"):
        wrong = {**results, cases[0].id: CaseResult(cases[0].id, outcome)}
        assert met("nvfp4", wrong, cases=cases) == (False, (f"{cases[0].id}: {outcome}",))
    first = cases[0].id
    assert met("nvfp4", {k: v for k, v in results.items() if k != first}, cases=cases) == (False, (f"{first}: notrun",))
    assert met("nvfp4", results, cases=[]) == (False, ("the profile lists no case",))
    assert len(met("nvfp4", {}, cases=cases)[1]) == 11
    with pytest.raises(UsageError, match="'best' is no profile"):
        met("best", {})


def test_a_should_case_is_reported_apart() -> None:
    from dataclasses import replace

    cases = [case for case in load_cases(0) if PROFILES["nvfp4"].holds(case)]
    apart = [replace(cases[0], strength="SHOULD"), *cases[1:]]
    results = {case.id: CaseResult(case.id, "pass") for case in cases[1:]}
    assert met("nvfp4", results, cases=apart) == (True, ("SHOULD, not part of the claim: 0 of 1 cases pass",))
