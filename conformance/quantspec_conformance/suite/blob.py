"""The data file of a suite: a safetensors file of unsigned patterns, written and read with nothing but the format's rules."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..examples import DTYPES, Tensor

__all__ = ["read", "write"]

LARGEST_HEADER = 16 << 20
#: The container's names of the unsigned integers -> bytes.
WIDTHS = {"U8": 1, "U16": 2, "U32": 4, "U64": 8}
_NAMES = {width: name for name, width in WIDTHS.items()}


def write(tensors: Mapping[str, Tensor]) -> bytes:
    """The file of these tensors: widest patterns first, then by key, so that all of them are aligned."""
    width = {key: DTYPES[tensor.dtype][0] // 2 for key, tensor in tensors.items()}
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    for key in sorted(tensors, key=lambda key: (-width[key], key)):
        part = np.array(tensors[key].patterns, f"<u{width[key]}").tobytes()
        header[key] = {
            "dtype": _NAMES[width[key]],
            "shape": list(tensors[key].shape),
            "data_offsets": [offset, offset + len(part)],
        }
        offset += len(part)
        parts.append(part)
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def read(data: bytes) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Container type, shape and bytes of every key. ValueError where the file is not dense or anything else than patterns."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(LARGEST_HEADER, len(data) - 8):
        raise ValueError("its header is longer than the file")
    try:
        header = json.loads(data[8 : 8 + size].decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON ({type(error).__name__})") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    body = memoryview(data)[8 + size :]
    found: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
    end = 0
    for key, (dtype, shape, start, stop) in sorted(_rows(header).items(), key=lambda item: item[1][2]):
        if start != end or stop - start != math.prod(shape) * WIDTHS[dtype] or stop > len(body):
            raise ValueError(f"{key[:80]}: bytes {start} to {stop} are not those of {dtype} {shape}")
        found[key] = (dtype, shape, bytes(body[start:stop]))
        end = stop
    if end != len(body):
        raise ValueError(f"{len(body) - end} bytes after the last tensor")
    return found


def _rows(header: Mapping[str, Any]) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
    """Type, shape and place of each tensor, as the header says them."""
    found = {}
    for key, row in header.items():
        if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"} or row["dtype"] not in WIDTHS:
            raise ValueError(f"{key[:80]}: allowed: dtype ({', '.join(WIDTHS)}), shape, data_offsets")
        numbers = [row["shape"], row["data_offsets"]]
        if not all(isinstance(part, list) and all(type(n) is int and 0 <= n < 2**48 for n in part) for part in numbers):
            raise ValueError(f"{key[:80]}: shape and data_offsets are lists of whole numbers")
        if len(row["data_offsets"]) != 2 or len(row["shape"]) > 64:
            raise ValueError(f"{key[:80]}: two offsets, at most 64 axes")
        found[key] = (row["dtype"], tuple(row["shape"]), row["data_offsets"][0], row["data_offsets"][1])
    return found
