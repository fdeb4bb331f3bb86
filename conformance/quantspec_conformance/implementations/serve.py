"""Any in-process implementation behind stdin and stdout.

    python -m quantspec_conformance.implementations.serve ADDRESS [--wire text|frames]

ADDRESS is `reference`, `py:...`, or `opencl:` with a device of this process. Answers go to a private copy of stdout;
descriptor 1 is pointed at stderr before anything else is loaded, so that what a runtime prints harms nothing.
"""

import argparse
import faulthandler
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

from ..errors import HarnessError, UsageError
from ..protocol.control import Ping, Stop, Unknown
from ..protocol.envelope import Message
from ..protocol.frames import Part
from ..protocol.messages import Answer, Failed, Implementation, MalformedError, Ok, ProtocolError, Request, Unsupported
from ..protocol.text import read_hello
from ..protocol.wires import WIRES, Wire, read_line
from .ahead import MOST
from .errors import ImplementationError

__all__ = ["main", "open_served", "serve"]


def open_served(address: str) -> Implementation:
    """The implementation of an address, in this process. UsageError, DeviceError."""
    if address == "reference":
        from .guard import Guard
        from .law import Law

        return Guard(Law(), address)
    if address.startswith("py:"):
        from .python import open_python

        return open_python(address)
    if address.startswith("opencl:"):
        from .opencl import open_session

        return open_session(address.removeprefix("opencl:"))
    raise UsageError(f"{address!r} cannot be served; allowed: reference, py:FILE.py:CLASS, py:NAME, opencl:DEVICE")


def serve(implementation: Implementation, wire: Wire, source: BinaryIO, sink: BinaryIO) -> None:
    """Answer hello and then requests until `stop` or the end of input. ProtocolError for what is no message."""
    first = read_line(source)
    if first is None:
        return
    identity = implementation.hello(read_hello(first))
    _write(
        sink, wire.write_identity(replace(identity, max_in_flight=MOST))
    )  # they wait in the pipe: one is done after the other
    while True:
        try:
            received = wire.read_request(source)
        except MalformedError as error:  # read to its end: what follows can still be read
            _write(sink, *wire.parts(error.number, Failed(f"the request cannot be read: {error}")))
            continue
        if received is None:
            return
        number, message = received
        if isinstance(message, Stop):
            return
        answer = _answer(implementation, message)
        try:
            written = wire.parts(number, answer)
        except ProtocolError as error:
            written = wire.parts(number, Failed(f"the answer cannot be sent: {error}"))
        _write(sink, *written)


def _answer(implementation: Implementation, message: Message) -> Answer:
    match message:
        case Request():
            return implementation.handle(message)
        case Unknown():
            return Unsupported(f"verb:{message.verb}", "no verb of protocol 1.0")
        case Ping() | Stop():
            return Ok()


def _write(sink: BinaryIO, *parts: Part) -> None:
    for part in parts:
        sink.write(part)
    sink.flush()


def _private_stdout() -> BinaryIO:
    """A descriptor of our own for answers; whatever prints to stdout from now on lands on stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "wb")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve on this process's own descriptors; the exit code."""
    parser = argparse.ArgumentParser(prog="quantspec_conformance.implementations.serve", description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--wire", choices=sorted(WIRES), default="text")
    options = parser.parse_args(arguments)
    sink = _private_stdout()
    faulthandler.enable()  # an abort inside a runtime leaves the line of the call on stderr
    try:
        implementation = open_served(options.address)
        try:
            serve(implementation, WIRES[options.wire], sys.stdin.buffer, sink)
        finally:
            implementation.close()
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except (ImplementationError, ProtocolError) as error:
        print(error, file=sys.stderr)
        return 3
    except BrokenPipeError:  # the harness is gone
        sys.stderr.flush()
        os._exit(0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
