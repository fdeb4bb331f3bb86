"""numpy arrays as tensors of torch and back, for the peers that are made of torch. It is imported from the peer's environment."""

from typing import Any

import numpy as np

from .support import Array, codes_of, library

__all__ = ["array_of", "raw", "tensor_of"]

torch = library("torch")


def tensor_of(array: Array) -> Any:
    """A tensor of its own, contiguous, of the same type and shape."""
    return torch.from_numpy(np.array(array, order="C"))


def array_of(tensor: Any) -> Array:
    """The numbers of a tensor."""
    return np.asarray(tensor.contiguous().numpy())


def raw(tensor: Any) -> Array:
    """The patterns of a tensor, unsigned, also of types that numpy lacks."""
    same = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()]
    return codes_of(array_of(tensor.contiguous().view(same)))
