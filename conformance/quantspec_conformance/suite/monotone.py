"""Whether a larger input got a smaller number: a diagnosis of wrong codes, of its own kind.

The boundary cases hold every threshold of a format with the numbers beside it. Who is right there and monotone is right
everywhere between; so where codes are wrong it matters whether a threshold moved, or the order of two inputs broke.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import QuantspecError

from ..examples import Tensor
from .case import Case

__all__ = ["CODES", "Break", "Points", "breaks", "points"]

#: Operation that is monotone -> the part that holds its codes.
CODES = {"encode": "codes", "encode_scale": "scale_codes"}
Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Points:
    """Inputs of one sign in ascending order, as binary32; the numbers that came of them, and both as the patterns they were."""

    x: Numbers
    y: Numbers
    inputs: Numbers
    codes: Numbers

    def __add__(self, other: "Points") -> "Points":
        """The points of both, in order."""
        pairs = zip(
            (self.x, self.y, self.inputs, self.codes), (other.x, other.y, other.inputs, other.codes), strict=True
        )
        return _ordered(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True, slots=True)
class Break:
    """Two inputs, neighbours among those asked, of which the larger got the smaller number; and how many such pairs there are."""

    lower: tuple[str, str]  #: input and code, in hexadecimal
    upper: tuple[str, str]
    count: int

    def __str__(self) -> str:
        more = f", the first of {self.count} such pairs" if self.count > 1 else ""
        (low, code), (high, smaller) = self.lower, self.upper
        return (
            f"not monotone between two neighbouring inputs: {low} gives {code}, the larger {high} gives {smaller}{more}"
        )


def _ordered(x: Numbers, y: Numbers, inputs: Numbers, codes: Numbers) -> Points:
    order = np.argsort(x, kind="stable")
    return Points(x[order], y[order], inputs[order], codes[order])


def points(case: Case, codes: Tensor) -> tuple[Points, ...]:
    """Inputs and decoded numbers of a case, those below zero and those above it; () where codes are none of the format.

    NaN has no place in an order: neither an input nor a code that is one is looked at.
    """
    given = case.inputs["x"]
    try:
        with np.errstate(all="ignore"):
            x, y = given.array().astype(np.float32).reshape(-1), _decoded(case, codes.array()).reshape(-1)
    except QuantspecError:
        return ()
    if x.shape != y.shape:
        return ()
    inputs, found = (tensor.array().view(f"u{tensor.array().itemsize}").reshape(-1) for tensor in (given, codes))
    ordered = ~(np.isnan(x) | np.isnan(y))
    signs = (ordered & np.signbit(x), ordered & ~np.signbit(x))
    return tuple(_ordered(x[chosen], y[chosen], inputs[chosen], found[chosen]) for chosen in signs)


def _decoded(case: Case, codes: Numbers) -> Numbers:
    """The numbers of codes. QuantspecError where they are no codes of the format."""
    if case.op == "encode_scale":
        return np.asarray(quantspec.decode_scale(codes, case.words["type"]))
    table = case.inputs.get("table")
    return np.asarray(quantspec.decode(codes, case.words["value"], table=None if table is None else table.array()))


def _shown(patterns: Numbers, place: int) -> str:
    return f"0x{int(patterns[place]):0{2 * patterns.itemsize}X}"


def breaks(of: Points) -> Break | None:
    """Where the order breaks first; None where it holds."""
    falls = np.flatnonzero(of.y[1:] < of.y[:-1])
    if not falls.size:
        return None
    low, high = int(falls[0]), int(falls[0]) + 1
    pair = [(_shown(of.inputs, place), _shown(of.codes, place)) for place in (low, high)]
    return Break(pair[0], pair[1], int(falls.size))
