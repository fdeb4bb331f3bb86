"""ONNX Runtime on CPU: Cast, and QuantizeLinear with scales that are given."""

import ctypes  # noqa: I001  (the one long import stays on few lines)

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers import onnx_graph as graph
from quantspec_conformance.peers.support import (
    Array, Lacks, Peer, codes_of, floats, from_nibbles, library, patterns, pick,
)  # fmt: skip

ort = library("onnxruntime")
ort.set_default_logger_severity(4)
OPSET = 24


class Adapter(Peer):
    name = "onnxruntime"
    values = ("e4m3", "e5m2", "q8f", "q4f")
    scales = ("f32",)
    levels = ("block", "tensor")
    policies = {"recipe": "onnx-qdq", "codec": "onnx, ml-dtypes"}  # noqa: RUF012
    ways = {"codec": ("onnx",), "recipe": ("onnx-qdq",)}  # noqa: RUF012

    def encode(self, x: Array, value: str, codec: str = "canonical") -> Array:
        how = pick(graph.SATURATE, codec)
        model = graph.cast(x, graph.NAMES.get(x.dtype, ""), self._float(value), OPSET, saturate=how)
        return self._run(model, value, x)

    def decode(self, codes: Array, value: str) -> Array:
        given = patterns(codes, self._float(value))
        return self._run(graph.cast(codes, value, "f32", OPSET), "f32", given, source=value)

    def quantize(
        self, x: Array, scheme: Scheme, scales: Array | None = None, tensor_scale: Array | None = None
    ) -> dict[str, Array]:
        return graph.quantized(floats(x, "f32"), scheme, scales, tensor_scale, OPSET, self._run)

    def _float(self, value: str) -> str:
        if value[0] == "q":
            raise Lacks(f"{value} alone")
        return value

    def _run(self, model: object, value: str, x: Array, s: Array | None = None, source: str = "") -> Array:
        make, given = ort.OrtValue.ortvalue_from_numpy_with_onnx_type, {"x": x} | ({} if s is None else {"s": s})
        kinds = {name: source or graph.NAMES[array.dtype] for name, array in given.items()}
        values = {n: make(codes_of(np.ascontiguousarray(a)), graph.number(kinds[n])) for n, a in given.items()}
        try:
            session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])  # type: ignore[attr-defined]
            made = session.run_with_ort_values(["y"], values)[0]
        except Exception as error:  # its classes are made at run time
            raise (Lacks("NOT_IMPLEMENTED") if "NOT_IMPLEMENTED" in str(error) else error) from error
        size = {"q4f": -(-x.size // 2), "f32": 4 * x.size}.get(value, x.size)
        data = np.frombuffer(ctypes.string_at(made.data_ptr(), size), "f4" if value == "f32" else "u1")
        if value == "q4f":  # two to a byte, the first in the low half; a code here is a byte with its sign
            data = ((from_nibbles(data)[: x.size].astype("i1") ^ 8) - 8).astype("i1").view("u1")
        return data.reshape(x.shape)
