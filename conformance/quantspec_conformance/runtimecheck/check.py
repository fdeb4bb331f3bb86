"""`quantspec devices --check`: the chosen rows, one after another, each in processes of its own; the exit code."""

import fnmatch
import importlib.util
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import click

from ..devices import INSTALL
from ..errors import INTERRUPTED, DeviceError, UsageError
from ..report import console
from .models import MODELS, Model
from .outcome import BAD, Outcome
from .table import Row, content, print_check

__all__ = ["all_models", "check_command", "exit_code", "prepare_command", "run_model", "select_models"]


def all_models() -> list[Model]:
    """The rows of the table, and one for each runtime of the system that none of them names."""
    from .places import system_places

    plays = "a runtime of this system"
    return [*MODELS, *(Model(name=each.name, kind="suite", place=each.name, plays=plays) for each in system_places())]


def select_models(patterns: Sequence[str], models: Sequence[Model] = MODELS) -> list[Model]:
    """The rows that any of the patterns matches by name or kind, all where none is given. UsageError where one matches none."""
    chosen: dict[str, Model] = {}
    for pattern in patterns or ("*",):
        found = [
            model for model in models if any(fnmatch.fnmatchcase(text, pattern) for text in (model.name, model.kind))
        ]
        if not found:
            names = ", ".join(model.name for model in models)
            raise UsageError(f"--only {pattern!r} matches no row; there are {names}; and suite, memory, offline")
        chosen |= {model.name: model for model in found}
    return [model for model in models if model.name in chosen]


def run_model(model: Model, *, quick: bool, seconds: float | None = None) -> Outcome:
    """The outcome of one row, whatever its runtime does."""
    from .memory import run_memory
    from .offline import TARGETS, run_offline
    from .places import place_of
    from .suite import run_suite, seconds_of

    if model.kind == "offline":
        return run_offline(TARGETS[model.place], quick=quick)
    place = place_of(model.place)
    variables = place.find()
    if variables is None:
        return Outcome(status="missing", detail="not installed", install=place.install)
    limit = seconds_of(quick=quick) if seconds is None else seconds
    if model.kind == "memory":
        outcome = run_memory(model, variables, seconds=limit)
    else:
        outcome = run_suite(model, variables, quick=quick, seconds=limit)
    return replace(outcome, variables={**variables, **model.variables})


def exit_code(rows: Sequence[Row], *, strict: bool) -> int:
    """1 where a row is bad, or with `strict` not installed; 3 where no runtime is there at all; 0 otherwise."""
    statuses = [outcome.status for _, outcome in rows]
    if any(status in BAD for status in statuses):
        return 1
    if all(status == "missing" for status in statuses):
        return 3
    return int(strict and "missing" in statuses)


def check_command(
    *,
    quick: bool,
    only: Sequence[str],
    as_json: bool,
    strict: bool,
    models: Sequence[Model] | None = None,
    runner: Callable[..., Outcome] = run_model,
) -> int:
    """Run the rows, say how each ended as it ends, and report; the exit code. Ctrl-C keeps the rows that are done."""
    if importlib.util.find_spec("pyopencl") is None:
        raise DeviceError(f"pyopencl is not installed: {INSTALL}")
    chosen = select_models(only, all_models() if models is None else models)
    started, begun = datetime.now(UTC), time.monotonic()
    rows: list[Row] = []
    interrupted = False
    for number, model in enumerate(chosen, 1):
        click.echo(f"[{number}/{len(chosen)}] {model.name}: {model.plays} ...", err=True)
        try:
            outcome = runner(model, quick=quick)
        except KeyboardInterrupt:
            interrupted = True
            click.echo(f"[{number}/{len(chosen)}] {model.name}: interrupted", err=True)
            break
        click.echo(f"[{number}/{len(chosen)}] {model.name}: {outcome.status}, {outcome.detail}", err=True)
        rows.append((model, outcome))
    code = INTERRUPTED if interrupted else exit_code(rows, strict=strict)
    seconds = time.monotonic() - begun
    if as_json:
        click.echo(json.dumps(content(rows, quick=quick, exit_code=code, started=started, seconds=seconds), indent=1))
        return code
    out = console()
    print_check(out, rows)
    kind = "quick check" if quick else "full check"
    kind += f" interrupted after {len(rows)} of {len(chosen)}" if interrupted else ""
    out.print(f"{kind}: {len(rows)} rows, {seconds:.0f} s, exit code {code}", highlight=False)
    return code


def prepare_command() -> int:
    """Install what is missing where only the check looks."""
    if importlib.util.find_spec("pyopencl") is None:
        raise DeviceError(f"pyopencl is not installed: {INSTALL}")
    from .prepare import prepare

    prepare(lambda line: click.echo(line, err=True))
    return 0
