"""Kernels next to the best copy of the machine and next to other libraries, in the same repetitions.

    python benchmarks/bench_peers.py [--device pocl] [--elements 2^24] [--only mxfp4] [--prepare] [--resume] [--json FILE]

A peer runs in a process of its own environment (`quantspec peers`), which makes the same numbers, is called until it is warm
(compiled, where the row says so) and then times one call whenever it is told to. In every repetition three copies, our
kernels, our whole verb (checks included, `out=` an earlier result) and the peer take turns; all of them may use every core. A
peer finds the memory that it freed before, so neither side pays for new pages. Reported are medians over repetitions of the
quotient in each. A row that cannot be measured says why. Rows: peer_rows.py.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import quantspec_cl as qc
from bench_kernels import copies
from kernel_rows import Row
from peer_calls import data
from peer_rows import FORMATS, VERB, Format, Lack, PeerRow, cells, verb_of
from peer_worker import Refused, Worker, command
from quantspec_conformance.peers.environment import prepare, ready
from quantspec_conformance.peers.table import Peer, peers
from store import Store, elements_of, read, run
from subjects import Subject, loops_for, median_ratio, rows_in_turn, subject, timed

BUDGET = 10.0  #: seconds after which a slow row stops at three repetitions


@dataclass(frozen=True)
class Result:
    """A cell: measured, or with the reason why not."""

    format: str
    scheme: str
    direction: str
    peer: str
    version: str
    note: str
    less: str  #: what the peer leaves out
    elements: int
    reason: str  #: "" where it was measured
    kernel_seconds: float = 0.0  #: medians
    verb_seconds: float = 0.0
    peer_seconds: float = 0.0
    copy_ratio: float = 0.0  #: our bytes a second over those of the best copy
    peer_copy_ratio: float = 0.0  #: the peer's, as if it moved the bytes that the scheme needs
    times: float = 0.0  #: peer over kernels
    times_verb: float = 0.0  #: peer over verb

    @property
    def told(self) -> dict[str, Any]:
        """Its row of the file: without numbers where there are none."""
        return {name: each for name, each in asdict(self).items() if not (self.reason and isinstance(each, float))}

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it one cell."""
        return self.format, self.direction, self.peer, self.note


def least(row: PeerRow, form: Format, direction: str, elements: int) -> int:
    """Bytes that a call must return at least: a worker that does nothing is found out."""
    bits = 32 if direction == "dequantize" else 4 if form.name in ("mxfp4", "nvfp4", "int4", "nf4") else 8
    return elements * bits // 8


def measure(ours: Subject, worker: Worker, copy: Sequence[Any], copied: int, repeats: int) -> dict[str, float]:
    """The turns of one cell."""
    calls = {f"copy {n}": timed(each) for n, each in enumerate(copy)}
    calls |= {
        "kernels": timed(ours.kernels, loops_for(ours.kernels)),
        "verb": timed(ours.verb, loops_for(ours.verb)),
        "peer": worker.seconds,
    }
    found = rows_in_turn(calls, repeats, BUDGET)
    best = [min(each) for each in zip(*(found[f"copy {n}"] for n in range(len(copy))), strict=True)]
    share = ours.moved / copied
    return {
        "kernel_seconds": median(found["kernels"]),
        "verb_seconds": median(found["verb"]),
        "peer_seconds": median(found["peer"]),
        "copy_ratio": share * median_ratio(best, found["kernels"]),
        "peer_copy_ratio": share * median_ratio(best, found["peer"]),
        "times": median_ratio(found["peer"], found["kernels"]),
        "times_verb": median_ratio(found["peer"], found["verb"]),
    }


def told(
    cell: tuple[Format, str, PeerRow | Lack], version: str, elements: int, reason: str, **numbers: float
) -> Result:
    """The result of a cell."""
    form, direction, row = cell
    note, less = (row.note, row.less) if isinstance(row, PeerRow) else ("", "")
    return Result(form.name, form.scheme, direction, row.peer, version, note, less, elements, reason, **numbers)


