"""pack and unpack: every store, width and packed axis on shapes with partial words; dirty padding; words that do not fit."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import STORES, VALUES, Scheme, ValueFormat, pack_codes

from ...examples import Tensor
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    accepted,
    changed,
    drawn,
    positives,
    shape_slug,
    shape_text,
    typed,
    with_refusals,
)
from .lookups import by_bits
from .schemes import ask, by_value, first_schemes, readable

__all__ = ["SHAPES_OF", "dirty", "plans", "stores", "words_tensor"]

#: Shapes by the packed axis counted from the innermost: partial words along it, several words a line, no elements, a scalar.
SHAPES_OF: dict[int, tuple[tuple[int, ...], ...]] = {
    0: ((2, 37), (3, 2, 16)),
    1: ((37, 3), (2, 19, 4)),
    2: ((18, 2, 3), (2, 35, 2, 3)),
}

#: A scalar is asked of one store: its word holds padding.
SCALAR_STORE = "packed_u32_0"


def stores() -> list[tuple[str, int]]:
    """Every store with each packed axis, counted from the innermost."""
    return [
        (f"{kind}_{d}" if row.packed else kind, d)
        for kind, row in STORES.items()
        for d in range(3 if row.packed else 1)
    ]


def plans(level: int) -> Iterator[Plan]:
    """The suites of pack and unpack."""
    for op in ("pack", "unpack"):
        if level == 0:
            for name, group in by_value(first_schemes()):
                kept = [scheme for scheme in group if readable(scheme, op)]
                place = Place(name, op, "first", 0)
                yield positives(place, partial(_first, place, kept))
            yield Plan(Place("q4s", op, "refused", 0), _pack_refused if op == "pack" else _unpack_refused)
        elif level == 1:
            for row in VALUES.values():
                place = Place(row.name, op, "stores", 1)
                yield positives(place, partial(_stores, place, row))
            if op == "unpack":
                for name in ("q8s", "e3m2", "q4s", "q2f"):  # a value of each width
                    yield Plan(Place(name, op, "padding", 1), _padding)
        else:
            for row in VALUES.values():
                place = Place(row.name, op, "large", 2)
                yield positives(place, partial(_large, place, row))


def words_tensor(codes: npt.NDArray[np.uint8], scheme: Scheme) -> Tensor:
    """The words of codes."""
    return Tensor.of(np.asarray(pack_codes(codes, scheme)))


def _request(place: Place, scheme: Scheme, shape: Sequence[int], slug: str, title: str, *bugs: str) -> Ask:
    """Drawn codes to pack, or their words to unpack."""
    given = drawn(f"pack.{scheme.text}.{shape_slug(shape)}", scheme, shape)
    if place.op == "pack":
        return ask(scheme, slug, title, given, *bugs)
    words = words_tensor(given.pop("codes").array(), scheme)
    return ask(scheme, slug, title, {"words": words, **given}, *bugs, shape=shape_text(shape))


def _first(place: Place, schemes: Sequence[Scheme]) -> Iterator[Ask]:
    for scheme in schemes:
        yield _request(place, scheme, (2, 11), "codes", "codes of two short lines", "nibble-order", "padding", "axis")


def _stores(place: Place, row: ValueFormat) -> Iterator[Ask]:
    """Every store and axis of a value; tensors of rank 0 and without elements; indices of a table."""
    bugs = ("nibble-order", "word-order", "axis", "padding")
    for store, d in stores():
        scheme = Scheme(row, store, tensor="f32")
        for shape in SHAPES_OF[d] if scheme.store.packed else SHAPES_OF[d][:1]:
            yield _request(place, scheme, shape, shape_slug(shape), f"drawn codes of {shape}", *bugs)
        if store == SCALAR_STORE:
            yield _request(place, scheme, (), "scalar", "a scalar is one line", "padding")
    yield _request(
        place, Scheme(row, "packed_u32_1", tensor="f32"), (5, 0), "5x0", "no elements, no words", "zero-block"
    )
    for table in by_bits(row.bits).values() if row.is_integer else ():
        scheme = Scheme(row, "packed_u32_1", mode="lookup", tensor="f32", table=table)
        if readable(scheme, place.op):
            yield _request(place, scheme, (19, 3), "19x3", "drawn indices", "lookup", "extension", "axis")


def _large(place: Place, row: ValueFormat) -> Iterator[Ask]:
    for store, _ in stores():
        scheme = Scheme(row, store, tensor="f32")
        yield _request(place, scheme, (64, 32, 33), "64x32x33", "2^16 codes and more", "word-order", "axis")


def dirty(words: npt.NDArray[Any], scheme: Scheme, codes_a_line: int) -> Iterator[tuple[str, str, npt.NDArray[Any]]]:
    """Words with one bit set where no code is: the first padding field, the last, another line, an unused bit."""
    per_word, width = scheme.store.codes_per_word(scheme.value.bits), scheme.store.field_bits(scheme.value.bits)
    size = 8 * scheme.store.word_bytes(scheme.value.bits)
    filled = codes_a_line % per_word
    last = (0,) * (words.ndim - 1) + (words.shape[-1] - 1,)
    final = tuple(n - 1 for n in words.shape)
    places = []
    if filled:
        places = [
            ("first-field", last, filled * width),
            ("last-bit", final, per_word * width - 1),
            ("last-field", final, (per_word - 1) * width),
        ]
    if size > per_word * width:
        places += [("unused-bit", (0,) * words.ndim, size - 1), ("unused-first", final, per_word * width)]
    for name, index, bit in places:
        spoiled = words.copy()
        spoiled[index] |= words.dtype.type(1 << bit)
        yield name, f"bit {bit} of word {index}", spoiled


def _padding(place: Place) -> Iterator[Case]:
    """Dirty padding is refused, and ignored where an import says so."""
    for store, d in stores():
        scheme = Scheme(place.format, store, tensor="f32")
        shape = SHAPES_OF[d][0]
        good = _request(place, scheme, shape, f"{shape_slug(shape)}-clean", "clean padding", "padding")
        words = good.tensors["words"].array()
        spoiled = list(dirty(words, scheme, shape[len(shape) - 1 - d]))
        if spoiled:
            yield from with_refusals(
                place,
                good,
                [
                    changed(
                        good,
                        f"{shape_slug(shape)}-{name}",
                        f"{scheme.text}: {title} is set",
                        "padding",
                        words=Tensor.of(array),
                    )
                    for name, title, array in spoiled
                ],
            )
            yield from accepted(
                place,
                [
                    changed(
                        good,
                        f"{shape_slug(shape)}-{name}-ignored",
                        f"{scheme.text}: {title} is ignored",
                        "padding",
                        words=Tensor.of(array),
                        padding="ignore",
                    )
                    for name, title, array in spoiled
                ],
            )


def _pack_refused(place: Place) -> Iterator[Case]:
    scheme = Scheme.parse("q4s.packed_u32_0.b4-f16")
    good = _request(place, scheme, (2, 6), "accepted", "accepted")
    codes = good.tensors["codes"].array().copy()
    codes[1, 2] = 0x0F
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "byte-0f", "byte 0F is no code", "extension", codes=Tensor.of(codes)),
            changed(good, "codes-u16", "codes are bytes", "dtype", codes=Tensor.of(codes.astype(np.uint16))),
            changed(good, "scales-missing", "a level without scales", scale_codes=None),
            changed(good, "container-unknown", "no such container", container="ggml"),
            changed(good, "packed-axis", "a packed axis that is not there", "axis", scheme="q4s.packed_u32_2.b4-f16"),
        ],
    )


def _unpack_refused(place: Place) -> Iterator[Case]:
    scheme = Scheme.parse("q4s.packed_u32_0.t-f32")
    good = _request(place, scheme, (2, 11), "accepted", "accepted")
    words = good.tensors["words"].array()
    _, _, spoiled = next(dirty(words, scheme, 11))
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "padding", "a padding field that is not zero", "padding", words=Tensor.of(spoiled)),
            changed(good, "padding-option", "no such option", padding="keep"),
            changed(good, "words-u16", "words of another width", "dtype", words=Tensor.of(words.astype(np.uint16))),
            changed(good, "words-few", "a word too few", "length", words=Tensor.of(words[:, :1])),
            changed(good, "words-many", "a word too many", "length", words=Tensor.of(np.tile(words, (1, 2)))),
            changed(good, "shape-negative", "a negative size", "length", shape="2,-11"),
        ],
    )
    yield from _words_refused(place)


def _words_refused(place: Place) -> Iterator[Case]:
    """Native bytes that are no codes, a word of three bytes with four."""
    native = _request(place, Scheme.parse("q4s.native.t-f32"), (2, 3), "accepted-native", "accepted")
    bytes_ = native.tensors["words"].array().copy()
    bytes_[0, 1] = 0x88
    yield from with_refusals(
        place,
        native,
        [
            changed(native, "native-byte", "a native byte that is no code", "extension", words=Tensor.of(bytes_)),
            changed(
                native,
                "native-byte-ignore",
                "no option relaxes it",
                "extension",
                words=Tensor.of(bytes_),
                padding="ignore",
            ),
        ],
    )
    six = _request(place, Scheme.parse("e3m2.packed_native_0.t-f32"), (2, 5), "accepted-six", "accepted")
    wide = six.tensors["words"].array().copy()
    wide[1, 1] |= np.uint32(1 << 24)
    yield from with_refusals(
        place, six, [changed(six, "word-wide", "a word of more than three bytes", words=typed("u32", wide, wide.shape))]
    )
