"""NVFP4 of torchao's prototype: rows of 16 with ue4m3 scales, in one level and in two."""

from typing import Any

from quantspec import Scheme

from .support import Array, Given, Lacks, Made, library, names, nibbles, pick
from .torch_arrays import array_of, raw, tensor_of

__all__ = ["dequantize", "quantize"]

torch, nv = library("torch"), library("torchao.prototype.mx_formats.nvfp4_tensor")
#: (value, scale, tensor scale) -> recipes under which it may be asked.
RECIPES = {("e2m1", "ue4m3", ""): ("",), ("e2m1", "ue4m3", "f32"): ("", "nvfp4-torchao")}


def quantize(rows: Any, scheme: Scheme, level: Given, recipe: str) -> tuple[Any, Any, Made]:
    """Scales, pairs of codes, and in two levels the code of the tensor scale, given or its own."""
    if recipe not in pick(RECIPES, names(scheme)):
        raise Lacks(f"recipe:{recipe}")
    own = nv.per_tensor_amax_to_scale(rows.abs().max()) if level is None else tensor_of(level)
    scales, pairs = nv.nvfp4_quantize(rows, 16, own if scheme.tensor else None)
    return scales, pairs, {"tensor_scale_code": raw(own)} if scheme.tensor else {}


def dequantize(rows: Array, scale_codes: Array, level: Given, recipe: str) -> Array:
    """The numbers of rows of codes under two levels, in its own order of operations alone."""
    if recipe != "nvfp4-torchao" or level is None:
        raise Lacks("dequantize: one level of ue4m3, or another order")
    scales = tensor_of(scale_codes.reshape(-1, 1)).view(torch.float8_e4m3fn)
    tensor = nv.NVFP4Tensor(
        tensor_of(nibbles(rows)), scales, 16, torch.float32, tensor_of(level.view("f4").reshape(()))
    )
    return array_of(tensor.dequantize(torch.float32))
