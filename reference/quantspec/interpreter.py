"""The interpreter of steps: a stage run on arrays, by the primitives of `rounding` and nothing else. Rules POL-5 to POL-7."""

from collections.abc import Mapping
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
from .steps import LOGARITHMS, Assignment, Program
from .tracing import note, rule
from .values import ValueFormat

__all__ = ["Facts", "Ran", "condition", "power_by_logarithm", "power_of_two", "run"]

Mask = npt.NDArray[np.bool_]


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
        elif step.op == "pow2" and step.kind in LOGARITHMS:
            known[step.name] = power_by_logarithm(arguments[0], step.kind, facts)
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
    zero = (magnitude == 0) | (number == 0)
    number = np.where((bits != magnitude) & (target.signed | ~zero), number | SIGN, number)
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


@rule("POL-20")
def power_by_logarithm(x: F32, kind: str, facts: Facts) -> F32:
    """The power of two of a logarithm in binary32, rounded down or up: a number of ue8m0. Rule POL-20."""
    note("SCL-3")
    looked = x if kind == "logfloor" else canonical(divide(x, facts.numbers()["max"]))
    magnitude = to_bits(np.ascontiguousarray(looked)).reshape(looked.shape) & MAGNITUDE
    low, significand = _normal(np.minimum(magnitude, INF))
    from_low, from_high = significand - (1 << 23), (1 << 24) - significand
    down, up = low - facts.emax + (from_high <= _below(low + 1)), low + (from_low > _above(low))
    wanted = np.where(magnitude == INF, 127, down if kind == "logfloor" else up)
    power = np.asarray(np.where(magnitude == 0, -127, np.clip(wanted, -127, 127)), np.int32)
    number = scaled(np.ones(magnitude.shape, np.uint32), power)
    return to_float(np.where(magnitude > INF, QNAN, number))


#: floor(2^7 * ln 2): steps of 2^-24 below 2^n whose logarithm is nearer to n than half a step of binary32 from 128 to 255.
_LOST = 88


def _below(n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many steps of 2^(n-24) below 2^n have the logarithm n in binary32; below a power of two its steps are halves."""
    size = np.abs(n)
    width = _bits_of(size) - ((n > 0) & (size & (size - 1) == 0))
    return np.where(width > 0, _LOST >> np.clip(8 - width, 0, 62), 0)


def _above(n: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many steps of 2^(n-23) above 2^n have the logarithm n in binary32."""
    size = np.abs(n)
    width = _bits_of(size) - ((n < 0) & (size & (size - 1) == 0))
    return np.where(width > 0, _LOST >> np.clip(9 - width, 0, 62), 0)


def _bits_of(size: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bits of whole numbers from 0 to 256."""
    return np.frexp(size.astype(np.float64))[1].astype(np.int64)


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
