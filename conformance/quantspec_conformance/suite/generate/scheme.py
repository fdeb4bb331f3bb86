"""Schemes as texts, as members and as upstream's JSON: good ones in one spelling, bad ones with one fault each."""

import json
from collections.abc import Iterator

import numpy as np

from quantspec import TABLES, Scheme

from ...examples import Tensor
from ...named import NAMED
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    accepted,
    changed,
    f32,
    positives,
    slug_of,
    typed,
    with_refusals,
)
from .lookups import AWKWARD
from .schemes import combinations, first_schemes, scheme_of

__all__ = ["plans"]

#: Slug -> a text with one fault.
BAD_TEXTS = {
    "empty": "", "value": "e4m4.native.t-f32", "value-case": "E2M1.native.t-f32", "no-store": "e2m1",
    "store": "e2m1.packed_u64_0.t-f32", "store-no-axis": "e2m1.packed_u32.t-f32", "store-zeros": "e2m1.packed_u32_01.t-f32",
    "native-axis": "e2m1.native_0.t-f32", "store-huge": "e2m1.packed_u32_2147483648.t-f32", "no-level": "e2m1.native",
    "order": "e2m1.native.t-f32.b16-f16", "tensor-type": "e2m1.native.t-e8m0", "block-type": "e2m1.native.b16-e4m3",
    "block-no-type": "e2m1.native.b16", "block-leading-one": "e2m1.native.b1x16-f16", "block-zeros": "e2m1.native.b016-f16",
    "block-zero": "e2m1.native.b0-f16", "block-inner-zero": "e2m1.native.b2x0-f16",
    "block-huge": "e2m1.native.b2147483648-f16", "block-vast": "e2m1.native.b99999999999999999999-f16",
    "block-six": "q8s.native.b2x1x1x1x1x1-f16", "block-empty": "e2m1.native.b-f16", "space": "e2m1.native. t-f32",
    "tail": "e2m1.native.t-f32.", "twice": "e2m1.native.t-f32.t-f32", "double-point": "e2m1..native.t-f32",
    "table-minifloat": "e2m1.native.lut-nf4.t-f32", "table-unknown": "q4s.native.lut-nf5.t-f32",
    "table-digest-of-named": "q4s.native.lut-8501941daa1b.t-f32", "table-length": "q8s.native.lut-nf4.t-f32",
    "table-case": "q4s.native.lut-NF4.t-f32", "table-nameless": "q4s.native.lut-.t-f32",
    "table-late": "q4s.native.t-f32.lut-nf4", "digits": "e2m1.native.b\u0661\u0666-f16", "sign": "e2m1.native.b-16-f16",
    "line-end": "e2m1.native.t-f32\n",
}  # fmt: skip
#: Slug -> members of a scheme with one fault.
BAD_MEMBERS: dict[str, dict[str, str]] = {
    "value": {"value": "e4m4"}, "store": {"value": "q4s", "store": "packed"},
    "store-no-axis": {"value": "q4s", "store": "packed_u32"}, "mode": {"value": "q4s", "mode": "linear"},
    "affine": {"value": "q4s", "mode": "affine"}, "zero-point": {"value": "q4s", "mode": "zero_point"},
    "tensor": {"value": "q4s", "tensor": "e8m0"}, "block-type": {"value": "q4s", "block": "16 e4m3"},
    "block-zero": {"value": "q4s", "block": "0 f16"}, "block-negative": {"value": "q4s", "block": "-16 f16"},
    "block-six": {"value": "q4s", "block": "2,1,1,1,1,1 f16"}, "block-huge": {"value": "q4s", "block": "2147483648 f16"},
    "lookup-minifloat": {"value": "e2m1", "mode": "lookup"}, "lookup-no-table": {"value": "q4s", "mode": "lookup"},
    "rank": {"value": "q4s", "block": "2,16 f16", "shape": "16"},
    "axis": {"value": "q4s", "store": "packed_u32_1", "shape": "16"},
    "axis-scalar": {"value": "q4s", "store": "packed_native_1", "shape": "()"},
}  # fmt: skip
BURN = {"value": "E2M1", "store": {"PackedNative": 0}, "mode": "Symmetric", "tensor": "F32"}
BURN_BLOCK = {"size": {"storage": [16, 1, 1, 1, 1], "len": 1}, "dtype": "UE4M3"}


def plans(level: int) -> Iterator[Plan]:
    """The suites of scheme and to_burn."""
    if level == 0:
        yield Plan(Place("scheme", "scheme", "texts", 0), _texts)
        yield Plan(Place("scheme", "scheme", "members", 0), _members)
        yield Plan(Place("scheme", "scheme", "burn", 0), _burn)
        yield Plan(Place("scheme", "to_burn", "first", 0), _to_burn)
    elif level == 1:
        yield positives(Place("scheme", "scheme", "spellings", 1), _spellings)
        yield positives(Place("scheme", "to_burn", "schemes", 1), _burn_all)


