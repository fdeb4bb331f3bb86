"""The devices of this machine, each runtime asked in a process of its own: what they promise, and what was measured."""

import importlib.util
import queue
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .errors import DeviceError
from .process import Closed, Inbox, Worker

__all__ = ["INSTALL", "describe_process", "print_devices", "survey"]

INSTALL = (
    'no OpenCL device was found. pip install "quantspec[cl-cpu]" installs one that runs on any x86-64 Linux CPU, without '
    'root; pip install "quantspec[cl,cl-intel]" one of another vendor; a GPU\'s driver brings its own.'
)
ANSWER_SECONDS = 180.0

#: Promises that the table shows: column, field of quantspec_cl.DeviceInfo.
PROMISES = (
    ("subnormals", "denorm"),
    ("fma", "fma"),
    ("exact /", "correctly_rounded_divide"),
    ("fp64", "fp64"),
    ("fp16", "fp16"),
)


def describe_process(*, measure: bool) -> list[dict[str, Any]]:
    """The devices of this process, and with `measure` the self-test of each. Runs in a worker."""
    import quantspec_cl

    rows = []
    for info in quantspec_cl.list_devices():
        row: dict[str, Any] = asdict(info)
        row["measured"] = _measured(info.index) if measure and info.error is None else []
        rows.append(row)
    return rows


def _measured(index: str) -> list[dict[str, Any]]:
    import quantspec_cl

    try:
        session = quantspec_cl.open_device(index)
        return [
            {"name": each.name, "ok": bool(each.ok), "detail": str(each.detail)}
            for each in quantspec_cl.self_test(session)
        ]
    except Exception as error:  # a device that cannot be opened is a row of the table
        return [{"name": "open", "ok": False, "detail": f"{type(error).__name__}: {error}"}]


def survey(*, measure: bool) -> list[dict[str, Any]]:
    """Every device of every runtime installed: `index` r:d, `label`, `runtime`, `local` index, `variables`, what it is.

    A runtime that crashes, hangs or shows no device is a row with an `error`. DeviceError where OpenCL is not installed.
    """
    if importlib.util.find_spec("pyopencl") is None:
        raise DeviceError(f"pyopencl is not installed: {INSTALL}")
    import quantspec_cl

    runtimes = quantspec_cl.find_runtimes()
    inbox: Inbox = queue.Queue()
    workers = [Worker(inbox, runtime.variables) for runtime in runtimes]
    try:
        for worker in workers:
            worker.send({"op": "devices", "measure": measure})
        answers = _collect(workers, inbox)
    finally:
        for worker in workers:
            worker.kill()
    rows: list[dict[str, Any]] = []
    for number, (runtime, answer) in enumerate(zip(runtimes, answers, strict=True)):
        rows += _rows(number, runtime.name, runtime.variables, answer)
    return rows


def _collect(workers: Sequence[Worker], inbox: Inbox) -> list[list[dict[str, Any]] | str]:
    """The answer of each worker, or why there is none."""
    answers: dict[int, list[dict[str, Any]] | str] = {}
    deadline = time.monotonic() + ANSWER_SECONDS
    while len(answers) < len(workers):
        try:
            worker, message = inbox.get(timeout=max(deadline - time.monotonic(), 0.01))
        except queue.Empty:
            break
        number = workers.index(worker)
        if isinstance(message, Closed):
            answers.setdefault(number, f"the runtime ended its process: {worker.ended()}\n{worker.stderr()}".strip())
        else:
            answers[number] = message["devices"]
    return [answers.get(number, f"no answer for {ANSWER_SECONDS:.0f} s") for number in range(len(workers))]


def _rows(
    number: int, runtime: str, variables: Mapping[str, str], answer: list[dict[str, Any]] | str
) -> list[dict[str, Any]]:
    common = {"runtime": runtime, "variables": dict(variables)}
    if isinstance(answer, str) or not answer:
        error = answer if isinstance(answer, str) else "the runtime shows no device"
        return [
            {
                "index": f"{number}:-",
                "label": runtime,
                "local": "",
                "platform": "",
                "name": "",
                "error": error,
                **common,
            }
        ]
    rows = []
    for d, row in enumerate(answer):
        label = runtime if len(answer) == 1 else f"{runtime}:{d}"
        rows.append({**row, "index": f"{number}:{d}", "label": label, "local": row["index"], **common})
    return rows


def print_devices(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """A table of promises, then the measurements of each device."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("device", "label", "platform", "name"):
        table.add_column(name, overflow="fold")
    for name, _ in PROMISES:
        table.add_column(name, justify="center", no_wrap=True)
    for row in rows:
        marks = ["" if row.get("error") else "yes" if row[field] else "no" for _, field in PROMISES]
        table.add_row(row["index"], row["label"], Text(row["platform"]), Text(row["name"]), *marks)
    out.print("promised:")
    out.print(table)
    for row in rows:
        versions = ", ".join(str(row[key]) for key in ("version", "c_version", "driver") if row.get(key))
        out.print(Text(f"{row['index']} {row['label']}{f': {versions}' if versions else ''}"), soft_wrap=True)
        if row.get("error"):
            lines = "\n".join(f"  {line}" for line in str(row["error"]).splitlines())
            out.print(Text(lines, style="red"), soft_wrap=True)
        for measurement in row.get("measured", ()):
            style = "" if measurement["ok"] else "yellow"
            verdict = "yes" if measurement["ok"] else "NO"
            line = f"  measured {verdict:3s} {measurement['name']}: {measurement['detail']}"
            out.print(Text(line, style=style), soft_wrap=True)
