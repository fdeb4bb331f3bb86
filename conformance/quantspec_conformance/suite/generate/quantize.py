"""quantize and dequantize: the first schemes, pairwise rows, thresholds of scales and quotients, special scales, given scales."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from quantspec import SCALES, VALUES, ScaleType, Scheme, ValueFormat

from .common import (
    Ask,
    Place,
    Plan,
    codes_of,
    data_for,
    drawn,
    f32,
    positives,
    shape_slug,
    slug_of,
    typed,
)
from .given import given_plans
from .metamorphic import metamorphic_plans
from .refused import refused_plans
from .scales import code_dtype
from .schemes import ask, by_value, first_schemes, readable, rows_for, scheme_of
from .thresholds import class_pairs, positions, quotients, scale_steps
from .values import NANS, both_signs, legal_codes

__all__ = ["plans"]

#: What a family of data hunts.
FAMILY_BUGS: dict[str, tuple[str, ...]] = {
    "normal": (),
    "ties": ("tie", "reciprocal", "double-rounding"),
    "scale-steps": ("scale-rounding",),
    "exponents": ("subnormal",),
    "negative-zero": ("neg-zero",),
    "nan": ("nan-code",),
    "inf": ("sat-vs-inf",),
    "tiny": ("ftz", "scale-underflow"),
    "heavy": ("subnormal", "scale-underflow"),
    "f16": ("dtype",),
    "bf16": ("dtype",),
    "non-finite": ("zero-block", "nan-code"),
    "flt-max": ("scale-overflow",),
    "next-above": ("scale-rounding", "ftz"),
    "one-subnormal": ("ftz", "scale-underflow"),
    "zero": ("zero-block",),
}


#: Suites of level 1 for each value.
SUITES: dict[str, Callable[[ValueFormat], Iterator[Ask]]] = {
    "scale-steps": scale_steps,
    "quotients": quotients,
    "class-pairs": class_pairs,
    "positions": positions,
}


def plans(level: int) -> Iterator[Plan]:
    """The suites of quantize and dequantize."""
    if level == 0:
        for name, group in by_value(first_schemes()):
            for op in ("quantize", "dequantize"):
                yield positives(Place(name, op, "first", 0), partial(_first, group, op))
        yield from refused_plans()
    elif level == 1:
        yield from _row_plans("pairwise", 1, 2)
        for row in VALUES.values():
            for suite, make in SUITES.items():
                yield positives(Place(row.name, "quantize", suite, 1), partial(make, row))
            yield positives(Place(row.name, "quantize", "special-scales", 1), partial(_special_quantize, row))
            yield positives(Place(row.name, "dequantize", "special-scales", 1), partial(_special_dequantize, row))
            yield positives(Place(row.name, "quantize", "empty", 1), partial(_empty, row))
        yield from given_plans()
        yield from metamorphic_plans()
    else:
        yield from _row_plans("threewise", 2, 3)
        for row in VALUES.values():
            yield positives(Place(row.name, "quantize", "large", 2), partial(_large, row))


def _row_plans(suite: str, level: int, strength: int) -> Iterator[Plan]:
    for name in VALUES:
        for op in ("quantize", "dequantize"):
            rows = [row for row in rows_for(op, strength) if row["value"] == name]
            place = Place(name, op, suite, level)
            yield positives(place, partial(_rows, place, rows))


def _rows(place: Place, rows: Sequence[dict[str, Any]]) -> Iterator[Ask]:
    """A case a row: data of the family to quantize; drawn codes and scale codes to dequantize."""
    for row in rows:
        scheme, shape, family = scheme_of(row), row["shape"], row["family"]
        slug = f"{family}-{shape_slug(shape)}"
        key = f"{place.op}.{slug_of(scheme.text)}.{place.name}.{slug}"
        partial = () if scheme.block is None else _partial(scheme, shape)
        if place.op == "quantize":
            x = data_for(key, family, shape, scheme)
            yield ask(scheme, slug, f"{family} data of {shape}", {"x": x}, *FAMILY_BUGS[family], *partial)
        else:
            to = ("f32", "f16", "bf16")[sum(map(ord, key)) % 3]
            given = drawn(key, scheme, shape)
            bugs = ("block-index", "decode-order", *partial)
            yield ask(scheme, f"{slug}-{to}", f"drawn codes and scales of {shape}, to {to}", given, *bugs, to=to)


def _partial(scheme: Scheme, shape: Sequence[int]) -> tuple[str, ...]:
    extents = scheme.extents(len(shape))
    return ("partial-block",) if any(size % extent for size, extent in zip(shape, extents, strict=True)) else ()


def _first(schemes: Sequence[Scheme], op: str) -> Iterator[Ask]:
    """A few elements of ordinary data, a partial block, specials; drawn codes of every class."""
    for scheme in schemes:
        shape, slug = (2, 19), slug_of(scheme.text)
        if op == "dequantize":
            if not readable(scheme, op):
                continue
            for to in ("f32", "f16", "bf16"):
                given = drawn(f"first.{slug}", scheme, shape, finite=to == "f32")
                yield ask(scheme, to, f"drawn codes, to {to}", given, "decode-order", "block-index", to=to)
            continue
        for family in ("normal", "ties", "nan", "negative-zero"):
            x = data_for(f"first.{slug}.{family}", family, shape, scheme)
            yield ask(scheme, family, f"{family} data", {"x": x}, *FAMILY_BUGS[family], "partial-block")


def special_scale_codes(scale: ScaleType) -> list[int]:
    """Codes of every class that a read takes: zeros, ends, 1, NaN, Inf, negative."""
    one = scale.bias << scale.mantissa_bits
    found = [
        0,
        1,
        one,
        one + (1 << scale.mantissa_bits) // 3 + 1,
        scale.largest_code,
        scale.nan_code,
        scale.first_nan_code,
    ]
    found += [] if scale.infinity_code is None else [scale.infinity_code]
    found += [scale.sign_bit | code for code in (0, one + 1, scale.nan_code, found[-1])] if scale.signed else []
    return [code for code in dict.fromkeys(found) if code < 1 << scale.bits]


def _special_quantize(row: ValueFormat) -> Iterator[Ask]:
    """Elements of every class under given scale codes of every class."""
    x = np.concatenate(
        [
            both_signs([0, 1, 0x00800000, 0x3F800000, 0x3FC00000, 0x47800000, 0x7F7FFFFF, 0x7F800000]),
            np.array(NANS, np.uint32),
        ]
    )
    for scale in SCALES.values():
        codes = special_scale_codes(scale)
        shape = (len(codes), len(x))
        scheme = Scheme(row, "native", block=(len(x), scale))
        given = {
            "x": f32(np.tile(x, len(codes)), shape),
            "scale_codes": typed(code_dtype(scale), codes, (len(codes), 1)),
        }
        yield ask(
            scheme,
            "classes",
            "every class of number under every class of scale",
            given,
            "zero-block",
            "nan-code",
            "neg-zero",
        )


def _special_dequantize(row: ValueFormat) -> Iterator[Ask]:
    """Every legal code under scale codes of every class, to each output."""
    codes = legal_codes(row)
    for scale in SCALES.values():
        special = special_scale_codes(scale)
        shape = (len(special), len(codes))
        scheme = Scheme(row, "native", block=(len(codes), scale))
        given = {
            "codes": codes_of(np.tile(codes, len(special)), shape),
            "scale_codes": typed(code_dtype(scale), special, (len(special), 1)),
        }
        for to in ("f32", "f16", "bf16"):
            yield ask(
                scheme,
                f"every-code-{to}",
                f"every code under every class of scale, to {to}",
                given,
                "nan-code",
                "sat-vs-inf",
                "ftz",
                to=to,
            )
    for tensor in SCALES.values():
        scheme = Scheme(row, "native", block=(4, "f16"), tensor=tensor)
        given = drawn(f"special.{row.name}.{tensor.name}", scheme, (4, 16))
        for name, code in (("zero", 0), ("nan", tensor.nan_code), ("one", 1), ("largest", tensor.largest_code)):
            given["tensor_scale_code"] = typed(code_dtype(tensor), [code], ())
            yield ask(
                scheme, f"tensor-{name}", f"a tensor scale of code {code:X}", given, "decode-order", "nan-code", "ftz"
            )


def _empty(row: ValueFormat) -> Iterator[Ask]:
    """Tensors without elements still have a tensor scale."""
    for text, shape in (
        ("packed_u32_0.b2-ue4m3.t-f16", (3, 0, 4)),
        ("packed_native_1.b3-f16.t-ue4m3", (5, 0)),
    ):
        scheme = Scheme.parse(f"{row.name}.{text}")
        yield ask(scheme, f"none-{shape_slug(shape)}", f"no elements, {shape}", {"x": f32([], shape)}, "zero-block")


def _large(row: ValueFormat) -> Iterator[Ask]:
    """2^16 elements of each family that has many."""
    for number, family in enumerate(("normal", "ties", "scale-steps", "heavy", "nan", "tiny")):
        text = ("b32-ue8m0", "b16-ue4m3.t-f32", "b16x16-f16", "t-f32", "b7-bf16", "b128x3-f32.t-bf16")[number]
        scheme = Scheme.parse(f"{row.name}.packed_u32_{number % 2}.{text}")
        x = data_for(f"large.{slug_of(scheme.text)}.{family}", family, (256, 256), scheme)
        yield ask(scheme, family, f"2^16 elements of {family} data", {"x": x}, *FAMILY_BUGS[family], "block-index")
