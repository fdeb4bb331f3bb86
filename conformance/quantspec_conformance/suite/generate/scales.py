"""encode_scale and decode_scale of every scale type: every 8-bit code, every 16-bit code on read, thresholds, refusals."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from quantspec import SCALES, ScaleType
from quantspec.scales import decode_codes

from ...examples import Tensor
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    accepted,
    bits32,
    changed,
    f32,
    two,
    typed,
    with_refusals,
)
from .values import NANS, Bits, beside, both_signs, specials

__all__ = ["code_bits", "plans", "spread_codes"]

_DTYPES = {1: "u8", 2: "u16", 4: "u32"}


def code_dtype(row: ScaleType) -> str:
    """dtype of a tensor of scale codes."""
    return _DTYPES[row.size]


def code_bits(codes: npt.ArrayLike, row: ScaleType) -> Bits:
    """Binary32 patterns of scale codes."""
    return bits32(decode_codes(np.asarray(codes, row.code_dtype), row))


def spread_codes(row: ScaleType, count: int) -> npt.NDArray[np.uint64]:
    """Finite magnitude codes: all of them if they are no more than `count`, else a spread with both ends and every exponent's."""
    top = row.largest_code + 1
    if top <= count:
        return np.arange(top, dtype=np.uint64)
    stride = top // count | 1
    exponents = np.arange(0, (row.largest_code >> row.mantissa_bits) + 1, dtype=np.uint64) << np.uint64(
        row.mantissa_bits
    )
    ends = np.concatenate([[0, 1, 2, row.largest_code - 1, row.largest_code], exponents, exponents + np.uint64(1)])
    if row.size == 4:
        return np.unique(ends.astype(np.uint64))
    return np.unique(np.concatenate([np.arange(0, top, stride, dtype=np.uint64), ends.astype(np.uint64)]))


def around(patterns: npt.ArrayLike, reach: int = 1) -> Bits:
    """Non-negative numbers with their neighbours; none below +0."""
    found = beside(patterns, reach)
    return found[found < np.uint32(0x80000000)]


def plans(level: int) -> Iterator[Plan]:
    """The suites of encode_scale and decode_scale."""
    for row in SCALES.values():
        if level == 0:
            yield Plan(Place(row.name, "encode_scale", "first", 0), partial(_encode_first, row))
            yield Plan(Place(row.name, "decode_scale", "first", 0), partial(_decode_first, row))
        elif level == 1:
            yield Plan(Place(row.name, "encode_scale", "boundary", 1), partial(_boundary, row))
            yield Plan(Place(row.name, "decode_scale", "codes", 1), partial(_decode_codes, row))


def _encode(row: ScaleType, rounding: str, slug: str, title: str, x: Bits, *bugs: str) -> Ask:
    words = {"type": row.name, "rounding": rounding}
    return Ask(
        slug=f"{rounding}-{slug}", title=f"{title}, rounding {rounding}", words=words, tensors={"x": f32(x)}, bugs=bugs
    )


def _decode(row: ScaleType, slug: str, title: str, codes: npt.ArrayLike, *bugs: str, **words: str) -> Ask:
    given = {"scale_codes": typed(code_dtype(row), codes)}
    return Ask(slug=slug, title=title, words={"type": row.name, **words}, tensors=given, bugs=bugs)


def _special_codes(row: ScaleType) -> list[int]:
    """Codes of every class, both signs."""
    one = row.bias << row.mantissa_bits
    found = [0, 1, one, one + 1, row.largest_code, row.first_nan_code, row.nan_code]
    found += [] if row.infinity_code is None else [row.infinity_code]
    found += [row.sign_bit | code for code in found] if row.signed else []
    return list(dict.fromkeys(found))


