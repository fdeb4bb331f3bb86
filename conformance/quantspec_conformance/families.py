"""Shapes and data families: the rows that every scheme meets.

A family is a function (draws, shape, scheme) -> array of f32, f16 or bf16. Wide families need many elements to say
something; the others also make sense on a single one. Numbers are made of integers and of operations that IEEE 754 fixes:
another machine draws the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import SCALES, ScaleType, Scheme
from quantspec.blocks import amax, spread
from quantspec.quantize import effective_scale
from quantspec.values import extend

from .draws import Draws, Source

__all__ = ["FAMILIES", "SHAPES", "Family", "draw_codes", "draw_scale_codes"]

Shape = tuple[int, ...]
Numbers = npt.NDArray[Any]
F32 = npt.NDArray[np.float32]
Draw = Callable[[Draws, Shape, Scheme], Numbers]

#: Ranks 0 to 4; odd lengths, partial words and blocks, several words a line along each axis that can be packed, empty.
SHAPES: tuple[Shape, ...] = (
    (), (0,), (1,), (37,), (259,),
    (5, 0), (3, 70), (33, 5),
    (3, 0, 4), (2, 3, 35), (2, 37, 3), (34, 3, 5),
    (1, 1, 1, 1), (2, 3, 5, 19), (2, 35, 2, 3),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of data: a name, what it hunts, how it is made, and whether it needs many elements."""

    name: str
    hunts: str
    draw: Draw
    wide: bool = True

    def make(self, source: Source, shape: Shape, scheme: Scheme) -> Numbers:
        """Its data of a shape for a scheme."""
        return self.draw(Draws.of(source), shape, scheme)


def _bits(patterns: npt.ArrayLike) -> F32:
    return np.asarray(patterns, np.uint32).view(np.float32)


def _patterns(rng: Draws, shape: Shape, low: int = 0, high: int = 2**32) -> npt.NDArray[np.uint32]:
    return np.asarray(rng.integers(low, high, shape, np.uint32), np.uint32)


def _signed(rng: Draws, magnitude: npt.NDArray[np.uint32]) -> F32:
    return _bits(magnitude | (rng.integers(0, 2, magnitude.shape, np.uint32) << np.uint32(31)))


def _sprinkle(rng: Draws, x: F32, patterns: npt.NDArray[np.uint32], share: float) -> F32:
    """x with some of its elements, at least one, replaced by patterns drawn from a list."""
    where = rng.random(x.shape) < share
    where.reshape(-1)[rng.integers(0, x.size)] = True
    return np.where(where, _bits(rng.choice(patterns, x.shape)), x)


