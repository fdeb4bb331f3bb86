"""Dequantize, fast: straight from words, decoded eight at a time by a program that knows the formats. Rules QNT-9 to QNT-11."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyopencl as cl

from quantspec import NF4, SCALES, VALUES, ScaleType, Scheme, Table, ValueFormat

from .formats import ABSENT, FLOATING, FLOATS, INTEGER, POWER
from .geometry import Lines, Shape, lines_of
from .host import DeviceArray, Machine
from .launches import GROUP, Launch, Walk, rows, tiles
from .paths import FAST_FROM, Path, generic
from .program import Program, register
from .scales import decoded_scale
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["Field", "Plan", "exponents", "normal_range", "plan", "programs", "run", "scale_facts", "value_facts"]

FILES = ("prelude.cl", "lanes.cl", "decode_fast.cl", "dequantize_fast.cl")
LOOKUP, NONE = 3, 4  #: as in decode_fast.cl
CPU_EIGHTS, GPU_EIGHTS = 4, 1  #: eights of elements that a work-item of `dequantize_rows` takes
CPU_TALL, GPU_TALL = 64, 1  #: work-items of a group of `dequantize_tiles` that read on in the same columns
LINE = 64  #: bytes of a row that a work-item of `dequantize_tiles` writes
PIECE = 32  #: bits of a column that a work-item of `dequantize_tiles` takes


@dataclass(frozen=True, slots=True)
class Field:
    """How a code lies in memory: what a program has to know of a store."""

    width: int  #: bits
    fields: int  #: that a piece of 32 bits holds
    dense: bool  #: no bit of a word is without a code

    @classmethod
    def of(cls, lines: Lines | None) -> "Field":
        """Of a store's lines, or of codes, a byte each."""
        if lines is None:
            return cls(8, PIECE // 8, True)
        dense = lines.fields * lines.width == 8 * lines.word_size
        return cls(lines.width, PIECE // lines.width if dense else lines.fields, dense)

    def eights(self, wanted: int) -> int:
        """Eights of elements that a work-item takes: as many words as it takes must hold them."""
        return wanted if GROUP % self.fields == 0 or self.dense else self.fields

    def stride(self, lines: Lines | None, walk: Walk, *, tiled: bool) -> int:
        """From one row's words (one column's, where tiled) to the next's: bytes, or words where these are not dense."""
        if lines is None:
            return walk.length
        words = lines.words if tiled or lines.padding else walk.length // lines.fields
        return words * lines.word_size if self.dense else words


@dataclass(frozen=True, slots=True)
class Plan:
    """How to dequantize a tensor fast."""

    program: Program
    launches: tuple[Launch, ...]
    grid: Shape  #: of what is outside the innermost axes
    path: Path
    out: np.dtype[Any]


def plan(machine: Machine, scheme: Scheme, shape: Shape, out: np.dtype[Any], *, words: bool) -> Plan | Path:
    """How to dequantize words (or codes, a byte each) fast; or the generic path, with what is in the way."""
    size, d = math.prod(shape), scheme.store.d if words else 0
    if machine.choice == "generic":
        return generic("path='generic'")
    if machine.choice == "auto" and size < FAST_FROM:
        return generic(f"{size} elements, fewer than {FAST_FROM}")
    if size == 0:
        return generic("no elements")
    if d > 1:
        return generic(f"packed axis {d}, neither the innermost nor the one before it")
    tiled, lines = d == 1, lines_of(scheme, shape) if words else None
    walk = Walk.of(scheme, shape, tiled=tiled, joined=lines is None or lines.padding == 0)
    if not walk.fits:
        walk = Walk.of(scheme, shape, tiled=tiled, joined=False)
    if not walk.fits:
        return generic(f"block extent {walk.extent} of the innermost axis is no multiple of {GROUP}, nor 1")
    field = Field.of(lines)
    eights, tall = (CPU_EIGHTS, CPU_TALL) if machine.info.kind == "cpu" else (GPU_EIGHTS, GPU_TALL)
    eights = field.eights(eights)
    lanes = _lanes(machine, walk, eights, tiled=tiled)
    vectors = eights * GROUP // lanes
    numbers = (*walk.numbers(field.stride(lines, walk, tiled=tiled)), *normal_range(scheme.value, scheme.table))
    launches = (
        tiles(walk, LINE // out.itemsize, field.fields, numbers, tall) if tiled else rows(walk, lanes, vectors, numbers)
    )
    each = walk.each and scheme.block is not None
    path = Path(launches[0].kernel, f"{walk.length} elements a row, blocks of {walk.extent}, {lanes} at once")
    return Plan(_program(scheme, field, FLOATS[out], lanes, vectors, each=each), launches, walk.grid, path, out)


def _lanes(machine: Machine, walk: Walk, eights: int, *, tiled: bool) -> int:
    """Elements of a vector: as many as suit the device, where blocks, rows and a work-item consist of such vectors."""
    wide = machine.info.lanes
    fits = walk.holds(wide) and (tiled or (walk.whole(wide) and eights * GROUP % wide == 0))
    return wide if fits else GROUP


def _program(scheme: Scheme, field: Field, out: ScaleType, lanes: int, vectors: int, *, each: bool) -> Program:
    """The program that is told the facts of the formats, and no name of one."""
    facts = value_facts(scheme.value, scheme.table) | scale_facts(scheme)
    facts |= {"WIDTH": field.width, "FIELDS": field.fields, "EACH": int(each)}
    facts |= {"LANES": lanes, "VECTORS": vectors}
    facts |= {"OUT_SIZE": out.size, "OUT_BIAS": out.bias, "EXACT": int(_digits(scheme) <= out.mantissa_bits + 1)}
    return Program(FILES, tuple(f"-D{name}={number}{'u' if number >> 31 else ''}" for name, number in facts.items()))


@register
def programs() -> Iterator[Program]:
    """Programs in which every fact of a format, a store, a scale type and an output occurs, though not all of them together."""
    types, outs = list(SCALES), list(FLOATS.values())
    for i, (value, store) in enumerate(product(VALUES, ("native", "packed_native_0", "packed_u32_0"))):
        scheme = Scheme.parse(f"{value}.{store}.b32-{types[i % len(types)]}")
        for table in (None, NF4) if VALUES[value].is_integer and VALUES[value].bits == 4 else (None,):
            chosen = scheme if table is None else Scheme.parse(f"{value}.{store}.lut-nf4.b32-{types[i % len(types)]}")
            field = Field.of(lines_of(chosen, (64,)))
            yield _program(chosen, field, outs[i % len(outs)], 8, field.eights(CPU_EIGHTS), each=False)
            yield _program(chosen, field, outs[(i + 1) % len(outs)], 8, field.eights(GPU_EIGHTS), each=True)
            if field.eights(CPU_EIGHTS) == CPU_EIGHTS:
                yield _program(chosen, field, outs[i % len(outs)], 16, CPU_EIGHTS // 2, each=bool(i % 2))
    for name, tensor, each in product(types, ("", ".t-f32"), (False, True)):
        scheme = Scheme.parse(f"e2m1.packed_native_0.b16-{name}{tensor}")
        yield _program(scheme, Field.of(lines_of(scheme, (64,))), outs[0], 8, CPU_EIGHTS, each=each)
    tensor_only = Scheme.parse("q8s.native.t-f32")
    yield _program(tensor_only, Field.of(None), outs[0], 8, CPU_EIGHTS, each=False)


def exponents(value: ValueFormat, table: Table | None) -> tuple[int, int] | None:
    """Of the smallest and the largest finite non-zero value; None where one is subnormal in binary32."""
    if table is not None:
        fields = [bits >> 23 & 255 for bits in table.bits if bits & 0x7FFFFFFF]
        return (min(fields) - 127, max(fields) - 127) if min(fields) else None
    if value.is_integer:
        return 0, value.bits - 1
    smallest = 1 - value.bias - value.mantissa_bits
    return smallest, (value.largest_code >> value.mantissa_bits) - value.bias


def normal_range(value: ValueFormat, table: Table | None) -> tuple[int, int]:
    """The exponent fields of a scale with which no product of a finite non-zero value leaves the normal numbers, or overflows."""
    found = exponents(value, table)
    if found is None:
        return 255, 255  # never
    smallest, largest = found
    lowest, highest = max(1 - smallest, 1), min(252 - largest, 254)
    return (lowest, highest) if lowest <= highest else (255, 255)


def _digits(scheme: Scheme) -> int:
    """Bits that a product's significand needs at most, before it is rounded."""
    value, block = scheme.value, scheme.block
    scales = [scale for scale in (None if block is None else block.scale, scheme.tensor) if scale is not None]
    wide = 24 if scheme.table is not None else value.bits - 1 if value.is_integer else value.mantissa_bits + 1
    return wide + sum(scale.mantissa_bits + 1 for scale in scales if scale.has_zero)


def value_facts(value: ValueFormat, table: Table | None) -> dict[str, int]:
    facts = {
        "VALUE_KIND": LOOKUP if table is not None else INTEGER if value.is_integer else FLOATING,
        "BITS": value.bits,
    }
    if not value.is_integer:
        facts |= {"MANTISSA": value.mantissa_bits, "BIAS": value.bias}
        facts |= {"INFINITY_CODE": _absent(value.infinity_code), "FIRST_NAN": _absent(value.first_nan_code)}
    return facts


def scale_facts(scheme: Scheme) -> dict[str, int]:
    facts = {"TENSOR": int(scheme.tensor is not None)}
    if scheme.block is None:
        return facts | {"SCALE_KIND": NONE}
    row = scheme.block.scale
    facts |= {"SCALE_KIND": FLOATING if row.has_zero else POWER, "SCALE_SIZE": row.size}
    facts |= {"SCALE_MANTISSA": row.mantissa_bits, "SCALE_BIAS": row.bias, "SCALE_NAN": row.first_nan_code}
    return facts | {"SCALE_INFINITY": _absent(row.infinity_code), "SCALE_MAGNITUDE": row.magnitude_mask}


def _absent(code: int | None) -> int:
    return ABSENT if code is None else code


def run(
    machine: Machine,
    planned: Plan,
    words: DeviceArray,
    levels: DeviceQuantized | DevicePacked,
    into: DeviceArray | None = None,
) -> DeviceArray:
    """Numbers of words (or codes) with the scales of a tensor."""
    scheme = levels.scheme
    unused = machine.formats
    tensor: DeviceArray | cl.Buffer = unused
    if levels.tensor_scale_code is not None and scheme.tensor is not None:
        tensor = decoded_scale(machine, levels.tensor_scale_code, scheme.tensor)
    y = machine.empty(levels.shape, planned.out, into)
    arrays = (words, levels.scale_codes or unused, tensor, machine.constant(planned.grid))
    table = machine.lookup(scheme.table).buffer
    for each in planned.launches:
        machine.run(planned.program, each.kernel, each.sizes, *arrays, table, y, *each.numbers, local=each.local)
    return y.written_by(planned.path)
