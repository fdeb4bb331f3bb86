"""`quantspec peers`: environments, runs, one folder of results, and the matrix of who agrees; a peer that fails is a row too."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from quantspec import SCALES

from ..errors import INTERRUPTED, UsageError
from ..expect import apply, read, run_info
from ..outside import reason_of
from ..resultset.reader import read_run
from ..resultset.record import CaseRecord
from ..suite.outcome import OUTCOMES
from ..suitecommand import shipped
from .causes import causes, expectations, sort_out
from .environment import address, prepare, ready, warm
from .table import Peer, peers

__all__ = [
    "Outcome",
    "compact",
    "evaluate",
    "expect_command",
    "list_command",
    "prepare_command",
    "run_command",
    "select",
]

SCHEMA = "peers-1"
#: Seconds for a peer's whole run, and for one of its requests.
RUN_TIMEOUT, REQUEST_TIMEOUT = 1800.0, 60.0
WRONG = tuple(outcome for outcome in OUTCOMES if outcome not in ("pass", "unsupported", "skipped", "notrun"))


@dataclass(slots=True)
class Outcome:
    """What became of a peer. status: as-expected, differs, failed (it broke or was not installed), interrupted."""

    peer: Peer
    status: str
    detail: str = ""
    seconds: float = 0.0
    header: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[CaseRecord] = ()
    unexplained: tuple[str, ...] = ()  #: wrong cases that no entry foresees
    problems: tuple[str, ...] = ()  #: of the expectations: passes against them, other wrong bits

    @property
    def line(self) -> str:
        """A row of the table."""
        counts = Counter(result.outcome for result in self.results)
        wrong = sum(counts[outcome] for outcome in WRONG)
        return (
            f"{self.peer.name:<19} {self.version or '-':<14} {self.status:<12} {counts['pass']:>5} {wrong:>6} "
            f"{len(self.unexplained):>6} {counts['unsupported']:>6} {self.seconds:>6.1f}  {self.detail}".rstrip()
        )

    @property
    def version(self) -> str:
        """The version that its adapter told."""
        return str(self.header.get("implementation", {}).get("version", ""))


TITLE = f"{'peer':<19} {'version':<14} {'status':<12} {'pass':>5} {'differ':>6} {'unexpl':>6} {'unsupp':>6} {'s':>6}"
Install = Callable[[Peer], tuple[str, float]]


def select(patterns: Sequence[str]) -> list[Peer]:
    """The peers that any of the patterns matches, all where none is given. UsageError where one matches none."""
    for pattern in patterns:
        if not any(fnmatchcase(peer.name, pattern) for peer in peers()):
            raise UsageError(
                f"--only {pattern!r} matches no peer; there are {', '.join(peer.name for peer in peers())}"
            )
    return [peer for peer in peers() if not patterns or any(fnmatchcase(peer.name, p) for p in patterns)]


def list_command(only: Sequence[str]) -> int:
    """Print each peer: what is pinned, whether it is installed, what it answers for."""
    for peer in select(only):
        click.echo(f"{peer.name:<19} {peer.version:<10} {'ready' if ready(peer) else '-':<6} {', '.join(peer.formats)}")
    return 0


def prepare_command(only: Sequence[str], *, install: Install = prepare) -> int:
    """Build the environments; 1 where one could not be."""
    failed = 0
    for peer in select(only):
        why, seconds = install(peer)
        failed += bool(why)
        click.echo(f"{peer.name:<19} {f'FAILED: {why}' if why else 'ready'} ({seconds:.0f} s)")
    return 1 if failed else 0


def run_command(
    only: Sequence[str], *, out: Path, level: int, install: Install = prepare,
    execute: Callable[[Peer, Path, int], str] | None = None,
) -> int:  # fmt: skip
    """Prepare and run each peer; results, matrix.json and a compact file a peer in `out`. 1 where anything is not as expected."""
    chosen = select(only)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {str(out)!r}: {reason_of(error)}") from None
    found: list[Outcome] = []
    interrupted = False
    click.echo(TITLE)
    for peer in chosen:
        try:
            found.append(_one(peer, out, level, install, execute or _execute))
        except KeyboardInterrupt:  # what is finished stays
            found.append(Outcome(peer, "interrupted"))
            interrupted = True
        click.echo(found[-1].line)
        if interrupted:
            break
    _write(out, found, level)
    click.echo(f"results in {out}" + ("; interrupted" if interrupted else ""))
    return INTERRUPTED if interrupted else 0 if all(outcome.status == "as-expected" for outcome in found) else 1


def _one(peer: Peer, out: Path, level: int, install: Install, execute: Callable[[Peer, Path, int], str]) -> Outcome:
    why, _ = install(peer)
    if why:
        return Outcome(peer, "failed", f"not installed: {why}")
    started = time.monotonic()
    path = out / f"{peer.name}.jsonl"
    path.unlink(missing_ok=True)
    detail = execute(peer, path, level)
    seconds = time.monotonic() - started
    return evaluate(peer, path, detail=detail, seconds=seconds)


def evaluate(peer: Peer, path: Path, *, detail: str = "", seconds: float = 0.0) -> Outcome:
    """A result file against the expectations of the peer; the suite is the one that is shipped."""
    if not path.exists():
        return Outcome(peer, "failed", detail or "no result", seconds)
    run = read_run(path)
    outcome = Outcome(peer, "as-expected", detail, seconds, run.header, tuple(run.results))
    left = [result for result in outcome.results if result.outcome in WRONG]
    if peer.expect.exists():
        ids = [case.id for case in shipped()]
        found = apply(read(peer.expect), run.results, run_info(run.header), datetime.now(UTC).date(), suite_ids=ids)
        left = [row.result for row in found.unexpected if isinstance(row.result, CaseRecord)]
        outcome.problems = tuple(str(problem) for problem in found.problems)
    outcome.unexplained = tuple(result.id for result in left)
    if detail or not run.complete:
        outcome.status = "failed"
    elif outcome.unexplained or outcome.problems:
        outcome.status, outcome.detail = "differs", "; ".join(outcome.problems[:2])
    if outcome.version and outcome.version.partition("+")[0] != peer.version:
        outcome.detail = f"{outcome.detail}; version {outcome.version}, explained is {peer.version}".lstrip("; ")
    return outcome


def _execute(peer: Peer, path: Path, level: int) -> str:
    """The suite in a process of its own; what broke, or ""."""
    if why := warm(peer):
        return why
    where, variables = address(peer)
    command = [sys.executable, "-m", "quantspec_conformance", "run", "--impl", where, "--level", str(level)]
    command += ["--out", str(path), "--first", "0", "--timeout", f"{REQUEST_TIMEOUT:g}"]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
        env=variables, process_group=0,
    )  # fmt: skip
    try:
        _, said = process.communicate(timeout=RUN_TIMEOUT)
    except subprocess.TimeoutExpired:
        _end(process)
        return f"not done after {RUN_TIMEOUT:g} s"
    except BaseException:
        _end(process)
        raise
    if process.returncode in (0, 1):
        return ""
    lines = said.strip().splitlines() or [f"exit status {process.returncode}"]
    return lines[-1][:300]


def _end(process: "subprocess.Popen[str]") -> None:
    """Ask the run to stop, which ends what it started; then end it."""
    for number, seconds in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=seconds)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
        return


def compact(outcome: Outcome) -> dict[str, Any]:
    """A peer's result in a few lines: counts, a table by operation and format, what is explained by what."""
    explained, _ = sort_out(outcome.peer.name, outcome.results, causes())
    table: dict[str, Counter[str]] = {}
    for result in outcome.results:
        if result.outcome != "unsupported":
            table.setdefault(_group(result.id), Counter())[result.outcome] += 1
    return {
        "schema": SCHEMA,
        "peer": outcome.peer.name,
        "version": outcome.version,
        "date": str(outcome.header.get("started", ""))[:10],
        "suite": outcome.header.get("suite", {}),
        "status": outcome.status,
        "detail": outcome.detail,
        "outcomes": dict(Counter(result.outcome for result in outcome.results)),
        "unexplained": [*outcome.unexplained],
        "formats": {group: dict(counts) for group, counts in sorted(table.items())},
        "causes": [
            {"kind": cause.kind, "fault": cause.fault, "cases": len(rows), "reason": cause.reason, "first": rows[0].id}
            for cause, rows in explained.items()
        ],
    }


