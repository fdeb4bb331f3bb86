"""Chains: every step gives the reference's bits, whatever the numbers and the build."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec.chain import ROWS
from quantspec_cl.chain import OPS

from .agreement import same_bits, same_refusal
from .conftest import opened
from .data import SPECIAL, f32, floats, numbers
from .test_dequantize_fast import tensor_of

pytestmark = pytest.mark.opencl

SHAPE = (3, 4, 38)
SCHEMES = (
    "e5m2.native.b16-f32.t-f32",
    "q8s.native.b1-f32",
    "e2m1.packed_u32_1.b2x3-ue8m0",
    "q4f.native.lut-nf4.b7-bf16",
)
RNG = np.random.default_rng(2)
ROW, COLUMN, WHOLE = numbers(1, (38,)), numbers(2, (4, 1)), numbers(3, SHAPE)
with np.errstate(all="ignore"):
    HALF, BRAIN = numbers(4, (3, 1, 38)).astype(np.float16), numbers(5, (1, 4, 38)).astype(ml_dtypes.bfloat16)
MASK, FLAGS = RNG.integers(0, 3, (4, 38), np.uint8), RNG.random((3, 1, 1)) < 0.5

CHAINS: dict[str, list[Any]] = {
    "none": [],
    **{f"{op} row": [(op, ROW)] for op in ("add", "sub", "rsub", "mul", "div", "rdiv", "min", "max")},
    **{f"{op} whole": [(op, WHOLE)] for op in ("add", "mul", "div", "rdiv", "min", "max")},
    "signs": ["neg", "abs", ("neg",), "neg"],
    "halves": [("mul", HALF), ("add", BRAIN), ("max", COLUMN), ("cast", "bf16"), ("rsub", HALF)],
    "select": [("select", ROW, MASK), ("select", 1.5, FLAGS), ("select", COLUMN, np.True_)],
    "casts": [("cast", "f16"), ("mul", 3), ("cast", "bf16"), ("cast", "f32")],
    "numbers": [("add", 1.5), ("rdiv", 3), ("min", 7), ("max", -0.0), ("sub", np.float16(2))],
    "long": [("mul", 0.75), ("add", ROW)] * 32,
}


def agrees(session: qc.Session, tensor: qs.Quantized, steps: list[Any], dtype: str, what: str) -> None:
    """A chain gives the reference's bits."""
    with np.errstate(all="ignore"):
        expected = qs.chain(tensor, steps, dtype)
    same_bits(session.chain(tensor, steps, dtype), expected, f"{what} of {tensor.scheme.text} to {dtype}")


@pytest.mark.parametrize("name", CHAINS)
def test_every_step_on_numbers_of_all_kinds(session: qc.Session, name: str) -> None:
    for i, text in enumerate(SCHEMES):
        agrees(session, tensor_of(text, SHAPE, seed=i), CHAINS[name], ("f32", "f16", "bf16")[i % 3], name)


def rounds_each(session: qc.Session) -> None:
    """Numbers that are others where two steps share a rounding, or where subnormals are flushed."""
    tensor = qs.quantize(np.random.default_rng(6).standard_normal((64, 32)).astype(np.float32), "q8s.native.b32-f32")
    factor = 1 + 2.0**-12
    steps: list[Any] = [("mul", factor), ("add", qs.chain(tensor, [("mul", factor), "neg"]))]
    agrees(session, tensor, steps, "f32", "what rounding left out")
    special = floats(SPECIAL)
    ones = qs.quantize(np.ones((SPECIAL.size, SPECIAL.size), np.float32), "q8s.native.b1-f32")
    for op in ("add", "sub", "mul", "div", "rdiv", "min", "max"):
        agrees(session, ones, [("mul", special[:, np.newaxis]), (op, special)], "f32", op)
    for name in ("select", "casts", "signs"):
        agrees(session, tensor_of(SCHEMES[1], SHAPE, seed=9), CHAINS[name], "f16", name)


def test_the_kernel_passes_under_every_build(build: qc.Session) -> None:
    rounds_each(build)


def test_a_contracted_chain_is_noticed() -> None:
    with pytest.raises(AssertionError, match=r"what rounding left out.*differ"):
        rounds_each(opened("-DSUM_AFTER(y,a,before,with)=fused(before,with,a)"))


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 0)])
def test_scalars_and_nothing(session: qc.Session, shape: tuple[int, ...]) -> None:
    tensor = qs.quantize(np.ones(shape, np.float32), "q8s.native.t-f32")
    agrees(session, tensor, [("add", 1), "neg", ("select", 3, True), ("cast", "f16")], "bf16", "scalar")


def test_operands_on_the_device(session: qc.Session) -> None:
    tensor = tensor_of(SCHEMES[0], SHAPE)
    steps: list[Any] = [("mul", ROW), ("select", HALF, MASK)]
    moved = [(op, *map(session.machine.upload, arrays)) for op, *arrays in steps]
    found = session.chain(session.put(tensor), moved)
    same_bits(found, qs.chain(tensor, steps), "device operands")
    assert found.path == qc.Path("generic", "chains have one kernel")


def test_the_operations_are_the_references() -> None:
    assert tuple(ROWS) == OPS


REFUSED: list[Any] = [
    "neg", 3, ["neg"] * 65, [("add", 1, 1, 1)], [()], ["neg", "sqrt"], [(1, 2)], [("neg", 1)], [("add", 1, 1)], ["add"],
    [("select", 1)], [("select", ROW)], [("add", 0.1)], [("add", np.ones(1, np.int8))], [("add", ROW[:2])],
    [("add", numbers(1, (1, *SHAPE)))], [("select", 1, np.ones(2, bool))], [("select", 1, ROW)], [("cast", "f64")],
    [("cast", 1)], [("add", [[1], [1, 2]])], [("select", 0.1, np.ones(2, bool))], [("select", 0.1, MASK)],
]  # fmt: skip


@pytest.mark.parametrize("steps", REFUSED, ids=range(len(REFUSED)))
def test_refusals_are_the_references(session: qc.Session, steps: Any) -> None:
    same_refusal(session, "chain", tensor_of(SCHEMES[1], SHAPE), steps)


def test_other_refusals_are_the_references(session: qc.Session) -> None:
    tensor: npt.NDArray[Any] | qs.Quantized
    for tensor, dtype in ((tensor_of(SCHEMES[1], SHAPE), "u8"), (f32(1), "f32")):
        same_refusal(session, "chain", tensor, [], dtype)
