"""DLPack, in and out, without any framework: numpy makes and takes the capsules; types that it lacks are patched into them.

bfloat16 and the 8-bit floats cross as unsigned integers of their size, their DLPack type code exchanged in the capsule.
"""

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pyopencl as cl

from .errors import ForeignArrayError

if TYPE_CHECKING:
    from .arrays import DeviceArray

__all__ = ["CPU", "OPENCL", "Producer", "exported", "imported", "is_producer", "tensor_of"]

CPU, OPENCL = 1, 4
HOSTS = (CPU, 3, 11)  #: device types whose memory the host reads: its own, and what CUDA and ROCm pin
UNSIGNED = 1
VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  #: numpy takes capsules of DLPack 1

#: Type code and bits of the dtypes that numpy does not exchange.
CODES: dict[tuple[int, int], np.dtype[Any]] = {
    (4, 16): np.dtype(ml_dtypes.bfloat16),
    (10, 8): np.dtype(ml_dtypes.float8_e4m3fn),
    (12, 8): np.dtype(ml_dtypes.float8_e5m2),
    (14, 8): np.dtype(ml_dtypes.float8_e8m0fnu),
}
NUMBERS = {dtype: code for code, dtype in CODES.items()}


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        *(("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)),
        *(("ndim", ctypes.c_int32), ("dtype", _Type), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        *(("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p)),
        *(("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor)),
    )


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def tensor_of(capsule: object) -> _Tensor | None:
    """The tensor that a capsule holds, in place; None where it is no capsule of DLPack, or one that was taken."""
    if _is_valid(capsule, b"dltensor"):
        return _Tensor.from_address(_pointer(capsule, b"dltensor"))
    if _is_valid(capsule, b"dltensor_versioned"):
        found = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        tensor: _Tensor = found.tensor
        return tensor if found.major == 1 else None
    return None


class Producer(Protocol):
    """What gives its memory by DLPack: a tensor of any framework."""

    def __dlpack__(self, *_: Any, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class _Held:
    """A capsule as an object that numpy takes."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, **_: object) -> object:
        return self.capsule


def is_producer(given: object) -> bool:
    """True of what DLPack can be asked of and numpy has no better way to: tensors of frameworks."""
    return hasattr(given, "__dlpack__") and not isinstance(given, np.ndarray | np.generic)


def imported(given: Any, *, what: str = "the array") -> npt.NDArray[Any]:
    """A tensor in the host's memory as a numpy array that shares it. Raises ForeignArrayError."""
    device = int(given.__dlpack_device__()[0])
    if device not in HOSTS:
        raise ForeignArrayError(
            f"{what} is on DLPack device type {device}; allowed: the CPU's, 1 (move it there first)"
        )
    try:
        capsule = _capsule(given.__dlpack__)
    except (BufferError, RuntimeError) as error:
        raise ForeignArrayError(f"{what} does not give its memory: {error}") from error
    tensor = tensor_of(capsule)
    if tensor is None:
        raise ForeignArrayError(f"{what} gives a {type(capsule).__name__} that is no DLPack capsule of version 0 or 1")
    kind = (tensor.dtype.code, tensor.dtype.bits)
    dtype = CODES.get(kind) if tensor.dtype.lanes == 1 else None
    if dtype is not None:
        tensor.dtype.code = UNSIGNED
    tensor.device_type = CPU
    held: Any = _Held(capsule)
    try:
        array: npt.NDArray[Any] = np.from_dlpack(held)
    except (BufferError, RuntimeError) as error:
        raise ForeignArrayError(f"{what} has DLPack type code {kind[0]} of {kind[1]} bits: {error}") from error
    return array if dtype is None else array.view(dtype)


def _capsule(producer: Callable[..., object]) -> object:
    if VERSIONED:
        try:
            return producer(max_version=(1, 0))
        except TypeError:
            pass  # a producer from before DLPack 1
    return producer()


def exported(
    array: "DeviceArray",
    stream: object,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A capsule of a device array's memory, mapped, or of a copy. Raises BufferError, as DLPack wants it."""
    own = array.__dlpack_device__()
    target = (own if dl_device is None else (int(dl_device[0]), int(dl_device[1])))[0]
    if stream is not None:
        raise BufferError(f"stream={stream!r}; allowed: None")
    if target != CPU:
        raise BufferError("the array is in a device's memory, which DLPack does not carry; ask for dl_device=(1, 0)")
    shared = own[0] == CPU and not copy and array.size > 0 and array.owner is None
    if copy is False and not shared and array.size > 0:
        raise BufferError("the array is in a device's memory, or borrowed: the host gets a copy or nothing")
    host = _mapped(array) if shared else array.get()
    code = NUMBERS.get(array.dtype)
    plain = host if code is None else host.view(f"u{array.dtype.itemsize}")
    capsule = plain.__dlpack__(max_version=max_version) if VERSIONED and max_version else plain.__dlpack__()
    tensor = tensor_of(capsule)
    if code is not None and tensor is not None:
        tensor.dtype.code = code[0]
    return capsule


def _mapped(array: "DeviceArray") -> npt.NDArray[Any]:
    """The array's memory, mapped until the last view of it is gone; nothing is copied on the runtimes measured."""
    flags: Any = cl.map_flags.READ | cl.map_flags.WRITE
    plain = np.dtype(f"u{array.dtype.itemsize}")
    host, _ = cl.enqueue_map_buffer(array.machine.queue, array.buffer, flags, 0, (array.size,), plain)
    found: npt.NDArray[Any] = host.view(array.dtype).reshape(array.shape)
    return found
