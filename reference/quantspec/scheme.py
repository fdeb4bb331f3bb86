"""The scheme: what a quantized tensor's codes and scales mean. Rules SCH-1 to SCH-18.

A scheme is a value: frozen, in normal form, equal to any other way of writing the same thing.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from .errors import SchemeError, ShapeError
from .scales import SCALES, ScaleType, scale_type
from .stores import STORES, Store
from .tables import TABLES, Table
from .tracing import rule
from .values import VALUES, ValueFormat, table_for, value_format

__all__ = ["Block", "Scheme"]

Mode = Literal["symmetric", "lookup"]
LARGEST_EXTENT = 2**31 - 1
MOST_EXTENTS = 5


@dataclass(frozen=True, slots=True)
class Block:
    """Block extents, right-aligned to the trailing axes, leading 1s dropped, and the type of a block's scale."""

    extents: tuple[int, ...]
    scale: ScaleType

    @property
    def text(self) -> str:
        """The block as a scheme's text spells it; no extents left is `b1`, a scale an element."""
        return f"b{'x'.join(map(str, self.extents or (1,)))}-{self.scale.name}"


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
        chosen_block = None if block is None else _block(block)
        if tensor_type is None and chosen_block is None:
            tensor_type = SCALES["f32"]  # SCH-5
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
        return _Parser(text, [Table.of(table) for table in tables]).scheme()

    @classmethod
    def from_burn(cls, data: "str | Mapping[str, Any]", *, table: "Table | npt.ArrayLike | None" = None) -> "Scheme":
        """The scheme of upstream's JSON (text or the object read from it); a lookup scheme takes its table here. SCH-17."""
        return _from_burn(data, table)

    def to_burn(self) -> dict[str, Any]:
        """Upstream's JSON object, levels explicit. Refuses what upstream has no name for. Rule SCH-17."""
        return _to_burn(self)


def _mode(mode: str) -> Mode:
    if mode == "symmetric":
        return "symmetric"
    if mode == "lookup":
        return "lookup"
    _refuse_affine("mode", mode)
    raise SchemeError("SCH-4", f"mode={mode!r} is not a mode; allowed: symmetric, lookup")


def _refuse_affine(argument: str, value: object) -> None:
    """Refuse, by name, what would need a zero point. Rule POL-4."""
    if isinstance(value, str) and value.lower() in ("affine", "asymmetric", "zero_point"):
        raise SchemeError(
            "POL-4", f"{argument}={value!r}: a scheme has no zero point; allowed: symmetric, or lookup with a table"
        )


@rule("SCH-6", "SCH-7")
def _block(block: "Block | tuple[int | Sequence[int], str | ScaleType]") -> Block:
    """Extents in normal form: leading 1s dropped, at most five left, each 1 to 2^31-1. Rules SCH-5, SCH-6, SCH-7."""
    try:
        given, name = (block.extents, block.scale) if isinstance(block, Block) else block
    except (TypeError, ValueError):
        raise SchemeError(
            "SCH-6", f"block={block!r}; allowed: (extents, scale type), for example ((2, 16), 'f16')"
        ) from None
    scale = scale_type(name, argument="block scale")
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    for axis, extent in enumerate(listed):
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or not 1 <= extent <= LARGEST_EXTENT:
            raise SchemeError("SCH-6", f"block extent [{axis}]={extent!r}; allowed: an integer from 1 to 2^31-1")
    extents = [int(extent) for extent in listed if isinstance(extent, int | np.integer)]
    while extents and extents[0] == 1:
        del extents[0]
    if len(extents) > MOST_EXTENTS:
        raise SchemeError(
            "SCH-7", f"block={tuple(extents)} has {len(extents)} extents; allowed: at most {MOST_EXTENTS}"
        )
    return Block(tuple(extents), scale)


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


