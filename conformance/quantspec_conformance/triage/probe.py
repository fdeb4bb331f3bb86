"""Asking whether a smaller case still fails in the same way, one at a time or many as one tensor."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import QuantspecError

from ..examples import DTYPES, Tensor
from ..implementations.errors import ImplementationError
from ..implementations.law import tell
from ..protocol.messages import Implementation, Ok
from ..suite.blame import element_of
from ..suite.case import Case
from ..suite.judge import judge
from ..suite.outcome import CaseResult
from .crop import GRIDS, answered
from .frame import MAIN, Index, frame_of

__all__ = ["Patterns", "Search", "patterns_of", "tensor_of"]

Patterns = npt.NDArray[Any]
#: Operations whose candidates may lie side by side in one tensor, on a new outermost axis.
SIDE_BY_SIDE = ("encode", "decode", "encode_scale", "decode_scale", "quantize", "dequantize", "pack", "unpack")
#: Entries of a tensor of candidates.
LARGEST = 1 << 16
#: Before the first answer.
NONE = CaseResult("", "pass")
#: Differences looked at.
KEEP = 64


def patterns_of(tensor: Tensor) -> Patterns:
    """The patterns of a tensor as unsigned numbers."""
    return np.array(tensor.patterns, f"u{DTYPES[tensor.dtype][0] // 2}").reshape(tensor.shape)


def tensor_of(dtype: str, patterns: Patterns) -> Tensor:
    """The tensor of these patterns."""
    return Tensor(dtype, patterns.shape, tuple(map(int, patterns.reshape(-1))))


def _wrong(result: CaseResult) -> tuple[int, ...]:
    """How many entries are wrong, and which, as far as they are kept."""
    found = result.mismatch
    return () if found is None else (found.count, *(difference.flat for difference in found.first))


@dataclass(slots=True)
class Search:
    """The smallest case found so far, how it fails, and what the search has cost."""

    implementation: Implementation
    case: Case
    budget: int
    result: CaseResult = NONE
    target: CaseResult = NONE
    trips: int = 0
    most_elements: int = LARGEST
    until: float = math.inf  #: time.monotonic() at which the search ends
    alone: bool = False  #: candidates side by side were not understood
    seen: set[Any] = field(default_factory=set)

    def begin(self) -> CaseResult:
        """Ask for the case itself: its failure is what every candidate must show."""
        self.result = self.target = self.ask(self.case)
        return self.result

    @property
    def left(self) -> int:
        """Round trips that may still be made."""
        return self.budget - self.trips if time.monotonic() < self.until else 0

    @property
    def main(self) -> Tensor | None:
        """The tensor that is made smaller."""
        return self.case.inputs.get(MAIN.get(self.case.op, ""))

    def ask(self, case: Case) -> CaseResult:
        """The outcome of a case: one round trip."""
        self.trips += 1
        try:
            return judge(case, self.implementation.handle(case.request), keep=KEEP)
        except ImplementationError as error:
            return CaseResult(case.id, error.status, str(error))

    def same(self, result: CaseResult, *, any_rule: bool = False) -> bool:
        """True where a result fails as the target does: outcome, part, kind, and the rule named there is at work here too.

        `any_rule`: or whatever rule is at work, the very entries being wrong that were wrong before.
        """
        target = self.target
        if result.outcome != target.outcome:
            return False
        places = [None if r.mismatch is None else (r.mismatch.part, r.mismatch.kind) for r in (result, target)]
        if places[0] != places[1]:
            return False
        if any_rule and _wrong(result) == _wrong(self.result):
            return True
        return target.rule == result.rule or target.rule in result.rules

    def attempt(self, candidate: Case | None, *, any_rule: bool = False) -> bool:
        """Take a candidate if it fails in the same way. Never asks twice for the same."""
        if candidate is None or self.left <= 0 or candidate.request == self.case.request:
            return False
        key = repr(candidate.request)
        if key in self.seen:
            return False
        self.seen.add(key)
        result = self.ask(candidate)
        if not self.same(result, any_rule=any_rule):
            return False
        self.case, self.result = candidate, result
        return True

    def with_main(self, patterns: Patterns) -> Case | None:
        """The case with other entries of its main tensor."""
        main = self.main
        if main is None:
            return None
        tensor = tensor_of(main.dtype, patterns)
        return answered(self.case, self.case.words, {**self.case.inputs, MAIN[self.case.op]: tensor})

    def room(self) -> int:
        """How many candidates go into one tensor; 0 where they cannot lie side by side."""
        main, mismatch = self.main, self.target.mismatch
        if self.alone or main is None or mismatch is None or self.target.outcome != "fail" or not mismatch.count:
            return 0
        if self.case.op not in SIDE_BY_SIDE or mismatch.part == "tensor_scale_code":
            return 0
        if "scheme" in self.case.words and self.case.op in ("pack", "unpack") and not main.shape:
            return 0
        return min(LARGEST, self.most_elements) // max(self.case.elements, 1)

    def failing(self, mains: Sequence[Patterns]) -> list[int]:
        """Which of these entries of the main tensor fail when they lie side by side, by one round trip.

        A hint, no more: whoever takes one asks for it alone.
        """
        mismatch = self.target.mismatch
        if self.left <= 1 or not mains or mismatch is None or len(mains) > self.room():
            return []
        stacked = self._stacked(mains)
        if stacked is None or mismatch.part not in stacked.outputs:
            return []
        self.trips += 1
        try:
            answer = self.implementation.handle(stacked.request)
        except ImplementationError:
            self.alone = True
            return []
        wanted, got = (
            stacked.outputs[mismatch.part],
            answer.tensors.get(mismatch.part) if isinstance(answer, Ok) else None,
        )
        if got is None or (got.dtype, got.shape) != (wanted.dtype, wanted.shape) or wanted.shape[:1] != (len(mains),):
            self.alone = True
            return []
        differs = patterns_of(wanted) != patterns_of(got)
        flags = differs.reshape(len(mains), -1).any(axis=1)
        return self._by_rule(stacked, mismatch.part, differs, np.flatnonzero(flags).tolist())

    def _stacked(self, mains: Sequence[Patterns]) -> Case | None:
        """One case that holds the candidates on a new outermost axis."""
        case, count, main = self.case, len(mains), self.main
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
        return answered(case, words, inputs)

    def _by_rule(self, stacked: Case, part: str, differs: Patterns, flagged: list[int]) -> list[int]:
        """Those for which the rule of the target fires, where the trace tells."""
        rule, trace = self.target.rule, tell(stacked.request).trace if flagged else None
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

    def places(self) -> list[Index]:
        """Elements of the tensor that the differing entries belong to, those that are known; in order, each once."""
        mismatch = self.result.mismatch
        if mismatch is None or not mismatch.first:
            return []
        frame = frame_of(self.case)
        found: dict[Index, None] = {}
        for difference in mismatch.first:
            element = element_of(self.case, mismatch.part, difference.index)
            if frame is not None and element is not None and len(element) == len(frame.shape):
                found.setdefault(tuple(min(i, size - 1) for i, size in zip(element, frame.shape, strict=True)))
        return list(found)
