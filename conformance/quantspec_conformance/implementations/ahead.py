"""Several requests in flight: what an implementation allows, up to a limit of ours; answers come in the order of the requests."""

from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

from ..protocol.messages import Answer, Implementation, Request
from .errors import ImplementationError

__all__ = ["MOST", "Ahead", "answered"]

#: Requests in flight at most, whatever an implementation allows: more hides no more waiting, and all of them are sent again
#: after a crash.
MOST = 16


@runtime_checkable
class Ahead(Protocol):
    """An implementation that takes requests before it has answered those of before."""

    def post(self, request: Request) -> None:
        """Ask, without waiting for the answer."""
        ...

    def collect(self) -> Answer:
        """The answer to the oldest request without one. ImplementationError ends that request alone."""
        ...

    def forget(self) -> None:
        """Let go of what was asked and not answered."""
        ...


def answered(
    implementation: Implementation, following: Callable[[], Request | None], in_flight: int
) -> Iterator[Answer | ImplementationError]:
    """The answer to each request, or how it broke, in order. `following` gives the next request, None where there is none yet.

    It is asked again after every answer: what was answered may bring new requests.
    """
    if isinstance(implementation, Ahead):
        yield from _ahead(implementation, following, max(1, min(in_flight, MOST)))
        return
    while (request := following()) is not None:
        try:
            answer: Answer | ImplementationError = implementation.handle(request)
        except ImplementationError as error:
            answer = error
        yield answer


def _ahead(
    implementation: Ahead, following: Callable[[], Request | None], most: int
) -> Iterator[Answer | ImplementationError]:
    waiting = 0
    try:
        while True:
            while waiting < most and (request := following()) is not None:
                implementation.post(request)
                waiting += 1
            if not waiting:
                return
            waiting -= 1
            try:
                answer: Answer | ImplementationError = implementation.collect()
            except ImplementationError as error:
                answer = error
            yield answer
    finally:
        if waiting:  # nobody is going to take these answers
            implementation.forget()
