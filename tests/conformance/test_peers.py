"""Peers: rows are data, adapters are small, differences have reasons, and an environment that cannot be built is a row."""

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from quantspec import Scheme
from quantspec_conformance.errors import UsageError
from quantspec_conformance.examples import Tensor
from quantspec_conformance.expect import read
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.implementations.process import ProcessImplementation
from quantspec_conformance.implementations.python import open_python
from quantspec_conformance.implementations.served import environment as variables
from quantspec_conformance.peers import check, environment
from quantspec_conformance.peers.causes import causes, expectations, sort_out
from quantspec_conformance.peers.support import Lacks, Peer, blocks_of
from quantspec_conformance.peers.table import Peer as Row
from quantspec_conformance.peers.table import folder, peers
from quantspec_conformance.protocol.messages import Answer, Hello, Ok, Rejected, Request, Unsupported
from quantspec_conformance.protocol.text import answer_line, read_answer, read_request
from quantspec_conformance.resultset.record import CaseRecord
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.outcome import CaseResult
from quantspec_conformance.suite.run import RunOptions, run_suite
from quantspec_conformance.suitecommand import chosen_cases

NAMES = [row.name for row in peers()]
_FILE = tomllib.loads((folder() / "faults.toml").read_text("utf-8"))
FAULTS, APART = _FILE["fault"], _FILE["apart"]
ML_DTYPES = next(row for row in peers() if row.name == "ml_dtypes")


# ---------------------------------------------------------------- the table


def test_the_table_names_twelve_libraries_each_with_an_adapter() -> None:
    assert len(set(NAMES)) == len(NAMES) == 12
    assert {row.adapter for row in peers()} == set((folder() / "adapters").glob("peer_*.py"))
    for row in peers():
        assert row.source.startswith("https://") and row.issues.startswith("https://")
        assert row.formats and row.notes
        assert any(f"=={row.version}" in each for each in row.requirements)


def test_an_adapter_is_short_and_has_one_class() -> None:
    for row in peers():
        text = row.adapter.read_text("utf-8")
        assert sum(bool(line.strip()) for line in text.splitlines()) <= 60, row.name
        assert text.count("\nclass ") == 1 and "class Adapter(Peer):" in text
        assert f'name = "{row.name}"' in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"requirements": ["torch>=2"]}, "not pinned"),
        ({"name": "A b"}, "the fields are"),
        ({"extra": 1}, "the fields are"),
    ],
)
def test_a_row_that_is_none_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    row = {
        "name": "x",
        "requirements": ["x==1"],
        "python": "",
        "source": "",
        "issues": "",
        "version": "1",
        "formats": [],
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in (row | {"notes": ""} | change).items()]
    path = tmp_path / "peers.toml"
    path.write_text("[[peer]]\n" + "\n".join(lines), "utf-8")
    with pytest.raises(UsageError, match=said):
        peers(path)


# ---------------------------------------------------------------- support


class Fake(Peer):
    """A library with one operation."""

    name = "fake"
    distribution = "numpy"
    ways = {"codec": ("own",)}  # noqa: RUF012

    def encode(self, x: np.ndarray[Any, Any], value: str) -> np.ndarray[Any, Any]:
        if value == "e5m2":
            raise Lacks("e5m2")
        return x.astype("u1")


def ask(op: str, x: Tensor, **words: str) -> Answer:
    return Fake().handle(Request(op, words, {"x": x}))


def test_the_base_says_no_to_what_a_method_does_not_take() -> None:
    x = Tensor("f32", (1,), (0x40400000,))
    assert ask("encode", x, value="e4m3") == Ok({"codes": Tensor("u8", (1,), (3,))})
    assert ask("encode", x, value="e4m3", codec="own") == ask("encode", x, value="e4m3")
    for answer in (
        ask("encode", x, value="e5m2"),
        ask("encode", x, value="e4m3", codec="other"),
        ask("encode", x),
        ask("permute", x, value="e4m3"),
    ):
        assert isinstance(answer, Unsupported)
    assert ask("echo", x) == Ok({"x": x})
    assert Fake().hello(Hello()).ops == ("encode", "echo")


