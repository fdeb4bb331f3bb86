"""Tables that lookup cases use: the registered one, and awkward ones with duplicates, two zeros, no order."""

import numpy as np

from quantspec import NF4, Table

__all__ = ["AWKWARD", "by_bits"]


def _table(*patterns: int) -> Table:
    return Table.of(np.array(patterns, np.uint32).view(np.float32))


def _wide() -> Table:
    """256 entries: no order, each magnitude of 3 of 4 entries also with the other sign, subnormals and equal entries among them."""
    n = np.arange(256, dtype=np.uint64)
    patterns = ((n * np.uint64(0x9E3779B1) + np.uint64(0x3C6EF372)) % np.uint64(1 << 32)).astype(np.uint32)
    magnitude = np.uint32(0x3C000000) + (patterns & np.uint32(0x03FFFFFF))
    magnitude = np.where(n % np.uint64(64) == 5, np.uint32(0x00000003), magnitude)
    magnitude = np.where(n % np.uint64(32) == 7, magnitude[(n.astype(int) // 2)], magnitude)
    sign = np.where(n % np.uint64(3) == 1, np.uint32(0x80000000), np.uint32(0))
    return Table.of((magnitude.astype(np.uint32) | sign).view(np.float32))


#: Name of a table in ids -> the table. `odd`: no order, equal entries, both zeros, subnormals; `steps`: ties of both directions.
AWKWARD: dict[str, Table] = {
    "nf4": NF4,
    "odd": _table(
        0x3F800000, 0x80000000, 0xBF800000, 0x00000000, 0x3F000000, 0x3F800000, 0xC0400000, 0x3F800001,
        0x00000001, 0xBF000000, 0x40E00000, 0x3EAAAAAB, 0x80000001, 0x3EAAAAAB, 0xBF7FFFFF, 0x40A00000,
    ),
    "steps": _table(
        0x40E00000, 0x40C00000, 0x40A00000, 0x40800000, 0x40400000, 0x40000000, 0x3F800000, 0x00000000,
        0xBF800000, 0xC0000000, 0xC0400000, 0xC0800000, 0xC0A00000, 0xC0C00000, 0xC0E00000, 0xC1000000,
    ),
    "pair": _table(0x3F800000, 0xBF800000, 0x80000000, 0x3F800000),
    "wide": _wide(),
}  # fmt: skip


def by_bits(bits: int) -> dict[str, Table]:
    """The tables that a field of so many bits may index."""
    return {name: table for name, table in AWKWARD.items() if len(table.bits) == 1 << bits}
