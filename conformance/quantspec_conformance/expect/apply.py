"""Expectations against the results of a run, strict both ways: what fails unforeseen and what passes against an entry both count.

A file that says too much is at fault like one that says too little: ids that match nothing, dates that are over, ceilings that
are passed, and two entries that say different things of one case are problems, and a run with a problem is not as expected.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from ..errors import UsageError
from ..outside import printable
from ..suite.case import CASE_ID
from ..suite.outcome import OUTCOMES
from .globs import Ids
from .records import Entry, Expectations
from .verdict import CHANGED, ResultLike, signature, verdict
from .versions import version_key
from .when import WhenError

__all__ = ["PROBLEMS", "Applied", "Compared", "Problem", "apply", "stale"]

#: Kinds of problems, in the order in which they are told.
PROBLEMS = ("implementation", "when", "stale", "unmatched", "ceiling", "contradiction", "xpass", "changed")
#: Outcomes that need no entry.
FINE = ("pass", "unsupported")
#: Entries of one case that are held against each other.
MOST = 8


@dataclass(frozen=True, slots=True)
class Compared:
    """A result, what was expected, and how they compare: "", xfail, xpass, changed or waived. `entry`: the number, 0 for none."""

    result: ResultLike
    expected: str
    comparison: str
    entry: int = 0
    flaky: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the expectations, or against them. `entry` is a number, 0 for the file; `ids`: cases, or a glob."""

    kind: str
    message: str
    entry: int = 0
    ids: tuple[str, ...] = ()
    downgraded: bool = False

    def __str__(self) -> str:
        where = f"entry {self.entry}: " if self.entry else ""
        return f"{'warning: ' if self.downgraded else ''}{where}{self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A run against its expectations. `matched`: entry number -> glob -> ids of the run, whether the entry is active or not."""

    expectations: Expectations
    results: tuple[Compared, ...]
    problems: tuple[Problem, ...]
    active: tuple[int, ...]
    matched: Mapping[int, Mapping[str, tuple[str, ...]]]
    info: Mapping[str, str] = field(default_factory=dict)

    @property
    def unexpected(self) -> tuple[Compared, ...]:
        """Results that no entry foresees and that are neither a pass nor unsupported."""
        return tuple(row for row in self.results if not row.comparison and not _fine(row))

    @property
    def flaky(self) -> dict[str, int]:
        """Results under flaky entries: how many passed, how many failed as their entry says."""
        rows = [row for row in self.results if row.flaky]
        return {
            "passed": sum(row.result.outcome == "pass" for row in rows),
            "failed": sum(row.comparison == "xfail" for row in rows),
        }

    @property
    def totals(self) -> dict[str, int]:
        """Results by comparison, those that occurred; "" is without any."""
        names = ("", "xfail", "xpass", "changed", "waived")
        found = {name: sum(row.comparison == name for row in self.results) for name in names}
        return {name: count for name, count in found.items() if count}

    @property
    def exit_code(self) -> int:
        """0 where every result is fine or foreseen and there is no problem, else 1."""
        downgraded = {problem.kind for problem in self.problems if problem.downgraded}
        fine = {"xfail", "waived"} | (downgraded & {"xpass", "changed"})
        good = all(row.comparison in fine or (not row.comparison and _fine(row)) for row in self.results)
        return 0 if good and all(problem.downgraded for problem in self.problems) else 1


def _fine(row: Compared) -> bool:
    return row.result.outcome in FINE


def apply(
    expectations: Expectations,
    results: Iterable[ResultLike],
    info: Mapping[str, str],
    today: date,
    *,
    suite_ids: Collection[str] | None = None,
    downgrade: Collection[str] = (),
) -> Applied:
    """The comparison of every result, and every problem.

    `info`: name and the names of conditions (`run_info`). `suite_ids`: all ids of the suite, so that an entry for cases
    outside the selection is no problem; without it each glob must match a result. `downgrade`: kinds of problems that only warn.
    UsageError for results that are none.
    """
    rows = list(results)
    _check(rows, downgrade)
    here, everywhere = Ids(row.id for row in rows), Ids(suite_ids or ())
    matched = {entry.number: {glob: here.matching(glob) for glob in entry.ids} for entry in expectations.entries}
    problems = [_implementation(expectations, info)]
    active: list[Entry] = []
    for entry in expectations.entries:
        found, holds = _own_problems(entry, matched[entry.number], everywhere, info, today)
        problems += found
        active += [entry] if holds else []
    by_id: dict[str, list[Entry]] = defaultdict(list)
    for entry in active:
        for name in dict.fromkeys(name for names in matched[entry.number].values() for name in names):
            by_id[name].append(entry)
    compared = tuple(_compare(row, by_id.get(row.id, [])) for row in rows)
    problems += [*_contradictions(by_id), *_surprises(compared, expectations)]
    ordered = sorted((p for p in problems if p is not None), key=lambda p: (p.entry, PROBLEMS.index(p.kind)))
    told = tuple(Problem(p.kind, p.message, p.entry, p.ids, p.kind in downgrade) for p in ordered)
    return Applied(expectations, compared, told, tuple(entry.number for entry in active), matched, dict(info))


