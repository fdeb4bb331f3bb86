"""Drawings: the bits of a format, the map of a store, the bytes of a scheme. Rules VAL-1, VAL-2, VAL-4, SCL-1, PAK, LAY-1.

Each function returns one SVG. What a bit holds comes from `holders`, which asks the reference; every box carries it in
`data-…`, so that a map can be read back.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

import quantspec
from quantspec import Quantized, ScaleType, Scheme, ValueFormat

from .holders import Byte, Part, Piece, holders, pieces, store_holders
from .svg import box, document, label, legend

__all__ = ["scale_layout", "scheme_bytes", "store_map", "value_layout"]

Shape = tuple[int, ...]
Cell = tuple[int, str, str]  #: bit number, text, class
LEFT, ROW = 52, 26
STYLES = {"copy": "qs-pad", "zero": "qs-pad", "padding": "qs-pad", "unused": "qs-pad"}
REGIONS: dict[Part, tuple[str, str]] = {
    "element": ("values", "qs-field-0"),
    "block": ("block scales", "qs-scale"),
    "tensor": ("tensor scale", "qs-tensor"),
}


def value_layout(row: ValueFormat) -> str:
    """The field of a value format, and how it sits in the byte of the native store. Rules VAL-1, VAL-2, VAL-4."""
    cells = [(bit, _value_letter(row, bit), _value_style(row, bit)) for bit in reversed(range(row.bits))]
    rows = [("byte" if row.bits == 8 else "field", cells)]
    if row.bits < 8:
        rows.append(("byte", _native_cells(row, Scheme(row, "native"))))
    if row.bits < 8 and row.is_integer:
        table = np.arange(1 << row.bits, dtype=np.float32)
        rows.append(("index", _native_cells(row, Scheme(row, "native", mode="lookup", table=table))))
    entries = [("qs-integer", "two's complement: each bit with its weight")]
    if not row.is_integer:
        entries = _float_legend(1, row.exponent_bits, row.mantissa_bits, row.bias)
    if row.bits < 8:
        entries.append(("qs-pad", "extension to a byte (b: bit of the field)"))
    return _bit_rows(f"Bits of {row.name}", rows, entries)


def scale_layout(scale: ScaleType) -> str:
    """The bits of a scale code, a byte a row, the top one first. Rules SCL-1 to SCL-3."""
    exponent = scale.bits - scale.signed - scale.mantissa_bits
    styles = ["M"] * scale.mantissa_bits + ["E"] * exponent + ["S"] * scale.signed
    styles += ["0"] * (8 * scale.size - len(styles))
    cells = [(bit, styles[bit], _FLOAT_STYLES[styles[bit]]) for bit in reversed(range(8 * scale.size))]
    rows = [(f"byte {scale.size - 1 - i}", cells[8 * i : 8 * i + 8]) for i in range(scale.size)]
    entries = _float_legend(int(scale.signed), exponent, scale.mantissa_bits, scale.bias)
    if scale.bits < 8 * scale.size:
        entries.append(("qs-pad", "not used: must be 0"))
    return _bit_rows(f"Bits of {scale.name}", rows, entries)


_FLOAT_STYLES = {"S": "qs-sign", "E": "qs-exponent", "M": "qs-mantissa", "0": "qs-pad"}


def _value_letter(row: ValueFormat, bit: int) -> str:
    if row.is_integer:
        return f"{-row.sign_bit if bit == row.bits - 1 else 1 << bit}"
    return "S" if bit == row.bits - 1 else "E" if bit >= row.mantissa_bits else "M"


def _value_style(row: ValueFormat, bit: int) -> str:
    return "qs-integer" if row.is_integer else _FLOAT_STYLES[_value_letter(row, bit)]


def _native_cells(row: ValueFormat, scheme: Scheme) -> list[Cell]:
    """The byte of a one-element tensor: bits of the field, copies of its top bit, zeros. Rule VAL-4."""
    found: list[Cell] = []
    for piece in pieces(scheme, store_holders(scheme, (1,))):
        for bit in reversed(range(piece.low, piece.low + piece.bits)):
            place = None if piece.first is None else piece.first.place + (bit - piece.low) * (piece.kind == "code")
            style = STYLES.get(piece.kind) or _value_style(row, place or 0)
            found.append((bit, "0" if place is None else f"b{place}", style))
    return found


def _float_legend(sign: int, exponent: int, mantissa: int, bias: int) -> list[tuple[str, str]]:
    entries = [
        (sign, "qs-sign", "S sign"),
        (exponent, "qs-exponent", f"E exponent, {exponent} bits, bias {bias}"),
        (mantissa, "qs-mantissa", f"M mantissa, {mantissa} bit{'s' * (mantissa > 1)}"),
    ]
    return [(style, text) for bits, style, text in entries if bits]


def _bit_rows(title: str, rows: Sequence[tuple[str, list[Cell]]], entries: list[tuple[str, str]]) -> str:
    """Rows of at most eight numbered cells, their lowest bits in one column."""
    cell, y, marks = 33, 4.0, []
    for name, cells in rows:
        marks.append(label(LEFT - 6, y + 34, name, anchor="end"))
        for column, (bit, text, style) in enumerate(cells, start=8 - len(cells)):
            x = LEFT + column * cell
            marks += [label(x + cell / 2, y + 12, str(bit), size=11), box(x, y + 16, cell, ROW, style)]
            marks.append(label(x + cell / 2, y + 34, text, mono=True))
        y += ROW + 24
    below, y = legend(y + 2, entries)
    return document(title, y + 2, marks + below)


def store_map(scheme: Scheme, shape: Shape) -> str:
    """Which bits of which byte hold which element; lines, words, padding. Rules PAK-1 to PAK-6, VAL-4, LAY-2.

    A row is a byte, its top bit left; bytes of a word that hold only padding share a row.
    """
    held = store_holders(scheme, shape)
    size = scheme.store.word_bytes(scheme.value.bits)
    a_line = quantspec.words_shape(scheme, shape)[-1] * size
    cell, left, y = 29, 86, 20.0
    marks = [label(left + (7 - bit + 0.5) * cell, 13, str(bit), size=11) for bit in range(8)]
    marks.append(label(left - 6, 13, "bit", anchor="end", size=11))
    for start, stop, row in _byte_rows(scheme, held, size):
        if start % a_line == 0:
            y += 20
            marks.append(label(2, y - 6, _line_name(start // a_line, held[start : start + a_line]), anchor="start"))
        if start % size == 0 and size > 1:
            y += 3
            marks.append(label(2, y + 16, f"w{start // size}", anchor="start"))
        name = f"byte {start}" if stop == start + 1 else f"{start} to {stop - 1}"
        marks.append(label(left - 6, y + 16, name, anchor="end", size=11))
        for piece in row:
            x = left + (8 - piece.low - piece.bits) * cell
            marks += _piece_marks(piece, x, y, piece.bits * cell, 22, stop - start, scheme)
        y += 22
    title = f"Bytes of a {'x'.join(map(str, shape))} tensor of {scheme.value.name} in {scheme.store.text}"
    return document(title, y + 4, marks)


def _byte_rows(scheme: Scheme, held: Sequence[Byte], size: int) -> Iterator[tuple[int, int, list[Piece]]]:
    """First byte, end and pieces of each row; bytes of a word that are all padding make one row."""
    of_byte = [list(group) for _, group in groupby(pieces(scheme, held), key=lambda piece: piece.byte)]
    empty = [all(piece.kind in ("padding", "unused") for piece in row) for row in of_byte]
    start = 0
    while start < len(held):
        stop = start + 1
        while empty[start] and stop % size and empty[stop] and len(of_byte[start]) == len(of_byte[stop]) == 1:
            stop += 1
        yield start, stop, of_byte[start]
        start = stop


def _line_name(number: int, held: Sequence[Byte]) -> str:
    """A line and the elements in it, `*` for the index that runs along it."""
    indices = list(dict.fromkeys(bit.index for byte in held for bit in byte if bit is not None))
    runs = ["*" if len(set(along)) > 1 else str(along[0]) for along in zip(*indices, strict=True)]
    return f"line {number}: elements ({', '.join(runs)})"


def _piece_marks(
    piece: Piece, x: float, y: float, width: float, height: float, count: int, scheme: Scheme
) -> list[str]:
    """The box of a piece and the name in it, where it fits."""
    data: dict[str, object] = {"kind": piece.kind, "byte": piece.byte, "low": piece.low, "bits": piece.bits}
    text: str = piece.kind
    says = f"{piece.kind}, always 0"
    style = STYLES.get(piece.kind) or f"qs-field-{piece.field % 8}"
    if count > 1:
        data["bytes"] = count
    if piece.first is not None:
        data |= {"part": piece.first.part, "index": _index(piece.first.index), "from": piece.first.place}
        top = piece.first.place + piece.bits - 1
        name = _index(piece.first.index)
        text, says = name, f"element ({name}), bits {top} to {piece.first.place} of its code"
        if piece.bits < scheme.value.bits:
            text = f"{name} b{top}" if piece.bits == 1 else f"{name} b{top}-{piece.first.place}"
        if piece.kind == "copy":
            text, says = "sign", f"copies of bit {piece.first.place} of element ({name})"
    marks = [box(x, y, width, height, style, says=says, data=data)]
    return [*marks, label(x + width / 2, y + 16, text if 6.8 * len(text) < width else "0")]


def scheme_bytes(record: Quantized) -> str:
    """The bytes of a tensor: values, block scales, tensor scale, and what each byte holds. Rules LAY-1 to LAY-3."""
    scheme, data = record.scheme, quantspec.to_bytes(record)
    held = holders(scheme, record.shape)
    rows = [list(group) for _, group in groupby(pieces(scheme, held), key=lambda piece: piece.byte)]
    marks, y = [], 4.0
    parts: list[Part] = [_part(byte) for byte in held]
    for part in dict.fromkeys(parts):
        region = [number for number, other in enumerate(parts) if other == part]
        marks.append(label(2, y + 12, f"{REGIONS[part][0]}: bytes {region[0]} to {region[-1]}", anchor="start"))
        y += 18
        for first in range(0, len(region), 8):
            marks.append(label(28, y + 34, str(region[first]), anchor="end", size=11))
            for column, byte in enumerate(region[first : first + 8]):
                marks += _byte_marks(scheme, rows[byte], 31 + 36 * column, y, data[byte])
            y += 46
        y += 6
    return document(f"Bytes of {record.shape[-1]} numbers under {scheme.text}", y, marks)


def _part(byte: Byte) -> Part:
    """The region of a byte: that of what it holds; a byte of padding is one of the values."""
    for bit in byte:
        if bit is not None:
            return bit.part
    return "element"


def _byte_marks(scheme: Scheme, row: Sequence[Piece], x: float, y: float, byte: int) -> list[str]:
    """A byte: the elements or the block it is of, its top bits left, and its two digits."""
    marks = []
    for piece in row:
        left, width = x + (8 - piece.low - piece.bits) * 4.375, piece.bits * 4.375
        data: dict[str, object] = {"kind": piece.kind, "byte": piece.byte, "low": piece.low, "bits": piece.bits}
        style, text = STYLES.get(piece.kind) or f"qs-field-{piece.field % 8}", ""
        says: str = piece.kind
        if piece.first is not None:
            part, name = piece.first.part, _index(piece.first.index)
            data |= {"part": part, "index": name, "from": piece.first.place}
            text, says = name, f"element ({name}), bits from {piece.first.place}"
            if part != "element":
                style, says = REGIONS[part][1], f"{part} scale ({name}), bits from {piece.first.place}"
                text = "g" if part == "tensor" else f"b{name}"
        marks.append(box(left, y, width, 22, style, says=says, data=data))
        if text and width >= 15 and 6.4 * len(text) <= width + 1:
            marks.append(label(left + width / 2, y + 15, text, size=11))
    return [*marks, label(x + 17.5, y + 36, f"{byte:02X}", mono=True)]


def _index(index: Shape) -> str:
    return ",".join(map(str, index))
