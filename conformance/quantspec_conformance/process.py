"""A worker process and its threads: requests go out from one, answers and stderr come in on two others."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import quantspec

from .wire import WireError, read, write

__all__ = ["Closed", "Worker"]

STDERR_KEPT = 40


class Closed:
    """What comes after the last message of a worker: its exit status, and why it is no message."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault


Inbox = queue.Queue[tuple["Worker", dict[str, Any] | Closed]]


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This environment, the variables that isolate a runtime, and a path on which the worker finds our packages."""
    package = Path(__file__).resolve().parent
    roots = [str(package.parent), str(Path(quantspec.__file__).resolve().parent.parent)]
    kernels = package.parent.parent / "kernels_cl"
    roots += [str(kernels)] if kernels.is_dir() else []
    roots += [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(dict.fromkeys(roots))}


class Worker:
    """One process that answers on `inbox`. Close it, or use it as a context manager."""

    def __init__(self, inbox: Inbox, variables: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "quantspec_conformance.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(variables or {}),
        )
        self._inbox = inbox
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=STDERR_KEPT)
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._send, self._receive, self._listen)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a request; a worker that is gone says so on the inbox."""
        self._outbox.put(write(message))

    def _pipe(self, stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise AssertionError("the worker was started with pipes")
        return stream

    def _send(self) -> None:
        pipe = self._pipe(self.process.stdin)
        # a worker that died closes the pipe: the reader reports that
        with contextlib.suppress(OSError, ValueError):
            while (line := self._outbox.get()) is not None:
                pipe.write(line)
                pipe.flush()
        with contextlib.suppress(OSError):
            pipe.close()

    def _receive(self) -> None:
        fault = ""
        try:
            for line in self._pipe(self.process.stdout):
                self._inbox.put((self, read(line)))
        except WireError as error:
            fault = str(error)
        self._inbox.put((self, Closed(fault)))

    def _listen(self) -> None:
        for line in self._pipe(self.process.stderr):
            self._stderr.append(line.decode("utf-8", "replace").rstrip())

    def stderr(self) -> str:
        """The last lines that the worker, or its runtime, wrote."""
        self._threads[2].join(timeout=1)
        return "\n".join(self._stderr)

    def ended(self) -> str:
        """How the process ended, in words."""
        code = self.process.wait(timeout=10)
        if code >= 0:
            return f"exit status {code}"
        return f"signal {signal.Signals(-code).name}"

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self._finish()

    def stop(self) -> None:
        """Ask the process to end, and end it if it does not."""
        self._outbox.put(write({"op": "stop"}))
        self._outbox.put(None)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._finish()

    def _finish(self) -> None:
        """Wait for the process and the threads, and close the pipes."""
        self._outbox.put(None)
        self.process.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
