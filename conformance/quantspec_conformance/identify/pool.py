"""The pool: questions that tell ways apart, by family; further ones are drawn where some are still alike."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from quantspec.interpreter import Facts
from quantspec.scales import ScaleType
from quantspec.scales import decode_codes as decode_scale_codes
from quantspec.values import DECODED

from .layout import Array, Layout

__all__ = ["Pool", "element_pool", "random_pool", "scale_pool"]

NAN, MINUS_NAN, PLUS_INF, MINUS_INF = 0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000
_SIGN = np.uint32(0x80000000)
_LARGEST = 0x7F7FFFFF
_EXPONENTS = (-140, -126, -118, -60, -9, -1, 0, 1, 6, 17, 60, 120, 127)


@dataclass(slots=True)
class Pool:
    """Questions (count, blocks, size) as patterns, and the family of each."""

    bits: Array
    families: list[str]

    def joined(self, other: "Pool") -> "Pool":
        """These and others."""
        return Pool(np.concatenate([self.bits, other.bits]), [*self.families, *other.families])


@dataclass(slots=True)
class _Maker:
    """Blocks by family, joined to questions at the end."""

    layout: Layout
    random: np.random.Generator
    rows: list[Array]
    families: list[str]

    def add(self, family: str, numbers: Array, fill: str = "zeros") -> None:
        """A block for each pattern, which stands at a place of its own among zeros or smaller numbers."""
        for pattern in np.asarray(numbers, np.uint32).reshape(-1):
            row = np.zeros(self.layout.size, np.uint32)
            if fill == "smaller" and pattern & 0x7FFFFFFF < PLUS_INF:
                row = smaller(self.random, self.layout.size, int(pattern))
            row[self.random.integers(self.layout.size)] = pattern
            self.row(family, row)

    def row(self, family: str, row: Array) -> None:
        """One block."""
        self.rows.append(np.asarray(row, np.uint32))
        self.families.append(family)

    def pool(self) -> Pool:
        """The questions, one a block."""
        shape = (len(self.rows), 1, self.layout.size)
        return Pool(np.stack(self.rows).reshape(shape) if self.rows else np.zeros(shape, np.uint32), self.families)


def patterns(numbers: Any) -> Array:
    """binary32 patterns of numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(numbers, np.float32).reshape(-1).view(np.uint32).copy()


def beside(bits: Array, steps: tuple[int, ...] = (-1, 0, 1)) -> Array:
    """Patterns and those beside them, finite ones alone."""
    wide = (bits.astype(np.int64)[:, np.newaxis] + np.array(steps)).reshape(-1)
    return np.unique(wide[(wide >= 0) & (wide <= _LARGEST)]).astype(np.uint32)


def full(random: np.random.Generator, count: int, low: int = -8, high: int = 9) -> Array:
    """Random patterns of either sign, all bits of the significand drawn, exponents from low to below high."""
    exponent = random.integers(low, high, count) + 127
    sign = random.integers(0, 2, count).astype(np.uint32) << np.uint32(31)
    return np.asarray(
        sign | (exponent.astype(np.uint32) << np.uint32(23)) | random.integers(0, 2**23, count).astype(np.uint32)
    )


def smaller(random: np.random.Generator, count: int, pattern: int) -> Array:
    """Random patterns of magnitudes below that of a pattern."""
    drawn = random.integers(0, (int(pattern) & 0x7FFFFFFF) + 1, count)
    near = np.maximum(drawn, (int(pattern) & 0x7FFFFFFF) - random.integers(0, 6 << 23, count))
    return np.asarray(
        np.maximum(near, 0).astype(np.uint32) | (random.integers(0, 2, count).astype(np.uint32) << np.uint32(31))
    )


def _significands(facts: Facts) -> list[Fraction]:
    """Where rules for a power of two may change their mind, from 1 to below 2."""
    ends = [Fraction(1), Fraction(3, 2), Fraction(7, 4), Fraction(29, 16), facts.largest / Fraction(2) ** facts.emax]
    value = facts.value
    if not value.is_integer:
        ends.append(2 - Fraction(1, 1 << (value.mantissa_bits + 1)))
        step = Fraction(2) ** (facts.emax - value.mantissa_bits)
        ends.append((facts.largest + step / 2) / Fraction(2) ** facts.emax)
    return [end for end in dict.fromkeys(ends) if 1 <= end < 2]


