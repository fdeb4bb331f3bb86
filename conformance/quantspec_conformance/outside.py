"""What comes from outside: what kind a file is, and text of others made safe to print."""

import stat

__all__ = ["kind_of", "printable"]

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def kind_of(mode: int) -> str | None:
    """What a file of this mode is, in words; None for a regular one."""
    if stat.S_ISREG(mode):
        return None
    return next((name for test, name in KINDS if test(mode)), "no regular file")


def printable(text: str, *, keep: str = "") -> str:
    """A text with its control codes, bidirectional overrides and lone surrogates as escapes; those in `keep` stay."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)
