"""The process part of `adapter check`: a command, its wire and its manners, spoken to message by message."""

import time
from collections.abc import Callable, Iterator, Sequence

from .examples import Tensor
from .findings import Finding
from .implementations.ahead import MOST
from .implementations.child import Child, Ended, Received
from .implementations.errors import ImplementationError
from .protocol.control import Ping, Stop
from .protocol.envelope import Message
from .protocol.messages import Answer, Failed, Hello, Identity, Ok, Rejected, Request, Unsupported
from .protocol.text import hello_line

__all__ = ["CHECKS", "check_process", "hint_of_bytes"]

STOPS_WITHIN = 2.0  #: seconds
_LARGE = 4096  #: elements of every other request in flight
_STDERR = 8  #: last lines of it that are shown
_QUIET = 0.2  #: seconds in which nothing may come unasked
_STDOUT = "answers alone belong on stdout: print to stderr, and point descriptor 1 at 2 before a library is loaded"
_UPPER = "write digits in upper case and in full width: %02X for u8, %04X, %08X"
_NEVER_EXIT = "answer what you do not know with: unsupported id=... feature=...; never exit, never stay silent"


class _Lost(Exception):
    """No answer came; says what came instead."""


class _Session:
    """One start of the command, for one check."""

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self.child = Child(command, None)
        self._timeout = timeout
        self._number = 0
        self._over = False
        self.child.send(hello_line(Hello()))
        try:
            self.identity = self._introduced()
        except BaseException:
            self.kill()
            raise

    def close(self) -> str:
        """End the process, once; how it had ended by itself, in words."""
        if self._over:
            return "it was ended"
        self._over = True
        return self.child.end()

    def kill(self) -> None:
        """End the process at once, if it is not over."""
        if not self._over:
            self._over = True
            self.child.kill()

    def _introduced(self) -> Identity:
        received = self._wait("hello")
        if isinstance(received, Identity):
            return received
        raise _Lost(f"the answer to hello is {type(received).__name__}")

    def _wait(self, what: str) -> Received:
        try:
            received = self.child.wait(self._timeout)
        except TimeoutError:
            raise _Lost(f"no answer to {what} for {self._timeout:g} s") from None
        if isinstance(received, Ended):
            raise _Lost(self._ended(received, what))
        return received

    def _ended(self, ended: Ended, what: str) -> str:
        if ended.fault:
            return f"after {what}: {ended.fault}"
        how = self.close()
        said = self.child.stderr().splitlines()[-_STDERR:]
        if len(said) < 2:
            return f"it ended on {what} ({how})" + (f"; stderr ends with: {said[0]}" if said else "")
        return "\n".join([f"it ended on {what} ({how}); stderr ends with:", *said])

    def ask(self, message: Message, what: str, change: tuple[bytes, bytes] | None = None) -> Answer:
        """The answer to one message, `change` made to its bytes first. _Lost where none comes, or one with another id."""
        self._number += 1
        if self.child.wire is None:
            raise AssertionError("an adapter that answered hello has a wire")
        sent = self.child.wire.write_request(self._number, message)
        self.child.send(sent.replace(*change) if change else sent)
        received = self._wait(what)
        if isinstance(received, tuple) and received[0] == self._number:
            return received[1]
        number = received[0] if isinstance(received, tuple) else "none"
        raise _Lost(f"the answer to {what} has id {number}; allowed: {self._number}")

    def ask_all(self, messages: Sequence[Message], what: str) -> list[Answer]:
        """The answers to messages that are all sent before the first answer is waited for. _Lost where one has another id."""
        if self.child.wire is None:
            raise AssertionError("an adapter that answered hello has a wire")
        first = self._number + 1
        for message in messages:
            self._number += 1
            self.child.send(self.child.wire.write_request(self._number, message))
        found = []
        for number in range(first, self._number + 1):
            received = self._wait(what)
            if not isinstance(received, tuple) or received[0] != number:
                said = received[0] if isinstance(received, tuple) else "none"
                raise _Lost(f"an answer to {what} has id {said}; allowed: {number}, the oldest without an answer")
            found.append(received[1])
        return found

    def unasked(self) -> str:
        """What comes without a question, in words; "" for nothing."""
        try:
            received = self.child.wait(_QUIET)
        except TimeoutError:
            return ""
        if isinstance(received, Ended):
            return received.fault or "it ended without being asked to"
        return "an answer without a question"


