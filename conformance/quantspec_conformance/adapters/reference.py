"""The reference as an adapter: what every other one is compared with, and a check of the harness itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Packed, Quantized, Scheme, Step

from . import Arrays

__all__ = ["ReferenceAdapter", "SharedReference", "saturation_array"]


def saturation_array(count: int, first: tuple[int, ...] | None, tensor: bool) -> npt.NDArray[np.int64]:
    """A saturation report as int64: count, tensor, then the grid index of the first block, if any."""
    return np.array([count, int(tensor), *(first or ())], np.int64)


class ReferenceAdapter:
    """The reference, called as it is. Handles are quantspec's records; the liars of the tests derive from this."""

    def identity(self) -> Mapping[str, Any]:
        """The reference's name and versions."""
        return {"name": "reference", "version": quantspec.__version__, "numpy": np.__version__}

    def quantize(
        self,
        x: npt.NDArray[Any],
        scheme: Scheme,
        *,
        scale_codes: npt.NDArray[Any] | None = None,
        tensor_scale_code: npt.NDArray[Any] | None = None,
    ) -> Quantized:
        """quantspec.quantize."""
        return quantspec.quantize(x, scheme, scale_codes=scale_codes, tensor_scale_code=tensor_scale_code)

    def quantized(
        self,
        scheme: Scheme,
        codes: npt.NDArray[Any],
        scale_codes: npt.NDArray[Any] | None,
        tensor_scale_code: npt.NDArray[Any] | None,
    ) -> Quantized:
        """The record of these codes."""
        return Quantized(scheme, codes, scale_codes, tensor_scale_code)

    def pack(self, quantized: Quantized) -> Packed:
        """quantspec.pack."""
        return quantspec.pack(quantized)

    def to_bytes(self, packed: Packed) -> bytes:
        """quantspec.to_bytes."""
        return quantspec.to_bytes(packed)

    def split(self, data: bytes, scheme: Scheme, shape: tuple[int, ...]) -> Quantized:
        """quantspec.split."""
        return quantspec.split(data, scheme, shape)

    def dequantize(self, quantized: Quantized, dtype: str) -> npt.NDArray[Any]:
        """quantspec.dequantize."""
        return quantspec.dequantize(quantized, dtype)

    def chain(self, quantized: Quantized, steps: Sequence[Step], dtype: str) -> npt.NDArray[Any]:
        """quantspec.chain."""
        return quantspec.chain(quantized, steps, dtype)

    def product(self, x: npt.NDArray[Any], w: Quantized, dtype: str) -> npt.NDArray[Any]:
        """quantspec.product."""
        return quantspec.product(x, w, dtype)

    def product_codes(self, x: Quantized, w: Quantized, dtype: str) -> npt.NDArray[Any]:
        """quantspec.product_codes."""
        return quantspec.product_codes(x, w, dtype)

    def repack(self, quantized: Quantized, store: str) -> Quantized:
        """quantspec.repack."""
        return quantspec.repack(quantized, store)

    def fetch(self, handle: Any) -> Arrays:
        """The parts of a record, of a byte stream or of an array."""
        if isinstance(handle, Quantized):
            parts: Arrays = {"codes": handle.codes}
            if handle.scale_codes is not None:
                parts["scale_codes"] = handle.scale_codes
            if handle.tensor_scale_code is not None:
                parts["tensor_scale_code"] = handle.tensor_scale_code
            report = handle.saturation
            parts["saturation"] = saturation_array(report.count, report.first, report.tensor)
            return parts
        if isinstance(handle, Packed):
            return {"words": handle.words}
        if isinstance(handle, bytes):
            return {"bytes": np.frombuffer(handle, np.uint8)}
        return {"y": handle}


@dataclass(frozen=True, slots=True)
class _Held:
    """A quantized tensor under one of the schemes that share its codes and scales."""

    scheme: Scheme
    record: Quantized


class SharedReference:
    """The reference for schemes that differ in their store only: codes, scales and numbers are computed once.

    Make one for each batch of data; the shape must be one that all of its schemes take. Splitting a stream that was just
    written gives back what went in (LAY-6); that is computed for the first scheme, and relied upon for the others.
    """

    def __init__(self) -> None:
        self._law = ReferenceAdapter()
        self._quantized: dict[bool, Quantized] = {}
        self._drawn: Quantized | None = None
        self._numbers: dict[tuple[int, str], npt.NDArray[Any]] = {}
        self._written: dict[bytes, Quantized] = {}
        self._split_once = False

    def identity(self) -> Mapping[str, Any]:
        """The reference's."""
        return self._law.identity()

    def quantize(
        self,
        x: npt.NDArray[Any],
        scheme: Scheme,
        *,
        scale_codes: npt.NDArray[Any] | None = None,
        tensor_scale_code: npt.NDArray[Any] | None = None,
    ) -> _Held:
        """The shared codes and scales under this scheme."""
        given = scale_codes is not None or tensor_scale_code is not None
        if given not in self._quantized:
            self._quantized[given] = self._law.quantize(
                x, scheme, scale_codes=scale_codes, tensor_scale_code=tensor_scale_code
            )
        return _Held(scheme, self._quantized[given])

    def quantized(
        self,
        scheme: Scheme,
        codes: npt.NDArray[Any],
        scale_codes: npt.NDArray[Any] | None,
        tensor_scale_code: npt.NDArray[Any] | None,
    ) -> _Held:
        """The record of the drawn codes, checked once."""
        if self._drawn is None:
            self._drawn = Quantized(scheme, codes, scale_codes, tensor_scale_code)
        return _Held(scheme, self._drawn)

    def pack(self, quantized: _Held) -> tuple[Packed, Quantized]:
        """The packed record and where it came from."""
        record, scheme = quantized.record, quantized.scheme
        words = quantspec.pack_codes(record.codes, scheme)
        return Packed(scheme, record.shape, words, record.scale_codes, record.tensor_scale_code), record

    def to_bytes(self, packed: tuple[Packed, Quantized]) -> bytes:
        """The stream, remembered with what it was made from."""
        data = quantspec.to_bytes(packed[0])
        self._written[data] = packed[1]
        return data

    def split(self, data: bytes, scheme: Scheme, shape: tuple[int, ...]) -> _Held:
        """What a stream written here was made from; any other stream is split by the law."""
        source = self._written.get(data)
        if source is not None and self._split_once:
            return _Held(scheme, source)
        record = self._law.split(data, scheme, shape)
        if source is not None:
            if not np.array_equal(record.codes, source.codes):
                raise AssertionError(f"the reference does not split what it wrote under {scheme.text}")
            self._split_once = True
        return _Held(scheme, record)

    def dequantize(self, quantized: _Held, dtype: str) -> npt.NDArray[Any]:
        """The shared numbers of these codes and scales."""
        key = (id(quantized.record), dtype)
        if key not in self._numbers:
            self._numbers[key] = self._law.dequantize(quantized.record, dtype)
        return self._numbers[key]

    def fetch(self, handle: Any) -> Arrays:
        """The parts of a handle."""
        if isinstance(handle, _Held):
            return self._law.fetch(handle.record)
        return self._law.fetch(handle[0] if isinstance(handle, tuple) else handle)
