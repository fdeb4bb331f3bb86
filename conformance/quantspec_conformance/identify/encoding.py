"""The operation encode by itself: which codec, from ties, ends and NaNs of both signs."""

import numpy as np

from quantspec import QuantspecError, Scheme
from quantspec.codecs import CODECS
from quantspec.following import facts_of
from quantspec.values import encode_bits

from ..protocol.messages import Implementation, Ok, Request
from .asking import Budget, send, wire
from .axes import codec_ways, nan_ways
from .layout import Array, Layout
from .pool import beside, ties_of
from .single import judge_single
from .verdict import PartFound

__all__ = ["identify_encode"]


def probe(layout: Layout) -> Array:
    """Patterns on which codecs differ."""
    ties = np.abs(ties_of(layout)).astype(np.float32).view(np.uint32)
    magnitude = np.unique(
        np.concatenate([beside(ties), np.array([0, 1, 0x7F7FFFFF, 0x7F800000, 0x7FC00000], np.uint32)])
    )
    return np.concatenate([magnitude, magnitude | np.uint32(0x80000000)])


def _domains(x: Array, scheme: Scheme) -> dict[str, tuple[Array, str]]:
    """Where codecs are known to leave their rules: NaN, and what is beyond the range."""
    magnitude = np.ascontiguousarray(x & np.uint32(0x7FFFFFFF)).view(np.float32)
    return {
        "NaN": (np.isnan(magnitude), "NaN"),
        "beyond": (magnitude > float(facts_of(scheme).largest), "numbers above the largest of the format, infinities"),
    }


def identify_encode(
    implementation: Implementation, layout: Layout, budget: Budget, op: str, named: str = ""
) -> PartFound | None:
    """The codec of encode; None where it is not offered."""
    scheme = layout.scheme
    x = probe(layout)
    tensors = {"x": wire(x, "f32")}
    if scheme.table is not None:
        tensors["table"] = wire(np.asarray(scheme.table.entries).view(np.uint32), "f32")
    if not budget.take(-(-len(x) // layout.size)):
        return None
    answer = send(implementation, Request(op, {"value": scheme.value.name}, tensors))
    if not isinstance(answer, Ok) or "codes" not in answer.tensors:
        return None
    got = np.array(answer.tensors["codes"].patterns, np.int64)
    if got.size != len(x):
        return None
    labels: list[dict[str, str]] = []
    predicted: list[Array] = []
    for base in codec_ways(scheme):
        for way in nan_ways(scheme, base.codec):
            labels.append(dict(base.ways) | dict(way.ways))
            predicted.append(encode_bits(x, scheme.value, scheme.table, way.codec).astype(np.int64))
    shown = lambda place: (f"{int(x[place]):08X}",)  # noqa: E731
    part = judge_single("encode", labels, np.stack(predicted), got, shown, domains=_domains(x, scheme))
    rows = []
    for name, codec in CODECS.items():
        try:
            own = encode_bits(x, scheme.value, scheme.table, codec)
        except QuantspecError:
            continue
        if np.array_equal(own, got):
            rows.append(name)
    part.ways = [way | {"codec": " or ".join(rows)} if rows else way for way in part.ways]
    return part
