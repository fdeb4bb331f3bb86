"""encode and decode of every value format: classes, every code, every midpoint between adjacent codes, thresholds, refusals."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from quantspec import VALUES, Table, ValueFormat
from quantspec.rounding import order_key
from quantspec.values import DECODED, extend

from ...examples import Tensor
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    accepted,
    bits32,
    changed,
    codes_of,
    f32,
    positives,
    typed,
    with_refusals,
)
from .lookups import by_bits

__all__ = ["NANS", "beside", "finite_numbers", "illegal_bytes", "legal_codes", "plans", "specials"]

Bits = npt.NDArray[np.uint32]
SIGN = np.uint32(0x80000000)
#: Quiet and signalling, smallest, largest and odd payloads, both signs.
NANS = (0x7FC00000, 0x7F800001, 0x7FFFFFFF, 0x7FC12345, 0x7FA00000, 0xFFC00000, 0xFF800001, 0xFFFFFFFF, 0xFFABCDEF)
_ENDS = (0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000)

#: Refusals that depend on no format stand once, under one minifloat and one integer format.
MINIFLOAT, INTEGER = "e2m1", "q4s"


def both_signs(magnitudes: npt.ArrayLike) -> Bits:
    """Each magnitude, then its negative."""
    patterns = np.asarray(magnitudes, np.uint32).reshape(-1)
    return np.stack([patterns, patterns | SIGN], 1).reshape(-1)


def beside(patterns: npt.ArrayLike, reach: int = 1) -> Bits:
    """Each number with its neighbours in order, below and above; what would be no finite number stays out."""
    keys = np.asarray(order_key(np.asarray(patterns, np.uint32)), np.int64)[:, None] + np.arange(-reach, reach + 1)
    keys = keys[np.abs(keys) < 0x7F800000]
    found: Bits = np.where(keys < 0, np.abs(keys).astype(np.uint32) | SIGN, np.abs(keys).astype(np.uint32))
    return found


def specials() -> Bits:
    """Zeros, subnormals, the ends of binary32, infinities and NaN of every kind."""
    return np.concatenate([both_signs(_ENDS), np.array(NANS, np.uint32)])


def legal_codes(row: ValueFormat, table: Table | None = None) -> npt.NDArray[np.uint8]:
    """Every legal code byte, by its field."""
    return extend(np.arange(1 << row.bits, dtype=np.uint16), row, lookup=table is not None)


def illegal_bytes(row: ValueFormat, table: Table | None = None) -> list[int]:
    """Bytes that are not their own extension: codes at the ends of the fields with one bit above turned round."""
    legal = set(legal_codes(row, table).tolist())
    fields = extend(np.array([0, 1, row.sign_bit - 1, row.sign_bit, row.mask], np.uint8), row, lookup=table is not None)
    found = {int(code) ^ (1 << bit) for code in fields for bit in {row.bits, 7} if row.bits < 8}
    return sorted(found - legal)


def evenly(count: int, most: int) -> npt.NDArray[np.int64]:
    """Places among so many, both ends with them, at most `most`, as far apart as whole numbers allow."""
    chosen = min(count, most)
    return np.arange(chosen, dtype=np.int64) * (count - 1) // max(chosen - 1, 1)


def finite_numbers(row: ValueFormat) -> Bits:
    """Patterns of the distinct finite numbers that encode can give, ascending; one zero."""
    numbers = DECODED[row.name][legal_codes(row)]
    numbers = np.unique(numbers[np.isfinite(numbers)])
    return bits32(numbers[numbers >= row.lowest] if row.is_integer else numbers)


def midpoints(row: ValueFormat) -> Bits:
    """The exact middle of each two adjacent numbers."""
    numbers = finite_numbers(row).view(np.float32).astype(np.float64)
    middle = (numbers[1:] + numbers[:-1]) / 2
    return bits32(middle)


def overflow(row: ValueFormat) -> Bits:
    """The ends of the range, the middle between them and the next step beyond, that step, and their neighbours; then far out."""
    numbers = finite_numbers(row).view(np.float32).astype(np.float64)
    high, low = float(numbers[-1]), float(numbers[0])
    step = float(numbers[-1] - numbers[-2])
    near = bits32(
        [v for end, sign in ((high, 1), (low, -1)) for v in (end, end + sign * step / 2, end + sign * step, 2 * end)]
    )
    return np.concatenate([beside(near, 2), both_signs([0x47800000, 0x7F000000, 0x7F7FFFFF, 0x7F800000])])


def plans(level: int) -> Iterator[Plan]:
    """The suites of encode and decode."""
    for row in VALUES.values():
        if level == 0:
            yield Plan(Place(row.name, "encode", "first", 0), partial(_encode_first, row))
            yield Plan(Place(row.name, "decode", "first", 0), partial(_decode_first, row))
        elif level == 1:
            yield positives(Place(row.name, "encode", "boundary", 1), partial(_boundary, row))
            yield Plan(Place(row.name, "decode", "codes", 1), partial(_decode_codes, row))
            if row.is_integer:
                yield positives(Place(row.name, "encode", "lookup", 1), partial(_lookup, row))


def _ask(row: ValueFormat, slug: str, title: str, name: str, tensor: Tensor, *bugs: str, **more: str | Tensor) -> Ask:
    words = {"value": row.name, **{key: entry for key, entry in more.items() if isinstance(entry, str)}}
    given = {name: tensor, **{key: entry for key, entry in more.items() if isinstance(entry, Tensor)}}
    return Ask(slug=slug, title=title, words=words, tensors=given, bugs=bugs)


def _encode_first(row: ValueFormat, place: Place) -> Iterator[Case]:
    numbers = finite_numbers(row)
    few = numbers[evenly(len(numbers), 12)]
    ties = midpoints(row)[evenly(len(numbers) - 1, 8)]
    half = typed("f16", [0x3C00, 0xBE00, 0x0001, 0x7BFF, 0x8000, 0x7C00, 0xFE00])
    brain = typed("bf16", [0x3F80, 0xBFC0, 0x0001, 0x7F7F, 0x8000, 0x7F80, 0xFFC0])
    yield from accepted(
        place,
        [
            _ask(row, "numbers", "Numbers of the format give their own codes", "x", f32(few)),
            _ask(row, "ties", "Half way between two codes", "x", f32(ties), "tie"),
            _ask(row, "beyond", "At and beyond the ends of the range", "x", f32(overflow(row)[::3]), "sat-vs-inf"),
            _ask(
                row, "zeros-nan-inf", "Zeros, subnormals, infinities, NaN", "x", f32(specials()), "nan-code", "neg-zero"
            ),
            _ask(row, "f16", "binary16 input", "x", half, "dtype"),
            _ask(row, "bf16", "bfloat16 input", "x", brain, "dtype"),
        ],
    )
    good = _ask(row, "accepted", "A request that is accepted", "x", f32(bits32([1, -1])))
    yield from with_refusals(place, good, _encode_refused(row, good))


def _encode_refused(row: ValueFormat, good: Ask) -> Iterator[Ask]:
    yield changed(good, "input-f64", "binary64 is no input", "dtype", x=typed("f64", [0x3FF0000000000000, 0]))
    yield changed(good, "input-i32", "An integer is no input", "dtype", x=typed("i32", [1, 2]))
    if row.name == MINIFLOAT:
        yield changed(good, "value-unknown", "No such value format", value="e4m4")
        yield changed(good, "codec-unknown", "No such codec", codec="half-up")
    if not row.is_integer:
        yield changed(good, "table", "A minifloat is no index", "lookup", table=f32([0x3F800000] * (1 << row.bits)))
        return
    entries = [0x3F800000] * (1 << row.bits)
    yield changed(good, "table-short", "A table that lacks an entry", "lookup", table=f32(entries[1:]))
    if row.name == INTEGER:
        wide = typed("f64", [0x3FF0000000000000] * 16)
        yield changed(good, "table-f64", "A table of binary64", "lookup", "dtype", table=wide)
        yield changed(good, "table-inf", "An infinity in the table", "lookup", table=f32([*entries[1:], 0x7F800000]))
        yield changed(good, "table-nan", "A NaN in the table", "lookup", table=f32([0x7FC00000, *entries[1:]]))
        yield changed(good, "table-zeros", "Only zeros in the table", "lookup", table=f32([0, 0x80000000] * 8))
        yield changed(good, "table-axes", "A table of two axes", "lookup", table=f32(entries, (4, 4)))


def _decode_first(row: ValueFormat, place: Place) -> Iterator[Case]:
    codes = legal_codes(row)
    few = codes if row.bits < 8 else np.concatenate([codes[:10], codes[0x38:0x3C], codes[0x78:0x84], codes[0xF8:]])
    yield from accepted(
        place, [_ask(row, "classes", "Codes of every class", "codes", codes_of(few), "nan-code", "extension")]
    )
    good = _ask(row, "accepted", "Codes that are accepted", "codes", codes_of(codes[[0, 1, 0, 1]], (2, 2)))
    bad = [changed(good, "codes-u16", "Codes are bytes", "dtype", codes=typed("u16", [0, 1, 0, 1], (2, 2)))]
    for byte in illegal_bytes(row)[:1]:
        bad.append(
            changed(
                good, f"byte-{byte:02x}", "A byte that is no code", "extension", codes=codes_of([0, 1, 0, byte], (2, 2))
            )
        )
    yield from with_refusals(place, good, bad)


def _boundary(row: ValueFormat) -> Iterator[Ask]:
    """Every threshold of the format, with what lies beside it."""
    numbers, middle = finite_numbers(row), midpoints(row)
    yield _ask(
        row, "codes", "The number of every code, and its neighbours", "x", f32(beside(numbers)), "off-by-one-bias"
    )
    yield _ask(
        row,
        "midpoints",
        "The middle of every two adjacent codes, and its neighbours",
        "x",
        f32(beside(middle)),
        "tie",
        "double-rounding",
    )
    yield _ask(row, "overflow", "The ends of the range and beyond", "x", f32(overflow(row)), "sat-vs-inf")
    yield _ask(
        row,
        "specials",
        "Zeros, subnormals, infinities, NaN of every kind",
        "x",
        f32(specials()),
        "nan-code",
        "neg-zero",
        "ftz",
    )
    exponents = both_signs(
        (np.arange(255, dtype=np.uint32)[:, None] << 23) | np.array([0, 1, 0x400000, 0x7FFFFF], np.uint32)
    )
    yield _ask(
        row, "exponents", "Every exponent of binary32", "x", f32(exponents), "subnormal", "off-by-one-bias", "ftz"
    )
    yield from _boundary_16(row, numbers, middle)


def _boundary_16(row: ValueFormat, numbers: Bits, middle: Bits) -> Iterator[Ask]:
    """16-bit inputs: their whole range, and the thresholds that they hold exactly."""
    for dtype, nans in (("f16", (0x7C00, 0x7C01, 0x7E00, 0x7FFF)), ("bf16", (0x7F80, 0x7F81, 0x7FC0, 0x7FFF))):
        spread = np.concatenate([np.arange(5, 1 << 16, 33), nans, np.array(nans) | 0x8000])
        yield _ask(
            row, f"{dtype}-spread", f"{dtype} patterns over their whole range", "x", typed(dtype, spread), "dtype"
        )
        exact = np.concatenate([_as16(numbers, dtype), _as16(middle, dtype)])
        yield _ask(
            row,
            f"{dtype}-thresholds",
            f"{dtype}: codes' numbers and middles that it holds",
            "x",
            typed(dtype, exact),
            "tie",
            "dtype",
        )


def _as16(patterns: Bits, dtype: str) -> npt.NDArray[np.uint16]:
    """Those of the numbers that a 16-bit type holds exactly, as its patterns, each with its neighbours."""
    if dtype == "bf16":
        found = (patterns[(patterns & 0xFFFF) == 0] >> 16).astype(np.uint16)
    else:
        with np.errstate(all="ignore"):
            narrow = patterns.view(np.float32).astype(np.float16)
            found = narrow[narrow.astype(np.float32) == patterns.view(np.float32)].view(np.uint16)
    magnitude = found & np.uint16(0x7FFF)
    below = found - (magnitude > 0).astype(np.uint16)
    return np.stack([below, found, found + np.uint16(1)], 1).reshape(-1)


def _lookup(row: ValueFormat) -> Iterator[Ask]:
    """The thresholds T_i of each table, its entries, the specials."""
    for name, table in by_bits(row.bits).items():
        entries = f32(np.array(table.bits))
        keys = np.abs(table.thresholds.astype(np.int64)).astype(np.uint32)
        edge = np.where(table.thresholds < 0, keys | SIGN, keys)
        for slug, title, x, bugs in (
            ("thresholds", "The last number of each entry, and its neighbours", beside(edge, 2), ("tie", "lookup")),
            ("entries", "Each entry, and its neighbours", beside(np.array(table.bits)), ("lookup",)),
            ("specials", "Zeros, subnormals, infinities, NaN", specials(), ("nan-code", "lookup")),
        ):
            yield _ask(row, f"{name}-{slug}", f"{title} (table {name})", "x", f32(x), *bugs, table=entries)


def _decode_codes(row: ValueFormat, place: Place) -> Iterator[Case]:
    """Every legal code; bytes that are none; indices of tables."""
    every = legal_codes(row)
    yield from accepted(
        place, [_ask(row, "every-code", "Every legal code", "codes", codes_of(every), "extension", "nan-code")]
    )
    good = _ask(row, "accepted", "Every legal code, three times", "codes", codes_of(np.tile(every, 3), (3, len(every))))
    yield from with_refusals(place, good, _refused_bytes(good, np.tile(every, 3), illegal_bytes(row), (3, len(every))))
    for name, table in by_bits(row.bits).items() if row.is_integer else ():
        index, entries = legal_codes(row, table), f32(np.array(table.bits))
        good = _ask(
            row,
            f"{name}-every-index",
            f"Every index of table {name}",
            "codes",
            codes_of(index),
            "lookup",
            table=entries,
        )
        yield from with_refusals(
            place, good, _refused_bytes(good, index, illegal_bytes(row, table), index.shape, f"{name}-")
        )


def _refused_bytes(
    good: Ask, codes: npt.NDArray[np.uint8], wrong: Iterable[int], shape: tuple[int, ...], prefix: str = ""
) -> Iterator[Ask]:
    """One illegal byte at a time: first, last, and in the middle in turn."""
    for number, byte in enumerate(wrong):
        spoiled = codes.copy()
        spoiled[(0, -1, codes.size // 2)[number % 3]] = byte
        yield changed(
            good, f"{prefix}byte-{byte:02x}", f"Byte {byte:02X} is no code", "extension", codes=codes_of(spoiled, shape)
        )
