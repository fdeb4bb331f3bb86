"""encode_scale and decode_scale of every scale type against the oracle."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import (
    REFERENCE,
    Mismatch,
    Verbs,
    agree,
    all_widened,
    floats,
    patterns,
    require_bits,
    require_same,
    scale_codes_array,
)
from ..oracle import SIGN32

ROUNDINGS = ("up", "nearest")


def codes_of(kind: str) -> tuple[int, ...]:
    """Every code of a type of at most 16 bits; of f32 the edges of every binade and 20000 drawn ones."""
    if kind != "f32":
        return tuple(range(256 ** oracle.SCALE_BYTES[kind]))
    drawn = [*g.SPECIAL, *g.around(g.POWERS, 2), *g.random_patterns(2, 20_000)]
    return tuple({p ^ sign for p in drawn for sign in (0, SIGN32)})


def check_decode(kind: str, verbs: Verbs = REFERENCE) -> None:
    codes = codes_of(kind)
    if kind == "ue4m3":
        codes = codes[:0x80]
    decoded = verbs.decode_scale(scale_codes_array(kind, codes, (len(codes),)), kind)
    require_same("dtype", np.dtype(np.float32), decoded.dtype)
    require_bits(f"decode {kind}", [oracle.decode_scale(kind, code) for code in codes], decoded, codes)


@cache
def magnitudes(kind: str, rounding: str) -> tuple[int, ...]:
    """Positive finite inputs: each number of the type and each midpoint; the neighbours of those where the rounding turns;
    and what lies outside."""
    scales = g.positive_scales(kind)
    middles = [oracle.rn32((oracle.value(a) + oracle.value(b)) / 2) for a, b in zip((0, *scales), scales, strict=False)]
    outside = [
        g.stepped(scales[-1], 1),
        *g.around(g.POWERS),
        *(p & 0x7FFFFFFF for p in (*g.SPECIAL, *g.random_patterns(3, 4096))),
    ]
    half_above = oracle.rn32(min(oracle.value(scales[-1]) * 2, oracle.value(oracle.MAX32)))
    turns = scales if rounding == "up" else middles
    found = {*scales, *middles, *g.around([*turns, *scales[:20], *scales[-20:], half_above]), *outside}
    return tuple(sorted(p for p in found if p < oracle.INF32))


@cache
def accepted(kind: str, rounding: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Inputs of both signs that the oracle encodes, and their codes."""
    negative = [p | SIGN32 for p in magnitudes(kind, rounding)[:: 1 if kind == "f32" else 7]]
    if rounding == "up":
        negative += [p | SIGN32 for p in g.positive_scales(kind)[::3]]
    inputs, codes = [], []
    for p in (*magnitudes(kind, rounding), oracle.INF32, *negative, SIGN32, oracle.INF32 | SIGN32, *g.SPECIAL):
        try:
            code = oracle.encode_scale(kind, p, rounding)
        except oracle.Refused:
            continue
        inputs.append(p)
        codes.append(code)
    return tuple(inputs), tuple(codes)


def check_encode(kind: str, rounding: str, verbs: Verbs = REFERENCE) -> None:
    inputs, codes = accepted(kind, rounding)
    array = verbs.encode_scale(floats(inputs), kind, rounding)
    require_same("dtype", oracle.SCALE_BYTES[kind], array.dtype.itemsize)
    require_bits(f"encode_scale {kind} {rounding}", codes, array, inputs)


def check_one_by_one(kind: str, rounding: str, inputs: Sequence[int], verbs: Verbs = REFERENCE) -> None:
    """Each input alone: encoded on both sides, or refused on both."""
    for p in inputs:
        what = f"encode_scale {kind} {rounding} of {p:08x}"
        expected = partial(oracle.encode_scale, kind, p, rounding)
        both = agree(what, expected, partial(verbs.encode_scale, floats([p]), kind, rounding))
        if both is not None:
            require_bits(what, [both[0]], both[1], [p])


