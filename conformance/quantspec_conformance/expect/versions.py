"""Versions as implementations and drivers write them, in an order: numbers first, a pre-release before its release."""

import re

__all__ = ["LITERAL", "NUMBERS", "version_key"]

#: A version as a condition may write it: numbers with dots.
NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,7}")
#: A version where a date may stand too: it has a dot.
LITERAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){1,7}")
_REPORTED = re.compile(r"[vV]?([0-9]{1,9}(?:\.[0-9]{1,9}){0,7})(.*)", re.DOTALL)
_EARLY = re.compile(r"[-._]?(a|b|c|rc|alpha|beta|dev|pre)(?![a-z])", re.IGNORECASE)


def version_key(text: str) -> tuple[tuple[int, ...], int] | None:
    """What sorts a version; None for a text that is none. `1.2` equals `1.2.0`, `1.2rc1` is before it, `1.2+cu124` equal."""
    match = _REPORTED.fullmatch(text.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers), 0 if _EARLY.match(match[2]) else 1
