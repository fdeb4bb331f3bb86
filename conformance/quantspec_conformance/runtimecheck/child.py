"""A process with a time-out and bounded output, in a session of its own so that all it started ends with it."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..outside import printable

__all__ = ["Ended", "environment", "run_child"]

KEPT = 1 << 16  #: bytes of each stream
_PIECE = 1 << 12
#: Variables that choose a runtime or change what it does: a row sets its own.
_FOREIGN = ("OCL_ICD_", "OPENCL_", "PYOPENCL_", "OCLGRIND_", "POCL_", "CL_CONFIG_", "RUSTICL_", "GALLIUM_")
_PACKAGES = ("quantspec_conformance", "quantspec", "quantspec_cl")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: its code, negative for a signal, None where the time was over; the end of what it wrote."""

    code: int | None
    out: str
    err: str
    seconds: float

    @property
    def signal(self) -> str:
        """The name of the signal that ended it; empty where none did."""
        if self.code is None or self.code >= 0:
            return ""
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return f"signal {-self.code}"

    def said(self, lines: int = 12) -> str:
        """The last lines on stderr."""
        return "\n".join([line for line in self.err.splitlines() if line.strip()][-lines:])


def environment(variables: Mapping[str, str], work: Path) -> dict[str, str]:
    """A row's variables: nobody else's choice of runtime, every cache and temporary file inside `work`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    roots = []
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            roots.append(str(Path(spec.origin).parent.parent))
    roots += [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(roots)),
        "PYOPENCL_NO_CACHE": "1",
        "POCL_CACHE_DIR": str(work),
        "MESA_SHADER_CACHE_DIR": str(work),  # without a cache rusticl compiles a kernel at every launch
        "TMPDIR": str(work),
        **variables,
    }


class _Tail:
    """The last bytes of a stream, read as they come: a process that writes without end is not stopped by it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._pieces: deque[bytes] = deque(maxlen=KEPT // _PIECE)
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes] | None) -> None:
        with contextlib.suppress(OSError, ValueError):
            while stream is not None and (piece := stream.read(_PIECE)):
                self._pieces.append(piece)

    def text(self) -> str:
        """What was kept, safe to print."""
        self._thread.join(timeout=5)
        return printable(b"".join(self._pieces).decode("utf-8", "replace"), keep="\n\t")


def _over(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait until the process has ended, without taking its status, or the time is over; True where it has ended."""
    while time.monotonic() < deadline:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        time.sleep(0.02)
    return False


def run_child(words: Sequence[str], *, env: Mapping[str, str], seconds: float, folder: Path | None = None) -> Ended:
    """Run a command line to its end or to the end of its time; whatever it left running is ended too."""
    begun = time.monotonic()
    process = subprocess.Popen(
        list(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=folder,
        start_new_session=True,
    )
    out, err = _Tail(process.stdout), _Tail(process.stderr)
    try:
        over = _over(process, begun + seconds)
    finally:  # before it is waited for: until then nobody else can have its number
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    ended = Ended(code if over else None, out.text(), err.text(), time.monotonic() - begun)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return ended
