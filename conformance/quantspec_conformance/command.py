"""`quantspec run`: from options to plans, from plans to a report, a result file and an exit code."""

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

import quantspec

from . import coverage, matrix
from .cases import REFUSALS, Batch, Plan, case_steps, data, drawn, plan_case, plans, refuses
from .errors import UsageError
from .matrix import Group, group_of
from .named import NAMED
from .outside import printable
from .report import console, print_devices, print_result, progress
from .resultfile import check_writable, device_json, write_json
from .results import DeviceResult, RunResult
from .runner import Options
from .runner import run as run_plans
from .statistics import Statistics, measure, print_statistics
from .targets import Target, find_targets
from .tensors import LIMIT, read_tensor

__all__ = ["run_command"]

NOT_WHOLE = "CNF-4"  #: the rule by which anything less than the whole matrix is no conformance run


@dataclass(slots=True)
class _Job:
    """What is to be run, and what to say about it."""

    plans: list[Plan]
    title: str
    x: npt.NDArray[Any] | None = None
    repro: tuple[str, ...] = ()
    of_matrix: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """A job and the circumstances that say what its result is worth."""

    job: _Job
    counts: dict[str, Any]
    seed: int
    quick: bool
    build_options: tuple[str, ...]
    notes: list[str]

    @property
    def whole(self) -> bool:
        """True for the whole matrix with nothing changed: a conformance run, if it reaches its end."""
        return coverage.is_whole(
            self.counts, of_matrix=self.job.of_matrix, quick=self.quick, build_options=self.build_options
        )


def run_command(
    *,
    devices: Sequence[str],
    only: Sequence[str],
    case: str | None,
    quick: bool,
    seed: int,
    json_file: Path | None,
    build_options: Sequence[str],
    path: str | None,
    tensor: str | None,
    name: str | None,
    max_elements: int | None,
    first: int,
    timeout: float,
) -> int:
    """Run and report; the exit code. Raises HarnessError for what keeps a run from starting."""
    written = check_writable(json_file) if json_file is not None else None
    job = _job(only, case, quick, tensor, name, max_elements)
    targets, notes = find_targets(devices, build_options=build_options, path=path or "auto")
    run = _Run(job, coverage.count(job.plans), seed, quick, tuple(build_options), notes)
    out = console()
    _header(out, run)
    repro = (*job.repro, *(word for option in build_options for word in ("--build-option", option)))
    repro += () if path is None else ("--path", path)
    options = Options(
        seed=seed, first=first, timeout=timeout, build_options=build_options, path=path or "auto", repro=repro
    )
    started, statistics = datetime.now(UTC), list[Statistics]()
    result = _go(out, run, targets, options, statistics)
    unwritten: UsageError | None = None
    if written is not None:  # before the report: whoever stops reading that still has the file
        selection = {"only": list(only), "case": case, "tensor": tensor, "build_options": list(build_options)}
        try:
            write_json(written, _content(run, result, started, selection))
        except UsageError as error:
            unwritten = error
    if statistics:
        print_statistics(out, statistics)
    groups: dict[str, Group] = {scheme.text: plan.group for plan in job.plans for scheme in plan.schemes}
    print_result(out, result, groups, first, table=job.of_matrix)
    _verdict(out, run, result)
    if unwritten is not None:
        raise unwritten
    if json_file is not None:
        out.print(Text(f"result written to {printable(str(json_file))}"), soft_wrap=True)
    return result.exit_code


def _go(
    out: Console, run: _Run, targets: Sequence[Target], options: Options, statistics: list[Statistics]
) -> RunResult:
    """Run the plans under a progress bar; a tensor's statistics are measured on the way."""
    x = run.job.x

    def make(plan: Plan) -> Batch:
        if x is None:
            return data(plan, run.seed)
        if plan.family is None:
            return Batch(plan, x)
        statistics.append(measure(x, plan.schemes[0], NAMED.get(plan.schemes[0].text, "")))
        return drawn(plan, x, np.random.Generator(np.random.Philox(run.seed)))

    with progress(run.counts["cases"] * len(targets)) as bar:

        def ready(found: Sequence[DeviceResult]) -> None:
            print_devices(out, found)
            bar.start()

        def done(count: int) -> None:
            bar.advance(bar.task_ids[0], count)

        return run_plans(run.job.plans, make, targets, options, on_ready=ready, on_case=done)


