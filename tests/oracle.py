"""The oracle: a second, independent implementation of the numeric spec, to be compared with the reference.

Written from ``semantics.md`` sections 1 to 6 alone (the canonical recipe), without reading any other implementation.
Standard library only, scalar, slow, exact: every number is an ``int`` or a ``Fraction``; encoding is a search of the
exact values of all codes; a float operation is the exact rational result rounded once by `rn32`.

Conventions. A float is its binary32 bit pattern (an ``int``). A tensor is a flat row-major list plus a shape tuple.
A code is the ``native`` byte. Layout operations take and return the triple ``(Q, shape, S)``. Everything the spec
refuses raises `Refused`.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

Shape = tuple[int, ...]

NAN32, INF32, MAX32, SIGN32 = 0x7FC00000, 0x7F800000, 0x7F7FFFFF, 0x80000000
LIMIT = 2**63 - 1


class Refused(Exception):
    """The spec refuses this input."""


def refuse_if(condition: bool, reason: str) -> None:
    if condition:
        raise Refused(reason)


# ---------------------------------------------------------------- binary32, binary16, bfloat16


def is_nan(bits: int) -> bool:
    return bits & 0x7FFFFFFF > INF32


def is_inf(bits: int) -> bool:
    return bits & 0x7FFFFFFF == INF32


def is_zero(bits: int) -> bool:
    return bits & 0x7FFFFFFF == 0


def is_finite(bits: int) -> bool:
    return bits & 0x7FFFFFFF < INF32


def sign_of(bits: int) -> int:
    """0x80000000 when bit 31 is set, else 0."""
    return bits & SIGN32


def units(bits: int) -> int:
    """A finite binary32 as a whole number of 2^-150 (half the smallest subnormal: midpoints are whole too)."""
    if not is_finite(bits):
        raise ValueError(f"{bits:08x} is not finite")
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    magnitude = fraction << 1 if exponent == 0 else (fraction + (1 << 23)) << exponent
    return -magnitude if bits & SIGN32 else magnitude


def value(bits: int) -> Fraction:
    return Fraction(units(bits), 2**150)


def power2(e: int) -> Fraction:
    return Fraction(1 << e) if e >= 0 else Fraction(1, 1 << -e)


def round_magnitude(x: Fraction, exponent_bits: int, fraction_bits: int, up: bool = False) -> int:
    """Code (no sign) of x >= 0 in an IEEE format, nearest-even or up, as if codes went on above the largest finite.

    In the binade 2^e the representable numbers are the multiples n of 2^(e - fraction_bits); below the smallest normal
    exponent the spacing stays. Codes ascend by one from each representable number to the next.
    """
    if x == 0:
        return 0
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if x < power2(e):
        e -= 1
    smallest = 2 - (1 << exponent_bits - 1)  # exponent of the smallest normal
    e = max(e, smallest)
    n, rest = divmod(x, power2(e - fraction_bits))
    half = power2(e - fraction_bits - 1)
    if up:
        n += rest > 0
    elif rest > half or (rest == half and n % 2 == 1):
        n += 1
    return int(n) + (e - smallest) * (1 << fraction_bits)


def rn32(x: Fraction) -> int:
    """The one binary32 rounding: nearest, ties to even, subnormals kept, overflow to Inf. An exact 0 gives +0."""
    return min(round_magnitude(abs(x), 8, 23), INF32) | (SIGN32 if x < 0 else 0)


def multiply32(a: int, b: int) -> int:
    sign = sign_of(a ^ b)
    if is_nan(a) or is_nan(b) or (is_inf(a) and is_zero(b)) or (is_zero(a) and is_inf(b)):
        return NAN32
    if is_inf(a) or is_inf(b):
        return sign | INF32
    return sign | rn32(abs(value(a) * value(b)))


def divide32(a: int, b: int) -> int:
    sign = sign_of(a ^ b)
    if is_nan(a) or is_nan(b) or (is_inf(a) and is_inf(b)) or (is_zero(a) and is_zero(b)):
        return NAN32
    if is_inf(a) or is_zero(b):
        return sign | INF32
    if is_inf(b):
        return sign
    return sign | rn32(Fraction(abs(units(a)), abs(units(b))))


WIDE = {"f32": (8, 23), "f16": (5, 10), "bf16": (8, 7)}  # exponent bits, fraction bits
WIDE_NAN = {"f32": NAN32, "f16": 0x7E00, "bf16": 0x7FC0}


def wide_inf(kind: str) -> int:
    exponent_bits, fraction_bits = WIDE[kind]
    return ((1 << exponent_bits) - 1) << fraction_bits


def wide_sign(kind: str) -> int:
    return 1 << sum(WIDE[kind])


def narrow(bits: int, kind: str) -> int:
    """binary32 to f16 or bf16: nearest-even, IEEE overflow, canonical NaN."""
    if is_nan(bits):
        return WIDE_NAN[kind]
    sign = wide_sign(kind) if sign_of(bits) else 0
    if is_inf(bits):
        return sign | wide_inf(kind)
    return sign | min(round_magnitude(abs(value(bits)), *WIDE[kind]), wide_inf(kind))


def widen(pattern: int, kind: str) -> int:
    """f32, f16 or bf16 pattern to binary32, exact; every NaN becomes the canonical one."""
    exponent_bits, fraction_bits = WIDE[kind]
    sign = SIGN32 if pattern & wide_sign(kind) else 0
    magnitude = pattern & (wide_sign(kind) - 1)
    if magnitude > wide_inf(kind):
        return NAN32
    if magnitude == wide_inf(kind):
        return sign | INF32
    return sign | rn32(float_magnitude(magnitude, fraction_bits, (1 << exponent_bits - 1) - 1))


def float_magnitude(code: int, fraction_bits: int, bias: int) -> Fraction:
    """Exact value of exponent and fraction fields read as a finite number."""
    exponent, fraction = divmod(code, 1 << fraction_bits)
    if exponent == 0:
        return fraction * power2(1 - bias - fraction_bits)
    return ((1 << fraction_bits) + fraction) * power2(exponent - bias - fraction_bits)


# ---------------------------------------------------------------- element values

# fmt: off
BITS = {"q8f": 8, "q8s": 8, "q4f": 4, "q4s": 4, "q2f": 2, "q2s": 2,
        "e4m3": 8, "e5m2": 8, "e2m1": 4, "e3m2": 6, "e2m3": 6}
INTEGER_RANGE = {"q8f": (-128, 127), "q8s": (-127, 127), "q4f": (-8, 7), "q4s": (-7, 7), "q2f": (-2, 1), "q2s": (-1, 1)}
# fraction bits, bias, largest finite code
MINIFLOAT = {"e4m3": (3, 7, 0x7E), "e5m2": (2, 15, 0x7B), "e2m1": (1, 1, 0x7),
             "e3m2": (2, 3, 0x1F), "e2m3": (3, 1, 0x1F)}
MINIFLOAT_NAN = {"e4m3": 0x7F, "e5m2": 0x7E}  # the one `encode` writes
HALF_RANGE = {"q8f": "127.5", "q8s": "127", "q4f": "7.5", "q4s": "7", "q2f": "1.5", "q2s": "1",
              "e4m3": "448", "e5m2": "57344", "e2m1": "6", "e3m2": "28", "e2m3": "7.5"}
# fmt: on


def extend(val: str, field: int, lookup: bool = False) -> int:
    """The native byte of a field of BITS[val] bits."""
    width = BITS[val]
    if val in INTEGER_RANGE and not lookup and field >= 1 << width - 1:
        return field + 256 - (1 << width)
    return field


@cache
def valid_code_set(val: str, lookup: bool) -> frozenset[int]:
    return frozenset(extend(val, field, lookup) for field in range(2 ** BITS[val]))


def valid_codes(val: str, lookup: bool = False) -> list[int]:
    return sorted(valid_code_set(val, lookup))


def check_code(val: str, code: int, lookup: bool) -> None:
    refuse_if(code not in valid_code_set(val, lookup), f"{val}: byte {code:#x} is not its own extension")


def check_table(val: str, table: Sequence[int]) -> None:
    refuse_if(val not in INTEGER_RANGE, f"lookup with a minifloat: {val}")
    refuse_if(len(table) != 2 ** BITS[val], f"{val}: table of {len(table)} entries")
    refuse_if(not all(is_finite(t) for t in table), "table with a non-finite entry")
    refuse_if(all(is_zero(t) for t in table), "table is all zero")


@cache
def symmetric_decoded(val: str) -> dict[int, int]:
    """Native byte to binary32 bits, for every legal byte."""
    result = {}
    for code in valid_codes(val):
        if val in INTEGER_RANGE:
            result[code] = rn32(Fraction(code - 256 if code >= 128 else code))
            continue
        fraction_bits, bias, largest = MINIFLOAT[val]
        top_bit = 2 ** (BITS[val] - 1)
        sign, magnitude = SIGN32 if code & top_bit else 0, code & (top_bit - 1)
        if magnitude <= largest:
            result[code] = sign | rn32(float_magnitude(magnitude, fraction_bits, bias))
        elif val == "e5m2" and magnitude == 0x7C:
            result[code] = sign | INF32
        else:
            result[code] = NAN32
    return result


def decode(val: str, code: int, table: Sequence[int] | None = None) -> int:
    check_code(val, code, table is not None)
    if table is not None:
        check_table(val, table)
        return table[code]
    return symmetric_decoded(val)[code]


@cache
def integer_candidates(val: str) -> tuple[list[int], list[int]]:
    """Exact values (ascending, in units) of the range of an integer value, and their codes."""
    low, high = INTEGER_RANGE[val]
    return [n << 150 for n in range(low, high + 1)], [n % 256 for n in range(low, high + 1)]


@cache
def minifloat_candidates(val: str) -> tuple[list[int], list[int]]:
    """Exact values (ascending, in units) of the non-negative finite codes, and the codes."""
    codes = list(range(MINIFLOAT[val][2] + 1))
    return [units(symmetric_decoded(val)[code]) for code in codes], codes


@cache
def lookup_candidates(table: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Exact values (ascending, distinct, in units) of the entries, and the lowest index of each."""
    lowest: dict[int, int] = {}
    for index, entry in enumerate(table):
        lowest.setdefault(units(entry), index)
    return sorted(lowest), [lowest[v] for v in sorted(lowest)]


