"""The rows of bench_kernels.py: which schemes and verbs are measured, on what."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import quantspec as qs
import quantspec_cl as qc

COLUMNS = 4096

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One measurement: a scheme, a verb, and the type of the numbers."""

    name: str
    scheme: str
    verb: str
    dtype: str = "f32"


#: What is measured; a row added here is a row of the report.
ROWS = (
    Row("mxfp4", "e2m1.packed_native_0.b32-ue8m0", "dequantize_packed"),
    Row("mxfp4 u32", "e2m1.packed_u32_0.b32-ue8m0", "dequantize_packed"),
    Row("mxfp4 codes", "e2m1.native.b32-ue8m0", "dequantize"),
    Row("mxfp4 f16", "e2m1.packed_native_0.b32-ue8m0", "dequantize_packed", "f16"),
    Row("mxfp4 bf16", "e2m1.packed_native_0.b32-ue8m0", "dequantize_packed", "bf16"),
    Row("nvfp4", "e2m1.packed_native_0.b16-ue4m3.t-f32", "dequantize_packed"),
    Row("nvfp4 bf16", "e2m1.packed_native_0.b16-ue4m3.t-f32", "dequantize_packed", "bf16"),
    Row("mxfp8", "e4m3.native.b32-ue8m0", "dequantize_packed"),
    Row("mxfp8 e5m2", "e5m2.native.b32-ue8m0", "dequantize_packed"),
    Row("mxfp8 bf16", "e4m3.native.b32-ue8m0", "dequantize_packed", "bf16"),
    Row("fp8 128x128", "e4m3.native.b128x128-f32", "dequantize_packed"),
    Row("fp8 tensor", "e4m3.native.t-f32", "dequantize_packed"),
    Row("mxfp6", "e3m2.packed_native_0.b32-ue8m0", "dequantize_packed"),
    Row("mxfp6 u32", "e2m3.packed_u32_0.b32-ue8m0", "dequantize_packed"),
    Row("int8", "q8s.native.b32-f32", "dequantize_packed"),
    Row("int8 f16", "q8s.packed_u32_0.b32-f16", "dequantize_packed", "f16"),
    Row("int8 tensor", "q8s.native.t-f32", "dequantize_packed"),
    Row("int8 rows", "q8s.native.b128x1-f32", "dequantize_packed"),
    Row("q4", "q4s.packed_u32_0.b32-f16", "dequantize_packed"),
    Row("q4 down", "q4s.packed_u32_1.b32x1-f16", "dequantize_packed"),
    Row("q2", "q2s.packed_u32_0.b32-f16", "dequantize_packed"),
    Row("nf4", "q4f.packed_native_0.lut-nf4.b64-f32", "dequantize_packed"),
    Row("to mxfp4", "e2m1.packed_native_0.b32-ue8m0", "quantize_packed"),
    Row("to mxfp4 bf16", "e2m1.packed_native_0.b32-ue8m0", "quantize_packed", "bf16"),
    Row("to nvfp4", "e2m1.packed_native_0.b16-ue4m3.t-f32", "quantize_packed"),
    Row("to mxfp8", "e4m3.native.b32-ue8m0", "quantize_packed"),
    Row("to fp8 tensor", "e4m3.native.t-f32", "quantize_packed"),
    Row("to fp8 128x128", "e4m3.native.b128x128-f32", "quantize_packed"),
    Row("to int8", "q8s.native.b32-f32", "quantize_packed"),
    Row("to q4", "q4s.packed_u32_0.b32-f16", "quantize_packed"),
    Row("to q4 down", "q4s.packed_u32_1.b32x1-f16", "quantize_packed"),
    Row("to nf4", "q4f.packed_native_0.lut-nf4.b64-f32", "quantize_packed"),
)


def _packed_tensor(row: Row, count: int) -> qs.Packed:
    """Any codes, scales as weights have them."""
    rng = np.random.default_rng(0)
    scheme = qs.Scheme.parse(row.scheme)
    few = rng.standard_normal((128, COLUMNS)).astype(np.float32)
    packed = qs.pack(qs.quantize(few, scheme))
    times = max(count // few.size, 1)
    axis = packed.words.ndim - 1 if scheme.store.d == 1 else 0
    scales = None if packed.scale_codes is None else np.concatenate([packed.scale_codes] * times, axis=0)
    return qs.Packed(
        scheme,
        (128 * times, COLUMNS),
        np.concatenate([packed.words] * times, axis=axis),
        scales,
        packed.tensor_scale_code,
    )


def _dequantize_packed(session: qc.Session, row: Row, packed: qs.Packed) -> tuple[Call, int]:
    given = session.put_packed(packed)
    return lambda: session.dequantize_packed(given, row.dtype), given.words.nbytes


def _dequantize(session: qc.Session, row: Row, packed: qs.Packed) -> tuple[Call, int]:
    given = session.unpack(packed)
    return lambda: session.dequantize(given, row.dtype), given.codes.nbytes


def _quantize_packed(session: qc.Session, row: Row, packed: qs.Packed) -> tuple[Call, int]:
    given = session.put_packed(packed)
    x = session.dequantize_packed(given, row.dtype)
    return lambda: session.quantize_packed(x, row.scheme), given.words.nbytes


#: What prepares a call of each verb: from a packed tensor to the call and the bytes of its codes. A verb added here may be a row.
VERBS: dict[str, Callable[[qc.Session, Row, qs.Packed], tuple[Call, int]]] = {
    "dequantize": _dequantize,
    "dequantize_packed": _dequantize_packed,
    "quantize_packed": _quantize_packed,
}


def prepared(session: qc.Session, row: Row, count: int) -> tuple[Call, int, int]:
    """A call of a row's verb, the elements that it takes, and the bytes that it must move: inputs and outputs, each once."""
    packed = _packed_tensor(row, count)
    size = int(np.prod(packed.shape))
    levels = [level.nbytes for level in (packed.scale_codes, packed.tensor_scale_code) if level is not None]
    call, codes = VERBS[row.verb](session, row, packed)
    return call, size, codes + sum(levels) + size * (4 if row.dtype == "f32" else 2)
