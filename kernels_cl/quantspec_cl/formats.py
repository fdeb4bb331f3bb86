"""Formats: quantspec's tables as rows in device memory. No row is named here; a row added there is a row here."""

import struct
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from quantspec import SCALES, VALUES, ScaleType, ValueFormat

__all__ = ["ABSENT", "FLOATS", "INDEX", "binary32", "float_type", "format_rows"]

ABSENT = 0xFFFFFFFF
INTEGER, FLOATING, POWER = 0, 1, 2

#: The layout of `Format` in prelude.cl.
ROW = np.dtype(
    [(name, np.uint32) for name in ("kind", "size", "mask", "sign_bit", "magnitude", "mantissa")]
    + [("bias", np.int32)]
    + [(name, np.uint32) for name in ("largest", "infinity", "first_nan", "nan")]
    + [("lowest", np.int32), ("highest", np.int32)]
    + [(name, np.uint32) for name in ("top", "spare0", "spare1")]
)

#: Where each format's row is: value formats, then scale types.
INDEX = {name: index for index, name in enumerate([*VALUES, *SCALES])}


def _array_dtype(scale: ScaleType) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, scale.ml_dtype, scale.ml_dtype))


#: The types that numbers enter and leave in, by dtype: the signed scale types. QNT-1, QNT-10
FLOATS: dict[np.dtype[Any], ScaleType] = {_array_dtype(row): row for row in SCALES.values() if row.signed}


def float_type(name: str) -> np.dtype[Any] | None:
    """The dtype of an output type by its name."""
    return next((dtype for dtype, row in FLOATS.items() if row.name == name), None)


def binary32(number: Any) -> int:
    """The pattern of a table's number, which binary32 holds exactly."""
    pattern: int
    (pattern,) = struct.unpack("<I", struct.pack("<f", float(number)))
    return pattern


def format_rows() -> npt.NDArray[Any]:
    """All rows, in the order of INDEX."""
    return np.array([*map(_value_row, VALUES.values()), *map(_scale_row, SCALES.values())], ROW)


def _absent(code: int | None) -> int:
    return ABSENT if code is None else code


def _value_row(row: ValueFormat) -> tuple[int, ...]:
    return (
        INTEGER if row.is_integer else FLOATING,
        1,
        row.mask,
        row.sign_bit,
        row.sign_bit - 1,
        0 if row.is_integer else row.mantissa_bits,
        row.bias,
        row.largest_code,
        _absent(row.infinity_code),
        _absent(row.first_nan_code),
        _absent(row.nan_code),
        row.lowest,
        row.highest,
        0,
        0,
        0,
    )


def _scale_row(row: ScaleType) -> tuple[int, ...]:
    return (
        FLOATING if row.has_zero else POWER,
        row.size,
        row.magnitude_mask | row.sign_bit,
        row.sign_bit,
        row.magnitude_mask,
        row.mantissa_bits,
        row.bias,
        row.largest_code,
        _absent(row.infinity_code),
        row.first_nan_code,
        row.nan_code,
        0,
        0,
        binary32(row.block_top),
        0,
        0,
    )
