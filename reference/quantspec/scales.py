"""Scale types, and how a scale becomes a scale code.

Rules SCL-1 to SCL-3 and SCL-15 to SCL-24; which scale a block gets is `blocks` and `quantize`. Scale codes are uint32
(f32), uint16 (f16, bf16) or uint8 (ue8m0, ue4m3). Sources: IEEE 754, OCP MX 1.0, PTX ISA for ue4m3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .codecs import CANONICAL_CODEC, Codec, require_canonical_codec
from .errors import DtypeError, EncodingError, ScaleError, SchemeError, UnsupportedError
from .rounding import (
    F32,
    INF,
    MAGNITUDE,
    QNAN,
    SIGN,
    Bits,
    is_nan,
    round_exponent,
    round_significand,
    scaled,
    split_fields,
    to_bits,
    to_float,
    widen,
)
from .tracing import note, rule

__all__ = ["SCALES", "ScaleCodes", "ScaleType", "decode_scale", "encode_scale", "scale_type"]

ScaleCodes = npt.NDArray[Any]
_CODE_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32)}
Rounding = Literal["up", "nearest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleType:
    """One scale type: independent facts; everything else is derived from them."""

    name: str
    burn: str  #: upstream's name
    ml_dtype: str  #: the dtype of ml_dtypes or numpy that reads a scale code
    size: int  #: bytes of a stored scale
    bits: int  #: bits of a code that may be set
    signed: bool  #: the top bit is a sign
    has_zero: bool  #: code 0 is zero (else 2^-bias) and subnormals follow it
    mantissa_bits: int
    bias: int
    largest_code: int  #: magnitude code of the largest finite number
    first_nan_code: int  #: smallest magnitude code that is a NaN
    nan_code: int  #: magnitude code that is written for NaN
    infinity_code: int | None = None
    block_top: float = 1.0  #: two levels: what the largest block scale is mapped to. Rule SCL-11

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """dtype of an array of scale codes."""
        return _CODE_DTYPES[self.size]

    @property
    def sign_bit(self) -> int:
        """The bit of a code that is the sign; 0 for unsigned types."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def magnitude_mask(self) -> int:
        """The bits of a code that are not its sign."""
        return ((1 << self.bits) - 1) & ~self.sign_bit

    @property
    def largest(self) -> Fraction:
        """The largest finite number."""
        return Fraction(float(decode_codes(np.array([self.largest_code], self.code_dtype), self)[0]))

    @property
    def round(self) -> Callable[..., Bits]:
        """The primitive that rounds a finite magnitude to a code of this type."""
        return self._round_significand if self.has_zero else self._round_exponent

    def _round_significand(self, magnitude: Bits, *, up: bool) -> Bits:
        return round_significand(magnitude, mantissa_bits=self.mantissa_bits, bias=self.bias, up=up)

    def _round_exponent(self, magnitude: Bits, *, up: bool) -> Bits:
        return round_exponent(magnitude, bias=self.bias, up=up)


_ROWS = (
    ScaleType(name="f32", burn="F32", ml_dtype="float32", size=4, bits=32, signed=True, has_zero=True, mantissa_bits=23,
              bias=127, largest_code=0x7F7FFFFF, infinity_code=0x7F800000, first_nan_code=0x7F800001, nan_code=0x7FC00000),
    ScaleType(name="f16", burn="F16", ml_dtype="float16", size=2, bits=16, signed=True, has_zero=True, mantissa_bits=10,
              bias=15, largest_code=0x7BFF, infinity_code=0x7C00, first_nan_code=0x7C01, nan_code=0x7E00, block_top=65504.0),
    ScaleType(name="bf16", burn="BF16", ml_dtype="bfloat16", size=2, bits=16, signed=True, has_zero=True, mantissa_bits=7,
              bias=127, largest_code=0x7F7F, infinity_code=0x7F80, first_nan_code=0x7F81, nan_code=0x7FC0),
    ScaleType(name="ue8m0", burn="UE8M0", ml_dtype="float8_e8m0fnu", size=1, bits=8, signed=False, has_zero=False,
              mantissa_bits=0, bias=127, largest_code=0xFE, first_nan_code=0xFF, nan_code=0xFF),
    ScaleType(name="ue4m3", burn="UE4M3", ml_dtype="float8_e4m3fn", size=1, bits=7, signed=False, has_zero=True,
              mantissa_bits=3, bias=7, largest_code=0x7E, first_nan_code=0x7F, nan_code=0x7F, block_top=448.0),
)  # fmt: skip

