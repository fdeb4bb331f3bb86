"""What a benchmark writes: one JSON file, rewritten after every row, so that Ctrl-C keeps what is measured."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quantspec import QuantspecError
from quantspec_cl.errors import DeviceError

__all__ = ["SCHEMA", "Store", "elements_of", "free_memory", "machine", "read", "run"]

SCHEMA = "bench-1"
#: Packages whose versions are told, where they are installed.
PACKAGES = ("quantspec", "numpy", "pyopencl", "pocl-binary-distribution", "intel-opencl-rt")
INTERRUPTED = 130
REPOSITORY = Path(__file__).resolve().parents[1]


def elements_of(text: str) -> int:
    """A number, or 2^n. ValueError for anything else, and for none."""
    base, _, exponent = text.partition("^")
    count: int = int(base) ** int(exponent or 1)
    if count < 1:
        raise ValueError(f"{text!r} elements: at least 1 is needed")
    return count


def _line(path: str, start: str) -> str:
    """What follows the colon of the first line that starts so, in a file of /proc; "" where there is none."""
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(start)), "")


def free_memory() -> int:
    """Bytes that a new process may take; where the system does not tell, 4 GiB are assumed."""
    told = _line("/proc/meminfo", "MemAvailable").split()
    return int(told[0]) * 1024 if told else 4 << 30


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, capture_output=True, text=True
        )
    except OSError:
        return ""
    return done.stdout.strip()


def machine() -> dict[str, Any]:
    """The machine, the versions and the time, as text."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "cpus": os.cpu_count(),
        "memory": _line("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": _commit(),
    }


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A row with six digits a number: what is measured has fewer that mean something."""
    return {name: float(f"{each:.6g}") if isinstance(each, float) else each for name, each in row.items()}


@dataclass(slots=True)
class Store:
    """The rows of one benchmark and the file that holds them."""

    path: Path
    title: str
    results: list[dict[str, Any]] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)  #: what holds for all rows
    machine: dict[str, Any] = field(default_factory=machine)

    def add(self, result: dict[str, Any]) -> None:
        """One row more, on disk before this returns."""
        self.results.append(result)
        self.save()

    def save(self) -> None:
        """Write the file whole, or leave what was there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        head = {"schema": SCHEMA, "title": self.title, "machine": self.machine, **self.more}
        rows = ",\n".join(json.dumps(_short(each), separators=(",", ":")) for each in self.results)
        beside = self.path.with_suffix(".part")
        beside.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "results": [\n{rows}\n]}}\n', "utf-8")
        beside.replace(self.path)


def read(path: Path) -> dict[str, Any]:
    """A file of a Store. ValueError, naming it, for anything else."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} holds no JSON: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise ValueError(f"{path} is not a result of a benchmark here: its schema is not {SCHEMA}")
    return found


def run(main: Callable[[], int | None]) -> int:
    """The exit code of a benchmark: 130 where it was interrupted, 1 with one line where a device or a file failed."""
    try:
        return main() or 0
    except KeyboardInterrupt:
        print("interrupted; what was measured is in the JSON file", file=sys.stderr)
        return INTERRUPTED
    except (DeviceError, QuantspecError, OSError, MemoryError, ValueError) as error:
        print(f"{Path(sys.argv[0]).name}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
