"""Comparison: bits decide, padding and poison are told apart, refusals must agree in class and rule."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import quantspec
from quantspec import Scheme
from quantspec_conformance.chain import Broken, Refused, Result, spoil
from quantspec_conformance.compare import Outcome, compare

SCHEME = Scheme.parse("e3m2.packed_u32_0.t-f32")


def judged(expected: Result, actual: Result | None, scheme: Scheme = SCHEME, shape: tuple[int, ...] = (7,)) -> Outcome:
    """The outcome of one step."""
    answers = {} if actual is None else {"pack": actual}
    return compare({"pack": expected}, answers, scheme, shape)


def numbers(*values: float) -> dict[str, npt.NDArray[Any]]:
    return {"y": np.array(values, np.float32)}


def words(*patterns: int) -> dict[str, npt.NDArray[Any]]:
    return {"words": np.array(patterns, np.uint32)}


def test_equal_bits_pass() -> None:
    assert judged(words(1, 2), words(1, 2)).status == "pass"


def test_zeros_and_nans_are_compared_as_bits() -> None:
    for left, right in ((0.0, -0.0), (np.nan, -np.nan)):
        outcome = judged(numbers(left), numbers(right))
        assert outcome.status == "fail"
        assert outcome.mismatch is not None
        assert outcome.mismatch.count == 1
    assert judged(numbers(np.nan), numbers(np.nan)).status == "pass"


@pytest.mark.parametrize(
    ("actual", "kind", "rule"),
    [
        (words(1, 2 | 1 << 12), "padding", "PAK-3"),  # line of 7: the second word holds two codes
        (words(1 | 1 << 30, 2), "padding", "PAK-5"),
        (words(1, 2 | 1 << 6), "bits", "PAK-4"),
        (words(1 << 6, 2), "bits", "PAK-4"),
        (words(0xA5A5A5A5, 2), "unwritten", "CNF-3"),
    ],
)
def test_padding_poison_and_wrong_fields_are_told_apart(actual: Result, kind: str, rule: str) -> None:
    outcome = judged(words(1, 2), actual)
    assert outcome.status == "fail"
    assert outcome.mismatch is not None
    assert (outcome.mismatch.kind, outcome.mismatch.rule) == (kind, rule)


def test_dtype_and_shape_must_agree() -> None:
    for other in (np.array([1, 2], np.uint64), np.array([[1, 2]], np.uint32), np.array([1], np.uint32)):
        outcome = judged(words(1, 2), {"words": other})
        assert outcome.status == "fail"
        assert outcome.mismatch is not None
        assert outcome.mismatch.kind == "shape"


REFUSAL = Refused("ShapeError", "SCH-14", "no")


@pytest.mark.parametrize(
    ("expected", "actual", "status"),
    [
        (REFUSAL, Refused("ShapeError", "SCH-14", "other words"), "refused"),
        (REFUSAL, Refused("ShapeError", "SCH-13", "no"), "wrong-error"),
        (REFUSAL, Refused("SchemeError", "SCH-14", "no"), "wrong-error"),
        (REFUSAL, words(1), "reject-missing"),
        (REFUSAL, Broken("boom"), "error"),
        (words(1), REFUSAL, "wrong-error"),
        (words(1), Refused("UnsupportedError", "CNF-5", "no lookup"), "unsupported"),
        (words(1), Broken("boom"), "error"),
        (words(1), None, "error"),
    ],
)
def test_refusals(expected: Result, actual: Result | None, status: str) -> None:
    outcome = judged(expected, actual)
    assert outcome.status == status
    assert outcome.rule == ("SCH-14" if status == "refused" else None)


def test_the_first_step_that_differs_counts() -> None:
    expected, actual = ({"quantize": {"codes": np.full(1, code, np.uint8)}, "pack": words(code)} for code in (1, 9))
    outcome = compare(expected, actual, SCHEME, (1,))
    assert outcome.mismatch is not None
    assert outcome.mismatch.step == "quantize"


@pytest.mark.parametrize(
    "text",
    ["q4s.packed_u32_0.t-f32", "e3m2.packed_u32_0.t-f32", "e3m2.packed_native_1.t-f32", "q2s.packed_native_1.b2-f16"],
)
@pytest.mark.parametrize("shape", [(3, 5), (5, 15), (4, 20)])
def test_a_spoiled_stream_is_refused_or_has_no_padding(text: str, shape: tuple[int, ...]) -> None:
    scheme = Scheme.parse(text)
    data = quantspec.to_bytes(quantspec.quantize(np.ones(shape, np.float32), scheme))
    spoiled = spoil(data, scheme, shape)
    per_word = scheme.store.codes_per_word(scheme.value.bits)
    bits = 8 * scheme.store.word_bytes(scheme.value.bits)
    line = shape[scheme.packed_axis(2)]
    if line % per_word == 0 and bits == per_word * scheme.value.bits:
        assert spoiled == data
        return
    with pytest.raises(quantspec.EncodingError, match="PAK-7"):
        quantspec.split(spoiled, scheme, shape)
