"""What quantize and dequantize refuse: a fault of each kind in an otherwise accepted request."""

from collections.abc import Iterator

from ..case import Case
from .common import Place, Plan, bits32, changed, codes_of, f32, typed, with_refusals
from .given import X, given_ask

__all__ = ["refused_plans"]


def refused_plans() -> Iterator[Plan]:
    """The suites of refusals."""
    yield Plan(Place("q4s", "quantize", "refused", 0), _quantize_refused)
    yield Plan(Place("q4s", "dequantize", "refused", 0), _dequantize_refused)


def _quantize_refused(place: Place) -> Iterator[Case]:
    """A fault of each kind in an otherwise accepted request."""
    good = given_ask("q4s.packed_u32_0.b4-f16", "accepted", "accepted", x=f32(X), scales=f32(bits32([1, 2])))
    grid = bits32([1, 2])
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "input-f64", "binary64 is no input", "dtype", x=typed("f64", [0] * 8)),
            changed(good, "input-i32", "an integer is no input", "dtype", x=typed("i32", range(8))),
            changed(good, "scales-f64", "scales of binary64", "dtype", scales=typed("f64", [0x3FF0000000000000] * 2)),
            changed(good, "scales-shape", "scales of another shape", scales=f32(grid, (2, 1))),
            changed(good, "scales-few", "a scale too few", scales=f32(grid[:1])),
            changed(good, "scales-and-codes", "values and codes of one level", scale_codes=typed("u16", [1, 2])),
            changed(good, "no-such-level", "a tensor scale where there is no such level", tensor_scale=f32(grid[:1], ())),
            changed(good, "block-rank", "more extents than axes", scheme="q4s.packed_u32_0.b2x4-f16"),
            changed(good, "packed-axis", "a packed axis that is not there", "axis", scheme="q4s.packed_u32_1.b4-f16"),
            changed(good, "recipe-unknown", "no such recipe", recipe="te"),
            changed(good, "codec-unknown", "no such codec", codec="half-up"),
            changed(good, "minus-inexact", "a negative scale that is not exact", scales=f32([0xBDCCCCCD, 0x3F800000])),
        ],
    )  # fmt: skip
    good = given_ask(
        "q4s.native.b4-ue4m3.t-f32",
        "accepted-tensor",
        "a tensor scale alone",
        x=f32(X),
        tensor_scale=f32([0x3F800000], ()),
    )
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "blocks-alone", "block scales alone", tensor_scale=None, scales=f32(grid)),
            changed(good, "tensor-zero", "a tensor scale of zero alone", "zero-block", tensor_scale=f32([0], ())),
            changed(good, "tensor-two", "two tensor scales", tensor_scale=f32(grid)),
            changed(good, "bit-7", "bit 7 of ue4m3", scale_codes=typed("u8", [1, 0x81])),
        ],
    )


def _dequantize_refused(place: Place) -> Iterator[Case]:
    """A tensor that is put together wrongly; an output that is none."""
    codes = codes_of([1, 2, 0xF9, 7, 0xFF, 0, 3, 4])
    good = given_ask(
        "q4s.packed_u32_0.b4-f16", "accepted", "accepted", codes=codes, scale_codes=typed("u16", [0x3C00, 0x4000])
    )
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "codes-u16", "codes are bytes", "dtype", codes=typed("u16", range(8))),
            changed(good, "byte-08", "byte 08 is no code", "extension", codes=codes_of([1, 2, 8, 7, 0xFF, 0, 3, 4])),
            changed(good, "scales-missing", "a level without scales", scale_codes=None),
            changed(good, "scales-surplus", "scales of no level", tensor_scale_code=typed("u32", [0x3F800000], ())),
            changed(good, "scales-shape", "scales of another shape", scale_codes=typed("u16", [0x3C00] * 2, (1, 2))),
            changed(good, "scales-dtype", "scale codes of another width", "dtype", scale_codes=typed("u8", [1, 2])),
            changed(good, "to-f64", "no such output", "dtype", to="f64"),
            changed(good, "recipe-unknown", "no such recipe", recipe="te"),
            changed(good, "codec-unknown", "no such codec", codec="half-up"),
            changed(good, "block-rank", "more extents than axes", scheme="q4s.packed_u32_0.b2x4-f16"),
            changed(good, "packed-axis", "a packed axis that is not there", "axis", scheme="q4s.packed_native_1.b4-f16"),
        ],
    )  # fmt: skip
