"""The check of runtimes: rows are data, processes are bounded, and everything that a runtime can do wrong has an outcome."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quantspec_conformance.errors import UsageError

from .conftest import FAKES, ROOT, Quantspec

pytest.importorskip("pyopencl")

from quantspec_cl.program import GENERIC, all_programs
from quantspec_cl.runtimes import find_runtimes
from quantspec_conformance.runtimecheck import check, memory, offline, places, suite, table
from quantspec_conformance.runtimecheck.child import KEPT, Ended, environment, run_child
from quantspec_conformance.runtimecheck.exercise import CANARIES, kernel_names
from quantspec_conformance.runtimecheck.models import CHECKERS, MODELS, Model
from quantspec_conformance.runtimecheck.offline import TARGETS, Target, Tool
from quantspec_conformance.runtimecheck.outcome import Outcome
from quantspec_conformance.runtimecheck.places import PLACES
from quantspec_conformance.runtimecheck.prepare import SETS

SCHEMA = json.loads(
    (resources.files("quantspec_conformance") / "schemas" / "devices-check.schema.json").read_text("utf-8")
)


def ended_by(script: str, tmp_path: Path, seconds: float = 20.0) -> Ended:
    """How a Python script ends."""
    return run_child([sys.executable, "-S", "-c", script], env=environment({}, tmp_path), seconds=seconds)


def test_rows_are_complete_and_their_names_unique() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    for model in MODELS:
        place = TARGETS[model.place] if model.kind == "offline" else PLACES[model.place]
        assert place.install and model.plays
        assert model.kind != "memory" or model.checks in CHECKERS
    options = {option for model in MODELS for option in model.build_options}
    assert options == {"-cl-denorms-are-zero", "-cl-fast-relaxed-math", "-cl-opt-disable"}
    assert {model.place for model in MODELS if model.kind == "suite"} == {"pocl", "pocl-debian", "intel", "rusticl"}
    assert {each.name for each in SETS} == {"oclgrind", "pocl-debian", "rusticl", "spirv", "gpu", "ptxas"}


def test_rows_are_chosen_by_name_and_kind() -> None:
    assert check.select_models(()) == list(MODELS)
    assert [model.name for model in check.select_models(["pocl", "memory"])] == [
        "pocl",
        "oclgrind",
        "oclgrind-uninitialised",
    ]
    with pytest.raises(UsageError, match="matches no row; there are pocl, "):
        check.select_models(["nothing"])


def test_a_runtime_of_the_system_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia", "pocl"):
        (tmp_path / f"{name}.icd").write_text("libnone.so")
    monkeypatch.setattr(places, "SYSTEM_VENDORS", tmp_path)
    assert [model.name for model in check.all_models()[len(MODELS) :]] == ["system-nvidia"]
    assert places.place_of("system-nvidia").find() == {"OCL_ICD_VENDORS": str(tmp_path / "nvidia.icd")}
    assert PLACES["pocl-debian"].find() == {"OCL_ICD_VENDORS": str(tmp_path / "pocl.icd")}


def test_a_process_that_dies_by_a_signal_says_which(tmp_path: Path) -> None:
    ended = ended_by("import os, sys; print('last words', file=sys.stderr, flush=True); os.abort()", tmp_path)
    assert ended.signal == "SIGABRT" and ended.said() == "last words"


def test_a_process_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Its child holds the pipes open and outlives it."""
    script = "import subprocess, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"
    begun = time.monotonic()
    ended = ended_by(script, tmp_path, seconds=1.0)
    assert ended.code is None and time.monotonic() - begun < 10
    child = Path(f"/proc/{int(ended.out)}/status")
    for _ in range(50):
        if not child.exists() or "zombie" in child.read_text():
            return
        time.sleep(0.1)
    raise AssertionError("the child of a process that hangs goes on")


def test_a_process_that_prints_without_end_is_kept_to_the_end_of_it(tmp_path: Path) -> None:
    script = "import sys\nfor _ in range(300): sys.stdout.write('noise\\x1b[2J' * 1000)\nprint('END')"
    ended = ended_by(script, tmp_path)
    assert ended.code == 0 and ended.out.endswith("END\n") and "\x1b" not in ended.out
    assert KEPT - 8192 <= ended.out.count("noise") * len("noise\x1b[2J") <= KEPT


