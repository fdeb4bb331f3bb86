"""gguf: block structs of ggml in numpy. MXFP4, Q8_0 and Q4_0 both ways, NVFP4 read, the ue4m3 scale of ggml."""

import numpy as np  # noqa: I001  (the one long import stays on few lines)

from quantspec import Scheme
from quantspec_conformance.peers.support import (
    NUMPY, Array, Lacks, Made, Peer, blocks_of, floats, library, names, pick, shape_of,
)  # fmt: skip

gguf = library("gguf")
quants, kinds = library("gguf.quants"), gguf.GGMLQuantizationType
#: (value, scale, tensor scale) -> its type, elements of a block, bytes of the scale, what is added to a code.
TYPES = {
    ("e2m1", "ue8m0", ""): (kinds.MXFP4, 32, 1, 0),
    ("q8s", "f16", ""): (kinds.Q8_0, 32, 2, 0),
    ("q8f", "f16", ""): (kinds.Q8_0, 32, 2, 0),
    ("q4f", "f16", ""): (kinds.Q4_0, 32, 2, 8),
}
#: Container -> its type, and a scale of 1.
WORDS = {"ggml-blocks": (kinds.MXFP4, [127]), "ggml-q8_0": (kinds.Q8_0, [0, 60]), "ggml-q4_0": (kinds.Q4_0, [0, 60])}
RECIPES, CODECS = ("ggml-mxfp4", "ggml-q8_0", "ggml-q4_0"), ("ggml-mxfp4", "ggml-q4_0", "ties-away")


class Adapter(Peer):
    name = "gguf"
    values = ("e2m1", "q8s", "q8f", "q4f")
    scales = ("ue8m0", "f16", "ue4m3")
    policies = {"recipe": ", ".join(RECIPES), "codec": ", ".join(CODECS), "container": ", ".join(WORDS)}  # noqa: RUF012
    ways = {"recipe": RECIPES, "codec": CODECS}  # noqa: RUF012

    def quantize(self, x: Array, scheme: Scheme) -> Made:
        kind, width, size, offset = pick(TYPES, names(scheme))
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        made = gguf.quantize(to_rows(floats(x, "f32")), kind)
        scales, codes = made[:, :size], made[:, size:]
        if kind != kinds.Q8_0:
            codes = np.concatenate([codes & 15, codes >> 4], axis=1)
        codes = (codes.astype("i1") - offset).view("u1") if offset else codes  # a code is a byte with its sign
        return {"codes": from_rows(codes), "scale_codes": to_grid(np.ascontiguousarray(scales).view(f"u{size}"))}

    def dequantize(self, codes: Array, scale_codes: Array, scheme: Scheme) -> Array:
        kind, width, size, offset = pick(TYPES, names(scheme))
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        rows = to_rows(codes) + np.uint8(offset) & (15 if kind != kinds.Q8_0 else 255)
        stored = rows if kind == kinds.Q8_0 else rows[:, : width // 2] | rows[:, width // 2 :] << 4
        scales = scale_codes.reshape(-1, 1).view("u1").reshape(-1, size)
        return from_rows(gguf.dequantize(np.concatenate([scales, stored], axis=1), kind))

    def unpack(self, words: Array, scheme: Scheme, shape: str, container: str) -> Array:
        """The codes are those of the numbers that it reads in blocks with a scale of 1."""
        (kind, one), (own, width, *_) = pick(WORDS, container), pick(TYPES, names(scheme))
        if kind != own or shape_of(shape)[-1] % width:
            raise Lacks(f"container:{container} for {scheme}")
        stored = words.reshape(-1, width if kind == kinds.Q8_0 else width // 2)
        scales = np.tile(np.array(one, "u1"), (len(stored), 1))
        numbers = gguf.dequantize(np.concatenate([scales, stored], axis=1), kind)
        return np.asarray(numbers.astype(NUMPY[scheme.value.name])).view("u1").reshape(shape_of(shape))

    def encode_scale(self, x: Array, type: str, rounding: str) -> Array:
        if (type, rounding) != ("ue4m3", "nearest"):
            raise Lacks(f"encode_scale:{type}:{rounding}")
        return np.asarray(quants.NVFP4.fp32_to_ue4m3(floats(x, "f32")))

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        if type != "ue4m3":
            raise Lacks(f"decode_scale:{type}")
        return np.asarray(quants.NVFP4.ue4m3_to_fp32(scale_codes) * 2).astype(
            "f4"
        )  # it halves, for codes of twice e2m1
