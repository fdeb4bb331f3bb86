"""Recipes: how scales are chosen and how a number becomes a quotient and a code an output. Rules POL-1, POL-5 to POL-10.

A recipe is data, read from presets.toml or built by hand: a kind of amax and stages of steps (`steps`). `following` runs it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .amax import AMAX
from .codecs import CANONICAL_CODEC, CODECS, Codec
from .containers import CANONICAL_CONTAINER, CONTAINERS, Container
from .errors import UnsupportedError
from .rows import Row, rows, undefined
from .scales import SCALES
from .steps import CONDITIONS, STAGES, Assignment, Program, check, program
from .tracing import note
from .values import VALUES

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
    """A kind of amax, stages of steps, and what it covers. Rules POL-1, POL-5, POL-8, POL-10.

    A stage is given as lines, `"raw = div(a, H)"`. `single` chooses the scale of a scheme with one level, `tensor` and
    `block` those of one with two; a recipe without either covers no such scheme, or only given scales.
    """

    name: str
    amax: str = "finite"
    single: "Program | Iterable[str]" = ()
    tensor: "Program | Iterable[str]" = ()
    block: "Program | Iterable[str]" = ()
    element: "Program | Iterable[str]" = ()
    decode: "Program | Iterable[str]" = ()
    refuse: tuple[str, ...] = ()  #: conditions on A, a, x or q that no tensor may meet
    values: tuple[str, ...] = ()  #: value formats covered; none listed: all
    scales: tuple[str, ...] = ()  #: types of the scale of one level, or of a block's
    tensor_scales: tuple[str, ...] = ()  #: types of the tensor's scale beside a block's
    extents: tuple[str, ...] = ()  #: block extents covered, such as 16 or 2x16; none listed: all
    modes: tuple[str, ...] = ("symmetric",)
    whole_blocks: bool = False  #: partial blocks are not covered
    given_only: bool = False  #: scales are given, never chosen

    def __post_init__(self) -> None:
        for stage in STAGES:
            object.__setattr__(self, stage, program(getattr(self, stage)))
        for member in ("refuse", "values", "scales", "tensor_scales", "extents", "modes"):
            object.__setattr__(self, member, tuple(getattr(self, member)))
        if self.element or self.decode:
            _check(self)

    @property
    def defined(self) -> bool:
        """True where the recipe has steps; a name alone has none."""
        return bool(self.element and self.decode)

    def steps(self, stage: str) -> "tuple[Assignment, ...]":
        """The steps of a stage."""
        return tuple(Assignment.of(step) for step in getattr(self, stage))

    @property
    def text(self) -> str:
        """The recipe as a page or a report prints it: the kind of amax, then each stage that it has."""
        lines = [f"amax {self.amax}"]
        for stage in STAGES:
            lines += [f"{stage:<8} {step.text}" for step in self.steps(stage)]
        lines += [f"refuse   {text}" for text in self.refuse]
        return "\n".join(lines)

    @classmethod
    def of(cls, recipe: "Recipe | str") -> "Recipe":
        """A recipe, or the row that a name stands for; a name without steps is refused. Rule POL-1."""
        found = RECIPES.get(recipe) if isinstance(recipe, str) else recipe
        if not isinstance(found, Recipe) or not found.defined:
            name = recipe.name if isinstance(recipe, Recipe) else recipe
            raise undefined("POL-1", "recipe", name, RECIPES)
        if found != CANONICAL:
            note("POL-1")
        return found

    @classmethod
    def read(cls, content: object) -> "Recipe":
        """The recipe of a row, members checked. Rules POL-1, POL-5."""
        row = Row("recipe", content, "POL-1")
        recipe = cls(
            row.name,
            amax=row.text("amax"),
            **{stage: row.texts(stage) for stage in STAGES},
            refuse=row.texts("refuse"),
            values=row.texts("values"),
            scales=row.texts("scales"),
            tensor_scales=row.texts("tensor_scales"),
            extents=row.texts("extents"),
            modes=row.texts("modes") or ("symmetric",),
            whole_blocks=row.flag("whole_blocks"),
            given_only=row.flag("given_only"),
        )
        row.done()
        if not recipe.defined:
            raise row.fault("element, decode", [], "steps of both")
        return recipe


def _check(recipe: Recipe) -> None:
    """Refuse a recipe whose members have no meaning. Rules POL-1, POL-5."""
    where = f"recipe {recipe.name!r}"
    for stage in STAGES:
        check(stage, recipe.steps(stage), f"{where}, stage {stage}")
    listed: tuple[tuple[str, Iterable[str], Iterable[str]], ...] = (
        ("amax", (recipe.amax,), AMAX),
        ("values", recipe.values, VALUES),
        ("scales", recipe.scales, SCALES),
        ("tensor_scales", recipe.tensor_scales, SCALES),
        ("modes", recipe.modes, ("symmetric", "lookup")),
        ("refuse", recipe.refuse, [f"{op}({name})" for op in CONDITIONS for name in ("A", "a", "x", "q")]),
    )
    for member, given, known in listed:
        allowed = list(known)
        for text in given:
            if text not in allowed:
                raise UnsupportedError("POL-1", f"{where}: {member}={text!r}; allowed: {', '.join(allowed)}")
    if bool(recipe.tensor) != bool(recipe.block):
        raise UnsupportedError("POL-5", f"{where} has one of the stages tensor and block; allowed: both, or neither")
    if recipe.given_only == bool(recipe.steps("single") or recipe.steps("tensor")):
        raise UnsupportedError("POL-5", f"{where}: steps that choose scales, or given_only; exactly one of the two")


#: Every recipe by name, canonical first.
RECIPES = {row.name: row for row in map(Recipe.read, rows("recipe"))}
CANONICAL = RECIPES["canonical"]


def require_canonical(
    *,
    recipe: Recipe | str = CANONICAL,
    codec: Codec | str = CANONICAL_CODEC,
    container: Container | str = CANONICAL_CONTAINER,
) -> None:
    """Refuse any other recipe, codec or container, where only the canonical ones have a meaning. Rules POL-1, POL-2, POL-3."""
    listed: tuple[tuple[str, str, Recipe | Codec | Container, Recipe | Codec | Container], ...] = (
        ("POL-1", "recipe", Recipe.of(recipe), CANONICAL),
        ("POL-2", "codec", Codec.of(codec), CANONICAL_CODEC),
        ("POL-3", "container", Container.of(container), CANONICAL_CONTAINER),
    )
    for rule_id, argument, value, canonical in listed:
        if value != canonical:
            raise UnsupportedError(rule_id, f"{argument}={value.name!r} is not defined here; defined: {canonical.name}")