def test_a_row_sees_no_choice_of_runtime_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OCL_ICD_VENDORS", "POCL_CACHE_DIR", "OCLGRIND_LOG", "PYOPENCL_BUILD_OPTIONS", "PYOPENCL_CTX"):
        monkeypatch.setenv(name, "foreign")
    found = environment({"OCL_ICD_VENDORS": "mine"}, tmp_path)
    assert found["OCL_ICD_VENDORS"] == "mine" and found["POCL_CACHE_DIR"] == str(tmp_path)
    assert found["PYOPENCL_NO_CACHE"] == "1" and "foreign" not in found.values()


def test_the_loader_s_variable_leaves_one_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = find_runtimes()
    for runtime in everything:
        monkeypatch.setenv("OCL_ICD_VENDORS", runtime.path)
        assert find_runtimes() == [runtime]
    library = tmp_path / "libmine.so.2"
    library.touch()
    monkeypatch.setenv("OCL_ICD_VENDORS", str(library))
    assert [(each.name, each.source, each.variables) for each in find_runtimes()] == [
        ("libmine", "variable", {"OCL_ICD_VENDORS": str(library)})
    ]
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "none"))
    assert find_runtimes() == everything


FAILURE = {"case": "q8s.native.t-f32/9/ties", "step": "quantize", "part": "codes", "lines": [" where"]}


def device(**changed: Any) -> dict[str, Any]:
    """A device of a result file."""
    base: dict[str, Any] = {
        "label": "fake", "identity": {"name": "Fake", "driver": "1"}, "restarts": 0, "ended": "", "unusable": "",
        "totals": {"pass": 5, "refused": 2}, "failures": [],
    }  # fmt: skip
    return {**base, **changed}


def judged(code: int | None, *devices: dict[str, Any], err: str = "") -> Outcome:
    """The outcome of a run."""
    content = {"devices": list(devices)} if devices else None
    return suite.judge(Ended(code, "", err, 1.0), content, command="env A=b quantspec", words=["run", "--quick"])


FAILED = [{**FAILURE, "repro": "quantspec run --device fake --case q8s.native.t-f32/9/ties"}]
JUDGED: dict[str, tuple[Outcome, str, int, str]] = {
    "ok": (judged(0, device()), "ok", 7, ""),
    "mismatch": (
        judged(1, device(totals={"pass": 3, "fail": 2, "error": 1}, failures=FAILED)),
        *("mismatch", 3, "env A=b quantspec run --device fake --case q8s.native.t-f32/9/ties"),
    ),
    "crash in a case": (
        judged(1, device(restarts=1, totals={"pass": 3, "crash": 1}, failures=FAILED)),
        *("crash", 1, "env A=b quantspec run --device fake --case q8s.native.t-f32/9/ties"),
    ),
    "crash of the run": (judged(-11), "crash", 0, "env A=b quantspec run --quick"),
    "hang in a case": (judged(1, device(totals={"timeout": 1}, ended="no answer")), "timeout", 1, ""),
    "hang of the run": (judged(None), "timeout", 0, "env A=b quantspec run --quick"),
    "cannot be opened": (judged(3, device(unusable="BuildError: no", totals={})), "refused", 0, ""),
    "no device": (judged(3, err="quantspec: no OpenCL device was found"), "refused", 0, ""),
    "damaged": (judged(4, err="quantspec: the reference failed"), "refused", 0, ""),
    "bad end without a reason": (judged(1, device()), "mismatch", 0, ""),
    "an interpreter that fails": (judged(1, err="Traceback"), "crash", 0, ""),
}


@pytest.mark.parametrize("name", JUDGED)
def test_every_end_of_a_run_has_an_outcome(name: str) -> None:
    found, status, count, repro = JUDGED[name]
    assert (found.status, found.count) == (status, count), found
    assert found.repro == repro or not repro
    assert found.detail and (found.status == "ok") == (found.repro == "")


