"""Result files: written whatever happens, read with suspicion, taken apart by two verifiers, and handed on in other formats."""

import csv
import hashlib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quantspec_conformance.compare import Difference
from quantspec_conformance.doccases import load, text_of
from quantspec_conformance.errors import DamagedError, UsageError
from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.errors import ImplementationError
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.protocol.messages import (
    Answer,
    Failed,
    Hello,
    Identity,
    Known,
    Ok,
    Rejected,
    Request,
    Unsupported,
)
from quantspec_conformance.resultset import reader
from quantspec_conformance.resultset import verify as verify_module
from quantspec_conformance.resultset.consistency import within
from quantspec_conformance.resultset.exports import FORMATS, export
from quantspec_conformance.resultset.header import implementation_json, make_header
from quantspec_conformance.resultset.reader import read_run
from quantspec_conformance.resultset.record import COMPARISONS, CaseRecord, RunRecord, clip
from quantspec_conformance.resultset.schema import fault_of, result_schema
from quantspec_conformance.resultset.verify import Known as Shipped
from quantspec_conformance.resultset.verify import verify
from quantspec_conformance.resultset.writer import LINE, ResultWriter, line_of, target_of
from quantspec_conformance.spec import rules
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.doc import doc_cases
from quantspec_conformance.suite.outcome import OUTCOMES, CaseResult, SuiteMismatch
from quantspec_conformance.suite.run import RunOptions, run_suite
from quantspec_conformance.suite.store import Suite, files_of, load_all, suite_digest

from .conftest import ROOT, environment
from .independent_verify import case_faults, check

SCHEMAS = ROOT / "conformance" / "quantspec_conformance" / "schemas"
SCRIPT = Path(__file__).with_name("independent_verify.py")
#: Texts that hurt who prints, parses or opens them.
HOSTILE = (
    "\x1b[31mred\x1b[0m\x07\x00\x08",
    "\u202eevil\u202c \u2066x\u2069 \u200b",
    "=cmd|' /C calc'!A0",
    "]]></failure><script>alert(1)</script>&amp;<!--",
    "| a | [x](javascript:1) `code` **b** <img src=x>\n\n# title\r\n",
    "lone \ud800 and \udfff surrogates, \ufffe \uffff",
    "x" * (1 << 20),
)


class Liar(Law):
    """Every way to be wrong, case by case: wrong bits, shapes, words, refusals, and none of them told nicely."""

    def hello(self, hello: Hello) -> Identity:
        told = super().hello(hello)
        return replace(told, name=HOSTILE[0], version=HOSTILE[2], build=HOSTILE[-1], policies={HOSTILE[1]: HOSTILE[5]})

    def __init__(self) -> None:
        self.asked = 0

    def handle(self, request: Request) -> Answer:
        """One lie after the other."""
        self.asked += 1
        text = HOSTILE[self.asked % len(HOSTILE)]
        answer = super().handle(request)
        if isinstance(answer, Rejected):
            lies: list[Answer] = [
                answer,
                Ok({}, {}),
                Rejected("scale", text, text, text),
                replace(answer, kind="host", message=text),
            ]
            return lies[self.asked % len(lies)]
        match self.asked % 9:
            case 0:
                return Failed(text)
            case 1:
                return Known(text, text)
            case 2:
                return Unsupported(text, text)
            case 3:
                return Rejected("shape", "VAL-7", "x", text)
            case 4:
                raise ImplementationError("crash" if self.asked % 2 else "timeout", "exit code 139", text[:3000])
            case 5 | 6 if isinstance(answer, Ok):
                return Ok({name: _flipped(tensor) for name, tensor in answer.tensors.items()}, answer.words)
            case 7 if isinstance(answer, Ok):
                return Ok({**answer.tensors, "surplus": Tensor("u8", (0,), ())}, {**answer.words, "size": ascii(text)})
        return answer


def _flipped(tensor: Tensor) -> Tensor:
    patterns = tuple(p ^ 1 if i % 3 == 1 or len(tensor.patterns) < 3 else p for i, p in enumerate(tensor.patterns))
    return Tensor(tensor.dtype, tensor.shape, patterns)


@cache
def cases() -> tuple[Case, ...]:
    """The worked examples of the spec, as cases."""
    return tuple(doc_cases(load()))


