"""Quantized and packed tensors in a device's memory: quantspec's records with device arrays in them."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from quantspec import (
    CANONICAL,
    CANONICAL_CODEC,
    CANONICAL_CONTAINER,
    Codec,
    Container,
    Packed,
    Quantized,
    Recipe,
    Saturation,
    Scheme,
)

from .geometry import Shape
from .host import CHUNK, DeviceArray, Machine
from .paths import Path

__all__ = ["DevicePacked", "DeviceQuantized", "Flags", "adopted", "saturation_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """Which block scales saturated: bytes whose bits stand for blocks that follow one another in a line. Rule SCL-24."""

    array: DeviceArray  #: uint8, flat
    grid: Shape
    blocks: int = 1  #: a byte
    line: int = 1  #: blocks from one line of bytes to the next
    under_tensor: bool = False  #: they count only where the tensor scale saturated

    @property
    def first_and_count(self) -> tuple[int, int]:
        """The first flagged block, row-major, and how many there are."""
        machine, size = self.array.machine, self.array.size
        counts = machine.empty((-(-size // CHUNK),), np.uint64)
        firsts = machine.empty(counts.shape, np.uint64)
        machine.launch("tally", counts.size, self.array, counts, firsts, size, CHUNK)
        count = machine.element(machine.fold("fold_sum", counts), 0)
        place, bit = divmod(machine.element(machine.fold("fold_first", firsts), 0), 8)
        line, at = divmod(place, -(-self.line // self.blocks))
        return line * self.line + at * self.blocks + bit, count


def saturation_of(flags: Flags | None, tensor_flag: DeviceArray | None) -> Saturation:
    """How many block scales saturated, the first of them, and whether the tensor scale did. Rule SCL-24."""
    tensor = tensor_flag is not None and bool(tensor_flag.get().any())
    if flags is None or flags.array.size == 0 or (flags.under_tensor and not tensor):
        return Saturation(tensor=tensor)
    first, count = flags.first_and_count
    if count == 0:
        return Saturation(tensor=tensor)
    return Saturation(count, tuple(int(i) for i in np.unravel_index(first, flags.grid)), tensor)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceQuantized:
    """A quantized tensor on a device; `get()` is its `quantspec.Quantized`."""

    scheme: Scheme
    codes: DeviceArray  #: uint8, the tensor's shape
    scale_codes: DeviceArray | None = None  #: the scale grid's shape
    tensor_scale_code: DeviceArray | None = None  #: shape ()
    recipe: Recipe = CANONICAL
    saturated: Flags | None = None  #: None: nowhere
    tensor_saturated: DeviceArray | None = None
    codec: Codec = CANONICAL_CODEC

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        return self.codes.shape

    @property
    def path(self) -> Path | None:
        """Which kernels wrote the codes, where there was a choice."""
        return self.codes.path

    @property
    def saturation(self) -> Saturation:
        """How many block scales saturated, the first of them, and whether the tensor scale did. Rule SCL-24."""
        return saturation_of(self.saturated, self.tensor_saturated)

    def get(self) -> Quantized:
        """The record with host arrays; its constructor checks them once more."""
        return Quantized(
            self.scheme,
            self.codes.get(),
            None if self.scale_codes is None else self.scale_codes.get(),
            None if self.tensor_scale_code is None else self.tensor_scale_code.get(),
            self.recipe,
            self.saturation,
            self.codec,
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
    saturated: Flags | None = None  #: of quantizing; None: nowhere
    tensor_saturated: DeviceArray | None = None
    codec: Codec = CANONICAL_CODEC

    @property
    def path(self) -> Path | None:
        """Which kernels wrote the words, where there was a choice."""
        return self.words.path

    def written_by(self, path: Path) -> "DevicePacked":
        """The same, its words with the path that wrote them."""
        return replace(self, words=self.words.written_by(path))

    @property
    def saturation(self) -> Saturation:
        """What quantizing reported: `quantize_packed`, or `pack` of what `quantize` returned. Rule SCL-24."""
        return saturation_of(self.saturated, self.tensor_saturated)

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
            self.codec,
        )


Record = TypeVar("Record", DeviceQuantized, DevicePacked)
ARRAYS = ("codes", "words", "scale_codes", "tensor_scale_code", "tensor_saturated")


def adopted(machine: Machine, record: Record) -> Record:
    """A record of this context as this queue's; itself where it is. Raises ForeignArrayError."""
    changes: dict[str, Any] = {}
    for name in ARRAYS:
        array = getattr(record, name, None)
        if array is not None and array.machine is not machine:
            changes[name] = machine.adopt(array)
    flags = record.saturated
    if flags is not None and flags.array.machine is not machine:
        changes["saturated"] = replace(flags, array=machine.adopt(flags.array))
    return replace(record, **changes) if changes else record
