"""Inputs: host arrays, Python numbers, DLPack tensors, pyopencl arrays and this session's own, as arrays of the session."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl.array as cl_array

from quantspec import DtypeError, ScaleType, ValueFormat
from quantspec.rounding import take_literals

from . import dlpack
from .formats import FLOATS, INDEX
from .geometry import walk_of
from .host import DeviceArray, Machine
from .memory import shared

__all__ = ["ArrayInput", "Numbers", "as_array", "take_code_bytes", "take_numbers", "take_scale_codes", "typed_numbers"]

ArrayInput = npt.ArrayLike | DeviceArray | cl_array.Array | dlpack.Producer


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers on the device, in the type that they came in: kernels widen them as they read. Rule QNT-1."""

    array: DeviceArray
    row: int  #: of their type, among the formats


def as_array(machine: Machine, given: ArrayInput) -> DeviceArray | npt.NDArray[Any]:
    """A device array of this session, or a host array not yet moved: its dtype is still to be checked."""
    if isinstance(given, DeviceArray):
        return machine.adopt(given)
    if isinstance(given, cl_array.Array):
        return _adopted(machine, given)
    if dlpack.is_producer(given):
        return dlpack.imported(given)
    host: Any = given
    return np.asarray(host)


def _adopted(machine: Machine, given: cl_array.Array) -> DeviceArray | npt.NDArray[Any]:
    """A pyopencl array, used in place where it is C-ordered and aligned, else closed up on the device: one copy."""
    dtype: np.dtype[Any] = np.dtype(given.dtype)
    if dtype.itemsize not in (1, 2, 4) or given.size == 0:
        return np.empty(given.shape, dtype)  # no element to move, or none that a verb would take
    found = shared(machine, given)
    if isinstance(found, DeviceArray):
        return found
    closed = machine.empty(given.shape, dtype)
    strides = [stride // dtype.itemsize for stride in given.strides]
    machine.launch(
        "gather",
        closed.size,
        *(found, given.offset // dtype.itemsize, dtype.itemsize),
        *(machine.constant(walk_of(given.shape, strides)), closed, closed.size),
    )
    return closed


def _moved(machine: Machine, array: DeviceArray | npt.NDArray[Any]) -> DeviceArray:
    return array if isinstance(array, DeviceArray) else machine.upload(array)


def take_numbers(machine: Machine, x: ArrayInput, *, argument: str = "x", rule: str = "QNT-1") -> Numbers:
    """f32, f16 or bf16 numbers on the device; `rule` is the one that a refusal cites. Rules QNT-1, SCL-15, SCL-19."""
    array, row = typed_numbers(machine, x, argument=argument, rule=rule)
    return Numbers(_moved(machine, array), row)


def typed_numbers(
    machine: Machine, x: ArrayInput, *, argument: str = "x", rule: str = "QNT-1"
) -> tuple[DeviceArray | npt.NDArray[Any], int]:
    """Numbers where they are, and the row of their type among the formats.

    A Python number or list of numbers is taken as binary32 when every one of them is exactly a binary32 number.
    """
    try:
        array = as_array(machine, x)
    except ValueError as error:  # a ragged list
        raise DtypeError(rule, f"{argument} is not an array: {error}") from None
    typed = isinstance(x, np.ndarray | np.generic | cl_array.Array)
    if isinstance(array, np.ndarray) and not typed and array.dtype in (np.float64, np.int64):
        array = take_literals(array, argument=argument, refused_by=rule)
    row = FLOATS.get(array.dtype.newbyteorder("="))
    if row is None:
        raise DtypeError(
            rule,
            f"{argument} has dtype {array.dtype}; allowed: float32, float16, bfloat16 "
            "(convert it first: nothing is rounded silently)",
        )
    return array, INDEX[row.name]


def _bytes_of(
    given: ArrayInput, array: DeviceArray | npt.NDArray[Any], ml_dtype: str | None
) -> DeviceArray | npt.NDArray[Any]:
    """A framework's tensor of 8-bit floats as their codes, where it is of the format that the codes are to be of."""
    if isinstance(array, np.ndarray) and dlpack.is_producer(given) and array.itemsize == 1:
        return array.view(np.uint8) if array.dtype.name == ml_dtype else array
    return array


def take_code_bytes(
    machine: Machine, codes: ArrayInput, value: ValueFormat | None = None, *, argument: str = "codes"
) -> DeviceArray:
    """Code bytes on the device, one an element, not yet checked; a tensor of `value`'s own 8-bit float too. Rule VAL-4."""
    array = _bytes_of(codes, as_array(machine, codes), None if value is None else value.ml_dtype)
    if array.dtype != np.uint8:
        raise DtypeError("VAL-4", f"{argument} has dtype {array.dtype}; allowed: uint8, one code a byte")
    return _moved(machine, array)


def take_scale_codes(machine: Machine, codes: ArrayInput, scale: ScaleType, *, argument: str) -> DeviceArray:
    """Scale codes on the device in the type's code dtype, not yet checked. Rule SCL-21."""
    array = _bytes_of(codes, as_array(machine, codes), scale.ml_dtype)
    if array.dtype.newbyteorder("=") != scale.code_dtype:
        raise DtypeError("SCL-21", f"{argument} has dtype {array.dtype}; codes of {scale.name} are {scale.code_dtype}")
    return _moved(machine, array)
