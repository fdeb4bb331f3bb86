"""The page of a case: what is asked, what is due, and what each run answered, bit by bit."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..examples import DTYPES, Tensor
from ..implementations.law import tell
from ..suite.case import Case
from ..suite.outcome import CaseResult
from .bits import Drawing, drawings, reading
from .book import Book
from .runs import ReportRun

__all__ = ["SHOWN", "Answer", "Listed", "answers", "tensors_of"]

#: Entries of a tensor that a page shows.
SHOWN = 32
#: Elements of a case up to which the law is asked again.
LARGEST = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run answered, drawn, and the command that asks again."""

    run: ReportRun
    result: CaseResult
    foreseen: str
    comparison: str
    drawings: tuple[Drawing, ...]
    repro: str


@dataclass(frozen=True, slots=True)
class Listed:
    """The first entries of a tensor: pattern and number."""

    name: str
    dtype: str
    shape: str
    entries: tuple[tuple[str, str], ...]
    more: int


def answers(book: Book, case_id: str) -> list[Answer]:
    """The answer of every run that has the case. What lies between input and result is told by the law where the case does not."""
    case, rows = book.cases.get(case_id), book.of_case(case_id)
    drawn = any(row.mismatch is not None and row.mismatch.first for _, row in rows)
    if drawn and case is not None and not case.intermediates and case.elements <= LARGEST:
        case = replace(case, intermediates=tell(case.request, intermediates=True).intermediates)
    return [_answer(run, row, case) for run, row in rows]


def _answer(run: ReportRun, row: CaseResult, case: Case | None) -> Answer:
    foreseen, comparison = run.foreseen.get(row.id, ("", ""))
    drawn = () if row.mismatch is None else tuple(drawings(case, row.mismatch))
    command = ["quantspec", "replay", row.id, *(["--impl", run.address] if run.address else [])]
    return Answer(run, row, foreseen, comparison, drawn, shlex.join(command))


def tensors_of(case: Case | None, tensors: Mapping[str, Tensor]) -> Sequence[Listed]:
    """Tensors of a case as a page shows them."""
    return [_listed(case, name, tensor) for name, tensor in tensors.items()]


def _listed(case: Case | None, name: str, tensor: Tensor) -> Listed:
    digits, _ = DTYPES[tensor.dtype]
    entries = tuple((f"{bits:0{digits}X}", reading(case, name, bits)) for bits in tensor.patterns[:SHOWN])
    shape = " x ".join(map(str, tensor.shape)) or "scalar"
    return Listed(name, tensor.dtype, shape, entries, len(tensor.patterns) - len(entries))
