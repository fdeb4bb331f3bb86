"""MLX: mxfp4, mxfp8 and nvfp4 on its CPU backend, the casts to and from its fp8 (e4m3), and how it reads its words."""

import numpy as np  # noqa: I001  (the one long import stays on few lines)

from quantspec import Scheme
from quantspec_conformance.peers.support import (
    Array, Given, Lacks, Made, Peer, blocks_of, floats, from_nibbles, library, names, nibbles, pick, shape_of,
)  # fmt: skip

mx = library("mlx.core")
#: (value, scale, tensor scale, recipe) -> its mode, block, bits.
MODES = {
    ("e2m1", "ue8m0", "", ""): ("mxfp4", 32, 4),
    ("e2m1", "ue8m0", "", "mlx-mx"): ("mxfp4", 32, 4),
    ("e4m3", "ue8m0", "", ""): ("mxfp8", 32, 8),
    ("e4m3", "ue8m0", "", "mlx-mx"): ("mxfp8", 32, 8),
    ("e2m1", "ue4m3", "", ""): ("nvfp4", 16, 4),
    ("e2m1", "ue4m3", "f32", "nvfp4-mlx"): ("nvfp4", 16, 4),
}


class Adapter(Peer):
    name = "mlx"
    values = ("e2m1", "e4m3", "e3m2")
    scales = ("ue8m0", "ue4m3", "f32")
    levels = ("block", "both")
    policies = {"recipe": "mlx-mx, nvfp4-mlx", "codec": "mlx-fp4", "container": "mlx-u32"}  # noqa: RUF012
    ways = {"codec": ("mlx-fp4",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        return np.array(pick({"e4m3": mx.to_fp8}, value)(mx.array(floats(x, "f32", "f16"))))

    def decode(self, codes: Array, value: str) -> Array:
        return np.array(pick({"e4m3": mx.from_fp8}, value)(mx.array(codes), mx.float32))

    def quantize(self, x: Array, scheme: Scheme, recipe: str = "", tensor_scale_code: Given = None) -> Made:
        mode, width, bits = pick(MODES, (*names(scheme), recipe))
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        rows = to_rows(floats(x, "f32"))
        amax = np.max(np.abs(x)) if tensor_scale_code is None else tensor_scale_code.view("f4").reshape(())
        level = mx.array(amax) if scheme.tensor else None  # it stores amax itself
        made = mx.quantize(mx.array(self._even(rows, recipe)), width, bits, mode, global_scale=level)
        codes, scales = (np.array(array)[: len(rows)].view("u1") for array in made)
        stored = {"tensor_scale_code": np.asarray(amax).view("u4")} if scheme.tensor else {}
        codes = from_nibbles(codes) if bits == 4 else codes
        return {"codes": from_rows(codes), "scale_codes": to_grid(scales)} | stored

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, recipe: str = "", tensor_scale_code: Given = None
    ) -> Array:
        mode, width, bits = pick(MODES, (*names(scheme), recipe))
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        rows = to_rows(codes)
        words = mx.array(self._even((nibbles(rows) if bits == 4 else rows).view("u4"), recipe))
        scales = mx.array(self._even(scale_codes.reshape(-1, 1), recipe))
        level = None if tensor_scale_code is None else mx.array(tensor_scale_code.view("f4").reshape(()))
        made = mx.dequantize(words, scales, None, width, bits, mode, level, mx.float32)
        return from_rows(np.array(made)[: len(rows)])

    def unpack(self, words: Array, scheme: Scheme, shape: str, container: str) -> Array:
        """Its affine mode reads the fields as whole numbers: under scales of 1 and biases of 0 they are the codes."""
        if container != "mlx-u32" or scheme.store.text != "packed_u32_0" or shape_of(shape)[-1] % 32:
            raise Lacks(f"container:{container} for {scheme}")
        ones = mx.ones((len(words), shape_of(shape)[-1] // 32), mx.float32)
        return np.array(mx.dequantize(mx.array(words), ones, 0 * ones, 32, scheme.value.bits)).astype("u1")

    def _even(self, rows: Array, recipe: str) -> Array:
        """With a row more where there is an odd number, which nvfp4 cannot reshape (B5b); only under a recipe's name."""
        return np.concatenate([rows, rows[:1]]) if recipe == "nvfp4-mlx" and len(rows) % 2 else rows
