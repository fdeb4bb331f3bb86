"""Bit patterns as text: hexadecimal, fields S|E|M, the exact number."""

from decimal import Decimal
from fractions import Fraction

import numpy as np

import quantspec
from quantspec import SCALES, ScaleType, Scheme
from quantspec.values import extend

__all__ = [
    "binary32",
    "decimal",
    "exact",
    "fields",
    "hex_float",
    "hexadecimal",
    "number",
    "output_pattern",
    "scale_code",
    "value_code",
    "value_fields",
]


def hexadecimal(code: int, bits: int) -> str:
    """`0x` and as many upper-case digits as the bits take."""
    return f"0x{code:0{-(-bits // 4)}X}"


def fields(code: int, *, sign: int, exponent: int, mantissa: int) -> str:
    """The fields S|E|M in binary, those of no bits left out."""
    text = f"{code:0{sign + exponent + mantissa}b}"
    cuts = (text[:sign], text[sign : sign + exponent], text[sign + exponent :])
    return "|".join(cut for cut in cuts if cut)


def number(bits: int) -> str:
    """The number of a binary32 pattern: shortest decimal that reads back, exact in hexadecimal where that is longer."""
    value = float(np.array([bits], np.uint32).view(np.float32)[0])
    if value != value:
        return "NaN" if bits == 0x7FC00000 else f"NaN (sign {bits >> 31}, payload 0x{bits & 0x7FFFFF:06X})"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    short = f"{'-' if bits >> 31 else '+'}{np.format_float_positional(abs(np.float32(value)), trim='-')}"
    if len(short) > 18:
        short = f"{np.float32(value):+.9g}"
    return short if Decimal(short) == Decimal(value) else f"{short} ({hex_float(value)})"


def decimal(bits: int) -> str:
    """The number of a binary32 pattern in decimals alone, for where its bits stand beside it."""
    text, _, rest = number(bits).partition(" (")
    return text if "0x1" in rest and "payload" not in rest else number(bits)


def exact(value: Fraction | float) -> str:
    """A number exactly: in decimals where they are few, else rounded, and exactly in hexadecimal."""
    decimal = format(Decimal(float(value)), "f")
    return decimal if len(decimal) <= 24 else f"{float(value):.9g} ({hex_float(float(value))})"


def hex_float(value: float) -> str:
    """A number in hexadecimal, as C and Rust write it, without trailing zeros."""
    mantissa, p, exponent = value.hex().partition("p")
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}{p}{exponent}"


def binary32(bits: int) -> str:
    """A binary32 pattern with its fields and number."""
    return f"0x{bits:08X}  {fields(bits, sign=1, exponent=8, mantissa=23)}  {number(bits)}"


def _number_of(code: int, scale: ScaleType) -> str:
    decoded = quantspec.decode_scale(np.array([code], scale.code_dtype), scale)
    return number(int(decoded.view(np.uint32)[0]))


def scale_code(code: int, scale: ScaleType) -> str:
    """A scale code with its fields and number; a code that is not legal says so."""
    shown = hexadecimal(code, 8 * scale.size)
    if code & ~(scale.magnitude_mask | scale.sign_bit):
        return f"{shown}  not a code of {scale.name}"
    sign = int(scale.signed)
    exponent = scale.bits - sign - scale.mantissa_bits
    cut = fields(code, sign=sign, exponent=exponent, mantissa=scale.mantissa_bits)
    return f"{shown}  {cut}  {_number_of(code, scale)}"


def output_pattern(bits: int, dtype: str) -> str:
    """A pattern of an output in f32, f16 or bf16."""
    row = SCALES[dtype]
    exponent = row.bits - 1 - row.mantissa_bits
    cut = fields(bits, sign=1, exponent=exponent, mantissa=row.mantissa_bits)
    if bits & row.magnitude_mask >= row.first_nan_code:
        shown = "NaN" if bits == row.nan_code else "NaN, not the canonical one"
    else:
        shown = _number_of(bits, row)
    return f"{hexadecimal(bits, row.bits)}  {cut}  {shown}"


def value_fields(code: int, scheme: Scheme) -> str:
    """The fields of a code: S|E|M of a minifloat, the two's complement field, or the index."""
    row = scheme.value
    field = code & row.mask
    if row.is_integer:
        return f"{field:0{row.bits}b}"
    return fields(field, sign=1, exponent=row.exponent_bits, mantissa=row.mantissa_bits)


def value_code(code: int, scheme: Scheme) -> str:
    """A code byte with its fields and number; a byte that is not its own extension says so."""
    row = scheme.value
    field = np.array([code & row.mask], np.uint8)
    extended = extend(field, row, lookup=scheme.is_lookup)
    if int(extended[0]) != code:
        return f"0x{code:02X}  not a code of {row.name}"
    decoded = quantspec.decode(extended, row, table=scheme.table)
    return f"0x{code:02X}  {value_fields(code, scheme)}  {number(int(decoded.view(np.uint32)[0]))}"
