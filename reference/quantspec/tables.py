"""Lookup tables: the f32 entries that an index stands for, their name, and the exact thresholds between them.

Rules SCH-9 to SCH-12, SCH-16, QNT-7, QNT-8. The source of `nf4` is bitsandbytes' published list of 16 numbers.
"""

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from .errors import DtypeError, SchemeError
from .rounding import F32, INF, MAGNITUDE, Bits, is_nan, order_key, to_bits, to_float, widen
from .tracing import note, rule

__all__ = ["NF4", "TABLES", "Table", "encode_lookup"]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A lookup table: an immutable copy of its f32 entries. Equal when the patterns of the entries are."""

    bits: tuple[int, ...]  #: binary32 pattern of each entry
    entries: F32 = field(repr=False)  #: the same as numbers, read-only
    thresholds: npt.NDArray[np.int32] = field(repr=False)  #: order keys of the largest f32 that maps to each entry
    indices: npt.NDArray[np.uint8] = field(repr=False)  #: lowest index of each distinct entry, ascending

    @classmethod
    @rule("SCH-10", "SCH-11", "SCH-12")
    def of(cls, table: "Table | npt.ArrayLike", *, bits: int | None = None) -> "Table":
        """A table of f32 entries (f16 and bf16 widen exactly), all finite, not all zero. Rules SCH-10, SCH-11, SCH-12.

        With `bits`, the length is checked too, in its place among the rules.
        """
        if isinstance(table, Table):
            _require_length(len(table.bits), bits)
            return table
        try:
            patterns = widen(table, argument="table")
        except DtypeError as error:
            raise SchemeError("SCH-10", error.message) from None
        if patterns.ndim != 1 or not 1 <= patterns.size <= 256:
            raise SchemeError("SCH-11", f"table has shape {patterns.shape}; allowed: one axis of 2^bits entries")
        _require_length(patterns.size, bits)
        magnitudes = patterns & MAGNITUDE
        if (magnitudes >= INF).any():
            index = int(np.argmax(magnitudes >= INF))
            raise SchemeError("SCH-12", f"table[{index}] is 0x{int(patterns[index]):08X}, not a finite number")
        if not magnitudes.any():
            raise SchemeError("SCH-12", "table holds only zeros; at least one entry must differ from 0")
        entries = to_float(patterns.copy())  # ours: the caller may change his array
        thresholds, indices = _thresholds(patterns)
        for array in (entries, thresholds, indices):
            array.flags.writeable = False
        return cls(tuple(int(b) for b in patterns), entries, thresholds, indices)

    @property
    def half_range(self) -> Fraction:
        """H: the largest magnitude of an entry. Rule SCL-4."""
        return Fraction(max(abs(_units(bits)) for bits in self.bits), 2**149)

    @property
    @rule("SCH-16")
    def name(self) -> str:
        """The registered name, else the first 12 hex digits of the SHA-256 of the little-endian entries. Rule SCH-16."""
        for name, table in TABLES.items():
            if table == self:
                return name
        return hashlib.sha256(to_bits(self.entries).astype("<u4").tobytes()).hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)


def _require_length(count: int, bits: int | None) -> None:
    if bits is not None and count != 1 << bits:
        raise SchemeError("SCH-11", f"table has {count} entries; a field of {bits} bits needs exactly {1 << bits}")


def _thresholds(patterns: Bits) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Order keys of the largest f32 that maps to each distinct entry but the last, and each one's lowest index."""
    _, indices = np.unique(order_key(patterns), return_index=True)
    units = [_units(int(patterns[index])) for index in indices]
    found = []
    for low, high in zip(range(len(units)), range(1, len(units)), strict=False):
        midpoint = units[low] + units[high]  # in halves of a unit
        below = _largest_not_above(midpoint)
        tie_goes_up = 2 * _units(_pattern(below)) == midpoint and indices[high] < indices[low]
        found.append(below - 1 if tie_goes_up else below)
    return np.array(found, np.int32), indices.astype(np.uint8)


def _units(pattern: int) -> int:
    """A finite binary32 number as a whole number of units of 2^-149."""
    exponent, fraction = (pattern >> 23) & 0xFF, pattern & 0x7FFFFF
    magnitude = (fraction | 0x800000) << (exponent - 1) if exponent else fraction
    return -magnitude if pattern >> 31 else magnitude


def _pattern(key: int) -> int:
    """The pattern of the binary32 number with this order key."""
    return key if key >= 0 else -key | 0x80000000


def _largest_not_above(halves: int) -> int:
    """Order key of the largest binary32 not above a number of half units; below zero that rounds the magnitude up."""
    magnitude = abs(halves)
    dropped = max(magnitude.bit_length() - 24, 1)
    kept = magnitude >> dropped
    if halves < 0 and kept << dropped != magnitude:
        kept += 1
    key = kept + ((dropped - 1) << 23)
    return key if halves >= 0 else -key


NF4 = Table.of(
    to_float(
        np.array(
            [
                0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
                0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000,
            ],
            np.uint32,
        )
    )
)  # fmt: skip

#: Registered tables by name: a scheme's text names these, and only by name.
TABLES = {"nf4": NF4}


def encode_lookup(bits: Bits, table: Table) -> npt.NDArray[np.uint8]:
    """The lowest index whose entry is nearest, in exact arithmetic; NaN the entry nearest 0. Rules QNT-7, QNT-8.

    The thresholds are exact: the k-th is the largest binary32 that maps to the k-th distinct entry.
    """
    invalid = is_nan(bits)
    note("SCH-4")
    note("QNT-7", lambda: (bits & MAGNITUDE) < INF)
    note("QNT-8", lambda: (bits & MAGNITUDE) >= INF)
    key = order_key(np.where(invalid, np.uint32(0), bits))
    return table.indices[np.searchsorted(table.thresholds, key, side="left")]
