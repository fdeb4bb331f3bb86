"""Scales on a device: encode and decode them, and refuse those that the rules refuse. Rules SCL-1 to SCL-3, SCL-15 to SCL-21."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from quantspec import CANONICAL_CODEC, Codec, EncodingError, ScaleError, ScaleType, UnsupportedError
from quantspec.codecs import require_canonical_codec
from quantspec.scales import scale_type

from .formats import INDEX
from .host import DeviceArray, Machine
from .inputs import ArrayInput, Numbers, take_numbers, take_scale_codes

__all__ = ["Encoded", "check_scale_codes", "decode_scale", "decoded_scale", "encode_scale", "given_scales"]

Rounding = Literal["up", "nearest"]
Strictness = Literal["refuse", "ignore"]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Scale codes of one level, and where they saturated (None: nowhere). Rule SCL-24."""

    codes: DeviceArray
    saturated: DeviceArray | None


def encode_scale(
    machine: Machine,
    x: ArrayInput,
    scale: str | ScaleType,
    rounding: Rounding = "up",
    codec: Codec | str = CANONICAL_CODEC,
) -> DeviceArray:
    """Scale codes of numbers, of x's shape. As `quantspec.encode_scale`."""
    row = scale_type(scale)
    require_canonical_codec(codec)
    if rounding not in ("up", "nearest"):
        raise UnsupportedError("SCL-15", f"rounding={rounding!r}; allowed: 'up', 'nearest'")
    return given_scales(machine, x, row, argument="x", rule="SCL-15", up=rounding == "up").codes


def given_scales(
    machine: Machine, x: ArrayInput, scale: ScaleType, *, argument: str, rule: str = "SCL-19", up: bool = True
) -> Encoded:
    """Codes of given numbers, refused as SCL-17 and SCL-20 say; `rule` is of their dtype. Raises DtypeError, ScaleError."""
    numbers = take_numbers(machine, x, argument=argument, rule=rule)
    size, shape = numbers.array.size, numbers.array.shape
    head = (machine.formats, numbers.row, INDEX[scale.name], int(up), numbers.array)
    refused = machine.search("first_refused_scale", size, *head)
    if refused is not None:
        # SCL-15 is the rule of encode_scale's dtypes: its numbers are no given scales
        raise ScaleError("SCL-17" if rule == "SCL-15" else "SCL-20", _refusal(numbers, refused, scale, argument))
    codes, saturated = machine.empty(shape, scale.code_dtype), machine.empty(shape, np.uint8)
    machine.launch("encode_scale", codes.size, *head, codes, saturated, codes.size)
    return Encoded(codes, saturated)


def _refusal(numbers: Numbers, first: int, scale: ScaleType, argument: str) -> str:
    """What is wrong with the first refused number. Its pattern is widened where it was refused: on the device."""
    machine = numbers.array.machine
    one = machine.empty((), np.float32)
    machine.launch("widen_one", 1, machine.formats, numbers.row, numbers.array, first, one)
    number = one.get()
    index = [int(i) for i in np.unravel_index(first, numbers.array.shape)]
    allowed = (
        f"a negative scale is kept only if it is exactly a finite {scale.name}"
        if scale.signed
        else f"{scale.name} has no sign; allowed: +0 and above, NaN"
    )
    return f"{argument}{index} is {float(number)!r} (0x{int(number.view(np.uint32)):08X}): {allowed}"


def check_scale_codes(
    codes: DeviceArray, scale: ScaleType, *, argument: str = "scale_codes", bit7: Strictness = "refuse"
) -> DeviceArray:
    """Scale codes without a bit that the type lacks: refused, or cleared where `bit7="ignore"`. Rule SCL-2."""
    if bit7 not in ("refuse", "ignore"):
        raise UnsupportedError("SCL-2", f"ue4m3_bit7={bit7!r}; allowed: 'refuse', 'ignore'")
    machine = codes.machine
    if scale.bits == 8 * scale.size:
        return codes  # every bit is used
    if bit7 == "ignore":
        cleared = machine.empty(codes.shape, codes.dtype)
        machine.launch("clear_unused_bits", codes.size, machine.formats, INDEX[scale.name], codes, cleared, codes.size)
        return cleared
    first = machine.search("first_wrong_scale_code", codes.size, machine.formats, INDEX[scale.name], codes)
    if first is not None:
        index = [int(i) for i in np.unravel_index(first, codes.shape)]
        raise EncodingError(
            "SCL-2",
            f"{argument}{index} is 0x{machine.element(codes, first):02X}: bit 7 of a {scale.name} scale must be 0",
        )
    return codes


def decode_scale(
    machine: Machine, codes: ArrayInput, scale: str | ScaleType, ue4m3_bit7: Strictness = "refuse"
) -> DeviceArray:
    """Numbers of scale codes, f32 of their shape. As `quantspec.decode_scale`."""
    row = scale_type(scale)
    if ue4m3_bit7 not in ("refuse", "ignore"):
        raise UnsupportedError("SCL-2", f"ue4m3_bit7={ue4m3_bit7!r}; allowed: 'refuse', 'ignore'")
    taken = take_scale_codes(machine, codes, row, argument="scale_codes")
    return decoded_scale(machine, check_scale_codes(taken, row, bit7=ue4m3_bit7), row)


def decoded_scale(machine: Machine, checked: DeviceArray, row: ScaleType) -> DeviceArray:
    """Numbers of scale codes that were checked before."""
    y = machine.empty(checked.shape, np.float32)
    machine.launch("decode_scale", y.size, machine.formats, INDEX[row.name], checked, y, y.size)
    return y