@cache
def lied() -> tuple[Identity, tuple[CaseRecord, ...]]:
    """What the liar says of itself, and the results of a run of it."""
    seen: list[Identity] = []
    found = run_suite(cases(), Liar(), RunOptions(repeat=0.1), on_identity=seen.append)
    records = tuple(CaseRecord.of(result) for result in found)
    return seen[0], records


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of suites: a third of the worked examples, and one file of cases with its data."""
    root = tmp_path_factory.mktemp("suites")
    doc = load()
    (root / "doc.json").write_text(text_of({**doc, "cases": doc["cases"][::3]}))
    values = tuple(range(256)) * 2
    wide = Tensor("u8", (4, 128), tuple(v % 16 for v in values))
    x = Law().handle(Request("decode", {"value": "e2m1"}, {"codes": wide}))
    assert isinstance(x, Ok)
    case = Case(
        id="decode.e2m1.first.wide",
        title="all codes",
        op="decode",
        level=0,
        words={"value": "e2m1"},
        inputs={"codes": wide},
        outputs=dict(x.tensors),
        equal={"y": "bits"},
        rules=("VAL-12",),
        features=("op:decode", "value:e2m1"),
    )
    for name, data in files_of(Suite(format="e2m1", op="decode", name="first", level=0, cases=(case,))).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


@cache
def known_of(root: Path) -> Shipped:
    return Shipped(suite_digest(root), {case.id: case for case in load_all(root)})


def header(root: Path | None = None, **changes: Any) -> dict[str, Any]:
    suite = (
        ("ab" * 32, "1.0.0", len(cases())) if root is None else (suite_digest(root), "1.0.0", len(known_of(root).cases))
    )
    options: dict[str, Any] = {
        "suite": suite,
        "address": f"py:{HOSTILE[3]}",
        "identity": lied()[0],
        "command": ["quantspec", "run", *HOSTILE],
    }
    return make_header(**{**options, **changes})


def written(path: Path, root: Path, implementation: Law | None = None) -> RunRecord:
    """A run of a liar over a folder of suites, as a file."""
    suite = known_of(root).cases
    with ResultWriter(path, header(root), planned=tuple(suite)) as file:
        for result in run_suite(tuple(suite.values()), implementation or Liar(), RunOptions(repeat=0.1)):
            file.write(CaseRecord.of(result))
    return file.run


@pytest.fixture(scope="module")
def lies(tmp_path_factory: pytest.TempPathFactory, shipped: Path) -> bytes:
    """The file of a run of the liar over these suites."""
    path = tmp_path_factory.mktemp("lies") / "r"
    written(path, shipped)
    return path.read_bytes()


# --- records

texts = st.one_of(st.text(st.characters(), max_size=40), st.sampled_from(HOSTILE[:-1]))
rule_ids = st.sampled_from(sorted(rules()))
differences = st.builds(
    Difference,
    st.lists(st.integers(0, 2**40), max_size=5).map(tuple),
    st.integers(0, 2**53 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
)
mismatches = st.builds(
    SuiteMismatch,
    texts,
    st.sampled_from(["bits", "padding", "unwritten", "shape", "dtype", "missing", "surplus", "words", "refusal"]),
    texts,
    st.integers(0, 2**53 - 1),
    st.integers(0, 2**53 - 1),
    st.lists(differences, max_size=4).map(tuple),
    st.dictionaries(texts, st.integers(0, 2**53 - 1), max_size=20),
    texts,
)
words = st.from_regex(r"[a-z0-9_]{1,8}(-[a-z0-9_]{1,8}){0,2}", fullmatch=True)
results = st.builds(
    CaseResult,
    st.builds(lambda rest: ".".join(["quantize", *rest]), st.lists(words, min_size=2, max_size=5)),
    st.sampled_from(OUTCOMES),
    texts,
    st.one_of(st.just(""), rule_ids, texts),
    st.lists(st.one_of(rule_ids, texts), max_size=5).map(tuple),
    st.one_of(st.none(), mismatches),
    st.one_of(st.just(""), st.from_regex(r"[0-9a-f]{16}", fullmatch=True)),
    st.floats(0, 1e9),
    st.integers(0, 100),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(results, st.sampled_from(OUTCOMES), st.sampled_from(COMPARISONS))
def test_a_record_comes_back_from_its_line(result: CaseResult, expected: str, comparison: str) -> None:
    record = CaseRecord.of(result, expected=expected, comparison=comparison)
    line = line_of(record.as_json())
    assert line.isascii()
    assert line.count(b"\n") == 1
    content = json.loads(line)
    assert fault_of(content) == ""
    assert CaseRecord.from_json(content) == record
    assert (record.id, record.outcome, record.seconds) == (result.id, result.outcome, result.seconds)
    assert record.rule in ("", *rules())
    assert CaseRecord.of(record, expected=expected, comparison=comparison) == record


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(results, max_size=8, unique_by=lambda result: result.id))
def test_a_run_comes_back_from_its_file(tmp_path: Path, found: list[CaseResult]) -> None:
    path = tmp_path / "r.jsonl"
    with ResultWriter(path, header()) as file:
        for result in found:
            file.write(CaseRecord.of(result))
    assert read_run(path) == file.run
    assert file.run.results == tuple(CaseRecord.of(result) for result in found)
    assert list(tmp_path.iterdir()) == [path]


def test_patterns_are_hexadecimal_text_of_any_width() -> None:
    difference = Difference((3, 5), 17, 0x8000000000000001, 0)
    record = CaseRecord.of(CaseResult("a.b.c", "fail", mismatch=SuiteMismatch("y", "bits", first=(difference,))))
    row = record.as_json()["mismatch"]["first"][0]
    assert row == {"index": [3, 5], "flat": 17, "expected": "0x8000000000000001", "actual": "0x0"}


def test_the_largest_record_fits_a_line() -> None:
    worst = "\U0001f600" * (1 << 20)
    first = tuple(Difference((2**53 - 1,) * 12, 2**53 - 1, 2**64 - 1, 2**64 - 2) for _ in range(2000))
    buckets = {f"{number}{worst}": 2**53 - 1 for number in range(100)}
    found = SuiteMismatch(worst, "bits", worst, 2**53 - 1, 2**53 - 1, first, buckets, worst)
    record = CaseRecord.of(CaseResult("a.b.c", "fail", worst, "VAL-7", tuple(rules()) * 9, found, "0" * 16, 1e9, 9))
    line = line_of(record.as_json())
    assert len(line) <= LINE
    assert fault_of(json.loads(line)) == ""
    assert clip("x" * 5000).endswith("[cut: 921 more]")
    assert len(clip("x" * 5000)) <= 4096
    assert len(line_of(header(command=[worst] * 1000, expression=worst, profile=worst, address=worst))) <= LINE


def test_what_no_judge_says_is_no_record() -> None:
    for result in (CaseResult("a.b.c\n", "pass"), CaseResult("no id", "pass"), CaseResult("a.b.c", "passed")):
        with pytest.raises(ValueError):
            CaseRecord.of(result)
    with pytest.raises(ValueError):
        CaseRecord.of(CaseResult("a.b.c", "pass"), comparison="fine")


def test_the_schema_names_what_the_code_names() -> None:
    schema = result_schema()["$defs"]
    assert tuple(schema["outcome"]["enum"]) == OUTCOMES
    assert tuple(schema["case"]["properties"]["comparison"]["enum"]) == COMPARISONS
    assert set(schema["implementation"]["required"]) == set(implementation_json("x", Identity(name="x")))
    objects = [part for part in schema.values() if part.get("type") == "object"]
    assert all("additionalProperties" in part for part in objects)


def test_an_identity_of_odd_types_is_no_bad_header() -> None:
    odd: Any = Identity(name="x", version=1.5, max_rank=-3, max_elements=True, ops=("a",) * 999, protocol=(1, -2))  # type: ignore[arg-type]
    assert fault_of(header(identity=odd)) == ""


# --- writing


def test_a_run_of_a_liar_passes_both_verifiers(tmp_path: Path, shipped: Path) -> None:
    run = written(tmp_path / "r.jsonl", shipped)
    assert {
        "pass",
        "fail",
        "reject-missing",
        "wrong-error",
        "error",
        "crash",
        "timeout",
        "known",
        "unsupported",
    } <= set(run.totals)
    assert {row.mismatch.kind for row in run.results if row.mismatch} >= {"bits", "surplus"}
    assert verify(tmp_path / "r.jsonl", suite=known_of(shipped)) == []
    assert check(tmp_path / "r.jsonl", SCHEMAS, shipped) == []
    assert run.complete
    assert read_run(tmp_path / "r.jsonl") == run
    assert {row.id for row in run.unexpected} == {row.id for row in run.results if row.bad or row.outcome == "known"}


def test_wide_outputs_are_held_against_the_data_file(tmp_path: Path, shipped: Path) -> None:
    class Off(Law):
        def handle(self, request: Request) -> Answer:
            answer = super().handle(request)
            assert isinstance(answer, Ok | Rejected | Failed)
            return (
                Ok({k: _flipped(t) for k, t in answer.tensors.items()}, answer.words)
                if isinstance(answer, Ok)
                else answer
            )

    path = tmp_path / "r.jsonl"
    run = written(path, shipped, Off())
    row = run.by_id["decode.e2m1.first.wide"]
    assert row.mismatch is not None
    assert row.mismatch.total == 512
    assert verify(path, suite=known_of(shipped)) == check(path, SCHEMAS, shipped) == []

    def change(rows: list[Any]) -> None:
        entry = next(r for r in rows if r.get("id") == row.id)["mismatch"]["first"][0]
        entry["expected"] = "0x12345678"

    rewrite(path, change)
    assert any("expected 0x12345678; the suite has" in fault for fault in verify(path, suite=known_of(shipped)))
    assert any("the suite expects" in fault for fault in check(path, SCHEMAS, shipped))


def test_an_interrupt_and_an_error_end_the_file(tmp_path: Path) -> None:
    planned = [case.id for case in cases()]
    for error, interrupted, reason in (
        (KeyboardInterrupt(), True, "interrupted"),
        (RuntimeError(HOSTILE[0]), False, "ended early: RuntimeError: \\x1b[31mred"),
    ):
        path = tmp_path / f"{interrupted}.jsonl"
        with pytest.raises(type(error)), ResultWriter(path, header(), planned=planned) as file:
            for record in lied()[1][:5]:
                file.write(record)
            raise error
        run = read_run(path)
        assert run.footer is not None
        assert (run.complete, run.footer["interrupted"], run.footer["notrun"]) == (False, interrupted, len(planned) - 5)
        assert run.results[:5] == lied()[1][:5]
        assert reason in run.results[-1].reason
        assert verify(path) == []
        assert check(path, SCHEMAS) == []


def test_cases_that_nobody_asked_make_a_run_incomplete(tmp_path: Path) -> None:
    with ResultWriter(tmp_path / "r.jsonl", header(), planned=["a.b.c", "a.b.d"]) as file:
        file.write(CaseRecord("a.b.d", "pass"))
    assert file.run.totals == {"pass": 1, "notrun": 1}
    assert not file.run.complete
    file.close()  # again: nothing happens


def test_an_interrupt_between_a_line_and_its_case_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def interrupted(file: int, line: bytes) -> int:
        done = real(file, line)
        if b'"a.b.second"' in bytes(line) and b"notrun" not in bytes(line):
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(os, "write", interrupted)
    with (
        pytest.raises(KeyboardInterrupt),
        ResultWriter(tmp_path / "r", header(), planned=["a.b.first", "a.b.second"]) as file,
    ):
        file.write(CaseRecord("a.b.first", "pass"))
        file.write(CaseRecord("a.b.second", "pass"))
    assert read_run(tmp_path / "r").totals == {"pass": 1, "notrun": 1}
    assert verify(tmp_path / "r") == []


def test_without_a_path_nothing_is_written_and_the_run_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ResultWriter(None, header()) as file:
        for record in lied()[1]:
            file.write(record)
    assert file.run.complete
    assert file.partial is None
    assert not list(tmp_path.iterdir())


def test_the_file_has_its_name_at_the_end_only(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("what was there")
    with ResultWriter(path, header()) as file:
        file.write(CaseRecord("a.b.c", "pass"))
        assert path.read_text() == "what was there"
        assert file.partial == tmp_path / "r.jsonl.partial"
        assert [row.id for row in read_run(tmp_path / "r.jsonl.partial").results] == ["a.b.c"]
    assert read_run(path).complete
    assert list(tmp_path.iterdir()) == [path]


def test_partial_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r.partial").write_text("of a run that was killed")
    (tmp_path / "r.partial.2").symlink_to(tmp_path / "elsewhere")
    with ResultWriter(tmp_path / "r", header()) as one, ResultWriter(tmp_path / "r", header()) as two:
        assert one.partial == tmp_path / "r.partial.3"
        assert two.partial == tmp_path / "r.partial.4"
    assert (tmp_path / "r.partial").read_text() == "of a run that was killed"
    assert not (tmp_path / "elsewhere").exists()
    assert read_run(tmp_path / "r") == one.run


def test_targets_that_are_no_files_are_refused_before_the_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "fifo", "is a FIFO"),
        (Path(os.devnull), "is a device"),
        (tmp_path / "none" / "r", "no folder"),
        (Path("/proc/r"), "cannot be written"),
        (tmp_path / ("a" * 252), "cannot be written: the name is too long"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            ResultWriter(path, header())
        assert "--json" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]
    assert target_of(tmp_path / "r") == (tmp_path / "r").resolve()


def test_a_full_disk_is_told_at_the_end_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full(file: int, line: bytes) -> int:
        if b'"a.b.second"' in bytes(line):
            raise OSError(28, "No space left on device")
        return real(file, line)

    monkeypatch.setattr(os, "write", full)
    file = ResultWriter(tmp_path / "r", header())
    for name in ("first", "second", "third"):
        file.write(CaseRecord(f"a.b.{name}", "pass"))
    with pytest.raises(UsageError, match=r"the disk is full; what was written lies in '.*r\.partial'"):
        file.close()
    assert file.run.complete
    assert [row.id for row in read_run(tmp_path / "r.partial").results] == ["a.b.first"]
    assert not (tmp_path / "r").exists()
    monkeypatch.setattr(os, "write", lambda file, line: full(file, b'"a.b.second"'))
    with pytest.raises(UsageError, match="the disk is full"):
        ResultWriter(tmp_path / "other", header())
    assert not list(tmp_path.glob("other*"))


def test_faults_of_the_harness_are_not_written_down(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no header"):
        ResultWriter(tmp_path / "r", {**header(), "surplus": 1})
    with pytest.raises(ValueError, match="no header"):
        ResultWriter(tmp_path / "r", CaseRecord("a.b.c", "pass").as_json())
    with pytest.raises(ValueError, match="not the id"):
        ResultWriter(tmp_path / "r", header(), planned=["nonsense"])
    with ResultWriter(tmp_path / "r", header()) as file:
        file.write(CaseRecord("a.b.c", "pass"))
        with pytest.raises(DamagedError, match="twice"):
            file.write(CaseRecord("a.b.c", "fail"))
    with pytest.raises(ValueError, match="closed"):
        file.write(CaseRecord("a.b.d", "pass"))


KILLED = """
import json, sys, time
from pathlib import Path
from quantspec_conformance.resultset.record import CaseRecord
from quantspec_conformance.resultset.writer import ResultWriter
with ResultWriter(Path(sys.argv[1]), json.loads(sys.stdin.readline())) as file:
    for number in range(10**6):
        file.write(CaseRecord(f"a.b.n{number}", "notrun", "x" * (1 + number * 37 % 3000)))
        if number == 200:
            print("ready", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_writer_leaves_a_readable_file(tmp_path: Path, how: signal.Signals) -> None:
    target = tmp_path / "r.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(target)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(header(suite=("ab" * 32, "1.0.0", 10**6))) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        process.send_signal(how)
    if how == signal.SIGINT:
        assert read_run(target).footer is not None
        assert verify(target) == []
        return
    assert not target.exists()
    run = read_run(tmp_path / "r.jsonl.partial")
    assert run.footer is None
    assert not run.complete
    assert len(run.results) > 200
    assert run.results[200].id == "a.b.n200"
    assert any("no footer" in fault for fault in verify(tmp_path / "r.jsonl.partial"))


# --- reading


def rewrite(path: Path, change: Callable[[list[Any]], Any], *, sign: bool = True) -> None:
    """Change the records of a file; `sign`: with a footer whose totals and digest fit again, as a forger would."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    if sign and rows[-1]["record"] == "footer":
        rows[-1]["digest"] = hashlib.sha256(b"".join(line_of(row) for row in rows[:-1])).hexdigest()
    path.write_bytes(b"".join(line_of(row) for row in rows))


def small(path: Path) -> bytes:
    """A file of a few cases."""
    with ResultWriter(path, header()) as file:
        for record in lied()[1][:20]:
            file.write(record)
    return path.read_bytes()


def test_a_last_line_that_is_cut_off_is_a_run_that_did_not_end(tmp_path: Path) -> None:
    path = tmp_path / "r"
    data = small(path)
    lines = data.splitlines(keepends=True)
    for cut in (1, 40, len(lines[-1]) - 1, len(lines[-1]), len(lines[-1]) + 30):
        path.write_bytes(data[:-cut])
        run = read_run(path)
        assert run.footer is None
        assert len(run.results) in (19, 20)
        assert any("no footer" in fault for fault in verify(path))
        assert check(path, SCHEMAS)


def test_hostile_files_are_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "r"
    good = small(path)
    lines = good.splitlines(keepends=True)
    case = json.loads(lines[3])
    for place, line, message in (
        (3, b"[" * 100000 + b"\n", "4: nested deeper"),
        (3, b'{"a":' * 100000 + b"\n", "4: nested deeper"),
        (3, b'"' + b'\\"' * 200000 + b"\n", "4: no JSON"),
        (3, b"9" * 100000 + b"\n", "4: no JSON"),
        (3, b"\xff\xfe\n", "4: no JSON"),
        (3, b"\n", "4: an empty line"),
        (3, b"null\n", "4: no object"),
        (3, b'{"record":["case"]}\n', "4: record is"),
        (3, line_of({**case, "surplus": 1}), "4: .*'surplus' was unexpected"),
        (3, line_of({**case, "seconds": -1}), "4: seconds: "),
        (3, lines[3].replace(b'"seconds":', b'"seconds":NaN,"x":'), "4: NaN is no number"),
        (3, lines[3].replace(b'"retries":0', b'"retries":0,"retries":0'), "4: a key stands twice"),
        (3, re.sub(rb'"seconds":[^,]+', b'"seconds":1e999', lines[3]), "4: seconds: "),
        (3, line_of({**case, "id": case["id"] + "\n"}), "4: id: "),
        (3, line_of({**case, "reason": "\x1b[2J" * 5000}), r"4: reason: '\\x1b\[2J"),
        (3, b'{"a":"' + b"x" * LINE + b'"}\n', "4: longer than"),
        (0, lines[3], "1: the first line is no header"),
        (3, lines[0], "4: a second header"),
        (3, lines[5], "6: .* stands twice, first in line 4"),
        (3, lines[-1], "5: a line after the footer"),
    ):
        path.write_bytes(b"".join([*lines[:place], line, *lines[place + 1 :]]))
        with pytest.raises(DamagedError, match=message) as caught:
            read_run(path)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600
        assert verify(path)
        assert check(path, SCHEMAS)
    for data, message in (
        (b"", "no whole header"),
        (b"{", "no whole header"),
        (good + b"{", "after the footer"),
        (b"\x00\n", "no JSON"),
    ):
        path.write_bytes(data)
        with pytest.raises(DamagedError, match=message):
            read_run(path)
        assert verify(path)


def test_what_is_no_file_is_a_fault_of_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "fifo", "is a FIFO"),
        (Path("/dev/zero"), "is a device"),
        (tmp_path / "none\x1b", r"none\\\\x1b' cannot be read: there is no such file"),
        (Path("nul\0l"), "cannot be read"),
    ):
        for read in (read_run, verify):
            with pytest.raises(UsageError, match=message):
                read(path)
    small(tmp_path / "r")
    monkeypatch.setattr(reader, "CASES", 5)
    with pytest.raises(DamagedError, match="6: more than 5 lines"):
        read_run(tmp_path / "r")
    monkeypatch.setattr(reader, "FILE", 100)
    with pytest.raises(UsageError, match="allowed: 100"):
        read_run(tmp_path / "r")


# --- verifying


def _row(rows: Sequence[Any], outcome: str, kind: str = "") -> Any:
    return next(r for r in rows if r.get("outcome") == outcome and (not kind or r["mismatch"]["kind"] == kind))


def _stated(rows: Sequence[Any]) -> Any:
    """A failure whose expected bits stand in the suite's own files: an example's may be the law's alone."""
    return _row([r for r in rows if not r.get("id", "doc.").startswith("doc.")], "fail", "bits")


def _swap(rows: list[Any]) -> None:
    rows[4], rows[9] = rows[9], rows[4]


#: Damage -> how it is done, whether the digest is made to fit again, what verify() says.
DAMAGE: dict[str, tuple[Callable[[list[Any]], Any], bool, str]] = {
    "edited": (lambda rows: _row(rows, "pass").update(seconds=0.125), False, "edited"),
    "truncated": (lambda rows: rows.pop(), False, "no footer"),
    "reordered": (_swap, False, "reordered"),
    "duplicated": (lambda rows: rows.insert(7, rows[4]), True, "stands twice, first in line 5"),
    "merged": (lambda rows: rows.extend(dict(row) for row in rows[:3]), False, "files were merged"),
    "a case taken out": (lambda rows: rows.pop(5), True, "has no result, not even notrun"),
    "a case from elsewhere": (
        lambda rows: rows[5].update(id="encode.e2m1.made-up"),
        True,
        "the suite has no such case",
    ),
    "totals": (lambda rows: rows[-1]["totals"].update({"pass": 9999}), True, "footer: 9999 of outcome pass"),
    "a failure made a pass": (lambda rows: _row(rows, "fail").update(outcome="pass"), True, "pass with a mismatch"),
    "a pass made a failure": (lambda rows: _row(rows, "pass").update(outcome="fail"), True, "fail without a mismatch"),
    "no difference": (
        lambda rows: _row(rows, "fail", "bits")["mismatch"]["first"][0].update(expected="0x1", actual="0x1"),
        True,
        "does not differ",
    ),
    "counts": (lambda rows: _row(rows, "fail", "bits")["mismatch"].update(count=0), True, "entries shown, 0 counted"),
    "another expectation": (
        lambda rows: _stated(rows)["mismatch"]["first"][0].update(expected="0xABCDE"),
        True,
        "expected 0xABCDE; the suite has",
    ),
    "another place": (
        lambda rows: _stated(rows)["mismatch"]["first"][0].update(index=[99, 99]),
        True,
        "is not at",
    ),
    "comparison": (
        lambda rows: _row(rows, "fail").update(comparison="xpass"),
        True,
        "comparison 'xpass' of outcome fail",
    ),
    "a failure excused": (lambda rows: _row(rows, "fail").update(comparison="xfail"), True, "comparison 'xfail'"),
    "unknown key": (lambda rows: rows[5].update(trust="me"), True, "'trust' was unexpected"),
    "complete": (lambda rows: rows[-1].update(interrupted=True), True, "complete, and yet interrupted"),
    "time": (lambda rows: rows[-1].update(ended="1999-01-01T00:00:00+00:00"), True, "before it started"),
    "silence": (lambda rows: _row(rows, "unsupported").update(reason=""), True, "unsupported without a reason"),
    "digest of a pass": (lambda rows: _row(rows, "pass").update(digest="0" * 16), True, "pass with the digest"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_both_verifiers_name_the_damage(tmp_path: Path, shipped: Path, lies: bytes, name: str) -> None:
    change, sign, message = DAMAGE[name]
    path = tmp_path / "r"
    path.write_bytes(lies)
    rewrite(path, lambda rows: None)
    assert verify(path, suite=known_of(shipped)) == check(path, SCHEMAS, shipped) == []
    rewrite(path, change, sign=sign)
    faults = verify(path, suite=known_of(shipped))
    assert any(message in fault for fault in faults), faults
    assert check(path, SCHEMAS, shipped)
    assert len(faults) < 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: _row(rows, "fail").update(rule="VAL-999", rules=["VAL-999"]), "VAL-999 is no rule"),
        (lambda rows: rows[0]["suite"].update(cases=7), "cases of a suite of 7"),
        (lambda rows: rows[0].update(protocol="2.0"), "protocol 2.0; allowed: 1.x"),
        (lambda rows: rows[0].update(started="2026-02-31T00:00:00Z"), "is no time"),
        (lambda rows: rows[-1].update(ended="2026-13-01T00:00:00Z"), "is no time"),
        (lambda rows: _row(rows, "reject-missing").update(rule="VAL-7", rules=["VAL-7"]), "reject-missing, but "),
        (lambda rows: _row(rows, "fail", "bits")["mismatch"].update(part="levels"), "which the case has not"),
        (lambda rows: _row(rows, "fail", "bits")["mismatch"].update(total=10**6), "entries, not 1000000"),
        (lambda rows: _row(rows, "fail", "surplus")["mismatch"].update(count=1, total=2), "of kind surplus with entries"),
        (lambda rows: rows[0]["selection"].update(levels=[2]), "was not selected"),
    ],
)  # fmt: skip
def test_what_only_the_harness_can_know(
    tmp_path: Path, shipped: Path, lies: bytes, change: Callable[[list[Any]], Any], message: str
) -> None:
    (tmp_path / "r").write_bytes(lies)
    rewrite(tmp_path / "r", change)
    assert any(message in fault for fault in verify(tmp_path / "r", suite=known_of(shipped)))