def nearest_codes(x: int, candidates: tuple[list[int], list[int]]) -> list[int]:
    """The codes of the value or the two values nearest to x (units)."""
    values, codes = candidates
    i = bisect_left(values, x)
    around = range(max(i - 1, 0), min(i + 1, len(values)))
    distance = min(abs(values[j] - x) for j in around)
    return [codes[j] for j in around if abs(values[j] - x) == distance]


def even_code(codes: Sequence[int]) -> int:
    """The only one, or the even one of two neighbours."""
    return codes[0] if len(codes) == 1 else next(code for code in codes if code % 2 == 0)


def encode(val: str, bits: int, table: Sequence[int] | None = None) -> int:
    if table is not None:
        check_table(val, table)
        lookup = lookup_candidates(tuple(table))
        if is_inf(bits):  # the nearest of the extremes
            return lookup[1][0 if sign_of(bits) else -1]
        return min(nearest_codes(0 if is_nan(bits) else units(bits), lookup))
    if val in INTEGER_RANGE:
        if is_nan(bits):
            return 0
        integers = integer_candidates(val)
        if is_inf(bits):
            return integers[1][0 if sign_of(bits) else -1]
        return even_code(nearest_codes(units(bits), integers))
    sign = 2 ** (BITS[val] - 1) if sign_of(bits) else 0
    if is_nan(bits):
        return sign | MINIFLOAT_NAN[val] if val in MINIFLOAT_NAN else 0
    if is_inf(bits):
        return sign | MINIFLOAT[val][2]
    return sign | even_code(nearest_codes(abs(units(bits)), minifloat_candidates(val)))