def _content(run: _Run, result: RunResult, started: datetime, selection: dict[str, Any]) -> dict[str, Any]:
    """The result file's content."""
    return {
        "schema": "run-1",
        "quantspec": quantspec.__version__,
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(result.seconds, 3),
        "seed": run.seed,
        "quick": run.quick,
        "conformance": run.whole and not result.interrupted,
        "interrupted": result.interrupted,
        "command": ["quantspec", *sys.argv[1:]],
        "host": {"python": platform.python_version(), "numpy": np.__version__, "platform": platform.platform()},
        "selection": selection,
        "coverage": run.counts,
        "notes": run.notes,
        "devices": [device_json(device) for device in result.devices],
    }


def _job(
    only: Sequence[str], case: str | None, quick: bool, tensor: str | None, name: str | None, limit: int | None
) -> _Job:
    """The plans that the options choose. UsageError for options that do not go together."""
    if case is not None and (only or quick or tensor is not None):
        raise UsageError(
            "--case runs exactly one case; allowed beside it: --device, --seed, --build-option, --json, --first"
        )
    for option, given in (("--name", name), ("--max-elements", limit)):
        if tensor is None and given is not None:
            raise UsageError(f"{option} goes with --tensor")
    if case is not None:
        return _Job([plan_case(case)], "one case")
    if tensor is None:
        found = list(plans(matrix.select(only, quick=quick), quick=quick))
        return _Job(found, "part of the matrix" if only or quick else "the full matrix", of_matrix=True)
    return _tensor_job(only, tensor, name, LIMIT if limit is None else limit)


def _tensor_job(only: Sequence[str], tensor: str, name: str | None, limit: int) -> _Job:
    """A tensor of a file under the chosen or the named schemes; those that do not take its shape must refuse it."""
    found, x = read_tensor(tensor, name, limit=limit)
    named = {text: (group_of(scheme), scheme) for text, scheme in ((text, matrix.parse(text)) for text in NAMED)}
    planned = []
    for group, scheme in (matrix.select(only) if only else named).values():
        refused = refuses(scheme, x.shape)
        steps = REFUSALS if refused else case_steps()
        planned.append(Plan(group, (scheme,), x.shape, None if refused else "tensor", steps))
    if all(plan.family is None for plan in planned):
        raise UsageError(f"--tensor {tensor!r}: {found} has shape {x.shape}, which none of the chosen schemes takes")
    repro = ("--tensor", tensor, *(("--name", name) if name is not None else ()))
    return _Job(planned, f"tensor {found}, {x.dtype.name} of shape {x.shape}", x, repro)


def _header(out: Console, run: _Run) -> None:
    """What runs, what it covers, what it is not."""
    job, counts = run.job, run.counts
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    out.print(Text(f"quantspec {quantspec.__version__}: {job.title}, seed {run.seed}; {versions}"), soft_wrap=True)
    covered = coverage.sentence(counts) if job.of_matrix else f"{counts['schemes']} scheme(s), every step"
    out.print(Text(f"covers    {covered}"), soft_wrap=True)
    if not run.whole:
        why = "a quick run" if run.quick else "a part of the suite"
        if run.build_options:
            why += f", built with {' '.join(run.build_options)}"
        out.print(Text(f"this is NOT a conformance run ({NOT_WHOLE}): {why}", style="yellow"), soft_wrap=True)
    for note in run.notes:
        out.print(Text(f"note      {note}", style="yellow"), soft_wrap=True)


def _verdict(out: Console, run: _Run, result: RunResult) -> None:
    """The last line: how the run ended."""
    if result.interrupted:
        out.print(Text("interrupted: what was done until then is shown", style="bold yellow"))
    kind = f"{'quick' if run.quick else 'partial'} run, NOT a conformance run"
    if run.whole and not result.interrupted:
        kind = "conformance run"
    out.print(Text(f"{kind}, {result.seconds:.1f} s, exit code {result.exit_code}"))
