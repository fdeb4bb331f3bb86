"""`quantspec rules`: list, search and show the rules with what hangs on them: pages, source lines, cases, decisions, dissent."""

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import doccases
from .citations import PACKAGES, Citation, citations, package_folder
from .errors import UsageError
from .explain import reflowed
from .records import Deviation, decisions, deviations, rendered
from .spec import AREAS, CHAPTERS, RULE_ID, Rule, rules, spec_root

__all__ = ["cases_of", "decisions_of", "deviations_of", "find", "place_of", "record", "show", "source_of", "spec_place"]

_WORD_BREAK = re.compile(r"\s+")


def cases_of(rule_id: str) -> list[dict[str, Any]]:
    """The exported cases that rest on a rule: those that are there to show it first."""
    found = [case for case in doccases.load()["cases"] if rule_id in case["rules"] or rule_id in case["shows"]]
    return sorted(found, key=lambda case: rule_id not in case["shows"])


def decisions_of(rule_id: str) -> list[tuple[str, str]]:
    """File and title of the decisions about a rule."""
    return [(row.file, f"{row.number} {row.title}") for row in decisions() if rule_id in row.rules]


def deviations_of(rule_id: str) -> list[Deviation]:
    """The recorded stacks that give other bits than a rule."""
    return [row for row in deviations() if rule_id in row.rules]


def source_of(rule_id: str, package: str) -> list[Citation]:
    """The lines of a package that cite a rule: one a function, those that execute it where there are any."""
    rows = [row for row in citations().get(rule_id, ()) if row.package == package]
    executed = [row for row in rows if row.executed] or rows
    return list({(row.file, row.function): row for row in reversed(executed)}.values())[::-1]


def place_of(row: Citation, folder: Path | None = None) -> str:
    """File and line of a citation: in the checkout, or below the folder that packages are installed into.

    `folder` is that of the package (for tests).
    """
    folder = package_folder(row.package) if folder is None else folder
    checkout = folder is not None and folder.parent.name == PACKAGES[row.package]
    return row.place if checkout else f"{row.package}/{row.file}:{row.line}"


def spec_place(root: Path | None = None) -> str:
    """Where the pages of the spec lie: in the checkout, or below the folder that packages are installed into."""
    root = spec_root() if root is None else root
    installed = root.parent.name == "quantspec_conformance"
    return f"{root.parent.name}/{root.name}" if installed else root.name


def find(words: Sequence[str], *, level: str | None = None) -> list[Rule]:
    """Rules by id (QNT-4), area (QNT), chapter (quantize), or words that all occur in id, title, text or formula.

    Titles that hold all the words come first. UsageError where nothing is found, naming what is near.
    """
    table = rules()
    text = " ".join(words).strip()
    if RULE_ID.fullmatch(text.upper()):
        if text.upper() in table:
            return [table[text.upper()]]
        area = text.upper().partition("-")[0]
        known = [rule_id for rule_id in table if rule_id.startswith(f"{area}-")]
        raise UsageError(f"no rule {text.upper()}; {area} has {known[0]} to {known[-1]}")
    rows = [rule for rule in table.values() if level is None or rule.level == level.upper()]
    area = CHAPTERS.get(text.lower(), text.upper())
    if not text or area in AREAS:
        return [rule for rule in rows if not text or rule.id.startswith(f"{area}-")]
    parts = [part.lower() for part in _WORD_BREAK.split(text)]
    found = [rule for rule in rows if all(part in _haystack(rule) for part in parts)]
    if not found:
        words_known = {word for rule in rows for word in re.findall(r"[a-z0-9_]{3,}", _haystack(rule))}
        near = [match for part in parts for match in difflib.get_close_matches(part, words_known | set(CHAPTERS), 2)]
        hint = f"; near: {', '.join(dict.fromkeys(near))}" if near else ""
        raise UsageError(
            f"no rule has {text!r}; an id (QNT-4), an area ({', '.join(AREAS)}), or words of its text{hint}"
        )
    return sorted(found, key=lambda rule: not all(part in rule.title.lower() for part in parts))


def _haystack(rule: Rule) -> str:
    return _WORD_BREAK.sub(" ", f"{rule.id} {rule.title} {rule.text} {rule.formula} {rule.axis}").lower()


def record(rule: Rule) -> dict[str, Any]:
    """A rule and all that hangs on it, as JSON."""
    page = rendered().get(rule.id)
    return {
        "id": rule.id,
        "title": rule.title,
        "level": rule.level,
        "text": rule.text,
        "formula": rule.formula,
        "steps": list(rule.steps),
        "axis": rule.axis,
        "testable": rule.testable,
        "since": rule.since,
        "changed": list(rule.changed),
        "digest": rule.digest,
        "page": None if page is None else f"{page[0]}.md#{rule.id}",
        "reference": [place_of(row) for row in source_of(rule.id, "quantspec")],
        "kernels": [place_of(row) for row in source_of(rule.id, "quantspec_cl")],
        "harness": [place_of(row) for row in source_of(rule.id, "quantspec_conformance") if row.executed],
        "cases": [case["id"] for case in cases_of(rule.id)],
        "decisions": [file for file, _ in decisions_of(rule.id)],
        "deviations": [
            {"id": row.id, "stack": row.stack, "what": row.what, "theirs": row.theirs, "source": row.source}
            for row in deviations_of(rule.id)
        ],
    }


def show(rule: Rule, width: int) -> Iterator[str]:
    """The lines that show one rule with all that hangs on it."""
    page = rendered().get(rule.id)
    changed = f", changed in {', '.join(rule.changed)}" if rule.changed else ""
    yield f"{rule.id}  {rule.title}"
    yield f"{rule.level}, since {rule.since}{changed}"
    if rule.retired:
        yield f"RETIRED: {rule.retired}"
    yield ""
    yield from reflowed(rule.text, width)
    if rule.formula:
        yield ""
        yield from (f"      {line}" for line in rule.formula.splitlines())
    yield ""
    yield f"governs    {', '.join(rule.steps)}"
    if rule.axis:
        yield f"policy     {rule.axis}: a point on which stacks differ"
    if rule.testable != "yes":
        yield f"testable   {rule.testable}"
    if page is not None:
        yield f"page       {spec_place()}/{page[0]}.md#{rule.id}"
    for name, package in (
        ("reference", "quantspec"),
        ("kernels", "quantspec_cl"),
        ("harness", "quantspec_conformance"),
    ):
        rows = [row for row in source_of(rule.id, package) if package != "quantspec_conformance" or row.executed]
        yield from _listed(name, [f"{place_of(row)}  {row.function}".rstrip() for row in rows], 6)
    cases = [f"{case['id']}  {case['title']}" for case in cases_of(rule.id) if rule.id in case["shows"]]
    yield from _listed("cases", cases, 12)
    others = sum(rule.id not in case["shows"] for case in cases_of(rule.id))
    if others:
        yield f"           and {others} more that it takes part in"
    yield from _listed(
        "decided", [f"{spec_place()}/decisions/{file}  {title[5:]}" for file, title in decisions_of(rule.id)], 12
    )
    dissent = [f"{row.stack}: {row.what} [{row.evidence}: {row.source}]" for row in deviations_of(rule.id)]
    yield from _listed("differs", dissent, 40)


def _listed(name: str, rows: Sequence[str], most: int) -> Iterator[str]:
    """Rows under a name, at most so many."""
    for number, row in enumerate(rows[:most]):
        yield f"{name if number == 0 else '':<10} {row}"
    if len(rows) > most:
        yield f"           and {len(rows) - most} more (--json lists all)"
