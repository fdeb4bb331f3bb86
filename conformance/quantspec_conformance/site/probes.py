"""The fixed probes that each combination is run over, and the rules that fire meanwhile.

The reference runs inside `quantspec.trace()`. A rule is found where the reference cites it, or refuses an input by it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec as qs
from quantspec import VALUES, Quantized, QuantspecError, ScaleType, Scheme, SchemeError, Table
from quantspec.stores import STORES

from ..chain import spoil
from ..families import legal_codes
from ..matrix import MATRIX_TABLES
from ..spec import AREAS

__all__ = ["DEFINING", "Numeric", "rules_of_bytes", "rules_of_numbers"]

#: Areas whose rules define a combination: the scheme, its numbers and its bytes; not the operations on tensors after that.
DEFINING = AREAS[: AREAS.index("LAY") + 1]
Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Numeric:
    """What the numbers of a combination depend on: everything but the store."""

    value: str
    mode: str
    tensor: str | None
    block: str | None

    def scheme(self, store: str, extents: tuple[int, ...], table: Table | None) -> Scheme:
        """The scheme with this store, block extents (unused without a block level) and table (lookup only)."""
        block = None if self.block is None else (extents or (1,), self.block)
        return Scheme(self.value, store, mode=self.mode, tensor=self.tensor, block=block, table=table)


class _Run:
    """Runs actions inside one trace and keeps the rules: those cited, and those of the refusals."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def __call__(self, action: Callable[..., object], *args: Any, **options: Any) -> None:
        try:
            action(*args, **options)
        except QuantspecError as error:
            self.refused.add(error.rule)


def _observe(probe: Callable[..., None], *args: Any) -> frozenset[str]:
    """The rules of the defining areas that fire while the probe runs."""
    run = _Run()
    with np.errstate(all="ignore"), qs.trace() as trace:
        probe(run, *args)
    return frozenset(rule for rule in run.refused.union(trace.rules()) if rule[:3] in DEFINING)


def _table(part: Numeric) -> Table | None:
    """The table of a lookup probe: that of the matrix, or where the matrix has none (SCH-8) any of the right length."""
    if part.mode == "symmetric":
        return None
    bits = VALUES[part.value].bits
    return MATRIX_TABLES.get(bits) or Table.of(np.linspace(-1, 1, 1 << bits, dtype=np.float32))


@cache
def _wide_table(table: Table) -> Table:
    """The same entries times 64: H far above 1, so that a raw scale can be lost. Rule SCL-7."""
    return Table.of(table.entries * np.float32(64))


def rules_of_numbers(part: Numeric) -> tuple[frozenset[str], str | None]:
    """The rules of the scheme and of its numbers, or the rule by which the scheme is refused."""
    try:
        scheme = part.scheme("native", (8,), _table(part))
    except SchemeError as error:
        return frozenset(), error.rule
    return _observe(_scheme, part, scheme) | _observe(_scales, scheme) | _observe(_quantize, part, scheme), None


def rules_of_bytes(part: Numeric, store: str) -> frozenset[str]:
    """The rules of the words and bytes of a combination that is not refused."""
    return _observe(_bytes, part, store)


def _scheme(run: _Run, part: Numeric, scheme: Scheme) -> None:
    """Members in their other spellings, and each with one fault. Rules SCH-2 to SCH-17."""
    members: dict[str, Any] = {
        "value": scheme.value, "store": scheme.store, "mode": scheme.mode, "tensor": scheme.tensor,
        "block": scheme.block, "table": scheme.table,
    }  # fmt: skip
    faults: list[dict[str, Any]] = [{"value": "none"}, {"store": "none"}, {"mode": "none"}]
    faults += [{"table": table} for table in _other_tables(scheme)]
    if part.tensor is not None:
        faults.append({"tensor": "none"})
    if part.block is not None:
        faults += [{"block": ((8,), "none")}, {"block": ((0,), part.block)}, {"block": ((2,) * 6, part.block)}]
    for fault in faults:
        run(lambda fault: Scheme(**members | fault), fault)
    run(scheme.require_shape, ())
    texts = [scheme.text, scheme.text + ".", scheme.text.replace(".lut-", ".lut-none")]
    for text in texts:
        run(Scheme.parse, text, tables=MATRIX_TABLES.values())
    run(scheme.to_burn)
    run(Scheme.from_burn, {})


