"""Layout operations, requantize and echo: accepted and refused, on schemes with blocks on other axes than the packed one."""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from quantspec import Scheme

from ...examples import Tensor
from ...implementations.law import tell
from ...protocol.messages import Ok, Request
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
    typed,
    with_refusals,
)
from .schemes import ask

__all__ = ["plans"]

#: Scheme -> shape of the tensor that operations are tried on.
TENSORS: dict[str, tuple[int, ...]] = {
    "e2m1.packed_native_0.b4-ue4m3.t-f32": (3, 4, 8),
    "q4s.packed_u32_1.b2x3-f16": (2, 4, 7),
    "q8s.native.t-f32": (3, 5, 2),
    "e3m2.packed_u32_2.b2x1x4-ue8m0": (4, 3, 8),
    "q2f.packed_native_1.b1-bf16": (2, 3, 5),
    "q4f.packed_native_0.lut-nf4.b8-f32": (2, 3, 10),
}
#: Operation -> name of a try -> its words; a try that the law refuses for a tensor is a negative case there.
TRIES: dict[str, dict[str, dict[str, str]]] = {
    "permute": {
        "keep": {"axes": "0,1,2"}, "reverse": {"axes": "2,1,0"}, "inner": {"axes": "0,2,1"}, "cycle": {"axes": "1,2,0"},
        "outer": {"axes": "1,0,2"}, "negative": {"axes": "-1,0,1"}, "twice": {"axes": "0,0,1"}, "few": {"axes": "0,1"},
        "out": {"axes": "0,1,3"},
    },
    "slice": {
        "whole": {"axis": "2", "range": "0,8"}, "half": {"axis": "2", "range": "4,7"}, "inside": {"axis": "2", "range": "3,7"},
        "none": {"axis": "1", "range": "2,2"}, "rows": {"axis": "1", "range": "2,3"}, "odd-row": {"axis": "1", "range": "1,3"},
        "outer": {"axis": "0", "range": "1,2"}, "backwards": {"axis": "0", "range": "2,1"},
        "beyond": {"axis": "2", "range": "0,11"}, "negative-axis": {"axis": "-3", "range": "0,1"},
        "no-axis": {"axis": "3", "range": "0,1"}, "below": {"axis": "0", "range": "-1,1"},
    },
    "take": {
        "some": {"axis": "0", "indices": "1,0,1"}, "none": {"axis": "0", "indices": "()"},
        "rows": {"axis": "1", "indices": "2,0"}, "inner": {"axis": "2", "indices": "0,1"},
        "beyond": {"axis": "0", "indices": "0,9"}, "negative": {"axis": "0", "indices": "-1"},
        "no-axis": {"axis": "-4", "indices": "0"},
    },
    "select": {
        "outer": {"axis": "0", "index": "1"}, "middle": {"axis": "1", "index": "2"}, "inner": {"axis": "2", "index": "1"},
        "beyond": {"axis": "0", "index": "7"}, "negative-axis": {"axis": "-2", "index": "0"},
        "no-axis": {"axis": "3", "index": "0"},
    },
    "flip": {
        "outer": {"axis": "0"}, "middle": {"axis": "1"}, "inner": {"axis": "2"}, "negative-axis": {"axis": "-1"},
        "no-axis": {"axis": "5"},
    },
    "expand": {
        "new-axis": {"new_shape": "2,{0},{1},{2}"}, "same": {"new_shape": "{0},{1},{2}"}, "grown": {"new_shape": "{0},{1},9"},
        "fewer": {"new_shape": "{1},{2}"}, "two-axes": {"new_shape": "2,1,{0},{1},{2}"},
        "none": {"new_shape": "0,{0},{1},{2}"},
    },
    "reshape": {
        "same": {"new_shape": "{0},{1},{2}"}, "merge-outer": {"new_shape": "{01},{2}"},
        "merge-inner": {"new_shape": "{0},{12}"}, "flat": {"new_shape": "{012}"}, "new-axis": {"new_shape": "1,{0},{1},{2}"},
        "last-axis": {"new_shape": "{0},{1},{2},1"}, "count": {"new_shape": "{0},{1},3"},
        "exchanged": {"new_shape": "{0},{2},{1}"},
    },
    "requantize": {
        "same": {"new_scheme": "{scheme}"}, "int8": {"new_scheme": "q8s.native.t-f32"},
        "mx": {"new_scheme": "e2m1.packed_native_0.b4-ue8m0"}, "rank": {"new_scheme": "q8s.native.b2x2x2x2-f32"},
        "text": {"new_scheme": "q8s.native"},
    },
}  # fmt: skip
BUGS: dict[str, tuple[str, ...]] = {
    "requantize": ("scale-rounding", "decode-order"),
    "reshape": ("block-index", "axis"),
}
MORE = ("e2m1.packed_native_0.b4-ue4m3.t-f32", "q4s.packed_u32_1.b2x3-f16")


