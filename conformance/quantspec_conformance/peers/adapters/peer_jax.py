"""JAX on CPU: casts of XLA, and the block quantizers behind jax.nn.scaled_dot_general (a private helper)."""

import numpy as np  # noqa: I001  (the one long import stays on few lines)

from quantspec import Scheme
from quantspec_conformance.peers.support import (
    NUMPY, Array, Lacks, Peer, blocks_of, codes_of, floats, library, patterns, pick, scalar,
)  # fmt: skip

jax, jnp = library("jax"), library("jax.numpy")
helper = library("jax._src.cudnn.scaled_matmul_stablehlo")
VALUES = ("e4m3", "e5m2", "e2m1")


class Adapter(Peer):
    name = "jax"
    values = VALUES
    scales = ("ue8m0", "ue4m3", "bf16", "f16", "f32")
    levels = ("block", "both")
    policies = {"recipe": "jax-mxfp8, jax-nvfp4", "codec": "jax, ml-dtypes"}  # noqa: RUF012

    def encode(self, x: Array, value: str) -> Array:
        return self._cast(floats(x, "f32", "f16", "bf16"), value)

    def decode(self, codes: Array, value: str) -> Array:
        return np.asarray(jnp.asarray(patterns(codes, value)).astype(jnp.float32))

    def encode_scale(self, x: Array, type: str, rounding: str) -> Array:
        if rounding != "nearest":
            raise Lacks("rounding:up")
        return self._cast(floats(x, "f32", "f16", "bf16"), self._own(type))

    def decode_scale(self, scale_codes: Array, type: str) -> Array:
        return np.asarray(jnp.asarray(patterns(scale_codes, self._own(type))).astype(jnp.float32))

    def quantize(self, x: Array, scheme: Scheme, tensor_scale: Array | None = None) -> dict[str, Array]:
        names = (scheme.value.name, scheme.block.scale.name if scheme.block else "")
        mode, width = {("e4m3", "ue8m0"): ("mxfp8", 32), ("e2m1", "ue4m3"): ("nvfp4", 16)}.get(names, ("", 0))
        if not mode or (scheme.tensor is not None) != (mode == "nvfp4" and tensor_scale is not None):
            raise Lacks(f"quantize:{scheme}")
        to_rows, from_rows, to_grid = blocks_of(x.shape, scheme, width)
        scale = (
            jnp.ones(1, jnp.float32) if tensor_scale is None else jnp.asarray(scalar(tensor_scale, scheme)).reshape(1)
        )
        config = jax.nn.get_scaled_dot_general_config(mode, global_scale=scale if mode == "nvfp4" else None)
        codes, scales = helper.quantize(jnp.asarray(to_rows(floats(x, "f32"))), config)
        level = {} if tensor_scale is None else {"tensor_scale_code": codes_of(tensor_scale.reshape(()))}
        return {
            "codes": from_rows(np.asarray(codes).view("u1")),
            "scale_codes": to_grid(np.asarray(scales).view("u1")),
        } | level

    def _cast(self, x: Array, name: str) -> Array:
        return codes_of(np.asarray(jnp.asarray(x).astype(pick(NUMPY, name))))

    def _own(self, name: str) -> str:
        if name not in ("ue8m0", "bf16", "f16"):
            raise Lacks(f"scale:{name}, which is no type of its own here")
        return name
