"""The command as its users meet it: output, exit codes, files, interruptions, crashes."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

import quantspec
from quantspec_conformance import coverage, matrix
from quantspec_conformance.cases import plans
from quantspec_conformance.cli import main
from quantspec_conformance.resultfile import run_schema, write_json
from quantspec_conformance.seat import CRASHES

from .conftest import ROOT, Quantspec, command, environment, liar

ESCAPE = "\x1b"


def invoke(*arguments: str) -> tuple[int, str]:
    """The command in this process: exit code and everything printed."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def read(path: Path) -> dict[str, Any]:
    """A result file, validated."""
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    jsonschema.validate(content, run_schema(), cls=jsonschema.Draft202012Validator)
    return content


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(run_schema())


def test_reference_passes_and_the_output_is_plain(quantspec_command: Quantspec, tmp_path: Path) -> None:
    done = quantspec_command("run", "--device", "reference", "--only", "e2m1.*.b*-ue8m0", "--json", str(tmp_path / "r"))
    assert done.returncode == 0, done.stderr
    assert ESCAPE not in done.stdout + done.stderr
    assert done.stderr == ""
    assert "\nreference: " in done.stdout
    assert "as expected" in done.stdout
    assert "NOT a conformance run (CNF-4): a part of the suite" in done.stdout
    assert max(map(len, done.stdout.splitlines()[5:])) <= 100
    content = read(tmp_path / "r")
    (device,) = content["devices"]
    assert device["as_expected"]
    assert set(device["totals"]) == {"pass", "refused"}
    assert sum(device["totals"].values()) == content["coverage"]["cases"]
    assert not content["conformance"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r"]


def test_quick_says_that_it_is_no_conformance_run() -> None:
    code, output = invoke("run", "--device", "reference", "--quick", "--only", "q2s.native.*")
    assert code == 0
    assert "this is NOT a conformance run (CNF-4): a quick run" in output
    assert "quick run, NOT a conformance run" in output


def test_a_liar_fails_and_its_repro_reproduces(quantspec_command: Quantspec, tmp_path: Path) -> None:
    done = quantspec_command(
        *("run", "--device", liar("TiesToZero"), "--only", "e2m1.native.b32-f32", "--first", "2"),
        *("--json", str(tmp_path / "r.json")),
    )
    assert done.returncode == 1
    assert "rule VAL-7 Ties go to the even code" in done.stdout
    (failure,) = read(tmp_path / "r.json")["devices"][0]["failures"]
    assert failure["rule"] == "VAL-7"
    assert failure["elements"][0]["input"].startswith("0x")
    words = failure["repro"].split()
    assert words[0] == "quantspec"
    again = quantspec_command(*words[1:], "--first", "2")
    assert again.returncode == 1
    block = re.search(r"^FAIL.*?^ repro ", done.stdout, flags=re.S | re.M)
    assert block is not None
    assert block[0] in again.stdout


def test_crash_timeout_and_unusable_devices_leave_the_others_alone(
    quantspec_command: Quantspec, tmp_path: Path
) -> None:
    names = ["Aborts", "Hangs", "CannotOpen", "AbortsOnOpen", "Noisy", "Raises", "Declines"]
    devices = [word for name in names for word in ("--device", liar(name))]
    done = quantspec_command(
        *(
            "run",
            *devices,
            "--device",
            "reference",
            "--only",
            "q4s.native.b*-f32",
            "--only",
            "q4s.native.lut-nf4.t-f32",
        ),
        *("--timeout", "3", "--json", str(tmp_path / "r.json")),
    )
    assert done.returncode == 1, done.stderr
    content = read(tmp_path / "r.json")
    found = {device["label"].rpartition(":")[2]: device for device in content["devices"]}
    assert found["reference"]["as_expected"]
    assert found["Noisy"]["as_expected"], "prints of a runtime are not answers"
    cases = content["coverage"]["cases"]
    for name in ("Aborts", "Hangs", "Noisy", "reference", "Raises", "Declines"):
        assert sum(found[name]["totals"].values()) == cases, name
    assert found["Aborts"]["totals"]["crash"] == CRASHES and found["Aborts"]["restarts"] == CRASHES - 1
    assert found["Aborts"]["totals"]["notrun"] > 0 and found["Aborts"]["totals"]["pass"] > 50
    assert f"did not reach the end: crash: the process ended: signal SIGABRT (crash {CRASHES}" in done.stdout
    assert "signal SIGABRT" in found["Aborts"]["failures"][-1]["message"]
    assert "LLVM ERROR: Cannot emit physreg copy instruction" in found["Aborts"]["failures"][-1]["message"]
    assert found["Hangs"]["totals"]["timeout"] == 1
    assert "did not reach the end: timeout: no answer for 3 s" in done.stdout
    assert "DEVICE_NOT_AVAILABLE" in found["CannotOpen"]["unusable"]
    assert "SIGABRT" in found["AbortsOnOpen"]["unusable"]
    assert found["Raises"]["totals"]["error"] > 0
    assert "CL_OUT_OF_RESOURCES" in found["Raises"]["failures"][0]["message"]
    assert found["Declines"]["totals"]["unsupported"] > 0


def test_a_crash_is_the_outcome_of_its_case_and_the_next_ones_are_run(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    devices = ("--device", liar("AbortsOnEmpty"), "--device", "reference")
    code, output = invoke("run", *devices, "--only", "q4s.native.b32-f32", "--json", str(file), "--first", "0")
    assert code == 1
    content = read(file)
    crashing, reference = content["devices"]
    assert reference["as_expected"] and reference["restarts"] == 0
    totals, due = crashing["totals"], reference["totals"]
    assert 0 < totals["crash"] == crashing["restarts"] < CRASHES
    assert totals["pass"] + totals["crash"] == due["pass"] and totals["refused"] == due["refused"]
    assert "notrun" not in totals and crashing["ended"] == "" and not crashing["as_expected"]
    assert {row["outcome"] for row in crashing["failures"]} == {"crash"}
    assert all("0" in re.split("[/x]", row["case"])[1:-1] for row in crashing["failures"])
    assert crashing["failed"] == {"crash": totals["crash"]}
    assert f"crashed, and was started again {totals['crash']} times" in output


def test_a_device_that_cannot_be_started_again_is_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUANTSPEC_TEST_MARK", str(tmp_path / "opened"))
    file = tmp_path / "r.json"
    code, output = invoke(
        "run", "--device", liar("AbortsSecondTime"), "--only", "q4s.native.b*-f32", "--json", str(file)
    )
    (device,) = read(file)["devices"]
    assert code == 1 and device["unusable"] == "" and device["totals"]["crash"] == 1
    assert "could not be started again" in device["ended"] and "DEVICE_LOST" in device["ended"]
    assert device["totals"]["notrun"] > 0 and "could not be started again" in output


def test_interruption_keeps_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    process = subprocess.Popen(
        command("run", "--device", liar("Slow"), "--only", "q8s.*", "--json", str(file)),
        env=environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("device "):
            break
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "interrupted: what was done until then is shown" in output
    assert "scale choices as expected, by value and store" in output
    assert "Traceback" not in errors
    content = read(file)
    assert content["interrupted"]
    totals = content["devices"][0]["totals"]
    assert totals["pass"] > 0
    assert totals["notrun"] > 0
    assert sum(totals.values()) == content["coverage"]["cases"]


def test_a_result_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text("before")
    with pytest.raises(TypeError):
        write_json(file, {"device": object()})
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "--device", "reference", "--only", "e9m9.*"], 2, "'e9m9.*' matches none of the 4165 schemes"),
        (["run", "--device", "reference", "--only", "e2m1.packd.t-f32"], 2, "  e2m1.packd.t-f32\n       ^\n"),
        (["run", "--device", "reference", "--json", "/nowhere/r.json"], 2, "no folder '/nowhere'"),
        (["run", "--device", "reference", "--json", "/"], 2, "'/' is a folder"),
        (["run", "--device", "reference", "--name", "w"], 2, "--name goes with --tensor"),
        (["run", "--device", "reference", "--case", "x", "--quick"], 2, "--case runs exactly one case"),
        (["run", "--device", "reference", "--seed", "-1"], 2, "-1 is not in the range"),
        (["run", "--device", "reference", "--build-option=-g"], 3, "--build-option is for OpenCL devices"),
        (["run", "--device", "py:no/such.py:Class"], 3, "no file 'no/such.py'"),
        (["explain", "e2m1.native.t-f23", "1"], 2, "  e2m1.native.t-f23\n              ^\n"),
        (["explain", "e2m1.native.t-f32", "0x7"], 2, "did you mean code:7"),
        (["explain", "q4s.native.t-f32", "code:08"], 2, "the field 0x8 is the byte 0xF8"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_usage_errors(arguments: list[str], code: int, message: str) -> None:
    found, output = invoke(*arguments)
    assert message in output
    assert found == code
    assert "Traceback" not in output


def test_an_adapter_class_that_is_missing_is_no_usable_device(quantspec_command: Quantspec) -> None:
    done = quantspec_command("run", "--device", liar("NoSuchLiar"), "--only", "q8s.native.t-f32")
    assert done.returncode == 3
    assert "has no class 'NoSuchLiar'" in done.stdout


def test_no_runtime_found_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("quantspec_cl", reason="pyopencl is not installed")
    monkeypatch.setattr("quantspec_cl.find_runtimes", lambda: [])
    for arguments in (["devices"], ["run"]):
        code, output = invoke(*arguments)
        assert code == 3
        assert 'pip install "quantspec[cl-cpu]"' in output


def test_a_damaged_suite_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix.schemes.cache_clear()
    monkeypatch.setattr(matrix, "SIZES", (2695, 1469))
    code, output = invoke("run", "--device", "reference", "--only", "q8s.native.t-f32")
    matrix.schemes.cache_clear()
    assert code == 4
    assert "the matrix has (2695, 1470) schemes (symmetric, lookup); it must have (2695, 1469)" in output


def test_a_reference_that_fails_is_a_damaged_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    def flushing(*arguments: object, **options: object) -> None:
        raise quantspec.HostError("CNF-6", "this process flushes subnormal numbers to zero")

    monkeypatch.setattr(quantspec, "dequantize", flushing)
    code, output = invoke("run", "--device", "reference", "--only", "q8s.native.t-f32")
    assert code == 4
    assert "the reference failed at q8s.native.t-f32/" in output
    assert "flushes subnormal numbers" in output


def test_without_the_harness_extra_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['click'] = None; import quantspec_conformance.cli"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'quantspec: click is not installed; pip install "quantspec[harness]"\n'


def test_help_says_what_is_covered_and_the_exit_codes() -> None:
    code, output = invoke("run", "--help")
    assert code == 0
    words = " ".join(output.split())
    assert "It is NOT a conformance run, and says so." in words
    counts = coverage.count(list(plans(matrix.select([]))))
    assert (
        f"In numbers: {counts['schemes']} schemes, {counts['cases']} cases, {counts['refused']} of them shapes to be refused, "
        f"{counts['triples']} triples."
    ) in words
    code, output = invoke("--help")
    assert "4 the suite or a result file is damaged, 130 interrupted, 141 " in " ".join(output.split())