def plans(level: int) -> Iterator[Plan]:
    """The suites of the layout operations: level 0 on one tensor, level 1 on all and what is special to each."""
    if level == 2:
        return
    for op in TRIES:
        first = MORE if op == "flip" else MORE[:1]  # a partial block too
        name, chosen = ("first", first) if level == 0 else ("tensors", tuple(TENSORS)[1:])
        yield Plan(Place("scheme", op, name, level), partial(_tries, chosen))
    if level == 0:
        yield Plan(Place("scheme", "concatenate", "first", 0), _concatenate)
        yield Plan(Place("scheme", "permute", "extents", 0), _six_extents)
    else:
        yield Plan(Place("scheme", "reshape", "empty", 1), _reshape_empty)
        yield positives(Place("scheme", "expand", "ones", 1), _expand_ones)


def _tensor(text: str, slug: str, title: str, op: str, shape: tuple[int, ...], words: Mapping[str, str]) -> Ask:
    scheme = Scheme.parse(text)
    given = drawn(f"operation.{text}.{shape_slug(shape)}", scheme, shape, finite=op == "requantize")
    return ask(scheme, slug, title, given, *BUGS.get(op, ("axis", "block-index")), **words)


def _filled(words: Mapping[str, str], text: str, shape: tuple[int, ...]) -> dict[str, str]:
    """Words with the sizes of the tensor, and products of them, filled in."""
    found = {}
    for name, word in words.items():
        for axes in ("012", "01", "12", "0", "1", "2"):
            word = word.replace(f"{{{axes}}}", str(int(np.prod([shape[int(axis)] for axis in axes]))))
        found[name] = word.replace("{scheme}", text)
    return found


def _tries(texts: tuple[str, ...], place: Place) -> Iterator[Case]:
    """Each try on each tensor, the first as the control of those that are refused."""
    for text in texts:
        shape = TENSORS[text]
        asks = [
            _tensor(text, name, f"{name.replace('-', ' ')}, {shape}", place.op, shape, _filled(words, text, shape))
            for name, words in TRIES[place.op].items()
        ]
        good = [number for number, one in enumerate(asks) if _done(place.op, one)]
        yield from with_refusals(place, asks[good[0]], [one for number, one in enumerate(asks) if number not in good])
        yield from accepted(place, [asks[number] for number in good[1:]])


def _done(op: str, one: Ask) -> bool:
    """Whether the law does it."""
    return isinstance(tell(Request(op, one.words, one.tensors)).answer, Ok)


def _parts(text: str, shapes: list[tuple[int, ...]]) -> dict[str, Tensor]:
    """The tensors of several parts, of the second on with a number in their names; tensor scales equal."""
    found: dict[str, Tensor] = {}
    for number, shape in enumerate(shapes, 1):
        made = drawn(f"part.{text}.{number}.{shape_slug(shape)}", Scheme.parse(text), shape)
        if "tensor_scale_code" in made and number > 1:
            made["tensor_scale_code"] = found["tensor_scale_code"]
        found |= {name if number == 1 else f"{name}_{number}": tensor for name, tensor in made.items()}
    return found


