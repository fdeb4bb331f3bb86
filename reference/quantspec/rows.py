"""The rows of presets.toml, read once and strictly: what a row may hold is said by whoever reads it. Rule POL-19."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from .errors import UnsupportedError

__all__ = ["KINDS", "NAME", "Row", "read", "rows", "undefined"]

#: The tables of the file, each an array of rows.
KINDS = ("codec", "container", "recipe", "preset")
#: What the name of a row looks like.
NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


class Row:
    """One row: its members are taken one by one, and `done` refuses what nobody took."""

    def __init__(self, kind: str, content: object, rule: str) -> None:
        self.rule = rule
        self.where = kind
        if not isinstance(content, Mapping):
            raise self.fault("", content, "a table")
        self.left = dict(content)
        self.name = self.text("name")
        if not NAME.fullmatch(self.name):
            raise self.fault("name", self.name, "lower-case words joined by - or _")
        self.where = f"{kind} {self.name!r}"

    def fault(self, member: str, value: object, allowed: str) -> UnsupportedError:
        """The refusal of a member."""
        place = f"{self.where}: {member}" if member else self.where
        return UnsupportedError(self.rule, f"{place}={value!r}; allowed: {allowed}")

    def text(self, member: str, default: str | None = None, among: Sequence[str] | None = None) -> str:
        """A member that is a text, one of `among` where that is given."""
        value = self.left.pop(member, default)
        if not isinstance(value, str) or (among is not None and value not in among):
            raise self.fault(member, value, "a text" if among is None else ", ".join(among))
        return value

    def flag(self, member: str) -> bool:
        """A member that is true or false; false where it is not there."""
        value = self.left.pop(member, False)
        if not isinstance(value, bool):
            raise self.fault(member, value, "true, false")
        return value

    def texts(self, member: str) -> tuple[str, ...]:
        """A member that is a list of texts; empty where it is not there."""
        value = self.left.pop(member, [])
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise self.fault(member, value, "a list of texts")
        return tuple(value)

    def numbers(self, member: str) -> tuple[int, ...]:
        """A member that is a list of whole numbers; empty where it is not there."""
        value = self.left.pop(member, [])
        if not isinstance(value, list) or not all(type(part) is int for part in value):
            raise self.fault(member, value, "a list of whole numbers")
        return tuple(value)

    def done(self) -> None:
        """Refuse the members that nobody took."""
        if self.left:
            raise self.fault("members", sorted(self.left), "no other members")


def read(text: str) -> dict[str, list[Any]]:
    """The tables of a file's text. Refused: what is no TOML, other tables, a table that is not an array. Rule POL-19."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UnsupportedError("POL-19", f"presets are not TOML: {error}") from None
    for kind, listed in content.items():
        if kind not in KINDS or not isinstance(listed, list):
            raise UnsupportedError("POL-19", f"presets: table {kind!r}; allowed: arrays of {', '.join(KINDS)}")
    return {kind: content.get(kind, []) for kind in KINDS}


@cache
def rows(kind: str) -> tuple[Any, ...]:
    """The rows of one kind in the shipped file."""
    return tuple(_shipped()[kind])


@cache
def _shipped() -> dict[str, list[Any]]:
    return read((resources.files("quantspec") / "presets.toml").read_text("utf-8"))


def undefined(rule: str, kind: str, name: object, defined: Iterable[str]) -> UnsupportedError:
    """The refusal of a name without a row, with what was likely meant: the row of a preset of that name, or the nearest."""
    names = list(defined)
    text = name if isinstance(name, str) else ""
    preset = next((row for row in rows("preset") if kind in row and text.partition("@")[0] == row["name"]), None)
    if preset is not None:
        hint = f" ({preset['name']} is a preset; its {kind}: {preset[kind]})"
    else:
        near = difflib.get_close_matches(text, names, 1)
        hint = f" (near: {near[0]})" if near else ""
    return UnsupportedError(rule, f"{kind}={name!r} is not defined; defined: {', '.join(names)}{hint}")
