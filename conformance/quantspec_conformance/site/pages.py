"""Pages about formats: values, scale types, stores, named formats. Each function returns {docname: Markdown}.

A page is a row of a table put through a template; all that depends on bits is asked from the reference when it is made.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

import quantspec
from quantspec import SCALES, STORES, VALUES, ScaleType, Scheme, Store, ValueFormat
from quantspec.stores import StoreKind
from quantspec.words import stored_axes

from . import drawings, scales, values
from .cells import Fact, decimal, table
from .holders import row_of_width
from .named_formats import NAMED_FORMATS, NamedFormat
from .render import render
from .worked import NUMBERS, work

__all__ = ["format_pages", "pages", "scale_pages", "store_pages", "value_pages"]

SMALL, CUBE, CUBE_BITS = (2, 5), (2, 3, 5), 4
SIDE = 4096


def pages() -> dict[str, str]:
    """Every page about formats."""
    return value_pages() | scale_pages() | store_pages() | format_pages()


def _figure(svg: str) -> str:
    """A drawing, as raw HTML."""
    return f'```{{raw}} html\n<div class="qs-figure">{svg}</div>\n```'


def _facts(facts: Iterable[Fact]) -> str:
    return table(["fact", "value", "rules"], facts)


def _index(folder: str, title: str, text: str, header: list[str], rows: Mapping[str, list[str]]) -> dict[str, str]:
    """The index of a folder: a table whose first column links, and the pages for the site's tree."""
    linked = [[f"[{cells[0]}]({page}.md)", *cells[1:]] for page, cells in rows.items()]
    text = render("index", title=title, text=text, table=table(header, linked), pages=list(rows))
    return {f"{folder}/index": text}


def value_pages() -> dict[str, str]:
    """A page a value format, and their index. Rules VAL-1 to VAL-13."""
    found = {f"values/{row.name}": _value_page(row) for row in VALUES.values()}
    rows = {
        row.name: [
            row.name, str(row.bits), "integer" if row.is_integer else f"1|{row.exponent_bits}|{row.mantissa_bits}",
            decimal(row.highest if row.is_integer else row.half_range), decimal(row.half_range),
        ]
        for row in VALUES.values()
    }  # fmt: skip
    text = "What a code stands for (VAL-1, VAL-2), and what a number encodes to (VAL-6)."
    return found | _index("values", "Value formats", text, ["name", "bits", "fields", "largest", "H (SCL-4)"], rows)


def _value_page(row: ValueFormat) -> str:
    return render(
        "value", name=row.name, description=values.description(row), drawing=_figure(drawings.value_layout(row)),
        facts=_facts(values.facts(row)), rules=values.value_rules(row), integer=row.is_integer, codes=values.code_table(row),
    )  # fmt: skip


def scale_pages() -> dict[str, str]:
    """A page a scale type, and their index. Rules SCL-1 to SCL-3, SCL-15 to SCL-18."""
    found = {f"scales/{scale.name}": _scale_page(scale) for scale in SCALES.values()}
    rows = {
        scale.name: [
            scale.name, str(scale.size), "yes" if scale.signed else "no", "yes" if scale.has_zero else "no",
            decimal(scale.largest), decimal(scale.block_top),
        ]
        for scale in SCALES.values()
    }  # fmt: skip
    header = ["name", "bytes", "sign", "zero", "largest finite", "top (SCL-11)"]
    return found | _index(
        "scales", "Scale types", "How the scale of a block or tensor is stored (SCL-1).", header, rows
    )


def _scale_page(scale: ScaleType) -> str:
    return render(
        "scale", name=scale.name, description=scales.description(scale), drawing=_figure(drawings.scale_layout(scale)),
        facts=_facts(scales.facts(scale)), rules=scales.scale_rules(scale), landmarks=scales.landmarks(scale),
        roundings=scales.rounding_table(scale), codes=scales.code_table(scale),
    )  # fmt: skip


def store_pages() -> dict[str, str]:
    """A page a kind of store, and their index. Rules PAK-1 to PAK-8."""
    found = {f"stores/{kind.name}": _store_page(kind) for kind in STORES.values()}
    widths = sorted({bits for kind in STORES.values() for bits in kind.words}, reverse=True)
    rows = {
        kind.name: [f"`{kind.name}`", *(_word(kind, bits) if bits in kind.words else "" for bits in widths)]
        for kind in STORES.values()
    }
    header = ["name", *(f"{bits}-bit codes" for bits in widths)]
    return found | _index("stores", "Stores", "How codes lie in words, and words in bytes (PAK-1).", header, rows)


def _word(kind: StoreKind, bits: int) -> str:
    size, codes, _ = kind.words[bits]
    return f"{codes} in {size} byte{'s' * (size > 1)}"


