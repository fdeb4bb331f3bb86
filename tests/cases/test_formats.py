"""The published tables of element and scale formats against ours, and golden conversions of each format."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import quantspec as qs

from ..bridge import Verbs
from .facts import FORMATS, bits_of, f32_of_bits, hexes, refusal, single

#: Formats of the file that are ours, and under which name.
ELEMENTS = {"e4m3": "e4m3", "e5m2": "e5m2", "e3m2": "e3m2", "e2m3": "e2m3", "e2m1": "e2m1"}
SCALE_TYPES = {"e8m0": "ue8m0", "ue4m3": "ue4m3"}
INTEGERS = {"int8": ("q8f", "q8s"), "int4": ("q4f", "q4s"), "int2": ("q2f", "q2s")}

#: Formats of the file that this version has no row for; each is refused by name (SCH-2).
NOT_OURS = {
    "ue5m3": "no scheme of this version has it",
    "e4m3_ieee": "minifloats are the OCP ones (VAL-2), and OCP's E4M3 is e4m3",
    "e3m4": "minifloats are the OCP ones (VAL-2)",
    "e4m3fnuz": "minifloats are the OCP ones (VAL-2), with a negative zero",
    "e5m2fnuz": "minifloats are the OCP ones (VAL-2), with a negative zero",
    "e4m3b11fnuz": "minifloats are the OCP ones (VAL-2), with a negative zero",
    "p3109_8p3se": "a draft of another standard",
    "p3109_8p4se": "a draft of another standard",
    "p3109_8p4sf": "a draft of another standard",
    "p3109_4p2sf": "a draft of another standard",
    "p3109_8p1uf": "a draft of another standard",
    "int1": "integers have 8, 4 or 2 bits (VAL-1)",
    "uint8": "integers are signed (VAL-1); an unsigned field is a lookup index",
    "uint4": "integers are signed (VAL-1); an unsigned field is a lookup index",
    "uint2": "integers are signed (VAL-1); an unsigned field is a lookup index",
    "uint1": "integers have 8, 4 or 2 bits (VAL-1)",
    "mxint8": "an integer has no scale of its own (VAL-1): q8f with a ue8m0 scale lower by 2^-6 is the same numbers",
}

FACTS = {row["name"]: row for row in [*FORMATS["elements"], *FORMATS["integers"]]}
TABLES = {row["name"]: row for row in FORMATS["codebooks"]}


def fraction(fact: dict[str, Any]) -> Fraction:
    """An exact number of the file, `odd*2^n` or `2^n`."""
    match = re.fullmatch(r"(?:(\d+)\*)?2\^(-?\d+)", fact["exact"])
    assert match is not None
    number = Fraction(int(match[1] or 1)) * Fraction(2) ** int(match[2])
    assert number == Fraction(fact["float"])
    return number


def test_every_format_is_ours_or_not() -> None:
    assert set(FACTS) == {*ELEMENTS, *SCALE_TYPES, *INTEGERS, *NOT_OURS}
    assert {*ELEMENTS.values(), *(name for pair in INTEGERS.values() for name in pair)} == set(qs.VALUES)
    assert set(SCALE_TYPES.values()) == set(qs.SCALES) - {"f32", "f16", "bf16"}


@pytest.mark.parametrize("name", NOT_OURS)
def test_other_formats_are_refused_by_name(name: str) -> None:
    for text in (name, *FACTS[name].get("aliases", ())):
        with pytest.raises(qs.SchemeError, match="is not a value format") as error:
            qs.Scheme(text)
        assert refusal(error)[0] == "SCH-2"
        with pytest.raises(qs.SchemeError, match="is not a scale type"):
            qs.Scheme("q8s", tensor=text)


def numbers(bits: list[int], largest: int) -> dict[str, list[int]]:
    """Codes by what they stand for: finite, zero, infinity, NaN, of the codes up to and with `largest`."""
    found: dict[str, list[int]] = {"finite": [], "zero": [], "inf": [], "nan": []}
    for code, pattern in enumerate(bits[: largest + 1]):
        magnitude = pattern & 0x7FFFFFFF
        kind = "finite" if magnitude < 0x7F800000 else "inf" if magnitude == 0x7F800000 else "nan"
        found[kind].append(code)
        if magnitude == 0:
            found["zero"].append(code)
    return found


def check_facts(row: dict[str, Any], bits: list[int], bias: int, mantissa_bits: int) -> None:
    """What every format of the file states, against the decoded number of every code."""
    kinds = numbers(bits, 2 ** row["bits"] - 1)
    positive = {code: Fraction(float(f32_of_bits([bits[code]])[0])) for code in kinds["finite"] if bits[code] < 2**31}
    assert (row["bias"], row["man_bits"]) == (bias, mantissa_bits)
    assert len(kinds["finite"]) == row["n_finite_codes"]
    assert kinds["inf"] == hexes(row["inf_codes"])
    assert kinds["nan"] == hexes(row["nan_codes"])
    assert kinds["zero"] == hexes(row["zero_codes"])
    assert positive[int(row["max_code"], 16)] == max(positive.values()) == fraction(row["max"])
    smallest = row["min_subnormal"] or row["min_normal"]
    assert min(number for number in positive.values() if number) == fraction(smallest)
    assert positive[1 << mantissa_bits if row["has_zero"] else 0] == fraction(row["min_normal"])


@pytest.mark.parametrize("name", ELEMENTS)
def test_element_format(verbs: Verbs, name: str) -> None:
    row, ours = FACTS[name], qs.VALUES[ELEMENTS[name]]
    assert (row["bits"], row["exp_bits"]) == (ours.bits, ours.exponent_bits)
    bits = bits_of(verbs.decode(np.arange(2**ours.bits, dtype=np.uint8), ours))
    check_facts(row, bits, ours.bias, ours.mantissa_bits)
    midpoint = single([fraction(row["rne_overflow"]["midpoint"])])
    beyond = np.concatenate([midpoint, np.nextafter(midpoint, np.float32(np.inf)), single([np.inf])])
    assert verbs.encode(beyond, ours).tolist() == [int(row["max_code"], 16)] * 3, (
        "saturates on both sides of the midpoint"
    )
    assert ours.half_range == fraction(row["max"])


@pytest.mark.parametrize("name", SCALE_TYPES)
def test_scale_format(verbs: Verbs, name: str) -> None:
    row, ours = FACTS[name], qs.SCALES[SCALE_TYPES[name]]
    bits = bits_of(verbs.decode_scale(np.arange(2 ** row["bits"], dtype=np.uint8), ours))
    check_facts(row, bits, ours.bias, ours.mantissa_bits)
    assert ours.largest == fraction(row["max"])
    assert [ours.nan_code] == hexes([row["canonical_nan"]])


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_format(verbs: Verbs, name: str) -> None:
    row = FACTS[name]
    for value, key in zip(INTEGERS[name], ("range_full", "range_symmetric"), strict=True):
        ours = qs.VALUES[value]
        low, high = row[key]
        assert (ours.bits, ours.lowest, ours.highest) == (row["bits"], low, high)
        assert verbs.decode(verbs.encode(single([-1e9, low, high, 1e9]), value), value).tolist() == [
            low,
            low,
            high,
            high,
        ]
        assert ours.half_range == Fraction(high - low, 2)
        full = "full" if key == "range_full" else "symmetric"
        assert ours.burn == row.get("burn", {}).get(full, ours.burn)


def table_of(row: dict[str, Any]) -> list[float]:
    """The sixteen or four entries of a codebook; a missing one repeats the first."""
    values = row.get("values") or [sign * magnitude for sign in (1, -1) for magnitude in row["magnitudes_by_low3"]]
    return [values[0] if entry is None else entry for entry in values]


@pytest.mark.parametrize("name", TABLES)
def test_codebook(verbs: Verbs, name: str) -> None:
    row = TABLES[name]
    entries = np.array(table_of(row), np.float64).astype(np.float32)
    scheme = qs.Scheme({4: "q4f", 2: "q2f"}[row["bits"]], "packed_native_0", mode="lookup", table=entries)
    codes = np.arange(len(entries), dtype=np.uint8)
    assert bits_of(verbs.decode(codes, scheme.value, table=entries)) == bits_of(entries)
    lowest = [entries.tolist().index(entry) for entry in entries.tolist()]
    assert verbs.encode(entries, scheme.value, table=entries).tolist() == lowest, "equal entries: the lowest index"
    q = verbs.quantize(entries, scheme, tensor_scale=np.float32(1))
    assert bits_of(verbs.dequantize(verbs.split(verbs.to_bytes(q), scheme, entries.shape))) == bits_of(entries[lowest])
    assert (qs.Table.of(entries) == qs.NF4) == (name == "nf4")
    assert (qs.Table.of(entries).name in qs.TABLES) == (name == "nf4")


RNE = [(table["format"], row) for table in FORMATS["golden"]["element_rne"] for row in table["rows"]]


@pytest.mark.parametrize(("value", "row"), RNE, ids=[f"{value}-{row['f32']}" for value, row in RNE])
def test_golden_encode(verbs: Verbs, value: str, row: dict[str, str]) -> None:
    """The saturating column: overflow saturates (VAL-8). A NaN is ours to choose: VAL-9 and VAL-10."""
    x = f32_of_bits([row["f32"]])
    nan = {"e4m3": 0x7F, "e5m2": 0x7E, "e3m2": 0x00, "e2m3": 0x00, "e2m1": 0x00}
    expected = nan[value] if row["sat"] == "NaN" else int(row["sat"], 16)
    assert verbs.encode(x, value).tolist() == [expected]
    assert verbs.quantize(x, f"{value}.native.t-f32", tensor_scale=np.float32(1)).codes.tolist() == [expected]


BY_MODE = FORMATS["golden"]["e8m0_scale_by_mode"]["rows"]


@pytest.mark.parametrize("row", BY_MODE, ids=[row["amax_f32_bits"] for row in BY_MODE])
@pytest.mark.parametrize("value", ELEMENTS)
def test_golden_ue8m0_scale(verbs: Verbs, value: str, row: dict[str, Any]) -> None:
    """Rounding up (SCL-8) is the RCEIL column. Not finite: amax skips it (SCL-5), where the file marks the block NaN."""
    q = verbs.quantize(f32_of_bits([row["amax_f32_bits"]]), f"{value}.native.b1-ue8m0")
    assert q.scale_codes is not None
    finite = int(row["amax_f32_bits"], 16) < 0x7F800000
    assert (row[value]["RCEIL"] == 0xFF) == (not finite)
    assert q.scale_codes.tolist() == [row[value]["RCEIL"] if finite else 0x00]


MATRIX = FORMATS["e8m0_conversion_matrix"]


def test_ue8m0_conversions_to_up_are_those_of_a_saturating_round_up(verbs: Verbs) -> None:
    """The row of the one published converter that rounds up and saturates; a set sign bit is refused here (SCL-17)."""
    texts = dict(zip(MATRIX["inputs"], MATRIX["rows"]["NVIDIA rp sat"], strict=True))
    special = {"2^-127": "0x1p-127", "1.25*2^-127": "0x1.4p-127", "2^-128": "0x1p-128", "Inf": "inf", "NaN": "nan"}
    for text, code in texts.items():
        x = single([float.fromhex(special[text]) if text in special else float(text)])
        if text == "-1":
            for rounding in ("up", "nearest"):
                with pytest.raises(qs.ScaleError, match="ue8m0 has no sign"):
                    verbs.encode_scale(x, "ue8m0", rounding)
        else:
            assert verbs.encode_scale(x, "ue8m0").tolist() == [int(code, 16)]


def test_published_sizes_a_block() -> None:
    """Bits an element of the named block formats, from the bytes of a large tensor."""
    names = {"mxfp8_e4m3": "e4m3", "mxfp8_e5m2": "e5m2", "mxfp6_e3m2": "e3m2", "mxfp6_e2m3": "e2m3", "mxfp4": "e2m1"}
    for row in FORMATS["blocks"]:
        if row["name"] in names:
            size = qs.byte_count(f"{names[row['name']]}.packed_native_0.b{row['k']}-ue8m0", (64 * row["k"],))
        elif row["name"] == "nvfp4":
            size = qs.byte_count("e2m1.packed_native_0.b16-ue4m3.t-f32", (64 * row["k"],)) - 4
        else:
            continue  # ggml's blocks interleave scales and codes, and mxint8 is not a format of ours
        assert Fraction(8 * size, 64 * row["k"]) == Fraction(row["bits_per_element"])
