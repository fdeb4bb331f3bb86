"""Hypothesis strategies for tests of others, weighted to where bits are decided: ties, steps of scales, subnormals, specials.

Everything shrinks to small: few elements, zeros, the first format named, a scale of 1.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from quantspec import NF4, SCALES, VALUES, Scheme
from quantspec import decode_scale as decode_scale_codes

from .elements import (
    HUGE,
    SPECIALS,
    SUBNORMALS,
    finest,
    legal_codes,
    midpoints,
    numbers,
    positive_scale_codes,
    scale_edges,
    scheme_of,
    special_patterns,
    stepped,
    value_edges,
)

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ImportError("quantspec_conformance.testing.strategies needs Hypothesis: pip install hypothesis") from None

__all__ = ["DTYPES", "KINDS", "blocks", "codes", "patterns", "scale_codes", "schemes", "shapes", "tensors"]

Shape = tuple[int, ...]
Array = npt.NDArray[Any]
#: Inputs of quantize and encode.
DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
#: dtype -> bits of a pattern.
_WIDTHS = {"f32": 32, "f16": 16, "bf16": 16, "f64": 64, "u8": 8, "u16": 16, "u32": 32, "i32": 32}
#: What a block is made of, the simplest first.
KINDS = ("zeros", "numbers", "ties", "steps", "tiny", "huge", "specials", "any")
#: How often each: ties and steps are what random numbers miss.
_WEIGHTED = ("zeros", "numbers", *["ties"] * 4, *["steps"] * 2, "tiny", "huge", *["specials"] * 2, "any")
#: Blocks of a tensor that are drawn one by one; the rest are zeros.
MOST_BLOCKS = 6
#: Elements of a block; a larger one is cut short, as at the end of a tensor.
LARGEST_BLOCK = 1024


def patterns(dtype: str) -> st.SearchStrategy[int]:
    """Patterns of a dtype (f32, f16, bf16, f64, u8, u16, u32, i32): ends of classes, powers of two, anything."""
    if dtype not in _WIDTHS:
        raise ValueError(f"dtype={dtype!r}; allowed: {', '.join(_WIDTHS)}")
    anything = st.integers(0, (1 << _WIDTHS[dtype]) - 1)
    if dtype not in ("f32", "f16", "bf16", "f64"):
        return anything
    special = special_patterns(dtype)
    near = st.builds(
        lambda pattern, by: max(pattern + by, 0) % (1 << _WIDTHS[dtype]), st.sampled_from(special), st.integers(-2, 2)
    )
    return st.one_of(st.sampled_from(special), near, anything)


def codes(scheme: Scheme | str) -> st.SearchStrategy[int]:
    """Legal code bytes of a scheme, of the text of one, or of a value format: edges half of the time; shrinks to 0."""
    row = scheme_of(scheme)
    return st.one_of(st.sampled_from(value_edges(row)), st.sampled_from(legal_codes(row)))


def scale_codes(scale: str, *, finite: bool = False) -> st.SearchStrategy[int]:
    """Legal codes of a scale type: edges, near 1, anything; shrinks to the scale 1. `finite`: positive numbers only."""
    if scale not in SCALES:
        raise ValueError(f"scale={scale!r}; allowed: {', '.join(SCALES)}")
    row = SCALES[scale]
    low, high = positive_scale_codes(scale)
    one, edges = row.bias << row.mantissa_bits, scale_edges(scale)
    if finite:
        edges = tuple(code for code in edges if low <= code <= high)
    else:
        low, high = 0, (1 << row.bits) - 1
    near = st.integers(-(2 << row.mantissa_bits), 2 << row.mantissa_bits).map(lambda by: min(max(one + by, low), high))
    return st.one_of(st.sampled_from(edges), near, st.integers(low, high))


def shapes(*, min_rank: int = 1, max_rank: int = 3, max_side: int = 9) -> st.SearchStrategy[Shape]:
    """Shapes of tensors, sizes of 0 among them; shrinks to one element."""
    side = st.integers(1, max_side)
    side = st.one_of(side, st.integers(min(max_side, 5), max_side), side, st.integers(0, max_side))
    return st.lists(side, min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def schemes(
    draw: st.DrawFn,
    *,
    rank: int = 2,
    values: Sequence[str] = tuple(VALUES),
    stores: Sequence[str] = ("native", "packed_native", "packed_u32"),
    scales: Sequence[str] = tuple(SCALES),
    levels: Sequence[str] = ("tensor", "block", "both"),
    lookup: bool = True,
) -> Scheme:
    """Schemes that tensors of a rank have, from the first value, store, scale and level on. `lookup`: NF4 is among them."""
    value = draw(st.sampled_from(values))
    level = draw(st.sampled_from(levels))
    store = draw(st.sampled_from(stores))
    if store != "native":
        store = f"{store}_{draw(st.integers(0, max(rank, 1) - 1))}"
    tensor = draw(st.sampled_from(scales)) if level in ("tensor", "both") else None
    block: Any = None
    if level in ("block", "both"):
        extent = st.one_of(st.integers(1, 4), st.sampled_from((16, 32)))
        block = (tuple(draw(st.lists(extent, max_size=min(rank, 5)))), draw(st.sampled_from(scales)))
    table = NF4 if lookup and value in ("q4f", "q4s") and draw(st.booleans()) else None
    mode = "symmetric" if table is None else "lookup"
    return Scheme(value, store, mode=mode, tensor=tensor, block=block, table=table)


@st.composite
def _block(draw: st.DrawFn, scheme: Scheme, size: int, unit: np.float32) -> npt.NDArray[np.uint32]:
    """Patterns of one block: its kind, the scale that it is made for, up to `size` elements that are not zero."""
    kind = draw(st.sampled_from(_WEIGHTED))
    block = np.zeros(size, np.uint32)
    if not size or kind == "zeros":
        return block
    least = min(size, 2) if kind == "ties" else 1
    places = draw(st.lists(st.integers(0, size - 1), min_size=least, max_size=min(size, 8), unique=True))
    row = finest(scheme)
    code = np.array([draw(scale_codes(row.name, finite=True))], row.code_dtype)
    with np.errstate(all="ignore"):
        scale = np.asarray(decode_scale_codes(code, row) * unit, np.float32)
        peak = np.asarray(scale * np.float32(scheme.half_range), np.float32).view(np.uint32)
    element = _element(scheme, kind, scale)
    block[places] = [draw(element) for _ in places]
    if kind in ("numbers", "ties", "steps"):  # the largest magnitude, which makes the scale that the rest was made for
        by = draw(st.sampled_from((0, 1, 1, -1, 2))) if kind == "steps" else 0
        block[places[0]] = int(stepped(peak, by)[0]) | draw(st.sampled_from((0, 0x80000000)))
    return block


def _element(scheme: Scheme, kind: str, scale: npt.NDArray[np.float32]) -> st.SearchStrategy[int]:
    """One element of a block of a kind."""
    zeros = st.sampled_from((0, 0x80000000))
    if kind == "specials":
        return st.one_of(st.sampled_from(SPECIALS), zeros, _scaled(numbers(scheme), scale))
    if kind == "tiny":
        return st.one_of(st.sampled_from(SUBNORMALS), zeros, st.integers(0, 1 << 24))
    if kind == "huge":
        return st.one_of(st.sampled_from(HUGE), zeros)
    if kind == "any":
        return patterns("f32")
    if kind == "ties":
        by = st.sampled_from((0, 0, -1, 1))
        middle = _scaled(midpoints(scheme), scale)
        return st.builds(lambda tie, step: int(stepped(np.array([tie], np.uint32), step)[0]), middle, by)
    return st.one_of(zeros, _scaled(numbers(scheme), scale))


def _scaled(grid: npt.NDArray[np.float32], scale: npt.NDArray[np.float32]) -> st.SearchStrategy[int]:
    """Numbers of a grid times a scale, those nearest to 0 first."""
    nearest = grid[np.argsort(np.abs(grid), kind="stable")]
    with np.errstate(all="ignore"):
        products = np.asarray(nearest * scale, np.float32).view(np.uint32)
    return st.sampled_from(products.tolist() or [0])


@st.composite
def _tensor(
    draw: st.DrawFn, scheme: st.SearchStrategy[Scheme], dtypes: Sequence[str], shape: st.SearchStrategy[Shape]
) -> Array:
    drawn, row = draw(shape), draw(scheme)
    rank = len(drawn)
    cut = row.block is not None and len(row.block.extents) <= rank
    extents = row.extents(rank) if cut else tuple(max(size, 1) for size in drawn)
    grid = tuple(-(-size // extent) for size, extent in zip(drawn, extents, strict=True))
    x = np.zeros(drawn, np.uint32)
    unit = np.float32(1)
    if prod(grid):
        both = row.block is not None and row.tensor is not None
        unit = np.float32(2.0 ** draw(st.integers(-20, 20))) if both else unit
        cells = draw(st.lists(st.integers(0, prod(grid) - 1), min_size=1, max_size=MOST_BLOCKS, unique=True))
        for cell in cells:
            index = np.unravel_index(cell, grid) if grid else ()
            part = tuple(slice(int(i) * e, (int(i) + 1) * e) for i, e in zip(index, extents, strict=True))
            x[part] = draw(_block(row, x[part].size, unit)).reshape(x[part].shape)
        if both and draw(st.sampled_from((False, True, True))):
            _anchor(x, row, unit)
    with np.errstate(all="ignore"):
        return np.asarray(x.view(np.float32).astype(DTYPES[draw(st.sampled_from(dtypes))]))


def _anchor(x: npt.NDArray[np.uint32], scheme: Scheme, unit: np.float32) -> None:
    """Make `unit` the tensor scale: the largest element is H * unit * the number that the largest block scale maps to. SCL-11."""
    flat = x.reshape(-1)
    with np.errstate(all="ignore"):
        top = np.float32(finest(scheme).block_top) * unit * np.float32(scheme.half_range)
    if np.isfinite(top) and top > 0:
        pattern = int(np.array([top], np.float32).view(np.uint32)[0])
        magnitude = flat & np.uint32(0x7FFFFFFF)
        flat[(magnitude > pattern) & (magnitude < 0x7F800000)] = 0
        flat[-1] = pattern


def tensors(
    scheme: Scheme | str | st.SearchStrategy[Scheme] | None = None,
    *,
    dtypes: Sequence[str] = ("f32",),
    shapes: st.SearchStrategy[Shape] | Shape | None = None,
) -> st.SearchStrategy[Array]:
    """Tensors to quantize: f32, f16 or bf16, with blocks of every kind (KINDS) as the scheme cuts them.

    `scheme`: what they will be quantized to, or a strategy of schemes; any unless given. `shapes`: a shape or a strategy.
    ValueError for a dtype that quantize does not take, refusals of the reference for a text that is no scheme.
    """
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"dtypes: {dtype!r}; allowed: {', '.join(DTYPES)}")
    chosen = (
        schemes() if scheme is None else scheme if isinstance(scheme, st.SearchStrategy) else st.just(scheme_of(scheme))
    )
    shape = _shapes(scheme) if shapes is None else st.just(shapes) if isinstance(shapes, tuple) else shapes
    return _tensor(chosen, dtypes, shape)


def _shapes(scheme: Scheme | str | st.SearchStrategy[Scheme] | None) -> st.SearchStrategy[Shape]:
    """Shapes that a scheme has: ranks that its blocks and its packed axis fit, sides around those of its blocks."""
    if scheme is None or isinstance(scheme, st.SearchStrategy):
        return shapes(min_rank=2, max_rank=3)
    row = scheme_of(scheme)
    least = max(0 if row.block is None else len(row.block.extents), row.store.d + 1 if row.store.d else 0, 1)
    largest = 1 if row.block is None else max(row.block.extents, default=1)
    return shapes(min_rank=least, max_rank=max(least, 3), max_side=9 if largest > 64 else max(9, largest + 3))


def blocks(fmt: Scheme | str, *, size: int | None = None) -> st.SearchStrategy[npt.NDArray[np.float32]]:
    """One block of binary32 numbers for a value format, a scheme or the text of one; `size` elements, else those of the
    scheme's block, else 1 to 32. Refusals of the reference for a text that names nothing."""
    row = scheme_of(fmt)
    sizes = st.integers(1, 32) if size is None else st.just(size)
    if size is None and row.block is not None:
        sizes = st.just(min(prod(row.block.extents), LARGEST_BLOCK))
    return sizes.flatmap(lambda count: _block(row, count, np.float32(1))).map(lambda block: block.view(np.float32))
