"""Quantize and dequantize: the steps in the order of the rules. Rules SCL-14, QNT-1 to QNT-12; scales: `choice`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from . import blocks
from .choice import choose, given_scales, report
from .codecs import read_by
from .following import Following
from .outputs import Output, narrowed, output_dtype, output_type
from .recipes import CANONICAL, CANONICAL_CODEC, Codec, Recipe
from .rounding import F32, INF, MAGNITUDE, QNAN, SIGN, Bits, divide, is_nan, multiply, to_bits, to_float, widen
from .scales import ScaleCodes
from .scales import decode_codes as decode_scale_codes
from .scheme import Scheme
from .tensor import Quantized, require_record
from .tracing import note, on_tile, rule
from .values import Codes, decode_codes, encode_bits

__all__ = ["dequantize", "quantize"]


def quantize(
    x: npt.ArrayLike,
    scheme: Scheme | str,
    *,
    scales: npt.ArrayLike | None = None,
    scale_codes: npt.ArrayLike | None = None,
    tensor_scale: npt.ArrayLike | None = None,
    tensor_scale_code: npt.ArrayLike | None = None,
    recipe: Recipe | str = CANONICAL,
    codec: Codec | str = CANONICAL_CODEC,
) -> Quantized:
    """Codes and scales of a tensor. Rules SCL-4 to SCL-14, SCL-19 to SCL-24, QNT-1 to QNT-8.

    `x` is f32, f16 or bf16 of any rank and strides; it is not changed. Scales are chosen from x unless given, as numbers
    (`scales` shaped like the grid, `tensor_scale` one element) or as codes. `recipe` and `codec` are rows or their names;
    the result carries both. Raises DtypeError, ShapeError, SchemeError, ScaleError, EncodingError, UnsupportedError.

    >>> q = quantize(np.float32([0.5, -1.0, 6.0, 0.3]), "e2m1.native.b2-ue8m0")
    >>> q.codes.tolist(), q.scale_codes.tolist()
    ([4, 14, 7, 1], [125, 127])
    """
    scheme = Scheme.of(scheme)
    recipe, codec = Recipe.of(recipe), Codec.of(codec)
    bits = widen(x)
    shape = blocks.check_array_shape(bits.shape, argument="x.shape")
    scheme.require_shape(shape)
    block_type = None if scheme.block is None else scheme.block.scale
    given_block = given_scales("scales", scales, "scale_codes", scale_codes, block_type, scheme)
    given_tensor = given_scales(
        "tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code, scheme.tensor, scheme
    )
    own = None if recipe == CANONICAL else Following.of(scheme, recipe, shape)
    choosing = own.choose(bits, given_block, given_tensor) if own else choose(bits, scheme, given_block, given_tensor)
    block_codes, tensor_code = (None if level is None else level.codes for level in choosing)
    effective = effective_scale(scheme, block_codes, tensor_code)
    codes = np.empty(shape, np.uint8)
    if own is None:
        for tile, s in _tiles(effective, scheme, shape):
            codes[tile] = _encode_quotient(bits[tile], s, scheme, codec)
    else:
        own.stored(block_codes, tensor_code, effective)
        for tile, spread in _parts(scheme, shape):
            codes[tile] = encode_bits(own.quotient(bits[tile], spread, tile), scheme.value, scheme.table, codec)
    return Quantized(scheme, codes, block_codes, tensor_code, recipe, report(*choosing), codec)


def _parts(scheme: Scheme, shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], Callable[[F32], F32]]]:
    """Parts of the tensor, and the way from scales on the grid to one of each of their elements."""
    extents = (1,) * len(shape) if scheme.block is None else scheme.extents(len(shape))
    for tile, grid in blocks.tiles(shape, extents):
        with on_tile(tile):
            sizes = tuple(part.stop - part.start for part in tile)
            yield tile, _whole if scheme.block is None else partial(_spread, grid=grid, sizes=sizes, extents=extents)


def _whole(scale: F32) -> F32:
    """The one scale of a tensor without a block level."""
    return scale


def _spread(scale: F32, grid: tuple[slice, ...], sizes: tuple[int, ...], extents: tuple[int, ...]) -> F32:
    """The scale of each element of a part."""
    return blocks.spread(np.asarray(scale[grid]), sizes, extents)


def _tiles(scale: F32, scheme: Scheme, shape: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], F32]]:
    """Parts of the tensor, and the effective scale of each of their elements (shape () without a block level)."""
    for tile, spread in _parts(scheme, shape):
        yield tile, spread(scale)


def _encode_quotient(bits: Bits, s: F32, scheme: Scheme, codec: Codec) -> Codes:
    """code = encode(x / s), or in lookup mode the index of the nearest entry. Rules QNT-6, QNT-7, QNT-8."""
    if not scheme.is_lookup:
        note("QNT-6")
    return encode_bits(quotient(bits, s), scheme.value, scheme.table, codec)


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


def dequantize(
    tensor: Quantized, dtype: npt.DTypeLike | Output = "f32", *, codec: Codec | str | None = None
) -> npt.NDArray[Any]:
    """The numbers of a quantized tensor: y = s * v, one multiplication, then one rounding for f16 or bf16. QNT-9 to QNT-11.

    The recipe is the tensor's, and the codec unless one is named. Returns f32, f16 or bf16 (`ml_dtypes.bfloat16`) of the
    tensor's shape. Every NaN is canonical. Raises DtypeError, UnsupportedError.

    >>> dequantize(quantize(np.float32([0.5, -1.0, 6.0, 0.3]), "e2m1.native.b2-ue8m0")).tolist()
    [0.5, -1.0, 6.0, 0.5]
    """
    require_record(tensor, Quantized)
    codec = tensor.codec if codec is None else Codec.of(codec)
    out = output_type(dtype)
    scheme = tensor.scheme
    scale = effective_scale(scheme, tensor.scale_codes, tensor.tensor_scale_code)
    y = np.empty(tensor.shape, output_dtype(out))
    own = None if tensor.recipe == CANONICAL else Following.of(scheme, tensor.recipe, tensor.shape)
    if own is not None:
        own.stored(tensor.scale_codes, tensor.tensor_scale_code, scale)
    for tile, spread in _parts(scheme, tensor.shape):
        v = read_by(decode_codes(tensor.codes[tile], scheme.value, scheme.table), codec)
        y[tile] = narrowed(own.numbers(v, spread) if own else _product(spread(scale), v), out)
    return y


@rule("QNT-9")
def _product(s: F32, v: F32) -> F32:
    """y = s * v, every NaN canonical. Rules QNT-9, QNT-11."""
    y = multiply(s, v)
    note("QNT-11", lambda: is_nan(to_bits(y)))
    return y
