"""`quantspec peers identify`: what identify says of each peer, recorded beside what is known of it by other means."""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ..errors import UsageError
from .check import select
from .environment import address, ready, run
from .table import Peer, folder

__all__ = ["Documented", "documented", "identify_command", "recorded", "right"]

SCHEMA = "peers-identify-1"
TIMEOUT, REQUEST_TIMEOUT = 900.0, 120.0
_FIELDS = {"peer", "schemes", "as", "recipe", "codec", "except", "documented"}
Ask = Callable[[Peer, str, Sequence[str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Documented:
    """What is known of one format of a peer: a recipe and a codec that must be found, domains where it may leave them."""

    peer: str
    scheme: str
    asked_as: str
    recipe: str
    codec: str
    exempt: tuple[str, ...]
    text: str


def documented(path: Path | None = None) -> list[Documented]:
    """The rows of identify.toml, one a format. UsageError for a row that is none."""
    path = path or folder() / "identify.toml"
    found = []
    for row in tomllib.loads(path.read_text("utf-8")).get("answer", []):
        if not {"peer", "schemes", "documented"} <= set(row) <= _FIELDS:
            raise UsageError(f"{path.name}: answer of {row.get('peer')}: the fields are {', '.join(sorted(_FIELDS))}")
        rest = (row.get("as", ""), row.get("recipe", ""), row.get("codec", ""), tuple(row.get("except", ())))
        found += [Documented(row["peer"], scheme, *rest, row["documented"]) for scheme in row["schemes"]]
    return found


def right(row: Documented, answer: dict[str, Any]) -> str:
    """Why an answer is not what is known; "" where it is."""
    exempt = sorted({place["domain"] for part in answer["parts"] for place in part["except"]})
    if answer["outcome"] != ("identified, except" if exempt else "identified"):
        return f"outcome {answer['outcome']}"
    if row.recipe and row.recipe not in answer["recipes"]:
        return f"recipes {answer['recipes']}, not {row.recipe}"
    if row.codec and row.codec not in answer["codecs"]:
        return f"codecs {answer['codecs']}, not {row.codec}"
    beyond = [name for name in exempt if name not in row.exempt]
    return f"except {', '.join(beyond)}" if beyond else ""


def recorded(path: Path | None = None) -> dict[str, Any]:
    """results/identify.json."""
    text = (path or folder() / "results" / "identify.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def identify_command(only: Sequence[str], out: Path, *, ask: Ask | None = None) -> int:
    """Ask each installed peer, print what is known beside what was found, write identify.json; 1 where they differ."""
    listed = documented()
    found: list[dict[str, Any]] = []
    wrong = 0
    for peer in select(only):
        if ask is None and not ready(peer):
            raise UsageError(f"{peer.name} is not installed; `quantspec peers prepare --only {peer.name}` does that")
        mine = [row for row in listed if row.peer == peer.name]
        answers = [answer for named in dict.fromkeys(["", *(row.asked_as for row in mine)])
                   for answer in _asked(peer, named, mine, ask or _ask)]  # fmt: skip
        found += answers
        for row in mine:
            answer = next((one for one in answers if (one["scheme"], one["as"]) == (row.scheme, row.asked_as)), None)
            why = "was not answered" if answer is None else right(row, answer)
            wrong += bool(why)
            named = " ".join(filter(None, (row.recipe, row.codec)))
            click.echo(f"{peer.name:<19} {row.scheme:<38} {named:<45} {why or 'as documented'}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "identify.json").write_text(_text(found), "utf-8")
    return 1 if wrong else 0


def _text(found: Sequence[dict[str, Any]]) -> str:
    rows = ",\n  ".join(json.dumps(answer) for answer in found)
    return f'{{\n "schema": "{SCHEMA}",\n "answers": [\n  {rows}\n ]\n}}\n'


def _asked(peer: Peer, named: str, mine: Sequence[Documented], ask: Ask) -> Iterator[dict[str, Any]]:
    formats = [row.scheme for row in mine if row.asked_as == named] if named else []
    told = ask(peer, named, formats)
    for one in told["formats"]:
        if one["outcome"] != "not offered":
            yield _short(peer, told["implementation"]["version"], one)


def _short(peer: Peer, version: str, one: dict[str, Any]) -> dict[str, Any]:
    """A verdict in a few members: what was found, where it fails, by which smallest question."""
    parts = [
        {
            "part": part["part"], "outcome": part["outcome"],
            "except": [{"domain": place["domain"], "agrees": place["agrees"], "of": place["of"], "by": _by(place["by"])}
                       for place in part["exempt"]],
            **({"nearest": part["nearest"][0]["ways"][0], "by": _by(part["counterexample"])} if part["nearest"] else {}),
        }
        for part in one["parts"]
    ]  # fmt: skip
    names = {name: one[name] for name in ("recipes", "codecs", "presets")}
    if not names["codecs"]:
        ways: list[dict[str, str]] = next((part["ways"] for part in one["parts"] if part["part"] == "encode"), [])
        names["codecs"] = sorted({name for way in ways for name in way.get("codec", "").split(" or ") if name})
    head = {"peer": peer.name, "version": version, "scheme": one["scheme"], "as": one["asked_as"]}
    return head | {"outcome": one["outcome"], **names, "parts": parts, "blocks": one["blocks"]}


def _by(one: dict[str, Any] | None) -> dict[str, Any] | None:
    """A question by its numbers that are not 0, four at most."""
    if one is None:
        return None
    listed = {str(place): bits for place, bits in enumerate(one["x"]) if bits != "00000000"}
    return {"x": dict(list(listed.items())[:4]), **{name: one[name] for name in ("place", "expected", "got")}}


def _ask(peer: Peer, named: str, formats: Sequence[str]) -> dict[str, Any]:
    """What the command prints as JSON. UsageError where it fails."""
    where, env = address(peer)
    words = [word for scheme in formats for word in ("--format", scheme)]
    words += ["--recipe", named] if named else []
    command = [sys.executable, "-m", "quantspec_conformance", "identify", where, "--json", *words]
    code, said = run([*command, "--timeout", str(REQUEST_TIMEOUT)], TIMEOUT, env)
    start = said.find("{")
    if code not in (0, 1) or start < 0:
        raise UsageError(f"{peer.name}: identify gave {code}: {said[-200:]}")
    told: dict[str, Any] = json.JSONDecoder().raw_decode(said[start:])[0]
    return told
