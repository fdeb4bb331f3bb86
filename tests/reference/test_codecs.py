"""Codecs: ties, overflow, NaN and zeros by name; against tables of who says what. Rules POL-2, POL-10 to POL-13."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
from quantspec.codecs import encode_by
from quantspec.rounding import widen

F32 = npt.NDArray[np.float32]


def single(numbers: Any) -> F32:
    return np.array(numbers, np.float32)


def codes_of(numbers: list[int]) -> npt.NDArray[np.uint8]:
    return np.array(numbers, np.uint8)


MINIFLOATS = ("e4m3", "e5m2", "e2m1", "e3m2", "e2m3")
INTEGERS = ("q8f", "q8s", "q4f", "q4s", "q2f", "q2s")


def codes(x: Any, value: str, codec: str | qs.Codec, **kwargs: Any) -> list[int]:
    return [int(code) for code in np.atleast_1d(qs.encode(np.float32(x), value, codec=codec, **kwargs))]


def probes(value: str) -> F32:
    """Every code's number, every midpoint, their neighbours, specials, and anything."""
    numbers = (
        qs.decode(np.arange(256, dtype=np.uint8)[: 1 << qs.VALUES[value].bits], value)
        if value in MINIFLOATS
        else np.arange(-130, 131, dtype=np.float32)
    )
    finite = np.unique(numbers[np.isfinite(numbers)]).astype(np.float64)
    middles = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    base = np.concatenate([finite.astype(np.float32), middles, single([1e30, 465, 480, 61440, 57345, 7, 30, 7.75])])
    near = np.concatenate(
        [base, np.nextafter(base, np.float32(np.inf)), np.nextafter(base, np.float32(-np.inf)), -base]
    )
    random = np.random.default_rng(3).integers(0, 2**32, 4000, np.uint32).view(np.float32)
    special = np.array(
        [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 1, 0x80000001], np.uint32
    ).view(np.float32)
    return np.concatenate([near, random, special])


@pytest.mark.parametrize("value", (*MINIFLOATS, *INTEGERS))
def test_a_codec_with_the_canonical_members_gives_the_canonical_bits(value: str) -> None:
    """The code that runs the rows, on the canonical row."""
    x = probes(value)
    found = encode_by(widen(x), qs.VALUES[value], qs.CANONICAL_CODEC, lookup=False)
    assert found.tolist() == qs.encode(x, value).tolist()


def numbers_of(value: str) -> dict[Fraction, int]:
    """The codes of the finite numbers of a format, zero once."""
    row = qs.VALUES[value]
    table: dict[Fraction, int] = {}
    if not row.is_integer:
        for code in range(1 << (row.bits - 1)):
            number = float(qs.decode(codes_of([code]), value)[0])
            if np.isfinite(number):
                table |= {Fraction(number): code} | ({Fraction(-number): code | row.sign_bit} if code else {})
    if row.is_integer:
        table = {Fraction(n): n & 0xFF for n in range(row.lowest, row.highest + 1)}
    return table


def wanted(x: float, table: dict[Fraction, int], row: qs.ValueFormat, rounding: str) -> int:
    """The code of a finite number by fractions, saturating."""
    exact = Fraction(x)
    numbers = sorted(table)
    if exact <= numbers[0] or exact >= numbers[-1]:
        chosen = numbers[0] if exact <= numbers[0] else numbers[-1]
    else:
        high = next(i for i, n in enumerate(numbers) if n >= exact)
        low = high if numbers[high] == exact else high - 1
        a, b = numbers[low], numbers[high]
        if low == high or (rounding == "down"):
            chosen = a
        elif exact - a != b - exact:
            chosen = a if exact - a < b - exact else b
        else:
            away, zero = (b, a) if exact > 0 else (a, b)
            chosen = {"away": away, "toward-zero": zero, "half-up": b, "even": a if table[a] % 2 == 0 else b}[rounding]
    code = table[chosen]
    if not row.is_integer and chosen == 0 and (x < 0 or (x == 0 and np.signbit(x))):
        code |= row.sign_bit
    return code