def _store_page(kind: StoreKind) -> str:
    facts = [
        [str(bits), str(size), str(codes), str(field), str(8 * size - codes * field)]
        for bits, (size, codes, field) in kind.words.items()
    ]
    words = "packs codes into words, along an axis that its number counts from the innermost"
    swap = "The axis counts from the innermost. It changes places with the innermost axis, the others stay (PAK-2)."
    return render(
        "store", name=kind.name,
        description=f"`{kind.name}` {words if kind.packed else 'keeps a byte a code and has no packed axis'}.",
        facts=table(["width of a code", "bytes a word", "codes a word", "bits stored for a code", "unused bits a word"], facts),
        small=f"A {_shape(SMALL)} tensor{', packed along its innermost axis' * kind.packed}.",
        widths=[_width_map(kind, bits) for bits in kind.words],
        axes_title="The packed axis" if kind.packed else "Three axes",
        axes_text=f"A {_shape(CUBE)} tensor of {CUBE_BITS}-bit codes. {swap if kind.packed else 'Row-major, nothing is swapped.'}",
        axes=[_axis_map(kind, d) for d in range(len(CUBE) if kind.packed else 1)],
    )  # fmt: skip


def _width_map(kind: StoreKind, bits: int) -> dict[str, str]:
    scheme = Scheme(row_of_width(bits), Store(kind.name))
    return {
        "title": f"{bits}-bit codes",
        "text": _sizes(scheme, SMALL),
        "drawing": _figure(drawings.store_map(scheme, SMALL)),
    }


def _axis_map(kind: StoreKind, d: int) -> dict[str, str]:
    scheme = Scheme(row_of_width(CUBE_BITS), Store(kind.name, d))
    return {
        "title": f"`{scheme.store.text}`", "text": _sizes(scheme, CUBE), "drawing": _figure(drawings.store_map(scheme, CUBE)),
    }  # fmt: skip


def _sizes(scheme: Scheme, shape: tuple[int, ...]) -> str:
    """Lines and words of a tensor. Rule PAK-3."""
    stored = quantspec.words_shape(scheme, shape)
    lines, words = int(np.prod(stored[:-1])), int(np.prod(stored))
    count = words * scheme.store.word_bytes(scheme.value.bits)
    axes = ", ".join(map(str, stored_axes(scheme, len(shape))))
    return (
        f"Value format {scheme.value.name}: {lines} lines, {words} words, {count} bytes. "
        f"Axes as stored: {axes}; shape of the words: {_shape(stored)}."
    )


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def format_pages() -> dict[str, str]:
    """A page a named format, and their index. Rules POL-1, LAY-1, SCL-4 to SCL-14, QNT-2 to QNT-9."""
    found = {f"formats/{named.slug}": _format_page(named) for named in NAMED_FORMATS.values()}
    rows = {
        named.slug: [named.title, f"`{named.scheme}`", decimal(_bits_an_element(Scheme.of(named.scheme)))]
        for named in NAMED_FORMATS.values()
    }
    text = "Schemes by the names people use. The recipe is always canonical (POL-1), which a name alone does not say."
    return found | _index("formats", "Named formats", text, ["name", "scheme", "bits an element"], rows)


def _format_page(named: NamedFormat) -> str:
    scheme = Scheme.of(named.scheme)
    worked = work(scheme)
    count = 12 if scheme.block is None else scheme.block.extents[-1] + 8
    record = quantspec.quantize(np.resize(np.array(NUMBERS, np.float32), count), scheme)
    size = [
        ["bits an element", decimal(_bits_an_element(scheme))],
        [f"bytes of {SIDE} x {SIDE} elements", f"{quantspec.byte_count(scheme, (SIDE, SIDE)):,}"],
    ]
    return render(
        "format", title=named.title, means=named.means, scheme=scheme.text, members=_members(scheme),
        size=table(["measure", "value"], size),
        count=count, drawing=_figure(drawings.scheme_bytes(record)), has_block=scheme.block is not None,
        scale_rules=worked.scale_rules, element_rules=worked.element_rules,
        worked_scale=worked.scale, worked_elements=worked.elements, others=named.others,
    )  # fmt: skip


def _members(scheme: Scheme) -> str:
    """The parts of a scheme, with links to their pages. Rules SCH-2 to SCH-5."""
    kind = scheme.store.kind
    rows = [
        ["value", f"[{scheme.value.name}](../values/{scheme.value.name}.md)", "SCH-2"],
        ["store", f"[`{scheme.store.text}`](../stores/{kind}.md)", "SCH-3"],
    ]
    if scheme.table is not None:
        rows.append(
            ["table", f"`{scheme.table.name}`: {', '.join(f'{entry:.9g}' for entry in scheme.table.entries)}", "SCH-16"]
        )
    if scheme.block is not None:
        scale = scheme.block.scale.name
        rows.append(
            ["block", f"{_shape(scheme.block.extents)}, scales in [{scale}](../scales/{scale}.md)", "SCH-5, SCH-6"]
        )
    if scheme.tensor is not None:
        rows.append(["tensor scale", f"[{scheme.tensor.name}](../scales/{scheme.tensor.name}.md)", "SCH-5"])
    return table(["part", "is", "rules"], rows)


def _bits_an_element(scheme: Scheme) -> Fraction:
    """Bits of an element in whole words and full blocks, the tensor's scale not counted. Rules PAK-1, LAY-1."""
    size, codes = scheme.store.word_bytes(scheme.value.bits), scheme.store.codes_per_word(scheme.value.bits)
    bits = Fraction(8 * size, codes)
    if scheme.block is not None:
        bits += Fraction(8 * scheme.block.scale.size, int(np.prod(scheme.block.extents)))
    return bits
