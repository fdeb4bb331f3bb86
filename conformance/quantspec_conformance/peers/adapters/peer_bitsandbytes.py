"""bitsandbytes on CPU: nf4 in flat blocks with an f32 absmax. Its fp4 table is not e2m1, its fields lie high first."""

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import Array, Lacks, Peer, blocks_of, floats, library, pick

torch, bnb = library("torch"), library("bitsandbytes.functional")
#: Codec -> its name of the format.
KINDS = {"bnb-nf4": "nf4", "bnb-fp4-cpu": "fp4"}
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)


class Adapter(Peer):
    name = "bitsandbytes"
    values = ("q4f", "q4s")
    scales = ("f32",)
    modes = ("lookup",)
    policies = {"recipe": "bnb-4bit-cpu", "codec": "bnb-nf4, bnb-fp4-cpu"}  # noqa: RUF012
    ways = {"recipe": ("bnb-4bit-cpu",)}  # noqa: RUF012

    def quantize(
        self, x: Array, scheme: Scheme, codec: str = "bnb-nf4", table: Array | None = None
    ) -> dict[str, Array]:
        width, kind = self._width(scheme, codec), pick(KINDS, codec)
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        rows = to_rows(floats(x, "f32"))
        data, state = bnb.quantize_4bit(torch.from_numpy(rows), blocksize=width, quant_type=kind)
        packed = data.numpy().reshape(-1)
        codes = np.stack([packed >> 4, packed & 15], axis=1).reshape(rows.shape)
        return {"codes": from_rows(codes), "scale_codes": to_grid(state.absmax.numpy().view("u4"))}

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, to: str = "f32", codec: str = "bnb-nf4",
        table: Array | None = None,
    ) -> Array:  # fmt: skip
        width, kind = self._width(scheme, codec), pick(KINDS, codec)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        if to != "f32":
            raise Lacks(f"to:{to}")
        rows = to_rows(codes & 15)
        packed = torch.from_numpy((rows[:, 0::2] << 4 | rows[:, 1::2]).reshape(-1, 1))
        absmax, numbers = torch.from_numpy(scale_codes.reshape(-1).view("f4")), bnb.get_4bit_type(kind, "cpu")
        state = bnb.QuantState(absmax, rows.shape, numbers, width, kind, torch.float32)
        return from_rows(bnb.dequantize_4bit(packed, state).numpy())

    def _width(self, scheme: Scheme, codec: str) -> int:
        block, nf4 = scheme.block, ".lut-nf4." in str(scheme)
        if block is None or scheme.tensor is not None or block.scale.name != "f32" or nf4 == (codec == "bnb-fp4-cpu"):
            raise Lacks(f"nf4, or fp4 by its codec, in f32 blocks alone, not {scheme}")
        return next((width for width in WIDTHS if width >= block.extents[-1]), 0)