def suspects(kind: str) -> list[int]:
    """Inputs that are refused under some type and rounding: everything with the sign bit, NaN, Inf."""
    negative = [p | SIGN32 for p in g.around(g.positive_scales(kind)[:: max(1, len(g.positive_scales(kind)) // 40)])]
    return [*negative, *(p ^ sign for p in g.SPECIAL for sign in (0, SIGN32))]


@pytest.mark.parametrize("kind", g.SCALE_TYPES)
class TestEveryType:
    def test_decode_of_every_code(self, kind: str) -> None:
        check_decode(kind)

    @pytest.mark.parametrize("rounding", ROUNDINGS)
    def test_encode_of_edges_and_their_neighbours(self, kind: str, rounding: str) -> None:
        check_encode(kind, rounding)

    @pytest.mark.parametrize("rounding", ROUNDINGS)
    def test_refusals(self, kind: str, rounding: str) -> None:
        check_one_by_one(kind, rounding, suspects(kind))

    @pytest.mark.parametrize("source", ["f16", "bf16"])
    def test_encode_of_halves(self, kind: str, source: str) -> None:
        """Inputs of 16 bits, given in their own type; both roundings."""
        chosen = [p for p in range(0, 1 << 15, 7) if all_widened(source)[p] < SIGN32]
        for rounding in ROUNDINGS:
            expected = [oracle.encode_scale(kind, all_widened(source)[p], rounding) for p in chosen]
            codes = qs.encode_scale(floats(chosen, source), kind, rounding)  # type: ignore[arg-type]
            require_bits(f"encode_scale {kind} {rounding} from {source}", expected, codes, chosen)


def test_ue4m3_codes_with_bit_7() -> None:
    """Refused on read, each alone; cleared where the import says so."""
    for code in range(0x80, 0x100):
        byte = np.array([code], np.uint8)
        what = f"decode ue4m3 {code:02x}"
        assert agree(what, partial(oracle.decode_scale, "ue4m3", code), partial(qs.decode_scale, byte, "ue4m3")) is None
        cleared = qs.decode_scale(byte, "ue4m3", ue4m3_bit7="ignore")
        require_bits(what, [oracle.decode_scale("ue4m3", code & 0x7F)], cleared)


@settings(g.PROPERTY, max_examples=500)
@given(
    kind=st.sampled_from(g.SCALE_TYPES),
    rounding=st.sampled_from(ROUNDINGS),
    inputs=st.lists(g.patterns32, min_size=1, max_size=8),
)
def test_any_numbers(kind: str, rounding: str, inputs: list[int]) -> None:
    """A whole array is refused when one of its numbers is."""
    both = agree(
        f"encode_scale {kind} {rounding} of {inputs}",
        lambda: [oracle.encode_scale(kind, p, rounding) for p in inputs],
        lambda: qs.encode_scale(floats(inputs), kind, rounding),  # type: ignore[arg-type]
    )
    if both is not None:
        require_bits("encode_scale", both[0], both[1], inputs)
    check_one_by_one(kind, rounding, inputs)


# ---------------------------------------------------------------- liars


EncodeScale = Callable[..., Any]


def flush(p: int) -> int:
    return p & SIGN32 if p & 0x7F800000 == 0 else p


def with_inputs(change: Callable[[int], int]) -> EncodeScale:
    """encode_scale of changed inputs; what the change makes illegal stays as it was."""

    def encode_scale(x: Any, kind: str, rounding: Any = "up") -> Any:
        return qs.encode_scale(floats([change(p) for p in patterns(x)]), kind, rounding)

    return encode_scale


def round_down(x: Any, kind: str, rounding: Any = "up") -> Any:
    """The largest scale not above: one code less where rounding up went above."""
    codes = qs.encode_scale(x, kind, rounding)
    with np.errstate(invalid="ignore"):
        above = (qs.decode_scale(codes, kind) > x) & (x > 0)
    return np.where(above & (codes > 0), codes - 1, codes).astype(codes.dtype)


def always_nearest(x: Any, kind: str, rounding: Any = "up") -> Any:
    return qs.encode_scale(x, kind, "nearest")


def overflowing(x: Any, kind: str, rounding: Any = "up") -> Any:
    """+Inf kept instead of saturated."""
    codes = qs.encode_scale(x, kind, rounding)
    return np.where(np.asarray(x) == np.inf, codes + 1, codes).astype(codes.dtype)


def nan_keeps_sign(x: Any, kind: str, rounding: Any = "up") -> Any:
    codes = qs.encode_scale(x, kind, rounding)
    sign = np.array([oracle.is_nan(p) and p >= SIGN32 for p in patterns(x)])
    return np.where(sign, codes | (1 << 8 * codes.dtype.itemsize - 1), codes).astype(codes.dtype)


def geometric_midpoint(x: Any, kind: str, rounding: Any = "up") -> Any:
    """ue8m0 rounded in its exponent, at sqrt(2) * 2^k: the nearest code, not the nearest number."""
    codes = qs.encode_scale(x, kind, rounding)
    between = [0x3504F3 < p & 0x7FFFFF < 0x400000 and 0x800000 <= p < 0x7F000000 for p in patterns(x)]
    return codes + np.array(between, np.uint8)


def zero_is_nan(x: Any, kind: str, rounding: Any = "up") -> Any:
    codes = qs.encode_scale(x, kind, rounding)
    return np.where(np.asarray(x) == 0, 0xFF, codes).astype(codes.dtype)


def sign_dropped(x: Any, kind: str, rounding: Any = "up") -> Any:
    return qs.encode_scale(np.abs(x), kind, rounding)


LIARS: dict[str, tuple[str, str, EncodeScale]] = {
    "f16 rounds down": ("f16", "up", round_down),
    "ue4m3 rounds down": ("ue4m3", "up", round_down),
    "bf16 rounds to nearest": ("bf16", "up", always_nearest),
    "ue8m0 rounds to nearest": ("ue8m0", "up", always_nearest),
    "f16 ties away": ("f16", "nearest", with_inputs(lambda p: p + 1 if p & 0x7FFFFFFF < oracle.MAX32 else p)),
    "ue8m0 ties up": ("ue8m0", "nearest", with_inputs(lambda p: p + 1 if 0 < p < oracle.MAX32 else p)),
    "ue8m0 in its exponent": ("ue8m0", "nearest", geometric_midpoint),
    "f32 flushes subnormals": ("f32", "up", with_inputs(flush)),
    "bf16 flushes subnormals": ("bf16", "up", with_inputs(flush)),
    "ue4m3 flushes subnormals": ("ue4m3", "up", with_inputs(lambda p: 0 if p < g.bits("0.015625") else p)),
    "f16 overflows": ("f16", "up", overflowing),
    "ue4m3 overflows": ("ue4m3", "nearest", overflowing),
    "f32 keeps the sign of NaN": ("f32", "up", nan_keeps_sign),
    "ue8m0 of zero is NaN": ("ue8m0", "up", zero_is_nan),
    "bf16 loses the sign": ("bf16", "nearest", sign_dropped),
}


@pytest.mark.parametrize("name", LIARS)
def test_an_encode_scale_that_lies_is_caught(name: str) -> None:
    kind, rounding, lie = LIARS[name]
    with pytest.raises(Mismatch):
        check_encode(kind, rounding, replace(REFERENCE, encode_scale=lie))


@pytest.mark.parametrize(("kind", "rounding"), [("ue8m0", "up"), ("ue4m3", "nearest"), ("f16", "up"), ("f32", "up")])
def test_a_refusal_that_is_missing_is_caught(kind: str, rounding: str) -> None:
    with pytest.raises(Mismatch):
        check_one_by_one(kind, rounding, suspects(kind), replace(REFERENCE, encode_scale=sign_dropped))


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "ue8m0"])
def test_a_decode_scale_that_flushes_is_caught(kind: str) -> None:
    def decode_scale(codes: Any, kind: str) -> Any:
        return floats([flush(p) for p in patterns(qs.decode_scale(codes, kind))])

    if kind == "f16":  # all its numbers are normal in binary32: flushed in its own type

        def decode_scale(codes: Any, kind: str) -> Any:
            return qs.decode_scale(np.where(codes & 0x7C00 == 0, codes & 0x8000, codes).astype(codes.dtype), kind)

    with pytest.raises(Mismatch):
        check_decode(kind, replace(REFERENCE, decode_scale=decode_scale))
