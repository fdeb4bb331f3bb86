"""Result files of others: every line is looked at with suspicion, and what is wrong is named with its number."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DamagedError, UsageError
from ..outside import kind_of, printable, reason_of
from .record import CaseRecord, RunRecord
from .schema import fault_of
from .writer import LINE

__all__ = ["CASES", "FILE", "Assembly", "Line", "read_run", "scan"]

#: Bytes of a file and lines of it.
FILE, CASES = 1 << 28, 1 << 20
#: Brackets that may stand open: the schema needs five.
DEPTH = 16
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{\]}]')


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its bytes, what it holds, or what is wrong with it. `cut` where its line feed is missing."""

    number: int
    raw: bytes
    content: dict[str, Any] | None
    fault: str = ""
    cut: bool = False


class _Hostile(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Hostile("a key stands twice")
    return found


def _constant(name: str) -> Any:
    raise _Hostile(f"{name} is no number of JSON")


def _deep(raw: bytes) -> bool:
    """True where more brackets stand open than any record needs. Looked for before anything is parsed."""
    depth = 0
    for match in _BRACKETS.finditer(raw):
        first = match[0][:1]
        depth += (first in b"[{") - (first in b"]}")
        if depth > DEPTH:
            return True
    return False


def _parsed(number: int, raw: bytes) -> Line:
    if not raw.strip():
        return Line(number, raw, None, "an empty line")
    if _deep(raw):
        return Line(number, raw, None, "nested deeper than any record")
    try:
        content = json.loads(raw.decode("utf-8"), object_pairs_hook=_pairs, parse_constant=_constant)
    except _Hostile as error:
        return Line(number, raw, None, str(error))
    except (ValueError, RecursionError):  # a UnicodeDecodeError, or an integer of too many digits, among them
        return Line(number, raw, None, "no JSON")
    fault = fault_of(content)
    return Line(number, raw, None if fault else content, fault)


def _open(path: Path) -> int:
    """A descriptor of a regular file. UsageError for anything else; a FIFO without a writer does not block."""
    shown = f"result file {printable(str(path))!r}"
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown} cannot be read: {reason_of(error)}") from None
    status = os.fstat(file)
    kind = kind_of(status.st_mode)
    if kind is not None or status.st_size > FILE:
        os.close(file)
        what = f"is {kind}; allowed: a regular file" if kind else f"has {status.st_size} bytes; allowed: {FILE}"
        raise UsageError(f"{shown} {what}")
    return file


def scan(path: Path) -> Iterator[Line]:
    """Every line of a file. It ends at a line or a number of lines that is out of bounds, with that as the last fault."""
    with os.fdopen(_open(path), "rb") as file:
        number = 0
        while raw := file.readline(LINE + 1):
            number += 1
            if len(raw) > LINE:
                yield Line(number, b"", None, f"longer than {LINE} bytes; what follows is not read")
                return
            if number > CASES:
                yield Line(number, b"", None, f"more than {CASES} lines; what follows is not read")
                return
            if not raw.endswith(b"\n"):
                yield Line(number, raw, None, "cut off: no line feed at its end", cut=True)
                return
            yield _parsed(number, raw)


@dataclass(slots=True)
class Assembly:
    """A run put together line by line."""

    header: dict[str, Any] | None = None
    results: dict[str, CaseRecord] = field(default_factory=dict)
    footer: dict[str, Any] | None = None
    digest: Any = field(default_factory=hashlib.sha256)
    lines: dict[str, int] = field(default_factory=dict)  #: of each case

    def take(self, line: Line) -> str:
        """Take a line; what is wrong with it, or with its place, is returned."""
        before = self.footer
        if before is None and (line.content or {}).get("record") != "footer":
            self.digest.update(line.raw)
        if line.content is None:
            return line.fault
        match line.content["record"]:
            case "header":
                fault = "" if line.number == 1 else "a second header: files were merged"
                self.header = line.content if self.header is None else self.header
            case "footer":
                fault = "" if before is None else "a second footer: files were merged"
                self.footer = line.content if before is None else before
            case _:
                fault = self._case(line.number, CaseRecord.from_json(line.content))
        if before is not None and not fault:
            fault = "a line after the footer"
        if line.number == 1 and self.header is None:
            fault = "the first line is no header: no result file"
        return fault

    def _case(self, number: int, record: CaseRecord) -> str:
        if record.id in self.results:
            return f"{record.id} stands twice, first in line {self.lines[record.id]}"
        self.results[record.id], self.lines[record.id] = record, number
        return ""

    @property
    def altered(self) -> str:
        """What the footer's digest says of the lines before it."""
        if self.footer is None or self.footer["digest"] == self.digest.hexdigest():
            return ""
        return "the lines are not those that the footer's digest was made of: edited, reordered, or some are missing"

    @property
    def run(self) -> RunRecord:
        """The run. DamagedError where there is no header."""
        if self.header is None:
            raise DamagedError("no whole header: no result file")
        return RunRecord(self.header, tuple(self.results.values()), self.footer)


def read_run(path: Path) -> RunRecord:
    """The run of a file, its digest checked. A last line that is cut off, and a missing footer, mean a run that was killed.

    UsageError where there is no such file to read, DamagedError with the number of the line for what no run has written.
    """
    made = Assembly()
    shown = printable(str(path))
    for line in scan(path):
        if line.cut:
            if made.footer is not None:
                raise DamagedError(f"{shown}:{line.number}: a line after the footer")
            break
        fault = made.take(line)
        if fault:
            raise DamagedError(f"{shown}:{line.number}: {fault}")
    if made.header is None:
        raise DamagedError(f"{shown}:1: no whole header: no result file")
    if made.altered:
        raise DamagedError(f"{shown}: {made.altered}")
    return made.run
