"""MLX: mxfp4, mxfp8 and nvfp4 on its CPU backend, and the casts to and from its fp8 (e4m3)."""

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import Array, Lacks, Peer, blocks_of, floats, from_nibbles, library, nibbles

mx = library("mlx.core")
#: (value, scale, tensor scale) -> its mode, block, bits.
MODES = {
    ("e2m1", "ue8m0", ""): ("mxfp4", 32, 4),
    ("e4m3", "ue8m0", ""): ("mxfp8", 32, 8),
    ("e2m1", "ue4m3", ""): ("nvfp4", 16, 4),
}


class Adapter(Peer):
    name = "mlx"
    values = ("e2m1", "e4m3")
    scales = ("ue8m0", "ue4m3")
    levels = ("block",)
    policies = {"recipe": "mlx-mx, nvfp4-mlx", "codec": "mlx-fp4"}  # noqa: RUF012
    ways = {"recipe": ("mlx-mx", "nvfp4-mlx"), "codec": ("mlx-fp4",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        if value != "e4m3":
            raise Lacks(f"encode:{value}")
        return np.array(mx.to_fp8(mx.array(floats(x, "f32", "f16"))))

    def decode(self, codes: Array, value: str) -> Array:
        if value != "e4m3":
            raise Lacks(f"decode:{value}")
        return np.array(mx.from_fp8(mx.array(codes), mx.float32))

    def quantize(self, x: Array, scheme: Scheme) -> dict[str, Array]:
        mode, width, bits = self._mode(scheme)
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        words, scales = mx.quantize(mx.array(to_rows(floats(x, "f32"))), width, bits, mode)
        codes = np.array(words).view("u1")
        return {
            "codes": from_rows(from_nibbles(codes) if bits == 4 else codes),
            "scale_codes": to_grid(np.array(scales)),
        }

    def dequantize(self, codes: Array, scale_codes: Array, scheme: Scheme, to: str = "f32") -> Array:
        mode, width, bits = self._mode(scheme)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        if to != "f32":
            raise Lacks(f"to:{to}")
        rows = to_rows(codes)
        words = mx.array((nibbles(rows) if bits == 4 else rows).view("u4"))
        scales = mx.array(scale_codes.reshape(-1, 1))
        return from_rows(np.array(mx.dequantize(words, scales, None, width, bits, mode, dtype=mx.float32)))

    def _mode(self, scheme: Scheme) -> tuple[str, int, int]:
        key = (
            scheme.value.name,
            scheme.block.scale.name if scheme.block else "",
            scheme.tensor.name if scheme.tensor else "",
        )
        if key not in MODES:
            raise Lacks(f"mode:{'-'.join(key)}")
        return MODES[key]
