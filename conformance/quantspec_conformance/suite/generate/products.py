"""product: fma, runs of 32, the order of sums, special numbers, narrowing, shapes; product_codes is in segments."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from quantspec import Scheme

from ...examples import Tensor
from ..case import Case
from .common import Ask, Place, Plan, bits32, changed, f32, positives, rng_of, shape_slug, slug_of, typed, with_refusals
from .numbers import CARRIER, CLASSES, about_ties, any_numbers, carried, negated, quantized, random_bits, wide
from .schemes import ask, by_value, covered, first_schemes, readable, scheme_of
from .segments import codes_plans
from .values import both_signs

__all__ = ["RUNS", "plans"]

#: Sizes of the summed axis about the ends of runs.
RUNS = (31, 32, 33, 63, 64, 65, 97)
BIG, ONE = 0x4B800000, 0x3F800000
UNIT = {"tensor_scale_code": typed("u32", [ONE], ())}


def plans(level: int) -> Iterator[Plan]:
    """The suites of product and product_codes."""
    if level == 0:
        yield positives(Place("scheme", "product", "first", 0), _first)
        yield Plan(Place("scheme", "product", "refused", 0), _refused)
        for name, group in by_value(first_schemes()):
            yield positives(Place(name, "product", "first", 0), partial(_schemes, group))
    elif level == 1:
        for suite, make in SUITES.items():
            yield positives(Place("scheme", "product", suite, 1), make)
        yield positives(Place("scheme", "product", "pairwise", 1), _pairwise)
    else:
        yield positives(Place("scheme", "product", "large", 2), _large)
    yield from codes_plans(level)


def _weights(slug: str, title: str, x: Tensor, w: Any, shape: tuple[int, int], *bugs: str, **words: str) -> Ask:
    """x times weights that are any binary32 numbers."""
    return ask(Scheme.parse(CARRIER), slug, title, {"x": x, **carried(w, shape)}, *bugs, **words)


def _column(slug: str, title: str, x: Tensor, codes: Any, *bugs: str, **words: str) -> Ask:
    """x times a column of whole numbers."""
    given = {"x": x, "codes": typed("u8", codes, (len(codes), 1)), **UNIT}
    return ask(Scheme.parse("q8s.native.t-f32"), slug, title, given, *bugs, **words)


def _sparse(size: int, *rows: dict[int, int]) -> Tensor:
    """Rows of zeros, with patterns at some indices."""
    x = np.zeros((len(rows), size), np.uint32)
    for row, entries in zip(x, rows, strict=True):
        for place, pattern in entries.items():
            row[place] = pattern
    return f32(x, x.shape)


def _first() -> Iterator[Ask]:
    """Small products, one for each rule."""
    one_and_a_bit, less = 0x3F800800, 0xBF801000
    yield _weights(
        "fma", "what fma keeps of a product", f32([less, one_and_a_bit]), [ONE, one_and_a_bit], (2, 1), "contraction"
    )
    yield _weights("subnormals", "half of the smallest number counts", f32([0x1A800000, 0x1A000000]), [0x1A000000] * 2, (2, 1),
                   "ftz", "contraction")  # fmt: skip
    yield _column("ascending", "both ones are lost", f32([BIG, ONE, ONE]), [1, 1, 1], "accumulation")
    yield _column("run-33", "what is lost in run 0 is kept in run 1",
                  _sparse(34, {0: BIG, 16: ONE, 17: ONE, 32: ONE, 33: ONE}), [1] * 34, "accumulation")  # fmt: skip
    yield _column("minus-zero", "a run starts as +0", f32([0xBF800000]), [0], "neg-zero", "accumulation")
    yield _column("nan", "infinity minus infinity", f32([0x7F800000, 0xFF800000]), [1, 1], "nan-code")
    yield _column("nan-payload", "NaN has one pattern", f32([0xFFA00001, ONE]), [1, 1], "nan-code")
    yield _column("infinity-times-zero", "infinity times 0", f32([0xFF800000, ONE]), [0, 1], "nan-code", "sat-vs-inf")
    for to in ("f32", "f16", "bf16"):
        x = typed("f16", [0x6800, 0x3C00, 0x3C00])
        yield _column(f"to-{to}", f"2048 + 1 + 1 in f16, to {to}", x, [1, 1, 1], "double-rounding", "dtype", to=to)
    small, w = bits32(np.arange(1, 7)), [1, 2, 0xFD, 4, 5, 0xFA]
    for shape in ((3,), (1, 3), (2, 3), (2, 1, 3), (1, 2, 1, 3)):
        count = int(np.prod(shape))
        given = {"x": f32(small[:count], shape), "codes": typed("u8", w, (3, 2)), **UNIT}
        yield ask(Scheme.parse("q8s.native.t-f32"), shape_slug(shape), f"{shape} times (3, 2)", given, "axis")
    for shape, size in (
        ((2, 0), (0, 3)),
        ((0,), (0, 2)),
        ((0, 3), (3, 2)),
        ((2, 3), (3, 0)),
        ((2, 0, 3), (3, 2)),
        ((0, 0), (0, 0)),
    ):
        given = {"x": f32([0] * int(np.prod(shape)), shape), "codes": typed("u8", w[: int(np.prod(size))], size),
                 "tensor_scale_code": typed("u32", [0xBF800000], ())}  # fmt: skip
        slug = f"{shape_slug(shape)}-by-{shape_slug(size)}"
        yield ask(Scheme.parse("q8s.native.t-f32"), slug, f"{shape} times {size}", given, "zero-block")


def _schemes(group: list[Scheme]) -> Iterator[Ask]:
    for scheme in group:
        if readable(scheme, "product"):
            yield _on_scheme(scheme, (7, 4), (2,), "f32", "f32")


def _on_scheme(scheme: Scheme, shape: tuple[int, ...], lead: tuple[int, ...], kind: str, to: str) -> Ask:
    """Random x times a quantized matrix."""
    key = f"product.{scheme.text}.{shape_slug(shape)}"
    x_shape = (*lead, shape[0])
    x = random_bits(f"{key}.x", int(np.prod(x_shape)), 122, 132)
    narrowed = {
        "f32": x,
        "bf16": x >> np.uint32(16),
        "f16": (x >> np.uint32(16) & np.uint32(0x87FF)) | np.uint32(0x3800),
    }
    given = {**quantized(key, scheme, shape), "x": typed(kind, narrowed[kind], x_shape)}
    slug = f"{kind}-{shape_slug(x_shape)}-by-{shape_slug(shape)}-to-{to}"
    title = f"{kind} {x_shape} times {shape}, to {to}"
    return ask(scheme, slug, title, given, "accumulation", "contraction", "axis", "block-index", "nibble-order", to=to)


def _pairwise() -> Iterator[Ask]:
    """Members of schemes, sizes, types of x and of the result: every two of them meet."""
    rows = covered(
        shape=((35, 5), (64, 3), (33, 2), (7, 9), (16, 1), (1, 6)),
        extents=((16,), (2,), (3,), (2, 3), (16, 1), (32, 2), None),
        store=("native", "packed_native_0", "packed_native_1", "packed_u32_0", "packed_u32_1"),
        lead=((2,), (), (1, 2), (3,)),
        kind=("f32", "f16", "bf16"),
        to=("f32", "f16", "bf16"),
    )
    for row in rows:
        yield _on_scheme(scheme_of(row), row["shape"], row["lead"], row["kind"], row["to"])


def _fma() -> Iterator[Ask]:
    """Sums that a second rounding changes: of the product, or of a sum in binary64."""
    a, b = random_bits("product.fma.a", 1, 118, 134), random_bits("product.fma.b", 64, 118, 134)
    product = (a.view(np.float32) * b.view(np.float32)).view(np.uint32)
    x = f32([ONE, int(a[0])])
    for name, c in (("cancelled", negated(product)), ("doubled", product)):
        w = np.stack([c, b])
        yield _weights(name, f"a product and itself rounded, {name}", x, w, (2, 64), "contraction")
    tail = np.array([0x3F800001, 0x3F7FFFFE], np.uint32).view(np.float32)  # (1 + 2^-23)(1 - 2^-23) = 1 - 2^-46
    z = random_bits("product.fma.z", 64, 120, 134) | np.uint32(1)
    ulp = ((z >> np.uint32(23) & np.uint32(0xFF)) - np.uint32(24)) << np.uint32(23)  # half of the last bit of z
    for name, sign in (("above", 0), ("below", 0x80000000)):
        y = (tail[1] * (ulp | np.uint32(sign)).view(np.float32)).view(np.uint32)
        w = np.stack([z, y])
        yield _weights(
            f"tie-{name}", f"a hair {name} a tie, beyond binary64", f32([ONE, int(tail[:1].view(np.uint32)[0])]), w, (2, 64),
            "contraction", "double-rounding", "tie",
        )  # fmt: skip
    low = random_bits("product.fma.low", 64, 40, 66)
    high = random_bits("product.fma.high", 2, 60, 64)
    yield _weights(
        "subnormal", "sums of subnormal products", f32(high), np.stack([low, low[::-1]]), (2, 64), "ftz", "contraction"
    )
    large = random_bits("product.fma.large", 64, 186, 192)
    yield _weights("overflow", "products about the largest number, taken back", f32([0x5F000000, 0xDF000001]),
                   np.stack([large, large]), (2, 64), "sat-vs-inf", "contraction")  # fmt: skip


def _runs() -> Iterator[Ask]:
    """Sizes about the ends of runs, on numbers whose sum depends on the order; and where each number falls."""
    for size in RUNS:
        x, w = wide(f"product.runs.{size}.x", (3, size)), wide(f"product.runs.{size}.w", (size, 4))
        yield _weights(f"k-{size}", f"K = {size}", f32(x, x.shape), w, (size, 4), "accumulation")
    ones = [
        (0, 16, 17), (0, 15, 16), (0, 31, 32), (0, 30, 31), (0, 32, 33), (31, 32, 33), (32, 33, 34), (32, 62, 63), (32, 63, 64),
        (0, 63, 64), (64, 65, 66), (16, 31, 32), (1, 2, 33),
    ]  # fmt: skip
    for name, number in (("places", BIG), ("places-odd", BIG + 1)):
        rows = _sparse(67, *({big: number, first: ONE, second: ONE} for big, first, second in ones))
        yield _column(name, f"{number:08X} and two ones at many places", rows, [1] * 67, "accumulation")
    cancel = _sparse(66, {0: BIG, 1: ONE, 33: 0xCB800000}, {0: BIG, 33: 0xCB800000, 34: ONE}, {5: ONE, 32: BIG, 65: 0xCB800000},
                     {31: ONE, 32: 0xCB800000, 64: BIG}, {0: ONE, 31: BIG, 32: 0xCB800000})  # fmt: skip
    yield _column("cancelled", "2^24 comes and goes in other runs", cancel, [1] * 66, "accumulation")


def _order() -> Iterator[Ask]:
    """Within a run: permutations of numbers whose sum depends on the order; runs that meet in order."""
    three = [BIG, ONE, 0xCB800000, 0x3F000000]
    orders = [(i, j, k, 6 - i - j - k) for i in range(4) for j in range(4) for k in range(4) if len({i, j, k}) == 3]
    x = np.array([[three[i] for i in order] for order in orders], np.uint32)
    yield _column("permuted", "2^24, 1, -2^24 and 1/2 in every order", f32(x, x.shape), [1] * 4, "accumulation")
    for size in (4, 8, 16, 32):
        x, w = wide(f"product.order.{size}.x", (4, size)), wide(f"product.order.{size}.w", (size, 5))
        yield _weights(f"k-{size}", f"one run of {size}", f32(x, x.shape), w, (size, 5), "accumulation")
    runs = [{32 * run: pattern for run, pattern in enumerate(row)} for row in x[:, :4]]
    yield _column("runs", "four runs of one number each", _sparse(97, *runs), [1] * 97, "accumulation")


def _zeros() -> Iterator[Ask]:
    """Products of -0, and sums that cancel: +0 all of them; and -0 that an underflow makes."""
    zeros = f32([0x80000000, 0x00000000] * 2, (4, 1))
    yield _weights(
        "signs", "zeros times zeros", zeros, [0x80000000, 0, 0xBF800000, ONE], (1, 4), "neg-zero", "accumulation"
    )
    x = _sparse(33, {0: 0x80000000, 32: 0x80000000}, {0: ONE, 32: 0xBF800000}, {32: 0x80000001}, {0: 0x80000001})
    yield _weights("runs", "-0 in each of two runs", x, [ONE] * 32 + [1], (33, 1), "neg-zero", "accumulation")
    least = f32([0x80000001, 0x80012345, 1, 0x80000001], (4, 1))
    yield _weights("first-run", "the first run is -0 by underflow, and is added to +0", least, [1, 0x00000100, 0x80000001], (1, 3),
                   "neg-zero", "accumulation")  # fmt: skip
    tiny = f32([0x80000001, 1, 0x80000001, 0x007FFFFF], (2, 2))
    yield _weights("underflow", "products below the smallest number", tiny, [1, 0x80000001, 0x3F000000, 0x3F000001], (2, 2),
                   "neg-zero", "ftz")  # fmt: skip


def _special() -> Iterator[Ask]:
    """Every two special numbers as factors, as addends of one run and of two."""
    numbers = any_numbers()
    size = len(numbers)
    bugs = ("nan-code", "sat-vs-inf", "ftz", "neg-zero")
    yield _weights(
        "factors", "every two special numbers, multiplied", f32(numbers, (size, 1)), numbers, (1, size), *bugs
    )
    x = np.stack([numbers, np.full(size, ONE, np.uint32)], 1)
    w = np.stack([np.full(size, ONE, np.uint32), numbers])
    yield _weights("addends", "every two special numbers, added", f32(x, x.shape), w, (2, size), *bugs)
    count = len(CLASSES)
    x = np.zeros((count, 34), np.uint32)
    x[:, 0], x[:, 33] = CLASSES, ONE
    w = np.full((34, count), ONE, np.uint32)
    w[33] = CLASSES
    yield _weights(
        "runs", "a number of each class in either run", f32(x, x.shape), w, (34, count), *bugs, "accumulation"
    )
    w[1:33] = 0x7F800000
    yield _weights(
        "zeros-times-infinity", "zeros times infinities are not skipped", f32(x, x.shape), w, (34, count), *bugs
    )


def _narrowing() -> Iterator[Ask]:
    """Results about the ties of f16 and bf16; x of these types; sums that a type of 16 bits would lose."""
    bugs = ("tie", "double-rounding", "sat-vs-inf", "subnormal")
    for to in ("f16", "bf16"):
        numbers = about_ties(to)
        yield _weights(
            f"to-{to}", f"results about the ties of {to}", f32(numbers, (len(numbers), 1)), [ONE], (1, 1), *bugs, to=to
        )
        half = np.stack([numbers, numbers], 1)
        yield _weights(
            f"sum-to-{to}",
            "halves that are added, then rounded",
            f32(half, half.shape),
            [0x3E800000] * 2,
            (2, 1),
            *bugs,
            to=to,
        )
        special = both_signs(
            [0, 1, 0x3FF, 0x400, 0x3C01, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7F7F, 0x7F80, 0x7F81]
        ) & np.uint32(0x7FFF)
        signs = np.tile(np.array([0, 0x8000], np.uint32), len(special) // 2)
        x = typed(to, special | signs, (len(special), 1))
        yield _weights(
            f"from-{to}", f"x of {to}: subnormals, infinities, NaN", x, [ONE, 0x3EAAAAAB], (1, 2), "dtype", "nan-code"
        )
        drawn = random_bits(f"product.narrow.{to}", 66, 120, 134) >> np.uint32(16)
        x = typed(to, drawn if to == "bf16" else (drawn & np.uint32(0x87FF)) | np.uint32(0x3800), (2, 33))
        w = wide(f"product.narrow.{to}.w", (33, 3))
        yield _weights(f"{to}-to-{to}", f"{to} in, {to} out", x, w, (33, 3), *bugs, "accumulation", to=to)


def _rounded() -> Iterator[Ask]:
    """Weights are rounded before they meet x: scales are not taken out of a sum, nor multiplied into x."""
    for text in (
        "q8s.native.t-f32", "q8s.native.b40-f32", "q8s.native.b4x1-f32", "e4m3.native.b8x1-f16.t-f32",
        "q4f.native.lut-nf4.b4x1-f32", "e2m1.packed_u32_1.b16x1-ue4m3.t-f32",
    ):  # fmt: skip
        scheme = Scheme.parse(text)
        given = quantized(f"product.rounded.{text}", scheme, (40, 4))
        x = random_bits(f"product.rounded.{text}.x", 80, 122, 132)
        yield ask(scheme, "scales", "scales stay where dequantize has them", {**given, "x": f32(x, (2, 40))}, "accumulation",
                  "decode-order")  # fmt: skip


SUITES = {
    "fma": _fma,
    "runs": _runs,
    "order": _order,
    "zeros": _zeros,
    "special": _special,
    "narrowing": _narrowing,
    "rounded": _rounded,
}


def _large() -> Iterator[Ask]:
    for text in ("q4s.packed_u32_0.b32-f16", "e2m1.packed_native_1.b16x1-ue4m3.t-f32", "q8s.native.t-f32"):
        yield _on_scheme(Scheme.parse(text), (1000, 33), (5,), "f32", "f32")


def _refused(place: Place) -> Iterator[Case]:
    """Sizes and ranks that do not fit, types that are none."""
    x = random_bits("product.refused", 12, 122, 132)
    text = "q8s.native.b2x1-f16"
    good = Ask(
        slug="accepted", title="accepted", words={"scheme": text}, part=slug_of(text),
        tensors={"x": f32(x[:6], (2, 3)), "codes": typed("u8", range(1, 7), (3, 2)),
                 "scale_codes": typed("u16", [0x3C00, 0x4000, 0x3C01, 0x3800], (2, 2))},
    )  # fmt: skip
    scales = typed("u16", [0x3C00] * 6)
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "columns-many", "x has a column too many", x=f32(x[:8], (2, 4))),
            changed(good, "columns-few", "x has a column too few", x=f32(x[:4], (2, 2))),
            changed(good, "vector-few", "a vector that is too short", x=f32(x[:2])),
            changed(good, "x-scalar", "x is a scalar", x=f32(x[:1], ())),
            changed(good, "x-turned", "rows and columns of x exchanged", "axis", x=f32(x[:6], (3, 2))),
            changed(good, "x-empty", "x without columns", x=f32([], (2, 0))),
            changed(good, "w-vector", "w of rank 1", "axis", scheme="q8s.native.b1-f16", codes=typed("u8", [1, 2, 3]),
                    scale_codes=typed("u16", [0x3C00] * 3)),
            changed(good, "w-rank-3", "w of rank 3", "axis", scheme="q8s.native.b1-f16", codes=typed("u8", range(6), (1, 3, 2)),
                    scale_codes=Tensor(scales.dtype, (1, 3, 2), scales.patterns)),
            changed(good, "x-f64", "x of binary64", "dtype", x=typed("f64", [0] * 6, (2, 3))),
            changed(good, "x-u8", "x of bytes", "dtype", x=typed("u8", [0] * 6, (2, 3))),
            changed(good, "x-i32", "x of integers", "dtype", x=typed("i32", [0] * 6, (2, 3))),
            changed(good, "to-f64", "no such output", "dtype", to="f64"),
            changed(good, "to-e4m3", "a value format is no output", "dtype", to="e4m3"),
            changed(good, "byte-80", "byte 80 is no code", "extension", scheme="q4s.native.b2x1-f16",
                    codes=typed("u8", [0x80] * 6, (3, 2))),
            changed(good, "scales-missing", "a level without scales", scale_codes=None),
            changed(good, "packed-axis", "a packed axis that is not there", "axis", scheme="q8s.packed_u32_2.b2x1-f16"),
        ],
    )  # fmt: skip
    rng = rng_of("product.refused.tensor")
    tensor = Ask(
        slug="accepted-tensor", title="accepted", words={"scheme": "q8s.native.t-f32"}, part="q8s-native-t-f32",
        tensors={"x": f32([], (2, 0)), "codes": typed("u8", [], (0, 2)), **UNIT},
    )  # fmt: skip
    yield from with_refusals(
        place, tensor,
        [changed(tensor, "empty-and-not", "no row for three columns", x=f32(rng.integers(0, 9, (6,)), (2, 3)))],
    )  # fmt: skip