#: Every scale type by name, in the order of the rules.
SCALES = {row.name: row for row in _ROWS}
if len(SCALES) != len(_ROWS):
    raise AssertionError("two scale types share a name")


@rule("SCH-5")
def scale_type(scale: str | ScaleType, *, argument: str = "scale") -> ScaleType:
    """The row of the table that `scale` names; refused otherwise. Rule SCH-5."""
    name = scale.name if isinstance(scale, ScaleType) else scale
    row = SCALES.get(name) if isinstance(name, str) else None
    if row is None:
        raise SchemeError("SCH-5", f"{argument}={scale!r} is not a scale type; allowed: {', '.join(SCALES)}")
    return row


def check_scale_codes(
    codes: npt.ArrayLike, scale: ScaleType, *, argument: str = "scale_codes", bit7: str = "refuse"
) -> ScaleCodes:
    """Scale codes as a C-ordered array of the type's code dtype; bits that the type lacks are refused. SCL-2, SCL-18.

    `bit7="ignore"` clears the unused top bit of imported ue4m3 instead.
    """
    if bit7 not in ("refuse", "ignore"):
        raise UnsupportedError("SCL-2", f"ue4m3_bit7={bit7!r}; allowed: 'refuse', 'ignore'")
    array = np.asarray(codes)
    if array.dtype.newbyteorder("=") != scale.code_dtype:
        raise DtypeError("SCL-21", f"{argument} has dtype {array.dtype}; codes of {scale.name} are {scale.code_dtype}")
    note("SCL-18")
    array = np.array(array, scale.code_dtype, order="C", ndmin=array.ndim)
    if scale.bits < 8 * scale.size:
        note("SCL-2")
    used = array & scale.code_dtype.type(scale.magnitude_mask | scale.sign_bit)
    wrong = used != array
    if wrong.any() and bit7 == "refuse":
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise EncodingError(
            "SCL-2", f"{argument}{list(index)} is 0x{int(array[index]):02X}: bit 7 of a {scale.name} scale must be 0"
        )
    return np.asarray(used)


@rule("SCL-1", "SCL-18")
def decode_codes(codes: ScaleCodes, scale: ScaleType) -> F32:
    """The exact numbers of scale codes already checked; NaN gives 7FC00000. Rules SCL-1, SCL-2, SCL-3, SCL-18."""
    code = codes.astype(np.uint32)
    magnitude = code & np.uint32(scale.magnitude_mask)
    if scale.has_zero:
        bits = scaled(*split_fields(magnitude, mantissa_bits=scale.mantissa_bits, bias=scale.bias))
    else:
        note("SCL-3")
        bits = scaled(np.ones_like(code), magnitude.view(np.int32) - np.int32(scale.bias))
    if scale.infinity_code is not None:
        bits = np.where(magnitude == scale.infinity_code, INF, bits)
    bits = np.where(magnitude >= scale.first_nan_code, QNAN, bits)
    note("QNT-11", lambda: is_nan(bits))
    negative = (code & np.uint32(scale.sign_bit)) > 0
    return to_float(np.where(negative & (bits != QNAN), bits | SIGN, bits))


def decode_scale(
    codes: npt.ArrayLike,
    scale: str | ScaleType,
    *,
    ue4m3_bit7: str = "refuse",
    codec: Codec | str = CANONICAL_CODEC,
) -> F32:
    """The exact numbers of scale codes, in binary32. Rules SCL-1 to SCL-3, SCL-18.

    `codes` has the type's code dtype and any shape; f32 of that shape out. ue4m3 with bit 7 set is refused unless
    `ue4m3_bit7="ignore"`. Raises DtypeError, EncodingError.

    >>> decode_scale(np.uint8([0, 127, 254]), "ue8m0").tolist()
    [5.877471754111438e-39, 1.0, 1.7014118346046923e+38]
    """
    row = scale_type(scale)
    require_canonical_codec(codec)
    return decode_codes(check_scale_codes(codes, row, bit7=ue4m3_bit7), row)


def round_up(magnitude: Bits, scale: ScaleType) -> tuple[ScaleCodes, npt.NDArray[np.bool_]]:
    """Smallest representable scale not below each magnitude, saturating; and where it saturated. Rules SCL-8, SCL-15."""
    code = scale.round(np.minimum(magnitude, INF), up=True)
    saturated = code > scale.largest_code
    return np.minimum(code, np.uint32(scale.largest_code)).astype(scale.code_dtype), saturated


