"""Packing: codes to words and back. Rules PAK-1 to PAK-8.

Words are an array in stored order: the tensor's axes with the packed and the innermost exchanged, the last axis counting
the words of a line. A word of three bytes is held in a uint32.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import blocks
from .codecs import CANONICAL_CODEC, Codec
from .containers import CANONICAL_CONTAINER, Container, moved_codes, places, require_covered
from .errors import DtypeError, EncodingError, ShapeError, UnsupportedError
from .recipes import CANONICAL, Recipe
from .scales import ScaleCodes
from .scheme import Scheme
from .tensor import Quantized, check_levels, require_record
from .tracing import note, rule
from .values import Codes, check_codes, extend

__all__ = ["Packed", "convert", "pack", "pack_codes", "unpack", "unpack_words", "words_shape"]

Words = npt.NDArray[Any]
WORD_BITS = 32  #: of a dense container
Strictness = Literal["refuse", "ignore"]


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A quantized tensor whose codes are packed in words; scale codes are in tensor axes. Rules PAK-1 to PAK-6, QNT-12."""

    scheme: Scheme
    shape: tuple[int, ...]
    words: Words
    scale_codes: ScaleCodes | None = None
    tensor_scale_code: ScaleCodes | None = None
    recipe: Recipe = CANONICAL
    container: Container = CANONICAL_CONTAINER
    codec: Codec = CANONICAL_CODEC

    @rule("QNT-12")
    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", Recipe.of(self.recipe))
        object.__setattr__(self, "container", Container.of(self.container))
        object.__setattr__(self, "codec", Codec.of(self.codec))
        object.__setattr__(self, "scheme", Scheme.of(self.scheme))
        shape = blocks.check_array_shape(self.shape)
        self.scheme.require_shape(shape)
        require_covered(self.container, self.scheme, shape)
        scale_codes, tensor_code = check_levels(self.scheme, shape, self.scale_codes, self.tensor_scale_code)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "words", _check_words(self.words, self.scheme, shape, self.container))
        object.__setattr__(self, "scale_codes", scale_codes)
        object.__setattr__(self, "tensor_scale_code", tensor_code)


def stored_axes(scheme: Scheme, rank: int) -> tuple[int, ...]:
    """The tensor's axes in stored order: the packed one exchanged with the innermost (not moved). Rule PAK-2."""
    axes = list(range(rank))
    if rank:
        packed = scheme.packed_axis(rank)
        axes[packed], axes[-1] = axes[-1], axes[packed]
    return tuple(axes)


