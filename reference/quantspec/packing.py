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
from .errors import DtypeError, EncodingError, ShapeError, UnsupportedError
from .recipes import CANONICAL, CANONICAL_CONTAINER, Container, Recipe, require_canonical
from .scales import ScaleCodes
from .scheme import Scheme
from .tensor import Quantized, check_levels, require_record
from .tracing import note, rule
from .values import Codes, check_codes, extend

__all__ = ["Packed", "pack", "pack_codes", "unpack", "unpack_words", "words_shape"]

Words = npt.NDArray[Any]
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

    @rule("QNT-12")
    def __post_init__(self) -> None:
        require_canonical(recipe=self.recipe, container=self.container)
        object.__setattr__(self, "scheme", Scheme.of(self.scheme))
        shape = blocks.check_array_shape(self.shape)
        self.scheme.require_shape(shape)
        scale_codes, tensor_code = check_levels(self.scheme, shape, self.scale_codes, self.tensor_scale_code)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "words", _check_words(self.words, self.scheme, shape))
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
def words_shape(scheme: Scheme | str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the words of a tensor: lines in stored order, ceil(L/n) words a line. Rules PAK-1, PAK-3, PAK-6.

    >>> words_shape(Scheme.parse("q4s.packed_u32_1.t-f32"), (9, 5))
    (5, 2)
    """
    scheme, shape = Scheme.of(scheme), blocks.check_shape(shape)
    scheme.require_shape(shape)
    stored = [shape[axis] for axis in stored_axes(scheme, len(shape))] or [1]
    stored[-1] = -(-stored[-1] // scheme.store.codes_per_word(scheme.value.bits))
    return tuple(stored)


@rule("PAK-2", "PAK-4", "PAK-5")
def pack_codes(codes: npt.ArrayLike, scheme: Scheme | str) -> Words:
    """Words of codes (uint8, the tensor's shape): field i of a word at bits [i*w, (i+1)*w). Rules PAK-1 to PAK-6."""
    scheme = Scheme.of(scheme)
    stored_shape = words_shape(scheme, blocks.check_shape(np.shape(codes)))
    checked = check_codes(codes, scheme.value, lookup=scheme.is_lookup)
    per_word, width, dtype = _word(scheme)
    lines = np.atleast_1d(checked.transpose(stored_axes(scheme, checked.ndim)))
    padded = np.zeros((*stored_shape[:-1], stored_shape[-1] * per_word), dtype)
    padded[..., : lines.shape[-1]] = lines
    fields = padded.reshape(*stored_shape, per_word) & dtype.type((1 << width) - 1)
    words = np.zeros(stored_shape, dtype)
    for i in range(per_word):
        words |= fields[..., i] << dtype.type(i * width)
    return words


@rule("PAK-2", "PAK-4")
def unpack_words(
    words: npt.ArrayLike, scheme: Scheme | str, shape: tuple[int, ...], *, padding: Strictness = "refuse"
) -> Codes:
    """Codes (uint8, tensor axes) of words in stored order. Rules PAK-1 to PAK-8, VAL-5.

    Non-zero padding fields and unused bits are refused, or ignored where `padding="ignore"`. Raises DtypeError,
    ShapeError, EncodingError, UnsupportedError.
    """
    if padding not in ("refuse", "ignore"):
        raise UnsupportedError("PAK-8", f"padding={padding!r}; allowed: 'refuse', 'ignore'")
    scheme, shape = Scheme.of(scheme), blocks.check_array_shape(shape)
    checked = _check_words(words, scheme, shape)
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


def _word(scheme: Scheme) -> tuple[int, int, np.dtype[Any]]:
    """Codes a word, bits of a field and dtype of words."""
    bits = scheme.value.bits
    return scheme.store.codes_per_word(bits), scheme.store.field_bits(bits), scheme.store.word_dtype(bits)


def _check_words(words: npt.ArrayLike, scheme: Scheme, shape: tuple[int, ...]) -> Words:
    array = np.asarray(words)
    _, _, dtype = _word(scheme)
    if array.dtype.newbyteorder("=") != dtype:
        raise DtypeError("PAK-1", f"words has dtype {array.dtype}; words of {scheme.text} are {dtype}")
    expected = words_shape(scheme, shape)
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


def pack(tensor: Quantized, *, container: Container = CANONICAL_CONTAINER) -> Packed:
    """A quantized tensor with its codes in words; scales unchanged. Rules PAK-1 to PAK-6.

    >>> from quantspec import quantize
    >>> q = quantize(np.float32([1, -2, 3, -7, 5]), "q4s.packed_u32_0.t-f32", tensor_scale=np.float32(1))
    >>> hex(pack(q).words[0])
    '0x593e1'
    """
    require_record(tensor, Quantized)
    words = pack_codes(tensor.codes, tensor.scheme)
    return Packed(
        tensor.scheme, tensor.shape, words, tensor.scale_codes, tensor.tensor_scale_code, tensor.recipe, container
    )


def unpack(packed: Packed, *, padding: Strictness = "refuse") -> Quantized:
    """The inverse of `pack`; non-zero padding is refused or ignored. Rules PAK-1 to PAK-8, VAL-5."""
    require_record(packed, Packed, argument="packed")
    codes = unpack_words(packed.words, packed.scheme, packed.shape, padding=padding)
    return Quantized(packed.scheme, codes, packed.scale_codes, packed.tensor_scale_code, packed.recipe)


def word_count(scheme: Scheme, shape: tuple[int, ...]) -> int:
    """Words of a tensor."""
    return math.prod(words_shape(scheme, shape))