def fake_model(tmp_path: Path, liar: str, **changed: Any) -> Model:
    """A row whose runtime is an adapter of tests/fakes.py."""
    words = ("--device", f"py:{FAKES}:{liar}", "--only", "q8s.native.t-f32")
    return Model(name=liar, kind="suite", place="pocl", plays="a fake", quick=words, full=words, **changed)


@pytest.mark.parametrize(
    ("liar", "status"), [("TiesToZero", "mismatch"), ("Crashing", "crash"), ("Hanging", "timeout"), ("Reference", "ok")]
)
def test_a_fake_runtime_gets_its_outcome(
    liar: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole row, from the command line to the result file, with a runtime that crashes, hangs, lies or is right."""
    file = tmp_path / "fake.py"
    file.write_text(FAKE, encoding="utf-8")
    model = fake_model(tmp_path, liar)
    words = ("--device", f"py:{file}:{liar}", "--only", "q8s.native.t-f32", "--timeout", "2")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    outcome = suite.run_suite(replace(model, quick=words), {"FAKE": "1"}, quick=True, seconds=60)
    assert outcome.status == status, outcome
    assert outcome.repro.startswith("env FAKE=1 quantspec run") == (status != "ok")
    if status == "crash":
        assert "SIGABRT" in outcome.first
    if status == "mismatch":
        assert "--case q8s.native.t-f32/" in outcome.repro and outcome.first.startswith("FAIL q8s.native.t-f32/")


FAKE = """
import os, sys, time
from quantspec_conformance.adapters.reference import ReferenceAdapter
from tests.fakes import TiesToZero

class Reference(ReferenceAdapter):
    def quantize(self, *arguments, **named):
        print("noise on stdout"); os.write(1, b"noise on the descriptor\\n")
        return super().quantize(*arguments, **named)

class Crashing(ReferenceAdapter):
    def quantize(self, *arguments, **named):
        os.abort()

class Hanging(ReferenceAdapter):
    def quantize(self, *arguments, **named):
        time.sleep(60)
"""


def test_a_model_that_its_runtime_does_not_play_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "_MEASURE", "print('noise'); print('{\"subnormal results are kept\": true}')")
    model = replace(fake_model(tmp_path, "x"), expects={"subnormal results are kept": False})
    assert suite._played(model, environment({}, tmp_path)) == (
        "NOT PLAYED: measured 'subnormal results are kept' is ok",
    )
    monkeypatch.setattr(suite, "_MEASURE", "raise SystemExit('no device')")
    assert suite._played(model, environment({}, tmp_path)) == ("the model could not be measured: no device",)


LOG = """
Read-write data race at global memory address 0x2000000000000
\tKernel: pack

\tFirst entity:  Global(1,0,0)
\t%9 = load i8

Invalid write of size 4 at global memory address 0x1000000000040
\tKernel: amax
\tEntity: Global(16,0,0)

Uninitialized value written to global memory address 0x1
\tKernel: tally

Something that no version known here says
"""
NEW: Any = {"not launched": {"new": "new.cl"}}
DONE = {"device": "Oclgrind", "compared": 9, "wrong": [], "launched": ["a", "b"], "not launched": {}}


def gated(log: str, code: int | None = 0, *, checker: str = "memory", **changed: Any) -> Outcome:
    """The gate's verdict."""
    return memory.gate(
        Ended(code, "", "said", 1.0), {**DONE, **changed}, memory.read_log(log), checker=checker, repro="run it"
    )


def test_the_log_is_read_entry_by_entry() -> None:
    assert [(each.kind, each.kernel) for each in memory.read_log(LOG)] == [
        *(("race", "pack"), ("bounds", "amax"), ("uninitialised", "tally"), ("other", "")),
    ]
    assert memory.read_log("\n \n") == []


def test_the_gate_asks_for_an_empty_log_and_for_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gated("").status == "ok" and "2 kernels, 9 results" in gated("").detail
    full = gated(LOG)
    assert (full.status, full.count, full.repro) == ("mismatch", 4, "run it") and "Read-write data race" in full.first
    assert gated("", launched=[], **NEW).first == "new (new.cl)"
    without = gated("", checker="uninitialised", **NEW)  # the other checker sees the kernels of vectors
    assert without.status == "ok" and without.notes == ("not judged, path fast: new",)
    assert gated("", wrong=["pack"]).status == "mismatch"
    assert gated("", code=-11).status == "crash" and gated("", code=None).status == "timeout"
    monkeypatch.setitem(memory.FALSE_POSITIVES, ("memory", "pack"), "known")
    assert (gated(LOG).count, gated(LOG).notes) == (3, ("not judged: pack: known",))


def test_a_checker_that_is_blind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The liar of the gate: an Oclgrind that sees nothing leaves the log empty after the canaries too."""
    model = next(model for model in MODELS if model.kind == "memory")
    ended = Ended(0, "", "", 1.0)
    monkeypatch.setattr(memory, "_exercise", lambda *_: (ended, DONE, []))
    blind = memory.run_memory(model, {}, seconds=1)
    assert blind.status == "refused" and "did not see the planted faults: race, bounds" in blind.detail

    def sees(variables: Any, words: Sequence[str], seconds: float) -> Any:
        return ended, DONE, memory.read_log(LOG) if "canary" in words else []

    monkeypatch.setattr(memory, "_exercise", sees)
    assert memory.run_memory(model, {}, seconds=1).status == "ok"


@pytest.mark.skipif(PLACES["oclgrind"].find() is None, reason="no Oclgrind; quantspec devices --prepare")
@pytest.mark.parametrize("checker", CHECKERS)
def test_oclgrind_sees_every_canary(checker: str) -> None:
    variables = PLACES["oclgrind"].find()
    assert variables is not None
    ended, _, complaints = memory._exercise({**variables, **CHECKERS[checker][0]}, ["canary"], 60)
    kinds = CHECKERS[checker][1]
    assert ended.code == 0
    assert {each.kernel for each in complaints} >= {name for name, kind in CANARIES.items() if kind in kinds}
    assert gated("\n".join(each.text for each in complaints)).status == "mismatch"


def test_every_kernel_of_every_program_is_asked_for() -> None:
    names = kernel_names()
    assert {"amax", "quantize", "pack", "probe", "wrong_products"} <= names.keys()
    for program in all_programs():
        for line in program.source.splitlines():
            if line.startswith("__kernel"):
                assert line.split("(")[0].split()[-1] in names


def fake_target(tool: Path | None, *words: str) -> Target:
    """A target whose compiler is a command."""
    return Target(
        "fake", lambda: [Tool("cc", tool)], lambda tools, work, program: [(tools[0], list(words))], ("get cc",)
    )


def test_a_program_that_a_compiler_refuses_is_named_with_its_message() -> None:
    python = Path(sys.executable)
    assert offline.run_offline(fake_target(python, "-c", "open('program.cl').read()"), quick=True).status == "ok"
    refused = offline.run_offline(fake_target(python, "-c", "raise SystemExit('bad word')"), quick=True)
    assert (refused.status, "bad word" in refused.first, GENERIC.files[0] in refused.first) == ("mismatch", True, True)
    assert offline.run_offline(fake_target(python, "-c", "import os; os.abort()"), quick=True).status == "crash"
    missing = offline.run_offline(fake_target(None), quick=True)
    assert (missing.status, missing.detail, missing.install) == ("missing", "not installed: cc", ("get cc",))


def test_a_new_program_is_compiled_by_being_registered() -> None:
    assert offline.programs()[: len(all_programs())] == all_programs()
    many = [replace(GENERIC, definitions=(f"-DN={i}",)) for i in range(50)] + list(offline.PROBES)
    chosen = offline._chosen(many, quick=True)
    assert len(chosen) <= offline.QUICK_PROGRAMS + 4 and {each.files for each in chosen} == {
        each.files for each in many
    }
    assert offline._chosen(many, quick=False) == many


OUTCOMES: dict[str, Outcome] = {
    "pocl": Outcome(status="ok", detail="5 pass", count=5, device="PoCL"),
    "intel": Outcome(status="crash", detail="SIGSEGV", first="at 0x0", repro="run it", variables={"A": "b"}),
    "rusticl": Outcome(status="missing", detail="not installed", install=("apt-get install mesa-opencl-icd",)),
    "spirv": Outcome(status="ok", detail="4 programs", count=4),
}


def outcome_of(**changed: Outcome) -> Callable[..., Outcome]:
    """A runner that has an outcome for each row."""
    return lambda model, *, quick: {**OUTCOMES, **changed}[model.name]


def test_exit_codes() -> None:
    ok, missing = OUTCOMES["pocl"], OUTCOMES["rusticl"]
    for outcomes, strict, code in (
        ((ok, missing), False, 0), ((ok, missing), True, 1), ((ok, ok), True, 0), ((missing, missing), False, 3),
        *(((ok, replace(ok, status=bad)), False, 1) for bad in ("mismatch", "crash", "timeout", "refused")),
    ):  # fmt: skip
        assert check.exit_code([(MODELS[0], outcome) for outcome in outcomes], strict=strict) == code


def test_the_report_says_everything(capsys: pytest.CaptureFixture[str]) -> None:
    rows: dict[str, Any] = {"quick": True, "only": list(OUTCOMES), "strict": False, "runner": outcome_of()}
    assert check.check_command(**rows, as_json=False) == 1
    text = capsys.readouterr().out
    assert "CRASHED intel: SIGSEGV\n  at 0x0\n  repro  run it" in text
    assert "not installed: rusticl: apt-get install mesa-opencl-icd" in text and "exit code 1" in text
    assert check.check_command(**rows, as_json=True) == 1
    content = json.loads(capsys.readouterr().out)
    jsonschema.validate(content, SCHEMA)
    assert content["missing"] == {"rusticl": ["apt-get install mesa-opencl-icd"]}
    assert [row["status"] for row in content["rows"]] == ["ok", "crash", "missing", "ok"]
    empty = table.content([], quick=False, exit_code=3, started=datetime.now(UTC), seconds=0)
    jsonschema.validate(empty, SCHEMA)


def test_an_interrupted_check_keeps_the_rows_that_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    ends = outcome_of()

    def stopped(model: Model, *, quick: bool) -> Outcome:
        if model.name == list(OUTCOMES)[2]:
            raise KeyboardInterrupt
        return ends(model, quick=quick)

    rows: dict[str, Any] = {"quick": True, "only": list(OUTCOMES), "strict": False, "runner": stopped}
    assert check.check_command(**rows, as_json=False) == 130
    text = capsys.readouterr().out
    assert "CRASHED intel: SIGSEGV" in text and "interrupted after 2 of 4: 2 rows" in " ".join(text.split())
    assert check.check_command(**rows, as_json=True) == 130
    content = json.loads(capsys.readouterr().out)
    jsonschema.validate(content, SCHEMA)
    assert [row["status"] for row in content["rows"]] == ["ok", "crash"]


def test_options_that_need_the_check_are_refused_without_it(quantspec_command: Quantspec) -> None:
    run = quantspec_command("devices", "--full")
    assert run.returncode == 2 and "go with --check" in run.stderr
    run = quantspec_command("devices", "--check", "--only", "nothing")
    assert run.returncode == 2 and "matches no row" in run.stderr


def test_a_row_that_is_not_installed_is_reported_by_the_command(
    quantspec_command: Quantspec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if PLACES["pocl-debian"].find() is not None and "pocl-debian" not in str(PLACES["pocl-debian"].find()):
        pytest.skip("PoCL of Debian is installed in this system")
    monkeypatch.setenv("QUANTSPEC_RUNTIMES", str(tmp_path))
    run = quantspec_command("devices", "--check", "--only", "pocl-debian")
    assert run.returncode == 3 and "apt-get install -y --no-install-recommends pocl-opencl-icd" in run.stdout
    assert os.environ["QUANTSPEC_RUNTIMES"] == str(tmp_path)
