"""Which scale each block and the tensor get: given or chosen, at one level or two. Rules SCL-4 to SCL-13, SCL-19 to SCL-24."""

from dataclasses import dataclass

import numpy as np

from quantspec import ScaleError, ScaleType, Scheme, ShapeError

from .blocks import block_amax, largest, tensor_amax
from .formats import INDEX, binary32
from .geometry import Shape, blocks_along
from .host import DeviceArray, Machine
from .inputs import ArrayInput, Numbers, take_scale_codes
from .scales import Encoded, check_scale_codes, given_scales

__all__ = ["Given", "choose", "require_grid"]

INF = 0x7F800000


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of quantize that fix the scales of one level, by name: numbers or codes."""

    numbers_name: str
    numbers: ArrayInput | None
    codes_name: str
    codes: ArrayInput | None

    @property
    def used(self) -> str:
        """The argument that is given, of the codes where both are."""
        return self.numbers_name if self.codes is None else self.codes_name

    def encoded(self, machine: Machine, scale: ScaleType | None, scheme: Scheme) -> Encoded | None:
        """The codes that are given, of whatever shape; None where none are. Rules SCL-20 to SCL-22."""
        if self.numbers is None and self.codes is None:
            return None
        if scale is None:
            raise ScaleError("SCL-22", f"{self.used} is given; {scheme.text} has no such level")
        if self.codes is None and self.numbers is not None:
            return given_scales(machine, self.numbers, scale, argument=self.numbers_name)
        if self.codes is None or self.numbers is not None:
            raise ScaleError(
                "SCL-22", f"{self.numbers_name} and {self.codes_name} are both given; allowed: one of them"
            )
        taken = take_scale_codes(machine, self.codes, scale, argument=self.codes_name)
        return Encoded(check_scale_codes(taken, scale, argument=self.codes_name), None)


def choose(numbers: Numbers, scheme: Scheme, block: Given, tensor: Given) -> tuple[Encoded | None, Encoded | None]:
    """Scales of both levels, None for a level that the scheme lacks. Checks in the reference's order. SCL-8 to SCL-13."""
    machine = numbers.array.machine
    given_block = block.encoded(machine, None if scheme.block is None else scheme.block.scale, scheme)
    given_tensor = tensor.encoded(machine, scheme.tensor, scheme)
    grid = () if scheme.block is None else blocks_along(numbers.array.shape, scheme)
    blocks = None if given_block is None else _fit(given_block, grid, block.used)
    single = None if given_tensor is None else _fit(given_tensor, (), tensor.used)
    half_range = binary32(scheme.half_range)
    if scheme.block is None:
        return None, single or _one_level(tensor_amax(numbers), half_range, scheme.tensor, ())
    if scheme.tensor is None:
        return blocks or _one_level(block_amax(numbers, scheme), half_range, scheme.block.scale, grid), None
    if blocks is None:
        return _two_levels(numbers, scheme, scheme.block.scale, scheme.tensor, single)
    if single is None:
        raise ScaleError(
            "SCL-23", f"block scales alone are given; {scheme.text} needs tensor_scale too, or no given scales"
        )
    return blocks, single


def _fit(given: Encoded, expected: Shape, argument: str) -> Encoded:
    codes = require_grid(given.codes, expected, argument)
    return Encoded(codes, None if given.saturated is None else given.saturated.reshaped(expected))


def require_grid(scales: DeviceArray, expected: Shape, argument: str) -> DeviceArray:
    """Scales shaped exactly like the grid; a tensor scale is one element of any shape. Rule SCL-19."""
    if expected == () and scales.size == 1:
        return scales.reshaped(())
    if scales.shape != expected:
        raise ShapeError(
            "SCL-19", f"{argument} has shape {scales.shape}; allowed: exactly {expected}, one scale a block"
        )
    return scales


def _one_level(amax: DeviceArray, half_range: int, scale: ScaleType | None, grid: Shape) -> Encoded:
    """The smallest representable scale not below amax / H. Rules SCL-6 to SCL-9."""
    if scale is None:
        raise AssertionError("a scheme has at least one level")
    machine = amax.machine
    codes, saturated = machine.empty(grid, scale.code_dtype), machine.empty(grid, np.uint8)
    head = (machine.formats, INDEX[scale.name], half_range)
    machine.launch("choose_one_level", codes.size, *head, amax, codes, saturated, codes.size)
    return Encoded(codes, saturated)


def _two_levels(
    numbers: Numbers, scheme: Scheme, block: ScaleType, tensor: ScaleType, given: Encoded | None
) -> tuple[Encoded, Encoded]:
    """Tensor scale, then block scales relative to it. Rules SCL-10 to SCL-13; a given tensor scale: SCL-23."""
    machine = numbers.array.machine
    head = (machine.formats, INDEX[block.name], INDEX[tensor.name], binary32(scheme.half_range))
    if given is not None:
        _require_positive(given.codes, tensor)
    amax = block_amax(numbers, scheme)
    if given is None:
        code, overflow = machine.empty((), tensor.code_dtype), machine.empty((), np.uint8)
        machine.launch("choose_tensor_scale", 1, *head, largest(amax), code, overflow)
        single = Encoded(code, overflow)
    else:
        single, code, overflow = given, given.codes, given.codes  # the kernel does not look at the flag then
    grid = blocks_along(numbers.array.shape, scheme)
    codes, saturated = machine.empty(grid, block.code_dtype), machine.empty(grid, np.uint8)
    tail = (int(given is not None), codes, saturated, codes.size)
    machine.launch("choose_block_scales", codes.size, *head, amax, code, overflow, *tail)
    return Encoded(codes, saturated), single


def _require_positive(code: DeviceArray, scale: ScaleType) -> None:
    machine = code.machine
    number = machine.empty((), np.float32)
    machine.launch("decode_scale", 1, machine.formats, INDEX[scale.name], code, number, 1)
    host = number.get()
    if not 0 < int(host.view(np.uint32)) < INF:
        raise ScaleError(
            "SCL-23",
            f"tensor_scale is {float(host)!r} (code 0x{machine.element(code, 0):X} of {scale.name}); with the block scales left "
            "to choose, allowed: finite and above 0",
        )
