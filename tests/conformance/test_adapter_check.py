"""`adapter check`: the templates are good, and every way of being bad is found by the check that is there for it."""

import re
import sys
from functools import cache
from pathlib import Path

import pytest

from quantspec_conformance import adapter_bits, adapter_talk
from quantspec_conformance.adapter_check import check_adapter, exit_code, finding_lines, row_lines
from quantspec_conformance.doccases import load
from quantspec_conformance.errors import UsageError
from quantspec_conformance.findings import WIDTH, Finding
from quantspec_conformance.spec import spec_root
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.doc import doc_cases

from .conftest import ROOT

BAD = Path(__file__).parent / "bad_adapters"
#: Bad adapter -> the check that finds it, and what it says.
FOUND = {
    "noise": ("start", "loading kernels.*stdout belongs to the protocol"),
    "no_identity": ("start", "ready"),
    "exits_on_unknown": (
        "unknown message",
        r"it ended on a message .*exit status 1.*stderr ends with: unknown message",
    ),
    "silent_on_unknown": ("unknown message", "no answer to a message with an unknown verb"),
    "fails_on_unknown": ("unknown operation", "answered failed"),
    "takes_anything": ("malformed request", "one pattern where its shape says two: answered ok"),
    "lower_case": ("batches", "crash on encode e2m1: codes: .*upper-case hexadecimal digits"),
    "crashes": ("batches", r"(?s)crash on encode e2m1: the process ended: exit status 1\n.*MemoryError: no room"),
    "hangs": ("batches", "timeout on encode e2m1: no answer to encode for 1 s"),
    "throws": ("batches", r"decode e2m1: claimed in the identity, answered failed \(no decode\)"),
    "late_noise": ("stdout", "after the answer to run: .*took 0.1 ms"),
    "another_each_time": ("restart", "the identity differs"),
    "answers_out_of_order": ("in flight", "an answer to one of 4 requests in flight has id 2; allowed: 1"),
    "ignores_stop": ("stop", "it still runs 2 s after stop"),
    "claims_too_much": ("identity", "values lists 'fp4'"),
    "host_floats": ("echo", "signaling NaNs became quiet"),
    "nondeterministic": ("same twice", "other bits the second time: encode e2m1"),
    "batch_dependent": ("batches", "alone gives 0, as element"),
    "drops_the_last": ("sizes", r"encode e2m1 of shape \(262144,\): codes has 0 as element"),
    "wrong_ties": ("cases", "of 13 cases of level 0 are wrong; doc.values.e2m1"),
}
#: What else such an adapter does wrong, seen by other checks too.
ALSO = {
    "exits_on_unknown": {"unknown operation"},
    "silent_on_unknown": {"unknown operation"},
    "fails_on_unknown": {"unknown message"},
    "lower_case": {"echo", "same twice", "sizes", "cases"},
    "crashes": {"same twice", "sizes"},
    "hangs": {"same twice", "sizes", "cases"},
    "throws": {"unknown message", "unknown operation", "cases"},
    "late_noise": {"unknown operation", "malformed request", "echo", "same twice", "batches", "sizes", "cases"},
    "claims_too_much": {"batches", "cases"},
    "batch_dependent": {"sizes", "cases"},
    "nondeterministic": {"batches", "sizes", "cases"},
}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return list(doc_cases(load()))


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that `python -m` finds the bad adapters."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def bad(name: str) -> list[str]:
    return [sys.executable, "-m", f"tests.conformance.bad_adapters.{name}"]


def test_a_good_adapter_has_no_finding(cases: list[Case]) -> None:
    found = check_adapter(bad("good"), cases)
    assert [finding for finding in found if finding.verdict != "ok"] == []
    assert exit_code(found) == 0
    assert [finding.check for finding in found] == [
        "start", "unknown message", "unknown operation", "malformed request", "stdout", "restart", "in flight", "stop",
        "identity", "echo", "same twice", "batches", "sizes", "cases",
    ]  # fmt: skip


def test_the_reference_has_no_finding(cases: list[Case]) -> None:
    assert all(finding.verdict == "ok" for finding in check_adapter("reference", cases))


