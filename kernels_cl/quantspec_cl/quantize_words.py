"""Quantize straight to words: what `pack` of `quantize` gives, in one pass where a program knows the scheme."""

from quantspec import CANONICAL, CANONICAL_CODEC, CANONICAL_CONTAINER, Codec, Container, Recipe, Scheme
from quantspec.recipes import require_canonical

from .choice import Given
from .host import DeviceArray, Machine
from .inputs import ArrayInput
from .packing import pack
from .paths import Path
from .quantize import codes_of, taken
from .quantize_fast import plan, run
from .tensors import DevicePacked

__all__ = ["quantize_packed"]


def quantize_packed(
    machine: Machine,
    x: ArrayInput,
    scheme: Scheme | str,
    block: Given,
    tensor: Given,
    recipe: Recipe = CANONICAL,
    codec: Codec = CANONICAL_CODEC,
    container: Container = CANONICAL_CONTAINER,
    out: DeviceArray | None = None,
) -> DevicePacked:
    """Words and scales of a tensor. Rules QNT-1 to QNT-8, PAK-1 to PAK-6."""
    numbers, scheme, given = taken(machine, x, scheme, block, tensor, recipe, codec)
    planned = plan(numbers, scheme, given, words=True)
    if isinstance(planned, Path):
        return pack(machine, codes_of(numbers, scheme, given, recipe), container, out).written_by(planned)
    require_canonical(container=container)
    levels = run(planned, numbers, scheme, given, out)
    tail = (levels.flags, levels.tensor_flag)
    return DevicePacked(scheme, numbers.array.shape, levels.out, *levels.codes, recipe, container, *tail)
