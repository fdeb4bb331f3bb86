"""A memory row: every kernel under Oclgrind, whose log must be empty, after canaries that must not leave it so.

Its exit code says nothing, and its default stops reporting after some errors: the log is the gate. A kernel that nothing
launched was not watched, so the gate asks for every one of the package.
"""

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..shelltext import line_of
from .child import Ended, environment, run_child
from .models import CHECKERS, Model
from .outcome import Outcome

__all__ = ["FALSE_POSITIVES", "Complaint", "gate", "read_log", "run_memory"]

#: Kernels of which a checker is known to complain wrongly, and why that is known: (checker, kernel) to a reason.
FALSE_POSITIVES: dict[tuple[str, str], str] = {
    (
        "uninitialised",
        "chain",
    ): "Oclgrind 21.10 does not see what a copy from buffer to buffer writes, and operands are joined so",
}
_KINDS = (("race", r"race"), ("uninitialised", r"^Uninitialized"), ("bounds", r"^Invalid (?:read|write)"))
PATHS = ("generic", "fast")
_EXERCISE = "quantspec_conformance.runtimecheck.exercise"


@dataclass(frozen=True, slots=True)
class Complaint:
    """One entry of the log."""

    kind: str  #: "race", "bounds", "uninitialised" or "other"
    kernel: str
    text: str


def read_log(text: str) -> list[Complaint]:
    """The entries of a log; a part that is no entry known here is one of kind "other", so that nothing passes unread."""
    found = []
    for part in re.split(r"\n(?=\S)", text):
        if part.strip():
            kernel = re.search(r"^\s+Kernel:\s*(\w+)", part, re.MULTILINE)
            head = part.strip().splitlines()[0]
            kind = next((kind for kind, pattern in _KINDS if re.search(pattern, head)), "other")
            found.append(Complaint(kind, kernel.group(1) if kernel else "", part.strip()))
    return found


def gate(
    ended: Ended, result: dict[str, Any] | None, complaints: Sequence[Complaint], *, checker: str, repro: str
) -> Outcome:
    """The outcome of an exercise: it must end well, agree with the reference, launch every kernel and leave an empty log.

    Where a path is left out, the kernels that were not launched are named and not judged.
    """
    base = Outcome(status="ok", repro=repro, seconds=ended.seconds)
    if ended.code is None:
        return replace(base, status="timeout", detail=f"no end within {ended.seconds:.0f} s", first=ended.said())
    if ended.code or result is None:
        how = f"the process ended by {ended.signal}" if ended.signal else f"exit status {ended.code}"
        return replace(base, status="crash", detail=how, first=ended.said(30))
    known = {each.kernel for each in complaints if (checker, each.kernel) in FALSE_POSITIVES}
    notes = tuple(f"not judged: {name}: {FALSE_POSITIVES[checker, name]}" for name in sorted(known))
    complaints = [each for each in complaints if each.kernel not in known]
    base = replace(base, device=str(result["device"]), notes=notes)
    if complaints:
        kernels = ", ".join(sorted({each.kernel or "?" for each in complaints}))
        detail = f"{len(complaints)} entries in the log, kernels {kernels}"
        return replace(base, status="mismatch", detail=detail, count=len(complaints), first=complaints[0].text)
    if result["wrong"]:
        detail = f"{len(result['wrong'])} of {result['compared']} results differ from the reference"
        return replace(base, status="mismatch", detail=detail, count=len(result["wrong"]), first=result["wrong"][0])
    left_out = [path for path in PATHS if path not in CHECKERS[checker][2]]
    if result["not launched"] and left_out:
        names = ", ".join(result["not launched"])
        base = replace(base, notes=(*notes, f"not judged, path {', '.join(left_out)}: {names}"))
    elif result["not launched"]:
        names = ", ".join(f"{name} ({files})" for name, files in result["not launched"].items())
        detail = f"{len(result['not launched'])} kernels were not launched: add to runtimecheck/exercise.py"
        return replace(base, status="mismatch", detail=detail, count=len(result["not launched"]), first=names)
    detail = f"{len(result['launched'])} kernels, {result['compared']} results, empty log"
    return replace(base, detail=detail, count=result["compared"], repro="")


def run_memory(model: Model, variables: Mapping[str, str], *, seconds: float) -> Outcome:
    """First the canaries, then every kernel, each in a process with a log of its own."""
    settings, wanted, paths = CHECKERS[model.checks]
    chosen = {**variables, **settings, **model.variables}
    repro = line_of(
        ["env", *(f"{key}={value}" for key, value in chosen.items()), "python", "-m", _EXERCISE, "/dev/stdout", *paths]
    )
    ended, _, complaints = _exercise(chosen, ["canary"], seconds)
    unseen = [kind for kind in wanted if kind not in {each.kind for each in complaints}]
    if unseen or ended.code:
        detail = f"the checker did not see the planted faults: {', '.join(unseen) or ended.said(2)}"
        return Outcome(
            status="refused", detail=detail, first=ended.said(), repro=f"{repro} canary", seconds=ended.seconds
        )
    ended, result, complaints = _exercise(chosen, paths, seconds)
    return gate(ended, result, complaints, checker=model.checks, repro=repro)


def _exercise(
    variables: Mapping[str, str], words: Sequence[str], seconds: float
) -> tuple[Ended, dict[str, Any] | None, list[Complaint]]:
    with tempfile.TemporaryDirectory(prefix="quantspec-check-", ignore_cleanup_errors=True) as name:
        work = Path(name)
        log, file = work / "oclgrind.log", work / "result.json"
        env = environment({**variables, "OCLGRIND_LOG": str(log)}, work)
        ended = run_child([sys.executable, "-m", _EXERCISE, str(file), *words], env=env, seconds=seconds)
        try:
            result = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            result = None
        text = log.read_text("utf-8", "replace") if log.is_file() else "OCLGRIND_LOG was not written"
    return ended, result, read_log(text)