def _scale_numbers(scale: ScaleType, random: np.random.Generator) -> Array:
    """Numbers of a scale type, ties between them, and the ends of the type."""
    top = scale.largest_code
    codes = np.unique(np.concatenate([random.integers(1, top, 6), [1, 2, 3, top - 1]])).astype(scale.code_dtype)
    low = decode_scale_codes(codes, scale).astype(np.float64)
    high = decode_scale_codes((codes + 1).astype(scale.code_dtype), scale).astype(np.float64)
    return np.concatenate([low, (low + high) / 2])


def amaxes(layout: Layout, facts: Facts, random: np.random.Generator, scale: ScaleType) -> dict[str, Array]:
    """Largest magnitudes by family: thresholds, ties of scales, tiny, huge."""
    found = {}
    ends = [float(end) for end in _significands(facts)]
    whole = [np.ldexp(ends, exponent) for exponent in _EXPONENTS]
    found["thresholds"] = beside(patterns(np.concatenate(whole)), (-1, 0, 1))
    ranges = {float(facts.half_range), float(facts.largest), float(2 ** (facts.value.bits - 1))}
    wanted = [_scale_numbers(scale, random) * number for number in ranges]
    found["scale ties"] = beside(patterns(np.concatenate(wanted)))
    tiny = [1, 2, 3, 0x7FFF, 0x7FFFFF, 0x800000, 0x800001, 0x1000000, 0x3000000, 0x6000000]
    found["tiny"] = np.array(tiny, np.uint32)
    found["huge"] = np.array(
        [_LARGEST, 0x7F7FFFFE, 0x7F400000, 0x7F000000, 0x7EFFFFFF, 0x7E000001, 0x7D000000], np.uint32
    )
    return found


def _thin(bits: Array, most: int, random: np.random.Generator) -> Array:
    return bits if len(bits) <= most else random.choice(bits, most, replace=False)


