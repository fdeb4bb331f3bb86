"""A run of the suite as text: who it was, a row an operation, failure blocks, what the expectations say, the verdict."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import quantspec

from .expect import Applied
from .outside import printable
from .protocol.messages import Identity
from .spec import rule_line
from .suite.case import Case
from .suite.outcome import OUTCOMES, CaseResult
from .testing.profiles import PROFILES, met
from .triage.block import failure_block, repro_line

__all__ = ["Told", "print_run"]

#: Outcomes that get a failure block.
SHOWN = ("fail", "reject-missing", "wrong-error", "nondeterministic", "error", "crash", "timeout")

#: Features that are listed as lacking.
LACKING = 10


@dataclass(frozen=True, slots=True)
class Told:
    """A run that is over."""

    address: str
    identity: Identity | None
    results: Sequence[CaseResult]
    cases: Sequence[Case]
    gate: Sequence[str]
    stopped: bool
    extra: Sequence[str] = ()  #: options that a repro line needs
    warnings: Sequence[str] = ()  #: what means nothing in an identity or a file, a line each


def print_run(
    out: Console,
    told: Told,
    suite: tuple[str, str, int],
    applied: Applied | None,
    *,
    first: int,
    level: int,
    profile: str,
    out_file: Path | None = None,
    code: int,
) -> None:
    """The whole report."""
    digest, version, whole = suite
    which = f"suite {version} ({digest[:12]}): {len(told.cases)} of {whole} cases, level {level}"
    out.print(Text(f"quantspec {quantspec.__version__}, {which}"), soft_wrap=True)
    if told.identity is not None:
        out.print(Text(f"impl      {_named(told)}"), soft_wrap=True)
    out.print()
    out.print(_table(told))
    by_id = {case.id: case for case in told.cases}
    bad = [result for result in told.results if result.outcome in SHOWN]
    foreseen = {row.result.id for row in applied.results if row.comparison} if applied is not None else set()
    fresh = [result for result in bad if result.id not in foreseen]
    for result in fresh[:first]:
        out.print()
        repro = repro_line("replay", result.id, told.address, told.extra)
        out.print(Text(failure_block(by_id[result.id], result, told.address, repro=repro)), soft_wrap=True)
    _known(out, told, first)
    _rules(out, bad, len(fresh) - first)
    _lacking(out, told)
    for line in told.warnings:
        out.print(Text(printable(line), style="yellow"), soft_wrap=True)
    for line in told.gate:
        out.print(Text(f"echo      {printable(line)}", style="yellow"), soft_wrap=True)
    if applied is not None:
        _expectations(out, applied)
    if profile:
        _claim(out, told, profile)
    _verdict(out, told, code, level)
    if out_file is not None:
        out.print(Text(f"result written to {printable(str(out_file))}"), soft_wrap=True)


def _named(told: Told) -> str:
    identity = told.identity
    if identity is None:
        return told.address
    parts = (identity.version, identity.language, identity.device, identity.driver, identity.build)
    rest = ", ".join(printable(part) for part in parts if part)
    return f"{printable(told.address)}: {printable(identity.name)}{f' ({rest})' if rest else ''}"


def _table(told: Told) -> Table:
    """A row an operation, a column an outcome that occurred."""
    op = {case.id: case.op for case in told.cases}
    counts: dict[str, Counter[str]] = {}
    for result in told.results:
        counts.setdefault(op[result.id], Counter())[result.outcome] += 1
    shown = [outcome for outcome in OUTCOMES if any(row[outcome] for row in counts.values())]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("operation", no_wrap=True)
    for outcome in shown:
        table.add_column(outcome, justify="right", no_wrap=True)
    for name, row in counts.items():
        table.add_row(name, *(_cell(outcome, row[outcome]) for outcome in shown))
    table.add_section()
    totals = [sum(row[outcome] for row in counts.values()) for outcome in shown]
    table.add_row("all", *(_cell(outcome, count) for outcome, count in zip(shown, totals, strict=True)))
    return table


def _cell(outcome: str, count: int) -> Text:
    style = "" if not count else "green" if outcome == "pass" else "bold red" if outcome in SHOWN else "yellow"
    return Text(str(count) if count else "", style=style)


def _known(out: Console, told: Told, first: int) -> None:
    """What the implementation says that it knows it gets wrong, with the ticket."""
    known = [result for result in told.results if result.outcome == "known"]
    for result in known[:first]:
        out.print(Text(f"known     {result.id}: {printable(result.reason)}", style="yellow"), soft_wrap=True)
    if len(known) > first:
        out.print(f"          and {len(known) - first} more; an expectation of outcome `known` makes them expected")


def _lacking(out: Console, told: Told) -> None:
    """What cases were turned down for: a reason begins with the feature that is lacking."""
    reasons = [result.reason for result in told.results if result.outcome == "unsupported"]
    counts = Counter((reason.split(maxsplit=1) or ["?"])[0].rstrip(":") for reason in reasons)
    if counts:
        out.print()
        out.print("not supported, by what is lacking:")
    for feature, count in counts.most_common(LACKING):
        out.print(Text(f"  {count:6d}  {printable(feature)[:80]}"), soft_wrap=True)
    if len(counts) > LACKING:
        out.print(f"          and {len(counts) - LACKING} more (--out keeps all)")


def _rules(out: Console, bad: Sequence[CaseResult], hidden: int) -> None:
    """The rules that failures point to."""
    counts = Counter(result.rule for result in bad if result.rule)
    if hidden > 0:
        out.print()
        out.print(f"and {hidden} more (--first shows more; --out keeps all)")
    if counts:
        out.print()
        out.print("rules that the failures point to:")
    for rule, count in counts.most_common(20):
        out.print(Text(f"  {count:6d}  {rule_line(rule)}"), soft_wrap=True)


def _expectations(out: Console, applied: Applied) -> None:
    out.print()
    counts = ", ".join(f"{count} {name or 'without an entry'}" for name, count in applied.totals.items())
    out.print(Text(f"expect    {printable(str(applied.expectations.path))}: {counts}"), soft_wrap=True)
    for problem in applied.problems:
        style = "yellow" if problem.downgraded else "bold red"
        out.print(Text(f"          {printable(str(problem))}", style=style), soft_wrap=True)


def _claim(out: Console, told: Told, profile: str) -> None:
    """Whether the run bears the claim of a profile."""
    held, reasons = met(profile, {result.id: result for result in told.results}, cases=told.cases)
    out.print()
    title = PROFILES[profile].title
    word, style = ("holds", "bold green") if held else ("does not hold", "bold red")
    out.print(Text(f"profile   {profile} {word} at these levels: {title}", style=style), soft_wrap=True)
    for reason in reasons:
        out.print(Text(f"          {printable(reason)}"), soft_wrap=True)


def _verdict(out: Console, told: Told, code: int, level: int) -> None:
    counts = Counter(result.outcome for result in told.results)
    unsupported = counts["unsupported"]
    out.print()
    if told.stopped:
        out.print(Text("interrupted: what was done until then is shown", style="bold yellow"))
    if unsupported:
        share = 100 * unsupported / max(len(told.results), 1)
        out.print(f"unsupported: {unsupported} of {len(told.results)} cases ({share:.1f} %): no pass, no fail (CNF-5)")
    if level == 0:
        out.print(Text("level 0 is a first look, NOT a conformance run (CNF-4); --level 1 is one", style="yellow"))
    verdict = "interrupted" if told.stopped else "as expected" if code == 0 else "NOT as expected"
    out.print(
        Text(f"{told.address}: {verdict}, exit code {code}", style="green" if code == 0 else "bold red"), soft_wrap=True
    )
