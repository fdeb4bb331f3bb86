"""The peers as data: peers.toml, a row for each, and where its adapter, expectations and environment are."""

import os
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import UsageError

__all__ = ["FIELDS", "Peer", "folder", "peers", "root"]

FIELDS = ("name", "requirements", "python", "source", "issues", "version", "formats", "notes")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PINNED = re.compile(r"[A-Za-z0-9_.-]+(\[[a-z]+\])?==[0-9][0-9a-z.]*")


@dataclass(frozen=True, slots=True)
class Peer:
    """One library: what pip installs for it, which Python it takes, and the version whose differences are explained."""

    name: str
    requirements: tuple[str, ...]
    python: str
    source: str
    issues: str
    version: str
    formats: tuple[str, ...]
    notes: str

    @property
    def adapter(self) -> Path:
        """The file with its class Adapter."""
        return folder() / "adapters" / f"peer_{self.name.replace('-', '_')}.py"

    @property
    def expect(self) -> Path:
        """What is known of its differences."""
        return folder() / "expect" / f"{self.name}.toml"

    @property
    def environment(self) -> Path:
        """Where it is installed."""
        return root() / self.name


def folder() -> Path:
    """The folder of this package."""
    return Path(__file__).resolve().parent


def root() -> Path:
    """Where the environments are: QUANTSPEC_PEERS, or a folder in the user's cache."""
    given = os.environ.get("QUANTSPEC_PEERS")
    cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(given) if given else Path(cache_home) / "quantspec-peers"


@cache
def peers(path: Path | None = None) -> tuple[Peer, ...]:
    """Every row, in the order of the file. UsageError for a row that is none."""
    path = path or folder() / "peers.toml"
    rows = tomllib.loads(path.read_text("utf-8")).get("peer", [])
    return tuple(_row(path, row) for row in rows)


def _row(path: Path, row: dict[str, Any]) -> Peer:
    name = str(row.get("name"))
    if set(row) != set(FIELDS) or not _NAME.fullmatch(name):
        raise UsageError(f"{path.name}: peer {name}: the fields are {', '.join(FIELDS)}")
    loose = [each for each in row["requirements"] if not _PINNED.fullmatch(each)]
    if loose:
        raise UsageError(f"{path.name}: peer {name}: {loose[0]!r} is not pinned; write package==version")
    fields: dict[str, Any] = row | {field: tuple(row[field]) for field in ("requirements", "formats")}
    return Peer(**fields)
