"""The messages of the protocol, whichever wire carries them: hello and identity, a request, and the five answers.

Tensors are patterns, never floats: `dtype` says how wide a pattern is and what it stands for (f32 is 32 bits of a binary32).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..examples import DTYPES, Tensor

__all__ = [
    "KINDS",
    "OPERATIONS",
    "PROTOCOL",
    "Answer",
    "Failed",
    "Hello",
    "Identity",
    "Implementation",
    "Known",
    "MalformedError",
    "Ok",
    "ProtocolError",
    "Rejected",
    "Request",
    "Unsupported",
    "negotiate",
]  # fmt: skip

#: Version of the protocol, major and minor: another major is refused, fields may be added in a minor.
PROTOCOL = (1, 0)
#: Operations that a request may ask for. `echo` gives its tensors back: what passes through host floats shows there.
OPERATIONS = (
    "encode", "decode", "encode_scale", "decode_scale", "quantize", "dequantize", "pack", "unpack", "to_bytes", "split",
    "permute", "slice", "take", "select", "flip", "expand", "concatenate", "reshape", "requantize", "repack", "chain",
    "product", "product_codes", "scheme", "to_burn", "size", "echo",
)  # fmt: skip
#: Kinds of refusal: what was at fault.
KINDS = ("scheme", "shape", "dtype", "encoding", "scale", "layout", "unsupported", "host")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


class ProtocolError(Exception):
    """A message that is none, or not the one that may come now."""


class MalformedError(ProtocolError):
    """A request that was read to its end and is none, with the number that it carries: it can be answered `failed`."""

    def __init__(self, message: str, number: int) -> None:
        self.number = number
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Request:
    """One operation on given words (scheme, value, shape, ...) and tensors, named as the examples of the spec name them."""

    op: str
    words: Mapping[str, str] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ok:
    """The operation was done: tensors by name, and words (the scheme of a layout operation, a size)."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The implementation does not do this; `feature` says what it lacks. Rule CNF-5."""

    feature: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The input is refused: what kind of fault, by which rule if the implementation knows, and which argument."""

    kind: str
    rule: str = ""
    argument: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """The implementation knows that it is wrong here, and where that is tracked."""

    url: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """Something broke; no result."""

    message: str


Answer = Ok | Unsupported | Rejected | Known | Failed


@dataclass(frozen=True, slots=True)
class Hello:
    """What the harness says first: its version of the protocol, the digest of the suite, options for the implementation."""

    protocol: tuple[int, int] = PROTOCOL
    suite: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What an implementation says of itself. An empty list of a capability means everything of that kind."""

    name: str
    version: str = ""
    language: str = ""
    source: str = ""  #: URL of the source
    issues: str = ""  #: URL of the tracker
    build: str = ""  #: flags that may change bits
    device: str = ""
    driver: str = ""
    protocol: tuple[int, int] = PROTOCOL
    ops: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()  #: kinds: native, packed_native, packed_u32
    scales: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()  #: tensor, block, both
    max_rank: int = 0  #: 0: any
    max_elements: int = 0  #: of one tensor; 0: any
    max_in_flight: int = 1
    deterministic: bool = True
    policies: Mapping[str, str] = field(default_factory=dict)


class Implementation(Protocol):
    """An implementation under test, in this process or behind a pipe."""

    def hello(self, hello: Hello) -> Identity:
        """Who it is and what it does; asked first, and again after a restart."""
        ...

    def handle(self, request: Request) -> Answer:
        """Do one request. An implementation in another process may raise ImplementationError instead of answering."""
        ...

    def close(self) -> None:
        """Let go of processes and devices."""
        ...


def negotiate(theirs: tuple[int, int]) -> tuple[int, int]:
    """The version that both speak. ProtocolError where the major numbers differ."""
    if theirs[0] != PROTOCOL[0]:
        raise ProtocolError(
            f"the implementation speaks protocol {theirs[0]}.{theirs[1]}, this harness {PROTOCOL[0]}.{PROTOCOL[1]}; "
            "the first number must be equal"
        )
    return min(theirs, PROTOCOL)


def check_name(name: str, what: str) -> str:
    """A name of a word or tensor. ProtocolError for what is none."""
    if not _NAME.fullmatch(name):
        raise ProtocolError(f"{name[:40]!r} is no name of a {what}; allowed: lower-case letters, digits and _")
    return name


def check_dtype(dtype: str) -> str:
    """A dtype of the protocol. ProtocolError for another."""
    if dtype not in DTYPES:
        raise ProtocolError(f"dtype {dtype[:20]!r}; allowed: {', '.join(DTYPES)}")
    return dtype
