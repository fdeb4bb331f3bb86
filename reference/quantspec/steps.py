"""Steps: the language of recipes, each step one binary32 operation. Rules POL-5, POL-6, POL-7.

A stage is a list of assignments, `raw = div(a, H)`; every name is given once, and the last assignment gives the stage's
result. The interpreter runs a stage on arrays, by the primitives of `rounding` and nothing else.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import UnsupportedError
from .outputs import OUTPUTS, narrowed
from .rounding import (
    F32,
    INF,
    MAGNITUDE,
    QNAN,
    SIGN,
    Bits,
    add,
    canonical,
    divide,
    is_nan,
    multiply,
    scaled,
    subtract,
    to_bits,
    to_float,
)
from .scales import SCALES, ScaleType, round_nearest, round_up
from .scales import decode_codes as decode_scale_codes
from .tracing import note, rule
from .values import ValueFormat

__all__ = [
    "CONDITIONS",
    "FACTS",
    "POW2",
    "STAGES",
    "Assignment",
    "Facts",
    "Ran",
    "check",
    "condition",
    "program",
    "run",
]

Mask = npt.NDArray[np.bool_]
#: Rules that give a power of two, of which POL-7 says what each does.
POW2 = ("floor", "ceil", "rceil", "even", "even1", "fit")
#: Names of facts about the scheme that a step may take.
FACTS = ("H", "max", "emax", "top")
#: Stage -> the name of its result, and the names that it finds.
STAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "single": ("scale", ("a",)),
    "tensor": ("tensor_scale", ("A",)),
    "block": ("block_scale", ("A", "a", "g")),
    "element": ("q", ("x", "s", "g", "b", "a", "A")),
    "decode": ("y", ("v", "s", "g", "b")),
}
#: Name of an operation -> its arguments (n a number, c a condition) and its result.
OPERATIONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("mul", "div", "add", "sub", "min", "max", "fmin", "fmax"), ("nn", "n")),
    **dict.fromkeys(("abs", "neg", "up", "rne", "narrow", "pow2"), ("n", "n")),
    **dict.fromkeys(("eq0", "isnan", "isfinite", "gt0"), ("n", "c")),
    "sel": ("cnn", "n"),
}
#: Operations that give a condition.
CONDITIONS = tuple(name for name, (_, result) in OPERATIONS.items() if result == "c")
#: Name of an operation -> what may stand in its brackets; the other operations have none. T is the type of the scale
#: that the stage chooses.
BRACKETS: dict[str, tuple[str, ...]] = {
    "up": ("T", *SCALES),
    "rne": ("T", *SCALES),
    "narrow": tuple(name for name in OUTPUTS if name != "f32"),
    "pow2": POW2,
}
MOST_STEPS = 64
_STEP = re.compile(r"([a-z][a-z0-9_]*) = ([a-z][a-z0-9]*)(?:\[([A-Za-z0-9]+)\])?\(([^()]*)\)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_HEX_FLOAT = re.compile(r"-?0x[01](?:\.[0-9a-f]+)?p[+-][0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One step: `name = op[kind](args)`."""

    name: str
    op: str
    args: tuple[str, ...]
    kind: str = ""

    @classmethod
    @rule("POL-5")
    def of(cls, text: "str | Assignment") -> "Assignment":
        """The step of a text. Rule POL-5."""
        if isinstance(text, Assignment):
            return text
        match = _STEP.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise UnsupportedError("POL-5", f"step {text!r}; allowed: name = op(arg, arg), or name = op[kind](arg)")
        return cls(match[1], match[2], tuple(part.strip() for part in match[4].split(",")), match[3] or "")

    @property
    def text(self) -> str:
        """The step as a recipe spells it."""
        kind = f"[{self.kind}]" if self.kind else ""
        return f"{self.name} = {self.op}{kind}({', '.join(self.args)})"

    def __str__(self) -> str:
        return self.text


Program = tuple[Assignment, ...]


def program(lines: Iterable["str | Assignment"]) -> Program:
    """The steps of a stage's lines."""
    return tuple(Assignment.of(line) for line in lines)


def _fail(where: str, step: Assignment, what: str) -> UnsupportedError:
    return UnsupportedError("POL-5", f"{where}: step {step.text!r}: {what}")


