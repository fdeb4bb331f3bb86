"""Every scheme there is: all value formats, stores, modes, levels and scale types, on one small tensor of three axes."""

from collections.abc import Iterator
from itertools import product

import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_quantized
from .data import numbers

pytestmark = pytest.mark.opencl

STORES = ("native", *(f"{kind}_{d}" for kind in ("packed_native", "packed_u32") for d in range(3)))
TYPES = tuple(qs.SCALES)
LEVELS = [*((None, t) for t in TYPES), *((b, None) for b in TYPES), *product(TYPES, TYPES)]
EXTENTS = ((), (4,), (2, 3), (3, 1, 2), (2147483647,))


def schemes(value: str) -> Iterator[qs.Scheme]:
    """All schemes of a value format; block extents and modes take turns, so that each meets every level and store."""
    row = qs.VALUES[value]
    table = qs.Table.of([(i * 37 % 101 - 50) / 8 for i in range(1 << row.bits)]) if row.is_integer else None
    for turn, (store, (block, tensor)) in enumerate(product(STORES, LEVELS)):
        shaped = None if block is None else (EXTENTS[turn % len(EXTENTS)], block)
        yield qs.Scheme(value, store, block=shaped, tensor=tensor)
        if table is not None:
            yield qs.Scheme(value, store, mode="lookup", table=table, block=shaped, tensor=tensor)


@pytest.mark.parametrize("value", list(qs.VALUES))
def test_every_scheme(session: qc.Session, value: str) -> None:
    x = numbers(31, (3, 4, 7))
    for scheme in schemes(value):
        expected, found = qs.quantize(x, scheme), session.quantize(x, scheme)
        same_quantized(found, expected, f"quantize {scheme.text}")
        data = session.to_bytes(found)
        assert data.get().tobytes() == qs.to_bytes(expected), f"to_bytes {scheme.text}"
        same_bits(session.split(data, scheme, x.shape).codes, expected.codes, f"split {scheme.text}")
        same_bits(session.dequantize(found), qs.dequantize(expected), f"dequantize {scheme.text}")
