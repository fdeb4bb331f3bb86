"""One process behind pipes: requests go out from a thread of their own, answers and stderr come in on two others."""

import contextlib
import fcntl
import io
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

from ..outside import printable
from ..protocol.control import Stop
from ..protocol.frames import Part
from ..protocol.limits import StrayError
from ..protocol.messages import Answer, Identity, ProtocolError
from ..protocol.wires import Wire, find_wire
from .errors import ImplementationError

__all__ = ["RUNNING", "Child", "Ended", "Received"]

STDERR_LINES = 64
STDERR_COLUMNS = 500
WAITING = 4  #: answers that wait to be taken; who sends more is not read
PIPE = 2**20  #: bytes that a pipe holds, where the system lets us choose
RUNNING = "it closed its stdout and went on running"
GRACE = 2.0  #: seconds for a process to end, or for its last answer to arrive after it ended
_TICK = 0.1
_HINT = "stdout belongs to the protocol: print to stderr"


@dataclass(frozen=True, slots=True)
class Ended:
    """The last thing that comes from a process: nothing more, or what was no message."""

    fault: str = ""


Received = tuple[int, Answer] | Identity | Ended


class Child:
    """A running process. ImplementationError where it cannot be started."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=2**16,
                env=None if env is None else dict(env),
                process_group=0,  # Ctrl-C reaches us alone; we end it when we have stopped
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ImplementationError("error", f"{printable(command[0])} cannot be started: {reason}") from None
        self.wire: Wire | None = None
        self._inbox: queue.Queue[Received] = queue.Queue(WAITING)
        self._outbox: queue.SimpleQueue[tuple[Part, ...] | None] = queue.SimpleQueue()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._closing = threading.Event()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._send, self._receive, self._listen)
        ]
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(_pipe(stream).fileno(), fcntl.F_SETPIPE_SZ, PIPE)
        for thread in self._threads:
            thread.start()

    def send(self, *parts: Part) -> None:
        """Queue a message, whole or in parts; a process that is gone says so when it is waited for."""
        self._outbox.put(parts)

    def pending(self) -> Received | None:
        """What came unasked, if anything."""
        with contextlib.suppress(queue.Empty):
            return self._inbox.get_nowait()
        return None

    def wait(self, timeout: float) -> Received:
        """The next message. TimeoutError where none comes in time."""
        deadline = time.monotonic() + timeout
        gone: float | None = None
        while True:
            left = deadline - time.monotonic()
            with contextlib.suppress(queue.Empty):
                return self._inbox.get(timeout=max(min(left, _TICK), 0.001))
            if left <= 0:
                raise TimeoutError
            if gone is None and self._exited():
                gone = time.monotonic()
            if gone is not None and time.monotonic() - gone > GRACE:
                return Ended()  # a process of its own still holds the pipe

    def stderr(self) -> str:
        """The last lines of stderr, each cut at some length, safe to print."""
        return "\n".join(self._stderr)

    def stop(self) -> None:
        """Ask the process to end, wait a little, and end its whole group."""
        if self.wire is not None:
            self.send(self.wire.write_request(0, Stop()))
        self._outbox.put(None)
        self._await_exit(GRACE)
        self.kill()

    def kill(self) -> str:
        """End the process and its group at once; how it had ended by itself, in words, or RUNNING."""
        self._closing.set()
        ended = self._exited()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # not reaped yet: the number is still its own
        code = self._process.wait()
        self._outbox.put(None)
        for thread in self._threads:
            thread.join(timeout=GRACE)
        for stream, thread in ((self._process.stdout, self._threads[1]), (self._process.stderr, self._threads[2])):
            if not thread.is_alive():
                _pipe(stream).close()
        if not ended:
            return RUNNING
        return f"exit status {code}" if code >= 0 else f"signal {_signal(-code)}"

    def end(self, seconds: float = GRACE / 4) -> str:
        """After the last message: let the process end, then `kill`."""
        self._await_exit(seconds)
        return self.kill()

    def _await_exit(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self._exited() and time.monotonic() < deadline:
            time.sleep(0.005)

    def _exited(self) -> bool:
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _send(self) -> None:
        pipe = _pipe(self._process.stdin)
        with contextlib.suppress(OSError, ValueError):  # a process that is gone: the reader says so
            while (parts := self._outbox.get()) is not None:
                for part in parts:
                    pipe.write(part)
                pipe.flush()
        with contextlib.suppress(OSError):
            pipe.close()

    def _receive(self) -> None:
        stream = cast(io.BufferedReader, _pipe(self._process.stdout))
        fault = ""
        try:
            self._read(stream)
        except StrayError as error:
            fault = f"{error}; {_HINT}"
        except (ProtocolError, OSError, ValueError, MemoryError) as error:
            fault = str(error) or type(error).__name__
        self._put(Ended(fault))

    def _read(self, stream: io.BufferedReader) -> None:
        self.wire = wire = find_wire(stream)
        if wire is None:
            return
        source = cast(BinaryIO, stream)
        identity = wire.read_identity(source)
        if identity is None:
            return
        self._put(identity)
        while (answer := wire.read_answer(source)) is not None:
            self._put(answer)

    def _put(self, received: Received) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(queue.Full):
                return self._inbox.put(received, timeout=_TICK)

    def _listen(self) -> None:
        stream = _pipe(self._process.stderr)
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(2**14):  # a line without an end is cut into several
                self._stderr.append(printable(line.decode("utf-8", "replace").rstrip()[:STDERR_COLUMNS], keep="\t"))


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("the process was started with pipes")
    return stream


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
