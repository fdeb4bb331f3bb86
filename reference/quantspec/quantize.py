"""Quantize and dequantize: the steps in the order of the rules. Rules SCL-4 to SCL-14, SCL-19 to SCL-24, QNT-1 to QNT-12."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from . import blocks
from .errors import DtypeError, ScaleError, ShapeError
from .recipes import CANONICAL, CANONICAL_CODEC, Codec, Recipe, require_canonical
from .rounding import (
    F32,
    INF,
    MAGNITUDE,
    QNAN,
    SIGN,
    SMALLEST,
    Bits,
    divide,
    is_nan,
    multiply,
    narrow,
    to_bits,
    to_float,
    widen,
)
from .scales import SCALES, ScaleCodes, ScaleType, check_scale_codes, encode_given, round_up
from .scales import decode_codes as decode_scale_codes
from .scheme import Scheme
from .tracing import note, on_grid, on_tile, rule
from .values import Codes, check_codes, decode_codes, encode_bits

__all__ = ["Quantized", "Saturation", "dequantize", "quantize"]

Output = Literal["f32", "f16", "bf16"]
LARGEST_RAW = np.uint32(0x7E800000)  # 2^126, SCL-10
SMALLEST_TENSOR = np.uint32(0x00800000)  # 2^-126, SCL-11


@dataclass(frozen=True, slots=True)
class Saturation:
    """Scales whose number before rounding was above the largest finite one. Rule SCL-24."""

    count: int = 0  #: block scales that saturated
    first: tuple[int, ...] | None = None  #: grid index of the first of them, row-major
    tensor: bool = False  #: the tensor scale saturated


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """A quantized tensor: its scheme, a code an element, the scale codes of each level. Rules VAL-4, VAL-5, BLK-2, QNT-12.

    `codes` is uint8 of the tensor's shape; `scale_codes` has the scale grid's shape, `tensor_scale_code` shape (); each
    is None for a level that the scheme lacks. Arrays are copied in and checked. Equal when all bits are.
    """

    scheme: Scheme
    codes: Codes
    scale_codes: ScaleCodes | None = None
    tensor_scale_code: ScaleCodes | None = None
    recipe: Recipe = CANONICAL
    saturation: Saturation = Saturation()

    @rule("QNT-12")
    def __post_init__(self) -> None:
        require_canonical(recipe=self.recipe)
        object.__setattr__(self, "scheme", Scheme.of(self.scheme))
        codes = check_codes(self.codes, self.scheme.value, lookup=self.scheme.is_lookup)
        shape = blocks.check_array_shape(codes.shape, argument="codes.shape")
        self.scheme.require_shape(shape)
        scale_codes, tensor_code = check_levels(self.scheme, shape, self.scale_codes, self.tensor_scale_code)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "scale_codes", scale_codes)
        object.__setattr__(self, "tensor_scale_code", tensor_code)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.codes.shape

    @property
    def values_view(self) -> npt.NDArray[Any]:
        """The codes under the numpy or ml_dtypes dtype that reads them (no copy); lookup indices stay uint8."""
        return self.codes if self.scheme.is_lookup else self.codes.view(self.scheme.value.dtype)

    @property
    def scales_view(self) -> npt.NDArray[Any] | None:
        """The block scales under the dtype that reads them (no copy)."""
        return _view(self.scale_codes, None if self.scheme.block is None else self.scheme.block.scale)

    @property
    def tensor_scale_view(self) -> npt.NDArray[Any] | None:
        """The tensor scale, shape (), under the dtype that reads it (no copy)."""
        return _view(self.tensor_scale_code, self.scheme.tensor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantized):
            return NotImplemented
        return (
            self.scheme == other.scheme
            and self.recipe == other.recipe
            and np.array_equal(self.codes, other.codes)
            and _same(self.scale_codes, other.scale_codes)
            and _same(self.tensor_scale_code, other.tensor_scale_code)
        )

    __hash__ = None  # type: ignore[assignment]


def _view(codes: ScaleCodes | None, scale: ScaleType | None) -> npt.NDArray[Any] | None:
    if codes is None or scale is None:
        return None
    return codes.view(np.dtype(getattr(ml_dtypes, scale.ml_dtype, scale.ml_dtype)))


def _same(a: ScaleCodes | None, b: ScaleCodes | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))


def require_record(value: object, record: type, *, argument: str = "tensor") -> None:
    """Refuse, by name, an array or bytes where a record of a tensor is meant. Rule QNT-12."""
    if not isinstance(value, record):
        raise DtypeError(
            "QNT-12", f"{argument} is a {type(value).__name__}; allowed: {record.__name__}, which has the scheme"
        )


def level_shapes(scheme: Scheme, shape: tuple[int, ...]) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Shapes of the block scales and of the tensor scale, None for a level that the scheme lacks. Rules BLK-2, BLK-5."""
    grid = None if scheme.block is None else blocks.grid_shape(shape, scheme.extents(len(shape)))
    return grid, None if scheme.tensor is None else ()