def check_process(command: Sequence[str], *, timeout: float) -> Iterator[Finding]:
    """Start, wire, unknown messages, noise, restart and stop of a command. The only finding is bad where it does not start."""
    try:
        yield _started(command, timeout)
    except (ImplementationError, _Lost) as error:
        yield Finding("start", "bad", str(error), _hint_of_start(str(error)))
        return
    for name, check in CHECKS.items():
        yield _checked(name, check, command, timeout)


def _checked(name: str, check: "Check", command: Sequence[str], timeout: float) -> Finding:
    session: _Session | None = None
    try:
        session = _Session(command, timeout)
        return check(name, session, command, timeout)
    except (ImplementationError, _Lost) as error:
        return Finding(name, "bad", str(error), hint_of_bytes(str(error)) or _HINTS[name])
    finally:
        if session is not None:
            session.kill()


def hint_of_bytes(text: str) -> str:
    """What to do where the answer could not be read; "" for another fault."""
    if "upper-case hexadecimal digits" in text:
        return _UPPER
    return _STDOUT if "stdout belongs" in text else ""


def _hint_of_start(text: str) -> str:
    if "cannot be started" in text:
        return (
            "the command is split as a shell splits it, and run from this folder: is the program there and executable?"
        )
    return (
        hint_of_bytes(text)
        or "read one line from stdin and answer it: ok protocol=1.0 name=... ; flush after every answer"
    )


def _started(command: Sequence[str], timeout: float) -> Finding:
    began = time.monotonic()
    session = _Session(command, timeout)
    took = time.monotonic() - began
    try:
        wire = session.child.wire
        name = wire.name if wire else "no wire"
        return Finding("start", "ok", f"{session.identity.name} answers hello on the wire {name} after {took:.2f} s")
    finally:
        session.kill()