def scale_pool(layout: Layout, facts: Facts, scale: ScaleType, seed: int, *, few: bool) -> Pool:
    """Questions about scales: each family, lone and among smaller numbers, with specials and zeros."""
    random = np.random.default_rng(seed)
    maker = _Maker(layout, random, [], [])
    size, share = layout.size, 3 if few else 1
    zeros = np.zeros(size, np.uint32)
    maker.row("zero", zeros)
    maker.row("zero", zeros | _SIGN)
    maker.row("zero", np.where(np.arange(size) % 2, _SIGN, 0))
    for special in (NAN, MINUS_NAN, PLUS_INF, MINUS_INF):
        maker.add("NaN and Inf", np.array([special]))
        for pattern in full(random, 2):
            row = smaller(random, size, int(pattern))
            row[0] = pattern
            row[size // 2] = special
            maker.row("NaN and Inf", row)
    maker.row("NaN and Inf", np.where(np.arange(size) % 2, NAN, MINUS_INF))
    maker.row("NaN and Inf", np.where(np.arange(size) % 2, NAN, MINUS_NAN))
    one = patterns([1.0, -1.0])
    for first, second in (one, one[::-1]):
        row = zeros.copy()
        row[0], row[-1] = first, second
        maker.row("signs of amax", row)
    for family, listed in amaxes(layout, facts, random, scale).items():
        for pattern in _thin(listed, 60 // share, random):
            maker.add(family, np.array([pattern]), "zeros")
        for pattern in _thin(listed, 24 // share, random):
            maker.add(family, np.array([pattern]) | (_SIGN * random.integers(0, 2, dtype=np.uint32)), "smaller")
    for index in range(48 // share):
        base = (-8, -30, 20, -120, 100, 0)[index % 6]
        maker.row("full significands", full(random, size, base, base + 8))
    return _questions(maker.pool(), layout, random)


def _questions(pool: Pool, layout: Layout, random: np.random.Generator) -> Pool:
    """Blocks as questions: as they are, or each as the largest of a tensor, with others below it."""
    if layout.blocks == 1:
        return pool
    chosen = np.arange(len(pool.bits))
    bits = np.zeros((len(chosen), layout.blocks, layout.size), np.uint32)
    bits[:, 0] = pool.bits[chosen, 0]
    for place in range(1, layout.blocks):
        for row in range(len(chosen)):
            largest = int(np.max(np.where((bits[row, 0] & 0x7FFFFFFF) < PLUS_INF, bits[row, 0] & 0x7FFFFFFF, 0)))
            drop = (0, 1, 4, 6, 9, 13, 24)[place - 1] << 23
            top = max(largest - drop - int(random.integers(0, 2**23)), 0)
            line = smaller(random, layout.size, top)
            line[random.integers(layout.size)] = top
            bits[row, place] = line
    for row in range(0, len(chosen), 5):  # a block of zeros, or one that is not finite, in a tensor of numbers
        bits[row, 3] = 0 if row % 2 else _SIGN
    for row in range(3, len(chosen), 9):
        bits[row, 5, 0] = (NAN, PLUS_INF, MINUS_INF, MINUS_NAN)[row % 4]
    return Pool(bits, [pool.families[index] for index in chosen])


def ties_of(layout: Layout) -> Array:
    """Numbers of the value format, ties between neighbours, half the smallest and beyond the largest: all above 0."""
    scheme = layout.scheme
    if scheme.table is not None:
        listed = np.unique(np.asarray(scheme.table.entries, np.float64))
    else:
        listed = np.unique(DECODED[scheme.value.name].astype(np.float64))
        listed = listed[np.isfinite(listed)]
    if scheme.value.is_integer and scheme.table is None:
        listed = listed[(listed >= scheme.value.lowest - 1) & (listed <= scheme.value.highest)]
    middle = (listed[1:] + listed[:-1]) / 2
    least = np.min(np.abs(listed[listed != 0])) if (listed != 0).any() else 1.0
    top = np.max(np.abs(listed))
    return np.concatenate([np.repeat(middle, 3), listed, np.array([1, -1]) * least / 4, np.array([1, -1]) * top * 1.04])


def element_pool(layout: Layout, amax: Array, factor: Array, seed: int) -> Pool:
    """Questions about codes: blocks with a given largest number, filled with ties times `factor`, and numbers beside them.

    `amax` are patterns and `factor` numbers, both (count, blocks): x / factor is about the quotient.
    """
    random = np.random.default_rng(seed)
    count, blocks = amax.shape
    size = layout.size
    chosen = random.choice(ties_of(layout), (count, blocks, size))
    with np.errstate(all="ignore"):
        bits = (chosen * factor[..., np.newaxis]).astype(np.float32).view(np.uint32)
    step = random.choice([-2, -1, -1, 0, 0, 0, 1, 1, 2], bits.shape)
    magnitude = np.clip((bits & 0x7FFFFFFF).astype(np.int64) + np.where(bits & 0x7FFFFFFF, step, 0), 0, PLUS_INF)
    limit = (amax & 0x7FFFFFFF).astype(np.int64)[..., np.newaxis]
    fits = magnitude <= limit
    drawn = random.integers(0, 2**31, bits.shape) % (limit + 1)
    magnitude = np.where(fits, magnitude, drawn)
    bits = (magnitude.astype(np.uint32) | (bits & _SIGN)).astype(np.uint32)
    place = random.integers(0, size, (count, blocks))
    np.put_along_axis(bits, place[..., np.newaxis], amax[..., np.newaxis], axis=-1)
    if size > 2:
        other = (place + 1) % size
        np.put_along_axis(bits, other[..., np.newaxis], _SIGN, axis=-1)
    return Pool(bits, ["ties"] * count)


def random_pool(layout: Layout, count: int, seed: int) -> Pool:
    """Questions of random full significands, a hundred powers of two wide."""
    random = np.random.default_rng(seed)
    shape = (count, layout.blocks, layout.size)
    base = random.integers(-50, 50, (count, 1, 1))
    lower = random.integers(0, 8, (count, layout.blocks, 1))
    bits = full(random, int(np.prod(shape)), 0, 6).reshape(shape)
    moved = (bits.astype(np.int64) + ((base - lower) << 23)).astype(np.uint32)
    return Pool(moved, ["random"] * count)
