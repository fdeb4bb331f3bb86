"""Layout: words and scales to bytes and back. Rules LAY-1 to LAY-7."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import blocks
from .codecs import CANONICAL_CODEC, Codec
from .containers import CANONICAL_CONTAINER, Container, require_covered, swizzle, swizzled_size, unswizzle
from .errors import EncodingError, ShapeError
from .packing import Strictness, convert, pack, unpack
from .recipes import CANONICAL, Recipe
from .scales import ScaleCodes, check_scale_codes
from .scheme import Scheme
from .tensor import Quantized, level_shapes, require_record
from .tracing import rule
from .words import Packed, stored_axes, word_count, words_shape

__all__ = ["byte_count", "from_bytes", "split", "to_bytes"]

Buffer = bytes | bytearray | memoryview


@rule("LAY-1")
def _regions(scheme: Scheme, shape: tuple[int, ...], container: Container) -> tuple[int, int, int]:
    """Bytes of the words, of the block scales and of the tensor scale, as they follow one another. Rule LAY-1."""
    words = word_count(scheme, shape, container) * scheme.store.word_bytes(scheme.value.bits)
    grid, _ = level_shapes(scheme, shape)
    block = 0
    if grid is not None and scheme.block is not None:
        tiled = container.scale_layout == "128x4"
        block = scheme.block.scale.size * (swizzled_size(grid) if tiled else math.prod(grid))
    return words, block, scheme.tensor.size if scheme.tensor is not None else 0


@rule("LAY-4", "LAY-5")
def byte_count(scheme: Scheme | str, shape: Sequence[int], container: Container | str = CANONICAL_CONTAINER) -> int:
    """Bytes of a tensor under a scheme, in a container. Rules LAY-1, LAY-4, LAY-5, POL-16.

    >>> byte_count("q4s.packed_u32_0.t-f32", (3, 3))
    16
    """
    scheme = Scheme.of(scheme)
    checked = blocks.check_shape(shape)
    scheme.require_shape(checked)
    container = Container.of(container)
    require_covered(container, scheme, checked)
    total = sum(_regions(scheme, checked, container))
    if total > blocks.LARGEST_COUNT:
        raise ShapeError("LAY-5", f"shape={checked} takes {total} bytes under {scheme.text}; allowed: at most 2^63-1")
    return total


def to_bytes(tensor: Packed | Quantized, *, container: Container | str | None = None) -> bytes:
    """The byte stream of a tensor: words, block scales, tensor scale; dense, little-endian. Rules LAY-1 to LAY-5.

    A `Quantized` is packed first. Block scales are written in stored axis order (LAY-3). In the tensor's container unless
    one is named (POL-16, POL-17).

    >>> from quantspec import quantize
    >>> to_bytes(quantize(np.float32([1, -2, 6]), "e2m1.packed_native_0.b16-ue8m0")).hex()
    'c2077f'
    """
    if isinstance(tensor, Quantized):
        packed = pack(tensor, container=CANONICAL_CONTAINER if container is None else container)
    else:
        require_record(tensor, Packed)
        unpack(tensor)  # words from elsewhere: what may not be read may not be written either
        packed = tensor if container is None else convert(tensor, container)
    byte_count(packed.scheme, packed.shape, packed.container)
    size = packed.scheme.store.word_bytes(packed.scheme.value.bits)
    if packed.container.stream == "scale-first":
        return _scale_first(packed, size)
    data = _little_endian(packed.words)[..., :size].tobytes()
    if packed.scale_codes is not None:
        stored = _stored_scales(packed.scale_codes, packed.scheme, packed.container)
        data += _little_endian(stored).tobytes()
    if packed.tensor_scale_code is not None:
        data += _little_endian(packed.tensor_scale_code).tobytes()
    return data


def _stored_scales(scale_codes: ScaleCodes, scheme: Scheme, container: Container) -> ScaleCodes:
    """Block scales in the order of a stream. Rules LAY-3, POL-15, POL-16."""
    if container.scale_layout == "128x4":
        return swizzle(scale_codes)
    return scale_codes if container.word_order == "in-place" else _exchanged(scale_codes, scheme)


@rule("POL-17")
def _scale_first(packed: Packed, size: int) -> bytes:
    """Each block's scale and, after it, its words. Rule POL-17."""
    if packed.scale_codes is None:
        raise AssertionError("a container with scales among the words covers block levels only")
    scales = _little_endian(packed.scale_codes)
    words = _little_endian(packed.words)[..., :size]
    each = words.reshape(*packed.scale_codes.shape, _block_bytes(packed.scheme))
    return np.concatenate([scales, each], axis=-1).tobytes()


