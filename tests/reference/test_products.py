"""Products, chains and repack: what they take, what they refuse, and how they agree with the operations that they rest on."""

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import quantspec as qs
from quantspec.segments import Side, cuts, segment_sum
from quantspec.values import DECODED, Codes, extend

RNG = np.random.default_rng(7)
X = RNG.standard_normal((3, 70)).astype(np.float32)
W = RNG.standard_normal((70, 5)).astype(np.float32)
Q8 = qs.quantize(W, "q8s.native.t-f32")
LUT = qs.quantize(W, "q4s.native.lut-nf4.t-f32")
ROW = qs.quantize(W[:3, 0], "q8s.native.t-f32")

REFUSED: dict[str, tuple[type[qs.QuantspecError], str, str, Callable[[], object]]] = {
    "w is an array": (qs.DtypeError, "QNT-12", "w is a ndarray; allowed: Quantized", lambda: qs.product(X, W)),  # type: ignore[arg-type]
    "x is quantized": (qs.DtypeError, "PRD-2", "x has dtype object", lambda: qs.product(Q8, Q8)),  # type: ignore[arg-type]
    "x of integers": (qs.DtypeError, "PRD-2", "x has dtype int32", lambda: qs.product(X.astype("i4"), Q8)),
    "x of rank 0": (qs.ShapeError, "PRD-2", "x has shape (); allowed: [..., 70]", lambda: qs.product(np.float32(1), Q8)),
    "x of another size": (qs.ShapeError, "PRD-2", "x has shape (3, 69)", lambda: qs.product(X[:, 1:], Q8)),
    "w of rank 1": (qs.ShapeError, "PRD-2", "w has shape (3,); allowed: rank 2", lambda: qs.product(X, ROW)),
    "output type": (qs.DtypeError, "QNT-10", "dtype='f64'", lambda: qs.product(X, Q8, "f64")),
    "codes: x is an array": (qs.DtypeError, "QNT-12", "x is a ndarray", lambda: qs.product_codes(X, Q8)),  # type: ignore[arg-type]
    "codes: lookup x": (qs.SchemeError, "PRD-11", "x is q4s.native.lut-nf4.t-f32", lambda: qs.product_codes(LUT, Q8)),
    "codes: lookup w": (qs.SchemeError, "PRD-11", "w is q4s.native.lut-nf4.t-f32", lambda: qs.product_codes(Q8, LUT)),
    "codes: sizes": (qs.ShapeError, "PRD-10", "x has shape (70, 5); allowed: [..., 70]", lambda: qs.product_codes(Q8, Q8)),
    "codes: w of rank 1": (qs.ShapeError, "PRD-10", "w has shape (3,)", lambda: qs.product_codes(ROW, ROW)),
    "a chain of no record": (qs.DtypeError, "QNT-12", "tensor is a ndarray", lambda: qs.chain(W, [])),  # type: ignore[arg-type]
    "a chain of text": (qs.UnsupportedError, "OPS-23", "steps='neg'", lambda: qs.chain(ROW, "neg")),
    "a chain of a number": (qs.UnsupportedError, "OPS-23", "steps=3", lambda: qs.chain(ROW, 3)),  # type: ignore[arg-type]
    "65 steps": (qs.UnsupportedError, "OPS-23", "steps has 65 steps; allowed: at most 64", lambda: qs.chain(ROW, ["neg"] * 65)),
    "a step of four parts": (qs.UnsupportedError, "OPS-23", "steps[0]=", lambda: qs.chain(ROW, [("add", 1, 1, 1)])),
    "an empty step": (qs.UnsupportedError, "OPS-23", "steps[0]=()", lambda: qs.chain(ROW, [()])),
    "a step of no kind": (qs.UnsupportedError, "OPS-23", "steps[1] is 'sqrt'", lambda: qs.chain(ROW, ["neg", "sqrt"])),
    "a step named by a number": (qs.UnsupportedError, "OPS-23", "steps[0] is 1", lambda: qs.chain(ROW, [(1, 2)])),
    "an operand too many": (qs.UnsupportedError, "OPS-23", "steps[0] (neg) has a operand", lambda: qs.chain(ROW, [("neg", 1)])),
    "a mask too many": (qs.UnsupportedError, "OPS-23", "steps[0] (add) has a mask", lambda: qs.chain(ROW, [("add", 1, 1)])),
    "no mask": (qs.UnsupportedError, "OPS-23", "steps[0] (select) has no mask", lambda: qs.chain(ROW, [("select", 1)])),
    "an inexact number": (qs.DtypeError, "OPS-22", "steps[0].operand holds", lambda: qs.chain(ROW, [("add", 0.1)])),
    "an operand of integers": (qs.DtypeError, "OPS-22", "has dtype int8", lambda: qs.chain(ROW, [("add", np.ones(1, np.int8))])),
    "an operand of another size": (qs.ShapeError, "OPS-22", "operand has shape (2,)", lambda: qs.chain(ROW, [("add", W[:2, 0])])),
    "an operand that enlarges": (qs.ShapeError, "OPS-22", "(1, 3); allowed", lambda: qs.chain(ROW, [("add", W[None, :3, 0])])),
    "a mask of another size": (qs.ShapeError, "OPS-22", "[0].mask", lambda: qs.chain(ROW, [("select", 1, np.ones(2, bool))])),
    "a mask of floats": (qs.DtypeError, "OPS-20", "mask has dtype float32", lambda: qs.chain(ROW, [("select", 1, W[:3, 0])])),
    "a cast to another type": (qs.DtypeError, "OPS-21", "steps[0] casts to 'f64'", lambda: qs.chain(ROW, [("cast", "f64")])),
    "a cast to a number": (qs.DtypeError, "OPS-21", "steps[0] casts to 1", lambda: qs.chain(ROW, [("cast", 1)])),
    "the output of a chain": (qs.DtypeError, "QNT-10", "dtype='u8'", lambda: qs.chain(ROW, [], "u8")),
    "repack of an array": (qs.DtypeError, "QNT-12", "tensor is a ndarray", lambda: qs.repack(W, "native")),  # type: ignore[type-var]
    "repack to no axis": (qs.ShapeError, "SCH-14", "store=packed_u32_1", lambda: qs.repack(ROW, "packed_u32_1")),
    "repack to no store": (qs.SchemeError, "SCH-3", "store='packed'", lambda: qs.repack(ROW, "packed")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_argument_value_and_what_is_allowed(name: str) -> None:
    kind, rule, said, call = REFUSED[name]
    with pytest.raises(kind, match=re.escape(said)) as caught:
        call()
    assert caught.value.rule == rule


def test_dirty_words_are_not_repacked() -> None:
    packed = qs.Packed("q4s.packed_u32_0.t-f32", (1,), np.uint32([0xF1]), None, np.uint32(0x3F800000))  # type: ignore[arg-type]
    with pytest.raises(qs.EncodingError, match="PAK-7"):
        qs.repack(packed, "native")


@pytest.mark.parametrize("store", ["native", "packed_native_0", "packed_native_1", "packed_u32_0", "packed_u32_1"])
@pytest.mark.parametrize("value", qs.VALUES)
def test_repack_keeps_codes_and_scales_and_products_do_not_see_it(value: str, store: str) -> None:
    q = qs.quantize(W, f"{value}.packed_u32_1.b16x1-ue4m3.t-f32")
    again = qs.repack(q, store)
    assert again.scheme.store.text == store
    assert again.codes.tobytes() == q.codes.tobytes()
    assert qs.repack(again, q.scheme.store) == q
    packed = qs.repack(qs.pack(q), store)
    assert qs.to_bytes(packed) == qs.to_bytes(again)
    assert qs.product(X, again).tobytes() == qs.product(X, q).tobytes()
    assert qs.chain(again, ["neg"]).tobytes() == qs.chain(q, ["neg"]).tobytes()


def test_inputs_of_any_layout_and_type_give_the_bits_of_their_numbers() -> None:
    half = X.astype(np.float16)
    strided = np.asfortranarray(half.astype(np.float32)).astype(">f4")
    assert qs.product(half, Q8).tobytes() == qs.product(strided, Q8).tobytes()
    assert qs.product(X.reshape(3, 1, 70), Q8).shape == (3, 1, 5)
    assert qs.product(X[0], Q8).tobytes() == qs.product(X, Q8)[0].tobytes()
    assert qs.product(X, Q8, ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize("shape", [(0, 70), (2, 0, 70)])
def test_no_rows_give_no_numbers(shape: tuple[int, ...]) -> None:
    assert qs.product(np.zeros(shape, np.float32), Q8).shape == (*shape[:-1], 5)
    x = qs.quantize(np.zeros(shape, np.float32), "e2m1.native.b2-ue8m0")
    assert qs.product_codes(x, Q8).shape == (*shape[:-1], 5)


def test_many_tiles_are_one_product() -> None:
    """More results than a tile holds: each row and column is what it is alone."""
    x = RNG.standard_normal((300, 40)).astype(np.float32)
    w = qs.quantize(RNG.standard_normal((40, 400)).astype(np.float32), "e4m3.native.b16x3-f16.t-f32")
    xq = qs.quantize(x, "q8s.native.b2x16-ue4m3")
    assert 300 * 400 > 2**16
    numbers, codes = qs.product(x, w), qs.product_codes(xq, w)
    for first in (0, 298):
        last = first + 2
        assert numbers[first:last].tobytes() == qs.product(x[first:last], w).tobytes()
        assert codes[first:last].tobytes() == qs.product_codes(qs.slice_axis(xq, 0, first, last), w).tobytes()


@pytest.mark.parametrize("v_w", ["q8f", "e5m2", "e4m3", "e3m2"])
@pytest.mark.parametrize("v_x", qs.VALUES)
def test_sums_of_every_pair_of_formats_are_exact(v_x: str, v_w: str) -> None:
    """Against integers of any size: random codes, then the same with signs turned, so that sums nearly cancel."""
    size = 150
    x, w = (Side(_codes(value, (rows, size)), qs.VALUES[value], size, np.ones((rows, 1), np.float32))
            for value, rows in ((v_x, 4), (v_w, 3)))  # fmt: skip
    w.codes[:, 75:] = w.codes[:, :75]
    x.codes[:2, 75:] = _turned(v_x, x.codes[:2, :75])
    a, b = ([[Fraction(float(n)) for n in row] for row in DECODED[side.value.name][side.codes]] for side in (x, w))
    for stop in (1, 64, 65, 80, 149, 150):
        got = segment_sum(x, w, slice(0, 4), slice(0, 3), (0, stop)).view(np.uint32)
        for m, n in np.ndindex(4, 3):
            exact = sum((a[m][k] * b[n][k] for k in range(stop)), Fraction(0))
            assert _as_f32(exact) == int(got[m, n]), (stop, m, n)


def _finite(value: str) -> Codes:
    row = qs.VALUES[value]
    codes = extend(np.arange(1 << row.bits), row)
    found: Codes = codes[np.isfinite(DECODED[value][codes])]
    return found


def _codes(value: str, shape: tuple[int, int]) -> Codes:
    return RNG.choice(_finite(value), shape)


def _turned(value: str, codes: Codes) -> Codes:
    """Codes of the negated numbers, or of the nearest to them."""
    known = _finite(value)
    found: Codes = known[np.abs(DECODED[value][known] + DECODED[value][codes][..., np.newaxis]).argmin(-1)]
    return found


def _as_f32(exact: Fraction) -> int:
    """The pattern of a rational of moderate size, rounded by comparison with the midpoints of its neighbours."""
    guess = np.float32(float(exact))  # Python divides correctly to binary64; the second rounding is put right below
    below, above = (np.nextafter(guess, np.float32(end), dtype=np.float32) for end in (-np.inf, np.inf))
    near = min((below, guess, above), key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.uint32)) & 1))
    return int(near.view(np.uint32)) if exact else 0


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("step", ["neg", ("add", 1), ("min", 1), ("select", 1, True), ("cast", "f16")])
def test_a_scalar_stays_an_array(step: Any, dtype: Any) -> None:
    for steps in ([], [step], [step, step]):
        y = qs.chain(qs.quantize(np.float32(3), "q8s.native.t-f32"), steps, dtype)
        assert isinstance(y, np.ndarray) and y.shape == ()


