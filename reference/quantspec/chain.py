"""Chains: element-wise steps on dequantized numbers, each with a rounding of its own. Rules OPS-14 to OPS-23."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DtypeError, ShapeError, UnsupportedError
from .outputs import OUTPUTS, Output, narrowed, output_type
from .quantize import dequantize
from .rounding import (
    F32,
    MAGNITUDE,
    SIGN,
    Bits,
    add,
    canonical,
    divide,
    is_nan,
    multiply,
    subtract,
    to_bits,
    to_float,
    widen,
)
from .tensor import Quantized, require_record
from .tracing import note, rule

__all__ = ["MOST_STEPS", "Step", "chain"]

MOST_STEPS = 64
Apply = Callable[[F32], F32]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step of a chain: its name, its operand (for cast the type's name), for select the mask. Rules OPS-17 to OPS-21."""

    op: str
    operand: npt.ArrayLike | None = None
    mask: npt.ArrayLike | None = None

    @classmethod
    def of(cls, step: "Step | str | Sequence[Any]", *, argument: str = "step") -> "Step":
        """A step, or the step of a name or of a tuple such as `("add", 1.5)`. Rule OPS-23."""
        if isinstance(step, Step):
            return step
        parts = (step,) if isinstance(step, str) else tuple(step) if isinstance(step, Sequence) else ()
        if not 1 <= len(parts) <= 3:
            raise UnsupportedError("OPS-23", f"{argument}={step!r}; allowed: a Step, or (op, operand, mask)")
        return cls(*parts)


@rule("OPS-14", "OPS-15", "OPS-16")
def chain(
    tensor: Quantized, steps: Iterable[Step | str | Sequence[Any]], dtype: npt.DTypeLike | Output = "f32"
) -> npt.NDArray[Any]:
    """The dequantized numbers after each of the steps in turn, then rounded once to dtype. Rules OPS-14 to OPS-23.

    Each step is one IEEE 754 binary32 operation with a rounding of its own; nothing is contracted, every NaN is canonical.
    Operands are numbers, or f32, f16 or bf16 arrays that broadcast to the tensor's shape without enlarging it. Returns f32,
    f16 or bf16 of the tensor's shape. Raises DtypeError, ShapeError, UnsupportedError.

    >>> from quantspec import quantize
    >>> chain(quantize(np.float32([1, -2, 6]), "e2m1.native.t-f32"), [("mul", 0.5), "abs", ("max", 1)]).tolist()
    [1.0, 1.0, 3.0]
    """
    require_record(tensor, Quantized)
    out = output_type(dtype)
    applied = [_apply(step, f"steps[{place}]", tensor.shape) for place, step in enumerate(_listed(steps))]
    y: F32 = dequantize(tensor)
    for apply in applied:
        y = np.asarray(apply(y))  # at rank 0 numpy gives scalars
    return np.asarray(narrowed(y, out))


@rule("OPS-23")
def _listed(steps: Iterable[Step | str | Sequence[Any]]) -> list[Step]:
    """The steps as records; too many are refused. Rule OPS-23."""
    if isinstance(steps, str | Step) or not isinstance(steps, Iterable):
        raise UnsupportedError("OPS-23", f"steps={steps!r}; allowed: a sequence of steps, each (op, operand, mask)")
    listed = [Step.of(step, argument=f"steps[{place}]") for place, step in enumerate(steps)]
    if len(listed) > MOST_STEPS:
        raise UnsupportedError("OPS-23", f"steps has {len(listed)} steps; allowed: at most {MOST_STEPS}")
    return listed


def _apply(step: Step, argument: str, shape: tuple[int, ...]) -> Apply:
    """What a step does to the numbers, its operands checked. Rules OPS-17 to OPS-23."""
    row = ROWS.get(step.op) if isinstance(step.op, str) else None
    if row is None:
        raise UnsupportedError("OPS-23", f"{argument} is {step.op!r}; allowed: {', '.join(ROWS)}")
    for name, given, takes in (("operand", step.operand, row.operand), ("mask", step.mask, row.mask)):
        if (given is not None) != takes:
            raise UnsupportedError(
                "OPS-23",
                f"{argument} ({step.op}) has {'no' if takes else 'a'} {name}; it takes {'one' if takes else 'none'}",
            )
    return row.bind(step, argument, shape)


@rule("OPS-22")
def _operand(operand: npt.ArrayLike | None, argument: str, shape: tuple[int, ...]) -> F32:
    """An operand widened exactly to binary32, spread over the tensor's shape. Rule OPS-22."""
    numbers = to_float(
        widen(np.nan if operand is None else operand, argument=f"{argument}.operand", refused_by="OPS-22")
    )
    return np.broadcast_to(_fitting(numbers, f"{argument}.operand", shape), shape)


