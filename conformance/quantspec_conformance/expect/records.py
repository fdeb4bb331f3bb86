"""Expectation files: which cases an implementation is expected to get wrong, how, why and until when. Schema expect-1.

A file comes from outside: its size is bounded, every key is checked, and an error names the file and the entry.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..outside import printable, read_regular
from ..suite.outcome import OUTCOMES
from .versions import LITERAL
from .when import When, WhenError
from .when import parse as parse_when

__all__ = ["ALLOWED_OUTCOMES", "KINDS", "SCHEMA", "TODO", "Entry", "Expectations", "parse", "read", "read_text"]

SCHEMA = "expect-1"
#: bug: tracked, to be fixed; permanent: never to be fixed, and why; waiver: agreed not to count; flaky: may pass or fail.
KINDS = ("bug", "waiver", "permanent", "flaky")
#: A pass is expected of every case without an entry; a case that was not run tells nothing.
ALLOWED_OUTCOMES = tuple(outcome for outcome in OUTCOMES if outcome not in ("pass", "notrun"))
#: What a proposed entry says where somebody must write the reason or the URL.
TODO = "TODO"
MAX_BYTES = 4 << 20
MAX_ENTRIES = 2000
MAX_LIST = 10000
_GLOB = re.compile(r"[a-z0-9_.*?\[\]!-]{1,200}")
_DIGEST = re.compile(r"[0-9a-f]{16}")
_SIGNATURE = re.compile(r"(\*|[a-z0-9_-]{1,40})/(\*|[a-z-]{1,20})/(\*|-|[A-Z]{3}-[1-9][0-9]{0,3})")
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f]{1,500}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One expectation; `number` counts the entries of the file from 1. Empty fields say nothing."""

    number: int
    ids: tuple[str, ...]
    outcome: str
    kind: str
    reason: str
    when: When | None = None
    url: str = ""
    since: date | str = ""
    until: date | str = ""
    digest: tuple[str, ...] = ()
    signature: str = ""
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Expectations:
    """The expectations of one implementation, and the file that they are in."""

    path: str
    implementation: str
    entries: tuple[Entry, ...]


class _Fault(Exception):
    """What is wrong with a value; the caller says where."""


def read_text(path: Path) -> str:
    """The text of a file. UsageError for what is no regular file, too large, or not UTF-8."""
    raw = read_regular(path, MAX_BYTES, what="", allowed="an expectation file")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{printable(repr(str(path)))} is not UTF-8 at byte {error.start}") from None


def read(path: Path) -> Expectations:
    """The expectations of a file. UsageError where it is none."""
    return parse(read_text(path), str(path))


def parse(text: str, path: str) -> Expectations:
    """The expectations that a text of TOML holds; `path` is what errors call it. UsageError where it is none."""
    shown = printable(path)
    if len(text) > MAX_BYTES:
        raise UsageError(f"{shown} is longer than {MAX_BYTES} bytes")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number with too many digits
        raise UsageError(f"{shown}: no TOML: {printable(str(error))[:200]}") from None
    try:
        _keys(data, {"schema", "implementation", "expect"}, ("schema", "implementation"))
        if data["schema"] != SCHEMA:
            raise _Fault(f"schema is {_short(data['schema'])}; this version reads {SCHEMA!r}")
        name = _text("implementation", data["implementation"], longest=200)
        rows = data.get("expect", [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise _Fault("expect must be [[expect]] tables")
        if len(rows) > MAX_ENTRIES:
            raise _Fault(f"{len(rows)} entries; at most {MAX_ENTRIES}")
    except _Fault as fault:
        raise UsageError(f"{shown}: {fault}") from None
    return Expectations(path, name, tuple(_entry(row, number, shown) for number, row in enumerate(rows, 1)))


def _entry(row: Mapping[str, Any], number: int, shown: str) -> Entry:
    try:
        _keys(row, set(_FIELDS), ("ids", "outcome", "kind", "reason"))
        values = {key: _FIELDS[key](key, value) for key, value in row.items()}
        entry = Entry(number=number, **values)
        if entry.kind == "bug" and not entry.url:
            raise _Fault("url is missing; a bug is tracked somewhere")
        if type(entry.since) is type(entry.until) and _after(entry.since, entry.until):
            raise _Fault(f"since {entry.since} is after until {entry.until}")
    except _Fault as fault:
        raise UsageError(f"{shown}: entry {number}: {fault}") from None
    return entry


def _after(since: date | str, until: date | str) -> bool:
    if isinstance(since, date) and isinstance(until, date):
        return since > until
    numbers = [[int(n) for n in str(side).split(".") if n] for side in (since, until)]
    return bool(since and until) and numbers[0] > numbers[1]


def _keys(row: Mapping[str, Any], allowed: set[str], needed: tuple[str, ...]) -> None:
    for key in row:
        if key not in allowed:
            raise _Fault(f"unknown key {_short(key)}; allowed: {', '.join(sorted(allowed))}")
    for key in needed:
        if key not in row:
            raise _Fault(f"{key} is missing")


def _short(value: object) -> str:
    return printable(repr(value))[:60]


def _text(key: str, value: object, *, longest: int = 2000) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > longest:
        raise _Fault(f"{key} is {_short(value)}; allowed: a text of 1 to {longest} characters")
    return value


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str, object], str]:
    def check(key: str, value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise _Fault(f"{key} is {_short(value)}; allowed: {what}")
        return value

    return check


def _one_of(allowed: tuple[str, ...], why: str = "") -> Callable[[str, object], str]:
    def check(key: str, value: object) -> str:
        if value not in allowed:
            raise _Fault(f"{key} is {_short(value)}; allowed: {', '.join(allowed)}{why}")
        return str(value)

    return check


def _list_of(one: Callable[[str, object], str]) -> Callable[[str, object], tuple[str, ...]]:
    def check(key: str, value: object) -> tuple[str, ...]:
        rows = value if isinstance(value, list) else [value]
        if not 1 <= len(rows) <= MAX_LIST:
            raise _Fault(f"{key} has {len(rows)} members; allowed: 1 to {MAX_LIST}")
        found = tuple(one(key, row) for row in rows)
        if len(set(found)) < len(found):
            raise _Fault(f"{key} names {_short(Counter(found).most_common(1)[0][0])} twice")
        return found

    return check


def _when(key: str, value: object) -> When:
    text = _text(key, value)
    try:
        return parse_when(text)
    except WhenError as error:
        raise _Fault(f"{key}: {error}") from None


def _moment(key: str, value: object) -> date | str:
    """A date, or a version with dots."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and LITERAL.fullmatch(value):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise _Fault(f"{key} is {_short(value)}; allowed: a date as in 2027-01-31, a version as in '1.2.0'")


def _ceiling(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**9:
        raise _Fault(f"{key} is {_short(value)}; allowed: 1 to 1000000000")
    return value


_FIELDS: dict[str, Callable[[str, object], Any]] = {
    "ids": _list_of(_matching(_GLOB, "a case id, or a glob of them (*, ?, [abc])")),
    "outcome": _one_of(ALLOWED_OUTCOMES, " (every case without an entry is expected to pass)"),
    "when": _when,
    "kind": _one_of(KINDS),
    "reason": _text,
    "url": _matching(re.compile(f"{TODO}|{_URL.pattern}"), "an address that begins with http:// or https://"),
    "since": _moment,
    "until": _moment,
    "digest": _list_of(_matching(_DIGEST, "16 hexadecimal digits in lower case")),
    "signature": _matching(_SIGNATURE, "part/kind/rule as in codes/bits/QNT-5; * stands for any, - for none"),
    "max": _ceiling,
}
