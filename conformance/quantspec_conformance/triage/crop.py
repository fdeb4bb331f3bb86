"""Parts of a case as cases of their own: a box of elements with the scales of its blocks, answered by the law anew."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from quantspec import QuantspecError, Scheme

from ..examples import Tensor
from ..implementations.law import tell
from ..protocol.messages import Ok, Rejected, Request
from ..suite.case import Case, Refusal, features_of
from .frame import MAIN, Frame

__all__ = ["Box", "answered", "boxed", "crop"]

Box = tuple[slice, ...]
GRIDS = ("scales", "scale_codes")
_TENSOR = ("tensor_scale", "tensor_scale_code")
#: What cannot be cut: its result is no part of the whole.
WHOLE = ("slice", "take", "select", "expand", "reshape")


def answered(case: Case, words: Mapping[str, str], inputs: Mapping[str, Tensor]) -> Case | None:
    """The case with another request, and what the law says to it. None where the law answers in another way than to the case."""
    request = Request(case.op, dict(words), dict(inputs))
    told = tell(request, intermediates=True)
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
        return Request(case.op, case.words, {**inputs, name: _cut(inputs[name], box)})
    if case.op in ("unpack", "split"):
        return _reread(case, frame, frame.scheme, box)
    if hold and case.op == "quantize":
        inputs = _held(case, frame.scheme, inputs)
    return Request(case.op, case.words, _parts(inputs, frame.scheme, box))


def _held(case: Case, scheme: Scheme, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The inputs with the scales that the law chose for the whole."""
    chosen = {name: case.outputs[name] for name in ("scale_codes", "tensor_scale_code") if name in case.outputs}
    if any(name in inputs for name in GRIDS):
        chosen.pop("scale_codes", None)
    if any(name in inputs for name in _TENSOR):
        chosen.pop("tensor_scale_code", None)
    return {**inputs, **chosen}


def _parts(inputs: Mapping[str, Tensor], scheme: Scheme, box: Box) -> dict[str, Tensor]:
    """The elements of the box, and the scales of the blocks that it touches."""
    found = {}
    for name, tensor in inputs.items():
        if name in ("x", "codes"):
            found[name] = _cut(tensor, box)
        elif name in GRIDS and scheme.block is not None and len(tensor.shape) == len(box):
            extents = scheme.extents(len(box))
            grid = tuple(slice(part.start // e, -(-part.stop // e)) for part, e in zip(box, extents, strict=True))
            found[name] = _cut(tensor, grid)
        else:
            found[name] = tensor
    return found


def _reread(case: Case, frame: Frame, scheme: Scheme, box: Box) -> Request | None:
    """Words or bytes of a box: read by the law, cut as codes, written again."""
    if case.refusal is not None or not {"codes"} <= set(case.outputs):
        return None
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


def _cut(tensor: Tensor, box: Box) -> Tensor:
    return Tensor.of(np.asarray(tensor.array()[box]))


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