def _ask(part: str, slug: str, title: str, words: dict[str, str], tensors: dict[str, Tensor] | None = None) -> Ask:
    return Ask(slug=slug, title=title, words=words, tensors=tensors or {}, part=part)


def _texts(place: Place) -> Iterator[Case]:
    good = _ask("text", "accepted", "A text that names a scheme", {"scheme": "e2m1.packed_native_0.b16-ue4m3.t-f32"})
    yield from with_refusals(
        place,
        good,
        [
            _ask("text", slug, f"Not a scheme: {slug.replace('-', ' ')}", {"scheme": text})
            for slug, text in BAD_TEXTS.items()
        ],
    )
    odd = AWKWARD["odd"]
    for scheme in first_schemes()[len(NAMED) :]:  # the named ones are in every other suite
        tables = (
            {} if scheme.table is None or scheme.table.name in TABLES else {"table": f32(np.array(scheme.table.bits))}
        )
        yield from accepted(
            place, [_ask(slug_of(scheme.text), "text", f"The text {scheme.text}", {"scheme": scheme.text}, tables)]
        )
    text = f"q4s.native.lut-{odd.name}.t-f32"
    good = _ask("digest", "table", "A table named by its digest", {"scheme": text}, {"table": f32(np.array(odd.bits))})
    yield from with_refusals(
        place,
        good,
        [
            changed(
                good, "other-table", "Another table than the digest says", table=f32(np.array(AWKWARD["steps"].bits))
            )
        ],
    )


def _members(place: Place) -> Iterator[Case]:
    """Schemes from their members: normal form, and one fault at a time."""
    good = _ask("members", "accepted", "Members of a scheme", {"value": "q4s", "block": "1,2,16 f16", "shape": "3,5"})
    bad = [_ask("members", slug, f"No scheme: {slug.replace('-', ' ')}", words) for slug, words in BAD_MEMBERS.items()]
    entries = np.array(AWKWARD["odd"].bits)
    faults = (
        ("table-f64", typed("f64", [0x3FF0000000000000] * 16)),
        ("table-i32", typed("i32", range(16))),
        ("table-short", f32(entries[:15])),
        ("table-axes", f32(entries, (4, 4))),
        ("table-inf", f32(np.where(entries == 1, 0x7F800000, entries))),
        ("table-nan", f32(np.where(entries == 1, 0x7FC00000, entries))),
        ("table-zeros", f32(np.where(entries > 0, 0x80000000, 0))),
    )
    lookup = {"value": "q4s", "mode": "lookup"}
    bad += [
        _ask("members", slug, f"No table: {slug.removeprefix('table-')}", lookup, {"table": table})
        for slug, table in faults
    ]
    bad.append(
        _ask("members", "table-symmetric", "A table in symmetric mode", {"value": "q4s"}, {"table": f32(entries)})
    )
    yield from with_refusals(place, good, bad)
    rows = {
        "no-level": {"value": "q8s"}, "leading-ones": {"value": "q8s", "block": "1,1,32 f16"},
        "only-ones": {"value": "e2m1", "block": "1,1 ue8m0"}, "no-extents": {"value": "e2m1", "block": "() ue8m0"},
        "inner-one": {"value": "e2m1", "block": "2,1 f16"}, "b1-scalar": {"value": "q4s", "block": "1 f16", "shape": "()"},
        "scalar-packed": {"value": "q4s", "store": "packed_u32_0", "shape": "()"},
        "six-leading-one": {"value": "q4s", "block": "1,2,1,1,1,1 f16"},
    }  # fmt: skip
    yield from accepted(place, [_ask("members", slug, slug.replace("-", " "), words) for slug, words in rows.items()])
    half = typed("f16", [0x3C00, 0xBC00, 0x3800, 0xB800] * 4)
    yield from accepted(place, [_ask("members", "table-f16", "A table of binary16 widens", lookup, {"table": half})])


def _json(**changes: object) -> dict[str, str]:
    return {"json": json.dumps({**BURN, "block": BURN_BLOCK, **changes}, separators=(",", ":"))}


