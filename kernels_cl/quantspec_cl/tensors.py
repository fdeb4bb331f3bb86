"""Quantized and packed tensors in a device's memory: quantspec's records with device arrays in them."""

from dataclasses import dataclass

import numpy as np

from quantspec import CANONICAL, CANONICAL_CONTAINER, Container, Packed, Quantized, Recipe, Saturation, Scheme

from .geometry import Shape
from .host import CHUNK, DeviceArray

__all__ = ["DevicePacked", "DeviceQuantized"]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceQuantized:
    """A quantized tensor on a device; `get()` is its `quantspec.Quantized`."""

    scheme: Scheme
    codes: DeviceArray  #: uint8, the tensor's shape
    scale_codes: DeviceArray | None = None  #: the scale grid's shape
    tensor_scale_code: DeviceArray | None = None  #: shape ()
    recipe: Recipe = CANONICAL
    saturated: DeviceArray | None = None  #: uint8, not 0 where a block scale saturated; None: nowhere
    tensor_saturated: DeviceArray | None = None

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        return self.codes.shape

    @property
    def saturation(self) -> Saturation:
        """How many block scales saturated, the first of them, and whether the tensor scale did. Rule SCL-24."""
        tensor = self.tensor_saturated is not None and bool(self.tensor_saturated.get().any())
        if self.saturated is None or self.saturated.size == 0:
            return Saturation(tensor=tensor)
        machine, size = self.saturated.machine, self.saturated.size
        counts = machine.empty((-(-size // CHUNK),), np.uint64)
        firsts = machine.empty(counts.shape, np.uint64)
        machine.launch("tally", counts.size, self.saturated, counts, firsts, size, CHUNK)
        count = machine.element(machine.fold("fold_sum", counts), 0)
        if count == 0:
            return Saturation(tensor=tensor)
        first = machine.element(machine.fold("fold_first", firsts), 0)
        return Saturation(count, tuple(int(i) for i in np.unravel_index(first, self.saturated.shape)), tensor)

    def get(self) -> Quantized:
        """The record with host arrays; its constructor checks them once more."""
        return Quantized(
            self.scheme,
            self.codes.get(),
            None if self.scale_codes is None else self.scale_codes.get(),
            None if self.tensor_scale_code is None else self.tensor_scale_code.get(),
            self.recipe,
            self.saturation,
        )


@dataclass(frozen=True, slots=True, eq=False)
class DevicePacked:
    """A packed tensor on a device; `get()` is its `quantspec.Packed`."""

    scheme: Scheme
    shape: Shape
    words: DeviceArray  #: stored order, the last axis counting the words of a line
    scale_codes: DeviceArray | None = None  #: tensor axes
    tensor_scale_code: DeviceArray | None = None
    recipe: Recipe = CANONICAL
    container: Container = CANONICAL_CONTAINER

    def get(self) -> Packed:
        """The record with host arrays; its constructor checks them once more."""
        return Packed(
            self.scheme,
            self.shape,
            self.words.get(),
            None if self.scale_codes is None else self.scale_codes.get(),
            None if self.tensor_scale_code is None else self.tensor_scale_code.get(),
            self.recipe,
            self.container,
        )
