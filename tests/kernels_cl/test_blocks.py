"""Blocks: which block an element is in, and its amax, for any rank, partial and oversized blocks. BLK-1 to BLK-5, SCL-5."""

import itertools
import math

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.geometry import grid_walk, walk_of
from quantspec_cl.program import build as build_program
from quantspec_cl.program import source_of

from .agreement import same_verbs
from .data import f32, numbers

SHAPES = [
    *(
        (),
        (1,),
        (7,),
        (64,),
        (1, 1),
        (3, 5),
        (4, 32),
        (5, 1, 6),
        (2, 3, 4),
        (1, 9, 1, 4),
        (2, 3, 1, 2, 5),
        (2, 2, 3, 2, 2, 3),
    ),
    *((0,), (3, 0), (0, 4), (2, 0, 3), (1, 2, 1, 2, 1, 2, 3)),
]
BLOCKS = [
    "b1",
    "b2",
    "b3",
    "b16",
    "b2147483647",
    "b2x1",
    "b3x2",
    "b2x4",
    "b64x1",
    "b2x3x2",
    "b2x1x1",
    "b2x1x2x3",
    "b2x3x1x2x5",
]


FITTING = [
    (shape, block) for shape in SHAPES for block in BLOCKS if block == "b1" or len(block.split("x")) <= len(shape)
]


@pytest.mark.parametrize("shape", SHAPES)
def test_joined_axes_name_the_same_blocks(shape: tuple[int, ...]) -> None:
    """`grid_walk` joins axes; walking what is left names the block of the unjoined axes, for every element."""
    for extents in itertools.product((1, 2, 3, 5), repeat=len(shape)):
        grid = [-(-size // extent) for size, extent in zip(shape, extents, strict=True)]
        joined = grid_walk(shape, extents)
        assert len(joined) == 1 + 4 * joined[0]
        for flat, index in enumerate(np.ndindex(*shape)):
            expected = 0
            for i, extent, blocks in zip(index, extents, grid, strict=True):
                expected = expected * blocks + i // extent
            found, blocks_so_far, rest = 0, 1, flat
            for axis in reversed(range(joined[0])):
                size, extent, blocks, _ = joined[1 + 4 * axis : 5 + 4 * axis]
                found += rest % size // extent * blocks_so_far
                blocks_so_far *= blocks
                rest //= size
            assert found == expected


def test_at_most_six_axes_are_left() -> None:
    assert grid_walk((2, 3, 5, 7, 3, 5, 7, 5, 3), (1, 1, 1, 1, 2, 2, 2, 2, 2))[0] == 6


def test_walks_join_axes_that_continue_one_another() -> None:
    assert walk_of((2, 3, 4), (12, 4, 1)) == (1, 24, 1)
    assert walk_of((3, 2, 4), (4, 12, 1)) == (3, 3, 4, 2, 12, 4, 1)
    assert walk_of((), ()) == (0,)
    assert walk_of((5,), (-1,)) == (1, 5, 2**64 - 1)


@pytest.mark.opencl
@pytest.mark.parametrize(("shape", "block"), FITTING)
def test_shapes_and_extents(session: qc.Session, shape: tuple[int, ...], block: str) -> None:
    x = numbers(7, shape)
    for levels in (f"{block}-f16", f"{block}-f32.t-bf16"):
        for store in ("native", f"packed_u32_{max(len(shape) - 1, 0)}", "packed_native_0"):
            same_verbs(session, x, f"e2m3.{store}.{levels}")


@pytest.mark.opencl
@pytest.mark.parametrize(
    "scheme", ["q8s.native.t-f32", "e2m1.native.b2147483647-f32", "e2m1.native.b5000x2147483647-f32"]
)
def test_a_block_of_many_parts(session: qc.Session, scheme: str) -> None:
    """amax of more elements than one work-item looks at, wherever the largest lies."""
    for place in (0, 4095, 4096, 20_000, 65_535):
        x = np.full((16, 4096), np.float32(1.25))
        x.reshape(-1)[place] = -3.0
        x.reshape(-1)[place - 1] = np.inf
        same_verbs(session, x, scheme)


@pytest.mark.opencl
@pytest.mark.parametrize(
    "scheme", ["q8s.native.b4-f32", "q4s.native.b4-ue8m0.t-f32", "e4m3.native.t-ue4m3", "e2m1.native.b4-f16"]
)
def test_only_finite_elements_count(build: qc.Session, scheme: str) -> None:
    nothing = f32(0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001)
    mixed = f32(0x7F800000, 0x80000003, 0x7FC00000, 0x00000002)
    for x in (
        nothing,
        mixed,
        np.concatenate([nothing, mixed, f32(0x3F800000, 0xC0000000, 0x40400000, 0)]),
        f32(0, 0x80000000, 0, 0x80000000),
        np.zeros(8, np.float32),
    ):
        same_verbs(build, x, scheme)


WIDE = """
__kernel void wide(__global const ulong* i, __constant const ulong* grid, __constant const ulong* order, __global ulong* y) {
    size_t k = get_global_id(0);
    y[2 * k] = block_of(i[k], grid);
    y[2 * k + 1] = walk(i[k], order);
}
"""


@pytest.mark.opencl
def test_indices_beyond_32_bits(build: qc.Session) -> None:
    """The kernels' own index arithmetic on a tensor of 2^56 elements, which no memory holds."""
    shape, extents = (2**18 + 1, 3, 2**33 + 5, 11), (7, 2, 2**20 + 3, 4)
    rng = np.random.default_rng(32)
    flat = [int(i) for i in rng.integers(0, math.prod(shape), 4096, np.uint64)] + [
        0,
        2**32 - 1,
        2**32,
        math.prod(shape) - 1,
    ]
    expected = []
    for i in flat:
        index = np.unravel_index(i, shape)
        block = [int(at) // extent for at, extent in zip(index, extents, strict=True)]
        grid = [-(-size // extent) for size, extent in zip(shape, extents, strict=True)]
        expected.append((int(np.ravel_multi_index(block, grid)), int(index[0]) + int(index[3]) * 2**40 - int(index[1])))
    machine = build.machine
    kernel = build_program(build.context, source_of("prelude.cl", "blocks.cl") + WIDE, build.build_options)["wide"]
    y, given = machine.empty((len(flat), 2), np.uint64), machine.upload(np.array(flat, np.uint64))
    order = machine.constant(walk_of(shape, (1, -1, 0, 2**40)))
    kernel(build.queue, (len(flat),), None, given.buffer, machine.constant(grid_walk(shape, extents)), order, y.buffer)
    assert y.get().astype(np.int64).tolist() == [list(pair) for pair in expected]


@pytest.mark.opencl
def test_a_long_tensor(session: qc.Session) -> None:
    """2^21 elements, and a partial block at the end."""
    x = np.resize(numbers(8, (1 << 12,)), (1 << 21) + 17)
    same = qs.quantize(x, "e2m1.packed_native_0.b48-f16")
    found = session.quantize(x, "e2m1.packed_native_0.b48-f16").get()
    assert found == same