@rule("POL-5")
def check(stage: str, steps: Program, where: str) -> None:
    """Refuse a stage that is no program: names, kinds of arguments, single assignment, the result at the end. Rule POL-5."""
    result, found = STAGES[stage]
    kinds = {**dict.fromkeys(FACTS, "n"), **dict.fromkeys(found, "n")}
    if len(steps) > MOST_STEPS:
        raise UnsupportedError("POL-5", f"{where}: {len(steps)} steps; allowed: at most {MOST_STEPS}")
    for step in steps:
        if step.op not in OPERATIONS:
            raise _fail(where, step, f"no operation {step.op!r}; allowed: {', '.join(OPERATIONS)}")
        takes, gives = OPERATIONS[step.op]
        if step.kind not in BRACKETS.get(step.op, ("",)):
            allowed = (
                ", ".join(f"{step.op}[{kind}]" for kind in BRACKETS.get(step.op, ())) or f"{step.op} without brackets"
            )
            raise _fail(where, step, f"[{step.kind}]; allowed: {allowed}")
        if len(step.args) != len(takes):
            raise _fail(where, step, f"{len(step.args)} arguments; {step.op} takes {len(takes)}")
        for argument, kind in zip(step.args, takes, strict=True):
            known = "n" if _constant(argument, where, step) is not None else kinds.get(argument)
            if known is None:
                raise _fail(where, step, f"no name {argument!r}; known here: {', '.join(kinds)}")
            if known != kind:
                raise _fail(
                    where,
                    step,
                    f"{argument!r} is {'a number' if known == 'n' else 'a condition'}; {step.op} takes the other",
                )
        if step.name in kinds:
            raise _fail(where, step, f"{step.name!r} has a meaning already")
        if (step.name == result) != (step is steps[-1]):
            raise _fail(where, step, f"the last step, and no other, gives {result!r}")
        kinds[step.name] = gives
    if steps and kinds[result] != "n":
        raise _fail(where, steps[-1], f"{result!r} is a condition; it must be a number")


def _constant(text: str, where: str, step: Assignment) -> np.float32 | None:
    """The number of a constant; None for a name."""
    if text == "inf":
        return np.float32(np.inf)
    if not _HEX_FLOAT.fullmatch(text):
        if not _NAME.fullmatch(text):
            raise _fail(where, step, f"{text!r} is neither a name nor a number such as 0x1.8p+1")
        return None
    number = float.fromhex(text)
    if abs(number) >= 2.0**128 or float(np.float32(number)) != number:
        raise _fail(where, step, f"{text} is no binary32 number")
    return np.float32(number)


# ---------------------------------------------------------------- facts


@dataclass(frozen=True, slots=True)
class Facts:
    """What steps may know of a scheme: half the value range, the value format, the top of its block scales."""

    half_range: Fraction
    largest: Fraction  #: the largest number of the value format, or magnitude of the table
    value: ValueFormat
    top: float

    @property
    def emax(self) -> int:
        """Exponent of the largest number."""
        whole = self.largest.numerator.bit_length() - self.largest.denominator.bit_length()
        return whole if Fraction(2) ** whole <= self.largest else whole - 1

    def numbers(self) -> dict[str, F32]:
        """The facts by name, as steps take them."""
        listed = {"H": self.half_range, "max": self.largest, "emax": self.emax, "top": self.top}
        return {name: np.asarray(np.float32(number)) for name, number in listed.items()}


# ---------------------------------------------------------------- running


@dataclass(frozen=True, slots=True)
class Ran:
    """What a stage gave, and where its last step saturated."""

    result: F32
    saturated: Mask
    names: Mapping[str, F32 | Mask]


@rule("POL-6")
def run(steps: Program, names: Mapping[str, F32], facts: Facts, scale: ScaleType | None = None) -> Ran:
    """Run a stage: `names` are what the stage finds, `scale` is T. Rules POL-5, POL-6, POL-7."""
    known: dict[str, Any] = {**facts.numbers(), **names}
    saturated = np.zeros((), bool)
    for step in steps:
        arguments = [known[name] if name in known else _literal(name) for name in step.args]
        saturated = np.zeros((), bool)
        if step.op in ("up", "rne"):
            known[step.name], saturated = _stored(step, arguments[0], scale)
        elif step.op == "pow2":
            known[step.name] = power_of_two(arguments[0], step.kind, facts)
        elif step.op == "narrow":
            known[step.name] = np.asarray(narrowed(arguments[0], OUTPUTS[step.kind]), np.float32)
        else:
            known[step.name] = _ARITHMETIC[step.op](*arguments)
    result = known[steps[-1].name]
    return Ran(result, np.broadcast_to(saturated, result.shape), known)


def _literal(text: str) -> F32:
    return np.asarray(np.float32(np.inf if text == "inf" else float.fromhex(text)))


def _stored(step: Assignment, x: F32, scale: ScaleType | None) -> tuple[F32, Mask]:
    """up and rne: the number of the type that a scale is stored as, and where it saturated. Rule POL-6."""
    target = scale if step.kind == "T" else SCALES[step.kind]
    if target is None:
        raise UnsupportedError("POL-5", f"step {step.text!r}: T has a meaning only where a scale is chosen")
    bits = to_bits(x)
    magnitude = bits & MAGNITUDE
    if target.mantissa_bits == 23:
        return canonical(x), np.zeros(x.shape, bool)
    codes, saturated = round_up(magnitude, target)
    if step.op == "rne":
        codes = round_nearest(magnitude, target)
        saturated = (magnitude > to_bits(np.asarray(np.float32(target.largest)))) & (magnitude <= INF)
    number = to_bits(decode_scale_codes(codes, target))
    number = np.where((bits != magnitude) & (number != 0 if not target.signed else True), number | SIGN, number)
    return to_float(np.where(magnitude > INF, QNAN, number)), saturated & (magnitude <= INF)


