"""torchao: MX with RCEIL scales and NVFP4 of its prototype, on CPU in eager mode; fp4 and fp6 by element."""

from typing import Any  # noqa: I001  (the one long import stays on few lines)

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import (
    Array, Lacks, Peer, blocks_of, floats, from_nibbles, library, nibbles, pick, scalar,
)  # fmt: skip

torch, kernels = library("torch"), library("torchao.prototype.mx_formats.kernels")
mx, nv = library("torchao.prototype.mx_formats.mx_tensor"), library("torchao.prototype.mx_formats.nvfp4_tensor")
MX = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m3": "fp6_e2m3", "e3m2": "fp6_e3m2",
      "e2m1": torch.float4_e2m1fn_x2}  # fmt: skip
FP = {"e2m1": "f4", "e2m3": "f6_e2m3", "e3m2": "f6_e3m2"}
MODES = {"canonical": "RCEIL", "rceil": "RCEIL", "ocp-mx": "FLOOR", "even": "EVEN", "ceil": "CEIL"}


class Adapter(Peer):
    name = "torchao"
    values = tuple(MX)
    scales = ("ue8m0", "ue4m3", "f32")
    levels = ("block", "both")
    policies = {"recipe": "rceil, ceil, ocp-mx, even, nvfp4-torchao"}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Any:
        return self._kernel(value, "f32_to_{}_unpacked")(torch.from_numpy(floats(x, "f32"))).numpy()

    def decode(self, codes: Array, value: str) -> Any:
        return self._kernel(value, "{}_unpacked_to_f32")(torch.from_numpy(codes)).numpy()

    def quantize(
        self, x: Array, scheme: Scheme, tensor_scale: Array | None = None, recipe: str = "",
        tensor_scale_code: Array | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        value, scale = scheme.value.name, "" if scheme.block is None else scheme.block.scale.name
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, 16 if scale == "ue4m3" else 0)
        rows = torch.from_numpy(to_rows(floats(x, "f32")))
        if scale == "ue8m0" and scheme.tensor is None and (value != "e2m1" or rows.shape[1] % 2 == 0):
            scales, data = mx.to_mx(
                rows, MX[value], rows.shape[1], mx.ScaleCalculationMode[pick(MODES, recipe or "rceil")]
            )
            codes = data.view(torch.uint8).numpy()
            codes = from_nibbles(codes) if value == "e2m1" else codes
            return {"codes": from_rows(codes), "scale_codes": to_grid(scales.view(torch.uint8).numpy())}
        if (value, scale) != ("e2m1", "ue4m3") or (scheme.tensor is not None and scheme.tensor.name != "f32"):
            raise Lacks(f"quantize:{scheme}")
        if recipe not in ("", "nvfp4-torchao"):
            raise Lacks(f"recipe:{recipe}")
        tensor_scale = tensor_scale if tensor_scale_code is None else tensor_scale_code.view("f4")
        given = None if tensor_scale is None else torch.from_numpy(scalar(tensor_scale, scheme))
        if scheme.tensor is not None and given is None:
            given = nv.per_tensor_amax_to_scale(rows.abs().max())
        scales, data = nv.nvfp4_quantize(rows, 16, given)
        made = {
            "codes": from_rows(from_nibbles(data.numpy())),
            "scale_codes": to_grid(scales.view(torch.uint8).numpy()),
        }
        return made | ({} if given is None else {"tensor_scale_code": given.numpy().view("u4")})

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, to: str = "f32", recipe: str = "",
        tensor_scale_code: Array | None = None,
    ) -> Array:  # fmt: skip
        if recipe == "nvfp4-torchao" and tensor_scale_code is not None and to == "f32":
            return self._nvfp4(codes, scale_codes, tensor_scale_code, scheme)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme)
        if to != "f32" or scheme.tensor is not None or scheme.block is None or scheme.block.scale.name != "ue8m0":
            raise Lacks(f"dequantize:{scheme}:{to}")
        rows, kind = to_rows(codes), MX[scheme.value.name]
        if rows.shape[1] % 2 and scheme.value.name == "e2m1":
            raise Lacks("blocks of an odd size")
        data = torch.from_numpy(nibbles(rows) if scheme.value.name == "e2m1" else rows)
        data = data.view(kind) if scheme.value.name in ("e4m3", "e5m2") else data
        scales = torch.from_numpy(scale_codes.reshape(-1))
        return from_rows(mx.to_dtype(data, scales, kind, rows.shape[1], torch.float32).numpy())

    def _nvfp4(self, codes: Array, scale_codes: Array, level: Array, scheme: Scheme) -> Array:
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, 16)
        data = torch.from_numpy(np.ascontiguousarray(nibbles(to_rows(codes))))
        scales = torch.from_numpy(scale_codes.reshape(-1, 1)).view(torch.float8_e4m3fn)
        tensor = nv.NVFP4Tensor(data, scales, 16, torch.float32, torch.from_numpy(level.view("f4").reshape(())))
        return from_rows(tensor.dequantize(torch.float32).numpy())

    def _kernel(self, value: str, name: str) -> Any:
        if value not in FP:
            raise Lacks(f"elements of {value} alone: torch casts them")
        return getattr(kernels, name.format(FP[value]))
