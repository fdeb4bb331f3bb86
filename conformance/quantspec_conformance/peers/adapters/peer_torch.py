"""PyTorch: casts of its 8-bit floats on CPU, and quantize_per_tensor of int8 with a given scale."""

from typing import Any

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import Array, Lacks, Peer, codes_of, floats, library, patterns, pick, scalar

torch = library("torch")
DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "ue8m0": torch.float8_e8m0fnu, "bf16": torch.bfloat16,
          "f16": torch.float16}  # fmt: skip


class Adapter(Peer):
    name = "torch"
    values = ("e4m3", "e5m2", "q8f")
    scales = ("ue8m0", "bf16", "f16", "f32")
    levels = ("tensor",)
    policies = {"codec": "torchao-fp8, torch-e5m2"}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        return self._cast(x, value)

    def decode(self, codes: Array, value: str) -> Array:
        return np.asarray(self._view(codes, value).float().numpy())

    def encode_scale(self, x: Array, type: str, rounding: str) -> Array:
        if rounding != "nearest":
            raise Lacks("rounding:up")
        return self._cast(x, type)

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        return np.asarray(self._view(scale_codes, type).float().numpy())

    def quantize(self, x: Array, scheme: Scheme, tensor_scale: Array) -> dict[str, Array]:
        self._tensor(scheme)
        scale = scalar(tensor_scale, scheme)
        made = torch.quantize_per_tensor(torch.from_numpy(floats(x, "f32")), float(scale), 0, torch.qint8)
        return {"codes": made.int_repr().numpy().view("u1"), "tensor_scale_code": codes_of(scale)}

    def dequantize(self, codes: Array, tensor_scale_code: Array, scheme: Scheme) -> Array:
        self._tensor(scheme)
        scale = float(tensor_scale_code.view("f4"))
        if not np.isfinite(scale) or scale <= 0:
            raise Lacks(f"a scale of {scale}")
        made = torch._make_per_tensor_quantized_tensor(torch.from_numpy(codes.view("i1")), scale, 0)
        return np.asarray(made.dequantize().numpy())

    def _tensor(self, scheme: Scheme) -> None:
        if scheme.value.name != "q8f" or scheme.tensor is None or scheme.tensor.name != "f32" or scheme.block:
            raise Lacks(f"scheme:{scheme}")

    def _view(self, codes: Array, name: str) -> Any:
        patterns(codes, name)
        return torch.from_numpy(codes.copy()).view(pick(DTYPES, name))

    def _cast(self, x: Array, name: str) -> Array:
        bf16 = x.dtype.name == "bfloat16"
        given = torch.from_numpy(x.view("u2")).view(torch.bfloat16) if bf16 else torch.from_numpy(x)
        made = given.to(pick(DTYPES, name))
        return np.asarray(made.view({1: torch.uint8, 2: torch.uint16}[made.element_size()]).numpy())
