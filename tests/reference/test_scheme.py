"""Schemes: normal form, text, upstream's JSON, legality. Rules SCH-1 to SCH-18, POL-4."""

import hashlib
import itertools
import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from quantspec import NF4, SCALES, STORES, VALUES, Block, Scheme, SchemeError, ShapeError, Table, quantize
from quantspec.scales import ScaleType

LEVELS: list[dict[str, Any]] = [
    *({"tensor": t} for t in SCALES),
    *({"block": ((2, 16), b)} for b in SCALES),
    *({"tensor": t, "block": ((32,), b)} for t, b in itertools.product(SCALES, SCALES)),
]
STORE_TEXTS = ["native", *(f"{row.name}_{d}" for row in STORES.values() if row.packed for d in range(3))]
COUNTING = {bits: Table.of(np.linspace(-1, 1, 1 << bits, dtype=np.float32)) for bits in (2, 4, 8)}


def every_scheme() -> list[Scheme]:
    plain = [Scheme(v, s, **level) for v, s, level in itertools.product(VALUES, STORE_TEXTS, LEVELS)]
    integers = [row for row in VALUES.values() if row.is_integer]
    looked_up = [
        Scheme(row, s, mode="lookup", table=COUNTING[row.bits], **level)
        for row, s, level in itertools.product(integers, STORE_TEXTS, LEVELS)
    ]
    return plain + looked_up


def test_text_and_burn_json_give_every_scheme_back() -> None:
    schemes = every_scheme()
    assert len(schemes) == len({scheme.text for scheme in schemes}) == 11 * 7 * 35 + 6 * 7 * 35
    for scheme in schemes:
        assert Scheme.parse(scheme.text, tables=list(COUNTING.values())) == scheme
        if scheme.value.burn is not None:
            sent = json.dumps(scheme.to_burn())
            back = Scheme.from_burn(sent, table=scheme.table)
            assert back == scheme and hash(back) == hash(scheme)


def test_upstreams_own_json_is_written_to_the_letter() -> None:
    scheme = Scheme.parse("e2m1.packed_native_0.b16-ue4m3.t-f32")
    assert json.dumps(scheme.to_burn(), separators=(",", ":")) == (
        '{"value":"E2M1","store":{"PackedNative":0},"mode":"Symmetric","tensor":"F32",'
        '"block":{"size":{"storage":[16,1,1,1,1],"len":1},"dtype":"UE4M3"}}'
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Scheme("q8s"), Scheme("q8s", "native", tensor="f32")),
        (Scheme("q8s", block=((1, 1, 32), "f16")), Scheme("q8s", block=(32, "f16"))),
        (Scheme("q8s", block=((1, 1), "f16")), Scheme("q8s", block=((), "f16"))),
        (Scheme("q8s", block=((2, 1), "f16")), Scheme("q8s", block=(np.array([2, 1]).tolist(), "f16"))),
        (
            Scheme("q4f", mode="lookup", table=NF4),
            Scheme("q4f", mode="lookup", table=np.array(NF4.entries, ">f4")),
        ),
    ],
)
def test_two_ways_to_write_one_scheme_are_equal(one: Scheme, other: Scheme) -> None:
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == other.text


def test_trailing_ones_of_a_block_stay() -> None:
    assert Scheme("q8s", block=((4, 1), "f16")).text == "q8s.native.b4x1-f16"


def test_a_table_is_copied_and_cannot_be_changed() -> None:
    mine = np.linspace(-1, 1, 4, dtype=np.float32)
    scheme = Scheme("q2f", mode="lookup", table=mine)
    mine[:] = 5
    assert scheme.table is not None
    assert scheme.table.entries.tolist() == np.linspace(-1, 1, 4, dtype=np.float32).tolist()
    with pytest.raises(ValueError, match="read-only"):
        scheme.table.entries[0] = 1