def test_faults_without_end_are_counted(
    tmp_path: Path, shipped: Path, lies: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_module, "MOST", 20)
    (tmp_path / "r").write_bytes(lies)
    rewrite(
        tmp_path / "r",
        lambda rows: [row.update(comparison="xpass", expected="pass") for row in rows if row["record"] == "case"],
    )
    found = verify(tmp_path / "r", suite=known_of(shipped))
    assert len(found) == 21
    assert re.fullmatch(r"and \d+ more", found[-1])


def test_a_selection_is_held_against_the_suite(tmp_path: Path, shipped: Path) -> None:
    known = known_of(shipped)
    chosen = [case.id for case in known.cases.values() if "e2m1" in case.id or "e2m1" in case.title]
    path = tmp_path / "r"
    with ResultWriter(path, header(shipped, expression="e2m1", levels=[0]), planned=chosen) as file:
        for case_id in chosen:
            file.write(CaseRecord(case_id, "pass"))
    good = path.read_bytes()
    assert verify(path, suite=known) == []
    for change, message in (
        (
            lambda rows: (rows[-1]["totals"].update({"pass": len(chosen) - 1}), rows.pop(2)),
            "was selected and has no result",
        ),
        (lambda rows: rows[0]["selection"].update(expression="e4m3"), "was not selected"),
        (
            lambda rows: rows[0]["selection"].update(expression="op:(", profile=""),
            "the selection cannot be made: selection, position",
        ),
        (
            lambda rows: rows[0]["selection"].update(profile="\x1b[2J"),
            r"the selection cannot be made: '\x1b[2J' is no profile",
        ),
        (lambda rows: rows[0]["selection"].update(profile="core-decode"), "was not selected"),
    ):
        path.write_bytes(good)
        rewrite(path, change)
        faults = verify(path, suite=known)
        assert any(message in fault for fault in faults), (message, faults)