def _check(rows: Sequence[ResultLike], downgrade: Collection[str]) -> None:
    for kind in downgrade:
        if kind not in PROBLEMS:
            raise UsageError(f"{printable(kind)!r} is no kind of problem; allowed: {', '.join(PROBLEMS)}")
    seen: set[str] = set()
    for row in rows:
        shown = printable(repr(row.id))[:80]
        if not CASE_ID.fullmatch(row.id):
            raise UsageError(f"the results hold {shown}, which is no case id")
        if row.id in seen:
            raise UsageError(f"the results hold {shown} twice")
        if row.outcome not in OUTCOMES:
            raise UsageError(
                f"the result of {shown} is {printable(repr(row.outcome))[:40]}; allowed: {', '.join(OUTCOMES)}"
            )
        seen.add(row.id)


def _implementation(expectations: Expectations, info: Mapping[str, str]) -> Problem | None:
    name = info.get("name", "")
    if name == expectations.implementation:
        return None
    text = f"the file is of {expectations.implementation!r}, the run of {name!r}"
    return Problem("implementation", printable(text))


def _own_problems(
    entry: Entry, matched: Mapping[str, tuple[str, ...]], everywhere: Ids, info: Mapping[str, str], today: date
) -> tuple[list[Problem], bool]:
    """What is wrong with an entry by itself, and whether its condition holds."""
    found: list[Problem] = []
    try:
        holds = entry.when is None or entry.when.holds(info)
    except WhenError as error:
        found.append(Problem("when", str(error), entry.number))
        holds = False
    over = stale(entry, info, today)
    if over:
        found.append(Problem("stale", over, entry.number))
    for glob, names in matched.items():
        if not names and not everywhere.matching(glob):
            found.append(Problem("unmatched", f"{glob} matches no case", entry.number, (glob,)))
    ids = {name for names in matched.values() for name in names}
    if entry.max is not None and len(ids) > entry.max and holds:
        text = f"it matches {len(ids)} cases, more than max = {entry.max}"
        found.append(Problem("ceiling", text, entry.number, tuple(sorted(ids))))
    return found, holds


def stale(entry: Entry, info: Mapping[str, str], today: date) -> str:
    """Why an entry is over, or cannot be told to be; "" while it is not."""
    if not entry.until:
        return ""
    if isinstance(entry.until, date):
        return f"until {entry.until} is over; today is {today}" if today > entry.until else ""
    version = info.get("version", "")
    actual, until = version_key(version), version_key(entry.until)
    if actual is None or until is None:
        return f"until {entry.until} cannot be told of version {printable(repr(version))[:60]}"
    return f"until {entry.until} is over; this is {printable(version)[:60]}" if actual > until else ""


def _compare(row: ResultLike, entries: list[Entry]) -> Compared:
    if not entries:
        return Compared(row, "pass", "")
    verdicts = [(verdict(entry, row), entry) for entry in entries]
    first = next((pair for pair in verdicts if pair[0] in CHANGED), verdicts[0])
    name = "changed" if first[0] in CHANGED else first[0]
    return Compared(row, first[1].outcome, name, first[1].number, first[1].kind == "flaky")


def _contradictions(by_id: Mapping[str, list[Entry]]) -> list[Problem]:
    pairs: dict[tuple[int, int], list[str]] = defaultdict(list)
    known: dict[tuple[int, int], bool] = {}
    for name, entries in by_id.items():
        for i, one in enumerate(entries[:MOST]):
            for other in entries[i + 1 : MOST]:
                pair = one.number, other.number
                if pair not in known:
                    known[pair] = _contradict(one, other)
                if known[pair]:
                    pairs[pair].append(name)
    return [
        Problem("contradiction", f"entry {b} says otherwise of {_some(names)}", a, tuple(sorted(names)))
        for (a, b), names in pairs.items()
    ]


def _contradict(one: Entry, other: Entry) -> bool:
    digests = bool(one.digest and other.digest) and not set(one.digest) & set(other.digest)
    parts = zip(*(entry.signature.split("/") if entry.signature else ["*"] * 3 for entry in (one, other)), strict=True)
    signatures = any("*" not in pair and pair[0] != pair[1] for pair in parts)
    return (one.outcome, one.kind) != (other.outcome, other.kind) or digests or signatures


def _surprises(compared: Sequence[Compared], expectations: Expectations) -> list[Problem]:
    """Passes against an entry, and failures other than an entry says, a problem an entry."""
    rows: dict[tuple[int, str], list[Compared]] = defaultdict(list)
    for row in compared:
        if row.comparison in ("xpass", "changed"):
            rows[row.entry, row.comparison].append(row)
    found: list[Problem] = []
    for (number, kind), group in rows.items():
        names = sorted(row.result.id for row in group)
        entry = expectations.entries[number - 1]
        text = f"{_some(names)} passed; {entry.outcome} was expected" if kind == "xpass" else _how(entry, group)
        found.append(Problem(kind, text, number, tuple(names)))
    return found


def _how(entry: Entry, group: Sequence[Compared]) -> str:
    first = group[0].result
    what = {
        "outcome": (entry.outcome, first.outcome),
        "signature": (entry.signature, signature(first)),
        "digest": (
            entry.digest[0] if len(entry.digest) == 1 else f"{len(entry.digest)} digests",
            first.digest or "none",
        ),
    }
    by = verdict(entry, first)
    wanted, got = what[by]
    return printable(f"{by} of {_some([row.result.id for row in group])} is {got}; {wanted} was expected")


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
