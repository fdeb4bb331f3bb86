"""Recipes, codecs, containers and presets as options name them, and as `quantspec presets` lists and shows them."""

import difflib
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quantspec import PRESETS, Codec, Container, Preset, QuantspecError, Recipe, Scheme
from quantspec.recipes import CANONICAL, CANONICAL_CODEC, CANONICAL_CONTAINER, CODECS, CONTAINERS, RECIPES

from .errors import UsageError
from .steptrace import policy_text

__all__ = ["Policies", "policies_named", "preset_lines"]

WHERE = "all of them: quantspec presets, spec/10-policies.md"
KINDS: dict[str, Mapping[str, Any]] = {"recipe": RECIPES, "codec": CODECS, "container": CONTAINERS}


@dataclass(frozen=True, slots=True)
class Policies:
    """A recipe, a codec and a container, and the preset that joined them where one is named."""

    recipe: Recipe = CANONICAL
    codec: Codec = CANONICAL_CODEC
    container: Container = CANONICAL_CONTAINER
    preset: Preset | None = None

    def require(self, scheme: Scheme) -> None:
        """Refuse a scheme that the preset does not cover. UsageError."""
        if self.preset is not None:
            try:
                self.preset.require(scheme)
            except QuantspecError as error:
                raise UsageError(f"--preset: {error}") from None


def policies_named(*, preset: str | None = None, recipe: str | None = None, codec: str | None = None) -> Policies:
    """The rows that options name; one of its own takes the place of the preset's. UsageError for a name that none has."""
    joined = None if preset is None else _row("preset", preset.partition("@")[0], PRESETS)
    if joined is not None and preset is not None and "@" in preset and preset != joined.id:
        raise UsageError(f"--preset {preset!r}: the version defined is {joined.id}")
    found = Policies() if joined is None else Policies(joined.recipe, joined.codec, joined.container, joined)
    return Policies(
        found.recipe if recipe is None else _row("recipe", recipe, RECIPES),
        found.codec if codec is None else _row("codec", codec, CODECS),
        found.container,
        joined,
    )


def _row(kind: str, name: str, rows: Mapping[str, Any]) -> Any:
    if name in rows:
        return rows[name]
    said = f"--{kind} {name!r} is none"
    preset = PRESETS.get(name.partition("@")[0])
    if kind != "preset" and preset is not None:
        own = getattr(preset, kind).name
        raise UsageError(
            f"{said}; {preset.name} is a preset: --preset {preset.name}, or its {kind}: --{kind} {own}; {WHERE}"
        )
    other = next((axis for axis, known in KINDS.items() if name in known and axis != kind), "")
    if other:
        option = "" if other == "container" else f": --{other} {name}"
        raise UsageError(f"{said}; it is a {other}{option}; {WHERE}")
    near = difflib.get_close_matches(name.lower().replace("_", "-"), list(rows), 3, 0.5)
    near = near or [each for each in rows if name and name.lower() in each][:3]
    raise UsageError(f"{said}{'; near: ' + ', '.join(near) if near else ''}; {WHERE}")


def preset_lines(name: str | None, width: int = 100) -> Iterator[str]:
    """Every preset in a line; or all of one, its recipe's steps too. A name of a recipe, codec or container is shown as well."""
    if name is None:
        yield f"{'preset':<25} {'recipe':<25} {'codec':<19} container"
        for row in PRESETS.values():
            yield f"{row.name:<25} {row.recipe.name:<25} {row.codec.name:<19} {row.container.name}"
        for kind, rows in KINDS.items():
            yield ""
            yield from textwrap.wrap(
                f"{kind}s: {', '.join(rows)}", width, subsequent_indent="  ", break_on_hyphens=False
            )
        return
    kinds = [kind for kind, rows in KINDS.items() if name in rows]
    if name.partition("@")[0] in PRESETS or not kinds:
        preset = policies_named(preset=name).preset
        if preset is None:
            raise AssertionError("a preset was named")
        yield f"preset     {preset.id}  {preset.stack} ({preset.evidence})"
        about = f"covers     {' '.join(preset.schemes)}"
        yield from textwrap.wrap(about, width, subsequent_indent=" " * 11, break_on_hyphens=False)
        if preset.note:
            yield from textwrap.wrap(f"note       {preset.note}", width, subsequent_indent=" " * 11)
        yield from textwrap.wrap(
            f"source     {preset.source}", width, subsequent_indent=" " * 11, break_on_hyphens=False
        )
        yield from _row_lines("recipe", preset.recipe)
        yield from _row_lines("codec", preset.codec)
        yield from _row_lines("container", preset.container)
        return
    for kind in kinds:
        yield from _row_lines(kind, KINDS[kind][name])


def _row_lines(kind: str, row: Any) -> Iterator[str]:
    if isinstance(row, Recipe):
        yield f"{kind:<10} {row.name}"
        yield from (f"           {line}" for line in row.text.splitlines())
    else:
        yield f"{kind:<10} {policy_text(row)}"