def test_rows_of_blocks_come_back_whatever_the_shape_and_width() -> None:
    scheme = Scheme.parse("e2m1.native.b4-ue8m0")
    x = np.arange(2 * 3 * 7, dtype="f4").reshape(2, 3, 7)
    to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, 32)
    rows = to_rows(x)
    assert rows.shape == (12, 32) and not rows[:, 4:].any()
    assert (from_rows(rows) == x).all() and to_grid(np.arange(12)).shape == (2, 3, 2)
    for shape, text, width in (((), "b4", 32), ((0,), "b4", 32), ((4, 4), "b2x2", 32), ((64,), "b33", 32)):
        with pytest.raises(Lacks):
            blocks_of(shape, Scheme.parse(f"e2m1.native.{text}-ue8m0"), width)


# ---------------------------------------------------------------- a peer for real: ml_dtypes is here already


@pytest.fixture(scope="module")
def records() -> list[CaseRecord]:
    implementation = open_python(f"py:{ML_DTYPES.adapter}:Adapter")
    cases = chosen_cases("op:encode,decode value:e2m1,e4m3", level=1)
    results = run_suite(cases, implementation, RunOptions(repeat=0.0))
    return [CaseRecord.of(result) for result in results]


def test_ml_dtypes_runs_and_everything_that_it_gives_has_a_cause(records: list[CaseRecord]) -> None:
    assert sum(row.outcome == "pass" for row in records) > 20
    explained, left = sort_out("ml_dtypes", records, causes())
    assert not left
    assert {"saturate", "NaN", "binary64"} <= set(
        re.findall(r"saturate|NaN|binary64", " ".join(c.reason for c in explained))
    )


def test_it_is_served_behind_a_pipe_with_the_same_answers(records: list[CaseRecord]) -> None:
    command = [sys.executable, "-m", "quantspec_conformance.implementations.serve", f"py:{ML_DTYPES.adapter}:Adapter"]
    with ProcessImplementation([*command, "--wire", "frames"], env=variables()) as served:
        assert served.hello(Hello()).name == "ml_dtypes"
        request = Request("encode", {"value": "e4m3"}, {"x": Tensor("f32", (2,), (0x43F00000, 0x3F800000))})
        assert served.handle(request) == Ok({"codes": Tensor("u8", (2,), (0x7F, 0x38))})


def test_expectations_are_written_from_causes_and_read_back(records: list[CaseRecord], tmp_path: Path) -> None:
    path = tmp_path / "ml_dtypes.toml"
    path.write_text(expectations("ml_dtypes", records, causes()), "utf-8")
    found = read(path)
    assert found.implementation == "ml_dtypes"
    wrong = sum(row.outcome not in ("pass", "unsupported") for row in records)
    assert sum(entry.max or 0 for entry in found.entries) == wrong


def test_a_wrong_result_without_a_cause_is_left_over() -> None:
    odd = CaseRecord.of(CaseResult("encode.e4m3.first.ties", "crash", "signal SIGSEGV"))
    assert sort_out("gguf", [odd], causes()) == ({}, [odd])


# ---------------------------------------------------------------- files that were written of runs


@pytest.mark.parametrize("name", NAMES)
def test_expectations_of_each_are_current_in_form_and_have_reasons(name: str) -> None:
    row = next(row for row in peers() if row.name == name)
    found = read(row.expect)
    assert found.implementation == name and found.entries
    for entry in found.entries:
        assert len(entry.reason) > 20 and entry.kind in ("permanent", "waiver", "bug")


