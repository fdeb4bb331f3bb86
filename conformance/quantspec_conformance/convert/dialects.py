"""What a name of `--from` or `--to` stands for: a container, and with a preset the recipe and the codec that read it."""

import difflib
from dataclasses import dataclass

from quantspec import Codec, Container, Preset, Recipe, Scheme, SchemeError
from quantspec.containers import CONTAINERS
from quantspec.presets import PRESETS

from ..errors import UsageError
from ..matrix import MATRIX_TABLES, caret

__all__ = ["Dialect", "dialect", "scheme_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A container; recipe and codec are None where only the container is known."""

    name: str
    container: Container
    recipe: Recipe | None = None
    codec: Codec | None = None
    preset: Preset | None = None

    def require(self, scheme: Scheme) -> None:
        """Refuse a scheme that the preset does not list. Rule POL-19."""
        if self.preset is not None:
            self.preset.require(scheme)

    @property
    def text(self) -> str:
        """The name, with the version that a stack has, and the container where that is another."""
        versioned = self.preset is not None and self.preset.evidence != "defined"
        name = self.preset.id if self.preset is not None and versioned else self.name
        return name if self.name == self.container.name else f"{name} ({self.container.name})"


def dialect(name: str, option: str) -> Dialect:
    """The preset of a name, else the container; `preset:` and `container:` before it ask for the one or the other.

    UsageError for a name of neither, with the nearest; UnsupportedError for another version of a preset.
    """
    kind, colon, rest = name.partition(":")
    chosen = rest if colon and kind in ("preset", "container") else name
    base = chosen.partition("@")[0]
    if kind != "container" and base in PRESETS:
        preset = Preset.of(chosen)
        return Dialect(
            name=preset.name, container=preset.container, recipe=preset.recipe, codec=preset.codec, preset=preset
        )
    if kind != "preset" and chosen in CONTAINERS:
        return Dialect(name=chosen, container=CONTAINERS[chosen])
    known = {"preset": [*PRESETS], "container": [*CONTAINERS]}.get(kind, [*PRESETS, *CONTAINERS])
    near = difflib.get_close_matches(base, known, 3)
    hint = f" (near: {', '.join(dict.fromkeys(near))})" if near else ""
    raise UsageError(
        f"{option} {name!r} is no preset and no container{hint}; containers: {', '.join(CONTAINERS)}; "
        f"presets: {', '.join(PRESETS)}"
    )


def scheme_of(text: str) -> Scheme:
    """The scheme of a text, digests of the presets' tables known. UsageError with a caret under the fault."""
    own = [preset.table for preset in PRESETS.values() if preset.table is not None]
    try:
        return Scheme.parse(text, tables=[*MATRIX_TABLES.values(), *own])
    except SchemeError as error:
        raise UsageError(caret(text, error)) from None
