"""product_codes: segments where blocks of either tensor begin, exact sums between them, the scales that meet there."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from quantspec import SCALES, VALUES, ScaleType, Scheme, ValueFormat, decode, encode

from ...examples import Tensor
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    changed,
    positives,
    rng_of,
    scheme_request,
    shape_slug,
    slug_of,
    two,
    typed,
    with_refusals,
)
from .cover import cover
from .numbers import about_ties, quantized, random_bits
from .scales import code_dtype
from .schemes import ask
from .values import evenly, legal_codes

__all__ = ["codes_plans"]

ONE = {row.name: row.bias << row.mantissa_bits for row in SCALES.values()}
BUGS = ("accumulation", "block-index", "axis")


def codes_plans(level: int) -> Iterator[Plan]:
    """The suites of product_codes."""
    if level == 0:
        yield positives(Place("scheme", "product_codes", "first", 0), _first)
        yield Plan(Place("scheme", "product_codes", "refused", 0), _refused)
    elif level == 1:
        for suite, make in SUITES.items():
            yield positives(Place("scheme", "product_codes", suite, 1), make)
        for row in VALUES.values():
            yield positives(Place(row.name, "product_codes", "codes", 1), partial(_codes, row))
        yield positives(Place("scheme", "product_codes", "pairwise", 1), _pairwise)
    else:
        yield positives(Place("scheme", "product_codes", "large", 2), _large)


def _two(
    x: tuple[str, Mapping[str, Tensor]],
    w: tuple[str, Mapping[str, Tensor]],
    slug: str,
    title: str,
    *bugs: str,
    **words: str,
) -> Ask:
    """One quantized tensor times another."""
    second = {f"{name}_2": tensor for name, tensor in w[1].items()}
    return ask(Scheme.parse(x[0]), slug, title, {**x[1], **second}, *bugs, scheme_2=w[0], **words)


def _given(
    scheme: str, codes: Any, shape: tuple[int, ...] | None = None, scales: Any = None, tensor: int | None = None
) -> tuple[str, dict[str, Tensor]]:
    """A scheme's text and the tensors of these codes; scales of 1 where none are given."""
    row = Scheme.parse(scheme)
    found = {"codes": typed("u8", codes, shape)}
    if row.block is not None:
        size = found["codes"].shape
        grid = tuple(-(-n // extent) for n, extent in zip(size, row.extents(len(size)), strict=True))
        own = [ONE[row.block.scale.name]] * int(np.prod(grid)) if scales is None else scales
        found["scale_codes"] = typed(code_dtype(row.block.scale), own, grid)
    if row.tensor is not None:
        found["tensor_scale_code"] = typed(
            code_dtype(row.tensor), [ONE[row.tensor.name] if tensor is None else tensor], ()
        )
    return scheme, found


def _codes_of(numbers: Any, value: str) -> list[int]:
    """Codes of numbers that the format holds exactly."""
    codes: list[int] = encode(np.array(numbers, np.float32), value).reshape(-1).tolist()
    return codes


def _first() -> Iterator[Ask]:
    """Small products, one for each rule."""
    yield _two(
        _given("e2m1.packed_native_0.t-f32", [7, 1, 12, 3], (2, 2), tensor=0x3F000000),
        _given("q4s.packed_u32_1.t-f16", [2, 0xFD], (2, 1), tensor=0x4000), "two-schemes", "e2m1 times q4s", "nibble-order", "axis",
    )  # fmt: skip
    yield _two(
        _given("e2m1.native.b2-ue8m0", [2] * 6, scales=[0x7F, 0x80, 0x81]),
        _given("q8s.native.b3x1-ue8m0", [1] * 6, (6, 1), [0x7F, 0x83]), "cuts", "blocks of 2 and of 3", *BUGS,
    )  # fmt: skip
    column = _codes_of([57344, 1, 57344], "e5m2")
    row = _codes_of([57344, 1, -57344], "e5m2")
    yield _two(_given("e5m2.native.b2-ue8m0", row), _given("e5m2.native.t-f32", column, (3, 1)), "cut-between-equals",
               "a cut between equal scales", *BUGS)  # fmt: skip
    yield _two(_given("e5m2.native.t-f32", row), _given("e5m2.native.t-f32", column, (3, 1)), "one-segment",
               "an exact sum", "accumulation")  # fmt: skip
    yield _two(_given("e4m3.native.t-f32", [0x7E, 0x20, 0x01]), _given("e4m3.native.t-f32", [0x7E, 0x18, 0x01], (3, 1)),
               "rounded-once", "a tie and a hair", "accumulation", "double-rounding", "tie")  # fmt: skip
    yield _two(_given("e5m2.native.t-f32", [0x7C, 0x3C]), _given("e5m2.native.t-f32", [0x3C, 0x3C, 0, 0xFC, 0x3C, 0x3C], (2, 3)),
               "infinities", "infinities of both signs, and times 0", "nan-code", "sat-vs-inf")  # fmt: skip
    yield _two(_given("e4m3.native.t-f32", [0x7F, 0x38]), _given("q4s.native.t-f32", [0, 1], (2, 1)), "nan-times-zero",
               "NaN times 0", "nan-code")  # fmt: skip
    yield _two(_given("q8s.native.b1-f32", [3], scales=[0x3F800800]), _given("q8s.native.b1-f32", [1], (1, 1), [0x3F800800]),
               "scales-first", "two scales meet before the sum", "decode-order")  # fmt: skip
    yield _two(
        _given("q8s.native.b1-ue8m0", [1, *[0] * 31, 1, 1], scales=[0x97, *[0x7F] * 33]),
        _given("q8s.native.t-f32", [1] * 34, (34, 1)), "runs-of-segments", "segments 32 and 33 are in run 1", "accumulation",
    )  # fmt: skip
    yield _two(
        _given("q8s.native.b17-ue8m0", [1, *[0] * 31, 1, 1], scales=[0x97, 0x7F]),
        _given("q8s.native.t-f32", [1] * 34, (34, 1)), "long-segments", "two segments of 17 are in one run", "accumulation",
    )  # fmt: skip
    yield _two(
        _given("q8s.native.b1-f32.t-f32", [1], scales=[0x0D800000], tensor=0x62800000),
        _given("q8s.native.t-f32", [1], (1, 1), tensor=0x62800000),
        "tensor-scales-last",
        "two tensor scales overflow",
        "decode-order",
    )
    yield _two(_given("e2m1.native.t-f32", [8, 8]), _given("e2m1.native.t-f32", [2, 2], (2, 1)), "minus-zero",
               "a sum of -0 is +0", "neg-zero")  # fmt: skip
    for name, g in (("minus-one", 0xBF800000), ("nan", 0x7FC00000), ("infinity", 0x7F800000), ("one", 0x3F800000)):
        yield _two(_given("q8s.native.t-f32", [], (2, 0), tensor=g), _given("q8s.native.t-f32", [], (0, 3)), f"nothing-{name}",
                   f"K = 0, a tensor scale of {name.replace('-', ' ')}", "zero-block", "neg-zero", "nan-code")  # fmt: skip
    w = _given("q4s.native.b2x1-f16", [1, 0xFE, 3, 4, 0xFB, 6], (3, 2), [0x3C00, 0x4000, 0x3800, 0x3C01])
    for shape in ((3,), (1, 3), (2, 3), (2, 1, 3), (1, 2, 1, 3), (0, 3), (2, 0, 3)):
        count = int(np.prod(shape))
        yield _two(
            _given("e2m1.native.b2-ue8m0", [2, 3, 5, 9, 12, 7][:count], shape),
            w,
            shape_slug(shape),
            f"{shape} times (3, 2)",
            *BUGS,
        )
    empty = _given("q4s.native.b2x1-f16", [], (3, 0))
    yield _two(_given("e2m1.native.b2-ue8m0", [2, 3, 5, 9, 12, 7], (2, 3)), empty, "no-column", "N = 0", "zero-block")
    for to in ("f16", "bf16"):
        yield _two(_given("q8s.native.t-f32", [64, 1, 1]), _given("q8s.native.t-f32", [32, 1, 1], (3, 1)), f"to-{to}",
                   f"2050, to {to}", "double-rounding", to=to)  # fmt: skip


def _spread(row: ValueFormat, most: int) -> list[int]:
    """Codes over all of a format, with every kind of special one."""
    legal = legal_codes(row).tolist()
    chosen = {legal[i] for i in evenly(len(legal), most)}
    for code in (row.nan_code, row.infinity_code):
        chosen |= set() if code is None else {code, code | row.sign_bit}
    zero = {0, row.sign_bit} & set(legal)
    return sorted(chosen | zero)


def _codes(row: ValueFormat) -> Iterator[Ask]:
    """Every two codes (of 6 and 8 bits a spread) multiplied; long segments of drawn codes, NaN and infinities left out and in."""
    codes = _spread(row, 27)
    text = f"{row.name}.native.t-f32"
    x, w = _given(text, codes, (len(codes), 1)), _given(text, codes, (1, len(codes)))
    yield _two(x, w, "factors", "codes times codes", "subnormal", "neg-zero", "nan-code", "off-by-one-bias")
    finite = [
        c for c, y in zip(codes, decode(np.array(codes, np.uint8), row.name).tolist(), strict=True) if abs(y) < 1e9
    ]
    for size, chosen, name in ((63, finite, "long"), (33, codes, "special")):
        rng = rng_of(f"product_codes.{row.name}.{name}")
        pick = np.array(chosen)
        given = [_given(text, pick[rng.integers(0, len(pick), shape)], shape) for shape in ((3, size), (size, 3))]
        if name == "long" or len(finite) < len(codes):
            yield _two(given[0], given[1], name, f"one segment of {size}", "accumulation")


#: Extents along K of x and of w; None: no block level.
EXTENTS = ((None, 1, 2, 3, 5, 24, 40), (None, 2, 4, 7, 32))


def _cuts() -> Iterator[Ask]:
    """Blocks that begin at many places in either tensor. The codes are e5m2: where a segment ends shows in what is rounded."""
    finite = np.array([code for code in range(256) if code & 0x7C != 0x7C])
    for first, second in product(*EXTENTS):
        size = 24 if max(first or 0, second or 0) < 32 else 41
        key = f"product_codes.cuts.{first}.{second}"
        rng = rng_of(key)
        x_text = "e5m2.native." + ("t-f32" if first is None else f"b{first}-f16")
        w_text = "e5m2.native." + ("t-f32" if second is None else f"b{second}x1-ue8m0")
        x_scales = (rng.integers(0, 1 << 12, (2 * -(-size // (first or size)),)) + 0x3600).tolist()
        w_scales = rng.integers(0x7D, 0x83, (2 * -(-size // (second or size)),)).tolist()
        x = _given(x_text, finite[rng.integers(0, len(finite), (2, size))], (2, size), x_scales)
        w = _given(w_text, finite[rng.integers(0, len(finite), (size, 2))], (size, 2), w_scales)
        slug = f"{first or 'none'}-and-{second or 'none'}"
        yield _two(x, w, slug, f"K = {size}, blocks of {first or 'all'} and of {second or 'all'}", *BUGS)


def _ones(key: str, shape: tuple[int, int], extent: int, along: int) -> tuple[str, dict[str, Tensor]]:
    """Codes of 1 with scales whose sums depend on their order, in blocks of an extent along one axis."""
    extents = [1, 1]
    extents[along] = extent
    text = (
        f"q8s.native.b{extents[1]}-f32"
        if along == 1
        else f"q8s.native.b{extent}x1-f32"
        if extent > 1
        else "q8s.native.b1-f32"
    )
    grid = [-(-n // e) for n, e in zip(shape, extents, strict=True)]
    return _given(text, np.ones(shape, np.uint8), shape, random_bits(key, grid[0] * grid[1], 119, 136))


def _runs() -> Iterator[Ask]:
    """Numbers of segments about the ends of runs, made by blocks of one tensor, of the other, and of both."""
    for size, first, second in (
        (31, 1, 1),
        (32, 1, 1),
        (33, 1, 1),
        (64, 1, 64),
        (65, 65, 1),
        (65, 2, 65),
        (66, 2, 33),
        (67, 67, 2),
        (50, 2, 3),
        (97, 3, 97),
        (96, 96, 3),
        (45, 2, 3),
        (63, 1, 2),
        (40, 5, 1),
    ):
        key = f"product_codes.runs.{size}.{first}.{second}"
        x, w = _ones(f"{key}.x", (2, size), first, 1), _ones(f"{key}.w", (size, 3), second, 0)
        count = len({*range(0, size, first), *range(0, size, second)})
        yield _two(x, w, f"k-{size}-{first}-and-{second}", f"{count} segments", "accumulation", "block-index")
    ones = [
        (0, 16, 17),
        (0, 31, 32),
        (0, 32, 33),
        (31, 32, 33),
        (32, 33, 34),
        (32, 62, 63),
        (32, 63, 64),
        (0, 63, 64),
        (64, 65, 66),
    ]
    codes, scales = np.zeros((len(ones), 67), np.uint8), np.full((len(ones), 67), 0x7F, np.uint8)
    for row, places in enumerate(ones):
        codes[row, list(places)], scales[row, places[0]] = 1, 0x97
    x = _given("q8s.native.b1-ue8m0", codes, codes.shape, scales.reshape(-1))
    yield _two(
        x, _given("q8s.native.t-f32", [1] * 67, (67, 1)), "places", "2^24 and two ones in many segments", "accumulation"
    )


def _exact() -> Iterator[Ask]:
    """Sums that only an exact one gets right: cancellation over the whole range, ties and what lies beside them, long sums."""
    rows = [[57344, 1, -57344], [1, 57344, -57344], [57344, -57344, 1], [-57344, 1, 57344], [57344, two(-16), -57344]]
    x = _given("e5m2.native.t-f32", _codes_of(rows, "e5m2"), (5, 3))
    w = _given("e5m2.native.t-f32", _codes_of([[57344, 57344], [1, two(-16)], [57344, 57344]], "e5m2"), (3, 2))
    yield _two(x, w, "cancelled", "2^31 comes and goes", "accumulation", "subnormal")
    big, tie, hair = (448, 448), (two(-3), two(-4)), (two(-9), two(-9))
    sums = [(1, 1, 1), (1, 1, 0), (1, 1, -1), (1, -1, 1), (1, -1, 0), (1, -1, -1), (-1, -1, -1), (-1, 1, 1), (1, 0, 1)]
    left = [[big[0] * a, tie[0] * b, hair[0] * c, 0.25] for a, b, c in sums]
    for name, last in (("even", 0), ("odd", two(-4))):  # 2^-6 more: the last bit of the large sum
        right = _codes_of([big[1], tie[1], hair[1], last], "e4m3")
        x = _given("e4m3.native.t-f32", _codes_of(left, "e4m3"), (len(sums), 4))
        yield _two(x, _given("e4m3.native.t-f32", right, (4, 1)), f"ties-{name}", f"ties beside an {name} number", "tie",
                   "accumulation", "double-rounding")  # fmt: skip
    # 57344^2 is 49 * 2^26; its last bit is 2^8, a tie 2^7, the hair 2^-32
    rows = [
        [57344 * a, 16 * b, 16 * c, two(-16) * d] for a in (1, -1) for b in (0, 1) for c in (1, -1) for d in (1, 0, -1)
    ]
    x = _given("e5m2.native.t-f32", _codes_of(rows, "e5m2"), (len(rows), 4))
    w = _given("e5m2.native.t-f32", _codes_of([57344, 16, 8, two(-16)], "e5m2"), (4, 1))
    yield _two(
        x, w, "hairs", "what decides a tie lies 63 bits below", "tie", "accumulation", "double-rounding", "subnormal"
    )
    for name, ends in (("tie", [1, 1]), ("above", [1, 2]), ("two", [2, 1]), ("minus", [0xFF, 1])):
        x = _given("q8s.native.t-f32", [*ends, *[127] * 1098])
        w = _given("q8s.native.t-f32", [1, 1, *[127] * 1098], (1100, 1))
        yield _two(x, w, f"integers-{name}", "a sum of integers beyond 2^24", "tie", "accumulation")
    finite = np.array([code for code in range(256) if code & 0x7C != 0x7C])
    rng = rng_of("product_codes.exact")
    for size in (64, 200):
        given = [
            _given("e5m2.native.t-f32", finite[rng.integers(0, len(finite), shape)], shape)
            for shape in ((4, size), (size, 4))
        ]
        yield _two(given[0], given[1], f"drawn-{size}", f"drawn codes, one segment of {size}", "accumulation")
    half = finite[rng.integers(0, len(finite), (4, 32))]
    mirrored = np.concatenate([half, half[:, ::-1] ^ 0x80], 1)
    below = finite[rng.integers(0, len(finite), (32, 3))]
    x = _given("e5m2.native.t-f32", mirrored, (4, 64))
    w = _given("e5m2.native.t-f32", np.concatenate([below, below[::-1]]), (64, 3))
    yield _two(x, w, "zero", "sums that cancel to +0", "neg-zero", "accumulation")


def _special() -> Iterator[Ask]:
    """Infinities, NaN, zeros and ordinary numbers, every two in one segment, in two segments, and in two runs."""
    codes = [0x00, 0x80, 0x3C, 0xBC, 0x7B, 0x01, 0x7C, 0xFC, 0x7D, 0xFF]
    count = len(codes)
    for size, text in ((2, "t-f32"), (2, "b1-f16"), (34, "b1-ue8m0")):
        x, w = np.full((count, size), 0, np.uint8), np.full((size, count), 0x3C, np.uint8)
        x[:, 0], x[:, -1], w[-1] = codes, 0x3C, codes
        yield _two(
            _given(f"e5m2.native.{text}", x, x.shape),
            _given("e5m2.native.t-f32", w, w.shape),
            f"e5m2-{size}-{slug_of(text)}",
            f"every two, K = {size}, {text}",
            "nan-code",
            "sat-vs-inf",
            "neg-zero",
        )
    codes = [0x00, 0x80, 0x38, 0x7E, 0x01, 0x7F, 0xFF]
    x, w = np.full((len(codes), 2), 0x38, np.uint8), np.full((2, len(codes)), 0x38, np.uint8)
    x[:, 0], w[1] = codes, codes
    yield _two(
        _given("e4m3.native.t-f32", x, x.shape),
        _given("e4m3.native.t-f32", w, w.shape),
        "e4m3",
        "every two, e4m3",
        "nan-code",
    )
    yield _two(_given("e5m2.native.t-f32", [[0x7C, 0], [0xFE, 0x3C]], (2, 2)), _given("q4s.native.t-f32", [0, 1, 1, 0], (2, 2)),
               "integers", "infinity and NaN times integers", "nan-code")  # fmt: skip


def _scale_codes(row: ScaleType) -> list[int]:
    """Scale codes over all of a type: the smallest, ordinary ones, the largest, NaN, infinity; of both signs where it has them."""
    top = row.largest_code
    one = ONE[row.name]
    found = [
        0,
        1,
        one,
        one + 1,
        one - 1,
        one | (1 << row.mantissa_bits >> 1),
        top,
        top - 1,
        top // 5,
        top - top // 5,
        row.nan_code,
    ]
    found += [] if row.infinity_code is None else [row.infinity_code]
    found += [row.sign_bit | one, row.sign_bit | top, row.sign_bit] if row.signed else []
    return list(dict.fromkeys(found))


def _scales() -> Iterator[Ask]:
    """Every two types of block scale: their product rounds, overflows, is subnormal, is NaN; beside a sum of zero too."""
    for first, second in product(SCALES.values(), SCALES.values()):
        left, right = _scale_codes(first), _scale_codes(second)
        x = _given(f"q8s.native.b1-{first.name}", [3] * len(left), (len(left), 1), left)
        w = _given(f"q8s.native.b1-{second.name}", [5] * len(right), (1, len(right)), right)
        yield _two(x, w, f"{first.name}-{second.name}", f"block scales of {first.name} and {second.name}", "decode-order",
                   "scale-overflow", "scale-underflow", "nan-code", "ftz")  # fmt: skip
    codes = _scale_codes(SCALES["f32"])
    for name, v in (("zero", 0), ("minus", 0xFD)):
        x = _given("q8s.native.b1-f32", [v] * len(codes), (len(codes), 1), codes)
        w = _given("q8s.native.b1-ue8m0", [1] * 4, (1, 4), [0, 0x7F, 0xFE, 0xFF])
        yield _two(x, w, f"f32-{name}", f"scales beside a sum of {name}", "neg-zero", "nan-code", "ftz")


def _tensor_scales() -> Iterator[Ask]:
    """Tensor scales that overflow, vanish, are negative, infinite or NaN; of every type; the other tensor without one."""
    pairs = (
        ("huge", 0x7F000000, 0x7F000000), ("tiny", 0x00800000, 0x1F800000), ("vanishing", 0x00800000, 0x00800000),
        ("minus", 0xBFC00000, 0x3F800001), ("both-minus", 0xBFC00000, 0xC0400000), ("nan", 0xFFA00001, 0x3F800000),
        ("infinity", 0x7F800000, 0x3F800000), ("infinity-times-zero", 0x7F800000, 0), ("zero", 0, 0x40000000),
        ("minus-zero", 0x80000000, 0x40000000), ("inexact", 0x3F800001, 0x3F800001), ("subnormal", 1, 0x40000000),
    )  # fmt: skip
    for name, first, second in pairs:
        x = _given("q8s.native.b2-f16.t-f32", [1, 0xFE, 3, 0, 0, 0], (2, 3), [0x3C01, 0x3800, 0x3C00, 0x3C00], first)
        w = _given("e2m1.native.t-f32", [2, 3, 10, 5, 1, 7], (3, 2), tensor=second)
        yield _two(x, w, name, f"tensor scales: {name.replace('-', ' ')}", "decode-order", "scale-overflow", "scale-underflow",
                   "neg-zero", "nan-code")  # fmt: skip
    for rows in product((*SCALES.values(), None), (*SCALES.values(), None)):
        if any(row is not None for row in rows):
            names = ["" if row is None else f".t-{row.name}" for row in rows]
            codes = [None if row is None else row.largest_code - row.largest_code // 3 for row in rows]
            x = _given(f"q8s.native.b2-ue8m0{names[0]}", [1, 0xFE, 3], None, None, codes[0])
            w = _given(f"e2m1.native.b3x1-f16{names[1]}", [2, 3, 10], (3, 1), [0x3C01], codes[1])
            slug = "-".join("none" if row is None else row.name for row in rows)
            yield _two(x, w, slug, "tensor scales of two types", "decode-order", "dtype")


def _narrowing() -> Iterator[Ask]:
    """Results about the ties of f16 and bf16, by scales that are such numbers; and by tensor scales."""
    for to in ("f16", "bf16"):
        numbers = about_ties(to)
        x = _given("q8s.native.b1-f32", [1] * len(numbers), (len(numbers), 1), numbers)
        yield _two(x, _given("q8s.native.t-f32", [1], (1, 1)), f"to-{to}", f"results about the ties of {to}", "tie",
                   "double-rounding", "sat-vs-inf", "subnormal", to=to)  # fmt: skip
        yield _two(
            x,
            _given("q8s.native.t-f32", [1], (1, 1), tensor=0x3F000000),
            f"half-to-{to}",
            "halved by a tensor scale",
            "tie",
            "double-rounding",
            to=to,
        )


def _blocks() -> Iterator[Ask]:
    """Blocks on several axes of either tensor, ranks from 1 on, packed axes, partial blocks and words."""
    for x_text, x_shape, w_text, w_shape in (
        ("q4s.native.b2x3-f16", (3, 7), "q4s.native.b3x2-f16", (7, 3)),
        ("e2m1.packed_u32_1.b2x1x4-ue8m0", (3, 2, 9), "q8s.packed_native_1.b5x3-f32", (9, 4)),
        ("e3m2.packed_native_0.b4-ue4m3.t-f32", (2, 10), "e2m3.packed_u32_1.b3-bf16", (10, 5)),
        ("q2s.packed_u32_2.b3x1x1-f32", (4, 1, 6), "q2f.packed_native_0.b6x1-f16", (6, 2)),
        ("q8f.native.b7-f16", (17,), "q4f.packed_u32_0.b5x4-f16", (17, 5)),
        ("e4m3.native.b2x2x2x2-ue8m0", (2, 3, 2, 5), "e5m2.native.b2-f32", (5, 3)),
        ("q4s.packed_u32_0.t-f32", (2, 40), "q4s.packed_u32_1.b32x1-f16", (40, 3)),
        ("e2m1.packed_native_0.b16-ue4m3.t-f32", (2, 35), "e2m1.packed_native_1.b16x1-ue4m3.t-f32", (35, 3)),
        ("e4m3.native.b32-ue8m0", (2, 65), "e2m1.packed_native_1.b32x1-ue8m0", (65, 3)),
    ):  # fmt: skip
        x, w = (_drawn(text, shape) for text, shape in ((x_text, x_shape), (w_text, w_shape)))
        slug = f"{shape_slug(x_shape)}-by-{slug_of(w_text)}-{shape_slug(w_shape)}"
        yield _two(x, w, slug, f"{x_shape} times {w_text} {w_shape}", *BUGS, "partial-block")


def _drawn(text: str, shape: tuple[int, ...]) -> tuple[str, dict[str, Tensor]]:
    scheme = Scheme.parse(text)
    words, _ = scheme_request(scheme)
    return words["scheme"], quantized(f"product_codes.{text}.{shape_slug(shape)}", scheme, shape)


#: Levels of scales of either side; those of w name the extent along K first.
LEVELS = (
    ("b16-ue8m0", "b16x1-ue8m0"), ("b4-ue4m3.t-f32", "b4x1-ue4m3.t-f32"), ("t-f16", "t-f16"), ("b2x5-bf16", "b5x2-bf16"),
    ("b3-f32.t-ue8m0", "b3x1-f32.t-ue8m0"), ("b1-f16", "b2-f16"),
)  # fmt: skip
STORES = ("native", "packed_native_0", "packed_native_1", "packed_u32_0", "packed_u32_1")


def _pairwise() -> Iterator[Ask]:
    """Values, stores and scales of both tensors, sizes and types of the result: every two of them meet."""
    made = cover(
        {
            "x_value": tuple(VALUES), "w_value": tuple(VALUES), "x_store": STORES, "w_store": STORES,
            "x_levels": [level for level, _ in LEVELS], "w_levels": [level for _, level in LEVELS],
            "size": (5, 16, 33, 40), "lead": ((1,), (2,), (1, 2)), "to": ("f32", "f16", "bf16"),
        },
        lambda *levels: True,
    )  # fmt: skip
    for row in made.rows:
        x_text, w_text = (f"{row[f'{side}_value']}.{row[f'{side}_store']}.{row[f'{side}_levels']}" for side in "xw")
        lead, size = row["lead"], row["size"]
        x, w = _drawn(x_text, (*lead, size)), _drawn(w_text, (size, 3))  # type: ignore[misc, arg-type]
        shape = shape_slug((*lead, size))  # type: ignore[misc, arg-type]
        slug = f"{shape}-by-{slug_of(w_text)}-to-{row['to']}"
        yield _two(x, w, slug, f"times {w_text}, K = {size}, to {row['to']}", *BUGS, "nibble-order", to=str(row["to"]))


SUITES = {
    "cuts": _cuts,
    "runs": _runs,
    "exact": _exact,
    "special": _special,
    "scales": _scales,
    "tensor-scales": _tensor_scales,
    "narrowing": _narrowing,
    "blocks": _blocks,
}


def _large() -> Iterator[Ask]:
    for x_text, w_text in (
        ("e2m1.packed_native_0.b16-ue4m3.t-f32", "e2m1.packed_native_1.b16x1-ue4m3.t-f32"),
        ("q8s.native.b32-f16", "q4s.packed_u32_0.b32x1-f16"),
        ("e4m3.native.b128-f32", "e4m3.native.b128x128-f32"),
    ):
        yield _two(
            _drawn(x_text, (5, 1000)),
            _drawn(w_text, (1000, 33)),
            f"by-{slug_of(w_text)}",
            f"K = 1000, times {w_text}",
            *BUGS,
        )


def _refused(place: Place) -> Iterator[Case]:
    """Sizes and ranks that do not fit, tables of either tensor, outputs that are none."""
    good = _two(
        _given("q4s.native.b2-f16", [1, 2, 3, 4, 5, 6], (2, 3)), _given("e2m1.native.b3x1-ue8m0", [1, 2, 3, 4, 5, 6], (3, 2)),
        "accepted", "accepted",
    )  # fmt: skip
    x_four = _given("q4s.native.b2-f16", [1, 2, 3, 4], (4,))[1]
    scalar = _given("q4s.native.b1-f16", [1], ())
    vector = _given("e2m1.native.b3-ue8m0", [1, 2, 3])
    cube = _given("e2m1.native.b3x1-ue8m0", [1, 2, 3, 4, 5, 6], (1, 3, 2))[1]
    turned = _given("e2m1.native.b3x1-ue8m0", [1, 2, 3, 4, 5, 6], (2, 3))[1]

    def second(entries: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {f"{name}_2": tensor for name, tensor in entries.items()}

    table = _given("q4f.native.b2-f16", [1, 2, 3, 4, 5, 6], (2, 3))[1]
    table_2 = _given("q4f.native.b3x1-ue8m0", [1, 2, 3, 4, 5, 6], (3, 2))[1]
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "columns-many", "x has a column too many", **x_four),
            changed(good, "w-turned", "rows and columns of w exchanged", "axis", **second(turned)),
            changed(good, "x-scalar", "x is a scalar", scheme=scalar[0], **scalar[1]),
            changed(good, "w-vector", "w of rank 1", "axis", scheme_2=vector[0], **second(vector[1])),
            changed(good, "w-rank-3", "w of rank 3", "axis", **second(cube)),
            changed(good, "x-lookup", "x under a table", "lookup", scheme="q4f.native.lut-nf4.b2-f16", **table),
            changed(good, "w-lookup", "w under a table", "lookup", scheme_2="q4f.native.lut-nf4.b3x1-ue8m0", **second(table_2)),
            changed(good, "to-f64", "no such output", "dtype", to="f64"),
            changed(good, "byte-88", "byte 88 is no code of w", "extension", codes_2=typed("u8", [0x88] * 6, (3, 2))),
            changed(good, "scales-missing", "a level of w without scales", scale_codes_2=None),
            changed(good, "scales-shape", "scales of w of another shape", scale_codes_2=typed("u8", [0x7F] * 2, (2, 1))),
        ],
    )  # fmt: skip
