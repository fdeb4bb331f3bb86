"""The oracle for recipes: rules POL-1 and POL-5 to POL-10 and POL-20, written from their texts alone, without reading any other
implementation; built on `oracle` and `oracle_products`, which were written the same way, and on `oracle_codecs`.

A recipe is read from a row as ``presets.toml`` holds it. A step computes the exact result and rounds it once; numbers
are binary32 patterns and conditions ``bool``. Everything the rules refuse raises `Refused`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

from . import oracle, oracle_codecs
from .oracle import (
    INF32,
    INTEGER_RANGE,
    MINIFLOAT,
    NAN32,
    SCALE_BYTES,
    WIDE,
    Q,
    Refused,
    S,
    Shape,
    is_finite,
    is_inf,
    is_nan,
    is_zero,
    refuse_if,
    rn32,
    sign_of,
    units,
    value,
)
from .oracle_codecs import C, pattern_of
from .oracle_products import absolute32, add32, maximum32, minimum32, negate32, subtract32

MAGNITUDE, ONE = 0x7FFFFFFF, 0x3F800000
Number = int | bool

# ---------------------------------------------------------------- operations of one or more numbers


def canonical(bits: int) -> int:
    return NAN32 if is_nan(bits) else bits


def other_if_nan(pick: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """fmin and fmax: of a NaN and another operand the other operand."""
    return lambda a, b: canonical(b) if is_nan(a) else canonical(a) if is_nan(b) else pick(a, b)


def scale_bits(kind: str, bits: int, up: bool) -> int:
    """up[T] and rne[T]: the number of a scale type, as binary32."""
    if is_nan(bits) or kind == "f32":
        return canonical(bits)
    magnitude = bits & MAGNITUDE
    found = oracle.decode_scale(kind, oracle.round_magnitude_to_scale(kind, magnitude, up))
    return found | (sign_of(bits) if (found and magnitude) or kind in WIDE else 0)


def narrowed(kind: str, bits: int) -> int:
    return oracle.widen(oracle.narrow(bits, kind), kind)


def exponent(x: Fraction) -> int:
    """L with x = m * 2^L and 1 <= m < 2."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if x >= oracle.power2(e) else e - 1


def largest(s: S) -> Fraction:
    """max: the largest number of the value format, or magnitude of the table."""
    if s.table is not None:
        return oracle.H(s.value, s.table)
    if s.value in INTEGER_RANGE:
        return Fraction(INTEGER_RANGE[s.value][1])
    return value(oracle.decode(s.value, MINIFLOAT[s.value][2]))


def fit_turns(s: S, m: Fraction) -> bool:
    """Whether m * 2^emax is beyond all that the nearest code of max takes."""
    fraction_bits, bias, code = MINIFLOAT[s.value]
    top, following = largest(s), oracle.float_magnitude(code + 1, fraction_bits, bias)
    x, middle = m * oracle.power2(exponent(top)), (top + following) / 2
    return x > middle or (x == middle and (code + 1) % 2 == 0)


POW2: dict[str, Callable[[S, Fraction], bool]] = {
    "floor": lambda s, m: False,
    "ceil": lambda s, m: m > 1,
    "rceil": lambda s, m: m > largest(s) / oracle.power2(exponent(largest(s))),
    "even": lambda s, m: m >= 2 - Fraction(1, 2 ** (MINIFLOAT[s.value][0] + 1)),
    "even1": lambda s, m: m >= Fraction(7, 4),
    "fit": fit_turns,
}
LOGARITHMS = ("logfloor", "logceil")


def logarithm32(q: Fraction) -> Fraction:
    """log2 to 60 digits, rounded to binary32 once."""
    if q == oracle.power2(exponent(q)):
        return Fraction(exponent(q))
    with localcontext(prec=60):
        found = (Decimal(q.numerator).ln() - Decimal(q.denominator).ln()) / Decimal(2).ln()
    return value(rn32(Fraction(found)))


def by_logarithm(rule: str, s: S, bits: int) -> int:
    """The exponent before it is clamped, of a finite number above zero. POL-20"""
    if rule == "logfloor":
        return math.floor(logarithm32(abs(value(bits)))) - exponent(largest(s))
    quotient = oracle.divide32(absolute32(bits), rn32(largest(s)))
    return -127 if is_zero(quotient) else math.ceil(logarithm32(value(quotient)))


