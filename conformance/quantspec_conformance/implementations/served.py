"""Implementations of this project in a process of their own: the command and the environment of `serve`."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import quantspec

from .process import ProcessImplementation

__all__ = ["environment", "open_served_process"]


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment, the variables that isolate a runtime, and a path on which `serve` finds our packages."""
    package = Path(__file__).resolve().parents[1]
    roots = [str(package.parent), str(Path(quantspec.__file__).resolve().parents[1])]
    kernels = package.parents[1] / "kernels_cl"
    roots += [str(kernels)] if kernels.is_dir() else []
    roots += [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {**os.environ, **(variables or {}), "PYTHONPATH": os.pathsep.join(dict.fromkeys(roots))}


def open_served_process(
    address: str,
    *,
    wire: str = "frames",
    timeout: float = 10.0,
    hello_timeout: float = 30.0,
    variables: Mapping[str, str] | None = None,
) -> ProcessImplementation:
    """`serve` of an address behind pipes."""
    command = [sys.executable, "-m", "quantspec_conformance.implementations.serve", address, "--wire", wire]
    return ProcessImplementation(command, timeout=timeout, hello_timeout=hello_timeout, env=environment(variables))
