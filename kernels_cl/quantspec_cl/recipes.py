"""Recipes on a device: steps as expressions of integers, and the stages run with them. Rules POL-1, POL-5 to POL-10.

A recipe becomes definitions of a program (recipes.cl), one expression a stage. Rows come from a user's hands too, so nothing of
a row is copied into a text: an operation is looked up, a name becomes the number of its step, a constant its 32 bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import pyopencl as cl

from quantspec import CANONICAL, CANONICAL_CODEC, RECIPES, Codec, Recipe, ScaleType, Scheme, UnsupportedError
from quantspec.following import require_recipe
from quantspec.recipes import require_canonical
from quantspec.steps import LOGARITHMS

from .blocks import block_amax, tensor_amax, volume_of
from .choice import Fixed, Given, encoded, fitted, require_both, require_positive
from .codecs import POLICIES, codec_numbers, covered, reads_plainly
from .formats import FLOATS, INDEX, binary32
from .geometry import Shape, blocks_along, grid_walk
from .host import DeviceArray, Machine
from .inputs import Numbers
from .matrix import Matrix
from .paths import generic
from .program import Program, register
from .scales import Encoded, decoded_scale
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["Following", "decodes_plainly", "given_levels", "require_plain"]

STEPS = ("prelude.cl", "steps.cl", "fma.cl", "recipes.cl")
SCALES = (*STEPS, "recipe_scales.cl")
CODES = (*STEPS, "blocks.cl", "codecs.cl", "recipe_codes.cl")
NUMBERS = (*STEPS, "blocks.cl", "codecs.cl", "recipe_numbers.cl")
MEANS = Program(("prelude.cl", "fma.cl", "means.cl"))
AMAX = ("prelude.cl", "steps.cl", "blocks.cl", "amax.cl")
ONE = 0x3F800000
RUN = 32  #: elements of a run of a mean: as in means.cl
#: Kind of amax -> the program that keeps the larger of two so; finite magnitudes are the generic program's, a mean has its own.
KINDS = {
    "all": Program(AMAX, ("-DLARGER=larger_or_nan",)),
    "ignore-nan": Program(AMAX, ("-DLARGER=larger_number",)),
    "signed": Program(AMAX, ("-DLARGER=larger_signed",)),
}
#: Stage -> its definition, and its number in recipes.cl.
STAGES = {"single": ("SINGLE", 0), "tensor": ("TENSOR_STAGE", 1), "block": ("BLOCK_STAGE", 2)}
OTHERS = ("element", "decode")
#: Operation -> the expression that it is. No blanks: runtimes cut options at them.
CALLS = {
    "mul": "multiply({0},{1})",
    "div": "divide({0},{1})",
    "add": "sum_of({0},{1})",
    "sub": "difference({0},{1})",
    "min": "extreme({0},{1},0)",
    "max": "extreme({0},{1},1)",
    "fmin": "extreme_number({0},{1},0)",
    "fmax": "extreme_number({0},{1},1)",
    "abs": "canonical(({0})&MAGNITUDE)",
    "neg": "canonical(({0})^SIGN)",
    "eq0": "met({0},IS_ZERO)",
    "isnan": "met({0},IS_NAN)",
    "isfinite": "met({0},IS_FINITE)",
    "gt0": "met({0},IS_ABOVE)",
    "sel": "({0}?{1}:{2})",
    "up": "stored({0},{type},1)",
    "rne": "stored({0},{type},0)",
    "narrow": "narrowed({0},{type})",
    "logfloor": "power_by_logarithm({0},(int)(uint)facts[FACT_EMAX],0)",
    "logceil": "power_by_logarithm(divide({0},(uint)facts[FACT_LARGEST]),0,1)",
    "pow2": "power_of_two({0},(uint)facts[FACT_LIMITS+{rule}],(int)(uint)facts[FACT_EMAX],{infinity})",
}
#: Name that a stage finds -> the kernel's.
FOUND = {name: name for name in ("A", "a", "g", "b", "s", "x", "v")} | {
    "H": "(uint)facts[FACT_HALF]",
    "max": "(uint)facts[FACT_LARGEST]",
    "emax": "(uint)facts[FACT_EXPONENT]",
    "top": "(uint)facts[FACT_TOP]",
}
#: Rules of powers of two, in the order of their limits among the facts; those for which Inf gives the largest.
POW2 = ("floor", "ceil", "rceil", "even", "even1", "fit")
INFINITY_IS_TOP = ("rceil", "fit")
#: Conditions of a refusal by name, as recipes.cl and means.cl number them.
CONDITIONS = {"eq0": 0, "isnan": 1, "isfinite": 2, "gt0": 3}


# ---------------------------------------------------------------- text


@cache
def scales_program(recipe: Recipe) -> Program:
    """The program of the stages that choose scales."""
    found = [_length(recipe, *STAGES)]
    for stage, (name, _) in STAGES.items():
        text, over = _expression(recipe, stage)
        found += [f"-D{name}={text}", f"-D{name}_OVER={over}"]
    return Program(SCALES, tuple(found))


@cache
def codes_program(recipe: Recipe) -> Program:
    """The program of the stage element. Recipes with the same steps share it."""
    return Program(CODES, (_length(recipe, "element"), f"-DELEMENT={_expression(recipe, 'element')[0]}"))


def refusals_program(recipe: Recipe) -> Program:
    """The program that looks for elements that a recipe refuses."""
    return Program((*CODES, "refusals.cl"), codes_program(recipe).definitions)


@cache
def numbers_program(recipe: Recipe) -> Program:
    """The program of the stage decode."""
    return Program(NUMBERS, (_length(recipe, "decode"), f"-DDECODE={_expression(recipe, 'decode')[0]}"))


def _length(recipe: Recipe, *stages: str) -> str:
    return f"-DSTEPS={max(1, *(len(recipe.steps(stage)) for stage in stages))}"


def _expression(recipe: Recipe, stage: str) -> tuple[str, str]:
    """A stage as one expression, and whether its last step saturates. Rule POL-6."""
    names, texts, over = dict(FOUND), [], "0u"
    for number, step in enumerate(recipe.steps(stage)):
        arguments = [names[name] if name in names else _constant(name) for name in step.args]
        words = {"type": "", "rule": "", "infinity": ""}
        if step.op in ("up", "rne", "narrow"):
            words["type"] = "formats+" + ("scale" if step.kind == "T" and stage in STAGES else _row(step.kind))
        elif step.op == "pow2" and step.kind in POW2:
            words |= {"rule": str(POW2.index(step.kind)), "infinity": str(int(step.kind in INFINITY_IS_TOP))}
        call = CALLS[step.kind if step.kind in LOGARITHMS else step.op]
        texts.append(f"t[{number}]=" + call.format(*arguments, **words))
        over = f"saturates({arguments[0]},{words['type']},{int(step.op == 'up')})" if step.op in ("up", "rne") else "0u"
        names[step.name] = f"t[{number}]"
    if not texts:
        return "0u", "0u"
    return f"({','.join(texts)},t[{len(texts) - 1}])", over


def _row(kind: str) -> str:
    """The row of a type that a step names; T has none where no scale is chosen, and such a stage is never run."""
    return "0" if kind == "T" else str(INDEX[kind])


def _constant(text: str) -> str:
    return f"{binary32(float('inf') if text == 'inf' else float.fromhex(text))}u"


@register
def programs() -> Iterator[Program]:
    """The programs of every kind of amax, and of every recipe that is shipped."""
    yield from (MEANS, *KINDS.values())
    for recipe in RECIPES.values():
        yield from (scales_program(recipe), codes_program(recipe), numbers_program(recipe))
        if any(_looks_at_elements(text) for text in recipe.refuse):
            yield refusals_program(recipe)


def _looks_at_elements(condition: str) -> bool:
    return condition.endswith(("(x)", "(q)"))


def decodes_plainly(recipe: Recipe, codec: Codec) -> bool:
    """True where the numbers of codes are the canonical recipe's: y = s * v, in either order, and no zero reads otherwise."""
    steps = recipe.steps("decode")
    plain = len(steps) == 1 and steps[0].op == "mul" and sorted(steps[0].args) == ["s", "v"]
    return plain and reads_plainly(codec)