def test_cuts() -> None:
    assert cuts(6, 2, 3) == [(0, 2), (2, 3), (3, 4), (4, 6)]
    assert cuts(5, 2**31 - 1, 5) == [(0, 5)]
    assert cuts(0, 1, 4) == []
    with pytest.raises(qs.UnsupportedError, match="CNF-5"):
        cuts(2**31 + 1, 2**31, 2**31)


def test_negating_a_factor_negates_the_product() -> None:
    w = qs.quantize(W, "e2m1.native.b3x2-f16")
    x = qs.quantize(X, "e5m2.native.b7-bf16")
    minus = qs.quantize(-X, "e5m2.native.b7-bf16")
    assert (-qs.product(X, w)).tobytes() == qs.product(-X, w).tobytes()
    assert (-qs.product_codes(x, w)).tobytes() == qs.product_codes(minus, w).tobytes()


def test_the_rules_of_a_nan_concern_its_element() -> None:
    x = X.copy()
    x[1, 3] = np.inf
    with qs.trace() as t:
        y = qs.product(x, qs.quantize(np.zeros((70, 5), np.float32), "q8s.native.t-f32"))
    assert np.isnan(y[1]).all() and not np.isnan(y[0]).any()
    assert "PRD-7" in t.rules((1, 2)) and "PRD-7" not in t.rules((0, 2))


def test_a_step_is_frozen_and_made_of_a_tuple() -> None:
    step = qs.Step.of(("add", 1.5))
    assert (step.op, step.operand, step.mask) == ("add", 1.5, None)
    assert qs.Step.of(step) is step
    with pytest.raises(AttributeError):
        step.op = "sub"  # type: ignore[misc]
