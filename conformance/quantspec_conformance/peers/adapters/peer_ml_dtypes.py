"""ml_dtypes: casts of numpy both ways, a byte a value; no packing and no blocks."""

from quantspec_conformance.peers.support import MINIFLOATS, NUMPY, Array, Lacks, Peer, codes_of, patterns


class Adapter(Peer):
    name = "ml_dtypes"
    values = MINIFLOATS
    scales = ("ue8m0", "bf16")
    policies = {"codec": "ml-dtypes"}  # noqa: RUF012
    ways = {"codec": ("ml-dtypes",)}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        return codes_of(x.astype(NUMPY[value]))

    def decode(self, codes: Array, value: str) -> Array:
        return patterns(codes, value).astype("f4")

    def encode_scale(self, x: Array, type: str, rounding: str) -> Array:
        if rounding != "nearest":
            raise Lacks("rounding:up")
        return codes_of(x.astype(NUMPY[type]))

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        return patterns(scale_codes, type).astype("f4")
