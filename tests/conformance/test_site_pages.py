"""Pages about formats: the drawings say where the reference puts every bit, and the tables show every code."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec
from quantspec import SCALES, STORES, VALUES, Quantized, Scheme, Store
from quantspec_conformance.families import draw_codes, draw_scale_codes, legal_codes
from quantspec_conformance.named import NAMED
from quantspec_conformance.site import drawings, pages
from quantspec_conformance.site.cells import decimal
from quantspec_conformance.site.holders import Bit, holders, pieces, row_of_width, store_holders
from quantspec_conformance.site.named_formats import NAMED_FORMATS
from quantspec_conformance.site.values import saturation
from quantspec_conformance.spec import RULE_ID, rules, spec_root

SVG = "{http://www.w3.org/2000/svg}"
CUBE = (2, 3, 5)
WIDTHS = sorted({row.bits for row in VALUES.values()})
STORED = [Store(kind.name, d) for kind in STORES.values() for d in range(3 if kind.packed else 1)]
PAGES = pages.pages()


def parsed(svg: str) -> ET.Element:
    """The drawing as XML; what every drawing must have."""
    root = ET.fromstring(svg)
    title = root.find(f"{SVG}title")
    assert root.tag == f"{SVG}svg" and root.get("role") == "img" and title is not None and title.text
    assert float(root.get("viewBox", "").split()[2]) <= 320
    for text in root.iter(f"{SVG}text"):
        assert int(text.get("font-size", "0")) >= 11
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|rgb\(|https?://(?!www\.w3\.org/2000/svg)|url\(", svg)
    return root


def read_back(svg: str, codes: dict[str, dict[str, int]], size: int) -> bytes:
    """The bytes that a map gives to codes: what its boxes say, and nothing else. `codes` by part and index."""
    data = bytearray(size)
    for rect in parsed(svg).iter(f"{SVG}rect"):
        part = rect.get("data-part")
        if part is None:
            continue
        byte, low, count, first = (int(rect.get(f"data-{name}", "")) for name in ("byte", "low", "bits", "from"))
        code = codes[part][rect.get("data-index", "")]
        field = (code >> first) & ((1 << count) - 1)
        if rect.get("data-kind") == "copy":
            field = ((1 << count) - 1) * (code >> first & 1)
        data[byte] |= field << low
    return bytes(data)


def by_index(codes: npt.NDArray[Any]) -> dict[str, int]:
    return {",".join(map(str, index)): int(codes[index]) for index in np.ndindex(codes.shape)}


def words_of(scheme: Scheme, codes: npt.NDArray[Any]) -> bytes:
    """The bytes of the values of a tensor, from `pack`."""
    packed = quantspec.pack(Quantized(scheme, codes, None, np.zeros((), np.uint32)))
    size = scheme.store.word_bytes(scheme.value.bits)
    return b"".join(int(word).to_bytes(size, "little") for word in packed.words.reshape(-1))


@pytest.mark.parametrize("store", STORED, ids=lambda store: store.text)
@pytest.mark.parametrize("row", VALUES.values(), ids=lambda row: row.name)
@pytest.mark.parametrize("shape", [CUBE, (2, 3, 17)], ids=str)
def test_a_map_read_back_gives_the_words(row: quantspec.ValueFormat, store: Store, shape: tuple[int, ...]) -> None:
    scheme = Scheme(row, store)
    codes = draw_codes(np.random.default_rng(7), scheme, shape)
    expected = words_of(scheme, codes)
    svg = drawings.store_map(scheme, shape)
    assert read_back(svg, {"element": by_index(codes)}, len(expected)) == expected


@pytest.mark.parametrize("store", STORED, ids=lambda store: store.text)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_map_holds_each_bit_of_each_element_once(width: int, store: Store) -> None:
    scheme = Scheme(row_of_width(width), store)
    root = parsed(drawings.store_map(scheme, CUBE))
    seen: Counter[tuple[str, int]] = Counter()
    drawn: Counter[int] = Counter()
    for rect in root.iter(f"{SVG}rect"):
        low, bits, byte = (int(rect.get(f"data-{name}", "")) for name in ("low", "bits", "byte"))
        for extra in range(int(rect.get("data-bytes", "1"))):
            drawn.update(8 * (byte + extra) + low + bit for bit in range(bits))
        if rect.get("data-kind") == "code":
            first = int(rect.get("data-from", ""))
            seen.update((rect.get("data-index", ""), first + bit) for bit in range(bits))
    indices = [",".join(map(str, index)) for index in np.ndindex(CUBE)]
    assert seen == Counter((index, bit) for index in indices for bit in range(width))
    assert drawn == Counter(range(8 * len(words_of(scheme, np.zeros(CUBE, np.uint8)))))


def test_liar_a_map_with_two_fields_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above must see two elements that changed places."""
    scheme = Scheme("q4f", "packed_u32_1")
    codes = np.resize(np.arange(8, dtype=np.uint8), CUBE)
    honest = drawings.store_map(scheme, CUBE)

    def lying(scheme: Scheme, shape: tuple[int, ...]) -> tuple[tuple[Bit | None, ...], ...]:
        names: dict[tuple[int, ...], tuple[int, ...]] = {(0, 0, 0): (0, 1, 0), (0, 1, 0): (0, 0, 0)}
        return tuple(
            tuple(bit and replace(bit, index=names.get(bit.index, bit.index)) for bit in byte)
            for byte in store_holders(scheme, shape)
        )

    monkeypatch.setattr(drawings, "store_holders", lying)
    expected = words_of(scheme, codes)
    assert read_back(honest, {"element": by_index(codes)}, len(expected)) == expected
    assert read_back(drawings.store_map(scheme, CUBE), {"element": by_index(codes)}, len(expected)) != expected