def H(val: str, table: Sequence[int] | None = None) -> Fraction:
    if table is None:
        return Fraction(HALF_RANGE[val])
    check_table(val, table)
    return max(abs(value(entry)) for entry in table)


# ---------------------------------------------------------------- scale types

SCALE_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "ue8m0": 1, "ue4m3": 1}
SMALL_NAN = {"ue8m0": 0xFF, "ue4m3": 0x7F}


@cache
def small_scale_values(kind: str) -> tuple[list[int], list[int]]:
    """Exact values (ascending, in units) of the finite codes of ue8m0 or ue4m3, and the codes."""
    if kind == "ue4m3":
        return minifloat_candidates("e4m3")
    return [1 << code - 127 + 150 for code in range(255)], list(range(255))


def check_scale_code(kind: str, code: int) -> None:
    refuse_if(kind not in SCALE_BYTES, f"scale type {kind}")
    refuse_if(not 0 <= code < 256 ** SCALE_BYTES[kind], f"{kind}: scale code {code:#x} out of range")
    refuse_if(kind == "ue4m3" and code >= 0x80, f"ue4m3: scale code {code:#x} has bit 7 set")


def decode_scale(kind: str, code: int) -> int:
    check_scale_code(kind, code)
    if kind in WIDE:
        return widen(code, kind)
    if code == SMALL_NAN[kind]:
        return NAN32
    return rn32(Fraction(small_scale_values(kind)[0][code], 2**150))


def largest_finite(kind: str) -> int:
    """binary32 bits of the largest finite scale."""
    return decode_scale(kind, wide_inf(kind) - 1 if kind in WIDE else small_scale_values(kind)[1][-1])


def above_largest(kind: str, bits: int) -> bool:
    """The value before rounding is above the largest finite one: this scale saturates."""
    if is_nan(bits) or sign_of(bits):
        return False
    return is_inf(bits) or units(bits) > units(largest_finite(kind))


def round_magnitude_to_scale(kind: str, bits: int, up: bool) -> int:
    """Code of a magnitude (bit 31 clear, not NaN), saturating at the largest finite."""
    if is_inf(bits):
        bits = MAX32  # at or above every largest finite
    if kind in WIDE:
        return min(round_magnitude(value(bits), *WIDE[kind], up=up), wide_inf(kind) - 1)
    values, codes = small_scale_values(kind)
    if up:
        i = bisect_left(values, units(bits))  # the first not below
        return codes[min(i, len(codes) - 1)]
    return even_code(nearest_codes(units(bits), (values, codes)))


def encode_scale(kind: str, bits: int, mode: str = "up") -> int:
    refuse_if(kind not in SCALE_BYTES, f"scale type {kind}")
    refuse_if(mode not in ("up", "nearest"), f"scale rounding {mode}")
    if is_nan(bits):
        return WIDE_NAN[kind] if kind in WIDE else SMALL_NAN[kind]
    if not sign_of(bits):
        return round_magnitude_to_scale(kind, bits, mode == "up")
    refuse_if(kind not in WIDE, f"{kind}: unsigned, scale {bits:08x} has the sign bit")
    refuse_if(mode == "up" and is_inf(bits), f"{kind}: scale -Inf")
    code = wide_sign(kind) | round_magnitude_to_scale(kind, bits ^ SIGN32, False)
    refuse_if(mode == "up" and decode_scale(kind, code) != bits, f"{kind}: scale {bits:08x} is not representable")
    return code


# ---------------------------------------------------------------- schemes, grids


@dataclass(frozen=True)
class S:
    """A scheme. `block` () is b1, a scale per element; None is no block level. A table means lookup mode."""

    value: str
    store: str
    d: int = 0
    tensor: str | None = None
    block: tuple[int, ...] | None = None
    block_type: str | None = None
    table: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """The normal form: leading 1s dropped; neither level is tensor f32."""
        if self.block is not None:
            object.__setattr__(self, "block", tuple(itertools.dropwhile(lambda e: e == 1, self.block)))
        if self.block is None and self.block_type is None and self.tensor is None:
            object.__setattr__(self, "tensor", "f32")


@dataclass
class Q:
    """A quantized tensor's content. The last three fields are quantize's report; layout operations reset them."""

    codes: list[int]
    scale_codes: list[int] | None = None
    tensor_scale_code: int | None = None
    saturated_count: int = 0
    saturated_first: tuple[int, ...] | None = None
    tensor_saturated: bool = False


T = tuple[Q, Shape, S]
Move = Callable[[Shape], Shape]  # new index to old index


def check(s: S, shape: Shape) -> None:
    """Refuse a scheme that is illegal, by itself or at this shape."""
    rank = len(shape)
    refuse_if(s.value not in BITS, f"value {s.value}")
    refuse_if(s.store not in ("native", "packed_native", "packed_u32"), f"store {s.store}")
    if s.table is not None:
        check_table(s.value, s.table)
    refuse_if(s.tensor is not None and s.tensor not in SCALE_BYTES, f"tensor scale type {s.tensor}")
    refuse_if((s.block is None) != (s.block_type is None), "block extents and block scale type go together")
    refuse_if(s.block_type is not None and s.block_type not in SCALE_BYTES, f"block scale type {s.block_type}")
    for extent in s.block or ():
        refuse_if(not 1 <= extent <= 2**31 - 1, f"block extent {extent}")
    refuse_if(len(s.block or ()) > 5, f"{len(s.block or ())} block extents")
    refuse_if(len(s.block or ()) > rank, f"block rank {len(s.block or ())} above tensor rank {rank}")
    refuse_if(s.store == "native" and s.d != 0, "native has no packed axis")
    refuse_if(not 0 <= s.d < max(rank, 1), f"packed axis {s.d} at rank {rank}")
    refuse_if(any(n < 0 for n in shape), "negative size")
    refuse_if(math.prod(shape) > LIMIT, "element count beyond 2^63-1")


