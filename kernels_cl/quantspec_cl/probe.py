"""What a device's arithmetic really does, measured. The kernels of the rules use integers only; floats are for the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .host import Machine
from .program import build, source_of

__all__ = ["Measurement", "measure"]

PAIRS = 1 << 16
STEPS = (
    *("multiply_add", "multiply", "divide", "above_zero", "unordered", "fused", "to_int", "to_char"),
    *("leading_zeros", "high_half", "long_quotient"),
)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One property of a device's arithmetic: whether it is that of IEEE 754 and OpenCL C, and what was seen."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class _Probe:
    name: str
    step: str
    operands: tuple[int, ...]
    expected: int


_PROBES = (
    _Probe("subnormal inputs are kept", "multiply", (0x00400000, 0x40000000), 0x00800000),
    _Probe("subnormal results are kept", "multiply", (0x00800000, 0x3F000000), 0x00400000),
    _Probe("subnormal quotients are kept", "divide", (0x00800000, 0x40000000), 0x00400000),
    _Probe("a subnormal compares above zero", "above_zero", (0x00000001,), 1),
    _Probe("a NaN is unequal to itself", "unordered", (0x7FC00000,), 1),
    _Probe("x / 0 is Inf", "divide", (0x3F800000, 0x00000000), 0x7F800000),
    _Probe("x / Inf is 0", "divide", (0x3F800000, 0x7F800000), 0x00000000),
    # (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46
    _Probe("fma rounds once", "fused", (0x3F800001, 0x3F800001, 0xBF800002), 0x28800000),
    _Probe("fma keeps a subnormal result", "fused", (0x00800001, 0x3F000000, 0x00000000), 0x00400000),
    _Probe("fma(0, -1, 0) is +0", "fused", (0x00000000, 0xBF800000, 0x00000000), 0x00000000),
    _Probe("saturating conversion of NaN to int is 0", "to_int", (0x7FC00000,), 0),
    _Probe("saturating conversion of NaN to char is 0", "to_char", (0x7FC00000,), 0),
    _Probe("conversion rounds ties to even", "to_int", (0x40200000,), 2),
    _Probe("integer clz", "leading_zeros", (0x00000100,), 23),
    _Probe("integer clz of 0", "leading_zeros", (0x00000000,), 32),
    _Probe("integer mul_hi", "high_half", (0xFFFFFFFF, 0xFFFFFFFD), 0xFFFFFFFC),
    _Probe("integer 64-bit division", "long_quotient", (0x00400000, 0x00000001, 0x00FFFFFF), 0x40000040),
)
_CONTRACTION = _Probe("a * b + c is not contracted", "multiply_add", (0x3F800001, 0x3F800001, 0xBF800002), 0x00000000)


def measure(machine: Machine, options: Sequence[str]) -> tuple[Measurement, ...]:
    """Run the probes under a session's build options."""
    off = _run(machine, source_of("prelude.cl", "probe.cl"), options, (*_PROBES, _CONTRACTION))
    default = _run(machine, source_of("probe.cl"), options, (_CONTRACTION,))
    return (
        *off[:-1],
        Measurement(f"{off[-1].name} (FP_CONTRACT OFF)", off[-1].ok, off[-1].detail),
        Measurement(f"{default[0].name} (default)", default[0].ok, default[0].detail),
        *_pairs(machine, options),
    )


def _run(machine: Machine, source: str, options: Sequence[str], probes: Sequence[_Probe]) -> list[Measurement]:
    kernel = build(machine.context, source, options)["probe"]
    steps = machine.upload(np.array([STEPS.index(probe.step) for probe in probes], np.uint32))
    operands = machine.upload(np.array([(*probe.operands, 0, 0)[:3] for probe in probes], np.uint32))
    results = machine.empty(steps.shape, np.uint32)
    kernel(machine.queue, (len(probes),), None, steps.buffer, operands.buffer, results.buffer, len(probes))
    return [
        Measurement(probe.name, int(found) == probe.expected, f"0x{int(found):08X}, expected 0x{probe.expected:08X}")
        for probe, found in zip(probes, results.get(), strict=True)
    ]


def _pairs(machine: Machine, options: Sequence[str]) -> list[Measurement]:
    """The device's own products and quotients against the integer ones."""
    kernels = build(machine.context, source_of("prelude.cl", "probe_pairs.cl"), options)
    found = []
    for name, kernel in (("products", "wrong_products"), ("quotients", "wrong_quotients")):
        wrong = machine.empty((PAIRS,), np.uint32)
        kernels[kernel](machine.queue, (PAIRS,), None, wrong.buffer, PAIRS)
        count = int(wrong.get().sum(dtype=np.int64))
        found.append(Measurement(f"{name} are correctly rounded", count == 0, f"{count} of {PAIRS} pairs differ"))
    return found
