"""The smallest case that fails in the same way: fewer blocks, fewer elements, plainer numbers. Rules stay the law's.

Every candidate is answered by the law anew. It counts as the same failure where outcome, part and kind are equal and the rule
that was named is at work in it; what differs is said. Candidates go many at a time as one tensor where that is possible, so that
few round trips are needed; the one that is taken was asked for alone.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import DeviceError, UsageError
from ..implementations.errors import ImplementationError
from ..outside import printable
from ..protocol.messages import Hello, Implementation
from ..suite.case import CASE_ID, Case, lacking
from ..suite.outcome import CaseResult
from .block import failure_block, failure_json, repro_line
from .crop import answered, patterns_of
from .frame import block_of, frame_of
from .probe import Search
from .shorter import cut_units, settle
from .simpler import simplify_scales, simplify_values
from .smaller import drop_elements, trim

__all__ = ["BUDGET", "SECONDS", "Shrunk", "shrink", "shrunk_id"]

#: Round trips.
BUDGET = 80
#: A case that times out takes its time with each of them.
SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A minimal counterexample: the case, its result, its failure block, and what it took to find it."""

    of: str
    case: Case
    result: CaseResult
    address: str
    trips: int
    blocks: int  #: of the tensor; 1 where the scheme has no blocks
    nonzero_blocks: int  #: blocks with an element that is not zero
    nonzero: int  #: elements that are not zero
    elements: int  #: of the tensor
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        """How small it is, on one line."""
        blocks = f"{self.blocks} block{'s' * (self.blocks != 1)}"
        if self.blocks > 1:
            blocks += f" ({self.nonzero_blocks} not zero)"
        return f"{blocks}, {self.nonzero} of {self.elements} elements not zero, found in {self.trips} round trips"

    @property
    def _repro(self) -> str:
        return repro_line("shrink", self.of, self.address)

    def text(self) -> str:
        """The failure block, with what was found about the failure."""
        block = failure_block(self.case, self.result, self.address, repro=self._repro, minimal=self.summary)
        return "\n".join([block, *(f" note      {note}" for note in self.notes)])

    def as_json(self) -> dict[str, Any]:
        """The failure block as JSON, with the numbers."""
        block = failure_json(self.case, self.result, self.address, repro=self._repro, minimal=self.summary)
        numbers = {
            name: getattr(self, name) for name in ("of", "trips", "blocks", "nonzero_blocks", "nonzero", "elements")
        }
        return {**block, **numbers, "notes": list(self.notes)}


def shrunk_id(case_id: str) -> str:
    """`shrunk.` and the id; two parts of a long one are joined, so that it stays an id."""
    name = case_id if case_id.startswith("shrunk.") else f"shrunk.{case_id}"
    while not CASE_ID.fullmatch(name) and name.count(".") > 5:
        head, _, tail = name.rpartition(".")
        name = f"{head}-{tail}"
    return name


def shrink(
    case: Case, implementation: Implementation, *, address: str = "", budget: int = BUDGET, seconds: float = SECONDS
) -> Shrunk:
    """The smallest case that fails as this one does, within `budget` round trips and `seconds`.

    Raises UsageError for a case that passes or that the implementation does not support, DeviceError where it does not open.
    """
    try:
        identity = implementation.hello(Hello())
    except ImplementationError as error:
        raise DeviceError(f"{printable(address)}: {printable(str(error), keep=chr(10))}") from None
    feature = lacking(case, identity)
    if feature:
        raise UsageError(f"{case.id}: nothing to shrink: the implementation does not support {feature}")
    search = Search(implementation, case, max(budget, 1))
    search.until = time.monotonic() + seconds
    search.most_elements = identity.max_elements or search.most_elements
    result = search.begin()
    if not result.bad:
        why = f" ({printable(result.reason[:300])})" if result.reason else ""
        raise UsageError(
            f"{case.id}: nothing to shrink: {result.outcome}{why}; if it fails now and then, replay asks twice"
        )
    _run(search)
    if not _confirmed(search):  # what was cut out is not what the law says: every candidate by the law, then
        search.case, search.result, search.rule, search.local = case, search.target, search.target.rule, False
        search.seen.clear()
        _run(search)
        _confirmed(search)
    return _shrunk(case, search, address)


def _run(search: Search) -> None:
    for step in (cut_units, drop_elements, simplify_values, trim, simplify_scales, settle):
        step(search)


def _confirmed(search: Search) -> bool:
    """True where the law, asked afresh and for all that it has to say, expects what the answer was compared with."""
    found = search.case
    fresh = answered(found, found.words, found.inputs)
    if fresh is None or fresh.outputs != found.outputs:
        return False
    search.case = fresh
    return True


def _shrunk(case: Case, search: Search, address: str) -> Shrunk:
    small = replace(
        search.case,
        id=shrunk_id(case.id),
        title=f"The smallest that fails as {case.id}",
        provenance=f"shrunk from {case.id} on {printable(address)}",
        suite="",
        control="" if search.case.request != case.request else case.control,
    )
    result = replace(search.result, id=small.id)
    target, notes = search.target, []
    if target.rule and result.rule != target.rule and target.rule in result.rules:
        result = replace(result, rule=target.rule)  # one element tells less than many: the rule was named by the whole
    elif target.rule != result.rule:
        notes.append(
            f"the whole case named {target.rule}, which is not at work here ({result.rule} is), and the same entries are wrong: "
            "the failure hangs on the place, not on the values, or it is another one"
        )
    if search.left <= 0:
        notes.append(f"stopped after {search.trips} round trips: the budget or the time was spent; it may get smaller")
    frame, main = frame_of(small), search.main
    blocks, live = _blocks(small)
    if frame is not None and blocks > 1:
        notes.append(f"it takes {blocks} blocks: one alone does not fail, so the place or a neighbour matters")
    given = [name for name in small.inputs if name not in case.inputs]
    if given:
        notes.append(f"given as the law chose them for the whole: {', '.join(given)}")
    nonzero = 0 if main is None else int(np.count_nonzero(patterns_of(main)))
    elements = 0 if main is None else len(main.patterns)
    return Shrunk(case.id, small, result, address, search.trips, blocks, live, nonzero, elements, tuple(notes))


def _blocks(case: Case) -> tuple[int, int]:
    """Blocks of the tensor, and those with an element that is not zero."""
    frame = frame_of(case)
    if frame is None or frame.scheme is None or frame.scheme.block is None:
        return 1, 1
    extents = frame.scheme.extents(len(frame.shape))
    total = int(
        np.prod([-(-size // extent) for size, extent in zip(frame.shape, extents, strict=True)], dtype=np.int64)
    )
    codes = next((case.inputs[name] for name in ("x", "codes") if name in case.inputs), case.outputs.get("codes"))
    if codes is None or codes.shape != frame.shape:
        return total, total
    places = np.argwhere(patterns_of(codes))
    return total, len({block_of(frame.scheme, tuple(map(int, place))) for place in places})
