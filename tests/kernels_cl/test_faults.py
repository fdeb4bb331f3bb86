"""Planted faults: kernels that break one rule each, and for each the check that must notice it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.opening import open_machine
from quantspec_cl.program import SOURCES, source_of

from .agreement import same_bits, same_quantized, same_storage
from .conftest import opened
from .data import SPECIAL, f32, floats, midpoints, neighbours, numbers, patterns

pytestmark = pytest.mark.opencl


def encodes(session: qc.Session) -> None:
    for value in qs.VALUES:
        x = floats(np.concatenate([neighbours(patterns(midpoints(value))), SPECIAL]))
        same_bits(session.encode(x, value), qs.encode(x, value), value)
    same_bits(
        session.encode(floats(SPECIAL), "q4s", table=qs.NF4), qs.encode(floats(SPECIAL), "q4s", table=qs.NF4), "nf4"
    )


def chooses_scales(session: qc.Session) -> None:
    long = np.arange(9000, dtype=np.float32)  # the largest comes last, in the last part of a long block
    ends = (f32(3, 1, 0x80000002, 0), f32(0x7F7FFFFF, 0xFF000000, 0x7F800000, 1), f32(0x7FC00000))
    for text in (
        "q2s.native.b1-f16",
        "q8s.native.b1-f32",
        "q2s.native.t-f32",
        "q2s.native.b4-f32.t-f32",
        "e2m1.native.b2-ue4m3.t-bf16",
    ):
        for x in (numbers(1, (4096,)), long, *ends):
            same_quantized(session.quantize(x, text), qs.quantize(x, text), text)


def divides_and_multiplies(session: qc.Session) -> None:
    for scale in np.array([0.0123, 0, -0.0, 1e-42, 3e38, np.nan], np.float32):
        for text in ("e4m3.native.t-f32", "e5m2.native.t-f32"):
            found = session.quantize(floats(SPECIAL), text, tensor_scale=scale)
            expected = qs.quantize(floats(SPECIAL), text, tensor_scale=scale)
            same_quantized(found, expected, text)
            for dtype in ("f32", "f16", "bf16"):
                same_bits(session.dequantize(found, dtype), qs.dequantize(expected, dtype), f"{text} {dtype}")


def stores(session: qc.Session) -> None:
    for text in ("q4f.packed_native_1.b3x16-ue8m0", "e2m3.packed_u32_0.b2x3-f16"):
        expected = qs.quantize(numbers(3, (5, 71)), text)
        same_storage(session, session.put(expected), expected)


CHECKS: tuple[Callable[[qc.Session], None], ...] = (encodes, chooses_scales, divides_and_multiplies, stores)


@dataclass(frozen=True)
class Fault:
    """A rule broken by exchanging one piece of the kernels' text, or by build options, and the check that must see it."""

    name: str
    check: Callable[[qc.Session], None]
    right: str = ""
    wrong: str = ""
    options: tuple[str, ...] = ()


FAULTS = (
    Fault("VAL-7 ties go up", encodes, options=("-DTIE(q)=1u",)),
    Fault("VAL-7 ties go down", encodes, options=("-DTIE(q)=0u",)),
    Fault("SCL-7 a lost scale stays lost", chooses_scales, options=("-DLOST=0u",)),
    Fault("SCL-10 raw is not limited", chooses_scales, options=("-DLARGEST_RAW=0x7F800000u",)),
    Fault("SCL-11 no floor of the tensor scale", chooses_scales, options=("-DSMALLEST_TENSOR=1u",)),
    Fault("SCL-8 nearest, not up", chooses_scales, "round_scale(scale, f, 1)", "round_scale(scale, f, 0)"),
    Fault("SCL-5 infinities count", chooses_scales, "magnitude < INF ? magnitude : 0u", "magnitude"),
    Fault("SCL-5 a block's end is left out", chooses_scales, "chunk, volume);", "chunk, volume - (volume > 4096));"),
    Fault("SCL-6 no sticky bit", chooses_scales, "(uint)quotient | sticky", "(uint)quotient"),
    Fault(
        "QNT-2 a NaN loses its sign",
        divides_and_multiplies,
        "is_nan(s)) return QNAN | sign;",
        "is_nan(s)) return QNAN;",
    ),
    Fault(
        "QNT-4 0 scale, no sign",
        divides_and_multiplies,
        "== 0) return sign;\n    uint q",
        "== 0) return 0;\n    uint q",
    ),
    Fault(
        "QNT-9 flushed results",
        divides_and_multiplies,
        "    m <<= shift;\n",
        "    if (field <= 0) return 0;\n    m <<= shift;\n",
    ),
    Fault("QNT-10 overflow saturates", divides_and_multiplies, "f->infinity) | (y & SIGN", "f->largest) | (y & SIGN"),
    Fault(
        "QNT-8 NaN takes the first entry", encodes, "is_nan(x) ? 0 : order_key(x)", "is_nan(x) ? -INF : order_key(x)"
    ),
    Fault(
        "PAK-4 fields from the top", stores, "& mask) << (field * width)", "& mask) << ((fields - 1 - field) * width)"
    ),
    Fault("PAK-5 padding holds ones", stores, "length - first), word = 0;", "length - first), word = 0x80u;"),
    Fault(
        "LAY-3 scales in tensor axes", stores, "load_code(numbers, size, walk(i, order))", "load_code(numbers, size, i)"
    ),
    Fault(
        "CNF-3 a word is not written",
        stores,
        "    store_code(words, size, i, word);",
        "    if (i != 5) store_code(words, size, i, word);",
    ),
)


@pytest.mark.parametrize("check", CHECKS)
def test_the_kernels_pass_every_check(build: qc.Session, check: Callable[[qc.Session], None]) -> None:
    check(build)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_broken_rule_is_noticed(session: qc.Session, fault: Fault) -> None:
    if fault.options:
        spoiled = opened(*fault.options)
    else:
        source = source_of(*SOURCES)
        assert source.count(fault.right) == 1, "the text to spoil is not there once"
        spoiled = qc.Session(
            open_machine(session.info.index, (), True, source=source.replace(fault.right, fault.wrong))
        )
    with pytest.raises(AssertionError):
        fault.check(spoiled)
