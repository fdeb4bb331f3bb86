"""Tensors from files: .npy and .safetensors in f32, f16 or bf16. Nothing is unpickled, nothing is read before its size is known."""

import math
import warnings
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .errors import UsageError
from .outside import kind_of, printable, reason_of

__all__ = ["LIMIT", "is_tensor_file", "npy_header", "read_tensor"]

#: Elements read without --max-elements: a 4096 x 4096 weight.
LIMIT = 2**24

DTYPES = {"F32": np.dtype(np.float32), "F16": np.dtype(np.float16), "BF16": np.dtype(ml_dtypes.bfloat16)}
ALLOWED = "float32, float16, bfloat16"


def is_tensor_file(text: str) -> bool:
    """True where a text names a file by one of the suffixes."""
    return Path(text).suffix in (".npy", ".safetensors")


def read_tensor(file: str, name: str | None = None, *, limit: int = LIMIT) -> tuple[str, npt.NDArray[Any]]:
    """The name, safe to print, and the array, in native byte order, of a tensor in a file; `name` chooses one of several.

    UsageError, with what is wrong and what is allowed, for a file that is missing, damaged, too large, pickled, or holds
    other dtypes.
    """
    path = Path(file)
    if path.suffix not in _READERS:
        raise UsageError(f"{file!r}: allowed are .npy and .safetensors files")
    try:
        kind = kind_of(path.stat().st_mode)
    except FileNotFoundError:
        raise UsageError(f"{file!r}: no such file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file!r} cannot be read: {reason_of(error)}") from None
    if kind is not None:
        raise UsageError(f"{file!r} is {kind}; allowed: a regular file")
    return _READERS[path.suffix](path, name, limit)


def _bounded(path: Path, name: str, shape: tuple[int, ...], limit: int) -> None:
    count = math.prod(shape)
    if count > limit:
        held = f"{printable(name)} has shape {shape}, {count} elements"
        raise UsageError(
            f"{str(path)!r}: {held}; allowed: at most {limit} (quantspec run raises it with --max-elements)"
        )


def _read_npy(path: Path, name: str | None, limit: int) -> tuple[str, npt.NDArray[Any]]:
    if name is not None:
        raise UsageError(f"--name {name!r}: a .npy file holds one tensor, without a name")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's remarks on a header are about a file that is refused anyway
            return printable(path.stem), _npy_array(path, limit)
    except UsageError:
        raise
    except Exception as error:  # numpy hands a header to Python's tokenizer and parser, which raise what they like
        raise UsageError(f"{str(path)!r} cannot be read: {error or type(error).__name__}") from None


def _npy_array(path: Path, limit: int) -> npt.NDArray[Any]:
    with path.open("rb") as file:
        shape, dtype = npy_header(file)
        held = path.stat().st_size - file.tell()
    if dtype.hasobject:
        raise UsageError(f"{str(path)!r} holds pickled Python objects, which are never loaded")
    native = dtype.newbyteorder("=")
    if native not in DTYPES.values():
        hint = " (a bfloat16 array loses its dtype in .npy; save it as .safetensors)" if dtype.kind == "V" else ""
        raise UsageError(f"{str(path)!r} has dtype {dtype}; allowed: {ALLOWED}{hint}")
    _bounded(path, "the array", shape, limit)
    if math.prod(shape) * dtype.itemsize > held:
        raise UsageError(f"{str(path)!r} cannot be read: {held} bytes of data for an array {shape} of {dtype}")
    return np.array(np.load(path, allow_pickle=False), native, order="C")


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of a .npy file; numpy reads the header as a literal of bounded size, never as code."""
    if file.read(1) == b"\x80":
        raise ValueError("it holds pickled Python objects, which are never loaded")
    file.seek(0)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"version {version} of the format; allowed: (1, 0), (2, 0)")
    if any(type(size) is not int or size < 0 for size in shape):  # numpy lets True pass
        raise ValueError(f"shape {shape}")
    return shape, dtype


def _read_safetensors(path: Path, name: str | None, limit: int) -> tuple[str, npt.NDArray[Any]]:
    from safetensors import safe_open

    try:
        with safe_open(path, "numpy") as file:
            names = list(file.keys())
            chosen = _choose(path, names, name)
            part = file.get_slice(chosen)
            shape, dtype = tuple(part.get_shape()), part.get_dtype()
            if dtype not in DTYPES:
                raise UsageError(f"{str(path)!r}: {printable(chosen)} has dtype {dtype}; allowed: {ALLOWED}")
            _bounded(path, chosen, shape, limit)
            return printable(chosen), np.array(file.get_tensor(chosen), DTYPES[dtype], order="C")
    except UsageError:
        raise
    except Exception as error:  # SafetensorError, and whatever else a hostile header leads to
        raise UsageError(f"{str(path)!r} is not a whole .safetensors file: {error}") from None


def _choose(path: Path, names: list[str], name: str | None) -> str:
    """The tensor asked for, or the only one."""
    shown = ", ".join(map(printable, sorted(names)[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise UsageError(
            f"{str(path)!r} holds {len(names)} tensors; choose one with --name: {shown or 'there is none'}"
        )
    if name not in names:
        raise UsageError(f"--name {name!r} is not in {str(path)!r}; it holds {shown or 'no tensor'}")
    return name


_READERS = {".npy": _read_npy, ".safetensors": _read_safetensors}
