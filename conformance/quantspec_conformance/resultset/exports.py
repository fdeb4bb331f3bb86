"""A run in the formats of others. Every text of an implementation is made safe for the place where it lands."""

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from ..errors import UsageError
from ..outside import printable
from .junit import junit
from .record import CaseRecord, RunRecord, clip

__all__ = ["FORMATS", "export", "status_of"]

#: Characters of a text in a table.
CELL = 200
#: What a spreadsheet takes for the begin of a formula, full-width forms included.
FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&:@])")


def status_of(record: CaseRecord) -> str:
    """passed, failed, error or skipped, as tools that know nothing of expectations are to see it."""
    if record.unexpected:
        return "error" if record.outcome in ("error", "crash", "timeout") and not record.comparison else "failed"
    return "passed" if record.outcome == "pass" else "skipped"


def _title(run: RunRecord) -> str:
    implementation = run.header["implementation"]
    return printable(" ".join(filter(None, (implementation["name"], implementation["version"]))))


def _state(run: RunRecord) -> str:
    """What keeps a run from being cited; "" where nothing does."""
    if run.footer is None:
        return "the run did not end"
    if not run.complete:
        return "the run was interrupted" if run.footer["interrupted"] else "the run is not complete"
    return "a quick run" if run.header["quick"] else ""


def _md(text: str, limit: int = CELL) -> str:
    """A text in a table of Markdown: one line, nothing of it is markup."""
    return _MARKDOWN.sub(r"\\\1", printable(clip(text, limit)))


def _markdown(run: RunRecord) -> str:
    header = run.header
    suite = f"suite {header['suite']['version']} ({header['suite']['digest'][:12]}), spec {header['spec']['version']}"
    lines = [f"# {_md(_title(run))}", "", _md(f"{suite}, started {header['started']}"), ""]
    if _state(run):
        lines += [f"**{_md(_state(run))}: this is not a conformance run**", ""]
    lines += ["| outcome | cases |", "|---|---:|"]
    lines += [f"| {outcome} | {count} |" for outcome, count in run.totals.items()]
    unexpected = run.unexpected
    if unexpected:
        lines += ["", "| case | outcome | expected | rule | reason |", "|---|---|---|---|---|"]
        lines += [
            f"| {_md(row.id)} | {_told(row)} | {row.expected} | {_md(row.rule)} | {_md(row.reason)} |"
            for row in unexpected
        ]
    return "\n".join(lines) + "\n"


def _told(record: CaseRecord) -> str:
    return f"{record.outcome}, {record.comparison}" if record.comparison else record.outcome


def _cell(text: str) -> str:
    """A text in a cell: no control codes, and no formula."""
    text = printable(text)
    return f"'{text}" if text.lstrip().startswith(tuple(FORMULA)) else text


def _csv(run: RunRecord) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = (
        "id",
        "outcome",
        "expected",
        "comparison",
        "rule",
        "rules",
        "part",
        "count",
        "total",
        "reason",
        "digest",
        "seconds",
    )
    writer.writerow(names)
    for row in run.results:
        found = row.mismatch
        part, count, total = ("", "", "") if found is None else (found.part, str(found.count), str(found.total))
        texts = (row.id, row.outcome, row.expected, row.comparison, row.rule, " ".join(row.rules), part, count, total)
        writer.writerow([_cell(text) for text in (*texts, row.reason, row.digest, repr(row.seconds))])
    return out.getvalue()


def _badge(run: RunRecord) -> str:
    """An endpoint of shields.io. Green is for a whole run of everything without a fault, and for nothing else."""
    totals = run.totals
    tried = sum(totals.values()) - totals.get("notrun", 0) - totals.get("skipped", 0)
    message, state = f"{totals.get('pass', 0)} of {tried} pass", _state(run)
    bad = any(row.bad or row.unexpected for row in run.results)
    color = (
        "red"
        if bad
        else "lightgrey"
        if state or not tried
        else "brightgreen"
        if totals.get("pass") == tried
        else "yellow"
    )
    if state:
        message += f" ({state})"
    label = clip(f"quantspec: {_title(run)}", CELL)
    return _json({"schemaVersion": 1, "label": label, "message": message, "color": color})


def _json(content: Any) -> str:
    return json.dumps(content, indent=1) + "\n"


def _milliseconds(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _ctrf(run: RunRecord) -> str:
    """Common test report format: the outcome of ours is the raw status of each test."""
    started = _milliseconds(run.header["started"])
    names = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped"}
    tests = []
    for row in run.results:
        status = names[status_of(row)]
        test = {"name": row.id, "status": status, "duration": round(row.seconds * 1000), "rawStatus": _told(row)}
        if row.reason:
            test["message"] = printable(row.reason, keep="\n")
        tests.append(
            {**test, "suite": row.id.rsplit(".", 1)[0], "tags": [_told(row), *row.rules], "retries": row.retries}
        )
    counts = {name: sum(test["status"] == name for test in tests) for name in ("passed", "failed", "skipped")}
    stop = started if run.footer is None else _milliseconds(run.footer["ended"])
    summary = {"tests": len(tests), **counts, "pending": 0, "other": 0, "start": started, "stop": stop}
    extra = {
        "suite": run.header["suite"]["digest"],
        "spec": run.header["spec"]["version"],
        "state": _state(run) or "complete",
    }
    tool = {"name": "quantspec", "version": printable(run.header["spec"]["version"])}
    results = {
        "tool": tool,
        "summary": summary,
        "tests": tests,
        "environment": {"appName": _title(run), "extra": extra},
    }
    return _json({"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results})


FORMATS: dict[str, Callable[[RunRecord], str]] = {
    "junit": lambda run: junit(run, status_of, _state(run)),
    "markdown": _markdown,
    "csv": _csv,
    "badge": _badge,
    "ctrf": _ctrf,
}


def export(run: RunRecord, form: str) -> str:
    """A run in another format: junit, markdown, csv, badge or ctrf. UsageError for another name."""
    if form not in FORMATS:
        raise UsageError(f"format {form!r}; allowed: {', '.join(FORMATS)}")
    return FORMATS[form](run)
