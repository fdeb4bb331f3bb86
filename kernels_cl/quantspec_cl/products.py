"""Products on a device: numbers or codes times a quantized matrix, read where it lies. Rules PRD-1 to PRD-17."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from quantspec import CANONICAL_CODEC, CANONICAL_CONTAINER, Packed, Quantized, ScaleType, SchemeError, ShapeError
from quantspec.blocks import check_array_shape
from quantspec.recipes import require_canonical

from . import products_fast
from .codecs import reads_plainly
from .dequantize import output_dtype
from .formats import FLOATS, INDEX
from .geometry import WHOLE, Shape, grid_walk
from .host import DeviceArray, Machine
from .inputs import ArrayInput, Numbers, take_numbers
from .matrix import Matrix
from .packing import require_readable, unpack, uploaded_words
from .paths import Path, generic
from .program import Program, register
from .quantize import effective_scales, grid_of, uploaded
from .recipes import require_plain
from .scales import decoded_scale
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["MatrixInput", "product", "product_codes"]

PROGRAM = Program(("prelude.cl", "steps.cl", "blocks.cl", "matrix.cl", "fma.cl", "products.cl"))

MatrixInput = Quantized | Packed | DeviceQuantized | DevicePacked


@register
def _programs() -> Iterator[Program]:
    yield PROGRAM


def product(machine: Machine, x: ArrayInput, w: MatrixInput, dtype: npt.DTypeLike = "f32") -> DeviceArray:
    """x [..., K] times quantized w [K, N], words or codes. As `quantspec.product`. Rules PRD-1 to PRD-9."""
    matrix = _matrix(machine, w)
    out = output_dtype(dtype)
    numbers = take_numbers(machine, x, rule="PRD-2")
    lead = _lead(numbers.array.shape, matrix.shape, "PRD-2")
    require_plain(matrix)
    rows = math.prod(lead)
    planned = products_fast.plan(machine, matrix, rows, out)
    if isinstance(planned, Path):
        y = _product(machine, numbers, matrix, rows, out).written_by(planned)
    else:
        y = products_fast.run(machine, planned, numbers, matrix, rows)
    return y.reshaped((*lead, matrix.shape[1]))


def _product(machine: Machine, x: Numbers, w: Matrix, rows: int, out: np.dtype[np.generic]) -> DeviceArray:
    """By the kernel that takes every scheme."""
    scheme, (size, columns) = w.scheme, w.shape
    effective = effective_scales(machine, scheme, w.scale_codes, w.tensor_scale_code)
    y = machine.empty((rows, columns), out)
    head = (machine.formats, x.row, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments[:2])
    arrays = (x.array, w.words, machine.constant(w.lines), effective)
    grid = machine.constant(grid_of(scheme, w.shape, effective))
    numbers = (*head, INDEX[FLOATS[out].name], *arrays, grid, y, size, columns, y.size)
    machine.run(PROGRAM, "product", machine.items(y.size), *numbers, local=(machine.local_size,))
    return y


def _matrix(machine: Machine, w: MatrixInput) -> Matrix:
    """w on the device, its words such that they can be read. Rules QNT-12, PAK-7, VAL-5."""
    if isinstance(w, Packed | DevicePacked):
        packed = uploaded_words(machine, w, argument="w")
        if packed.container != CANONICAL_CONTAINER:
            return Matrix.of_codes(unpack(machine, packed))
        require_readable(machine, packed)
        return Matrix.of_words(packed)
    return Matrix.of_codes(uploaded(machine, w, argument="w"))


def _lead(x: Shape, w: Shape, rule: str) -> Shape:
    """The leading axes of x, where x is [..., K] and w is [K, N]; refused otherwise. Rules PRD-2, PRD-10."""
    if len(w) != 2:
        raise ShapeError(rule, f"w has shape {w}; allowed: rank 2, [K, N] (permute it first where it is [N, K])")
    if not x or x[-1] != w[0]:
        raise ShapeError(rule, f"x has shape {x}; allowed: [..., {w[0]}], its last size the first of w {w}")
    check_array_shape((*x[:-1], w[1]))
    return x[:-1]


def product_codes(
    machine: Machine, x: Quantized | DeviceQuantized, w: MatrixInput, dtype: npt.DTypeLike = "f32"
) -> DeviceArray:
    """Quantized x [..., K] times quantized w [K, N], from codes. As `quantspec.product_codes`. Rules PRD-8, PRD-10 to PRD-17."""
    left = uploaded(machine, x, argument="x")
    _require_symmetric(left, "x")
    matrix = _matrix(machine, w)
    _require_symmetric(matrix, "w")
    out = output_dtype(dtype)
    lead = _lead(left.shape, matrix.shape, "PRD-10")
    size, columns = matrix.shape
    y = machine.empty((math.prod(lead), columns), out)
    first, second = Side.of(machine, left, -1), Side.of(machine, matrix, 0)
    head = (machine.formats, INDEX[left.scheme.value.name], INDEX[matrix.scheme.value.name], INDEX[FLOATS[out].name])
    lines = machine.constant(matrix.lines)
    sides = (left.codes, *first.arguments, matrix.words, lines, *second.arguments, first.tensor, second.tensor)
    numbers = (*head, *sides, y, size, columns, y.size)
    machine.run(PROGRAM, "product_codes", machine.items(y.size), *numbers, local=(machine.local_size,))
    return y.written_by(generic("products of codes have one kernel")).reshaped((*lead, columns))


def _require_symmetric(tensor: DeviceQuantized | Matrix, argument: str) -> None:
    """Refuse recipes that have no kernels, and codes that are indices. Rule PRD-11."""
    zeros_kept = reads_plainly(tensor.codec)
    require_canonical(recipe=tensor.recipe, codec=CANONICAL_CODEC if zeros_kept else tensor.codec)
    if tensor.scheme.is_lookup:
        raise SchemeError(
            "PRD-11",
            f"{argument} is {tensor.scheme.text}; allowed: symmetric schemes (product takes lookup schemes too)",
        )


@dataclass(frozen=True, slots=True)
class Side:
    """The scales of one factor of a product of codes; an absent level is a scale of 1. Rules PRD-12, PRD-15, PRD-17."""

    machine: Machine
    scales: DeviceArray  #: of blocks
    grid: Shape
    extent: int  #: of a block along K
    tensor: DeviceArray

    @classmethod
    def of(cls, machine: Machine, tensor: DeviceQuantized | Matrix, axis: int) -> "Side":
        """The scales of a tensor whose `axis` is K."""
        scheme, shape = tensor.scheme, tensor.shape
        block = _decoded(machine, tensor.scale_codes, None if scheme.block is None else scheme.block.scale)
        single = _decoded(machine, tensor.tensor_scale_code, scheme.tensor)
        if scheme.block is None or 0 in shape:
            return cls(machine, block, WHOLE, max(shape[axis], 1), single)
        extents = scheme.extents(len(shape))
        return cls(machine, block, grid_walk(shape, extents), extents[axis], single)

    @property
    def arguments(self) -> tuple[DeviceArray, cl.Buffer, int]:
        """The kernel's: scales, their grid, the extent."""
        return self.scales, self.machine.constant(self.grid), self.extent


def _decoded(machine: Machine, codes: DeviceArray | None, scale: ScaleType | None) -> DeviceArray:
    """Numbers of the scale codes of a level, or 1."""
    if codes is None or scale is None:
        return machine.upload(np.ones((), np.float32))
    return decoded_scale(machine, codes, scale)