def extents(s: S, rank: int) -> Shape:
    """One block extent per axis; a scheme without a block level has no boundaries and counts as all 1 with no grid."""
    block = s.block or ()
    return (1,) * (rank - len(block)) + block


def grid(shape: Shape, s: S) -> Shape:
    """Shape of the block scale grid, tensor axes. () without a block level."""
    check(s, shape)
    if s.block is None:
        return ()
    return tuple(-(-n // e) for n, e in zip(shape, extents(s, len(shape)), strict=True))


def block_of(index: Shape, s: S, shape: Shape) -> Shape:
    """Grid index of the block holding the element at `index`. () without a block level."""
    if s.block is None:
        return ()
    return tuple(i // e for i, e in zip(index, extents(s, len(shape)), strict=True))


def indices(shape: Shape) -> Iterator[Shape]:
    """All indices, row-major."""
    return itertools.product(*(range(n) for n in shape))


def flat(index: Shape, shape: Shape) -> int:
    position = 0
    for i, n in zip(index, shape, strict=True):
        position = position * n + i
    return position


# ---------------------------------------------------------------- quantize, dequantize


def amax(xs: Sequence[int]) -> int:
    """Bits of the largest finite magnitude; none gives 0."""
    return max((x & 0x7FFFFFFF for x in xs if is_finite(x)), key=units, default=0)


def divide_nonzero(a: int, b: int) -> int:
    """a / b for a >= 0, b > 0, where a non-zero a stays non-zero."""
    quotient = divide32(a, b)
    return 1 if not is_zero(a) and is_zero(quotient) else quotient


def raw_scale(xs: Sequence[int], s: S) -> int:
    return divide_nonzero(amax(xs), rn32(H(s.value, s.table)))


def greatest(values: Sequence[int]) -> int:
    """Bits of the largest of non-negative finite values; none gives 0."""
    return max(values, key=units, default=0)


TWO_126, TWO_MINUS_126 = rn32(Fraction(2) ** 126), rn32(Fraction(1, 2**126))
TOP = {"f16": Fraction(65504), "ue4m3": Fraction(448), "f32": Fraction(1), "bf16": Fraction(1), "ue8m0": Fraction(1)}


def given(kind: str, values: Sequence[int] | None, codes: Sequence[int] | None) -> tuple[list[int], list[bool]] | None:
    """Codes of one level's given scales, and which of them saturate."""
    refuse_if(values is not None and codes is not None, "values and codes given for one level")
    if codes is not None:
        for code in codes:
            check_scale_code(kind, code)
        return list(codes), [False] * len(codes)
    if values is not None:
        return [encode_scale(kind, v) for v in values], [above_largest(kind, v) for v in values]
    return None


def quotient(x: int, s: int) -> int:
    if is_nan(x) or is_nan(s):
        return sign_of(x) | NAN32
    if is_zero(s):
        return sign_of(x)
    q = divide32(x, s)
    return sign_of(x) | NAN32 if is_nan(q) else q


def effective_scales(q: Q, s: S) -> list[int]:
    """Effective scale of each grid entry (one entry without a block level)."""
    g = None if s.tensor is None or q.tensor_scale_code is None else decode_scale(s.tensor, q.tensor_scale_code)
    if s.block_type is None or q.scale_codes is None:
        if g is None:
            raise Refused("no scale")
        return [g]
    blocks = [decode_scale(s.block_type, code) for code in q.scale_codes]
    return blocks if g is None else [multiply32(g, b) for b in blocks]


def check_content(q: Q, shape: Shape, s: S) -> None:
    """The parts a scheme has, no others, of the right sizes and legal codes."""
    cells = grid(shape, s)
    refuse_if(len(q.codes) != math.prod(shape), f"{len(q.codes)} codes for shape {shape}")
    for code in q.codes:
        check_code(s.value, code, s.table is not None)
    refuse_if((q.scale_codes is None) != (s.block_type is None), "block scales do not match the scheme")
    refuse_if((q.tensor_scale_code is None) != (s.tensor is None), "tensor scale does not match the scheme")
    if q.scale_codes is not None and s.block_type is not None:
        refuse_if(len(q.scale_codes) != math.prod(cells), f"{len(q.scale_codes)} block scales for grid {cells}")
        for code in q.scale_codes:
            check_scale_code(s.block_type, code)
    if q.tensor_scale_code is not None and s.tensor is not None:
        check_scale_code(s.tensor, q.tensor_scale_code)


def quantize(
    xbits: Sequence[int],
    shape: Shape,
    s: S,
    *,
    scales: Sequence[int] | None = None,
    scale_codes: Sequence[int] | None = None,
    tensor_scale: int | None = None,
    tensor_scale_code: int | None = None,
) -> Q:
    cells = grid(shape, s)
    refuse_if(len(xbits) != math.prod(shape), f"{len(xbits)} values for shape {shape}")
    has_block, has_tensor = s.block_type is not None, s.tensor is not None
    refuse_if(not has_block and (scales, scale_codes) != (None, None), "block scales, but no block level")
    refuse_if(not has_tensor and (tensor_scale, tensor_scale_code) != (None, None), "tensor scale, but no tensor level")
    given_tensor = given(
        s.tensor or "",
        None if tensor_scale is None else [tensor_scale],
        None if tensor_scale_code is None else [tensor_scale_code],
    )
    given_blocks = given(s.block_type or "", scales, scale_codes)
    if given_blocks is not None:
        refuse_if(len(given_blocks[0]) != math.prod(cells), f"{len(given_blocks[0])} scales for grid {cells}")

    # the elements of each block; one block without a block level
    members: list[list[int]] = [[] for _ in range(math.prod(cells))]
    owner = [flat(block_of(index, s, shape), cells) for index in indices(shape)]
    for x, cell in zip(xbits, owner, strict=True):
        members[cell].append(x)

    tensor_code: int | None = None
    block_codes: list[int] | None = None
    tensor_saturated = False
    saturated = [False] * math.prod(cells)
    if s.block_type is None:  # tensor level only
        if s.tensor is None:
            raise Refused("no scale level")
        if given_tensor is not None:
            tensor_code, tensor_saturated = given_tensor[0][0], given_tensor[1][0]
        else:
            raw = raw_scale(xbits, s)
            tensor_code, tensor_saturated = encode_scale(s.tensor, raw), above_largest(s.tensor, raw)
    elif s.tensor is None:  # block level only
        if given_blocks is not None:
            block_codes, saturated = given_blocks
        else:
            raws = [raw_scale(xs, s) for xs in members]
            block_codes = [encode_scale(s.block_type, raw) for raw in raws]
            saturated = [above_largest(s.block_type, raw) for raw in raws]
    elif given_blocks is not None:  # two levels, blocks given
        if given_tensor is None:
            raise Refused("two levels: block scales given without the tensor scale")
        tensor_code, tensor_saturated = given_tensor[0][0], given_tensor[1][0]
        block_codes, saturated = given_blocks
    else:  # two levels, blocks chosen
        raws = [raw_scale(xs, s) for xs in members]
        raws = [TWO_126 if is_inf(raw) or units(raw) > units(TWO_126) else raw for raw in raws]
        if given_tensor is not None:
            tensor_code, tensor_saturated = given_tensor[0][0], given_tensor[1][0]
            g = decode_scale(s.tensor, tensor_code)
            refuse_if(not is_finite(g) or units(g) <= 0, f"tensor scale {g:08x} is not finite and positive")
        else:
            before = greatest([divide32(greatest(raws), rn32(TOP[s.block_type])), TWO_MINUS_126])
            tensor_code, tensor_saturated = encode_scale(s.tensor, before), above_largest(s.tensor, before)
            g = decode_scale(s.tensor, tensor_code)
        befores = [divide_nonzero(raw, g) for raw in raws]
        block_codes = [encode_scale(s.block_type, before) for before in befores]
        if tensor_saturated or given_tensor is not None:
            saturated = [above_largest(s.block_type, before) for before in befores]

    first = next((index for index, is_saturated in zip(indices(cells), saturated, strict=True) if is_saturated), None)
    q = Q([], block_codes, tensor_code, sum(saturated), first, tensor_saturated)
    effective = effective_scales(q, s)
    q.codes = [encode(s.value, quotient(x, effective[cell]), s.table) for x, cell in zip(xbits, owner, strict=True)]
    return q


def dequantize(q: Q, shape: Shape, s: S, out: str = "f32") -> list[int]:
    check_content(q, shape, s)
    cells, effective = grid(shape, s), effective_scales(q, s)
    result = []
    for index, code in zip(indices(shape), q.codes, strict=True):
        y = multiply32(effective[flat(block_of(index, s, shape), cells)], decode(s.value, code, s.table))
        result.append(y if out == "f32" else narrow(y, out))
    return result


# ---------------------------------------------------------------- packing and bytes


def word_format(s: S) -> tuple[int, int]:
    """Bytes of a word, codes in a word."""
    if s.store == "native":
        return 1, 1
    if s.store == "packed_u32":
        return 4, 32 // BITS[s.value]
    return {8: (1, 1), 4: (1, 2), 2: (1, 4), 6: (3, 4)}[BITS[s.value]]


def swap_axes(shape: Shape, s: S) -> list[int]:
    """The exchange of the packed axis and the innermost one (an involution), as a list of axes."""
    axes = list(range(len(shape)))
    if s.store != "native" and shape:
        k = len(shape) - 1 - s.d
        axes[k], axes[-1] = axes[-1], axes[k]
    return axes


def transposed(data: Sequence[int], shape: Shape, axes: Sequence[int]) -> tuple[list[int], Shape]:
    """Axis i of the result is axis axes[i] of the source."""
    new_shape = tuple(shape[a] for a in axes)
    result = []
    for index in indices(new_shape):
        source = [0] * len(shape)
        for i, a in enumerate(axes):
            source[a] = index[i]
        result.append(data[flat(tuple(source), shape)])
    return result, new_shape


def line_format(stored_shape: Shape) -> tuple[int, int]:
    """Number of lines, codes in a line. Rank 0 is one line of one element."""
    if not stored_shape:
        return 1, 1
    return math.prod(stored_shape[:-1]), stored_shape[-1]


def pack(codes: Sequence[int], shape: Shape, s: S) -> list[int]:
    check(s, shape)
    refuse_if(len(codes) != math.prod(shape), f"{len(codes)} codes for shape {shape}")
    for code in codes:
        check_code(s.value, code, s.table is not None)
    stored, stored_shape = transposed(codes, shape, swap_axes(shape, s))
    if s.store == "native":
        return stored
    (_, n), (lines, length), width = word_format(s), line_format(stored_shape), BITS[s.value]
    words = []
    for line in range(lines):
        for start in range(0, length, n):
            word = 0
            for field, k in enumerate(range(start, min(start + n, length))):
                word += (stored[line * length + k] % 2**width) << field * width
            words.append(word)
    return words


def words_to_bytes(words: Sequence[int], s: S) -> bytes:
    return b"".join(word.to_bytes(word_format(s)[0], "little") for word in words)


def byte_length(shape: Shape, s: S) -> int:
    cells = grid(shape, s)
    (word_bytes, n), stored_shape = word_format(s), tuple(shape[a] for a in swap_axes(shape, s))
    lines, length = line_format(stored_shape)
    total = lines * -(-length // n) * word_bytes
    if s.block_type is not None:
        total += math.prod(cells) * SCALE_BYTES[s.block_type]
    if s.tensor is not None:
        total += SCALE_BYTES[s.tensor]
    refuse_if(total > LIMIT, "byte length beyond 2^63-1")
    return total


def to_bytes(q: Q, shape: Shape, s: S) -> bytes:
    check_content(q, shape, s)
    data = words_to_bytes(pack(q.codes, shape, s), s)
    if s.block_type is not None and q.scale_codes is not None:
        stored, _ = transposed(q.scale_codes, grid(shape, s), swap_axes(shape, s))
        data += b"".join(code.to_bytes(SCALE_BYTES[s.block_type], "little") for code in stored)
    if s.tensor is not None and q.tensor_scale_code is not None:
        data += q.tensor_scale_code.to_bytes(SCALE_BYTES[s.tensor], "little")
    return data


def read_values(data: bytes, stored_shape: Shape, s: S, padding: str) -> tuple[list[int], int]:
    """Codes in stored order, and the bytes they took."""
    (word_bytes, n), (lines, length), width = word_format(s), line_format(stored_shape), BITS[s.value]
    codes: list[int] = []
    offset = 0
    for line in range(lines):
        for start in range(0, length, n):
            word = int.from_bytes(data[offset : offset + word_bytes], "little")
            if s.store == "native":
                check_code(s.value, word, s.table is not None)
                codes.append(word)
            else:
                present = min(n, length - start)
                for field in range(present):
                    codes.append(extend(s.value, word >> field * width & 2**width - 1, s.table is not None))
                rest = word >> present * width
                if rest != 0 and padding == "refuse":
                    bit = present * width + (rest & -rest).bit_length() - 1  # the lowest dirty bit of the word
                    raise Refused(f"dirty padding: byte {offset + bit // 8}, line {line}, field {start + bit // width}")
            offset += word_bytes
    return codes, offset


def read_scales(data: bytes, kind: str, bit7: str) -> list[int]:
    size = SCALE_BYTES[kind]
    codes = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    if kind == "ue4m3" and bit7 == "ignore":
        codes = [code & 0x7F for code in codes]
    for code in codes:
        check_scale_code(kind, code)
    return codes


def split(data: bytes, shape: Shape, s: S, padding: str = "refuse", ue4m3_bit7: str = "refuse") -> Q:
    expected = byte_length(shape, s)
    refuse_if(len(data) != expected, f"{len(data)} bytes, expected {expected}")
    refuse_if(padding not in ("refuse", "ignore"), f"padding={padding}")
    refuse_if(ue4m3_bit7 not in ("refuse", "ignore"), f"ue4m3_bit7={ue4m3_bit7}")
    axes = swap_axes(shape, s)
    stored_shape = tuple(shape[a] for a in axes)
    stored, position = read_values(data, stored_shape, s, padding)
    q = Q(transposed(stored, stored_shape, axes)[0])
    if s.block_type is not None:
        stored_grid = tuple(grid(shape, s)[a] for a in axes)
        end = position + math.prod(stored_grid) * SCALE_BYTES[s.block_type]
        codes = read_scales(data[position:end], s.block_type, ue4m3_bit7)
        q.scale_codes, position = transposed(codes, stored_grid, axes)[0], end
    if s.tensor is not None:
        q.tensor_scale_code = read_scales(data[position:], s.tensor, ue4m3_bit7)[0]
    return q


# ---------------------------------------------------------------- layout operations


def check_axis(axis: int, shape: Shape) -> None:
    refuse_if(not 0 <= axis < len(shape), f"axis {axis} at rank {len(shape)}")


def replaced(index: Shape, axis: int, i: int) -> Shape:
    return (*index[:axis], i, *index[axis + 1 :])


def moved(q: Q, shape: Shape, s: S, new_shape: Shape, new_s: S, element: Move, cell: Move) -> T:
    """Pick every new element and every new grid entry from where `element` and `cell` say it comes from."""
    check(new_s, new_shape)
    codes = [q.codes[flat(element(index), shape)] for index in indices(new_shape)]
    scale_codes = None
    if q.scale_codes is not None:
        old_grid, new_grid = grid(shape, s), grid(new_shape, new_s)
        scale_codes = [q.scale_codes[flat(cell(index), old_grid)] for index in indices(new_grid)]
    return Q(codes, scale_codes, q.tensor_scale_code), new_shape, new_s


def with_extents(s: S, full: Shape) -> S:
    return s if s.block is None else replace(s, block=full)


def permute(q: Q, shape: Shape, s: S, axes: Sequence[int]) -> T:
    check_content(q, shape, s)
    rank = len(shape)
    refuse_if(sorted(axes) != list(range(rank)), f"{tuple(axes)} is no permutation of {rank} axes")
    full = extents(s, rank)
    new_s = with_extents(s, tuple(full[a] for a in axes))
    if s.store != "native" and rank > 0:
        new_s = replace(new_s, d=rank - 1 - list(axes).index(rank - 1 - s.d))

    def source(index: Shape) -> Shape:
        return tuple(index[list(axes).index(a)] for a in range(rank))

    return moved(q, shape, s, tuple(shape[a] for a in axes), new_s, source, source)


def slice_axis(q: Q, shape: Shape, s: S, axis: int, start: int, stop: int) -> T:
    check_content(q, shape, s)
    check_axis(axis, shape)
    e = extents(s, len(shape))[axis]
    refuse_if(not 0 <= start <= stop <= shape[axis], f"axis {axis}: slice {start}:{stop} of {shape[axis]}")
    refuse_if(start % e != 0, f"axis {axis}: start {start} is not a multiple of extent {e}; requantize instead")

    def element(index: Shape) -> Shape:
        return replaced(index, axis, index[axis] + start)

    def cell(index: Shape) -> Shape:
        return replaced(index, axis, index[axis] + start // e)

    return moved(q, shape, s, replaced(shape, axis, stop - start), s, element, cell)


def take(q: Q, shape: Shape, s: S, axis: int, which: Sequence[int]) -> T:
    check_content(q, shape, s)
    check_axis(axis, shape)
    e = extents(s, len(shape))[axis]
    refuse_if(e != 1, f"axis {axis}: take needs extent 1, not {e}; requantize instead")
    for i in which:
        refuse_if(not 0 <= i < shape[axis], f"axis {axis}: index {i} of {shape[axis]}")

    def source(index: Shape) -> Shape:
        return replaced(index, axis, which[index[axis]])

    return moved(q, shape, s, replaced(shape, axis, len(which)), s, source, source)


def select(q: Q, shape: Shape, s: S, axis: int, index: int) -> T:
    """take of one index, then the axis is dropped."""
    taken, taken_shape, _ = take(q, shape, s, axis, [index])
    rank = len(shape)
    full = extents(s, rank)
    new_s = with_extents(s, full[:axis] + full[axis + 1 :])
    if s.store != "native":
        k = rank - 1 - s.d  # the packed axis from the left
        kept = [a for a in range(rank) if a != axis]
        new_s = replace(new_s, d=0 if k == axis else len(kept) - 1 - kept.index(k))

    def source(i: Shape) -> Shape:
        return (*i[:axis], 0, *i[axis:])

    return moved(taken, taken_shape, s, shape[:axis] + shape[axis + 1 :], new_s, source, source)


def flip(q: Q, shape: Shape, s: S, axis: int) -> T:
    check_content(q, shape, s)
    check_axis(axis, shape)
    size, e = shape[axis], extents(s, len(shape))[axis]
    refuse_if(size % e != 0 and size > e, f"axis {axis}: flip of {size} with extent {e}; requantize instead")
    cells = -(-size // e)

    def element(index: Shape) -> Shape:
        return replaced(index, axis, size - 1 - index[axis])

    def cell(index: Shape) -> Shape:
        return replaced(index, axis, cells - 1 - index[axis])

    return moved(q, shape, s, shape, s, element, cell)


def expand(q: Q, shape: Shape, s: S, new_shape: Shape) -> T:
    """Axes of size 1 grow to the new size; new leading axes (extent 1) may be added."""
    check_content(q, shape, s)
    added = len(new_shape) - len(shape)
    refuse_if(added < 0, f"expand of {shape} to {new_shape}")
    for axis, n in enumerate(shape):
        refuse_if(n not in (1, new_shape[added + axis]), f"axis {axis}: expand of {n} to {new_shape[added + axis]}")

    def source(index: Shape) -> Shape:
        return tuple(0 if n == 1 else i for i, n in zip(index[added:], shape, strict=True))

    return moved(q, shape, s, tuple(new_shape), s, source, source)


def expand_axis(q: Q, shape: Shape, s: S, axis: int, n: int) -> T:
    check_axis(axis, shape)
    return expand(q, shape, s, replaced(shape, axis, n))


def concatenate(parts: Sequence[T], axis: int) -> T:
    refuse_if(not parts, "concatenate of nothing")
    first_q, first_shape, s = parts[0]
    check_axis(axis, first_shape)
    e = extents(s, len(first_shape))[axis]
    for q, shape, part_s in parts:
        check_content(q, shape, part_s)
        refuse_if(part_s != s, "concatenate: schemes differ")
        same = len(shape) == len(first_shape) and replaced(shape, axis, 0) == replaced(first_shape, axis, 0)
        refuse_if(not same, f"concatenate along axis {axis}: shapes {first_shape} and {shape}")
    new_shape = replaced(first_shape, axis, sum(shape[axis] for _, shape, _ in parts))
    filled = [(q, shape) for q, shape, _ in parts if math.prod(shape) > 0]
    for number, (q, shape) in enumerate(filled):
        refuse_if(q.tensor_scale_code != filled[0][0].tensor_scale_code, "concatenate: tensor scales differ")
        whole = shape[axis] % e == 0 or number == len(filled) - 1
        refuse_if(not whole, f"axis {axis}: part {number} of size {shape[axis]}, extent {e}; requantize instead")
    tensor_scale_code = filled[0][0].tensor_scale_code if filled else first_q.tensor_scale_code

    def joined(pieces: list[tuple[list[int], Shape]], whole: Shape) -> list[int]:
        result: dict[Shape, int] = {}
        before = 0
        for data, shape in pieces:
            for index, item in zip(indices(shape), data, strict=True):
                result[replaced(index, axis, index[axis] + before)] = item
            before += shape[axis]
        return [result[index] for index in indices(whole)]

    codes = joined([(q.codes, shape) for q, shape in filled], new_shape)
    scale_codes = None
    if s.block is not None:
        grids = [(q.scale_codes or [], grid(shape, s)) for q, shape in filled]
        scale_codes = joined(grids, grid(new_shape, s))
    return Q(codes, scale_codes, tensor_scale_code), new_shape, s


def unflat(position: int, shape: Shape) -> Shape:
    index = []
    for n in reversed(shape):
        position, i = divmod(position, n)
        index.append(i)
    return tuple(reversed(index))


def reshape(q: Q, shape: Shape, s: S, new_shape: Shape) -> T:
    check_content(q, shape, s)
    new_shape = tuple(new_shape)
    rank, new_rank, count = len(shape), len(new_shape), math.prod(shape)
    refuse_if(math.prod(new_shape) != count or any(n < 0 for n in new_shape), f"reshape of {shape} to {new_shape}")
    if new_shape == shape:
        return Q(list(q.codes), q.scale_codes and list(q.scale_codes), q.tensor_scale_code), shape, s
    new_s = replace(s, d=s.d if s.d < max(new_rank, 1) else 0)
    if s.block is None or count == 0:
        check(new_s, new_shape)  # an empty tensor keeps its extents if the block rank fits
        return Q(list(q.codes), q.scale_codes and list(q.scale_codes), q.tensor_scale_code), new_shape, new_s

    def old_index(index: Shape) -> Shape:
        return unflat(flat(index, new_shape), shape)

    def old_block(index: Shape) -> Shape:
        return block_of(old_index(index), s, shape)

    origin, full = (0,) * new_rank, extents(s, rank)
    new_full = []
    for axis, n in enumerate(new_shape):
        run = 0
        while run < n and old_block(replaced(origin, axis, run)) == old_block(origin):
            run += 1
        old_axis = rank - (new_rank - axis)  # the same place from the right
        kept = old_axis >= 0 and shape[old_axis] == n and min(full[old_axis], n) == run
        new_full.append(full[old_axis] if kept else run)
    new_s = with_extents(new_s, tuple(new_full))
    check(new_s, new_shape)

    # the two partitions are equal when "old block of" and "new block of" are one-to-one
    pairs = {(old_block(index), block_of(index, new_s, new_shape)) for index in indices(new_shape)}
    one_to_one = len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs})
    refuse_if(not one_to_one, f"reshape of {shape} to {new_shape}: {s.block} is no grid there; requantize instead")
    source = {new: old for old, new in pairs}
    return moved(q, shape, s, new_shape, new_s, old_index, lambda index: source[index])


# ---------------------------------------------------------------- self check


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except Refused:
        return True
    return False


def _self_check() -> None:
    def f(text: str) -> int:
        return rn32(Fraction(text))

    assert [f("1"), f("-1.5"), f("3.4028235e38"), f("1e39")] == [0x3F800000, 0xBFC00000, MAX32, INF32]
    assert f("1e-45") == 1 and f("7e-46") == 0 and f("-7e-46") == SIGN32 and f("16777217") == f("16777216")
    assert narrow(f("65519.99"), "f16") == 0x7BFF and narrow(f("65520"), "f16") == 0x7C00
    assert narrow(0xFF800001, "bf16") == 0x7FC0 and widen(1, "f16") == rn32(Fraction(1, 2**24))
    for val in BITS:
        for code in valid_codes(val):
            bits = decode(val, code)
            low = val in INTEGER_RANGE and code == -INTEGER_RANGE[val][1] - 1 & 0xFF and val.endswith("s")
            if is_finite(bits) and not low:
                assert encode(val, bits) == code, (val, code)
    assert [encode("e4m3", f(t)) for t in ("464", "1e9", "-1e9")] == [0x7E, 0x7E, 0xFE]
    assert [encode("e4m3", b) for b in (0xFFC00000, INF32, SIGN32)] == [0xFF, 0x7E, 0x80]
    assert [encode("q8f", f(t)) for t in ("127.5", "-128.5", "0.5", "1.5")] == [127, 128, 0, 2]
    assert encode("q2s", f("-9")) == 0xFF and encode("e2m1", 0xFFC00000) == 0 and encode("e2m1", f("2.5")) == 4
    table = (f("1"), f("-1"), f("1"), f("3"))
    assert [encode("q2s", b, table) for b in (0, NAN32, INF32, SIGN32 | INF32, f("2"))] == [0, 0, 3, 1, 0]
    assert [encode_scale("ue8m0", f(t)) for t in ("0", "1", "1.01", "1e39")] == [0, 127, 128, 254]
    assert [encode_scale("ue8m0", f(t), "nearest") for t in ("1.5", "3", "2.9", "1.4")] == [128, 128, 128, 127]
    assert encode_scale("f16", f("65505")) == 0x7BFF and encode_scale("bf16", SIGN32) == 0x8000
    assert refused(lambda: encode_scale("ue4m3", SIGN32)) and refused(lambda: encode_scale("f16", f("-65505")))
    assert refused(lambda: decode("q4s", 0x0F)) and refused(lambda: decode("e3m2", 0x40))

    s = S("e2m1", "packed_native", 0, "f32", (16,), "ue4m3")
    xs = [f(str(i - 20)) for i in range(40)]
    q = quantize(xs, (2, 20), s)
    data = to_bytes(q, (2, 20), s)
    assert len(data) == 2 * 10 + 4 + 4 and split(data, (2, 20), s) == q
    assert q.tensor_scale_code == divide32(divide32(f("20"), f("6")), f("448"))
    p, dirty = S("q4s", "packed_native", tensor="f32"), bytes.fromhex("e1f301000000")
    assert to_bytes(Q([1, 0xFE, 3], None, 1), (3,), p).hex() == "e10301000000"
    assert refused(lambda: split(dirty, (3,), p))
    assert split(dirty, (3,), p, padding="ignore").codes == [1, 0xFE, 3]

    b = S("q8s", "packed_u32", 1, None, (2, 4), "f16")
    q = quantize([f(str(i)) for i in range(48)], (6, 8), b)
    t = permute(q, (6, 8), b, (1, 0))
    assert t[1:] == ((8, 6), replace(b, d=0, block=(4, 2)))
    assert permute(*t, (1, 0))[0].codes == q.codes
    assert dequantize(*reshape(q, (6, 8), b, (3, 2, 8))) == dequantize(q, (6, 8), b)
    assert refused(lambda: reshape(q, (6, 8), b, (48,))) and refused(lambda: slice_axis(q, (6, 8), b, 0, 1, 3))
    joined = concatenate([slice_axis(q, (6, 8), b, 0, 0, 2), slice_axis(q, (6, 8), b, 0, 2, 6)], 0)
    assert joined[0].codes == q.codes and joined[0].scale_codes == q.scale_codes
    print("oracle: self check passed")


if __name__ == "__main__":
    _self_check()
