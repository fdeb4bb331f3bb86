"""The rules are data, and everything cites them: code, pages, cases; every id exists, and no rule that binds is left out."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from quantspec_conformance import doccases
from quantspec_conformance.citations import PACKAGES, citations, package_folder
from quantspec_conformance.errors import DamagedError
from quantspec_conformance.examples import examples
from quantspec_conformance.records import decisions, deviations, rendered
from quantspec_conformance.spec import CHAPTERS, RULE_ID, Rule, rule_key, rules, spec_root

RULES = spec_root() / "rules"
SCHEMA = json.loads((spec_root() / "schemas" / "rule.schema.json").read_text("utf-8"))
DEVIATIONS = json.loads((spec_root() / "schemas" / "deviation.schema.json").read_text("utf-8"))
PAGES = [*spec_root().glob("*.md"), *spec_root().glob("decisions/*.md"), spec_root() / "deviations.toml"]


def gaps(
    table: Mapping[str, Rule], executed: Collection[str], pages: Collection[str], cases: Collection[str]
) -> dict[str, list[str]]:
    """Rules that bind and that no code executes, no page renders, or no case shows (unless they cannot be tested)."""
    binding = [rule for rule in table.values() if rule.binding]
    return {
        "code": [rule.id for rule in binding if rule.id not in executed],
        "page": [rule.id for rule in table.values() if rule.id not in pages],
        "case": [rule.id for rule in binding if rule.testable == "yes" and rule.id not in cases],
    }


def executed() -> set[str]:
    """Rules that the reference executes, and those of the harness, which it executes itself."""
    return {
        rule_id
        for rule_id, rows in citations().items()
        if any(row.executed and (row.package == "quantspec" or rule_id.startswith("CNF-")) for row in rows)
    }


def shown() -> set[str]:
    return {rule_id for example in examples().values() for rule_id in example.shows}


def test_every_rule_is_executed_rendered_and_shown() -> None:
    assert gaps(rules(), executed(), rendered(), shown()) == {"code": [], "page": [], "case": []}


@pytest.mark.parametrize("missing", ["code", "page", "case"])
def test_a_rule_that_is_left_out_is_found(missing: str) -> None:
    everything = {"code": executed(), "page": set(rendered()), "case": shown()}
    everything[missing] = everything[missing] - {"QNT-4"}
    found = gaps(rules(), everything["code"], everything["page"], everything["case"])
    assert found == {**{key: [] for key in ("code", "page", "case")}, missing: ["QNT-4"]}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_rule_that_code_cites_exists(package: str) -> None:
    rows = [row for found in citations().values() for row in found if row.package == package]
    assert rows
    assert {f"{row.place}: {row.rule}" for row in rows if row.rule not in rules()} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_rule_that_a_page_cites_exists(page: Path) -> None:
    assert {rule_id for rule_id in RULE_ID.findall(page.read_text("utf-8")) if rule_id not in rules()} == set()


def test_rules_cite_only_rules_that_exist() -> None:
    cited = {rule_id for rule in rules().values() for rule_id in RULE_ID.findall(rule.text + rule.formula)}
    assert cited - rules().keys() == set()


def test_cases_decisions_and_deviations_cite_only_rules_that_exist() -> None:
    cited = shown() | {rule_id for case in doccases.load()["cases"] for rule_id in case["rules"]}
    cited |= {rule_id for row in decisions() for rule_id in row.rules}
    cited |= {rule_id for row in deviations() for rule_id in row.rules}
    assert cited - rules().keys() == set()
    assert set(rendered()) - rules().keys() == set()


def test_every_link_of_a_page_leads_to_a_page() -> None:
    """Of the written pages alone; the built site is checked link by link."""
    generated = re.compile(
        r"(values|scales|stores|formats|source|decisions|stacks)/[\w.-]+|combinations|differences|rules|combinations-sets|same-input"
    )
    broken = []
    for page in PAGES:
        if page.suffix != ".md":
            continue
        for link in re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page.read_text("utf-8")):
            target = (page.parent / link).resolve()
            if not target.is_file() and not generated.fullmatch(link.removeprefix("../").removesuffix(".md")):
                broken.append(f"{page.name}: {link}")
    assert broken == []


# ---------------------------------------------------------------- the records themselves


@pytest.mark.parametrize("file", sorted(RULES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_rule_file_follows_the_schema(file: Path) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(tomllib.loads(file.read_text("utf-8")))
    assert file.stem in CHAPTERS


def broken_rule(key: str, value: Any) -> dict[str, Any]:
    file = tomllib.loads((RULES / "blocks.toml").read_text("utf-8"))
    if value is None:
        del file["rule"][0][key]
    else:
        file["rule"][0][key] = value
    return file


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("text", None),
        ("text", "short"),
        ("id", "VAL-1"),
        ("id", "BLK-01"),
        ("level", "must"),
        ("extra", "x"),
        ("testable", "no"),
    ],
)
def test_the_schema_refuses_a_bad_rule(key: str, value: Any) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(broken_rule(key, value))


def test_deviations_follow_their_schema() -> None:
    content = tomllib.loads((spec_root() / "deviations.toml").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(DEVIATIONS)
    validator.validate(content)
    for key, value in (("evidence", "guess"), ("id", "ggml.ties"), ("what", "no full stop"), ("rules", [])):
        assert not validator.is_valid({"deviation": [{**content["deviation"][0], key: value}]})


def test_no_rule_id_is_used_twice_and_none_is_left_out() -> None:
    """Ids are never renumbered or dropped: a rule that falls away stays, marked as retired."""
    listed = [rule["id"] for file in RULES.glob("*.toml") for rule in tomllib.loads(file.read_text("utf-8"))["rule"]]
    assert {rule_id: n for rule_id, n in Counter(listed).items() if n > 1} == {}
    numbers: dict[str, list[int]] = {}
    for rule_id in listed:
        numbers.setdefault(rule_id.split("-")[0], []).append(rule_key(rule_id)[1])
    assert {area: sorted(found) for area, found in numbers.items()} == {
        area: list(range(1, len(found) + 1)) for area, found in numbers.items()
    }


def test_a_rule_rendered_twice_or_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "1-a.md").write_text("```{rule} VAL-1\n```\n", "utf-8")
    (tmp_path / "2-b.md").write_text("text\n\n```{rule} VAL-1\n```\n", "utf-8")
    with pytest.raises(DamagedError, match=r"2-b\.md:3: VAL-1 is rendered on 1-a too"):
        rendered(tmp_path)
    (tmp_path / "decisions").mkdir()
    (tmp_path / "decisions" / "0001-a.md").write_text(
        "# 0002 Another number\n\nStatus: accepted. Rules: VAL-1.\n\n", "utf-8"
    )
    with pytest.raises(DamagedError, match="needs a title"):
        decisions(tmp_path)
    (tmp_path / "deviations.toml").write_text('[[deviation]]\nid = "dev.a.b"\n', "utf-8")
    with pytest.raises(DamagedError, match="needs exactly"):
        deviations(tmp_path)


def test_an_accepted_decision_has_its_four_parts() -> None:
    for row in decisions():
        text = (spec_root() / "decisions" / row.file).read_text("utf-8")
        heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert heads[:4] == ["Question", "What others do", "Decision", "Cost"], row.file


def test_packages_are_found_without_importing_them() -> None:
    assert all((folder := package_folder(package)) is not None and folder.is_dir() for package in PACKAGES)
    assert package_folder("quantspec_no_such_package") is None
