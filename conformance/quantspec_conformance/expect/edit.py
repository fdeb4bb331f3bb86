"""Edits of an expectation file after a run: the fewest that make it true again, with every comment and the order kept.

Entries are edited in place, as text: what passes now is taken out of the globs, entries that nothing is left of go, digests
that changed are renewed, and new failures are added at the end. Where somebody must decide (an entry that is over, a ceiling,
a contradiction, a condition that cannot be decided) nothing is touched.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..outside import printable
from .apply import FINE, Applied
from .globs import cover
from .layout import Block, Key, Splice, blocks, spliced
from .records import MAX_LIST, SCHEMA, Entry, read_text
from .records import parse as parse_file
from .verdict import ResultLike, verdict
from .write import drafts, quoted, render, scoped

__all__ = ["script", "update", "updated"]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of an entry: each glob's replacement, the digests to write (() keeps them), the ids that stay in it."""

    globs: dict[str, tuple[str, ...]]
    digest: tuple[str, ...]
    staying: frozenset[str]


def update(path: Path, applied: Applied, today: date, *, when: Sequence[str] = ()) -> str:
    """The text that the file should have. `when`: names of the run that new entries are bound to. UsageError: cannot be edited."""
    return updated(read_text(path), applied, today, when=when)


def updated(text: str, applied: Applied, today: date, *, when: Sequence[str] = ()) -> str:
    """`update` on a text."""
    path = applied.expectations.path
    if parse_file(text, path) != applied.expectations:
        raise UsageError(f"{printable(path)} is not the file that the results were compared with; read it again")
    rows: list[dict[str, Any]] = tomllib.loads(text).get("expect", [])
    where = blocks(text)
    if len(where) != len(rows):
        raise UsageError(f"{printable(path)} cannot be edited: write every entry as an [[expect]] table of its own")
    newline = "\r\n" if "\r\n" in text else "\n"
    results = {row.result.id: row.result for row in applied.results}
    plans = [_plan(entry, applied, results) for entry in applied.expectations.entries]
    splices: list[Splice] = []
    wanted: list[dict[str, Any]] = []
    for row, block, plan in zip(rows, where, plans, strict=True):
        if any(plan.globs.values()):
            splices += _edits(text, row, block, plan)
            wanted.append(_edited(row, plan))
        else:
            splices.append(_removal(text, block))
    covered = frozenset(name for plan in plans for name in plan.staying)
    new = [row for name, row in results.items() if name not in covered and row.outcome not in (*FINE, "notrun")]
    condition = scoped(when, applied.info)
    added = [(draft.fields(today, condition), draft.about) for draft in drafts(new, results)]
    after = spliced(text, splices)
    for fields, about in added:
        after = after.rstrip("\r\n") + newline * 2 + render(fields, about, newline)
    _verify(after, [*wanted, *(fields for fields, _ in added)], path)
    return after


def script(results: Iterable[ResultLike], *, implementation: str) -> str:
    """A starter file that foresees every failure of today. Cases that were not run stay unforeseen."""
    rows = list(results)
    failing = [row for row in rows if row.outcome not in (*FINE, "notrun")]
    head = f'schema = "{SCHEMA}"\nimplementation = {quoted(implementation)}\n'
    found = drafts(failing, (row.id for row in rows))
    text = head + "".join("\n" + render(draft.fields(None, ""), draft.about, "\n") for draft in found)
    parse_file(text, "the starter file")
    return text


def _plan(entry: Entry, applied: Applied, results: dict[str, ResultLike]) -> _Plan:
    matched = applied.matched[entry.number]
    gone = {p.ids[0] for p in applied.problems if p.entry == entry.number and p.kind == "unmatched"}
    ids = frozenset(name for names in matched.values() for name in names)
    if entry.number not in applied.active:
        return _Plan({glob: () if glob in gone else (glob,) for glob in entry.ids}, (), frozenset())
    seen = {name: verdict(entry, results[name]) for name in ids}
    leaving = frozenset(name for name, how in seen.items() if how in ("xpass", "outcome", "signature"))
    staying = ids - leaving
    globs: dict[str, tuple[str, ...]] = {}
    for glob, names in matched.items():
        stay = staying.intersection(names)
        if glob in gone or (names and not stay):
            globs[glob] = ()
        else:
            globs[glob] = (glob,) if len(stay) == len(names) else cover(stay, results)
    taken: set[str] = set()
    for glob, new in globs.items():  # two globs of one entry may narrow to the same id
        globs[glob] = tuple(name for name in new if name not in taken)
        taken.update(new)
    if len(taken) > MAX_LIST:
        raise UsageError(f"entry {entry.number} would need {len(taken)} ids for what fails still; split it by hand")
    renewed = sorted({results[name].digest for name in staying if seen[name] in ("digest", "xfail", "waived")})
    digest = tuple(renewed) if any(seen[name] == "digest" for name in staying) else ()
    return _Plan(globs, digest, staying)


