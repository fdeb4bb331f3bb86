"""Containers: where the bits of codes and scales lie. Rules POL-3, POL-14 to POL-18.

A container says how a code becomes a field, which field of a word it is, in which order words and scales follow, and
whether scales lie among the words. Words and streams are made by `packing` and `layout`, which ask here.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import EncodingError, UnsupportedError
from .rows import Row, rows, undefined
from .tracing import note, rule

if TYPE_CHECKING:
    from .scheme import Scheme

__all__ = [
    "CANONICAL_CONTAINER",
    "CONTAINERS",
    "Container",
    "moved_codes",
    "places",
    "require_covered",
    "swizzle",
    "swizzled_size",
    "unswizzle",
]

FIELD_ORDERS = ("low", "high", "split-half", "permuted")
BIASES = ("none", "half")
WORD_ORDERS = ("swapped", "in-place", "dense")
SCALE_LAYOUTS = ("row-major", "128x4")
STREAMS = ("regions", "scale-first")
READS = ("refuse", "ignore")
TILE_ROWS, TILE_COLUMNS = 128, 4
Words = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Container:
    """Where the bits of codes and scales lie. Rules POL-3, POL-14, POL-15, POL-16, POL-17."""

    name: str
    field_order: str = "low"  #: which bits of a word the first code takes
    bias: str = "none"  #: half: a field holds the code plus half the range
    word_order: str = "swapped"  #: axes of the words; dense: fields run on across the words of a line
    scale_layout: str = "row-major"  #: order of the block scales in a stream
    stream: str = "regions"  #: scale-first: each block's scale stands before its words
    padding: str = "refuse"  #: what a read does with padding that is not zero
    ue4m3_bit7: str = "refuse"  #: what a read does with bit 7 of a ue4m3 scale
    fields: tuple[int, ...] = ()  #: permuted: the place in the word's codes of each field, lowest first

    @classmethod
    def of(cls, container: "Container | str") -> "Container":
        """A container, or the row that a name stands for. Rule POL-3."""
        found = CONTAINERS.get(container) if isinstance(container, str) else container
        if not isinstance(found, Container):
            raise undefined("POL-3", "container", container, CONTAINERS)
        if found != CANONICAL_CONTAINER:
            note("POL-3")
            _check(found)
        return found

    @classmethod
    def read(cls, content: object) -> "Container":
        """The container of a row, members checked. Rule POL-3."""
        row = Row("container", content, "POL-3")
        container = cls(
            row.name,
            row.text("field_order", "low"),
            row.text("bias", "none"),
            row.text("word_order", "swapped"),
            row.text("scale_layout", "row-major"),
            row.text("stream", "regions"),
            row.text("padding", "refuse"),
            row.text("ue4m3_bit7", "refuse"),
            row.numbers("fields"),
        )
        row.done()
        _check(container)
        return container


def _check(container: Container) -> None:
    """Refuse a container whose members have no meaning. Rule POL-3."""
    for member, value, allowed in (
        ("field_order", container.field_order, FIELD_ORDERS),
        ("bias", container.bias, BIASES),
        ("word_order", container.word_order, WORD_ORDERS),
        ("scale_layout", container.scale_layout, SCALE_LAYOUTS),
        ("stream", container.stream, STREAMS),
        ("padding", container.padding, READS),
        ("ue4m3_bit7", container.ue4m3_bit7, READS),
    ):
        if value not in allowed:
            raise UnsupportedError(
                "POL-3",
                f"container={container.name!r} is not defined: {member}={value!r}; allowed: {', '.join(allowed)}",
            )
    if container.stream == "scale-first" and container.scale_layout != "row-major":
        raise UnsupportedError(
            "POL-3",
            f"container={container.name!r}: scale_layout={container.scale_layout!r} with stream='scale-first'; allowed there: "
            "row-major",
        )
    own = container.field_order == "permuted"
    if own != bool(container.fields) or sorted(container.fields) != list(range(len(container.fields))):
        raise UnsupportedError(
            "POL-3",
            f"container={container.name!r}: fields={container.fields}; allowed: each place once, with field_order='permuted'",
        )


#: Every container by name, canonical first.
CONTAINERS = {row.name: row for row in map(Container.read, rows("container"))}
CANONICAL_CONTAINER = CONTAINERS["canonical"]


def require_covered(container: Container, scheme: "Scheme", shape: tuple[int, ...]) -> None:
    """Refuse a scheme or a shape whose tensors a container cannot hold. Rule POL-10."""
    if container == CANONICAL_CONTAINER:
        return
    note("POL-10")
    bits, store = scheme.value.bits, scheme.store
    last = shape[-1] if shape else 1
    extents = scheme.block.extents if scheme.block is not None else ()
    extent = extents[-1] if extents else 1
    line = len(extents) == 1 and last % extent == 0  # blocks along the innermost axis, none partial
    needs: list[tuple[bool, str]] = []
    if container.bias == "half":
        integer = scheme.value.is_integer and not scheme.is_lookup
        needs.append((integer and (store.packed or bits == 8), "integer values in a packed store"))
    if container.field_order != "low" or container.word_order == "dense":
        needs.append((store.packed, "a packed store"))
    if container.field_order == "split-half":
        half = store.codes_per_word(bits) == 2 and store.d == 0 and line and extent % 2 == 0
        needs.append((half, "two codes a word along the innermost axis, and whole blocks of an even extent there"))
    if container.field_order == "permuted":
        needs.append((store.codes_per_word(bits) == len(container.fields), f"{len(container.fields)} codes a word"))
    if container.word_order == "dense":
        needs.append((store.kind == "packed_u32" and container.field_order == "low", "store packed_u32_d"))
    if container.stream == "scale-first":
        inner = store.d == 0 and line and scheme.tensor is None
        inner = inner and extent % store.codes_per_word(bits) == 0
        needs.append((inner, "one level of whole blocks along the innermost axis, of whole words"))
    if container.scale_layout == "128x4":
        one = scheme.block is not None and scheme.block.scale.size == 1 and store.d == 0
        needs.append((one, "block scales of one byte, and d = 0"))
    for met, what in needs:
        if not met:
            raise UnsupportedError(
                "POL-10", f"container={container.name!r} with {scheme.text}, shape {shape}; the container covers {what}"
            )


# ---------------------------------------------------------------- fields


@rule("POL-14")
def moved_codes(codes: npt.NDArray[np.uint8], container: Container, bits: int) -> npt.NDArray[np.uint8]:
    """Codes moved by half the range where the container says so; its own inverse on fields. Rule POL-14."""
    if container.bias == "none":
        return codes
    return np.asarray((codes + np.uint8(1 << (bits - 1))) & np.uint8((1 << bits) - 1), np.uint8)


@rule("POL-14")
def places(container: Container, length: int, per_word: int, extents: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """For each field of a line of whole words, lowest bits of the first word first: the place of its code. Rule POL-14."""
    listed: npt.NDArray[Any] = np.arange(length)
    if container.field_order == "high":
        listed = listed.reshape(-1, per_word)[:, ::-1]
    elif container.field_order == "split-half":
        half = extents[-1] // 2
        listed = listed.reshape(-1, 2, half).transpose(0, 2, 1)
    elif container.field_order == "permuted":
        listed = listed.reshape(-1, per_word)[:, list(container.fields)]
    return np.asarray(listed.reshape(-1), np.intp)


# ---------------------------------------------------------------- scales


@rule("POL-16")
def swizzle(scales: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scales as tiles of 128 rows and 4 columns, padded with zeros; rows are all axes but the last. Rule POL-16."""
    lines, columns = _matrix(scales.shape)
    out = np.zeros(_tiled(lines, columns), scales.dtype)
    out[_offsets(lines, columns)] = scales.reshape(lines, columns)
    return out


