"""Packing: codes to words (`words` has their shape and record) and back. Rules PAK-1 to PAK-8."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from . import blocks
from .containers import CANONICAL_CONTAINER, Container, moved_codes, places, require_covered
from .errors import EncodingError, UnsupportedError
from .scheme import Scheme
from .tensor import Quantized, require_record
from .tracing import note, rule
from .values import Codes, check_codes, extend
from .words import WORD_BITS, Packed, Words, check_words, stored_axes, word_of, words_shape

__all__ = ["convert", "pack", "pack_codes", "unpack", "unpack_words"]

Strictness = Literal["refuse", "ignore"]


@rule("PAK-2", "PAK-4", "PAK-5")
def pack_codes(codes: npt.ArrayLike, scheme: Scheme | str, container: Container | str = CANONICAL_CONTAINER) -> Words:
    """Words of codes (uint8, the tensor's shape): field i of a word at bits [i*w, (i+1)*w). Rules PAK-1 to PAK-6.

    A container other than the canonical one has fields and words of its own. Rules POL-14, POL-15.
    """
    scheme, container = Scheme.of(scheme), Container.of(container)
    require_covered(container, scheme, blocks.check_shape(np.shape(codes)))
    stored_shape = words_shape(scheme, blocks.check_shape(np.shape(codes)))
    checked = check_codes(codes, scheme.value, lookup=scheme.is_lookup)
    per_word, width, dtype = word_of(scheme)
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
    checked = check_words(words, scheme, shape, container)
    if container != CANONICAL_CONTAINER:
        return _codes_by(checked, scheme, shape, container, padding)
    per_word, width, dtype = word_of(scheme)
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
    per_word, width, dtype = word_of(scheme)
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


@rule("PAK-7")
def _require_clean(words: Words, scheme: Scheme, codes_a_line: int) -> None:
    """Refuse padding fields and unused bits that are not zero, with byte offset, line and field. Rule PAK-7."""
    per_word, width, dtype = word_of(scheme)
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