def _encode_first(row: ScaleType, place: Place) -> Iterator[Case]:
    numbers = bits32(
        [0, 1, 3, 0.75, 1.5, 448, 449, 464, 65504, 65520, 65536, two(-9), two(-24), two(-127), two(-149), two(127)]
    )
    for rounding in ("up", "nearest"):
        yield from accepted(
            place,
            [
                _encode(row, rounding, "numbers", "Numbers about the ends of the types", numbers, "scale-rounding"),
                _encode(row, rounding, "nan-inf", "NaN and +Inf", np.array([*NANS, 0x7F800000], np.uint32), "nan-code"),
            ],
        )
        good = _encode(row, rounding, "accepted", "A request that is accepted", bits32([1, 2]))
        yield from with_refusals(place, good, _encode_refused(row, rounding, good))


def _encode_refused(row: ScaleType, rounding: str, good: Ask) -> Iterator[Ask]:
    def bad(slug: str, title: str, x: Tensor, *bugs: str) -> Ask:
        return changed(good, f"{rounding}-{slug}", title, *bugs, x=x)

    yield bad("input-f64", "binary64 is no input", typed("f64", [0x3FF0000000000000] * 2), "dtype")
    if rounding == "up":
        yield changed(good, "rounding-unknown", "No such rounding", rounding="down")
        yield bad("minus-inf", "-Inf has no code", f32([0x3F800000, 0xFF800000]))
    if not row.signed:
        yield bad("minus-one", "An unsigned type has no -1", f32([0x3F800000, 0xBF800000]))
        yield bad("minus-zero", "An unsigned type has no -0", f32([0x80000000, 0x3F800000]), "neg-zero")
    elif row.size == 2 and rounding == "up":
        yield bad("minus-inexact", "A negative number that the type does not hold", f32([0x3F800000, 0xBDCCCCCD]))
        yield bad("minus-subnormal", "A negative number below the smallest", f32([0x80000001, 0x3F800000]), "subnormal")
    if row.name == "f16":
        yield changed(good, f"{rounding}-type-unknown", "No such scale type", type="e8m0")


def _decode_first(row: ScaleType, place: Place) -> Iterator[Case]:
    yield from accepted(
        place, [_decode(row, "classes", "Codes of every class", _special_codes(row), "nan-code", "subnormal")]
    )
    good = _decode(row, "accepted", "Codes that are accepted", [1, 2, 3])
    other = {"u8": "u16", "u16": "u8", "u32": "u16"}[code_dtype(row)]
    bad = [changed(good, "codes-dtype", "Codes of another width", "dtype", scale_codes=typed(other, [1, 2, 3]))]
    if row.bits < 8 * row.size:
        bad.append(changed(good, "bit-7", "Bit 7 of ue4m3", scale_codes=typed("u8", [1, 2, 0x83])))
        bad.append(changed(good, "bit-7-option", "No such option", ue4m3_bit7="clear"))
    yield from with_refusals(place, good, bad)
    if row.bits < 8 * row.size:
        ignored = _decode(row, "bit-7-ignored", "An import clears bit 7", [0x80, 0xB8, 0xFF], ue4m3_bit7="ignore")
        yield from accepted(place, [ignored])


