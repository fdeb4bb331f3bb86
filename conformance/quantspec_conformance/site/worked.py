"""One block worked through, each number from the reference. Rules SCL-4 to SCL-14, QNT-2 to QNT-9."""

from dataclasses import dataclass

import numpy as np

import quantspec
from quantspec import Quantized, ScaleType, Scheme
from quantspec.blocks import amax
from quantspec.choice import raw_scale
from quantspec.quantize import effective_scale, quotient
from quantspec.rounding import F32, Bits, divide, to_float, widen

from .. import patterns
from .cells import code_name, shortest, table

__all__ = ["NUMBERS", "Worked", "work"]

#: What every named format is shown on: a tie for some, a number lost to zero, both signs.
NUMBERS = (0.25, -1.2, 0.05, 2.5, -0.6, 4.1, 0.0, -0.02, 1.75, -3.3)


@dataclass(frozen=True, slots=True)
class Worked:
    """The tables of one block, and the rules that fired for it, in order."""

    scale: str
    elements: str
    scale_rules: str
    element_rules: str


def work(scheme: Scheme) -> Worked:
    """The block of `NUMBERS` under a scheme. Rules SCL-4 to SCL-14, QNT-2 to QNT-9."""
    x = np.array(NUMBERS, np.float32)
    with quantspec.trace() as trace:
        q = quantspec.quantize(x, scheme)
        y = quantspec.dequantize(q)
    bits = widen(x)
    s = effective_scale(scheme, q.scale_codes, q.tensor_scale_code)
    quotients = to_float(quotient(bits, np.asarray(s.reshape(-1)[0])))
    fired = [trace.rules((i,)) for i in range(len(x))]
    common = [rule for rule in trace.rules() if all(rule in each for each in fired)]
    first = common.index("SCL-14")
    own = [" ".join(rule for rule in each if rule not in common) for each in fired]
    return Worked(
        table(["step", "number", "code", "rules"], _scale_rows(scheme, q, bits, s)),
        table(["i", "x", "x / s", "code", "fields", "stands for", "back", "own rules"], _rows(q, x, quotients, y, own)),
        ", ".join(common[:first]),
        ", ".join(common[first:]),
    )


def _scale_rows(scheme: Scheme, q: Quantized, bits: Bits, s: F32) -> list[list[str]]:
    """From the largest magnitude to the scale that x is divided by. Rules SCL-4 to SCL-14."""
    largest = amax(bits, bits.shape if scheme.block is None else scheme.extents(bits.ndim))
    raw = raw_scale(largest, scheme)
    rows = [
        ["amax, the largest magnitude", _first(to_float(largest)), "", "SCL-5"],
        ["H, half the range", shortest(np.float32(scheme.half_range)), "", "SCL-4"],
        ["raw = amax / H", _first(to_float(raw)), "", "SCL-6, SCL-7"],
    ]
    if scheme.tensor is not None and q.tensor_scale_code is not None:
        g = quantspec.decode_scale(q.tensor_scale_code, scheme.tensor)
        rules = "SCL-8, SCL-9" if scheme.block is None else "SCL-10, SCL-11"
        rows.append(
            ["tensor scale g, rounded up", _first(g), _scale_code(q.tensor_scale_code.item(), scheme.tensor), rules]
        )
        if scheme.block is not None:
            rows.append(["raw / g", _first(divide(to_float(raw), g)), "", "SCL-12"])
    if scheme.block is not None and q.scale_codes is not None:
        b = quantspec.decode_scale(q.scale_codes, scheme.block.scale)
        rules = "SCL-8, SCL-9" if scheme.tensor is None else "SCL-12"
        rows.append(
            ["block scale b, rounded up", _first(b), _scale_code(q.scale_codes.item(), scheme.block.scale), rules]
        )
    return [*rows, ["s, what x is divided by", _first(s), "", "SCL-14"]]


def _first(numbers: F32) -> str:
    return shortest(np.float32(numbers.reshape(-1)[0]))


def _scale_code(code: int, scale: ScaleType) -> str:
    return f"{code_name(code, 2 * scale.size)} of {scale.name}"


def _rows(q: Quantized, x: F32, quotients: F32, y: F32, own: list[str]) -> list[list[str]]:
    """A row an element. Rules QNT-5 to QNT-9."""
    scheme = q.scheme
    stands = quantspec.decode(q.codes, scheme.value, table=scheme.table)
    return [
        [
            str(i), shortest(x[i]), shortest(quotients[i]), code_name(int(code)),
            f"`{patterns.value_fields(int(code), scheme)}`", shortest(stands[i]), shortest(y[i]), own[i],
        ]
        for i, code in enumerate(q.codes)
    ]  # fmt: skip
