"""Quantize and dequantize on a device. Rules SCL-14, QNT-1 to QNT-12; which scales: `choice`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import CANONICAL, CANONICAL_CODEC, Codec, DtypeError, Quantized, Recipe, Scheme
from quantspec.blocks import check_array_shape
from quantspec.recipes import require_canonical
from quantspec.tensor import require_record

from .choice import Given, choose
from .errors import ForeignArrayError
from .formats import ABSENT, FLOATS, INDEX, float_type
from .geometry import WHOLE, Shape, grid_walk
from .host import DeviceArray, Machine
from .inputs import ArrayInput, take_numbers
from .tensors import DeviceQuantized

__all__ = ["dequantize", "quantize", "uploaded"]


def quantize(
    machine: Machine,
    x: ArrayInput,
    scheme: Scheme | str,
    block: Given,
    tensor: Given,
    recipe: Recipe = CANONICAL,
    codec: Codec = CANONICAL_CODEC,
) -> DeviceQuantized:
    """Codes and scales of a tensor. As `quantspec.quantize`; checks in its order. Rules QNT-1 to QNT-8."""
    scheme = Scheme.of(scheme)
    require_canonical(recipe=recipe, codec=codec)
    numbers = take_numbers(machine, x)
    shape = check_array_shape(numbers.array.shape, argument="x.shape")
    scheme.require_shape(shape)
    blocks, single = choose(numbers, scheme, block, tensor)
    block_codes = None if blocks is None else blocks.codes
    tensor_code = None if single is None else single.codes
    effective = _effective(machine, scheme, block_codes, tensor_code)
    codes = machine.empty(shape, np.uint8)
    head = (machine.formats, numbers.row, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments)
    grid = machine.constant(_grid(scheme, shape, effective))
    machine.launch("quantize", codes.size, *head, numbers.array, effective, grid, codes, codes.size)
    return DeviceQuantized(
        scheme,
        codes,
        block_codes,
        tensor_code,
        recipe,
        None if blocks is None else blocks.saturated,
        None if single is None else single.saturated,
    )


def _effective(machine: Machine, scheme: Scheme, blocks: DeviceArray | None, single: DeviceArray | None) -> DeviceArray:
    """s of each block, flat, or of the tensor. Rule SCL-14."""
    effective = machine.empty((1 if blocks is None else blocks.size,), np.uint32)
    types = (None if scheme.block is None else scheme.block.scale, scheme.tensor)
    rows = [ABSENT if scale is None else INDEX[scale.name] for scale in types]
    codes = [effective if level is None else level for level in (blocks, single)]  # that of an absent level is not read
    machine.launch("effective_scale", effective.size, machine.formats, *rows, *codes, effective, effective.size)
    return effective


def _grid(scheme: Scheme, shape: Shape, effective: DeviceArray) -> Shape:
    return WHOLE if effective.size == 1 or 0 in shape else grid_walk(shape, scheme.extents(len(shape)))


def dequantize(
    machine: Machine, tensor: Quantized | DeviceQuantized, dtype: npt.DTypeLike = "f32", codec: Codec = CANONICAL_CODEC
) -> DeviceArray:
    """Numbers of a quantized tensor. As `quantspec.dequantize`. Rules QNT-9 to QNT-12."""
    quantized = uploaded(machine, tensor)
    require_canonical(recipe=quantized.recipe, codec=codec)
    out = _output(dtype)
    scheme, codes = quantized.scheme, quantized.codes
    effective = _effective(machine, scheme, quantized.scale_codes, quantized.tensor_scale_code)
    y = machine.empty(codes.shape, out)
    head = (machine.formats, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments, INDEX[FLOATS[out].name])
    grid = machine.constant(_grid(scheme, codes.shape, effective))
    machine.launch("dequantize", y.size, *head, codes, effective, grid, y, y.size)
    return y


def _output(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The dtype that an output is written in. Rule QNT-10."""
    found = float_type(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    if found is None or found not in FLOATS:
        raise DtypeError("QNT-10", f"dtype={dtype!r}; allowed: 'f32', 'f16', 'bf16' or the dtypes of those")
    return found


def uploaded(machine: Machine, tensor: Quantized | DeviceQuantized) -> DeviceQuantized:
    """A quantized tensor of this session; an array or bytes in its place is refused. Rule QNT-12."""
    if isinstance(tensor, DeviceQuantized):
        if tensor.codes.machine is not machine:
            raise ForeignArrayError("the quantized tensor belongs to another session; pass its .get()")
        return tensor
    require_record(tensor, Quantized)
    return DeviceQuantized(
        tensor.scheme,
        machine.upload(tensor.codes),
        None if tensor.scale_codes is None else machine.upload(tensor.scale_codes),
        None if tensor.tensor_scale_code is None else machine.upload(tensor.tensor_scale_code),
        tensor.recipe,
    )
