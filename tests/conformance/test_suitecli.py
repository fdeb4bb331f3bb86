"""The suite on the command line: runs of good, lying and broken implementations, and every verb about cases and results."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quantspec_conformance.cli import main
from quantspec_conformance.resultset.reader import read_run
from quantspec_conformance.resultset.verify import verify

HERE = Path(__file__).resolve().parent
FAKES = HERE.parent / "fakes.py"
LIAR = f"py:{FAKES}:TiesToZero"
TIES = ("--select", "op:quantize value:e2m1 suite:doc")


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], prog_name="quantspec")


def faulty(wire: str, *words: str) -> str:
    return "exec:" + " ".join([sys.executable, str(HERE / "faulty" / f"{wire}_wire.py"), *words])


def test_the_law_passes_level_0_and_says_that_this_is_no_conformance_run(tmp_path: Path) -> None:
    result = invoke("run", "--impl", "reference", "--out", tmp_path / "r.jsonl")
    assert result.exit_code == 0, result.output
    assert "NOT a conformance run (CNF-4)" in result.output
    assert verify(tmp_path / "r.jsonl") == []
    assert set(read_run(tmp_path / "r.jsonl").totals) == {"pass"}


def test_a_liar_fails_by_its_rule_and_its_repro_reproduces(tmp_path: Path) -> None:
    result = invoke("run", "--impl", LIAR, *TIES, "--first", "1", "--out", tmp_path / "r.jsonl")
    assert result.exit_code == 1
    assert "rule VAL-7 Ties go to the even code" in result.output
    assert "NOT as expected" in result.output and verify(tmp_path / "r.jsonl") == []
    repro = re.search(r"repro +quantspec (.+)", result.output)
    assert repro is not None
    again = invoke(*repro[1].split())
    assert again.exit_code == 1 and "VAL-7" in again.output
    good = invoke("replay", repro[1].split()[1], "--impl", "reference")
    assert good.exit_code == 0


def test_expectations_from_a_run_make_the_same_run_expected(tmp_path: Path) -> None:
    file, toml = tmp_path / "r.jsonl", tmp_path / "expect.toml"
    invoke("run", "--impl", LIAR, *TIES, "--out", file)
    toml.write_text(invoke("expect", "script", file).output, "utf-8")
    assert invoke("run", "--impl", LIAR, *TIES, "--expect", toml).exit_code == 0
    assert invoke("expect", "check", toml).exit_code == 1  # reasons still say TODO
    fixed = invoke("run", "--impl", "reference", *TIES, "--expect", toml)
    assert fixed.exit_code == 1 and "xpass" in fixed.output and "implementation" in fixed.output
    assert invoke("expect", "update", toml, file).output == toml.read_text("utf-8")


def test_results_are_compared_exported_and_shown_as_pages(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    invoke("run", "--impl", "reference", *TIES, "--out", good)
    invoke("run", "--impl", LIAR, *TIES, "--out", bad)
    assert invoke("diff", good, good).exit_code == 0
    worse = invoke("diff", good, bad)
    assert worse.exit_code == 1 and "broken" in worse.output
    for form in ("junit", "markdown", "csv", "badge", "ctrf"):
        assert invoke("report", bad, "--export", form).exit_code == 0
    pages = invoke("report", good, bad, "--html", tmp_path / "pages")
    assert pages.exit_code == 0 and (tmp_path / "pages" / "index.html").exists()
    assert invoke("verify", bad).exit_code == 0
    lines = bad.read_text("utf-8").splitlines()
    bad.write_text("\n".join([lines[0], *lines[2:]]) + "\n", "utf-8")
    assert invoke("verify", bad).exit_code in (1, 4)


def test_cases_are_listed_shown_and_explained() -> None:
    listed = invoke("list", "op:encode", "value:e2m1", "rule:VAL-7", "--level", "0")
    assert listed.exit_code == 0 and "doc.values.e2m1-all-ties" in listed.output
    rows = [json.loads(line) for line in invoke("list", "suite:doc", "op:encode", "--json").output.splitlines()]
    assert {row["op"] for row in rows} == {"encode"}
    shown = invoke("show", "doc.values.e2m1-all-ties")
    assert "run id=1 op=encode value=e2m1 x=f32:7:" in shown.output and "VAL-7" in shown.output
    steps = invoke("show", "doc.quantize.mxfp4-codes", "--index", "0")
    assert steps.exit_code == 0, steps.output
    near = invoke("show", "doc.values.e2m1-all-tie")
    assert near.exit_code == 2 and "doc.values.e2m1-all-ties" in near.stderr


def test_a_failure_is_shrunk_to_one_block() -> None:
    result = invoke("shrink", "doc.blocks.longer-on-both-axes", "--impl", LIAR, "--json")
    assert result.exit_code == 1, result.output
    assert "VAL-7" in result.output
    passing = invoke("shrink", "doc.blocks.longer-on-both-axes", "--impl", "reference")
    assert passing.exit_code == 2 and "Traceback" not in passing.output


@pytest.mark.parametrize(
    ("address", "outcome", "said"),
    [
        (faulty("text", "honest"), "pass", ""),
        (faulty("text", "crash-at", "2"), "crash", "about to crash"),
        (faulty("text", "hang"), "timeout", ""),
        (faulty("text", "noise"), "crash", "stdout"),
        (faulty("text", "wrong-shape"), "crash", ""),
        (faulty("text", "other-shape"), "fail", "shape"),
        (faulty("text", "random"), "nondeterministic", ""),
        (faulty("text", "floats"), "fail", ""),
        (faulty("text", "no-text"), "crash", ""),
        (faulty("frames", "honest"), "pass", ""),
        (faulty("frames", "ten-gigabytes"), "crash", ""),
        (faulty("frames", "truncated"), "crash", ""),
        (faulty("frames", "deep-json"), "crash", ""),
        (faulty("frames", "overlapping"), "crash", ""),
    ],
    ids=lambda value: value.split("/")[-1] if isinstance(value, str) and "/" in value else "",
)
def test_a_fault_is_its_case_and_the_rest_goes_on(tmp_path: Path, address: str, outcome: str, said: str) -> None:
    file = tmp_path / "r.jsonl"
    options = ("--select", "op:echo", "--level", "1", "--timeout", "1", "--repeat", "1")
    result = invoke("run", "--impl", address, *options, "--out", file)
    assert result.exit_code == (0 if outcome == "pass" else 1), result.output
    run = read_run(file)
    assert run.footer is not None and verify(file) == []
    assert len(run.results) > 1 and outcome in run.totals
    assert said in " ".join(record.reason for record in run.results) + result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("fault", ["exit-in-hello", "silent", "garbled-exit", "major", "noise-first"])
def test_an_adapter_that_cannot_be_opened_ends_with_3(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quantspec_conformance.implementations.address._HELLO", 3.0)
    result = invoke("run", "--impl", faulty("text", fault), "--select", "op:echo", "--timeout", "1")
    assert result.exit_code == 3 and "cannot be used" in result.stderr


def test_what_an_adapter_lacks_is_unsupported_and_no_profile_holds() -> None:
    result = invoke("run", "--impl", faulty("text", "honest"), "--profile", "core-decode")
    assert "unsupported" in result.output and "does not hold" in result.output
    law = invoke("run", "--impl", "reference", "--profile", "core-decode", "--level", "1")
    assert law.exit_code == 0 and "core-decode holds" in law.output


def test_ctrl_c_leaves_a_whole_result_file(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import time\nfrom quantspec_conformance.implementations.law import Law\n\n\n"
        "class Slow(Law):\n    def handle(self, request):\n        time.sleep(0.05)\n        return super().handle(request)\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "quantspec_conformance", "run", "--impl", f"py:{slow}:Slow", "--out", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        partial = tmp_path / "r.jsonl.partial"
        for _ in range(600):
            if partial.exists() and len(partial.read_bytes().splitlines()) > 5:
                break
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted, exit code 130" in out
    run = read_run(file)
    assert run.footer is not None and run.footer["interrupted"] and run.totals["notrun"] > 100
    assert verify(file) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "--impl", "ruby:x"), 2, "is no address of an implementation"),
        (("run", "--impl", "exec:/no/such/adapter"), 3, "/no/such/adapter"),
        (("run", "--impl", "reference", "--select", "op:nothing"), 2, "op"),
        (("run", "--impl", "reference", "--profile", "all"), 2, "core-decode"),
        (("run", "--impl", "reference", "--device", "pocl"), 2, "--device is for devices"),
        (("run", "--level", "1"), 2, "--level goes with --impl"),
        (("run", "--impl", "reference", "--out", "/"), 2, "folder"),
        (("run", "--impl", "reference", "--out", "-"), 2, "stdout has the report; allowed: a regular file"),
        (("run", "--device", "reference", "--json", "-"), 2, "stdout has the report; allowed: a regular file"),
        (("adapter", "new", "/proc/x", "--lang", "c"), 2, "/proc/x cannot be written: there is no such file or folder"),
        (("list", ""), 2, "a term is empty"),
        (("list", "op:encode", " "), 2, "a term is empty"),
        (("adapter", "export", "/tmp/none", ""), 2, "a term is empty"),
        (("list", "level:1"), 2, "'level:1' selects none of the"),
        (("list", "level:1"), 2, "up to level 0; --level 1 has some"),
        (("report", str(FAKES), "--export", "csv", "--tests", str(FAKES)), 2, "--tests goes with --html"),
        (("report", str(FAKES), "--html", "/tmp/none", "--tests", str(FAKES)), 4, "no JSON"),
        (("verify", "/no/such/file"), 2, "'/no/such/file' cannot be read: there is no such file or folder"),
        (("report", str(FAKES)), 2, "one of --html"),
        (("diff", str(FAKES), str(FAKES)), 4, "fakes.py"),
        (("expect", "check", str(FAKES)), 2, "fakes.py"),
        (("adapter", "new", "/tmp", "--lang", "cobol"), 2, "python, c, rust, js"),
        (("vectors", "suites", "--level", "2"), 2, "--level goes with --out"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_mistake_is_one_line_that_helps(words: tuple[str, ...], code: int, said: str) -> None:
    result = invoke(*words)
    assert result.exit_code == code, result.output
    assert said in result.stderr and "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) <= 3


@pytest.mark.parametrize(
    "words", [("run", "--impl", "reference", "--out", ""), ("adapter", "new", "", "--lang", "python"), ("verify", " ")]
)
def test_an_empty_path_is_none(words: tuple[str, ...]) -> None:
    result = invoke(*words)
    assert result.exit_code == 2 and "is empty; allowed: the path of a file or folder" in result.stderr


def test_list_and_run_choose_the_same_cases() -> None:
    listed = invoke("list", "op:encode_scale").output.splitlines()
    run = invoke("run", "--impl", "reference", "--select", "op:encode_scale")
    assert f": {len(listed)} of " in run.output and listed


STRANGE = """
from dataclasses import replace
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.protocol.messages import Unsupported

