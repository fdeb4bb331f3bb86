"""Upstream's JSON form of a scheme (Burn, tracel-ai), read and written. Rules SCH-17, POL-4."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from .blocks import MOST_EXTENTS
from .errors import SchemeError
from .scales import SCALES
from .stores import STORES
from .tracing import rule
from .values import VALUES

if TYPE_CHECKING:
    from .scheme import Scheme

__all__ = ["read", "refuse_affine", "write"]


def refuse_affine(argument: str, value: object) -> None:
    """Refuse, by name, what would need a zero point. Rule POL-4."""
    if isinstance(value, str) and value.lower() in ("affine", "asymmetric", "zero_point"):
        raise SchemeError(
            "POL-4", f"{argument}={value!r}: a scheme has no zero point; allowed: symmetric, or lookup with a table"
        )


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
def read(data: "str | Mapping[str, Any]") -> dict[str, Any]:
    """Upstream's JSON as the arguments of a scheme, the table apart. Rule SCH-17."""
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
    refuse_affine("burn scheme: mode", data["mode"])
    mode = _burn_member("mode", data["mode"], _BURN_MODES)
    scales = {row.name: row.burn for row in SCALES.values()}
    tensor = None if data.get("tensor") is None else _burn_member("tensor", data["tensor"], scales)
    block = None if data.get("block") is None else _burn_block(data["block"], scales)
    return {"value": value, "store": _burn_store(data["store"]), "mode": mode, "tensor": tensor, "block": block}


def _burn_store(store: object) -> str:
    for ours, theirs in _BURN_STORES.items():
        if not STORES[ours].packed and store == theirs:
            return ours
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
def write(scheme: "Scheme") -> dict[str, Any]:
    """Upstream's JSON object of a scheme, levels explicit. Rule SCH-17."""
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