def _boundary(row: ScaleType, place: Place) -> Iterator[Case]:
    """Numbers of codes, middles, their neighbours; ends; signs; NaN; one refused number among them."""
    codes = spread_codes(row, 600 if row.size == 2 else 256)
    values = code_bits(codes, row)
    for rounding in ("up", "nearest"):
        asks = list(_thresholds(row, rounding, codes))
        yield from with_refusals(place, asks[0], _one_refused(row, rounding, asks[0]))
        yield from accepted(place, asks[1:])
    if row.signed:
        minus = values | np.uint32(0x80000000)
        signs = np.concatenate([both_signs(around(values[:: max(1, len(values) // 500)])), specials()])
        yield from accepted(
            place,
            [
                _encode(row, "up", "negative", "Negative numbers that the type holds", minus, "neg-zero"),
                _encode(row, "nearest", "signs", "Both signs", signs, "neg-zero", "sat-vs-inf"),
            ],
        )


def _thresholds(row: ScaleType, rounding: str, codes: npt.NDArray[np.uint64]) -> Iterator[Ask]:
    """Numbers where the code steps under a rounding, those of the codes first."""
    values = code_bits(codes, row)
    nexts = code_bits(np.minimum(codes + np.uint64(1), np.uint64(row.largest_code)), row)
    middle = (values.view(np.float32).astype(np.float64) + nexts.view(np.float32)) / 2
    exact = middle.astype(np.float32).astype(np.float64) == middle
    tops = [448, 456, 464, 480, 65504, 65512, 65520, 65536, two(127), 1.5 * two(127), two(-127), two(-128), two(-149)]
    ends = around(bits32(tops), 2)
    exponents = np.array([e << 23 | m for e in range(255) for m in (0, 1, 0x400000, 0x400001, 0x7FFFFF)], np.uint32)
    nans = np.array([*NANS, 0x7F800000, 0x7F7FFFFF], np.uint32)
    yield _encode(row, rounding, "codes", "Numbers of codes and their neighbours", around(values), "scale-rounding")
    yield _encode(row, rounding, "ends", "Ends of the types and beyond", ends, "scale-overflow", "scale-underflow")
    yield _encode(row, rounding, "positive", "Every exponent", exponents, "scale-rounding", "subnormal", "ftz")
    yield _encode(row, rounding, "nan", "NaN of every kind, +Inf", nans, "nan-code")
    if exact.any() and row.size < 4:
        tied = around(bits32(middle[exact]))
        yield _encode(row, rounding, "middles", "Middles of adjacent codes, and beside", tied, "tie", "scale-rounding")


def _one_refused(row: ScaleType, rounding: str, good: Ask) -> Iterator[Ask]:
    """One number that is refused among the many that are not: the last, one in the middle, the first."""
    wrong: dict[str, int] = {"minus-inf": 0xFF800000} if rounding == "up" else {}
    if not row.signed:
        wrong |= {"minus-zero": 0x80000000, "minus-one": 0xBF800000, "minus-inf": 0xFF800000}
    elif row.size == 2 and rounding == "up":
        wrong |= {"minus-inexact": 0xBDCCCCCD, "minus-large": 0xFF7FFFFF, "minus-subnormal": 0x80000001}
    for number, (name, pattern) in enumerate(wrong.items()):
        x = np.array(good.tensors["x"].patterns, np.uint32)
        x[(-1, x.size // 2, 0)[number % 3]] = pattern
        yield changed(
            good, f"{rounding}-{name}", f"{pattern:08X} among numbers that have codes, rounding {rounding}", x=f32(x)
        )


def _decode_codes(row: ScaleType, place: Place) -> Iterator[Case]:
    """Every code: 8-bit types in one case, 16-bit types in pages of 4096, f32 at its boundaries."""
    if row.size == 1:
        yield from accepted(
            place, [_decode(row, "every-code", "Every code", np.arange(1 << row.bits), "nan-code", "subnormal")]
        )
    elif row.size == 2:
        pages = [(page << 12, np.arange(page << 12, (page + 1) << 12)) for page in range(16)]
        yield from accepted(
            place,
            [
                _decode(row, f"codes-{start:04x}", f"Every code from {start:04X}", page, "nan-code", "subnormal")
                for start, page in pages
            ],
        )
    else:
        exponents = np.arange(256, dtype=np.uint32)[:, None] << 23
        patterns = both_signs(exponents | np.array([0, 1, 0x400000, 0x7FFFFF], np.uint32))
        yield from accepted(
            place, [_decode(row, "exponents", "Every exponent", patterns, "nan-code", "subnormal", "ftz")]
        )
    if row.bits < 8 * row.size:
        every = np.arange(128)
        good = _decode(row, "accepted", "Every code", every)
        bad = []
        for byte in (0x80, 0x81, 0xB8, 0xFE, 0xFF):
            spoiled = every.copy()
            spoiled[byte & 0x7F] = byte
            bad.append(
                changed(good, f"bit-7-{byte:02x}", f"Code {byte:02X} has bit 7 set", scale_codes=typed("u8", spoiled))
            )
        yield from with_refusals(place, good, bad)
        yield from accepted(
            place, [_decode(row, "bit-7-ignored", "An import clears bit 7", np.arange(256), ue4m3_bit7="ignore")]
        )
