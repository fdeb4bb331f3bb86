"""Paths: which kernels a verb runs, and why those. Every path gives the same bits; only their speed differs."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["FAST_FROM", "Path", "PathChoice", "generic"]

#: "auto": a specialised program where there is one and the tensor is worth its compilation; "fast": where there is one;
#: "generic": never.
PathChoice = Literal["auto", "fast", "generic"]

FAST_FROM = 1 << 16  #: elements from which "auto" takes a specialised program


@dataclass(frozen=True, slots=True)
class Path:
    """The kernels that wrote a result."""

    name: str  #: "generic", or the kernel of a specialised program
    reason: str  #: what decided


def generic(reason: str) -> Path:
    """The path that takes every scheme, and why no other was taken."""
    return Path("generic", reason)