@rule("PAK-1", "PAK-3", "PAK-6")
def words_shape(
    scheme: Scheme | str, shape: tuple[int, ...], container: Container | str = CANONICAL_CONTAINER
) -> tuple[int, ...]:
    """Shape of the words of a tensor: lines in stored order, ceil(L/n) words a line. Rules PAK-1, PAK-3, PAK-6, POL-15.

    >>> words_shape(Scheme.parse("q4s.packed_u32_1.t-f32"), (9, 5))
    (5, 2)
    """
    scheme, shape = Scheme.of(scheme), blocks.check_shape(shape)
    scheme.require_shape(shape)
    axes = stored_axes(scheme, len(shape))
    stored = [shape[axis] for axis in axes] or [1]
    container = Container.of(container)
    if container.word_order == "dense":
        note("POL-15")
        stored[-1] = -(-stored[-1] * scheme.value.bits // WORD_BITS)
        return tuple(stored)
    stored[-1] = -(-stored[-1] // scheme.store.codes_per_word(scheme.value.bits))
    if container.word_order == "in-place" and shape:
        note("POL-15")
        return tuple(stored[axis] for axis in axes)
    return tuple(stored)


@rule("PAK-2", "PAK-4", "PAK-5")
def pack_codes(codes: npt.ArrayLike, scheme: Scheme | str, container: Container | str = CANONICAL_CONTAINER) -> Words:
    """Words of codes (uint8, the tensor's shape): field i of a word at bits [i*w, (i+1)*w). Rules PAK-1 to PAK-6.

    A container other than the canonical one has fields and words of its own. Rules POL-14, POL-15.
    """
    scheme, container = Scheme.of(scheme), Container.of(container)
    require_covered(container, scheme, blocks.check_shape(np.shape(codes)))
    stored_shape = words_shape(scheme, blocks.check_shape(np.shape(codes)))
    checked = check_codes(codes, scheme.value, lookup=scheme.is_lookup)
    per_word, width, dtype = _word(scheme)
    axes = stored_axes(scheme, checked.ndim)
    lines = np.atleast_1d(checked.transpose(axes))
    if container != CANONICAL_CONTAINER:
        lines = moved_codes(lines, container, scheme.value.bits)
    if container.word_order == "dense":
        return _dense(lines, scheme.value.bits)
    padded = np.zeros((*stored_shape[:-1], stored_shape[-1] * per_word), dtype)
    padded[..., : lines.shape[-1]] = lines
    if container != CANONICAL_CONTAINER:
        padded = padded[..., places(container, padded.shape[-1], per_word, _extents(scheme))]
    fields = padded.reshape(*stored_shape, per_word) & dtype.type((1 << width) - 1)
    words = np.zeros(stored_shape, dtype)
    for i in range(per_word):
        words |= fields[..., i] << dtype.type(i * width)
    in_place = container.word_order == "in-place" and checked.ndim
    return np.ascontiguousarray(words.transpose(axes)) if in_place else words


@rule("POL-15")
def _dense(lines: npt.NDArray[np.uint8], width: int) -> Words:
    """Words of 32 bits of lines whose fields follow one another without a gap, lowest first. Rule POL-15."""
    bits = (lines[..., np.newaxis] >> np.arange(width, dtype=np.uint8)) & np.uint8(1)
    flat = bits.reshape(*lines.shape[:-1], lines.shape[-1] * width)
    room = -(-flat.shape[-1] // WORD_BITS) * WORD_BITS
    padded = np.zeros((*flat.shape[:-1], room), np.uint32)
    padded[..., : flat.shape[-1]] = flat
    each = padded.reshape(*flat.shape[:-1], room // WORD_BITS, WORD_BITS) << np.arange(WORD_BITS, dtype=np.uint32)
    return np.asarray(np.bitwise_or.reduce(each, axis=-1), np.uint32)


@rule("POL-15")
def _loose(words: Words, width: int, count: int) -> npt.NDArray[np.uint8]:
    """The inverse of `_dense`: `count` fields of each line. Rule POL-15."""
    bits = (words[..., np.newaxis] >> np.arange(WORD_BITS, dtype=np.uint32)) & np.uint32(1)
    flat = bits.reshape(*words.shape[:-1], words.shape[-1] * WORD_BITS)[..., : count * width]
    each = flat.reshape(*words.shape[:-1], count, width) << np.arange(width, dtype=np.uint32)
    return np.asarray(np.bitwise_or.reduce(each, axis=-1), np.uint8)


def _extents(scheme: Scheme) -> tuple[int, ...]:
    return () if scheme.block is None else scheme.block.extents


@rule("PAK-2", "PAK-4")
def unpack_words(
    words: npt.ArrayLike,
    scheme: Scheme | str,
    shape: tuple[int, ...],
    *,
    padding: Strictness = "refuse",
    container: Container | str = CANONICAL_CONTAINER,
) -> Codes:
    """Codes (uint8, tensor axes) of words in stored order. Rules PAK-1 to PAK-8, VAL-5.

    Non-zero padding fields and unused bits are refused, or ignored where `padding="ignore"`. Raises DtypeError,
    ShapeError, EncodingError, UnsupportedError.
    """
    if padding not in ("refuse", "ignore"):
        raise UnsupportedError("PAK-8", f"padding={padding!r}; allowed: 'refuse', 'ignore'")
    scheme, shape, container = Scheme.of(scheme), blocks.check_array_shape(shape), Container.of(container)
    require_covered(container, scheme, shape)
    checked = _check_words(words, scheme, shape, container)
    if container != CANONICAL_CONTAINER:
        return _codes_by(checked, scheme, shape, container, padding)
    per_word, width, dtype = _word(scheme)
    shifts = np.arange(per_word).astype(dtype) * dtype.type(width)
    fields = (checked[..., np.newaxis] >> shifts) & dtype.type((1 << width) - 1)
    axes = stored_axes(scheme, len(shape))
    stored_shape = tuple(shape[axis] for axis in axes) or (1,)
    lines = fields.reshape(*stored_shape[:-1], checked.shape[-1] * per_word).astype(np.uint8)
    if padding == "refuse":
        _require_clean(checked, scheme, stored_shape[-1])
    else:
        note("PAK-8")
    stored = lines[..., : stored_shape[-1]].reshape(tuple(shape[axis] for axis in axes))
    own = stored.transpose(axes)  # an exchange of two axes is its own inverse
    if width == scheme.value.bits:
        own = extend(own, scheme.value, lookup=scheme.is_lookup)
    return check_codes(own, scheme.value, lookup=scheme.is_lookup)


@rule("POL-14", "POL-15")
def _codes_by(words: Words, scheme: Scheme, shape: tuple[int, ...], container: Container, padding: Strictness) -> Codes:
    """Codes of the words of a container that is not canonical. Rules POL-14, POL-15, PAK-7."""
    per_word, width, dtype = _word(scheme)
    axes = stored_axes(scheme, len(shape))
    stored_shape = tuple(shape[axis] for axis in axes) or (1,)
    if container.word_order == "dense":
        lines = _loose(words, scheme.value.bits, stored_shape[-1])
    else:
        stored = words.transpose(axes) if container.word_order == "in-place" and shape else words
        shifts = np.arange(per_word).astype(dtype) * dtype.type(width)
        fields = (stored[..., np.newaxis] >> shifts) & dtype.type((1 << width) - 1)
        flat = fields.reshape(*stored_shape[:-1], stored.shape[-1] * per_word).astype(np.uint8)
        lines = np.empty_like(flat)
        lines[..., places(container, flat.shape[-1], per_word, _extents(scheme))] = flat
    lines = moved_codes(lines[..., : stored_shape[-1]], container, scheme.value.bits)
    own = lines.reshape(tuple(shape[axis] for axis in axes)).transpose(axes)
    if width == scheme.value.bits:
        own = extend(own, scheme.value, lookup=scheme.is_lookup)
    codes = check_codes(own, scheme.value, lookup=scheme.is_lookup)
    if padding == "refuse" and container.padding == "refuse":
        _require_same(words, pack_codes(codes, scheme, container), container)
    return codes


@rule("PAK-7")
def _require_same(words: Words, clean: Words, container: Container) -> None:
    """Refuse words with bits that hold no code and are not 0. Rule PAK-7."""
    dirty = words != clean
    if dirty.any():
        index = tuple(int(i) for i in np.argwhere(dirty)[0])
        raise EncodingError(
            "PAK-7",
            f"words{list(index)} is 0x{int(words[index]):X}, its codes give 0x{int(clean[index]):X} in container "
            f"{container.name!r}: bits that hold no code are not 0 (padding='ignore' reads them anyway)",
        )


def _word(scheme: Scheme) -> tuple[int, int, np.dtype[Any]]:
    """Codes a word, bits of a field and dtype of words."""
    bits = scheme.value.bits
    return scheme.store.codes_per_word(bits), scheme.store.field_bits(bits), scheme.store.word_dtype(bits)


def _check_words(
    words: npt.ArrayLike, scheme: Scheme, shape: tuple[int, ...], container: Container = CANONICAL_CONTAINER
) -> Words:
    array = np.asarray(words)
    _, _, dtype = _word(scheme)
    if array.dtype.newbyteorder("=") != dtype:
        raise DtypeError("PAK-1", f"words has dtype {array.dtype}; words of {scheme.text} are {dtype}")
    expected = words_shape(scheme, shape, container)
    if array.shape != expected:
        raise ShapeError(
            "LAY-4", f"words has shape {array.shape}; allowed: exactly {expected} for a tensor {shape} of {scheme.text}"
        )
    size = scheme.store.word_bytes(scheme.value.bits)
    largest = dtype.type((1 << 8 * size) - 1)
    outside = array > largest
    if outside.any():
        index = tuple(int(i) for i in np.argwhere(outside)[0])
        raise EncodingError(
            "PAK-1", f"words{list(index)} is 0x{int(array[index]):X}; words of {scheme.text} have {size} bytes"
        )
    return np.array(array, dtype, order="C", ndmin=array.ndim)


@rule("PAK-7")
def _require_clean(words: Words, scheme: Scheme, codes_a_line: int) -> None:
    """Refuse padding fields and unused bits that are not zero, with byte offset, line and field. Rule PAK-7."""
    per_word, width, dtype = _word(scheme)
    filled = np.clip(codes_a_line - per_word * np.arange(words.shape[-1]), 0, per_word)  # codes of each word of a line
    used = ((np.uint64(1) << (filled * width).astype(np.uint64)) - np.uint64(1)).astype(dtype)
    dirty = (words & ~used).reshape(-1)
    if dirty.any():
        word = int(np.argmax(dirty != 0))
        bit = (int(dirty[word]) & -int(dirty[word])).bit_length() - 1
        line, place = divmod(word, words.shape[-1])
        offset = word * scheme.store.word_bytes(scheme.value.bits) + bit // 8
        raise EncodingError(
            "PAK-7",
            f"byte {offset}: line {line}, word {place} of the line, field {bit // width} of the word: bits that hold no code "
            "are not 0 (padding='ignore' reads them anyway)",
        )


def pack(tensor: Quantized, *, container: Container | str = CANONICAL_CONTAINER) -> Packed:
    """A quantized tensor with its codes in words; scales unchanged. Rules PAK-1 to PAK-6, POL-14, POL-15.

    >>> from quantspec import quantize
    >>> q = quantize(np.float32([1, -2, 3, -7, 5]), "q4s.packed_u32_0.t-f32", tensor_scale=np.float32(1))
    >>> hex(pack(q).words[0])
    '0x593e1'
    """
    require_record(tensor, Quantized)
    container = Container.of(container)
    words = pack_codes(tensor.codes, tensor.scheme, container)
    return Packed(
        tensor.scheme,
        tensor.shape,
        words,
        tensor.scale_codes,
        tensor.tensor_scale_code,
        tensor.recipe,
        container,
        tensor.codec,
    )


def unpack(packed: Packed, *, padding: Strictness = "refuse") -> Quantized:
    """The inverse of `pack`; non-zero padding is refused or ignored. Rules PAK-1 to PAK-8, VAL-5."""
    require_record(packed, Packed, argument="packed")
    container = packed.container
    codes = unpack_words(packed.words, packed.scheme, packed.shape, padding=padding, container=container)
    levels = packed.scale_codes, packed.tensor_scale_code
    return Quantized(packed.scheme, codes, *levels, packed.recipe, codec=packed.codec)


@rule("POL-18")
def convert(packed: Packed, container: Container | str) -> Packed:
    """The same codes and scales in another container; converting back gives the same words. Rule POL-18.

    >>> from quantspec import quantize
    >>> q = quantize(np.float32([1, 2, -3]), "q4s.packed_native_0.t-f32", tensor_scale=np.float32(1))
    >>> [hex(word) for word in convert(pack(q), "high-nibble").words]
    ['0x12', '0xd0']
    """
    require_record(packed, Packed, argument="packed")
    return pack(unpack(packed), container=container)


def word_count(scheme: Scheme, shape: tuple[int, ...], container: Container = CANONICAL_CONTAINER) -> int:
    """Words of a tensor."""
    return math.prod(words_shape(scheme, shape, container))