@pytest.mark.parametrize("name", NAMES)
def test_results_are_kept_in_a_few_lines(name: str) -> None:
    path = folder() / "results" / f"{name}.summary.json"
    content = json.loads(path.read_text("utf-8"))
    row = next(row for row in peers() if row.name == name)
    assert content["peer"] == name and content["version"].partition("+")[0] == row.version
    assert content["unexplained"] == [] and content["outcomes"]["pass"] > 0
    assert path.stat().st_size < 200_000 and date.fromisoformat(content["date"])


def test_every_cause_is_used_by_a_peer_and_names_peers_that_there_are() -> None:
    used = {
        cause["reason"]
        for path in (folder() / "results").glob("*.summary.json")
        for cause in json.loads(path.read_text())["causes"]
    }
    for cause in causes():
        assert set(cause.peers) <= {*NAMES, "*"}
        assert cause.reason in used, cause.reason


# ---------------------------------------------------------------- faults


def _request(fault: dict[str, Any]) -> Request:
    _, request = read_request(fault["request"].replace("run ", "run id=1 ", 1).encode() + b"\n")
    assert isinstance(request, Request)
    return request


def _answer(text: str) -> Answer:
    verb, _, rest = text.partition(" ")
    return read_answer(f"{verb} id=1 {rest}".strip().encode() + b"\n")[1]


def _ids(faults: list[dict[str, Any]]) -> list[str]:
    return [f"{fault['fault']}-{fault['peer']}-{n}" for n, fault in enumerate(faults)]


def _units(tensor: Tensor, width: int) -> list[tuple[int, ...]]:
    """The patterns of a tensor, `width` of its last axis at a time, the last of a line filled up with zeros."""
    last = tensor.shape[-1] if tensor.shape else 1
    lines = [tensor.patterns[at : at + last] for at in range(0, len(tensor.patterns), last)]
    return [(*line[at : at + width], *[0] * (at + width - last)) for line in lines for at in range(0, len(line), width)]


def _answers(request: Request, outputs: Mapping[str, Tensor]) -> dict[tuple[Any, ...], set[tuple[Any, ...]]]:
    """What a request is told of each element, or of each block: its inputs -> codes and scale, or numbers.

    Blocks that nothing but zeros fills up are the same; an answer of a whole tensor goes with each of them.
    """
    scheme = Scheme.parse(request.words["scheme"]) if "scheme" in request.words else None
    width = 1 if scheme is None or scheme.block is None else scheme.block.extents[-1]
    apart = ("table",)
    whole = {name for name, t in {**request.tensors, **outputs}.items() if not t.shape and name not in apart}
    asked = [
        (name, _units(t, width if name in ("x", "codes") else 1))
        for name, t in sorted(request.tensors.items()) if name not in (*whole, *apart)
    ]  # fmt: skip
    told = [
        (name, _units(t, width if name in ("codes", "y") else 1))
        for name, t in sorted(outputs.items())
        if name not in whole
    ]
    fixed = [(name, request.tensors[name].patterns) for name in sorted(whole & set(request.tensors))]
    made = [(name, outputs[name].patterns) for name in sorted(whole & set(outputs))]
    found: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for n in range(len(asked[0][1])):
        key = (*((name, units[n]) for name, units in asked), *fixed)
        found.setdefault(key, set()).add((*((name, units[n]) for name, units in told), *made))
    return found


def shows(case: Case, request: Request, right: Mapping[str, Tensor]) -> bool:
    """True where a case asks for all of a request, element by element or block by block, and expects these answers."""
    words = {name: text for name, text in request.words.items() if name != "shape"}
    if case.op != request.op or words != dict(case.words) or set(right) != set(case.outputs):
        return False
    wanted, expected = _answers(request, right), _answers(case.request, case.outputs)
    return all(expected.get(asked) == told for asked, told in wanted.items())


