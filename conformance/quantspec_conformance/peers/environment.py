"""The environment of a peer: a venv with what its row pins, and how its adapter is started in it.

Our own packages are not installed there: they are found by PYTHONPATH, so an environment is as current as this checkout.
It only needs numpy and ml_dtypes, which quantspec depends on.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..implementations.served import environment as variables
from ..outside import printable
from .table import Peer

__all__ = ["address", "prepare", "ready", "warm"]

#: What quantspec itself needs.
OURS = ("numpy>=2.0,<3", "ml_dtypes>=0.5,<1")
#: Seconds for pip; torch is large.
TIMEOUT = 1800.0
Runner = Callable[[Sequence[str], float], tuple[int, str]]


def python_of(peer: Peer) -> Path:
    """The interpreter of its environment."""
    return peer.environment / "venv" / "bin" / "python"


def _marker(peer: Peer) -> Path:
    return peer.environment / "installed.txt"


def _wanted(peer: Peer) -> str:
    return "\n".join([f"python {sys.version_info[0]}.{sys.version_info[1]}", *peer.requirements, *OURS]) + "\n"


def ready(peer: Peer) -> bool:
    """True where what the row asks for is installed, with this version of Python."""
    try:
        return python_of(peer).exists() and _marker(peer).read_text("utf-8") == _wanted(peer)
    except OSError:
        return False


def run(command: Sequence[str], timeout: float, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and the end of what a command said."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=env,
        )
    except subprocess.TimeoutExpired:
        return 124, f"not done after {timeout:g} s"
    except OSError as error:
        return 127, f"{printable(command[0])} cannot be started: {error.strerror}"
    return done.returncode, (done.stdout + done.stderr).strip()


def prepare(peer: Peer, *, runner: Runner = run) -> tuple[str, float]:
    """Install what the row pins; why that failed ("" where it did not), and the seconds it took."""
    started = time.monotonic()
    if ready(peer):
        return "", 0.0
    peer.environment.mkdir(parents=True, exist_ok=True)
    pip = [str(python_of(peer)), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(peer.environment / "venv")],
        [*pip, *peer.requirements, *OURS],
    ):
        code, said = runner(command, TIMEOUT)
        if code:
            last = said.splitlines()[-1] if said else f"exit status {code}"
            return printable(last)[:300], time.monotonic() - started
    _marker(peer).write_text(_wanted(peer), "utf-8")
    return "", time.monotonic() - started


def warm(peer: Peer) -> str:
    """Load the adapter once, without a deadline for hello: the first import of a large library is slow. What broke, or ""."""
    where, env = address(peer)
    code, said = run(shlex.split(where.removeprefix("exec:")), TIMEOUT, env)
    return "" if not code else printable(said.splitlines()[-1] if said else f"exit status {code}")[:300]


def address(peer: Peer) -> tuple[str, dict[str, str]]:
    """The address that serves its adapter, and the variables of the process that runs the suite on it."""
    serve = [str(python_of(peer)), "-m", "quantspec_conformance.implementations.serve", f"py:{peer.adapter}:Adapter"]
    return "exec:" + shlex.join([*serve, "--wire", "frames"]), variables()