@pytest.mark.parametrize("wire", ["text", "frames"])
def test_the_served_reference_has_no_finding(cases: list[Case], wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH")
    paths = [str(ROOT / name) for name in ("reference", "kernels_cl", "conformance")]
    monkeypatch.setenv("PYTHONPATH", ":".join(paths))
    served = "quantspec_conformance.implementations.serve"
    found = check_adapter([sys.executable, "-m", served, "reference", "--wire", wire], cases)
    assert [finding for finding in found if finding.verdict != "ok"] == []
    assert f"on the wire {wire} " in found[0].text


@cache
def findings(name: str) -> list[Finding]:
    """What is found of a bad adapter."""
    timeout = {"silent_on_unknown": 3, "hangs": 1}.get(name, 10)
    return check_adapter(bad(name), list(doc_cases(load())), timeout=timeout)


@pytest.mark.parametrize("name", FOUND)
def test_a_bad_adapter_is_found_by_its_check(name: str) -> None:
    check, says = FOUND[name]
    found = findings(name)
    wrong = {finding.check: finding for finding in found if finding.bad}
    assert re.search(says, wrong[check].text), wrong
    assert set(wrong) <= {check} | ALSO.get(name, set()), wrong
    assert all(finding.hint for finding in wrong.values())
    assert exit_code(found) == (3 if check == "start" else 1)


def test_the_bad_lines_of_the_page_are_what_is_said() -> None:
    """The table of spec/adapters.md: each line is of the check beside it."""
    rows = re.findall(r"^\| ([a-z ]+) \| .* \| `(.*)` \|$", (spec_root() / "adapters.md").read_text(), re.MULTILINE)
    assert [check for check, _ in rows] == [*dict.fromkeys(check for check, _ in rows)]
    assert len(rows) == 14
    for check, line in rows:
        said = [f.text for name in FOUND for f in findings(name) if f.check == check and f.bad]
        assert any(line in text for text in said), (check, said)


def test_every_bad_adapter_is_tried() -> None:
    scripts = {path.stem for path in BAD.glob("*.py")} - {"__init__", "talk", "good", "lacks_one"}
    assert scripts == set(FOUND)


def test_a_command_that_is_none_is_no_adapter(cases: list[Case]) -> None:
    found = check_adapter("exec:/nowhere/adapter", cases)
    assert [finding.check for finding in found] == ["start"]
    assert "cannot be started" in found[0].text
    assert exit_code(found) == 3
    (silent,) = check_adapter(["true"], cases)
    assert "ended" in silent.text
    with pytest.raises(UsageError):
        check_adapter("exec:", cases)
    with pytest.raises(UsageError):
        check_adapter("exec:'", cases)
    with pytest.raises(UsageError):
        check_adapter("nothing", cases)


def hint(name: str, check: str) -> str:
    return next(finding.hint for finding in findings(name) if finding.check == check)


def test_hints_tell_kinds_of_breaking_apart() -> None:
    assert "quantspec replay doc.values." in hint("crashes", "batches")
    assert "--impl 'exec:" in hint("crashes", "batches")
    assert hint("hangs", "batches").startswith("flush after each answer")
    assert "%02X" in hint("lower_case", "batches")
    assert "%02X" in hint("lower_case", "cases")
    assert "answers alone belong on stdout" in hint("late_noise", "cases")
    assert "the message is its own" in hint("throws", "batches")


def test_what_is_claimed_and_unsupported_is_no_fault(cases: list[Case]) -> None:
    """Support that is no product of operations and formats can be said only case by case."""
    found = check_adapter(bad("lacks_one"), cases)
    assert exit_code(found) == 0
    odd = {finding.check: finding for finding in found if finding.verdict == "warn"}
    assert set(odd) == {"batches", "cases"}
    assert odd["batches"].text == "decode e2m1: claimed in the identity, answered unsupported (unknown)"
    assert all("case by case" in finding.hint for finding in odd.values())


def test_findings_come_one_by_one(cases: list[Case]) -> None:
    seen: list[Finding] = []
    assert check_adapter("reference", cases, on_finding=seen.append) == seen
    assert len(seen) > 3


def test_lines_say_what_to_do() -> None:
    found = [
        Finding("start", "ok", "fine"),
        Finding("echo", "bad", "changed", "keep patterns"),
        Finding("identity", "warn", "?"),
    ]
    assert finding_lines(found) == [
        "ok   start     fine",
        "BAD  echo      changed",
        "               keep patterns",
        "WARN identity  ?",
        "1 ok, 1 warn, 1 bad",
    ]
    assert exit_code(found) == 1
    assert row_lines(Finding("echo", "bad", "crash\nTraceback\n  line 1", "look"), 5) == [
        "BAD  echo   crash",
        "            Traceback",
        "              line 1",
        "            look",
    ]
    assert max(map(len, (*adapter_talk.CHECKS, *adapter_bits.CHECKS))) == WIDTH


def test_what_is_not_claimed_is_not_checked(tmp_path: Path) -> None:
    file = tmp_path / "sizer.py"
    file.write_text(
        "from quantspec_conformance.protocol.messages import Identity, Ok, Unsupported\n"
        "class Sizer:\n"
        "    def hello(self, hello): return Identity(name='sizer', version='1', language='Python', ops=('size',))\n"
        "    def handle(self, request): return Ok({}, {'size': '34'}) if request.op == 'size' else Unsupported(request.op)\n"
        "    def close(self): pass\n"
    )
    found = check_adapter(f"py:{file}:Sizer", [])
    assert {finding.check: finding.verdict for finding in found} == {
        "identity": "ok", "echo": "warn", "same twice": "ok", "batches": "warn", "sizes": "warn", "cases": "warn",
    }  # fmt: skip
    assert exit_code(found) == 0
