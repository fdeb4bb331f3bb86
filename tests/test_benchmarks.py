"""The benchmarks without their timings: tables that are whole, workers that lie, files that survive, pages that render."""

import inspect
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import bench
import bench_growth
import bench_peers
import bench_report
import kernel_rows
import peer_calls
import peer_rows
import pictures
import quantspec as qs
import store
from peer_rows import DIRECTIONS, FORMATS, LACKS, PEERS, VERB, Format, Lack, PeerRow
from peer_worker import Refused, Worker
from quantspec_conformance.peers.table import peers
from subjects import Subject, median_ratio, rows_in_turn

PEER_TABLE = {peer.name: peer for peer in peers()}
RECORDED = Path(bench.__file__).with_name("recorded")


def wrong_cells(cells: Sequence[tuple[Format, str, PeerRow | Lack]]) -> set[tuple[str, str, str]]:
    """Format, direction, peer: without a row and a reason, or with both."""
    kinds: dict[tuple[str, str, str], Counter[type]] = {}
    for form, direction, each in cells:
        kinds.setdefault((form.name, direction, each.peer), Counter())[type(each)] += 1
    wanted = {(form.name, direction, peer) for form in FORMATS for direction in DIRECTIONS for peer in PEERS}
    twice = {key for key, found in kinds.items() if len(found) > 1 or found[Lack] > 1}
    return (wanted ^ set(kinds)) | twice


def test_every_pair_of_peer_and_format_is_a_row_or_a_reason() -> None:
    assert not wrong_cells(peer_rows.cells())


def test_a_pair_left_out_or_told_twice_is_found() -> None:
    cells = peer_rows.cells()
    form, direction, each = next(cell for cell in cells if isinstance(cell[2], Lack))
    assert wrong_cells([cell for cell in cells if cell != (form, direction, each)]) == {
        (form.name, direction, each.peer)
    }
    assert wrong_cells([*cells, (form, direction, each)]) == {(form.name, direction, each.peer)}


def test_every_row_can_be_called() -> None:
    for row in peer_rows.ROWS:
        assert row.peer in PEERS and row.peer in PEER_TABLE
        arguments = [DIRECTIONS[0] if each == VERB else each for each in row.arguments]
        inspect.signature(peer_calls.CALLS[row.call]).bind(np.zeros(1), *arguments)
        assert VERB in row.arguments or len(row.directions) == 1
    assert all(lack.reason and set(lack.formats) <= {form.name for form in FORMATS} for lack in LACKS)


def test_schemes_parse_and_decode_where_they_are_formats_alone() -> None:
    for row in kernel_rows.ROWS:
        assert qs.Scheme.parse(row.scheme).text == row.scheme and row.verb in kernel_rows.VERBS
    for form in FORMATS:
        verbs = [peer_rows.verb_of(form, direction) for direction in DIRECTIONS]
        cast = form.scheme in qs.VALUES
        assert verbs == (["encode", "decode"] if cast else ["quantize_packed", "dequantize_packed"])
        assert cast or qs.Scheme.parse(form.scheme).text == form.scheme
    for point in bench_growth.points(2**28, 2**24):
        assert qs.Scheme.parse(point.scheme).text == point.scheme


@pytest.mark.parametrize("elements", [2**n for n in range(8, 21)])
def test_data_has_as_many_elements_as_asked_for(elements: int) -> None:
    x = peer_calls.data(elements)
    assert x.size == elements and x.dtype == np.float32 and x.flags.c_contiguous
    assert np.array_equal(x.view(np.uint32), peer_calls.data(elements).view(np.uint32))


GOOD = """
import json, sys
print(json.dumps({"version": "1.0", "bytes": 4096}), flush=True)
for line in sys.stdin:
    print(0.25, flush=True)
"""
LIARS = {
    'print(\'{"refused": "InductorError: no compiler"}\')': "InductorError: no compiler",
    "print('ready')": "where JSON belongs",
    "print('7')": "where JSON belongs",
    "raise SystemExit('no library of that name')": "status 1: no library of that name",
    "import time; time.sleep(60)": "more than 1 s to prepare",
    GOOD.replace("print(0.25", "print(-1"): "where the seconds of a call belong",
    GOOD.replace("print(0.25", "print(float('nan')"): "where the seconds of a call belong",
    GOOD.replace("print(0.25", "print('done'"): "where the seconds of a call belong",
    GOOD.replace("print(0.25, flush=True)", "sys.exit('out of memory')"): "status 1: out of memory",
    GOOD.replace("print(0.25, flush=True)", "pass"): "more than 0.5 s for a call",
}


