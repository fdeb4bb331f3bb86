"""gguf: block structs of ggml in numpy. MXFP4, Q8_0 and Q4_0 both ways, NVFP4 read, the ue4m3 scale of ggml."""

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import Array, Lacks, Peer, blocks_of, floats, library

gguf = library("gguf")
quants, kinds = library("gguf.quants"), gguf.GGMLQuantizationType
#: (value, scale) -> its type, elements of a block, bytes of the scale.
TYPES = {
    ("e2m1", "ue8m0"): (kinds.MXFP4, 32, 1),
    ("q8s", "f16"): (kinds.Q8_0, 32, 2),
    ("q4f", "f16"): (kinds.Q4_0, 32, 2),
}


class Adapter(Peer):
    name = "gguf"
    values = ("e2m1", "q8s", "q4f")
    scales = ("ue8m0", "f16", "ue4m3")
    policies = {"recipe": "ggml-mxfp4, ggml-q8_0, ggml-q4_0", "codec": "ggml-mxfp4, ggml-q4_0, ties-away"}  # noqa: RUF012
    ways = {"recipe": ("ggml-mxfp4", "ggml-q8_0", "ggml-q4_0"), "codec": ("ggml-mxfp4", "ggml-q4_0", "ties-away")}  # noqa: RUF012

    def quantize(self, x: Array, scheme: Scheme) -> dict[str, Array]:
        kind, width, size, offset = self._type(scheme)
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        made = gguf.quantize(to_rows(floats(x, "f32")), kind)
        scales, codes = made[:, :size], made[:, size:]
        if kind != kinds.Q8_0:
            codes = np.concatenate([codes & 15, codes >> 4], axis=1)
        codes = (codes.astype("i1") - offset).view("u1") if offset else codes  # a code is a byte with its sign
        return {"codes": from_rows(codes), "scale_codes": to_grid(np.ascontiguousarray(scales).view(f"u{size}"))}

    def dequantize(self, codes: Array, scale_codes: Array, scheme: Scheme, to: str = "f32") -> Array:
        kind, width, size, offset = self._type(scheme)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        if to != "f32":
            raise Lacks(f"to:{to}")
        rows = to_rows(codes) + np.uint8(offset) & (15 if kind != kinds.Q8_0 else 255)
        stored = rows if kind == kinds.Q8_0 else rows[:, : width // 2] | rows[:, width // 2 :] << 4
        scales = scale_codes.reshape(-1, 1).view("u1").reshape(-1, size)
        return from_rows(gguf.dequantize(np.concatenate([scales, stored], axis=1), kind))

    def encode_scale(self, x: Array, type: str, rounding: str) -> Array:
        if (type, rounding) != ("ue4m3", "nearest"):
            raise Lacks(f"encode_scale:{type}:{rounding}")
        return np.asarray(quants.NVFP4.fp32_to_ue4m3(floats(x, "f32")))

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        if type != "ue4m3":
            raise Lacks(f"decode_scale:{type}")
        # its decode halves, for codes of twice e2m1
        return np.asarray(quants.NVFP4.ue4m3_to_fp32(scale_codes) * 2).astype("f4")

    def _type(self, scheme: Scheme) -> tuple[object, int, int, int]:
        pair = (scheme.value.name, scheme.block.scale.name if scheme.block else "")
        if pair not in TYPES or scheme.tensor is not None:
            raise Lacks(f"quantize:{'-'.join(pair)}")
        return (*TYPES[pair], 8 if pair[0] == "q4f" else 0)
