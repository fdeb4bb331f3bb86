"""Products that lie, each in one rule, and an input on which each must be noticed."""

import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
from quantspec import fma as exact
from quantspec.rounding import add, canonical, multiply

F32 = npt.NDArray[np.float32]
PRODUCTS, SEGMENTS = sys.modules["quantspec.products"], sys.modules["quantspec.segments"]
BIG, UNIT = 2.0**24, np.uint32(0x3F800000)


def f32(*numbers: Any) -> F32:
    return np.array(numbers, np.float32)


def ones(size: int) -> qs.Quantized:
    """A column of ones."""
    return qs.Quantized("q8s.native.t-f32", np.ones((size, 1), np.uint8), None, UNIT)  # type: ignore[arg-type]


def column(*numbers: float) -> qs.Quantized:
    """A column of any numbers: a scale each."""
    scales = np.array(numbers, np.float32)[:, np.newaxis].view(np.uint32)
    return qs.Quantized("q8s.native.b1-f32", np.ones(scales.shape, np.uint8), scales)  # type: ignore[arg-type]


def sparse(size: int, **at: float) -> F32:
    """Numbers at the named indices (`k3=1.0`), zeros elsewhere."""
    x = np.zeros(size, np.float32)
    for name, number in at.items():
        x[int(name[1:])] = number
    return x


def codes_of(scheme: str, codes: Any, block: Any = None) -> qs.Quantized:
    """A tensor of given codes with tensor scale 1, or of given block scale codes."""
    tensor = None if block is not None else UNIT
    return qs.Quantized(scheme, np.array(codes, np.uint8), block, tensor)  # type: ignore[arg-type]


def chained(*, start: str = "zero", order: int = 1, run: int = 32, wide: bool = False) -> Callable[..., F32]:
    """The chain of the reference with one thing wrong."""

    def lie(count: int, factors: Callable[[int], tuple[F32, F32]], shape: tuple[int, ...]) -> F32:
        dtype = np.float64 if wide else np.float32
        total: Any = np.zeros(shape, dtype)
        for first in range(0, count, run):
            p: Any = np.zeros(shape, dtype)
            for index in range(first, min(first + run, count))[::order]:
                a, b = factors(index)
                if start == "first product" and index == first:
                    p = np.broadcast_to(multiply(a, b), shape)
                else:
                    p = a.astype(np.float64) * b + p if wide else exact.fma(a, b, p)
            total = p if start != "zero" and first == 0 else total + p if wide else add(total, p)
        return np.asarray(canonical(np.asarray(total, np.float32)))

    return lie


def rounding_each_product(x: Any, w: Any, rows: slice, columns: slice, segment: tuple[int, int]) -> F32:
    part = slice(*segment)
    a, b = x.numbers(rows, part), w.numbers(columns, part)
    total = np.zeros((len(a), len(b)), np.float32)
    for k in range(a.shape[1]):
        total = total + (a[:, k, np.newaxis] * b[:, k]).astype(np.float32)
    return total


def narrowed_each_step(count: int, factors: Any, shape: tuple[int, ...]) -> F32:
    total = np.zeros(shape, np.float16)
    for index in range(count):
        a, b = factors(index)
        total = (total + a * b).astype(np.float16)
    return total.astype(np.float32)


def scales_in_turn(x: F32, y: F32) -> Any:
    """The product of two scales that stays in binary64."""
    return np.asarray(x.astype(np.float64) * y)


E5M2 = codes_of("e5m2.native.b2-ue8m0", [0x7B, 0x3C, 0xFB], np.array([127, 127], np.uint8))
E5M2_W = codes_of("e5m2.native.t-f32", [[0x7B], [0x3C], [0x7B]])
E4M3 = codes_of("e4m3.native.t-f32", [0x7E, 0x20, 0x01])
E4M3_W = codes_of("e4m3.native.t-f32", [[0x7E], [0x18], [0x01]])
SQUARE = 1 + 2.0**-12
RUNS = sparse(34, k0=2.0**24, k16=1, k17=1, k32=1, k33=1)
STEPPED = codes_of("q8s.native.b1-ue8m0", [1, *[0] * 31, 1, 1], np.array([151, *[127] * 33], np.uint8))

