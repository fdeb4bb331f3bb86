"""`quantspec explain --recipe`: a tensor quantized under a recipe and a codec, one of its elements step by step, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Codec, Recipe, Scheme
from quantspec.rounding import widen
from quantspec.tensor import level_shapes

from . import patterns
from .errors import UsageError
from .numbertext import bits_of
from .steptext import trace_lines, wrapped
from .steptrace import policy_text, trace_back, trace_forth

__all__ = ["explained_steps", "shaped"]

#: Packed axes beyond which values get no axes of their own: quantize refuses the scheme.
MOST_RANK = 8


def explained_steps(
    scheme: Scheme,
    x: npt.NDArray[Any],
    recipe: Recipe,
    codec: Codec,
    index: Sequence[int] | None,
    name: str,
    given: Mapping[str, str],
) -> tuple[list[str], tuple[str, ...]]:
    """The lines of one element under a recipe, and the rules that fired for it. UsageError for an index outside.

    `given` are scales in the place of chosen ones, by the argument of quantize.
    """
    place = _place(x.shape, index, name)
    scales = _levels(scheme, x.shape, given)
    if recipe.given_only and (scheme.block is not None) != ("scales" in scales):
        missing = "--tensor-scale" if scheme.block is None else "--scale"
        raise UsageError(f"recipe {recipe.name} chooses no scales; missing: {missing} VALUE [POL-10]")
    with np.errstate(all="ignore"), quantspec.trace() as trace:
        q = quantspec.quantize(x, scheme, recipe=recipe, codec=codec, **scales)
        y = quantspec.dequantize(q)
    came = patterns.binary32(int(y.view(np.uint32)[place]))
    with np.errstate(all="ignore"):
        forth, back = trace_forth(q, widen(x), place, tuple(scales)), trace_back(q, codec, place, came)
    block = "" if forth.block is None else f", block {forth.block}"
    lines = [
        *wrapped("recipe", f"{recipe.name} (amax {recipe.amax})", indent=""),
        *wrapped("codec", policy_text(codec), indent=""),
        f"element    {place} of {name}{block}",
        "",
        *trace_lines(replace(forth, stages=(*forth.stages, *back.stages)), indent=""),
    ]
    return lines, trace.rules(place)


def _levels(scheme: Scheme, shape: tuple[int, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """Given scales as quantize takes them: one number for every block. UsageError for a level that the scheme lacks."""
    found = {}
    for option, argument, sizes in zip(
        ("--scale", "--tensor-scale"), ("scales", "tensor_scale"), level_shapes(scheme, shape), strict=True
    ):
        if argument in given and sizes is None:
            other = "--tensor-scale" if option == "--scale" else "--scale"
            raise UsageError(f"{option} {given[argument]}: {scheme.text} has no such level; allowed: {other}")
        if argument in given and sizes is not None:
            found[argument] = np.full(sizes, np.array(bits_of(given[argument])[0], np.uint32).view(np.float32))
    return found


def _place(shape: tuple[int, ...], index: Sequence[int] | None, name: str) -> tuple[int, ...]:
    """The element of an index, of the first where none is given; one number counts in the order of the values."""
    if 0 in shape:
        raise UsageError(f"{name}, shape {shape}: there is no element to explain")
    place = (0,) * len(shape) if index is None else tuple(index)
    if len(place) == 1 and len(shape) > 1 and shape[:-1] == (1,) * (len(shape) - 1):
        place = (*(0 for _ in shape[:-1]), *place)
    if len(place) != len(shape) or any(not 0 <= i < size for i, size in zip(place, shape, strict=True)):
        raise UsageError(
            f"--index {','.join(map(str, index or ())) or '()'}: {name}, shape {shape}; allowed: an index of it"
        )
    return place


def shaped(scheme: Scheme, bits: Sequence[int], recipe: Recipe) -> tuple[npt.NDArray[np.float32], str]:
    """Values along the innermost axis of a tensor that the scheme takes; whole blocks where the recipe takes no others."""
    extents = () if scheme.block is None else scheme.block.extents
    rank = max(1, len(extents), min(scheme.store.d + 1, MOST_RANK))
    x = np.array(bits, np.uint32).view(np.float32).reshape((1,) * (rank - 1) + (-1,))
    name = f"{len(bits)} value{'s' * (len(bits) != 1)}"
    if not recipe.whole_blocks or scheme.block is None:
        return x, name
    gaps = [(0, -size % extent) for size, extent in zip(x.shape, scheme.extents(rank), strict=True)]
    filled = np.pad(x, gaps)
    return filled, name if filled.size == x.size else f"{name}, filled up with zeros to {filled.shape}"