def _block_bytes(scheme: Scheme) -> int:
    """Bytes of the words of one block that lies along the innermost axis."""
    bits, store = scheme.value.bits, scheme.store
    extent = scheme.block.extents[0] if scheme.block is not None else 1
    return extent // store.codes_per_word(bits) * store.word_bytes(bits)


@rule("LAY-2")
def _little_endian(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of each number, lowest first, along a new last axis. Rule LAY-2."""
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    return little.reshape(*numbers.shape, 1).view(np.uint8)


@rule("LAY-3", "LAY-7")
def _exchanged(scale_codes: ScaleCodes, scheme: Scheme) -> ScaleCodes:
    """The scale grid with the packed and the innermost axis exchanged, C order; its own inverse. Rule LAY-3."""
    return np.ascontiguousarray(scale_codes.transpose(stored_axes(scheme, scale_codes.ndim)))


def from_bytes(
    data: Buffer | npt.NDArray[np.uint8],
    scheme: Scheme | str,
    shape: Sequence[int],
    *,
    padding: Strictness = "refuse",
    ue4m3_bit7: Strictness = "refuse",
    recipe: Recipe | str = CANONICAL,
    container: Container | str = CANONICAL_CONTAINER,
    codec: Codec | str = CANONICAL_CODEC,
) -> Packed:
    """Words and scale codes of a byte stream, scales in tensor axes. Rules LAY-1 to LAY-5, LAY-7, PAK-7, PAK-8, SCL-2, VAL-5.

    `data` is bytes-like or a uint8 array of one axis. Raises EncodingError where its length is not exact, where padding or
    unused bits are not zero (`padding="ignore"` clears them), where a native byte is no code, or where a ue4m3 scale has
    bit 7 set (`ue4m3_bit7="ignore"` clears it); ShapeError, SchemeError.
    """
    packed = _read(data, Scheme.of(scheme), shape, padding, ue4m3_bit7, recipe, container, codec)
    codes = unpack(packed, padding=padding)
    kept = padding == "refuse" and packed.container.padding == "refuse"
    return packed if kept else pack(codes, container=container)


def _read(
    data: Buffer | npt.NDArray[np.uint8],
    scheme: Scheme,
    shape: Sequence[int],
    padding: Strictness,
    ue4m3_bit7: Strictness,
    recipe: Recipe | str,
    container: Container | str,
    codec: Codec | str,
) -> Packed:
    """The three regions of a byte stream; what the words hold is not looked at yet. Rules LAY-1 to LAY-5."""
    recipe, container, codec = Recipe.of(recipe), Container.of(container), Codec.of(codec)
    if container.ue4m3_bit7 == "ignore":
        ue4m3_bit7 = "ignore"
    raw = _raw(data)
    checked = blocks.check_array_shape(shape)
    expected = byte_count(scheme, checked, container)
    if raw.size != expected:
        raise EncodingError(
            "LAY-4", f"data has {raw.size} bytes; a tensor {checked} of {scheme.text} has exactly {expected}"
        )
    words_end, block_bytes, _ = _regions(scheme, checked, container)
    grid, _ = level_shapes(scheme, checked)
    if container.stream == "scale-first":
        raw = _regions_of(raw, scheme)
    words = _words(raw[:words_end], scheme, checked, container)
    scale_codes = tensor_code = None
    if grid is not None and scheme.block is not None:
        stored = _numbers(raw[words_end : words_end + block_bytes], scheme.block.scale.code_dtype)
        read = _read_scales(stored, scheme, grid, container, padding)
        scale_codes = check_scale_codes(read, scheme.block.scale, argument="block scales", bit7=ue4m3_bit7)
    if scheme.tensor is not None:
        read = _numbers(raw[words_end + block_bytes :], scheme.tensor.code_dtype).reshape(())
        tensor_code = check_scale_codes(read, scheme.tensor, argument="tensor scale", bit7=ue4m3_bit7)
    return Packed(scheme, checked, words, scale_codes, tensor_code, recipe, container, codec)


def _read_scales(
    stored: ScaleCodes, scheme: Scheme, grid: tuple[int, ...], container: Container, padding: Strictness
) -> ScaleCodes:
    """Block scales of a stream on the grid, in tensor axes. Rules LAY-3, LAY-7, POL-16."""
    if container.scale_layout == "128x4":
        return unswizzle(stored, grid, padding="ignore" if "ignore" in (padding, container.padding) else "refuse")
    if container.word_order == "in-place":
        return stored.reshape(grid)
    return _exchanged(stored.reshape([grid[axis] for axis in stored_axes(scheme, len(grid))]), scheme)


@rule("POL-17")
def _regions_of(raw: npt.NDArray[np.uint8], scheme: Scheme) -> npt.NDArray[np.uint8]:
    """The bytes of blocks with their scale first as two regions, words and scales. Rule POL-17."""
    size = 0 if scheme.block is None else scheme.block.scale.size
    each = raw.reshape(-1, size + _block_bytes(scheme))
    return np.concatenate([each[:, size:].reshape(-1), each[:, :size].reshape(-1)])


def _raw(data: Buffer | npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    if isinstance(data, np.ndarray):
        if data.dtype != np.uint8 or data.ndim != 1:
            raise EncodingError(
                "LAY-1", f"data is {data.dtype} of shape {data.shape}; allowed: bytes or uint8 of one axis"
            )
        return np.ascontiguousarray(data)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise EncodingError("LAY-1", f"data is {type(data).__name__}; allowed: bytes-like or a uint8 array of one axis")
    return np.frombuffer(data if memoryview(data).contiguous else bytes(data), np.uint8)


@rule("LAY-2")
def _words(
    raw: npt.NDArray[np.uint8], scheme: Scheme, shape: tuple[int, ...], container: Container
) -> npt.NDArray[Any]:
    """Words from their bytes; the missing high bytes of a three-byte word are zero. Rule LAY-2."""
    size, dtype = scheme.store.word_bytes(scheme.value.bits), scheme.store.word_dtype(scheme.value.bits)
    stored = words_shape(scheme, shape, container)
    each = np.zeros((*stored, dtype.itemsize), np.uint8)
    each[..., :size] = raw.reshape(*stored, size)
    return _numbers(each.reshape(-1), dtype).reshape(stored)


def _numbers(raw: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Little-endian numbers from bytes at any alignment, in host order. Rule LAY-2."""
    return np.frombuffer(raw.tobytes(), dtype.newbyteorder("<")).astype(dtype)


@rule("LAY-6", "LAY-7")
def split(
    data: Buffer | npt.NDArray[np.uint8],
    scheme: Scheme | str,
    shape: Sequence[int],
    *,
    padding: Strictness = "refuse",
    ue4m3_bit7: Strictness = "refuse",
    recipe: Recipe | str = CANONICAL,
    container: Container | str = CANONICAL_CONTAINER,
    codec: Codec | str = CANONICAL_CODEC,
) -> Quantized:
    """Bytes to codes, scale codes and tensor scale code, for every scheme, in tensor axes. Rules LAY-1 to LAY-7.

    The result's `codes`, `scale_codes` and `tensor_scale_code` are the three parts. Raises as `from_bytes` and `unpack`.

    >>> q = split(bytes.fromhex("c2077f"), "e2m1.packed_native_0.b16-ue8m0", (3,))
    >>> q.codes.tolist(), q.scale_codes.tolist()
    ([2, 12, 7], [127])
    """
    packed = _read(data, Scheme.of(scheme), shape, padding, ue4m3_bit7, recipe, container, codec)
    return unpack(packed, padding=padding)
