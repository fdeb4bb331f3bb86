"""The rules are data, and the code cites them: every id exists, every rule that binds is cited where it is executed."""

import ast
import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import quantspec
import quantspec_cl
import quantspec_conformance
from quantspec_conformance.spec import spec_root

RULES = spec_root() / "rules"
SCHEMA = json.loads((spec_root() / "schemas" / "rule.schema.json").read_text("utf-8"))
ID = re.compile(r"\b(?:SCH|VAL|SCL|BLK|QNT|PAK|LAY|OPS|PRD|POL|CNF)-[1-9][0-9]*\b")
PACKAGES = {module.__name__: Path(module.__path__[0]) for module in (quantspec, quantspec_cl, quantspec_conformance)}


def rules() -> list[dict[str, Any]]:
    return [rule for file in sorted(RULES.glob("*.toml")) for rule in tomllib.loads(file.read_text("utf-8"))["rule"]]


def sources(package: str) -> list[tuple[Path, str]]:
    return [
        (file, file.read_text("utf-8"))
        for pattern in ("*.py", "*.cl")
        for file in sorted(PACKAGES[package].rglob(pattern))
    ]


def executed(package: str) -> set[str]:
    """Ids that stand as a string of their own in the code: @rule("X-1"), note("X-1"), Error("X-1", ...)."""
    found: set[str] = set()
    for file, text in sources(package):
        if file.suffix == ".py":
            constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
            found |= {value for value in constants if isinstance(value, str) and ID.fullmatch(value)}
    return found


@pytest.mark.parametrize("file", sorted(RULES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_rule_file_follows_the_schema(file: Path) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(tomllib.loads(file.read_text("utf-8")))


def test_the_schema_refuses_a_rule_without_text() -> None:
    file = tomllib.loads((RULES / "blocks.toml").read_text("utf-8"))
    del file["rule"][0]["text"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(file)


def test_no_rule_id_is_used_twice() -> None:
    counts = Counter(rule["id"] for rule in rules())
    assert {rule_id: n for rule_id, n in counts.items() if n > 1} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_cited_rule_exists(package: str) -> None:
    known = {rule["id"] for rule in rules()}
    dangling = {
        f"{file.name}: {rule_id}"
        for file, text in sources(package)
        for rule_id in ID.findall(text)
        if rule_id not in known
    }
    assert dangling == set()


def test_every_binding_rule_is_executed_by_the_reference_or_the_harness() -> None:
    binding = {rule["id"] for rule in rules() if rule["level"] in ("MUST", "POLICY")}
    cited = executed("quantspec") | {
        rule_id for rule_id in executed("quantspec_conformance") if rule_id.startswith("CNF-")
    }
    assert binding - cited == set()


def test_rules_cite_only_rules_that_exist() -> None:
    known = {rule["id"] for rule in rules()}
    cited = {rule_id for rule in rules() for rule_id in ID.findall(rule["text"] + rule["formula"])}
    assert cited - known == set()
