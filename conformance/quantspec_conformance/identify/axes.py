"""Axes: what the rows of the reference can be taken apart into, and every way along each of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from quantspec import QuantspecError, Scheme
from quantspec.amax import AMAX
from quantspec.codecs import CODECS, NAN_INTEGERS, NANS, OVERFLOWS, ROUNDINGS, ZERO_SIGNS, Codec
from quantspec.interpreter import Facts, run
from quantspec.recipes import RECIPES, Recipe
from quantspec.steps import Program
from quantspec.values import encode_bits

from .layout import Array

__all__ = ["ALONE", "CodecWay", "Way", "codec_ways", "element_ways", "nan_ways", "scale_ways"]

#: Patterns on which codecs of one format can differ: ties and the like are between them, by the thousand.
_PROBE = np.concatenate(
    [
        np.arange(0, 2**32, 2**19, dtype=np.uint64).astype(np.uint32),
        np.array([0x7F800000, 0xFF800000, 0x80000000], np.uint32),
    ]
)
ALONE = "with g = 1"  #: after the name of a row with two levels: its block stage where there is no scale of the tensor
_TIES = (np.arange(-260, 260, dtype=np.float32) / 4).view(np.uint32)


@dataclass(frozen=True, slots=True)
class Way:
    """A way to choose a scale or to form a quotient: the steps, the rows that have them, the kind of amax they look at."""

    program: Program
    rows: tuple[str, ...]
    amax: str  #: "" where the steps look at none

    @property
    def label(self) -> str:
        """The first of the rows."""
        return self.rows[0]

    @property
    def text(self) -> str:
        """The steps."""
        return "; ".join(step.text for step in self.program)


@dataclass(frozen=True, slots=True)
class CodecWay:
    """A codec as its ways along the axes."""

    codec: Codec
    ways: tuple[tuple[str, str], ...]  #: axis, way


def _programs(stage: str) -> dict[Program, list[str]]:
    found: dict[Program, list[str]] = {}
    for recipe in RECIPES.values():
        if recipe.steps(stage):
            found.setdefault(recipe.steps(stage), []).append(recipe.name)
    return found


def scale_ways(stage: str, scheme: Scheme, facts: Facts) -> list[Way]:
    """Every kind of amax under every stage of the rows that has a meaning for the scheme."""
    level = scheme.block if stage == "block" or (scheme.block is not None and stage == "single") else None
    scale = scheme.tensor if level is None else level.scale
    names = {name: np.ones(1, np.float32) for name in ("A", "a", "g")}
    ways = []
    programs = _programs(stage)
    if stage == "single":  # what chooses a block's scale beside one of the tensor, where that is 1
        for program, rows in _programs("block").items():
            programs.setdefault(program, [f"{name} {ALONE}" for name in rows])
    for program, rows in programs.items():
        try:
            run(program, names, facts, scale)
        except QuantspecError:
            continue
        ways += [Way(program, tuple(rows), amax) for amax in AMAX]
    return ways


def element_ways(scheme: Scheme, amax: Sequence[str]) -> list[Way]:
    """Every way of the rows to form a quotient; those that look at amax under each kind of it."""
    ways = []
    for program, rows in _programs("element").items():
        looks = {"a", "A"} & {name for step in program for name in step.args}
        ways += [Way(program, tuple(rows), kind) for kind in (amax if looks else ("",))]
    return ways


def recipe_of(way: Way) -> Recipe:
    """The steps as a recipe of given scales."""
    return Recipe("found", amax=way.amax or "finite", given_only=True, element=way.program, decode=("y = mul(s, v)",))


def codec_ways(scheme: Scheme) -> list[CodecWay]:
    """Rounding, overflow and the sign of zero in every combination that is not another under another name; NaN apart."""
    lookup = scheme.is_lookup
    own = [codec for codec in CODECS.values() if codec.rounding == "thresholds"]
    ways = [CodecWay(codec, (("rounding", codec.name),)) for codec in own if lookup]
    for rounding in ("even",) if lookup else (name for name in ROUNDINGS if name != "thresholds"):
        for overflow in OVERFLOWS[:1] if lookup else OVERFLOWS:
            for zero in ZERO_SIGNS[:1] if lookup else ZERO_SIGNS:
                codec = Codec("found", rounding=rounding, overflow=overflow, zero_sign=zero)
                listed = (("rounding", rounding), ("overflow", overflow), ("zero sign", zero))
                ways.append(CodecWay(codec, listed))
    return _distinct(ways, scheme, np.concatenate([_PROBE[(_PROBE & 0x7FFFFFFF) <= 0x7F800000], _TIES]))


def nan_ways(scheme: Scheme, base: Codec) -> list[CodecWay]:
    """A codec under every rule for NaN that makes a difference."""
    if base.rounding == "thresholds" or scheme.is_lookup:
        return [CodecWay(base, (("nan", "as the table"),))]
    integer = scheme.value.is_integer
    ways = []
    for name in NAN_INTEGERS if integer else NANS:
        codec = replace(base, nan_integer=name) if integer else replace(base, nan=name)
        ways.append(CodecWay(codec, (("nan", name),)))
    return _distinct(ways, scheme, np.array([0x7FC00000, 0xFFC00000], np.uint32))


def _distinct(ways: list[CodecWay], scheme: Scheme, probe: Array) -> list[CodecWay]:
    """One of those that give the same codes to everything probed; ways of an axis that make no difference are left out."""
    seen: dict[bytes, CodecWay] = {}
    for way in ways:
        try:
            codes = encode_bits(probe, scheme.value, scheme.table, way.codec)
        except QuantspecError:
            continue
        seen.setdefault(codes.tobytes(), way)
    kept = list(seen.values())
    axes = [axis for axis, _ in ways[0].ways] if ways else []
    moot = {axis for axis in axes if len({dict(way.ways).get(axis) for way in kept}) < 2 and axis != "nan"}
    return [CodecWay(way.codec, tuple(pair for pair in way.ways if pair[0] not in moot)) for way in kept]
