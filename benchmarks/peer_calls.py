"""The worker of bench_peers.py: what is timed of each peer, in the peer's own environment, numpy and the peer alone imported.

    PYTHON peer_calls.py '{"call": "torchao_mx", "arguments": ["e4m3", "quantize", true], "elements": 16777216}'

It makes the data, prepares the call, calls it twice (which compiles what compiles) and writes one line of JSON: {"version",
"bytes"} (what a call returns, in bytes) or {"refused": why}. Then it answers each line "go" with the seconds of one call, until
its input ends. What libraries print goes to standard error.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Call = Callable[[], Any]
ROWS, COLUMNS = 128, 4096


def data(elements: int) -> Array:
    """Normal numbers in rows of COLUMNS, of which the first ROWS rows repeat; fewer elements make shorter rows."""
    rows = min(ROWS, max(elements // 256, 1))
    few = np.random.default_rng(0).standard_normal((rows, min(elements // rows, COLUMNS))).astype(np.float32)
    return np.tile(few, (max(elements // few.size, 1), 1))


def _torch() -> Any:
    torch = importlib.import_module("torch")
    torch.set_num_threads(os.cpu_count() or 1)
    return torch


def _compiled(function: Callable[..., Any], compiled: bool) -> Callable[..., Any]:
    return _torch().compile(function, dynamic=False) if compiled else function


def torchao_mx(x: Array, value: str, verb: str, compiled: bool) -> Call:
    """MX of its prototype, scales by RCEIL: the one mode that compiles."""
    torch, mx = _torch(), importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    kind = {"e4m3": torch.float8_e4m3fn, "e2m1": torch.float4_e2m1fn_x2}[value]
    to = _compiled(lambda given: mx.to_mx(given, kind, 32, mx.ScaleCalculationMode.RCEIL), compiled)
    given = torch.from_numpy(x)
    if verb == "quantize":
        return lambda: to(given)
    scales, codes = mx.to_mx(given, kind, 32, mx.ScaleCalculationMode.RCEIL)
    back = _compiled(lambda c, s: mx.to_dtype(c, s, kind, 32, torch.float32), compiled)
    raw = scales.view(torch.uint8)  # its own type of scales does not compile
    return lambda: back(codes, raw)


def torchao_nvfp4(x: Array, verb: str, compiled: bool) -> Call:
    """NVFP4 of its prototype, two levels."""
    torch, nv = _torch(), importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor")

    def both(given: Any) -> Any:
        level = nv.per_tensor_amax_to_scale(given.abs().max())
        return (*nv.nvfp4_quantize(given, 16, level), level)

    given = torch.from_numpy(x)
    if verb == "quantize":
        to = _compiled(both, compiled)
        return lambda: to(given)
    scales, codes, level = both(given)
    back = _compiled(lambda c, s, t: nv.NVFP4Tensor(c, s, 16, torch.float32, t).dequantize(torch.float32), compiled)
    return lambda: back(codes, scales, level)


def torchao_integer(x: Array, bits: int, verb: str, compiled: bool) -> Call:
    """Symmetric integers in blocks of 32, one to a byte."""
    torch, q = _torch(), importlib.import_module("torchao.quantization.quant_primitives")
    low, high, block = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, (1, 32)

    def both(given: Any) -> Any:
        how = (q.MappingType.SYMMETRIC, block, torch.int8, low, high)
        scale, zero = q.choose_qparams_affine(given, *how, scale_dtype=torch.float32)
        return q.quantize_affine(given, block, scale, zero, torch.int8, low, high), scale, zero

    given = torch.from_numpy(x)
    if verb == "quantize":
        to = _compiled(both, compiled)
        return lambda: to(given)
    codes, scale, zero = both(given)
    back = _compiled(lambda c, s, z: q.dequantize_affine(c, block, s, z, torch.int8, low, high), compiled)
    return lambda: back(codes, scale, zero)


def torch_cast(x: Array, value: str, verb: str) -> Call:
    """`Tensor.to` of its 8-bit floats."""
    torch = _torch()
    kind, given = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[value], torch.from_numpy(x)
    if verb == "quantize":
        return lambda: given.to(kind)
    codes = given.to(kind)
    return lambda: codes.to(torch.float32)


def torch_tensor(x: Array, verb: str) -> Call:
    """`quantize_per_tensor` with a given scale."""
    torch = _torch()
    given, scale = torch.from_numpy(x), float(np.abs(x).max() / 127)
    if verb == "quantize":
        return lambda: torch.quantize_per_tensor(given, scale, 0, torch.qint8)
    codes = torch.quantize_per_tensor(given, scale, 0, torch.qint8)
    return lambda: codes.dequantize()


def compressed(x: Array, value: str, scale: str, verb: str) -> Call:
    """As its compressors: scales of the groups, codes by its quantizer, packed where there are four bits."""
    torch, q = _torch(), importlib.import_module("compressed_tensors.quantization")
    helpers = importlib.import_module("compressed_tensors.quantization.utils.helpers")
    forward = importlib.import_module("compressed_tensors.quantization.lifecycle.forward")
    mx = importlib.import_module("compressed_tensors.compressors.mx_utils")
    nv = importlib.import_module("compressed_tensors.compressors.nvfp4.helpers")
    bits = {"e2m1": 4, "e4m3": 8, "q8s": 8, "q4s": 4}[value]
    width, how = (16, "tensor_group") if scale == "ue4m3" else (32, "group")
    kind = {"ue8m0": torch.uint8, "ue4m3": torch.float8_e4m3fn, "f32": None}[scale]
    args = q.QuantizationArgs(num_bits=bits, type="int" if value[0] == "q" else "float", symmetric=True, strategy=how,
                              group_size=width, scale_dtype=kind)  # fmt: skip
    target = {"q": torch.int8, "e": None}[value[0]]

    def both(given: Any) -> Any:
        groups = given.reshape(*given.shape[:-1], -1, width)
        level = helpers.generate_gparam(given.min(), given.max()) if scale == "ue4m3" else None
        made, zero = helpers.calculate_qparams(groups.amin(-1), groups.amax(-1), args, level)
        codes = forward.quantize(given, made, zero, args, target, level)
        codes = nv.pack_fp4_to_uint8(codes) if value == "e2m1" else codes.to(target or torch.float8_e4m3fn)
        stored = mx.compress_mx_scale(made, torch.uint8) if scale == "ue8m0" else made.to(kind or torch.float32)
        return (codes, stored) if level is None else (codes, stored, level)

    given = torch.from_numpy(x)
    if verb == "quantize":
        return lambda: both(given)
    codes, stored, *level = both(given)

    def back() -> Any:
        numbers = nv.unpack_fp4_from_uint8(codes, *x.shape, torch.float32) if value == "e2m1" else codes
        scales = mx.decompress_mx_scale(stored) if scale == "ue8m0" else stored
        return forward.dequantize(numbers, scales.float(), None, args, torch.float32, level[0] if level else None)

    return back


def bitsandbytes_4bit(x: Array, kind: str, width: int, verb: str) -> Call:
    """A table of 16 numbers in flat blocks with an f32 absmax."""
    torch, bnb = _torch(), importlib.import_module("bitsandbytes.functional")
    given = torch.from_numpy(x)
    if verb == "quantize":
        return lambda: bnb.quantize_4bit(given, blocksize=width, quant_type=kind)[0]
    codes, state = bnb.quantize_4bit(given, blocksize=width, quant_type=kind)
    return lambda: bnb.dequantize_4bit(codes, state)


def gguf_block(x: Array, kind: str, verb: str) -> Call:
    """Block structs of ggml, in numpy."""
    gguf = importlib.import_module("gguf")
    which = gguf.GGMLQuantizationType[kind]
    if verb == "quantize":
        return lambda: gguf.quantize(x, which)
    codes = gguf.quantize(x, which)
    return lambda: gguf.dequantize(codes, which)


def ml_dtypes_cast(x: Array, value: str, verb: str) -> Call:
    """numpy's astype with its types."""
    kind = getattr(importlib.import_module("ml_dtypes"), {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}[value])
    if verb == "quantize":
        return lambda: x.astype(kind)
    codes = x.astype(kind)
    return lambda: codes.astype(np.float32)