#: name -> attribute of the reference, the lie, the operation and its arguments.
LIARS: dict[str, tuple[str, Any, Callable[..., Any], tuple[Any, ...]]] = {
    "mul and add for fma": ("fma", lambda a, b, p: add(multiply(a, b), p), qs.product,
                            (f32(-(1 + 2.0**-11), SQUARE), column(1, SQUARE))),
    "one run of all K": ("_chained", chained(run=10**9), qs.product, (RUNS, ones(34))),
    "runs of 16": ("_chained", chained(run=16), qs.product, (RUNS, ones(34))),
    "runs of 64": ("_chained", chained(run=64), qs.product, (RUNS, ones(34))),
    "descending k": ("_chained", chained(order=-1), qs.product, (f32(BIG, 1, 1), ones(3))),
    "binary64 sums": ("_chained", chained(wide=True), qs.product, (f32(BIG, 1, 1), ones(3))),
    "starts from the first product, and the total from the first run": ("_chained", chained(start="first product"), qs.product,
                                      (f32(-1), codes_of("q8s.native.t-f32", [[0]]))),
    "starts from the first run": ("_chained", chained(start="first run"), qs.product,
                                  (np.array([0x80000001], np.uint32).view(np.float32), column(2.0**-149))),
    "narrowed at every step": ("_chained", narrowed_each_step, qs.product,
                                    (f32(2048, 1, 1), ones(3), "f16")),
    "no narrowing": ("output_type", lambda dtype: qs.SCALES["f32"], qs.product, (f32(1), ones(1), "bf16")),
    "narrowing by truncation": ("narrowed", lambda y, out: (y.view(np.uint32) >> 16).astype(np.uint16).view(ml_dtypes.bfloat16),
                                qs.product, (f32(1 + 3 * 2.0**-8), ones(1), "bf16")),
    "segment cut ignored": ("cuts", lambda size, *extents: [(0, size)], qs.product_codes, (E5M2, E5M2_W)),
    "segments cut at one tensor only": ("cuts", lambda size, e_x, e_w: SEGMENTS.cuts(size, e_w), qs.product_codes,
                                        (E5M2, E5M2_W)),
    "rounding per product": ("segment_sum", rounding_each_product, qs.product_codes, (E4M3, E4M3_W)),
    "one run of all segments": ("_chained", chained(run=10**9), qs.product_codes, (STEPPED, ones(34))),
    "runs of 16 segments": ("_chained", chained(run=16), qs.product_codes,
                            (codes_of("q8s.native.b1-ue8m0", [1, *[0] * 15, 1, 1],
                                      np.array([151, *[127] * 17], np.uint8)), ones(18))),
    "scales in turn": ("multiply", scales_in_turn, qs.product_codes,
                       (codes_of("q8s.native.b1-f32", [3], f32(SQUARE).view(np.uint32)),
                        codes_of("q8s.native.b1-f32", [[1]], f32([SQUARE]).view(np.uint32)))),
}  # fmt: skip


@pytest.mark.parametrize("name", LIARS)
def test_a_product_that_lies_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, lie, operation, arguments = LIARS[name]
    right = operation(*arguments)
    monkeypatch.setattr(PRODUCTS, attribute, lie)
    with np.errstate(all="ignore"):
        wrong = operation(*arguments)
    assert wrong.tobytes() != right.tobytes() or wrong.dtype != right.dtype


def test_the_machinery_of_the_liars_tells_the_truth_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    right = [qs.product(RUNS, ones(34)), qs.product_codes(STEPPED, ones(34))]
    monkeypatch.setattr(PRODUCTS, "_chained", chained())
    again = [qs.product(RUNS, ones(34)), qs.product_codes(STEPPED, ones(34))]
    assert [y.tobytes() for y in again] == [y.tobytes() for y in right]


@pytest.mark.parametrize(
    ("steps", "codes", "scale", "wrong"),
    [
        # contracted: fma(y, a, b)
        ([("mul", SQUARE), ("add", -(1 + 2.0**-11))], [1], np.float32(SQUARE), 2.0**-24),
        # a division as a product with the reciprocal
        ([("div", 15)], [75], np.float32(1), 75 * np.float32(1 / 15)),
        # neg as 0 - y
        (["neg"], [0], np.float32(1), 0.0),
        # fmin, which ignores NaN
        ([("min", np.nan)], [1], np.float32(1), 1.0),
        # max that takes the operand where both are equal
        ([("max", -0.0)], [0], np.float32(1), -0.0),
        # cast left out
        ([("cast", "f16")], [1], np.float32(65520), 65520.0),
        # narrowed after each step
        ([("add", 1), ("add", 1)], [1], np.float32(2**24), 2.0**24 + 2),
    ],
    ids=["contraction", "reciprocal", "neg", "fmin", "zeros", "no cast", "joined constants"],
)
def test_a_chain_that_lies_is_noticed(steps: Any, codes: Any, scale: np.float32, wrong: float) -> None:
    q = qs.Quantized("q8s.native.t-f32", np.array(codes, np.uint8), None, scale.view(np.uint32))  # type: ignore[arg-type]
    assert qs.chain(q, steps).tobytes() != f32(wrong).tobytes()