def _lower(x: F32, y: F32) -> Mask:
    """True where x is below y, -0 below +0; NaN has no place."""
    keys = [np.where(bits >= SIGN, ~bits, bits | SIGN) for bits in (to_bits(x), to_bits(y))]
    return np.asarray(keys[0] < keys[1])


def _extreme(x: F32, y: F32, *, largest: bool, keeps_nan: bool) -> F32:
    """min and max (a NaN wins), fmin and fmax (a NaN loses). Rule POL-6."""
    x, y = np.broadcast_arrays(x, y)
    x, y = np.ascontiguousarray(x).reshape(x.shape), np.ascontiguousarray(y).reshape(y.shape)
    chosen = np.where(_lower(x, y) != largest, x, y)
    left, right = is_nan(to_bits(x)), is_nan(to_bits(y))
    if keeps_nan:
        return to_float(np.where(left | right, QNAN, to_bits(np.asarray(chosen))))
    return canonical(np.asarray(np.where(left, y, np.where(right, x, chosen))))


def _absolute(x: F32) -> F32:
    return canonical(to_float(to_bits(x) & MAGNITUDE))


def _negated(x: F32) -> F32:
    return canonical(to_float(to_bits(x) ^ SIGN))


_ARITHMETIC: dict[str, Any] = {
    "mul": multiply,
    "div": lambda x, y: canonical(divide(x, y)),
    "add": add,
    "sub": subtract,
    "min": lambda x, y: _extreme(x, y, largest=False, keeps_nan=True),
    "max": lambda x, y: _extreme(x, y, largest=True, keeps_nan=True),
    "fmin": lambda x, y: _extreme(x, y, largest=False, keeps_nan=False),
    "fmax": lambda x, y: _extreme(x, y, largest=True, keeps_nan=False),
    "abs": _absolute,
    "neg": _negated,
    "eq0": lambda x: (to_bits(x) & MAGNITUDE) == 0,
    "isnan": lambda x: is_nan(to_bits(x)),
    "isfinite": lambda x: (to_bits(x) & MAGNITUDE) < INF,
    "gt0": lambda x: (to_bits(x) != 0) & (to_bits(x) <= INF),
    "sel": lambda chosen, x, y: np.asarray(np.where(chosen, x, y), np.float32),
}


def condition(op: str, x: F32) -> Mask:
    """A condition on numbers. Rule POL-6."""
    return np.asarray(_ARITHMETIC[op](x), bool)


# ---------------------------------------------------------------- powers of two


@rule("POL-7")
def power_of_two(x: F32, kind: str, facts: Facts) -> F32:
    """The power of two that a rule gives for a largest magnitude: a number of ue8m0. Rule POL-7."""
    note("SCL-3")
    magnitude = to_bits(x) & MAGNITUDE
    exponent, significand = _normal(np.minimum(magnitude, INF))
    limit, reached = _threshold(kind, facts)
    bump = (significand >= limit) if reached else (significand > limit)
    wanted = exponent - facts.emax + bump
    if kind in ("rceil", "fit"):
        wanted = np.where(magnitude == INF, 127, wanted)
    power = np.asarray(np.where(magnitude == 0, -127, np.clip(wanted, -127, 127)), np.int32)
    number = scaled(np.ones(magnitude.shape, np.uint32), power)
    return to_float(np.where(magnitude > INF, QNAN, number))


def _normal(magnitude: Bits) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """m * 2^L of finite magnitudes, m from 1 to below 2 as a whole number of 2^-23; Inf as 1 * 2^128, 0 as anything."""
    wide = magnitude.astype(np.int64)
    small = np.maximum(np.minimum(wide, 0x7FFFFF), 1)
    shift = 24 - np.frexp(small.astype(np.float64))[1].astype(np.int64)
    exponent = np.where(wide >= 0x800000, (wide >> 23) - 127, -126 - shift)
    significand = np.where(wide >= 0x800000, (wide & 0x7FFFFF) | 0x800000, small << shift)
    return exponent, significand


def _threshold(kind: str, facts: Facts) -> tuple[int, bool]:
    """The significand, in 2^-23, that raises the exponent by one; and whether reaching it is enough. Rule POL-7."""
    unit = Fraction(1 << 23)
    if kind == "floor":
        return 1 << 24, True
    if kind == "ceil":
        return 1 << 23, False
    if kind == "even1":
        return int(Fraction(7, 4) * unit), True
    if kind == "rceil":
        return int(facts.largest / Fraction(2) ** facts.emax * unit), False
    value = facts.value
    if value.is_integer:
        raise UnsupportedError("POL-10", f"pow2[{kind}] with {value.name}; allowed: minifloats, which have a mantissa")
    if kind == "even":
        return int((2 - Fraction(1, 1 << (value.mantissa_bits + 1))) * unit), True
    step = Fraction(2) ** (facts.emax - value.mantissa_bits)
    middle = (facts.largest + step / 2) / Fraction(2) ** facts.emax
    return int(middle * unit), value.largest_code % 2 == 1
