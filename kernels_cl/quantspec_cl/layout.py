"""Layout on a device: words and scales to bytes and back. Rules LAY-1 to LAY-7."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyopencl.array as cl_array

from quantspec import (
    CANONICAL,
    CANONICAL_CONTAINER,
    Container,
    EncodingError,
    Packed,
    Quantized,
    Recipe,
    Scheme,
    byte_count,
)
from quantspec.blocks import check_array_shape
from quantspec.recipes import require_canonical

from .geometry import Shape, blocks_along, lines_of, regions_of, stored_order, strides_of, walk_of
from .host import DeviceArray, Machine
from .inputs import as_array
from .packing import Strictness, clean, pack, unpack, uploaded_words
from .scales import check_scale_codes
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["BytesInput", "from_bytes", "split", "to_bytes"]

BytesInput = bytes | bytearray | memoryview | npt.NDArray[np.uint8] | DeviceArray | cl_array.Array


def to_bytes(
    machine: Machine,
    tensor: Packed | Quantized | DevicePacked | DeviceQuantized,
    container: Container = CANONICAL_CONTAINER,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The byte stream of a tensor, uint8 of one axis. As `quantspec.to_bytes`; a quantized tensor is packed first."""
    if isinstance(tensor, Quantized | DeviceQuantized):
        packed = pack(machine, tensor, container=container)
    else:
        packed = uploaded_words(machine, tensor)
    require_canonical(container=container)
    scheme, shape = packed.scheme, packed.shape
    if not isinstance(tensor, Quantized | DeviceQuantized):
        clean(machine, packed)  # words from elsewhere: what may not be read may not be written either
    byte_count(scheme, shape)  # refuses what no byte stream holds
    lines, regions = lines_of(scheme, shape), regions_of(scheme, shape)
    data = machine.empty((regions.total,), np.uint8, out)
    _write(packed.words, lines.word_bytes, walk_of((packed.words.size,), (1,)), data, 0)
    if packed.scale_codes is not None and scheme.block is not None:
        _write(packed.scale_codes, scheme.block.scale.size, _exchanged(scheme, shape), data, regions.blocks)
    if packed.tensor_scale_code is not None and scheme.tensor is not None:
        _write(packed.tensor_scale_code, scheme.tensor.size, walk_of((), ()), data, regions.tensor)
    return data


def _write(numbers: DeviceArray, size: int, order: Shape, data: DeviceArray, start: int) -> None:
    machine = numbers.machine
    machine.launch(
        "to_bytes",
        numbers.size,
        numbers,
        numbers.dtype.itemsize,
        size,
        machine.constant(order),
        data,
        start,
        numbers.size,
    )


def _exchanged(scheme: Scheme, shape: Shape) -> Shape:
    """From stored order to the scale grid's own axes. Rule LAY-3."""
    grid, order = blocks_along(shape, scheme), stored_order(scheme, len(shape))
    strides = strides_of(grid)
    return walk_of([grid[axis] for axis in order], [strides[axis] for axis in order])


def from_bytes(
    machine: Machine,
    data: BytesInput,
    scheme: Scheme | str,
    shape: Sequence[int],
    padding: Strictness = "refuse",
    ue4m3_bit7: Strictness = "refuse",
    recipe: Recipe = CANONICAL,
    container: Container = CANONICAL_CONTAINER,
) -> DevicePacked:
    """Words and scale codes of a byte stream. As `quantspec.from_bytes`; `data` may be a uint8 device array of one axis.

    Bits that hold no code and are not 0 are refused, or cleared where `padding="ignore"`. Rules PAK-7, PAK-8, VAL-5.
    """
    return clean(machine, _from_bytes(machine, data, scheme, shape, ue4m3_bit7, recipe, container), padding)


def _from_bytes(
    machine: Machine,
    data: BytesInput,
    scheme: Scheme | str,
    shape: Sequence[int],
    ue4m3_bit7: Strictness,
    recipe: Recipe,
    container: Container,
) -> DevicePacked:
    """The parts of a byte stream, their words not yet checked."""
    scheme = Scheme.of(scheme)
    require_canonical(recipe=recipe, container=container)
    raw = _raw(machine, data)
    checked = check_array_shape(shape)
    byte_count(scheme, checked)  # refuses what the scheme does not take, and what no byte stream holds
    lines, regions = lines_of(scheme, checked), regions_of(scheme, checked)
    if raw.size != regions.total:
        raise EncodingError(
            "LAY-4", f"data has {raw.size} bytes; a tensor {checked} of {scheme.text} has exactly {regions.total}"
        )
    words = machine.empty(lines.words_shape, scheme.store.word_dtype(scheme.value.bits))
    _read(raw, 0, lines.word_bytes, walk_of((words.size,), (1,)), words)
    scale_codes = tensor_code = None
    if scheme.block is not None:
        read = machine.empty(blocks_along(checked, scheme), scheme.block.scale.code_dtype)
        _read(raw, regions.blocks, scheme.block.scale.size, _exchanged(scheme, checked), read)
        scale_codes = check_scale_codes(read, scheme.block.scale, argument="block scales", bit7=ue4m3_bit7)
    if scheme.tensor is not None:
        read = machine.empty((), scheme.tensor.code_dtype)
        _read(raw, regions.tensor, scheme.tensor.size, walk_of((), ()), read)
        tensor_code = check_scale_codes(read, scheme.tensor, argument="tensor scale", bit7=ue4m3_bit7)
    return DevicePacked(scheme, checked, words, scale_codes, tensor_code, recipe, container)


def _raw(machine: Machine, data: BytesInput) -> DeviceArray:
    if isinstance(data, bytes | bytearray | memoryview):
        return machine.upload(np.frombuffer(data if memoryview(data).contiguous else bytes(data), np.uint8))
    if isinstance(data, np.ndarray | DeviceArray | cl_array.Array):
        array = as_array(machine, data)
        if array.dtype != np.uint8 or array.ndim != 1:
            raise EncodingError(
                "LAY-1", f"data is {array.dtype} of shape {array.shape}; allowed: bytes or uint8 of one axis"
            )
        return array if isinstance(array, DeviceArray) else machine.upload(array)
    raise EncodingError("LAY-1", f"data is {type(data).__name__}; allowed: bytes-like or a uint8 array of one axis")


def _read(data: DeviceArray, start: int, size: int, order: Shape, numbers: DeviceArray) -> None:
    machine = numbers.machine
    machine.launch(
        "from_bytes",
        numbers.size,
        data,
        start,
        size,
        machine.constant(order),
        numbers,
        numbers.dtype.itemsize,
        numbers.size,
    )


def split(
    machine: Machine,
    data: BytesInput,
    scheme: Scheme | str,
    shape: Sequence[int],
    padding: Strictness = "refuse",
    ue4m3_bit7: Strictness = "refuse",
    recipe: Recipe = CANONICAL,
    container: Container = CANONICAL_CONTAINER,
) -> DeviceQuantized:
    """Bytes to codes, scale codes and tensor scale code, in tensor axes. As `quantspec.split`. Rules LAY-6, LAY-7."""
    packed = _from_bytes(machine, data, scheme, shape, ue4m3_bit7, recipe, container)
    return unpack(machine, packed, padding=padding)
