"""tosa-tools: CAST of fp8, and the casts to and from blocks of 32, by its command line model; MXINT8 as whole numbers."""

from typing import Any

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import NUMPY, Array, Lacks, Made, Peer, blocks_of, floats, library, pick
from quantspec_conformance.peers.tosa_model import operate

kinds = library("tosa.DType").DType
TYPES = {
    "e4m3": kinds.FP8E4M3,
    "e5m2": kinds.FP8E5M2,
    "e2m3": kinds.FP6E2M3,
    "e3m2": kinds.FP6E3M2,
    "e2m1": kinds.FP4E2M1,
    "q8s": kinds.MXINT8,
}
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4, "q8s": 8}
FP8 = {name: TYPES[name] for name in ("e4m3", "e5m2")}
STORED = {"e4m3": NUMPY["e4m3"]}  # its files hold e5m2 and what is packed as bytes


class Adapter(Peer):
    name = "tosa-tools"
    values = tuple(TYPES)
    scales = ("ue8m0",)
    policies = {"recipe": "fit"}  # noqa: RUF012
    ways = {"recipe": ("fit",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        made = operate("CAST", [(floats(x, "f32"), kinds.FP32)], [(x.shape, pick(FP8, value))])
        return made[0].view("u1").reshape(x.shape)

    def decode(self, codes: Array, value: str) -> Array:
        given = codes.view(STORED.get(value, "u1"))
        return operate("CAST", [(given, pick(FP8, value))], [(codes.shape, kinds.FP32)])[0]

    def quantize(self, x: Array, scheme: Scheme) -> Made:
        to_rows, from_rows, to_grid = self._blocks(x, scheme)
        rows, name = to_rows(floats(x, "f32")), scheme.value.name
        outs = [(rows.shape, TYPES[name]), ((len(rows), 1), kinds.FP8UE8M0)]
        data, scales = operate("CAST_TO_BLOCK_SCALED", [(rows, kinds.FP32)], outs, 32)
        bits = np.unpackbits(data.view("u1").reshape(-1), bitorder="little").reshape(-1, BITS[name])
        codes = np.packbits(bits, axis=1, bitorder="little").reshape(rows.shape)
        return {"codes": from_rows(codes), "scale_codes": to_grid(self._scales(scales.view("u1"), name, -6))}

    def dequantize(self, codes: Array, scale_codes: Array, scheme: Scheme) -> Array:
        to_rows, from_rows, _ = self._blocks(codes, scheme)
        rows, name = to_rows(codes), scheme.value.name
        fields = np.unpackbits(rows[..., None], axis=2, bitorder="little")[..., : BITS[name]]
        packed = np.packbits(fields.reshape(len(rows), -1), axis=1, bitorder="little").view(STORED.get(name, "u1"))
        scales = self._scales(scale_codes.reshape(-1, 1), name, 6)
        ins = [(packed, TYPES[name]), (scales.view(NUMPY["ue8m0"]), kinds.FP8UE8M0)]
        return np.asarray(from_rows(operate("CAST_FROM_BLOCK_SCALED", ins, [(rows.shape, kinds.FP32)], 32)[0]))

    def _scales(self, codes: Array, name: str, steps: int) -> Array:
        """MXINT8 counts in 64ths: its scales are 2^6 times those of whole numbers."""
        moved = np.where((codes == 255) | (name != "q8s"), codes, codes.astype("i2") + steps)
        if not ((moved >= 0) & (moved <= 255)).all():
            raise Lacks("MXINT8 with scales that are none of whole numbers")
        return moved.astype("u1")

    def _blocks(self, array: Array, scheme: Scheme) -> Any:
        if scheme.block is None or scheme.tensor is not None or scheme.block.scale.name != "ue8m0":
            raise Lacks(f"{scheme}")
        return blocks_of(array.shape, scheme, 32)