def _burn(place: Place) -> Iterator[Case]:
    """Upstream's JSON, read."""

    def block(**size: object) -> dict[str, object]:
        return {"size": {"storage": [16, 1, 1, 1, 1], "len": 1, **size}, "dtype": "UE4M3"}

    good = _ask("burn", "accepted", "Upstream's JSON", _json())
    faults: dict[str, dict[str, str]] = {
        "not-json": {"json": "{"}, "a-list": {"json": "[]"}, "value": _json(value="E3M2"), "value-case": _json(value="e2m1"),
        "store": _json(store="Packed"), "store-negative": _json(store={"PackedU32": -1}),
        "store-fraction": _json(store={"PackedU32": 1.5}), "store-huge": _json(store={"PackedU32": 2**31}),
        "mode": _json(mode="Linear"), "affine": _json(mode="Affine"), "tensor": _json(tensor="F64"),
        "old-keys": _json(level="Tensor"), "new-key": _json(extra=1),
        "no-value": {"json": '{"store":"Native","mode":"Symmetric"}'},
        "extent-zero": _json(block=block(storage=[0, 1, 1, 1, 1])),
        "extent-256": _json(block=block(storage=[256, 1, 1, 1, 1])), "len-six": _json(block=block(storage=[2] * 6, len=6)),
        "len-long": _json(block=block(storage=[2], len=2)), "len-negative": _json(block=block(len=-1)),
        "block-dtype": _json(block={**block(), "dtype": "E8M0"}), "block-key": _json(block={**block(), "rank": 1}),
        "lookup-minifloat": _json(mode="Lookup"), "lookup-no-table": _json(value="Q4S", mode="Lookup"),
    }  # fmt: skip
    bad = [_ask("burn", slug, f"Not a scheme: {slug.replace('-', ' ')}", words) for slug, words in faults.items()]
    bad.append(
        _ask(
            "burn",
            "table-symmetric",
            "A table in symmetric mode",
            _json(value="Q4S"),
            {"table": f32(np.array(AWKWARD["odd"].bits))},
        )
    )
    yield from with_refusals(place, good, bad)
    rows = {
        "wrapped": {"json": json.dumps({"QFloat": BURN}, separators=(",", ":"))}, "no-levels": _json(tensor=None, block=None),
        "native": _json(store="Native"), "leading-ones": _json(block=block(storage=[1, 32, 9, 9, 9], len=2)),
        "no-extents": _json(block=block(len=0)), "filler": _json(block=block(storage=[2, 300, -1, 0, 1])),
        "five": _json(block=block(storage=[255, 2, 3, 4, 5], len=5)), "axis": _json(store={"PackedU32": 2147483647}),
    }  # fmt: skip
    yield from accepted(place, [_ask("burn", slug, slug.replace("-", " "), words) for slug, words in rows.items()])
    table = {"table": f32(np.array(AWKWARD["odd"].bits))}
    yield from accepted(
        place, [_ask("burn", "lookup", "A lookup object with its table", _json(value="Q4S", mode="Lookup"), table)]
    )


def _to_burn(place: Place) -> Iterator[Case]:
    good = _ask(
        "e2m1-packed_native_0-b16-ue4m3-t-f32",
        "json",
        "NVFP4 as upstream writes it",
        {"scheme": "e2m1.packed_native_0.b16-ue4m3.t-f32"},
    )
    yield from with_refusals(
        place,
        good,
        [
            _ask(slug_of(text), "json", f"{text} has no JSON upstream", {"scheme": text})
            for text in (
                "e3m2.native.t-f32",
                "e2m3.packed_u32_0.b32-ue8m0",
                "q8s.native.b256-f16",
                "q8s.native.b2x300-f16",
            )
        ],
    )


def _spellings() -> Iterator[Ask]:
    """The text of every scheme of the pairwise rows, from its members; extents with a leading 1 that is dropped."""
    found = {scheme.text: scheme for scheme in map(scheme_of, combinations().rows)}
    for text, scheme in sorted(found.items()):
        words = {"value": scheme.value.name, "store": scheme.store.text, "mode": scheme.mode}
        if scheme.tensor is not None:
            words["tensor"] = scheme.tensor.name
        if scheme.block is not None:
            words["block"] = f"{','.join(map(str, (1, *scheme.block.extents)))} {scheme.block.scale.name}"
        table = {} if scheme.table is None else {"table": f32(np.array(scheme.table.bits))}
        yield _ask(slug_of(text), "members", f"The one spelling {text}", words, table)


def _burn_all() -> Iterator[Ask]:
    """Upstream's JSON of schemes of every member that it has."""
    for text in sorted({scheme.text for scheme in map(scheme_of, combinations().rows) if scheme.table is None}):
        scheme = Scheme.parse(text)
        if scheme.value.burn is not None and all(
            extent <= 255 for extent in (scheme.block.extents if scheme.block else ())
        ):
            yield _ask(slug_of(text), "json", f"{text} as upstream writes it", {"scheme": text})
