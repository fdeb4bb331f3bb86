"""Many candidates as one tensor, on a new outermost axis: one round trip for all of them."""

from collections.abc import Sequence

import numpy as np

from quantspec import QuantspecError

from ..examples import Tensor
from ..implementations.errors import ImplementationError
from ..implementations.law import tell
from ..protocol.messages import Ok
from ..suite.blame import element_of
from ..suite.case import Case
from .crop import GRIDS, Patterns, answered, patterns_of, tensor_of
from .frame import MAIN
from .probe import LARGEST, Search

__all__ = ["failing", "room"]

#: Operations whose candidates may lie side by side in one tensor, on a new outermost axis.
SIDE_BY_SIDE = ("encode", "decode", "encode_scale", "decode_scale", "quantize", "dequantize", "pack", "unpack")


def room(search: Search) -> int:
    """How many candidates go into one tensor; 0 where they cannot lie side by side."""
    case, main, mismatch = search.case, search.main, search.target.mismatch
    if search.alone or main is None or mismatch is None or search.target.outcome != "fail" or not mismatch.count:
        return 0
    if case.op not in SIDE_BY_SIDE or mismatch.part == "tensor_scale_code":
        return 0
    if "scheme" in case.words and case.op in ("pack", "unpack") and not main.shape:
        return 0
    return min(LARGEST, search.most_elements) // max(case.elements, 1)


def failing(search: Search, mains: Sequence[Patterns]) -> list[int]:
    """Which of these entries of the main tensor fail when they lie side by side, by one round trip.

    A hint, no more: whoever takes one asks for it alone.
    """
    mismatch = search.target.mismatch
    if search.left <= 1 or not mains or mismatch is None or len(mains) > room(search):
        return []
    stacked = _stacked(search, mains)
    if stacked is None or mismatch.part not in stacked.outputs:
        return []
    search.trips += 1
    search.work += stacked.elements
    try:
        answer = search.implementation.handle(stacked.request)
    except ImplementationError:
        search.alone = True
        return []
    wanted = stacked.outputs[mismatch.part]
    got = answer.tensors.get(mismatch.part) if isinstance(answer, Ok) else None
    if got is None or (got.dtype, got.shape) != (wanted.dtype, wanted.shape) or wanted.shape[:1] != (len(mains),):
        search.alone = True
        return []
    differs = patterns_of(wanted) != patterns_of(got)
    flags = differs.reshape(len(mains), -1).any(axis=1)
    return _by_rule(search, stacked, mismatch.part, differs, np.flatnonzero(flags).tolist())


def _stacked(search: Search, mains: Sequence[Patterns]) -> Case | None:
    """One case that holds the candidates on a new outermost axis."""
    case, count, main = search.case, len(mains), search.main
    if main is None:
        return None
    inputs = dict(case.inputs)
    inputs[MAIN[case.op]] = tensor_of(main.dtype, np.stack([np.asarray(each) for each in mains]))
    for name in GRIDS if "scheme" in case.words else ():
        if name in inputs:
            tensor = inputs[name]
            inputs[name] = Tensor(tensor.dtype, (count, *tensor.shape), tensor.patterns * count)
    words = dict(case.words)
    if case.op == "unpack":
        words["shape"] = ",".join([str(count), *([] if words["shape"] == "()" else [words["shape"]])])
    return answered(case, words, inputs, intermediates=False)


def _by_rule(search: Search, stacked: Case, part: str, differs: Patterns, flagged: list[int]) -> list[int]:
    """Those for which the rule of the target fires, where the trace tells."""
    rule, trace = search.rule, tell(stacked.request).trace if flagged else None
    if trace is None or rule not in trace.rules():
        return flagged
    kept = []
    for number in flagged:
        index = (number, *(int(i) for i in np.argwhere(differs[number])[0])) if differs.ndim > 1 else (number,)
        try:
            fired = trace.rules(element_of(stacked, part, index))
        except QuantspecError:
            return flagged
        kept += [number] if rule in fired else []
    return kept