def _evaluated(mx: Any, made: Any) -> Any:
    """MLX is lazy: evaluated inside what is timed."""
    mx.eval(made)
    return made


def mlx_quantize(x: Array, mode: str, bits: int, width: int, verb: str) -> Call:
    """mx.quantize and mx.dequantize on its CPU backend."""
    mx = importlib.import_module("mlx.core")
    mx.set_default_device(mx.cpu)
    given = mx.array(x)
    level = {"global_scale": mx.abs(given).max()} if mode == "nvfp4" else {}
    if verb == "quantize":
        return lambda: _evaluated(mx, mx.quantize(given, width, bits, mode, **level))
    words, scales, *bias = mx.quantize(given, width, bits, mode, **level)
    mx.eval(words, scales, *bias)
    own, biases = ({"dtype": mx.float32}, None) if mode != "affine" else ({}, bias[0])
    return lambda: _evaluated(mx, mx.dequantize(words, scales, biases, width, bits, mode, **level, **own))


def mlx_cast(x: Array, verb: str) -> Call:
    """mx.to_fp8 and mx.from_fp8."""
    mx = importlib.import_module("mlx.core")
    mx.set_default_device(mx.cpu)
    given = mx.array(x)
    if verb == "quantize":
        return lambda: _evaluated(mx, mx.to_fp8(given))
    codes = mx.to_fp8(given)
    mx.eval(codes)
    return lambda: _evaluated(mx, mx.from_fp8(codes, mx.float32))


