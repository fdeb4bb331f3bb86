"""What is wrong with an expectation file, by itself or against a run; and the three verbs of `quantspec expect`."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Protocol

from ..errors import UsageError
from ..outside import printable
from .apply import Applied, apply, stale
from .edit import script, update
from .records import TODO, Entry, Expectations, read, read_text
from .verdict import ResultLike

__all__ = ["RunLike", "check", "check_command", "run_info", "script_command", "unfinished", "update_command"]


class RunLike(Protocol):
    """A run as its result file tells it: the header and the results."""

    @property
    def header(self) -> Mapping[str, Any]:
        """The first record of the file."""
        ...

    @property
    def results(self) -> Sequence[ResultLike]:
        """A record a case."""
        ...


def run_info(header: Mapping[str, Any]) -> dict[str, str]:
    """What conditions ask of a run: the names of the language, `policy.<axis>`, and `name`. What is not told is ""."""
    theirs, host = _mapping(header, "implementation"), _mapping(header, "host")
    info = {key: _text(theirs.get(key)) for key in ("name", "device", "driver", "version", "language")}
    info |= {key: _text(host.get(key)) for key in ("python", "numpy", "machine")}
    platform = _text(host.get("platform"))
    info["os"] = (_text(host.get("os")) or platform.split("-")[0]).lower()
    for axis, value in _mapping(theirs, "policies").items():
        info[f"policy.{axis}"] = _text(value)
    return info


def _mapping(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = row.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def check(
    path: Path,
    run: RunLike | None = None,
    *,
    today: date,
    suite_ids: Collection[str] | None = None,
    downgrade: Collection[str] = (),
) -> list[str]:
    """What is wrong, a line a problem; [] for a file that is right. UsageError where the file cannot be read.

    Without a run: what the file shows by itself and, with `suite_ids`, globs that match no case.
    """
    expectations = read(path)
    found = [f"entry {entry.number}: {text}" for entry in expectations.entries for text in _alone(entry, today)]
    if run is not None:
        return found + _against(_applied(path, run, today, suite_ids, downgrade))
    for entry in expectations.entries:
        over = stale(entry, {}, today) if isinstance(entry.until, date) else ""
        found += [f"entry {entry.number}: stale: {over}"] if over else []
    if suite_ids is not None:
        everywhere = apply(expectations, (), {"name": expectations.implementation}, today, suite_ids=suite_ids)
        found += [str(problem) for problem in everywhere.problems if problem.kind == "unmatched"]
    return found


def unfinished(expectations: Expectations) -> list[str]:
    """What nobody has written yet, a line an entry: reasons and addresses of a starter file."""
    found: list[str] = []
    for entry in expectations.entries:
        keys = _todo(entry)
        if keys:
            verb = "say" if len(keys) > 1 else "says"
            found.append(f"warning: entry {entry.number}: {' and '.join(keys)} still {verb} {TODO}")
    return found


def _todo(entry: Entry) -> list[str]:
    return [key for key, text in (("reason", entry.reason), ("url", entry.url)) if text == TODO]


def _alone(entry: Entry, today: date) -> list[str]:
    found = [f"{key} still says {TODO}" for key in _todo(entry)]
    if isinstance(entry.since, date) and entry.since > today:
        found.append(f"since {entry.since} is after today, {today}")
    return found


def _against(applied: Applied) -> list[str]:
    found = [str(problem) for problem in applied.problems]
    for row in applied.unexpected:
        found.append(f"unexpected: {row.result.id}: {row.result.outcome}; no entry foresees it")
    return found


def _applied(
    path: Path, run: RunLike, today: date, suite_ids: Collection[str] | None, downgrade: Collection[str]
) -> Applied:
    info = run_info(run.header)
    return apply(read(path), run.results, info, today, suite_ids=suite_ids, downgrade=downgrade)


def check_command(
    path: Path,
    run: RunLike | None = None,
    *,
    today: date | None = None,
    suite_ids: Collection[str] | None = None,
    downgrade: Collection[str] = (),
) -> tuple[list[str], int]:
    """`quantspec expect check FILE [RESULT]`: lines to print, and 0 where nothing but warnings was found, else 1."""
    now = date.today() if today is None else today
    lines = check(path, run, today=now, suite_ids=suite_ids, downgrade=downgrade)
    wrong = [line for line in lines if not line.startswith("warning: ")]
    entries = len(read(path).entries)
    last = f"{printable(str(path))}: {entries} entries, {len(wrong)} problems, {len(lines) - len(wrong)} warnings"
    return [*lines, last], 1 if wrong else 0


def update_command(
    path: Path,
    run: RunLike,
    *,
    today: date | None = None,
    suite_ids: Collection[str] | None = None,
    when: Sequence[str] = (),
) -> tuple[str, int]:
    """`quantspec expect update FILE RESULT`: the text that the file should have; 0 where it has it already, else 1.

    `when`: names of the condition language that new entries are bound to, with the values of this run. UsageError where the
    run is of another implementation: its results say nothing about the file.
    """
    now = date.today() if today is None else today
    applied = _applied(path, run, now, suite_ids, ())
    other = next((problem for problem in applied.problems if problem.kind == "implementation"), None)
    if other is not None:
        raise UsageError(f"{printable(str(path))}: {other.message}")
    text = update(path, applied, now, when=when)
    return text, 0 if text == read_text(path) else 1


def script_command(run: RunLike) -> tuple[str, int]:
    """`quantspec expect script RESULT`: a starter file with the failures of the run. UsageError for a run without a name."""
    name = run_info(run.header)["name"]
    if not name:
        raise UsageError("the result does not name its implementation")
    return script(run.results, implementation=name), 0
