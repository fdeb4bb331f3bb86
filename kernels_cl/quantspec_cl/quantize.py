"""Quantize on a device. Rules SCL-14, QNT-1 to QNT-8, QNT-12; which scales: `choice`."""

from dataclasses import dataclass

import numpy as np

from quantspec import CANONICAL, CANONICAL_CODEC, Codec, Quantized, Recipe, Scheme
from quantspec.blocks import check_array_shape
from quantspec.tensor import require_record

from .choice import Fixed, Given, choose, fix
from .codecs import is_plain
from .formats import ABSENT, INDEX
from .geometry import WHOLE, Shape, grid_walk
from .host import DeviceArray, Machine
from .inputs import ArrayInput, Numbers, take_numbers
from .paths import Path
from .quantize_fast import plan, run
from .recipes import Following, given_levels
from .scales import Encoded
from .tensors import DeviceQuantized, Flags, adopted

__all__ = ["Taken", "codes_of", "effective_scales", "grid_of", "quantize", "taken", "uploaded"]


def quantize(
    machine: Machine,
    x: ArrayInput,
    scheme: Scheme | str,
    block: Given,
    tensor: Given,
    recipe: Recipe | str = CANONICAL,
    codec: Codec | str = CANONICAL_CODEC,
    out: DeviceArray | None = None,
) -> DeviceQuantized:
    """Codes and scales of a tensor. As `quantspec.quantize`; checks in its order. Rules QNT-1 to QNT-8."""
    return codes_of(taken(machine, x, scheme, block, tensor, recipe, codec), out)


@dataclass(frozen=True, slots=True)
class Taken:
    """The arguments of quantize, checked."""

    numbers: Numbers
    scheme: Scheme
    given: Fixed
    recipe: Recipe
    codec: Codec

    @property
    def canonical(self) -> bool:
        """True where no step is another's than the canonical recipe's and codec's."""
        return self.recipe == CANONICAL and is_plain(self.codec, lookup=self.scheme.is_lookup)


def taken(
    machine: Machine,
    x: ArrayInput,
    scheme: Scheme | str,
    block: Given,
    tensor: Given,
    recipe: Recipe | str,
    codec: Codec | str,
) -> Taken:
    """The arguments of quantize, checked in the reference's order; what depends on data too."""
    scheme = Scheme.of(scheme)
    recipe, codec = Recipe.of(recipe), Codec.of(codec)
    numbers = take_numbers(machine, x)
    scheme.require_shape(check_array_shape(numbers.array.shape, argument="x.shape"))
    if recipe == CANONICAL:
        return Taken(numbers, scheme, fix(numbers, scheme, block, tensor), recipe, codec)
    return Taken(numbers, scheme, given_levels(numbers, scheme, recipe, block, tensor), recipe, codec)


def codes_of(found: Taken, out: DeviceArray | None = None) -> DeviceQuantized:
    """Codes and scales, by the path that the recipe, the scheme and the tensor allow."""
    numbers, scheme, given = found.numbers, found.scheme, found.given
    if not found.canonical:
        return _policy_codes(found, out)
    planned = plan(numbers, scheme, given, words=False)
    if isinstance(planned, Path):
        return _generic_codes(found, planned, out)
    levels = run(planned, numbers, scheme, given, out)
    return DeviceQuantized(
        scheme, levels.out, *levels.codes, found.recipe, levels.flags, levels.tensor_flag, found.codec
    )


def _policy_codes(found: Taken, out: DeviceArray | None) -> DeviceQuantized:
    """Codes and scales by the steps of a recipe, and a codec. Rules POL-5 to POL-13."""
    numbers, scheme, recipe = found.numbers, found.scheme, found.recipe
    machine, shape = numbers.array.machine, numbers.array.shape
    own = Following.of(machine, scheme, recipe, shape)
    if recipe == CANONICAL:
        blocks, single = choose(numbers, scheme, found.given)
    else:
        blocks, single = own.choose(numbers, found.given)
    block_codes = None if blocks is None else blocks.codes
    tensor_code = None if single is None else single.codes
    effective = effective_scales(machine, scheme, block_codes, tensor_code)
    own.stored(block_codes, tensor_code, effective)
    codes = own.codes(numbers, found.codec, grid_of(scheme, shape, effective), out)
    return DeviceQuantized(scheme, codes, block_codes, tensor_code, recipe, *_flags(blocks, single), found.codec)


def _flags(blocks: Encoded | None, single: Encoded | None) -> tuple[Flags | None, DeviceArray | None]:
    """Where scales saturated. Rule SCL-24."""
    flags = None if blocks is None or blocks.saturated is None else Flags(blocks.saturated, blocks.codes.shape)
    return flags, None if single is None else single.saturated


def _generic_codes(found: Taken, path: Path, out: DeviceArray | None) -> DeviceQuantized:
    """Codes and scales by the kernels that take every scheme: amax, scales, codes."""
    numbers, scheme = found.numbers, found.scheme
    machine, shape = numbers.array.machine, numbers.array.shape
    blocks, single = choose(numbers, scheme, found.given)
    block_codes = None if blocks is None else blocks.codes
    tensor_code = None if single is None else single.codes
    effective = effective_scales(machine, scheme, block_codes, tensor_code)
    codes = machine.empty(shape, np.uint8, out).written_by(path)
    head = (machine.formats, numbers.row, INDEX[scheme.value.name], *machine.lookup(scheme.table).arguments)
    grid = machine.constant(grid_of(scheme, shape, effective))
    machine.launch("quantize", codes.size, *head, numbers.array, effective, grid, codes, codes.size)
    return DeviceQuantized(scheme, codes, block_codes, tensor_code, found.recipe, *_flags(blocks, single), found.codec)


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
        codec=tensor.codec,
    )
