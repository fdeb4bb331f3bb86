"""JSON as the frames wire holds it: one object of bounded depth, whole numbers, no name twice. What is read is hostile."""

import json
import re
from typing import Any, NoReturn

from .limits import DEPTH, excerpt
from .messages import ProtocolError

__all__ = ["json_object", "json_text"]

#: Strings, or what is left of one without an end; possessive, so that a hostile header costs no more than its length.
_STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)


def json_text(value: Any) -> str:
    """A value as JSON without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def json_object(raw: bytes, what: str) -> dict[str, Any]:
    """A JSON object of bounded depth, without numbers that are no integers and without a name that stands twice."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise ProtocolError(f"{what} is no UTF-8: {excerpt(raw)}") from None
    if text.count("[") + text.count("{") > DEPTH:
        _check_depth(text, what)
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{what} is no JSON: {str(error)[:100]}: {excerpt(raw)}") from None
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} is no JSON object: {excerpt(raw)}")
    return value


def _check_depth(text: str, what: str) -> None:
    """ProtocolError for brackets, those in strings apart, that stand too deep inside one another."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEPTH:
            raise ProtocolError(f"{what} has more than {DEPTH} brackets inside one another")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no integer")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_refused, parse_constant=_refused)
