"""Containers on a device: how codes lie in words and streams, as tables that containers.cl walks. Rules POL-3, POL-14 to POL-17."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from quantspec import Container, Scheme
from quantspec.containers import require_covered

from .geometry import Lines, Shape, blocks_along, lines_of, stored_order, strides_of, walk_of
from .program import Program, register

__all__ = ["CONTAINERS", "Box", "Places", "box_of", "stream_of"]

CONTAINERS = Program(("prelude.cl", "steps.cl", "containers.cl"))
WORD_BITS, WORD_BYTES = 32, 4  #: of a dense container
TILE_ROWS, TILE_COLUMNS = 128, 4


@register
def _programs() -> Iterator[Program]:
    yield CONTAINERS


@dataclass(frozen=True, slots=True)
class Box:
    """The words of a tensor in a container."""

    lines: Lines
    numbers: Shape  #: as containers.cl takes them
    order: Shape  #: from a word in stored order to where it lies
    words_shape: Shape

    @property
    def words(self) -> int:
        """All of them."""
        return math.prod(self.words_shape)


def box_of(container: Container, scheme: Scheme, shape: Shape) -> Box:
    """How the codes of a tensor lie in words; a container that cannot hold it is refused. Rules POL-10, POL-14, POL-15."""
    require_covered(container, scheme, shape)
    lines, bits = lines_of(scheme, shape), scheme.value.bits
    dense = container.word_order == "dense"
    if dense:
        words = -(-lines.length * bits // WORD_BITS)
        lines = replace(
            lines,
            word_bytes=WORD_BYTES,
            word_size=WORD_BYTES,
            width=bits,
            words=words,
            words_shape=(*lines.words_shape[:-1], words),
        )
    fields = list(range(lines.fields))
    group = 1
    if container.field_order == "high":
        fields.reverse()
    elif container.field_order == "permuted":
        fields = list(container.fields)
    elif container.field_order == "split-half" and scheme.block is not None:
        group = scheme.block.extents[-1] // lines.fields
    inverse = [fields.index(place) for place in range(lines.fields)]
    bias = 1 << (bits - 1) if container.bias == "half" else 0
    numbers = (int(dense), lines.width, lines.fields, group, bias, *fields, *inverse)
    order, found = walk_of((math.prod(lines.words_shape),), (1,)), lines.words_shape
    if container.word_order == "in-place" and shape:
        axes = stored_order(scheme, len(shape))
        found = tuple(lines.words_shape[axis] for axis in axes)
        strides = strides_of(found)
        order = walk_of(lines.words_shape, [strides[axis] for axis in axes])
    return Box(lines, numbers, order, found)


@dataclass(frozen=True, slots=True)
class Places:
    """Where the bytes of words, block scales and tensor scale lie. Rules LAY-1, LAY-3, POL-15 to POL-17."""

    words: Shape  #: a walk from a word, as it lies, to its first byte; after `words_start`
    words_start: int
    scales: Shape  #: a walk from a block's scale, in tensor axes, to its first byte; after `scales_start`
    scales_start: int
    tiles: tuple[int, int, int] | None  #: lines, columns and bytes of scales in tiles
    tensor: int
    total: int


def stream_of(container: Container, scheme: Scheme, shape: Shape) -> Places:
    """The byte stream of a tensor in a container."""
    box = box_of(container, scheme, shape)
    size, count = box.lines.word_bytes, box.words
    words, start, end = walk_of((count,), (size,)), 0, count * size
    scales: Shape = walk_of((), ())
    tiles = None
    if scheme.block is not None:
        each, grid = scheme.block.scale.size, blocks_along(shape, scheme)
        blocks = math.prod(grid)
        if container.stream == "scale-first":
            inside = scheme.block.extents[0] // box.lines.fields
            whole = each + inside * size
            words, start = walk_of((blocks, inside), (whole, size)), each
            return Places(words, start, walk_of((blocks,), (whole,)), 0, None, blocks * whole, blocks * whole)
        if container.scale_layout == "128x4":
            columns = grid[-1] if grid else 1
            rows = math.prod(grid[:-1])
            room = -(-rows // TILE_ROWS) * -(-columns // TILE_COLUMNS) * TILE_ROWS * TILE_COLUMNS
            tiles, tensor = (rows, columns, room), end + room
        else:
            order = stored_order(scheme, len(grid))
            axes = tuple(range(len(grid))) if container.word_order == "in-place" else order
            stored = strides_of(tuple(grid[axis] for axis in axes))
            scales = walk_of(grid, [stored[axes.index(axis)] * each for axis in range(len(grid))])
            tensor = end + blocks * each
    else:
        tensor = end
    total = tensor if scheme.tensor is None else tensor + scheme.tensor.size
    return Places(words, start, scales, end, tiles, tensor, total)
