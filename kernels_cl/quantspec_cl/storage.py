"""The verbs that store: codes in words, words in bytes, and back."""

from collections.abc import Sequence
from dataclasses import dataclass

from quantspec import (
    CANONICAL,
    CANONICAL_CODEC,
    CANONICAL_CONTAINER,
    Codec,
    Container,
    Packed,
    Quantized,
    Recipe,
    Scheme,
)

from . import layout, packing
from .host import DeviceArray
from .layout import BytesInput
from .memory import Output, destination
from .packing import Strictness
from .tensors import DevicePacked, DeviceQuantized
from .verbs import LayoutVerbs

__all__ = ["StorageVerbs"]


@dataclass(frozen=True, slots=True, eq=False)
class StorageVerbs(LayoutVerbs):
    """Packing and the byte stream. `out=` is written instead of new memory, and is the words, codes or bytes returned."""

    def pack(
        self,
        tensor: Quantized | DeviceQuantized,
        *,
        container: Container | str = CANONICAL_CONTAINER,
        out: Output | None = None,
    ) -> DevicePacked:
        """Codes in words. Rules PAK-1 to PAK-6, POL-14, POL-15, QNT-12."""
        return packing.pack(self.machine, tensor, container, destination(self.machine, out, tensor))

    def unpack(
        self, packed: Packed | DevicePacked, *, padding: Strictness = "refuse", out: Output | None = None
    ) -> DeviceQuantized:
        """Words to codes. Rules PAK-1 to PAK-8, VAL-5, QNT-12."""
        return packing.unpack(self.machine, packed, padding, destination(self.machine, out, packed))

    def convert(self, packed: Packed | DevicePacked, container: Container | str) -> DevicePacked:
        """The same codes and scales in another container. Rule POL-18."""
        return packing.convert(self.machine, packed, container)

    def to_bytes(
        self,
        tensor: Packed | Quantized | DevicePacked | DeviceQuantized,
        *,
        container: Container | str | None = None,
        out: Output | None = None,
    ) -> DeviceArray:
        """The byte stream of a tensor, uint8 of one axis; dirty words are refused. Rules LAY-1 to LAY-5, POL-16, POL-17."""
        return layout.to_bytes(self.machine, tensor, container, destination(self.machine, out, tensor))

    def from_bytes(
        self,
        data: BytesInput,
        scheme: Scheme | str,
        shape: Sequence[int],
        *,
        padding: Strictness = "refuse",
        ue4m3_bit7: Strictness = "refuse",
        recipe: Recipe | str = CANONICAL,
        container: Container | str = CANONICAL_CONTAINER,
        codec: Codec | str = CANONICAL_CODEC,
    ) -> DevicePacked:
        """Words and scale codes of a byte stream. Rules LAY-1 to LAY-5, LAY-7, SCL-2, PAK-7, PAK-8, VAL-5."""
        return layout.from_bytes(self.machine, data, scheme, shape, padding, ue4m3_bit7, recipe, container, codec)

    def split(
        self,
        data: BytesInput,
        scheme: Scheme | str,
        shape: Sequence[int],
        *,
        padding: Strictness = "refuse",
        ue4m3_bit7: Strictness = "refuse",
        recipe: Recipe | str = CANONICAL,
        container: Container | str = CANONICAL_CONTAINER,
        codec: Codec | str = CANONICAL_CODEC,
    ) -> DeviceQuantized:
        """Bytes to codes and scale codes, for every scheme. Rules LAY-6, LAY-7."""
        return layout.split(self.machine, data, scheme, shape, padding, ue4m3_bit7, recipe, container, codec)
