"""Chains on a device: element-wise steps on dequantized numbers, in one launch. Rules OPS-14 to OPS-23."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from quantspec import DtypeError, Quantized, ShapeError, Step, UnsupportedError
from quantspec.chain import MOST_STEPS, ROWS

from .dequantize import output_dtype
from .formats import FLOATS, INDEX, float_type
from .geometry import Shape, strides_of, walk_of
from .host import DeviceArray, Machine
from .inputs import as_array, take_numbers
from .paths import generic
from .program import Program, register
from .quantize import effective_scales, grid_of, uploaded
from .recipes import require_plain
from .tensors import DeviceQuantized

__all__ = ["StepInput", "chain"]

PROGRAM = Program(("prelude.cl", "steps.cl", "blocks.cl", "fma.cl", "chain.cl"))
OPS = (
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "rdiv",
    "min",
    "max",
    "neg",
    "abs",
    "select",
    "cast",
)  #: in the order of chain.cl
ALIGNED = 4  #: bytes: what an operand starts at a multiple of

StepInput = Step | str | Sequence[Any]


@register
def _programs() -> Iterator[Program]:
    yield PROGRAM


def chain(
    machine: Machine, tensor: Quantized | DeviceQuantized, steps: Iterable[StepInput], dtype: npt.DTypeLike = "f32"
) -> DeviceArray:
    """The dequantized numbers after each of the steps in turn. As `quantspec.chain`; operands may be device arrays."""
    quantized = uploaded(machine, tensor)
    out = output_dtype(dtype)
    compiled = Compiled(machine, quantized.shape)
    for place, step in enumerate(_listed(steps)):
        compiled.take(step, f"steps[{place}]")
    require_plain(quantized)
    scheme, codes = quantized.scheme, quantized.codes
    effective = effective_scales(machine, scheme, quantized.scale_codes, quantized.tensor_scale_code)
    y = machine.empty(codes.shape, out)
    value = (INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments[:2], INDEX[FLOATS[out].name])
    grid = machine.constant(grid_of(scheme, codes.shape, effective))
    numbers = (codes, effective, grid, machine.constant(tuple(compiled.steps)), compiled.count, compiled.operands())
    machine.run(
        *(PROGRAM, "chain", machine.items(y.size), machine.formats, *value, *numbers, y, y.size),
        local=(machine.local_size,),
    )
    return y.written_by(generic("chains have one kernel"))


def _listed(steps: Iterable[StepInput]) -> list[Step]:
    """The steps as records; too many are refused. Rule OPS-23."""
    if isinstance(steps, str | Step) or not isinstance(steps, Iterable):
        raise UnsupportedError("OPS-23", f"steps={steps!r}; allowed: a sequence of steps, each (op, operand, mask)")
    listed = [Step.of(step, argument=f"steps[{place}]") for place, step in enumerate(steps)]
    if len(listed) > MOST_STEPS:
        raise UnsupportedError("OPS-23", f"steps has {len(listed)} steps; allowed: at most {MOST_STEPS}")
    return listed


@dataclass(slots=True)
class Compiled:
    """Steps as the kernel reads them, and their operands one after the other. Rules OPS-17 to OPS-23."""

    machine: Machine
    shape: Shape
    count: int = 0
    steps: list[int] = field(default_factory=lambda: [0])  # never empty: OpenCL has no buffer of no bytes
    arrays: list[tuple[int, DeviceArray]] = field(default_factory=list)  #: each with its first byte
    size: int = 0  #: bytes of all operands

    def take(self, step: Step, argument: str) -> None:
        """One step, checked in the reference's order."""
        row = ROWS.get(step.op) if isinstance(step.op, str) else None
        if row is None:
            raise UnsupportedError("OPS-23", f"{argument} is {step.op!r}; allowed: {', '.join(ROWS)}")
        for name, given, takes in (("operand", step.operand, row.operand), ("mask", step.mask, row.mask)):
            if (given is not None) != takes:
                raise UnsupportedError(
                    "OPS-23",
                    f"{argument} ({step.op}) has {'no' if takes else 'a'} {name}; it takes {'one' if takes else 'none'}",
                )
        nothing: Shape = ()
        mask_at, mask = self._mask(step.mask, argument) if row.mask else (0, nothing)
        if step.op == "cast":
            kind, at, operand = _cast_type(step.operand, argument), 0, nothing
        else:
            kind, at, operand = self._operand(step.operand, argument) if row.operand else (0, 0, nothing)
        if self.count == 0:
            self.steps.clear()
        self.steps += [OPS.index(step.op), kind, at, mask_at, len(operand), len(mask), *operand, *mask]
        self.count += 1

    def _operand(self, operand: Any, argument: str) -> tuple[int, int, Shape]:
        """The type of an operand's numbers, its first byte, and its walk. Rule OPS-22."""
        numbers = take_numbers(self.machine, operand, argument=f"{argument}.operand", rule="OPS-22")
        walk = self._walk(numbers.array.shape, f"{argument}.operand")
        return numbers.row, self._kept(numbers.array), walk

    def _mask(self, mask: Any, argument: str) -> tuple[int, Shape]:
        """The first byte of a mask, and its walk. Rules OPS-20, OPS-22."""
        array = as_array(self.machine, mask)
        if array.dtype not in (np.bool_, np.uint8):
            raise DtypeError("OPS-20", f"{argument}.mask has dtype {array.dtype}; allowed: bool, uint8")
        walk = self._walk(array.shape, f"{argument}.mask")
        return self._kept(array if isinstance(array, DeviceArray) else self.machine.upload(array)), walk

    def _walk(self, shape: Shape, argument: str) -> Shape:
        """From an element of the tensor to that of an operand, which broadcasts without enlarging the tensor. Rule OPS-22."""
        missing = len(self.shape) - len(shape)
        fits = missing >= 0 and all(
            size in (1, whole) for size, whole in zip(shape, self.shape[max(missing, 0) :], strict=True)
        )
        if not fits:
            raise ShapeError(
                "OPS-22", f"{argument} has shape {shape}; allowed: what broadcasts to {self.shape}, a number too"
            )
        strides = [0 if size == 1 else stride for size, stride in zip(shape, strides_of(shape), strict=True)]
        return walk_of(self.shape, [0] * missing + strides)

    def _kept(self, array: DeviceArray) -> int:
        """The first byte of an array among the operands."""
        first = self.size
        self.arrays.append((first, array))
        self.size += -(-array.nbytes // ALIGNED) * ALIGNED
        return first

    def operands(self) -> DeviceArray:
        """All operands in one array: a kernel takes a fixed number of them."""
        joined = self.machine.empty((self.size,), np.uint8)
        for first, array in self.arrays:
            if array.nbytes:
                cl.enqueue_copy(
                    self.machine.queue, joined.buffer, array.buffer, byte_count=array.nbytes, dst_offset=first
                )
        return joined


def _cast_type(name: object, argument: str) -> int:
    """The row of the type that a cast rounds to. Rule OPS-21."""
    dtype = float_type(name) if isinstance(name, str) else None
    if dtype is None:
        allowed = ", ".join(row.name for row in FLOATS.values())
        raise DtypeError("OPS-21", f"{argument} casts to {name!r}; allowed: {allowed}")
    return INDEX[FLOATS[dtype].name]