@lru_cache(maxsize=1 << 14)
def power_of_two(rule: str, s: S, bits: int) -> int:
    refuse_if(rule in ("even", "fit") and s.value in INTEGER_RANGE, f"pow2[{rule}] of the integer format {s.value}")
    if is_nan(bits):
        return NAN32
    if is_zero(bits):
        return rn32(oracle.power2(-127))
    if is_inf(bits) and rule in ("rceil", "fit", *LOGARITHMS):
        return rn32(oracle.power2(127))
    if rule in LOGARITHMS:
        return rn32(oracle.power2(max(-127, min(127, by_logarithm(rule, s, bits)))))
    whole = Fraction(2) ** 128 if is_inf(bits) else abs(value(bits))
    ell = exponent(whole)
    e = ell - exponent(largest(s)) + POW2[rule](s, whole / oracle.power2(ell))
    return rn32(oracle.power2(max(-127, min(127, e))))


OPERATIONS: dict[str, Callable[..., Number]] = {
    "mul": lru_cache(maxsize=1 << 16)(oracle.multiply32),
    "div": lru_cache(maxsize=1 << 16)(oracle.divide32),
    "add": add32,
    "sub": subtract32,
    "abs": lambda a: canonical(absolute32(a)),
    "neg": lambda a: canonical(negate32(a)),
    "min": minimum32,
    "max": maximum32,
    "fmin": other_if_nan(minimum32),
    "fmax": other_if_nan(maximum32),
    "eq0": is_zero,
    "isnan": is_nan,
    "isfinite": is_finite,
    "gt0": lambda a: not is_nan(a) and not is_zero(a) and sign_of(a) == 0,
    "sel": lambda c, x, y: canonical(x if c else y),
}
CONDITIONS = ("eq0", "isnan", "isfinite", "gt0")
#: What each operation takes (n a number, c a condition) and the kinds it may name.
SIGNATURES = {
    **dict.fromkeys(("mul", "div", "add", "sub", "min", "max", "fmin", "fmax"), ("nn", ())),
    **dict.fromkeys(("abs", "neg", *CONDITIONS), ("n", ())),
    "sel": ("cnn", ()),
    "up": ("n", ("T", *SCALE_BYTES)),
    "rne": ("n", ("T", *SCALE_BYTES)),
    "narrow": ("n", ("f16", "bf16")),
    "pow2": ("n", (*POW2, *LOGARITHMS)),
}

# ---------------------------------------------------------------- programs

#: The result of each stage, and what it finds besides the facts.
STAGES = {
    "single": ("scale", ("a",)),
    "tensor": ("tensor_scale", ("A",)),
    "block": ("block_scale", ("A", "a", "g")),
    "element": ("q", ("x", "g", "b", "s", "a", "A")),
    "decode": ("y", ("v", "g", "b", "s")),
}
CHOOSING = ("single", "tensor", "block")
FACTS = ("H", "max", "emax", "top")
LINE = re.compile(r"(\w+) = (\w+)(?:\[(\w+)\])?\(([^()]*)\)")
CONSTANT = re.compile(r"-?0x[0-9a-f]+(?:\.[0-9a-f]+)?p[+-]\d+|inf")


@dataclass(frozen=True)
class Line:
    name: str
    op: str
    kind: str
    args: tuple[str, ...]


def constant(text: str) -> int | None:
    if CONSTANT.fullmatch(text) is None:
        return None
    return INF32 if text == "inf" else pattern_of(text)


@lru_cache(maxsize=1 << 10)
def known(text: str) -> int:
    number = constant(text)
    if number is None:
        raise Refused(f"{text} is no number")
    return number


def read_line(text: str) -> Line:
    match = LINE.fullmatch(text)
    if match is None:
        raise Refused(f"no step: {text}")
    name, op, kind, args = match.groups()
    return Line(name, op, kind or "", tuple(arg.strip() for arg in args.split(",")))


