"""Where things stand in the text of an expectation file, so that an edit touches nothing else: comments and order stay."""

import re
from dataclasses import dataclass

__all__ = ["Block", "Key", "Splice", "blocks", "spliced"]

#: One piece of TOML that can hide a bracket, a hash or a line end, or is one; everything else goes by the character.
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})|'
    + r"'''.*?'''(?:'{0,2})|"
    + r'"(?:\\.|[^"\\\n])*"|'
    + r"'[^'\n]*'|#[^\n]*|[^\"'#\[\]\n]+|.",
    re.DOTALL,
)
_KEY = re.compile(r"""[ \t]*["']?([A-Za-z_-]+)["']?[ \t]*=[ \t]*""")
_HEADER = re.compile(r"""[ \t]*\[\[[ \t]*["']?expect["']?[ \t]*\]\]""")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an entry: where its value begins and ends, and the texts in quotes inside of it, in order."""

    start: int
    end: int
    texts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """An entry: from its header to the end of its last line, the comment lines right above it, and its keys."""

    above: int
    start: int
    end: int
    keys: dict[str, Key]


@dataclass(frozen=True, slots=True)
class Splice:
    """A stretch of the text and what takes its place."""

    start: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Statement:
    kind: str  #: blank, comment, header, key
    start: int
    end: int
    value_end: int
    texts: tuple[tuple[int, int], ...] = ()


def blocks(text: str) -> list[Block]:
    """The `[[expect]]` tables of a text that is valid TOML, in order. Entries in another notation are not found."""
    rows = _statements(text)
    found: list[Block] = []
    for at, row in enumerate(rows):
        if row.kind != "header" or not _HEADER.match(text, row.start):
            continue
        last = at
        keys: dict[str, Key] = {}
        for below in range(at + 1, len(rows)):
            if rows[below].kind == "header":
                break
            match = _KEY.match(text, rows[below].start) if rows[below].kind == "key" else None
            if match is not None:
                texts = tuple(span for span in rows[below].texts if span[0] >= match.end())
                keys[match[1]] = Key(match.end(), rows[below].value_end, texts)
                last = below
        first = at
        while first and rows[first - 1].kind == "comment":
            first -= 1
        found.append(Block(rows[first].start, row.start, rows[last].end, keys))
    return found


def spliced(text: str, splices: list[Splice]) -> str:
    """The text with every stretch replaced; deletions may overlap."""
    merged: list[Splice] = []
    for splice in sorted(splices, key=lambda s: (s.start, s.end)):
        if merged and splice.start < merged[-1].end:
            splice = Splice(merged[-1].start, max(merged[-1].end, splice.end), merged.pop().text + splice.text)
        merged.append(splice)
    for splice in reversed(merged):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


def _statements(text: str) -> list[_Statement]:
    found: list[_Statement] = []
    at = 0
    while at < len(text):
        found.append(_statement(text, at))
        at = found[-1].end
    return found


def _statement(text: str, start: int) -> _Statement:
    """One statement: up to the line end that is in no bracket and no string."""
    depth, at, value_end, header = 0, start, start, False
    texts: list[tuple[int, int]] = []
    commented = False
    while at < len(text):
        piece = _PIECE.match(text, at)
        assert piece is not None  # the last alternative takes anything
        at, what = piece.end(), piece[0]
        if what == "\n" and depth == 0:
            break
        if what[0] == "#":
            commented = True
        elif what.strip():
            header = header or (value_end == start and what == "[")
            value_end = piece.start() + len(what.rstrip())
            depth += (what == "[") - (what == "]")
        if what[0] in "\"'":
            texts.append((piece.start(), piece.end()))
    kind = (
        "blank"
        if value_end == start and not commented
        else "comment"
        if value_end == start
        else "header"
        if header
        else "key"
    )
    return _Statement(kind, start, at, value_end, tuple(texts))
