"""Values: every code and every narrow number through every format; the numbers where encode decides. VAL-1 to VAL-13."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_refusal
from .conftest import BUILDS, opened
from .data import HALVES, SPECIAL, floats, midpoints, neighbours, patterns

pytestmark = pytest.mark.opencl

FORMATS = tuple(qs.VALUES)
INTEGERS = tuple(name for name, row in qs.VALUES.items() if row.is_integer)


def tables(value: str) -> dict[str, qs.Table]:
    """Tables for an integer format: a ramp, equal and opposite entries out of order, both zeros, tiny and huge ones."""
    count = 1 << qs.VALUES[value].bits
    rng = np.random.default_rng(count)
    repeated = rng.choice(np.array([-3, -1.5, -0.0, 0.0, 0.5, 2, 7], np.float32), count)
    repeated[0] = 2
    wild = floats(
        rng.integers(0, 0x7F800000, count, dtype=np.uint32) | (np.arange(count, dtype=np.uint32) << np.uint32(31))
    )
    return {
        "ramp": qs.Table.of(np.linspace(-1, 1, count, dtype=np.float32)),
        "repeated": qs.Table.of(repeated),
        "wild": qs.Table.of(wild),
        "tiny": qs.Table.of(floats(np.arange(count, dtype=np.uint32))),
    }


@pytest.fixture(scope="module", params=[*BUILDS, "chosen"])
def build(request: pytest.FixtureRequest) -> qc.Session:
    """The generic path under each build, and the path that the device takes for what is large."""
    return opened() if request.param == "chosen" else opened(*BUILDS[request.param], path="generic")


@pytest.mark.parametrize("value", FORMATS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_narrow_number_encodes(build: qc.Session, value: str, dtype: type) -> None:
    x: npt.NDArray[Any] = HALVES.view(dtype)
    same_bits(build.encode(x, value), qs.encode(x, value), value)


@pytest.mark.parametrize("value", FORMATS)
def test_numbers_around_every_midpoint_encode(build: qc.Session, value: str) -> None:
    rng = np.random.default_rng(3)
    x = floats(
        np.concatenate(
            [neighbours(patterns(midpoints(value))), SPECIAL, rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint32)]
        )
    )
    same_bits(build.encode(x, value), qs.encode(x, value), value)


@pytest.mark.parametrize("value", [*FORMATS, "nf4"])
def test_the_fast_path_is_that_of_quantize(value: str) -> None:
    """Numbers at every step and next to it, of all exponents, in shapes that no vector fits; the generic path says why not."""
    session, table = opened(path="fast"), qs.NF4 if value == "nf4" else None
    value = "q4f" if table is not None else value
    near = neighbours(patterns(midpoints(value, table)))
    x = floats(np.concatenate([near, SPECIAL, np.random.default_rng(6).integers(0, 1 << 32, 4001, dtype=np.uint32)]))
    for shaped in (x, x[:1001].reshape(7, 11, 13)):
        codes, expected = session.encode(shaped, value, table=table), qs.encode(shaped, value, table=table)
        same_bits(codes, expected, f"{value} {shaped.shape}")
        y = session.decode(codes, value, table=table, out=session.machine.empty(shaped.shape, np.dtype(np.float32)))
        same_bits(y, qs.decode(expected, value, table=table), f"{value} {shaped.shape} back")
        assert codes.path is not None and codes.path.name == "quantize_rows"
        assert y.path is not None and y.path.name.startswith("dequantize")
    wild = tables("q4f")["wild"]
    left = session.encode(x, "q4f", table=wild)
    same_bits(left, qs.encode(x, "q4f", table=wild), "a table that does not ascend")
    assert left.path is not None and "do not ascend" in left.path.reason


@pytest.mark.parametrize("value", INTEGERS)
def test_numbers_around_every_threshold_take_the_nearest_entry(build: qc.Session, value: str) -> None:
    rng = np.random.default_rng(4)
    for name, table in tables(value).items():
        near = neighbours(patterns(midpoints(value, table)))
        x = floats(np.concatenate([near, SPECIAL, rng.integers(0, 1 << 32, 1 << 14, dtype=np.uint32)]))
        same_bits(build.encode(x, value, table=table), qs.encode(x, value, table=table), f"{value} {name}")
        codes = np.arange(1 << qs.VALUES[value].bits, dtype=np.uint8)
        same_bits(build.decode(codes, value, table=table), qs.decode(codes, value, table=table), f"{value} {name}")


@pytest.mark.parametrize("value", FORMATS)
def test_every_code_decodes_or_is_refused(build: qc.Session, value: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    row = qs.VALUES[value]
    signed = codes.view(np.int8).astype(int)
    valid = (signed >= -row.sign_bit) & (signed < row.sign_bit) if row.is_integer else codes <= row.mask
    same_bits(build.decode(codes[valid], value), qs.decode(codes[valid], value), value)
    for code in codes[~valid][::17]:
        wrong = np.zeros((3, 5), np.uint8)
        wrong[1, 2] = wrong[2, 4] = code
        text = same_refusal(build, "decode", wrong, value)
        assert text.startswith("codes[1, 2]")


def test_the_first_wrong_code_is_found_in_a_long_array(session: qc.Session) -> None:
    codes = np.zeros(1 << 20, np.uint8)
    for first in (0, 511, 512, 777_777, (1 << 20) - 1):
        codes[first] = 0x10
        same_refusal(session, "decode", codes, "e2m1")
        codes[first] = 0


def test_shapes_dtypes_and_layouts_of_inputs(session: qc.Session) -> None:
    x = np.linspace(-9, 9, 60, dtype=np.float32).reshape(3, 4, 5)
    for given in (
        x,
        x.T,
        x[::-1, ::2],
        x[..., ::-3],
        np.broadcast_to(x[0], (7, 4, 5)),
        x[:0],
        x[1, 2, 3],
        x.astype(">f4"),
    ):
        same_bits(session.encode(given, "e3m2"), qs.encode(given, "e3m2"), f"{given.shape} {given.strides}")
    for given in (x.astype(">f2")[::2], x.astype(ml_dtypes.bfloat16)[:, ::-1]):
        same_bits(session.encode(given, "e4m3"), qs.encode(given, "e4m3"), f"{given.shape} {given.dtype}")
    for python in (1.5, [0.5, -2.0], [[1, 2], [3, 4]], [], float("nan")):
        same_bits(session.encode(python, "q4s"), qs.encode(python, "q4s"), repr(python))


@pytest.mark.parametrize(
    "given", [np.zeros(2), np.zeros(2, np.int8), [0.1], "text", [1e300], 2**25 + 1, True, [[1], [2, 3]], 2**53]
)
def test_numbers_that_would_be_rounded_silently_are_refused(session: qc.Session, given: object) -> None:
    same_refusal(session, "encode", given, "e2m1")


def test_other_refusals_are_the_references(session: qc.Session) -> None:
    short = np.ones(3, np.float32)
    same_refusal(session, "encode", short, "e9m9")
    same_refusal(session, "encode", short, "e2m1", table=short)
    same_refusal(session, "encode", short, "q4s", table=short)
    same_refusal(session, "encode", short, "q2s", table=np.zeros(4, np.float32))
    same_refusal(session, "encode", short, "q2s", table=np.zeros(4))
    same_refusal(session, "decode", short, "q2s")
    same_refusal(session, "decode", [0, 1], "q2s")
    same_refusal(session, "decode", np.array([3], np.uint8), "q2s")
    same_refusal(session, "decode", np.array([4], np.uint8), "q2s", table=np.arange(4, dtype=np.float32))
