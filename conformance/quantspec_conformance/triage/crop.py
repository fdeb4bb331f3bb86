"""Parts of a case as cases of their own: a box of elements with the scales of its blocks, answered by the law anew."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import QuantspecError, Scheme
from quantspec.words import stored_axes, words_shape

from ..examples import DTYPES, Tensor
from ..implementations.law import tell
from ..protocol.messages import Ok, Rejected, Request
from ..suite.case import Case, Refusal, features_of
from .along import Box, along
from .frame import MAIN, Frame

__all__ = [
    "GRIDS",
    "TENSOR_LEVEL",
    "Box",
    "answered",
    "boxed",
    "crop",
    "cut",
    "cut_error",
    "grid_of",
    "patterns_of",
    "tensor_of",
    "words_box",
]


Patterns = npt.NDArray[Any]
GRIDS = ("scales", "scale_codes")
TENSOR_LEVEL = ("tensor_scale", "tensor_scale_code")
#: Tensors that are no operands of a chain.
NAMED = (*GRIDS, *TENSOR_LEVEL, "table", "levels", "words", "bytes")
#: What cannot be cut: its result is no part of the whole.
WHOLE = ("expand", "reshape")


def answered(
    case: Case, words: Mapping[str, str], inputs: Mapping[str, Tensor], *, intermediates: bool = True
) -> Case | None:
    """The case with another request, and what the law says to it. None where the law answers in another way than to the case.

    `intermediates`: with the quantities in between, which take longer than the answer.
    """
    request = Request(case.op, dict(words), dict(inputs))
    told = tell(request, intermediates=intermediates)
    report = tuple(feature for feature in ("report",) if feature in case.features)
    common = replace(
        case, words=request.words, inputs=request.tensors, rules=told.rules, features=(*features_of(request), *report)
    )
    match told.answer:
        case Ok(tensors, texts) if case.refusal is None:
            equal = dict.fromkeys(tensors, "bits")
            return replace(common, outputs=tensors, told=texts, equal=equal, intermediates=told.intermediates)
        case Rejected(kind, rule, argument) if case.refusal is not None:
            same = (kind, rule) == (case.refusal.kind, case.refusal.rule)
            return (
                replace(common, refusal=Refusal(kind, rule, argument if case.refusal.argument else ""))
                if same
                else None
            )
    return None


def boxed(case: Case, frame: Frame, box: Box, *, hold: bool = False) -> Case | None:
    """The elements of a box as a case. `hold`: scales that the whole tensor fixes are given, as the law chose them.

    None where the operation cannot be cut, and where the law refuses the part (an axis that no longer fits its words).
    """
    request = crop(case, frame, box, hold=hold)
    return None if request is None else answered(case, request.words, request.tensors)


def crop(case: Case, frame: Frame, box: Box, *, hold: bool = False) -> Request | None:
    """The request of a box, as `boxed`."""
    if case.op in WHOLE or case.op not in MAIN or any(name.startswith("codes_") for name in case.inputs):
        return None
    inputs = dict(case.inputs)
    if frame.scheme is None:
        name = MAIN[case.op]
        return Request(case.op, case.words, {**inputs, name: cut(inputs[name], box)})
    if case.op in ("unpack", "split"):
        return _reread(case, frame, frame.scheme, box)
    if hold and case.op == "quantize":
        inputs = _held(case, frame.scheme, inputs)
    words = along(case.op, case.words, box)
    return None if words is None else Request(case.op, words, _parts(inputs, frame.scheme, box))


def _held(case: Case, scheme: Scheme, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inputs with the scales that the law chose for the whole."""
    chosen = {name: case.outputs[name] for name in ("scale_codes", "tensor_scale_code") if name in case.outputs}
    if any(name in inputs for name in GRIDS):
        chosen.pop("scale_codes", None)
    if any(name in inputs for name in TENSOR_LEVEL):
        chosen.pop("tensor_scale_code", None)
    return {**inputs, **chosen}


