"""Products of a matrix and a quantized matrix, in one order of operations. Rules PRD-1 to PRD-17."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import blocks
from .errors import SchemeError, ShapeError
from .fma import fma
from .operations import transpose
from .outputs import Output, narrowed, output_dtype, output_type
from .quantize import dequantize
from .recipes import CANONICAL_CODEC, require_canonical
from .rounding import F32, add, is_nan, multiply, to_bits, to_float, widen
from .scales import decode_codes as decode_scale_codes
from .segments import Side, cuts, segment_sum
from .tensor import Quantized, require_record
from .tracing import note, on_tile, rule

__all__ = ["RUN", "product", "product_codes"]

RUN = 32
Factors = Callable[[int], tuple[F32, F32]]


@rule("PRD-2", "PRD-3", "PRD-8")
def product(x: npt.ArrayLike, w: Quantized, dtype: npt.DTypeLike | Output = "f32") -> npt.NDArray[Any]:
    """x [..., K] times quantized w [K, N]: fma chains over runs of 32 indices, added in order. Rules PRD-1 to PRD-9.

    `x` is f32, f16 or bf16 of rank 1 or more, w of rank 2 under any scheme. Returns f32, f16 or bf16 of shape [..., N].
    Raises DtypeError, ShapeError.

    >>> from quantspec import quantize
    >>> w = quantize(np.float32([[1, -2], [3, 6]]), "e2m1.native.t-f32")
    >>> product(np.float32([1, 10]), w).tolist()
    [31.0, 58.0]
    """
    require_record(w, Quantized, argument="w")
    out = output_type(dtype)
    numbers = to_float(widen(x, argument="x", refused_by="PRD-2"))
    lead = _lead(numbers.shape, w.shape, "PRD-2")
    size, columns = w.shape
    weights = dequantize(w)
    rows = numbers.reshape(math.prod(lead), size)
    y = np.empty((len(rows), columns), output_dtype(out))
    for tile, _ in blocks.tiles(y.shape, (1, 1)):
        with on_tile(tile):
            chained = _chained(size, _elements(rows[tile[0]], weights[:, tile[1]]), y[tile].shape)
            y[tile] = narrowed(chained, out)
    if size == 0:
        note("PRD-9")
    return y.reshape(*lead, columns)


def _elements(x: F32, w: F32) -> Factors:
    """Column k of x [rows, K] and row k of w [K, columns]. Rule PRD-3."""
    return lambda k: (x[:, k, np.newaxis], w[k])


def _lead(x: tuple[int, ...], w: tuple[int, ...], rule_id: str) -> tuple[int, ...]:
    """The leading axes of x, where x is [..., K] and w is [K, N]; refused otherwise. Rules PRD-2, PRD-10."""
    if len(w) != 2:
        raise ShapeError(rule_id, f"w has shape {w}; allowed: rank 2, [K, N] (permute it first where it is [N, K])")
    if not x or x[-1] != w[0]:
        raise ShapeError(rule_id, f"x has shape {x}; allowed: [..., {w[0]}], its last size the first of w {w}")
    blocks.check_array_shape((*x[:-1], w[1]))
    return x[:-1]


@rule("PRD-4", "PRD-5", "PRD-6")
def _chained(count: int, factors: Factors, shape: tuple[int, ...]) -> F32:
    """Runs of 32 consecutive indices: an fma chain from +0 in each, the runs added from +0 in order. Rules PRD-4 to PRD-7."""
    total = np.zeros(shape, np.float32)
    for start in range(0, count, RUN):
        p = np.zeros(shape, np.float32)
        for index in range(start, min(start + RUN, count)):
            a, b = factors(index)
            p = fma(a, b, p)
        total = add(total, p)
    note("PRD-7", lambda: is_nan(to_bits(total)))
    return total


@rule("PRD-8", "PRD-10", "PRD-16", "PRD-17")
def product_codes(x: Quantized, w: Quantized, dtype: npt.DTypeLike | Output = "f32") -> npt.NDArray[Any]:
    """Quantized x [..., K] times quantized w [K, N], from codes: exact sums between the scales. Rules PRD-8, PRD-10 to PRD-17.

    Both are symmetric. K is cut where a block of either begins; each segment's sum of products of numbers is exact and
    rounded once, and meets the product of its two block scales in the chain of `product`. Returns f32, f16 or bf16 of shape
    [..., N]. Raises SchemeError, ShapeError, DtypeError.

    >>> from quantspec import quantize
    >>> x, w = (quantize(np.float32(n), "e2m1.native.b2-ue8m0") for n in ([6, 4], [[1, -2], [3, 6]]))
    >>> product_codes(x, w).tolist()
    [18.0, 12.0]
    """
    for argument, tensor in (("x", x), ("w", w)):
        require_record(tensor, Quantized, argument=argument)
        zeros_kept = tensor.codec.negative_zero == "keep"
        require_canonical(recipe=tensor.recipe, codec=CANONICAL_CODEC if zeros_kept else tensor.codec)
        _require_symmetric(tensor, argument)
    out = output_type(dtype)
    lead = _lead(x.shape, w.shape, "PRD-10")
    size, columns = w.shape
    left, right = Side.of(x), Side.of(transpose(w, 0, 1))
    segments = cuts(size, left.extent, right.extent)
    g = multiply(_tensor_scale(x), _tensor_scale(w))
    y = np.empty((math.prod(lead), columns), output_dtype(out))
    for tile, _ in blocks.tiles(y.shape, (1, 1)):
        with on_tile(tile):
            chained = _chained(len(segments), _factors(left, right, tile, segments), y[tile].shape)
            y[tile] = narrowed(multiply(g, chained), out)
    return y.reshape(*lead, columns)


@rule("PRD-11")
def _require_symmetric(tensor: Quantized, argument: str) -> None:
    """Refuse codes that are indices. Rule PRD-11."""
    if tensor.scheme.is_lookup:
        raise SchemeError(
            "PRD-11",
            f"{argument} is {tensor.scheme.text}; allowed: symmetric schemes (product takes lookup schemes too)",
        )


def _factors(x: Side, w: Side, tile: tuple[slice, ...], segments: list[tuple[int, int]]) -> Factors:
    """c and D of each segment: the product of its block scales, and its sum. Rules PRD-13, PRD-15."""
    rows, columns = tile

    def factors(j: int) -> tuple[F32, F32]:
        start, _ = segments[j]
        c = multiply(x.scale(rows, start)[:, np.newaxis], w.scale(columns, start))
        return c, segment_sum(x, w, rows, columns, segments[j])

    return factors


def _tensor_scale(tensor: Quantized) -> F32:
    """g: the decoded tensor scale, 1 without a tensor level. Rule PRD-17."""
    if tensor.tensor_scale_code is None or tensor.scheme.tensor is None:
        return np.ones((), np.float32)
    return decode_scale_codes(tensor.tensor_scale_code, tensor.scheme.tensor)
