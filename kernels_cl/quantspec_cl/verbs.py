"""The layout operations as verbs of a session. Packed tensors stay packed; `padding` says how their words are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from quantspec import Codec, Packed, Quantized, Recipe, Scheme
from quantspec.stores import Store

from . import operations
from .concatenate import concatenate
from .moves import Made, Stored
from .packing import Strictness
from .place import Place
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["LayoutVerbs"]

Codes = Quantized | DeviceQuantized
Words = Packed | DevicePacked


@dataclass(frozen=True, slots=True, eq=False)
class LayoutVerbs(Place):
    """What becomes of a tensor when it is transposed, cut or joined: codes and scale codes move, nothing is encoded again."""

    @overload
    def permute(self, tensor: Codes, axes: Sequence[int], *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def permute(self, tensor: Words, axes: Sequence[int], *, padding: Strictness = ...) -> DevicePacked: ...
    def permute(self, tensor: Stored, axes: Sequence[int], *, padding: Strictness = "refuse") -> Made:
        """Axis i of the result is axis `axes[i]`. Rules OPS-1, OPS-2, OPS-10."""
        return operations.permute(self.machine, tensor, axes, padding)

    @overload
    def transpose(self, tensor: Codes, axis0: int, axis1: int, *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def transpose(self, tensor: Words, axis0: int, axis1: int, *, padding: Strictness = ...) -> DevicePacked: ...
    def transpose(self, tensor: Stored, axis0: int, axis1: int, *, padding: Strictness = "refuse") -> Made:
        """Two axes exchanged. Rules OPS-1, OPS-2, OPS-10."""
        return operations.transpose(self.machine, tensor, axis0, axis1, padding)

    @overload
    def slice_axis(
        self, tensor: Codes, axis: int, start: int, stop: int, *, padding: Strictness = ...
    ) -> DeviceQuantized: ...
    @overload
    def slice_axis(
        self, tensor: Words, axis: int, start: int, stop: int, *, padding: Strictness = ...
    ) -> DevicePacked: ...
    def slice_axis(self, tensor: Stored, axis: int, start: int, stop: int, *, padding: Strictness = "refuse") -> Made:
        """Elements start to stop (not included) of an axis. Rules OPS-1, OPS-3, OPS-11."""
        return operations.slice_axis(self.machine, tensor, axis, start, stop, padding)

    @overload
    def take(
        self, tensor: Codes, axis: int, indices: Sequence[int], *, padding: Strictness = ...
    ) -> DeviceQuantized: ...
    @overload
    def take(self, tensor: Words, axis: int, indices: Sequence[int], *, padding: Strictness = ...) -> DevicePacked: ...
    def take(self, tensor: Stored, axis: int, indices: Sequence[int], *, padding: Strictness = "refuse") -> Made:
        """Whole slices of an axis, in the order of `indices`. Rules OPS-1, OPS-4, OPS-11."""
        return operations.take(self.machine, tensor, axis, indices, padding)

    @overload
    def select(self, tensor: Codes, axis: int, index: int, *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def select(self, tensor: Words, axis: int, index: int, *, padding: Strictness = ...) -> DevicePacked: ...
    def select(self, tensor: Stored, axis: int, index: int, *, padding: Strictness = "refuse") -> Made:
        """One slice of an axis, the axis dropped. Rules OPS-1, OPS-5."""
        return operations.select(self.machine, tensor, axis, index, padding)

    @overload
    def flip(self, tensor: Codes, axis: int, *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def flip(self, tensor: Words, axis: int, *, padding: Strictness = ...) -> DevicePacked: ...
    def flip(self, tensor: Stored, axis: int, *, padding: Strictness = "refuse") -> Made:
        """An axis in reverse. Rules OPS-1, OPS-6, OPS-11."""
        return operations.flip(self.machine, tensor, axis, padding)

    @overload
    def expand(self, tensor: Codes, shape: Sequence[int], *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def expand(self, tensor: Words, shape: Sequence[int], *, padding: Strictness = ...) -> DevicePacked: ...
    def expand(self, tensor: Stored, shape: Sequence[int], *, padding: Strictness = "refuse") -> Made:
        """Axes of size 1 repeated, new leading axes too. Rules OPS-1, OPS-7."""
        return operations.expand(self.machine, tensor, shape, padding)

    @overload
    def reshape(self, tensor: Codes, shape: Sequence[int], *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def reshape(self, tensor: Words, shape: Sequence[int], *, padding: Strictness = ...) -> DevicePacked: ...
    def reshape(self, tensor: Stored, shape: Sequence[int], *, padding: Strictness = "refuse") -> Made:
        """The same elements in row-major order under another shape. Rules OPS-1, OPS-9, OPS-10, OPS-11."""
        return operations.reshape(self.machine, tensor, shape, padding)

    @overload
    def repack(self, tensor: Codes, store: str | Store, *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def repack(self, tensor: Words, store: str | Store, *, padding: Strictness = ...) -> DevicePacked: ...
    def repack(self, tensor: Stored, store: str | Store, *, padding: Strictness = "refuse") -> Made:
        """The same codes and scale codes under another store. Rule OPS-13."""
        return operations.repack(self.machine, tensor, store, padding)

    @overload
    def requantize(
        self,
        tensor: Codes,
        scheme: Scheme | str,
        *,
        padding: Strictness = ...,
        recipe: Recipe | str | None = ...,
        codec: Codec | str | None = ...,
    ) -> DeviceQuantized: ...
    @overload
    def requantize(
        self,
        tensor: Words,
        scheme: Scheme | str,
        *,
        padding: Strictness = ...,
        recipe: Recipe | str | None = ...,
        codec: Codec | str | None = ...,
    ) -> DevicePacked: ...
    def requantize(
        self,
        tensor: Stored,
        scheme: Scheme | str,
        *,
        padding: Strictness = "refuse",
        recipe: Recipe | str | None = None,
        codec: Codec | str | None = None,
    ) -> Made:
        """Dequantized to f32 and quantized under another scheme: lossy. Rule OPS-12."""
        return operations.requantize(self.machine, tensor, scheme, padding, recipe, codec)

    @overload
    def concatenate(self, parts: Sequence[Codes], axis: int = ..., *, padding: Strictness = ...) -> DeviceQuantized: ...
    @overload
    def concatenate(self, parts: Sequence[Words], axis: int = ..., *, padding: Strictness = ...) -> DevicePacked: ...
    def concatenate(self, parts: Sequence[Stored], axis: int = 0, *, padding: Strictness = "refuse") -> Made:
        """Tensors joined along an axis, all of them packed or none. Rules OPS-1, OPS-8, OPS-11."""
        return concatenate(self.machine, parts, axis, padding)
