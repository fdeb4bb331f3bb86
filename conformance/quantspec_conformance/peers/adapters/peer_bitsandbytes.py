"""bitsandbytes on CPU: nf4 in flat blocks with an f32 absmax. Its fp4 table is not e2m1, its fields lie high first."""

from typing import Any  # noqa: I001  (the one long import stays on few lines)

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import (
    Array, Given, Lacks, Made, Peer, blocks_of, floats, library, pick, shape_of, signed,
)  # fmt: skip
from quantspec_conformance.peers.torch_arrays import array_of, tensor_of

torch, bnb = library("torch"), library("bitsandbytes.functional")
#: Codec -> its name of the format.
KINDS = {"bnb-nf4": "nf4", "bnb-fp4-cpu": "fp4"}
WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)


class Adapter(Peer):
    name = "bitsandbytes"
    values = ("q4f", "q4s", "e2m1")
    scales = ("f32", "ue8m0")
    modes = ("lookup", "symmetric")
    policies = {"recipe": "bnb-4bit-cpu", "codec": "bnb-nf4, bnb-fp4-cpu", "container": "high-nibble"}  # noqa: RUF012
    ways = {"recipe": ("bnb-4bit-cpu",)}  # noqa: RUF012

    def quantize(self, x: Array, scheme: Scheme, codec: str = "bnb-nf4", table: Given = None) -> Made:
        width, kind = self._width(scheme, codec), pick(KINDS, codec)
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        rows = to_rows(floats(x, "f32"))
        data, state = bnb.quantize_4bit(tensor_of(rows), blocksize=width, quant_type=kind)
        packed = array_of(data).reshape(-1)
        codes = np.stack([packed >> 4, packed & 15], axis=1).reshape(rows.shape)
        return {"codes": from_rows(codes), "scale_codes": to_grid(array_of(state.absmax).view("u4"))}

    def dequantize(
        self, codes: Array, scale_codes: Array, scheme: Scheme, codec: str = "bnb-nf4", table: Given = None
    ) -> Array:
        width, kind = self._width(scheme, codec), pick(KINDS, codec)
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme, width)
        rows = to_rows(codes & 15)
        packed = rows[:, 0::2] << 4 | rows[:, 1::2]
        return from_rows(self._read(packed, scale_codes.view("f4"), width, kind).reshape(rows.shape))

    def unpack(self, words: Array, scheme: Scheme, shape: str, container: str) -> Array:
        """A field is the place in the table of the number that it reads, under an absmax of 1."""
        if scheme.store.text != "packed_native_0" or words.size % 16 or container != "high-nibble":
            raise Lacks(f"words of {scheme}")
        numbers = self._read(words, np.ones(words.size // 16, "f4"), 32, "nf4")
        fields = (
            np.searchsorted(array_of(bnb.get_4bit_type("nf4", "cpu")), numbers).astype("u1").reshape(shape_of(shape))
        )
        return signed(fields) if scheme.value.is_integer else fields

    def _read(self, packed: Array, absmax: Array, width: int, kind: str) -> Any:
        data, numbers = tensor_of(packed.reshape(-1, 1)), bnb.get_4bit_type(kind, "cpu")
        state = bnb.QuantState(tensor_of(absmax.reshape(-1)), (2 * packed.size,), numbers, width, kind, torch.float32)
        return array_of(bnb.dequantize_4bit(data, state))

    def _width(self, scheme: Scheme, codec: str) -> int:
        block, nf4 = scheme.block, ".lut-nf4." in str(scheme)
        if block is None or scheme.tensor is not None or block.scale.name != "f32" or nf4 == (codec == "bnb-fp4-cpu"):
            raise Lacks(f"nf4, or fp4 by its codec, in f32 blocks alone, not {scheme}")
        return next((width for width in WIDTHS if width >= block.extents[-1]), 0)
