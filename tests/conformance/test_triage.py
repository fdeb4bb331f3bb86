"""From a failure to its cause: blocks name the rule and the element, replay reproduces, shrink ends small and stays honest."""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quantspec_conformance.doccases import load
from quantspec_conformance.errors import DeviceError, UsageError
from quantspec_conformance.examples import Tensor
from quantspec_conformance.families import legal_codes
from quantspec_conformance.implementations.errors import ImplementationError
from quantspec_conformance.implementations.guard import Guard
from quantspec_conformance.implementations.law import Law, tell
from quantspec_conformance.implementations.methods import MethodImplementation
from quantspec_conformance.protocol.messages import (
    Answer,
    Hello,
    Identity,
    Implementation,
    Ok,
    Rejected,
    Request,
    Unsupported,
)
from quantspec_conformance.resultset.record import CaseRecord
from quantspec_conformance.suite.case import CASE_ID, Case, Refusal, features_of
from quantspec_conformance.suite.doc import doc_cases
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.suite.outcome import CaseResult, SuiteMismatch
from quantspec_conformance.triage.block import block_record, failure_block, failure_json
from quantspec_conformance.triage.diff import diff_runs
from quantspec_conformance.triage.element import explain_case
from quantspec_conformance.triage.find import find_case
from quantspec_conformance.triage.frame import input_scheme
from quantspec_conformance.triage.list import list_lines
from quantspec_conformance.triage.replay import index_of, replay
from quantspec_conformance.triage.show import show_lines
from quantspec_conformance.triage.shrink import Shrunk, shrink, shrunk_id

from ..fakes import ClaimsTooMuch, DirtyPadding, HighNibbleFirst, Liar, NanPayload, StaleScale, TiesToZero
from ..strategies import PROPERTY

FEW = settings(PROPERTY, max_examples=40)
ADDRESS = "py:liar.py:Liar"


# ---------------------------------------------------------------- cases and liars


def made(op: str, words: Mapping[str, str], name: str = "case", /, **arrays: npt.ArrayLike) -> Case:
    """A case with the law's answer."""
    request = Request(op, dict(words), {key: Tensor.of(np.asarray(array)) for key, array in arrays.items()})
    told = tell(request, intermediates=True)
    common = Case(
        id=f"made.{op}.{name}", title="Made for a test", op=op, level=0, words=words, inputs=request.tensors,
        rules=told.rules, features=features_of(request),
    )  # fmt: skip
    if isinstance(told.answer, Rejected):
        refusal = Refusal(told.answer.kind, told.answer.rule, told.answer.argument)
        return replace(common, kind="negative", refusal=refusal)
    assert isinstance(told.answer, Ok), told.answer
    return replace(common, outputs=told.answer.tensors, told=told.answer.words, intermediates=told.intermediates)


