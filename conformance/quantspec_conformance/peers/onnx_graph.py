"""One ONNX operator as a model, for the two peers that run such models."""

from collections.abc import Callable
from typing import Any

import numpy as np

from quantspec import Scheme

from .support import NUMPY, Array, Lacks, blocks_of, codes_of, library, pick, scalar

__all__ = ["NAMES", "SATURATE", "TYPES", "cast", "number", "quantize", "quantized"]

#: Our names -> those of ONNX.
TYPES = {"e4m3": "FLOAT8E4M3FN", "e5m2": "FLOAT8E5M2", "e2m1": "FLOAT4E2M1", "e2m3": "FLOAT6E2M3", "e3m2": "FLOAT6E3M2",
         "q8f": "INT8", "q4f": "INT4", "q2f": "INT2", "ue8m0": "FLOAT8E8M0", "f32": "FLOAT", "f16": "FLOAT16",
         "bf16": "BFLOAT16"}  # fmt: skip

#: numpy's types of inputs -> our names.
NAMES = {np.dtype(NUMPY[name]): name for name in ("f32", "f16", "bf16")}
#: Codec -> the attribute of Cast. Without saturation it is the codec of ml_dtypes by the tables of the operator.
SATURATE = {"canonical": 1, "ml-dtypes": 0}


def number(name: str) -> int:
    """The number that ONNX gives to a type of ours."""
    return int(getattr(library("onnx").TensorProto, pick(TYPES, name)))


def cast(x: Array, source: str, target: str, opset: int, **attributes: Any) -> Any:
    """Cast from one type of ours to another."""
    return _model("Cast", {"x": (source, x.shape)}, target, opset, to=number(target), **attributes)


def quantize(rows: Array, scale: Array, value: str, opset: int, **attributes: Any) -> Any:
    """QuantizeLinear of rows with a scale for each, or one for all of them."""
    blocks = {"axis": 1, "block_size": rows.shape[1]} if scale.ndim else {}
    inputs = {"x": (_name(rows), rows.shape), "s": (_name(scale), scale.shape)}
    return _model("QuantizeLinear", inputs, value, opset, output_dtype=number(value), **blocks, **attributes)


def quantized(
    x: Array, scheme: Scheme, scales: Array | None, tensor_scale: Array | None, opset: int, run: Callable[..., Array]
) -> dict[str, Array]:
    """The answer to `quantize` with a scale that is given. `run` has the model, the value format and the two arrays."""
    value = scheme.value.name
    if scheme.tensor is None and scheme.block is not None and scales is not None:
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme)
        rows, s = to_rows(x), scales.astype(pick(NUMPY, scheme.block.scale.name)).reshape(-1, 1)
        return {
            "codes": from_rows(run(quantize(rows, s, value, opset), value, rows, s)),
            "scale_codes": to_grid(codes_of(s)),
        }
    if scheme.block is not None or tensor_scale is None:
        raise Lacks("a scale that is not given: ONNX has no operator that chooses one for these types")
    s = scalar(tensor_scale, scheme)
    return {"codes": run(quantize(x, s, value, opset), value, x, s), "tensor_scale_code": codes_of(s)}


def _name(array: Array) -> str:
    for name in ("f32", "f16", "bf16", "ue8m0"):
        if array.dtype == np.dtype(NUMPY[name]):
            return name
    raise Lacks(f"x of {array.dtype}")


def _model(op: str, inputs: dict[str, tuple[str, tuple[int, ...]]], out: str, opset: int, **attributes: Any) -> Any:
    make = library("onnx.helper")
    given = [make.make_tensor_value_info(name, number(kind), shape) for name, (kind, shape) in inputs.items()]
    node = make.make_node(op, list(inputs), ["y"], **attributes)
    graph = make.make_graph([node], "one", given, [make.make_tensor_value_info("y", number(out), None)])
    return make.make_model(graph, opset_imports=[make.make_opsetid("", opset)], ir_version=11 if opset <= 24 else 13)