def round_nearest(magnitude: Bits, scale: ScaleType) -> ScaleCodes:
    """Nearest representable scale, ties to the even code, saturating. Rule SCL-16."""
    code = scale.round(np.minimum(magnitude, INF), up=False)
    return np.minimum(code, np.uint32(scale.largest_code)).astype(scale.code_dtype)


def encode_scale(
    x: npt.ArrayLike, scale: str | ScaleType, rounding: Rounding = "up", *, codec: Codec | str = CANONICAL_CODEC
) -> ScaleCodes:
    """Scale codes of numbers: `up` as for given scales, `nearest` of the magnitude. Rules SCL-15, SCL-16, SCL-17.

    `x` is f32, f16 or bf16 of any shape; codes of that shape out. NaN gives the type's NaN code. `up` refuses what a
    given scale may not be (SCL-20); `nearest` keeps the sign, and refuses a set sign bit for unsigned types.
    Raises DtypeError, ScaleError, UnsupportedError.

    >>> encode_scale(np.float32([0.3, 3.0]), "ue8m0").tolist(), encode_scale(np.float32([0.3, 3.0]), "ue8m0", "nearest").tolist()
    ([126, 129], [125, 128])
    """
    row = scale_type(scale)
    require_canonical_codec(codec)
    if rounding not in ("up", "nearest"):
        raise UnsupportedError("SCL-15", f"rounding={rounding!r}; allowed: 'up', 'nearest'")
    bits = widen(x, refused_by="SCL-15")
    if rounding == "up":
        return _encode_up(bits, row)
    return _encode_nearest(bits, row)


@rule("SCL-15", "SCL-17")
def _encode_up(bits: Bits, scale: ScaleType) -> ScaleCodes:
    return encode_given(bits, scale, argument="x", refused_by="SCL-17")[0]


@rule("SCL-17")
def _encode_nearest(bits: Bits, scale: ScaleType) -> ScaleCodes:
    magnitude = bits & MAGNITUDE
    invalid = magnitude > INF
    negative = (bits >= SIGN) & ~invalid
    if not scale.signed and negative.any():
        raise ScaleError(
            "SCL-17", _refused("x", bits, negative, f"{scale.name} has no sign; allowed: +0 and above, NaN")
        )
    note("SCL-16")
    code = round_nearest(magnitude, scale) | np.where(negative, scale.sign_bit, 0).astype(scale.code_dtype)
    return np.asarray(np.where(invalid, scale.code_dtype.type(scale.nan_code), code))


def encode_given(
    bits: Bits, scale: ScaleType, *, argument: str, refused_by: str = "SCL-20"
) -> tuple[ScaleCodes, npt.NDArray[np.bool_]]:
    """Codes of given scale values, and where they saturated. Rule SCL-20; SCL-17 for numbers that are not given scales.

    NaN stores the type's NaN; +0 and above rounds up, +Inf to the largest finite; a finite negative or -0 must be a
    number of a signed type; -Inf is refused.
    """
    note(refused_by)
    magnitude = bits & MAGNITUDE
    invalid = magnitude > INF
    negative = (bits >= SIGN) & ~invalid
    code, saturated = round_up(magnitude, scale)
    if not scale.signed and negative.any():
        raise ScaleError(
            refused_by, _refused(argument, bits, negative, f"{scale.name} has no sign; allowed: +0 and above, NaN")
        )
    inexact = negative & ((to_bits(decode_codes(code, scale)) != magnitude) | (magnitude == INF))
    if inexact.any():
        raise ScaleError(
            refused_by,
            _refused(argument, bits, inexact, f"a negative scale is kept only if it is exactly a finite {scale.name}"),
        )
    code = code | np.where(negative, scale.sign_bit, 0).astype(scale.code_dtype)
    return np.where(invalid, scale.code_dtype.type(scale.nan_code), code), saturated & ~invalid


def _refused(argument: str, bits: Bits, where: npt.NDArray[np.bool_], allowed: str) -> str:
    """Message for the first of the refused numbers."""
    index = tuple(int(i) for i in np.argwhere(where)[0])
    number = float(to_float(np.asarray(bits))[index])
    return f"{argument}{list(index)} is {number!r} (0x{int(bits[index]):08X}): {allowed}"
