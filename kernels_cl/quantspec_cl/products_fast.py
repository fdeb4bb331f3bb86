"""Products, fast: weights decoded eight columns at a time, in programs that know the formats. Rules PRD-3 to PRD-8."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl

from quantspec import SCALES, VALUES, ScaleType, Scheme

from .dequantize_fast import exponents, normal_range, scale_facts, value_facts
from .formats import FLOATS, INDEX, POWER
from .geometry import Shape
from .host import DeviceArray, Machine
from .inputs import Numbers
from .matrix import Matrix
from .paths import FAST_FROM, Path, generic
from .program import Program, register
from .scales import decoded_scale
from .trust import trust

__all__ = ["Plan", "plan", "run"]

FILES = (
    "prelude.cl",
    "steps.cl",
    "matrix.cl",
    "fma.cl",
    "lanes.cl",
    "decode_fast.cl",
    "weights_fast.cl",
    "products_fast.cl",
)
RUN = 32  #: indices, PRD-4
GROUP = 8  #: columns of a vector
WIDTHS = (2, 4, 8)  #: bits of a field
ROWS = (1, 2, 4, 8)  #: of x, at once
GPU_LOCAL = 64
CACHE_LINE = 64  #: bytes
ITEMS = 16  #: work-items there should be at least
TO_SUMS, TO_NUMBERS = 1, 2  #: as in products_fast.cl


@dataclass(frozen=True, slots=True)
class Cut:
    """How a matrix is dealt out: what a program has to know of it."""

    width: int
    along: bool
    rows: int  #: of x at once
    vectors: int  #: eights of columns at once
    each: bool  #: every column has a scale of its own
    steps: int  #: indices of a run under one scale
    span: int = 1  #: pieces of so many columns that a work-item takes

    @property
    def facts(self) -> dict[str, int]:
        """As definitions."""
        named = {"WIDTH": self.width, "ALONG": int(self.along), "ROWS": self.rows, "VECTORS": self.vectors}
        named |= {"EACH": int(self.each), "STEPS": self.steps, "SPAN": self.span}
        return named | {"SCALES": self.vectors if self.each else 1}


@dataclass(frozen=True, slots=True)
class Plan:
    """How to multiply by a matrix fast."""

    program: Program
    cut: Cut
    numbers: Shape  #: of the main kernel, after the arrays
    out: np.dtype[Any]
    path: Path


def plan(machine: Machine, w: Matrix, rows: int, out: np.dtype[Any]) -> Plan | Path:
    """How to multiply `rows` rows by a matrix fast; or the generic path, with what is in the way."""
    size, columns = w.shape
    if machine.choice == "generic":
        return generic("path='generic'")
    if machine.choice == "auto" and size * columns < FAST_FROM:
        return generic(f"{size * columns} weights, fewer than {FAST_FROM}")
    if 0 in (rows, size, columns):
        return generic("no elements, or a sum of none")
    down, across = _extents(w)
    refused = _unfit(w, down, across)
    if refused is not None:
        return generic(refused)
    known = trust(machine)
    if not (known.fma and known.sums and known.products):
        return generic(f"fma, sums and products are not all correctly rounded here: {known.reason}")
    each = across == 1 < columns
    at_once = next((count for count in ROWS if count >= rows), ROWS[-1])
    vectors = _vectors(w, at_once, across, each=each)
    span = 1 if w.along else _span(w, vectors)
    cut = Cut(w.width, w.along, at_once, vectors, each, min(down, RUN), span)
    numbers = (size, columns, w.a_line * w.word_size, down, across, -(-columns // across), *_limits(w.scheme))
    path = Path("product_columns", f"{cut.rows} rows at once, a scale each {cut.steps} indices; fma: {known.reason}")
    return Plan(_program(w.scheme, cut, FLOATS[out]), cut, numbers, out, path)


def _extents(w: Matrix) -> tuple[int, int]:
    """Extents of a block down and across, no larger than the matrix."""
    down, across = w.shape if w.scheme.block is None else w.scheme.extents(2)
    return min(down, w.shape[0]), min(across, w.shape[1])


def _unfit(w: Matrix, down: int, across: int) -> str | None:
    """What of a matrix no specialised program takes."""
    size, columns = w.shape
    if size % RUN or size >= 1 << 31:
        return f"K={size} is no multiple of {RUN}, or is beyond 2^31"
    if w.width not in WIDTHS or w.fields * w.width != 8 * w.word_size:
        return f"fields of {w.width} bits, {w.fields} a word of {w.word_size} bytes"
    if columns % GROUP:
        return f"N={columns} is no multiple of {GROUP}"
    if down % RUN and RUN % down and down != size:
        return f"block extent {down} along K, no multiple of {RUN} and no part of it"
    if across % GROUP and across not in (1, columns):
        return f"block extent {across} along N, no multiple of {GROUP}, nor 1"
    if exponents(w.scheme.value, w.scheme.table) is None:
        return "a table with a subnormal entry"
    return None


def _vectors(w: Matrix, rows: int, across: int, *, each: bool) -> int:
    """Eights of columns at once: so many that sums stay in registers, and that they share their scales where any do."""
    wanted = max(2 // rows, 1) if w.along else min(max(8 // rows, 1), 4)
    while not each and across != w.shape[1] and across % (GROUP * wanted):
        wanted //= 2
    return wanted


def _span(w: Matrix, vectors: int) -> int:
    """Pieces of a row that a work-item takes: a cache line, unless there are too few of those."""
    span = max(8 * CACHE_LINE // (w.width * GROUP * vectors), 1)
    while span > 1 and w.shape[1] < ITEMS * GROUP * vectors * span:
        span //= 2
    return span


def _limits(scheme: Scheme) -> tuple[int, int, int, int, int]:
    """Of exponent fields: the scales' least and largest, the least and the largest sum of a scale's and x's, x's least."""
    found = exponents(scheme.value, scheme.table)
    if found is None:
        raise AssertionError("a table with a subnormal entry")
    smallest, largest = found
    lowest, highest = normal_range(scheme.value, scheme.table)
    # the lowest bit of x, of a weight: 150 below their fields; of their product and all sums, at least 2^-126
    return lowest, highest, 174 - smallest, 346 - largest, max(24 - min(smallest, 0), 1)


def _program(scheme: Scheme, cut: Cut, out: ScaleType) -> Program:
    """The program that is told the facts of the formats, and no name of one."""
    facts = value_facts(scheme.value, scheme.table) | scale_facts(scheme) | cut.facts
    pulled = 0
    if facts["SCALE_KIND"] == POWER and not facts["TENSOR"]:
        pulled = TO_SUMS if cut.steps == RUN else 0 if cut.each or cut.rows > cut.vectors else TO_NUMBERS
    facts |= {"PULLED": pulled, "OUT_SIZE": out.size, "OUT_BIAS": out.bias}
    return Program(FILES, tuple(f"-D{name}={number}{'u' if number >> 31 else ''}" for name, number in facts.items()))


@register
def _programs() -> Iterator[Program]:
    """Programs in which every fact of a format, a scale type, an output and a cut occurs, though not all of them together."""
    outs, types = list(FLOATS.values()), list(SCALES)
    values = [value for value, row in VALUES.items() if row.bits in WIDTHS]
    for i, value in enumerate(values):
        for along in (True, False):
            scheme = Scheme.parse(f"{value}.native.b32-{types[i % len(types)]}")
            width = VALUES[value].bits if along or i % 2 else 8
            yield _program(scheme, Cut(width, along, ROWS[i % 4], 2, along, 32), outs[i % len(outs)])
    for i, scale in enumerate(types):
        for tensor in ("", ".t-f32"):
            scheme = Scheme.parse(f"e2m1.native.b16-{scale}{tensor}")
            yield _program(scheme, Cut(4, True, 1, 2, True, 16), outs[i % len(outs)])
            yield _program(scheme, Cut(4, False, 4, 2, False, 1), outs[i % len(outs)])
    yield _program(Scheme.parse("q8s.native.t-f32"), Cut(8, False, 1, 8, False, 32), outs[0])
    yield _program(Scheme.parse("q4s.native.lut-nf4.b32-f16"), Cut(4, True, 2, 2, True, 32), outs[0])


def run(machine: Machine, planned: Plan, x: Numbers, w: Matrix, rows: int) -> DeviceArray:
    """Numbers times a matrix."""
    (size, columns), cut = w.shape, planned.cut
    tiles = -(-rows // cut.rows)
    ordered = machine.empty((tiles * size * cut.rows,), np.uint32)
    ranges = machine.empty((tiles * (size // RUN),), np.uint32)
    local = (machine.local_size,)
    prepared = (machine.formats, x.row, x.array, ordered, ranges, rows, size, ranges.size)
    machine.run(planned.program, "product_rows", machine.items(ranges.size), *prepared, local=local)
    y = machine.empty((rows, columns), planned.out)
    table, entries, _ = machine.lookup(w.scheme.table).arguments
    unused = machine.formats
    tensor: DeviceArray | cl.Buffer = unused
    if w.tensor_scale_code is not None and w.scheme.tensor is not None:
        tensor = decoded_scale(machine, w.tensor_scale_code, w.scheme.tensor)
    block = 0 if w.scheme.block is None else INDEX[w.scheme.block.scale.name]
    head = (machine.formats, INDEX[w.scheme.value.name], block, entries, table, ordered, ranges)
    arrays = (w.words, machine.constant(w.lines), w.scale_codes or unused, tensor, y)
    wide = 1 if machine.info.kind == "cpu" else min(GPU_LOCAL, machine.local_size)
    across = math.ceil(columns / (GROUP * cut.vectors * cut.span * wide)) * wide
    machine.run(
        planned.program, "product_columns", (across, tiles), *head, *arrays, rows, *planned.numbers, local=(wide, 1)
    )
    return y.written_by(planned.path)