def jax_block(x: Array, mode: str) -> Call:
    """The private helper behind jax.nn.scaled_dot_general, compiled; it only quantizes."""
    jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
    helper = importlib.import_module("jax._src.cudnn.scaled_matmul_stablehlo")
    level = jnp.asarray([np.float32(np.abs(x).max() / (6 * 448))]) if mode == "nvfp4" else None
    config = jax.nn.get_scaled_dot_general_config(mode, global_scale=level)
    function, given = jax.jit(lambda each: helper.quantize(each, config)), jnp.asarray(x)
    return lambda: jax.block_until_ready(function(given))


def jax_cast(x: Array, value: str, verb: str) -> Call:
    """astype under jit."""
    jax, jnp = importlib.import_module("jax"), importlib.import_module("jax.numpy")
    kind = {"e4m3": jnp.float8_e4m3fn, "e5m2": jnp.float8_e5m2}[value]
    to, back, given = jax.jit(lambda a: a.astype(kind)), jax.jit(lambda a: a.astype(jnp.float32)), jnp.asarray(x)
    if verb == "quantize":
        return lambda: jax.block_until_ready(to(given))
    codes = jax.block_until_ready(to(given))
    return lambda: jax.block_until_ready(back(codes))


def onnxruntime_linear(x: Array, kind: str, width: int, verb: str) -> Call:
    """QuantizeLinear with scales that are given (0: one for the tensor), DequantizeLinear; Cast for a float."""
    onnx, ort = importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    types, helper = onnx.TensorProto, onnx.helper
    number, bits = getattr(types, kind), {"INT8": 8, "INT4": 4}.get(kind, 0)
    flat = x.reshape(len(x), -1, width) if width else x
    s = np.asarray(np.abs(flat).max(-1 if width else None) / np.float32(max(2**bits // 2 - 1, 1)), np.float32)
    blocks = {"axis": 1, "block_size": width} if width else {}

    def session(op: str, inputs: dict[str, tuple[int, Any]], out: int, **attributes: Any) -> Any:
        given = [helper.make_tensor_value_info(n, t, shape) for n, (t, shape) in inputs.items()]
        made = helper.make_tensor_value_info("y", out, x.shape)
        graph = helper.make_graph([helper.make_node(op, list(inputs), ["y"], **attributes)], "one", given, [made])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
        options = ort.SessionOptions()
        options.intra_op_num_threads = os.cpu_count() or 1
        return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def bound(made: Any, values: dict[str, Any]) -> Call:
        binding = made.io_binding()
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("y")
        return lambda: (made.run_with_iobinding(binding), binding.get_outputs())[1]

    given, scale = ort.OrtValue.ortvalue_from_numpy(x), ort.OrtValue.ortvalue_from_numpy(s)
    if not bits:
        to = bound(session("Cast", {"x": (types.FLOAT, x.shape)}, number, to=number), {"x": given})
        back: dict[str, Any] = {"x": (number, x.shape)}
        return to if verb == "quantize" else bound(session("Cast", back, types.FLOAT, to=types.FLOAT), {"x": to()[0]})
    inputs = {"x": (types.FLOAT, x.shape), "s": (types.FLOAT, s.shape)}
    to = bound(session("QuantizeLinear", inputs, number, output_dtype=number, **blocks), {"x": given, "s": scale})
    inputs = {"x": (number, x.shape), "s": (types.FLOAT, s.shape)}
    if verb == "quantize":
        return to
    return bound(session("DequantizeLinear", inputs, types.FLOAT, **blocks), {"x": to()[0], "s": scale})


def size_of(made: Any) -> int:
    """Bytes of what a call returned."""
    if hasattr(made, "tensor_size_in_bytes"):  # of ONNX Runtime
        return int(made.tensor_size_in_bytes())
    if hasattr(made, "nbytes"):
        return int(made.nbytes)
    return sum(size_of(each) for each in made) if isinstance(made, Iterable) else 0


_ALL = (torchao_mx, torchao_nvfp4, torchao_integer, torch_cast, torch_tensor, compressed, bitsandbytes_4bit,
        gguf_block, ml_dtypes_cast, mlx_quantize, mlx_cast, jax_block, jax_cast, onnxruntime_linear)  # fmt: skip
CALLS: dict[str, Callable[..., Call]] = {each.__name__: each for each in _ALL}


def prepared(request: dict[str, Any]) -> tuple[Call, dict[str, Any]]:
    """The call, warm, and what is said of it."""
    call = CALLS[request["call"]](data(request["elements"]), *request["arguments"])
    call()
    return call, {"version": version(request["package"]), "bytes": size_of(call())}


def main() -> None:
    """Prepare, say so, and answer."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        call, said = prepared(json.loads(sys.argv[1]))
    except Exception as error:  # whatever the library raises is the row's reason
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        print(json.dumps({"refused": f"{type(error).__name__}: {first}"[:300]}), file=answers)
        return
    print(json.dumps(said), file=answers)
    for line in sys.stdin:
        if line.strip() == "go":
            start = time.perf_counter()
            made = call()
            taken = time.perf_counter() - start
            del made  # outside what is timed
            print(repr(taken), file=answers)


if __name__ == "__main__":
    main()