def fake(code: str) -> Worker:
    return Worker([sys.executable, "-S", "-c", code], prepare=1, turn=0.5)


def test_a_worker_answers() -> None:
    with fake(GOOD) as worker:
        assert (worker.version, worker.bytes) == ("1.0", 4096)
        assert [worker.seconds(), worker.seconds()] == [0.25, 0.25]


@pytest.mark.parametrize("code", LIARS)
def test_a_worker_that_lies_is_refused_with_the_reason(code: str) -> None:
    with pytest.raises(Refused) as refused, fake(code) as worker:
        worker.seconds()
    assert LIARS[code] in str(refused.value)


def test_a_worker_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match=r"cannot be started: No such file"):
        Worker(["/nonexistent/python"])


def real(call: str, *arguments: Any) -> list[str]:
    request = {"call": call, "arguments": arguments, "elements": 4096, "package": "ml_dtypes"}
    return [sys.executable, peer_calls.__file__, json.dumps(request)]


def test_the_worker_script_times_a_call() -> None:
    with Worker(real("ml_dtypes_cast", "e4m3", "dequantize")) as worker:
        assert worker.version and worker.bytes == 4 * 4096
        assert 0 < worker.seconds() < 10


def test_the_worker_script_tells_what_the_library_raised() -> None:
    with pytest.raises(Refused, match="KeyError: 'e9m9'"):
        Worker(real("ml_dtypes_cast", "e9m9", "quantize"))


def ours(elements: int = 1024) -> Subject:
    return Subject(lambda: None, lambda: None, elements, 5 * elements, "fake")


ROW = PeerRow("mxfp8", "gguf", "gguf_block", ("Q8_0", VERB))
CELL = (FORMATS[1], "quantize", ROW)


def test_a_peer_that_is_not_installed_is_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUANTSPEC_PEERS", str(tmp_path))
    result = bench_peers.timed_cell(CELL, PEER_TABLE["gguf"], ours(), [lambda: None], 3)
    assert result.reason == "not installed: quantspec peers prepare --only gguf" and result.times == 0
    assert result.reason in bench_peers.line(result)


@pytest.mark.parametrize(("size", "reason"), [(1024, ""), (1023, "its call returns 1023 bytes; 1024 at least")])
def test_a_peer_that_makes_too_little_is_no_measurement(
    size: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = GOOD.replace("4096", str(size))
    monkeypatch.setattr(bench_peers, "ready", lambda _: True)
    monkeypatch.setattr(bench_peers, "command", lambda *_: [sys.executable, "-S", "-c", code])
    result = bench_peers.timed_cell(CELL, PEER_TABLE["gguf"], ours(), [lambda: None], 3)
    assert result.reason.startswith(reason) and bool(result.reason) == bool(reason)
    assert (result.peer_seconds, result.version) == ((0.0, "1.0") if reason else (0.25, "1.0"))


def test_turns_alternate_and_a_spent_budget_stops_them_after_three() -> None:
    order: list[str] = []

    def call(name: str) -> Callable[[], float]:
        return lambda: order.append(name) or float(len(order))  # type: ignore[func-returns-value]

    found = rows_in_turn({"a": call("a"), "b": call("b")}, 9, budget=0)
    assert order == ["a", "b"] * 3
    assert found == {"a": [1.0, 3.0, 5.0], "b": [2.0, 4.0, 6.0]}
    assert median_ratio(found["b"], found["a"]) == 4 / 3


def measured(name: str, peer: str, times: float, verb: float, less: str = "", of_copy: float = 0.1) -> dict[str, Any]:
    known = bench_peers.Result(name, "s", "quantize", peer, "1", "", less, 1024, "")
    return asdict(replace(known, times=times, times_verb=verb, copy_ratio=0.5, peer_copy_ratio=of_copy))


@pytest.mark.parametrize(
    ("rows", "verdict", "peer"),
    [
        ([measured("mxfp4", "a", 10, 10), measured("mxfp4", "b", 90, 90)], "met", "a 1"),
        ([measured("mxfp4", "a", 9.99, 20), measured("mxfp4", "b", 90, 90)], "**MISSED**", "a 1"),
        ([measured("mxfp4", "a", 6, 5, of_copy=0.101)], "**MISSED**, as a copy would", "a 1"),
        ([measured("mxfp4", "a", 10, 9)], "met by the kernels, missed by the verb", "a 1"),
        ([measured("mxfp4", "a", 1, 1, "scales given"), measured("mxfp4", "b", 90, 90)], "met", "b 1"),
        ([measured("mxfp4", "a", 1, 1, "scales given")], "no peer measured that does the same work", ""),
        ([], "no peer measured that does the same work", ""),
    ],
)
def test_a_bar_is_met_only_against_the_fastest_peer_of_the_same_work(
    rows: list[dict[str, Any]], verdict: str, peer: str
) -> None:
    standing = bench_report.standings(rows)[0]
    assert (standing.format, standing.direction) == ("mxfp4", "quantize")
    assert (standing.verdict, standing.peer) == (verdict, peer)


def test_bars_are_those_of_the_issue() -> None:
    assert {form.name: form.bar for form in FORMATS if form.bar} == {
        **dict.fromkeys(("mxfp4", "mxfp8", "nvfp4"), 10),
        **dict.fromkeys(("int8", "int4", "int8 tensor"), 1),
    }


def test_a_size_that_does_not_fit_says_why() -> None:
    session: Any = SimpleNamespace(info=SimpleNamespace(max_allocation=2**30))
    assert bench_growth.refusal(session, 2**20, 2**30) == ""
    assert "more than half of the 1.0 GiB" in bench_growth.refusal(session, 2**26, 2**30)
    assert "more than the device allocates: 1073741824" in bench_growth.refusal(session, 2**29, 2**50)


def test_rows_measured_before_ctrl_c_are_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = store.Store(tmp_path / "a" / "b.json", "title", machine={"date": "today"})

    def main() -> None:
        kept.add({"row": 1})
        raise KeyboardInterrupt

    assert store.run(main) == 130
    assert store.read(kept.path)["results"] == [{"row": 1}]
    assert "interrupted" in capsys.readouterr().err


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("{", "[]", '{"schema": "other"}'):
        path.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=r"x\.json"):
            store.read(path)


