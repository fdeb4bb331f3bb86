"""Adapters: what the harness asks of an implementation, and how the name of one becomes an object.

`reference` is the law itself, `py:FILE.py:CLASS` any class that follows `Adapter`, anything else an OpenCL device.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from quantspec import Scheme, Step

from ..errors import DeviceError

__all__ = ["Adapter", "Fused", "load", "needs_device"]

Arrays = dict[str, npt.NDArray[Any]]


class Adapter(Protocol):
    """An implementation under test. Handles are its own (they may stay on a device); `fetch` brings their parts here.

    Every method refuses what the reference refuses, with the same class and rule (quantspec's error classes).
    """

    def identity(self) -> Mapping[str, Any]:
        """What this is: `name`, and anything worth recording (driver, version, ...), as JSON."""
        ...

    def quantize(
        self,
        x: npt.NDArray[Any],
        scheme: Scheme,
        *,
        scale_codes: npt.NDArray[Any] | None = None,
        tensor_scale_code: npt.NDArray[Any] | None = None,
    ) -> Any:
        """A handle to a quantized tensor."""
        ...

    def quantized(
        self,
        scheme: Scheme,
        codes: npt.NDArray[Any],
        scale_codes: npt.NDArray[Any] | None,
        tensor_scale_code: npt.NDArray[Any] | None,
    ) -> Any:
        """A handle to a quantized tensor of these codes."""
        ...

    def pack(self, quantized: Any) -> Any:
        """A handle to the packed tensor."""
        ...

    def to_bytes(self, packed: Any) -> Any:
        """A handle to the byte stream of a packed tensor."""
        ...

    def split(self, data: Any, scheme: Scheme, shape: tuple[int, ...]) -> Any:
        """A handle to the quantized tensor of a byte stream: a handle of `to_bytes`, or bytes."""
        ...

    def dequantize(self, quantized: Any, dtype: str) -> Any:
        """A handle to the numbers in f32, f16 or bf16."""
        ...

    def fetch(self, handle: Any) -> Arrays:
        """The parts of a handle, unchecked, bit for bit.

        A quantized tensor: `codes`, `scale_codes`, `tensor_scale_code` (present levels only) and, from `quantize`,
        `saturation` (int64: count, tensor, then the grid index of the first, if any). Packed: `words`. Bytes: `bytes`
        (uint8). Numbers: `y`.
        """
        ...


class Fused(Adapter, Protocol):
    """What an adapter may also have: fused uses, and another store. `quantspec run` asks for none of it."""

    def chain(self, quantized: Any, steps: Sequence[Step], dtype: str) -> Any:
        """A handle to the numbers after each of the steps."""
        ...

    def product(self, x: npt.NDArray[Any], w: Any, dtype: str) -> Any:
        """A handle to the numbers of x times a handle's matrix."""
        ...

    def product_codes(self, x: Any, w: Any, dtype: str) -> Any:
        """A handle to the numbers of the product of two handles, from their codes."""
        ...

    def repack(self, quantized: Any, store: str) -> Any:
        """A handle to the tensor under another store."""
        ...


def needs_device(address: str) -> bool:
    """True where an address names an OpenCL device."""
    return address != "reference" and not address.startswith("py:")


def load(address: str, *, build_options: Sequence[str] = (), path: Any = "auto") -> Adapter:
    """The adapter of an address; `path` says which kernels a device runs. DeviceError where there is none."""
    if address == "reference":
        from .reference import ReferenceAdapter

        return ReferenceAdapter()
    if address.startswith("py:"):
        return _from_file(address)
    from .opencl import OpenCLAdapter

    return OpenCLAdapter(address, build_options=build_options, path=path)


def _from_file(address: str) -> Adapter:
    """The adapter of `py:FILE.py:CLASS`."""
    path, _, name = address.removeprefix("py:").rpartition(":")
    if not path or not name:
        raise DeviceError(f"--device {address!r} names no class; write py:FILE.py:CLASS")
    file = Path(path)
    if not path.endswith(".py") or not file.is_file():
        raise DeviceError(f"--device {address!r}: no file {path!r}; write py:FILE.py:CLASS")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise DeviceError(f"--device {address!r}: {path!r} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise DeviceError(f"--device {address!r}: {path} has no class {name!r}")
    adapter: Adapter = getattr(module, name)()
    return adapter