@pytest.mark.parametrize(
    ("outcome", "expected", "comparison"),
    [
        ("pass", "pass", ""),
        ("pass", "fail", ""),  # flaky
        ("pass", "fail", "xpass"),
        ("fail", "fail", "xfail"),
        ("fail", "fail", "waived"),
        ("fail", "fail", "changed"),  # other bits
        ("fail", "crash", "changed"),
        ("notrun", "fail", ""),
        ("known", "pass", ""),
    ],
)
def test_what_expectations_say_is_consistent(outcome: str, expected: str, comparison: str) -> None:
    mismatch = SuiteMismatch("codes", "missing", "codes is missing") if outcome == "fail" else None
    digest = "0" * 16 if outcome in ("fail", "known") else ""
    rules = ("VAL-7",) if outcome == "fail" else ()
    result = CaseResult("a.b.c", outcome, "" if outcome == "pass" else "x", "".join(rules), rules, mismatch, digest)
    for name in COMPARISONS:
        record = CaseRecord.of(result, expected=expected, comparison=name)
        told = list(within(record, known_rules=True))
        assert bool(told) == bool(list(case_faults(record.as_json(), None)))
        if name == comparison:
            assert told == []
            assert record.unexpected == (name in ("xpass", "changed") or outcome == "known")
    assert list(within(CaseRecord.of(result, expected="pass", comparison="xfail"), known_rules=True))


