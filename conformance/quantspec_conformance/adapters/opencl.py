"""An OpenCL device as an adapter: quantspec_cl with every output poisoned before a launch. Rule CNF-3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec_cl
from quantspec import Quantized, Scheme

from . import Arrays
from .reference import saturation_array

__all__ = ["OpenCLAdapter"]


@dataclass(frozen=True, slots=True)
class _Handle:
    """A quantized tensor on the device; with fused kernels also its words, made or read without the codes between."""

    codes: quantspec_cl.DeviceQuantized
    reports: bool  #: whether the saturation report is its own
    words: quantspec_cl.DevicePacked | None = None


class OpenCLAdapter:
    """A session of quantspec_cl; handles are its device arrays and records, fetched without their records' checks.

    With `path="fast"` specialised kernels run wherever there are some, and pack and dequantize are the fused ones.
    """

    def __init__(
        self,
        spec: str | None = None,
        *,
        build_options: Sequence[str] = (),
        path: quantspec_cl.PathChoice = "auto",
    ) -> None:
        self._session = quantspec_cl.open_device(spec or None, build_options=build_options, poison=True, path=path)
        self._path = path

    def identity(self) -> Mapping[str, Any]:
        """What the device says it is."""
        info = self._session.info
        options = " ".join(self._session.build_options)
        return {
            "name": f"{info.platform} / {info.name}",
            "version": info.version,
            "driver": info.driver,
            **({"built with": options} if options else {}),
            **({"kernels": self._path} if self._path != "auto" else {}),
        }

    @property
    def _fused(self) -> bool:
        return self._path == "fast"

    def quantize(
        self,
        x: npt.NDArray[Any],
        scheme: Scheme,
        *,
        scale_codes: npt.NDArray[Any] | None = None,
        tensor_scale_code: npt.NDArray[Any] | None = None,
    ) -> Any:
        """Session.quantize, and that the saturation report is its own."""
        given: dict[str, Any] = {"scale_codes": scale_codes, "tensor_scale_code": tensor_scale_code}
        codes = self._session.quantize(x, scheme, **given)
        return _Handle(codes, True, self._session.quantize_packed(x, scheme, **given) if self._fused else None)

    def quantized(
        self,
        scheme: Scheme,
        codes: npt.NDArray[Any],
        scale_codes: npt.NDArray[Any] | None,
        tensor_scale_code: npt.NDArray[Any] | None,
    ) -> Any:
        """The record of these codes, moved to the device."""
        return _Handle(self._session.put(Quantized(scheme, codes, scale_codes, tensor_scale_code)), False)

    def pack(self, quantized: Any) -> Any:
        """Session.pack."""
        return quantized.words or self._session.pack(quantized.codes)

    def to_bytes(self, packed: Any) -> Any:
        """Session.to_bytes."""
        return self._session.to_bytes(packed)

    def split(self, data: Any, scheme: Scheme, shape: tuple[int, ...]) -> Any:
        """Session.split."""
        codes = self._session.split(data, scheme, shape)
        return _Handle(codes, False, self._session.from_bytes(data, scheme, shape) if self._fused else None)

    def dequantize(self, quantized: Any, dtype: str) -> Any:
        """Session.dequantize."""
        if quantized.words is not None:
            return self._session.dequantize_packed(quantized.words, dtype)
        return self._session.dequantize(quantized.codes, dtype)

    def fetch(self, handle: Any) -> Arrays:
        """The arrays of a handle."""
        match handle:
            case quantspec_cl.DevicePacked():
                return {"words": handle.words.get()}
            case quantspec_cl.DeviceArray():
                array = handle.get()
                return {"bytes" if array.dtype == np.uint8 else "y": array}
            case _Handle():
                return _parts(handle.codes, handle.reports)
            case _:
                raise AssertionError(f"not a handle of this adapter: {type(handle).__name__}")


def _parts(quantized: quantspec_cl.DeviceQuantized, reports: bool) -> Arrays:
    parts: Arrays = {"codes": quantized.codes.get()}
    if quantized.scale_codes is not None:
        parts["scale_codes"] = quantized.scale_codes.get()
    if quantized.tensor_scale_code is not None:
        parts["tensor_scale_code"] = quantized.tensor_scale_code.get()
    if reports:
        saturation = quantized.saturation
        parts["saturation"] = saturation_array(saturation.count, saturation.first, saturation.tensor)
    return parts
