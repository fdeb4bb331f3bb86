"""Following a recipe: scales, quotients and numbers by its steps. Rules POL-1, POL-5, POL-9, POL-10.

The canonical recipe does not come here (`choice`, `quantize`); its row is run by the tests, against those.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from .amax import amax_of
from .choice import Chosen, require_grids, require_positive
from .errors import UnsupportedError
from .interpreter import Facts, Mask, condition, run
from .recipes import Recipe
from .rounding import F32, INF, MAGNITUDE, QNAN, SIGN, Bits, is_nan, to_bits, to_float
from .scales import ScaleCodes, ScaleType, round_up
from .scales import decode_codes as decode_scale_codes
from .scheme import Scheme
from .tracing import on_grid, rule

__all__ = ["Following", "require_recipe"]

Spread = Callable[[F32], F32]


@rule("POL-10")
def require_recipe(recipe: Recipe, scheme: Scheme, shape: tuple[int, ...]) -> None:
    """Refuse a scheme or a shape that a recipe does not cover, naming both. Rule POL-10."""
    block, tensor = scheme.block, scheme.tensor
    one = block.scale if block is not None else tensor
    text = "x".join(map(str, block.extents or (1,))) if block is not None else ""
    levels = block is not None and tensor is not None
    listed: list[tuple[bool, str]] = [
        (scheme.mode in recipe.modes, f"mode {' or '.join(recipe.modes)}"),
        (not recipe.values or scheme.value.name in recipe.values, f"values {', '.join(recipe.values)}"),
        (not recipe.scales or (one is not None and one.name in recipe.scales), f"scales {', '.join(recipe.scales)}"),
        (
            recipe.given_only or bool(recipe.steps("block" if levels else "single")),
            "one level" if levels else "two levels",
        ),
        (not recipe.extents or any(fnmatchcase(text, known) for known in recipe.extents), f"extents {recipe.extents}"),
    ]
    if levels and tensor is not None:
        known = not recipe.tensor_scales or tensor.name in recipe.tensor_scales
        listed.append((known, f"tensor scales {', '.join(recipe.tensor_scales)}"))
    if recipe.whole_blocks and block is not None:
        partial = any(size % extent for size, extent in zip(shape, scheme.extents(len(shape)), strict=True))
        listed.append((not partial, f"whole blocks, which shape {shape} has not"))
    for covered, what in listed:
        if not covered:
            raise UnsupportedError("POL-10", f"recipe={recipe.name!r} with {scheme.text}; the recipe covers {what}")


def facts_of(scheme: Scheme) -> Facts:
    """What steps may know of a scheme."""
    value = scheme.value
    largest = scheme.half_range
    if scheme.table is None and value.is_integer:
        largest = type(largest)(value.highest)
    return Facts(scheme.half_range, largest, value, scheme.block.scale.block_top if scheme.block is not None else 1.0)


@dataclass(slots=True)
class Following:
    """One tensor under one recipe: what its stages find, on the grid's shape or of shape ()."""

    scheme: Scheme
    recipe: Recipe
    facts: Facts
    names: dict[str, F32]

    @classmethod
    def of(cls, scheme: Scheme, recipe: Recipe, shape: tuple[int, ...]) -> "Following":
        """The recipe on a tensor of a scheme; refused where it does not cover it. Rule POL-10."""
        require_recipe(recipe, scheme, shape)
        return cls(scheme, recipe, facts_of(scheme), {})

    @rule("POL-9")
    def choose(
        self, bits: Bits, given_block: Chosen | None, given_tensor: Chosen | None
    ) -> tuple[Chosen | None, Chosen | None]:
        """Scales of both levels, by the stages where none are given. Rules POL-8, POL-9, SCL-19, SCL-23."""
        block, tensor = require_grids(self.scheme, bits.shape, given_block, given_tensor)
        self.measure(bits)
        self._refuse("A", "a")
        if self.recipe.given_only and (block is None) != (self.scheme.block is None):
            raise UnsupportedError("POL-10", f"recipe={self.recipe.name!r} chooses no scales; allowed: given ones")
        if self.scheme.block is None:
            return None, tensor or self._stage("single", self.scheme.tensor)
        if self.scheme.tensor is None:
            with on_grid(self.scheme.extents(bits.ndim)):
                return block or self._stage("single", self.scheme.block.scale), None
        if block is not None:
            return require_grids(self.scheme, bits.shape, block, tensor, both=True)
        if tensor is None:
            tensor = self._stage("tensor", self.scheme.tensor)
        else:
            require_positive(tensor.codes, self.scheme.tensor)
        self.names["g"] = decode_scale_codes(tensor.codes, self.scheme.tensor)
        with on_grid(self.scheme.extents(bits.ndim)):
            return self._stage("block", self.scheme.block.scale), tensor

    def measure(self, bits: Bits) -> None:
        """A, and a: of each block, or of the tensor where there are none. Rule POL-8."""
        whole = tuple(max(size, 1) for size in bits.shape)
        kind = self.recipe.amax
        self.names["A"] = (
            amax_of(bits, whole, kind).reshape(-1)[:1].reshape(()) if bits.size else np.zeros((), np.float32)
        )
        self.names["a"] = self.names["A"]
        if self.scheme.block is not None:
            with on_grid(self.scheme.extents(bits.ndim)):
                self.names["a"] = amax_of(bits, self.scheme.extents(bits.ndim), kind)

    def _stage(self, stage: str, scale: ScaleType | None) -> Chosen:
        """The scale codes that a stage gives: those of its numbers, which the type must have. Rule POL-9."""
        if scale is None or not self.recipe.steps(stage):
            raise UnsupportedError("POL-10", f"recipe={self.recipe.name!r} chooses no scales; allowed: given ones")
        ran = run(self.recipe.steps(stage), self.names, self.facts, scale)
        shape = self.names["A" if stage == "tensor" else "a"].shape
        number = np.broadcast_to(ran.result, shape)
        codes = exact_codes(number, scale, f"recipe={self.recipe.name!r} with {self.scheme.text}, stage {stage}")
        return Chosen(codes, np.array(np.broadcast_to(ran.saturated, shape)))

    def _refuse(self, *names: str) -> None:
        """Refuse a tensor that meets a condition of the recipe. Rule POL-10."""
        for text in self.recipe.refuse:
            op, name = text[:-1].split("(")
            if name in names:
                require_none(self.recipe, text, condition(op, self.names[name]))

    def stored(self, block: ScaleCodes | None, tensor: ScaleCodes | None, effective: F32) -> None:
        """Let the stages find the stored scales: g, b and s."""
        if tensor is not None and self.scheme.tensor is not None:
            self.names["g"] = decode_scale_codes(tensor, self.scheme.tensor)
        if block is not None and self.scheme.block is not None:
            self.names["b"] = decode_scale_codes(block, self.scheme.block.scale)
        self.names["s"] = effective

    def found(self, stage: str, spread: Spread) -> dict[str, F32]:
        """The names that the stages of elements use, each spread over the elements."""
        used = {name for step in self.recipe.steps(stage) for name in step.args}
        single = {"A": self.names.get("A"), "g": self.names.get("g")}
        found = {name: number for name, number in single.items() if number is not None and name in used}
        if "g" in used and self.scheme.block is None:
            found["g"] = self.names["s"]
        if "b" in used and "b" not in self.names:
            found["b"] = np.ones((), np.float32)
        if "g" in used and "g" not in found:
            found["g"] = np.ones((), np.float32)
        return found | {
            name: spread(self.names[name]) for name in ("a", "b", "s") if name in used and name in self.names
        }

    @rule("POL-5")
    def quotient(self, bits: Bits, spread: Spread, tile: tuple[slice, ...] = ()) -> Bits:
        """q of each element of a tile as patterns; a NaN takes the sign of x. Rules POL-5, POL-10, QNT-2."""
        found = self.found("element", spread)
        ran = run(self.recipe.steps("element"), {**found, "x": to_float(bits)}, self.facts)
        q = np.broadcast_to(to_bits(ran.result), bits.shape)
        for text in self.recipe.refuse:
            op, name = text[:-1].split("(")
            if name in ("x", "q"):
                met = condition(op, to_float(bits if name == "x" else np.ascontiguousarray(q)))
                require_none(self.recipe, text, met, tuple(part.start for part in tile))
        return np.where(is_nan(q), QNAN | (bits & SIGN), q)

    @rule("POL-5")
    def numbers(self, v: F32, spread: Spread) -> F32:
        """y of each element. Rules POL-5, QNT-11."""
        ran = run(self.recipe.steps("decode"), {**self.found("decode", spread), "v": v}, self.facts)
        return np.asarray(np.broadcast_to(ran.result, v.shape), np.float32)


