"""What comes from outside: what kind a file is, why the system refuses one, and text of others made safe to print."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .errors import UsageError

__all__ = ["kind_of", "open_regular", "printable", "read_regular", "reason_of"]

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
#: What the system's own words leave open.
REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "a part of the path is no folder",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "you have no permission",
    errno.EPERM: "you have no permission",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your share of the disk is full",
    errno.EEXIST: "it is there already",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "its symbolic links go round in a circle",
    errno.ENXIO: "nobody is at its other end",
}


def reason_of(error: Exception) -> str:
    """Why the system refused a file, in words; never empty."""
    if not isinstance(error, OSError):
        return str(error) or type(error).__name__
    return REASONS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__


@contextmanager
def open_regular(path: Path, *, what: str, allowed: str) -> Iterator[IO[bytes]]:
    """A regular file, open to be read; a FIFO without a writer does not block. UsageError for anything else."""
    shown = f"{what} {printable(repr(str(path)))}".lstrip()
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            kind = kind_of(os.fstat(descriptor).st_mode)
            if kind is not None:
                raise UsageError(f"{shown} is {kind}; allowed: {allowed}")
            with open(descriptor, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown} cannot be read: {reason_of(error)}") from None


def read_regular(path: Path, largest: int, *, what: str, allowed: str) -> bytes:
    """The bytes of a regular file; a FIFO without a writer does not block. UsageError for anything else, or a larger one."""
    with open_regular(path, what=what, allowed=allowed) as file:
        raw = file.read(largest + 1)
    if len(raw) > largest:
        raise UsageError(f"{what} {printable(repr(str(path)))} is longer than {largest} bytes".lstrip())
    return raw


def kind_of(mode: int) -> str | None:
    """What a file of this mode is, in words; None for a regular one."""
    if stat.S_ISREG(mode):
        return None
    return next((name for test, name in KINDS if test(mode)), "no regular file")


def printable(text: str, *, keep: str = "") -> str:
    """A text with its control codes, bidirectional overrides and lone surrogates as escapes; those in `keep` stay."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)
