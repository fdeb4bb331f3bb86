"""The check as a table, its bad rows in full, what is missing with how to install it; and as JSON."""

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import quantspec

from .models import Model
from .outcome import BAD, Outcome

__all__ = ["Row", "content", "print_check"]

Row = tuple[Model, Outcome]
_WORDS = {
    "mismatch": "MISMATCH",
    "crash": "CRASHED",
    "timeout": "TIMED OUT",
    "refused": "REFUSED",
    "missing": "not installed",
}
_STYLES = {"ok": "green", "missing": "yellow"}
_SHOWN = 24


def content(rows: Sequence[Row], *, quick: bool, exit_code: int, started: datetime, seconds: float) -> dict[str, Any]:
    """The result after schemas/devices-check.schema.json."""
    return {
        "schema": "devices-check-1",
        "quantspec": quantspec.__version__,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "quick": quick,
        "exit_code": exit_code,
        "host": {"python": platform.python_version(), "platform": platform.platform(), "machine": platform.machine()},
        "rows": [{**_model(model), **outcome.as_json()} for model, outcome in rows],
        "missing": {model.name: list(outcome.install) for model, outcome in rows if outcome.status == "missing"},
    }


def _model(model: Model) -> Mapping[str, Any]:
    return {
        "name": model.name,
        "kind": model.kind,
        "runtime": model.place,
        "plays": model.plays,
        "build_options": list(model.build_options),
    }


def print_check(out: Console, rows: Sequence[Row]) -> None:
    """Every row; then each bad one with what was wrong first; then what is not installed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("model", "plays", "outcome", "what", "s"):
        table.add_column(name, overflow="fold", justify="right" if name == "s" else "left")
    for model, outcome in rows:
        word = Text(_WORDS.get(outcome.status, outcome.status), style=_STYLES.get(outcome.status, "bold red"))
        what = "\n".join([outcome.detail, *outcome.notes])
        table.add_row(model.name, Text(model.plays), word, Text(what), f"{outcome.seconds:.0f}")
    out.print(table)
    for model, outcome in rows:
        if outcome.status in BAD:
            lines = [f"{_WORDS[outcome.status]} {model.name}: {outcome.detail}"]
            lines += [f"  {line}" for line in outcome.first.splitlines()[:_SHOWN]]
            lines += [f"  repro  {outcome.repro}"] if outcome.repro else []
            out.print(Text("\n".join(lines), style="red"), soft_wrap=True)
    absent = [row for row in rows if row[1].status == "missing"]
    by_line: dict[tuple[str, ...], list[str]] = {}
    for model, outcome in absent:
        by_line.setdefault(outcome.install, []).append(model.name)
    for lines_, names in by_line.items():
        out.print(Text(f"not installed: {', '.join(names)}: {' | '.join(lines_)}", style="yellow"), soft_wrap=True)
