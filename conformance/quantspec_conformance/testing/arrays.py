"""Arrays of any library as patterns, without importing the library and without a float in between."""

import sys
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["host_array", "patterns_of"]

#: torch's names of the dtypes that numpy has only through ml_dtypes; float4 of torch holds two numbers a byte: its bytes stay.
_TORCH = {
    "bfloat16": "bfloat16", "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
    "float8_e4m3fnuz": "float8_e4m3fnuz", "float8_e5m2fnuz": "float8_e5m2fnuz", "float8_e8m0fnu": "float8_e8m0fnu",
}  # fmt: skip


def host_array(given: Any, argument: str) -> npt.NDArray[Any]:
    """The array of a numpy array or scalar, a torch or JAX tensor, or anything with __array__ or DLPack. TypeError otherwise."""
    if isinstance(given, np.ndarray | np.generic):
        return _numbers(np.asarray(given), argument)
    if type(given).__module__.split(".")[0] == "torch" and "torch" in sys.modules:
        return _numbers(_from_torch(given, sys.modules["torch"]), argument)
    reasons = []
    for read in (_from_array, _from_dlpack):
        try:
            found = read(given)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            reasons.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
            continue
        if found is not None:
            return _numbers(found, argument)
    why = ": a list or a number has no dtype, an array has"
    why = f" ({'; '.join(reasons)}): copy it to the host" if reasons else why
    raise TypeError(f"{argument} is {type(given).__name__}, from which no array comes{why}")


def _from_array(given: Any) -> npt.NDArray[Any] | None:
    return np.asarray(given) if hasattr(given, "__array__") else None


def _from_dlpack(given: Any) -> npt.NDArray[Any] | None:
    return np.from_dlpack(given) if hasattr(given, "__dlpack__") else None


def _from_torch(given: Any, torch: Any) -> npt.NDArray[Any]:
    """A torch tensor's bytes under the dtype of the same name: torch itself converts neither bf16 nor float8."""
    name = str(given.dtype).removeprefix("torch.")
    tensor = given.detach().cpu().contiguous()
    if name in _TORCH:
        unsigned = {1: torch.uint8, 2: torch.int16}[tensor.element_size()]
        return np.asarray(tensor.view(unsigned).numpy().view(np.dtype(getattr(ml_dtypes, _TORCH[name]))))
    if name.startswith("float4"):
        return np.asarray(tensor.view(torch.uint8).numpy())
    return np.asarray(tensor.numpy())


def _numbers(array: npt.NDArray[Any], argument: str) -> npt.NDArray[Any]:
    dtype = array.dtype
    if dtype.kind in "OcMmSU" or dtype.names is not None or dtype.itemsize not in (1, 2, 4, 8):
        raise TypeError(f"{argument} has dtype {array.dtype}; allowed: numbers of 1, 2, 4 or 8 bytes")
    return array


def patterns_of(array: npt.NDArray[Any]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """The patterns of an array, in the host's byte order, in its shape."""
    size = array.dtype.itemsize
    order = array.dtype.byteorder if array.dtype.byteorder in "<>" else "="
    raw = np.ascontiguousarray(array).reshape(-1).view(np.dtype(f"u{size}").newbyteorder(order))
    return raw.astype(f"u{size}").reshape(array.shape)
