"""Numbers, codes and tables as text for the pages."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from .. import patterns

__all__ = [
    "Fact", "as_float32", "binary32", "code_name", "decimal", "exactly", "hexadecimal_float", "shortest", "table",
]  # fmt: skip

LONGEST = 20
#: A name, the value, the rules.
Fact = tuple[str, str, str]


def decimal(value: Fraction | float) -> str:
    """A number in decimals where they are few and exact, else rounded with `≈`; the sign of zero is shown."""
    number = float(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else f"{'-' if number < 0 else '+'}Inf"
    text = format(Decimal(number), "f")
    return text if len(text) <= LONGEST else f"≈ {number:.9g}"


def exactly(value: Fraction | float) -> str:
    """A finite number exactly: in decimals where they are few, else in hexadecimal."""
    text = decimal(value)
    return hexadecimal_float(value) if text.startswith("≈") else text


def shortest(value: np.float32) -> str:
    """The shortest decimal that reads back as this binary32 number."""
    if not np.isfinite(value):
        return decimal(float(value))
    if value and not 1e-6 <= abs(value) < 1e9:
        return np.format_float_scientific(value, trim="-")
    return np.format_float_positional(value, trim="-")


def hexadecimal_float(value: Fraction | float) -> str:
    """A finite number exactly, in hexadecimal; nothing for the others."""
    return f"`{patterns.hex_float(float(value))}`" if np.isfinite(float(value)) else ""


def as_float32(value: Fraction) -> np.float32 | None:
    """A number as binary32, None where it is not one."""
    if abs(value) > Fraction(2) ** 128 - Fraction(2) ** 104:
        return None
    found = np.float32(float(value))
    return found if Fraction(float(found)) == value else None


def binary32(value: np.float32) -> int:
    """The pattern of a binary32 number."""
    return int(np.asarray(value, np.float32).view(np.uint32))


def code_name(code: int, digits: int = 2) -> str:
    """A code in hexadecimal, as the rules write it."""
    return f"`{code:0{digits}X}`"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; bars in cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
