"""Dequantize on a device, from codes or straight from words. Rules QNT-9 to QNT-12, PAK-7, PAK-8."""

from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import CANONICAL, CANONICAL_CONTAINER, Codec, DtypeError, Packed, Quantized
from quantspec.following import require_recipe

from . import dequantize_fast
from .formats import FLOATS, INDEX, float_type
from .host import DeviceArray, Machine
from .packing import Strictness, require_readable, unpack, uploaded_words
from .paths import Path
from .quantize import effective_scales, grid_of, uploaded
from .recipes import Following, decodes_plainly
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["dequantize", "dequantize_packed", "output_dtype"]


def dequantize(
    machine: Machine,
    tensor: Quantized | DeviceQuantized,
    dtype: npt.DTypeLike = "f32",
    codec: Codec | str | None = None,
    into: DeviceArray | None = None,
) -> DeviceArray:
    """Numbers of a quantized tensor. As `quantspec.dequantize`. Rules QNT-9 to QNT-12, POL-5, POL-10, POL-13."""
    quantized = uploaded(machine, tensor)
    codec = quantized.codec if codec is None else Codec.of(codec)
    out = output_dtype(dtype)
    if not _is_plain(quantized, codec):
        return _by_recipe(machine, quantized, codec, out, into)
    planned = dequantize_fast.plan(machine, quantized.scheme, quantized.shape, out, words=False)
    return _numbers(machine, quantized, out, planned, into)


def dequantize_packed(
    machine: Machine,
    packed: Packed | DevicePacked,
    dtype: npt.DTypeLike = "f32",
    padding: Strictness = "refuse",
    into: DeviceArray | None = None,
) -> DeviceArray:
    """Numbers of a packed tensor: those of `unpack`'s codes, refused as `unpack` and `dequantize` refuse."""
    own = uploaded_words(machine, packed, argument="packed")
    if own.container != CANONICAL_CONTAINER:
        return dequantize(machine, unpack(machine, own, padding), dtype, into=into)
    require_readable(machine, own, padding)
    out = output_dtype(dtype)
    if not _is_plain(own, own.codec):
        return _by_recipe(machine, unpack(machine, own, "ignore"), own.codec, out, into)
    planned = dequantize_fast.plan(machine, own.scheme, own.shape, out, words=True)
    if isinstance(planned, Path):
        return _numbers(machine, unpack(machine, own, "ignore"), out, planned, into)
    return dequantize_fast.run(machine, planned, own.words, own, into)


def _is_plain(tensor: DeviceQuantized | DevicePacked, codec: Codec) -> bool:
    """True where the numbers are the canonical recipe's; a recipe that does not cover the tensor is refused. Rule POL-10."""
    if tensor.recipe != CANONICAL:
        require_recipe(tensor.recipe, tensor.scheme, tensor.shape)
    return decodes_plainly(tensor.recipe, codec)


def _by_recipe(
    machine: Machine, quantized: DeviceQuantized, codec: Codec, out: np.dtype[Any], into: DeviceArray | None
) -> DeviceArray:
    """By the steps of the tensor's recipe, and a codec. Rules POL-5, POL-13."""
    scheme = quantized.scheme
    levels = quantized.scale_codes, quantized.tensor_scale_code
    effective = effective_scales(machine, scheme, *levels)
    own = Following(machine, scheme, quantized.recipe, quantized.shape)
    own.stored(*levels, effective)
    return own.numbers(quantized.codes, codec, grid_of(scheme, quantized.shape, effective), out, into)


def _numbers(
    machine: Machine,
    quantized: DeviceQuantized,
    out: np.dtype[Any],
    planned: dequantize_fast.Plan | Path,
    into: DeviceArray | None,
) -> DeviceArray:
    if not isinstance(planned, Path):
        return dequantize_fast.run(machine, planned, quantized.codes, quantized, into)
    scheme, codes = quantized.scheme, quantized.codes
    effective = effective_scales(machine, scheme, quantized.scale_codes, quantized.tensor_scale_code)
    y = machine.empty(codes.shape, out, into)
    head = (machine.formats, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments, INDEX[FLOATS[out].name])
    grid = machine.constant(grid_of(scheme, codes.shape, effective))
    machine.launch("dequantize", y.size, *head, codes, effective, grid, y, y.size)
    return y.written_by(planned)


def output_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype that an output is written in. Rule QNT-10."""
    found = float_type(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    if found is None or found not in FLOATS:
        raise DtypeError("QNT-10", f"dtype={dtype!r}; allowed: 'f32', 'f16', 'bf16' or the dtypes of those")
    return found
