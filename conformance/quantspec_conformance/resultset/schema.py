"""The schema of a result file, and what is wrong with a line of it, in one short sentence."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import jsonschema

from ..errors import DamagedError
from ..outside import printable

__all__ = ["RECORDS", "fault_of", "result_schema"]

RECORDS = ("header", "case", "footer")
#: Characters of an offending value that a message shows.
SHOWN = 160


@cache
def result_schema() -> dict[str, Any]:
    """The JSON schema of a line. DamagedError where it is missing."""
    try:
        text = (resources.files("quantspec_conformance") / "schemas" / "result.schema.json").read_text("utf-8")
        schema: dict[str, Any] = json.loads(text)
    except (OSError, ValueError) as error:
        raise DamagedError(f"schemas/result.schema.json cannot be read: {error}") from None
    return schema


@cache
def _validator(record: str) -> Any:
    """The validator of one kind of record, its references written out: looking each up takes most of the time otherwise."""
    parts = result_schema()["$defs"]

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return [whole(item) for item in part]
        if not isinstance(part, dict):
            return part
        named = parts[part["$ref"].rpartition("/")[2]] if "$ref" in part else {}
        return {name: whole(item) for name, item in {**part, **named}.items() if name != "$ref"}

    return jsonschema.Draft202012Validator(whole(parts[record]))


def fault_of(content: Any) -> str:
    """What keeps an object from being a record; "" where it is one."""
    if not isinstance(content, Mapping):
        return "no object"
    record = content.get("record")
    if record not in RECORDS:
        return f"record is {_shown(repr(record))}; allowed: {', '.join(RECORDS)}"
    for error in _validator(str(record)).iter_errors(content):
        where = ".".join(str(step) for step in error.absolute_path)
        return f"{_shown(where)}: {_shown(error.message)}" if where else _shown(error.message)
    return ""


def _shown(text: str) -> str:
    text = printable(text[: SHOWN + 1])
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