@pytest.mark.parametrize(
    "text",
    [
        *(named.scheme for named in NAMED_FORMATS.values()),
        "q2f.packed_u32_1.b2x3-bf16.t-f16",
        "q4s.packed_native_0.b1-ue4m3",
    ],
)
def test_the_bytes_of_a_scheme_read_back(text: str) -> None:
    scheme, rng = Scheme.of(text), np.random.default_rng(11)
    shape = (3, 4) if scheme.store.d or (scheme.block is not None and len(scheme.block.extents) != 1) else (40,)
    grid = (
        None
        if scheme.block is None
        else tuple(-(-n // e) for n, e in zip(shape, scheme.extents(len(shape)), strict=True))
    )
    block = None if scheme.block is None or grid is None else draw_scale_codes(rng, scheme.block.scale, grid)
    tensor = None if scheme.tensor is None else draw_scale_codes(rng, scheme.tensor, ())
    record = Quantized(scheme, draw_codes(rng, scheme, shape), block, tensor)
    codes = {"element": by_index(record.codes)}
    if record.scale_codes is not None:
        codes["block"] = by_index(record.scale_codes)
    if record.tensor_scale_code is not None:
        codes["tensor"] = {"": int(record.tensor_scale_code)}
    data = quantspec.to_bytes(record)
    svg = drawings.scheme_bytes(record)
    assert read_back(svg, codes, len(data)) == data
    shown = [text.text for text in parsed(svg).iter(f"{SVG}text") if text.get("font-family")]
    assert shown == [f"{byte:02X}" for byte in data]


def test_pieces_name_what_holds_nothing() -> None:
    def kinds(text: str, shape: tuple[int, ...]) -> Counter[str]:
        scheme = Scheme.of(text)
        count: Counter[str] = Counter()
        for piece in pieces(scheme, holders(scheme, shape)[:-4]):  # not the tensor scale
            count[piece.kind] += piece.bits
        return count

    assert kinds("e3m2.packed_u32_0.t-f32", (3,)) == {"code": 18, "padding": 12, "unused": 2}
    assert kinds("q4f.native.t-f32", (2,)) == {"code": 8, "copy": 8}
    assert kinds("e2m1.native.t-f32", (2,)) == {"code": 8, "zero": 8}
    assert kinds("q2f.packed_native_0.t-f32", (5,)) == {"code": 10, "padding": 6}


@pytest.mark.parametrize("row", VALUES.values(), ids=lambda row: row.name)
def test_the_layout_of_a_value_format(row: quantspec.ValueFormat) -> None:
    root = parsed(drawings.value_layout(row))
    styles = [rect.get("class") for rect in root.iter(f"{SVG}rect")][: row.bits]
    expected = ["qs-sign"] + ["qs-exponent"] * row.exponent_bits + ["qs-mantissa"] * row.mantissa_bits
    assert styles == (["qs-integer"] * row.bits if row.is_integer else expected)


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_the_layout_of_a_scale_type(scale: quantspec.ScaleType) -> None:
    root = parsed(drawings.scale_layout(scale))
    styles = Counter(rect.get("class") for rect in list(root.iter(f"{SVG}rect"))[: 8 * scale.size])
    assert styles["qs-mantissa"] == scale.mantissa_bits and styles["qs-sign"] == scale.signed
    assert styles["qs-exponent"] == scale.bits - scale.signed - scale.mantissa_bits
    assert styles["qs-pad"] == 8 * scale.size - scale.bits


def rows_of(page: str) -> dict[str, list[str]]:
    """The rows of a page's last table by their first cell."""
    rows = [
        re.split(r"(?<!\\)\|", line)[1:-1] for line in page.split("## Every code")[1].splitlines() if line[:1] == "|"
    ]
    return {row[0].strip(): [cell.strip() for cell in row] for row in rows[2:]}


@pytest.mark.parametrize("row", VALUES.values(), ids=lambda row: row.name)
def test_every_code_is_on_its_page(row: quantspec.ValueFormat) -> None:
    rows = rows_of(PAGES[f"values/{row.name}"])
    codes = legal_codes(Scheme(row))
    assert list(rows) == [f"`{code:02X}`" for code in codes]
    for code, number in zip(codes, quantspec.decode(codes, row), strict=True):
        cells = rows[f"`{code:02X}`"]
        assert cells[2] == decimal(float(number))
        if not np.isfinite(number):
            continue
        assert float.fromhex(cells[3].strip("`")) == number and np.signbit(
            float.fromhex(cells[3].strip("`"))
        ) == np.signbit(number)
        if cells[5]:
            above = quantspec.decode(np.array([int(cells[5].strip("`"), 16)], np.uint8), row)[0]
            middle = (float(number) + float(above)) / 2
            assert above > number and float(cells[6]) == middle
            assert int(cells[7].strip("`"), 16) == quantspec.encode(np.float32(middle), row)


@pytest.mark.parametrize("scale", SCALES.values(), ids=lambda scale: scale.name)
def test_every_code_of_a_one_byte_scale_is_on_its_page(scale: quantspec.ScaleType) -> None:
    page = PAGES[f"scales/{scale.name}"]
    if scale.size > 1:
        assert "## Every code" not in page
        return
    rows = rows_of(page)
    codes = np.arange(1 << scale.bits).astype(scale.code_dtype)
    for code, number in zip(codes, quantspec.decode_scale(codes, scale), strict=True):
        cells = rows[f"`{code:02X}`"]
        assert cells[2] == decimal(float(number))
        assert not cells[3] or float.fromhex(cells[3].strip("`")) == number
    refused = [row for name, row in rows.items() if "to" in name]
    assert len(rows) == len(codes) + len(refused) and bool(refused) == (scale.bits < 8)


def test_where_numbers_saturate() -> None:
    said = {name: saturation(VALUES[name]) for name in ("e4m3", "e5m2", "e2m1", "e3m2", "e2m3", "q8f", "q4s")}
    assert said == {
        "e4m3": "beyond 464, in magnitude",
        "e5m2": "from 61440, in magnitude",
        "e2m1": "from 7, in magnitude",
        "e3m2": "from 30, in magnitude",
        "e2m3": "from 7.75, in magnitude",
        "q8f": "upwards from 127.5, downwards beyond -128.5",
        "q4s": "upwards from 7.5, downwards from -7.5",
    }


def test_every_row_has_a_page_and_an_entry_in_its_index() -> None:
    for folder, names in (("values", VALUES), ("scales", SCALES), ("stores", STORES), ("formats", NAMED_FORMATS)):
        assert {name for name in PAGES if name.startswith(f"{folder}/")} == {
            f"{folder}/{name}" for name in [*names, "index"]
        }
        assert all(f"]({name}.md)" in PAGES[f"{folder}/index"] for name in names)
    assert all(named.scheme in NAMED for named in NAMED_FORMATS.values())


@pytest.mark.parametrize("name", PAGES)
def test_links_rules_and_drawings_of_a_page(name: str) -> None:
    text = PAGES[name]
    assert [line for line in text.splitlines() if line.startswith("# ")] == [text.splitlines()[0]]
    assert "\u2014" not in text and "\u2013" not in text
    folder = name.split("/")[0]
    for target in re.findall(r"\]\(([^)]+)\)", text):
        where, _, page = target.removesuffix(".md").rpartition("/")
        assert target.endswith(".md")
        if where == "../decisions":
            assert (spec_root() / "decisions" / f"{page}.md").is_file()
        else:
            assert f"{where.removeprefix('../') or folder}/{page}" in PAGES
    assert set(RULE_ID.findall(text)) <= set(rules())
    for svg in re.findall(r"<svg.*?</svg>", text):
        parsed(svg)


def test_sizes_on_a_page() -> None:
    assert "| bits an element | 4.25 |" in PAGES["formats/mxfp4"]
    assert "| bits an element | 6.25 |" in PAGES["formats/mxfp6-e3m2"]
    assert "| bits an element | 4.5 |" in PAGES["formats/nvfp4"]
    count = quantspec.byte_count("e2m1.packed_native_0.b32-ue8m0", (4096, 4096))
    assert count == 4096 * 4096 * 17 // 32 and f"| {count:,} |" in PAGES["formats/mxfp4"]


@pytest.mark.parametrize(("slug", "amax"), [("mxfp4", 7), ("mxfp6-e3m2", 30), ("mxfp6-e2m3", 7.8), ("mxfp8", 500)])
def test_the_numbers_said_in_prose(slug: str, amax: float) -> None:
    """Where the OCP rule clips, the canonical scale is 2."""
    named = NAMED_FORMATS[slug]
    assert f"amax {amax} gets scale 1" in named.others[0] and "scale 2" in named.others[0]
    found = quantspec.quantize(np.array([amax], np.float32), named.scheme)
    assert found.scales_view is not None and float(found.scales_view[0]) == 2


def test_what_prose_says_of_zeros() -> None:
    found = quantspec.quantize(np.zeros(16, np.float32), NAMED_FORMATS["nvfp4"].scheme)
    assert found.scale_codes is not None and found.tensor_scale_view is not None
    assert int(found.scale_codes[0]) == 0 and float(found.tensor_scale_view) == 2**-126
    assert quantspec.dequantize(found).tolist() == [0.0] * 16
