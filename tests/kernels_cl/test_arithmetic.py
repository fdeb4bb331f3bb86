"""The two operations in integers: division and multiplication against IEEE 754 binary32, under every build."""

import numpy as np
import numpy.typing as npt
import pytest

import quantspec_cl as qc
from quantspec_cl.program import build as build_program
from quantspec_cl.program import source_of

from .data import SPECIAL, Bits, floats, patterns

pytestmark = pytest.mark.opencl

KERNELS = """
__kernel void quotients(__global const uint* a, __global const uint* b, __global uint* y) {
    size_t i = get_global_id(0);
    y[i] = divide(a[i], b[i]);
}
__kernel void products(__global const uint* a, __global const uint* b, __global uint* y) {
    size_t i = get_global_id(0);
    y[i] = multiply(a[i], b[i]);
}
"""


def run(session: qc.Session, kernel: str, a: Bits, b: Bits) -> Bits:
    machine = session.machine
    kernels = build_program(session.context, source_of("prelude.cl") + KERNELS, session.build_options)
    y = machine.empty(a.shape, np.uint32)
    kernels[kernel](session.queue, a.shape, None, machine.upload(a).buffer, machine.upload(b).buffer, y.buffer)
    result: Bits = y.get()
    return result


def canonical(y: npt.NDArray[np.float32]) -> Bits:
    bits = patterns(y)
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, np.uint32(0x7FC00000), bits)


def pairs() -> tuple[Bits, Bits]:
    """Random pairs, all pairs of specials, ties made by construction, and results next to the subnormal range's ends."""
    rng = np.random.default_rng(1)
    count = 1 << 18
    a, b = rng.integers(0, 1 << 32, (2, count), dtype=np.uint32)
    special = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    few = rng.integers(0, 1 << 12, (2, count), dtype=np.uint32) << np.uint32(
        11
    )  # 12-bit significands: exact products, ties
    few |= rng.integers(0, 255, (2, count), dtype=np.uint32) << np.uint32(23)
    # quotients that fall in the subnormal range, and products that do: a whole number of half steps is a tie there
    small = floats(rng.integers(1, 1 << 23, count, dtype=np.uint32))
    power = floats(rng.integers(120, 135, count, dtype=np.uint32) << np.uint32(23))
    odd = (rng.integers(0, 1 << 20, count, dtype=np.uint32) << np.uint32(1)) | np.uint32(1)
    low = floats((rng.integers(1, 80, count, dtype=np.uint32) << np.uint32(23)) | odd)
    high = floats((rng.integers(110, 200, count, dtype=np.uint32) << np.uint32(23)) | odd[::-1])
    sides = [
        (a, b),
        (special[0], special[1]),
        (few[0], few[1]),
        (patterns(small), patterns(power)),
        (patterns(low), patterns(high)),
    ]
    return np.concatenate([left for left, _ in sides]), np.concatenate([right for _, right in sides])


@pytest.mark.parametrize("kernel", ["quotients", "products"])
def test_every_pair_is_rounded_as_ieee_754(build: qc.Session, kernel: str) -> None:
    a, b = pairs()
    with np.errstate(all="ignore"):
        expected = floats(a) / floats(b) if kernel == "quotients" else floats(a) * floats(b)
    found = run(build, kernel, a, b)
    wrong = np.flatnonzero(found != canonical(expected))
    assert not wrong.size, (
        f"{kernel} of {a[wrong[0]]:08X}, {b[wrong[0]]:08X}: {found[wrong[0]]:08X}; {wrong.size} differ"
    )


def test_quotients_of_neighbours_of_products(session: qc.Session) -> None:
    """x = fl(q * s) and next to it, for q midway between two numbers of 24 bits: the hardest quotients to round."""
    rng = np.random.default_rng(2)
    s = rng.integers(1 << 23, 1 << 24, 1 << 17, dtype=np.uint64)
    q = (rng.integers(1 << 23, 1 << 24, 1 << 17, dtype=np.uint64) << np.uint64(1)) | np.uint64(1)
    x = floats(patterns((q * s).astype(np.float64).astype(np.float32)))
    for step in (-1, 0, 1):
        a, b = patterns(x) + np.uint32(step & 0xFFFFFFFF), patterns(s.astype(np.float32))
        np.testing.assert_array_equal(run(session, "quotients", a, b), canonical(floats(a) / floats(b)))
