"""Presets: a recipe, a codec and a container that a stack uses together, with the version observed. Rule POL-19."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

import numpy as np

from .codecs import CODECS, Codec
from .containers import CONTAINERS, Container
from .errors import UnsupportedError
from .recipes import RECIPES, Recipe
from .rows import Row, read, rows, undefined
from .scheme import Scheme
from .tables import Table
from .tracing import rule

__all__ = ["PRESETS", "Preset", "read_presets"]

Kind = TypeVar("Kind", Codec, Container, Recipe, "Preset")
EVIDENCE = ("defined", "measured", "read")


@dataclass(frozen=True, slots=True)
class Preset:
    """What one version of a stack does: names of rows, the schemes it covers, where it was seen. Rule POL-19."""

    name: str
    version: str
    recipe: Recipe
    codec: Codec
    container: Container
    schemes: tuple[str, ...]  #: patterns of the text of a scheme
    stack: str
    source: str
    evidence: str  #: defined here; measured by running the stack; read in its source
    note: str
    table: Table | None = None  #: the lookup table that goes with it

    @property
    def id(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    @classmethod
    @rule("POL-19")
    def of(cls, preset: "Preset | str") -> "Preset":
        """A preset, or the row of `name` or `name@version`. Rule POL-19."""
        if isinstance(preset, Preset):
            return preset
        name, at, version = preset.partition("@") if isinstance(preset, str) else ("", "", "")
        found = PRESETS.get(name)
        if found is None:
            raise undefined("POL-19", "preset", preset, PRESETS)
        if at and version != found.version:
            raise UnsupportedError("POL-19", f"preset={preset!r}; the version defined is {found.id}")
        return found

    def covers(self, scheme: Scheme | str) -> bool:
        """True for a scheme that the preset lists."""
        text = Scheme.of(scheme).text
        return any(fnmatchcase(text, pattern) for pattern in self.schemes)

    @rule("POL-19")
    def require(self, scheme: Scheme | str) -> Scheme:
        """The scheme, refused where the preset does not list it. Rule POL-19."""
        found = Scheme.of(scheme)
        if not self.covers(found):
            raise UnsupportedError(
                "POL-19", f"preset={self.id!r} with {found.text}; the preset covers {', '.join(self.schemes)}"
            )
        return found

    @classmethod
    def read(
        cls, content: object, recipes: dict[str, Recipe], codecs: dict[str, Codec], containers: dict[str, Container]
    ) -> "Preset":
        """The preset of a row, members checked. Rule POL-19."""
        row = Row("preset", content, "POL-19")
        preset = cls(
            row.name,
            row.text("version"),
            recipes[row.text("recipe", among=list(recipes))],
            codecs[row.text("codec", among=list(codecs))],
            containers[row.text("container", among=list(containers))],
            row.texts("schemes"),
            row.text("stack"),
            row.text("source"),
            row.text("evidence", among=EVIDENCE),
            row.text("note", ""),
            _table(row, row.texts("table")),
        )
        row.done()
        if not preset.schemes:
            raise row.fault("schemes", [], "patterns of schemes")
        return preset


def _table(row: Row, entries: tuple[str, ...]) -> Table | None:
    try:
        numbers = np.array([float.fromhex(text) for text in entries], np.float32)
    except (ValueError, OverflowError):
        raise row.fault("table", entries, "numbers in hexadecimal") from None
    return Table.of(numbers) if entries else None


@rule("POL-19")
def read_presets(text: str) -> dict[str, Preset]:
    """The presets of a file of your own; its rows stand beside the shipped ones. Rules POL-2, POL-3, POL-5, POL-19.

    Raises UnsupportedError, naming row and member: for what is no TOML, an unknown table or member, a step without a
    meaning, a name that is given twice.
    """
    found = read(text)
    codecs = _joined("codec", CODECS, [Codec.read(row) for row in found["codec"]])
    containers = _joined("container", CONTAINERS, [Container.read(row) for row in found["container"]])
    recipes = _joined("recipe", RECIPES, [Recipe.read(row) for row in found["recipe"]])
    return _joined("preset", {}, [Preset.read(row, recipes, codecs, containers) for row in found["preset"]])


def _joined(kind: str, known: dict[str, Kind], new: list[Kind]) -> dict[str, Kind]:
    joined = dict(known)
    for row in new:
        if row.name in joined:
            raise UnsupportedError("POL-19", f"{kind} {row.name!r} stands twice; allowed: each name once")
        joined[row.name] = row
    return joined


#: Every preset by name, canonical first.
PRESETS: dict[str, Preset] = _joined(
    "preset", {}, [Preset.read(row, RECIPES, CODECS, CONTAINERS) for row in rows("preset")]
)