def _fitting(array: npt.NDArray[Any], argument: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The array, if it broadcasts to the shape without enlarging it. Rule OPS-22."""
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            "OPS-22", f"{argument} has shape {array.shape}; allowed: what broadcasts to {shape}, a number too"
        )
    return array


@rule("OPS-17")
def _arithmetic(y: F32, other: F32, *, of: Callable[[F32, F32], F32]) -> F32:
    """One binary32 operation on two numbers. Rules OPS-16, OPS-17."""
    return _noted(of(y, other))


@rule("OPS-18")
def _extreme(y: F32, other: F32, *, largest: bool) -> F32:
    """The smaller or the larger; -0 below +0; NaN where either is NaN. Rules OPS-16, OPS-18."""
    a, b = to_bits(y), to_bits(other)
    first = (_rank(a) >= _rank(b)) if largest else (_rank(a) <= _rank(b))
    chosen = np.where(is_nan(a), a, np.where(is_nan(b), b, np.where(first, a, b)))
    return _noted(canonical(to_float(chosen)))


def _rank(bits: Bits) -> Bits:
    """Unsigned integers that order as the numbers do, -0 just below +0."""
    return np.where(bits & SIGN, ~bits, bits | SIGN)


@rule("OPS-19")
def _signed(y: F32, *, of: Callable[[Bits], Bits]) -> F32:
    """The number with another sign bit. Rules OPS-16, OPS-19."""
    return _noted(canonical(to_float(of(to_bits(y)))))


@rule("OPS-20")
def _selected(y: F32, other: F32, mask: npt.NDArray[np.bool_]) -> F32:
    """y where the mask is set, the other elsewhere. Rules OPS-16, OPS-20."""
    return _noted(canonical(np.where(mask, y, other)))


@rule("OPS-21")
def _cast(y: F32, name: str) -> F32:
    """y rounded once to a type and widened again. Rules OPS-16, OPS-21."""
    return _noted(to_float(widen(narrowed(y, OUTPUTS[name]))))


def _noted(y: F32) -> F32:
    note("OPS-16", lambda: is_nan(to_bits(y)))
    return y


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of step: what it takes, and how a step of it becomes a function of the numbers."""

    operand: bool = False
    mask: bool = False
    bind: Callable[[Step, str, tuple[int, ...]], Apply]


def _two(of: Callable[..., F32]) -> Row:
    """A step with one operand."""
    return Row(
        operand=True, bind=lambda step, argument, shape: partial(of, other=_operand(step.operand, argument, shape))
    )


def _sign(of: Callable[[Bits], Bits]) -> Row:
    """A step on the sign bit."""
    return Row(bind=lambda step, argument, shape: partial(_signed, of=of))


def _bind_select(step: Step, argument: str, shape: tuple[int, ...]) -> Apply:
    mask = np.asarray(step.mask)
    if mask.dtype not in (np.bool_, np.uint8):
        raise DtypeError("OPS-20", f"{argument}.mask has dtype {mask.dtype}; allowed: bool, uint8")
    spread = np.broadcast_to(_fitting(mask, f"{argument}.mask", shape), shape) != 0
    return partial(_selected, other=_operand(step.operand, argument, shape), mask=spread)


def _bind_cast(step: Step, argument: str, shape: tuple[int, ...]) -> Apply:
    if not isinstance(step.operand, str) or step.operand not in OUTPUTS:
        raise DtypeError("OPS-21", f"{argument} casts to {step.operand!r}; allowed: {', '.join(OUTPUTS)}")
    return partial(_cast, name=step.operand)


#: Every kind of step by name.
ROWS = {
    "add": _two(partial(_arithmetic, of=add)),
    "sub": _two(partial(_arithmetic, of=subtract)),
    "rsub": _two(partial(_arithmetic, of=lambda y, other: subtract(other, y))),
    "mul": _two(partial(_arithmetic, of=multiply)),
    "div": _two(partial(_arithmetic, of=lambda y, other: canonical(divide(y, other)))),
    "rdiv": _two(partial(_arithmetic, of=lambda y, other: canonical(divide(other, y)))),
    "min": _two(partial(_extreme, largest=False)),
    "max": _two(partial(_extreme, largest=True)),
    "neg": _sign(lambda bits: bits ^ SIGN),
    "abs": _sign(lambda bits: bits & MAGNITUDE),
    "select": Row(operand=True, mask=True, bind=_bind_select),
    "cast": Row(operand=True, bind=_bind_cast),
}
