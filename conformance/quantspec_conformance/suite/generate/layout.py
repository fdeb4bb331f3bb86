"""to_bytes, split and size: every store and every pair of scale types; lengths, padding and bit 7 on read."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from quantspec import SCALES, VALUES, Scheme, ValueFormat

from ...examples import Tensor
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    changed,
    positives,
    shape_slug,
    shape_text,
    slug_of,
    with_refusals,
)
from .lookups import by_bits
from .packing import SHAPES_OF, stores
from .reading import bytes_request, dirty_bytes, lengths, split_refused
from .schemes import by_value, first_schemes, readable, rows_for, scheme_of

__all__ = ["plans"]


def plans(level: int) -> Iterator[Plan]:
    """The suites of to_bytes, split and size."""
    for op in ("to_bytes", "split"):
        if level == 0:
            for name, group in by_value(first_schemes()):
                kept = [scheme for scheme in group if readable(scheme, op)]
                place = Place(name, op, "first", 0)
                yield positives(place, partial(_first, place, kept))
            yield Plan(Place("e2m1", op, "refused", 0), _to_bytes_refused if op == "to_bytes" else split_refused)
        elif level == 1:
            for row in VALUES.values():
                place = Place(row.name, op, "stores", 1)
                yield positives(place, partial(_stores, place, row))
            place = Place("e2m1", op, "levels", 1)
            yield positives(place, partial(_levels, place))
            if op == "split":
                yield Plan(Place("e2m1", op, "lengths", 1), lengths)
                for name in ("q2s", "q4f", "e2m3"):
                    yield Plan(Place(name, op, "dirty", 1), dirty_bytes)
        else:
            for row in VALUES.values():
                place = Place(row.name, op, "threewise", 2)
                yield positives(place, partial(_threewise, place, row))
    if level == 0:
        yield Plan(Place("scheme", "size", "refused", 0), _size_refused)
    elif level == 1:
        yield positives(Place("scheme", "size", "stores", 1), _sizes)


def _first(place: Place, schemes: Sequence[Scheme]) -> Iterator[Ask]:
    for scheme in schemes:
        yield bytes_request(
            place, scheme, (3, 11), "bytes", "three short lines", "endianness", "nibble-order", "axis", "block-index"
        )


def _stores(place: Place, row: ValueFormat) -> Iterator[Ask]:
    """Every store and axis with blocks that the exchange of axes moves; a scalar; no elements; tables."""
    for store, d in stores():
        shape = SHAPES_OF[d][-1]
        scheme = Scheme(row, store, block=((2, 3), "f16"), tensor="bf16")
        yield bytes_request(
            place, scheme, shape, shape_slug(shape), f"{shape}", "endianness", "word-order", "axis", "block-index"
        )
    yield bytes_request(place, Scheme(row, "packed_u32_0", block=((), "f32")), (), "scalar", "a scalar", "endianness")
    empty = Scheme(row, "packed_native_1", block=((3,), "f16"), tensor="f32")
    yield bytes_request(place, empty, (4, 0), "4x0", "no elements: a tensor scale is all there is", "zero-block")
    for table in by_bits(row.bits).values() if row.is_integer else ():
        scheme = Scheme(row, "packed_u32_1", mode="lookup", block=((2, 1), "f32"), table=table)
        if readable(scheme, place.op):
            yield bytes_request(place, scheme, (19, 3), "19x3", "indices of a table", "lookup", "axis", "endianness")


def _levels(place: Place) -> Iterator[Ask]:
    """Every scale type at each level and every pair of them."""
    for block, tensor in product((*SCALES, None), (*SCALES, None)):
        if block is not None or tensor is not None:
            scheme = Scheme("e2m1", "packed_native_1", tensor=tensor, block=None if block is None else ((2, 3), block))
            yield bytes_request(
                place, scheme, (3, 5, 4), "3x5x4", "scales of both levels", "endianness", "axis", "block-index"
            )


def _threewise(place: Place, row: ValueFormat) -> Iterator[Ask]:
    for combined in rows_for(place.op, 3):
        if combined["value"] == row.name:
            scheme = scheme_of(combined)
            shape = combined["shape"]
            yield bytes_request(
                place, scheme, shape, f"{combined['family']}-{shape_slug(shape)}", f"{shape}", "axis", "block-index"
            )


def _to_bytes_refused(place: Place) -> Iterator[Case]:
    good = bytes_request(place, Scheme.parse("e2m1.packed_native_0.b4-ue4m3"), (2, 5), "accepted", "accepted")
    codes, scales = good.tensors["codes"].array().copy(), good.tensors["scale_codes"].array().copy()
    codes[0, 1], scales[1, 0] = 0x13, 0x83
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "byte-13", "byte 13 is no code", "extension", codes=Tensor.of(codes)),
            changed(good, "bit-7", "bit 7 of ue4m3", scale_codes=Tensor.of(scales)),
            changed(good, "container-unknown", "no such container", container="ggml"),
            changed(good, "scales-missing", "a level without scales", scale_codes=None),
        ],
    )


def _size(text: str, shape: str, slug: str, title: str, *bugs: str) -> Ask:
    words = {"scheme": text, "shape": shape}
    return Ask(slug=slug, title=f"{text}: {title}", words=words, tensors={}, bugs=bugs, part=slug_of(text))


def _sizes() -> Iterator[Ask]:
    """Bytes of a tensor: every store and width, shapes of every kind, the largest there are."""
    for row in VALUES.values():
        for store, d in stores():
            shape = SHAPES_OF[d][-1]
            yield _size(
                f"{row.name}.{store}.b2x3-f16.t-ue4m3", shape_text(shape), shape_slug(shape), f"{shape}", "length"
            )
    for text, written in (
        ("q8s.native.t-f32", "()"),
        ("q4s.packed_u32_0.b1-ue8m0", "()"),
        ("e2m1.packed_u32_0.t-f32", "0,5"),
        ("q2s.packed_native_0.t-ue8m0", "4611686018427387904"),
        ("q8s.native.t-f32", "9223372036854775803"),
        ("q8s.native.t-f32", "0,18446744073709551616"),
    ):
        slug = written.replace(",", "x").replace("()", "scalar")
        yield _size(text, written, slug, f"shape {written}", "length")


def _size_refused(place: Place) -> Iterator[Case]:
    good = _size("q8s.packed_u32_1.b2x3-f16", "4,6", "accepted", "accepted")
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "negative", "a negative size", "length", shape="4,-6"),
            changed(good, "elements", "more than 2^63 - 1 elements", "length", shape="4294967296,2147483648"),
            changed(good, "bytes", "more than 2^63 - 1 bytes", "length", shape="1,4611686018427387904"),
            changed(good, "block-rank", "more extents than axes", scheme="q8s.native.b2x3-f16", shape="6"),
            changed(
                good,
                "packed-axis",
                "a packed axis that is not there",
                "axis",
                shape="4,6",
                scheme="q8s.packed_u32_2.b2x3-f16",
            ),
        ],
    )
