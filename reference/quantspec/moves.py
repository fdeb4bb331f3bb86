"""Moves: what the layout operations share: axes, extents, refusals, codes in new places. Rules OPS-1, OPS-10, OPS-11."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .blocks import MOST_EXTENTS, Block
from .errors import LayoutError, ShapeError
from .scheme import Scheme
from .stores import Store
from .tensor import Quantized
from .tracing import rule

__all__ = ["axis_of", "extents_of", "is_whole", "moved", "refuse", "scheme_with"]


def extents_of(tensor: Quantized) -> tuple[int, ...]:
    """Extents on every axis; 1 everywhere without a block level, where no axis refuses."""
    rank = len(tensor.shape)
    return (1,) * rank if tensor.scheme.block is None else tensor.scheme.extents(rank)


def axis_of(axis: int, rank: int, argument: str = "axis") -> int:
    """An axis as a number from 0; negative ones count from the last."""
    if not is_whole(axis) or not -rank <= axis < rank:
        raise ShapeError("OPS-1", f"{argument}={axis!r}; allowed: an integer from {-rank} to {rank - 1} (rank {rank})")
    return int(axis) % rank


def is_whole(number: object) -> bool:
    """True for an integer of Python or numpy; a bool is none."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


@rule("OPS-11")
def refuse(rule_id: str, what: str) -> NoReturn:
    """Refuse what would not be made of the same codes and scales, pointing to requantize. Rule OPS-11."""
    raise LayoutError(rule_id, f"{what}; the codes and scales cannot be kept, use requantize (lossy)")


@rule("OPS-10")
def scheme_with(scheme: Scheme, extents: Sequence[int], d: int) -> Scheme:
    """The scheme with these extents on the axes and this packed axis. Rule OPS-10."""
    block = None
    if scheme.block is not None:
        kept = list(extents)
        while kept and kept[0] == 1:
            del kept[0]
        if len(kept) > MOST_EXTENTS:
            refuse("SCH-7", f"the result has {len(kept)} block extents {tuple(kept)}; allowed: at most {MOST_EXTENTS}")
        block = Block(tuple(kept), scheme.block.scale)
    store = Store(scheme.store.kind, d) if scheme.store.packed else scheme.store
    return Scheme(scheme.value, store, mode=scheme.mode, tensor=scheme.tensor, block=block, table=scheme.table)


@rule("OPS-1")
def moved(
    tensor: Quantized, scheme: Scheme, codes: npt.NDArray[np.uint8], scale_codes: npt.NDArray[Any] | None
) -> Quantized:
    """The tensor with its codes and scale codes in new places. Rule OPS-1."""
    return Quantized(scheme, codes, scale_codes, tensor.tensor_scale_code, tensor.recipe, codec=tensor.codec)
