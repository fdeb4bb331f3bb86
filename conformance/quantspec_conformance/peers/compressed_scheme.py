"""What a scheme of ours is to compressed-tensors: arguments of its quantizer, its scales of both levels, its codes."""

from typing import Any

import numpy as np

from quantspec import Scheme

from .support import Array, Given, Lacks, from_nibbles, library, names, nibbles, pick, scalar
from .torch_arrays import raw, tensor_of

__all__ = ["arguments", "codes", "fp4_codes", "global_scale", "numbers", "read_scale", "stored_scale", "width_of"]

torch, ct = library("torch"), library("compressed_tensors.quantization")
helpers = library("compressed_tensors.quantization.utils.helpers")
mx, nv = library("compressed_tensors.compressors.mx_utils"), library("compressed_tensors.compressors.nvfp4.helpers")
#: (value, scale, tensor scale) -> elements of a block (0: as many as asked), and the recipe that says what it does.
KINDS = {
    ("e2m1", "ue8m0", ""): (32, "mx-compressed-tensors"),
    ("e4m3", "ue8m0", ""): (32, "mx-compressed-tensors"),
    ("e2m1", "ue4m3", ""): (16, "nvfp4-compressed-tensors"),
    ("e2m1", "ue4m3", "f32"): (16, "nvfp4-compressed-tensors"),
    **{(value, "f32", ""): (0, "") for value in ("q8f", "q4f", "q2f")},
}
SCALES = {"ue8m0": torch.uint8, "ue4m3": torch.float8_e4m3fn, "f32": torch.float32}


def width_of(scheme: Scheme, recipe: str) -> int:
    """Elements of a block, 0 for any number. Lacks for a scheme that it has not, and a recipe that is not its own."""
    width, own = pick(KINDS, names(scheme))
    if recipe not in ("", own):
        raise Lacks(f"recipe:{recipe} for {scheme}")
    return int(width)


def arguments(scheme: Scheme, width: int) -> Any:
    """The arguments of its quantizer for blocks of this width."""
    scale = names(scheme)[1]
    return ct.QuantizationArgs(
        num_bits=scheme.value.bits,
        type="int" if scheme.value.is_integer else "float",
        symmetric=True,
        strategy="tensor_group" if scale == "ue4m3" else "group",
        group_size=width,
        scale_dtype=None if scale == "f32" else SCALES[scale],
    )


def global_scale(rows: Any, scheme: Scheme, number: Given, code: Given) -> Any:
    """The inverse of the tensor's scale, which it stores: of a number, a code that is one, or its own. None in one level."""
    if scheme.tensor is None:
        return None
    if code is not None:
        return tensor_of(code.view("f4").reshape(1))
    if number is not None:
        return tensor_of(1 / scalar(number, scheme).reshape(1))
    return helpers.generate_gparam(rows.min(), rows.max())


def stored_scale(scales: Any, scheme: Scheme) -> Array:
    """The codes of scales, as it writes them."""
    name = names(scheme)[1]
    return raw(mx.compress_mx_scale(scales, torch.uint8) if name == "ue8m0" else scales.to(SCALES[name]))


def read_scale(scale_codes: Array, scheme: Scheme) -> Any:
    """The scales of codes, a column of f32."""
    stored, name = tensor_of(scale_codes.reshape(-1, 1)), names(scheme)[1]
    return (mx.decompress_mx_scale(stored) if name == "ue8m0" else stored.view(SCALES[name])).float()


def fp4_codes(data: Any) -> Array:
    """The codes of numbers of e2m1, as it packs them."""
    return from_nibbles(raw(nv.pack_fp4_to_uint8(data)))


def codes(data: Any, scheme: Scheme) -> Array:
    """The codes of what its quantizer gives."""
    if scheme.value.name == "e2m1":
        return fp4_codes(data)
    return raw(data.to(torch.float8_e4m3fn) if scheme.value.name == "e4m3" else data)


def numbers(rows: Array, scheme: Scheme) -> Any:
    """What its quantizer reads for rows of codes."""
    if scheme.value.name == "e2m1":
        return nv.unpack_fp4_from_uint8(tensor_of(np.ascontiguousarray(nibbles(rows))), *rows.shape, torch.float32)
    return tensor_of(rows).view(torch.float8_e4m3fn)
