"""In-process implementations made safe: what they raise becomes an answer, and what they answer is an answer."""

import traceback

from quantspec import QuantspecError, UnsupportedError

from ..outside import printable
from ..protocol.bits import bits_of
from ..protocol.envelope import envelope_of
from ..protocol.messages import Answer, Failed, Hello, Identity, Implementation, Ok, ProtocolError, Request, Unsupported
from .errors import ImplementationError
from .law import rejection

__all__ = ["Guard", "refusal"]

_LINES = 8
_CHARACTERS = 2000


def refusal(error: QuantspecError) -> Answer:
    """A refusal as an answer. CNF-5 says that the implementation does not do this, any other rule that the input is wrong."""
    if isinstance(error, UnsupportedError) and error.rule == "CNF-5":
        return Unsupported("request", error.message)
    return rejection(error)


def failure(error: BaseException) -> Failed:
    """Whatever else is raised, with the last lines of its traceback."""
    lines = "".join(traceback.format_exception(error)).splitlines()[-_LINES:]
    return Failed(printable("\n".join(lines)[-_CHARACTERS:], keep="\n"))


class Guard:
    """An implementation whose `handle` never raises and always answers."""

    def __init__(self, inner: Implementation, name: str) -> None:
        self._inner = inner
        self._name = name

    def hello(self, hello: Hello) -> Identity:
        """The identity. ImplementationError where there is none."""
        try:
            identity = self._inner.hello(hello)
            if isinstance(identity, Identity):
                envelope_of(None, identity)
                return identity
            wrong = f"hello() gave a {type(identity).__name__}; allowed: an Identity"
        except Exception as error:  # an implementation may raise anything
            raise ImplementationError("error", f"{self._name}: hello() failed", failure(error).message) from None
        raise ImplementationError("error", f"{self._name}: {wrong}")

    def handle(self, request: Request) -> Answer:
        """The answer, a refusal, or Failed."""
        try:
            answer: object = self._inner.handle(request)
        except ImplementationError:
            raise
        except QuantspecError as error:
            return refusal(error)
        except Exception as error:  # as above
            return failure(error)
        if not isinstance(answer, Answer):
            return Failed(f"handle() gave a {type(answer).__name__}; allowed: an answer of the protocol")
        try:
            envelope_of(0, answer)
            if isinstance(answer, Ok):
                for name, tensor in answer.tensors.items():
                    bits_of(tensor, name)
        except (ProtocolError, AttributeError, TypeError, ValueError) as error:
            return Failed(f"the answer is malformed: {str(error)[:_CHARACTERS]}")
        return answer

    def close(self) -> None:
        """Close the implementation, if it can be."""
        close = getattr(self._inner, "close", None)
        if close is not None:
            close()
