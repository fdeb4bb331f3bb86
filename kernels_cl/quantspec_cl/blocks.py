"""Blocks on a device: the amax of each. Rules BLK-1 to BLK-5, SCL-5; other kinds of amax: POL-8."""

import numpy as np

from quantspec import Scheme

from .geometry import Shape, grid_walk
from .host import DeviceArray
from .inputs import Numbers
from .program import Program

__all__ = ["block_amax", "largest", "tensor_amax", "volume_of"]

PART = 4096  #: elements of a block, or maxima of a fold, that one work-item looks at


def block_amax(numbers: Numbers, scheme: Scheme, program: Program | None = None) -> DeviceArray:
    """amax of each block, flat; of the kind that a program knows, or of finite elements. Rules SCL-5, BLK-1 to BLK-4."""
    shape = numbers.array.shape
    extents = scheme.extents(len(shape))
    return _amax(numbers, grid_walk(shape, extents), *volume_of(shape, extents), program)


def volume_of(shape: Shape, extents: Shape) -> tuple[int, int]:
    """How many blocks there are, and the places of one."""
    blocks, volume = 1, 1
    for size, extent in zip(shape, extents, strict=True):
        blocks *= -(-size // extent)
        volume *= min(size, extent)
    return blocks, volume


def tensor_amax(numbers: Numbers, program: Program | None = None) -> DeviceArray:
    """amax of the tensor, one element; 0 where it has none. Rules SCL-5, BLK-5."""
    size = numbers.array.size
    if size == 0:
        return largest(numbers.array.machine.empty((0,), np.uint32))
    return _amax(numbers, grid_walk((size,), (size,)), 1, size, program)


def _amax(numbers: Numbers, grid: Shape, blocks: int, largest_block: int, program: Program | None) -> DeviceArray:
    """Each block in parts of so many elements, and the parts folded. Maxima of patterns: no order can change them."""
    machine = numbers.array.machine
    parts = max(-(-largest_block // PART), 1)
    found = machine.empty((blocks, parts), np.uint32)
    head = (machine.formats, numbers.row, numbers.array, machine.constant(grid))
    machine.launch("amax", found.size, *head, found, parts, PART, found.size, program=program)
    return _fold_rows(found, program)


def largest(magnitudes: DeviceArray) -> DeviceArray:
    """The largest of all magnitudes, one element; 0 of none."""
    return _fold_rows(magnitudes.reshaped((1, magnitudes.size)))


def _fold_rows(rows: DeviceArray, program: Program | None = None) -> DeviceArray:
    """The largest of each row, flat."""
    machine = rows.machine
    while rows.shape[1] != 1:
        count, length = rows.shape
        pieces = max(-(-length // PART), 1)
        folded = machine.empty((count, pieces), np.uint32)
        machine.launch("fold_max", folded.size, rows, folded, length, PART, pieces, folded.size, program=program)
        rows = folded
    return rows.reshaped((rows.shape[0],))
