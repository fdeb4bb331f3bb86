"""The rows of bench_peers.py: which peer is timed next to which scheme, by which call of peer_calls.py; what a peer lacks."""

from dataclasses import dataclass
from typing import Any

__all__ = ["DIRECTIONS", "FORMATS", "LACKS", "PEERS", "ROWS", "VERB", "Format", "Lack", "PeerRow", "cells", "verb_of"]

DIRECTIONS = ("quantize", "dequantize")
VERB = "<verb>"  #: in the arguments of a call: where it takes the direction
#: Peers that are timed; each is a row of peers.toml.
PEERS = ("torchao", "torch", "onnxruntime", "mlx", "gguf", "ml_dtypes", "bitsandbytes", "compressed-tensors", "jax")


@dataclass(frozen=True, slots=True)
class Format:
    """A format as we store it, and the bar: how many times the fastest peer's rate our kernels must have."""

    name: str
    scheme: str  #: or a value format, whose verbs are encode and decode
    bar: float | None = None


@dataclass(frozen=True, slots=True)
class PeerRow:
    """A call of a peer."""

    format: str
    peer: str
    call: str
    arguments: tuple[Any, ...]
    note: str = ""
    less: str = ""  #: what it leaves out that our verb does: then it does not count for the bar
    directions: tuple[str, ...] = DIRECTIONS


@dataclass(frozen=True, slots=True)
class Lack:
    """Formats that a peer has no call for."""

    peer: str
    formats: tuple[str, ...]
    reason: str
    directions: tuple[str, ...] = DIRECTIONS


FORMATS = (
    Format("mxfp4", "e2m1.packed_native_0.b32-ue8m0", 10),
    Format("mxfp8", "e4m3.native.b32-ue8m0", 10),
    Format("nvfp4", "e2m1.packed_native_0.b16-ue4m3.t-f32", 10),
    Format("int8", "q8s.native.b32-f32", 1),
    Format("int4", "q4s.packed_u32_0.b32-f16", 1),
    Format("int8 tensor", "q8s.native.t-f32", 1),
    Format("nf4", "q4f.packed_native_0.lut-nf4.b64-f32"),
    Format("e4m3 cast", "e4m3"),
)

_GIVEN = "scales given"
_QUANTIZE, _DEQUANTIZE = ("quantize",), ("dequantize",)

#: What is measured; a row added here is a row of the report for each direction.
ROWS = (
    PeerRow("mxfp4", "torchao", "torchao_mx", ("e2m1", VERB, True), "RCEIL, compiled"),
    PeerRow("mxfp4", "mlx", "mlx_quantize", ("mxfp4", 4, 32, VERB)),
    PeerRow("mxfp4", "gguf", "gguf_block", ("MXFP4", VERB)),
    PeerRow("mxfp4", "compressed-tensors", "compressed", ("e2m1", "ue8m0", VERB)),
    PeerRow("mxfp8", "torchao", "torchao_mx", ("e4m3", VERB, True), "RCEIL, compiled"),
    PeerRow("mxfp8", "mlx", "mlx_quantize", ("mxfp8", 8, 32, VERB)),
    PeerRow("mxfp8", "compressed-tensors", "compressed", ("e4m3", "ue8m0", VERB)),
    PeerRow("mxfp8", "jax", "jax_block", ("mxfp8",), "private helper, jit", directions=_QUANTIZE),
    PeerRow("nvfp4", "torchao", "torchao_nvfp4", (VERB, True), "two levels, compiled"),
    PeerRow("nvfp4", "mlx", "mlx_quantize", ("nvfp4", 4, 16, VERB), less="tensor scale given", directions=_QUANTIZE),
    PeerRow("nvfp4", "mlx", "mlx_quantize", ("nvfp4", 4, 16, VERB), directions=_DEQUANTIZE),
    PeerRow("nvfp4", "compressed-tensors", "compressed", ("e2m1", "ue4m3", VERB)),
    PeerRow("nvfp4", "jax", "jax_block", ("nvfp4",), "private helper, jit", "tensor scale given", _QUANTIZE),
    PeerRow("int8", "torchao", "torchao_integer", (8, VERB, True), "compiled"),
    PeerRow("int8", "onnxruntime", "onnxruntime_linear", ("INT8", 32, VERB), less=_GIVEN, directions=_QUANTIZE),
    PeerRow("int8", "onnxruntime", "onnxruntime_linear", ("INT8", 32, VERB), directions=_DEQUANTIZE),
    PeerRow("int8", "mlx", "mlx_quantize", ("affine", 8, 32, VERB), "with a bias"),
    PeerRow("int8", "gguf", "gguf_block", ("Q8_0", VERB)),
    PeerRow("int8", "compressed-tensors", "compressed", ("q8s", "f32", VERB)),
    PeerRow("int4", "torchao", "torchao_integer", (4, VERB, True), "compiled, a byte a code"),
    PeerRow("int4", "onnxruntime", "onnxruntime_linear", ("INT4", 32, VERB), less=_GIVEN, directions=_QUANTIZE),
    PeerRow("int4", "onnxruntime", "onnxruntime_linear", ("INT4", 32, VERB), directions=_DEQUANTIZE),
    PeerRow("int4", "mlx", "mlx_quantize", ("affine", 4, 32, VERB), "with a bias"),
    PeerRow("int4", "gguf", "gguf_block", ("Q4_0", VERB)),
    PeerRow("int4", "compressed-tensors", "compressed", ("q4s", "f32", VERB), "a byte a code"),
    PeerRow("int8 tensor", "torch", "torch_tensor", (VERB,), less=_GIVEN, directions=_QUANTIZE),
    PeerRow("int8 tensor", "torch", "torch_tensor", (VERB,), directions=_DEQUANTIZE),
    PeerRow("int8 tensor", "onnxruntime", "onnxruntime_linear", ("INT8", 0, VERB), less=_GIVEN, directions=_QUANTIZE),
    PeerRow("int8 tensor", "onnxruntime", "onnxruntime_linear", ("INT8", 0, VERB), directions=_DEQUANTIZE),
    PeerRow("nf4", "bitsandbytes", "bitsandbytes_4bit", ("nf4", 64, VERB)),
    PeerRow("e4m3 cast", "torch", "torch_cast", ("e4m3", VERB)),
    PeerRow("e4m3 cast", "onnxruntime", "onnxruntime_linear", ("FLOAT8E4M3FN", 0, VERB)),
    PeerRow("e4m3 cast", "mlx", "mlx_cast", (VERB,)),
    PeerRow("e4m3 cast", "ml_dtypes", "ml_dtypes_cast", ("e4m3", VERB)),
    PeerRow("e4m3 cast", "jax", "jax_cast", ("e4m3", VERB), "jit"),
)

