"""A .safetensors file: its header, read strictly and with bounds, and the bytes of the tensors asked for, no others."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ..errors import UsageError
from ..outside import open_regular, printable

__all__ = ["WIDTHS", "Raw", "TensorFile", "file_of", "read_header"]

#: Bytes of an element of the dtypes that words, scales and streams have.
WIDTHS = {"U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4,
          "F32": 4}  # fmt: skip
LARGEST_HEADER = 16 << 20
PREFIX = 8  #: bytes that hold the size of the header
METADATA = "__metadata__"
ALLOWED = "a regular file"


@dataclass(frozen=True, slots=True)
class Raw:
    """A tensor as the file has it: the name of its dtype, its shape, its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies, counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TensorFile:
    """The header of a file."""

    path: Path
    body: int  #: where the bytes of the tensors begin
    places: dict[str, Place]
    metadata: dict[str, str]

    def read(self, name: str, option: str, largest: int) -> Raw:
        """The bytes of one tensor. UsageError for a name that is not there, a dtype that is not taken, and for one that is
        larger than `largest` bytes.
        """
        shown = f"{option} {printable(repr(name))}"
        place = self.places.get(name)
        if place is None:
            raise UsageError(f"{shown} is not in {str(self.path)!r}; it holds {self.names()}")
        width = WIDTHS.get(place.dtype)
        if width is None:
            raise UsageError(f"{shown} has dtype {printable(place.dtype)}; allowed: {', '.join(WIDTHS)}")
        size = place.stop - place.start
        if size != width * math.prod(place.shape):
            raise _damaged(self.path, f"{printable(name)}: {size} bytes for {place.dtype} of shape {place.shape}")
        if size > largest:
            raise UsageError(f"{shown} has {size} bytes; allowed: at most {largest}, by the scheme and the shape")
        with open_regular(self.path, what="", allowed=ALLOWED) as file:
            file.seek(self.body + place.start)
            data = file.read(size)
        if len(data) != size:
            raise _damaged(self.path, f"{printable(name)}: {len(data)} of {size} bytes are there")
        return Raw(place.dtype, place.shape, data)

    def names(self) -> str:
        """What it holds, at most twelve names."""
        listed = sorted(self.places)
        more = f" and {len(listed) - 12} more" if len(listed) > 12 else ""
        return ", ".join(map(printable, listed[:12])) + more or "no tensor"


def _damaged(path: Path, why: str) -> UsageError:
    return UsageError(f"{str(path)!r} is not a whole .safetensors file: {why}")


def read_header(path: Path) -> TensorFile:
    """The header. UsageError where it is not JSON of the form, names a key twice, or its tensors do not fill the file."""
    with open_regular(path, what="", allowed=ALLOWED) as file:
        text, held = _header_text(file, path)
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"its header cannot be read: {error}") from None
    if not isinstance(header, dict):
        raise _damaged(path, "its header is no object")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _damaged(path, f"{METADATA} is no object of texts")
    places = {name: _place(row, name, path) for name, row in header.items()}
    end = 0
    for name, place in sorted(places.items(), key=lambda item: (item[1].start, item[1].stop)):
        if place.start != end or place.stop < end:
            raise _damaged(path, f"{printable(name)}: bytes {place.start} to {place.stop}, expected to begin at {end}")
        end = place.stop
    if end != held:
        raise _damaged(path, f"its tensors take {end} bytes, {held} are there")
    return TensorFile(path, PREFIX + len(text), places, metadata)


def _header_text(file: IO[bytes], path: Path) -> tuple[bytes, int]:
    """The bytes of the header, and how many follow it."""
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    length = int.from_bytes(file.read(PREFIX), "little")
    if size < PREFIX or length > size - PREFIX:
        raise _damaged(path, f"{size} bytes, with a header of {length}")
    if length > LARGEST_HEADER:
        raise UsageError(f"{str(path)!r} has a header of {length} bytes; allowed: at most {LARGEST_HEADER}")
    return file.read(length), size - PREFIX - length


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _place(row: Any, name: str, path: Path) -> Place:
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"} or not isinstance(row["dtype"], str):
        raise _damaged(path, f"{printable(name)}: allowed: dtype, shape, data_offsets")
    numbers = [row["shape"], row["data_offsets"]]
    if not all(isinstance(part, list) and all(type(n) is int and 0 <= n < 2**48 for n in part) for part in numbers):
        raise _damaged(path, f"{printable(name)}: shape and data_offsets are lists of whole numbers")
    if len(row["data_offsets"]) != 2 or len(row["shape"]) > 64:
        raise _damaged(path, f"{printable(name)}: two offsets, at most 64 axes")
    return Place(row["dtype"], tuple(row["shape"]), *row["data_offsets"])


def file_of(tensors: Mapping[str, Raw], metadata: Mapping[str, str]) -> bytes:
    """The bytes of a file of these tensors: widest elements first, so that all are aligned."""
    header: dict[str, Any] = {METADATA: dict(metadata)}
    parts, offset = [], 0
    for name, raw in sorted(tensors.items(), key=lambda item: (-WIDTHS[item[1].dtype], item[0])):
        offsets = [offset, offset + len(raw.data)]
        header[name] = {"dtype": raw.dtype, "shape": list(raw.shape), "data_offsets": offsets}
        parts.append(raw.data)
        offset = offsets[1]
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % PREFIX)
    return len(text).to_bytes(PREFIX, "little") + text + b"".join(parts)
