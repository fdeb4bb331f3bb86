"""A result file taken apart: everything that its records say is computed anew, and what does not hold is named."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import HarnessError, UsageError
from ..outside import printable
from ..protocol.messages import PROTOCOL
from ..suite.case import Case
from ..suite.select import select
from ..suite.store import load_all, suite_digest, vectors_root
from ..testing.profiles import PROFILES
from .consistency import against_case, within
from .header import spec_digest
from .reader import Assembly, scan
from .record import RunRecord

__all__ = ["Known", "installed", "verify"]

#: Faults that are named; the rest is counted.
MOST = 100
#: Missing cases that are named each.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Known:
    """A suite that a file can be held against: its digest and its cases by id."""

    digest: str
    cases: Mapping[str, Case]


@cache
def installed(root: Path | None = None) -> Known:
    """The suite that is shipped with this package. DamagedError where it is damaged."""
    root = vectors_root() if root is None else root
    return Known(suite_digest(root), {case.id: case for case in load_all(root)})


def verify(path: Path, *, suite: Known | None = None) -> list[str]:
    """What is wrong with a result file, a sentence each; empty where nothing is.

    Cases are held against `suite` (None: the installed one) where the file was made with that very suite. A run that did not
    come to its end is no fault of the file if its footer says so. UsageError where there is no such file to read.
    """
    faults: Iterator[str] = _faults(path, suite)
    found = list(islice(faults, MOST))
    rest = sum(1 for _ in faults)
    return [*found, f"and {rest} more"] if rest else found


def _faults(path: Path, suite: Known | None) -> Iterator[str]:
    made = Assembly()
    number = 0
    for line in scan(path):
        number = line.number
        fault = made.take(line)
        if fault:
            yield f"line {number}: {fault}"
    if made.header is None:
        yield "no whole header: no result file" if number else "the file is empty"
        return
    run = made.run
    if made.footer is None:
        yield "no footer: the run was killed, or the end of the file is missing"
    if made.altered:
        yield made.altered
    yield from _header(run.header)
    same_spec = run.header["spec"]["digest"] == spec_digest()
    for record in run.results:
        yield from (
            f"line {made.lines[record.id]}: {record.id}: {fault}" for fault in within(record, known_rules=same_spec)
        )
    if run.footer is not None:
        yield from _footer(run, run.footer)
    known = suite if suite is not None else installed()
    if run.header["suite"]["digest"] == known.digest:
        yield from _held(run, made, known)


def _header(header: Mapping[str, Any]) -> Iterator[str]:
    """What cannot be in a header that follows the schema."""
    for name in (header["protocol"], header["implementation"]["protocol"]):
        if int(name.partition(".")[0]) != PROTOCOL[0]:
            yield f"line 1: protocol {name}; allowed: {PROTOCOL[0]}.x"
    if _time(header["started"]) is None:
        yield f"line 1: started {header['started']!r} is no time"


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _footer(run: RunRecord, footer: Mapping[str, Any]) -> Iterator[str]:
    """What the footer says that the cases do not."""
    counted = Counter(record.outcome for record in run.results)
    for outcome in sorted(set(counted) | set(footer["totals"])):
        if counted[outcome] != footer["totals"].get(outcome, 0):
            yield f"footer: {footer['totals'].get(outcome, 0)} of outcome {outcome}; the file has {counted[outcome]}"
    if footer["notrun"] != counted["notrun"]:
        yield f"footer: {footer['notrun']} not run; the file has {counted['notrun']}"
    if footer["complete"] and (footer["interrupted"] or counted["notrun"]):
        why = "interrupted" if footer["interrupted"] else f"without {counted['notrun']} cases"
        yield f"footer: complete, and yet {why}"
    started, ended = _time(run.header["started"]), _time(footer["ended"])
    if ended is None:
        yield f"footer: ended {footer['ended']!r} is no time"
    elif started is not None and ended < started:
        yield f"footer: ended {footer['ended']}, before it started"
    if len(run.results) > run.header["suite"]["cases"]:
        yield f"{len(run.results)} cases of a suite of {run.header['suite']['cases']}"


def _held(run: RunRecord, made: Assembly, known: Known) -> Iterator[str]:
    """The cases against the suite that they were made with."""
    if run.header["suite"]["cases"] != len(known.cases):
        yield f"line 1: a suite of {run.header['suite']['cases']} cases; the one of this digest has {len(known.cases)}"
    for record in run.results:
        where = f"line {made.lines[record.id]}: {record.id}"
        case = known.cases.get(record.id)
        if case is None:
            yield f"{where}: the suite has no such case"
            continue
        yield from (f"{where}: {fault}" for fault in against_case(record, case))
    try:
        chosen = _chosen(run.header["selection"], known)
    except HarnessError as error:
        yield f"line 1: the selection cannot be made: {printable(str(error))[:200]}"
        return
    if run.footer is not None:  # a run that was killed could not name what it left out
        missing = [case_id for case_id in chosen if case_id not in made.results]
        yield from (f"{case_id} was selected and has no result, not even notrun" for case_id in missing[:NAMED])
        if len(missing) > NAMED:
            yield f"{len(missing) - NAMED} more that were selected have no result"
    wanted = set(chosen)
    surplus = [record.id for record in run.results if record.id in known.cases and record.id not in wanted]
    yield from (f"line {made.lines[case_id]}: {case_id} was not selected" for case_id in surplus)


def _chosen(selection: Mapping[str, Any], known: Known) -> list[str]:
    """The ids that a selection stands for. HarnessError for an expression or a profile that is none."""
    levels, profile = selection["levels"], selection["profile"]
    if profile and profile not in PROFILES:
        raise UsageError(f"{profile!r} is no profile; there are {', '.join(PROFILES)}")
    cases = [case for case in known.cases.values() if not levels or case.level in levels]
    if profile:
        cases = [case for case in cases if PROFILES[profile].holds(case)]
    return [case.id for case in select(cases, selection["expression"])]
