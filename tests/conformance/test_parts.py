"""The wire, the spec's texts, patterns as text, and the worker's protocol."""

import io
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from quantspec import SCALES, Scheme
from quantspec_conformance import matrix, patterns, wire
from quantspec_conformance.adapters.reference import ReferenceAdapter, SharedReference
from quantspec_conformance.cases import data, plans
from quantspec_conformance.chain import STEPS, perform
from quantspec_conformance.compare import EXPECTED, compare
from quantspec_conformance.errors import DamagedError
from quantspec_conformance.messages import batch_of, message_of, result_of, results_of
from quantspec_conformance.spec import rule_line, rules, spec_root
from quantspec_conformance.worker import serve

from .conftest import ROOT


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_arrays_cross_the_wire_bit_for_bit(dtype: str, shape: tuple[int, ...]) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    raw = np.random.default_rng(0).integers(0, 256, int(np.prod(shape)) * kind.itemsize, np.uint8)
    array = np.frombuffer(raw.tobytes(), kind).reshape(shape)
    found = wire.unpack_array(wire.read(wire.write({"a": wire.pack_array(array)}))["a"])
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"\xff\xfe", b"null"])
def test_lines_that_are_no_messages(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.read(line)


@pytest.mark.parametrize("array", [None, [], ["float32", [2], "AAAA"], ["object", [0], ""], ["uint8", [1], "!"]])
def test_what_is_no_array_on_the_wire(array: Any) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack_array(array)


def test_batches_and_results_cross_the_wire() -> None:
    for plan in plans(matrix.select(["q4s.*_1.lut-nf4.b*-ue4m3.t-f16"])):
        batch = data(plan, 3)
        again = batch_of(wire.read(wire.write(message_of(batch, 7))))
        for scheme in plan.schemes:
            expected = perform(SharedReference(), scheme, batch)
            answer = results_of(wire.read(wire.write(result_of(perform(ReferenceAdapter(), scheme, again)))))
            outcome = compare(expected, answer, scheme, plan.shape)
            assert outcome.status in EXPECTED, outcome


def test_the_shared_reference_answers_as_the_reference_does() -> None:
    for plan in plans(matrix.select(["e3m2.*.b*-f16", "q8f.*lut*.t-ue8m0"])):
        batch, shared = data(plan, 0), SharedReference()
        for scheme in plan.schemes:
            expected = result_of(perform(ReferenceAdapter(), scheme, batch))
            assert result_of(perform(shared, scheme, batch)) == expected


def test_every_planned_step_exists() -> None:
    assert {step for plan in plans(matrix.select(["q8s.*"])) for step in plan.steps} <= set(STEPS)


def test_a_worker_answers_over_its_streams() -> None:
    plan = next(iter(plans(matrix.select(["e2m1.packed_u32_0.t-f32"]))))
    lines = [{"op": "hello", "device": "reference"}, message_of(data(plan, 0), 5), {"op": "stop"}]
    answers: list[dict[str, Any]] = []
    code = serve(io.BytesIO(b"".join(map(wire.write, lines))), answers.append)
    assert code == 0
    assert [answer["op"] for answer in answers] == ["hello", "result"]
    assert answers[1]["id"] == 5
    json.dumps(answers)
    with pytest.raises(wire.WireError, match="unexpected request 'case'"):
        serve(io.BytesIO(wire.write(lines[1])), answers.append)


def test_spec_root_is_the_checkout_first_and_the_wheels_copy_second(tmp_path: Path) -> None:
    assert spec_root() == ROOT / "spec"
    wheel = tmp_path / "site-packages" / "quantspec_conformance"
    (wheel / "spec" / "rules").mkdir(parents=True)
    (tmp_path / "spec" / "rules").mkdir(parents=True)
    assert spec_root(wheel) == wheel / "spec"
    with pytest.raises(DamagedError, match="the spec is missing"):
        spec_root(tmp_path / "elsewhere" / "quantspec_conformance")


def test_rule_texts_are_read_and_damage_is_found(tmp_path: Path) -> None:
    assert rule_line("VAL-7") == "VAL-7 Ties go to the even code"
    assert rule_line("XXX-1") == "XXX-1"
    assert rules()["QNT-5"].level == "MUST"
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "a.toml").write_text("[[rule]]\nid = 'VAL-1'\n")
    with pytest.raises(DamagedError, match="not a file of rules"):
        rules(tmp_path)


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (0x3FE00000, "+1.75"),
        (0x80000000, "-0"),
        (0x3DCCCCCD, "+0.1 (0x1.99999ap-4)"),
        (0x00000001, "+1.40129846e-45 (0x1p-149)"),
        (0x7F800000, "+Inf"),
        (0xFF800000, "-Inf"),
        (0x7FC00000, "NaN"),
        (0xFFC00001, "NaN (sign 1, payload 0x400001)"),
    ],
)
def test_numbers_as_text(bits: int, text: str) -> None:
    assert patterns.number(bits) == text


def test_codes_as_text() -> None:
    scheme = Scheme.parse("e2m1.native.t-f32")
    assert patterns.value_code(0x0D, scheme) == "0x0D  1|10|1  -3"
    assert patterns.value_code(0xA5, scheme) == "0xA5  not a code of e2m1"
    assert patterns.value_code(0xF9, Scheme.parse("q4s.native.t-f32")) == "0xF9  1001  -7"
    assert patterns.scale_code(0x7F, SCALES["ue8m0"]) == "0x7F  01111111  +1"
    assert patterns.scale_code(0x80, SCALES["ue4m3"]) == "0x80  not a code of ue4m3"
    assert patterns.scale_code(0x38, SCALES["ue4m3"]) == "0x38  0111|000  +1"
    assert patterns.output_pattern(0x7E01, "f16") == "0x7E01  0|11111|1000000001  NaN, not the canonical one"
