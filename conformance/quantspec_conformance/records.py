"""What the spec records about its rules: the pages that render them, decisions, and where other stacks give other bits."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .errors import DamagedError
from .examples import Example, parse_body
from .spec import RULE_ID, spec_root

__all__ = ["EVIDENCE", "Decision", "Deviation", "decisions", "deviations", "rendered"]

EVIDENCE = ("run", "read", "reported")
DEVIATION_ID = re.compile(r"dev\.[a-z0-9]+(-[a-z0-9]+)*\.[a-z0-9]+(-[a-z0-9]+)*")
_RENDERS = re.compile(r"`{3,}\{rule\}\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Decision:
    """One page of spec/decisions: why a choice was made."""

    number: str
    title: str
    rules: tuple[str, ...]
    file: str


@dataclass(frozen=True, slots=True)
class Deviation:
    """One stack that gives other bits than a rule: a row of spec/deviations.toml."""

    id: str
    rules: tuple[str, ...]
    stack: str
    version: str
    what: str
    example: Example | None
    theirs: str
    evidence: str
    source: str


@cache
def rendered(root: Path | None = None) -> dict[str, tuple[str, int]]:
    """Rule id -> the page, without its suffix, and the line that render it. DamagedError for a rule rendered twice."""
    found: dict[str, tuple[str, int]] = {}
    for path in sorted((spec_root() if root is None else root).glob("*.md")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            match = _RENDERS.fullmatch(line)
            if match is None:
                continue
            if match[1] in found:
                raise DamagedError(f"{path.name}:{number}: {match[1]} is rendered on {found[match[1]][0]} too")
            found[match[1]] = (path.stem, number)
    return found


@cache
def decisions(root: Path | None = None) -> tuple[Decision, ...]:
    """Every accepted decision, by number. DamagedError for a page without its head."""
    found: list[Decision] = []
    for path in sorted(((spec_root() if root is None else root) / "decisions").glob("[0-9]*.md")):
        text = path.read_text("utf-8")
        title = re.match(r"# (\d{4}) (.+)", text)
        head = re.search(r"^Status: .*?Rules: (.*?)\n\s*\n", text, re.MULTILINE | re.DOTALL)
        if title is None or head is None or title[1] != path.name[:4]:
            if path.name.startswith("0000-"):
                continue
            raise DamagedError(f"{path}: needs a title `# {path.name[:4]} ...` and a line `Status: ... Rules: ...`")
        rules = dict.fromkeys([*RULE_ID.findall(head[1]), *RULE_ID.findall(text)])
        found.append(Decision(title[1], title[2].strip(), tuple(rules), path.name))
    return tuple(found)


def _rows(path: Path) -> Iterator[Deviation]:
    keys = {"id", "rules", "stack", "version", "what", "example", "theirs", "evidence", "source"}
    for row in tomllib.loads(path.read_text("utf-8"))["deviation"]:
        if set(row) != keys or not DEVIATION_ID.fullmatch(row["id"]) or row["evidence"] not in EVIDENCE:
            raise DamagedError(
                f"{path}: {row.get('id')!r} needs exactly {', '.join(sorted(keys))}, an id dev.stack.words"
            )
        body = row["example"].strip().splitlines()
        example = parse_body(row["id"], body, page=path.name) if body else None
        yield Deviation(**{**row, "rules": tuple(row["rules"]), "example": example})


@cache
def deviations(root: Path | None = None) -> tuple[Deviation, ...]:
    """Every recorded deviation, in the file's order. DamagedError for a malformed row or an id that stands twice."""
    path = (spec_root() if root is None else root) / "deviations.toml"
    try:
        found = tuple(_rows(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise DamagedError(f"{path}: not a file of deviations ({type(error).__name__}: {error})") from None
    ids = [row.id for row in found]
    twice = sorted({row for row in ids if ids.count(row) > 1})
    if twice:
        raise DamagedError(f"{path}: {twice[0]} stands twice")
    return found
