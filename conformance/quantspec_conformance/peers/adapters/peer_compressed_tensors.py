"""compressed-tensors: MXFP4, MXFP8, NVFP4 and integers in groups, as its compressors call its quantizer; fp4 by element."""

from typing import Any  # noqa: I001  (the one long import stays on few lines)

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import (
    Array, Lacks, Peer, blocks_of, codes_of, floats, from_nibbles, library, nibbles, scalar,
)  # fmt: skip

torch, ct = library("torch"), library("compressed_tensors.quantization")
helpers = library("compressed_tensors.quantization.utils.helpers")
forward = library("compressed_tensors.quantization.lifecycle.forward")
mx, nv = library("compressed_tensors.compressors.mx_utils"), library("compressed_tensors.compressors.nvfp4.helpers")
fp4 = library("compressed_tensors.quantization.utils.fp4_utils")
BITS = {"e2m1": 4, "e4m3": 8, "q8f": 8, "q4f": 4, "q2f": 2}
KINDS = [("e2m1", "ue8m0"), ("e4m3", "ue8m0"), ("e2m1", "ue4m3"), ("q8f", "f32"), ("q4f", "f32"), ("q2f", "f32")]
MX = "mx-compressed-tensors"
#: (value, scale) -> the recipe that says what it does.
OWN = {("e2m1", "ue8m0"): MX, ("e4m3", "ue8m0"): MX, ("e2m1", "ue4m3"): "nvfp4-compressed-tensors"}
SCALES = {"ue8m0": torch.uint8, "ue4m3": torch.float8_e4m3fn, "f32": None}


class Adapter(Peer):
    name = "compressed-tensors"
    values = tuple(BITS)
    scales = tuple(SCALES)
    levels = ("block", "both")
    policies = {"recipe": "mx-compressed-tensors, nvfp4-compressed-tensors", "codec": "compressed-tensors"}  # noqa: RUF012
    ways = {"codec": ("compressed-tensors",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        if value != "e2m1":
            raise Lacks(f"{value} alone")
        flat = np.append(floats(x, "f32").reshape(-1), np.zeros(x.size % 2, "f4")).reshape(1, -1)
        made = from_nibbles(nv.pack_fp4_to_uint8(fp4.cast_to_fp4(torch.from_numpy(flat))).numpy())
        return made[0, : x.size].reshape(x.shape)

    def quantize(
        self, x: Array, scheme: Scheme, tensor_scale: Array | None = None, scales: Array | None = None,
        tensor_scale_code: Array | None = None, recipe: str = "",
    ) -> dict[str, Array]:  # fmt: skip
        value, scale = scheme.value.name, scheme.block.scale.name if scheme.block else ""
        two = scheme.tensor is not None and (scale != "ue4m3" or scheme.tensor.name != "f32")
        own_way = OWN.get((value, scale), "")
        if recipe not in ("", own_way) or (tensor_scale_code is not None and not recipe):
            raise Lacks(f"recipe:{recipe}")
        if (value, scale) not in KINDS or two or (scales is not None and scale != "f32"):
            raise Lacks(f"quantize:{scheme}")
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, {"ue8m0": 32, "ue4m3": 16}.get(scale, 0))
        rows = torch.from_numpy(to_rows(floats(x, "f32")))
        args = ct.QuantizationArgs(num_bits=BITS[value], type="int" if value[0] == "q" else "float", symmetric=True,
                                   strategy="tensor_group" if scale == "ue4m3" else "group", group_size=rows.shape[1],
                                   scale_dtype=SCALES[scale])  # fmt: skip
        gs = None
        if scheme.tensor is not None:  # it stores the inverse of the tensor's scale
            low, high = rows.min(), rows.max()
            own = helpers.generate_gparam(low, high)
            gs = own if tensor_scale is None else torch.from_numpy(1 / scalar(tensor_scale, scheme).reshape(1))
            gs = gs if tensor_scale_code is None else torch.from_numpy(tensor_scale_code.view("f4").reshape(1))
        low, high = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
        made, zero = helpers.calculate_qparams(low, high, args, gs)
        made = made if scales is None else torch.from_numpy(scales.reshape(-1, 1))
        data = forward.quantize(rows, made, zero, args, torch.int8 if value[0] == "q" else None, gs)
        stored = (
            mx.compress_mx_scale(made, torch.uint8) if scale == "ue8m0" else made.to(SCALES[scale] or torch.float32)
        )
        stored_level = None if gs is None else gs if recipe else 1 / gs
        level = {} if stored_level is None else {"tensor_scale_code": stored_level.numpy().view("u4").reshape(())}
        return {"codes": from_rows(self._codes(data, value)), "scale_codes": to_grid(self._raw(stored))} | level

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, recipe: str, tensor_scale_code: Array | None = None
    ) -> Array:
        value, scale = scheme.value.name, scheme.block.scale.name if scheme.block else ""
        if recipe != OWN.get((value, scale)):
            raise Lacks(f"recipe:{recipe} for {scheme}")
        width = 32 if scale == "ue8m0" else 16
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        rows = np.ascontiguousarray(to_rows(codes))
        args = ct.QuantizationArgs(num_bits=BITS[value], type="float", symmetric=True, group_size=width,
                                   strategy="tensor_group" if scale == "ue4m3" else "group", scale_dtype=SCALES[scale])  # fmt: skip
        if value == "e2m1":
            packed = torch.from_numpy(np.ascontiguousarray(nibbles(rows)))
            data = nv.unpack_fp4_from_uint8(packed, *rows.shape, torch.float32)
        else:
            data = torch.from_numpy(rows).view(torch.float8_e4m3fn)
        stored = torch.from_numpy(scale_codes.reshape(-1, 1).copy())
        s = mx.decompress_mx_scale(stored) if scale == "ue8m0" else stored.view(torch.float8_e4m3fn)
        gs = None if tensor_scale_code is None else torch.from_numpy(tensor_scale_code.view("f4").reshape(1))
        made = forward.dequantize(data, s.float(), None, args, torch.float32, gs)
        return from_rows(made.numpy())

    def _codes(self, data: Any, value: str) -> Array:
        if value == "e2m1":
            return from_nibbles(nv.pack_fp4_to_uint8(data).numpy())
        return self._raw(data.to(torch.float8_e4m3fn) if value == "e4m3" else data)

    def _raw(self, tensor: Any) -> Array:
        return codes_of(tensor.contiguous().view(torch.uint8 if tensor.element_size() == 1 else torch.int32).numpy())
