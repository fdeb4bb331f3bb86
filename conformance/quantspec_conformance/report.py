"""A run as text: header, progress, the table of value x store, failures, totals. Plain where the output is no terminal."""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from quantspec import SCALES

from .compare import EXPECTED
from .matrix import STORES, Group
from .results import DeviceResult, RunResult, cell_counts
from .spec import rule_line

__all__ = ["console", "print_devices", "print_result", "progress"]

STORE_NAMES = [store for stores in STORES.values() for store in stores]
STORE_ORDER = sorted(STORE_NAMES, key=lambda name: (not name.startswith("native"), name))


class _Plain(Console):
    """A console that leaves it to the command what happens when its reader is gone; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(*, stderr: bool = False) -> Console:
    """A console that writes no control codes where the output is no terminal, 100 columns there."""
    plain = _Plain(stderr=stderr)
    if plain.is_terminal:
        return plain
    width = max(shutil.get_terminal_size((100, 24)).columns, 100)
    return _Plain(stderr=stderr, color_system=None, width=width, legacy_windows=False)


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A bar on stderr with the time left, once it is started; nothing at all where stderr is no terminal."""
    out = console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    )
    bar.add_task("cases", total=total)
    try:
        yield bar
    finally:
        bar.stop()


def print_devices(out: Console, devices: Sequence[DeviceResult]) -> None:
    """Which devices run, and what they said they are."""
    for device in devices:
        if device.unusable:
            out.print(Text(f"device    {device.label}: unusable", style="red"))
            out.print(Text(_indented(device.unusable), style="red"), soft_wrap=True)
            continue
        identity = device.identity
        if identity.get("name") == "reference":
            identity = {**identity, "name": "the reference, against itself: a check of the harness"}
        rest = ", ".join(
            f"{name} {value}" for name, value in identity.items() if name != "name" and value not in ("", None)
        )
        out.print(
            Text(f"device    {device.label}: {identity.get('name', '')}{f' ({rest})' if rest else ''}"), soft_wrap=True
        )


def _indented(text: str) -> str:
    return "\n".join(f"          {line}" for line in text.splitlines())


def print_result(
    out: Console, result: RunResult, selection: Mapping[str, Group], first: int, *, table: bool = True
) -> None:
    """Tables, failures and totals of every device."""
    for device in result.devices:
        if device.unusable:
            continue
        if table:
            out.print()
            out.print(Text(f"{device.label}: scale choices as expected, by value and store"), soft_wrap=True)
            out.print(_matrix(device, selection))
            out.print(
                "cells: scale choices whose cases all came out as expected; right: cases by outcome (refused: on both"
            )
            out.print("sides, by the same rule; failed: everything else)")
            out.print()
            out.print(Text(f"{device.label}: stores as expected, by value and scale choice"), soft_wrap=True)
            out.print(_scale_matrix(device, selection))
            out.print(f"a digit a scale type ({' '.join(SCALES)}; of the block where there are two): stores whose")
            out.print("cases all came out as expected; x: some store did not; -: not run")
        _print_failures(out, device, first)
        _print_totals(out, device)


