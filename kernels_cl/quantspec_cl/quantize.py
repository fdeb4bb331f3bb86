"""Quantize on a device. Rules SCL-14, QNT-1 to QNT-8, QNT-12; which scales: `choice`."""

import numpy as np

from quantspec import CANONICAL, CANONICAL_CODEC, Codec, Quantized, Recipe, Scheme
from quantspec.blocks import check_array_shape
from quantspec.recipes import require_canonical
from quantspec.tensor import require_record

from .choice import Fixed, Given, choose, fix
from .formats import ABSENT, INDEX
from .geometry import WHOLE, Shape, grid_walk
from .host import DeviceArray, Machine
from .inputs import ArrayInput, Numbers, take_numbers
from .paths import Path
from .quantize_fast import plan, run
from .tensors import DeviceQuantized, Flags, adopted

__all__ = ["codes_of", "effective_scales", "grid_of", "quantize", "taken", "uploaded"]


def quantize(
    machine: Machine,
    x: ArrayInput,
    scheme: Scheme | str,
    block: Given,
    tensor: Given,
    recipe: Recipe = CANONICAL,
    codec: Codec = CANONICAL_CODEC,
    out: DeviceArray | None = None,
) -> DeviceQuantized:
    """Codes and scales of a tensor. As `quantspec.quantize`; checks in its order. Rules QNT-1 to QNT-8."""
    return codes_of(*taken(machine, x, scheme, block, tensor, recipe, codec), recipe, out)


def codes_of(
    numbers: Numbers, scheme: Scheme, given: Fixed, recipe: Recipe, out: DeviceArray | None = None
) -> DeviceQuantized:
    """Codes and scales, by the path that the scheme and the tensor allow."""
    planned = plan(numbers, scheme, given, words=False)
    if isinstance(planned, Path):
        return _generic_codes(numbers, scheme, given, recipe, planned, out)
    levels = run(planned, numbers, scheme, given, out)
    return DeviceQuantized(scheme, levels.out, *levels.codes, recipe, levels.flags, levels.tensor_flag)


def taken(
    machine: Machine, x: ArrayInput, scheme: Scheme | str, block: Given, tensor: Given, recipe: Recipe, codec: Codec
) -> tuple[Numbers, Scheme, Fixed]:
    """The arguments of quantize, checked in the reference's order; what depends on data too."""
    scheme = Scheme.of(scheme)
    require_canonical(recipe=recipe, codec=codec)
    numbers = take_numbers(machine, x)
    scheme.require_shape(check_array_shape(numbers.array.shape, argument="x.shape"))
    return numbers, scheme, fix(numbers, scheme, block, tensor)


def _generic_codes(
    numbers: Numbers, scheme: Scheme, given: Fixed, recipe: Recipe, path: Path, out: DeviceArray | None
) -> DeviceQuantized:
    """Codes and scales by the kernels that take every scheme: amax, scales, codes."""
    machine, shape = numbers.array.machine, numbers.array.shape
    blocks, single = choose(numbers, scheme, given)
    block_codes = None if blocks is None else blocks.codes
    tensor_code = None if single is None else single.codes
    effective = effective_scales(machine, scheme, block_codes, tensor_code)
    codes = machine.empty(shape, np.uint8, out).written_by(path)
    head = (machine.formats, numbers.row, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments)
    grid = machine.constant(grid_of(scheme, shape, effective))
    machine.launch("quantize", codes.size, *head, numbers.array, effective, grid, codes, codes.size)
    flags = None if blocks is None or blocks.saturated is None else Flags(blocks.saturated, blocks.codes.shape)
    return DeviceQuantized(
        scheme, codes, block_codes, tensor_code, recipe, flags, None if single is None else single.saturated
    )


def effective_scales(
    machine: Machine, scheme: Scheme, blocks: DeviceArray | None, single: DeviceArray | None
) -> DeviceArray:
    """s of each block, flat, or of the tensor. Rule SCL-14."""
    effective = machine.empty((1 if blocks is None else blocks.size,), np.uint32)
    types = (None if scheme.block is None else scheme.block.scale, scheme.tensor)
    rows = [ABSENT if scale is None else INDEX[scale.name] for scale in types]
    codes = [effective if level is None else level for level in (blocks, single)]  # that of an absent level is not read
    machine.launch("effective_scale", effective.size, machine.formats, *rows, *codes, effective, effective.size)
    return effective


def grid_of(scheme: Scheme, shape: Shape, effective: DeviceArray) -> Shape:
    """The blocks of a tensor for kernels that look the effective scales up."""
    return WHOLE if effective.size == 1 or 0 in shape else grid_walk(shape, scheme.extents(len(shape)))


def uploaded(machine: Machine, tensor: Quantized | DeviceQuantized, *, argument: str = "tensor") -> DeviceQuantized:
    """A quantized tensor of this session; an array or bytes in its place is refused. Rule QNT-12."""
    if isinstance(tensor, DeviceQuantized):
        return adopted(machine, tensor)
    require_record(tensor, Quantized, argument=argument)
    return DeviceQuantized(
        tensor.scheme,
        machine.upload(tensor.codes),
        None if tensor.scale_codes is None else machine.upload(tensor.scale_codes),
        None if tensor.tensor_scale_code is None else machine.upload(tensor.tensor_scale_code),
        tensor.recipe,
    )
