"""Tensors from parts already on the device (or not): checked by kernels as quantspec's records check theirs."""

from collections.abc import Sequence

import numpy as np

from quantspec import (
    CANONICAL,
    CANONICAL_CODEC,
    CANONICAL_CONTAINER,
    Codec,
    Container,
    DtypeError,
    EncodingError,
    Recipe,
    ScaleError,
    ScaleType,
    Scheme,
    ShapeError,
)
from quantspec.blocks import check_array_shape

from .choice import require_grid
from .containers import box_of
from .geometry import Shape, blocks_along
from .host import DeviceArray, Machine
from .inputs import ArrayInput, as_array, take_code_bytes, take_scale_codes
from .scales import check_scale_codes
from .tensors import DevicePacked, DeviceQuantized
from .values import check_codes

__all__ = ["packed", "quantized"]


def quantized(
    machine: Machine,
    scheme: Scheme | str,
    codes: ArrayInput,
    scale_codes: ArrayInput | None,
    tensor_scale_code: ArrayInput | None,
    recipe: Recipe | str = CANONICAL,
    codec: Codec | str = CANONICAL_CODEC,
) -> DeviceQuantized:
    """A quantized tensor of codes and scale codes. As the constructor of `quantspec.Quantized`."""
    recipe, codec, scheme = Recipe.of(recipe), Codec.of(codec), Scheme.of(scheme)
    taken = take_code_bytes(machine, codes, scheme.value)
    check_codes(taken, scheme.value, lookup=scheme.is_lookup)
    shape = check_array_shape(taken.shape, argument="codes.shape")
    scheme.require_shape(shape)
    levels = _levels(machine, scheme, shape, scale_codes, tensor_scale_code)
    return DeviceQuantized(scheme, taken, *levels, recipe, codec=codec)


def packed(
    machine: Machine,
    scheme: Scheme | str,
    shape: Sequence[int],
    words: ArrayInput,
    scale_codes: ArrayInput | None,
    tensor_scale_code: ArrayInput | None,
    recipe: Recipe | str = CANONICAL,
    container: Container | str = CANONICAL_CONTAINER,
    codec: Codec | str = CANONICAL_CODEC,
) -> DevicePacked:
    """A packed tensor of words and scale codes. As the constructor of `quantspec.Packed`."""
    recipe, container, codec = Recipe.of(recipe), Container.of(container), Codec.of(codec)
    scheme = Scheme.of(scheme)
    checked = check_array_shape(shape)
    scheme.require_shape(checked)
    box = box_of(container, scheme, checked)
    levels = _levels(machine, scheme, checked, scale_codes, tensor_scale_code)
    taken = _words(machine, scheme, checked, words, box.words_shape)
    return DevicePacked(scheme, checked, taken, *levels, recipe, container, codec=codec)


def _levels(
    machine: Machine, scheme: Scheme, shape: Shape, scale_codes: ArrayInput | None, tensor_scale_code: ArrayInput | None
) -> tuple[DeviceArray | None, DeviceArray | None]:
    """The scale codes of each level of the scheme; a missing or surplus level is refused. Rules SCL-19, SCL-21, SCL-22."""
    grid = () if scheme.block is None else blocks_along(shape, scheme)
    block_type = None if scheme.block is None else scheme.block.scale
    return (
        _level(machine, scheme, "scale_codes", scale_codes, grid, block_type),
        _level(machine, scheme, "tensor_scale_code", tensor_scale_code, (), scheme.tensor),
    )


def _level(
    machine: Machine, scheme: Scheme, argument: str, given: ArrayInput | None, expected: Shape, scale: ScaleType | None
) -> DeviceArray | None:
    if (given is None) != (scale is None):
        state = "is missing" if given is None else "is given"
        raise ScaleError(
            "SCL-22", f"{argument} {state}; {scheme.text} has {'no such' if scale is None else 'that'} level"
        )
    if given is None or scale is None:
        return None
    taken = take_scale_codes(machine, given, scale, argument=argument)
    return require_grid(check_scale_codes(taken, scale, argument=argument), expected, argument)


def _words(machine: Machine, scheme: Scheme, shape: Shape, words: ArrayInput, expected: Shape) -> DeviceArray:
    array = as_array(machine, words)
    dtype = scheme.store.word_dtype(scheme.value.bits)
    if array.dtype.newbyteorder("=") != dtype:
        raise DtypeError("PAK-1", f"words has dtype {array.dtype}; words of {scheme.text} are {dtype}")
    if array.shape != expected:
        raise ShapeError(
            "LAY-4", f"words has shape {array.shape}; allowed: exactly {expected} for a tensor {shape} of {scheme.text}"
        )
    if not isinstance(array, np.ndarray):
        return array
    size = scheme.store.word_bytes(scheme.value.bits)
    outside = array > dtype.type((1 << 8 * size) - 1)
    if outside.any():
        index = [int(i) for i in np.argwhere(outside)[0]]
        raise EncodingError(
            "PAK-1", f"words{index} is 0x{int(array[tuple(index)]):X}; words of {scheme.text} have {size} bytes"
        )
    return machine.upload(array)