def read_stage(stage: str, lines: Sequence[str]) -> tuple[Line, ...]:
    """The steps of a stage, checked before anything runs."""
    result, inputs = STAGES[stage]
    sorts = dict.fromkeys((*inputs, *FACTS), "n")
    program = tuple(read_line(text) for text in lines)
    for number, line in enumerate(program):
        what = f"{stage}: {line}"
        refuse_if(line.op not in SIGNATURES, f"{what}: no operation")
        takes, kinds = SIGNATURES[line.op]
        refuse_if(line.kind not in (kinds or ("",)), f"{what}: kind")
        refuse_if(line.kind == "T" and stage not in CHOOSING, f"{what}: no scale is chosen here")
        refuse_if(len(line.args) != len(takes), f"{what}: {len(takes)} arguments")
        for arg, sort in zip(line.args, takes, strict=True):
            found = "n" if constant(arg) is not None else sorts.get(arg)
            refuse_if(found != sort, f"{what}: {arg}")
        refuse_if(line.name in sorts or constant(line.name) is not None, f"{what}: the name is given")
        refuse_if((line.name == result) != (number == len(program) - 1), f"{what}: result {result}")
        sorts[line.name] = "c" if line.op in CONDITIONS else "n"
    refuse_if(bool(program) and sorts[result] != "n", f"{stage}: the result is a condition")
    return program


@dataclass(frozen=True)
class R:
    """A recipe."""

    name: str
    amax: str
    stages: Mapping[str, tuple[Line, ...]]
    refuse: tuple[Line, ...]
    values: tuple[str, ...]
    scales: tuple[str, ...]
    tensor_scales: tuple[str, ...]
    modes: tuple[str, ...]
    whole_blocks: bool

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> R:
        stages = {stage: read_stage(stage, row.get(stage, ())) for stage in STAGES}
        amax_kind = row.get("amax", "finite")
        refuse_if(amax_kind not in AMAX, f"amax {amax_kind}")
        refuse_if(not stages["element"] or not stages["decode"], f"recipe {row['name']} has no steps")
        conditions = tuple(read_line(f"refused = {text}") for text in row.get("refuse", ()))
        for line in conditions:
            refuse_if(line.op not in CONDITIONS or line.args not in (("a",), ("A",), ("x",), ("q",)), f"refuse {line}")
        return cls(
            row["name"],
            amax_kind,
            stages,
            conditions,
            tuple(row.get("values", ())),
            tuple(row.get("scales", ())),
            tuple(row.get("tensor_scales", ())),
            tuple(row.get("modes", ("symmetric",))),
            row.get("whole_blocks", False),
        )


@lru_cache(maxsize=1 << 10)
def facts(s: S) -> dict[str, int]:
    """H, max, emax, top; top is 1 where there is no block level."""
    emax = exponent(largest(s))
    found = {"H": rn32(oracle.H(s.value, s.table)), "max": rn32(largest(s)), "emax": rn32(Fraction(emax))}
    return {**found, "top": rn32(oracle.TOP[s.block_type or "f32"])}


def run(program: Sequence[Line], inputs: Mapping[str, int], s: S, chosen: str = "") -> int:
    """The result of a stage; `chosen` is the scale type that T stands for."""
    names: dict[str, Number] = {**facts(s), **inputs}
    result: Number = 0
    for line in program:
        args = [names[arg] if arg in names else known(arg) for arg in line.args]
        kind = chosen if line.kind == "T" else line.kind
        if line.op in ("up", "rne"):
            result = scale_bits(kind, int(args[0]), line.op == "up")
        elif line.op == "narrow":
            result = narrowed(kind, int(args[0]))
        elif line.op == "pow2":
            result = power_of_two(kind, s, int(args[0]))
        else:
            result = OPERATIONS[line.op](*args)
        names[line.name] = result
    return int(result)


# ---------------------------------------------------------------- amax


def amax_all(xs: Sequence[int]) -> int:
    return NAN32 if any(is_nan(x) for x in xs) else amax_ignoring(xs)


def amax_ignoring(xs: Sequence[int]) -> int:
    return max((x & MAGNITUDE for x in xs if not is_nan(x)), default=0)


def amax_signed(xs: Sequence[int]) -> int:
    """The first of the largest magnitude; a zero is +0."""
    most = amax_ignoring(xs)
    return 0 if most == 0 else next(x for x in xs if x & MAGNITUDE == most)


