"""Hostile parameters: each is refused before any result, by the right rule, with what is allowed (BC-015, 075, 099, 153)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from ..bridge import Verbs
from .facts import refusal, single

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
BLOCK, TWO = "q8s.native.b2-f32", "q8s.native.b2-ue4m3.t-f32"
NF4: dict[str, Any] = {"mode": "lookup", "table": qs.NF4}

SCHEMES: dict[str, tuple[Callable[[], Any], str]] = {
    "value of another case": (lambda: qs.Scheme("Q8S"), "SCH-2"),
    "no value": (lambda: qs.Scheme(None), "SCH-2"),  # type: ignore[arg-type]
    "store without an axis": (lambda: qs.Scheme("q8s", "packed_u32"), "SCH-3"),
    "store with a sign": (lambda: qs.Scheme("q8s", "packed_u32_-1"), "SCH-3"),
    "store with a leading zero": (lambda: qs.Scheme("q8s", "packed_u32_01"), "SCH-3"),
    "store with a foreign digit": (lambda: qs.Scheme("q8s", "packed_u32_\u0661"), "SCH-3"),
    "store that is no store": (lambda: qs.Scheme("q8s", "packed_u64_0"), "SCH-3"),
    "native with an axis": (lambda: qs.Scheme("q8s", "native_0"), "SCH-3"),
    "mode": (lambda: qs.Scheme("q8s", mode="Symmetric"), "SCH-4"),
    "zero points": (lambda: qs.Scheme("q8s", mode="affine"), "POL-4"),
    "tensor scale type": (lambda: qs.Scheme("q8s", tensor="e8m0"), "SCH-5"),
    "block scale type": (lambda: qs.Scheme("q8s", block=(4, "f64")), "SCH-5"),
    "extent 0": (lambda: qs.Scheme("q8s", block=((4, 0), "f32")), "SCH-6"),
    "extent below 0": (lambda: qs.Scheme("q8s", block=(-4, "f32")), "SCH-6"),
    "extent 2^31": (lambda: qs.Scheme("q8s", block=(2**31, "f32")), "SCH-6"),
    "extent of a float": (lambda: qs.Scheme("q8s", block=(4.0, "f32")), "SCH-6"),  # type: ignore[arg-type]
    "extent of a string": (lambda: qs.Scheme("q8s", block=("16", "f32")), "SCH-6"),  # type: ignore[arg-type]
    "block without a type": (lambda: qs.Scheme("q8s", block=16), "SCH-6"),  # type: ignore[arg-type]
    "six extents": (lambda: qs.Scheme("q8s", block=((2,) * 6, "f32")), "SCH-7"),
    "lookup with a minifloat": (lambda: qs.Scheme("e2m1", **NF4), "SCH-8"),
    "lookup without a table": (lambda: qs.Scheme("q4s", mode="lookup"), "SCH-9"),
    "table without lookup": (lambda: qs.Scheme("q4s", table=qs.NF4), "SCH-9"),
    "table of f64": (lambda: qs.Scheme("q4s", mode="lookup", table=np.ones(16)), "SCH-10"),
    "table of integers": (lambda: qs.Scheme("q4s", mode="lookup", table=np.ones(16, np.int32)), "SCH-10"),
    "table of 15": (lambda: qs.Scheme("q4s", mode="lookup", table=single(np.ones(15))), "SCH-11"),
    "table for another width": (lambda: qs.Scheme("q8s", **NF4), "SCH-11"),
    "table of two axes": (lambda: qs.Scheme("q4s", mode="lookup", table=single(np.ones((4, 4)))), "SCH-11"),
    "table with Inf": (lambda: qs.Scheme("q2s", mode="lookup", table=single([0, 1, np.inf, 2])), "SCH-12"),
    "table with NaN": (lambda: qs.Scheme("q2s", mode="lookup", table=single([0, 1, np.nan, 2])), "SCH-12"),
    "table of zeros": (lambda: qs.Scheme("q2s", mode="lookup", table=single([0, -0.0, 0, 0])), "SCH-12"),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_scheme_is_refused(name: str) -> None:
    call, rule = SCHEMES[name]
    with pytest.raises(qs.SchemeError) as error:
        call()
    assert refusal(error)[0] == rule
    assert str(error.value).endswith(f"[{rule}]")


TEXTS = {
    "": 0, "q8s": 3, "q9s.native.t-f32": 0, "q8s.nativ.t-f32": 4, "q8s.native.b0-f32": 11, "q8s.native.b04-f32": 11,
    "q8s.native.b1x4-f32": 11, "q8s.native.b-f32": 11, "q8s.native.b4": 11, "q8s.native.b4-f64": 11,
    "q8s.native.b2147483648-f32": 11,
    "q8s.native.b2x2x2x2x2x2-f32": 11, "q8s.native.t-f32.b4-f32": 17, "q8s.native.t-f32.": 17, "q8s.native.b4-f32 ": 11,
    " q8s.native.t-f32": 0, "q4s.native.lut-nf5.t-f32": 11, "e2m1.native.lut-nf4.t-f32": 12, "q8s.native.t-F32": 11,
    "q8s.packed_u32_00.t-f32": 4, "q8s.packed_u32_99999999999.t-f32": 4, "q8s.native.b4-f32.b4-f32": 18,
    "q8s.native.b\u0664-f32": 11,
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_scheme_text_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(qs.SchemeError, match=f"position {TEXTS[text]}") as error:
        qs.Scheme.parse(text)
    assert error.value.position == TEXTS[text]


INPUTS: dict[str, npt.NDArray[Any]] = {
    "f64": np.zeros(4), "int32": np.zeros(4, np.int32), "uint8": np.zeros(4, np.uint8), "bool": np.zeros(4, bool),
    "complex": np.zeros(4, np.complex64), "object": np.zeros(4, object), "string": np.array(["1"] * 4),
    "longdouble": np.zeros(4, np.longdouble), "datetime": np.zeros(4, "M8[s]"), "record": np.zeros(4, "f4,f4"),
}  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_input_type_is_refused(verbs: Verbs, name: str) -> None:
    """BC-015 and all other types: nothing is rounded or reinterpreted silently, wherever numbers are taken."""
    x = INPUTS[name]
    calls: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("QNT-1", lambda: verbs.quantize(x, "q8s.native.t-f32")),
        ("SCL-19", lambda: verbs.quantize(np.zeros(8, np.float32), BLOCK, scales=x)),
        ("SCL-19", lambda: verbs.quantize(np.zeros(8, np.float32), "q8s.native.t-f32", tensor_scale=x[:1])),
        ("QNT-1", lambda: verbs.encode(x, "e4m3")),
        ("SCL-15", lambda: verbs.encode_scale(x, "f16")),
    )
    for rule, call in calls:
        with pytest.raises(qs.DtypeError, match="allowed: float32, float16, bfloat16") as error:
            call()
        assert refusal(error)[0] == rule


@pytest.mark.parametrize("dtype", ["i1", "u2", "f4", "?", "O"])
def test_code_type_is_refused(verbs: Verbs, dtype: str) -> None:
    codes = np.zeros(4, dtype)
    with pytest.raises(qs.DtypeError) as error:
        verbs.decode(codes, "e4m3")
    assert refusal(error)[0] == "VAL-4"
    with pytest.raises(qs.DtypeError) as error:
        verbs.decode_scale(codes, "ue8m0")
    assert refusal(error)[0] == "SCL-21"


@pytest.mark.parametrize("value", [name for name, row in qs.VALUES.items() if row.bits < 8])
def test_bytes_that_are_no_codes_are_refused(verbs: Verbs, value: str) -> None:
    """BC-083, 113, 117: of the 256 bytes exactly those that extend a field are codes."""
    row, legal = qs.VALUES[value], 0
    for byte in range(256):
        sign = row.is_integer and byte & row.sign_bit
        extended = (byte & row.mask) | (0xFF & ~row.mask if sign else 0)
        if byte == extended:
            legal += 1
            verbs.decode(np.array([byte], np.uint8), value)
        else:
            with pytest.raises(qs.EncodingError, match=f"0x{byte:02X}") as error:
                verbs.decode(np.array([byte], np.uint8), value)
            assert refusal(error)[0] == "VAL-5"
    assert legal == 1 << row.bits


GIVEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "turned grid": (BLOCK, {"scales": np.ones((2, 2), np.float32)[:1].T}, "SCL-19"),
    "flat grid": (BLOCK, {"scales": np.ones(4, np.float32)}, "SCL-19"),
    "grid to be broadcast": (BLOCK, {"scales": np.ones((1, 2), np.float32)}, "SCL-19"),
    "one scale": (BLOCK, {"scales": np.float32(1)}, "SCL-19"),
    "a scale an element": (BLOCK, {"scales": np.ones((2, 4), np.float32)}, "SCL-19"),
    "two tensor scales": ("q8s.native.t-f32", {"tensor_scale": np.ones(2, np.float32)}, "SCL-19"),
    "no tensor scale": ("q8s.native.t-f32", {"tensor_scale": np.ones(0, np.float32)}, "SCL-19"),
    "-Inf": (BLOCK, {"scales": np.full((2, 2), -np.inf, np.float32)}, "SCL-20"),
    "-1 in ue8m0": ("q8s.native.b2-ue8m0", {"scales": np.full((2, 2), -1, np.float32)}, "SCL-20"),
    "-0 in ue4m3": ("q8s.native.b2-ue4m3", {"scales": np.full((2, 2), -0.0, np.float32)}, "SCL-20"),
    "inexact -0.1 in f16": ("q8s.native.b2-f16", {"scales": np.full((2, 2), -0.1, np.float32)}, "SCL-20"),
    "codes of another width": (BLOCK, {"scale_codes": np.ones((2, 2), np.uint16)}, "SCL-21"),
    "bit 7": ("q8s.native.b2-ue4m3", {"scale_codes": np.full((2, 2), 0x80, np.uint8)}, "SCL-2"),
    "numbers and codes": (BLOCK, {"scales": np.ones((2, 2), np.float32), "scale_codes": np.ones((2, 2), np.uint32)}, "SCL-22"),
    "block scales without a level": ("q8s.native.t-f32", {"scales": np.ones((2, 2), np.float32)}, "SCL-22"),
    "tensor scale without a level": (BLOCK, {"tensor_scale": np.float32(1)}, "SCL-22"),
    "block scales alone": (TWO, {"scales": np.ones((2, 2), np.float32)}, "SCL-23"),
    "tensor scale 0": (TWO, {"tensor_scale": np.float32(0)}, "SCL-23"),
    "tensor scale NaN": (TWO, {"tensor_scale": np.float32(np.nan)}, "SCL-23"),
    "tensor scale -1": (TWO, {"tensor_scale": np.float32(-1)}, "SCL-23"),
    "tensor scale code Inf": (TWO, {"tensor_scale_code": np.array(0x7F800000, np.uint32)}, "SCL-23"),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_given_scales_are_refused(verbs: Verbs, name: str) -> None:
    """BC-121, 129, 131 and what else could be given: never broadcast, turned or repaired; x stays as it is."""
    text, given, rule = GIVEN[name]
    before = X.tobytes()
    with pytest.raises(qs.QuantspecError) as error:
        verbs.quantize(X, text, **given)
    assert refusal(error)[0] == rule
    assert X.tobytes() == before


SHAPES: tuple[Any, ...] = ((-1,), (2, -3), (True,), (1.0,), ("4",), (2**63,), (2**32, 2**32))


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_shapes_are_refused(verbs: Verbs, shape: Any) -> None:
    for call in (
        lambda: qs.byte_count("q8s.native.t-f32", shape),
        lambda: verbs.from_bytes(b"", "q8s.native.t-f32", shape),
        lambda: verbs.split(b"", "q4s.packed_u32_0.b2-f16", shape),
    ):
        with pytest.raises(qs.ShapeError) as error:
            call()
        assert refusal(error)[0] == "LAY-5"


OPTIONS: dict[str, tuple[Callable[[Verbs], Any], str]] = {
    "padding": (lambda v: v.split(bytes(12), "q8s.native.t-f32", (8,), padding="maybe"), "PAK-8"),
    "bit 7": (lambda v: v.from_bytes(bytes(9), "q8s.native.t-ue4m3", (8,), ue4m3_bit7=None), "SCL-2"),
    "rounding": (lambda v: v.encode_scale(X, "f16", "down"), "SCL-15"),
    "recipe": (lambda v: v.quantize(X, BLOCK, recipe=qs.Recipe("nvfp4-torchao")), "POL-1"),
    "codec": (lambda v: v.encode(X, "e4m3", codec=qs.Codec("odd", "to-odd", "saturate", "format", "keep")), "POL-2"),
    "container": (
        lambda v: v.from_bytes(b"", BLOCK, (8,), container=qs.Container("x", "high", "half", "dense", "256x4")),
        "POL-3",
    ),
    "output": (lambda v: v.dequantize(v.quantize(X, BLOCK), "f64"), "QNT-10"),
    "output dtype": (lambda v: v.dequantize(v.quantize(X, BLOCK), np.float64), "QNT-10"),
    "data": (lambda v: v.from_bytes([0] * 12, "q8s.native.t-f32", (8,)), "LAY-1"),
    "data of words": (lambda v: v.from_bytes(np.zeros(3, np.uint32), "q8s.native.t-f32", (8,)), "LAY-1"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_refused(verbs: Verbs, name: str) -> None:
    call, rule = OPTIONS[name]
    with pytest.raises(qs.QuantspecError) as error:
        call(verbs)
    assert refusal(error)[0] == rule