def require_plain(tensor: DeviceQuantized | DevicePacked | Matrix) -> None:
    """Refuse a recipe or a codec whose numbers the kernels of products and chains do not make. Rules POL-1, POL-2, POL-10."""
    if tensor.recipe != CANONICAL:
        require_recipe(tensor.recipe, tensor.scheme, tensor.shape)
    if not decodes_plainly(tensor.recipe, CANONICAL_CODEC):
        require_canonical(recipe=tensor.recipe)
    if not reads_plainly(tensor.codec):
        require_canonical(codec=tensor.codec)


# ---------------------------------------------------------------- facts


def _facts(scheme: Scheme) -> Shape:
    """What steps know of a scheme, as recipes.cl takes it. Rules POL-5, POL-7."""
    largest = scheme.half_range
    if scheme.table is None and scheme.value.is_integer:
        largest = Fraction(scheme.value.highest)
    emax = 0
    while Fraction(2) ** (emax + 1) <= largest:
        emax += 1
    while Fraction(2) ** emax > largest:
        emax -= 1
    top = 1.0 if scheme.block is None else scheme.block.scale.block_top
    head = (binary32(scheme.half_range), binary32(largest), binary32(emax), binary32(top), emax % 2**32)
    return (*head, *_limits(scheme, largest / Fraction(2) ** emax, emax))


