"""One element of a case, step by step: from the input to the code and back, each quantity, then the rules in order."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from quantspec import QuantspecError

from ..entries import shown
from ..errors import UsageError
from ..examples import Tensor
from ..outside import printable
from ..patterns import binary32
from ..protocol.messages import Ok, Rejected
from ..spec import rule_line
from ..steptext import trace_lines
from ..suite.blame import SUMS
from ..suite.case import Case
from .anatomy import Anatomy
from .followed import case_steps
from .frame import Index, block_of, frame_of, index_at

__all__ = ["explain_case"]

#: Quantities between input and result -> the rules that make them.
STEPS = {
    "amax": "SCL-5",
    "raw": "SCL-6",
    "bounded": "SCL-10",
    "g": "SCL-14",
    "u": "SCL-12",
    "b": "SCL-14",
    "s": "SCL-14",
    "q": "QNT-5",
    "v": "VAL-12",
}


def explain_case(case: Case, index: Sequence[int] | None = None) -> list[str]:
    """The lines that explain one element of a case; its first where no index is given. UsageError for an index outside."""
    anatomy = Anatomy.of(case)
    place = _place(case, index)
    lines = [f"{case.id}  {case.title}", f"element    {place}" + _block(anatomy, place)]
    answer = anatomy.told.answer
    if isinstance(answer, Rejected):
        lines += [f"refused    {answer.kind}: {answer.message}", "", f"  {rule_line(answer.rule)}"]
        return [printable(line) for line in lines]
    for name, tensor in case.inputs.items():
        lines += _row(anatomy, name, tensor, place, due=False)
    for name in STEPS:
        if name in anatomy.told.intermediates:
            lines += _step(anatomy, name, anatomy.told.intermediates[name], place)
    steps = case_steps(anatomy, place) if isinstance(answer, Ok) else None
    if steps is not None:
        lines += ["", f"recipe     {steps.recipe}, amax {steps.amax}", *trace_lines(steps, indent=""), ""]
    if isinstance(answer, Ok):
        for name, tensor in answer.tensors.items():
            lines += _row(anatomy, name, tensor, place, due=True)
    return [printable(line) for line in (*lines, *_rules(anatomy, place))]


def _shape(case: Case) -> Index:
    """The shape that an element is looked up in: of the tensor that goes in, else of what comes out."""
    frame = frame_of(case)
    if frame is not None:
        return frame.shape
    return next((t.shape for t in [*case.outputs.values(), *case.inputs.values()]), ())


def _place(case: Case, index: Sequence[int] | None) -> Index:
    shape = _shape(case)
    if 0 in shape:
        raise UsageError(f"{case.id}: a tensor of shape {shape} has no element to explain")
    place = (0,) * len(shape) if index is None else tuple(index)
    if len(place) == 1 and len(shape) != 1 and 0 <= place[0] < math.prod(shape):
        place = index_at(place[0], shape)
    if len(place) != len(shape) or any(not 0 <= i < size for i, size in zip(place, shape, strict=True)):
        typed = ",".join(map(str, place)) or "()"
        raise UsageError(f"{case.id}: index {typed}: the tensor has shape {shape}; allowed: an index of it")
    return place


def _block(anatomy: Anatomy, place: Index) -> str:
    blocks = "scheme" in anatomy.case.words and anatomy.case.op not in SUMS
    block = block_of(anatomy.scheme, place) if blocks else None
    return "" if block is None else f", block {block}"


def _own(anatomy: Anatomy, tensor: Tensor, place: Index) -> Index | None:
    """Where in a tensor of elements, of blocks, or of one entry the element has its entry."""
    frame = frame_of(anatomy.case)
    if tensor.shape == ():
        return ()
    if frame is not None and tensor.shape == frame.shape:
        return place
    block = block_of(anatomy.scheme, place) if frame is not None and len(place) == len(frame.shape) else None
    if (
        block is not None
        and len(block) == len(tensor.shape)
        and all(i < n for i, n in zip(block, tensor.shape, strict=True))
    ):
        return block
    return None


def _pattern(tensor: Tensor, place: Index) -> int:
    return tensor.patterns[int(np.ravel_multi_index(place, tensor.shape)) if tensor.shape else 0]


def _row(anatomy: Anatomy, name: str, tensor: Tensor, place: Index, *, due: bool) -> list[str]:
    """The entry of an input or a result."""
    own = place if due and tensor.shape == _shape(anatomy.case) else _own(anatomy, tensor, place)
    if own is None or name == "table":
        return []
    scheme = anatomy.out if due else anatomy.scheme
    return [f"{name:18s} {tensor.dtype:4s} {shown(_pattern(tensor, own), name, scheme, tensor.dtype)}"]


def _step(anatomy: Anatomy, name: str, tensor: Tensor, place: Index) -> list[str]:
    own = _own(anatomy, tensor, place)
    return [] if own is None else [f"{name:18s} f32  {binary32(_pattern(tensor, own))}   {STEPS[name]}"]


def _rules(anatomy: Anatomy, place: Index) -> Iterator[str]:
    try:
        fired = anatomy.told.trace.rules(place)
    except QuantspecError:
        fired = anatomy.told.rules
    yield ""
    yield "rules, in the order in which they fixed it"
    yield from (f"  {rule_line(rule)}" for rule in fired)