def test_an_unregistered_table_is_named_by_its_digest() -> None:
    table = np.array([-1, 0, 0.5, 1], np.float32)
    digest = hashlib.sha256(table.astype("<f4").tobytes()).hexdigest()[:12]
    scheme = Scheme("q2s", mode="lookup", table=table)
    assert scheme.text == f"q2s.native.lut-{digest}.t-f32"
    assert hashlib.sha256(NF4.entries.astype("<f4").tobytes()).hexdigest()[:12] == "8501941daa1b"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_tables_widen(dtype: Any) -> None:
    table = np.array([-1, 0, 0.5, 1])
    assert Table.of(table.astype(dtype)) == Table.of(table.astype(np.float32))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("SCH-2", {"value": "q3s"}, "value='q3s' is not a value format; allowed: q8f, q8s,"),
    ("SCH-2", {"value": 8}, "value=8 is not a value format"),
    (
        "SCH-3",
        {"value": "q8s", "store": "packed_u32"},
        "store='packed_u32' is not a store; allowed: native, packed_native_d",
    ),
    ("SCH-3", {"value": "q8s", "store": "native_0"}, "store='native_0'"),
    ("SCH-3", {"value": "q8s", "store": "packed_u32_-1"}, "store='packed_u32_-1'"),
    ("SCH-3", {"value": "q8s", "store": "packed_u32_01"}, "store='packed_u32_01'"),
    ("SCH-4", {"value": "q8s", "mode": "Symmetric"}, "mode='Symmetric' is not a mode; allowed: symmetric, lookup"),
    ("POL-4", {"value": "q8s", "mode": "affine"}, "mode='affine': a scheme has no zero point"),
    (
        "SCH-5",
        {"value": "q8s", "tensor": "f64"},
        "tensor='f64' is not a scale type; allowed: f32, f16, bf16, ue8m0, ue4m3",
    ),
    ("SCH-5", {"value": "q8s", "block": ((2,), "e4m3")}, "block scale='e4m3' is not a scale type"),
    ("SCH-6", {"value": "q8s", "block": ((0,), "f32")}, "block extent [0]=0; allowed: an integer from 1 to 2^31-1"),
    ("SCH-6", {"value": "q8s", "block": ((4, 2**31), "f32")}, "block extent [1]=2147483648"),
    ("SCH-6", {"value": "q8s", "block": ((True,), "f32")}, "block extent [0]=True"),
    ("SCH-6", {"value": "q8s", "block": 32}, "block=32; allowed: (extents, scale type)"),
    ("SCH-7", {"value": "q8s", "block": ((2,) * 6, "f32")}, "has 6 extents; allowed: at most 5"),
    ("SCH-8", {"value": "e4m3", "mode": "lookup", "table": [0.0] * 3}, "mode='lookup' with value='e4m3'"),
    ("SCH-9", {"value": "q4s", "mode": "lookup"}, "mode='lookup' needs table="),
    ("SCH-9", {"value": "q4s", "table": NF4}, "table is given with mode='symmetric'"),
    ("SCH-10", {"value": "q2s", "mode": "lookup", "table": np.zeros(4)}, "table has dtype float64"),
    ("SCH-11", {"value": "q2s", "mode": "lookup", "table": np.full(5, np.nan, "f4")}, "table has 5 entries"),
    ("SCH-11", {"value": "q2s", "mode": "lookup", "table": np.zeros((2, 2), "f4")}, "table has shape (2, 2)"),
    (
        "SCH-12",
        {"value": "q2s", "mode": "lookup", "table": np.array([0, 1, np.inf, 2], "f4")},
        "table[2] is 0x7F800000",
    ),
    ("SCH-12", {"value": "q2s", "mode": "lookup", "table": np.array([0, -0.0, 0, 0], "f4")}, "table holds only zeros"),
]


