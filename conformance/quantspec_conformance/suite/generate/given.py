"""quantize with given scales: numbers and codes of one level and of both, and those that a level cannot hold."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from quantspec import SCALES, ScaleType, Scheme

from ...examples import Tensor
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    bits32,
    changed,
    data_for,
    f32,
    positives,
    scheme_request,
    slug_of,
    two,
    typed,
    with_refusals,
)
from .scales import code_bits, code_dtype, spread_codes
from .values import NANS

__all__ = ["X", "given_ask", "given_plans"]

Codes = npt.NDArray[np.uint64]
X = bits32([1, -2.5, 0.75, 6, -0.0, 3, 100, -0.125])


def given_plans() -> Iterator[Plan]:
    """The suites of given scales, by scale type."""
    for scale in SCALES.values():
        yield positives(Place(scale.name, "quantize", "given", 1), partial(_given, scale))
        yield positives(Place(scale.name, "quantize", "report", 1), partial(_reports, scale))
        yield Plan(Place(scale.name, "quantize", "given-refused", 1), partial(_refused, scale))


def _reports(scale: ScaleType) -> Iterator[Ask]:
    """What quantize says of scales that saturated: none, the first of some, both levels."""
    top = float(scale.largest)
    above = bits32(np.array([1, 2, top, 3, min(top * 1024, 3.0e38), 5, -3.0e38, 0], np.float32).reshape(4, 2))
    for slug, text, x, given in (
        ("block", f"e2m1.native.b2-{scale.name}", above, {}),
        ("tensor", f"q2s.native.t-{scale.name}", above, {}),
        ("none", f"e2m1.native.b2-{scale.name}", bits32([[1, 2], [3, 4], [0, 0], [-1, 5]]), {}),
        ("two-levels", f"e2m1.native.b2-{scale.name}.t-ue4m3", above, {}),
        ("given", f"e2m1.native.b2-{scale.name}", above, {"scales": f32(bits32([3.0e38, 1, 2, 3.0e38]), (4, 1))}),
        ("given-tensor", f"e2m1.native.b2-{scale.name}.t-f32", above, {"tensor_scale": f32(bits32(two(-20)), ())}),
    ):
        asked = given_ask(text, slug, "which scales saturated", "scale-overflow", x=f32(x, x.shape), **given)
        yield replace(asked, features=("report",))


def given_ask(text: str, slug: str, title: str, *bugs: str, **tensors: Tensor) -> Ask:
    scheme = Scheme.parse(text)
    return Ask(
        slug=slug,
        title=f"{text}: {title}",
        words=scheme_request(scheme)[0],
        tensors=tensors,
        bugs=bugs,
        part=slug_of(text),
    )


def _given(scale: ScaleType) -> Iterator[Ask]:
    """Values and codes of one level and of both; a tensor scale alone; numbers of every class."""
    codes = spread_codes(scale, 128)
    codes = codes[:: max(1, len(codes) // 128)]
    numbers = code_bits(codes, scale)
    between = np.minimum(numbers + np.uint32(3), np.uint32(0x7F800000))
    classes = np.array([0, 1, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, *NANS], np.uint32)
    if scale.signed:
        classes = np.concatenate([classes, code_bits(codes[::16], scale) | np.uint32(0x80000000)])
    for name, numbers_of, bugs in (
        ("numbers", numbers, ("scale-rounding",)),
        ("between", between, ("scale-rounding",)),
        ("classes", classes, ("nan-code", "neg-zero", "scale-overflow")),
    ):
        text = f"e4m3.native.b2-{scale.name}"
        x = data_for(f"given.{scale.name}.{name}", "heavy", (len(numbers_of), 2), Scheme.parse(text))
        yield given_ask(
            text, name, f"{name} given as block scales", *bugs, x=x, scales=f32(numbers_of, (len(numbers_of), 1))
        )
    yield from _given_otherwise(scale, codes)
    yield from _tensor_given(scale, codes)


def _given_otherwise(scale: ScaleType, codes: Codes) -> Iterator[Ask]:
    """16-bit numbers, and codes."""
    sixteen = {"f16": [0x3C00, 0x0001, 0x7BFF, 0x7E00, 0x7C00], "bf16": [0x3F80, 0x0001, 0x7F7F, 0x7FC0, 0x7F80]}
    for dtype, patterns in sixteen.items():
        text = f"q4s.packed_u32_0.b8-{scale.name}"
        x = f32(np.tile(X, 5), (5, 8))
        yield given_ask(
            text,
            f"scales-{dtype}",
            f"block scales given as {dtype}",
            "dtype",
            x=x,
            scales=typed(dtype, patterns, (5, 1)),
        )
    every = np.arange(1 << scale.bits) if scale.size == 1 else codes
    text = f"q8s.native.b2-{scale.name}"
    x = data_for(f"given.{scale.name}.codes", "normal", (len(every), 2), Scheme.parse(text))
    yield given_ask(
        text,
        "codes",
        "block scales given as codes",
        "nan-code",
        x=x,
        scale_codes=typed(code_dtype(scale), every, (len(every), 1)),
    )


def _tensor_given(scale: ScaleType, codes: Codes) -> Iterator[Ask]:
    one = scale.bias << scale.mantissa_bits
    for block in ("ue4m3", "ue8m0", "f16"):
        text = f"e2m1.native.b4-{block}.t-{scale.name}"
        x = data_for(f"given.{block}.{scale.name}", "heavy", (6, 10), Scheme.parse(text))
        for name, code in (
            ("one", one),
            ("least", 1),
            ("largest", scale.largest_code),
            ("middle", int(codes[len(codes) // 3]) | 1),
        ):
            given = typed(code_dtype(scale), [code], ())
            yield given_ask(
                text,
                f"tensor-code-{name}",
                f"tensor scale code {code:X} given",
                "decode-order",
                "scale-overflow",
                x=x,
                tensor_scale_code=given,
            )
        number = f32(bits32(0.7), (1, 1))
        yield given_ask(
            text,
            "tensor-number",
            "a tensor scale given as a number of two axes",
            "scale-rounding",
            x=x,
            tensor_scale=number,
        )
        grid = f32(np.full(18, 0x3F800000), (6, 3))
        yield from _both_given(scale, text, x, number, grid)


def _both_given(scale: ScaleType, text: str, x: Tensor, number: Tensor, grid: Tensor) -> Iterator[Ask]:
    """Both levels, a tensor scale code of NaN and of zero among them."""
    yield given_ask(text, "both-numbers", "both levels given", "decode-order", x=x, tensor_scale=number, scales=grid)
    for name, code in (("nan", scale.nan_code), ("zero", 0)):
        given = typed(code_dtype(scale), [code], ())
        yield given_ask(
            text,
            f"both-{name}",
            f"both given, a tensor scale code of {name}",
            "nan-code",
            x=x,
            tensor_scale_code=given,
            scales=grid,
        )


def _refused(scale: ScaleType, place: Place) -> Iterator[Case]:
    """Given scales that a level cannot hold."""
    text = f"q4s.native.b4-{scale.name}"
    good = given_ask(text, "accepted", "given scales that are accepted", x=f32(X), scales=f32(bits32([1, 2])))
    bad = [changed(good, "minus-inf", "-Inf is no scale", scales=f32([0x3F800000, 0xFF800000]))]
    if not scale.signed:
        bad += [
            changed(good, "minus-zero", "no -0 in an unsigned type", "neg-zero", scales=f32([0x80000000, 0x3F800000])),
            changed(good, "minus-one", "no -1 in an unsigned type", scales=f32([0x3F800000, 0xBF800000])),
        ]
    elif scale.size == 2:
        bad += [
            changed(good, "minus-inexact", "a negative scale that is not exact", scales=f32([0xBDCCCCCD, 0x3F800000])),
            changed(
                good,
                "minus-large",
                "a negative scale beyond the type",
                "scale-overflow",
                scales=f32([0x3F800000, 0xFF7FFFFF]),
            ),
        ]
    yield from with_refusals(place, good, bad)
    yield from _codes_refused(scale, text, place)
    yield from _tensor_refused(scale, place)


def _codes_refused(scale: ScaleType, text: str, place: Place) -> Iterator[Case]:
    given = typed(code_dtype(scale), [1, 2])
    good = given_ask(text, "accepted-codes", "given codes that are accepted", x=f32(X), scale_codes=given)
    other = typed("u16" if scale.size == 1 else "u8", [1, 2])
    bad = [
        changed(good, "codes-dtype", "codes of another width", "dtype", scale_codes=other),
        changed(good, "codes-shape", "codes of another shape", scale_codes=typed(code_dtype(scale), [1, 2], (2, 1))),
    ]
    if scale.bits < 8 * scale.size:
        bad.append(changed(good, "bit-7", "bit 7 of ue4m3", scale_codes=typed("u8", [0x81, 1])))
    yield from with_refusals(place, good, bad)


def _tensor_refused(scale: ScaleType, place: Place) -> Iterator[Case]:
    """A tensor scale alone that is not finite and above 0."""
    text = f"q4s.native.b4-ue8m0.t-{scale.name}"
    one = scale.bias << scale.mantissa_bits
    good = given_ask(
        text, "accepted-tensor", "a tensor scale alone", x=f32(X), tensor_scale_code=typed(code_dtype(scale), [one], ())
    )
    wrong = {"nan": scale.nan_code} | ({"zero": 0} if scale.has_zero else {})
    wrong |= {"inf": scale.infinity_code} if scale.infinity_code is not None else {}
    wrong |= {"minus-one": scale.sign_bit | one, "minus-zero": scale.sign_bit} if scale.signed else {}
    yield from with_refusals(
        place,
        good,
        [
            changed(
                good,
                f"tensor-{name}",
                f"a tensor scale alone that is {name}",
                tensor_scale_code=typed(code_dtype(scale), [code], ()),
            )
            for name, code in wrong.items()
        ],
    )