def _other_tables(scheme: Scheme) -> tuple[npt.ArrayLike | None, ...]:
    """What may not stand in the table member: a table where there is none; none, or a faulty one, where there is one."""
    if scheme.table is None:
        return (np.ones(scheme.value.mask + 1, np.float32),)
    entries = scheme.table.entries
    return None, entries.astype(np.float64), entries[1:], entries * np.float32(0)


def _levels(scheme: Scheme) -> Iterator[ScaleType]:
    if scheme.block is not None:
        yield scheme.block.scale
    if scheme.tensor is not None:
        yield scheme.tensor


def _special(row: ScaleType) -> Numbers:
    """Scale codes that behave each in their own way: zero or the smallest, 1, the largest, NaN, infinities, negatives."""
    one = row.bias << row.mantissa_bits
    codes = [0, row.nan_code, row.first_nan_code, one, 1, row.largest_code, one | row.sign_bit, row.sign_bit]
    codes += [] if row.infinity_code is None else [row.infinity_code, row.infinity_code | row.sign_bit]
    return np.array(codes, row.code_dtype)


def _scales(run: _Run, scheme: Scheme) -> None:
    """Scale codes of each level's type, both ways. Rules SCL-1 to SCL-3, SCL-15 to SCL-18."""
    numbers = np.array([0, 0.3, np.nan, np.inf], np.float32)
    for row in _levels(scheme):
        run(qs.decode_scale, _special(row), row)
        for rounding in ("up", "nearest"):
            run(qs.encode_scale, numbers, row, rounding)
        run(qs.encode_scale, np.array([-0.3], np.float32), row)
        run(qs.encode_scale, numbers.astype(np.float64), row)


_NAN, _INF, _MAX, _LEAST = np.nan, np.inf, 3.4028235e38, 1e-45
#: Inputs of `quantize` with chosen scales, in blocks of 8, the last one partial.
CHOSEN: tuple[Numbers, ...] = tuple(
    np.array(rows, np.float32)
    for rows in (
        # ordinary; NaN, infinities and -0 beside numbers; zeros; nothing finite; a partial block
        [0.5, -1, 6, 0.3, -448, 2, 1, 7] + [_NAN, -_NAN, _INF, -_INF, -0.0, 0, 3, -3] + [0.0] * 8 + [_NAN, _INF] * 4 + [1],
        [_MAX, -_MAX, _MAX / 2, 1, 0, 0, 0, 0] + [_LEAST] * 8 + [1e-40, 1e-38, 0],  # the ends of binary32 side by side
        [0.0] * 9,
        [_LEAST, 0, 0],
        [],
    )
)  # fmt: skip


def _quantize(run: _Run, part: Numeric, scheme: Scheme) -> None:
    """Scales chosen and given, all legal codes read. Rules SCL-4 to SCL-14, SCL-19 to SCL-24, BLK, QNT, VAL."""
    for x in CHOSEN:
        run(qs.quantize, x, scheme)
    run(qs.quantize, np.float32(1), part.scheme("native", (), scheme.table))
    run(qs.quantize, CHOSEN[0].astype(np.float64), scheme)
    if scheme.table is not None:
        run(qs.quantize, CHOSEN[3], part.scheme("native", (8,), _wide_table(scheme.table)))
    _given(run, scheme)
    codes = legal_codes(scheme)
    run(qs.decode, codes, scheme.value, table=scheme.table)
    if (~codes).size < 256:
        run(qs.decode, np.arange(256, dtype=np.uint8), scheme.value, table=scheme.table)
    held = _held(scheme, np.resize(codes, max(80, codes.size)))
    run(qs.dequantize, held)
    run(qs.dequantize, held, "f16")


