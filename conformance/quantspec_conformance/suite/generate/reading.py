"""split: bytes of the wrong length, padding that is dirty, bit 7, options that are none."""

from collections.abc import Iterator, Sequence

import numpy as np

from quantspec import Quantized, Scheme, to_bytes

from ...examples import Tensor
from ..case import Case
from .common import Ask, Place, accepted, changed, codes_of, drawn, shape_slug, shape_text, with_refusals
from .schemes import ask

__all__ = ["bytes_request", "dirty_bytes", "lengths", "split_refused"]


def bytes_request(place: Place, scheme: Scheme, shape: Sequence[int], slug: str, title: str, *bugs: str) -> Ask:
    """Drawn codes to write, or their bytes to read."""
    given = drawn(f"bytes.{scheme.text}.{shape_slug(shape)}", scheme, shape)
    if place.op == "to_bytes":
        return ask(scheme, slug, title, given, *bugs)
    arrays = [given[name].array() if name in given else None for name in ("codes", "scale_codes", "tensor_scale_code")]
    data = np.frombuffer(to_bytes(Quantized(scheme, np.asarray(arrays[0]), arrays[1], arrays[2])), np.uint8)
    return ask(scheme, slug, title, {"bytes": codes_of(data)}, *bugs, shape=shape_text(shape))


def _with(data: Tensor, **places: int) -> Tensor:
    """Bytes with a few of them replaced: `at_3=0x80`, `at_last=1`."""
    found = data.array().copy()
    for place, byte in places.items():
        at = place.removeprefix("at_")
        found[-1 if at == "last" else int(at)] = byte
    return Tensor.of(found)


def split_refused(place: Place) -> Iterator[Case]:
    good = bytes_request(place, Scheme.parse("e2m1.packed_native_0.b4-ue4m3"), (2, 5), "accepted", "accepted")
    data = good.tensors["bytes"]
    array = data.array()
    spoiled = _with(data, at_2=0x10 | int(array[2]))
    set_bit = _with(data, at_last=0x80 | int(array[-1]))
    tall = Tensor.of(array.reshape(2, -1)) if array.size % 2 == 0 else Tensor.of(array.reshape(-1, 1))
    yield from with_refusals(
        place,
        good,
        [
            changed(good, "short", "a byte too few", "length", bytes=Tensor.of(array[:-1])),
            changed(good, "long", "a byte too many", "length", bytes=Tensor.of(np.append(array, np.uint8(0)))),
            changed(good, "none", "no bytes", "length", bytes=Tensor.of(array[:0])),
            changed(good, "two-axes", "bytes of two axes", "length", bytes=tall),
            changed(good, "padding", "a padding field that is not zero", "padding", bytes=spoiled),
            changed(good, "padding-option", "no such option", padding="keep"),
            changed(good, "bit-7", "bit 7 of ue4m3", bytes=set_bit),
            changed(good, "bit-7-padding", "the padding option does not clear it", bytes=set_bit, padding="ignore"),
            changed(good, "bit-7-option", "no such option", ue4m3_bit7="clear"),
            changed(good, "shape-negative", "a negative size", "length", shape="2,-5"),
            changed(good, "shape-huge", "more than 2^63 - 1 elements", "length", shape="4294967296,4294967296"),
        ],
    )
    ignored = changed(good, "bit-7-ignored", "an import clears bit 7", bytes=set_bit, ue4m3_bit7="ignore")
    yield from accepted(place, [ignored])
    yield from _native_refused(place)


def _native_refused(place: Place) -> Iterator[Case]:
    native = bytes_request(place, Scheme.parse("e2m1.native.t-f32"), (3,), "accepted-native", "accepted")
    bad = changed(
        native,
        "native-byte",
        "a native byte that is no code",
        "extension",
        bytes=_with(native.tensors["bytes"], at_1=0x55),
    )
    yield from with_refusals(place, native, [bad])


def lengths(place: Place) -> Iterator[Case]:
    """Lengths about the right one, and those of other readings: scales left out, lines not padded, another word."""
    for text, shape in (
        ("e2m1.packed_native_0.b16-ue4m3.t-f32", (3, 37)),
        ("e2m1.packed_u32_1.b2x3-f16", (11, 5)),
        ("e2m1.native.t-f32", (7,)),
        ("e2m1.packed_u32_0.t-bf16", (0, 5)),
        ("e2m1.packed_u32_0.b1-ue8m0", ()),
    ):
        good = bytes_request(place, Scheme.parse(text), shape, shape_slug(shape), "the right length")
        array = good.tensors["bytes"].array()
        wrong = sorted(
            {
                0,
                1,
                len(array) - 4,
                len(array) - 2,
                len(array) - 1,
                len(array) + 1,
                len(array) + 2,
                len(array) + 4,
                2 * len(array),
            }
        )
        yield from with_refusals(
            place,
            good,
            [
                changed(
                    good,
                    f"{shape_slug(shape)}-length-{length}",
                    f"{text}: {length} bytes for {len(array)}",
                    "length",
                    bytes=Tensor.of(np.resize(array, length)),
                )
                for length in wrong
                if 0 <= length != len(array)
            ],
        )


def dirty_bytes(place: Place) -> Iterator[Case]:
    """Every bit of a last byte of a line that holds no code, refused and ignored; several at once ignored."""
    for store in ("packed_native_0", "packed_u32_1"):
        scheme, shape = Scheme(place.format, store, block=((3,), "ue4m3")), (5, 3)
        good = bytes_request(place, scheme, shape, "5x3-clean", "clean padding", "padding")
        array = good.tensors["bytes"].array()
        words = array[: len(array) - 5]  # five blocks
        masks = _padding_masks(scheme, shape, len(words))
        spots = [(byte, bit) for byte, mask in enumerate(masks) for bit in range(8) if mask >> bit & 1]
        chosen = [spots[0], spots[-1], spots[len(spots) // 2], spots[len(spots) // 3]] if spots else []
        bad = []
        for byte, bit in dict.fromkeys(chosen):
            spoiled = array.copy()
            spoiled[byte] |= np.uint8(1 << bit)
            bad.append(
                changed(
                    good,
                    f"5x3-byte-{byte}-bit-{bit}",
                    f"{scheme.text}: bit {bit} of byte {byte} is set",
                    "padding",
                    bytes=Tensor.of(spoiled),
                )
            )
        yield from with_refusals(place, good, bad)
        whole = array.copy()
        whole[: len(words)] |= np.array(masks, np.uint8)
        yield from accepted(
            place,
            [
                changed(
                    good,
                    "5x3-all-ignored",
                    f"{scheme.text}: all padding set, and ignored",
                    "padding",
                    bytes=Tensor.of(whole),
                    padding="ignore",
                )
            ],
        )


def _padding_masks(scheme: Scheme, shape: tuple[int, ...], count: int) -> list[int]:
    """The bits of each byte of the words that hold no code: those that stay 0 where every code has all its bits."""
    ones = np.full(shape, 0xFF if scheme.value.is_integer else scheme.value.mask, np.uint8)
    grid = tuple(-(-size // extent) for size, extent in zip(shape, scheme.extents(len(shape)), strict=True))
    full = np.frombuffer(to_bytes(Quantized(scheme, ones, np.zeros(grid, np.uint8))), np.uint8)
    return [0xFF & ~int(byte) for byte in full[:count]]