def _parts(inputs: Mapping[str, Tensor], scheme: Scheme, box: Box) -> dict[str, Tensor]:
    """The elements of the box, and the scales of the blocks that it touches."""
    found = {}
    for name, tensor in inputs.items():
        if name in ("x", "codes"):
            found[name] = cut(tensor, box)
        elif name in GRIDS and scheme.block is not None and len(tensor.shape) == len(box):
            found[name] = cut(tensor, grid_of(scheme, box))
        elif name in NAMED or len(tensor.shape) > len(box):
            found[name] = tensor
        else:  # an operand, spread over the tensor
            own = zip(tensor.shape, box[len(box) - len(tensor.shape) :], strict=True)
            found[name] = cut(tensor, tuple(slice(0, 1) if size == 1 else part for size, part in own))
    return found


def _reread(case: Case, frame: Frame, scheme: Scheme, box: Box) -> Request | None:
    """Words or bytes of a box: read by the law, cut as codes, written again."""
    if case.refusal is not None or not {"codes"} <= set(case.outputs):
        return None
    known = words_box(scheme, frame.shape, box) if case.op == "unpack" else None
    if known is not None and case.inputs["words"].shape == words_shape(scheme, frame.shape):
        shape = ",".join(str(part.stop - part.start) for part in box)
        kept = _parts({name: tensor for name, tensor in case.inputs.items() if name != "words"}, scheme, box)
        return Request(case.op, {**case.words, "shape": shape}, {**kept, "words": cut(case.inputs["words"], known)})
    levels = {name: case.inputs.get(name) or case.outputs.get(name) for name in ("scale_codes", "tensor_scale_code")}
    given = {name: tensor for name, tensor in levels.items() if tensor is not None}
    parts = _parts({"codes": case.outputs["codes"], **given}, scheme, box)
    table = {name: tensor for name, tensor in case.inputs.items() if name == "table"}
    write = "pack" if case.op == "unpack" else "to_bytes"
    answer = tell(Request(write, {"scheme": case.words["scheme"]}, {**parts, **table})).answer
    if not isinstance(answer, Ok):
        return None
    shape = ",".join(map(str, parts["codes"].shape)) or "()"
    kept = {name: tensor for name, tensor in parts.items() if name in case.inputs}
    return Request(case.op, {**case.words, "shape": shape}, {**kept, **table, **answer.tensors})


def grid_of(scheme: Scheme, box: Box) -> Box:
    """The blocks that a box touches."""
    extents = scheme.extents(len(box))
    return tuple(slice(part.start // e, -(-part.stop // e)) for part, e in zip(box, extents, strict=True))


def words_box(scheme: Scheme, shape: tuple[int, ...], box: Box) -> Box | None:
    """The words that hold a box; None where they hold more than it. Rules PAK-2, PAK-3."""
    if not box:
        return None
    count, axes = scheme.store.codes_per_word(scheme.value.bits), stored_axes(scheme, len(box))
    last, size = box[axes[-1]], shape[axes[-1]]
    if last.start % count or (last.stop % count and last.stop != size):
        return None
    return (*(box[axis] for axis in axes[:-1]), slice(last.start // count, -(-last.stop // count)))


def cut(tensor: Tensor, box: Box) -> Tensor:
    """The entries of a box."""
    return tensor_of(tensor.dtype, patterns_of(tensor)[box])


def patterns_of(tensor: Tensor) -> Patterns:
    """The patterns of a tensor as unsigned numbers."""
    return np.array(tensor.patterns, f"u{DTYPES[tensor.dtype][0] // 2}").reshape(tensor.shape)


def tensor_of(dtype: str, patterns: Patterns) -> Tensor:
    """The tensor of these patterns."""
    return Tensor(dtype, patterns.shape, tuple(patterns.reshape(-1).tolist()))


def cut_error(case: Case, frame: Frame, box: Box, *, hold: bool = False) -> str:
    """Why a box is no case: what the law says."""
    request = crop(case, frame, box, hold=hold)
    if request is None:
        return (
            f"a result of {case.op} is not made of its parts"
            if case.refusal is None
            else "what is refused has no parts"
        )
    try:
        answer = tell(request).answer
    except QuantspecError as error:
        return str(error)
    return (
        f"{answer.rule}: {answer.message}"
        if isinstance(answer, Rejected)
        else "the law accepts the part, not the whole"
    )