def test_sizes_are_numbers_or_powers() -> None:
    assert [store.elements_of(text) for text in ("4096", "2^24")] == [4096, 2**24]
    for text in ("0", "many", "2^^3"):
        with pytest.raises(ValueError):
            store.elements_of(text)


def test_steps_have_scripts_and_names() -> None:
    assert all((bench.HERE / step.script).is_file() for step in bench.STEPS)
    assert {step.name for step in bench.STEPS if step.device} == set(bench_report.SECTIONS)
    assert set(pictures.PICTURES) <= set(bench_report.SECTIONS)
    with pytest.raises(ValueError, match="no step is named peer"):
        bench.chosen_steps("kernels,peer")


def test_a_step_that_fails_gives_its_code_and_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "HERE", tmp_path)
    (tmp_path / "broken.py").write_text("print('so far'); raise SystemExit(3)", "utf-8")
    assert bench.perform(bench.Step("broken", "broken.py"), tmp_path / "out", {}, []) == 3
    assert (tmp_path / "out" / "broken.txt").read_text("utf-8") == "so far\n"
    (tmp_path / "broken.py").write_text("raise SystemExit(130)", "utf-8")
    with pytest.raises(KeyboardInterrupt):
        bench.perform(bench.Step("broken", "broken.py"), tmp_path / "out", {}, [])


def rows_of(step: str) -> dict[str, Any]:
    return store.read(next(RECORDED.glob(f"*/default/{step}.json")))


def test_the_recorded_run_is_whole_and_small() -> None:
    assert sum(path.stat().st_size for path in RECORDED.rglob("*") if path.suffix in (".json", ".svg")) < 200_000
    cells = {(r["format"], r["direction"], r["peer"]) for r in rows_of("peers")["results"]}
    assert cells == {(form.name, direction, each.peer) for form, direction, each in peer_rows.cells()}
    assert {r["elements"] for r in rows_of("growth")["results"] if r["kind"] == "size"} == {
        2**n for n in range(12, 29, 2)
    }


def test_the_page_and_pictures_are_made_from_files_and_say_what_is_amiss(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install --group bench")
    folder = tmp_path / "default"
    folder.mkdir()
    for step in ("peers", "roofline", "growth"):
        (folder / f"{step}.json").write_text(json.dumps(rows_of(step)), "utf-8")
    (folder / "kernels.json").write_text("{", "utf-8")
    path, problems = bench.write(tmp_path)
    text = path.read_text("utf-8")
    assert len(problems) == 1 and "kernels.json holds no JSON" in problems[0]
    assert all(f"## {heading} (default)" in text for heading in ("Peers", "Roofline", "Growth"))
    assert "E8M0" in text  # a reason
    for step in ("peers", "roofline", "growth"):
        assert f"(default/{step}.svg)" in text
        assert ElementTree.parse(folder / f"{step}.svg").getroot().tag.endswith("svg")
