"""Shrinking: large cases in bounded work, ends at a local minimum, and a part cut out of the known results is as the law says."""

import math
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.law import Law, tell
from quantspec_conformance.protocol.messages import Answer, Ok, Request
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.triage import crop as crop_module
from quantspec_conformance.triage import probe
from quantspec_conformance.triage.crop import boxed, crop
from quantspec_conformance.triage.frame import MAIN, frame_of
from quantspec_conformance.triage.local import local_outputs
from quantspec_conformance.triage.probe import Search
from quantspec_conformance.triage.shorter import settle
from quantspec_conformance.triage.shrink import Shrunk, shrink

from .test_triage import ADDRESS, Lie, Lying, changed, honest, made, quarters

Array = npt.NDArray[Any]
LARGE = (128, 1024)


def at(part: str, flat: int, bit: int = 0) -> Lie:
    """One bit wrong at one place of memory, whatever lies there."""

    def flip(array: Array) -> Array:
        view = array.view(f"u{array.dtype.itemsize}").reshape(-1)
        view[flat : flat + 1] ^= view.dtype.type(1 << bit)
        return array

    return lambda request, answer: changed(answer, part, flip)


def where(part: str, wrong: Callable[[Request], Array]) -> Lie:
    """The lowest bit wrong wherever a function of the request says so."""

    def flip(request: Request, answer: Ok) -> Ok:
        return changed(answer, part, lambda array: np.where(wrong(request), array ^ 1, array))

    return flip


class Counting(Lying):
    """A liar that counts the elements it is asked for."""

    def __init__(self, lie: Lie) -> None:
        super().__init__(lie)
        self.elements = 0

    def handle(self, request: Request) -> Answer:
        self.elements += max(len(tensor.patterns) for tensor in request.tensors.values())
        return super().handle(request)


# ---------------------------------------------------------------- work on large cases


def quantized(scheme: str) -> Case:
    return made("quantize", {"scheme": scheme}, "large", x=quarters(LARGE))


def dequantized(scheme: str) -> Case:
    made_of = quantized(scheme).outputs
    return made("dequantize", {"scheme": scheme}, "large", **{name: t.array() for name, t in made_of.items()})


def packed(scheme: str) -> Case:
    made_of = quantized(scheme).outputs
    return made("pack", {"scheme": scheme}, "large", **{name: t.array() for name, t in made_of.items()})


