"""MLX: mxfp4, mxfp8 and nvfp4 on its CPU backend, and the casts to and from its fp8 (e4m3)."""

from typing import Any

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import Array, Lacks, Peer, blocks_of, floats, from_nibbles, library, nibbles

mx = library("mlx.core")
#: (value, scale, tensor scale) -> its mode, block, bits.
MODES = {
    ("e2m1", "ue8m0", ""): ("mxfp4", 32, 4),
    ("e4m3", "ue8m0", ""): ("mxfp8", 32, 8),
    ("e2m1", "ue4m3", ""): ("nvfp4", 16, 4),
    ("e2m1", "ue4m3", "f32"): ("nvfp4", 16, 4),
}


class Adapter(Peer):
    name = "mlx"
    values = ("e2m1", "e4m3")
    scales = ("ue8m0", "ue4m3", "f32")
    levels = ("block", "both")
    policies = {"recipe": "mlx-mx, nvfp4-mlx", "codec": "mlx-fp4"}  # noqa: RUF012
    ways = {"codec": ("mlx-fp4",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        if value != "e4m3":
            raise Lacks(f"encode:{value}")
        return np.array(mx.to_fp8(mx.array(floats(x, "f32", "f16"))))

    def decode(self, codes: Array, value: str) -> Array:
        if value != "e4m3":
            raise Lacks(f"decode:{value}")
        return np.array(mx.from_fp8(mx.array(codes), mx.float32))

    def quantize(
        self, x: Array, scheme: Scheme, recipe: str = "", tensor_scale_code: Array | None = None
    ) -> dict[str, Array]:
        mode, width, bits = self._mode(scheme, recipe)
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        rows = mx.array(to_rows(floats(x, "f32")))
        level = None
        if scheme.tensor is not None:  # amax itself
            level = mx.array(np.max(np.abs(x)) if tensor_scale_code is None else tensor_scale_code.view("f4"))
        words, scales = mx.quantize(self._even(rows, recipe), width, bits, mode, global_scale=level)
        words, scales = words[: len(rows)], scales[: len(rows)]
        codes = np.array(words).view("u1")
        return {
            "codes": from_rows(from_nibbles(codes) if bits == 4 else codes),
            "scale_codes": to_grid(np.array(scales)),
        } | ({} if level is None else {"tensor_scale_code": np.array(level).view("u4").reshape(())})

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, to: str = "f32", recipe: str = "",
        tensor_scale_code: Array | None = None,
    ) -> Array:  # fmt: skip
        mode, width, bits = self._mode(scheme, recipe)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        if to != "f32":
            raise Lacks(f"to:{to}")
        rows = to_rows(codes)
        words = mx.array((nibbles(rows) if bits == 4 else rows).view("u4"))
        scales = mx.array(scale_codes.reshape(-1, 1))
        level = None if tensor_scale_code is None else mx.array(tensor_scale_code.view("f4").reshape(()))
        words, scales = self._even(words, recipe), self._even(scales, recipe)
        made = mx.dequantize(words, scales, None, width, bits, mode, level, mx.float32)
        return from_rows(np.array(made)[: len(rows)])

    def _even(self, rows: Any, recipe: str) -> Any:
        """With a row more where there is an odd number, which nvfp4 cannot reshape (B5b); only under a recipe's name."""
        return mx.concatenate([rows, rows[:1]]) if recipe == "nvfp4-mlx" and len(rows) % 2 else rows

    def _mode(self, scheme: Scheme, recipe: str) -> tuple[str, int, int]:
        key = (
            scheme.value.name,
            scheme.block.scale.name if scheme.block else "",
            scheme.tensor.name if scheme.tensor else "",
        )
        two = scheme.tensor is not None
        if recipe not in (("nvfp4-mlx",) if two else ("", "mlx-mx") if key[1] == "ue8m0" else ("",)):
            raise Lacks(f"recipe:{recipe or 'canonical'} for {scheme}")
        if key not in MODES:
            raise Lacks(f"mode:{'-'.join(key)}")
        return MODES[key]