@pytest.mark.parametrize("rounding", ("even", "away", "toward-zero", "half-up", "down"))
@pytest.mark.parametrize("value", ("e4m3", "e2m1", "e3m2", "q4f", "q2s"))
def test_roundings_against_fractions(value: str, rounding: str) -> None:
    codec = qs.Codec("probe", rounding=rounding)
    x = probes(value)
    x = x[np.isfinite(x)][::3]
    table = numbers_of(value)
    expected = [wanted(float(number), table, qs.VALUES[value], rounding) for number in x]
    assert codes(x, value, codec) == expected


@pytest.mark.parametrize("value", ("e4m3", "e5m2", "e2m1", "e3m2", "e2m3"))
def test_the_codec_of_ml_dtypes_is_what_ml_dtypes_does(value: str) -> None:
    x = probes(value)
    dtype = np.dtype(getattr(ml_dtypes, qs.VALUES[value].ml_dtype))
    with np.errstate(all="ignore"):
        theirs = x.astype(dtype).view(np.uint8)
    assert qs.encode(x, value, codec="ml-dtypes").tolist() == theirs.tolist()


NAN, MINUS_NAN = np.array([0x7FC00000, 0xFFC00000], np.uint32).view(np.float32)
#: codec, value, number, code: the table "same input, who says what", and the runs behind it.
SAYS = [
    ("canonical", "e2m1", NAN, 0x0),
    ("ptx", "e2m1", NAN, 0x7),
    ("ml-dtypes", "e2m1", NAN, 0x8),
    ("modelopt-nvfp4", "e2m1", NAN, 0x7),
    ("ggml-mxfp4", "e2m1", NAN, 0x0),
    ("onnx", "e2m1", NAN, 0x8),
    ("burn-cube", "e2m1", MINUS_NAN, 0x8),
    ("ptx", "e2m1", MINUS_NAN, 0x7),
    ("ml-dtypes", "e2m1", MINUS_NAN, 0x0),
    ("ptx", "e4m3", MINUS_NAN, 0x7F),
    ("ml-dtypes", "e4m3", MINUS_NAN, 0xFF),
    ("modelopt-nvfp4", "e4m3", NAN, 0x7E),
    ("ml-dtypes", "e5m2", MINUS_NAN, 0xFE),
    ("ptx", "e5m2", MINUS_NAN, 0x7E),
    ("canonical", "e4m3", 500, 0x7E),
    ("ml-dtypes", "e4m3", 500, 0x7F),
    ("ml-dtypes", "e4m3", np.inf, 0x7F),
    ("ptx", "e4m3", np.inf, 0x7E),
    ("ml-dtypes", "e5m2", 1e6, 0x7C),
    ("canonical", "e5m2", 1e6, 0x7B),
    ("ml-dtypes", "e5m2", 58000, 0x7B),
    ("ml-dtypes", "e4m3", 464, 0x7E),
    ("ml-dtypes", "e5m2", 61440, 0x7C),
    ("onnx", "e5m2", 61440, 0x7B),
    ("onnx", "e4m3", 480, 0x7E),
    ("canonical", "e2m1", -0.0, 0x8),
    ("compressed-tensors", "e2m1", -0.0, 0x0),
    ("compressed-tensors", "e2m1", -0.1, 0x8),
    ("mlx-fp4", "e2m1", -0.1, 0x0),
    ("modelopt-nvfp4", "e2m1", -0.0, 0x0),
    ("ggml-mxfp4", "e2m1", -0.0, 0x0),
    ("ties-away", "q8s", 0.5, 1),
    ("canonical", "q8s", 0.5, 0),
    ("ties-away", "q8s", -0.5, 0xFF),
    ("burn-cpu", "q2s", 0.5, 1),
    ("onnx", "q8f", NAN, 0x80),
    ("onnx", "q8f", np.inf, 0x7F),
    ("burn-cube", "q8s", NAN, 127),
    ("burn-cpu", "q8s", NAN, 0),
    ("ggml-q4_0", "q4f", 0.5, 0),
    ("ggml-q4_0", "q4f", -0.5, 0xFF),
    ("ggml-q4_0", "q4f", 8.4, 7),
    ("gfloat", "e4m3", NAN, 0xFF),
    ("gfloat", "e5m2", -NAN, 0xFF),
    ("gfloat", "e2m1", NAN, 0xF),
    ("gfloat", "e5m2", np.inf, 0x7B),
    ("torch-e5m2", "e5m2", NAN, 0x7F),
    ("torch-e5m2", "e5m2", -NAN, 0xFF),
    ("torch-e5m2", "e5m2", np.inf, 0x7C),
    ("torch-e5m2", "e2m1", -NAN, 0),
    ("torchao-fp8", "e5m2", -NAN, 0xFF),
    ("torchao-fp8", "e5m2", np.inf, 0x7B),
    ("torchao", "e5m2", -NAN, 0x7F),
    ("torchao", "e4m3", -NAN, 0x7F),
    ("torchao", "e3m2", -NAN, 0x1F),
    ("onnxruntime", "e5m2", NAN, 0x7F),
    ("onnxruntime", "q8f", NAN, 0x80),
    ("jax", "e2m1", NAN, 0x8),
    ("jax", "e2m1", -NAN, 0x8),
    ("jax", "e4m3", -NAN, 0xFF),
    ("jax", "e4m3", 500, 0x7F),
    ("jax-mxfp8", "e4m3", NAN, 0xFF),
    ("gguf-q4_0", "q4f", NAN, 0xF8),
    ("torch-qint8", "q8f", NAN, 0x7F),
    ("mlx-fp8", "e4m3", NAN, 0x7E),
    ("mlx-fp8", "e4m3", -NAN, 0xFE),
]