PLACES = {
    "first": (quantized, "e2m1.native.b32-ue8m0", "codes", 0),
    "middle": (quantized, "e2m1.native.b32-ue8m0", "codes", 74_898),
    "last": (quantized, "e2m1.native.b32-ue8m0", "codes", 128 * 1024 - 1),
    "scale": (quantized, "q8s.native.b32-f16", "scale_codes", 2_340),
    "two-levels": (quantized, "e2m1.packed_native_0.b16-ue4m3.t-f32", "codes", 74_898),
    "number": (dequantized, "q4s.packed_u32_1.b2x16-f16", "y", 74_898),
    "word": (packed, "e2m1.packed_native_0.b32-ue8m0", "words", 37_449),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_fault_at_one_place_of_a_large_tensor_takes_bounded_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in the elements that the implementation and the law are asked for, not in time: so many times the case."""
    make, scheme, part, flat = PLACES[name]
    case, told = make(scheme), 0

    def counted(request: Request, *, intermediates: bool = False) -> Any:
        nonlocal told
        told += max(len(tensor.patterns) for tensor in request.tensors.values())
        return tell(request, intermediates=intermediates)

    for module in (crop_module, probe):
        monkeypatch.setattr(module, "tell", counted, raising=False)
    liar = Counting(at(part, flat))
    small = shrink(case, liar, address=ADDRESS)
    honest(small, liar)
    assert small.nonzero_blocks <= 1
    assert small.nonzero <= 1
    assert small.trips <= 32
    assert liar.elements <= 11 * math.prod(LARGE) + (1 << 16)
    assert told <= 8 * math.prod(LARGE)
    assert not any("stopped after" in note for note in small.notes)
    output = small.case.outputs[part]
    assert len(output.patterns) <= flat + max(small.case.inputs[MAIN[case.op]].shape[-1], 1)
    minimal(small, at(part, flat))


def test_a_fault_that_takes_too_much_work_ends_in_time_and_says_so() -> None:
    """A fault of all elements together: nothing can go, so what may be asked for bounds the search."""
    case = made("encode", {"value": "e2m1"}, x=quarters((64, 64)) + np.float32(7))
    whole = len(case.inputs["x"].patterns)
    liar = Counting(where("codes", lambda request: np.array(len(request.tensors["x"].patterns) == whole)))
    search = Search(liar, case, 1000)
    assert search.begin().bad
    search.most_work = 8 * case.elements
    settle(search)
    assert liar.elements <= 8 * case.elements
    small = shrink(case, liar, budget=4)
    assert any("stopped after" in note for note in small.notes)


# ---------------------------------------------------------------- a local minimum


def smaller(case: Case) -> list[Case]:
    """The case with each axis cut further, alone: half of it, and the least that can go, from either end."""
    frame = frame_of(case)
    assert frame is not None
    found = []
    for axis, size in enumerate(frame.shape):
        extent = frame.block[axis] if size > frame.block[axis] else 1
        half = -(-size // extent) // 2 * extent
        for part in (slice(0, size - half), slice(half, size), slice(0, size - 1), slice(extent, size)):
            box = [slice(0, n) for n in frame.shape]
            box[axis] = part
            if 0 <= part.start < part.stop and size > 1:
                cut = boxed(case, frame, tuple(box))
                found += [cut] if cut is not None else []
    return found


def minimal(small: Shrunk, lie: Lie) -> None:
    """No axis can be cut further and the case still fail in the same way."""
    liar, wanted = Lying(lie), small.result.mismatch
    assert wanted is not None
    for case in smaller(small.case):
        result = judge(case, liar.handle(case.request), keep=64)
        found = result.mismatch
        alike = found is not None and (found.part, found.kind) == (wanted.part, wanted.kind)
        rule = small.result.rule in (result.rule, *result.rules)
        assert not (alike and rule), f"{small.summary}: still fails as {case.inputs[MAIN[case.op]].shape}"


def ties(request: Request) -> Array:
    """Where the quotient is half way between two codes of E2M1."""
    q = tell(request, intermediates=True).intermediates.get("q")
    assert q is not None
    return np.isin(np.abs(q.array()), np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], np.float32))


def in_tail(request: Request) -> Array:
    """The elements of a block that the end of the axis cuts short, where they are not zero."""
    x = request.tensors["x"].array()
    columns = np.arange(x.shape[-1]) if x.ndim else np.zeros((), int)
    tail: Array = (x != 0) & (x.shape[-1] % 32 != 0) & (columns >= x.shape[-1] // 32 * 32)
    return tail


def wide(request: Request) -> Array:
    """The last element of a line of two or more."""
    x = request.tensors["x"].array()
    columns = np.arange(x.shape[-1])
    last: Array = np.asarray((columns == x.shape[-1] - 1) & (x.shape[-1] >= 2))
    return last


MX = "e2m1.native.b32-ue8m0"
PLANTED: dict[str, tuple[Lie, tuple[int, ...], str, int]] = {
    "place-in-the-middle": (at("codes", 700), (16, 64), MX, 768),
    "place-in-a-tail": (at("codes", 47), (1, 50), MX, 48),
    "tie": (where("codes", ties), (16, 64), MX, 2),
    "scale-at-a-place": (at("scale_codes", 5), (8, 64), MX, 256),
    "scale-wherever": (where("scale_codes", lambda request: np.array(True)), (8, 64), MX, 1),
    "tail-of-a-block": (where("codes", in_tail), (4, 77), MX, 1),
    "narrower-than-its-block": (where("codes", wide), (1, 19), MX, 2),
    "two-axes": (at("codes", 130), (16, 64), "q8s.native.b2x16-f16", 160),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_shrunken_case_is_a_local_minimum(name: str) -> None:
    lie, shape, scheme, most = PLANTED[name]
    case = made("quantize", {"scheme": scheme}, name, x=quarters(shape, seed=5))
    small = shrink(case, Lying(lie), address=ADDRESS)
    honest(small, Lying(lie))
    minimal(small, lie)
    assert small.nonzero_blocks <= 1
    assert small.elements <= most


def test_the_check_of_a_local_minimum_catches_a_liar() -> None:
    """A shrink that ended too early: the case itself, said to be the smallest."""
    lie = PLANTED["narrower-than-its-block"][0]
    case = made("quantize", {"scheme": MX}, x=quarters((1, 19), seed=5))
    small = shrink(case, Lying(lie))
    early = replace(small, case=case, result=judge(case, Lying(lie).handle(case.request)))
    with pytest.raises(AssertionError, match="still fails"):
        minimal(early, lie)


def test_a_part_of_words_is_cut_by_blocks() -> None:
    """Eight codes to a word, blocks of two: a scale far down the axis of the words is alone in the end."""
    scales = np.full((20, 1), 0x3C00, np.uint16)
    scales[17] = 0x3800
    case = made(
        "to_bytes", {"scheme": "q4s.packed_u32_1.b2x16-f16"}, codes=np.ones((40, 4), np.uint8), scale_codes=scales
    )

    def lie(request: Request, answer: Ok) -> Ok:
        return changed(answer, "bytes", lambda array: np.where(array == 0x38, 0x39, array))

    small = shrink(case, Lying(lie))
    honest(small, Lying(lie))
    minimal(small, lie)
    assert (small.blocks, small.elements) == (1, 1)


# ---------------------------------------------------------------- parts without the law


CUT = {
    "encode": made("encode", {"value": "e2m1"}, x=quarters((6, 10))),
    "quantize": made("quantize", {"scheme": MX}, x=quarters((6, 100))),
    "quantize-2d": made("quantize", {"scheme": "q4s.packed_u32_1.b2x16-f16"}, x=quarters((7, 40))),
    "quantize-under-a-scale": made(
        "quantize", {"scheme": "e2m1.native.b16-ue4m3.t-f32"}, x=quarters((6, 40)), tensor_scale_code=np.uint32(0x3C000000)
    ),
    "dequantize": made(
        "dequantize", {"scheme": "q8s.native.b2x16-f16"}, codes=np.arange(7 * 40, dtype=np.uint8).reshape(7, 40) % 100,
        scale_codes=np.arange(0x3C00, 0x3C00 + 12, dtype=np.uint16).reshape(4, 3),
    ),
    "pack": made(
        "pack", {"scheme": "q4s.packed_u32_1.b2x16-f16"}, codes=np.arange(20 * 40, dtype=np.uint8).reshape(20, 40) % 7,
        scale_codes=np.full((10, 3), 0x3C00, np.uint16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_a_part_cut_out_of_the_known_is_as_the_law_says(name: str) -> None:
    """Every box of these sizes: where the part is said to be known, the law says the same bits."""
    case = CUT[name]
    frame = frame_of(case)
    assert frame is not None
    known = 0
    for stops in np.ndindex(*(min(size, 20) for size in frame.shape)):
        for starts in (
            (0,) * len(stops),
            tuple(extent if stop >= extent else 0 for stop, extent in zip(stops, frame.extents, strict=True)),
        ):
            ends = (
                min(start + 2 * stop + 2, size) for start, stop, size in zip(starts, stops, frame.shape, strict=True)
            )
            box = tuple(slice(start, end) for start, end in zip(starts, ends, strict=True))
            request = crop(case, frame, box)
            if request is None or any(part.start >= part.stop for part in box):
                continue
            due = local_outputs(case, frame, box, request.tensors)
            if due is not None:
                answer = tell(request).answer
                assert isinstance(answer, Ok)
                assert dict(answer.tensors) == due, box
                known += 1
    assert known > 3


def test_a_tensor_scale_that_the_whole_chose_is_not_known_for_a_part() -> None:
    case = made("quantize", {"scheme": "e2m1.native.b16-ue4m3.t-f32"}, x=quarters((4, 32)))
    frame = frame_of(case)
    assert frame is not None
    box = (slice(0, 1), slice(0, 16))
    assert local_outputs(case, frame, box, {"x": case.inputs["x"]}) is None
    assert local_outputs(case, frame, (slice(0, 1), slice(0, 5)), case.inputs) is None


def test_results_cut_wrongly_do_not_end_in_a_false_counterexample(monkeypatch: pytest.MonkeyPatch) -> None:
    """A liar among the parts: what it says is due is wrong, so the law is asked for every candidate."""

    def wrong(case: Case, frame: Any, box: Any, given: Any) -> dict[str, Tensor] | None:
        due = local_outputs(case, frame, box, given)
        if due is None or "codes" not in due:
            return due
        codes = due["codes"]
        return {**due, "codes": replace(codes, patterns=tuple(pattern ^ 1 for pattern in codes.patterns))}

    monkeypatch.setattr(probe, "local_outputs", wrong)
    lie = where("codes", ties)
    small = shrink(made("quantize", {"scheme": MX}, x=quarters((8, 64), seed=5)), Lying(lie), address=ADDRESS)
    honest(small, Lying(lie))
    assert (small.blocks, small.nonzero <= 2) == (1, True)


def test_the_repro_line_of_a_shrunken_case_gives_it_again() -> None:
    lie = at("codes", 700)
    case = made("quantize", {"scheme": MX}, x=quarters((16, 64), seed=5))
    small = shrink(case, Lying(lie), address=ADDRESS)
    line = next(line for line in small.text().splitlines() if line.startswith(" repro"))
    assert shlex.split(line.removeprefix(" repro")) == ["quantspec", "shrink", case.id, "--impl", ADDRESS]
    assert shrink(case, Lying(lie), address=ADDRESS).text() == small.text()


# ---------------------------------------------------------------- operations along an axis


@pytest.mark.parametrize(
    ("op", "words", "first"),
    [
        ("slice", {"axis": "0", "range": "3,14"}, "0,1"),
        ("take", {"axis": "0", "indices": "5,2,9"}, "0"),
        ("select", {"axis": "0", "index": "6"}, "0"),
    ],
)
def test_operations_along_an_axis_shrink_with_their_words(op: str, words: dict[str, str], first: str) -> None:
    scheme = "q8s.native.b32-f16"
    codes = np.random.default_rng(6).integers(0, 90, (16, 64)).astype(np.uint8)
    codes[5:7, 40] = 99
    case = made(op, {"scheme": scheme, **words}, codes=codes, scale_codes=np.full((16, 2), 0x3C00, np.uint16))

    def lie(request: Request, answer: Ok) -> Ok:
        return changed(answer, "codes", lambda array: np.where(array == 99, 98, array))

    small = shrink(case, Lying(lie))
    honest(small, Lying(lie))
    assert (small.blocks, small.nonzero, small.elements) == (1, 1, 1)
    assert next(text for name, text in small.case.words.items() if name in ("range", "indices", "index")) == first


def test_law_passes_every_part_that_is_asked_for() -> None:
    """The law itself never fails on a part, whichever way its results were found."""
    for case in CUT.values():
        frame = frame_of(case)
        assert frame is not None
        box = frame.box((0,) * len(frame.shape), (1,) * len(frame.shape))
        part = boxed(case, frame, box)
        assert part is not None
        assert judge(part, Law().handle(part.request)).outcome == "pass"
