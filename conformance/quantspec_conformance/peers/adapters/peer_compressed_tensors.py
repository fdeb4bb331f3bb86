"""compressed-tensors: MXFP4, MXFP8, NVFP4 and integers in groups, as its compressors call its quantizer; fp4 by element; i32."""

import numpy as np  # noqa: I001  (the one long import stays on few lines)

from quantspec import Scheme
from quantspec_conformance.peers import compressed_scheme as own
from quantspec_conformance.peers.support import (
    Array, Given, Lacks, Made, Peer, blocks_of, floats, library, pick, shape_of,
)  # fmt: skip
from quantspec_conformance.peers.torch_arrays import array_of, raw, tensor_of

torch, helpers = library("torch"), library("compressed_tensors.quantization.utils.helpers")
forward = library("compressed_tensors.quantization.lifecycle.forward")
fp4 = library("compressed_tensors.quantization.utils.fp4_utils")
i32 = library("compressed_tensors.compressors.pack_quantized.helpers")
RECIPES = "mx-compressed-tensors, nvfp4-compressed-tensors"


class Adapter(Peer):
    name = "compressed-tensors"
    values = ("e2m1", "e4m3", "q8f", "q4f", "q2f")
    scales = ("ue8m0", "ue4m3", "f32")
    levels = ("block", "both")
    policies = {"recipe": RECIPES, "codec": "compressed-tensors", "container": "compressed-tensors-i32"}  # noqa: RUF012
    ways = {"codec": ("compressed-tensors",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        flat = np.append(floats(x, "f32").reshape(-1), np.zeros(x.size % 2, "f4")).reshape(1, -1)
        made = pick({"e2m1": fp4.cast_to_fp4}, value)(tensor_of(flat))
        return own.fp4_codes(made)[0, : x.size].reshape(x.shape)

    def quantize(
        self, x: Array, scheme: Scheme, tensor_scale: Given = None, scales: Given = None, tensor_scale_code: Given = None,
        recipe: str = "",
    ) -> Made:  # fmt: skip
        width = own.width_of(scheme, recipe)
        if (scales is not None and width) or (tensor_scale_code is not None and not recipe):
            raise Lacks(f"given scales of {scheme}")
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        rows = tensor_of(to_rows(floats(x, "f32")))
        args, gs = own.arguments(scheme, rows.shape[1]), own.global_scale(rows, scheme, tensor_scale, tensor_scale_code)
        made, zero = helpers.calculate_qparams(rows.amin(1, keepdim=True), rows.amax(1, keepdim=True), args, gs)
        made = made if scales is None else tensor_of(scales.reshape(-1, 1))
        data = forward.quantize(rows, made, zero, args, torch.int8 if scheme.value.is_integer else None, gs)
        level = {} if gs is None else {"tensor_scale_code": raw(gs if recipe else 1 / gs).reshape(())}
        return {
            "codes": from_rows(own.codes(data, scheme)),
            "scale_codes": to_grid(own.stored_scale(made, scheme)),
        } | level

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, recipe: str, tensor_scale_code: Given = None
    ) -> Array:
        width = own.width_of(scheme, recipe)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        data, scales = own.numbers(to_rows(codes), scheme), own.read_scale(scale_codes, scheme)
        gs = None if tensor_scale_code is None else tensor_of(tensor_scale_code.view("f4").reshape(1))
        made = forward.dequantize(data, scales, None, own.arguments(scheme, width), torch.float32, gs)
        return from_rows(array_of(made))

    def pack(self, codes: Array, scheme: Scheme, container: str) -> Array:
        return raw(i32.pack_to_int32(tensor_of(codes.view("i1")), self._bits(scheme, container)))

    def unpack(self, words: Array, scheme: Scheme, shape: str, container: str) -> Array:
        bits = self._bits(scheme, container)
        return raw(i32.unpack_from_int32(tensor_of(words.view("i4")), bits, torch.Size(shape_of(shape))))

    def _bits(self, scheme: Scheme, container: str) -> int:
        if container != "compressed-tensors-i32" or scheme.store.text != "packed_u32_0":
            raise Lacks(f"container:{container} for {scheme}")
        return scheme.value.bits