def amax_mean(xs: Sequence[int]) -> int:
    count, total = sum(is_finite(x) for x in xs), 0
    for start in range(0, len(xs), 32):
        run_sum = 0
        for x in xs[start : start + 32]:
            run_sum = add32(run_sum, x & MAGNITUDE if is_finite(x) else 0)
        total = add32(total, run_sum)
    return oracle.divide32(total, rn32(Fraction(count))) if count else 0


AMAX: dict[str, Callable[[Sequence[int]], int]] = {
    "finite": oracle.amax,
    "all": amax_all,
    "ignore-nan": amax_ignoring,
    "signed": amax_signed,
    "absmean": amax_mean,
}

# ---------------------------------------------------------------- quantize, dequantize


def check_covered(r: R, s: S, shape: Shape) -> None:
    oracle.check(s, shape)
    what = f"recipe {r.name} and {s}"
    chooses = [stage for stage in CHOOSING if r.stages[stage]]
    two = s.block_type is not None and s.tensor is not None
    refuse_if(bool(chooses) and ("block" if two else "single") not in chooses, f"{what}: levels")
    kind = s.block_type or s.tensor
    refuse_if(bool(r.values) and s.value not in r.values, f"{what}: value")
    refuse_if(bool(r.scales) and kind not in r.scales, f"{what}: scale type")
    if s.block_type is not None and s.tensor is not None:
        refuse_if(bool(r.tensor_scales) and s.tensor not in r.tensor_scales, f"{what}: tensor scale type")
    refuse_if(("symmetric" if s.table is None else "lookup") not in r.modes, f"{what}: mode")
    if r.whole_blocks and s.block is not None:
        parts = zip(shape, oracle.extents(s, len(shape)), strict=True)
        refuse_if(any(n % e for n, e in parts), f"{what}: partial blocks of {shape}")


def stored(kind: str, bits: int) -> int:
    """The code of exactly this number."""
    if is_nan(bits):
        return oracle.encode_scale(kind, bits)
    if kind in WIDE:
        code = (oracle.wide_sign(kind) if sign_of(bits) else 0) | (
            oracle.wide_inf(kind) if is_inf(bits) else oracle.round_magnitude_to_scale(kind, bits & MAGNITUDE, False)
        )
    else:
        refuse_if(sign_of(bits) != 0 or is_inf(bits), f"{kind} lacks {bits:08x}")
        code = oracle.round_magnitude_to_scale(kind, bits, False)
    refuse_if(oracle.decode_scale(kind, code) != bits, f"{kind} lacks {bits:08x}")
    return code


def whole_blocks_of(xbits: Sequence[int], shape: Shape, s: S) -> list[list[int]]:
    """The places of each whole block, extents cut to their axes; an infinity, which counts in no mean, beyond the tensor."""
    if s.block is None:
        return [list(xbits)]
    sizes = [min(e, n) for e, n in zip(oracle.extents(s, len(shape)), shape, strict=True)]
    found = []
    for cell in oracle.indices(oracle.grid(shape, s)):
        places = []
        for inside in oracle.indices(tuple(sizes)):
            index = tuple(c * size + i for c, size, i in zip(cell, sizes, inside, strict=True))
            exists = all(i < n for i, n in zip(index, shape, strict=True))
            places.append(xbits[oracle.flat(index, shape)] if exists else INF32)
        found.append(places)
    return found


def blocks_of(xbits: Sequence[int], shape: Shape, s: S) -> tuple[list[list[int]], list[int]]:
    """The elements of each block, and the block of each element."""
    cells = oracle.grid(shape, s)
    owner = [oracle.flat(oracle.block_of(index, s, shape), cells) for index in oracle.indices(shape)]
    members: list[list[int]] = [[] for _ in range(math.prod(cells))]
    for x, cell in zip(xbits, owner, strict=True):
        members[cell].append(x)
    return members, owner


decode_scale = lru_cache(maxsize=1 << 16)(oracle.decode_scale)


