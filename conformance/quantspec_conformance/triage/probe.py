"""Asking whether a smaller case still fails in the same way: the smallest so far, and what it has cost."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..examples import Tensor
from ..implementations.errors import ImplementationError
from ..protocol.messages import Implementation, Request
from ..suite.case import Case, features_of
from ..suite.judge import judge
from ..suite.outcome import CaseResult
from .crop import GRIDS, Box, Patterns, answered, crop, tensor_of
from .frame import MAIN, Frame, Index, frame_of
from .local import local_outputs
from .places import place_of

__all__ = ["LARGEST", "Search"]

#: Entries of a tensor of candidates.
LARGEST = 1 << 16
#: Elements asked for at most: this many, or so many times the case.
WORK, TIMES = 1 << 23, 16
#: Before the first answer.
NONE = CaseResult("", "pass")
#: Differences looked at.
KEEP = 64


def _wrong(result: CaseResult) -> tuple[int, ...]:
    """How many entries are wrong, and which, as far as they are kept."""
    found = result.mismatch
    return () if found is None else (found.count, *(difference.flat for difference in found.first))


def _key(request: Request) -> int:
    """Tells one request from another; the requests themselves may be large."""
    return hash((request.op, tuple(sorted(request.words.items())), tuple(sorted(request.tensors.items()))))


@dataclass(slots=True)
class Search:
    """The smallest case found so far, how it fails, and what the search has cost."""

    implementation: Implementation
    case: Case
    budget: int
    result: CaseResult = NONE
    target: CaseResult = NONE
    rule: str = ""  #: the one that must be at work
    trips: int = 0
    work: int = 0  #: elements asked for
    most_work: int = WORK
    most_elements: int = LARGEST
    until: float = math.inf  #: time.monotonic() at which the search ends
    alone: bool = False  #: candidates side by side were not understood
    local: bool = (
        True  #: what is due for a part is cut out of what is due for the whole, where it hangs on nothing else
    )
    seen: set[int] = field(default_factory=set)

    def begin(self) -> CaseResult:
        """Ask for the case itself: its failure is what every candidate must show."""
        self.most_work = max(WORK, TIMES * self.case.elements)
        self.result = self.target = self.ask(self.case)
        self.rule = self.target.rule
        return self.result

    @property
    def left(self) -> int:
        """Round trips that may still be made."""
        if time.monotonic() >= self.until:
            return 0
        return min(self.budget - self.trips, (self.most_work - self.work) // max(self.case.elements, 1))

    @property
    def main(self) -> Tensor | None:
        """The tensor that is made smaller."""
        return self.case.inputs.get(MAIN.get(self.case.op, ""))

    def ask(self, case: Case) -> CaseResult:
        """The outcome of a case: one round trip."""
        self.trips += 1
        self.work += case.elements
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
        return self.rule in (result.rule, *result.rules)

    def attempt(
        self, request: Request | None, *, any_rule: bool = False, due: Mapping[str, Tensor] | None = None
    ) -> bool:
        """Take a candidate if it fails in the same way; `due` is its answer where that is known. Never asks twice for the same."""
        if request is None or self.left <= 0 or request == self.case.request:
            return False
        key = _key(request)
        if key in self.seen:
            return False
        self.seen.add(key)
        if due is None:
            candidate = answered(self.case, request.words, request.tensors, intermediates=False)
        else:
            candidate = self._known(request, due)
        if candidate is None:
            return False
        result = self.ask(candidate)
        if not self.same(result, any_rule=any_rule):
            return False
        self.case, self.result = candidate, result
        if self.rule not in (
            result.rule,
            *result.rules,
        ):  # the place decides, not the values: what is at work here goes on
            self.rule = result.rule
        return True

    def _known(self, request: Request, due: Mapping[str, Tensor]) -> Case:
        """A candidate whose results are known without the law. Words about the whole tensor say nothing about a part."""
        report = tuple(feature for feature in ("report",) if feature in self.case.features)
        return replace(
            self.case, words=request.words, inputs=request.tensors, features=(*features_of(request), *report),
            outputs=due, told={}, equal=dict.fromkeys(due, "bits"), intermediates={},
        )  # fmt: skip

    def cut(self, box: Box, *, hold: bool = False) -> bool:
        """Take the elements of a box. `hold`: under the tensor scale of the whole; block scales are chosen anew."""
        case, frame = self.case, frame_of(self.case)
        if frame is None or self.left <= 0:
            return False
        kept = replace(case, outputs={k: t for k, t in case.outputs.items() if k not in GRIDS}) if hold else case
        request = crop(kept, frame, box, hold=hold)
        if request is None:
            return False
        return self.attempt(request, due=self._due(frame, box, request))

    def _due(self, frame: Frame, box: Box, request: Request) -> dict[str, Tensor] | None:
        mismatch = self.target.mismatch
        if not self.local or mismatch is None or mismatch.kind == "words" or self.target.outcome != "fail":
            return None
        return local_outputs(self.case, frame, box, request.tensors)

    def with_main(self, patterns: Patterns) -> Request | None:
        """The request with other entries of its main tensor."""
        main = self.main
        if main is None:
            return None
        tensor = tensor_of(main.dtype, patterns)
        return Request(self.case.op, self.case.words, {**self.case.inputs, MAIN[self.case.op]: tensor})

    def places(self) -> list[Index]:
        """Elements of the tensor that the differing entries belong to, those that are known; in order, each once."""
        mismatch, frame = self.result.mismatch, frame_of(self.case)
        if mismatch is None or frame is None:
            return []
        found = (place_of(self.case, frame, mismatch.part, each) for each in mismatch.first)
        return list(dict.fromkeys(place for place in found if place is not None))