@pytest.mark.parametrize(
    ("codec", "value", "x", "code"), SAYS, ids=[f"{c}-{v}-{float(x)}-{k:X}" for c, v, x, k in SAYS]
)
def test_who_says_what(codec: str, value: str, x: float, code: int) -> None:
    assert codes(x, value, codec) == [code]


@pytest.mark.parametrize("codec", ("ggml-mxfp4", "mlx-fp4", "ties-toward-zero"))
def test_ties_of_e2m1_to_the_smaller_magnitude(codec: str) -> None:
    assert codes([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], "e2m1", codec) == [0, 1, 2, 3, 4, 5, 6]
    assert codes([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5], "e2m1", "canonical") == [0, 2, 2, 4, 4, 6, 6]


def test_thresholds_are_strict_and_ordered() -> None:
    """Just above a threshold and on it: bitsandbytes compares with >."""
    nf4 = qs.CODECS["bnb-nf4"]
    limits = np.array(nf4.thresholds, np.float32)
    assert codes(limits, "q4f", "bnb-nf4", table=qs.NF4) == list(range(15))
    assert codes(np.nextafter(limits, np.float32(2)), "q4f", "bnb-nf4", table=qs.NF4) == list(range(1, 16))
    fp4 = np.array(qs.CODECS["bnb-fp4"].thresholds, np.float32)
    table = qs.Preset.of("bnb-fp4").table
    assert codes(fp4, "q4f", "bnb-fp4", table=table) == [0, 1, 6, 7, 4, 5, 2]
    assert codes(-np.nextafter(fp4, np.float32(2)), "q4f", "bnb-fp4", table=table) == [9, 14, 15, 12, 13, 10, 11]
    assert codes([NAN, -0.0], "q4f", "bnb-fp4", table=table) == [0, 0]