def _edited(row: dict[str, Any], plan: _Plan) -> dict[str, Any]:
    """An entry as tomllib will read it after its edits."""
    after = dict(row)
    if _narrowed(plan):
        ids = [name for new in plan.globs.values() for name in new]
        after["ids"] = ids if isinstance(row["ids"], list) or len(ids) > 1 else ids[0]
    if plan.digest:
        _digest(after, plan.digest)
    return after


def _digest(row: dict[str, Any], digest: tuple[str, ...]) -> None:
    """New digests; none where a wrong answer has none, or they are more than an entry may list."""
    if "" in digest or len(digest) > MAX_LIST:
        del row["digest"]
    else:
        row["digest"] = digest[0] if len(digest) == 1 else list(digest)


def _narrowed(plan: _Plan) -> bool:
    return any(new != (glob,) for glob, new in plan.globs.items())


def _edits(text: str, row: dict[str, Any], block: Block, plan: _Plan) -> list[Splice]:
    found: list[Splice] = []
    if _narrowed(plan):
        key = block.keys["ids"]
        if isinstance(row["ids"], list):
            for span, (glob, new) in zip(key.texts, plan.globs.items(), strict=True):
                found += [] if new == (glob,) else _member(text, key, span, new)
        else:
            (new,) = plan.globs.values()
            value = quoted(new[0]) if len(new) == 1 else f"[{', '.join(map(quoted, new))}]"
            found.append(Splice(key.start, key.end, value))
    if plan.digest:
        after = dict(row)
        _digest(after, plan.digest)
        key = block.keys["digest"]
        if "digest" in after:
            value = after["digest"]
            shown = quoted(value) if isinstance(value, str) else f"[{', '.join(map(quoted, value))}]"
            found.append(Splice(key.start, key.end, shown))
        else:
            found.append(_whole_lines(text, key.start, key.end))
    return found


def _member(text: str, key: Key, span: tuple[int, int], new: tuple[str, ...]) -> list[Splice]:
    """A member of a list: replaced, or taken out with its comma, and with its line where it has one of its own."""
    start, end = span
    if new:
        return [Splice(start, end, ", ".join(map(quoted, new)))]
    lines = _whole_lines(text, start, end)
    line = text[lines.start : lines.end]
    rest = line.replace(text[start:end], "", 1).split("#", 1)[0].strip()
    if rest in ("", ",") and lines.start > key.start:
        return [lines]
    after = end + len(text[end : key.end]) - len(text[end : key.end].lstrip())
    if text[after : after + 1] == ",":
        after += 1
        while text[after : after + 1] in (" ", "\t"):
            after += 1
        return [Splice(start, after)]
    before = text.rfind(",", key.start, start)
    return [Splice(start if before < 0 or text[before + 1 : start].strip() else before, end)]


def _whole_lines(text: str, start: int, end: int) -> Splice:
    last = text.find("\n", end)
    return Splice(text.rfind("\n", 0, start) + 1, len(text) if last < 0 else last + 1)


def _removal(text: str, block: Block) -> Splice:
    """An entry with the comment lines right above it, and the blank lines that would be left twice or at the end."""
    start, end = block.above, block.end
    while text[end : end + 1] in ("\n", "\r"):
        end += 1
    if end == len(text):
        start -= len(text[:start]) - len(text[:start].rstrip("\r\n"))
        return Splice(start, end, "\r\n" if "\r\n" in text else "\n")
    return Splice(start, end)


def _verify(after: str, wanted: list[dict[str, Any]], path: str) -> None:
    """The text must say what was planned, whatever notation it is in."""
    try:
        same = tomllib.loads(after).get("expect", []) == wanted
        parse_file(after, path)
    except (ValueError, UsageError):
        same = False
    if not same:
        raise UsageError(f"{printable(path)} is written in a way that cannot be edited; edit it by hand")
