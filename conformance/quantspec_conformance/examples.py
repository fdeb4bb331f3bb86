"""Worked examples: the fenced blocks of spec/*.md that open with {example}, and the language they are written in.

    ```{example} doc.values.e2m1-tie
    title  A tie goes to the even code
    shows  VAL-7
    do     encode
    value  e2m1
    x      f32 3FE00000        # half way between 1.5 (code 3) and 2 (code 4)
    gives
    codes  u8 04               # 4 is even
    ```

A line is a name and its content; a line that begins with white space goes on with the one above; `#` begins a remark.
What stands before `gives` is given, what stands after it follows from it, in the order of the steps. An entry is a tensor
(dtype, shape in brackets where it is not one axis of all entries, patterns in hexadecimal) or words.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from quantspec import CANONICAL

from .errors import DamagedError
from .spec import RULE_ID, spec_root

__all__ = ["DTYPES", "EXAMPLE_ID", "Entry", "Example", "ExampleError", "Tensor", "examples", "fences", "parse_body"]

#: dtype of a tensor -> hexadecimal digits of a pattern, the dtype of its numbers.
DTYPES: dict[str, tuple[int, np.dtype[Any]]] = {
    "f32": (8, np.dtype(np.float32)),
    "f16": (4, np.dtype(np.float16)),
    "bf16": (4, np.dtype(ml_dtypes.bfloat16)),
    "u8": (2, np.dtype(np.uint8)),
    "u16": (4, np.dtype(np.uint16)),
    "u32": (8, np.dtype(np.uint32)),
    "f64": (16, np.dtype(np.float64)),
    "i32": (8, np.dtype(np.int32)),
}
#: Entries that name a type and are no tensor of it.
WORDS = ("type", "tensor", "to")
#: Entries that name a way of doing things.
POLICIES = ("recipe", "codec", "container")
EXAMPLE_ID = re.compile(r"doc\.[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")
_OPENS = re.compile(r"(`{3,})\{example\}\s*(.*?)\s*")
_DTYPE = re.compile(r"([a-z]+[0-9]+)(?:\[([0-9,]*)\])?")


class ExampleError(DamagedError):
    """An example that does not follow the language; says where."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Patterns of one dtype in row-major order."""

    dtype: str
    shape: tuple[int, ...]
    patterns: tuple[int, ...]

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> "Tensor":
        """The patterns of an array; its dtype is one of DTYPES."""
        name = next(name for name, (_, dtype) in DTYPES.items() if dtype == array.dtype)
        unsigned = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
        return cls(name, array.shape, tuple(int(pattern) for pattern in unsigned.reshape(-1)))

    def array(self) -> npt.NDArray[Any]:
        """The numbers as an array of the dtype."""
        _, dtype = DTYPES[self.dtype]
        return np.array(self.patterns, f"u{dtype.itemsize}").view(dtype).reshape(self.shape)

    @property
    def text(self) -> str:
        """As an example spells it."""
        digits, _ = DTYPES[self.dtype]
        shape = "" if len(self.shape) == 1 else f"[{','.join(map(str, self.shape))}]"
        return " ".join([self.dtype + shape, *(f"{pattern:0{digits}X}" for pattern in self.patterns)])


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: a tensor or words, and the remark beside it."""

    content: Tensor | str
    remark: str = ""

    @property
    def text(self) -> str:
        """The content as an example spells it."""
        return self.content if isinstance(self.content, str) else self.content.text


def names_canonical(given: Mapping[str, Any], refused: str) -> bool:
    """True where no other recipe, codec or container is named than canonical, but one that is refused by its name."""
    own = refused.split(" ")[0] in ("POL-1", "POL-2", "POL-3")
    return own or all(given[name] == CANONICAL.name for name in POLICIES if name in given)


@dataclass(frozen=True, slots=True)
class Example:
    """One worked example. `shows` are the rules it is there for; `do` the operations, left to right."""

    id: str
    title: str
    shows: tuple[str, ...]
    do: tuple[str, ...]
    given: Mapping[str, Entry]
    gives: Mapping[str, Entry]
    page: str = ""
    line: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def canonical(self) -> bool:
        """True where no other recipe, codec or container is named than canonical, but one that is refused by its name."""
        refused = self.gives["refused"].text if "refused" in self.gives else ""
        return names_canonical({name: entry.text for name, entry in self.given.items() if name in POLICIES}, refused)

    @property
    def place(self) -> str:
        """File and line, for messages."""
        return f"{self.page}:{self.line}" if self.page else self.id


def _entry(name: str, content: str, remark: str, where: str) -> Entry:
    """A tensor where the content opens with a dtype, words otherwise and where the name says so."""
    first, *rest = content.split() or [""]
    match = _DTYPE.fullmatch(first)
    if match is None or match[1] not in DTYPES or name in WORDS:
        return Entry(" ".join([first, *rest]), remark)
    digits, _ = DTYPES[match[1]]
    if any(not re.fullmatch(rf"[0-9A-F]{{{digits}}}", token) for token in rest):
        raise ExampleError(f"{where}: patterns of {match[1]} are {digits} upper-case hexadecimal digits each")
    shape = (len(rest),) if match[2] is None else tuple(int(size) for size in match[2].split(",") if size)
    if math.prod(shape) != len(rest):
        raise ExampleError(f"{where}: {len(rest)} patterns for shape {shape}")
    return Entry(Tensor(match[1], shape, tuple(int(token, 16) for token in rest)), remark)


def _lines(body: Sequence[str], where: str) -> Iterator[tuple[str, str, str]]:
    """Name, content and remark of each entry, continuation lines joined."""
    joined: list[list[str]] = []
    for raw in body:
        text, _, remark = raw.partition("#")
        if not raw.strip():
            continue
        if raw[0].isspace():
            if not joined:
                raise ExampleError(f"{where}: the first line goes on with nothing")
            joined[-1][1] = f"{joined[-1][1]} {text.strip()}".strip()
            joined[-1][2] = f"{joined[-1][2]} {remark.strip()}".strip()
            continue
        name, _, content = text.strip().partition(" ")
        joined.append([name, content.strip(), remark.strip()])
    for name, content, remark in joined:
        yield name, content, remark


def parse_body(example_id: str, body: Sequence[str], *, page: str = "", line: int = 0) -> Example:
    """The example of a fence's id and lines. Raises ExampleError."""
    where = f"{page}:{line}: {example_id}" if page else example_id
    heads: dict[str, str] = {}
    given: dict[str, Entry] = {}
    gives: dict[str, Entry] = {}
    notes: list[str] = []
    current = given
    for name, content, remark in _lines(body, where):
        if name == "gives" and not content:
            current = gives
        elif name == "note":
            notes.append(content)
        elif name in ("title", "shows", "do") and current is given:
            heads[name] = content
        elif name in current:
            raise ExampleError(f"{where}: {name} stands twice")
        else:
            current[name] = _entry(name, content, remark, f"{where}: {name}")
    shows = tuple(heads.get("shows", "").split())
    wrong = [rule_id for rule_id in shows if not RULE_ID.fullmatch(rule_id)]
    if wrong or not heads.get("do") or not gives:
        missing = f"{wrong[0]!r} is not the id of a rule" if wrong else "needs a line `do`, and results after `gives`"
        raise ExampleError(f"{where}: {missing}")
    do = tuple(heads["do"].split())
    return Example(example_id, heads.get("title", ""), shows, do, given, gives, page, line, tuple(notes))


def fences(text: str, page: str) -> Iterator[tuple[str, list[str], int]]:
    """Id, lines and line number of every example fence of a page. ExampleError for one that is not closed."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opens = _OPENS.fullmatch(lines[number])
        number += 1
        if opens is None:
            continue
        start = number
        while number < len(lines) and lines[number].strip() != opens[1]:
            number += 1
        if number == len(lines):
            raise ExampleError(f"{page}:{start}: the example is not closed")
        yield opens[2], lines[start:number], start
        number += 1


@cache
def examples(root: Path | None = None) -> dict[str, Example]:
    """Every example of the chapters by id, in page order. ExampleError for an id that is malformed or stands twice."""
    found: dict[str, Example] = {}
    for path in sorted((spec_root() if root is None else root).glob("*.md")):
        for example_id, body, line in fences(path.read_text("utf-8"), path.name):
            if not EXAMPLE_ID.fullmatch(example_id):
                raise ExampleError(f"{path.name}:{line}: {example_id!r} is not an id; write doc.chapter.some-words")
            if example_id in found:
                raise ExampleError(f"{path.name}:{line}: {example_id} stands twice")
            found[example_id] = parse_body(example_id, body, page=path.name, line=line)
    return found
