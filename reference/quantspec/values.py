"""Value formats: the table of element types, and the codec between binary32 numbers and codes.

A code is one uint8 an element, equal to the byte of the native store: integers sign-extended, everything else
zero-extended. Rules VAL-1 to VAL-13; sources: OCP OFP8 1.0, OCP MX 1.0, two's complement.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .codecs import CANONICAL_CODEC, Codec, encode_by, read_by, require_codec
from .errors import DtypeError, EncodingError, SchemeError
from .rounding import (
    F32,
    INF,
    MAGNITUDE,
    QNAN,
    SIGN,
    Bits,
    is_nan,
    is_tie,
    round_significand,
    scaled,
    split_fields,
    to_bits,
    to_float,
    widen,
)
from .tables import Table, encode_lookup
from .tracing import note, rule

__all__ = ["VALUES", "Codes", "ValueFormat", "decode", "encode", "extend", "require_indexed", "value_format"]

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueFormat:
    """One value format: independent facts; everything else is derived from them."""

    name: str
    bits: int  #: width of a field
    burn: str | None  #: upstream's name
    ml_dtype: str  #: the dtype of ml_dtypes or numpy that reads a code byte
    lowest: int = 0  #: integers: smallest code that encode produces
    highest: int = 0  #: integers: largest code
    exponent_bits: int = 0  #: minifloats: width of the exponent field; 0 for integers
    bias: int = 0  #: minifloats: exponent bias
    largest_code: int = 0  #: minifloats: magnitude code of the largest finite number
    infinity_code: int | None = None  #: magnitude code of infinity
    first_nan_code: int | None = None  #: smallest magnitude code that is a NaN
    nan_code: int | None = None  #: magnitude code that encode writes for NaN

    @property
    def is_integer(self) -> bool:
        """True for two's complement integers, false for minifloats."""
        return self.exponent_bits == 0

    @property
    def mantissa_bits(self) -> int:
        """Width of the mantissa field of a minifloat."""
        return self.bits - 1 - self.exponent_bits

    @property
    def mask(self) -> int:
        """All bits of a field."""
        return (1 << self.bits) - 1

    @property
    def sign_bit(self) -> int:
        """The field's top bit."""
        return 1 << (self.bits - 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The ml_dtypes or numpy dtype under which code bytes read as their numbers."""
        return np.dtype(getattr(ml_dtypes, self.ml_dtype, self.ml_dtype))

    @property
    def half_range(self) -> Fraction:
        """H: half the value range, what amax is divided by. Rule SCL-4."""
        if self.is_integer:
            return Fraction(self.highest - self.lowest, 2)
        return _magnitude(self, self.largest_code)


def _magnitude(row: ValueFormat, code: int) -> Fraction:
    """The exact number of a finite magnitude code: VAL-2's formula."""
    exponent, fraction = code >> row.mantissa_bits, code & ((1 << row.mantissa_bits) - 1)
    implicit = (1 << row.mantissa_bits) if exponent else 0
    return Fraction(fraction + implicit) * Fraction(2) ** (max(exponent, 1) - row.bias - row.mantissa_bits)


_ROWS = (
    ValueFormat(name="q8f", bits=8, burn="Q8F", ml_dtype="int8", lowest=-128, highest=127),
    ValueFormat(name="q8s", bits=8, burn="Q8S", ml_dtype="int8", lowest=-127, highest=127),
    ValueFormat(name="q4f", bits=4, burn="Q4F", ml_dtype="int4", lowest=-8, highest=7),
    ValueFormat(name="q4s", bits=4, burn="Q4S", ml_dtype="int4", lowest=-7, highest=7),
    ValueFormat(name="q2f", bits=2, burn="Q2F", ml_dtype="int2", lowest=-2, highest=1),
    ValueFormat(name="q2s", bits=2, burn="Q2S", ml_dtype="int2", lowest=-1, highest=1),
    ValueFormat(name="e4m3", bits=8, burn="E4M3", ml_dtype="float8_e4m3fn", exponent_bits=4, bias=7,
                largest_code=0x7E, first_nan_code=0x7F, nan_code=0x7F),
    ValueFormat(name="e5m2", bits=8, burn="E5M2", ml_dtype="float8_e5m2", exponent_bits=5, bias=15,
                largest_code=0x7B, infinity_code=0x7C, first_nan_code=0x7D, nan_code=0x7E),
    ValueFormat(name="e2m1", bits=4, burn="E2M1", ml_dtype="float4_e2m1fn", exponent_bits=2, bias=1, largest_code=0x07),
    ValueFormat(name="e3m2", bits=6, burn=None, ml_dtype="float6_e3m2fn", exponent_bits=3, bias=3, largest_code=0x1F),
    ValueFormat(name="e2m3", bits=6, burn=None, ml_dtype="float6_e2m3fn", exponent_bits=2, bias=1, largest_code=0x1F),
)  # fmt: skip

#: Every value format by name, in the order of the rules.
VALUES = {row.name: row for row in _ROWS}
if len(VALUES) != len(_ROWS):
    raise AssertionError("two value formats share a name")


@rule("SCH-2")
def value_format(value: str | ValueFormat) -> ValueFormat:
    """The row of the table that `value` names; refused otherwise. Rule SCH-2."""
    name = value.name if isinstance(value, ValueFormat) else value
    row = VALUES.get(name) if isinstance(name, str) else None
    if row is None:
        raise SchemeError("SCH-2", f"value={value!r} is not a value format; allowed: {', '.join(VALUES)}")
    return row


@rule("VAL-4")
def extend(fields: npt.NDArray[Any], value: ValueFormat, *, lookup: bool = False) -> Codes:
    """Fields of `value.bits` bits to code bytes: integers sign-extended, minifloats and indices zero-extended. VAL-4."""
    fields = fields.astype(np.uint8)
    if lookup or not value.is_integer:
        return fields
    above = np.uint8(0xFF & ~value.mask)
    return np.where(fields & np.uint8(value.sign_bit), fields | above, fields)


@rule("VAL-5")
def check_codes(codes: npt.ArrayLike, value: ValueFormat, *, lookup: bool, argument: str = "codes") -> Codes:
    """Codes as a C-ordered uint8 array, refused where a byte is not the extension of its own field. Rules VAL-4, VAL-5."""
    array = np.asarray(codes)
    if array.dtype != np.uint8:
        raise DtypeError("VAL-4", f"{argument} has dtype {array.dtype}; allowed: uint8, one code a byte")
    array = np.array(array, order="C", ndmin=array.ndim)
    wrong = extend(array & np.uint8(value.mask), value, lookup=lookup) != array
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        kind = "zero" if lookup or not value.is_integer else "sign"
        raise EncodingError(
            "VAL-5",
            f"{argument}{list(index)} is the byte 0x{int(array[index]):02X}, which is not a {value.bits}-bit code of "
            f"{value.name} {kind}-extended to a byte",
        )
    return array


def table_for(table: Table | npt.ArrayLike, value: ValueFormat) -> Table:
    """The table, where fields of the value format may index it. Rules SCH-8, SCH-10, SCH-11, SCH-12."""
    require_indexed(value)
    return Table.of(table, bits=value.bits)


@rule("SCH-8")
def require_indexed(value: ValueFormat) -> None:
    """Refuse lookup with a value whose fields are no indices. Rule SCH-8."""
    if not value.is_integer:
        raise SchemeError(
            "SCH-8", f"a table is given with value={value.name!r}; a lookup index is the field of an integer format"
        )


def encode(
    x: npt.ArrayLike,
    value: str | ValueFormat,
    *,
    table: Table | npt.ArrayLike | None = None,
    codec: Codec | str = CANONICAL_CODEC,
) -> Codes:
    """Codes of numbers: one rounding, nearest, ties to even, saturating. Rules VAL-6 to VAL-11; with a table QNT-7, QNT-8.

    `x` is f32, f16 or bf16 of any shape; `table` (f32, 2^bits entries, integer formats only) makes the code the index
    of the nearest entry. Returns uint8 of x's shape. Raises DtypeError, SchemeError.

    >>> encode(np.float32([0.25, 0.75, -5, 448]), "e2m1").tolist()
    [0, 2, 14, 7]
    """
    row = value_format(value)
    codec = Codec.of(codec)
    entries = None if table is None else table_for(table, row)
    return encode_bits(widen(x), row, entries, codec)


@rule("VAL-4")
def encode_bits(bits: Bits, value: ValueFormat, table: Table | None = None, codec: Codec = CANONICAL_CODEC) -> Codes:
    """`encode` of binary32 patterns."""
    if codec != CANONICAL_CODEC and (table is None or codec.rounding != "even"):
        return encode_by(bits, value, codec, lookup=table is not None)
    if table is not None:
        return encode_lookup(bits, table)
    return _encode_integer(bits, value) if value.is_integer else _encode_minifloat(bits, value)


def _encode_integer(bits: Bits, value: ValueFormat) -> Codes:
    """Nearest integer, ties to even, saturating to the range; NaN gives 0. Rules VAL-1, VAL-6, VAL-7, VAL-8, VAL-10."""
    invalid = is_nan(bits)
    x = to_float(np.where(invalid, np.uint32(0), bits))
    rounded = np.rint(x)
    note("VAL-1")
    note("VAL-6", lambda: (bits & MAGNITUDE) < INF)
    note("VAL-7", lambda: np.abs(x - np.trunc(np.where(np.isfinite(x), x, 0))) == 0.5)
    note("VAL-8", lambda: (rounded > value.highest) | (rounded < value.lowest))
    note("VAL-10", invalid)
    note("VAL-11", lambda: (rounded == 0) & ~invalid)
    return np.clip(rounded, value.lowest, value.highest).astype(np.int8).view(np.uint8)


def _encode_minifloat(bits: Bits, value: ValueFormat) -> Codes:
    """Nearest minifloat, ties to the even code, saturating; the sign kept. Rules VAL-2, VAL-6 to VAL-11."""
    magnitude = bits & MAGNITUDE
    invalid = magnitude > INF
    code = round_significand(np.minimum(magnitude, INF), mantissa_bits=value.mantissa_bits, bias=value.bias, up=False)
    note("VAL-2")
    note("VAL-6", lambda: magnitude < INF)
    note("VAL-7", lambda: (magnitude < INF) & is_tie(magnitude, mantissa_bits=value.mantissa_bits, bias=value.bias))
    note("VAL-8", lambda: ~invalid & (code > value.largest_code))
    code = np.minimum(code, np.uint32(value.largest_code))
    sign = (bits >> np.uint32(32 - value.bits)) & np.uint32(value.sign_bit)
    note("VAL-11", lambda: ~invalid & (code == 0))
    code |= sign
    if value.nan_code is None:
        note("VAL-10", invalid)
        return np.where(invalid, np.uint32(0), code).astype(np.uint8)
    note("VAL-9", invalid)
    return np.where(invalid, np.uint32(value.nan_code) | sign, code).astype(np.uint8)


def _decoded(value: ValueFormat) -> F32:
    """The number of each of the 256 code bytes, NaN as 7FC00000. Rules VAL-1, VAL-2, VAL-3, VAL-12."""
    code = np.arange(256, dtype=np.uint8)
    if value.is_integer:
        return code.view(np.int8).astype(np.float32)
    magnitude = code & np.uint8(value.sign_bit - 1)
    bits = scaled(*split_fields(magnitude, mantissa_bits=value.mantissa_bits, bias=value.bias))
    if value.infinity_code is not None:
        bits = np.where(magnitude == value.infinity_code, INF, bits)
    bits = np.where(code & np.uint8(value.sign_bit), bits | SIGN, bits)
    if value.first_nan_code is not None:
        bits = np.where(magnitude >= value.first_nan_code, QNAN, bits)
    return to_float(bits)


#: the number of every code byte, for every value format
DECODED = {row.name: _decoded(row) for row in VALUES.values()}
for numbers in DECODED.values():
    numbers.flags.writeable = False


def decode(
    codes: npt.ArrayLike,
    value: str | ValueFormat,
    *,
    table: Table | npt.ArrayLike | None = None,
    codec: Codec | str = CANONICAL_CODEC,
) -> F32:
    """The exact numbers of codes, in binary32; a NaN code gives 7FC00000. Rules VAL-1 to VAL-5, VAL-12, VAL-13.

    `codes` is uint8 of any shape, one code a byte; with a table the code is an index into it. Returns f32 of that shape.
    Raises DtypeError for other dtypes, EncodingError for a byte that is not its own extension.

    >>> decode(np.uint8([0x01, 0x7E, 0xFE]), "e4m3").tolist()
    [0.001953125, 448.0, -448.0]
    """
    row = value_format(value)
    codec = Codec.of(codec)
    entries = None if table is None else table_for(table, row)
    require_codec(codec, row, lookup=entries is not None)
    checked = check_codes(codes, row, lookup=entries is not None)
    return read_by(decode_codes(checked, row, entries), codec)


def decode_codes(codes: Codes, value: ValueFormat, table: Table | None = None) -> F32:
    """`decode` of codes already checked."""
    numbers = DECODED[value.name] if table is None else table.entries
    decoded = np.take(numbers, codes)
    note("QNT-11", lambda: is_nan(to_bits(decoded)))
    if table is not None:
        note("SCH-4")
    else:
        note("VAL-1" if value.is_integer else "VAL-2")
        note("VAL-12")
        note("VAL-3", lambda: (to_bits(decoded) & MAGNITUDE) >= INF)
        note("VAL-13", lambda: np.asarray(value.is_integer & (decoded < value.lowest)))
    return decoded
