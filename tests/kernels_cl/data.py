"""Numbers that decide: ties, neighbours of thresholds, subnormals, specials, ends of the range. Patterns, not floats."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec as qs

Bits = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

SPECIAL = np.array(
    [
        *(0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF),
        *(0x01000000, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40200000),
        *(0x7E800000, 0x7E800001, 0x7EFFFFFF, 0x7F000000, 0x7F3FFFFF, 0x7F400000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000),
        *(0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FC12345, 0x7FFFFFFF),
    ],
    np.uint32,
)
SPECIAL = np.concatenate([SPECIAL, SPECIAL | np.uint32(0x80000000)])
HALVES = np.arange(1 << 16, dtype=np.uint16)


def floats(bits: npt.NDArray[Any]) -> F32:
    """Patterns as numbers."""
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)


def f32(*bits: int) -> F32:
    """Numbers of these patterns."""
    return floats(np.array(bits, np.uint32))


def patterns(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as patterns."""
    return np.ascontiguousarray(array).reshape(array.shape).view(f"u{array.dtype.itemsize}")


def neighbours(bits: npt.NDArray[Any], reach: int = 2) -> Bits:
    """Each magnitude and those next to it, with both signs."""
    magnitudes = np.unique(np.asarray(bits, np.int64) & 0x7FFFFFFF)
    near = np.unique(np.clip(magnitudes[:, None] + np.arange(-reach, reach + 1), 0, 0x7FFFFFFF)).astype(np.uint32)
    return np.concatenate([near, near | np.uint32(0x80000000)])


def midpoints(value: str, table: qs.Table | None = None) -> F32:
    """Numbers midway between neighbouring values of a format, and the values: where encode decides."""
    if table is not None:
        numbers = np.unique(table.entries.astype(np.float64))
    else:
        codes = np.arange(256, dtype=np.uint8)
        row = qs.VALUES[value]
        kept = codes[(codes.view(np.int8) >= -(1 << row.bits - 1)) & (codes.view(np.int8) < 1 << row.bits - 1)]
        codes = kept if row.is_integer else codes[codes <= row.mask]
        numbers = qs.decode(codes, value).astype(np.float64)
        numbers = np.unique(numbers[np.isfinite(numbers)])
    return np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2]).astype(np.float32)


def numbers(seed: int, shape: Sequence[int]) -> F32:
    """A tensor whose blocks differ in kind: any pattern, Gaussian, tiny, huge, few bits, specials, zeros."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape, dtype=np.int64))
    kinds = np.repeat(rng.integers(0, 8, size // 8 + 1), 8)[:size]
    gaussian = rng.standard_normal(size).astype(np.float32)
    exponent = rng.integers(1, 255, size, dtype=np.uint32) << np.uint32(23)
    candidates = [
        rng.integers(0, 1 << 32, size, dtype=np.uint32),
        patterns(gaussian),
        patterns(gaussian) & np.uint32(0x807FFFFF),
        (patterns(gaussian) & np.uint32(0x80FFFFFF)) | np.uint32(0x7E000000),
        exponent | (rng.integers(0, 16, size, dtype=np.uint32) << np.uint32(19)),
        rng.choice(SPECIAL, size),
        np.zeros(size, np.uint32),
        patterns(np.round(gaussian * np.float32(8)) / np.float32(2)),
    ]
    return floats(np.choose(kinds, candidates)).reshape(tuple(shape))


def ties(scheme: qs.Scheme, scale: float, seed: int, size: int) -> F32:
    """Products of a scale with the numbers where encode decides, and their neighbours: near every tie of x / scale."""
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore", under="ignore"):
        exact = midpoints(scheme.value.name, scheme.table).astype(np.float64) * scale
        near = neighbours(patterns(exact.astype(np.float32)), 1)
    return floats(rng.choice(near, size))
