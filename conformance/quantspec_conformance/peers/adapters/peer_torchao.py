"""torchao: MX by its four scale rules and NVFP4 of its prototype, on CPU in eager mode; fp4 and fp6 by element; fp4 packed."""

from typing import Any  # noqa: I001  (the one long import stays on few lines)

from quantspec import Scheme
from quantspec_conformance.peers import torchao_nvfp4 as nvfp4
from quantspec_conformance.peers.support import (
    Array, Given, Lacks, Made, Peer, blocks_of, floats, from_nibbles, given_level, library, names, nibbles, pick, shape_of,
)  # fmt: skip
from quantspec_conformance.peers.torch_arrays import array_of, raw, tensor_of

torch, kernels = library("torch"), library("torchao.prototype.mx_formats.kernels")
mx = library("torchao.prototype.mx_formats.mx_tensor")
MX = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m3": "fp6_e2m3", "e3m2": "fp6_e3m2",
      "e2m1": torch.float4_e2m1fn_x2}  # fmt: skip
FP = {"e2m1": "f4", "e2m3": "f6_e2m3", "e3m2": "f6_e3m2"}
MODES = {"": "RCEIL", "canonical": "RCEIL", "rceil": "RCEIL", "ocp-mx": "FLOOR", "even": "EVEN", "ceil": "CEIL"}


class Adapter(Peer):
    name = "torchao"
    values = tuple(MX)
    scales = ("ue8m0", "ue4m3", "f32")
    levels = ("block", "both")
    policies = {"recipe": "rceil, ceil, ocp-mx, even, nvfp4-torchao", "container": "cublas-128x4"}  # noqa: RUF012
    ways = {"container": ("cublas-128x4",)}  # noqa: RUF012  (it moves scales; words are packed in one way)

    def encode(self, x: Array, value: str) -> Array:
        return array_of(getattr(kernels, f"f32_to_{pick(FP, value)}_unpacked")(tensor_of(floats(x, "f32"))))

    def decode(self, codes: Array, value: str) -> Array:
        return array_of(getattr(kernels, f"{pick(FP, value)}_unpacked_to_f32")(tensor_of(codes)))

    def quantize(
        self, x: Array, scheme: Scheme, tensor_scale: Given = None, tensor_scale_code: Given = None, recipe: str = ""
    ) -> Made:
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, 16 if names(scheme)[1] == "ue4m3" else 0)
        rows, level = tensor_of(to_rows(floats(x, "f32"))), given_level(scheme, tensor_scale, tensor_scale_code)
        if self._mx(scheme, rows):
            mode, stored = mx.ScaleCalculationMode[pick(MODES, recipe)], Made()
            scales, data = mx.to_mx(rows, MX[scheme.value.name], rows.shape[1], mode)
        else:
            scales, data, stored = nvfp4.quantize(rows, scheme, level, recipe)
        codes = from_nibbles(raw(data)) if scheme.value.name == "e2m1" else raw(data)
        return {"codes": from_rows(codes), "scale_codes": to_grid(raw(scales))} | stored

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, tensor_scale_code: Given = None, recipe: str = ""
    ) -> Array:
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, 16 if recipe == "nvfp4-torchao" else 0)
        rows, kind = to_rows(codes), MX[scheme.value.name]
        if not self._mx(scheme, rows):
            return from_rows(nvfp4.dequantize(rows, scale_codes, tensor_scale_code, recipe))
        data, scales = (
            tensor_of(nibbles(rows) if scheme.value.name == "e2m1" else rows),
            tensor_of(scale_codes.reshape(-1)),
        )
        data = data.view(kind) if scheme.value.name in ("e4m3", "e5m2") else data
        return from_rows(array_of(mx.to_dtype(data, scales, kind, rows.shape[1], torch.float32)))

    def pack(self, codes: Array, scheme: Scheme) -> Array:
        return array_of(kernels.pack_uint4(self._pairs(codes, scheme, codes.shape)))

    def unpack(self, words: Array, scheme: Scheme, shape: str) -> Array:
        return array_of(kernels.unpack_uint4(self._pairs(words, scheme, shape_of(shape))))

    def _pairs(self, array: Array, scheme: Scheme, shape: tuple[int, ...]) -> Any:
        if array.dtype != "u1" or scheme.store.text != "packed_native_0" or (1, *shape)[-1] % 2:
            raise Lacks(f"pairs of {scheme}")
        return pick({"e2m1": tensor_of}, scheme.value.name)(array)

    def _mx(self, scheme: Scheme, rows: Any) -> bool:
        return names(scheme)[1:] == ("ue8m0", "") and (scheme.value.name != "e2m1" or rows.shape[1] % 2 == 0)