def test_a_negative_zero_is_read_by_the_codec() -> None:
    both = codes_of([0, 8])
    assert qs.decode(both, "e2m1").view(np.uint32).tolist() == [0, 1 << 31]
    assert qs.decode(both, "e2m1", codec="ggml-mxfp4").view(np.uint32).tolist() == [0, 0]
    q = qs.quantize(single([-0.1, 6]), "e2m1.native.b2-ue8m0", codec="modelopt-nvfp4")
    assert q.codes.tolist() == [8, 7]
    assert qs.dequantize(q).view(np.uint32).tolist()[0] == 0
    assert qs.dequantize(q, codec="canonical").view(np.uint32).tolist()[0] == 1 << 31


THREE: Any = 3
REFUSED: dict[str, tuple[Any, str, str]] = {
    "unknown": (
        lambda: qs.encode(single([1]), "e4m3", codec="away"),
        "POL-2",
        "codec='away' is not defined; defined: canonical",
    ),
    "member": (
        lambda: qs.encode(single([1]), "e4m3", codec=qs.Codec("mine", rounding="up")),
        "POL-2",
        "rounding='up'; allowed: even",
    ),
    "thresholds": (
        lambda: qs.encode(
            single([1]),
            "q2s",
            codec=qs.Codec("mine", rounding="thresholds", thresholds=(1.0, 0.0), order=(0, 1, 2)),
        ),
        "POL-2",
        "ascending",
    ),
    "symmetric": (
        lambda: qs.encode(single([1]), "q4f", codec="bnb-nf4"),
        "POL-10",
        "covers lookup with 16 entries",
    ),
    "lookup": (
        lambda: qs.encode(single([1]), "q4f", table=qs.NF4, codec="ties-away"),
        "POL-10",
        "covers symmetric",
    ),
    "scales": (lambda: qs.encode_scale(single([1]), "f16", codec="ties-away"), "POL-2", "not defined here"),
    "not-a-codec": (lambda: qs.encode(single([1]), "e4m3", codec=THREE), "POL-2", "codec=3"),
}


@pytest.mark.parametrize(("call", "rule", "message"), REFUSED.values(), ids=list(REFUSED))
def test_refusals(call: Any, rule: str, message: str) -> None:
    with pytest.raises(qs.UnsupportedError, match=message) as error:
        call()
    assert error.value.rule == rule


@pytest.mark.parametrize("name", [name for name in qs.CODECS if name != "canonical"])
def test_every_codec_differs_from_the_canonical_one_somewhere(name: str) -> None:
    codec = qs.CODECS[name]
    if codec.rounding == "thresholds":
        table = qs.NF4 if name == "bnb-nf4" else qs.Preset.of(name).table
        x = np.random.default_rng(0).uniform(-1, 1, 100000).astype(np.float32)
        x = np.concatenate([x, single(codec.thresholds), np.nextafter(single(codec.thresholds), np.float32(9))])
        x = np.concatenate([x, np.nextafter(single(codec.thresholds), np.float32(-9)), single([np.nan, -0.0])])
        assert (qs.encode(x, "q4f", table=table, codec=codec) != qs.encode(x, "q4f", table=table)).any()
        return
    different = [
        value
        for value in (*MINIFLOATS, *INTEGERS)
        if (qs.encode(probes(value), value, codec=codec) != qs.encode(probes(value), value)).any()
    ]
    assert different


@pytest.mark.parametrize("member", ["rounding", "overflow", "nan", "zero_sign", "nan_integer"])
def test_a_liar_with_one_other_member_is_noticed(member: str) -> None:
    name = {
        "rounding": "ties-away",
        "overflow": "ml-dtypes",
        "nan": "ptx",
        "zero_sign": "mlx-fp4",
        "nan_integer": "onnx",
    }[member]
    liar = replace(qs.CODECS[name], **{member: getattr(qs.CANONICAL_CODEC, member)})
    values = INTEGERS if member == "nan_integer" else MINIFLOATS
    assert any((qs.encode(probes(v), v, codec=liar) != qs.encode(probes(v), v, codec=name)).any() for v in values)
