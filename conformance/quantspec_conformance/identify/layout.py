"""A question: one block, or one tensor of blocks where a scale of the whole tensor is chosen; and the tensors that ask it."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import Scheme

__all__ = ["Array", "Layout"]

Array = npt.NDArray[Any]
TENSOR_ELEMENTS = 32  #: of a tensor without blocks
BLOCKS = 8  #: of a tensor with a scale of its own beside those of its blocks


@dataclass(frozen=True, slots=True)
class Layout:
    """Questions are arrays of shape (count, blocks, size); how they lie in tensors."""

    scheme: Scheme

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of a block, at least two axes."""
        block = self.scheme.block
        listed = (TENSOR_ELEMENTS,) if block is None else block.extents or (1,)
        return (1, *listed) if len(listed) == 1 else tuple(listed)

    @property
    def size(self) -> int:
        """Elements of a block."""
        return math.prod(self.extents)

    @property
    def blocks(self) -> int:
        """Blocks of a question."""
        return BLOCKS if self.levels == 2 else 1

    @property
    def levels(self) -> int:
        """Levels of scales."""
        return (self.scheme.block is not None) + (self.scheme.tensor is not None)

    @property
    def together(self) -> bool:
        """True where many questions may be one tensor: no scale depends on all of it."""
        return self.scheme.tensor is None

    def tensor(self, blocks: Array) -> Array:
        """Blocks, (count, size), one under the other."""
        first, *rest = self.extents
        return np.ascontiguousarray(blocks.reshape(len(blocks) * first, *rest))

    def of_tensor(self, array: Array) -> Array:
        """The inverse of `tensor`."""
        return array.reshape(-1, self.size)

    def grid(self, count: int) -> tuple[int, ...]:
        """Shape of the block scales of so many blocks."""
        return (count, *(1 for _ in self.extents[1:]))