def quarters(shape: tuple[int, ...], seed: int = 0) -> npt.NDArray[np.float32]:
    """Multiples of 1/4 up to 6, row by row times powers of two: ties are among them."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-24, 25, shape) / 4 * 2.0 ** rng.integers(-3, 4, (*shape[:-1], 1))
    return np.asarray(numbers, np.float32)


Lie = Callable[[Request, Ok], Ok]


class Lying(Law):
    """The law, until a function changes what it answers; counts what it is asked."""

    def __init__(self, lie: Lie) -> None:
        self.lie = lie
        self.asked = 0

    def handle(self, request: Request) -> Answer:
        self.asked += 1
        answer = super().handle(request)
        return self.lie(request, answer) if isinstance(answer, Ok) else answer


def changed(answer: Ok, part: str, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Ok:
    """An answer with other patterns in one part."""
    if part not in answer.tensors:
        return answer
    tensor = answer.tensors[part]
    array = change(tensor.array().copy())
    return Ok({**answer.tensors, part: Tensor.of(np.asarray(array, tensor.array().dtype))}, answer.words)


def old(liar: Liar) -> Implementation:
    """A liar of the matrix behind the protocol."""
    return Guard(MethodImplementation(liar), type(liar).__name__)


def scale_one_up(request: Request, answer: Ok) -> Ok:
    """Stores the next larger block scale where none is needed: raw is the scale already."""
    raw = tell(request, intermediates=True).intermediates.get("raw")
    if request.op != "quantize" or raw is None or raw.shape != answer.tensors["scale_codes"].shape:
        return answer
    exact = np.array([pattern and pattern & 0x7FFFFF == 0 for pattern in raw.patterns]).reshape(raw.shape)
    return changed(answer, "scale_codes", lambda codes: np.where(exact, codes + 1, codes))


def no_negative_zero(request: Request, answer: Ok) -> Ok:
    """Encodes -0 as +0."""
    return (
        changed(answer, "codes", lambda codes: np.where(codes == 0x08, 0, codes)) if request.op == "encode" else answer
    )


@dataclass(frozen=True)
class Seeded:
    """A liar, a case on which it lies, and what triage must find."""

    liar: Callable[[], Implementation]
    case: Case
    rule: str
    blocks: int
    nonzero: int


def _exact_raws() -> npt.NDArray[np.float32]:
    x = quarters((8, 64))
    x[5, 32:] = np.float32(0.3)
    x[5, 40] = 6.0
    return x


def _nans() -> npt.NDArray[np.uint8]:
    codes = np.random.default_rng(1).integers(0, 0x7E, (6, 32)).astype(np.uint8)
    codes[3, 17] = 0x7F
    return codes


NIBBLES = np.random.default_rng(2).integers(0, 16, (5, 32)).astype(np.uint8)
SEEDED = {
    "ties-to-zero": Seeded(
        lambda: old(TiesToZero()), made("quantize", {"scheme": "e2m1.native.b32-ue8m0"}, x=quarters((8, 64))), "VAL-7", 1, 2
    ),
    "ties-to-zero-two-levels": Seeded(
        lambda: old(TiesToZero()), made("quantize", {"scheme": "e2m1.native.b2x16-ue4m3.t-f32"}, x=quarters((8, 64))),
        "VAL-7", 1, 2,
    ),
    "nibble-order": Seeded(
        lambda: old(HighNibbleFirst()),
        made("pack", {"scheme": "e2m1.packed_native_0.b16-ue8m0"}, codes=NIBBLES, scale_codes=np.full((5, 2), 127, np.uint8)),
        "PAK-4", 1, 1,
    ),
    "stale-scale": Seeded(
        lambda: old(StaleScale()), made("quantize", {"scheme": "q4s.native.b16-f16"}, x=quarters((4, 64))), "SCL-8", 2, 1
    ),
    "off-by-one-scale": Seeded(
        lambda: Lying(scale_one_up), made("quantize", {"scheme": "e2m1.native.b32-ue8m0"}, x=_exact_raws()), "SCL-8", 1, 1
    ),
    "dirty-padding": Seeded(
        lambda: old(DirtyPadding()),
        made("pack", {"scheme": "e2m1.packed_u32_0.t-f32"}, codes=NIBBLES[:, :13], tensor_scale_code=np.uint32(0x3F800000)),
        "PAK-3", 1, 0,
    ),
    "lost-negative-zero": Seeded(
        lambda: Lying(no_negative_zero),
        made("encode", {"value": "e2m1"}, x=np.where(np.arange(300) == 123, np.float32(-0.0), quarters((300,)) + np.float32(7))),
        "VAL-11", 1, 1,
    ),
    "nan-payload": Seeded(
        lambda: old(NanPayload()),
        made("dequantize", {"scheme": "e4m3.native.b16-f16"}, codes=_nans(), scale_codes=np.full((6, 2), 0x3C00, np.uint16)),
        "QNT-11", 1, 1,
    ),
}  # fmt: skip


# ---------------------------------------------------------------- the block, replay, shrink on seeded faults


@pytest.mark.parametrize("name", SEEDED)
def test_a_seeded_fault_is_named_replayed_and_shrunk(name: str) -> None:
    seeded = SEEDED[name]
    liar, case = seeded.liar(), seeded.case
    result = judge(case, liar.handle(case.request))
    assert result.bad
    assert result.rule == seeded.rule
    text = failure_block(case, result, ADDRESS)
    assert text.startswith(f"FAIL {case.id}   impl={ADDRESS}   rule {seeded.rule} ")
    assert result.mismatch is not None
    first, tensor = result.mismatch.first[0], case.outputs[result.mismatch.part]
    assert first.expected == tensor.patterns[first.flat] != first.actual
    assert f"{first.expected:X}  " in text
    assert f"{first.actual:X}  " in text
    assert repro_reproduces(text, [case], liar)
    small = shrink(case, liar, address=ADDRESS)
    honest(small, liar)
    assert small.result.rule == seeded.rule
    assert (small.blocks, small.nonzero_blocks <= 1) == (seeded.blocks, True)
    assert small.nonzero <= seeded.nonzero
    assert small.trips <= 40
    assert f"rule {seeded.rule} " in small.text()
    assert small.summary in small.text()


def repro_reproduces(text: str, cases: list[Case], liar: Implementation) -> bool:
    """The repro line, taken apart as a shell would, names a case and an address; run again it fails with the same block."""
    line = next(line for line in text.splitlines() if line.startswith(" repro"))
    words = shlex.split(line.removeprefix(" repro"))
    assert words[:2] == ["quantspec", "replay"]
    assert words[3:] == ["--impl", ADDRESS]
    lines, code = replay(find_case(cases, words[2]), liar, address=words[4])
    return code == 1 and "\n".join(lines) == text


def honest(small: Shrunk, liar: Implementation) -> None:
    """A shrunken case still fails on the liar, in the same way, and the law passes it."""
    assert CASE_ID.fullmatch(small.case.id)
    assert small.case.id.startswith("shrunk.")
    assert judge(small.case, Law().handle(small.case.request)).outcome == "pass"
    again = judge(small.case, liar.handle(small.case.request))
    assert again.bad
    assert again.outcome == small.result.outcome
    if again.mismatch is not None and small.result.mismatch is not None:
        assert (again.mismatch.part, again.mismatch.kind) == (small.result.mismatch.part, small.result.mismatch.kind)


def test_the_block_says_all_of_the_first_element() -> None:
    case = made(
        "quantize", {"scheme": "e2m1.native.b4-ue8m0"}, x=np.array([[0.5, 1, 2, 3], [1.75, 6, 1, 1]], np.float32)
    )
    liar = old(TiesToZero())
    lines = failure_block(case, judge(case, liar.handle(case.request)), ADDRESS).splitlines()
    found = {line[1:10].strip(): line[11:] for line in lines[2:]}
    assert found["where"] == "codes, element (1, 0), flat 4, block (1, 0)"
    assert found["input"] == "f32 0x3FE00000  0|01111111|11000000000000000000000  +1.75"
    assert found["scale"] == "0x3F800000  0|01111111|00000000000000000000000  +1  (block 0x7F of ue8m0; SCL-8)"
    assert found["expected"] == "0x04  0|10|0  +2"
    assert found["actual"] == "0x03  0|01|1  +1.5  1 code apart"
    assert found["pattern"].startswith("1 of 8 entries of codes differ; VAL-7 fires for every differing element")
    assert "VAL-7" in found["rules"].split()


def test_the_json_form_has_the_same_fields() -> None:
    for seeded in SEEDED.values():
        result = judge(seeded.case, seeded.liar().handle(seeded.case.request))
        record = block_record(seeded.case, result, ADDRESS)
        written = json.loads(json.dumps(failure_json(seeded.case, result, ADDRESS)))
        assert set(written) == set(type(record).__dataclass_fields__)
        for entry in written["entries"]:
            assert entry["expected_text"] in record.text()
            assert entry["actual_text"] in record.text()


@FEW
@given(st.integers(0, 4095), st.integers(0, 7), st.sampled_from(["codes", "scale_codes"]))
def test_a_flipped_bit_anywhere_is_located(flat: int, bit: int, part: str) -> None:
    case = FLIPPED
    flat %= len(case.outputs[part].patterns)

    def flip(request: Request, answer: Ok) -> Ok:
        def at(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            array.reshape(-1)[flat : flat + 1] ^= array.dtype.type(1 << bit)
            return array

        return changed(answer, part, at)

    liar = Lying(flip)
    result = judge(case, liar.handle(case.request))
    assert result.mismatch is not None
    assert (result.mismatch.part, [each.flat for each in result.mismatch.first]) == (part, [flat])
    assert f"flat {flat}" in failure_block(case, result, ADDRESS)
    liar.asked = 0
    small = shrink(case, liar)
    honest(small, liar)
    assert small.nonzero_blocks <= 1
    assert small.nonzero <= 1
    assert small.trips <= 60


FLIPPED = made("quantize", {"scheme": "q8s.native.b2x16-ue8m0"}, "flip", x=quarters((16, 64)))


@FEW
@given(st.integers(0, 15), st.integers(0, 22), st.sampled_from(["e2m1", "q4s", "q4f"]))
def test_a_flipped_bit_of_one_code_shrinks_to_one_element(code: int, bit: int, value: str) -> None:
    """A table with one wrong bit: the fault follows the value, so one element of one block is left."""
    codes = np.random.default_rng(3).integers(0, 16, 512).astype(np.uint8)
    legal = legal_codes(input_scheme_of(value))
    codes = legal[codes % len(legal)].reshape(8, 64)
    wrong = legal[code % len(legal)]
    codes[4, 33] = wrong
    case = made(
        "dequantize",
        {"scheme": f"{value}.native.b32-f32"},
        codes=codes,
        scale_codes=np.full((8, 2), 0x40490FDB, np.uint32),
    )

    def flip(request: Request, answer: Ok) -> Ok:
        hit = np.where(request.tensors["codes"].array() == wrong, np.uint32(1 << bit), np.uint32(0))
        return changed(answer, "y", lambda y: (y.view(np.uint32) ^ hit).view(np.float32))

    liar = Lying(flip)
    small = shrink(case, liar)
    honest(small, liar)
    assert (small.blocks, small.elements) == (1, 1)
    assert small.case.inputs["codes"].patterns == (int(wrong),)
    assert small.case.inputs["scale_codes"].patterns == (0x3F800000,)


def input_scheme_of(value: str) -> Any:
    return input_scheme(made("decode", {"value": value}, codes=np.array([0], np.uint8)))


def test_a_slow_adapter_is_asked_few_times() -> None:
    """The bar: at 5 ms a request, far below 5 s. Counted in round trips."""
    case = made("quantize", {"scheme": "e2m1.native.b32-ue8m0"}, x=quarters((64, 256), seed=4))

    def one_input(request: Request, answer: Ok) -> Ok:
        """A wrong bit wherever the quotient is one number."""
        q = tell(request, intermediates=True).intermediates.get("q")
        hit = np.array([p == 0x40400000 for p in q.patterns]).reshape(q.shape) if q is not None else np.zeros((), bool)
        return changed(answer, "codes", lambda codes: np.where(hit, codes ^ 1, codes)) if hit.any() else answer

    liar = Lying(one_input)
    small = shrink(case, liar)
    honest(small, Lying(one_input))
    assert liar.asked == small.trips
    assert small.trips <= 25
    assert (small.blocks, small.nonzero) in ((1, 1), (1, 2))


# ---------------------------------------------------------------- shrink: what it refuses, and where it has to make do


def test_shrink_refuses_what_passes_or_is_not_supported() -> None:
    case = SEEDED["ties-to-zero"].case
    with pytest.raises(UsageError, match="nothing to shrink: pass"):
        shrink(case, Law())

    class Small(Law):
        def hello(self, hello: Hello) -> Identity:
            return replace(super().hello(hello), ops=("encode",))

    with pytest.raises(UsageError, match="does not support op:quantize"):
        shrink(case, Small())

    class Closed(Law):
        def hello(self, hello: Hello) -> Identity:
            raise ImplementationError("crash", "gone \x1b[31m")

    with pytest.raises(DeviceError, match=r"gone \\x1b"):
        shrink(case, Closed())


def test_shrink_works_alone_where_candidates_cannot_lie_side_by_side() -> None:
    """An implementation of one rank only: every candidate is asked for alone."""
    seeded = SEEDED["ties-to-zero"]
    inner = seeded.liar()

    class OneRank(Law):
        def handle(self, request: Request) -> Answer:
            return Unsupported("rank:3") if len(request.tensors["x"].shape) > 2 else inner.handle(request)

    small = shrink(seeded.case, OneRank())
    honest(small, inner)
    assert small.blocks == 1
    assert small.nonzero <= 2


def test_shrink_keeps_within_its_budget_and_says_so() -> None:
    seeded = SEEDED["ties-to-zero"]
    liar = Lying(lambda request, answer: changed(answer, "codes", lambda codes: np.where(codes == 3, 2, codes)))
    for budget in (1, 3, 7):
        small = shrink(seeded.case, liar, budget=budget)
        assert small.trips <= budget
        assert any("stopped after" in note for note in small.notes)
        honest(small, liar)


def test_shrink_does_not_slip_to_a_fault_of_zeros() -> None:
    """A liar with two faults: ties, and zeros. The case shows a tie; an all-zero tensor would show the other."""
    x = np.full((2, 32), 3, np.float32)
    x[:, 0], x[1, 7] = 6, 1.75

    def two(request: Request, answer: Ok) -> Ok:
        number = request.tensors["x"].array()
        wrong = (np.abs(number) == 1.75) | ~number.any()
        return changed(answer, "codes", lambda codes: np.where(wrong, codes ^ 7, codes))

    liar = Lying(two)
    small = shrink(made("quantize", {"scheme": "e2m1.native.b32-ue8m0"}, x=x), liar)
    honest(small, liar)
    assert (small.result.rule, small.notes) == ("VAL-7", ())
    assert 0x3FE00000 in small.case.inputs["x"].patterns


def test_shrink_does_not_slip_to_another_fault() -> None:
    """Two faults at once: the one that the case shows stays the one that is shrunk."""
    x = np.full((4, 32), 3, np.float32)
    x[2, 7] = 1.75
    x[:, 0] = 6
    case = made("quantize", {"scheme": "e2m1.native.b32-ue8m0"}, x=x)

    def two(request: Request, answer: Ok) -> Ok:
        ties = np.abs(request.tensors["x"].array()) == 1.75
        answer = changed(answer, "codes", lambda codes: np.where(ties, codes - 1, codes))
        return Ok({}, {}) if len(request.tensors["x"].patterns) == 2 else answer  # nothing at all for two elements

    small = shrink(case, Lying(two))
    honest(small, Lying(two))
    assert small.result.rule == "VAL-7"
    assert small.result.mismatch is not None
    assert small.result.mismatch.kind == "bits"


def test_shrink_of_a_crash_ends_at_what_crashes() -> None:
    x = quarters((4, 32))
    x[2, 9] = np.nan

    class Crashes(Law):
        def handle(self, request: Request) -> Answer:
            if np.isnan(request.tensors["x"].array()).any():
                raise ImplementationError("crash", "signal 11", "LLVM ERROR\x1b[0m")
            return super().handle(request)

    case = made("quantize", {"scheme": "e2m1.native.b32-ue8m0"}, x=x)
    small = shrink(case, Crashes(), address=ADDRESS)
    assert small.result.outcome == "crash"
    assert small.nonzero == 1
    assert "\x1b" not in small.text()


def test_shrink_of_a_refusal_that_is_missing() -> None:
    scheme = "q4s.packed_u32_1.b2x16-f16"
    case = made("quantize", {"scheme": scheme}, x=quarters((16,)))
    liar = old(ClaimsTooMuch())
    result = judge(case, liar.handle(case.request))
    assert result.outcome == "reject-missing"
    text = failure_block(case, result, ADDRESS)
    assert "reason    not refused; SCH-13" in text
    small = shrink(case, liar)
    honest(small, liar)
    assert small.case.refusal == case.refusal


def test_every_worked_example_shrinks_or_passes() -> None:
    """A liar that flips the first bit of the last part: whatever the operation, the shrunken case is honest."""

    def flip(request: Request, answer: Ok) -> Ok:
        def first(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            view = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
            view.reshape(-1)[:1] ^= view.dtype.type(1)
            return view.view(array.dtype)

        return changed(answer, list(answer.tensors)[-1], first) if answer.tensors else answer

    liar, shrunk = Lying(flip), 0
    for case in doc_cases(load()):
        if judge(case, liar.handle(case.request)).bad:
            honest(shrink(case, liar), liar)
            shrunk += 1
    assert shrunk > 200


def test_ids_of_shrunken_cases_are_ids() -> None:
    assert shrunk_id("enc.mxfp4.tie") == "shrunk.enc.mxfp4.tie"
    assert shrunk_id("shrunk.enc.mxfp4.tie") == "shrunk.enc.mxfp4.tie"
    assert CASE_ID.fullmatch(shrunk_id("a.b.c.d.e.f"))


# ---------------------------------------------------------------- replay


def test_replay_of_one_block_and_of_one_element() -> None:
    seeded = SEEDED["ties-to-zero"]
    liar = seeded.liar()
    result = judge(seeded.case, liar.handle(seeded.case.request))
    assert result.mismatch is not None
    place = result.mismatch.first[0].index
    lines, code = replay(seeded.case, liar, address=ADDRESS, block=(place[0], place[1] // 32))
    assert code == 1
    assert lines[1] == f" part      block ({place[0]}, {place[1] // 32}) alone"
    assert lines[-1].endswith(f"--block {place[0]},{place[1] // 32}")
    lines, code = replay(seeded.case, liar, address=ADDRESS, element=place)
    assert code == 1
    assert f" part      element {place} alone" in lines
    assert " part      given as the law chose them for the whole: scale_codes" in lines
    assert any(line.startswith(" pattern   1 of 1 entries") for line in lines)
    assert replay(seeded.case, Law(), element=(0, 1))[1] == 0


def test_replay_counts_flat_and_keeps_the_tensor_scale() -> None:
    case = made("quantize", {"scheme": "e2m1.native.b16-ue4m3.t-f32"}, x=quarters((4, 32)))
    lines, code = replay(case, Law(), block=(5,))
    assert (code, lines[0][:4]) == (0, "PASS")
    assert lines[1:] == [
        " part      block (2, 1) alone",
        " part      given as the law chose them for the whole: tensor_scale_code",
    ]
    record = json.loads(replay(case, Lying(lambda r, a: Ok({}, {})), block=(5,), as_json=True)[0][0])
    assert (record["kind"], record["repro"][-9:]) == ("missing", "--block 5")


@pytest.mark.parametrize(
    ("case", "options", "message"),
    [
        (SEEDED["ties-to-zero"].case, {"block": (9, 0)}, "a grid of"),
        (SEEDED["ties-to-zero"].case, {"element": (1,) * 3}, "a tensor of shape"),
        (SEEDED["ties-to-zero"].case, {"element": (1,), "block": (1,)}, "each alone"),
        (SEEDED["lost-negative-zero"].case, {"block": (1,)}, "no blocks"),
        (made("size", {"scheme": "q8s.native.t-f32", "shape": "2,3"}), {"element": (0,)}, "no elements to cut"),
        (made("reshape", {"scheme": "q8s.native.t-f32", "new_shape": "4"}, codes=np.zeros((2, 2), np.uint8),
              tensor_scale_code=np.uint32(0)), {"element": (0,)}, "not made of its parts"),
    ],
)  # fmt: skip
def test_replay_refuses_parts_that_are_none(case: Case, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replay(case, Law(), **options)


def test_indices_that_are_typed() -> None:
    assert index_of("3, 5", "--block") == (3, 5)
    assert index_of("()", "--block") == ()
    for text in ("", "-1", "1,,2", "\x1b", "1" * 30):
        with pytest.raises(UsageError, match="--block"):
            index_of(text, "--block")


def test_every_part_of_every_example_is_as_the_law_says() -> None:
    """Whatever can be cut passes on the law, and what is cut to one element gives the element of the whole."""
    cut = 0
    for case in doc_cases(load()):
        try:
            lines, code = replay(case, Law(), element=(0,))
        except UsageError:
            continue
        assert (code, lines[0][:4]) == (0, "PASS"), case.id
        cut += 1
    assert cut > 150


def test_unpack_and_split_are_cut_with_their_words() -> None:
    codes = np.array([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]], np.uint8)
    words = tell(Request("pack", {"scheme": "e2m1.packed_native_0.t-f32"}, {
        "codes": Tensor.of(codes), "tensor_scale_code": Tensor("u32", (), (0x3F800000,)),
    })).answer  # fmt: skip
    assert isinstance(words, Ok)
    case = made(
        "unpack", {"scheme": "e2m1.packed_native_0.t-f32", "shape": "3,4"}, words=words.tensors["words"].array(),
        tensor_scale_code=np.uint32(0x3F800000),
    )  # fmt: skip

    def swapped(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        even = codes.size // 2 * 2
        pairs = codes.reshape(-1)[:even].reshape(-1, 2)[:, ::-1].reshape(-1)
        return np.concatenate([pairs, codes.reshape(-1)[even:]]).reshape(codes.shape)

    swap = Lying(lambda request, answer: changed(answer, "codes", swapped))
    lines, code = replay(case, swap, element=(1, 2))
    assert code == 1
    assert " part      the unit 1:2, 2:4 that holds element (1, 2)" in lines
    small = shrink(case, swap)
    honest(small, swap)
    assert small.case.words["shape"] == "1,2"
    assert small.elements <= 1


# ---------------------------------------------------------------- find, list, show, explain


def test_find_case_names_what_is_near() -> None:
    cases = list(doc_cases(load()))
    assert find_case(cases, "doc.terms.encode").op == "encode"
    with pytest.raises(UsageError, match=r"no case 'doc\.terms\.encod'; near: .*doc\.terms\.encode"):
        find_case(cases, "doc.terms.encod")
    with pytest.raises(UsageError, match="encode-up-f32"):
        find_case(cases, "encode-up-f32")
    with pytest.raises(UsageError, match=r"\\x1b"):
        find_case(cases, "\x1b[31m")


def test_list_and_show_every_example() -> None:
    cases = list(doc_cases(load()))
    assert len(list_lines(cases)) == len(list_lines(cases, True)) == len(cases)
    assert json.loads(list_lines(cases, True)[0])["id"] == cases[0].id
    for case in cases:
        text = "\n".join(show_lines(case))
        assert text.startswith(case.id)
        assert all(rule in text for rule in case.rules)
        assert ("due        refused as" in text) == (case.refusal is not None)
    long = "\n".join(show_lines(SEEDED["ties-to-zero"].case))
    assert "request    run id=1 op=quantize scheme=e2m1.native.b32-ue8m0 x=f32:8x64:" in long
    assert "... and 496 more" in long
    assert max(map(len, long.splitlines())) < 2100


def test_explain_goes_from_the_input_to_the_code() -> None:
    case = made(
        "quantize", {"scheme": "e2m1.native.b4-ue8m0"}, x=np.array([[0.5, 1, 2, 3], [1.75, 6, 1, 1]], np.float32)
    )
    lines = explain_case(case, (1, 0))
    assert lines[1] == "element    (1, 0), block (1, 0)"
    starts = [line.split()[0] for line in lines[2 : lines.index("")]]
    assert starts == ["x", "amax", "raw", "s", "q", "v", "codes", "scale_codes"]
    assert any(line.startswith("q ") and "+1.75" in line and line.endswith("QNT-5") for line in lines)
    assert any(line.strip().startswith("VAL-7") for line in lines)
    assert explain_case(case, (4,)) == lines
    with pytest.raises(UsageError, match="an index of it"):
        explain_case(case, (2, 0))


def test_texts_of_an_adapter_are_bounded_and_printed_safe() -> None:
    case = SEEDED["ties-to-zero"].case
    result = CaseResult(case.id, "error", "\x1b[31m" + "line\n" * 5000, rule="\x1b[0m", rules=("\u202e",))
    text = failure_block(case, result, "py:\x1b:X")
    assert len(text) < 3000
    assert not any(char in text for char in "\x1b\u202e")
    strange = CaseResult(case.id, "fail", "x", "SCL-22", ("SCL-22",), SuiteMismatch("zz\x1b", "surplus", "x"))
    assert "\x1b" not in failure_block(case, strange, ADDRESS)


# ---------------------------------------------------------------- two runs


def test_diff_groups_what_changed() -> None:
    def run(**outcomes: str) -> list[CaseResult]:
        rows = {name: text.partition(":") for name, text in outcomes.items()}
        return [CaseResult(f"a.b.{name}", outcome, digest=digest) for name, (outcome, _, digest) in rows.items()]

    a = run(
        same="pass",
        fixed="fail:1",
        broken="pass",
        bits="fail:1",
        still="fail:1",
        gone="pass",
        less="pass",
        more="unsupported",
    )
    b = run(
        same="pass",
        fixed="pass",
        broken="crash",
        bits="fail:2",
        still="fail:1",
        new="pass",
        less="unsupported",
        more="pass",
    )
    lines, code = diff_runs(a, b)
    assert code == 1
    heads = {line.split()[0]: line for line in lines if not line.startswith(" ")}
    assert list(heads) == ["broken", "changed", "lost", "unsupported", "fixed", "supported", "added"]
    assert "  a.b.bits  fail -> fail" in lines
    assert diff_runs(a, a) == (["the same: no case differs"], 0)
    assert diff_runs(run(x="fail:1"), run(x="pass"))[1] == 0
    assert json.loads(diff_runs(a, b, as_json=True)[0][0])["worse"] is True
    records = [CaseRecord.of(row) for row in b]
    assert diff_runs(a, records) == (lines, 1)
