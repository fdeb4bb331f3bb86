"""What to do with a verdict: the policies to declare in hello, and the formats that nobody asked about."""

from collections.abc import Iterator, Sequence

from quantspec import PRESETS, Preset

from ..protocol.messages import Identity
from .verdict import LACKING, Found

__all__ = ["hint_lines"]


def hint_lines(identity: Identity, found: Sequence[Found], *, asked: bool) -> Iterator[str]:
    """Lines below the verdicts. `asked`: formats were named, so those that were not are nobody's concern."""
    for axis, names in _rows(found).items():
        declared = [name.strip() for name in identity.policies.get(axis, "").split(",")]
        new = [name for name in names if name not in declared]
        if new:
            yield f"declare       policy.{axis}={','.join(new)} in hello: quantspec run --impl then asks the cases under it"
    yield from dict.fromkeys(line for one in found for line in _pair(one))
    silent = [] if asked else _unasked(identity, found)
    if silent:
        yield (
            f"not asked     {', '.join(silent)}: listed among values, offered in none of the formats above; "
            f"name yours, as --format {_example(identity, silent[0])}"
        )


def _rows(found: Sequence[Found]) -> dict[str, list[str]]:
    """Axis -> a row that each format agrees with, each once: that of its preset, or else the first; canonical needs no word."""
    presets = [Preset.of(one.presets[0]) if one.presets else None for one in found]
    listed = {
        "recipe": [[preset.recipe.name] if preset else one.recipes for one, preset in zip(found, presets, strict=True)],
        "codec": [[preset.codec.name] if preset else one.codecs for one, preset in zip(found, presets, strict=True)],
        "container": [
            way.get("container", "").split(" or ") for one in found for part in one.parts for way in part.ways
        ],
    }
    firsts = {axis: dict.fromkeys(names[0] for names in rows if names) for axis, rows in listed.items()}
    return {axis: [name for name in names if name not in ("", "canonical")] for axis, names in firsts.items()}


def _pair(found: Found) -> Iterator[str]:
    """That no preset joins the two: the cases of a recipe name the codec of its preset, so some differ by design."""
    if found.presets or not found.recipes or not found.codecs:
        return
    recipe, codec = found.recipes[0], found.codecs[0]
    theirs = [preset.codec.name for preset in PRESETS.values() if preset.recipe.name == recipe]
    if theirs and codec not in theirs:
        yield (
            f"no preset     joins {recipe} and {codec}: cases of {recipe} name the codec {' or '.join(dict.fromkeys(theirs))}; "
            "quantspec expect script writes down what differs"
        )


def _unasked(identity: Identity, found: Sequence[Found]) -> list[str]:
    """Value formats of the identity without a verdict."""
    known = {one.scheme.partition(".")[0] for one in found if one.outcome != LACKING}
    return [value for value in identity.values if value not in known]


def _example(identity: Identity, value: str) -> str:
    """A scheme of that value in what the identity lists first of each kind."""
    store = (*identity.stores, "native")[0]
    scale = (*identity.scales, "f32")[0]
    level = f"t-{scale}" if identity.levels[:1] == ("tensor",) else f"b32-{scale}"
    return f"{value}.{store if store == 'native' else f'{store}_0'}.{level}"
