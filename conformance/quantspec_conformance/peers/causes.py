"""Why a peer's bits differ: causes.toml gives every wrong case of a result a reason, and expect/NAME.toml is written from it."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..expect.globs import cover
from ..expect.records import MAX_LIST, SCHEMA
from ..expect.write import MOST_DIGESTS, PINNED, quoted, render
from ..resultset.record import CaseRecord
from .table import folder

__all__ = ["Cause", "causes", "expectations", "sort_out"]

FIELDS = ("peers", "ids", "outcome", "rule", "part", "fault", "url", "kind", "reason")
GOOD = ("pass", "unsupported", "skipped", "notrun")


@dataclass(frozen=True, slots=True)
class Cause:
    """An entry: which wrong results it explains, and how."""

    peers: tuple[str, ...]
    ids: tuple[str, ...]
    kind: str
    reason: str
    outcome: str = ""
    rule: str = ""
    part: str = ""
    fault: str = ""
    url: str = ""

    def explains(self, peer: str, result: CaseRecord) -> bool:
        """True where this is why."""
        part = "" if result.mismatch is None else result.mismatch.part
        return (
            (peer in self.peers or self.peers == ("*",))
            and self.outcome in ("", result.outcome)
            and self.rule in ("", result.rule)
            and self.part in ("", part)
            and any(fnmatchcase(result.id, glob) for glob in self.ids)
        )


@cache
def causes(path: Path | None = None) -> tuple[Cause, ...]:
    """The entries in their order. UsageError for one that is none."""
    path = path or folder() / "causes.toml"
    found = []
    for number, row in enumerate(tomllib.loads(path.read_text("utf-8")).get("cause", []), 1):
        if not set(row) <= set(FIELDS) or not {"peers", "ids", "kind", "reason"} <= set(row):
            raise UsageError(f"{path.name}: cause {number}: the fields are {', '.join(FIELDS)}")
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
        }
        found.append(Cause(**fields))
    return tuple(found)


def sort_out(
    peer: str, results: Iterable[CaseRecord], known: Sequence[Cause]
) -> tuple[dict[Cause, list[CaseRecord]], list[CaseRecord]]:
    """The wrong results by their cause, the first that fits, and those that none explains."""
    explained: dict[Cause, list[CaseRecord]] = {}
    open_cases: list[CaseRecord] = []
    for result in results:
        if result.outcome in GOOD:
            continue
        cause = next((cause for cause in known if cause.explains(peer, result)), None)
        if cause is None:
            open_cases.append(result)
        else:
            explained.setdefault(cause, []).append(result)
    return explained, open_cases


def expectations(peer: str, results: Sequence[CaseRecord], known: Sequence[Cause]) -> str:
    """The file expect/NAME.toml: an entry for each cause and outcome, with the fewest globs that name its cases."""
    explained, _ = sort_out(peer, results, known)
    head = [
        f"# What {peer} gives in other bits, and why. Written by `quantspec peers expect` from causes.toml and a result.",
        f'schema = "{SCHEMA}"',
        f"implementation = {quoted(peer)}",
        "",
    ]
    everything = {result.id for result in results}
    blocks = []
    for cause in known:
        for outcome in sorted({result.outcome for result in explained.get(cause, [])}):
            rows = [result for result in explained[cause] if result.outcome == outcome]
            globs = cover([row.id for row in rows], everything)
            for at in range(0, len(globs), MAX_LIST):
                ids = list(globs[at : at + MAX_LIST])
                fields: dict[str, Any] = {
                    "ids": ids[0] if len(ids) == 1 else ids,
                    "outcome": outcome,
                    "kind": cause.kind,
                }
                digests = sorted({row.digest for row in rows if row.digest})
                if 0 < len(digests) <= MOST_DIGESTS and outcome in PINNED:
                    fields["digest"] = digests[0] if len(digests) == 1 else digests
                fields |= {"max": len(rows), "reason": cause.reason} | ({"url": cause.url} if cause.url else {})
                blocks.append(render(fields, f"{len(rows)} cases, as {rows[0].id}", "\n"))
    return "\n".join([*head, "\n".join(blocks)])
