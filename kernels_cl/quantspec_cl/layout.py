"""Layout on a device: words and scales to bytes and back. Rules LAY-1 to LAY-7, POL-15 to POL-18."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyopencl.array as cl_array

from quantspec import (
    CANONICAL,
    CANONICAL_CODEC,
    CANONICAL_CONTAINER,
    Codec,
    Container,
    EncodingError,
    Packed,
    Quantized,
    Recipe,
    Scheme,
    byte_count,
)
from quantspec.blocks import check_array_shape

from .containers import CONTAINERS, Places, box_of, stream_of
from .geometry import Shape, blocks_along, lines_of, regions_of, stored_order, strides_of, walk_of
from .host import DeviceArray, Machine
from .inputs import as_array
from .packing import Strictness, clean, convert, pack, unpack, uploaded_words
from .scales import check_scale_codes
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["BytesInput", "from_bytes", "split", "to_bytes"]

BytesInput = bytes | bytearray | memoryview | npt.NDArray[np.uint8] | DeviceArray | cl_array.Array


def to_bytes(
    machine: Machine,
    tensor: Packed | Quantized | DevicePacked | DeviceQuantized,
    container: Container | str | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The byte stream of a tensor, uint8 of one axis. As `quantspec.to_bytes`; a quantized tensor is packed first."""
    if isinstance(tensor, Quantized | DeviceQuantized):
        packed = pack(machine, tensor, CANONICAL_CONTAINER if container is None else container)
    else:
        packed = uploaded_words(machine, tensor)
        clean(machine, packed)  # words from elsewhere: what may not be read may not be written either
        if container is not None and packed.container != Container.of(container):
            packed = convert(machine, packed, container)
    scheme, shape = packed.scheme, packed.shape
    byte_count(scheme, shape, packed.container)  # refuses what no byte stream holds
    if packed.container != CANONICAL_CONTAINER:
        return _to_bytes_by(machine, packed, out)
    lines, regions = lines_of(scheme, shape), regions_of(scheme, shape)
    data = machine.empty((regions.total,), np.uint8, out)
    _write(packed.words, lines.word_bytes, walk_of((packed.words.size,), (1,)), data, 0)
    if packed.scale_codes is not None and scheme.block is not None:
        _write(packed.scale_codes, scheme.block.scale.size, _exchanged(scheme, shape), data, regions.blocks)
    if packed.tensor_scale_code is not None and scheme.tensor is not None:
        _write(packed.tensor_scale_code, scheme.tensor.size, walk_of((), ()), data, regions.tensor)
    return data


def _to_bytes_by(machine: Machine, packed: DevicePacked, out: DeviceArray | None) -> DeviceArray:
    """The byte stream of a container that is not canonical. Rules POL-15 to POL-17."""
    scheme, found = packed.scheme, stream_of(packed.container, packed.scheme, packed.shape)
    data = machine.empty((found.total,), np.uint8, out)
    _put(packed.words, scheme.store.word_bytes(scheme.value.bits), found.words, data, found.words_start)
    scales = packed.scale_codes
    if scales is not None and scheme.block is not None:
        if found.tiles is None:
            _put(scales, scheme.block.scale.size, found.scales, data, found.scales_start)
        else:
            rows, columns, room = found.tiles
            machine.launch("swizzle", room, scales, data, found.scales_start, rows, columns, room, program=CONTAINERS)
    if packed.tensor_scale_code is not None and scheme.tensor is not None:
        _put(packed.tensor_scale_code, scheme.tensor.size, walk_of((), ()), data, found.tensor)
    return data


def _put(numbers: DeviceArray, size: int, places: Shape, data: DeviceArray, start: int) -> None:
    machine = numbers.machine
    head = (numbers, numbers.dtype.itemsize, size, machine.constant(places))
    machine.launch("bytes_at", numbers.size, *head, data, start, numbers.size, program=CONTAINERS)


def _get(data: DeviceArray, start: int, size: int, places: Shape, numbers: DeviceArray) -> DeviceArray:
    machine = numbers.machine
    tail = (machine.constant(places), numbers, numbers.dtype.itemsize, numbers.size)
    machine.launch("numbers_at", numbers.size, data, start, size, *tail, program=CONTAINERS)
    return numbers


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
    recipe: Recipe | str = CANONICAL,
    container: Container | str = CANONICAL_CONTAINER,
    codec: Codec | str = CANONICAL_CODEC,
) -> DevicePacked:
    """Words and scale codes of a byte stream. As `quantspec.from_bytes`; `data` may be a uint8 device array of one axis.

    Bits that hold no code and are not 0 are refused, or cleared where `padding="ignore"`. Rules PAK-7, PAK-8, VAL-5.
    """
    found = _from_bytes(machine, data, scheme, shape, padding, ue4m3_bit7, recipe, container, codec)
    return clean(machine, found, padding)