def scale_names(q: Q, s: S, cell: int) -> dict[str, int]:
    """g, b and s of a block; the scale of a level that the scheme lacks is 1."""
    names = {"g": ONE, "b": ONE}
    if s.tensor is not None and q.tensor_scale_code is not None:
        names["g"] = decode_scale(s.tensor, q.tensor_scale_code)
    if s.block_type is not None and q.scale_codes is not None:
        names["b"] = decode_scale(s.block_type, q.scale_codes[cell])
    two = s.tensor is not None and s.block_type is not None
    return {**names, "s": oracle.multiply32(names["g"], names["b"]) if two else names["b" if s.tensor is None else "g"]}


def quantize(
    xbits: Sequence[int],
    shape: Shape,
    s: S,
    r: R,
    codec: C,
    *,
    scales: Sequence[int] | None = None,
    tensor_scale: int | None = None,
) -> Q:
    """Codes and scales; the report of saturated scales is left out."""
    check_covered(r, s, shape)
    oracle_codecs.check_covered(codec, s.value, s.table)
    refuse_if(scales is not None and s.block_type is None, "block scales, but no block level")
    refuse_if(tensor_scale is not None and s.tensor is None, "tensor scale, but no tensor level")
    members, owner = blocks_of(xbits, shape, s)
    pick = AMAX[r.amax]
    places = whole_blocks_of(xbits, shape, s) if r.amax == "absmean" else members
    whole, each = pick(xbits), [pick(xs) for xs in places]
    for line in r.refuse:
        for numbers in {"A": [whole], "a": each, "x": xbits}.get(line.args[0], []):
            refuse_if(bool(OPERATIONS[line.op](numbers)), f"{line.op}({line.args[0]})")
    tensor_code = None if tensor_scale is None or s.tensor is None else oracle.encode_scale(s.tensor, tensor_scale)
    codes = None if scales is None or s.block_type is None else [oracle.encode_scale(s.block_type, v) for v in scales]
    refuse_if(codes is not None and len(codes) != len(members), "scales are not of the grid")
    single, tensor, block = (r.stages[stage] for stage in CHOOSING)
    if s.tensor is None or s.block_type is None:
        level = s.block_type or s.tensor or ""
        if codes is None and tensor_code is None:
            refuse_if(not single, f"recipe {r.name} chooses no single scale")
            chosen = [stored(level, run(single, {"a": a}, s, level)) for a in each]
            codes, tensor_code = (chosen, None) if s.block_type is not None else (None, chosen[0])
    elif codes is None:
        refuse_if(not block or (tensor_code is None and not tensor), f"recipe {r.name} chooses no two scales")
        if tensor_code is None:
            tensor_code = stored(s.tensor, run(tensor, {"A": whole}, s, s.tensor))
            g = oracle.decode_scale(s.tensor, tensor_code)
        else:
            g = oracle.decode_scale(s.tensor, tensor_code)
            refuse_if(not is_finite(g) or units(g) <= 0, f"tensor scale {g:08x} is not finite and above 0")
        codes = [stored(s.block_type, run(block, {"A": whole, "a": a, "g": g}, s, s.block_type)) for a in each]
    else:
        refuse_if(tensor_code is None, "block scales alone")
    q = Q([], codes, tensor_code)
    names = [{**scale_names(q, s, cell), "a": each[cell], "A": whole} for cell in range(len(members))]
    for x, cell in zip(xbits, owner, strict=True):
        quotient = run(r.stages["element"], {**names[cell], "x": x}, s)
        for line in r.refuse:
            refuse_if(line.args == ("q",) and bool(OPERATIONS[line.op](quotient)), f"{line.op}(q)")
        if is_nan(quotient):
            quotient = NAN32 | sign_of(x)
        q.codes.append(oracle_codecs.encode(s.value, quotient, codec, s.table))
    return q


def dequantize(q: Q, shape: Shape, s: S, r: R, codec: C, out: str = "f32") -> list[int]:
    check_covered(r, s, shape)
    oracle.check_content(q, shape, s)
    owner = blocks_of([0] * math.prod(shape), shape, s)[1]
    names = [scale_names(q, s, cell) for cell in range(max(owner, default=-1) + 1)]
    result = []
    for code, cell in zip(q.codes, owner, strict=True):
        y = run(r.stages["decode"], {**names[cell], "v": oracle_codecs.decode(s.value, code, codec, s.table)}, s)
        result.append(y if out == "f32" else oracle.narrow(y, out))
    return result
