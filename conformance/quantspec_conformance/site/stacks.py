"""Stacks by the name people use: stacks.toml joins what peers.toml, presets.toml, deviations.toml and faults.toml say of each."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from quantspec import PRESETS

from ..errors import DamagedError
from ..peers.table import peers
from ..records import deviations
from .faults import faults

__all__ = ["Stack", "by_member", "linked_source", "stack_page", "stacks"]

_REPOSITORY = r"(?P<repository>[A-Za-z0-9_-]+/[A-Za-z0-9_.-]+)"
_COMMIT = re.compile(rf"{_REPOSITORY} (?P<commit>[0-9a-f]{{7,40}})\b(?:, (?P<path>[\w./-]+\.\w+))?")
_ISSUE = re.compile(rf"{_REPOSITORY}#(?P<number>[0-9]+)\b")


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack: names of rows elsewhere. The title is the name of its page."""

    title: str
    peers: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    source: str = ""

    @property
    def slug(self) -> str:
        """The name of its page, below `stacks/`."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


MEMBERS = tuple(field.name for field in fields(Stack))


@cache
def stacks(path: Path | None = None) -> tuple[Stack, ...]:
    """Every stack by title: the rows of the file, then what no row takes. DamagedError for a row that is none."""
    path = Path(__file__).parent / "stacks.toml" if path is None else path
    found: list[Stack] = []
    for row in tomllib.loads(path.read_text("utf-8")).get("stack", []):
        if not set(row) <= set(MEMBERS) or "title" not in row:
            raise DamagedError(f"{path.name}: stack {row.get('title')!r}: the members are {', '.join(MEMBERS)}")
        members: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        found.append(Stack(**members))
    slugs = [stack.slug for stack in found]
    twice = sorted({slug for slug in slugs if slugs.count(slug) > 1})
    if twice:
        raise DamagedError(f"{path.name}: two stacks have the page {twice[0]}")
    known: dict[str, Iterable[str]] = {
        "deviations": dict.fromkeys(row.stack for row in deviations()),
        "peers": [peer.name for peer in peers()],
        "presets": [name for name in PRESETS if name != "canonical"],
        "faults": dict.fromkeys(
            row.peer for row in faults().values() if row.peer not in {peer.name for peer in peers()}
        ),
    }
    pages = {stack.slug: stack for stack in found}
    for member, names in known.items():
        taken = {name for stack in found for name in getattr(stack, member)}
        unknown = sorted(taken - set(names))
        if unknown:
            raise DamagedError(f"{path.name}: {member} has no {unknown[0]!r}")
        for name in names:
            if name not in taken:
                stack = pages.get(Stack(name).slug, Stack(name))
                more: dict[str, Any] = {member: (*getattr(stack, member), name)}
                pages[stack.slug] = replace(stack, **more)
    return tuple(sorted(pages.values(), key=lambda stack: stack.title.lower()))


@cache
def by_member(member: str) -> dict[str, Stack]:
    """Name of a peer or a deviation's stack -> the stack that has it."""
    return {name: stack for stack in stacks() for name in getattr(stack, member)}


def stack_page(name: str) -> str | None:
    """The page of a stack by its title, or as deviations.toml calls it."""
    stack = {stack.title: stack for stack in stacks()}.get(name) or by_member("deviations").get(name)
    return None if stack is None else f"stacks/{stack.slug}"


def linked_source(text: str) -> str:
    """The address of a source on GitHub that is named as `owner/name commit, path` or `owner/name#issue`; "" for others."""
    if match := _ISSUE.search(text):
        return f"https://github.com/{match['repository']}/issues/{match['number']}"
    if match := _COMMIT.search(text):
        where = f"blob/{match['commit']}/{match['path']}" if match["path"] else f"tree/{match['commit']}"
        return f"https://github.com/{match['repository']}/{where}"
    return ""