def _from_bytes(
    machine: Machine,
    data: BytesInput,
    scheme: Scheme | str,
    shape: Sequence[int],
    padding: Strictness,
    ue4m3_bit7: Strictness,
    recipe: Recipe | str,
    container: Container | str,
    codec: Codec | str,
) -> DevicePacked:
    """The parts of a byte stream, their words not yet checked."""
    scheme = Scheme.of(scheme)
    recipe, container, codec = Recipe.of(recipe), Container.of(container), Codec.of(codec)
    raw = _raw(machine, data)
    checked = check_array_shape(shape)
    total = byte_count(scheme, checked, container)  # refuses what the scheme or the container does not take
    if raw.size != total:
        raise EncodingError(
            "LAY-4", f"data has {raw.size} bytes; a tensor {checked} of {scheme.text} has exactly {total}"
        )
    if container != CANONICAL_CONTAINER:
        own = DevicePacked(scheme, checked, raw, recipe=recipe, container=container, codec=codec)
        return _from_bytes_by(machine, raw, own, padding, ue4m3_bit7)
    lines, regions = lines_of(scheme, checked), regions_of(scheme, checked)
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
    return DevicePacked(scheme, checked, words, scale_codes, tensor_code, recipe, container, codec=codec)


def _from_bytes_by(
    machine: Machine, raw: DeviceArray, own: DevicePacked, padding: Strictness, ue4m3_bit7: Strictness
) -> DevicePacked:
    """The parts of a stream in a container that is not canonical; of `own` only what is not on the device counts."""
    scheme, container, shape = own.scheme, own.container, own.shape
    box, found = box_of(container, scheme, shape), stream_of(container, scheme, shape)
    if container.ue4m3_bit7 == "ignore":
        ue4m3_bit7 = "ignore"
    words = machine.empty(box.words_shape, scheme.store.word_dtype(scheme.value.bits))
    _get(raw, found.words_start, box.lines.word_bytes, found.words, words)
    scale_codes = tensor_code = None
    if scheme.block is not None:
        read = machine.empty(blocks_along(shape, scheme), scheme.block.scale.code_dtype)
        if found.tiles is None:
            _get(raw, found.scales_start, scheme.block.scale.size, found.scales, read)
        else:
            _untile(raw, found, read, refuse="ignore" not in (padding, container.padding))
        scale_codes = check_scale_codes(read, scheme.block.scale, argument="block scales", bit7=ue4m3_bit7)
    if scheme.tensor is not None:
        read = machine.empty((), scheme.tensor.code_dtype)
        _get(raw, found.tensor, scheme.tensor.size, walk_of((), ()), read)
        tensor_code = check_scale_codes(read, scheme.tensor, argument="tensor scale", bit7=ue4m3_bit7)
    return replace(own, words=words, scale_codes=scale_codes, tensor_scale_code=tensor_code)


def _untile(raw: DeviceArray, found: Places, scales: DeviceArray, *, refuse: bool) -> None:
    """Scales of tiles of 128 rows and 4 columns; padding that is not zero may be refused. Rules POL-16, PAK-7."""
    machine = raw.machine
    rows, columns, room = found.tiles or (0, 0, 0)
    if refuse:
        head = (raw, found.scales_start, rows, columns)
        first = machine.search("first_dirty_byte", room, *head, program=CONTAINERS)
        if first is not None:
            raise EncodingError("PAK-7", f"block scales: byte {first} of the tiles holds no scale and is not 0")
    machine.launch("unswizzle", room, raw, found.scales_start, scales, rows, columns, room, program=CONTAINERS)


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
    recipe: Recipe | str = CANONICAL,
    container: Container | str = CANONICAL_CONTAINER,
    codec: Codec | str = CANONICAL_CODEC,
) -> DeviceQuantized:
    """Bytes to codes, scale codes and tensor scale code, in tensor axes. As `quantspec.split`. Rules LAY-6, LAY-7."""
    packed = _from_bytes(machine, data, scheme, shape, padding, ue4m3_bit7, recipe, container, codec)
    return unpack(machine, packed, padding=padding)
