"""The ONNX reference evaluator: Cast, and QuantizeLinear with scales that are given."""

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers import onnx_graph as graph
from quantspec_conformance.peers.support import MINIFLOATS, Array, Lacks, Peer, codes_of, library, patterns, pick

evaluator = library("onnx.reference").ReferenceEvaluator
OPSET = 25


class Adapter(Peer):
    name = "onnx"
    values = (*MINIFLOATS, "q8f", "q4f", "q2f")
    scales = ("ue8m0", "f32")
    levels = ("block", "tensor")
    policies = {"recipe": "onnx-qdq", "codec": "onnx, ml-dtypes"}  # noqa: RUF012
    ways = {"codec": ("onnx",), "recipe": ("onnx-qdq",)}  # noqa: RUF012

    def encode(self, x: Array, value: str, codec: str = "canonical") -> Array:
        self._minifloat(value)
        how = pick(graph.SATURATE, codec)
        return codes_of(self._run(graph.cast(x, graph.NAMES.get(x.dtype, ""), value, OPSET, saturate=how), "", x))

    def decode(self, codes: Array, value: str) -> Array:
        self._minifloat(value)
        return self._run(graph.cast(codes, value, "f32", OPSET), "", patterns(codes, value))

    def encode_scale(self, x: Array, type: str, rounding: str, codec: str = "canonical") -> Array:
        if type != "ue8m0" or rounding not in ("up", "nearest"):
            raise Lacks(f"encode_scale:{type}:{rounding}")
        how = {"saturate": pick(graph.SATURATE, codec), "round_mode": rounding}
        return codes_of(self._run(graph.cast(x, graph.NAMES.get(x.dtype, ""), type, OPSET, **how), "", x))

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        if type != "ue8m0":
            raise Lacks(f"decode_scale:{type}")
        return self._run(graph.cast(scale_codes, type, "f32", OPSET), "", patterns(scale_codes, type))

    def quantize(
        self, x: Array, scheme: Scheme, scales: Array | None = None, tensor_scale: Array | None = None
    ) -> dict[str, Array]:
        return graph.quantized(x, scheme, scales, tensor_scale, OPSET, self._run)

    def _minifloat(self, value: str) -> None:
        if value not in MINIFLOATS:
            raise Lacks(f"{value} alone: its Cast truncates integers")

    def _run(self, model: object, value: str, x: Array, s: Array | None = None) -> Array:
        made = np.asarray(evaluator(model).run(None, {"x": x} | ({} if s is None else {"s": s}))[0])
        if not value:
            return made
        return codes_of(made.astype("i1") if value[0] == "q" else made)