class _Parser:
    """Reads a scheme's text part by part; every failure has the position of its part. Rules SCH-15, SCH-16."""

    def __init__(self, text: str, tables: Sequence[Table]) -> None:
        if not isinstance(text, str):
            raise SchemeError("SCH-15", f"scheme text is {text!r}; allowed: a string")
        self.text = text
        self.tables = tables
        self.parts = text.split(".")
        self.next = 0

    @property
    def position(self) -> int:
        return min(sum(len(part) + 1 for part in self.parts[: self.next]), len(self.text))

    def fail(self, message: str, *, rule_id: str = "SCH-15") -> NoReturn:
        shown = self.text if len(self.text) <= 120 else self.text[:117] + "..."
        raise SchemeError(rule_id, f"scheme {shown!r}, position {self.position}: {message}", self.position)

    def take(self, prefix: str) -> str | None:
        """The next part without its prefix, if it has that prefix."""
        if self.next < len(self.parts) and self.parts[self.next].startswith(prefix):
            return self.parts[self.next].removeprefix(prefix)
        return None

    def scheme(self) -> Scheme:
        value = self.take("")
        if value not in VALUES:
            self.fail(f"{value!r} is not a value format; allowed: {', '.join(VALUES)}")
        self.next += 1
        store = self.take("")
        if store is None:
            self.fail("the store is missing; allowed: native, packed_native_d, packed_u32_d")
        try:
            chosen = Store.of(store)
        except SchemeError as error:
            formed = re.fullmatch(r"packed_(?:native|u32)_(?:0|[1-9][0-9]*)", store, flags=re.ASCII)
            self.fail(error.message, rule_id=error.rule if formed else "SCH-15")
        self.next += 1
        table = self.table(VALUES[value])
        block = self.block()
        tensor = self.take("t-")
        if tensor is not None:
            self.scale(tensor)
            self.next += 1
        if self.next < len(self.parts):
            self.fail(
                f"{self.parts[self.next]!r} may not stand here; a text is value.store[.lut-name][.bE(xE)*-type][.t-type]"
            )
        if block is None and tensor is None:
            self.fail("a scale level is missing; write .bE-type, .t-type or both, for example .t-f32")
        mode = "symmetric" if table is None else "lookup"
        return Scheme(value, chosen, mode=mode, tensor=tensor, block=block, table=table)

    def scale(self, name: str) -> None:
        if name not in SCALES:
            self.fail(f"{name!r} is not a scale type; allowed: {', '.join(SCALES)}")

    def block(self) -> tuple[tuple[int, ...], str] | None:
        part = self.take("b")
        if part is None:
            return None
        number = r"(?:0|[1-9][0-9]*)"
        match = re.fullmatch(rf"({number}(?:x{number})*)-(.*)", part, flags=re.ASCII)
        if match is None:
            self.fail(f"{'b' + part!r} is not a block; write bE(xE)*-type, extents without leading zeros")
        # a number of more digits than any legal extent has stands for one too large: int() of it could take for ever
        extents = tuple(int(extent) if len(extent) <= 10 else LARGEST_EXTENT + 1 for extent in match[1].split("x"))
        self.scale(match[2])
        if extents[0] == 1 and len(extents) > 1:
            self.fail(f"{'b' + part!r} has leading extents of 1; the one spelling drops them")
        try:
            _block((extents, match[2]))
        except SchemeError as error:
            self.fail(error.message, rule_id=error.rule)
        self.next += 1
        return extents, match[2]

    def table(self, value: ValueFormat) -> Table | None:
        name = self.take("lut-")
        if name is None:
            return None
        known = TABLES | {table.name: table for table in self.tables}
        if name not in known:
            self.fail(
                f"no table is named {name!r}; known here: {', '.join(known)} (pass tables= for one named by its digest)",
                rule_id="SCH-16",
            )
        try:
            found = table_for(known[name], value)
        except SchemeError as error:
            self.fail(error.message, rule_id=error.rule)
        self.next += 1
        return found


_BURN_STORES = {"native": "Native", "packed_native": "PackedNative", "packed_u32": "PackedU32"}
_BURN_MODES = {"symmetric": "Symmetric", "lookup": "Lookup"}
_BURN_KEYS = ("value", "store", "mode", "tensor", "block")


def _burn_fail(where: str, value: object, allowed: str) -> NoReturn:
    raise SchemeError("SCH-17", f"burn scheme: {where}={value!r}; allowed: {allowed}")


def _burn_member(where: str, value: object, names: Mapping[str, str]) -> str:
    for ours, theirs in names.items():
        if value == theirs:
            return ours
    _burn_fail(where, value, ", ".join(names.values()))