def _limits(scheme: Scheme, significand: Fraction, emax: int) -> Shape:
    """For each rule the whole number of 2^-23 that a significand must reach to raise the exponent. Rule POL-7."""
    unit, value = 1 << 23, scheme.value
    even = fit = 0  # integers have no mantissa: such a step is refused
    if not value.is_integer:
        even = (unit << 1) - (unit >> (value.mantissa_bits + 1))
        middle = (significand + Fraction(1, 2 << value.mantissa_bits)) * unit
        fit = int(middle) + (1 - value.largest_code % 2)  # an odd top gives the tie away to what is above it
    return (unit << 1, unit + 1, int(significand * unit) + 1, even, unit + (unit >> 1) + (unit >> 2), fit)


def _require_meaning(recipe: Recipe, stage: str, scheme: Scheme) -> None:
    """Refuse a step that means nothing for a scheme, as the reference does where it comes to it. Rules POL-5, POL-10."""
    for step in recipe.steps(stage):
        if step.op in ("up", "rne") and step.kind == "T" and stage in OTHERS:
            raise UnsupportedError("POL-5", f"step {step.text!r}: T has a meaning only where a scale is chosen")
        if step.op == "pow2" and step.kind in ("even", "fit") and scheme.value.is_integer:
            name = scheme.value.name
            raise UnsupportedError(
                "POL-10", f"pow2[{step.kind}] with {name}; allowed: minifloats, which have a mantissa"
            )


# ---------------------------------------------------------------- running


def given_levels(numbers: Numbers, scheme: Scheme, recipe: Recipe, block: Given, tensor: Given) -> Fixed:
    """The given scales of both levels under a recipe that covers the tensor. Rules POL-10, SCL-19 to SCL-22."""
    found = encoded(numbers, scheme, block, tensor)
    require_recipe(recipe, scheme, numbers.array.shape)
    return fitted(numbers, scheme, found, block, tensor)


