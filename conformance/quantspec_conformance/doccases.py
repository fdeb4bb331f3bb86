"""The examples of the spec as cases: vectors/doc.json, which other languages read without a Markdown parser.

A case stores the digest of each rule that it shows. Where the text of a rule changes, its cases ask for a review; an id that
falls away is kept among the retired ones and never comes back.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from .errors import DamagedError, UsageError
from .examples import Entry, Example, Tensor, examples
from .playback import play, problems
from .spec import rule_key, rules

__all__ = ["case_file", "differences", "load", "make", "text_of"]

SCHEMA = "doc-cases-1"


def case_file() -> Path:
    """The file of the exported cases."""
    return Path(str(resources.files("quantspec_conformance") / "vectors" / "doc.json"))


def load(path: Path | None = None) -> dict[str, Any]:
    """The exported cases. DamagedError where the file is missing or no such file."""
    path = case_file() if path is None else path
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
        schema = content["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path}: no file of cases ({type(error).__name__}: {error})") from None
    if schema != SCHEMA:
        raise DamagedError(f"{path}: schema {schema!r}; allowed: {SCHEMA}")
    return content


def text_of(content: Mapping[str, Any]) -> str:
    """The file of the cases, a case a line: the same bytes wherever it is made."""
    cases = ",\n  ".join(json.dumps(case, separators=(", ", ": ")) for case in content["cases"])
    retired = json.dumps(content["retired"], separators=(", ", ": "))
    return f'{{\n "schema": "{content["schema"]}",\n "cases": [\n  {cases}\n ],\n "retired": {retired}\n}}\n'


def _entry(entry: Entry) -> Any:
    content = entry.content
    if not isinstance(content, Tensor):
        return content
    _, _, bits = content.text.partition(" ")
    return {"dtype": content.dtype, "shape": list(content.shape), "bits": bits}


def _case(example: Example, known: Mapping[str, Any], reviewed: Sequence[str]) -> dict[str, Any]:
    """A case; the digest of a rule that it shows stays the reviewed one until a review is stated."""
    before = known.get(example.id, {}).get("shows", {})
    table = rules()
    shows = {
        rule_id: table[rule_id].digest if rule_id in reviewed or rule_id not in before else before[rule_id]
        for rule_id in sorted(example.shows, key=rule_key)
    }
    fired = [rule_id for rule_id in play(example).rules if rule_id in table]
    return {
        "id": example.id,
        "title": example.title,
        "page": example.page.removesuffix(".md"),
        "do": list(example.do),
        "shows": shows,
        "rules": sorted(fired, key=rule_key),
        "given": {name: _entry(entry) for name, entry in example.given.items()},
        "gives": {name: _entry(entry) for name, entry in example.gives.items()},
    }


def make(
    known: Mapping[str, Any] | None = None, *, reviewed: Sequence[str] = (), retire: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The content of the file, from the spec's examples and what the file held before.

    `reviewed` names rules whose cases were looked at after their text changed; `retire` maps ids to the reason why they
    fall away. Raises UsageError for an id that vanished without a reason or came back, and for an example that fails.
    """
    before = {"cases": [], "retired": {}} if known is None else known
    old = {case["id"]: case for case in before["cases"]}
    retired: dict[str, str] = dict(before["retired"])
    current = examples()
    unknown = [rule_id for rule_id in reviewed if rule_id not in rules()]
    if unknown:
        raise UsageError(f"--reviewed {unknown[0]}: no such rule")
    for case_id, reason in (retire or {}).items():
        if case_id not in old or case_id in current or not reason:
            raise UsageError(f"--retire {case_id}: allowed: a case that the spec no longer has, and a reason")
        retired[case_id] = reason
    vanished = [case_id for case_id in old if case_id not in current and case_id not in retired]
    if vanished:
        raise UsageError(f"{vanished[0]} is no longer in the spec; ids are for ever: retire it with a reason")
    back = [case_id for case_id in current if case_id in retired]
    if back:
        raise UsageError(f"{back[0]} was retired ({retired[back[0]]}); take a new id")
    wrong = [problem for example in current.values() for problem in problems(example)]
    if wrong:
        raise UsageError("\n".join(wrong))
    cases = [_case(example, old, reviewed) for example in current.values()]
    return {"schema": SCHEMA, "cases": cases, "retired": retired}


def differences(content: Mapping[str, Any]) -> list[str]:
    """What keeps the exported cases from being current: stale, missing, or resting on a rule whose text changed."""
    table, found = rules(), list[str]()
    for case in content["cases"]:
        for rule_id, digest in case["shows"].items():
            if rule_id not in table:
                found.append(f"{case['id']}: shows {rule_id}, which is no rule")
            elif table[rule_id].digest != digest:
                found.append(f"{case['id']}: the text of {rule_id} changed: review it, then --reviewed {rule_id}")
    if not found and text_of(make(content)) != text_of(content):
        found.append("the cases are not those of the spec: write them anew")
    return found