def require_none(recipe: Recipe, text: str, met: Mask, origin: tuple[int, ...] = ()) -> None:
    """Refuse a tensor some of whose numbers meet a condition; `origin` is where they start in it. Rule POL-10."""
    if met.any():
        index = np.argwhere(met)[0] + np.array(origin or (0,) * met.ndim, np.int64)
        raise UnsupportedError(
            "POL-10", f"recipe={recipe.name!r}: {text} at {index.tolist()}; the recipe has no answer there"
        )


@rule("POL-9")
def exact_codes(number: F32, scale: ScaleType, where: str) -> ScaleCodes:
    """The code of each number of a scale type; a number that the type lacks is refused. Rule POL-9."""
    bits = to_bits(np.ascontiguousarray(number).reshape(number.shape))
    magnitude = bits & MAGNITUDE
    codes, _ = round_up(magnitude, scale)
    if scale.infinity_code is not None:
        codes = np.where(magnitude == INF, scale.code_dtype.type(scale.infinity_code), codes)
    codes = codes | np.where(bits != magnitude, scale.sign_bit, 0).astype(scale.code_dtype)
    codes = np.where(magnitude > INF, scale.code_dtype.type(scale.nan_code), codes)
    kept = (to_bits(decode_scale_codes(codes, scale)) == bits) | (magnitude > INF)
    if not kept.all():
        index = tuple(int(i) for i in np.argwhere(~kept)[0])
        raise UnsupportedError(
            "POL-9", f"{where}: {float(number[index])!r} at {list(index)} is no number of {scale.name}"
        )
    return np.asarray(codes, scale.code_dtype)
