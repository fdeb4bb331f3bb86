"""Simpler numbers: fewer mantissa bits, an exponent near 0, no sign; codes with fewer bits; scales of 1."""

import numpy as np

from quantspec import SCALES, ScaleType

from ..families import legal_codes
from ..protocol.messages import Request
from .crop import GRIDS, Patterns, patterns_of, tensor_of
from .frame import MAIN, input_scheme
from .probe import Search
from .side import failing, room

__all__ = ["simpler_codes", "simpler_floats", "simplify_scales", "simplify_values"]

#: Entries that are made simpler one by one, and simpler patterns of each that are tried.
MOST_ENTRIES, MOST_PATTERNS = 8, 96
Cost = tuple[int, int, int]


def _cost(pattern: int, row: ScaleType) -> Cost:
    """How far a pattern is from a plain one: mantissa bits in use, distance of the exponent from 0, sign."""
    magnitude, sign = pattern & row.magnitude_mask, int(bool(pattern & row.sign_bit))
    if magnitude == 0 and row.has_zero:
        return 0, 0, sign
    if magnitude >= row.first_nan_code:
        return 90, abs(magnitude - row.nan_code), sign
    if magnitude == row.infinity_code:
        return 80, 0, sign
    mantissa = magnitude & ((1 << row.mantissa_bits) - 1)
    in_use = row.mantissa_bits - (mantissa & -mantissa).bit_length() + 1 if mantissa else 0
    return in_use, abs((magnitude >> row.mantissa_bits) - row.bias), sign


def simpler_floats(pattern: int, row: ScaleType) -> list[int]:
    """Patterns of a float type that are plainer than this one, the plainest first."""
    magnitude, sign = pattern & row.magnitude_mask, pattern & row.sign_bit
    found = {1 << row.mantissa_bits | 0, row.bias << row.mantissa_bits}
    if magnitude >= row.first_nan_code:
        found = {row.nan_code}
    else:
        for keep in range(row.mantissa_bits + 1):
            drop = row.mantissa_bits - keep
            for near in (magnitude >> drop << drop, (magnitude >> drop) + 1 << drop):
                found |= {near, near & ((1 << row.mantissa_bits) - 1) | row.bias << row.mantissa_bits}
    limit = row.nan_code if magnitude >= row.first_nan_code else row.largest_code
    kept = {each | s for each in found if 0 < each <= limit for s in (0, sign)}
    plainer = [each for each in kept if _cost(each, row) < _cost(pattern, row)]
    return sorted(plainer, key=lambda each: (_cost(each, row), each))[:MOST_PATTERNS]


def simpler_codes(pattern: int, legal: Patterns) -> list[int]:
    """Legal codes that are plainer: fewer bits set, then the smaller."""
    cost = (pattern.bit_count(), pattern)
    found = [int(code) for code in legal if code and (int(code).bit_count(), int(code)) < cost]
    return sorted(found, key=lambda code: (code.bit_count(), code))[:MOST_PATTERNS]


def _plainer(search: Search, pattern: int) -> list[int]:
    """Plainer patterns of an entry of the main tensor."""
    main, scheme, name = search.main, input_scheme(search.case), MAIN[search.case.op]
    if main is None:
        return []
    if main.dtype in ("f32", "f16", "bf16"):
        return simpler_floats(pattern, SCALES[main.dtype])
    if name == "scale_codes" and scheme is not None and scheme.block is not None:
        return simpler_floats(pattern, scheme.block.scale)
    if name == "codes" and scheme is not None:
        return simpler_codes(pattern, legal_codes(scheme))
    bits = [pattern & ~(1 << place) for place in range(pattern.bit_length()) if pattern >> place & 1]
    return sorted({each for each in bits if each}, key=lambda each: (each.bit_count(), each))[:MOST_PATTERNS]


def simplify_values(search: Search) -> None:
    """Plainer entries, one after the other, as long as one can be made plainer."""
    _shift(search)
    for _ in range(2):
        main = search.main
        if main is None:
            return
        places = np.flatnonzero(patterns_of(main)).tolist()[:MOST_ENTRIES]
        taken = [search.left > 0 and _simplify_entry(search, place) for place in places]
        if not any(taken):
            return


def _shift(search: Search) -> None:
    """All numbers times one power of two, so that the largest is at least 1 and below 2."""
    main = search.main
    if main is None or main.dtype not in ("f32", "f16", "bf16"):
        return
    row, patterns = SCALES[main.dtype], patterns_of(main)
    exponents = (patterns & patterns.dtype.type(row.magnitude_mask)).astype(np.int64) >> row.mantissa_bits
    top = (row.largest_code >> row.mantissa_bits) + 1
    finite = (exponents > 0) & (exponents < top)
    if not finite.any():
        return
    by = row.bias - int(exponents[finite].max())
    if by == 0 or int(exponents[finite].min()) + by < 1:
        return
    moved = np.where(finite, patterns.astype(np.int64) + (by << row.mantissa_bits), patterns).astype(patterns.dtype)
    search.attempt(search.with_main(moved))


def _simplify_entry(search: Search, place: int) -> bool:
    main = search.main
    if main is None:
        return False
    patterns = patterns_of(main)
    mains = []
    for plainer in _plainer(search, int(patterns.reshape(-1)[place])):
        changed = patterns.copy().reshape(-1)
        changed[place] = plainer
        mains.append(changed.reshape(patterns.shape))
    fit = room(search)
    hints = failing(search, mains[:fit]) if fit > 1 and len(mains) > 1 else []
    numbers = hints[:3] or (range(min(3, len(mains))) if fit <= 1 or len(mains) == 1 else [])
    return any(search.attempt(search.with_main(mains[number])) for number in numbers)


def simplify_scales(search: Search) -> None:
    """Given scales of 1, else without mantissa."""
    scheme = input_scheme(search.case)
    for name in (
        (*GRIDS, "tensor_scale", "tensor_scale_code") if scheme is not None and "scheme" in search.case.words else ()
    ):
        tensor = search.case.inputs.get(name)
        if scheme is None or tensor is None or not tensor.patterns:
            continue
        level = scheme.tensor if name.startswith("tensor") else None if scheme.block is None else scheme.block.scale
        row = SCALES.get(tensor.dtype, level)
        if row is None:
            continue
        patterns = patterns_of(tensor)
        one = np.full_like(patterns, row.bias << row.mantissa_bits)
        power = patterns >> row.mantissa_bits << row.mantissa_bits
        for simpler in (one, power):
            inputs = {**search.case.inputs, name: tensor_of(tensor.dtype, simpler)}
            if search.attempt(Request(search.case.op, search.case.words, inputs)):
                break
