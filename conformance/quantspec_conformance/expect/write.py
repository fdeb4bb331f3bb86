"""New entries as TOML text, grouped by how cases fail, by rule and by where their ids begin."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from ..errors import UsageError
from ..outside import printable
from .globs import cover
from .records import MAX_LIST, TODO
from .verdict import ResultLike, signature
from .when import NAMES, is_name

__all__ = ["Draft", "drafts", "quoted", "render", "scoped"]

#: Digests that a proposed entry lists at most; beyond, its signature alone tells one wrong answer from another.
MOST_DIGESTS = 16
#: Outcomes whose digest follows from bits alone; a message of an error may hold a number that changes.
PINNED = ("fail", "reject-missing")
_ESCAPES = {'"': '\\"', "\\": "\\\\"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry to be."""

    ids: tuple[str, ...]
    outcome: str
    signature: str
    digest: tuple[str, ...]
    count: int
    about: str  #: what one of its cases says, for the comment

    def fields(self, since: date | None, when: str) -> dict[str, object]:
        """The entry as tomllib would read it."""
        kind = "flaky" if self.outcome == "nondeterministic" else "bug"
        ids: object = self.ids[0] if len(self.ids) == 1 else list(self.ids)
        row: dict[str, object] = {"ids": ids, "outcome": self.outcome, "kind": kind}
        row |= {"when": when} if when else {}
        row |= {"signature": self.signature}
        row |= {"digest": self.digest[0] if len(self.digest) == 1 else list(self.digest)} if self.digest else {}
        row |= {"max": self.count, "reason": TODO, "url": TODO}
        return row | ({"since": since} if since is not None else {})


def drafts(failing: Iterable[ResultLike], others: Iterable[str]) -> list[Draft]:
    """Entries for results that fail, which match none of the other ids."""
    groups: dict[tuple[str, str, str], list[ResultLike]] = defaultdict(list)
    for row in failing:
        prefix = ".".join(row.id.split(".")[:2])
        groups[prefix, row.outcome, signature(row)].append(row)
    everything = {row.id for rows in groups.values() for row in rows} | set(others)
    found: list[Draft] = []
    for (_, outcome, sign), rows in sorted(groups.items()):
        ids = [row.id for row in rows]
        globs = cover(ids, everything)
        digests = tuple(sorted({row.digest for row in rows if row.digest}))
        pins = digests if outcome in PINNED and all(row.digest for row in rows) else ()
        for at in range(0, len(globs), MAX_LIST):
            found.append(
                Draft(
                    ids=globs[at : at + MAX_LIST],
                    outcome=outcome,
                    signature=sign,
                    digest=pins if len(pins) <= MOST_DIGESTS else (),
                    count=len(rows),
                    about=f"{rows[0].id}: {getattr(rows[0], 'reason', '')}",
                )
            )
    return found


def render(fields: Mapping[str, object], about: str, newline: str) -> str:
    """One entry as text, a comment above it."""
    shown = printable(about)[:120].rstrip()
    lines = [f"# {shown}", "[[expect]]", *(f"{key} = {_value(value)}" for key, value in fields.items())]
    return "\n".join(lines).replace("\n", newline) + newline


def quoted(text: str) -> str:
    """A text as a TOML string on one line."""
    return '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'


def scoped(names: Iterable[str], info: Mapping[str, str]) -> str:
    """A condition that holds on this run for these names; what the run does not tell, or no literal can hold, is left out.

    UsageError for a name that the language does not have.
    """
    parts: list[str] = []
    for name in names:
        if not is_name(name):
            raise UsageError(
                f"{printable(repr(name))[:60]} is no name of a condition; allowed: {', '.join(NAMES)}, policy.<axis>"
            )
        value = info.get(name, "")
        quote = "'" if '"' in value else '"'
        if value and not set(value) & {quote, "\n", "\r"}:
            parts.append(f"{name} == {quote}{value}{quote}")
    return " and ".join(parts)


def _value(value: object) -> str:
    if isinstance(value, list):
        inner = ", ".join(quoted(str(row)) for row in value)
        if len(inner) <= 90:
            return f"[{inner}]"
        return "[\n" + "".join(f"  {quoted(str(row))},\n" for row in value) + "]"
    return quoted(value) if isinstance(value, str) else str(value)