def timed_cell(
    cell: tuple[Format, str, PeerRow], peer: Peer, ours: Subject, copy: Sequence[Any], repeats: int
) -> Result:
    """One row of the table in one direction, with the worker of its peer."""
    form, direction, row = cell
    arguments = [direction if each == VERB else each for each in row.arguments]
    if not ready(peer):
        reason = f"not installed: quantspec peers prepare --only {peer.name}"
        return told(cell, peer.version, ours.elements, reason)
    version = peer.version
    try:
        with Worker(command(peer, row.call, arguments, ours.elements)) as worker:
            version, needed = worker.version, least(row, form, direction, ours.elements)
            if worker.bytes < needed:
                raise Refused(f"its call returns {worker.bytes} bytes; {needed} at least hold {ours.elements} elements")
            numbers = measure(ours, worker, copy, 2 * 4 * ours.elements, repeats)
    except Refused as refused:
        return told(cell, version, ours.elements, str(refused))
    return told(cell, version, ours.elements, "", **numbers)


def line(result: Result) -> tuple[str, ...]:
    """A row of the table on the screen."""
    name = f"{result.peer} {result.version}" + (f" ({result.note})" if result.note else "")
    if result.reason:
        return f"{result.format} {result.direction}", name, "", "", "", "", "", result.reason
    numbers = (1e3 * result.kernel_seconds, 1e3 * result.peer_seconds)
    ratios = (result.copy_ratio, result.times, result.times_verb)
    shown = [f"{number:.2f}" for number in (*numbers, *ratios)]
    return f"{result.format} {result.direction}", name, *shown, result.less


def report(results: Sequence[Result], title: str) -> None:
    """The table."""
    table = Table(title=title, title_justify="left")
    for heading in (
        "format",
        "peer",
        "ours ms",
        "peer ms",
        "of copy",
        "x peer",
        "x (verb)",
        "why not, or what it leaves out",
    ):
        table.add_column(heading, justify="right" if heading[0] in "ox" or "ms" in heading else "left")
    for result in results:
        table.add_row(*line(result))
    Console(width=170).print(table)


def main() -> int:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as quantspec_cl.open_device takes it")
    parser.add_argument("--elements", type=elements_of, default="2^24", help="a number, or 2^n (default 2^24)")
    parser.add_argument("--only", default="", help="rows whose format, direction or peer contains this")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--prepare", action="store_true", help="first install what is not there (5 GB, most of it torch)"
    )
    parser.add_argument("--resume", action="store_true", help="keep the rows that the JSON file has")
    parser.add_argument("--json", type=Path, default=Path("build/bench_peers.json"), help="where to save the results")
    options = parser.parse_args()
    known = {peer.name: peer for peer in peers()}
    chosen = [c for c in cells() if options.only in f"{c[0].name} {c[1]} {c[2].peer}"]
    failed: dict[str, str] = {}
    if options.prepare:
        for name in dict.fromkeys(cell[2].peer for cell in chosen):
            if not ready(known[name]):
                print(f"installing {name} into {known[name].environment}", flush=True)
            failed[name] = prepare(known[name])[0]
    session = qc.open_device(options.device)
    title = f"{session.info.platform}, {session.info.name}: {options.elements} elements"
    store = Store(options.json, title)
    if options.resume and options.json.exists():
        before = read(options.json)
        if before["title"] != title:
            raise ValueError(
                f"{options.json} is of another run ({before['title']}); leave --resume away, or name another file"
            )
        store.results = before["results"]
    kept = {Result(**each).key for each in store.results}
    x = data(options.elements)
    copy = list(copies(session, 4 * x.size).values())
    ours: dict[tuple[str, str], Subject] = {}
    for form, direction, row in chosen:
        at = (form.name, direction)
        if isinstance(row, Lack):
            result = told((form, direction, row), known[row.peer].version, x.size, row.reason)
        elif failed.get(row.peer):
            result = told((form, direction, row), known[row.peer].version, x.size, f"not installed: {failed[row.peer]}")
        elif (*at, row.peer, row.note) in kept:
            continue
        else:
            if at not in ours:
                ours = {at: subject(session, Row(form.name, form.scheme, verb_of(form, direction)), x)}
            result = timed_cell((form, direction, row), known[row.peer], ours[at], copy, options.repeats)
        if result.key not in kept:
            store.add(result.told)
            print("  ".join(part for part in line(result) if part), flush=True)
    order = [form.name for form in FORMATS]
    store.results.sort(key=lambda each: order.index(each["format"]))
    store.save()
    report([Result(**each) for each in store.results], title)
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))