def _group(case_id: str) -> str:
    """operation.value, with the types of its scales."""
    op, what, *_ = case_id.split(".")
    if op == "doc":
        return f"doc.{what}"
    value, *rest = what.split("-")
    scales = [part for part in rest if part in SCALES]
    return ".".join([op, "-".join([value, *scales])])


def _write(out: Path, found: Iterable[Outcome], level: int) -> None:
    rows = [compact(outcome) for outcome in found]
    groups = sorted({group for row in rows for group in row["formats"]})
    matrix = {
        "schema": SCHEMA,
        "level": level,
        "date": datetime.now(UTC).date().isoformat(),
        "peers": [{key: row[key] for key in ("peer", "version", "status", "detail", "outcomes")} for row in rows],
        "groups": {
            group: {row["peer"]: row["formats"][group] for row in rows if group in row["formats"]} for group in groups
        },
    }
    for name, content in [("matrix", matrix), *((f"{row['peer']}.summary", row) for row in rows)]:
        (out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def expect_command(only: Sequence[str], results: Path) -> int:
    """Write expect/NAME.toml of each peer that has a result in the folder, and the summaries; 1 where a case has no cause."""
    left = 0
    found: list[Outcome] = []
    for peer in select(only):
        path = results / f"{peer.name}.jsonl"
        if not path.exists():
            click.echo(f"{peer.name:<19} no result in {results}")
            continue
        rows = list(read_run(path).results)
        peer.expect.parent.mkdir(exist_ok=True)
        peer.expect.write_text(expectations(peer.name, rows, causes()), "utf-8", newline="\n")
        explained, unexplained = sort_out(peer.name, rows, causes())
        left += len(unexplained)
        click.echo(f"{peer.name:<19} {sum(map(len, explained.values())):>4} explained, {len(unexplained)} not")
        found.append(evaluate(peer, path))
        for result in unexplained:
            click.echo(f"    {result.outcome} {result.id} {result.rule} {result.reason.strip().splitlines()[-1][:90]}")
    _write(results, found, 1)
    return 1 if left else 0
