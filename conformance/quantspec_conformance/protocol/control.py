"""What the harness says besides requests, and what an adapter hears when it does not know the word."""

from dataclasses import dataclass

__all__ = ["Ping", "Stop", "Unknown"]


@dataclass(frozen=True, slots=True)
class Ping:
    """Are you there? Answered by Ok without anything."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The last message; the adapter ends."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A verb of a later protocol; answered by Unsupported, never by an exit."""

    verb: str