def _held(scheme: Scheme, codes: Numbers) -> Quantized:
    """A quantized tensor of these codes, its scale codes special ones in turn (of the tensor level: 1)."""
    block = tensor = None
    if scheme.block is not None:
        grid = tuple(-(-n // e) for n, e in zip(codes.shape, scheme.extents(codes.ndim), strict=True))
        block = np.resize(_special(scheme.block.scale), grid)
    if scheme.tensor is not None:
        special = _special(scheme.tensor)
        tensor = special[3 if scheme.block is not None else 1]
    return Quantized(scheme, codes, block, tensor)


def _given(run: _Run, scheme: Scheme) -> None:
    """Scales given: 1 with ties and overflow, special codes, and what may not be given. Rules SCL-19 to SCL-23."""
    finite = qs.decode(legal_codes(scheme), scheme.value, table=scheme.table)
    steps = np.unique(finite[np.isfinite(finite)])
    x = np.append((steps[1:] + steps[:-1]) / 2, np.array([1e30, -_INF, _NAN], np.float32)).astype(np.float32)
    x = np.resize(x, max(80, x.size))
    grid = -(-x.size // 8)
    levels: list[tuple[str, str, ScaleType, tuple[int, ...]]] = []
    if scheme.block is not None:
        levels.append(("scales", "scale_codes", scheme.block.scale, (grid,)))
    if scheme.tensor is not None:
        levels.append(("tensor_scale", "tensor_scale_code", scheme.tensor, ()))
    run(qs.quantize, x, scheme, **{name: np.ones(shape, np.float32) for name, _, _, shape in levels})
    for turn in range(2):
        codes = {code: np.resize(np.roll(_special(row), -turn), shape) for _, code, row, shape in levels}
        run(qs.quantize, x, scheme, **codes)
    one = np.ones((), np.float32)
    twice = {name: one for name, _, _, _ in levels[:1]} | {code: one for _, code, _, _ in levels[:1]}
    wrong: tuple[dict[str, Numbers], ...] = (
        twice,
        {"scales": one}, {"tensor_scale": one}, {"tensor_scale": -one}, {"scale_codes": np.zeros(grid, np.int64)},
        {"tensor_scale_code": np.zeros((), np.int64)},
    )  # fmt: skip
    for given in wrong:
        run(qs.quantize, x, scheme, **given)


def _bytes(run: _Run, part: Numeric, store: str) -> None:
    """Codes to bytes and back: packed along two axes, a scalar, an empty tensor; and what may not be read. PAK, LAY."""
    stores = [f"{store}_{d}" for d in (0, 1)] if STORES[store].packed else [store]
    table = _table(part)
    tensors: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = [(text, (2, 2), (3, 5)) for text in stores]
    tensors += [(stores[0], (), ()), (stores[0], (2,), (0,))]
    for text, extents, shape in tensors:
        scheme = part.scheme(text, extents, table)
        run(scheme.require_shape, (1,))
        data = qs.to_bytes(_held(scheme, np.resize(legal_codes(scheme), shape)))
        run(qs.split, data, scheme, shape)
        if shape == ():
            _misread(run, data, scheme, shape)


def _misread(run: _Run, data: bytes, scheme: Scheme, shape: tuple[int, ...]) -> None:
    """A byte stream read with its padding ignored, and with one fault. Rules PAK-7, PAK-8, VAL-5, SCL-2, LAY-4."""
    run(qs.from_bytes, data, scheme, shape, padding="ignore")
    no_code = 0xFF ^ scheme.value.mask | scheme.value.sign_bit ^ 0x80
    faults = {
        data[:-1],
        spoil(data, scheme, shape),
        data[:-1] + bytes([data[-1] | 0x80]),  # bit 7 of the last scale
        bytes([no_code]) + data[1:],
    }
    for faulty in faults - {data}:
        run(qs.split, faulty, scheme, shape)
