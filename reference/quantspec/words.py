"""Words: what codes are packed in, and the record that holds them. Rules PAK-1 to PAK-3, PAK-6, QNT-12.

Words are an array in stored order: the tensor's axes with the packed and the innermost exchanged, the last axis counting
the words of a line. A word of three bytes is held in a uint32.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import blocks
from .codecs import CANONICAL_CODEC, Codec
from .containers import CANONICAL_CONTAINER, Container, require_covered
from .errors import DtypeError, EncodingError, ShapeError
from .recipes import CANONICAL, Recipe
from .scales import ScaleCodes
from .scheme import Scheme
from .tensor import check_levels
from .tracing import note, rule

__all__ = ["WORD_BITS", "Packed", "Words", "check_words", "stored_axes", "word_count", "word_of", "words_shape"]

Words = npt.NDArray[Any]
WORD_BITS = 32  #: of a dense container


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
        object.__setattr__(self, "words", check_words(self.words, self.scheme, shape, self.container))
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


def word_of(scheme: Scheme) -> tuple[int, int, np.dtype[Any]]:
    """Codes a word, bits of a field and dtype of words."""
    bits = scheme.value.bits
    return scheme.store.codes_per_word(bits), scheme.store.field_bits(bits), scheme.store.word_dtype(bits)


def check_words(
    words: npt.ArrayLike, scheme: Scheme, shape: tuple[int, ...], container: Container = CANONICAL_CONTAINER
) -> Words:
    array = np.asarray(words)
    _, _, dtype = word_of(scheme)
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


def word_count(scheme: Scheme, shape: tuple[int, ...], container: Container = CANONICAL_CONTAINER) -> int:
    """Words of a tensor."""
    return math.prod(words_shape(scheme, shape, container))
