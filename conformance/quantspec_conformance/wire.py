"""The wire between the harness and a worker: one JSON object a line, arrays as [dtype, shape, base64 of their bytes].

Native byte order, as both ends are on one machine; bits only: a number never becomes text.
"""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

__all__ = ["WireError", "bits", "pack_array", "read", "unpack_array", "write"]

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name, name))
    for name in ("uint8", "uint16", "uint32", "uint64", "int64", "float32", "float16", "bfloat16")
}


class WireError(Exception):
    """A line that is not a message of the protocol."""


def bits(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The patterns of an array as unsigned integers of its width, C order, same shape."""
    unsigned = np.dtype(f"uint{8 * array.dtype.itemsize}")
    return np.array(_native(array), order="C", ndmin=array.ndim).view(unsigned)


def _native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in native byte order: neither a dtype's name on the wire nor a view tells the order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def pack_array(array: npt.NDArray[Any]) -> list[Any]:
    """An array as JSON."""
    return [array.dtype.name, list(array.shape), base64.b64encode(_native(array).tobytes()).decode("ascii")]


def unpack_array(message: Any) -> npt.NDArray[Any]:
    """The array of its JSON form. WireError where it is not one."""
    try:
        name, shape, text = message
        raw = base64.b64decode(text, validate=True)
        dtype = DTYPES[name]
        if len(raw) != math.prod(shape) * dtype.itemsize:
            raise WireError(f"{len(raw)} bytes for an array {shape} of {name}")
        return np.frombuffer(raw, dtype).reshape(shape)
    except (TypeError, ValueError, KeyError, binascii.Error) as error:
        raise WireError(f"not an array: {type(error).__name__}: {error}") from None


def write(message: Mapping[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def read(line: bytes) -> dict[str, Any]:
    """The message of a line. WireError where it is not an object."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise WireError(f"not JSON: {error}: {line[:80]!r}") from None
    if not isinstance(message, dict):
        raise WireError(f"not an object: {line[:80]!r}")
    return message
