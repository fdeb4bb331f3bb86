"""Trust: which float operations of a device are correctly rounded, measured once where a fast kernel would use them.

Only on normal numbers with normal results: the kernels keep to those. What fails is done in integers instead.
"""

import os
from dataclasses import dataclass

import numpy as np

from .host import Machine
from .program import Program, register

__all__ = ["Trust", "trust"]

PROGRAM = Program(("prelude.cl", "trust.cl"))
CASES = 1 << 16
STEPS = ("sums", "products", "quotients", "fma", "uncontracted", "comparisons")  #: in the order of trust.cl

#: Options that let a compiler work out one expression differently in different places: measuring one says nothing of another.
LOOSE = ("-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations", "-cl-finite-math-only", "-cl-mad-enable")


@dataclass(frozen=True, slots=True)
class Trust:
    """Operations found right on every pair that was tried: of floats, correctly rounded, nearest-even."""

    sums: bool
    products: bool
    quotients: bool
    fma: bool
    uncontracted: bool  #: a * b + c rounds twice under FP_CONTRACT OFF
    comparisons: bool  #: of vectors: those that are true can be counted
    reason: str  #: what was seen


@register
def _programs() -> list[Program]:
    return [PROGRAM]


def trust(machine: Machine) -> Trust:
    """What is known of the device under the session's build options; measured at the first call."""
    with machine.lock:
        found = machine.measured.get("trust")
        if not isinstance(found, Trust):
            found = _measured(machine)
            machine.measured["trust"] = found
        return found


def _measured(machine: Machine) -> Trust:
    loose = [
        option
        for option in (*machine.options, *os.environ.get("PYOPENCL_BUILD_OPTIONS", "").split())
        if option in LOOSE
    ]
    if loose:
        return Trust(False, False, False, False, False, False, f"built with {loose[0]}")
    wrong = {name: _wrong(machine, step) for step, name in enumerate(STEPS)}
    seen = ", ".join(f"{count} of {CASES} {name} wrong" for name, count in wrong.items() if count)
    sums, products, quotients, fma, uncontracted, comparisons = (count == 0 for count in wrong.values())
    return Trust(
        sums, products, quotients, fma, uncontracted, comparisons, seen or f"{CASES} hard cases of each operation"
    )


def _wrong(machine: Machine, step: int) -> int:
    """How many cases of a step differ from the integers' answer."""
    a, b, c, expected, found = (machine.empty((CASES,), np.uint32) for _ in range(5))
    machine.run(PROGRAM, "trust_cases", (CASES,), step, a, b, c, expected, CASES, local=(machine.local_size,))
    machine.run(PROGRAM, "trust_results", (CASES // 8,), step, a, b, c, found, CASES, local=(machine.local_size,))
    return int(np.count_nonzero(found.get() != expected.get()))
