"""What a message may hold at most, whichever wire carries it, and the checks that keep an announced size from being believed."""

import math
import re
from collections.abc import Sequence

from .messages import ProtocolError

__all__ = [
    "AXES", "BLOB", "COUNT_OF_WORDS", "DEPTH", "ELEMENTS", "HEADER", "ID", "LINE", "PLAIN", "TENSORS", "WORD", "StrayError",
    "check_id", "check_shape", "check_text", "excerpt",
]  # fmt: skip

LINE = 2**28  #: bytes of a line of the text wire, its LF included
HEADER = 2**20  #: bytes of the JSON header of a frame
BLOB = 2**31  #: bytes of a frame
DEPTH = 8  #: brackets of JSON inside one another
TENSORS = 64  #: tensors of a message
COUNT_OF_WORDS = 64  #: words of a message, and fields of a hello or an identity
WORD = 2**16  #: bytes of one word in UTF-8
ELEMENTS = 2**26  #: elements of a tensor
AXES = 8  #: axes of a tensor
ID = 2**53  #: ids are below this, so that every JSON reader keeps them whole
_NONEMPTY = 2**57  #: elements counting an axis of size 0 as 1: more than that no array can be shaped to
PLAIN = bytes([9, 10, 13, *range(0x20, 0x7F)])  #: bytes of plain text
_SHOWN = 60
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class StrayError(ProtocolError):
    """Bytes where a message must begin that are the beginning of none: something else writes to the protocol's stdout."""


def excerpt(raw: bytes) -> str:
    """The first bytes of a message, safe to print."""
    shown = ascii(raw[:_SHOWN].decode("latin-1"))
    return shown + (f" and {len(raw) - _SHOWN} more bytes" if len(raw) > _SHOWN else "")


def check_shape(shape: Sequence[int], what: str) -> int:
    """The number of elements of a shape. ProtocolError for too many axes or elements; products do not wrap."""
    if len(shape) > AXES:
        raise ProtocolError(f"{what} has {len(shape)} axes; allowed: at most {AXES}")
    if any(type(size) is not int or size < 0 for size in shape):
        raise ProtocolError(f"{what} has a size that is no whole number from 0 on")
    if math.prod(size for size in shape if size) > _NONEMPTY:
        raise ProtocolError(f"{what} has sizes that no array has; allowed: 2^57 elements counting a size of 0 as 1")
    count = math.prod(shape)
    if count > ELEMENTS:
        raise ProtocolError(f"{what} has {count} elements; allowed: at most {ELEMENTS}")
    return count


def check_id(number: object) -> int:
    """An id. ProtocolError for what is none."""
    if type(number) is not int or not 0 <= number < ID:
        raise ProtocolError(f"{str(number)[:40]!r} is no id; allowed: whole numbers from 0 to 2^53-1")
    return number


def check_text(text: object, what: str) -> str:
    """A word of bounded length. ProtocolError for another type, a longer one and for lone surrogates."""
    if not isinstance(text, str):
        raise ProtocolError(f"{what} is a {type(text).__name__}; allowed: text")
    if len(text) > WORD or len(text.encode("utf-8", "replace")) > WORD:
        raise ProtocolError(f"{what} has more than {WORD} bytes")
    if _SURROGATE.search(text):
        raise ProtocolError(f"{what} holds half a surrogate pair; allowed: Unicode text")
    return text
