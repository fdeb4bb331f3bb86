"""Matrices: a quantized tensor of two axes as the products read it, its words where they are."""

from dataclasses import dataclass

from quantspec import Codec, Recipe, Scheme

from .geometry import Shape, lines_of
from .host import DeviceArray
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["Matrix"]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Words or codes of a tensor, which is a matrix once its shape has been checked, and its scales."""

    scheme: Scheme
    shape: Shape
    words: DeviceArray
    word_size: int  #: bytes, in memory
    width: int  #: bits of a field
    fields: int  #: a word
    a_line: int  #: words a line
    along: bool  #: its lines run along the first axis
    scale_codes: DeviceArray | None
    tensor_scale_code: DeviceArray | None
    recipe: Recipe
    codec: Codec

    @classmethod
    def of_words(cls, packed: DevicePacked) -> "Matrix":
        """Of words as they are. Rules PAK-2 to PAK-4."""
        lines = lines_of(packed.scheme, packed.shape)
        return cls(
            *(packed.scheme, packed.shape, packed.words, lines.word_size, lines.width, lines.fields, lines.words),
            *(packed.scheme.store.d == 1, packed.scale_codes, packed.tensor_scale_code, packed.recipe, packed.codec),
        )

    @classmethod
    def of_codes(cls, tensor: DeviceQuantized) -> "Matrix":
        """Of codes, a byte each, in tensor order."""
        a_line = tensor.shape[-1] if tensor.shape else 1
        return cls(
            *(tensor.scheme, tensor.shape, tensor.codes, 1, 8, 1, a_line, False),
            *(tensor.scale_codes, tensor.tensor_scale_code, tensor.recipe, tensor.codec),
        )

    @property
    def lines(self) -> Shape:
        """As `code_at` of matrix.cl takes them."""
        return self.word_size, self.width, self.fields, self.a_line, int(self.along)