def check_levels(
    scheme: Scheme,
    shape: tuple[int, ...],
    scale_codes: npt.ArrayLike | None,
    tensor_scale_code: npt.ArrayLike | None,
) -> tuple[ScaleCodes | None, ScaleCodes | None]:
    """The scale codes of each level of the scheme, checked; a missing or surplus level is refused. SCL-19, SCL-21, SCL-22."""
    grid, single = level_shapes(scheme, shape)
    block_type = None if scheme.block is None else scheme.block.scale
    found: list[ScaleCodes | None] = []
    for argument, given, expected, scale in (
        ("scale_codes", scale_codes, grid, block_type),
        ("tensor_scale_code", tensor_scale_code, single, scheme.tensor),
    ):
        if (given is None) != (scale is None):
            state = "is missing" if given is None else "is given"
            raise ScaleError(
                "SCL-22", f"{argument} {state}; {scheme.text} has {'no such' if scale is None else 'that'} level"
            )
        if given is None or scale is None or expected is None:
            found.append(None)
            continue
        codes = check_scale_codes(given, scale, argument=argument)
        found.append(require_grid(codes, expected, argument))
    return found[0], found[1]


@rule("SCL-19")
def require_grid(scales: npt.NDArray[Any], expected: tuple[int, ...], argument: str) -> npt.NDArray[Any]:
    """Scales shaped exactly like the grid; a tensor scale is one element of any shape. Rule SCL-19."""
    if expected == () and scales.size == 1:
        return scales.reshape(())
    if scales.shape != expected:
        raise ShapeError(
            "SCL-19", f"{argument} has shape {scales.shape}; allowed: exactly {expected}, one scale a block"
        )
    return scales


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Scale codes of one level and where they saturated."""

    codes: ScaleCodes
    saturated: npt.NDArray[np.bool_]


def quantize(
    x: npt.ArrayLike,
    scheme: Scheme | str,
    *,
    scales: npt.ArrayLike | None = None,
    scale_codes: npt.ArrayLike | None = None,
    tensor_scale: npt.ArrayLike | None = None,
    tensor_scale_code: npt.ArrayLike | None = None,
    recipe: Recipe = CANONICAL,
    codec: Codec = CANONICAL_CODEC,
) -> Quantized:
    """Codes and scales of a tensor. Rules SCL-4 to SCL-14, SCL-19 to SCL-24, QNT-1 to QNT-8.

    `x` is f32, f16 or bf16 of any rank and strides; it is not changed. Scales are chosen from x unless given, as numbers
    (`scales` shaped like the grid, `tensor_scale` one element) or as codes. Raises DtypeError, ShapeError, SchemeError,
    ScaleError, EncodingError.

    >>> q = quantize(np.float32([0.5, -1.0, 6.0, 0.3]), "e2m1.native.b2-ue8m0")
    >>> q.codes.tolist(), q.scale_codes.tolist()
    ([4, 14, 7, 1], [125, 127])
    """
    scheme = Scheme.of(scheme)
    require_canonical(recipe=recipe, codec=codec)
    bits = widen(x)
    shape = blocks.check_array_shape(bits.shape, argument="x.shape")
    scheme.require_shape(shape)
    block_type = None if scheme.block is None else scheme.block.scale
    given_block = _given("scales", scales, "scale_codes", scale_codes, block_type, scheme)
    given_tensor = _given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code, scheme.tensor, scheme)
    block, tensor = _choose(bits, scheme, given_block, given_tensor)
    effective = effective_scale(
        scheme, None if block is None else block.codes, None if tensor is None else tensor.codes
    )
    codes = np.empty(shape, np.uint8)
    for tile, s in _tiles(effective, scheme, shape):
        codes[tile] = _encode_quotient(bits[tile], s, scheme)
    return Quantized(
        scheme,
        codes,
        None if block is None else block.codes,
        None if tensor is None else tensor.codes,
        recipe,
        _report(block, tensor),
    )


def _tiles(scale: F32, scheme: Scheme, shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], F32]]:
    """Parts of the tensor, and the effective scale of each of their elements (shape () without a block level)."""
    extents = (1,) * len(shape) if scheme.block is None else scheme.extents(len(shape))
    for tile, grid in blocks.tiles(shape, extents):
        with on_tile(tile):
            sizes = tuple(part.stop - part.start for part in tile)
            yield tile, scale if scheme.block is None else blocks.spread(scale[grid], sizes, extents)


def _encode_quotient(bits: Bits, s: F32, scheme: Scheme) -> Codes:
    """code = encode(x / s), or in lookup mode the index of the nearest entry. Rules QNT-6, QNT-7, QNT-8."""
    if not scheme.is_lookup:
        note("QNT-6")
    return encode_bits(quotient(bits, s), scheme.value, scheme.table)


def _given(
    name: str,
    numbers: npt.ArrayLike | None,
    code_name: str,
    codes: npt.ArrayLike | None,
    scale: ScaleType | None,
    scheme: Scheme,
) -> _Chosen | None:
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
        return _Chosen(checked, np.zeros(checked.shape, bool))
    if numbers is None:
        return None
    return _Chosen(*encode_given(widen(numbers, argument=name, refused_by="SCL-19"), scale, argument=name))


def _choose(
    bits: Bits, scheme: Scheme, given_block: _Chosen | None, given_tensor: _Chosen | None
) -> tuple[_Chosen | None, _Chosen | None]:
    """Scales of both levels, given or chosen. Rules SCL-8 to SCL-13, SCL-23."""
    grid, single = level_shapes(scheme, bits.shape)
    block = _fit(given_block, grid, "scales")
    tensor = _fit(given_tensor, single, "tensor_scale")
    if scheme.block is None:
        return None, tensor or _one_level(raw_scale(_tensor_amax(bits), scheme), scheme.tensor)
    with on_grid(scheme.extents(bits.ndim)):
        if scheme.tensor is None:
            return block or _one_level(_block_raw(bits, scheme), scheme.block.scale), None
        if block is None:
            return _two_levels(_block_raw(bits, scheme), scheme.block.scale, scheme.tensor, tensor)
    if tensor is None:
        raise ScaleError(
            "SCL-23", f"block scales alone are given; {scheme.text} needs tensor_scale too, or no given scales"
        )
    return block, tensor


def _fit(given: _Chosen | None, expected: tuple[int, ...] | None, argument: str) -> _Chosen | None:
    if given is None or expected is None:
        return None
    return _Chosen(require_grid(given.codes, expected, argument), given.saturated.reshape(expected))


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
def _one_level(raw: Bits, scale: ScaleType | None) -> _Chosen:
    """The smallest representable scale not below raw. Rules SCL-8, SCL-9."""
    if scale is None:
        raise AssertionError("a scheme has at least one level")
    note("SCL-9", np.asarray(raw == 0))
    return _Chosen(*round_up(raw, scale))


@rule("SCL-10", "SCL-12")
def _two_levels(raw: Bits, block: ScaleType, tensor: ScaleType, given: _Chosen | None) -> tuple[_Chosen, _Chosen]:
    """Tensor scale, then block scales relative to it. Rules SCL-10 to SCL-13; a given tensor scale: SCL-23."""
    limited = np.minimum(raw, LARGEST_RAW)
    largest = np.max(limited, initial=np.uint32(0))
    note("SCL-13", np.asarray(largest == 0))
    note("SCL-9", np.asarray(limited == 0))
    if given is None:
        note("SCL-11")
        wanted = to_bits(divide(to_float(np.asarray(largest)), np.float32(block.block_top)))
        chosen = _Chosen(*round_up(np.maximum(wanted, SMALLEST_TENSOR), tensor))
    else:
        chosen = given
        _require_positive(given.codes, tensor)
    g = decode_scale_codes(chosen.codes, tensor)
    relative = _not_lost(to_bits(divide(to_float(limited), g)), limited, "SCL-12")
    codes, saturated = round_up(relative, block)
    counted = saturated & (chosen.saturated | (given is not None))
    return _Chosen(codes, counted), chosen


@rule("SCL-23")
def _require_positive(code: ScaleCodes, scale: ScaleType) -> None:
    number = to_bits(decode_scale_codes(code, scale))
    if not 0 < int(number) < int(INF):
        raise ScaleError(
            "SCL-23",
            f"tensor_scale is {float(to_float(number))!r} (code 0x{int(code):X} of {scale.name}); with the block scales left "
            "to choose, allowed: finite and above 0",
        )


@rule("SCL-14")
def effective_scale(scheme: Scheme, scale_codes: ScaleCodes | None, tensor_code: ScaleCodes | None) -> F32:
    """s = g * b, one multiplication; with one level the stored scale. On the grid's shape, or (). Rule SCL-14."""
    b = None if scale_codes is None or scheme.block is None else decode_scale_codes(scale_codes, scheme.block.scale)
    g = None if tensor_code is None or scheme.tensor is None else decode_scale_codes(tensor_code, scheme.tensor)
    if b is None or g is None:
        return np.asarray(g if b is None else b)
    return multiply(g, b)


