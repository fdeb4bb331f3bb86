"""A suite row: `quantspec run` in a process of its own, its result file read, and whether the model was played at all."""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..compare import EXPECTED
from ..shelltext import line_of
from .child import Ended, environment, run_child
from .models import Model
from .outcome import Outcome, Status

__all__ = ["judge", "run_suite", "seconds_of"]

QUICK_SECONDS = 1200.0
FULL_SECONDS = 7200.0
MEASURE_SECONDS = 180.0
_MEASURE = """
import json, sys, quantspec_cl
session = quantspec_cl.open_device("0:0", build_options=sys.argv[1:])
print(json.dumps({each.name: bool(each.ok) for each in quantspec_cl.self_test(session)}))
"""


def seconds_of(*, quick: bool) -> float:
    """The time that a row has."""
    return QUICK_SECONDS if quick else FULL_SECONDS


def run_suite(model: Model, variables: Mapping[str, str], *, quick: bool, seconds: float) -> Outcome:
    """Run the suite on a runtime that is installed."""
    chosen = {**variables, **model.variables}
    with tempfile.TemporaryDirectory(prefix="quantspec-check-", ignore_cleanup_errors=True) as name:
        work = Path(name)
        env = environment(chosen, work)
        notes = _played(model, env)
        file = work / "result.json"
        options = [word for option in model.build_options for word in ("--build-option", option)]
        words = ["run", *(model.quick if quick else model.full), *options]
        ended = run_child(
            [sys.executable, "-m", "quantspec_conformance", *words, "--json", str(file)], env=env, seconds=seconds
        )
        content = _read(file)
    command = line_of(["env", *(f"{key}={value}" for key, value in chosen.items()), "quantspec"])
    return judge(ended, content, command=command, words=words, notes=notes)


def _read(file: Path) -> dict[str, Any] | None:
    """The result file; None where the run wrote none."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _played(model: Model, env: Mapping[str, str]) -> tuple[str, ...]:
    """What the self-test says against the model: a runtime that ignores the option plays nothing."""
    if not model.expects:
        return ()
    words = [sys.executable, "-c", _MEASURE, *model.build_options]
    ended = run_child(words, env=env, seconds=MEASURE_SECONDS)
    try:
        measured = json.loads(ended.out.splitlines()[-1])
    except (ValueError, IndexError):
        return (f"the model could not be measured: {ended.said(2) or 'no answer'}",)
    return tuple(
        f"NOT PLAYED: measured {name!r} is {'ok' if measured.get(name) else 'not ok'}"
        for name, ok in model.expects.items()
        if measured.get(name) != ok
    )


def judge(
    ended: Ended, content: dict[str, Any] | None, *, command: str, words: list[str], notes: tuple[str, ...] = ()
) -> Outcome:
    """The outcome of a run from how its process ended and what it wrote."""
    whole = f"{command} {line_of(words)}"

    def bad(status: Status, detail: str, first: str = "") -> Outcome:
        return Outcome(status=status, detail=detail, first=first, repro=whole, notes=notes, seconds=ended.seconds)

    if ended.code is None:
        return bad("timeout", f"no end within {ended.seconds:.0f} s", ended.said())
    if ended.signal:
        return bad("crash", f"the process ended by {ended.signal}", ended.said())
    if content is None or not content.get("devices"):
        status: Status = "refused" if ended.code in (2, 3, 4) else "crash"
        return bad(status, f"exit status {ended.code}, no result", ended.said())
    return _of_devices(content["devices"], ended, command, bad("refused", ""), notes)


def _of_devices(
    devices: list[dict[str, Any]], ended: Ended, command: str, base: Outcome, notes: tuple[str, ...]
) -> Outcome:
    totals: dict[str, int] = {}
    for device in devices:
        for outcome, count in device["totals"].items():
            totals[outcome] = totals.get(outcome, 0) + count
    good = sum(totals.get(outcome, 0) for outcome in EXPECTED)
    wrong = {outcome: count for outcome, count in totals.items() if outcome not in EXPECTED}
    failures = [failure for device in devices for failure in device["failures"]]
    said = [device[key] for device in devices for key in ("unusable", "ended") if device[key]]
    identity = "; ".join(_named(device) for device in devices)
    first = "\n".join([_text(failure) for failure in failures[:1]] + said[:1])
    repro = f"env {failures[0]['repro']}" if failures else base.repro
    if failures:
        repro = failures[0]["repro"].replace("quantspec", command, 1)
    status: Status = "ok"
    if any(device["unusable"] for device in devices):
        status = "refused"
    elif any(device.get("restarts") for device in devices) or wrong.get("crash"):
        status = "crash"
    elif wrong.get("timeout"):
        status = "timeout"
    elif wrong or said or ended.code:
        status = "mismatch"
    detail = f"{totals.get('pass', 0)} pass, {totals.get('refused', 0)} refused by both"
    if status != "ok":
        detail = ", ".join(f"{count} {outcome}" for outcome, count in wrong.items()) or f"exit status {ended.code}"
    count = good if status == "ok" else sum(wrong.values())
    return Outcome(
        status=status,
        detail=detail,
        count=count,
        first="" if status == "ok" else first,
        repro="" if status == "ok" else repro,
        device=identity,
        notes=notes,
        seconds=ended.seconds,
    )


def _named(device: Mapping[str, Any]) -> str:
    identity = device["identity"]
    return ", ".join(str(identity[key]) for key in ("name", "driver") if identity.get(key)) or str(device["label"])


def _text(failure: Mapping[str, Any]) -> str:
    head = f"FAIL {failure['case']}   step {failure['step']}, {failure['part']}"
    return "\n".join([head, *failure["lines"]])