def _matrix(device: DeviceResult, selection: Mapping[str, Group]) -> Table:
    """Rows are values, columns are stores, a cell counts scale choices."""
    grid: dict[tuple[str, str], list[str]] = {}
    rows: dict[str, None] = {}
    for text, group in selection.items():
        rows.setdefault(group.row)
        grid.setdefault((group.row, text.split(".")[1]), []).append(text)
    shown = [store for store in STORE_ORDER if any((row, store) in grid for row in rows)]
    shown += sorted({store for _, store in grid if store not in shown})
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("value", no_wrap=True)
    for store in shown:
        table.add_column(store.replace("packed_", "packed\n"), justify="right", no_wrap=True)
    for name in ("pass", "refused", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        members = [text for store in shown for text in grid.get((row, store), [])]
        _, _, outcomes = cell_counts(device.schemes, members)
        bad = sum(count for outcome, count in outcomes.items() if outcome not in (*EXPECTED, "notrun"))
        ends = [str(outcomes["pass"]), str(outcomes["refused"]), str(bad)]
        cells = [_cell(device, grid.get((row, store), [])) for store in shown]
        table.add_row(row, *cells, *ends[:2], Text(ends[2], style="red" if bad else ""))
    return table


def _scale_matrix(device: DeviceResult, selection: Mapping[str, Group]) -> Table:
    """Rows are values, columns are tensor scale types, a digit counts the stores of one scale choice."""
    grid: dict[tuple[str, str | None, str | None], list[str]] = {}
    for text, group in selection.items():
        grid.setdefault((group.row, group.tensor, group.block), []).append(text)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("value", "tensor\nonly", "block\nonly", *(f"t-{name}\n+ block" for name in SCALES)):
        table.add_column(heading, no_wrap=True)
    for row in dict.fromkeys(group.row for group in selection.values()):
        choices: Sequence[Sequence[tuple[str | None, str | None]]] = [
            [(name, None) for name in SCALES],
            [(None, name) for name in SCALES],
            *([(tensor, block) for block in SCALES] for tensor in SCALES),
        ]
        cells = [[_digit(device, grid.get((row, tensor, block), [])) for tensor, block in column] for column in choices]
        table.add_row(row, *(Text.assemble(*cell) for cell in cells))
    return table


def _digit(device: DeviceResult, members: Sequence[str]) -> Text:
    good, run, _ = cell_counts(device.schemes, members)
    if not run:
        return Text("-", style="dim")
    return Text(str(good), style="green") if good == run == len(members) else Text("x", style="bold red")


def _cell(device: DeviceResult, members: Sequence[str]) -> Text:
    good, run, _ = cell_counts(device.schemes, members)
    if not run:
        return Text("-", style="dim")
    if good == run == len(members):
        return Text(str(good), style="green")
    return Text(f"{good}/{len(members)}", style="yellow" if good == run else "bold red")


def _print_failures(out: Console, device: DeviceResult, first: int) -> None:
    """The failure blocks of the first few, and the others by step and rule."""
    for failure in device.failures[:first]:
        out.print()
        out.print(Text(failure.text()), soft_wrap=True)
    total = sum(device.failed.values())
    if total <= first:
        return
    out.print()
    out.print(
        f"{total} cases failed on {device.label}; the first {min(first, len(device.failures))} are shown above. All by step:"
    )
    for name, count in device.failed.most_common():
        out.print(f"  {count:7d}  {name}")
    families = ", ".join(f"{name} {count}" for name, count in device.families.most_common())
    out.print(Text(f"By data family: {families}"), soft_wrap=True)
    rules: dict[str, int] = {}
    for failure in device.failures:
        if failure.rule:
            rules[failure.rule] = rules.get(failure.rule, 0) + 1
    if rules:
        out.print(f"Rules that the first {len(device.failures)} point to:")
    for rule, count in sorted(rules.items(), key=lambda item: -item[1]):
        out.print(Text(f"  {count:7d}  {rule_line(rule)}"))


def _print_totals(out: Console, device: DeviceResult) -> None:
    totals = ", ".join(f"{count} {outcome}" for outcome, count in device.totals.items()) or "no case was run"
    rules = ", ".join(f"{rule} {count}" for rule, count in sorted(device.refusal_rules.items()))
    verdict = "as expected" if device.as_expected else "NOT as expected"
    out.print()
    if rules:
        out.print(f"refused by {rules}")
    if device.restarts:
        again = f"{device.restarts} time{'s' * (device.restarts > 1)}"
        out.print(Text(f"{device.label} crashed, and was started again {again}", style="yellow"), soft_wrap=True)
    if device.ended:
        out.print(Text(f"{device.label} did not reach the end: {device.ended}", style="bold red"), soft_wrap=True)
    style = "green" if device.as_expected else "bold red"
    out.print(Text(f"{device.label}: {totals}: {verdict}", style=style), soft_wrap=True)
