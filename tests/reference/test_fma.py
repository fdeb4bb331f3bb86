"""The fused multiply-add against exact rationals: draws that sit on ties, cancel, underflow and overflow."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quantspec.fma import fma

Bits = npt.NDArray[np.int64]
QNAN = 0x7FC00000
EDGES = (0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x1A000000, 0x33800000, 0x3F7FFFFF,
         0x3F800000, 0x3F800001, 0x3F800800, 0x4B7FFFFF, 0x4B800000, 0x5F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001)  # fmt: skip


def nearest(exact: Fraction) -> int:
    """The binary32 pattern of a rational that is not zero: nearest, ties to even."""
    sign, m = (0x80000000, -exact) if exact < 0 else (0, exact)
    e = m.numerator.bit_length() - m.denominator.bit_length()
    e -= m < Fraction(2) ** e
    unit = Fraction(2) ** (max(e, -126) - 23)
    n = round(m / unit)  # Python rounds a Fraction half to even
    if n * unit >= Fraction(2) ** 128:
        return sign | 0x7F800000
    return sign | (int(n) if e < -126 else ((e + 126) << 23) + int(n))


def expected(a: int, b: int, c: int) -> int:
    x, y, z = (np.array([p], np.uint32).view(np.float32)[0] for p in (a, b, c))
    wide = np.float64(x) * np.float64(y) + np.float64(z)
    if np.isnan(wide):
        return QNAN
    if np.isinf(wide):
        return 0xFF800000 if wide < 0 else 0x7F800000
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        negative = (a ^ b) & c & 0x80000000 and not (x * y and z)
        return 0x80000000 if negative else 0
    return nearest(exact)


def check(a: Bits, b: Bits, c: Bits, function: Callable[..., Any] = fma) -> None:
    got = function(*(n.astype(np.uint32).view(np.float32) for n in (a, b, c))).view(np.uint32)
    with np.errstate(all="ignore"):
        for p, q, r, found in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist(), strict=True):
            assert found == expected(p, q, r), f"fma({p:08X}, {q:08X}, {r:08X}) = {found:08X}"


def test_every_triple_of_edges_with_every_sign() -> None:
    signed = np.array([edge | sign for edge in EDGES for sign in (0, 0x80000000)], np.int64)
    a, b, c = (grid.reshape(-1) for grid in np.meshgrid(signed, signed, signed, indexing="ij"))
    check(a, b, c)


def draws(kind: str, count: int) -> tuple[Bits, Bits, Bits]:
    rng = np.random.default_rng(sum(kind.encode()))
    bits = rng.integers(0, 2**32, (3, count))
    short = bits & 0xFFFFF800 if kind == "ties" else bits  # 13 significant bits: products of 25 or 26, many midway
    low, high = {
        "any bits": (0, 255),
        "ties": (120, 134),
        "cancel": (110, 140),
        "subnormal": (0, 70),
        "overflow": (180, 254),
    }[kind]
    a, b, c = (short & 0x807FFFFF) | (rng.integers(low, high + 1, (3, count)) << 23)
    if kind == "subnormal":  # the product near 2^-149, the addend a small subnormal
        b = (b & 0x807FFFFF) | (np.clip(103 - (a >> 23 & 0xFF) + rng.integers(-30, 30, count), 1, 254) << 23)
        c = bits[2] & 0x8000000F
        a, b = a & 0xFFFFF800, b & 0xFFFFF800
    if kind == "overflow":
        b = (b & 0x807FFFFF) | (np.clip(382 - (a >> 23 & 0xFF) + rng.integers(-2, 1, count), 1, 254) << 23)
        c = (c & 0x807FFFFF) | (rng.integers(225, 255, count) << 23)
    if kind == "cancel":  # c is the rounded product with its sign turned, sometimes a unit off
        product = (a.astype(np.uint32).view(np.float32) * b.astype(np.uint32).view(np.float32)).view(np.uint32)
        c = ((product.astype(np.int64) ^ 0x80000000) + rng.integers(-1, 2, count)) & 0xFFFFFFFF
    if kind == "ties":  # the addend half a unit, or a hair more or less, in the last place of the product
        product = (a.astype(np.uint32).view(np.float32) * b.astype(np.uint32).view(np.float32)).view(np.uint32)
        exponent = (product.astype(np.int64) >> 23 & 0xFF) + rng.integers(-80, 10, count)
        c = (bits[2] & 0x80000003) | (np.clip(exponent, 1, 254) << 23)
    return a, b, c


@pytest.mark.parametrize("kind", ["any bits", "ties", "cancel", "subnormal", "overflow"])
def test_draws_against_rationals(kind: str) -> None:
    a, b, c = draws(kind, 20000)
    check(a, b, c)


def separate(x: Any, y: Any, z: Any) -> Any:
    return x * y + z


def twice(x: Any, y: Any, z: Any) -> Any:
    """Through binary64 without rounding to odd."""
    return (x.astype(np.float64) * y + z).astype(np.float32)


@pytest.mark.parametrize(
    ("liar", "kind"), [(separate, "ties"), (separate, "cancel"), (separate, "subnormal"), (twice, "ties")]
)
def test_the_draws_see_a_liar(liar: Callable[..., Any], kind: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="fma"):
        check(*draws(kind, 20000), liar)
