"""A peer's worker as a process of its environment: started, asked for one timing at a time, ended."""

import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from quantspec_conformance.outside import printable
from quantspec_conformance.peers.environment import python_of
from quantspec_conformance.peers.table import Peer

__all__ = ["PREPARE", "SETTLE", "TURN", "Refused", "Worker", "command", "variables"]

SCRIPT = Path(__file__).with_name("peer_calls.py")
PREPARE, TURN = 240.0, 60.0  #: seconds for import, compilation and two calls; for one call
SETTLE = 0.05  #: seconds after a peer's call: threads of its pool may spin that long, on our cores
KEPT = str(2**40)


class Refused(Exception):
    """A peer cannot be timed; the text is the reason."""


def command(peer: Peer, call: str, arguments: Sequence[Any], elements: int) -> list[str]:
    """The command of a peer's worker."""
    package = peer.requirements[0].partition("=")[0].partition("[")[0]
    request = {"call": call, "arguments": list(arguments), "elements": elements, "package": package}
    return [str(python_of(peer)), str(SCRIPT), json.dumps(request)]


def variables() -> dict[str, str]:
    """This environment without our own packages. What a peer frees stays with it: its calls find warm pages, as our kernels do."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": KEPT, "PYTHONNOUSERSITE": "1"}


class Worker:
    """A worker, ready. A context manager that ends the process; raises Refused with the reason, also in `seconds`."""

    def __init__(self, arguments: Sequence[str], *, prepare: float = PREPARE, turn: float = TURN) -> None:
        self._turn = turn
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        try:
            self._process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=variables(),
                bufsize=0,
                start_new_session=True,  # Ctrl-C is ours to handle
            )
        except OSError as error:
            self._errors.close()
            raise Refused(f"{printable(str(arguments[0]))} cannot be started: {error.strerror}") from error
        try:
            said = self._json(self._answer(prepare, "to prepare"))
            if "refused" in said:
                raise Refused(printable(str(said["refused"])))
            self.version, self.bytes = str(said.get("version", "")), int(said.get("bytes", 0))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def seconds(self) -> float:
        """The wall time of one call, as the worker measured it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"go\n")
        except OSError as error:
            raise Refused(self._ended()) from error
        said = self._answer(self._turn, "for a call")
        try:
            taken = float(said)
        except ValueError:
            taken = 0.0
        if not 0 < taken < self._turn:
            raise Refused(f"it answered {printable(said)[:80]!r} where the seconds of a call belong")
        time.sleep(SETTLE)
        return taken

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()

    def _answer(self, timeout: float, what: str) -> str:
        """One line. A worker writes a line only when it is asked, so nothing is left over."""
        assert self._process.stdout is not None
        said, end = b"", time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                if not selector.select(max(end - time.monotonic(), 0)):
                    raise Refused(f"it took more than {timeout:g} s {what}")
                part = os.read(self._process.stdout.fileno(), 65536)
                if not part:
                    raise Refused(self._ended())
                said += part
        return said.decode("utf-8", "replace").strip()

    def _json(self, line: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise Refused(f"it said {printable(line)[:80]!r} where JSON belongs")
        return found

    def _ended(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"it ended with status {code}" + (f": {printable(lines[-1])[:200]}" if lines else "")
