"""The command as a subprocess, and the paths that it needs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "fakes.py"

Quantspec = Callable[..., subprocess.CompletedProcess[str]]


def environment() -> dict[str, str]:
    """This environment, with the packages of the checkout on the path and no terminal's settings."""
    roots = [str(ROOT / name) for name in ("reference", "kernels_cl", "conformance")] + [str(ROOT)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "COLUMNS": "100"}


def command(*arguments: str) -> list[str]:
    """The command line of `quantspec` in this interpreter."""
    return [sys.executable, "-m", "quantspec_conformance", *arguments]


def liar(name: str) -> str:
    """The address of a liar."""
    return f"py:{FAKES}:{name}"


@pytest.fixture
def quantspec_command() -> Quantspec:
    """Run `quantspec` with these arguments; stdout, stderr and the exit code come back."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments), env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )

    return run