def test_any_single_byte_that_changes_is_caught(tmp_path: Path, shipped: Path) -> None:
    path = tmp_path / "r"
    small(path)
    good = path.read_bytes()
    drawn = random.Random(7)
    for _ in range(60):
        place = drawn.randrange(len(good))
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << drawn.randrange(8)]) + good[place + 1 :])
        assert verify(path, suite=known_of(shipped)), place
        assert check(path, SCHEMAS), place


def test_the_second_verifier_stands_alone(tmp_path: Path, shipped: Path, lies: bytes) -> None:
    text = SCRIPT.read_text()
    assert len(text.splitlines()) < 200
    assert not re.search(r"^\s*(import|from) (quantspec|numpy|\.)", text, re.MULTILINE)
    (tmp_path / "r").write_bytes(lies)
    command = [sys.executable, "-I", str(SCRIPT), str(tmp_path / "r"), str(SCHEMAS), str(shipped)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "nothing is wrong\n"), done.stderr
    rewrite(tmp_path / "r", DAMAGE["counts"][0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "doc." in done.stdout


# --- exports


def hostile_run() -> RunRecord:
    """A run whose every text is hostile, with each comparison."""
    texts = [(outcome, text) for outcome in OUTCOMES for text in HOSTILE]
    results = [
        CaseResult(
            f"a.b.n{number}",
            outcome,
            text,
            "VAL-7",
            ("VAL-7",),
            SuiteMismatch(text, "bits", text, 1, 2, (), {text: 1}, text),
        )
        for number, (outcome, text) in enumerate(texts)
    ]
    records = [CaseRecord.of(result) for result in results]
    records += [CaseRecord("a.c.xpass", "pass", expected="fail", comparison="xpass")]
    records += [CaseRecord("a.c.xfail", "fail", HOSTILE[0], expected="fail", comparison="xfail")]
    with ResultWriter(None, header()) as file:
        for record in [*records, *lied()[1]]:
            file.write(record)
    return file.run


@pytest.mark.parametrize("form", FORMATS)
def test_no_export_holds_what_a_terminal_obeys(form: str) -> None:
    text = export(hostile_run(), form)
    assert all(character.isprintable() or character == "\n" for character in text)
    text.encode("utf-8")  # no lone surrogate
    if form in ("badge", "ctrf"):

        def strings(part: Any) -> list[str]:
            if isinstance(part, dict):
                return [*part, *(text for value in part.values() for text in strings(value))]
            return [text for value in part for text in strings(value)] if isinstance(part, list) else [str(part)]

        assert all(c.isprintable() or c == "\n" for text in strings(json.loads(text)) for c in text)


def test_junit_is_xml_with_a_case_each() -> None:
    run = hostile_run()
    root = ET.fromstring(export(run, "junit"))
    suite = root.find("testsuite")
    assert suite is not None
    found = suite.findall("testcase")
    assert [case.get("name") for case in found][: len(run.results)] == [row.id for row in run.results]
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("errors", "")) == len(suite.findall("testcase/error"))
    assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
    assert int(suite.get("tests", "")) == len(found)
    by_name = {case.get("name"): case for case in found}
    assert by_name["a.c.xpass"].find("failure") is not None
    assert by_name["a.c.xfail"].find("skipped") is not None
    failing = next(row for row in lied()[1] if row.mismatch and row.mismatch.kind == "bits")
    failure = by_name[failing.id].find("failure")
    assert failure is not None
    assert "expected 0x" in (failure.text or "")
    assert "]]></failure>" in "".join(node.text or "" for node in root.iter("failure"))
    assert by_name["the-run-is-complete"].find("error") is not None  # notrun cases among them


def test_csv_cells_are_no_formulas() -> None:
    run = hostile_run()
    for cell in ("=1+1", "+1", "-1", "@x", "\uff1d1", "  =1", "\t=1"):
        run = RunRecord(run.header, (*run.results, CaseRecord(f"a.d.n{len(run.results)}", "error", cell)), run.footer)
    rows = list(csv.DictReader(io.StringIO(export(run, "csv"))))
    assert [row["id"] for row in rows] == [row.id for row in run.results]
    assert all(not value.lstrip().startswith(("=", "+", "-", "@", "\uff1d")) for row in rows for value in row.values())
    assert {row["reason"] for row in rows[-7:]} == {"'=1+1", "'+1", "'-1", "'@x", "'\uff1d1", "'  =1", "\\t=1"}


def test_markdown_holds_tables_and_no_markup_of_others() -> None:
    run = hostile_run()
    lines = export(run, "markdown").splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(run.totals) + 2 + len(run.unexpected)
    assert all(len(re.findall(r"(?<!\\)\|", line)) in (3, 6) for line in table)
    assert not re.search(r"(?<!\\)[<>\[`]", "\n".join(table))
    assert sum(line.startswith("#") for line in lines) == 1


def test_a_badge_is_green_for_a_whole_good_run_only() -> None:
    good = (CaseRecord("a.b.c", "pass"), CaseRecord("a.b.d", "pass"))
    footer: dict[str, Any] = {"complete": True, "interrupted": False}

    def badge(results: tuple[CaseRecord, ...], footer: dict[str, Any] | None, **changes: Any) -> tuple[str, str]:
        content = json.loads(export(RunRecord(header(**changes), results, footer), "badge"))
        assert content["schemaVersion"] == 1
        assert content["label"].startswith("quantspec: ")
        return content["color"], content["message"]

    assert badge(good, footer) == ("brightgreen", "2 of 2 pass")
    assert badge(good, None) == ("lightgrey", "2 of 2 pass (the run did not end)")
    assert badge(good, {"complete": False, "interrupted": True}) == (
        "lightgrey",
        "2 of 2 pass (the run was interrupted)",
    )
    assert badge(good, footer, quick=True) == ("lightgrey", "2 of 2 pass (a quick run)")
    assert badge((), footer)[0] == "lightgrey"
    assert badge((*good, CaseRecord("a.b.e", "unsupported", "x")), footer) == ("yellow", "2 of 3 pass")
    for bad in (CaseRecord("a.b.e", "fail"), CaseRecord("a.b.e", "fail", expected="fail", comparison="xfail")):
        assert badge((*good, bad), footer)[0] == "red"  # an expected failure is a failure


def test_ctrf_counts_what_it_lists() -> None:
    run = hostile_run()
    content = json.loads(export(run, "ctrf"))
    summary, tests = content["results"]["summary"], content["results"]["tests"]
    assert content["reportFormat"] == "CTRF"
    assert summary["tests"] == len(tests) == len(run.results)
    assert summary["passed"] + summary["failed"] + summary["skipped"] == len(tests)
    assert 0 < summary["start"] <= summary["stop"]
    assert {test["status"] for test in tests} == {"passed", "failed", "skipped"}


def test_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="format 'pdf'; allowed: junit, markdown, csv, badge, ctrf"):
        export(hostile_run(), "pdf")
