"""The report: pages of the law and of liars, every link, every marked bit, hostile names, a browser."""

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from quantspec_conformance.compare import Difference
from quantspec_conformance.doccases import load
from quantspec_conformance.errors import UsageError
from quantspec_conformance.examples import DTYPES, Tensor
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.protocol.messages import Answer, Hello, Identity, Known, Ok, Request
from quantspec_conformance.resultset.record import CaseRecord, RunRecord
from quantspec_conformance.site.check import broken_links, links_of
from quantspec_conformance.spec import rules
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.doc import doc_cases
from quantspec_conformance.suite.outcome import CaseResult, SuiteMismatch
from quantspec_conformance.suite.run import RunOptions, run_suite
from quantspec_conformance.testsfile import MarkedTests, RuleTest
from quantspec_conformance.webreport import ReportRun, write_report
from quantspec_conformance.webreport.text import clean, markup_of, share, slug, web_address

from ..browser import chromium

CASES = {case.id: case for case in doc_cases(load())}
NAME = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202egpj\x1b[31m\x00\u2028"
PAIR = tuple[dict[str, Any], Sequence[CaseResult]]


def flipped(answer: Answer, part: str, mask: int) -> Answer:
    """An answer with some bits of the second entry of a part (of the first, where there is but one) turned over."""
    if not isinstance(answer, Ok) or not answer.tensors.get(part) or not answer.tensors[part].patterns:
        return answer
    tensor = answer.tensors[part]
    at = min(1, len(tensor.patterns) - 1)
    patterns = tuple(pattern ^ mask if i == at else pattern for i, pattern in enumerate(tensor.patterns))
    return Ok({**answer.tensors, part: Tensor(tensor.dtype, tensor.shape, patterns)}, answer.words)


class Liar(Law):
    """Turns over the lowest bit of a code."""

    def hello(self, hello: Hello) -> Identity:
        return replace(super().hello(hello), name="liar", version="1")

    def handle(self, request: Request) -> Answer:
        return flipped(super().handle(request), "codes", 1) if request.op == "quantize" else super().handle(request)


class Hostile(Liar):
    """The same lie, more of them, and texts that would do harm in a page."""

    def hello(self, hello: Hello) -> Identity:
        return replace(
            super().hello(hello), name=NAME, source="https://example.org/x?a=1&b=2", issues="javascript:alert(3)",
            build="data:text/html,<script>alert(4)</script>", values=("e2m1", "q4s", "e4m3", "q8s"), policies={NAME: NAME},
        )  # fmt: skip

    def handle(self, request: Request) -> Answer:
        answer = super().handle(request)
        if request.op == "encode_scale":
            return Known("javascript:alert(5)", NAME)
        if request.op == "decode_scale":
            return Known("https://example.org/issues/1", "scales")
        for op, part, mask in (
            ("pack", "words", 0x11),
            ("dequantize", "y", 0x8003),
            ("to_bytes", "bytes", 0x80),
            ("unpack", "codes", 2),
        ):
            answer = flipped(answer, part, mask) if request.op == op else answer
        return answer


def ran(implementation: Law, address: str, **header: Any) -> PAIR:
    """A run of an implementation on the examples, as header and results."""
    said: list[Identity] = []
    results = list(run_suite(list(CASES.values()), implementation, RunOptions(repeat=0), on_identity=said.append))
    results = [replace(result, seconds=0.0) for result in results]
    identity = {"address": address, **asdict(said[0])}
    suite = {"digest": "ab" * 32, "version": "1", "cases": len(CASES)}
    return {"started": "2026-01-02T03:04:05Z", "suite": suite, "implementation": identity, **header}, results


@pytest.fixture(scope="module")
def runs() -> list[PAIR]:
    return [
        ran(Law(), "reference"),
        ran(Liar(), "py:liar.py:Liar"),
        ran(Hostile(), f"py:{NAME}:It's", command=["quantspec", NAME]),
    ]


@pytest.fixture(scope="module")
def report(runs: list[PAIR], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "out"
    paths = write_report(runs, CASES, out)
    assert sorted(paths) == sorted(out.iterdir())
    assert (paths[0].name, paths[-1].name) == ("index.html", "report.json")
    return out


@pytest.fixture(scope="module")
def few(runs: list[PAIR]) -> list[PAIR]:
    """The same runs of fewer cases, some of them wrong."""
    kept = {row.id for row in runs[1][1] if row.bad}
    kept = set(sorted(kept)[:20]) | {row.id for row in runs[1][1][:20]}
    return [(header, [row for row in results if row.id in kept]) for header, results in runs]


def cases_of(run: PAIR) -> dict[str, Case]:
    return {row.id: CASES[row.id] for row in run[1]}


def written(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "report.json").read_text("ascii"))
    return content


# ---------------------------------------------------------------- pages


def test_no_link_is_broken_and_nothing_is_loaded(report: Path) -> None:
    assert broken_links(report) == []
    assert all(not links_of(path).loads for path in report.glob("*.html"))


def test_every_kind_of_page_is_there(report: Path) -> None:
    names = {path.name for path in report.iterdir()}
    assert {"index.html", "rules.html", "agreement.html", "never-run.html"} <= names
    assert {f"rule-{rule_id}.html" for rule_id in rules()} <= names
    assert {f"format-{name}.html" for name in ("e2m1", "q4s", "ue8m0", "f32")} <= names
    assert {"implementation-1-reference.html", "implementation-2-liar.html", "diff-1-reference-2-liar.html"} <= names
    assert sum(name.startswith("diff-") for name in names) == 3


def test_every_case_that_was_answered_and_not_as_is_due_has_a_page_and_no_other(report: Path, runs: list[PAIR]) -> None:
    silent = ("pass", "unsupported", "skipped", "notrun")
    due = {row.id for _, results in runs for row in results if row.outcome not in silent}
    data = written(report)["cases"]
    assert {case_id for case_id, case in data.items() if case["page"]} == due
    pages = {path.name for path in report.glob("case-*.html")}
    assert pages == {data[case_id]["page"] for case_id in due}
    assert any(row.outcome == "fail" for row in runs[1][1])


class Bits(HTMLParser):
    """Figures of a case page by implementation page: part, flat index, and by row the bits and the marked ones."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[tuple[str, str, int], dict[str, tuple[int, int]]] = {}
        self._run = self._row = ""
        self._figure: dict[str, tuple[int, int]] | None = None
        self._heading = self._marked = False
        self._place: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "section":
            self._heading = True
        if tag == "a" and self._heading:
            self._run, self._heading = given["href"], False
        if tag == "figure":
            self._figure = self.found.setdefault((self._run, given["data-part"], int(given["data-flat"])), {})
        if tag == "tr" and self._figure is not None:
            self._row = given.get("class", "")
        if tag == "td" and "data-bit" in given:
            self._place = int(given["data-bit"])
        if tag == "mark":
            self._marked = True

    def handle_data(self, data: str) -> None:
        if self._place is None or self._figure is None:
            return
        assert data in "01"
        pattern, marked = self._figure.get(self._row, (0, 0))
        self._figure[self._row] = (pattern | int(data) << self._place, marked | int(self._marked) << self._place)

    def handle_endtag(self, tag: str) -> None:
        if tag == "td":
            self._place = None
        if tag == "mark":
            self._marked = False
        if tag == "figure":
            self._figure = None


def drawn(path: Path) -> dict[tuple[str, str, int], dict[str, tuple[int, int]]]:
    parser = Bits()
    parser.feed(path.read_text("utf-8"))
    return parser.found


def test_marked_bits_are_those_that_differ(report: Path, runs: list[PAIR]) -> None:
    data = written(report)
    seen = set()
    for run, (_, results) in zip(data["runs"], runs, strict=True):
        for row in results:
            if row.mismatch is None:
                continue
            found = drawn(report / data["cases"][row.id]["page"])
            ours = {key[1:]: rows for key, rows in found.items() if key[0] == run["page"]}
            assert set(ours) == {(row.mismatch.part, one.flat) for one in row.mismatch.first}, row.id
            for one in row.mismatch.first:
                xor = one.expected ^ one.actual
                assert ours[row.mismatch.part, one.flat] == {
                    "expected": (one.expected, xor),
                    "actual": (one.actual, xor),
                }
                seen.add((row.mismatch.part, CASES[row.id].outputs[row.mismatch.part].dtype))
    assert {("codes", "u8"), ("words", "u32"), ("words", "u8"), ("y", "f32"), ("bytes", "u8")} <= seen


def test_a_bit_is_drawn_for_every_bit_of_the_pattern(report: Path) -> None:
    for case_id, case in written(report)["cases"].items():
        for (_, part, _), rows in drawn(report / case["page"]).items() if case["page"] else ():
            text = (report / case["page"]).read_text("utf-8")
            width = 4 * DTYPES[CASES[case_id].outputs[part].dtype][0]
            assert set(rows) == {"expected", "actual"}
            assert f'data-bit="{width - 1}"' in text and f'data-bit="{width}"' not in text


def test_a_case_page_tells_numbers_rules_and_how_to_run_it_again(report: Path) -> None:
    text = (report / "case-doc.blocks.two-by-two.html").read_text("utf-8")
    assert '<code>0x02</code> = <span class="value">1</span>' in text
    assert '<code>0x03</code> = <span class="value">1.5</span>' in text
    assert "x, input" in text and "q, quotient" in text
    assert "quantspec replay doc.blocks.two-by-two --impl py:liar.py:Liar" in text
    assert 'href="rule-QNT-5.html"' in text


def test_the_matrix_counts(report: Path, runs: list[PAIR]) -> None:
    data = written(report)
    for run, (_, results) in zip(data["runs"], runs, strict=True):
        cells = run["formats"].values()
        assert sum(sum(cell.values()) for cell in cells) == len(results)
        assert sum(cell.get("pass", 0) for cell in cells) == sum(row.outcome == "pass" for row in results)
    text = (report / "index.html").read_text("utf-8")
    passed = data["runs"][1]["formats"]["q2s"]["pass"]
    total = len(data["formats"]["q2s"]["cases"])
    assert f"q2s, liar 1: {passed} of {total} pass" in text
    assert 0 < passed < total


def test_differences_of_two_runs(report: Path, runs: list[PAIR]) -> None:
    row = next(row for row in written(report)["differences"] if row["page"] == "diff-1-reference-2-liar.html")
    assert row["broken"] == [one.id for one in runs[1][1] if one.bad]
    assert [row[kind] for kind in ("fixed", "changed", "other", "new", "gone")] == [[]] * 5
    assert row["same"] == len(CASES) - len(row["broken"])


def test_the_same_wrong_bits_are_an_agreement(report: Path, runs: list[PAIR]) -> None:
    agreed = written(report)["agreements"]
    theirs = {row.id: row.digest for row in runs[2][1] if row.outcome == "fail"}
    due = {row.id for row in runs[1][1] if row.outcome == "fail" and row.digest == theirs.get(row.id)}
    assert {row["case"] for row in agreed} == due != set()
    assert all(row["passed"] == 1 and len(row["runs"]) == 2 for row in agreed)


def test_two_runs_of_one_implementation_are_no_agreement(few: list[PAIR], tmp_path: Path) -> None:
    write_report([few[1], few[1]], cases_of(few[0]), tmp_path / "out")
    data = written(tmp_path / "out")
    assert data["agreements"] == []
    assert [run["label"] for run in data["runs"]] == ["liar 1 (py:liar.py:Liar) #1", "liar 1 (py:liar.py:Liar) #2"]
    assert broken_links(tmp_path / "out") == []


def test_cases_that_nobody_ran_are_named(few: list[PAIR], tmp_path: Path) -> None:
    header, results = few[2]
    write_report([(header, results[5:])], cases_of(few[0]), tmp_path / "out")
    due = {row.id for row in results[5:] if row.outcome == "unsupported"} | {row.id for row in results[:5]}
    assert set(written(tmp_path / "out")["never_run"]) == due
    assert broken_links(tmp_path / "out") == []


def test_runs_of_other_suites_are_not_compared(few: list[PAIR], tmp_path: Path) -> None:
    other = ({**few[1][0], "suite": {"digest": "cd" * 32}}, few[1][1])
    write_report([few[0], other], cases_of(few[0]), tmp_path / "out")
    assert written(tmp_path / "out")["differences"] == []


def test_new_gone_fixed_and_changed(few: list[PAIR], tmp_path: Path) -> None:
    header, results = few[1]
    bad = [row for row in results if row.bad]
    fixed, changed = replace(bad[0], outcome="pass", mismatch=None), replace(bad[1], digest="0" * 16)
    kept = [row for row in results if row not in bad[:3]]
    write_report(
        [(header, [*bad[:3], *kept[1:]]), (header, [fixed, changed, *kept])], cases_of(few[0]), tmp_path / "out"
    )
    row = written(tmp_path / "out")["differences"][0]
    assert (row["fixed"], row["changed"]) == ([fixed.id], [changed.id])
    assert (row["new"], row["gone"], row["broken"]) == ([kept[0].id], [bad[2].id], [])


# ---------------------------------------------------------------- time, policies, tests of others


def at(
    run: PAIR, started: object, *, policies: dict[str, str] | None = None, results: Sequence[CaseResult] = ()
) -> PAIR:
    """A run that began at another time, under other policies, with other results."""
    header = {**run[0], "started": started}
    if policies is not None:
        header["implementation"] = {**header["implementation"], "policies": policies}
    return header, results or run[1]


def later(few: list[PAIR]) -> list[PAIR]:
    """Three runs of the liar over time, given out of order: the last fixes all but one case, and breaks one."""
    results = list(few[1][1])
    bad = [row for row in results if row.bad]
    good = next(row for row in results if not row.bad)
    fixed = [
        replace(row, outcome="pass", reason="", rule="", rules=(), mismatch=None) if row in bad[1:] else row
        for row in results
    ]
    fixed = [replace(row, outcome="crash", reason="gone") if row.id == good.id else row for row in fixed]
    return [
        at(few[1], "2026-03-01T00:00:00Z", results=fixed), at(few[1], "2026-01-01T00:00:00Z"),
        at(few[1], "2026-01-11T00:00:00+01:00"),
    ]  # fmt: skip


def test_runs_over_time_are_a_trend(few: list[PAIR], tmp_path: Path) -> None:
    runs = [few[0], *later(few)]
    write_report(runs, cases_of(few[0]), tmp_path / "out")
    data = written(tmp_path / "out")
    (series,) = data["trends"]
    keys = [run["key"] for run in data["runs"]]
    assert [point["run"] for point in series["runs"]] == [keys[2], keys[3], keys[1]]
    first, second, last = series["runs"]
    assert "broken" not in first and (second["broken"], second["fixed"]) == ([], [])
    bad = [row.id for row in few[1][1] if row.bad]
    assert last["fixed"] == bad[1:] and len(last["broken"]) == 1
    assert last["passed"] - second["passed"] == len(bad) - 2
    text = (tmp_path / "out" / "trend.html").read_text("utf-8")
    assert [int(x) for x in re.findall(r'<circle class="spark-dot" cx="(\d+)"', text)] == [4, 43, 236]
    assert f"Fixed in liar 1 (py:liar.py:Liar) #1: {len(bad) - 1} cases" in text and "Broken in" in text
    assert 'class="spark"' in (tmp_path / "out" / "index.html").read_text("utf-8")
    assert broken_links(tmp_path / "out") == []


@pytest.mark.parametrize("started", ["", "yesterday", 7, "9999-99-99", None])
def test_a_run_that_tells_no_date_stands_last(few: list[PAIR], tmp_path: Path, started: object) -> None:
    write_report([at(few[1], started), few[1]], cases_of(few[0]), tmp_path / "out")
    (series,) = written(tmp_path / "out")["trends"]
    assert [point["run"] for point in series["runs"]] == ["2-liar", "1-liar"]


def test_one_run_is_no_trend(report: Path) -> None:
    assert written(report)["trends"] == []
    assert "was run more than once" in (report / "trend.html").read_text("utf-8")
    assert "Over time" not in (report / "index.html").read_text("utf-8")


def test_policies_of_one_implementation_are_columns_of_their_own(few: list[PAIR], tmp_path: Path) -> None:
    shared = {"nan": "kept"}
    floor, ceil = (at(few[1], "2026-01-01", policies={**shared, "scale": word}) for word in ("floor", "ceil"))
    write_report([floor, few[0], ceil], cases_of(few[0]), tmp_path / "out")
    data = written(tmp_path / "out")
    assert [run["policy"] for run in data["runs"]] == ["[scale floor]", "", "[scale ceil]"]
    assert [run["label"] for run in data["runs"]] == ["liar 1 [scale floor]", "reference 0.1.0", "liar 1 [scale ceil]"]
    assert data["trends"] == []
    text = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert '<th scope="colgroup" colspan="2">liar</th><th scope="colgroup" colspan="1">reference</th>' in text
    order = re.findall(r'<th scope="col"><a href="implementation-(\d)', text)
    assert ">[scale floor]</a></th>" in text
    assert order == ["1", "3", "2"]
    assert broken_links(tmp_path / "out") == []


def marked(project: str, **outcomes: str) -> MarkedTests:
    rows = tuple(RuleTest(project, f"tests/test_{name}.py::test_it", outcome) for name, outcome in outcomes.items())
    return MarkedTests(project, {"VAL-7": rows, "QNT-5": rows[:1]})


def test_tests_of_others_stand_at_their_rules(few: list[PAIR], tmp_path: Path) -> None:
    files = [marked("theirs", one="passed", two="failed"), marked("theirs", one="passed"), marked(NAME, x="skipped")]
    write_report(few, cases_of(few[0]), tmp_path / "out", tests=files)
    data = written(tmp_path / "out")
    assert [row["test"] for row in data["rules"]["QNT-5"]["tests"]] == [
        "tests/test_x.py::test_it",
        "tests/test_one.py::test_it",
    ]
    assert len(data["rules"]["VAL-7"]["tests"]) == 3 and data["rules"]["VAL-6"]["tests"] == []
    page = (tmp_path / "out" / "rule-VAL-7.html").read_text("utf-8")
    assert "tests/test_two.py::test_it" in page and "✗</span> failed" in page
    assert "None of those that were given" in (tmp_path / "out" / "rule-VAL-6.html").read_text("utf-8")
    assert "1 of 3 pass" in (tmp_path / "out" / "rules.html").read_text("utf-8")
    assert broken_links(tmp_path / "out") == []
    check_harmless(tmp_path / "out")


def test_what_is_not_supported_is_told_by_reason_and_folded(few: list[PAIR], tmp_path: Path) -> None:
    lacking = [
        CaseResult(
            row.id, "unsupported", f"value:{'ab'[n % 2]} {'is not among its capabilities' if n % 4 else 'not yet'}"
        )
        for n, row in enumerate(few[0][1])
    ]
    write_report([(few[1][0], lacking)], cases_of(few[0]), tmp_path / "out")
    assert not list((tmp_path / "out").glob("case-*"))
    text = (tmp_path / "out" / "implementation-1-liar.html").read_text("utf-8")
    half = len(lacking) // 2
    assert f"<summary><code>value:b</code>: {half} cases</summary>" in text and "and 1 other reason" in text
    never = (tmp_path / "out" / "never-run.html").read_text("utf-8")
    assert f"<code>value:b</code>: {half} cases" in never
    assert broken_links(tmp_path / "out") == []


# ---------------------------------------------------------------- the same bytes, and the folder


def test_the_same_input_gives_the_same_bytes(report: Path, runs: list[PAIR], tmp_path: Path) -> None:
    write_report(runs, CASES, tmp_path / "again")
    ours = {path.name: path.read_bytes() for path in report.iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()} == ours


def test_an_earlier_report_leaves_nothing_behind(few: list[PAIR], tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_report(few, cases_of(few[0]), out)
    (out / "notes.txt").write_text("mine", "utf-8")
    paths = write_report(few[:1], cases_of(few[0]), out)
    assert sorted([*paths, out / "notes.txt"]) == sorted(out.iterdir())


def test_a_folder_of_something_else_is_refused(runs: list[PAIR], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="not those of a report"):
        write_report(runs, CASES, tmp_path)
    assert (tmp_path / "index.html").read_text("utf-8") == "mine"
    with pytest.raises(UsageError, match=r"index\.html"):
        write_report(runs, CASES, tmp_path / "index.html")
    with pytest.raises(UsageError, match="at least one run"):
        write_report([], CASES, tmp_path / "none")


def test_a_record_of_a_result_file(few: list[PAIR], tmp_path: Path) -> None:
    header, results = few[1]
    records = tuple(CaseRecord.of(row, expected=row.outcome, comparison="xfail" if row.bad else "") for row in results)
    ended = {"complete": False, "interrupted": True}
    write_report([RunRecord(header, records, ended), RunRecord(header, records)], cases_of(few[0]), tmp_path / "out")
    texts = [(tmp_path / "out" / f"implementation-{n}-liar.html").read_text("utf-8") for n in (1, 2)]
    assert "did not reach its end" in texts[0] and "was broken off" in texts[1]
    assert "Against expectations: xfail" in texts[0]
    text = (tmp_path / "out" / "case-doc.blocks.two-by-two.html").read_text("utf-8")
    assert "Expected of this implementation: fail (xfail)" in text
    with pytest.raises(UsageError, match="has none"):
        ReportRun.of({})  # type: ignore[arg-type]


# ---------------------------------------------------------------- hostile results


class Tags(HTMLParser):
    """Tags with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(path: Path) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(path.read_text("utf-8"))
    return parser.tags


def check_harmless(out: Path) -> None:
    """No page holds markup of the data, a link that runs, a character that is not seen."""
    for path in out.glob("*.html"):
        text = path.read_text("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", text), (
            path.name
        )
        found = tags(path)
        assert [attrs for tag, attrs in found if tag == "script"] == [{}], path.name
        assert not [tag for tag, _ in found if tag in ("img", "iframe", "object", "embed", "form", "b", "i")], path.name
        assert not [name for _, attrs in found for name in attrs if name.startswith("on") or name == "style"], path.name
        for tag, attrs in found:
            link = attrs.get("href") or ""
            if tag == "a" and ":" in link:
                assert link.startswith("https://example.org/") and "noopener" in (attrs["rel"] or ""), link
            assert not re.match(r"\s*(javascript|data|vbscript):", link, re.IGNORECASE)


def test_hostile_names_stay_text(report: Path) -> None:
    check_harmless(report)
    page = report / written(report)["runs"][2]["page"]
    text = page.read_text("utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\\u202Egpj\\x1B[31m\\x00\\u2028" in text
    links = [attrs["href"] for tag, attrs in tags(page) if tag == "a"]
    assert "https://example.org/x?a=1&b=2" in links and "https://example.org/issues/1" in links
    assert "javascript:alert(3)" in text and "javascript:alert(5)" in text


def test_a_result_file_made_by_hand(tmp_path: Path) -> None:
    """Ids, outcomes, parts, buckets, indices and patterns that no run of ours gives."""
    case = CASES["doc.blocks.two-by-two"]
    first = (
        Difference((), 0, 1 << 40, 3), Difference((-9, 77), 1, 0, 255), Difference((0,), 2, -1, 2),
        Difference((0, 1), 3, 1 << 80, 2),
    )  # fmt: skip
    mismatch = SuiteMismatch("codes", NAME, NAME, 9, 8, first, {NAME: 1}, NAME)
    words = replace(mismatch, part="words", first=(Difference((), 0, 1, 2),))
    rows = [
        CaseResult(case.id, "fail", NAME, NAME, (NAME, "QNT-5"), mismatch, NAME, float("nan"), 10**30),
        CaseResult("doc.packing.linear-order-of-eight", "fail", "", "", (), words),
        CaseResult("doc.values.e2m1-tie", NAME, f"http://{NAME} https://example.org/ok, done"),
        CaseResult(NAME, "fail", "", "", (), replace(mismatch, part=NAME, first=(Difference((1,), 1, 5, 6),))),
        CaseResult("../../etc/passwd", "error", "x" * 10**5),
        CaseResult("a" * 3000, "unsupported", ""),
        CaseResult("\ud800", "known", "\ud800"),
        CaseResult("Upper.Case", "crash"),
        CaseResult("upper.case", "crash"),
        CaseResult(slug("Upper.Case"), "crash"),
    ]
    header = {
        "implementation": {"name": ["\ud800"], "ops": NAME, "max_rank": {}},
        "suite": NAME,
        "started": 7,
        "command": 1,
    }
    out = tmp_path / "deep" / "out"
    paths = write_report([(header, rows)], CASES, out)
    assert broken_links(out) == []
    check_harmless(out)
    assert {path.parent for path in paths} == {out} and sorted(p.name for p in tmp_path.iterdir()) == ["deep"]
    assert len({path.name.lower() for path in paths}) == len(paths)
    assert all(len(path.name) < 200 for path in paths)
    assert all(case_id in written(out)["cases"] for case_id in (NAME, "../../etc/passwd"))


def test_texts_are_cleaned_and_links_are_few() -> None:
    assert clean("a\u202eb\x00\tc\n") == "a\\u202Eb\\x00\tc\n"
    assert clean("abcdef", 3) == "abc [3 more characters in report.json]"
    assert web_address("https://example.org/a") == "https://example.org/a"
    for text in (
        "https://e.org/<b>",
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//example.org", "https://", "http://a b",
        "https://me@example.org", "https://ex\u0430mple.org", "https://a\n", "ftp://example.org", "https://[", "file:///etc",
    ):  # fmt: skip
        assert web_address(text) == ""
    assert markup_of('see https://e.org/"><b>, ok') == "see https://e.org/&#34;&gt;&lt;b&gt;, ok"
    link = '<a href="https://e.org/?a&amp;b=\'" rel="noopener noreferrer nofollow">https://e.org/?a&amp;b=\'</a>,'
    assert markup_of("https://e.org/?a&b=',") == link.replace("'", "&#39;")


def test_slugs_do_not_meet() -> None:
    assert slug("enc.mxfp4.tie-17") == "enc.mxfp4.tie-17"
    texts = ["A", "a", "a/", "a\\", "..", ".", "", "a b", "a-b", "x" * 300, "x" * 301, "\u00e4"]
    assert len({slug(text) for text in texts}) == len(texts)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", slug(text)) for text in texts)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "-"), (0, 5, "0 %"), (5, 5, "100 %"), (9999, 10000, "99.9 %"), (1, 10000, "< 0.1 %"), (1, 3, "33.3 %")],
)
def test_a_share_is_not_rounded_to_all_or_nothing(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text


def test_tables_have_headings(report: Path) -> None:
    for path in report.glob("*.html"):
        found = tags(path)
        names = [tag for tag, _ in found]
        assert names.count("main") == names.count("h1") == names.count("title") == 1
        assert all("scope" in attrs for tag, attrs in found if tag == "th"), path.name
        bits = sum("bits" in (attrs.get("class") or "").split() for tag, attrs in found if tag == "table")
        assert names.count("caption") + bits == names.count("table")
        ids = [attrs["id"] for _, attrs in found if "id" in attrs]
        assert len(ids) == len(set(ids))


# ---------------------------------------------------------------- a browser

WIDTHS = {"desktop": (1300, 900), "phone": (390, 800)}
#: One page of each kind.
KINDS = (
    "index", "rules", "trend", "agreement", "never-run", "implementation-1-reference", "implementation-2-liar", "HOSTILE",
    "format-q2s", "rule-QNT-5", "rule-VAL-7", "case-doc.blocks.two-by-two", "case-doc.packing.linear-order-of-eight",
    "case-doc.quantize.canonical-nan", "diff-1-reference-2-liar",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium. Skipped where there is none, unless QUANTSPEC_BROWSER=required."""
    yield from chromium(tmp_path_factory.mktemp("chromium"))


def opened(browser: Any, out: Path, page: str, width: str = "desktop") -> None:
    size = {"width": WIDTHS[width][0], "height": WIDTHS[width][1], "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    name = Path(written(out)["runs"][2]["page"]).stem if page == "HOSTILE" else page
    browser.get((out / f"{name}.html").as_uri())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", KINDS)
def test_a_page_opens_fits_the_window_and_says_nothing_wrong(browser: Any, report: Path, page: str, width: str) -> None:
    opened(browser, report, page, width)
    assert browser.find_element("css selector", "h1").is_displayed()
    assert "quantspec" in browser.title
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert window > WIDTHS[width][0] - 20  # a scroll bar
    assert wide <= window, f"{page} is {wide} pixels wide in a window of {window}"
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def timed(few: list[PAIR], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of runs over time, under two policies, with tests of others."""
    out = tmp_path_factory.mktemp("timed") / "out"
    other = at(few[0], "2026-01-01", policies={"scale": "floor"})
    runs = [*later(few), few[2], few[0], other]
    write_report(runs, cases_of(few[0]), out, tests=[marked("theirs", one="passed", two="failed", three="skipped")])
    return out


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", ["index", "trend", "rules", "rule-VAL-7", "never-run", "format-q2s"])
def test_a_page_with_all_that_may_be_on_it_fits(browser: Any, timed: Path, page: str, width: str) -> None:
    opened(browser, timed, page, width)
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window, f"{page} is {wide} pixels wide in a window of {window}"
    assert browser.get_log("browser") == []
    folder = os.environ.get("QUANTSPEC_SHOTS")
    if folder:
        browser.save_screenshot(f"{folder}/{page}-{width}.png")


def follow(browser: Any, selector: str) -> str:
    """Click a link; the address of the page that it leads to."""
    link = browser.find_element("css selector", selector)
    due = link.get_attribute("href")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", link)
    link.click()
    end = time.monotonic() + 10
    while browser.current_url != due and time.monotonic() < end:
        time.sleep(0.05)
    assert browser.current_url == due
    return str(browser.current_url)


@pytest.mark.parametrize("width", WIDTHS)
def test_from_the_matrix_to_the_rule(browser: Any, report: Path, width: str) -> None:
    opened(browser, report, "index", width)
    follow(browser, "table.matrix a[href='implementation-2-liar.html']")
    case = follow(browser, "details[open] a.case")
    assert "/case-" in case
    assert browser.find_elements("css selector", "figure.difference mark")
    rule = follow(browser, "section.answer p a.rule")
    assert browser.find_element("css selector", "h1").text.startswith(rule.rsplit("rule-")[-1].removesuffix(".html"))


def test_rows_are_filtered(browser: Any, report: Path) -> None:
    opened(browser, report, "rules")
    box = browser.find_element("css selector", ".filter input")
    box.send_keys("ties even")
    shown = [row.text for row in browser.find_elements("css selector", "tbody tr") if row.is_displayed()]
    assert shown and all("ties" in text.lower() and "even" in text.lower() for text in shown)
    assert browser.find_element("css selector", ".filter output").text == f"{len(shown)} of {len(rules())}"


def test_light_and_dark_are_two_colours_that_can_be_read(browser: Any, report: Path) -> None:
    """Contrast of text, links, outcomes and bits against what they stand on is 4.5 or more."""
    script = (Path(__file__).parent / "contrast.js").read_text("utf-8")
    grounds = set()
    try:
        for scheme in ("light", "dark"):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            for page in ("index", "implementation-2-liar", "case-doc.packing.linear-order-of-eight"):
                opened(browser, report, page)
                assert browser.execute_script(script) == [], (scheme, page)
            grounds.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(grounds) == 2


def test_the_keyboard_reaches_the_content(browser: Any, report: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, report, "index")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.get_attribute("class") == "skip" and skip.location["x"] >= 0
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.get_attribute("id") == "main"
