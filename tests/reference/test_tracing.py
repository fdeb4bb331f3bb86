"""Tracing names the rules that fixed an element, and nothing else. Every rule below is one that the element met."""

import numpy as np
import pytest

import quantspec as qs

CASES = {
    "a tie": (1.75, ["VAL-7"], ["VAL-8", "VAL-11"]),
    "no tie": (1.7, ["VAL-6"], ["VAL-7"]),
    "saturates": (9.0, ["VAL-8"], ["VAL-7"]),
    "infinity": (np.inf, ["VAL-8"], ["QNT-2"]),
    "rounds to zero": (-0.1, ["VAL-11"], ["VAL-7"]),
    "NaN": (np.nan, ["QNT-2", "VAL-10"], ["VAL-6"]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rules_of_an_element_are_those_it_met(case: str) -> None:
    number, fired, silent = CASES[case]
    x = np.array([1.0, number, 2.0], np.float32)
    with qs.trace() as t:
        qs.quantize(x, "e2m1.native.t-f32", tensor_scale=np.float32(1))
    rules = t.rules((1,))
    assert [rule for rule in fired if rule not in rules] == []
    assert [rule for rule in silent if rule in rules] == []
    assert ("QNT-5" in rules) == (case != "NaN")


def test_block_rules_concern_the_elements_of_that_block_only() -> None:
    x = np.ones((2, 40), np.float32)
    x[1, :16] = 0
    with qs.trace() as t:
        qs.quantize(x, "e2m1.native.b16-f16")
    assert "SCL-9" in t.rules((1, 3))
    assert "QNT-4" in t.rules((1, 3))
    assert "SCL-9" not in t.rules((1, 16))
    assert "SCL-9" not in t.rules((0, 3))


def test_an_element_far_into_a_tensor_of_many_tiles_is_found() -> None:
    x = np.ones((300, 1000), np.float32)
    x[299, 999] = np.nan
    with qs.trace() as t:
        qs.quantize(x, "e4m3.native.b64-f32")
    assert "VAL-9" in t.rules((299, 999))
    assert "VAL-9" not in t.rules((299, 998))
    assert "VAL-9" not in t.rules((0, 0))


def test_rules_of_given_scales_concern_their_blocks() -> None:
    x = np.arange(8, dtype=np.float32)
    with qs.trace() as t:
        q = qs.quantize(x, "q8s.native.b4-f32.t-f32", scales=np.array([0, 1], np.float32), tensor_scale=np.float32(1))
    assert "QNT-4" in t.rules((3,)) and "QNT-4" not in t.rules((4,))
    assert not {"QNT-11", "SCL-9"} & set(t.rules())
    nan = qs.quantize(x, "q8s.native.b4-f32", scales=np.array([np.nan, 1], np.float32))
    with qs.trace() as t:
        qs.dequantize(nan)
    assert "QNT-11" in t.rules((3,)) and "QNT-11" not in t.rules((4,))
    assert q.shape == nan.shape


def test_a_lookup_names_lookup_rules_and_no_rounding() -> None:
    with qs.trace() as t:
        q = qs.quantize(np.array([0.3, np.inf], np.float32), "q4s.native.lut-nf4.t-f32")
    assert "QNT-7" in t.rules((0,)) and "QNT-8" not in t.rules((0,))
    assert "QNT-8" in t.rules((1,)) and "QNT-7" not in t.rules((1,))
    assert not {"QNT-6", "VAL-6", "VAL-1"} & set(t.rules())
    with qs.trace() as t:
        qs.dequantize(q)
    assert not {"VAL-1", "VAL-12"} & set(t.rules())


def test_nothing_is_recorded_outside_a_trace() -> None:
    with qs.trace() as t:
        pass
    qs.encode(np.zeros(3, np.float32), "e2m1")
    assert t.rules() == ()


def test_traces_nest() -> None:
    with qs.trace() as outer:
        with qs.trace() as inner:
            qs.encode(np.zeros(1, np.float32), "e2m1")
        qs.decode(np.zeros(1, np.uint8), "e2m1")
    assert "VAL-6" in inner.rules() and "VAL-12" not in inner.rules()
    assert "VAL-12" in outer.rules() and "VAL-6" not in outer.rules()