@dataclass(slots=True)
class Following:
    """One tensor under one recipe: its program, and the arrays of numbers that its stages find."""

    machine: Machine
    scheme: Scheme
    recipe: Recipe
    shape: Shape
    arrays: dict[str, DeviceArray] = field(default_factory=dict)

    @classmethod
    def of(cls, machine: Machine, scheme: Scheme, recipe: Recipe, shape: Shape) -> "Following":
        """Refused where the recipe does not cover the tensor. Rule POL-10."""
        require_recipe(recipe, scheme, shape)
        return cls(machine, scheme, recipe, shape)

    @property
    def facts(self) -> cl.Buffer:
        """What the steps know of the scheme."""
        return self.machine.constant(_facts(self.scheme))

    def uses(self, name: str) -> bool:
        """True where a stage takes the name."""
        return any(name in step.args for stage in (*STAGES, *OTHERS) for step in self.recipe.steps(stage))

    def choose(self, numbers: Numbers, fixed: Fixed) -> tuple[Encoded | None, Encoded | None]:
        """Scales of both levels, by the stages where none are given. Checks in the reference's order. Rules POL-8 to POL-10."""
        scheme, block, single = self.scheme, fixed.blocks, fixed.single
        self.measure(numbers)
        self._refuse_amax()
        if self.recipe.given_only and (block is None) != (scheme.block is None):
            raise UnsupportedError("POL-10", f"recipe={self.recipe.name!r} chooses no scales; allowed: given ones")
        if scheme.block is None:
            return None, single or self._stage("single", scheme.tensor)
        if scheme.tensor is None:
            return block or self._stage("single", scheme.block.scale), None
        if block is not None:
            require_both(scheme, fixed)
            return block, single
        if single is None:
            single = self._stage("tensor", scheme.tensor)
        else:
            require_positive(single.codes, scheme.tensor)
        self.arrays["g"] = decoded_scale(self.machine, single.codes, scheme.tensor)
        return self._stage("block", scheme.block.scale), single

    def measure(self, numbers: Numbers) -> None:
        """A, and a: of each block, or of the tensor where there are none. Rule POL-8."""
        scheme, size = self.scheme, numbers.array.size
        mean = self.recipe.amax == "absmean"
        refused = any(text.endswith("(A)") for text in self.recipe.refuse)
        if scheme.block is None or refused or self.uses("A"):
            if mean and size:
                self.arrays["A"] = self._mean(numbers, (size,), (size,))
            else:
                self.arrays["A"] = tensor_amax(numbers, KINDS.get(self.recipe.amax))
        if scheme.block is None:
            self.arrays["a"] = self.arrays["A"]
        elif mean:
            self.arrays["a"] = self._mean(numbers, self.shape, scheme.extents(len(self.shape)))
        else:
            self.arrays["a"] = block_amax(numbers, scheme, KINDS.get(self.recipe.amax))

    def _mean(self, numbers: Numbers, shape: Shape, extents: Shape) -> DeviceArray:
        """The mean of the magnitudes of each block's finite elements. Rule POL-8."""
        machine, (blocks, volume) = self.machine, volume_of(shape, extents)
        runs = -(-volume // RUN)
        sums, counts = machine.empty((blocks * runs,), np.uint32), machine.empty((blocks * runs,), np.uint32)
        head = (machine.formats, numbers.row, numbers.array, machine.constant(grid_walk(shape, extents)))
        machine.launch("mean_runs", sums.size, *head, sums, counts, runs, volume, sums.size, program=MEANS)
        means = machine.empty((blocks,), np.uint32)
        machine.launch("mean_of", blocks, sums, counts, means, runs, blocks, program=MEANS)
        return means

    def _refuse_amax(self) -> None:
        for text in self.recipe.refuse:
            op, name = text[:-1].split("(")
            if name in ("A", "a"):
                found = self.arrays[name]
                first = self.machine.search("first_amax_met", found.size, CONDITIONS[op], found, program=MEANS)
                whole = name == "A" or self.scheme.block is None
                self._refuse(text, first, () if whole else blocks_along(self.shape, self.scheme))

    def _refuse(self, text: str, first: int | None, shape: Shape) -> None:
        if first is not None:
            index = [int(i) for i in np.unravel_index(first, shape)] if shape else []
            raise UnsupportedError(
                "POL-10", f"recipe={self.recipe.name!r}: {text} at {index}; the recipe has no answer there"
            )

    def _stage(self, stage: str, scale: ScaleType | None) -> Encoded:
        """The scale codes that a stage gives: those of its numbers, which the type must have. Rule POL-9."""
        if scale is None or not self.recipe.steps(stage):
            raise UnsupportedError("POL-10", f"recipe={self.recipe.name!r} chooses no scales; allowed: given ones")
        _require_meaning(self.recipe, stage, self.scheme)
        machine, whole = self.machine, stage == "tensor" or self.scheme.block is None
        shape = () if whole else blocks_along(self.shape, self.scheme)
        numbers, saturated = machine.empty(shape, np.float32), machine.empty(shape, np.uint8)
        largest = self._one("A") if stage == "tensor" else self.arrays["a"]
        found = (self._one("A"), largest, self._one("g"))
        head = (machine.formats, self.facts, STAGES[stage][1], INDEX[scale.name])
        machine.launch(
            "scales_by",
            numbers.size,
            *head,
            *found,
            numbers,
            saturated,
            numbers.size,
            program=scales_program(self.recipe),
        )
        where = (machine.formats, INDEX[scale.name], numbers)
        first = machine.search("first_inexact", numbers.size, *where, program=POLICIES)
        if first is not None:
            index = [int(i) for i in np.unravel_index(first, shape)] if shape else []
            number = float(np.array(machine.element(numbers, first), np.uint32).view(np.float32))
            raise UnsupportedError(
                "POL-9",
                f"recipe={self.recipe.name!r} with {self.scheme.text}, stage {stage}: {number!r} at {index} is no number of "
                f"{scale.name}",
            )
        codes = machine.empty(shape, scale.code_dtype)
        machine.launch("scale_codes", codes.size, *where, codes, codes.size, program=POLICIES)
        return Encoded(codes, saturated)

    def _one(self, name: str) -> DeviceArray:
        """A number that the whole tensor has; 1 where it has none."""
        found = self.arrays.get(name)
        return self.machine.upload(np.array([ONE], np.uint32)) if found is None else found

    def stored(self, blocks: DeviceArray | None, single: DeviceArray | None, effective: DeviceArray) -> None:
        """Let the stages find the stored scales: g, b and s."""
        scheme = self.scheme
        self.arrays["s"] = effective
        if scheme.block is None:
            self.arrays["g"] = effective
        elif single is not None and scheme.tensor is not None:
            self.arrays["g"] = decoded_scale(self.machine, single, scheme.tensor)
        if blocks is not None and scheme.block is not None:
            self.arrays["b"] = decoded_scale(self.machine, blocks, scheme.block.scale)

    def codes(self, numbers: Numbers, codec: Codec, grid: Shape, out: DeviceArray | None) -> DeviceArray:
        """A code of each element. Rules POL-5, POL-10, POL-11."""
        machine, scheme, size = self.machine, self.scheme, numbers.array.size
        codes = machine.empty(self.shape, np.uint8, out).written_by(generic(f"recipe {self.recipe.name}, {codec.name}"))
        if size == 0:
            return codes
        _require_meaning(self.recipe, "element", scheme)
        largest = self.arrays.get("a", self.arrays["s"])  # not looked at where no amax was measured
        found = (self._one("A"), largest, self._one("g"), self._one("b"), self.arrays["s"], machine.constant(grid))
        for text in self.recipe.refuse:
            op, name = text[:-1].split("(")
            if name in ("x", "q"):
                head = (machine.formats, numbers.row, CONDITIONS[op], int(name == "q"), self.facts, *found)
                first = machine.search("first_met", size, *head, numbers.array, program=refusals_program(self.recipe))
                self._refuse(text, first, self.shape)
        covered(codec, scheme.value, lookup=scheme.is_lookup)
        value = (machine.formats, numbers.row, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments)
        policy = (codec_numbers(machine, codec, scheme.value, lookup=scheme.is_lookup), self.facts)
        program = codes_program(self.recipe)
        machine.launch("quantize_by", size, *value, *policy, *found, numbers.array, codes, size, program=program)
        return codes

    def numbers(
        self, codes: DeviceArray, codec: Codec, grid: Shape, dtype: np.dtype[np.generic], out: DeviceArray | None
    ) -> DeviceArray:
        """The number of each code. Rules POL-5, POL-13, QNT-10, QNT-11."""
        machine, scheme = self.machine, self.scheme
        y = machine.empty(self.shape, dtype, out)
        if y.size:
            _require_meaning(self.recipe, "decode", scheme)
        head = (machine.formats, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments[:2])
        policy = (INDEX[FLOATS[y.dtype].name], codec_numbers(machine, codec, scheme.value, lookup=scheme.is_lookup))
        found = (self.facts, self._one("g"), self._one("b"), self.arrays["s"], machine.constant(grid))
        program = numbers_program(self.recipe)
        machine.launch("dequantize_by", y.size, *head, *policy, *found, codes, y, y.size, program=program)
        return y.written_by(generic(f"recipe {self.recipe.name}, {codec.name}"))
