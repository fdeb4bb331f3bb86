"""Same input, who says what: the questions of inputs.toml, the answers of canonical and of every row of presets.toml.

Those answers are computed by the reference when the page is made. What peers answer is in measured.toml, written by
`python -m quantspec_conformance.site.measure`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from quantspec import CODECS, CONTAINERS, PRESETS, RECIPES

from ..errors import DamagedError
from ..examples import Entry, Example, Tensor, parse_body
from ..playback import play
from ..protocol.messages import Request

__all__ = ["Answer", "Measured", "Question", "Said", "answers", "measured", "measured_file", "questions", "request_of"]

ROWS: dict[str, Mapping[str, Any]] = {"codec": CODECS, "recipe": RECIPES, "container": CONTAINERS, "preset": PRESETS}
#: What stands in an answer that is none: a name that play takes, and a content that it does not look at.
_ASKED = {"codes": "u8", "scale_codes": "u8", "tensor_scale_code": "u32[0]", "y": "f32", "words": "u8"}
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Said:
    """What a stack gives that is no peer, and where that can be seen."""

    stack: str
    gives: str
    evidence: str
    source: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What a peer gave when it was run."""

    input: str
    peer: str
    version: str
    request: str
    gives: str


@dataclass(frozen=True, slots=True)
class Question:
    """One input; `by` names the rows that are asked, none where only canonical is."""

    id: str
    title: str
    text: str
    rules: tuple[str, ...]
    ask: str
    by: str
    show: tuple[str, ...]
    who: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)  #: peer -> the recipe by which it is asked
    said: tuple[Said, ...] = ()

    def example(self, **policies: str) -> Example:
        """The question as an example that is to be played, by these policies."""
        lines = [*self.ask.strip().splitlines(), *(f"{name} {row}" for name, row in policies.items()), "gives"]
        return parse_body(self.id, [*lines, *(f"{name} {_ASKED[name]}" for name in self.show)], page="inputs.toml")

    def of(self, gives: str) -> dict[str, Entry]:
        """An answer as written in a row: entries with a semicolon between; none where the answer failed."""
        if gives == FAILED:
            return {}
        lines = [part.strip() for part in gives.split(";")]
        found = parse_body(self.id, ["do nothing", "gives", *lines], page=self.id).gives
        return {name: found[name] for name in self.show}


@dataclass(slots=True)
class Answer:
    """One answer, and who gives it: rows by name, peers with their versions, stacks with their sources."""

    entries: Mapping[str, Entry]
    rows: list[str]
    run: list[Measured]
    said: list[Said]


@cache
def questions(path: Path | None = None) -> dict[str, Question]:
    """Every question by id, in the order of the file. DamagedError for one that is none."""
    path = Path(__file__).parent / "inputs.toml" if path is None else path
    found: dict[str, Question] = {}
    for row in tomllib.loads(path.read_text("utf-8"))["input"]:
        try:
            said = tuple(Said(**each) for each in row.pop("said", []))
            members: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
            question = Question(**members, said=said)
        except TypeError as error:
            raise DamagedError(f"{path.name}: {row.get('id')!r}: {error}") from None
        if question.by not in ("", *ROWS) or question.id in found:
            raise DamagedError(f"{path.name}: {question.id}: by is one of {', '.join(ROWS)}, and an id stands once")
        unknown = [name for name in question.who if name not in ROWS[question.by]]
        if unknown:
            raise DamagedError(f"{path.name}: {question.id}: {question.by} {unknown[0]!r} is not defined")
        found[question.id] = question
    return found


def measured_file() -> Path:
    """The file of what peers gave."""
    return Path(__file__).parent / "measured.toml"


@cache
def measured() -> tuple[Measured, ...]:
    """What peers gave, in the order of the file."""
    return tuple(Measured(**row) for row in tomllib.loads(measured_file().read_text("utf-8")).get("answer", []))


def request_of(question: Question, peer: str = "") -> Request:
    """The question as a request of the protocol, as the peer is asked."""
    example = question.example(**({"recipe": question.own[peer]} if peer in question.own else {}))
    words = {name: entry.content for name, entry in example.given.items() if isinstance(entry.content, str)}
    tensors = {name: entry.content for name, entry in example.given.items() if isinstance(entry.content, Tensor)}
    return Request(example.do[0], words, tensors)


def _policies(question: Question, name: str) -> dict[str, str]:
    if question.by != "preset":
        return {question.by: name}
    preset = PRESETS[name]
    return {"recipe": preset.recipe.name, "codec": preset.codec.name}


def _computed(question: Question) -> Iterator[tuple[str, dict[str, Entry]]]:
    """Canonical, then each row that is asked and does not refuse; what the rows of `who` refuse is an answer too."""
    yield "canonical", _played(question.example())
    for name in question.who or ROWS.get(question.by, {}):
        if name != "canonical":
            entries = _played(question.example(**_policies(question, name)))
            if entries or question.who:
                yield name, entries


def _played(example: Example) -> dict[str, Entry]:
    made = play(example).entries
    return {} if "refused" in made else {name: Entry(made[name]) for name in example.gives}


def answers(question: Question) -> list[Answer]:
    """The different answers, that of canonical first; each with who gives it."""
    found: dict[str, Answer] = {}

    def take(entries: Mapping[str, Entry]) -> Answer:
        key = "; ".join(f"{name} {entry.text}" for name, entry in entries.items())
        return found.setdefault(key, Answer(entries, [], [], []))

    for name, entries in _computed(question):
        take(entries).rows.append(name)
    for row in measured():
        if row.input == question.id:
            take(question.of(row.gives)).run.append(row)
    for said in question.said:
        take(question.of(said.gives)).said.append(said)
    return [*found.values()]
