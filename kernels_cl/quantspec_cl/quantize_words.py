"""Quantize straight to words: what `pack` of `quantize` gives, in one pass where a program knows the scheme."""

from quantspec import CANONICAL, CANONICAL_CODEC, CANONICAL_CONTAINER, Codec, Container, Recipe, Scheme

from .choice import Given
from .host import DeviceArray, Machine
from .inputs import ArrayInput
from .packing import pack
from .paths import Path, generic
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
    recipe: Recipe | str = CANONICAL,
    codec: Codec | str = CANONICAL_CODEC,
    container: Container | str = CANONICAL_CONTAINER,
    out: DeviceArray | None = None,
) -> DevicePacked:
    """Words and scales of a tensor. Rules QNT-1 to QNT-8, PAK-1 to PAK-6, POL-14, POL-15."""
    found = taken(machine, x, scheme, block, tensor, recipe, codec)
    if not found.canonical or container not in (CANONICAL_CONTAINER, CANONICAL_CONTAINER.name):
        reason = generic("codes first: another recipe, codec or container")
        return pack(machine, codes_of(found), container, out).written_by(reason)
    planned = plan(found.numbers, found.scheme, found.given, words=True)
    if isinstance(planned, Path):
        return pack(machine, codes_of(found), container, out).written_by(planned)
    levels = run(planned, found.numbers, found.scheme, found.given, out)
    parts = (found.scheme, found.numbers.array.shape, levels.out, *levels.codes, found.recipe, CANONICAL_CONTAINER)
    return DevicePacked(*parts, levels.flags, levels.tensor_flag, found.codec)
