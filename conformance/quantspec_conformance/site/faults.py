"""Faults of peers as examples: faults.toml writes its requests and answers as lines of the wire."""

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache

from ..examples import Entry, Example
from ..peers.table import folder
from ..protocol.messages import Ok, Request
from ..protocol.text import read_answer, read_request

__all__ = ["ORACLES", "Fault", "faults"]

#: Who says what is right.
ORACLES = {
    "law": "the reference",
    "ml_dtypes": "the cast that does not saturate",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One input that a peer gets wrong by its own rules. `got` is empty where it gives no answer."""

    id: str
    number: str
    peer: str
    version: str
    what: str
    example: Example  #: what is asked, and what is right
    got: dict[str, Entry]
    oracle: str
    case: str
    missing: str


@cache
def faults() -> dict[str, Fault]:
    """Every fault by id, `fault.PEER.NUMBER-n`, in the order of the file."""
    seen: Counter[str] = Counter()
    found: dict[str, Fault] = {}
    for row in tomllib.loads((folder() / "faults.toml").read_text("utf-8"))["fault"]:
        stem = f"fault.{row['peer']}.{row['fault']}"
        seen[stem] += 1
        name = f"{stem}-{seen[stem]}"
        found[name] = Fault(
            name, row["fault"], row["peer"], row["version"], row["what"], _example(name, row["request"], row["right"]),
            _entries(row["got"]), row["oracle"], row["case"], row["missing"],
        )  # fmt: skip
    return found


def _example(name: str, line: str, right: str) -> Example:
    _, request = read_request(line.replace("run ", "run id=1 ", 1).encode() + b"\n")
    if not isinstance(request, Request):
        raise TypeError(f"{name}: no request: {line}")
    given = {word: Entry(text) for word, text in request.words.items()}
    given |= {tensor: Entry(content) for tensor, content in request.tensors.items()}
    return Example(name, "", (), (request.op,), given, _entries(right))


def _entries(line: str) -> dict[str, Entry]:
    """The tensors of an answer; nothing of one that failed."""
    verb, _, rest = line.partition(" ")
    if verb != "ok":
        return {}
    _, answer = read_answer(f"{verb} id=1 {rest}".strip().encode() + b"\n")
    return {name: Entry(tensor) for name, tensor in answer.tensors.items()} if isinstance(answer, Ok) else {}
