"""Constructed data and Hypothesis strategies for tests against the oracle.

Numbers are binary32 patterns throughout. Constructed rows aim at what random data misses: ties, the edges of every
scale type, subnormals, non-finite inputs, tensors of zeros. Everything here is a function of its arguments and seed.
"""

import itertools
import math
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from . import oracle
from .oracle import INF32, MAX32, SIGN32, Q, S, Shape, multiply32, rn32

#: Every property test starts here. With CI set, Hypothesis derandomizes; elsewhere a failure prints its blob.
PROPERTY = settings(
    deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

VALUES = tuple(oracle.BITS)
SCALE_TYPES = tuple(oracle.SCALE_BYTES)
OUTPUTS = ("f32", "f16", "bf16")
ONE = 0x3F800000

#: Zeros, the ends of the subnormals, of the normals and of the finite numbers, infinities, NaNs of both signs, quiet
#: and signalling, with payloads.
SPECIAL = tuple(
    sign | magnitude
    for sign in (0, SIGN32)
    for magnitude in (0, 1, 2, 0x7FFFFF, 0x800000, ONE, 0x7F7FFFFE, MAX32, INF32, 0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7FABCDEF)
)  # fmt: skip


# ---------------------------------------------------------------- numbers


def bits(number: str | float | Fraction) -> int:
    """Pattern of the binary32 number nearest to a decimal text or a rational; a float must be exact."""
    return rn32(Fraction(number))


def stepped(pattern: int, by: int) -> int:
    """The `by`-th binary32 number above (below) a finite one; the zeros count as one number, +0; stops at +-FLT_MAX."""
    key = pattern if pattern < SIGN32 else -(pattern ^ SIGN32)
    key = max(-MAX32, min(MAX32, key + by))
    return key if key >= 0 else -key | SIGN32


def around(patterns: Sequence[int], reach: int = 1) -> list[int]:
    """Each pattern and its neighbours up to `reach` steps away."""
    return [p if by == 0 else stepped(p, by) for p in patterns for by in range(-reach, reach + 1)]


def with_midpoints(numbers: Sequence[Fraction]) -> list[int]:
    """Patterns of ascending exact numbers and of the midpoints between neighbours."""
    middles = [(low + high) / 2 for low, high in itertools.pairwise(numbers)]
    return [rn32(number) for number in (*numbers, *middles)]


POWERS = tuple(rn32(Fraction(2) ** e) for e in range(-149, 128))


def random_patterns(seed: int, count: int) -> list[int]:
    source = random.Random(seed)
    return [source.getrandbits(32) for _ in range(count)]


# ---------------------------------------------------------------- values and tables


@cache
def entries(value: str, table: tuple[int, ...] | None = None) -> list[Fraction]:
    """The distinct finite numbers that codes stand for, ascending."""
    decoded = (oracle.decode(value, code, table) for code in oracle.valid_codes(value, table is not None))
    return sorted({oracle.value(pattern) for pattern in decoded if oracle.is_finite(pattern)})


@cache
def thresholds(value: str, table: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """Every number of a format or table, every midpoint, and where one more step would round, each with its neighbours."""
    numbers = entries(value, table)
    second, last_but_one = numbers[1 % len(numbers)], numbers[-2 % len(numbers)]  # a table may have one number only
    below, above = 2 * numbers[0] - second - 1, 2 * numbers[-1] - last_but_one + 1
    return tuple(p for p in around(with_midpoints([below, *numbers, above]), 2) if oracle.is_finite(p))


@cache
def midpoints(value: str, table: tuple[int, ...] | None = None) -> tuple[int, ...]:
    numbers = entries(value, table)
    return tuple(with_midpoints(numbers)[len(numbers) :])


def _ramp() -> tuple[int, ...]:
    """256 entries like those of a dynamic 8-bit map: dense near 0, ascending, one zero."""
    half = [bits(Fraction(i * i, 127 * 127)) for i in range(1, 128)]
    return (bits(-1.25), *(p | SIGN32 for p in reversed(half)), 0, *half)


def _scattered() -> tuple[int, ...]:
    """256 unsorted entries of full mantissas and all exponents, with duplicates, -0 and +0, neighbours and the extremes."""
    source = random.Random(256)
    drawn = [source.getrandbits(1) << 31 | source.randrange(1, INF32) for _ in range(200)]
    near = [stepped(ONE, i) for i in range(16)] + [stepped(bits(-3), -i) for i in range(16)]
    result = [*drawn, *near, *drawn[:18], 0, SIGN32, 1, SIGN32 | 1, MAX32, SIGN32 | MAX32]
    source.shuffle(result)
    return tuple(result)


class Lookup(NamedTuple):
    """An integer format and a table for its fields."""

    value: str
    table: tuple[int, ...]


# fmt: off
NF4 = (0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0,
       0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, ONE)
LOOKUPS = {
    "nf4": Lookup("q4s", NF4),
    "nf4-full": Lookup("q4f", NF4),
    "signed zeros": Lookup("q2s", (ONE, SIGN32, 0, bits(-1))),
    "one side, no zero": Lookup("q2f", (bits(7), bits(5), bits(5), bits("0.3"))),
    "far apart": Lookup("q2s", (1, MAX32, SIGN32 | MAX32, ONE)),
    "neighbours": Lookup("q2f", (stepped(ONE, 2), ONE, stepped(ONE, 1), stepped(ONE, -1))),
    "one number": Lookup("q2s", (bits(-2), bits(-2), bits(-2), bits(-2))),
    "unsorted": Lookup("q4f", tuple(bits(n) for n in (3, -1, 0, 3, -7, "0.1", 8, -1, 2, 5, -6, "0.7", 1, 9, -9, 4))),
    "ramp": Lookup("q8f", _ramp()),
    "scattered": Lookup("q8s", _scattered()),
}
# fmt: on

#: What quantize is tried with: every format, and lookups of each width.
ELEMENTS: dict[str, tuple[str, tuple[int, ...] | None]] = {
    **{value: (value, None) for value in VALUES},
    **{name: LOOKUPS[name] for name in ("nf4", "one side, no zero", "scattered")},
}


# ---------------------------------------------------------------- scales


@cache
def positive_scales(kind: str) -> tuple[int, ...]:
    """Patterns of positive finite scales: all of a type of at most 16 bits, for f32 edges and a sample, ascending."""
    if kind == "f32":
        sample = [p & 0x7FFFFFFF for p in random_patterns(32, 2000)]
        return tuple(sorted({p for p in (*SPECIAL, *POWERS, *sample) if 0 < p < INF32}))
    codes = range(256 ** oracle.SCALE_BYTES[kind] // (1 if kind == "ue8m0" else 2))
    decoded = (oracle.decode_scale(kind, code) for code in codes)
    return tuple(p for p in decoded if 0 < p < INF32)


@cache
def edge_scale_codes(kind: str) -> tuple[int, ...]:
    """Legal scale codes of every sort that a type has: zeros, subnormals, ordinary ones, negatives, Inf, NaN."""
    if kind == "ue8m0":
        return (0, 1, 2, 22, 23, 126, 127, 128, 253, 254, 255)
    if kind == "ue4m3":
        return (0, 1, 7, 8, 0x38, 0x39, 0x77, 0x7D, 0x7E, 0x7F)
    infinity, sign, one = (
        oracle.wide_inf(kind),
        oracle.wide_sign(kind),
        oracle.round_magnitude(Fraction(1), *oracle.WIDE[kind]),
    )
    smallest_normal = 1 << oracle.WIDE[kind][1]
    magnitudes = (
        0,
        1,
        2,
        smallest_normal - 1,
        smallest_normal,
        one,
        one + 1,
        infinity - 1,
        infinity,
        infinity + 1,
        sign - 1,
    )
    return tuple(s | m for m in magnitudes for s in (0, sign))


def scale_code(kind: str, source: random.Random) -> int:
    """A legal scale code: half of the time one of the edges."""
    if source.random() < 0.5:
        return source.choice(edge_scale_codes(kind))
    return source.randrange(0x80 if kind == "ue4m3" else 256 ** oracle.SCALE_BYTES[kind])


def content(s: S, shape: Shape, source: random.Random) -> Q:
    """Legal codes and scale codes for a scheme that fits the shape."""
    legal = oracle.valid_codes(s.value, s.table is not None)
    cells = math.prod(oracle.grid(shape, s))
    return Q(
        source.choices(legal, k=math.prod(shape)),
        None if s.block_type is None else [scale_code(s.block_type, source) for _ in range(cells)],
        None if s.tensor is None else scale_code(s.tensor, source),
    )


# ---------------------------------------------------------------- constructed rows


Row = list[int]


class Rows:
    """Rows of elements for one scheme; a row is one block (or, without a block level, a tensor)."""

    def __init__(self, s: S, seed: int, width: int = 16) -> None:
        self.source = random.Random(seed)
        self.width = width
        self.h = rn32(oracle.H(s.value, s.table))
        self.middles = midpoints(s.value, s.table) or (0,)
        self.numbers = tuple(rn32(n) for n in entries(s.value, s.table))
        self.scales = positive_scales(s.block_type or s.tensor or "f32")
        self.makers: tuple[Callable[[], Row], ...] = (
            self.ties, self.ties, self.edge, self.edge, self.edge, self.zeros, self.one_subnormal, self.tiny,
            self.small_edge, self.not_finite, self.some_not_finite, self.huge, self.patterns, self.plain, self.plain,
        )  # fmt: skip

    def sign(self) -> int:
        return self.source.getrandbits(1) << 31

    def fill(self, row: Sequence[int]) -> Row:
        """A row cut or filled up with zeros of both signs, shuffled."""
        full = [*row[: self.width], *(self.sign() for _ in range(self.width - len(row)))]
        self.source.shuffle(full)
        return full

    def ties(self, scale: int | None = None) -> Row:
        """Largest magnitude H * scale, which makes that scale; the rest on midpoints times the scale, and beside them."""
        scale = self.source.choice(self.scales) if scale is None else scale
        picked = [self.source.choice((*self.middles, *self.numbers)) for _ in range(self.width - 1)]
        row = [multiply32(scale, p) for p in picked]
        row = [stepped(p, self.source.choice((0, 0, 0, 1, -1))) if oracle.is_finite(p) else p for p in row]
        return self.fill([multiply32(scale, self.h) ^ self.sign(), *row])

    def edge(self) -> Row:
        """Largest magnitude at or next to H times a scale of the type: rounding up must not miss."""
        scale = self.source.choice((*self.scales[:3], self.source.choice(self.scales), *self.scales[-2:]))
        peak = multiply32(scale, self.h)
        peak = MAX32 if not oracle.is_finite(peak) else stepped(peak, self.source.choice((-1, 0, 1, 2)))
        return self.below(peak)

    def below(self, peak: int) -> Row:
        """Random magnitudes up to a peak that is there."""
        return self.fill(
            [peak ^ self.sign(), *(self.source.randint(0, peak) ^ self.sign() for _ in range(self.width - 1))]
        )

    def zeros(self) -> Row:
        return [self.source.choice((0, 0, self.sign())) for _ in range(self.width)]

    def one_subnormal(self) -> Row:
        return self.fill([self.source.choice((1, 2, 3, 0x400000, 0x7FFFFF)) ^ self.sign()])

    def tiny(self) -> Row:
        return [self.source.randrange(48) ^ self.sign() for _ in range(self.width)]

    def small_edge(self) -> Row:
        """Next to H * 2^-127, the smallest ue8m0, and to the other ends of the subnormals."""
        end = rn32(oracle.value(self.h) * Fraction(2) ** self.source.choice((-127, -127, -126, -133, -149, -150)))
        return self.below(stepped(end, self.source.choice((0, 1, 2))))

    def not_finite(self) -> Row:
        return [self.source.choice(SPECIAL[8:13]) ^ self.sign() for _ in range(self.width)]

    def some_not_finite(self) -> Row:
        row = self.plain()
        for i in self.source.sample(range(self.width), self.width // 3):
            row[i] = self.source.choice(SPECIAL)
        return row

    def huge(self) -> Row:
        return self.below(self.source.choice((MAX32, MAX32, stepped(MAX32, -1), bits(65504), bits(57344), POWERS[-1])))

    def patterns(self) -> Row:
        return [self.source.getrandbits(32) for _ in range(self.width)]

    def plain(self) -> Row:
        """Ordinary numbers around a power of two."""
        e = self.source.randrange(-24, 24)
        return [bits(self.source.gauss(0, 1) * 2.0**e) for _ in range(self.width)]

    def rows(self, count: int) -> list[Row]:
        """Every maker in turn."""
        return [maker() for maker, _ in zip(itertools.cycle(self.makers), range(count), strict=False)]


def two_level_tensors(s: S, seed: int, count: int, rows: int, width: int) -> list[list[Row]]:
    """Tensors whose blocks stand in a known relation to the tensor scale: the themes in turn, from one the seed picks."""
    make = Rows(s, seed, width)
    choice, top = make.source.choice, oracle.TOP[s.block_type or "f32"]

    def anchored() -> list[Row]:
        """The tensor scale is a power of two g, the others' block scales are numbers of the type: exact ties."""
        g = Fraction(2) ** make.source.randrange(-20, 20)
        peak = rn32(oracle.value(make.h) * g * top)
        inside = make.scales[: bisect_right(make.scales, rn32(top))]  # positive patterns order as their numbers
        return [make.below(peak), *(make.ties(multiply32(choice(inside), rn32(g))) for _ in range(rows - 1))]

    def near_floor() -> list[Row]:
        """max raw / top next to 2^-126."""
        peak = rn32(oracle.value(make.h) * top / Fraction(2) ** choice((125, 126, 126, 127)))
        return [
            make.below(stepped(peak, choice((-1, 0, 1)))),
            *(make.below(choice((peak, 1, 40))) for _ in range(rows - 1)),
        ]

    themes: tuple[Callable[[], list[Row]], ...] = (
        anchored,
        lambda: make.rows(rows),
        lambda: [make.huge(), *(choice((make.huge, make.plain, make.tiny))() for _ in range(rows - 1))],
        lambda: [choice((make.tiny, make.one_subnormal, make.zeros))() for _ in range(rows)],
        near_floor,
        lambda: [choice((make.zeros, make.plain, make.some_not_finite))() for _ in range(rows)],
        lambda: [choice((make.zeros, make.not_finite))() for _ in range(rows)],
        lambda: [make.small_edge() for _ in range(rows)],
        lambda: [make.plain() for _ in range(rows)],
        lambda: [make.edge() for _ in range(rows)],
    )
    return [themes[(seed + i) % len(themes)]() for i in range(count)]


# ---------------------------------------------------------------- Hypothesis

patterns32 = st.one_of(
    st.integers(0, 2**32 - 1),
    st.sampled_from(SPECIAL),
    st.integers(-64, 64).map(lambda e: rn32(Fraction(2) ** e)),
    st.integers(-512, 512).map(lambda n: rn32(Fraction(n, 4))),
)
finite32 = patterns32.filter(oracle.is_finite)
seeds = st.integers(0, 2**32 - 1)
elements = st.sampled_from(
    [*((value, None) for value in VALUES), *(LOOKUPS[name] for name in ("nf4", "signed zeros", "one side, no zero"))]
)
levels = st.tuples(st.sampled_from((None, *SCALE_TYPES)), st.sampled_from((None, *SCALE_TYPES)))


def shapes(*, largest_rank: int = 4, largest_size: int = 6) -> st.SearchStrategy[Shape]:
    sizes = st.one_of(st.integers(1, largest_size), st.integers(0, largest_size))
    return st.lists(sizes, max_size=largest_rank).map(tuple)


@st.composite
def schemes(draw: st.DrawFn, rank: int) -> S:
    """A scheme that fits tensors of this rank; its blocks are often smaller than the axes."""
    value, table = draw(elements)
    tensor, block_type = draw(levels)
    extent = st.one_of(st.integers(1, 4), st.sampled_from((1, 2, 16, 2**31 - 1)))
    block = None if block_type is None else tuple(draw(st.lists(extent, max_size=min(rank, 5))))
    store = draw(st.sampled_from(("native", "packed_native", "packed_u32")))
    d = 0 if store == "native" else draw(st.integers(0, max(rank, 1) - 1))
    return S(value, store, d, tensor, block, block_type, table)


@st.composite
def tensors(draw: st.DrawFn, shape: st.SearchStrategy[Shape] | None = None) -> oracle.T:
    """Content, shape and scheme: legal codes, scale codes of every sort."""
    drawn = draw(shapes() if shape is None else shape)
    s = draw(schemes(len(drawn)))
    return content(s, drawn, random.Random(draw(seeds))), drawn, s
