"""The process that one device runs in: requests on stdin, answers on a private copy of stdout, one JSON object a line.

    python -m quantspec_conformance.worker

Runtimes print, abort and hang; here that harms nobody else. Descriptor 1 is pointed at stderr before anything is loaded.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from .adapters import Adapter, load
from .chain import perform
from .messages import batch_of, result_of
from .wire import WireError, read, write

__all__ = ["main"]

Answer = Callable[[dict[str, Any]], None]


def _private_stdout() -> BinaryIO:
    """A descriptor of our own for answers; whatever prints to stdout from now on lands on stderr."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "wb")


def _hello(message: dict[str, Any], answer: Answer) -> Adapter | None:
    """Open the adapter and say what it is; None where it cannot be opened."""
    try:
        adapter = load(
            message["device"], build_options=message.get("build_options", ()), path=message.get("path", "auto")
        )
        answer({"op": "hello", "identity": dict(adapter.identity())})
        return adapter
    except Exception as error:  # whatever a runtime does wrong is reported, not raised
        answer({"op": "unusable", "error": type(error).__name__, "message": str(error)})
        return None


def _case(adapter: Adapter, message: dict[str, Any], answer: Answer) -> None:
    """One answer a scheme, so that a crash is known to belong to the next one."""
    batch = batch_of(message)
    for k, scheme in enumerate(batch.plan.schemes):
        answer({"op": "result", "id": message["id"], "scheme": k, "steps": result_of(perform(adapter, scheme, batch))})


def serve(requests: BinaryIO, answer: Answer) -> int:
    """Answer requests until `stop` or the end of input."""
    adapter: Adapter | None = None
    for line in requests:
        message = read(line)
        match message.get("op"):
            case "hello":
                adapter = _hello(message, answer)
                if adapter is None:
                    return 3
            case "devices":
                from .devices import describe_process

                answer({"op": "devices", "devices": describe_process(measure=bool(message.get("measure")))})
            case "case" if adapter is not None:
                _case(adapter, message, answer)
            case "stop":
                return 0
            case other:
                raise WireError(f"unexpected request {other!r}")
    return 0


def main() -> int:
    """Serve on this process's own descriptors."""
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C and timeout(1) reach the whole group; the runner decides
        signal.signal(number, signal.SIG_IGN)
    out = _private_stdout()
    faulthandler.enable()  # an abort inside a runtime leaves the line of the call on stderr

    def answer(message: dict[str, Any]) -> None:
        out.write(write(message))
        out.flush()

    return serve(sys.stdin.buffer, answer)


if __name__ == "__main__":
    raise SystemExit(main())
