"""How the tensors of a case lie: shape, the units that it is made of, the schemes of what goes in and comes out."""

import math
from dataclasses import dataclass

from quantspec import QuantspecError, Scheme

from ..suite.case import Case

__all__ = [
    "MAIN",
    "Frame",
    "Index",
    "block_of",
    "frame_of",
    "index_at",
    "input_scheme",
    "output_scheme",
    "second_scheme",
]

Index = tuple[int, ...]

#: Operation -> the tensor whose entries it works on.
MAIN: dict[str, str] = {
    **dict.fromkeys(("encode", "encode_scale", "quantize"), "x"),
    **dict.fromkeys(("decode", "dequantize", "pack", "to_bytes", "requantize", "chain"), "codes"),
    **dict.fromkeys(("permute", "slice", "take", "select", "flip", "expand", "reshape"), "codes"),
    "decode_scale": "scale_codes",
    "unpack": "words",
    "split": "bytes",
}
#: Operations that put codes into words: their unit holds whole words.
PACKING = ("pack", "unpack", "to_bytes", "split")


@dataclass(frozen=True, slots=True)
class Frame:
    """Shape of the tensor and extents of a unit: what can be cut out of it. One element, one block, or whole words of one."""

    shape: Index
    extents: Index
    scheme: Scheme | None

    @property
    def grid(self) -> Index:
        """Units along each axis."""
        return tuple(-(-size // extent) for size, extent in zip(self.shape, self.extents, strict=True))

    @property
    def block(self) -> Index:
        """Extents of a block; of one element where the scheme has none."""
        rank = len(self.shape)
        return (1,) * rank if self.scheme is None or self.scheme.block is None else self.scheme.extents(rank)

    @property
    def units(self) -> int:
        """Units in all."""
        return math.prod(self.grid)

    def unit_of(self, element: Index) -> Index:
        """The unit of an element."""
        return tuple(i // extent for i, extent in zip(element, self.extents, strict=True))

    def box(self, low: Index, high: Index) -> tuple[slice, ...]:
        """The elements of the units from `low` up to, and without, `high`."""
        return tuple(
            slice(lo * extent, min(hi * extent, size))
            for lo, hi, extent, size in zip(low, high, self.extents, self.shape, strict=True)
        )


def input_scheme(case: Case) -> Scheme | None:
    """The scheme of what goes in; for an operation on values or scales alone one that reads them."""
    table = case.inputs.get("table")
    try:
        tables = [] if table is None else [table.array()]
        if "scheme" in case.words:
            return Scheme.parse(case.words["scheme"], tables=tables)
        if case.op in ("encode", "decode"):
            mode = "lookup" if tables else "symmetric"
            return Scheme(case.words["value"], mode=mode, table=tables[0] if tables else None)
        if case.op in ("encode_scale", "decode_scale"):
            return Scheme("q8s", block=((1,), case.words["type"]))
    except (KeyError, ValueError, QuantspecError):
        pass
    return None


def second_scheme(case: Case) -> Scheme | None:
    """The scheme of the tensor whose parts have names that end in `_2`; that of the first where it is not said."""
    try:
        return Scheme.parse(case.words["scheme_2"])
    except (KeyError, ValueError, QuantspecError):
        return input_scheme(case)


def output_scheme(case: Case) -> Scheme | None:
    """The scheme of what comes out: a layout operation may turn its block, requantize changes it."""
    text = case.told.get("text") or case.words.get("new_scheme", "")
    given = input_scheme(case)
    try:
        tables = [] if given is None or given.table is None else [given.table]
        return Scheme.parse(text, tables=tables) if text else given
    except (ValueError, QuantspecError):
        return None


def frame_of(case: Case) -> Frame | None:
    """The frame of a case; None where nothing can be cut out of it."""
    main = MAIN.get(case.op)
    tensor = case.inputs.get(main or "")
    if main is None or tensor is None:
        return None
    scheme = input_scheme(case) if "scheme" in case.words else None
    shape = tensor.shape
    if main in ("words", "bytes"):
        found = _shape(case.words.get("shape", ""))
        if found is None:
            return None
        shape = found
    extents = [1] * len(shape)
    if scheme is not None:
        try:
            scheme.require_shape(shape)
        except QuantspecError:
            return None
        extents = list(extents if scheme.block is None else scheme.extents(len(shape)))
        if case.op in PACKING and shape:
            axis, count = scheme.packed_axis(len(shape)), scheme.store.codes_per_word(scheme.value.bits)
            extents[axis] = math.lcm(extents[axis], count)
    return Frame(shape, tuple(extents), scheme)


def _shape(text: str) -> Index | None:
    if text == "()":
        return ()
    parts = text.split(",")
    return (
        tuple(map(int, parts)) if all(part.isascii() and part.isdigit() and len(part) < 18 for part in parts) else None
    )


def index_at(flat: int, shape: Index) -> Index:
    """The index of the flat-th element, row-major; of any shape, whether an array can have it or not."""
    found = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        found.append(place)
    return tuple(reversed(found))


def block_of(scheme: Scheme | None, index: Index) -> Index | None:
    """The block of an element, where the scheme has blocks and its rank fits."""
    if scheme is None or scheme.block is None or len(scheme.block.extents) > len(index):
        return None
    return tuple(i // extent for i, extent in zip(index, scheme.extents(len(index)), strict=True))
