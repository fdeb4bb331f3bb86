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

__all__ = [
    "Fixed",
    "Given",
    "choose",
    "chosen_single",
    "encoded",
    "fitted",
    "fix",
    "require_both",
    "require_grid",
    "require_positive",
]

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


@dataclass(frozen=True, slots=True)
class Fixed:
    """The scales that arguments fix, checked: their codes, and where rounding them up saturated."""

    blocks: Encoded | None
    single: Encoded | None


def fix(numbers: Numbers, scheme: Scheme, block: Given, tensor: Given) -> Fixed:
    """The given scales of both levels. Checks in the reference's order. Rules SCL-19 to SCL-23."""
    fixed = fitted(numbers, scheme, encoded(numbers, scheme, block, tensor), block, tensor)
    if scheme.block is not None and scheme.tensor is not None:
        if fixed.blocks is None and fixed.single is not None:
            require_positive(fixed.single.codes, scheme.tensor)
        if fixed.blocks is not None:
            require_both(scheme, fixed)
    return fixed


def encoded(numbers: Numbers, scheme: Scheme, block: Given, tensor: Given) -> Fixed:
    """The codes of the given scales of both levels, of whatever shape. Rules SCL-20 to SCL-22."""
    machine = numbers.array.machine
    given_block = block.encoded(machine, None if scheme.block is None else scheme.block.scale, scheme)
    return Fixed(given_block, tensor.encoded(machine, scheme.tensor, scheme))


def fitted(numbers: Numbers, scheme: Scheme, given: Fixed, block: Given, tensor: Given) -> Fixed:
    """The same, each in the shape of its level. Rule SCL-19."""
    grid = () if scheme.block is None else blocks_along(numbers.array.shape, scheme)
    blocks = None if given.blocks is None else _fit(given.blocks, grid, block.used)
    return Fixed(blocks, None if given.single is None else _fit(given.single, (), tensor.used))


def require_both(scheme: Scheme, fixed: Fixed) -> None:
    """Refuse block scales of two levels without the tensor scale. Rule SCL-23."""
    if fixed.single is None:
        raise ScaleError(
            "SCL-23", f"block scales alone are given; {scheme.text} needs tensor_scale too, or no given scales"
        )


def choose(numbers: Numbers, scheme: Scheme, fixed: Fixed) -> tuple[Encoded | None, Encoded | None]:
    """Scales of both levels, given or chosen, None for a level that the scheme lacks. SCL-8 to SCL-13."""
    if scheme.block is None:
        return None, fixed.single or chosen_single(scheme, tensor_amax(numbers))
    if fixed.blocks is not None:
        return fixed.blocks, fixed.single
    amax = block_amax(numbers, scheme)
    if scheme.tensor is None:
        grid = blocks_along(numbers.array.shape, scheme)
        return _one_level(amax, binary32(scheme.half_range), scheme.block.scale, grid), None
    single = fixed.single or chosen_single(scheme, largest(amax))
    return _relative(amax, numbers, scheme, single, given=fixed.single is not None), single


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


def chosen_single(scheme: Scheme, amax: DeviceArray) -> Encoded:
    """The tensor scale, from the amax of the whole tensor. Rules SCL-8 to SCL-11, SCL-13."""
    half_range = binary32(scheme.half_range)
    if scheme.block is None or scheme.tensor is None:
        return _one_level(amax, half_range, scheme.tensor, ())
    machine = amax.machine
    code, overflow = machine.empty((), scheme.tensor.code_dtype), machine.empty((), np.uint8)
    head = (machine.formats, INDEX[scheme.block.scale.name], INDEX[scheme.tensor.name], half_range)
    machine.launch("choose_tensor_scale", 1, *head, amax, code, overflow)
    return Encoded(code, overflow)


def _relative(amax: DeviceArray, numbers: Numbers, scheme: Scheme, single: Encoded, *, given: bool) -> Encoded:
    """Block scales relative to the tensor scale. Rules SCL-10, SCL-12; they count as saturated where SCL-24 says so."""
    if scheme.block is None or scheme.tensor is None:
        raise AssertionError("a scheme of two levels")
    machine, block = amax.machine, scheme.block.scale
    grid = blocks_along(numbers.array.shape, scheme)
    codes, saturated = machine.empty(grid, block.code_dtype), machine.empty(grid, np.uint8)
    head = (machine.formats, INDEX[block.name], INDEX[scheme.tensor.name], binary32(scheme.half_range), amax)
    overflow = single.codes if single.saturated is None else single.saturated  # not looked at where it is given
    machine.launch(
        "choose_block_scales", codes.size, *head, single.codes, overflow, int(given), codes, saturated, codes.size
    )
    return Encoded(codes, saturated)


def require_positive(code: DeviceArray, scale: ScaleType) -> None:
    """Refuse a given tensor scale that no block scale can be relative to. Rule SCL-23."""
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
