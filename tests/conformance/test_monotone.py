"""encode and encode_scale keep the order of their inputs, on every boundary set and beyond; who breaks it is told where."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add

import ml_dtypes
import numpy as np
import pytest

import quantspec
from quantspec import SCALES, TABLES, VALUES
from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.law import Law
from quantspec_conformance.protocol.messages import Ok
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.suite.monotone import CODES, breaks, points

from .suites import shipped

Answered = Callable[[Case], Tensor]


def due(case: Case) -> Tensor:
    """The expected codes."""
    return case.outputs[CODES[case.op]]


def boundary() -> dict[tuple[str, ...], list[Case]]:
    """The cases of encode and encode_scale that are not refused, by format and what else decides a code: table, rounding, codec."""
    found: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for case in shipped():
        if case.op in CODES and case.refusal is None:
            table = case.inputs.get("table")
            words = [case.words[name] for name in ("value", "type", "rounding", "codec") if name in case.words]
            found[case.op, *words, "" if table is None else table.text].append(case)
    return found


def test_the_law_is_monotone_over_each_boundary_set() -> None:
    """All cases of a format as one: every threshold with its neighbours, every exponent, the ends."""
    groups = boundary()
    assert {key[1] for key in groups} == {*VALUES, *SCALES}
    for key, cases in groups.items():
        sides = [points(case, due(case)) for case in cases]
        assert all(sides), key
        for side in zip(*sides, strict=True):
            assert breaks(reduce(add, side)) is None, key
    sizes = {key: sum(len(due(case).patterns) for case in cases) for key, cases in groups.items()}
    assert min(sizes.values()) > 40, "a set that small holds no boundaries"


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_the_law_is_monotone_over_every_16_bit_number(dtype: np.dtype) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    x = x[np.isfinite(x.astype(np.float32))]
    x = x[np.argsort(x.astype(np.float32), kind="stable")]
    for row in VALUES.values():
        tables = [None, *(table for table in TABLES.values() if row.is_integer and len(table.bits) == 1 << row.bits)]
        for table in tables:
            y = quantspec.decode(quantspec.encode(x, row, table=table), row, table=table)
            assert np.all(y[1:] >= y[:-1]), (row.name, table)
    positive = x[x.astype(np.float32) >= 0]
    positive = positive[~np.signbit(positive.astype(np.float32))]
    for name in SCALES:
        for rounding in ("up", "nearest"):
            y = quantspec.decode_scale(quantspec.encode_scale(positive, name, rounding=rounding), name)
            assert np.all(y[1:] >= y[:-1]), (name, rounding)


def _case(case_id: str) -> Case:
    return next(case for case in shipped() if case.id == case_id)


def _moved(case: Case, place: int, code: int) -> Ok:
    """The expected answer with another code at one place."""
    name = CODES[case.op]
    patterns = list(due(case).patterns)
    patterns[place] = code
    return Ok({name: replace(due(case), patterns=tuple(patterns))})


@pytest.mark.parametrize("value", VALUES)
def test_a_liar_at_one_place_is_told_which_neighbours(value: str) -> None:
    """The number of the largest code gives that of the one before the one before: between its neighbours, a step back."""
    case = _case(f"encode.{value}.boundary.codes")
    (_, above), name = points(case, due(case)), CODES[case.op]
    largest = int(above.inputs[np.isfinite(above.x)][-1])
    place = case.inputs["x"].patterns.index(largest)
    zero = due(case).patterns[case.inputs["x"].patterns.index(0)]
    result = judge(case, _moved(case, place, zero))
    assert result.outcome == "fail" and result.mismatch is not None and result.mismatch.count == 1
    assert f"1 of {len(due(case).patterns)} entries of {name} differ; not monotone between two" in result.reason
    assert f"0x{largest:08X} gives 0x{zero:02X}" in result.reason


@pytest.mark.parametrize("scale", SCALES)
def test_a_liar_among_scales_is_told_too(scale: str) -> None:
    case = _case(f"encode_scale.{scale}.boundary.up-codes")
    middle = int(np.argsort(np.array(case.inputs["x"].patterns))[len(due(case).patterns) // 2])
    result = judge(case, _moved(case, middle, 0))
    assert result.outcome == "fail"
    assert f"the larger 0x{case.inputs['x'].patterns[middle]:08X} gives 0x" in result.reason


def test_who_is_wrong_and_keeps_the_order_is_not_told_so() -> None:
    """Ties toward zero move thresholds and break no order; nor does a code that is none of the format."""
    case = _case("encode.e2m1.boundary.midpoints")
    x = case.inputs["x"].array()
    toward_zero = quantspec.encode(np.nextafter(x, np.float32(0)), "e2m1")
    result = judge(case, Ok({"codes": Tensor.of(toward_zero)}))
    assert result.outcome == "fail" and "monotone" not in result.reason
    assert "monotone" not in judge(case, _moved(case, 3, 0xFF)).reason
    assert judge(case, Law().handle(case.request)).reason == ""


def test_many_breaks_are_counted() -> None:
    case = _case("encode.e4m3.boundary.codes")
    turned = replace(due(case), patterns=tuple(reversed(due(case).patterns)))
    result = judge(case, Ok({"codes": turned}))
    assert result.reason.count("not monotone") == 2 and "such pairs" in result.reason


def test_nan_has_no_place_in_the_order() -> None:
    case = _case("encode.e4m3.boundary.specials")
    x = case.inputs["x"].array()
    spoiled = [0x7F if np.isnan(number) else code for number, code in zip(x, due(case).patterns, strict=True)]
    result = judge(case, Ok({"codes": replace(due(case), patterns=tuple(spoiled))}))
    assert "monotone" not in result.reason
