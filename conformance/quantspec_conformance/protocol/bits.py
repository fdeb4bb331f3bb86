"""Tensors as the wires carry them: an array of patterns that becomes a tuple of numbers only where somebody asks for it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..examples import DTYPES, Tensor
from .limits import check_shape
from .messages import ProtocolError, check_dtype

__all__ = ["Bits", "bits_of"]

Unsigned = npt.NDArray[Any]


class Bits(Tensor):
    """A tensor over an array of unsigned integers as wide as its patterns. Equal to the Tensor of the same patterns."""

    __slots__ = ("_bits", "_made")
    _bits: Unsigned
    _made: tuple[int, ...] | None

    def __init__(self, dtype: str, shape: tuple[int, ...], patterns: Sequence[int] | Unsigned) -> None:
        bits = np.array(patterns, f"u{DTYPES[dtype][1].itemsize}", order="C").reshape(shape)
        self._keep(dtype, shape, bits)

    @classmethod
    def over(cls, dtype: str, shape: tuple[int, ...], bits: Unsigned) -> "Bits":
        """A tensor over memory that nobody else will write to, without a copy; native byte order, row-major."""
        self = cls.__new__(cls)
        self._keep(dtype, shape, bits.reshape(shape))
        return self

    def _keep(self, dtype: str, shape: tuple[int, ...], bits: Unsigned) -> None:
        bits.flags.writeable = False
        for name, content in (("dtype", dtype), ("shape", shape), ("_bits", bits), ("_made", None)):
            object.__setattr__(self, name, content)

    @property
    def patterns(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The patterns in row-major order."""
        made = self._made
        if made is None:
            made = tuple(self._bits.reshape(-1).tolist())
            object.__setattr__(self, "_made", made)
        return made

    @property
    def unsigned(self) -> Unsigned:
        """The patterns as an array, not to be written to."""
        return self._bits

    def array(self) -> npt.NDArray[Any]:
        """The numbers as an array of the dtype, not to be written to."""
        return self.unsigned.view(DTYPES[self.dtype][1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        if (self.dtype, self.shape) != (other.dtype, other.shape):
            return False
        if isinstance(other, Bits):
            return bool(np.array_equal(self.unsigned, other.unsigned))
        return self.patterns == other.patterns

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape, self.patterns))


def bits_of(tensor: Tensor, what: str) -> Unsigned:
    """The patterns of a tensor as an array. ProtocolError for one that no wire can carry."""
    check_dtype(tensor.dtype)
    count = check_shape(tensor.shape, what)
    if isinstance(tensor, Bits):
        return tensor.unsigned
    if len(tensor.patterns) != count:
        raise ProtocolError(f"{what} has {len(tensor.patterns)} patterns for shape {tensor.shape}")
    width = DTYPES[tensor.dtype][1].itemsize
    try:
        return np.array(tensor.patterns, f"u{width}").reshape(tensor.shape)
    except (OverflowError, TypeError, ValueError):
        raise ProtocolError(f"{what} has a pattern that is no whole number of {8 * width} bits") from None
