"""An implementation in a process of its own, on either wire: started when it is first asked, started anew after a crash."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Asked:
    """A request without an answer, and its number once it was sent to the child that runs now."""

    request: Request
    number: int | None = None


class ProcessImplementation:
    """A command that speaks the protocol on stdin and stdout. Close it, or use it as a context manager.

    `hello` and `handle` raise ImplementationError where no answer comes; the next request starts the command anew, at most
    20 times. After a restart it must say that it is the same. `post` and `collect` keep several requests in flight.
    `timeout` holds for each request, `hello_timeout` for a start.
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
        self._waiting: deque[_Asked] = deque()

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
        if self._waiting:
            raise AssertionError("requests are in flight: their answers come first")
        self.post(request)
        return self.collect()

    def post(self, request: Request) -> None:
        """Ask without waiting. Requests go out when an answer is next waited for."""
        self._waiting.append(_Asked(request))

    def collect(self) -> Answer:
        """The answer to the oldest request without one.

        ImplementationError where none comes: that ends this request alone; those after it are sent again after the restart.
        The time-out begins here, where the answer before has been taken.
        """
        asked = self._waiting.popleft()
        child = self._running()
        self._send(child, asked)
        received = self._wait(child, self._timeout, f"to {asked.request.op}")
        if isinstance(received, tuple) and received[0] == asked.number:
            return received[1]
        self._crashed(child, received, allowed=asked.number)

    def forget(self) -> None:
        """End the command where it still has something to answer: its answers would be taken for those to later requests."""
        self._waiting.clear()
        child = self._gone()
        if child is not None:
            child.kill()

    def close(self) -> None:
        """Stop the command: ask, wait two seconds, end it."""
        self._waiting.clear()
        child = self._gone()
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

    def _send(self, child: Child, first: _Asked) -> None:
        """Send what the child has not got yet, the first and those that wait behind it."""
        if child.wire is None:
            raise AssertionError("a running child has a wire")
        if first.number is None:
            early = child.pending()
            if early is not None:
                self._crashed(child, early, "before this request was sent, ")
        for asked in (first, *self._waiting):
            if asked.number is not None:
                continue
            try:
                parts = child.wire.parts(self._number + 1, asked.request)
            except ProtocolError as error:
                if asked is not first:
                    return  # told when its turn comes
                raise ImplementationError("error", f"the request cannot be sent: {error}") from None
            self._number += 1
            asked.number = self._number
            child.send(*parts)

    def _gone(self) -> Child | None:
        """The child, which is ours no more: what it has not answered was sent to nobody."""
        child, self._child = self._child, None
        for asked in self._waiting:
            asked.number = None
        return child

    def _wait(self, child: Child, seconds: float, what: str) -> Received:
        """What comes next; a child that lets us wait too long, or that we leave, is ended."""
        try:
            return child.wait(seconds)
        except TimeoutError:
            self._lose(child, "timeout", f"no answer {what} for {seconds:g} s")
        except BaseException:  # Ctrl-C: its answers would be taken for those to the next requests
            self.forget()
            raise

    def _crashed(self, child: Child, received: Received, when: str = "", allowed: int | None = None) -> NoReturn:
        match received:
            case Ended(fault=""):
                self._gone()
                ended = child.end()
                raise ImplementationError("crash", f"{when}the process ended: {ended}", child.stderr())
            case Ended():
                self._gone()
                ended = child.end(_MOMENT)
                also = "" if ended == RUNNING else f"; the process ended: {ended}"
                raise ImplementationError("crash", f"{when}{received.fault}{also}", child.stderr())
            case Identity():
                message = "it said who it is without being asked"
            case (number, _):
                due = f"{allowed}, once" if allowed is not None else "each id once, in the order of the requests"
                message = f"it answered with id {number}; allowed: {due}"
        self._lose(child, "crash", f"{when}{message}")

    def _lose(self, child: Child, status: str, message: str) -> NoReturn:
        self._gone()
        child.kill()
        raise ImplementationError(status, message, child.stderr())
