"""The oracle for fused use and products: chains, both products, and the change of store.

Written from ``semantics.md`` sections 2 to 5 and 7 alone, without reading any other implementation; built on `oracle`,
which was written the same way. Standard library only, scalar, slow, exact: each float operation computes the exact
result, an ``int`` of small units, and rounds it once.

Conventions are those of `oracle`: a binary32 is its bit pattern, a tensor is the triple ``(Q, shape, S)``, everything
the spec refuses raises `Refused`. Float arrays are `Array`; results are flat row-major lists of patterns.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from . import oracle
from .oracle import (
    INF32,
    MAX32,
    NAN32,
    SIGN32,
    WIDE,
    Q,
    Refused,
    S,
    Shape,
    T,
    block_of,
    check,
    check_content,
    decode,
    decode_scale,
    dequantize,
    divide32,
    extents,
    flat,
    grid,
    indices,
    is_inf,
    is_nan,
    is_zero,
    narrow,
    pack,
    read_values,
    refuse_if,
    refused,
    rn32,
    sign_of,
    split,
    swap_axes,
    to_bytes,
    transposed,
    units,
    widen,
    words_to_bytes,
)

ONE = rn32(Fraction(1))
RUN = 32
MOST_STEPS = 64


class Array(NamedTuple):
    """A float array: row-major patterns of `kind`. A number is an f32 array of shape ()."""

    bits: Sequence[int]
    shape: Shape = ()
    kind: str = "f32"


def number(bits: int) -> Array:
    return Array([bits])


# ---------------------------------------------------------------- one binary32 operation


def round_whole(n: int, places: int) -> int:
    """`oracle.rn32` of n / 2^places, in whole numbers: products and sums need no other fractions."""
    magnitude = abs(n)
    spacing = max(magnitude.bit_length() - places, -125) - 24  # exponent of the last bit that fits; at least -149
    drop = spacing + places
    if drop <= 0:
        kept, rest, half = magnitude << -drop, 0, 1
    else:
        kept, rest, half = magnitude >> drop, magnitude & (1 << drop) - 1, 1 << drop - 1
    if rest > half or (rest == half and kept % 2 == 1):
        kept += 1
    return min(kept + (spacing + 149) * (1 << 23), INF32) | (SIGN32 if n < 0 else 0)


multiply32 = lru_cache(maxsize=1 << 16)(oracle.multiply32)


def canonical(bits: int) -> int:
    return NAN32 if is_nan(bits) else bits


def negate32(a: int) -> int:
    return NAN32 if is_nan(a) else a ^ SIGN32


def absolute32(a: int) -> int:
    return NAN32 if is_nan(a) else a & ~SIGN32


def add32(a: int, b: int) -> int:
    if is_nan(a) or is_nan(b) or (is_inf(a) and is_inf(b) and a != b):
        return NAN32
    if is_inf(a) or is_inf(b):
        return a if is_inf(a) else b
    if is_zero(a) and is_zero(b):
        return a & b  # -0 only if both are
    return round_whole(units(a) + units(b), 150)  # a sum that cancels is +0


def subtract32(a: int, b: int) -> int:
    return add32(a, negate32(b))


@lru_cache(maxsize=1 << 16)
def fma32(a: int, b: int, c: int) -> int:
    """a * b + c with one rounding."""
    if is_nan(a) or is_nan(b) or is_nan(c) or (is_inf(a) and is_zero(b)) or (is_zero(a) and is_inf(b)):
        return NAN32
    sign = sign_of(a ^ b)
    if is_inf(a) or is_inf(b):
        return NAN32 if is_inf(c) and sign_of(c) != sign else sign | INF32
    if is_inf(c):
        return c
    if (is_zero(a) or is_zero(b)) and is_zero(c):
        return c & sign  # the sum of two zeros
    return round_whole(units(a) * units(b) + (units(c) << 150), 300)


def order(bits: int) -> int:
    """Ascends with the number, -0 below +0."""
    return bits if bits < SIGN32 else ~(bits ^ SIGN32)


def minimum32(a: int, b: int) -> int:
    return NAN32 if is_nan(a) or is_nan(b) else min(a, b, key=order)


def maximum32(a: int, b: int) -> int:
    return NAN32 if is_nan(a) or is_nan(b) else max(a, b, key=order)


# ---------------------------------------------------------------- chains

WITH_OPERAND: dict[str, Callable[[int, int], int]] = {
    "add": add32,
    "sub": subtract32,
    "rsub": lambda y, other: subtract32(other, y),
    "mul": multiply32,
    "div": divide32,
    "rdiv": lambda y, other: divide32(other, y),
    "min": minimum32,
    "max": maximum32,
}
WITHOUT_OPERAND: dict[str, Callable[[int], int]] = {"neg": negate32, "abs": absolute32}
OPS = (*WITH_OPERAND, *WITHOUT_OPERAND, "select", "cast")

#: (op,) or (op, operand) or ("select", other, mask) or ("cast", kind); a mask is an `Array` of kind "mask".
Step = tuple[str, *tuple[Array | str, ...]]


def spread(a: Array, shape: Shape) -> list[int]:
    """The patterns of an array broadcast to a shape, aligned from the right; sizes are equal or 1."""
    lead = len(shape) - len(a.shape)
    refuse_if(lead < 0, f"operand of shape {a.shape} for a tensor of shape {shape}")
    for n, whole in zip(a.shape, shape[lead:], strict=True):
        refuse_if(n not in (1, whole), f"operand of shape {a.shape} for a tensor of shape {shape}")
    result = []
    for index in indices(shape):
        source = tuple(0 if n == 1 else i for i, n in zip(index[lead:], a.shape, strict=True))
        result.append(a.bits[flat(source, a.shape)])
    return result


def floats(a: Array | str, shape: Shape) -> list[int]:
    """An operand as binary32 patterns, one per element of the tensor."""
    if isinstance(a, str) or a.kind not in WIDE:
        raise Refused(f"operand {a}")
    return [widen(bits, a.kind) for bits in spread(a, shape)]


def one_step(ys: Sequence[int], shape: Shape, step: Step) -> list[int]:
    match step:
        case (op, operand) if op in WITH_OPERAND:
            return [WITH_OPERAND[op](y, other) for y, other in zip(ys, floats(operand, shape), strict=True)]
        case (op,) if op in WITHOUT_OPERAND:
            return [WITHOUT_OPERAND[op](y) for y in ys]
        case ("select", other, Array(kind="mask") as mask):
            mine, theirs = spread(mask, shape), floats(other, shape)
            return [canonical(y if m != 0 else o) for y, o, m in zip(ys, theirs, mine, strict=True)]
        case ("cast", str(kind)) if kind in WIDE:
            return [widen(narrow(y, kind), kind) for y in ys]
    raise Refused(f"step {step}")


def narrowed(y: int, out: str) -> int:
    refuse_if(out not in WIDE, f"output {out}")
    return canonical(y) if out == "f32" else narrow(y, out)


def chain(tensor: T, steps: Sequence[Step], out: str = "f32") -> list[int]:
    q, shape, s = tensor
    refuse_if(len(steps) > MOST_STEPS, f"{len(steps)} steps")
    ys = dequantize(q, shape, s)
    for step in steps:
        ys = one_step(ys, shape, step)
    return [narrowed(y, out) for y in ys]


# ---------------------------------------------------------------- products


def runs(terms: Iterable[tuple[int, int]]) -> int:
    """The sum of a * b over the terms, in their order: an fma chain per run of 32 terms, the runs added up."""
    terms = list(terms)
    acc = 0
    for start in range(0, len(terms), RUN):
        p = 0
        for a, b in terms[start : start + RUN]:
            p = fma32(a, b, p)
        acc = add32(acc, p)
    return acc


def matrix_shapes(x_shape: Shape, w_shape: Shape) -> tuple[Shape, int, int]:
    """Leading axes, K, N."""
    refuse_if(len(x_shape) < 1, "x of rank 0")
    refuse_if(len(w_shape) != 2, f"w of rank {len(w_shape)}")
    refuse_if(x_shape[-1] != w_shape[0], f"K is {x_shape[-1]} in x, {w_shape[0]} in w")
    return x_shape[:-1], w_shape[0], w_shape[1]


def product(x: Array, w: T, out: str = "f32") -> tuple[list[int], Shape]:
    """Float x [..., K] times quantized w [K, N]: patterns and shape."""
    lead, k_size, n_size = matrix_shapes(x.shape, w[1])
    refuse_if(x.kind not in WIDE, f"x of kind {x.kind}")
    xs, ws = [widen(bits, x.kind) for bits in x.bits], dequantize(*w)
    result = []
    for row in indices(lead):
        for n in range(n_size):
            terms = [(xs[flat((*row, k), x.shape)], ws[k * n_size + n]) for k in range(k_size)]
            result.append(narrowed(runs(terms), out))
    return result, (*lead, n_size)


def segments(k_size: int, *extents_on_k: int | None) -> list[range]:
    """K cut at every multiple of every extent; None is no block level, which has no boundaries."""
    cuts = {0, k_size}
    for extent in extents_on_k:
        if extent is not None:
            cuts.update(k for k in range(k_size) if k % extent == 0)
    return [range(start, stop) for start, stop in itertools.pairwise(sorted(cuts))]


def exact_sum(pairs: Iterable[tuple[int, int]]) -> int:
    """The exact sum of the products of decoded values, rounded once; special codes as IEEE operations would have it."""
    total, infinities = 0, set()
    for a, b in pairs:
        if is_nan(a) or is_nan(b) or (is_inf(a) and is_zero(b)) or (is_zero(a) and is_inf(b)):
            return NAN32
        if is_inf(a) or is_inf(b):
            infinities.add(sign_of(a ^ b) | INF32)
        else:
            total += units(a) * units(b)
    if infinities:
        return infinities.pop() if len(infinities) == 1 else NAN32
    return round_whole(total, 300)


def tensor_factor(q: Q, s: S) -> int:
    """The tensor scale, 1 where the scheme has none."""
    if s.tensor is None or q.tensor_scale_code is None:
        return ONE
    return decode_scale(s.tensor, q.tensor_scale_code)


def block_factor(q: Q, shape: Shape, s: S, index: Shape) -> int:
    """The block scale of the block that holds an element, 1 where the scheme has none."""
    if s.block_type is None or q.scale_codes is None:
        return ONE
    return decode_scale(s.block_type, q.scale_codes[flat(block_of(index, s, shape), grid(shape, s))])


def product_codes(x: T, w: T, out: str = "f32") -> tuple[list[int], Shape]:
    """Quantized x [..., K] times quantized w [K, N], both symmetric: patterns and shape."""
    (xq, x_shape, xs), (wq, w_shape, ws) = x, w
    lead, k_size, n_size = matrix_shapes(x_shape, w_shape)
    check_content(*x)
    check_content(*w)
    refuse_if(xs.table is not None or ws.table is not None, "product of lookup codes")
    g = multiply32(tensor_factor(xq, xs), tensor_factor(wq, ws))
    pieces = segments(
        k_size,
        None if xs.block is None else extents(xs, len(x_shape))[-1],
        None if ws.block is None else extents(ws, 2)[0],
    )
    x_values = [decode(xs.value, code) for code in xq.codes]
    w_values = [decode(ws.value, code) for code in wq.codes]
    result = []
    for row in indices(lead):
        for n in range(n_size):
            terms = []
            for piece in pieces:
                d = exact_sum((x_values[flat((*row, k), x_shape)], w_values[k * n_size + n]) for k in piece)
                b_x = block_factor(xq, x_shape, xs, (*row, piece.start))
                b_w = block_factor(wq, w_shape, ws, (piece.start, n))
                terms.append((multiply32(b_x, b_w), d))
            result.append(narrowed(multiply32(g, runs(terms)), out))
    return result, (*lead, n_size)


# ---------------------------------------------------------------- another store


def repack(tensor: T, store: str, d: int = 0) -> T:
    """The same codes and scales under another store; refused only where the scheme with that store is."""
    q, shape, s = tensor
    check_content(q, shape, s)
    new_s = replace(s, store=store, d=d)
    check(new_s, shape)
    return Q(list(q.codes), None if q.scale_codes is None else list(q.scale_codes), q.tensor_scale_code), shape, new_s


def repack_words(words: Sequence[int], shape: Shape, s: S, store: str, d: int = 0) -> list[int]:
    """Words of one store to words of another."""
    axes = swap_axes(shape, s)
    stored_shape = tuple(shape[a] for a in axes)
    stored, _ = read_values(words_to_bytes(words, s), stored_shape, s, "refuse")
    return pack(transposed(stored, stored_shape, axes)[0], shape, replace(s, store=store, d=d))


def repack_bytes(data: bytes, shape: Shape, s: S, store: str, d: int = 0) -> bytes:
    """The byte stream of one store to that of another."""
    return to_bytes(*repack((split(data, shape, s), shape, s), store, d))


# ---------------------------------------------------------------- self check


def plain_value(bits: int) -> Fraction:
    """A finite binary32 from its three fields."""
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent > 0:
        fraction += 2**23
    return Fraction(-1 if bits >> 31 else 1) * fraction * Fraction(2) ** (max(exponent, 1) - 127 - 23)


def require_nearest(exact: Fraction, result: int) -> None:
    """`result` is the binary32 nearest to a non-zero exact number, by the definition: no neighbour is nearer."""
    magnitude, exact_magnitude = result & 0x7FFFFFFF, abs(exact)
    assert exact != 0 and (result >> 31 == 1) == (exact < 0), f"{exact} gives the sign of {result:08x}"
    limit = Fraction(2) ** 128 - Fraction(2) ** 103  # the midpoint of FLT_MAX and 2^128
    assert (exact_magnitude >= limit) == (magnitude == INF32), f"{exact} gives {result:08x}"
    if magnitude == INF32:
        return
    distance = abs(plain_value(magnitude) - exact_magnitude)
    for neighbour in (magnitude - 1, magnitude + 1):
        if 0 <= neighbour < INF32:
            other = abs(plain_value(neighbour) - exact_magnitude)
            assert distance < other or (distance == other and magnitude % 2 == 0), f"{exact} gives {result:08x}"


def _self_check() -> None:
    def f(text: str) -> int:
        return rn32(Fraction(text))

    minus_inf, minus_max = INF32 | SIGN32, MAX32 | SIGN32
    assert [add32(0, SIGN32), add32(SIGN32, SIGN32), add32(ONE, f("-1"))] == [0, SIGN32, 0]
    assert [subtract32(0, 0), subtract32(SIGN32, 0), subtract32(INF32, INF32)] == [0, SIGN32, NAN32]
    assert [add32(INF32, minus_max), add32(minus_inf, INF32), add32(MAX32, MAX32)] == [INF32, NAN32, INF32]
    assert add32(f("16777216"), ONE) == f("16777216") and add32(f("16777218"), ONE) == f("16777220")
    assert [fma32(SIGN32, ONE, SIGN32), fma32(SIGN32, ONE, 0), fma32(0, ONE, SIGN32)] == [SIGN32, 0, 0]
    assert [fma32(ONE, ONE, f("-1")), fma32(1, SIGN32 | 1, 0), fma32(1, SIGN32 | 1, 1)] == [0, SIGN32, 1]
    assert [fma32(INF32, 0, NAN32), fma32(INF32, ONE, minus_inf), fma32(MAX32, MAX32, minus_inf)] == [
        NAN32,
        NAN32,
        minus_inf,
    ]
    a = ONE + 1  # 1 + 2^-23: the square less its rounding is 2^-46
    assert fma32(a, a, negate32(multiply32(a, a))) == f("1") - (46 << 23)
    assert [minimum32(0, SIGN32), maximum32(SIGN32, 0), minimum32(NAN32, 0), maximum32(minus_inf, f("-2"))] == [
        SIGN32,
        0,
        NAN32,
        f("-2"),
    ]
    assert [negate32(0xFFC00001), absolute32(0xFF800000)] == [NAN32, INF32]

    some = (
        0,
        1,
        2,
        0x7FFFFF,
        0x800000,
        0x800001,
        0x33800001,
        0x3F7FFFFF,
        ONE,
        ONE + 1,
        ONE + 2,
        0x4B800001,
        0x7F7FFFFE,
    )
    signed = [sign | bits for bits in (*some, MAX32) for sign in (0, SIGN32)]
    for b, c in itertools.product(signed, repeat=2):
        results = [(plain_value(b) + plain_value(c), add32(b, c)), (plain_value(b) * plain_value(c), multiply32(b, c))]
        results += [(plain_value(b) / plain_value(c), divide32(b, c))] if not is_zero(c) else []
        results += [(plain_value(a) * plain_value(b) + plain_value(c), fma32(a, b, c)) for a in signed]
        for exact, result in results:
            if exact != 0:
                require_nearest(exact, result)

    s = S("q8s", "packed_native", 0, "f32", (2,), "f32")
    q = Q([3, 0xFF, 2, 5], [ONE, f("0.5")], f("2"))
    assert dequantize(q, (1, 4), s) == [f("6"), f("-2"), f("2"), f("5")]
    t = (q, (1, 4), s)
    assert chain(t, [("rsub", number(ONE)), ("abs",), ("cast", "f16")], "bf16") == [0x40A0, 0x4040, 0x3F80, 0x4080]
    w = Q([1, 1, 1, 1], None, f("3")), (4, 1), S("q4s", "native", tensor="f32")
    assert product(Array([ONE] * 4, (4,)), w) == ([f("12")], (1,))
    assert product_codes(t, w) == ([f("33")], (1, 1))  # (2 * 3) * (1 * 2 + 0.5 * 7)
    assert [list(piece) for piece in segments(7, 3, 4)] == [[0, 1, 2], [3], [4, 5], [6]]
    assert segments(0, 3) == [] and segments(5, None, 2**31 - 1) == segments(5, None) == [range(5)]
    assert runs([(ONE, f("16777216"))] + [(ONE, ONE)] * 31 + [(ONE, ONE)] * 2) == f("16777218")
    empty = Q([], None, f("-3")), (0, 1), S("q4s", "native", tensor="f32")
    assert product_codes((Q([], None, ONE), (0,), S("q2s", "native")), empty) == ([SIGN32], (1,))
    assert repack_bytes(to_bytes(*t), (1, 4), s, "packed_u32", 1) == to_bytes(*repack(t, "packed_u32", 1))
    assert repack_words(pack(q.codes, (1, 4), s), (1, 4), s, "packed_u32") == [0x0502FF03]
    assert refused(lambda: repack(t, "packed_native", 2))
    print("oracle_products: self check passed")


if __name__ == "__main__":
    _self_check()
