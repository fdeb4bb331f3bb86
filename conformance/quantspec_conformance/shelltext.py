"""Words of a command line that is printed for somebody to paste."""

import shlex
from collections.abc import Iterable

from .outside import printable

__all__ = ["line_of", "quoted"]


def quoted(word: str) -> str:
    """A word for a shell; one with control codes as $'...', so that they are not printed."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + printable(word.replace("\\", r"\\").replace("'", r"\'")) + "'"


def line_of(words: Iterable[str]) -> str:
    """A command line."""
    return " ".join(map(quoted, words))
