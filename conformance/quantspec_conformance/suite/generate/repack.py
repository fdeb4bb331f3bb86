"""repack: every pair of stores and packed axes, words that come back as words, codes as codes; what may not be read."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from quantspec import VALUES, Scheme, ValueFormat

from ...examples import Tensor
from ..case import Case
from .common import Ask, Place, Plan, changed, drawn, positives, shape_slug, shape_text, typed, with_refusals
from .lookups import by_bits
from .packing import dirty, stores, words_tensor
from .schemes import ask, by_value, first_schemes, readable

__all__ = ["plans"]

BUGS = ("padding", "nibble-order", "word-order", "axis")
#: A shape whose lines end in partial words along either axis, and one of three axes; a value of each width is asked there.
FLAT, DEEP = (3, 5), (2, 3, 5)
WIDTHS = ("q8s", "e3m2", "q4s", "q2f")


def plans(level: int) -> Iterator[Plan]:
    """The suites of repack."""
    if level == 0:
        for name, group in by_value(first_schemes()):
            yield positives(Place(name, "repack", "first", 0), partial(_first, group))
        yield Plan(Place("q4s", "repack", "refused", 0), _refused)
    elif level == 1:
        for row in VALUES.values():
            yield positives(Place(row.name, "repack", "stores", 1), partial(_stores, row))
        yield positives(Place("scheme", "repack", "codes", 1), _codes)
    else:
        yield positives(Place("scheme", "repack", "large", 2), _large)


def _words(scheme: Scheme, shape: Sequence[int], store: str, *bugs: str, slug: str = "") -> Ask:
    """The words of drawn codes, for another store."""
    given = drawn(f"repack.{scheme.text}.{shape_slug(shape)}", scheme, shape)
    words = words_tensor(given.pop("codes").array(), scheme)
    name = slug or f"words-{shape_slug(shape)}-to-{store}"
    return ask(
        scheme, name, f"words of {tuple(shape)}, to {store}", {"words": words, **given}, *(bugs or BUGS),
        shape=shape_text(shape), new_store=store,
    )  # fmt: skip


def _coded(scheme: Scheme, shape: Sequence[int], store: str) -> Ask:
    given = drawn(f"repack.{scheme.text}.{shape_slug(shape)}", scheme, shape)
    return ask(
        scheme, f"codes-{shape_slug(shape)}-to-{store}", f"codes of {tuple(shape)}, to {store}", given, "axis", "block-index",
        new_store=store,
    )  # fmt: skip


#: Store of the first cases -> another one.
_ELSEWHERE = {
    "native": "packed_u32_1", "packed_native_0": "packed_u32_0", "packed_native_1": "packed_native_0",
    "packed_u32_0": "native", "packed_u32_1": "packed_native_0",
}  # fmt: skip


def _first(group: Sequence[Scheme]) -> Iterator[Ask]:
    for scheme in group:
        if readable(scheme, "repack"):
            store = _ELSEWHERE[scheme.store.text]
            yield _coded(scheme, (2, 11), store)
            yield _words(scheme, (2, 11), store)


def _stores(row: ValueFormat) -> Iterator[Ask]:
    """Every two stores and packed axes; the block scales stay in their places."""
    texts = [text for text, _ in stores()]
    flat = [text for text in texts if not text.endswith("_2")]
    for first in flat:
        scheme = Scheme(row, first, tensor="f32")
        for store in flat:
            if store != first:
                yield _words(scheme, FLAT, store)
        yield _words(Scheme(row, first, block=((2, 3), "f16")), FLAT, flat[(flat.index(first) + 3) % len(flat)])
    if row.name in WIDTHS:
        for first in texts:
            for store in texts:
                if store != first and (first.endswith("_2") or store.endswith("_2")):
                    yield _words(Scheme(row, first, tensor="f32"), DEEP, store)
    yield _words(Scheme(row, "packed_u32_1", tensor="f32"), (37, 3), "packed_u32_0")
    yield _words(Scheme(row, "packed_u32_0", tensor="f32"), (2, 37), "packed_u32_0", slug="words-same")
    yield _words(Scheme(row, "packed_u32_0", block=((), "f32")), (), "packed_native_0")
    yield _words(Scheme(row, "packed_native_1", tensor="f32"), (5, 0), "packed_u32_0")
    for table in by_bits(row.bits).values() if row.is_integer else ():
        scheme = Scheme(row, "packed_u32_1", mode="lookup", tensor="f32", table=table)
        if readable(scheme, "repack"):
            yield _words(scheme, (9, 3), "packed_native_0", "lookup", *BUGS)


def _codes() -> Iterator[Ask]:
    """Codes and scale codes stay as they are: blocks on several axes, both levels, no elements, a scalar."""
    for text, shape in (
        ("e2m1.packed_native_0.b4-ue4m3.t-f32", (3, 4, 8)),
        ("q4s.packed_u32_1.b2x3-f16", (2, 4, 7)),
        ("e3m2.packed_u32_2.b2x1x4-ue8m0", (4, 3, 8)),
        ("q2f.packed_native_1.b1-bf16", (2, 3, 5)),
        ("q8f.native.t-ue4m3", (2, 3, 5)),
    ):
        scheme = Scheme.parse(text)
        for store, _ in stores():
            yield _coded(scheme, shape, store)
    yield _coded(Scheme.parse("q4s.packed_u32_0.b1-f16"), (), "packed_native_0")
    yield _coded(Scheme.parse("q4s.packed_u32_0.b3-f16.t-f32"), (2, 0), "packed_u32_1")


def _large() -> Iterator[Ask]:
    for row in VALUES.values():
        yield _words(Scheme(row, "packed_u32_0", block=((2, 16), "f16")), (65, 257), "packed_native_1")


def _refused(place: Place) -> Iterator[Case]:
    """Stores that are none, axes that are not there, words that may not be read."""
    scheme = Scheme.parse("q4s.packed_u32_0.t-f32")
    good = _words(scheme, (2, 11), "packed_native_1", slug="accepted")
    words = good.tensors["words"].array()
    _, _, spoiled = next(dirty(words, scheme, 11))
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "store-unknown", "no such store", new_store="packed_u64_0"),
            changed(good, "store-no-axis", "a packed store without an axis", new_store="packed_u32"),
            changed(good, "store-native-axis", "native has no axis", new_store="native_0"),
            changed(good, "store-zeros", "an axis in two digits", new_store="packed_u32_01"),
            changed(good, "store-negative", "axes count from 0", new_store="packed_u32_-1"),
            changed(good, "axis", "an axis that is not there", "axis", new_store="packed_u32_2"),
            changed(good, "axis-native", "the same for a store of bytes", "axis", new_store="packed_native_2"),
            changed(good, "padding", "padding that is not zero", "padding", words=Tensor.of(spoiled)),
            changed(good, "words-few", "a word too few", "length", words=Tensor.of(words[:, :1])),
            changed(good, "words-u16", "words of another width", "dtype", words=Tensor.of(words.astype(np.uint16))),
        ],
    )
    coded = _coded(Scheme.parse("q4s.packed_u32_0.b4-f16"), (2, 6), "native")
    codes = coded.tensors["codes"].array().copy()
    codes[1, 2] = 0x0F
    yield from with_refusals(
        place,
        coded,
        [
            changed(coded, "codes-axis", "an axis that is not there", "axis", new_store="packed_u32_3"),
            changed(coded, "codes-store", "no such store", new_store="ggml"),
            changed(coded, "byte-0f", "byte 0F is no code", "extension", codes=Tensor.of(codes)),
            changed(coded, "scales-missing", "a level without scales", scale_codes=None),
        ],
    )
    vector = Ask(
        slug="vector", title="one axis", words={"scheme": "q4s.native.t-f32", "new_store": "packed_u32_0"},
        tensors={"codes": typed("u8", [1, 2, 3]), "tensor_scale_code": typed("u32", [0x3F800000], ())}, part="q4s-native-t-f32",
    )  # fmt: skip
    yield from with_refusals(
        place, vector, [changed(vector, "vector-axis", "a vector has one axis", "axis", new_store="packed_native_1")]
    )