def _unknown_message(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    """A verb of a later protocol, then one that must still work."""
    answer = session.ask(Ping(), "a message with an unknown verb", (b"ping", b"pong"))
    if not isinstance(answer, Unsupported):
        return Finding(name, "bad", f"an unknown verb is answered {type(answer).__name__.lower()}", _NEVER_EXIT)
    return _alive(name, session, "an unknown verb is answered unsupported")


def _unknown_operation(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    answer = session.ask(Request("no_such_operation"), "an unknown operation")
    if not isinstance(answer, Unsupported):
        return Finding(name, "bad", f"an unknown operation is answered {type(answer).__name__.lower()}", _NEVER_EXIT)
    return _alive(name, session, "an unknown operation is answered unsupported")


def _malformed(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    """A tensor that holds fewer patterns than its shape says, on either wire; then a ping."""
    ops = session.identity.ops
    op = "echo" if not ops or "echo" in ops else "encode"
    request = Request(op, {"value": "e2m1"} if op == "encode" else {}, {"x": Tensor("f32", (1,), (0x3F800000,))})
    spelled = session.child.wire is not None and session.child.wire.name == "text"
    change = (b"x=f32:1:", b"x=f32:2:") if spelled else (b'"shape":[1]', b'"shape":[2]')
    answer = session.ask(request, "a request that cannot be read, x=f32:2:3F800000", change)
    said = type(answer).__name__.lower()
    if isinstance(answer, Failed):
        return _alive(name, session, "a tensor of too few digits is answered failed")
    if isinstance(answer, Rejected | Unsupported):
        alive = _alive(name, session, "")
        line = f"x=f32:2:3F800000 has one pattern where its shape says two, and is answered {said}"
        return alive if alive.bad else Finding(name, "warn", line, _HINTS[name])
    return Finding(
        name, "bad", f"x=f32:2:3F800000 has one pattern where its shape says two: answered {said}", _HINTS[name]
    )


def _alive(name: str, session: _Session, text: str) -> Finding:
    answer = session.ask(Ping(), "the ping after it")
    if isinstance(answer, Ok) and not answer.tensors and not answer.words:
        return Finding(name, "ok", text)
    return Finding(name, "bad", f"{text}, but a ping {type(answer).__name__.lower()}", "answer ping with: ok id=...")


def _noise(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    """Nothing comes before a question, after its answer, or twice."""
    for what in ("hello", "ping", "run"):
        if what != "hello":
            session.ask(Ping() if what == "ping" else Request("echo"), what)
        stray = session.unasked()
        if stray:
            return Finding(name, "bad", f"after the answer to {what}: {stray}", hint_of_bytes(stray) or _STDOUT)
    return Finding(name, "ok", "nothing on stdout but answers")


def _restart(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    """Killed with a request before it, started anew: the same identity, and it answers."""
    if session.child.wire is not None:
        session.child.send(session.child.wire.write_request(1, Ping()))
    session.kill()
    second = _Session(command, timeout)
    try:
        if second.identity != session.identity:
            text = "after a restart it says that it is another: the identity differs"
            return Finding(name, "bad", text, "keep times, process ids and random numbers out of the identity")
        return _alive(name, second, "killed and started anew, it is the same")
    finally:
        second.kill()


def _in_flight(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    """As many requests at once as the identity allows, large and small in turn: each is answered, in order."""
    allowed = min(session.identity.max_in_flight, MOST)
    if allowed == 1:
        return Finding(name, "ok", "one request at a time")
    ops = session.identity.ops
    sized = [Tensor("u32", (size,), tuple(range(size))) for size in (_LARGE, 1)]
    echoes = [Request("echo", {}, {"x": tensor}) for tensor in sized]
    asked: list[Message] = [echoes[i % 2] if not ops or "echo" in ops else Ping() for i in range(allowed)]
    answers = session.ask_all(asked, f"one of {allowed} requests in flight")
    wrong = [
        number for number, (message, answer) in enumerate(zip(asked, answers, strict=True), 1)
        if isinstance(message, Request) and answer != Ok(message.tensors) and not isinstance(answer, Unsupported)
    ]  # fmt: skip
    if wrong:
        return Finding(
            name, "bad", f"request {wrong[0]} of {allowed} in flight got the answer to another one", _HINTS[name]
        )
    return Finding(name, "ok", f"{allowed} requests at once are answered in their order")


def _stop(name: str, session: _Session, command: Sequence[str], timeout: float) -> Finding:
    """`stop` ends it, soon, with exit status 0."""
    wire = session.child.wire
    if wire is None:
        raise AssertionError("an adapter that answered hello has a wire")
    session.child.send(wire.write_request(0, Stop()))
    began = time.monotonic()
    try:
        received = session.child.wait(STOPS_WITHIN)
    except TimeoutError:
        return Finding(name, "bad", f"it still runs {STOPS_WITHIN:g} s after stop", _HINTS[name])
    took = time.monotonic() - began
    if not isinstance(received, Ended) or received.fault:
        text = received.fault if isinstance(received, Ended) else "stop is answered; it has no answer"
        return Finding(name, "bad", text, _HINTS[name])
    how = session.close()
    if how != "exit status 0":
        return Finding(name, "bad", f"on stop: {how}", "end with exit status 0 on stop")
    return Finding(name, "ok", f"it ends {took:.2f} s after stop")


_HINTS = {
    "unknown message": _NEVER_EXIT,
    "unknown operation": _NEVER_EXIT,
    "malformed request": "compare digits and shape, take upper case alone; answer what cannot be read: failed id=... message=...",
    "stdout": _STDOUT,
    "restart": "a process that starts must not need anything that the one before it left behind, or held",
    "in flight": "answer in the order of the requests, each once; max_in_flight=1, or nothing, asks for one at a time",
    "stop": "leave the loop on the line `stop` and at the end of input; do not wait for threads or devices",
}
Check = Callable[[str, _Session, Sequence[str], float], Finding]
CHECKS: dict[str, Check] = {
    "unknown message": _unknown_message,
    "unknown operation": _unknown_operation,
    "malformed request": _malformed,
    "stdout": _noise,
    "restart": _restart,
    "in flight": _in_flight,
    "stop": _stop,
}