def quotient(bits: Bits, s: F32) -> Bits:
    """x / s as patterns; NaN and zero scales by rule, every NaN with x's sign. Rules QNT-2 to QNT-5."""
    q = to_bits(divide(to_float(bits), s))
    scale = to_bits(s) & MAGNITUDE
    zero = np.asarray(scale == 0)
    note("QNT-2", lambda: is_nan(bits))
    note("QNT-3", lambda: np.broadcast_to(scale > INF, bits.shape))
    note("QNT-4", lambda: np.broadcast_to(zero, bits.shape) & ~is_nan(bits))
    note("QNT-5", lambda: ~(zero | (scale > INF) | is_nan(bits)))
    sign = bits & SIGN
    q = np.where(zero & ~is_nan(bits), sign, q)
    return np.where(is_nan(q), QNAN | sign, q)


@rule("SCL-24")
def _report(block: _Chosen | None, tensor: _Chosen | None) -> Saturation:
    """Count, first grid index, and the tensor scale apart. Rule SCL-24."""
    where = np.argwhere(block.saturated) if block is not None else np.empty((0, 0), int)
    first = tuple(int(i) for i in where[0]) if len(where) else None
    return Saturation(len(where), first, bool(tensor is not None and tensor.saturated.any()))


def dequantize(
    tensor: Quantized, dtype: npt.DTypeLike | Output = "f32", *, codec: Codec = CANONICAL_CODEC
) -> npt.NDArray[Any]:
    """The numbers of a quantized tensor: y = s * v, one multiplication, then one rounding for f16 or bf16. QNT-9 to QNT-11.

    Returns f32, f16 or bf16 (`ml_dtypes.bfloat16`) of the tensor's shape. Every NaN is canonical. Raises DtypeError.

    >>> dequantize(quantize(np.float32([0.5, -1.0, 6.0, 0.3]), "e2m1.native.b2-ue8m0")).tolist()
    [0.5, -1.0, 6.0, 0.5]
    """
    require_record(tensor, Quantized)
    require_canonical(recipe=tensor.recipe, codec=codec)
    out = _output(dtype)
    scheme = tensor.scheme
    scale = effective_scale(scheme, tensor.scale_codes, tensor.tensor_scale_code)
    y = np.empty(tensor.shape, output_dtype(out))
    for tile, s in _tiles(scale, scheme, tensor.shape):
        y[tile] = _narrowed(_product(s, decode_codes(tensor.codes[tile], scheme.value, scheme.table)), out)
    return y


