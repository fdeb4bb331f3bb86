"""An implementation in a process of its own, on either wire: started when it is first asked, started anew after a crash."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NoReturn

from ..outside import printable
from ..protocol.messages import Answer, Hello, Identity, ProtocolError, Request
from ..protocol.text import hello_line
from .child import RUNNING, Child, Ended, Received
from .errors import ImplementationError

__all__ = ["RESTARTS", "ProcessImplementation"]

RESTARTS = 20
_MOMENT = 0.1  #: seconds for a process to end that sent half a message


class ProcessImplementation:
    """A command that speaks the protocol on stdin and stdout. Close it, or use it as a context manager.

    `hello` and `handle` raise ImplementationError where no answer comes; the next request starts the command anew, at most
    20 times. After a restart it must say that it is the same. `timeout` holds for each request, `hello_timeout` for a start.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float = 10.0,
        hello_timeout: float = 30.0,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if not command:
            raise ImplementationError("error", "the command is empty")
        self.command = tuple(command)
        self._timeout = timeout
        self._hello_timeout = hello_timeout
        self._env = env
        self._hello = Hello()
        self._identity: Identity | None = None
        self._child: Child | None = None
        self._starts = 0
        self._number = 0

    def hello(self, hello: Hello) -> Identity:
        """Start the command if it does not run, and who it says it is."""
        if self._child is not None and hello != self._hello:
            self.close()
        self._hello = hello
        self._running()
        if self._identity is None:
            raise AssertionError("a running child has said who it is")
        return self._identity

    def handle(self, request: Request) -> Answer:
        """The command's answer to one request."""
        child = self._running()
        self._number += 1
        if child.wire is None:
            raise AssertionError("a running child has a wire")
        try:
            parts = child.wire.parts(self._number, request)
        except ProtocolError as error:
            raise ImplementationError("error", f"the request cannot be sent: {error}") from None
        early = child.pending()
        if early is not None:
            self._crashed(child, early, "before this request was sent, ")
        child.send(*parts)
        received = self._wait(child, self._timeout, f"to {request.op}")
        if isinstance(received, tuple) and received[0] == self._number:
            return received[1]
        self._crashed(child, received)

    def close(self) -> None:
        """Stop the command: ask, wait two seconds, end it."""
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def __enter__(self) -> "ProcessImplementation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> Child:
        """The child, started and known."""
        if self._child is not None:
            return self._child
        if self._starts > RESTARTS:
            raise ImplementationError("error", f"{printable(self.command[0])} was restarted {RESTARTS} times; no more")
        self._starts += 1
        child = self._child = Child(self.command, self._env)
        child.send(hello_line(self._hello))
        identity = self._wait(child, self._hello_timeout, "to hello")
        if not isinstance(identity, Identity):
            self._crashed(child, identity, "during hello, ")
        if self._identity is not None and identity != self._identity:
            self._lose(child, "error", "after a restart it says that it is another: its identity differs")
        self._identity = identity
        return child

    def _wait(self, child: Child, seconds: float, what: str) -> Received:
        """What comes next; a child that lets us wait too long, or that we leave, is ended."""
        try:
            return child.wait(seconds)
        except TimeoutError:
            self._lose(child, "timeout", f"no answer {what} for {seconds:g} s")
        except BaseException:  # Ctrl-C: its answer would be taken for that to the next request
            self._child = None
            child.kill()
            raise

    def _crashed(self, child: Child, received: Received, when: str = "") -> NoReturn:
        match received:
            case Ended(fault=""):
                self._child = None
                ended = child.end()
                raise ImplementationError("crash", f"{when}the process ended: {ended}", child.stderr())
            case Ended():
                self._child = None
                ended = child.end(_MOMENT)
                also = "" if ended == RUNNING else f"; the process ended: {ended}"
                raise ImplementationError("crash", f"{when}{received.fault}{also}", child.stderr())
            case Identity():
                message = "it said who it is without being asked"
            case (number, _):
                message = f"it answered with id {number}; allowed: {self._number}, once"
        self._lose(child, "crash", f"{when}{message}")

    def _lose(self, child: Child, status: str, message: str) -> NoReturn:
        self._child = None
        child.kill()
        raise ImplementationError(status, message, child.stderr())
