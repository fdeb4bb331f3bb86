"""Memory of the caller's own as a session's arrays, in place: buffers, pyopencl arrays, the host's memory on CPU devices."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pyopencl.array as cl_array

from quantspec.blocks import check_array_shape

from .arrays import DeviceArray, Loan
from .errors import ForeignArrayError
from .formats import float_type
from .host import Machine
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["Output", "aligned_empty", "borrowed", "destination", "shared", "wrapped"]

Output = DeviceArray | cl_array.Array

PAGE = 4096
SIZES = (1, 2, 4)  #: bytes of an element that the kernels read and write


def wrapped(
    machine: Machine, buffer: cl.Buffer, shape: Sequence[int], dtype: npt.DTypeLike, offset: int
) -> DeviceArray:
    """A part of a buffer, from byte `offset`, as an array. Raises ForeignArrayError, ShapeError."""
    if not isinstance(buffer, cl.Buffer):
        raise ForeignArrayError(f"buffer is a {type(buffer).__name__}; allowed: a pyopencl.Buffer")
    if buffer.context != machine.context:
        raise ForeignArrayError("the buffer belongs to another context; allowed: buffers of session.context")
    plain = (float_type(dtype) if isinstance(dtype, str) else None) or np.dtype(dtype)
    if plain.itemsize not in SIZES or not plain.isnative:
        raise ForeignArrayError(f"dtype={plain}; allowed: elements of 1, 2 or 4 bytes, in this host's byte order")
    checked = check_array_shape(tuple(shape))
    size, align = math.prod(checked) * plain.itemsize, machine.queue.device.mem_base_addr_align // 8
    if offset < 0 or offset + size > buffer.size:
        raise ForeignArrayError(
            f"the array ends at byte {offset + size} and starts at {offset}; the buffer has {buffer.size} bytes"
        )
    if offset % align:
        raise ForeignArrayError(f"offset={offset}; allowed without a copy: multiples of {align} bytes on this device")
    return DeviceArray(machine, buffer if offset == 0 else _part(buffer, offset, max(size, 1)), checked, plain)


def _part(buffer: cl.Buffer, offset: int, size: int) -> cl.Buffer:
    """A buffer over a part of another's memory; a part of a part is a part of the whole."""
    whole = buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    if isinstance(whole, cl.Buffer):
        return whole.get_sub_region(buffer.offset + offset, size)
    return buffer.get_sub_region(offset, size)


def shared(machine: Machine, given: cl_array.Array) -> DeviceArray | cl.Buffer:
    """A pyopencl array in place; its buffer where its strides or its place in that do not allow it.

    What writes the array, on its queue or as its events say, is waited for on the device.
    """
    if given.context != machine.context:
        raise ForeignArrayError(
            "the pyopencl array belongs to another context; create it in session.context or pass its .get()"
        )
    if not isinstance(given.base_data, cl.Buffer):
        raise ForeignArrayError("the pyopencl array is not in a buffer; pass its .get()")
    if given.queue is not None:
        machine.follow(given.queue)
    if given.events:
        cl.enqueue_barrier(machine.queue, wait_for=list(given.events))
    align = machine.queue.device.mem_base_addr_align // 8
    if not given.flags.c_contiguous or given.offset % align:
        return given.base_data
    buffer = given.base_data if given.offset == 0 else _part(given.base_data, given.offset, given.nbytes)
    return DeviceArray(machine, buffer, given.shape, np.dtype(given.dtype))


def aligned_empty(shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A numpy array, not initialised, whose memory a CPU device can borrow."""
    plain = np.dtype(dtype)
    size = math.prod(shape) * plain.itemsize
    memory = np.empty(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(plain).reshape(tuple(shape))


def borrowed(machine: Machine, array: npt.NDArray[Any]) -> DeviceArray:
    """A host array's memory as a device array, on a CPU device. Raises ForeignArrayError where that would be a copy."""
    align = machine.queue.device.mem_base_addr_align // 8
    if machine.info.kind != "cpu":
        raise ForeignArrayError(f"{machine.info.name} is no CPU device: it cannot borrow the host's memory; upload it")
    if not array.flags.c_contiguous or array.dtype.itemsize not in SIZES or not array.dtype.isnative:
        raise ForeignArrayError(
            f"the array is {array.dtype}, strides {array.strides}; allowed: C-ordered, elements of 1, 2 or 4 bytes, native"
        )
    if array.ctypes.data % align:
        raise ForeignArrayError(
            f"the array's memory starts {array.ctypes.data % align} bytes past a multiple of {align}; allowed: at one, as "
            "aligned_empty(shape, dtype) and np.memmap give it"
        )
    if array.size == 0:
        return machine.empty(array.shape, array.dtype)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
    buffer = cl.Buffer(machine.context, flags, hostbuf=array.reshape(-1).view(np.uint8))
    return DeviceArray(machine, buffer, array.shape, array.dtype, owner=Loan(array, machine.queue))


def destination(machine: Machine, out: Output | None, *inputs: object) -> DeviceArray | None:
    """Where a verb is to write: an array of this session or a pyopencl array, no part of an input. ForeignArrayError."""
    if out is None:
        return None
    found: DeviceArray | cl.Buffer
    if isinstance(out, cl_array.Array):
        found = shared(machine, out)
    elif isinstance(out, DeviceArray):
        found = machine.adopt(out)
    else:
        raise ForeignArrayError(
            f"out is a {type(out).__name__}; allowed: a DeviceArray (session.wrap makes one of a buffer), a pyopencl array"
        )
    if not isinstance(found, DeviceArray):
        raise ForeignArrayError("out is a pyopencl array that is not C-ordered or not aligned; allowed: one that is")
    if found.owner is not None:
        raise ForeignArrayError("out is borrowed memory, which kernels only read")
    whole, first, end = _place(found.buffer, found.nbytes)
    for each in inputs:
        for buffer, size in _buffers(each):
            other, start, stop = _place(buffer, size)
            if other == whole and start < end and first < stop:
                raise ForeignArrayError("out overlaps an input; allowed: memory that the verb does not read")
    return found


def _buffers(given: object) -> Iterator[tuple[cl.Buffer, int]]:
    if isinstance(given, DeviceArray):
        yield given.buffer, given.nbytes
    elif isinstance(given, cl_array.Array) and isinstance(given.base_data, cl.Buffer):
        yield given.base_data, given.base_data.size
    elif isinstance(given, DeviceQuantized | DevicePacked):
        main = given.codes if isinstance(given, DeviceQuantized) else given.words
        for array in (main, given.scale_codes, given.tensor_scale_code):
            if array is not None:
                yield array.buffer, array.nbytes


def _place(buffer: cl.Buffer, size: int) -> tuple[int, int, int]:
    """The whole buffer, as a number, and the first byte and the end of an array in it."""
    whole = buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    if isinstance(whole, cl.Buffer):
        return whole.int_ptr, buffer.offset, buffer.offset + size
    return buffer.int_ptr, 0, size
