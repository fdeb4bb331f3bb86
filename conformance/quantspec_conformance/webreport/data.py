"""The report as JSON: everything that the pages say, and what they leave out. Only ASCII: hostile text stays as escapes."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..suite.outcome import CaseResult
from .agreement import Agreement, Comparison
from .book import Book
from .runs import ReportRun
from .trend import Point, Series

__all__ = ["SCHEMA", "report_json"]

SCHEMA = "report-1"


def report_json(
    book: Book,
    agreed: Sequence[Agreement],
    compared: Sequence[Comparison],
    trends: Sequence[Series],
    pages: Sequence[str],
) -> str:
    """The text of report.json."""
    record = {
        "schema": SCHEMA,
        "pages": list(pages),
        "runs": [_run(book, run) for run in book.runs],
        "formats": {name: {"cases": ids, "page": f"format-{name}.html"} for name, ids in book.formats.items()},
        "cases": {case_id: _case(book, case_id) for case_id in book.ids},
        "rules": {
            rule_id: {
                "title": rule.title,
                "page": book.rule_page(rule_id),
                "wrong": book.breakers.get(rule_id, {}),
                "tests": [asdict(row) for row in book.tests.get(rule_id, ())],
            }
            for rule_id, rule in book.rules.items()
        },
        "never_run": book.never_run,
        "agreements": [
            {"case": row.case_id, "digest": row.digest, "runs": [run.key for run in row.runs], "passed": row.passed}
            for row in agreed
        ],
        "trends": [{"name": row.name, "runs": [_point(point) for point in row.points]} for row in trends],
        "differences": [
            {
                "first": row.first.key,
                "second": row.second.key,
                "page": row.page,
                "same": row.same,
                **{kind: [change.case_id for change in changes] for kind, changes in row.changes.items()},
            }
            for row in compared
        ],
    }
    text = json.dumps(_plain(record), indent=1, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c") + "\n"


def _point(point: Point) -> dict[str, Any]:
    changes = {} if point.change is None else point.change.changes
    return {
        "run": point.run.key,
        "passed": point.passed,
        "total": point.total,
        **{kind: [change.case_id for change in rows] for kind, rows in changes.items()},
    }


def _run(book: Book, run: ReportRun) -> dict[str, Any]:
    return {
        "key": run.key,
        "label": run.label,
        "policy": run.policy,
        "page": run.page,
        "header": run.header,
        "footer": run.footer,
        "totals": run.totals,
        "formats": {name: book.counts(run, ids) for name, ids in book.formats.items()},
        "results": [_result(run, row) for row in run.results.values()],
    }


def _result(run: ReportRun, row: CaseResult) -> dict[str, Any]:
    expected, comparison = run.foreseen.get(row.id, ("", ""))
    record = {name: getattr(row, name) for name in CaseResult.__dataclass_fields__}
    record["mismatch"] = None if row.mismatch is None else _mismatch(asdict(row.mismatch))
    return record | {"expected": expected, "comparison": comparison}


def _mismatch(record: dict[str, Any]) -> dict[str, Any]:
    """Patterns as hexadecimal text: 64 bits are too many for the numbers of JSON readers."""
    first = [row | {"expected": f"0x{row['expected']:X}", "actual": f"0x{row['actual']:X}"} for row in record["first"]]
    return record | {"first": first}


def _case(book: Book, case_id: str) -> dict[str, Any]:
    case = book.cases.get(case_id)
    record: dict[str, Any] = {"format": book.format(case_id), "page": book.page(case_id)}
    if case is None:
        return record | {"in_suite": False}
    names = ("title", "op", "level", "kind", "strength", "rules", "features", "bugs", "suite")
    return record | {name: getattr(case, name) for name in names}


def _plain(value: Any) -> Any:
    """Only what JSON has: numbers that it cannot spell are null, anything unknown is text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int)) else str(value)
