"""Targets: what `--device` names, as something that a worker process of its own can open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .adapters import needs_device
from .devices import INSTALL, survey
from .errors import DeviceError, UsageError

__all__ = ["Target", "find_targets"]


@dataclass(frozen=True, slots=True)
class Target:
    """One implementation to run: its label, the adapter's address, and the variables that isolate its runtime."""

    label: str
    address: str
    variables: Mapping[str, str] = field(default_factory=dict)


def find_targets(
    specs: Sequence[str], *, build_options: Sequence[str] = (), path: str = "auto"
) -> tuple[list[Target], list[str]]:
    """The targets of `--device` options, every device of every runtime where none is given; and runtimes that failed.

    A device spec is `r:d` or a label as `quantspec devices` prints them, or a part of the platform's or device's name.
    DeviceError where a spec names nothing, UsageError for an empty spec or build option.
    """
    for option, given in (("--device", specs), ("--build-option", build_options)):
        if not all(text.strip() for text in given):
            raise UsageError(f"{option} is empty; leave it out, or say which")
    if build_options and not all(needs_device(spec) for spec in specs):
        raise DeviceError("--build-option is for OpenCL devices; reference and py: adapters build nothing")
    if path != "auto" and not all(needs_device(spec) for spec in specs):
        raise DeviceError("--path is for OpenCL devices; reference and py: adapters have no kernels of ours")
    found: list[Target] = []
    notes: list[str] = []
    known: list[dict[str, Any]] | None = None
    for spec in specs or ("",):
        if spec and not needs_device(spec):
            found.append(Target(spec, spec))
            continue
        if known is None:
            rows = survey(measure=False)
            known = [row for row in rows if not row.get("error")]
            notes = [f"runtime {row['label']}: {row['error']}" for row in rows if row.get("error")]
        found += _matching(spec, known)
    unique = {target.label: target for target in found}
    return list(unique.values()), notes


def _matching(spec: str, known: Sequence[Mapping[str, Any]]) -> list[Target]:
    """Devices that answer to a spec: all but simulators for the empty one."""
    if spec:
        exact = [row for row in known if spec in (row["index"], row["label"])]
        chosen = (exact or [row for row in known if spec.lower() in _names(row)])[:1]
    else:
        chosen = [row for row in known if not row.get("simulator")]
    if not chosen and not known:
        raise DeviceError(INSTALL)
    if not chosen:
        names = ", ".join(f"{row['index']} ({row['platform']}, {row['name']})" for row in known)
        raise DeviceError(f"--device {spec!r} names no device; there are {names}; also: reference, py:FILE.py:CLASS")
    return [Target(row["label"], row["local"], row["variables"]) for row in chosen]


def _names(row: Mapping[str, Any]) -> str:
    return f"{row['label']}\n{row['platform']}\n{row.get('version', '')}\n{row['name']}".lower()
