"""Files of tests by rule: what `pytest --qs-rules` writes and a report shows. Schema schemas/rule-tests.schema.json."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema

from .errors import DamagedError
from .outside import printable, read_regular

__all__ = ["OUTCOMES", "SCHEMA", "MarkedTests", "RuleTest", "read_tests", "rule_tests_schema"]

SCHEMA = "rule-tests-1"
#: pytest's words, the good one first.
OUTCOMES = ("passed", "failed", "error", "xfailed", "xpassed", "skipped")
#: Bytes of a file.
LARGEST = 1 << 26
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A test with the project that it is of, and its outcome."""

    project: str
    test: str
    outcome: str


@dataclass(frozen=True, slots=True)
class MarkedTests:
    """Tests by rule."""

    project: str
    rules: Mapping[str, tuple[RuleTest, ...]]


@cache
def rule_tests_schema() -> dict[str, Any]:
    """The JSON schema of a file. DamagedError where it is missing."""
    try:
        text = (resources.files("quantspec_conformance") / "schemas" / "rule-tests.schema.json").read_text("utf-8")
        schema: dict[str, Any] = json.loads(text)
    except (OSError, ValueError) as error:
        raise DamagedError(f"schemas/rule-tests.schema.json cannot be read: {error}") from None
    return schema


def read_tests(path: Path) -> MarkedTests:
    """The tests of a file. UsageError where it cannot be read, DamagedError where it is none."""
    shown = f"file of tests {printable(str(path))!r}"
    raw = read_regular(path, LARGEST, what="file of tests", allowed="what pytest --qs-rules writes")
    try:
        content = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise DamagedError(f"{shown}: no JSON") from None
    for error in jsonschema.Draft202012Validator(rule_tests_schema()).iter_errors(content):
        where = ".".join(map(str, error.absolute_path)) or "the whole"
        raise DamagedError(f"{shown}: {printable(where)[:_SHOWN]}: {printable(error.message)[:_SHOWN]}")
    project = content["project"]
    rows = {
        rule_id: tuple(RuleTest(project, row["test"], row["outcome"]) for row in found)
        for rule_id, found in content["rules"].items()
    }
    return MarkedTests(project, rows)
