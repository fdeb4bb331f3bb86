"""Moves: what the layout operations share: axes, extents, refusals, numbers in new places. Rules OPS-1, OPS-10, OPS-11."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from quantspec import LayoutError, Packed, Quantized, Scheme, ShapeError
from quantspec.blocks import MOST_EXTENTS, Block, check_array_shape
from quantspec.recipes import require_canonical
from quantspec.stores import Store

from .fields import Fields, View
from .geometry import Shape
from .host import DeviceArray, Machine
from .packing import Strictness, require_readable, require_strictness, uploaded_words
from .placing import viewed
from .quantize import uploaded
from .tensors import DevicePacked, DeviceQuantized
from .values import check_codes

__all__ = [
    "Made",
    "Source",
    "Stored",
    "axis_of",
    "extents_of",
    "is_whole",
    "moved",
    "refuse",
    "scheme_with",
    "taken",
]

Stored = Quantized | Packed | DeviceQuantized | DevicePacked
Made = DeviceQuantized | DevicePacked


@dataclass(frozen=True, slots=True)
class Source:
    """A tensor on the device as an operation takes it: its codes' array, and how they lie there."""

    record: Made
    array: DeviceArray
    fields: Fields
    clean: bool = True  #: the bits that hold no code are known to be 0

    @property
    def shape(self) -> Shape:
        """The tensor's shape."""
        return self.fields.shape

    @property
    def scheme(self) -> Scheme:
        """The tensor's scheme."""
        return self.record.scheme

    @property
    def grid(self) -> Shape | None:
        """Shape of the scale grid, where there is a block level."""
        return None if self.record.scale_codes is None else self.record.scale_codes.shape

    def fields_of(self, scheme: Scheme, shape: Shape) -> Fields:
        """How the codes of a result lie: in words where the source's do."""
        if isinstance(self.record, DevicePacked):
            return Fields.of_words(scheme, shape)
        return Fields.of_numbers(shape, 1)


def taken(machine: Machine, tensor: Stored, padding: Strictness, *, argument: str = "tensor") -> Source:
    """A tensor that an operation may read: words as `unpack` reads them. Rules QNT-12, PAK-7, PAK-8, VAL-5."""
    if isinstance(tensor, Packed | DevicePacked):
        packed = uploaded_words(machine, tensor, argument=argument)
        require_canonical(container=packed.container)
        require_readable(machine, packed, padding)
        return Source(packed, packed.words, Fields.of_words(packed.scheme, packed.shape), padding == "refuse")
    quantized = uploaded(machine, tensor, argument=argument)
    require_strictness(padding)
    if quantized is not tensor:
        check_codes(quantized.codes, quantized.scheme.value, lookup=quantized.scheme.is_lookup)
    return Source(quantized, quantized.codes, Fields.of_numbers(quantized.shape, 1))


def extents_of(source: Source) -> Shape:
    """Extents on every axis; 1 everywhere without a block level, where no axis refuses."""
    rank = len(source.shape)
    return (1,) * rank if source.scheme.block is None else source.scheme.extents(rank)


def axis_of(axis: int, rank: int, argument: str = "axis") -> int:
    """An axis as a number from 0; negative ones count from the last."""
    if not is_whole(axis) or not -rank <= axis < rank:
        raise ShapeError("OPS-1", f"{argument}={axis!r}; allowed: an integer from {-rank} to {rank - 1} (rank {rank})")
    return int(axis) % rank


def is_whole(number: object) -> bool:
    """True for an integer of Python or numpy; a bool is none."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def refuse(rule_id: str, what: str) -> NoReturn:
    """Refuse what would not be made of the same codes and scales, pointing to requantize. Rule OPS-11."""
    raise LayoutError(rule_id, f"{what}; the codes and scales cannot be kept, use requantize (lossy)")


def scheme_with(scheme: Scheme, extents: Sequence[int], d: int) -> Scheme:
    """The scheme with these extents on the axes and this packed axis. Rule OPS-10."""
    block = None
    if scheme.block is not None:
        first = next((i for i, extent in enumerate(extents) if extent != 1), len(extents))
        kept = tuple(extents[first:])
        if len(kept) > MOST_EXTENTS:
            refuse("SCH-7", f"the result has {len(kept)} block extents {kept}; allowed: at most {MOST_EXTENTS}")
        block = Block(kept, scheme.block.scale)
    store = Store(scheme.store.kind, d) if scheme.store.packed else scheme.store
    return Scheme(scheme.value, store, mode=scheme.mode, tensor=scheme.tensor, block=block, table=scheme.table)


def moved(source: Source, scheme: Scheme, codes: View, scales: View | None) -> Made:
    """The tensor with its codes and scale codes in new places. Rules OPS-1, LAY-5, SCH-13, SCH-14."""
    record, shape = source.record, codes.shape
    check_array_shape(shape, argument="codes.shape")
    scheme.require_shape(shape)
    array = viewed(source.array, source.fields, source.fields_of(scheme, shape), codes, source.clean, _sign(scheme))
    grid = None
    if record.scale_codes is not None and scales is not None:
        size = record.scale_codes.dtype.itemsize
        kinds = Fields.of_numbers(record.scale_codes.shape, size), Fields.of_numbers(scales.shape, size)
        grid = viewed(record.scale_codes, *kinds, scales)
    return remade(record, scheme, shape, array, grid)


def remade(record: Made, scheme: Scheme, shape: Shape, array: DeviceArray, grid: DeviceArray | None) -> Made:
    """A record of the same kind: the tensor scale, recipe, codec and container stay; what saturated is not known."""
    policy = record.tensor_scale_code, record.recipe
    if isinstance(record, DevicePacked):
        return DevicePacked(scheme, shape, array, grid, *policy, record.container, codec=record.codec)
    return DeviceQuantized(scheme, array, grid, *policy, codec=record.codec)


def _sign(scheme: Scheme) -> int:
    """The bit that fills a byte where fields become bytes. Rule VAL-4."""
    return 0 if scheme.is_lookup or not scheme.value.is_integer else scheme.value.sign_bit
