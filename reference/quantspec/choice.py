"""Which scale a block and a tensor get: chosen from amax, or given. Rules SCL-4 to SCL-13, SCL-19 to SCL-24."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import blocks
from .errors import ScaleError
from .rounding import INF, MAGNITUDE, SMALLEST, Bits, divide, to_bits, to_float, widen
from .scales import ScaleCodes, ScaleType, check_scale_codes, encode_given, round_up
from .scales import decode_codes as decode_scale_codes
from .scheme import Scheme
from .tensor import Saturation, level_shapes, require_grid
from .tracing import note, on_grid, rule

__all__ = ["Chosen", "choose", "given_scales", "raw_scale", "report", "require_grids", "require_positive"]

LARGEST_RAW = np.uint32(0x7E800000)  # 2^126, SCL-10
SMALLEST_TENSOR = np.uint32(0x00800000)  # 2^-126, SCL-11


@dataclass(frozen=True, slots=True)
class Chosen:
    """Scale codes of one level and where they saturated; the argument that gave them, if one did."""

    codes: ScaleCodes
    saturated: npt.NDArray[np.bool_]
    argument: str = ""


def given_scales(
    name: str,
    numbers: npt.ArrayLike | None,
    code_name: str,
    codes: npt.ArrayLike | None,
    scale: ScaleType | None,
    scheme: Scheme,
) -> Chosen | None:
    """The given scales of one level, as codes. Rules SCL-19 to SCL-22."""
    if numbers is None and codes is None:
        return None
    used = name if codes is None else code_name
    if scale is None:
        raise ScaleError("SCL-22", f"{used} is given; {scheme.text} has no such level")
    if numbers is not None and codes is not None:
        raise ScaleError("SCL-22", f"{name} and {code_name} are both given; allowed: one of them")
    if codes is not None:
        note("SCL-21")
        checked = check_scale_codes(codes, scale, argument=code_name)
        return Chosen(checked, np.zeros(checked.shape, bool), code_name)
    if numbers is None:
        return None
    return Chosen(*encode_given(widen(numbers, argument=name, refused_by="SCL-19"), scale, argument=name), name)


def choose(
    bits: Bits, scheme: Scheme, given_block: Chosen | None, given_tensor: Chosen | None
) -> tuple[Chosen | None, Chosen | None]:
    """Scales of both levels, given or chosen. Rules SCL-8 to SCL-13, SCL-23."""
    block, tensor = require_grids(scheme, bits.shape, given_block, given_tensor)
    if scheme.block is None:
        return None, tensor or _one_level(raw_scale(_tensor_amax(bits), scheme), scheme.tensor)
    with on_grid(scheme.extents(bits.ndim)):
        if scheme.tensor is None:
            return block or _one_level(_block_raw(bits, scheme), scheme.block.scale), None
        if block is None:
            return _two_levels(_block_raw(bits, scheme), scheme.block.scale, scheme.tensor, tensor)
    return require_grids(scheme, bits.shape, block, tensor, both=True)


def require_grids(
    scheme: Scheme,
    shape: tuple[int, ...],
    given_block: Chosen | None,
    given_tensor: Chosen | None,
    *,
    both: bool = False,
) -> tuple[Chosen | None, Chosen | None]:
    """Given scales, each in the shape of its level; with `both`, block scales need a tensor scale. SCL-19, SCL-23."""
    grid, single = level_shapes(scheme, shape)
    block, tensor = _fit(given_block, grid), _fit(given_tensor, single)
    if both:
        note("SCL-23")
        if tensor is None:
            raise ScaleError(
                "SCL-23", f"block scales alone are given; {scheme.text} needs tensor_scale too, or no given scales"
            )
    return block, tensor


def _fit(given: Chosen | None, expected: tuple[int, ...] | None) -> Chosen | None:
    if given is None or expected is None:
        return None
    codes = require_grid(given.codes, expected, given.argument)
    return Chosen(codes, given.saturated.reshape(expected), given.argument)


def _block_raw(bits: Bits, scheme: Scheme) -> Bits:
    return raw_scale(blocks.amax(bits, scheme.extents(bits.ndim)), scheme)


@rule("SCL-5", "BLK-5")
def _tensor_amax(bits: Bits) -> Bits:
    """Largest finite magnitude of the tensor, shape (); 0 where it has none. Rule SCL-5."""
    magnitude = bits & MAGNITUDE
    return np.asarray(np.max(magnitude, where=magnitude < INF, initial=np.uint32(0)))


@rule("SCL-4", "SCL-6")
def raw_scale(largest: Bits, scheme: Scheme) -> Bits:
    """amax / H, one division; never 0 for an amax that is not. Rules SCL-4, SCL-6, SCL-7."""
    raw = to_bits(divide(to_float(largest), np.float32(scheme.half_range)))
    return _not_lost(raw, largest, "SCL-7")


def _not_lost(scale: Bits, source: Bits, rule_id: str) -> Bits:
    """2^-149 where a scale that is not zero was rounded to zero. Rules SCL-7, SCL-12."""
    lost = (scale == 0) & (source > 0)
    note(rule_id, np.asarray(lost))
    return np.where(lost, SMALLEST, scale)


@rule("SCL-8")
def _one_level(raw: Bits, scale: ScaleType | None) -> Chosen:
    """The smallest representable scale not below raw. Rules SCL-8, SCL-9."""
    if scale is None:
        raise AssertionError("a scheme has at least one level")
    note("SCL-9", np.asarray(raw == 0))
    return Chosen(*round_up(raw, scale))


@rule("SCL-10", "SCL-12")
def _two_levels(raw: Bits, block: ScaleType, tensor: ScaleType, given: Chosen | None) -> tuple[Chosen, Chosen]:
    """Tensor scale, then block scales relative to it. Rules SCL-10 to SCL-13; a given tensor scale: SCL-23."""
    limited = np.minimum(raw, LARGEST_RAW)
    largest = np.max(limited, initial=np.uint32(0))
    note("SCL-13", np.asarray(largest == 0))
    note("SCL-9", np.asarray(limited == 0))
    if given is None:
        note("SCL-11")
        wanted = to_bits(divide(to_float(np.asarray(largest)), np.float32(block.block_top)))
        chosen = Chosen(*round_up(np.maximum(wanted, SMALLEST_TENSOR), tensor))
    else:
        chosen = given
        require_positive(given.codes, tensor)
    g = decode_scale_codes(chosen.codes, tensor)
    relative = _not_lost(to_bits(divide(to_float(limited), g)), limited, "SCL-12")
    codes, saturated = round_up(relative, block)
    counted = saturated & (chosen.saturated | (given is not None))
    return Chosen(codes, counted), chosen


@rule("SCL-23")
def require_positive(code: ScaleCodes, scale: ScaleType) -> None:
    number = to_bits(decode_scale_codes(code, scale))
    if not 0 < int(number) < int(INF):
        raise ScaleError(
            "SCL-23",
            f"tensor_scale is {float(to_float(number))!r} (code 0x{int(code):X} of {scale.name}); with the block scales left "
            "to choose, allowed: finite and above 0",
        )


@rule("SCL-24")
def report(block: Chosen | None, tensor: Chosen | None) -> Saturation:
    """Count, first grid index, and the tensor scale apart. Rule SCL-24."""
    where = np.argwhere(block.saturated) if block is not None else np.empty((0, 0), int)
    first = tuple(int(i) for i in where[0]) if len(where) else None
    return Saturation(len(where), first, bool(tensor is not None and tensor.saturated.any()))