def _normal(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """Gaussian numbers of one magnitude a tensor, drawn over 12 binades."""
    scale = _bits(rng.integers(121 << 23, 133 << 23, (), np.uint32))
    return np.asarray(rng.normal(shape) * scale, np.float32)


def _heavy(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """Exponents of deviation 12 about that of 1, any mantissa."""
    exponent = np.asarray(127 + ((17 * rng.sums(shape)) >> 21), np.uint32)
    return _signed(rng, (exponent << np.uint32(23)) | _patterns(rng, shape, 0, 1 << 23))


def _effective(x: F32, scheme: Scheme) -> F32:
    """The scale that each element of x meets under the reference."""
    q = quantspec.quantize(x, scheme)
    s = effective_scale(scheme, q.scale_codes, q.tensor_scale_code)
    return s if scheme.block is None else spread(s, x.shape, scheme.extents(x.ndim))


def _ties(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """Half steps of the code grid times the scale in force, a third each exact, one pattern below, one above.

    The largest element of each block stays, so that the scale that the ties were made for is the one that is chosen;
    with one level it goes too where the scale survives that.
    """
    x = _normal(rng, shape, scheme)
    s = _effective(x, scheme)
    grid = np.unique(_numbers(scheme))
    middle = ((grid[1:].astype(np.float64) + grid[:-1]) / 2).astype(np.float32)
    with np.errstate(all="ignore"):
        tied = np.asarray(s * rng.choice(middle, shape), np.float32)
    nudged = _bits(tied.view(np.uint32) + rng.integers(-1, 2, shape).astype(np.uint32))
    nudged = np.where(np.isfinite(tied) & (tied != 0), nudged, x)
    largest = _largest(x, scheme)
    kept = np.where((np.abs(x) < largest) & (np.abs(nudged) <= largest), nudged, x)
    if scheme.block is None or scheme.tensor is not None:
        return kept
    return np.where(_effective(nudged, scheme) == s, nudged, kept)


def _numbers(scheme: Scheme) -> F32:
    """Every finite number that a code of the scheme stands for."""
    numbers = quantspec.decode(legal_codes(scheme), scheme.value, table=scheme.table)
    return numbers[np.isfinite(numbers)]


def _largest(x: F32, scheme: Scheme) -> F32:
    """The largest magnitude of each element's block, or of the tensor."""
    if scheme.block is None:
        return np.full(x.shape, np.max(np.abs(x), initial=0), np.float32)
    extents = scheme.extents(x.ndim)
    return spread(amax(x.view(np.uint32), extents), x.shape, extents).view(np.float32)


def _scale_steps(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """Largest magnitudes at H times a representable scale, exact or one pattern beside: where scales round up.

    With two levels the scale is a representable block scale times the tensor scale that the largest element fixes.
    """
    row = _finest(scheme)
    scale = np.abs(quantspec.decode_scale(draw_scale_codes(rng, row, shape, finite=True), row))
    x, top = np.zeros(shape, np.float32), np.float32(np.inf)
    if scheme.block is not None and scheme.tensor is not None:
        x = _heavy(rng, shape, scheme)
        code = quantspec.quantize(x, scheme).tensor_scale_code
        g, top = quantspec.decode_scale(np.asarray(code), scheme.tensor), np.max(np.abs(x), initial=np.float32(0))
    else:
        g = np.ones((), np.float32)
    with np.errstate(all="ignore"):
        edge = np.asarray(scale * g * np.float32(scheme.half_range), np.float32).view(np.uint32)
    edge = np.clip(edge.astype(np.int64) + rng.integers(-1, 2, shape), 0, 0x7F7FFFFF).astype(np.uint32)
    if scheme.block is None:  # one scale: one edge, the rest below it
        largest = edge.reshape(-1)[0]
        edge = np.where(np.arange(edge.size).reshape(shape) == 0, edge, (rng.random(shape) * largest).astype(np.uint32))
    return np.where(_bits(edge) < top, _signed(rng, edge), x)


def _finest(scheme: Scheme) -> ScaleType:
    """The scale type that the block, or else the tensor, stores."""
    row = scheme.tensor if scheme.block is None else scheme.block.scale
    return SCALES["f32"] if row is None else row


def _exponents(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """Zeros beside magnitudes of one exponent a run of 16, over the whole range of exponents."""
    runs = np.arange(int(np.prod(shape, dtype=int))).reshape(shape) // 16
    exponent = rng.integers(0, 255, (int(runs.max(initial=0)) + 1,))[runs].astype(np.uint32)
    near = np.where(exponent > 4, exponent - rng.integers(0, 4, shape).astype(np.uint32), exponent)
    x = _signed(rng, (near << np.uint32(23)) | _patterns(rng, shape, 0, 1 << 23))
    return np.where(rng.random(shape) < 0.3, np.float32(0), x)


def _one_subnormal(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    x = np.zeros(shape, np.uint32)
    x.reshape(-1)[rng.integers(0, x.size)] = rng.choice(np.array([1, 2, 3, 0x7FFFFF, 0x400000, 0x12345], np.uint32))
    return _bits(x) if rng.random() < 0.5 else _bits(np.where(x > 0, x | np.uint32(0x80000000), x))


def _negative_zero(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    x = _sprinkle(rng, _normal(rng, shape, scheme), np.array([0x80000000], np.uint32), 0.5)
    return np.where(rng.random(shape) < 0.1, np.float32(0), x)


NANS = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFABCDEF], np.uint32)
INFS = np.array([0x7F800000, 0xFF800000], np.uint32)


def _nan(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    return _sprinkle(rng, _normal(rng, shape, scheme), NANS, 0.2)


def _inf(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    return _sprinkle(rng, _normal(rng, shape, scheme), INFS, 0.2)


def _non_finite(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    return _bits(rng.choice(np.concatenate([NANS, INFS]), shape))


def _largest_float(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    magnitude = rng.choice(np.array([0x7F7FFFFF, 0x7F7FFFFE, 0x7F000000, 0x7EFFFFFF, 0x7F400000], np.uint32), shape)
    return _signed(rng, np.asarray(magnitude, np.uint32))


def _tiny(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """Numbers below 2^-120, subnormals too, a magnitude a tensor: where the floor and the lost scales are."""
    top = int(rng.choice([2, 200, 1 << 16, 1 << 22, 1 << 24, 7 << 23]))
    return _signed(rng, _patterns(rng, shape, 0, top))


def _next_above(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    """H * 2^-127, the patterns beside it, and zeros: the step from code 0 to code 1 of ue8m0.

    The quotient by H has fewer bits down there: it takes up to three patterns above to round above 2^-127.
    """
    step = np.asarray(np.float32(scheme.half_range) * _bits(0x00400000), np.float32).view(np.uint32)
    near = (step + np.arange(-1, 4)).astype(np.uint32)
    beside = np.asarray(rng.choice(np.concatenate([near, np.zeros(2, np.uint32)]), shape), np.uint32)
    if beside.size:
        beside.reshape(-1)[rng.integers(0, beside.size)] = rng.choice(near[2:])
    return _signed(rng, beside)


def _half(rng: Draws, shape: Shape, scheme: Scheme) -> Numbers:
    """binary16 input: half of the patterns anything at all, half of them ordinary numbers."""
    anything = rng.integers(0, 1 << 16, shape, np.uint16).view(np.float16)
    return np.where(rng.random(shape) < 0.5, anything, rng.normal(shape).astype(np.float16))


def _brain(rng: Draws, shape: Shape, scheme: Scheme) -> Numbers:
    """bfloat16 input, likewise."""
    anything = rng.integers(0, 1 << 16, shape, np.uint16)
    ordinary = rng.normal(shape).astype(ml_dtypes.bfloat16).view(np.uint16)
    return np.asarray(np.where(rng.random(shape) < 0.5, anything, ordinary), np.uint16).view(ml_dtypes.bfloat16)


def _zero(rng: Draws, shape: Shape, scheme: Scheme) -> F32:
    return np.zeros(shape, np.float32)


#: Every family, in the order of a scheme's cases.
FAMILIES = {
    row.name: row
    for row in (
        Family("normal", "the ordinary case", _normal),
        Family("ties", "tie rule, reciprocals, double rounding", _ties),
        Family("scale-steps", "scales that are not rounded up, off by one at an edge", _scale_steps),
        Family("exponents", "wrap-around of zeros, shifts beyond the word", _exponents),
        Family("negative-zero", "the sign of zero", _negative_zero),
        Family("nan", "NaN in amax, the sign and payload of a NaN", _nan),
        Family("inf", "Inf in amax, saturation", _inf),
        Family("tiny", "flush to zero, scales lost to zero, the floor of g", _tiny),
        Family("heavy", "codes and scales over their whole range", _heavy),
        Family("f16", "widening of binary16", _half),
        Family("bf16", "widening of bfloat16", _brain),
        Family("non-finite", "blocks without a finite element", _non_finite, wide=False),
        Family("flt-max", "saturated scales, overflow", _largest_float, wide=False),
        Family("next-above", "code 0 and 1 of ue8m0", _next_above, wide=False),
        Family("one-subnormal", "a scale of 2^-149", _one_subnormal, wide=False),
        Family("zero", "a zero scale", _zero, wide=False),
    )
}


def legal_codes(scheme: Scheme) -> npt.NDArray[np.uint8]:
    """Every code byte that the scheme's elements may hold."""
    fields = np.arange(1 << scheme.value.bits, dtype=np.uint8)
    return extend(fields, scheme.value, lookup=scheme.is_lookup)


def draw_codes(source: Source, scheme: Scheme, shape: Shape) -> npt.NDArray[np.uint8]:
    """Codes drawn over all legal ones: NaN, Inf, -0 and the codes below a q*s range are among them."""
    return np.asarray(Draws.of(source).choice(legal_codes(scheme), shape), np.uint8)


def draw_scale_codes(source: Source, row: ScaleType, shape: Shape, *, finite: bool = False) -> Numbers:
    """Scale codes drawn over all legal ones: half uniform over the patterns, a third near 1, the rest special.

    `finite` leaves out signs, NaN and Inf.
    """
    rng = Draws.of(source)
    top = row.largest_code + 1 if finite else 1 << row.bits
    anything = rng.integers(0, top, shape, np.uint64)
    one = row.bias << row.mantissa_bits
    near = rng.integers(one - (3 << row.mantissa_bits), one + (4 << row.mantissa_bits), shape, np.uint64)
    special = [0, 1, row.largest_code]
    if not finite:
        special += [row.nan_code, row.first_nan_code, row.sign_bit, row.sign_bit | row.largest_code, row.sign_bit | one]
        special += [] if row.infinity_code is None else [row.infinity_code, row.sign_bit | row.infinity_code]
    kind = rng.random(shape)
    drawn = np.where(kind < 0.5, anything, near)
    drawn = np.where(kind > 0.85, rng.choice(np.array(special, np.uint64), shape), drawn)
    return np.asarray(drawn, np.uint64).astype(row.code_dtype)
