"""Writes the report: every page once, the data beside them, and nothing of an earlier report left among them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import UsageError
from ..outside import reason_of
from ..spec import rules
from ..suite.case import Case
from ..testsfile import MarkedTests, RuleTest
from . import implementationpage as implementation
from .agreement import KINDS, Agreement, Comparison, agreements, comparisons
from .book import Book
from .casepage import answers, tensors_of
from .data import SCHEMA, report_json
from .formats import scheme_of
from .render import Pages
from .runs import ReportRun, Source, labelled
from .trend import Series, trends

__all__ = ["write_report"]

DATA = "report.json"
_OURS = re.compile(
    r"((index|rules|trend|never-run|agreement)|(implementation|format|rule|case|diff)-[A-Za-z0-9._-]+)\.html"
)
_LARGEST = 1 << 31

Made = Iterator[tuple[str, Callable[[], str]]]


def write_report(
    runs: Sequence[Source], cases: Mapping[str, Case], out: Path, *, tests: Sequence[MarkedTests] = ()
) -> list[Path]:
    """Write the pages of runs (see ReportRun.of) into a folder; the paths, index.html first, report.json last.

    `tests` are those that others marked with rules; their rules' pages show them.

    The same runs give the same bytes. UsageError where there is no run, or where the folder holds anything but a report.
    """
    if not runs:
        raise UsageError("a report needs at least one run")
    book = Book(labelled([ReportRun.of(run) for run in runs]), cases, rules(), _by_rule(tests))
    agreed, compared = agreements(book), comparisons(book)
    series = trends(book, compared)
    pages = list(_pages(book, agreed, compared, series))
    data = out / DATA
    try:
        _make_room(out)
        # first, so that a report that was broken off is known as one
        data.write_text(report_json(book, agreed, compared, series, [name for name, _ in pages]), "ascii", newline="\n")
        for name, page in pages:
            (out / name).write_text(page(), "utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {reason_of(error)}") from None
    return [*(out / name for name, _ in pages), data]


def _by_rule(files: Sequence[MarkedTests]) -> dict[str, list[RuleTest]]:
    """The tests of several files by rule, those of one project together."""
    found: dict[str, set[RuleTest]] = {}
    for file in files:
        for rule_id, rows in file.rules.items():
            found.setdefault(rule_id, set()).update(rows)
    return {name: sorted(rows, key=lambda row: (row.project, row.test, row.outcome)) for name, rows in found.items()}


def _make_room(out: Path) -> None:
    """An empty folder: a new one, or that of an earlier report without its pages. UsageError for any other."""
    if out.is_dir() and any(out.iterdir()):
        data = out / DATA
        try:
            ours = data.stat().st_size < _LARGEST and json.loads(data.read_text("ascii")).get("schema") == SCHEMA
        except (OSError, ValueError, AttributeError, RecursionError):
            ours = False
        if not ours:
            raise UsageError(f"{out}: holds files, and not those of a report; give a new folder")
        for path in sorted(out.iterdir()):
            if _OURS.fullmatch(path.name) and not path.is_dir():
                path.unlink()
    out.mkdir(parents=True, exist_ok=True)


def _pages(book: Book, agreed: Sequence[Agreement], compared: Sequence[Comparison], series: Sequence[Series]) -> Made:
    """Name of each page and what makes it."""
    pages = Pages(book)

    def of(name: str, template: str, /, **context: object) -> tuple[str, Callable[[], str]]:
        return name, lambda: pages.page(template, page_name=name, **context)

    yield of("index.html", "index", agreed=agreed, compared=compared, trends=series)
    yield of("trend.html", "trend", trends=series, kinds=KINDS)
    yield of("rules.html", "rules")
    yield of("never-run.html", "never")
    yield of("agreement.html", "agreement", agreed=agreed)
    for run in book.runs:
        yield of(run.page, "implementation", run=run, of=implementation, compared=compared)
    for name, case_ids in book.formats.items():
        yield of(f"format-{name}.html", "format", name=name, case_ids=case_ids, ops=_by_op(book, case_ids))
    for rule_id, rule in book.rules.items():
        yield of(book.rule_page(rule_id), "rule", rule=rule, examples=book.examples.get(rule_id, []))
    for case_id in book.told:
        yield book.page(case_id), lambda case_id=case_id: _case_page(pages, book, case_id)  # type: ignore[misc]
    for row in compared:
        yield of(row.page, "diff", row=row, kinds=KINDS)


def _by_op(book: Book, case_ids: Sequence[str]) -> dict[str, list[str]]:
    """Cases by operation; those of which only a result is known under the first word of their id."""
    found: dict[str, list[str]] = {}
    for case_id in case_ids:
        case = book.cases.get(case_id)
        found.setdefault(case.op if case is not None else case_id.partition(".")[0], []).append(case_id)
    return found


def _case_page(pages: Pages, book: Book, case_id: str) -> str:
    case = book.cases.get(case_id)
    scheme = None if case is None else scheme_of(case)
    return pages.page(
        "case",
        page_name=book.page(case_id),
        case_id=case_id,
        case=case,
        scheme="" if scheme is None else scheme.text,
        inputs=() if case is None else tensors_of(case, case.inputs),
        outputs=() if case is None else tensors_of(case, case.outputs),
        answers=answers(book, case_id),
    )