def unswizzle(data: npt.NDArray[Any], grid: tuple[int, ...], *, padding: str) -> npt.NDArray[Any]:
    """The inverse of `swizzle`; padding that is not zero is refused or ignored. Rules POL-16, PAK-7."""
    lines, columns = _matrix(grid)
    offsets = _offsets(lines, columns)
    if padding == "refuse":
        rest = data.copy()
        rest[offsets] = 0
        if rest.any():
            place = int(np.argmax(rest != 0))
            raise EncodingError("PAK-7", f"block scales: byte {place} of the tiles holds no scale and is not 0")
    return np.asarray(data[offsets].reshape(grid))


@rule("POL-16")
def swizzled_size(grid: tuple[int, ...]) -> int:
    """Scales that the tiles of a grid have room for. Rule POL-16."""
    return _tiled(*_matrix(grid))


def _matrix(grid: tuple[int, ...]) -> tuple[int, int]:
    return math.prod(grid[:-1]), (grid[-1] if grid else 1)


def _tiled(lines: int, columns: int) -> int:
    return -(-lines // TILE_ROWS) * -(-columns // TILE_COLUMNS) * TILE_ROWS * TILE_COLUMNS


def _offsets(lines: int, columns: int) -> npt.NDArray[np.intp]:
    """Place of each scale of the matrix. Rule POL-16."""
    r, c = np.arange(lines)[:, np.newaxis], np.arange(columns)[np.newaxis, :]
    tile = (r // TILE_ROWS) * -(-columns // TILE_COLUMNS) + c // TILE_COLUMNS
    return np.asarray(tile * 512 + (r % 32) * 16 + (r % TILE_ROWS // 32) * 4 + c % TILE_COLUMNS, np.intp)