@rule("SCH-17")
def _from_burn(data: "str | Mapping[str, Any]", table: "Table | npt.ArrayLike | None") -> Scheme:
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise SchemeError("SCH-17", f"burn scheme is not JSON: {error}") from None
    if isinstance(data, Mapping) and set(data) == {"QFloat"}:
        data = data["QFloat"]
    if not isinstance(data, Mapping):
        _burn_fail("the scheme", data, "an object")
    if "level" in data or "param" in data:
        raise SchemeError(
            "SCH-17", "burn scheme has the keys level/param of before 2026-08-19; re-save it with tensor and block"
        )
    if not {"value", "store", "mode"} <= set(data) <= set(_BURN_KEYS):
        _burn_fail("its keys", sorted(map(str, data)), ", ".join(_BURN_KEYS))
    value = _burn_member("value", data["value"], {row.name: row.burn for row in VALUES.values() if row.burn})
    _refuse_affine("burn scheme: mode", data["mode"])
    mode = _burn_member("mode", data["mode"], _BURN_MODES)
    scales = {row.name: row.burn for row in SCALES.values()}
    tensor = None if data.get("tensor") is None else _burn_member("tensor", data["tensor"], scales)
    block = None if data.get("block") is None else _burn_block(data["block"], scales)
    return Scheme(value, _burn_store(data["store"]), mode=mode, tensor=tensor, block=block, table=table)


def _burn_store(store: object) -> str:
    if store == _BURN_STORES["native"]:
        return "native"
    if isinstance(store, Mapping) and len(store) == 1:
        ((kind, d),) = store.items()
        packed = {ours: theirs for ours, theirs in _BURN_STORES.items() if STORES[ours].packed}
        name = _burn_member("store", kind, packed)
        if isinstance(d, int) and not isinstance(d, bool) and 0 <= d < 2**31:
            return f"{name}_{d}"
    _burn_fail("store", store, '"Native", {"PackedNative": d}, {"PackedU32": d}')


def _burn_block(block: object, scales: Mapping[str, str]) -> tuple[tuple[int, ...], str]:
    shape = '{"size": {"storage": [extents, then 1s], "len": count}, "dtype": type}'
    if not isinstance(block, Mapping) or set(block) != {"size", "dtype"} or not isinstance(block["size"], Mapping):
        _burn_fail("block", block, shape)
    size = block["size"]
    storage, length = size.get("storage"), size.get("len")
    if (
        set(size) != {"storage", "len"}
        or not isinstance(storage, list)
        or not isinstance(length, int)
        or isinstance(length, bool)
    ):
        _burn_fail("block.size", size, shape)
    if not 0 <= length <= len(storage) <= MOST_EXTENTS:
        _burn_fail("block.size.len", length, f"0 to {MOST_EXTENTS}, at most the length of storage")
    for axis, extent in enumerate(storage[:length]):
        if not isinstance(extent, int) or isinstance(extent, bool) or not 1 <= extent <= 255:
            _burn_fail(f"block.size.storage[{axis}]", extent, "an integer from 1 to 255")
    return tuple(storage[:length]), _burn_member("block.dtype", block["dtype"], scales)


@rule("SCH-17")
def _to_burn(scheme: Scheme) -> dict[str, Any]:
    if scheme.value.burn is None:
        raise SchemeError(
            "SCH-17",
            f"value={scheme.value.name!r} has no name upstream; allowed: {', '.join(r.name for r in VALUES.values() if r.burn)}",
        )
    block = None
    if scheme.block is not None:
        for axis, extent in enumerate(scheme.block.extents):
            if extent > 255:
                raise SchemeError("SCH-17", f"block extent [{axis}]={extent}; upstream holds at most 255")
        filler = [1] * (MOST_EXTENTS - len(scheme.block.extents))
        size = {"storage": [*scheme.block.extents, *filler], "len": len(scheme.block.extents)}
        block = {"size": size, "dtype": scheme.block.scale.burn}
    kind = _BURN_STORES[scheme.store.kind]
    return {
        "value": scheme.value.burn,
        "store": {kind: scheme.store.d} if scheme.store.packed else kind,
        "mode": _BURN_MODES[scheme.mode],
        "tensor": None if scheme.tensor is None else scheme.tensor.burn,
        "block": block,
    }
