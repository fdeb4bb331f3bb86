"""What became of a case, in full: nothing stops at the first difference, and wrong bits have a digest that tells them apart."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..compare import Difference
from ..protocol.messages import Answer, Ok

__all__ = ["BAD", "OUTCOMES", "CaseResult", "SuiteMismatch", "answer_digest", "totals"]

#: Every outcome of a case, the good one first.
OUTCOMES = (
    "pass", "fail", "reject-missing", "wrong-error", "nondeterministic", "error", "crash", "timeout", "known",
    "unsupported", "skipped", "notrun",
)  # fmt: skip
#: Outcomes that no claim survives.
BAD = ("fail", "reject-missing", "wrong-error", "nondeterministic", "error", "crash", "timeout")


@dataclass(frozen=True, slots=True)
class SuiteMismatch:
    """How an answer differs: the part, how many of its entries, the first of them, one count a (rule, class) bucket."""

    part: str
    kind: str  #: bits, padding, unwritten, shape, dtype, missing, surplus, words, refusal
    message: str = ""
    count: int = 0
    total: int = 0
    first: tuple[Difference, ...] = ()
    buckets: Mapping[str, int] = field(default_factory=dict)
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The outcome of one case. `rule` is the one that the wrong bits broke, `rules` those that fixed the first of them."""

    id: str
    outcome: str
    reason: str = ""
    rule: str = ""
    rules: tuple[str, ...] = ()
    mismatch: SuiteMismatch | None = None
    digest: str = ""  #: of the actual answer, where it is not as expected
    seconds: float = 0.0
    retries: int = 0

    @property
    def bad(self) -> bool:
        """True where the implementation is wrong, or broke."""
        return self.outcome in BAD


def answer_digest(answer: Answer) -> str:
    """16 hexadecimal digits that tell one wrong answer from another: of its tensors and words, or of its refusal."""
    hashed = hashlib.sha256(type(answer).__name__.encode())
    if isinstance(answer, Ok):
        for name in sorted(answer.tensors):
            hashed.update(f"\n{name} {answer.tensors[name].text}".encode())
        for name in sorted(answer.words):
            hashed.update(f"\n{name} {answer.words[name]}".encode(errors="backslashreplace"))
    else:
        hashed.update(repr(answer).encode(errors="backslashreplace"))
    return hashed.hexdigest()[:16]


def totals(results: Mapping[str, CaseResult]) -> dict[str, int]:
    """Cases by outcome, those that occurred, in the order of OUTCOMES."""
    counted = Counter(result.outcome for result in results.values())
    return {outcome: counted[outcome] for outcome in OUTCOMES if counted[outcome]}
