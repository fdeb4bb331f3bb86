"""Layout operations that lie, each of which the comparison with the oracle must catch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import quantspec as qs

from ..bridge import Mismatch
from ..oracle import Shape
from ..steps import Operations, check_small


def stale_scales_of_flip(q: Any, axis: int) -> Any:
    return replace(qs.flip(q, axis), scale_codes=q.scale_codes)


def with_store(q: Any, store: Any) -> Any:
    """The same content under a scheme of another store."""
    s = q.scheme
    return replace(q, scheme=qs.Scheme(s.value, store, mode=s.mode, tensor=s.tensor, block=s.block, table=s.table))


def packed_axis_left_behind(q: Any, axes: Sequence[int]) -> Any:
    r = qs.permute(q, axes)
    return with_store(r, q.scheme.store)


def scales_left_behind(q: Any, axes: Sequence[int]) -> Any:
    r = qs.permute(q, axes)
    return r if r.scale_codes is None else replace(r, scale_codes=q.scale_codes.reshape(r.scale_codes.shape))


def inverse_permute(q: Any, axes: Sequence[int]) -> Any:
    return qs.permute(q, axes if sorted(axes) != list(range(q.codes.ndim)) else np.argsort(axes).tolist())


def slice_of_first_scales(q: Any, axis: int, start: int, stop: int) -> Any:
    """The codes of the slice with the scales from the first block on."""
    r = qs.slice_axis(q, axis, start, stop)
    if r.scale_codes is None:
        return r
    return replace(r, scale_codes=q.scale_codes[(slice(None),) * axis + (slice(0, r.scale_codes.shape[axis]),)])


def slice_anywhere(q: Any, axis: int, start: int, stop: int) -> Any:
    """A start inside a block, rounded down instead of refused."""
    try:
        return qs.slice_axis(q, axis, start, stop)
    except qs.LayoutError:
        e = q.scheme.extents(q.codes.ndim)[axis]
        return qs.slice_axis(q, axis, start // e * e, stop)


def packed_axis_kept(q: Any, axis: int, index: int) -> Any:
    """select with d = 0 always."""
    r = qs.select(q, axis, index)
    return with_store(r, f"{r.scheme.store.kind}_0")


def first_tensor_scale_wins(parts: Sequence[Any], axis: int) -> Any:
    first = parts[0]
    own = {"tensor_scale_code": first.tensor_scale_code}
    return qs.concatenate([replace(part, **own) if part.scheme == first.scheme else part for part in parts], axis)


def joined_with_stale_scales(parts: Sequence[Any], axis: int) -> Any:
    r = qs.concatenate(parts, axis)
    return r if r.scale_codes is None else replace(r, scale_codes=np.flip(r.scale_codes, axis))


def never_with_blocks(q: Any, shape: Shape) -> Any:
    if q.scheme.block is not None and tuple(shape) != q.shape:
        raise qs.LayoutError("OPS-9", "blocks")
    return qs.reshape(q, shape)


def always_innermost(q: Any, shape: Shape) -> Any:
    r = qs.reshape(q, shape)
    return with_store(r, f"{r.scheme.store.kind}_0")


def one_scale_for_all(q: Any, shape: Shape) -> Any:
    """expand that fills the new grid from its first entry."""
    r = qs.expand(q, shape)
    if r.scale_codes is None or r.scale_codes.size == 0:
        return r
    return replace(r, scale_codes=np.full_like(r.scale_codes, r.scale_codes.flat[0]))


def take_from_the_end(q: Any, axis: int, which: Sequence[int]) -> Any:
    return qs.take(q, axis, [min(i, q.shape[axis] - 1) for i in which] if axis < q.codes.ndim else which)


LIARS: dict[str, tuple[str, Operations]] = {
    "flip leaves the scales": ("flip", Operations(flip=stale_scales_of_flip)),
    "permute leaves the packed axis": ("permute", Operations(permute=packed_axis_left_behind)),
    "permute leaves the scales": ("permute", Operations(permute=scales_left_behind)),
    "permute is its inverse": ("permute", Operations(permute=inverse_permute)),
    "slice takes the first scales": ("slice", Operations(slice_axis=slice_of_first_scales)),
    "slice starts inside a block": ("slice", Operations(slice_axis=slice_anywhere)),
    "take stops at the last index": ("take", Operations(take=take_from_the_end)),
    "select forgets the packed axis": ("take", Operations(select=packed_axis_kept)),
    "expand uses one scale": ("expand", Operations(expand=one_scale_for_all)),
    "concatenate takes the first tensor scale": ("concatenate", Operations(concatenate=first_tensor_scale_wins)),
    "concatenate reverses the scales": ("concatenate", Operations(concatenate=joined_with_stale_scales)),
    "reshape refuses every block": ("reshape", Operations(reshape=never_with_blocks)),
    "reshape forgets the packed axis": ("reshape", Operations(reshape=always_innermost)),
}


@pytest.mark.parametrize("name", LIARS)
def test_an_operation_that_lies_is_caught(name: str) -> None:
    domain, operations = LIARS[name]
    with pytest.raises(Mismatch):
        check_small(domain, operations)


def test_a_stale_saturation_report_is_caught() -> None:
    def flip_with_report(q: Any, axis: int) -> Any:
        return replace(qs.flip(q, axis), saturation=qs.Saturation(1, (0,)))

    with pytest.raises(Mismatch):
        check_small("flip", Operations(flip=flip_with_report))
