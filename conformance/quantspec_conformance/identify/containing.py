"""The operations pack and to_bytes: which container, from codes that are all different enough."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from quantspec import Quantized, QuantspecError, to_bytes
from quantspec.containers import BIASES, CONTAINERS, FIELD_ORDERS, SCALE_LAYOUTS, STREAMS, WORD_ORDERS, Container
from quantspec.packing import pack_codes

from ..examples import DTYPES
from ..protocol.messages import Implementation, Ok, Request
from .asking import Budget, send, wire
from .layout import Array, Layout
from .single import judge_single
from .verdict import NONE, Nearest, PartFound

__all__ = ["identify_container"]

LINES, BLOCKS = 130, 6  #: more than a tile of 128 x 4 scales


def _ways(op: str) -> Iterator[tuple[Container, dict[str, str]]]:
    permutations = [one.fields for one in CONTAINERS.values() if one.fields]
    orders = [(order, ()) for order in FIELD_ORDERS if order != "permuted"] + [
        ("permuted", one) for one in permutations
    ]
    wide = op == "to_bytes"
    layouts, streams = SCALE_LAYOUTS if wide else SCALE_LAYOUTS[:1], STREAMS if wide else STREAMS[:1]
    for (order, fields), bias, words, layout, stream in product(orders, BIASES, WORD_ORDERS, layouts, streams):
        named = {"field order": order, "bias": bias, "word order": words}
        if wide:
            named |= {"scale layout": layout, "stream": stream}
        yield Container("found", order, bias, words, layout, stream, fields=fields), named


def identify_container(
    implementation: Implementation, layout: Layout, budget: Budget, op: str, named: str = ""
) -> PartFound | None:
    """The container of pack or to_bytes; None where it is not offered."""
    scheme, random = layout.scheme, np.random.default_rng(6)
    if scheme.is_lookup or (scheme.block is not None and len(scheme.block.extents) > 1):
        return None
    per = layout.size if scheme.block is not None else 32
    shape = (LINES, BLOCKS * per) if op == "to_bytes" else (4, 2 * per)
    fields = random.integers(0, 1 << scheme.value.bits, shape)
    codes = fields.astype(np.uint8)
    if scheme.value.is_integer and scheme.value.bits < 8:
        codes = np.where(fields & scheme.value.sign_bit, fields | (0xFF & ~scheme.value.mask), fields).astype(np.uint8)
    scales, tensor = None, None
    tensors = {"codes": wire(codes)}
    if scheme.block is not None:
        legal = scheme.block.scale.first_nan_code
        scales = random.integers(0, legal, (shape[0], shape[1] // per)).astype(scheme.block.scale.code_dtype)
        tensors["scale_codes"] = wire(scales)
    if scheme.tensor is not None:
        tensor = np.array(scheme.tensor.bias << scheme.tensor.mantissa_bits, scheme.tensor.code_dtype)
        tensors["tensor_scale_code"] = wire(tensor)
    if not budget.take(codes.size // layout.size if op == "pack" else 1):
        return None
    answer = send(implementation, Request(op, {"scheme": scheme.text}, tensors))
    name = "words" if op == "pack" else "bytes"
    if not isinstance(answer, Ok) or name not in answer.tensors:
        return None
    came = answer.tensors[name]
    got = np.array(came.patterns, np.uint64).astype(f"<u{DTYPES[came.dtype][1].itemsize}").tobytes()
    quantized = Quantized(scheme, codes, scales, tensor)
    labels: list[dict[str, str]] = []
    listed: list[bytes] = []
    for container, label in _ways(op):
        try:
            made = to_bytes(quantized, container=container) if op == "to_bytes" else _words(codes, layout, container)
        except QuantspecError:
            continue
        if made not in listed:
            labels.append(label)
            listed.append(made)
    fitting = [place for place, made in enumerate(listed) if len(made) == len(got)]
    if not fitting:
        part = PartFound(op, NONE, tried=len(got))
        part.nearest = [Nearest([{"bytes": str(len(made))}], 0, len(got), {}) for made in listed[:1]]
        return part
    predicted = np.stack([np.frombuffer(listed[place], np.uint8) for place in fitting])
    part = judge_single(
        op,
        [labels[place] for place in fitting],
        predicted,
        np.frombuffer(got, np.uint8),
        lambda place: (f"byte {place}",),
    )
    rows = [one.name for one in CONTAINERS.values() if _same(one, quantized, codes, layout, op, got)]
    part.ways = [way | {"container": " or ".join(rows)} if rows else way for way in part.ways]
    return part


def _words(codes: Array, layout: Layout, container: Container) -> bytes:
    words = pack_codes(codes, layout.scheme, container)
    return words.astype(words.dtype.newbyteorder("<")).tobytes()


def _same(container: Container, quantized: Quantized, codes: Array, layout: Layout, op: str, got: bytes) -> bool:
    try:
        made = to_bytes(quantized, container=container) if op == "to_bytes" else _words(codes, layout, container)
    except QuantspecError:
        return False
    return made == got