@pytest.mark.parametrize(
    ("rule", "arguments", "message"), REFUSED, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_scheme_without_meaning_is_refused_by_its_rule(rule: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemeError) as refused:
        Scheme(**arguments)
    assert refused.value.rule == rule
    assert message in str(refused.value)
    assert str(refused.value).endswith(f"[{rule}]")


TYPOS = [
    ("", 0, "SCH-15"),
    ("e2m2.native.t-f32", 0, "SCH-15"),
    ("E2M1.native.t-f32", 0, "SCH-15"),
    ("e2m1", 4, "SCH-15"),
    ("e2m1.", 5, "SCH-15"),
    ("e2m1.packed_u32.t-f32", 5, "SCH-15"),
    ("e2m1.packed_u32_00.t-f32", 5, "SCH-15"),
    ("e2m1.packed_u32_2147483648.t-f32", 5, "SCH-3"),
    ("e2m1.native", 11, "SCH-15"),
    ("e2m1.native.", 12, "SCH-15"),
    ("e2m1.native.b16", 12, "SCH-15"),
    ("e2m1.native.b16-ue4m4", 12, "SCH-15"),
    ("e2m1.native.b016-f32", 12, "SCH-15"),
    ("e2m1.native.b1x16-f32", 12, "SCH-15"),
    ("e2m1.native.b16x-f32", 12, "SCH-15"),
    ("e2m1.native.b0-f32", 12, "SCH-6"),
    ("e2m1.native.b4x0-f32", 12, "SCH-6"),
    ("e2m1.native.b99999999999999999999-f32", 12, "SCH-6"),
    ("e2m1.native.b2x2x2x2x2x2-f32", 12, "SCH-7"),
    ("e2m1.native.t-f64", 12, "SCH-15"),
    ("e2m1.native.t-f32.b16-f32", 18, "SCH-15"),
    ("e2m1.native.b16-f32.t-f32.t-f32", 26, "SCH-15"),
    ("e2m1.native.t-f32 ", 12, "SCH-15"),
    ("e2m1.native.lut-nf4.t-f32", 12, "SCH-8"),
    ("q8s.native.lut-nf4.t-f32", 11, "SCH-11"),
    ("q4s.native.lut-nf5.t-f32", 11, "SCH-16"),
    ("q4s.native.lut-8501941daa1b.t-f32", 11, "SCH-16"),
    ("q4s.native.lut-nf4", 18, "SCH-15"),
    ("q٤s.native.t-f32", 0, "SCH-15"),
    ("q4s.packed_u32_٤.t-f32", 4, "SCH-15"),
    ("q4s.native.b٣-f32", 11, "SCH-15"),
    ("q4s." + "x" * 10_000, 4, "SCH-15"),
]


@pytest.mark.parametrize(("text", "position", "rule"), TYPOS, ids=[text[:40] or "empty" for text, _, _ in TYPOS])
def test_a_text_that_is_not_the_one_spelling_is_refused_with_its_position(text: str, position: int, rule: str) -> None:
    with pytest.raises(SchemeError) as refused:
        Scheme.parse(text)
    assert (refused.value.position, refused.value.rule) == (position, rule)
    assert f"position {position}: " in str(refused.value)
    assert len(str(refused.value)) < 12_000


def test_no_text_with_one_character_changed_is_read_as_the_same_scheme() -> None:
    """The grammar has one spelling: a changed text is another scheme or none."""
    text = "q4f.packed_u32_1.lut-nf4.b2x16-f16.t-bf16"
    scheme = Scheme.parse(text)
    for place, letter in itertools.product(range(len(text)), "0123456789abefmnqstux-._ "):
        changed = text[:place] + letter + text[place + 1 :]
        try:
            read = Scheme.parse(changed)
        except SchemeError:
            continue
        assert (read == scheme) == (changed == text)
        assert read.text == changed


BURN: dict[str, Any] = {"value": "Q8S", "store": "Native", "mode": "Symmetric", "tensor": None, "block": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "Q3S"}, "burn scheme: value='Q3S'; allowed: Q8F"),
        ({"value": ["Q8S"]}, "burn scheme: value=['Q8S']"),
        ({"store": {"PackedU32": -1}}, "burn scheme: store={'PackedU32': -1}"),
        ({"store": {"Native": 0}}, "burn scheme: store='Native'"),
        ({"store": {"PackedU32": True}}, "burn scheme: store="),
        ({"mode": "Lookups"}, "burn scheme: mode='Lookups'"),
        ({"mode": "Affine"}, "zero point"),
        ({"zero_point": 3}, "burn scheme: its keys="),
        ({"tensor": "F64"}, "burn scheme: tensor='F64'"),
        ({"block": {"size": [32], "dtype": "F32"}}, "burn scheme: block="),
        ({"block": {"size": {"storage": [32, 0], "len": 2}, "dtype": "F32"}}, "burn scheme: block.size.storage[1]=0"),
        ({"block": {"size": {"storage": [32], "len": 2}, "dtype": "F32"}}, "burn scheme: block.size.len=2"),
        ({"block": {"size": {"storage": [2**40], "len": 1}, "dtype": "F32"}}, "burn scheme: block.size.storage[0]="),
        ({"level": "Tensor"}, "level/param of before 2026-08-19"),
    ],
)
def test_burn_json_that_means_nothing_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemeError) as refused:
        Scheme.from_burn(BURN | change)
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["{", "[1]", "null", "[" * 100_000])
def test_burn_text_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(SchemeError, match="burn scheme"):
        Scheme.from_burn(text)


def test_burn_json_is_normalised_and_may_be_wrapped() -> None:
    block = {"size": {"storage": [1, 32, 77, 0], "len": 2}, "dtype": "F16"}
    assert Scheme.from_burn({"QFloat": BURN | {"block": block}}).text == "q8s.native.b32-f16"
    assert Scheme.from_burn({key: BURN[key] for key in ("value", "store", "mode")}).text == "q8s.native.t-f32"


def test_a_burn_lookup_scheme_takes_its_table() -> None:
    data = BURN | {"value": "Q4F", "mode": "Lookup"}
    assert Scheme.from_burn(data, table=NF4).text == "q4f.native.lut-nf4.t-f32"
    with pytest.raises(SchemeError, match="needs table="):
        Scheme.from_burn(data)


def test_burn_json_is_not_written_for_what_upstream_cannot_hold() -> None:
    for scheme, message in (
        (Scheme("e3m2"), "value='e3m2' has no name upstream"),
        (Scheme("q8s", block=((256,), "f32")), "block extent [0]=256; upstream holds at most 255"),
    ):
        with pytest.raises(SchemeError) as refused:
            scheme.to_burn()
        assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "shape", "rule"),
    [
        ("q8s.native.b2x16-f32", (16,), "SCH-13"),
        ("q8s.packed_u32_1.t-f32", (16,), "SCH-14"),
        ("q8s.packed_u32_1.t-f32", (), "SCH-14"),
        ("q8s.packed_native_2.b2x16-f32", (4,), "SCH-13"),  # both fail: the first rule is reported
    ],
)
def test_a_shape_that_does_not_fit_is_refused(text: str, shape: tuple[int, ...], rule: str) -> None:
    with pytest.raises(ShapeError) as refused:
        quantize(np.zeros(shape, np.float32), text)
    assert refused.value.rule == rule


def test_block_and_scale_records_are_accepted_where_names_are() -> None:
    f16: ScaleType = SCALES["f16"]
    assert Scheme(VALUES["q8s"], block=Block((1, 8), f16)) == Scheme("q8s", block=((8,), "f16"))
