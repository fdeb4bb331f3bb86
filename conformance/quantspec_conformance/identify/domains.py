"""Domains: the edges of the numbers, where a way may be left out of account and named so, but nowhere else. Never a peer's name.

A domain is a fact of the question alone: which of its blocks have a NaN, are zeros, lie at the ends of the scale's type. Who
agrees with a way everywhere outside a few of them realises it *except* there; ordinary numbers are in none.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from types import MappingProxyType

import numpy as np

from quantspec.following import facts_of
from quantspec.scales import ScaleType

from .layout import Array, Layout

__all__ = ["DOMAINS", "MOST", "blocks_in", "subsets"]

INF = 0x7F800000
MOST = 3  #: domains that a verdict may leave out


def _magnitudes(bits: Array) -> Array:
    """Finite magnitudes of questions (count, blocks, size); 0 in the place of the others."""
    magnitude = bits & np.uint32(0x7FFFFFFF)
    finite = np.where(magnitude < INF, magnitude, np.uint32(0))
    return np.ascontiguousarray(finite).view(np.float32).astype(np.float64)


def _whole(layout: Layout, met: Array) -> Array:
    """A fact about elements as one about blocks: of the whole tensor, where that has a scale of its own."""
    axes = (1, 2) if layout.levels == 2 else (2,)
    found = np.asarray(met.any(axis=axes, keepdims=True))[..., 0]
    return np.broadcast_to(found, met.shape[:2])


def _least(scale: ScaleType) -> float:
    """The smallest number of a type that has all bits of its significand, at least binary32's."""
    return max(2.0 ** (1 - scale.bias), 2.0**-126)


def _spans(layout: Layout, bits: Array) -> list[tuple[Array, ScaleType]]:
    """What each level's scale is near, by the ratio of amax to the range: (count, blocks) and the type of the scale."""
    scheme, magnitude = layout.scheme, _magnitudes(bits)
    half = float(facts_of(scheme).half_range)
    block, whole = magnitude.max(axis=2), np.broadcast_to(magnitude.max(axis=(1, 2))[:, np.newaxis], bits.shape[:2])
    if scheme.block is None or scheme.tensor is None:
        scale = scheme.tensor if scheme.block is None else scheme.block.scale
        return [] if scale is None else [(block / half, scale)]
    share = np.where(whole > 0, block / np.where(whole > 0, whole, 1), 0)
    return [
        (whole / half / scheme.block.scale.block_top, scheme.tensor),
        (share * scheme.block.scale.block_top, scheme.block.scale),
    ]


def _nan(layout: Layout, bits: Array) -> Array:
    return _whole(layout, (bits & np.uint32(0x7FFFFFFF)) > INF)


def _inf(layout: Layout, bits: Array) -> Array:
    return _whole(layout, (bits & np.uint32(0x7FFFFFFF)) == INF)


def _zeros(layout: Layout, bits: Array) -> Array:
    return np.asarray((bits & np.uint32(0x7FFFFFFF) == 0).all(axis=2))


def _tiny(layout: Layout, bits: Array) -> Array:
    found = np.zeros(bits.shape[:2], bool)
    for ratio, scale in _spans(layout, bits):
        found |= (ratio > 0) & (ratio < _least(scale))
    return found


def _huge(layout: Layout, bits: Array) -> Array:
    found = np.broadcast_to(_magnitudes(bits).max(axis=(1, 2))[:, np.newaxis] >= 2.0**127, bits.shape[:2]).copy()
    for ratio, scale in _spans(layout, bits)[:1]:
        found |= ratio > float(scale.largest)
    return found


#: Name -> which blocks of questions are in it, (count, blocks), and what it is.
DOMAINS: Mapping[str, tuple[Callable[[Layout, Array], Array], str]] = MappingProxyType(
    {
        "NaN": (_nan, "a NaN in the block, or in the tensor where that has a scale"),
        "Inf": (_inf, "an infinity in the block, or in the tensor where that has a scale"),
        "zeros": (_zeros, "nothing but zeros in the block"),
        "tiny": (_tiny, "a scale below the normal numbers of its type or of binary32"),
        "huge": (_huge, "a scale above its type, or amax from 2^127 on"),
    }
)


def blocks_in(names: tuple[str, ...], layout: Layout, bits: Array) -> Array:
    """Blocks that are in one of the domains, (count, blocks)."""
    found = np.zeros(bits.shape[:2], bool)
    for name in names:
        found |= DOMAINS[name][0](layout, bits)
    return found


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Sets of one to MOST of some names, the smaller ones first."""
    return [chosen for size in range(1, MOST + 1) for chosen in combinations(names, size)]