def _concatenate(place: Place) -> Iterator[Case]:
    """Whole blocks but in the last part, empty parts skipped; everything that differs between parts refused."""

    def joined(text: str, slug: str, title: str, axis: str, *shapes: tuple[int, ...]) -> Ask:
        return ask(Scheme.parse(text), slug, title, _parts(text, list(shapes)), "axis", "block-index", axis=axis)

    text = "e2m1.packed_native_0.b4-ue4m3.t-f32"
    good = joined(text, "whole-blocks", "whole blocks, then a partial one", "1", (3, 8), (3, 5))
    other_scale = typed("u32", [0x40000000], ())
    yield from with_refusals(
        place,
        good,
        [
            joined(text, "partial-first", "a partial block, then another", "1", (3, 5), (3, 8)),
            joined(text, "sizes", "sizes that differ on another axis", "1", (3, 8), (2, 8)),
            joined(text, "ranks", "ranks that differ", "1", (3, 8), (8,)),
            joined(text, "no-axis", "no such axis", "2", (3, 8), (3, 8)),
            changed(good, "tensor-scales", "tensor scales that differ", tensor_scale_code_2=other_scale),
            changed(good, "schemes", "schemes that differ", scheme_2="e2m1.native.b4-ue4m3.t-f32"),
        ],
    )
    yield from accepted(
        place,
        [
            joined(text, "outer", "along an axis without blocks", "0", (1, 5), (3, 5)),
            joined(text, "three", "three parts", "-1", (3, 4), (3, 8), (3, 3)),
            joined(text, "empty-part", "a part without elements is skipped", "1", (3, 0), (3, 5)),
            joined(text, "all-empty", "no part has elements", "1", (3, 0), (3, 0)),
            joined(text, "one", "one part", "0", (3, 5)),
            joined("q4s.packed_u32_1.b2x3-f16", "rows", "whole blocks of rows", "0", (4, 7), (3, 7)),
            joined("q8s.native.t-f32", "tensor-level", "no block level", "0", (3, 2), (4, 2)),
        ],
    )


def _six_extents(place: Place) -> Iterator[Case]:
    """An axis of extent 1 that moves behind five others would need six extents."""
    text, shape = "q8s.native.b2x2x2x2x2-f32", (2, 2, 2, 2, 2, 2)
    good = _tensor(text, "kept", "five extents stay five", "permute", shape, {"axes": "0,2,1,3,4,5"})
    bad = _tensor(text, "six", "six extents", "permute", shape, {"axes": "1,2,3,4,5,0"})
    yield from with_refusals(place, good, [bad])


def _reshape_empty(place: Place) -> Iterator[Case]:
    text = "q4s.packed_u32_1.b2x3-f16"
    good = _tensor(text, "rank-3", "no elements: extents stay", "reshape", (4, 0), {"new_shape": "2,0,5"})
    bad = _tensor(text, "rank-1", "no elements, and more extents than axes", "reshape", (4, 0), {"new_shape": "0"})
    yield from with_refusals(place, good, [bad])
    scalar = _tensor(
        "q8s.packed_u32_0.b1-f16", "scalar", "a scalar of one element", "reshape", (1, 1), {"new_shape": "()"}
    )
    yield from accepted(place, [scalar])


def _expand_ones() -> Iterator[Ask]:
    """An axis of size 1 under blocks grows by whole and partial blocks."""
    for text, shape, new in (
        ("e2m1.packed_native_0.b4-ue4m3.t-f32", (3, 1), "3,10"),
        ("q4s.packed_u32_1.b2x3-f16", (1, 1), "5,7"),
        ("q4s.packed_u32_1.b2x3-f16", (1, 4), "3,1,4"),
        ("q2f.packed_native_1.b1-bf16", (2, 1), "2,6"),
        ("q8s.native.t-f32", (1,), "4,0"),
        ("e3m2.packed_u32_0.b1-ue8m0", (), "2,3"),
    ):
        yield _tensor(
            text,
            f"{shape_slug(shape)}-to-{new.replace(',', 'x')}",
            f"{shape} to {new}",
            "expand",
            shape,
            {"new_shape": new},
        )
