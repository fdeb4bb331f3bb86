"""gfloat: any small float, elements and blocks of MX, in exact Python arithmetic; fp4 and fp6 raise for a NaN."""

from typing import Any

import numpy as np

from quantspec import Scheme
from quantspec_conformance.peers.support import MINIFLOATS, Array, Lacks, Peer, Refuses, blocks_of, library, pick

gfloat, formats = library("gfloat"), library("gfloat.formats")
INFO = {name: getattr(formats, f"format_info_ocp_{name}") for name in MINIFLOATS} | {
    "ue8m0": formats.format_info_ocp_e8m0
}


class Adapter(Peer):
    name = "gfloat"
    values = MINIFLOATS
    scales = ("ue8m0",)
    max_elements = 65536  # a loop of Python over the elements
    policies = {"recipe": "ocp-mx"}  # noqa: RUF012
    ways = {"recipe": ("ocp-mx",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        return self._codes(x, value)

    def decode(self, codes: Array, value: str) -> Array:
        try:
            return np.asarray(gfloat.decode_ndarray(INFO[value], codes)).astype("f4")
        except ValueError as error:  # Code point not in range
            raise Refuses("encoding", str(error)) from None

    def encode_scale(self, x: Array, type: str, rounding: str) -> Array:
        if rounding != "nearest" or type != "ue8m0":
            raise Lacks(f"encode_scale:{type}:{rounding}")
        return self._codes(x, type)

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        return np.asarray(gfloat.decode_ndarray(pick(INFO, type), scale_codes)).astype("f4")

    def quantize(self, x: Array, scheme: Scheme) -> dict[str, Array]:
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme)
        info = self._block(scheme)
        rows = []
        for row in to_rows(x.astype("f4")):
            scale = gfloat.compute_scale_amax(info.etype.emax, row)
            rows.append(list(gfloat.encode_block(info, scale, row / np.float32(scale))))
        made = np.array(rows, "u1")
        return {"codes": from_rows(made[:, 1:]), "scale_codes": to_grid(made[:, 0])}

    def dequantize(self, codes: Array, scale_codes: Array, scheme: Scheme) -> Array:
        to_rows, from_rows, _ = blocks_of(codes.shape, scheme)
        info = self._block(scheme)
        pairs = zip(scale_codes.reshape(-1).tolist(), to_rows(codes).tolist(), strict=True)
        return from_rows(np.array([list(gfloat.decode_block(info, [s, *row])) for s, row in pairs], "f4"))

    def _codes(self, x: Array, name: str) -> Array:
        rounded = gfloat.round_ndarray(INFO[name], x.astype("f8"), gfloat.RoundMode.TiesToEven, sat=True)
        return np.asarray(gfloat.encode_ndarray(INFO[name], rounded)).astype("u1")

    def _block(self, scheme: Scheme) -> Any:
        if scheme.block is None or scheme.tensor is not None or scheme.block.scale.name != "ue8m0":
            raise Lacks("scales other than ue8m0 a block")
        return gfloat.BlockFormatInfo("mx", INFO[scheme.value.name], 0, INFO["ue8m0"])