_BLOCKS = ("mxfp4", "mxfp8", "nvfp4", "int8", "int4")

#: Every other pair of a peer and a format, with the reason.
LACKS = (
    Lack("torchao", ("int8 tensor",), "its per-tensor integers are those of torch, timed there"),
    Lack("torchao", ("nf4",), "its NF4Tensor scales the scales too: another format"),
    Lack("torchao", ("e4m3 cast",), "it casts with torch, timed there"),
    Lack("torch", (*_BLOCKS, "nf4"), "no blocks: quantize_per_tensor, quantize_per_channel and casts alone"),
    Lack("onnxruntime", ("mxfp4", "mxfp8", "nvfp4"), "its CPU provider has no E8M0 and no E2M1"),
    Lack("onnxruntime", ("nf4",), "no operator quantizes by a table"),
    Lack("mlx", ("int8 tensor",), "blocks of 16 to 128 alone"),
    Lack("mlx", ("nf4",), "no table formats"),
    Lack("gguf", ("mxfp8", "int8 tensor", "nf4", "e4m3 cast"), "no such block struct in ggml"),
    Lack("gguf", ("nvfp4",), "its numpy code writes no NVFP4, so there is nothing of its own to read"),
    Lack("ml_dtypes", (*_BLOCKS, "int8 tensor", "nf4"), "casts alone, no scales"),
    Lack("bitsandbytes", (*_BLOCKS, "int8 tensor", "e4m3 cast"), "its tables alone on CPU: nf4, fp4, an 8-bit map"),
    Lack("compressed-tensors", ("int8 tensor", "e4m3 cast"), "the same quantizer, timed in blocks"),
    Lack("compressed-tensors", ("nf4",), "no table formats"),
    Lack("jax", ("mxfp4", "int8", "int4", "int8 tensor", "nf4"), "no quantizer: its helper has mxfp8 and nvfp4"),
    Lack("jax", ("mxfp8", "nvfp4"), "its helper only quantizes", _DEQUANTIZE),
)


def verb_of(form: Format, direction: str) -> str:
    """The verb of ours that a direction of a format is timed by."""
    casts = {"quantize": "encode", "dequantize": "decode"}
    return casts[direction] if "." not in form.scheme else f"{direction}_packed"


def cells() -> list[tuple[Format, str, PeerRow | Lack]]:
    """Every format, direction and peer, in the order of the report: with its row, or with what it lacks."""
    found: list[tuple[Format, str, PeerRow | Lack]] = []
    for form in FORMATS:
        for direction in DIRECTIONS:
            rows = [row for row in ROWS if row.format == form.name and direction in row.directions]
            lacks = [each for each in LACKS if form.name in each.formats and direction in each.directions]
            both: list[PeerRow | Lack] = [*rows, *lacks]
            found += [(form, direction, each) for each in both]
    return found