@pytest.mark.parametrize("fault", FAULTS, ids=_ids(FAULTS))
def test_the_right_bits_of_a_fault_are_those_of_the_reference(fault: dict[str, Any]) -> None:
    request, right = _request(fault), _answer(fault["right"])
    assert isinstance(right, Ok) and fault["got"] != fault["right"]
    assert fault["peer"] in NAMES if fault["by"] == "adapter" else len(fault["by"]) > 10
    if fault["oracle"] == "law":
        answer = Law().handle(request)
        assert isinstance(answer, Ok) and answer.tensors == right.tensors
    else:  # a cast of scales that does not saturate
        assert fault["oracle"] == "ml_dtypes" and request.words["type"] == "ue8m0"
        codes = request.tensors["x"].array().astype(ml_dtypes.float8_e8m0fnu).view("u1")
        assert [*right.tensors.values()] == [Tensor.of(codes)]


@pytest.mark.parametrize("fault", FAULTS, ids=_ids(FAULTS))
def test_a_fault_names_a_case_that_holds_its_input_with_the_right_bits(fault: dict[str, Any]) -> None:
    assert bool(fault["case"]) != bool(fault["missing"])
    if not fault["case"]:
        assert "no operation of the suite" in fault["missing"]
        return
    right, got = _answer(fault["right"]), _answer(fault["got"]) if fault["got"] != "failed" else None
    assert isinstance(right, Ok)
    (case,) = (case for case in chosen_cases(level=1) if case.id == fault["case"])
    assert shows(case, _request(fault), right.tensors)
    assert not isinstance(got, Ok) or not shows(case, _request(fault), got.tensors)


def test_a_case_that_lacks_the_input_or_has_other_bits_shows_no_fault() -> None:
    fault = next(fault for fault in FAULTS if fault["fault"] == "B5c")
    request, right = _request(fault), _answer(fault["right"])
    (case,) = (case for case in chosen_cases(level=1) if case.id == fault["case"])
    assert isinstance(right, Ok) and shows(case, request, right.tensors)
    x, codes = request.tensors["x"], right.tensors["codes"]
    odd = Tensor(x.dtype, x.shape, (x.patterns[0] ^ 1, *x.patterns[1:]))
    other = Tensor(codes.dtype, codes.shape, (codes.patterns[0] ^ 1, *codes.patterns[1:]))
    assert not shows(case, Request(request.op, request.words, {"x": odd}), right.tensors)
    assert not shows(case, request, {**right.tensors, "codes": other})
    assert not shows(case, Request(request.op, {**request.words, "recipe": "even"}, request.tensors), right.tensors)


def test_every_fault_of_the_survey_has_a_case_or_a_reason() -> None:
    numbers = {*(f"B{n}" for n in range(1, 28)), "B5b", "B5c"}
    assert {fault["fault"] for fault in FAULTS} | {row["fault"] for row in APART} == numbers
    assert {row["fault"] for row in APART} == {"B7", "B24", "B25", "B26"}
    assert {fault["fault"] for fault in FAULTS if fault["case"]} == numbers - {row["fault"] for row in APART}
    for row in APART:
        assert set(row) == {"fault", "peer", "version", "what", "why"} and len(row["why"]) > 40


@pytest.fixture(scope="module")
def installed() -> Iterator[dict[str, ProcessImplementation]]:
    found: dict[str, ProcessImplementation] = {}
    for name in ("gguf", "onnx"):  # quick to start; the others are run by `quantspec peers run`
        row = next(row for row in peers() if row.name == name)
        if environment.ready(row):
            where, env = environment.address(row)
            found[name] = ProcessImplementation(shlex.split(where.removeprefix("exec:")), env=env)
    yield found
    for implementation in found.values():
        implementation.close()


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault["by"] == "adapter"], ids=lambda fault: fault["fault"]
)
def test_a_fault_is_still_there_where_the_peer_is_installed(
    fault: dict[str, Any], installed: dict[str, ProcessImplementation]
) -> None:
    if fault["peer"] not in installed:
        pytest.skip("not installed, or too slow to start for a test")
    answer = installed[fault["peer"]].handle(_request(fault))
    assert answer_line(1, answer).decode().strip().replace(" id=1", "", 1) == fault["got"]


