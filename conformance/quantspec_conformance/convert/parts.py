"""The parts of a stream as tensors of their own, as checkpoints keep them: words, block scales, tensor scale. Rule LAY-1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from quantspec import Container, ScaleType, Scheme
from quantspec.layout import byte_count
from quantspec.tensor import level_shapes
from quantspec.words import stored_axes, words_shape

from ..errors import UsageError
from .tensorfile import WIDTHS, Raw

__all__ = ["NAMES", "STREAM", "Part", "cut", "parts_of"]

STREAM = "stream"
#: The parts in the order of a stream, by the names that `convert` writes; the dtypes that each may have, ours first.
NAMES = ("words", "scale_codes", "tensor_scale_code")
SCALE_TYPES = {
    "f32": ("U32", "F32"),
    "f16": ("U16", "F16"),
    "bf16": ("U16", "BF16"),
    "ue8m0": ("U8", "F8_E8M0"),
    "ue4m3": ("U8", "F8_E4M3"),
}
WORD_TYPES = {1: ("U8", "I8"), 3: ("U8",), 4: ("U32", "I32", "U8")}
#: A native word of these values is the number itself.
NATIVE_TYPES = {"e4m3": ("F8_E4M3",), "e5m2": ("F8_E5M2",)}


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor of a file: its name, the dtypes it may have (ours first), its shape, None for any, and its bytes."""

    name: str
    types: tuple[str, ...]
    shape: tuple[int, ...] | None
    size: int

    def raw(self, data: bytes) -> Raw:
        """The tensor as `convert` writes it; one of any shape is flat."""
        shape = (self.size // WIDTHS[self.types[0]],) if self.shape is None else self.shape
        return Raw(self.types[0], shape, data)

    def check(self, raw: Raw, option: str) -> bytes:
        """The bytes of a tensor of a file. UsageError for another dtype or shape: those of another layout are never cut up."""
        if raw.dtype not in self.types:
            raise UsageError(f"{option} has dtype {raw.dtype}; the {self.name} are one of {', '.join(self.types)}")
        width = WIDTHS[raw.dtype]
        shapes = {(self.size // width,), *self._shapes(width)}
        if len(raw.data) != self.size or (self.shape is not None and raw.shape not in shapes):
            listed = " or ".join(map(str, sorted(shapes)))
            raise UsageError(
                f"{option} is {raw.dtype} of shape {raw.shape}, {len(raw.data)} bytes; allowed: {self.size} bytes, {listed}"
            )
        return raw.data

    def _shapes(self, width: int) -> set[tuple[int, ...]]:
        if self.shape is None:
            return set()
        own = WIDTHS[self.types[0]]
        if own == width:
            return {self.shape}
        return {(*self.shape[:-1], self.shape[-1] * own // width)}  # words as their bytes


def parts_of(scheme: Scheme, shape: Sequence[int], container: Container) -> tuple[Part, ...]:
    """The parts of a stream in its order; one part where each block's scale stands before its words (POL-17)."""
    total = byte_count(scheme, shape, container)
    if container.stream == "scale-first":
        return (Part(STREAM, ("U8", "I8"), (total,), total),)
    grid, single = level_shapes(scheme, tuple(shape))
    size = scheme.store.word_bytes(scheme.value.bits)
    words = words_shape(scheme, tuple(shape), container)
    types = WORD_TYPES[size] + (() if scheme.store.packed else NATIVE_TYPES.get(scheme.value.name, ()))
    found = [Part("words", types, words if size != 3 else (*words, 3), math.prod(words) * size)]
    if scheme.tensor is not None and single is not None:
        found.append(_scales("tensor_scale_code", scheme.tensor, None, scheme.tensor.size))
    if scheme.block is not None and grid is not None:
        stored = tuple(grid[axis] for axis in stored_axes(scheme, len(grid)))
        tiled, in_place = container.scale_layout == "128x4", container.word_order == "in-place"
        left = total - sum(part.size for part in found)
        found.insert(
            1, _scales("scale_codes", scheme.block.scale, None if tiled else grid if in_place else stored, left)
        )
    return tuple(found)


def _scales(name: str, scale: ScaleType, shape: tuple[int, ...] | None, size: int) -> Part:
    return Part(name, SCALE_TYPES[scale.name], shape, size)


def cut(parts: Sequence[Part], data: bytes) -> dict[str, Raw]:
    """The tensors of a stream."""
    found, start = {}, 0
    for part in parts:
        found[part.name] = part.raw(data[start : start + part.size])
        start += part.size
    return found