@rule("QNT-9")
def _product(s: F32, v: F32) -> F32:
    """y = s * v, every NaN canonical. Rules QNT-9, QNT-11."""
    y = multiply(s, v)
    note("QNT-11", lambda: is_nan(to_bits(y)))
    return y


#: the types that dequantize writes: the scale types that are IEEE formats, by name
OUTPUTS = {name: row for name, row in SCALES.items() if row.infinity_code is not None}


def _output(dtype: "npt.DTypeLike | Output") -> ScaleType:
    """The row of the float type that an output is written in. Rule QNT-10."""
    if isinstance(dtype, str) and dtype in OUTPUTS:
        return OUTPUTS[dtype]
    try:
        return {output_dtype(row): row for row in OUTPUTS.values()}[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise DtypeError("QNT-10", f"dtype={dtype!r}; allowed: 'f32', 'f16', 'bf16' or the dtypes of those") from None


def _narrowed(y: F32, out: ScaleType) -> npt.NDArray[Any]:
    """y in the output type, rounded once, nearest-even, overflow to Inf. Rules QNT-10, QNT-11."""
    if out.mantissa_bits == 23:
        return y
    note("QNT-10")
    bits = to_bits(y)
    if out.infinity_code is None:
        raise AssertionError("an output type has infinities")
    code = narrow(bits, mantissa_bits=out.mantissa_bits, bias=out.bias, infinity=out.infinity_code, nan=out.nan_code)
    sign = np.where(is_nan(bits), np.uint32(0), bits & SIGN) >> np.uint32(16)
    return (code | sign).astype(np.uint16).view(output_dtype(out))


def output_dtype(out: ScaleType) -> np.dtype[Any]:
    """The dtype of an output type."""
    return np.dtype(getattr(ml_dtypes, out.ml_dtype, out.ml_dtype))
