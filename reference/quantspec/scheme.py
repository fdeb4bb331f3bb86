"""The scheme: what a quantized tensor's codes and scales mean. Rules SCH-1 to SCH-18.

A scheme is a value: frozen, in normal form, equal to any other way of writing the same thing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy.typing as npt

from . import burn
from .blocks import Block, normal_block
from .burn import refuse_affine
from .errors import SchemeError, ShapeError
from .scales import ScaleType, scale_type
from .schemetext import SchemeText
from .stores import Store
from .tables import Table
from .tracing import rule
from .values import ValueFormat, table_for, value_format

__all__ = ["Scheme"]

Mode = Literal["symmetric", "lookup"]


@dataclass(frozen=True, slots=True, init=False)
class Scheme:
    """`Scheme(value, store, mode=..., tensor=..., block=(extents, type), table=...)`, normalised. Rules SCH-1 to SCH-12.

    >>> Scheme("e2m1", "packed_native_0", block=((1, 16), "ue4m3"), tensor="f32").text
    'e2m1.packed_native_0.b16-ue4m3.t-f32'
    >>> Scheme("q8s") == Scheme.parse("q8s.native.t-f32")
    True
    """

    value: ValueFormat
    store: Store
    mode: Mode
    tensor: ScaleType | None
    block: Block | None
    table: Table | None

    @rule("SCH-1", "SCH-18")
    def __init__(
        self,
        value: str | ValueFormat,
        store: str | Store = "native",
        *,
        mode: str = "symmetric",
        tensor: str | ScaleType | None = None,
        block: "Block | tuple[int | Sequence[int], str | ScaleType] | None" = None,
        table: "Table | npt.ArrayLike | None" = None,
    ) -> None:
        """The normal form; checks in rule-id order, the first that fails raises SchemeError. Rules SCH-1, SCH-18."""
        row = value_format(value)
        chosen_store = Store.of(store)
        chosen_mode = _mode(mode)
        tensor_type = None if tensor is None else scale_type(tensor, argument="tensor")
        chosen_block = None if block is None else normal_block(block)
        if tensor_type is None and chosen_block is None:
            tensor_type = scale_type("f32")  # SCH-5
        entries = _table(chosen_mode, table, row)
        for name, part in (
            ("value", row),
            ("store", chosen_store),
            ("mode", chosen_mode),
            ("tensor", tensor_type),
            ("block", chosen_block),
            ("table", entries),
        ):
            object.__setattr__(self, name, part)

    @classmethod
    def of(cls, scheme: "Scheme | str") -> "Scheme":
        """A scheme, or the scheme of a text."""
        if isinstance(scheme, Scheme):
            return scheme
        if isinstance(scheme, str):
            return cls.parse(scheme)
        raise SchemeError("SCH-1", f"scheme={scheme!r}; allowed: a Scheme or the text of one")

    @property
    def is_lookup(self) -> bool:
        """True where codes are indices into the table."""
        return self.table is not None

    @property
    def half_range(self) -> Fraction:
        """H: what amax is divided by. Rule SCL-4."""
        return self.value.half_range if self.table is None else self.table.half_range

    @rule("SCH-13", "SCH-14")
    def require_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse a tensor shape whose rank the block or the packed axis does not fit. Rules SCH-13, SCH-14."""
        rank = len(shape)
        if self.block is not None and len(self.block.extents) > rank:
            raise ShapeError(
                "SCH-13", f"block={self.block.text} has rank {len(self.block.extents)}, the tensor {shape} has rank {rank}; "
                "allowed: at most the tensor's rank",
            )  # fmt: skip
        if self.store.d >= max(rank, 1):
            raise ShapeError(
                "SCH-14", f"store={self.store.text} packs axis {self.store.d} from the innermost, the tensor {shape} has rank "
                f"{rank}; allowed: d from 0 to {max(rank, 1) - 1}",
            )  # fmt: skip

    def extents(self, rank: int) -> tuple[int, ...]:
        """Block extents for a tensor of this rank: missing leading axes are 1. Rule BLK-1; the scheme has a block level."""
        if self.block is None:
            raise SchemeError("SCL-22", f"{self.text} has no block level")
        return (1,) * (rank - len(self.block.extents)) + self.block.extents

    def packed_axis(self, rank: int) -> int:
        """The axis that is packed, counted from the first; the innermost for `native`; 0 for a scalar's one line."""
        return max(rank, 1) - 1 - self.store.d

    @property
    @rule("SCH-15")
    def text(self) -> str:
        """The scheme's one spelling. Rules SCH-15, SCH-16."""
        parts = [self.value.name, self.store.text]
        if self.table is not None:
            parts.append(f"lut-{self.table.name}")
        if self.block is not None:
            parts.append(self.block.text)
        if self.tensor is not None:
            parts.append(f"t-{self.tensor.name}")
        return ".".join(parts)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Scheme.parse({self.text!r})"

    @classmethod
    def parse(cls, text: str, *, tables: Iterable["Table | npt.ArrayLike"] = ()) -> "Scheme":
        """The scheme of a text; `tables` are those that a digest in it may name. Rules SCH-15, SCH-16.

        Raises SchemeError with the position of the first character of the part that fails.
        """
        return cls(**SchemeText(text, [Table.of(table) for table in tables]).parts())

    @classmethod
    def from_burn(cls, data: "str | Mapping[str, Any]", *, table: "Table | npt.ArrayLike | None" = None) -> "Scheme":
        """The scheme of upstream's JSON (text or the object read from it); a lookup scheme takes its table here. SCH-17."""
        return cls(**burn.read(data), table=table)

    def to_burn(self) -> dict[str, Any]:
        """Upstream's JSON object, levels explicit. Refuses what upstream has no name for. Rule SCH-17."""
        return burn.write(self)


@rule("SCH-4")
def _mode(mode: str) -> Mode:
    if mode == "symmetric":
        return "symmetric"
    if mode == "lookup":
        return "lookup"
    refuse_affine("mode", mode)
    raise SchemeError("SCH-4", f"mode={mode!r} is not a mode; allowed: symmetric, lookup")


@rule("SCH-9")
def _table(mode: Mode, table: "Table | npt.ArrayLike | None", value: ValueFormat) -> Table | None:
    """The table of a lookup scheme, none otherwise. Rules SCH-8 to SCH-12."""
    if mode == "lookup" and not value.is_integer:
        raise SchemeError(
            "SCH-8", f"mode='lookup' with value={value.name!r}: a lookup index is the field of an integer format"
        )
    if mode == "symmetric" and table is not None:
        raise SchemeError("SCH-9", "table is given with mode='symmetric'; allowed: only with mode='lookup'")
    if mode == "lookup" and table is None:
        raise SchemeError("SCH-9", "mode='lookup' needs table=, an f32 array of 2^bits entries")
    return None if table is None else table_for(table, value)