# ---------------------------------------------------------------- the command


def test_an_environment_that_cannot_be_built_is_a_row_and_not_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUANTSPEC_PEERS", str(tmp_path / "cache"))
    row = ML_DTYPES

    def runner(command: Any, timeout: float) -> tuple[int, str]:
        return (1, "ERROR: no matching distribution") if "pip" in command else (0, "")

    assert not environment.ready(row)
    assert environment.prepare(row, runner=runner)[0] == "ERROR: no matching distribution"
    assert not environment.ready(row)

    def install(peer: Row) -> tuple[str, float]:
        return environment.prepare(peer, runner=runner)

    assert check.run_command(["ml_dtypes"], out=tmp_path / "out", level=0, install=install) == 1
    assert "failed" in (said := capsys.readouterr().out) and "not installed: ERROR" in said
    matrix = json.loads((tmp_path / "out" / "matrix.json").read_text("utf-8"))
    assert matrix["peers"][0]["status"] == "failed" and "no matching" in matrix["peers"][0]["detail"]


def test_what_is_installed_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUANTSPEC_PEERS", str(tmp_path))
    commands: list[list[str]] = []

    def runner(command: Any, timeout: float) -> tuple[int, str]:
        commands.append(list(command))
        python = environment.python_of(ML_DTYPES)
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()
        return 0, ""

    assert environment.prepare(ML_DTYPES, runner=runner)[0] == ""
    assert environment.ready(ML_DTYPES) and "ml_dtypes==0.6.0" in commands[1]
    assert environment.prepare(ML_DTYPES, runner=runner) == ("", 0.0) and len(commands) == 2


def test_a_peer_runs_and_an_interruption_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = ("exec:" + shlex.join([sys.executable, "-m", "quantspec_conformance.implementations.serve",
                                  f"py:{ML_DTYPES.adapter}:Adapter", "--wire", "frames"]), variables())  # fmt: skip
    for module in (check, environment):  # no environment of a peer's own is needed
        monkeypatch.setattr(module, "address", lambda peer: here)

    def execute(peer: Row, path: Path, level: int) -> str:
        if peer.name != "ml_dtypes":
            raise KeyboardInterrupt
        return check._execute(peer, path, level)

    code = check.run_command(
        ["ml_dtypes", "gguf"], out=tmp_path, level=0, install=lambda peer: ("", 0.0), execute=execute
    )
    said = capsys.readouterr().out
    assert code == 130 and "interrupted" in said
    summary = json.loads((tmp_path / "ml_dtypes.summary.json").read_text("utf-8"))
    assert summary["status"] == "as-expected", said
    assert summary["formats"]["encode.e4m3"]["pass"] > 0
    matrix = json.loads((tmp_path / "matrix.json").read_text("utf-8"))
    assert [row["status"] for row in matrix["peers"]] == ["as-expected", "interrupted"]
    assert matrix["groups"]["encode.e4m3"]["ml_dtypes"] == summary["formats"]["encode.e4m3"]


def test_a_name_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="matches no peer; there are ml_dtypes"):
        check.select(["tensorflow"])
    assert [row.name for row in check.select(["torch*"])] == ["torch", "torchao"]


def test_refusals_of_a_library_are_refusals() -> None:
    class Strict(Fake):
        def encode(self, x: np.ndarray[Any, Any], value: str) -> np.ndarray[Any, Any]:
            from quantspec_conformance.peers.support import Refuses

            raise Refuses("encoding", "no code")

    answer = Strict().handle(Request("encode", {"value": "e4m3"}, {"x": Tensor("f32", (1,), (0,))}))
    assert answer == Rejected("encoding", message="no code")
