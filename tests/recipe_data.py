"""Data for recipes: blocks whose amax stands where a scale turns, with elements where a code turns.

`aimed` asks the oracle for the scales of a skeleton, blocks of one peak each, and puts the other elements beside the
ties of the format under the number that the recipe's own decoding gives for 1. Everything is a function of its
arguments.
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from . import oracle, oracle_recipes
from . import strategies as g
from .oracle import INF32, NAN32, SIGN32, S, multiply32
from .oracle_codecs import CANONICAL, C
from .oracle_recipes import R

WIDTH = 8
#: Mantissas at which some rule for a power of two turns.
MANTISSAS = (*tuple(Fraction(m) for m in ("1", "1.5", "1.75", "1.8125", "1.875", "1.9375")), 2 - Fraction(1, 2**23))
EXPONENTS = (-149, -127, -126, -125, -123, -119, -112, 0, 126, 127)
EDGES = tuple(g.bits(n) for n in ("0", "1", "0.1", "127", "8", "1e-38", "1e-42", "65504", "3.4028234e38"))


def power_peaks() -> list[int]:
    """amax at and beside every threshold of POL-7 over the exponents at which something is clamped or subnormal."""
    found = [oracle.rn32(m * oracle.power2(e)) for e in EXPONENTS for m in MANTISSAS]
    return sorted(set(g.around([p for p in found if p < INF32])))


def scale_peaks(kind: str, factors: Sequence[Fraction], count: int, seed: int) -> list[int]:
    """amax that lands on numbers of a scale type and on their midpoints, times a factor, and beside them."""
    source = random.Random(seed)
    scales = g.positive_scales(kind)
    picked = [*scales[:4], *scales[-4:], *(source.choice(scales) for _ in range(count))]
    exact = [oracle.value(p) for p in picked]
    exact += [
        (a + oracle.value(g.stepped(p, 1))) / 2 if kind == "f32" else a * Fraction(17, 16)
        for a, p in zip(exact, picked, strict=True)
    ]
    places = [oracle.rn32(a * f) for a in exact for f in factors]
    return sorted(set(g.around([p for p in places if p < INF32])))


def ue4m3_midpoints() -> list[Fraction]:
    numbers = [oracle.value(p) for p in (0, *g.positive_scales("ue4m3"))]
    return [*(number for number in numbers if number), *((a + b) / 2 for a, b in itertools.pairwise(numbers))]


def filled(peaks: Sequence[int], s: S, r: R, codec: C, seed: int) -> list[list[int]]:
    """Rows with the peaks and, beside ties under each block's scale, whatever stays below the peak."""
    source = random.Random(seed)
    skeleton = [p for peak in peaks for p in (peak, *[0] * (WIDTH - 1))]
    shape = (len(peaks), WIDTH)
    middles = g.midpoints(s.value, s.table) or (0,)
    rows = []
    q = oracle_recipes.quantize(skeleton, shape, s, replace(r, refuse=()), codec)  # what is refused is drawn too
    for cell, peak in enumerate(peaks):
        names = oracle_recipes.scale_names(q, s, cell if s.block is not None else 0)
        one = oracle_recipes.run(r.stages["decode"], {**names, "v": oracle_recipes.ONE}, s)
        row = [peak ^ (source.getrandbits(1) << 31)]
        while len(row) < WIDTH:
            x = multiply32(one, source.choice(middles))
            x = g.stepped(x, source.choice((0, 0, 1, -1, 2, -2))) if oracle.is_finite(x) else source.choice((0, SIGN32))
            row.append(x if x & 0x7FFFFFFF <= peak else source.choice((0, SIGN32, peak, peak | SIGN32)))
        source.shuffle(row)
        rows.append(row)
    return rows


def with_specials(rows: Sequence[Sequence[int]], seed: int) -> list[list[int]]:
    """The same rows with a NaN, an infinity or both among the elements; and rows of nothing else."""
    source = random.Random(seed)
    specials = (NAN32, NAN32 | SIGN32, 0x7F800001, INF32, INF32 | SIGN32)
    found = []
    for row in rows:
        changed = list(row)
        for i in source.sample(range(WIDTH), source.choice((1, 1, 2))):
            changed[i] = source.choice(specials)
        found.append(changed)
    return [*found, [NAN32] * WIDTH, [INF32] * WIDTH, [0] * WIDTH, [SIGN32] * WIDTH, [1, *[0] * (WIDTH - 1)]]


def one_level(r: R, s: S, codec: C = CANONICAL) -> list[list[int]]:
    """Blocks for a scheme with one level."""
    kind = s.block_type or s.tensor or "f32"
    factors = (oracle.H(s.value, s.table), oracle_recipes.largest(s))
    peaks = power_peaks() if kind == "ue8m0" else scale_peaks(kind, factors, 5, 5)
    rows = filled([*EDGES, *peaks], s, r, codec, 7)
    return [*rows, *with_specials(rows[::9], 8), *(list(row) for row in g.Rows(s, 9, WIDTH).rows(30))]


def two_levels(r: R, s: S, codec: C = CANONICAL) -> list[list[list[int]]]:
    """Tensors for a scheme with two: block scales on numbers of ue4m3 and on ties under the tensor's own scale."""
    source = random.Random(11)
    tensors = []
    for whole in (*EDGES, g.bits("4.875"), g.bits("2688"), g.bits("0.7"), oracle.rn32(oracle.power2(-130))):
        peaks = [whole, 0, 1, g.stepped(whole, -1), multiply32(whole, g.bits("1e-6"))]
        share = oracle.value(whole) / 448
        peaks += [
            g.stepped(oracle.rn32(m * share), source.choice((-1, 0, 1))) for m in source.sample(ue4m3_midpoints(), 20)
        ]
        peaks = [min(p & 0x7FFFFFFF, whole) for p in peaks]
        rows = filled(peaks, s, r, codec, 12)
        tensors.append(rows)
        tensors.append([*rows[:3], *with_specials(rows[3:6], source.randrange(99))])
    return tensors
