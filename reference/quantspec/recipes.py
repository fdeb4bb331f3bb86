"""Recipes, codecs and containers: what other stacks do differently, as records beside the scheme.

Only the canonical ones are defined so far. Every verb takes them, so that adding a row changes no signature.
"""

from dataclasses import dataclass

from .errors import UnsupportedError

__all__ = [
    "CANONICAL",
    "CANONICAL_CODEC",
    "CANONICAL_CONTAINER",
    "CODECS",
    "CONTAINERS",
    "RECIPES",
    "Codec",
    "Container",
    "Recipe",
    "require_canonical",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How scales are chosen and how a value becomes a quotient and a code an output. Rule POL-1."""

    name: str


@dataclass(frozen=True, slots=True)
class Codec:
    """How one number becomes a code. Rule POL-2."""

    name: str
    rounding: str
    overflow: str
    nan: str
    zero_sign: str


@dataclass(frozen=True, slots=True)
class Container:
    """Where the bits of a code lie. Rule POL-3."""

    name: str
    field_order: str
    bias: int
    word_order: str
    scale_layout: str


CANONICAL = Recipe("canonical")
CANONICAL_CODEC = Codec("canonical", rounding="even", overflow="saturate", nan="format", zero_sign="keep")
CANONICAL_CONTAINER = Container("canonical", field_order="low", bias=0, word_order="swapped", scale_layout="row-major")

RECIPES = {row.name: row for row in (CANONICAL,)}
CODECS = {row.name: row for row in (CANONICAL_CODEC,)}
CONTAINERS = {row.name: row for row in (CANONICAL_CONTAINER,)}


def require_canonical(
    *, recipe: Recipe = CANONICAL, codec: Codec = CANONICAL_CODEC, container: Container = CANONICAL_CONTAINER
) -> None:
    """Refuse a recipe, codec or container that no rule defines. Rules POL-1, POL-2, POL-3."""
    for rule_id, argument, value, known in (
        ("POL-1", "recipe", recipe, list(RECIPES.values())),
        ("POL-2", "codec", codec, list(CODECS.values())),
        ("POL-3", "container", container, list(CONTAINERS.values())),
    ):
        if value not in known:
            names = ", ".join(row.name for row in known)
            raise UnsupportedError(rule_id, f"{argument}={value!r} is not defined; defined: {names}")
