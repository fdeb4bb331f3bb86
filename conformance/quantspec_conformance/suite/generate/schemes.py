"""The schemes that cases use: a first few by hand, and rows in which every pair of members meets with shapes and data."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any

from quantspec import SCALES, STORES, TABLES, VALUES, Scheme

from ...examples import Tensor
from ...families import FAMILIES
from ...named import NAMED
from .common import Ask, scheme_request, slug_of
from .cover import Cover, cover
from .lookups import AWKWARD, by_bits

__all__ = ["FIRST", "ask", "by_value", "combinations", "covered", "first_schemes", "readable", "rows_for", "scheme_of"]

#: Named formats, and what they leave out: b1, both packed axes, two levels over other types, extents of several axes.
FIRST = (
    *NAMED,
    "q2f.packed_native_1.b1-bf16",
    "q8f.packed_u32_1.b3-f32.t-f16",
    "q4f.packed_u32_1.b2x3-ue4m3.t-bf16",
    "q2s.native.lut.t-ue4m3",
    "e2m1.packed_u32_1.b2x16-ue8m0.t-ue8m0",
    "e5m2.packed_native_1.b5-f16.t-ue4m3",
    "e3m2.packed_u32_0.b7-bf16.t-f32",
    "e2m3.packed_u32_1.t-ue8m0",
)
#: Operations for which the law takes a table beside the scheme's text; elsewhere only a registered name says which one is meant.
READS_TABLES = (
    "quantize",
    "dequantize",
    "pack",
    "to_bytes",
    "unpack",
    "split",
    "scheme",
    "size",
    "chain",
    "product",
    "repack",
)
_FACTORS: dict[str, tuple[Any, ...]] = {
    "family": tuple(FAMILIES),
    "value": tuple(VALUES),
    "shape": (
        (3, 70), (37,), (2, 3, 35), (33, 5), (2, 37, 3), (2, 3, 5, 19), (259,), (34, 3, 5), (2, 35, 2, 3), (1, 1, 1, 1), (1,), (),
    ),
    "extents": ((16,), (), (2,), (2, 3), (32,), (3,), (5, 16), (2, 1), (2, 3, 4), (300,), (2, 2, 2, 2), None),
    "store": tuple(f"{kind}_{d}" if row.packed else kind for kind, row in STORES.items() for d in range(3 if row.packed else 1)),
    "block": (*SCALES, None),
    "tensor": (None, *SCALES),
    "table": (None, *AWKWARD),
}  # fmt: skip


def _fits(name: str, level: Any, other: str, level2: Any) -> bool:
    """Whether two members may meet: rules SCH-5, SCH-8, SCH-11, SCH-13, SCH-14."""
    pair = {name: level, other: level2}
    if pair.keys() == {"block", "tensor"}:
        return pair["block"] is not None or pair["tensor"] is not None
    if pair.keys() == {"block", "extents"}:
        return (pair["block"] is None) == (pair["extents"] is None)
    if pair.keys() == {"extents", "shape"}:
        return pair["extents"] is None or len(pair["extents"]) <= len(pair["shape"])
    if pair.keys() == {"extents", "tensor"}:
        return pair["extents"] is not None or pair["tensor"] is not None
    if pair.keys() == {"store", "shape"}:
        d = pair["store"].rpartition("_")[2]
        return int(d if d.isdecimal() else 0) < max(len(pair["shape"]), 1)
    if pair.keys() == {"value", "table"}:
        row = VALUES[pair["value"]]
        return pair["table"] is None or (row.is_integer and pair["table"] in by_bits(row.bits))
    return True


@cache
def combinations(strength: int = 2, *, named: bool = False) -> Cover:
    """Rows in which every pair, or every three, of the members, shapes and data families meet; `named`: with named tables only."""
    factors = {**_FACTORS, "table": (None, *TABLES)} if named else _FACTORS
    return cover(factors, _fits, strength=strength)


def covered(strength: int = 2, **factors: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    """Rows in which the members of a scheme meet with factors of another kind; a factor of a known name takes its place."""
    own = {name: levels for name, levels in _FACTORS.items() if name != "family"}
    return cover({**own, **factors}, _fits, strength=strength).rows


def rows_for(op: str, strength: int = 2) -> tuple[dict[str, Any], ...]:
    """The rows of an operation, with the tables that the law takes there."""
    return combinations(strength, named=op not in READS_TABLES).rows


def scheme_of(row: dict[str, Any]) -> Scheme:
    """The scheme of a row."""
    table = None if row["table"] is None else AWKWARD[row["table"]]
    block = None if row["block"] is None else (row["extents"], row["block"])
    mode = "symmetric" if table is None else "lookup"
    return Scheme(row["value"], row["store"], mode=mode, tensor=row["tensor"], block=block, table=table)


def first_schemes() -> list[Scheme]:
    """The schemes of level 0; a bare `lut` stands for the 2-bit table."""
    pair = AWKWARD["pair"]
    return [Scheme.parse(text.replace(".lut.", f".lut-{pair.name}."), tables=[pair]) for text in FIRST]


def readable(scheme: Scheme, op: str) -> bool:
    """Whether the law takes the scheme's table in the request of an operation."""
    return scheme.table is None or scheme.table.name in TABLES or op in READS_TABLES


def ask(
    scheme: Scheme, slug: str, title: str, tensors: dict[str, Tensor], *bugs: str, part: str = "", **words: str
) -> Ask:
    """A request under a scheme; its id holds the scheme."""
    given, table = scheme_request(scheme)
    return Ask(
        slug=slug,
        title=f"{scheme.text}: {title}",
        words={**given, **words},
        tensors={**tensors, **table},
        bugs=tuple(dict.fromkeys(bugs)),
        part=part or slug_of(scheme.text),
    )


def by_value(schemes: Iterable[Scheme]) -> Iterator[tuple[str, list[Scheme]]]:
    """Schemes by the name of their value, in the order of the table."""
    order = list(VALUES)
    for name, group in groupby(sorted(schemes, key=lambda s: order.index(s.value.name)), key=lambda s: s.value.name):
        yield name, list(group)
