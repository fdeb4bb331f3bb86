"""A number as a user types it, as a binary32 pattern: decimal, hexadecimal, bits, or a special by name."""

import re
from fractions import Fraction

import numpy as np

from .errors import UsageError

__all__ = ["bits_of", "fraction_of"]

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEX_FLOAT = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+", re.ASCII)
_SPECIALS = {"nan": 0x7FC00000, "-nan": 0xFFC00000, "inf": 0x7F800000, "-inf": 0xFF800000}
FORMS = "0.3, 0x1.8p1, 0x3FC00000 (8 digits: the bits of an f32), nan, -inf, code:0x7 or c7 (a code), a .npy or .safetensors file"


def bits_of(text: str) -> tuple[int, str]:
    """The binary32 pattern of a text, and a remark where the number was rounded to one."""
    lowered = text.lower()
    if lowered in _SPECIALS:
        return _SPECIALS[lowered], ""
    if re.fullmatch(r"0[xX][0-9a-fA-F]{8}", text):
        return int(text, 16), ""
    if _HEX_FLOAT.fullmatch(text):
        return _rounded(text, Fraction(_exact_hex(text)), text.startswith("-"))
    if _DECIMAL.fullmatch(text) and len(text) <= 400:
        exponent = re.search(r"[eE]([+-]?\d+)$", text)
        if exponent is not None and abs(int(exponent[1])) > 400:
            raise UsageError(f"{text!r}: the exponent is beyond any binary32 number")
        return _rounded(text, Fraction(text), text.startswith("-"))
    hint = "; did you mean code:" + text.removeprefix("0x") if re.fullmatch(r"0[xX][0-9a-fA-F]{1,2}", text) else ""
    raise UsageError(f"{text!r} is no value, code or file{hint}; allowed: {FORMS}")


def _exact_hex(text: str) -> Fraction:
    mantissa, _, exponent = text.lower().lstrip("+-").removeprefix("0x").partition("p")
    if abs(int(exponent)) > 2000 or len(mantissa) > 100:
        raise UsageError(f"{text!r}: the exponent is beyond any binary32 number")
    whole, _, fraction = mantissa.partition(".")
    return Fraction(int(whole + fraction or "0", 16)) * Fraction(2) ** (int(exponent) - 4 * len(fraction))


def _rounded(text: str, exact: Fraction, negative: bool) -> tuple[int, str]:
    """The nearest binary32 pattern, ties to even, by exact comparison of the two neighbours."""
    magnitude = abs(exact)
    low, high = 0, 0x7F7FFFFF
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fraction_of(middle) <= magnitude else (low, middle - 1)
    limit = Fraction(2) ** 128
    upper = fraction_of(low + 1) if low < 0x7F7FFFFF else limit
    below, above = magnitude - fraction_of(low), upper - magnitude
    chosen = low + (above < below or (above == below and low % 2 == 1)) if magnitude < limit else 0x7F800000
    exact_already = chosen < 0x7F800000 and fraction_of(chosen) == magnitude
    remark = "" if exact_already else f"{text} is no binary32 number: rounded to the nearest"
    return chosen | (0x80000000 if negative else 0), remark


def fraction_of(pattern: int) -> Fraction:
    """The exact number of a finite pattern."""
    return Fraction(float(np.array([pattern], np.uint32).view(np.float32)[0]))
