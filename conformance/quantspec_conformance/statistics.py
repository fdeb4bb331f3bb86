"""Error statistics of quantized tensors, and their table and plot. They inform; they decide nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import quantspec
from quantspec import Scheme
from quantspec.blocks import spread
from quantspec.quantize import effective_scale
from quantspec.rounding import to_float, widen

from .plot import scatter

__all__ = ["Statistics", "measure", "print_statistics"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

NOTE = (
    "bits: bytes * 8 over elements; max: largest |y - x| over the largest |x|; RMS: of y - x over that of x; codes: distinct "
    "codes of those that encode can produce; clip: |x| above the largest number of its block; sat.: block scales that "
    "saturated (T: the tensor scale)"
)


@dataclass(frozen=True, slots=True)
class Statistics:
    """How well a scheme holds a tensor; shares from 0 to 1."""

    scheme: str
    name: str
    bits: float
    largest_error: float
    rms_error: float
    codes_used: float
    clipped: float
    saturated: float
    tensor_saturated: bool


def measure(x: npt.NDArray[Any], scheme: Scheme, name: str = "") -> Statistics:
    """Quantize and dequantize a tensor with the reference and measure what was lost, over its finite elements."""
    q = quantspec.quantize(x, scheme)
    exact = to_float(widen(x)).astype(np.float64)
    finite = np.isfinite(exact)
    y = quantspec.dequantize(q).astype(np.float64)
    error = np.where(finite, y - np.where(finite, exact, 0), 0)
    exact = np.where(finite, exact, 0)
    largest, power = np.abs(exact).max(initial=0), float(np.square(exact).sum())
    blocks = 1 if q.scale_codes is None else q.scale_codes.size
    return Statistics(
        scheme.text,
        name,
        8 * quantspec.byte_count(scheme, x.shape) / max(x.size, 1),
        float(np.abs(error).max(initial=0) / largest) if largest else 0.0,
        float(np.sqrt(np.square(error).sum() / power)) if power else 0.0,
        np.unique(q.codes).size / _producible(scheme),
        float(np.mean(np.abs(exact) > _limit(q))) if x.size else 0.0,
        q.saturation.count / max(blocks, 1),
        q.saturation.tensor,
    )


def _producible(scheme: Scheme) -> int:
    """Codes that encode can produce from finite numbers."""
    row = scheme.value
    if scheme.table is not None:
        return int(scheme.table.indices.size)
    return row.highest - row.lowest + 1 if row.is_integer else 2 * (row.largest_code + 1)


def _limit(q: quantspec.Quantized) -> npt.NDArray[np.float64]:
    """The largest magnitude that each element's block holds."""
    s = effective_scale(q.scheme, q.scale_codes, q.tensor_scale_code)
    if q.scheme.block is not None:
        s = spread(s, q.shape, q.scheme.extents(len(q.shape)))
    if q.scheme.table is None and q.scheme.value.is_integer:
        top = float(max(q.scheme.value.highest, -q.scheme.value.lowest))
    else:
        top = float(q.scheme.half_range)
    return np.broadcast_to(s.astype(np.float64) * top, q.shape)


def print_statistics(out: Console, rows: Sequence[Statistics]) -> None:
    """A table, and a plot of the RMS errors."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("scheme", no_wrap=True)
    for name in ("bits", "max %", "RMS %", "codes %", "clip %", "sat. %"):
        table.add_column(name, justify="right", no_wrap=True)
    for letter, row in zip(LETTERS, rows, strict=False):
        shares = (row.largest_error, row.rms_error, row.codes_used, row.clipped, row.saturated)
        cells = [f"{100 * share:.3f}" for share in shares]
        table.add_row(
            letter, row.scheme, f"{row.bits:.3f}", *cells[:-1], cells[-1] + (" T" if row.tensor_saturated else "")
        )
    out.print(table)
    if len(rows) > len(LETTERS):
        out.print(f"the first {len(LETTERS)} of {len(rows)} schemes are shown")
    out.print(NOTE)
    drawn = _plot(out, rows)
    if drawn:
        out.print(Text(drawn), soft_wrap=True)


def _plot(out: Console, rows: Sequence[Statistics]) -> str:
    """RMS error over bits an element, a letter a scheme; empty where no error is finite, as where every number overflows."""
    marked = [
        (letter, row)
        for letter, row in zip(LETTERS, rows, strict=False)
        if np.isfinite((row.rms_error, row.bits)).all()
    ]
    if not marked:
        return ""
    points = [(letter, row.bits, float(np.log10(max(row.rms_error, 1e-12)))) for letter, row in marked]
    title = "log10 of the RMS error, over bits an element"
    drawn = scatter(points, width=min(out.width, 100), height=20, title=title, label="bits")
    names = [f"  {letter}  {row.scheme}{f': {row.name}' if row.name else ''}" for letter, row in marked]
    return "\n".join([drawn, *names])