class Strange(Law):
    def hello(self, hello):
        return replace(super().hello(hello), ops=("encode", "decoed"), values=("e2m1", "fp4"), stores=("native", "packed"),
                       policies={"recipe": "ocp-mx, nvfp4", "codec": "ptxx", "container": "canonical", "ties": "as wanted"})

class Lacking(Law):
    def handle(self, request):
        return Unsupported(f"value:{request.words.get('value', 'none')}", "not yet")
"""


def test_names_that_are_none_are_said_and_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "strange.py").write_text(STRANGE, "utf-8")
    result = invoke("run", "--impl", f"py:{tmp_path / 'strange.py'}:Strange", "--select", "op:encode value:e2m1")
    assert result.exit_code == 0, result.output
    for said in (
        "ops lists 'decoed'; allowed: ",
        "values lists 'fp4'; allowed: q8f",
        "stores lists 'packed'; allowed: native",
        "policy.recipe lists 'nvfp4'; near: ",
        "policy.codec lists 'ptxx'; near: ptx: never asked for",
    ):
        assert f"identity  {said}" in result.output
    assert not [axis for axis in ("container", "ties") if f"policy.{axis} lists" in result.output]
    assert "identity  " not in invoke("run", "--impl", "reference", *TIES).output


def test_what_is_not_supported_is_counted_by_what_is_lacking(tmp_path: Path) -> None:
    (tmp_path / "strange.py").write_text(STRANGE, "utf-8")
    result = invoke(
        "run", "--impl", f"py:{tmp_path / 'strange.py'}:Lacking", "--select", "op:encode,decode value:e2m1,q4s"
    )
    assert "not supported, by what is lacking:" in result.output
    assert re.search(r"^ +[0-9]+  value:e2m1$", result.output, re.M) and re.search(
        r"^ +[0-9]+  value:q4s$", result.output, re.M
    )


def test_reasons_that_nobody_wrote_are_warned_of(tmp_path: Path) -> None:
    file, toml = tmp_path / "r.jsonl", tmp_path / "expect.toml"
    invoke("run", "--impl", LIAR, *TIES, "--out", file)
    toml.write_text(invoke("expect", "script", file).output, "utf-8")
    result = invoke("run", "--impl", LIAR, *TIES, "--expect", toml)
    assert result.exit_code == 0
    assert "expect    warning: entry 1: reason and url still say TODO" in result.output


def test_a_report_takes_tests_of_others(tmp_path: Path) -> None:
    file, tests = tmp_path / "r.jsonl", tmp_path / "t.json"
    invoke("run", "--impl", "reference", *TIES, "--out", file)
    rows = [{"test": "test_theirs.py::test_ties", "outcome": "passed"}]
    tests.write_text(json.dumps({"schema": "rule-tests-1", "quantspec": "0", "project": "p", "rules": {"VAL-7": rows}}))
    result = invoke("report", file, file, "--html", tmp_path / "out", "--tests", tests)
    assert result.exit_code == 0, result.output
    assert "test_theirs.py::test_ties" in (tmp_path / "out" / "rule-VAL-7.html").read_text("utf-8")
    assert "2 runs, the earliest first" in (tmp_path / "out" / "trend.html").read_text("utf-8")


def test_requests_go_to_a_folder_and_answers_come_from_it(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    assert invoke("adapter", "export", lab, "op:echo").exit_code == 0
    run = invoke("run", "--impl", f"files:{lab}", "--select", "op:echo")
    assert run.exit_code == 1 and "notrun" in run.output


def test_a_new_adapter_passes_its_check(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    made = invoke("adapter", "new", folder, "--lang", "python")
    assert made.exit_code == 0 and "adapter check" in made.output
    checked = invoke("adapter", "check", f"exec:{sys.executable} {folder / 'adapter.py'}", "--json")
    assert checked.exit_code == 0, checked.output
    assert {row["verdict"] for row in json.loads(checked.output)["findings"]} == {"ok"}
    again = invoke("adapter", "new", folder, "--lang", "python")
    assert again.exit_code == 2 and "nothing is overwritten" in again.stderr
