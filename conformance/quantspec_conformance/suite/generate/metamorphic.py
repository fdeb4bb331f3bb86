"""One block in many places: alone, in the middle, at the tail, along another axis, in a long tensor. Its codes are the same."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from quantspec import VALUES, Scheme, ValueFormat

from .common import (
    Ask,
    Place,
    Plan,
    data_for,
    f32,
    positives,
    rng_of,
    scheme_request,
    slug_of,
)

__all__ = ["PLACES", "metamorphic_plans"]

BLOCK = 16
#: Name of a place -> shape, the axis that the blocks lie along, and the index of the block's first element.
PLACES: dict[str, tuple[tuple[int, ...], int, tuple[int, ...]]] = {
    "alone": ((16,), 0, (0,)),
    "middle": ((3, 48), 1, (1, 16)),
    "tail": ((2, 3, 48), 2, (1, 2, 32)),
    "before-a-partial": ((2, 37), 1, (1, 16)),
    "columns": ((48, 5), 0, (16, 3)),
    "middle-axis": ((3, 32, 5), 1, (2, 16, 4)),
    "long": ((2, 272), 1, (1, 256)),
}
SCALES_OF = ("b16-ue8m0", "b16-f16", "b16-ue4m3.t-f32")


def metamorphic_plans() -> Iterator[Plan]:
    """A suite for each value."""
    for row in VALUES.values():
        yield positives(Place(row.name, "quantize", "batch-shape", 1), partial(_asks, row))


def _asks(row: ValueFormat) -> Iterator[Ask]:
    for levels in SCALES_OF:
        tag = f"metamorphic:{row.name}-{slug_of(levels)}"
        plain = Scheme.parse(f"{row.name}.native.{levels}")
        block = data_for(tag, "ties", (BLOCK,), plain).array().view(np.uint32)
        for name, (shape, axis, origin) in PLACES.items():
            after = "x1" * (len(shape) - 1 - axis)
            store = "native" if name == "alone" else f"packed_u32_{len(shape) - 1 - axis}"
            scheme = Scheme.parse(f"{row.name}.{store}.{levels.replace('b16', f'b16{after}')}")
            around = rng_of(f"{tag}.{name}").normal(shape).view(np.uint32)
            around[tuple(slice(i, i + BLOCK) if k == axis else slice(i, i + 1) for k, i in enumerate(origin))] = (
                block.reshape(tuple(BLOCK if k == axis else 1 for k in range(len(shape))))
            )
            words, table = scheme_request(scheme)
            given = {"x": f32(around, shape), **table}
            if scheme.tensor is not None:
                given["tensor_scale"] = f32([0x3C000000], ())
            yield Ask(
                slug=f"{name}",
                title=f"{scheme.text}: the block of {tag.removeprefix('metamorphic:')}, {name.replace('-', ' ')}",
                words=words,
                tensors=given,
                bugs=("block-index", "axis", "partial-block"),
                part=slug_of(scheme.text),
                provenance=tag,
            )
