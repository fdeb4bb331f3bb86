"""A run of the suite on one implementation: every case asked, judged and handed on as soon as it is known.

A crash or a time-out is the outcome of its case; the implementation is started anew and the next case goes on. As many
requests are in flight as the implementation allows; results come in the order of the cases all the same.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..implementations.ahead import answered
from ..implementations.errors import ImplementationError
from ..protocol.messages import Answer, Hello, Identity, Implementation, Request, Unsupported
from .case import Case, lacking
from .judge import judge
from .outcome import CaseResult, answer_digest

__all__ = ["RunOptions", "run_suite"]

#: What `files:` says it lacks where a lab has not answered yet.
NOT_RUN = "notrun"
#: Outcomes of a first answer that a second one says nothing about.
NOT_TWICE = ("unsupported", "known", "notrun")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """`repeat`: share of cases asked twice to find answers that change; `keep`: differences kept of a failure."""

    repeat: float = 0.02
    seed: int = 0
    keep: int = 8
    suite: str = ""  #: digest of the suite, for the hello
    options: dict[str, str] = field(default_factory=dict)


def run_suite(
    cases: Sequence[Case],
    implementation: Implementation,
    options: RunOptions,
    *,
    on_identity: Callable[[Identity], None] = lambda identity: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[CaseResult]:
    """The result of each case, in order. Raises ImplementationError where the implementation cannot be opened at all."""
    hello = Hello(suite=options.suite, options=options.options)
    identity = implementation.hello(hello)
    on_identity(identity)
    asking = _Asking(cases, identity, options, stopped)
    answers = answered(implementation, asking.following, identity.max_in_flight)
    while True:
        started = time.monotonic()
        answer = next(answers, None)
        if answer is not None:
            asking.take(answer, time.monotonic() - started)
        yield from asking.known()
        if answer is None:
            return


@dataclass(slots=True)
class _Asked:
    """A case that was begun. `first` is what its first answer was and its digest, while it is asked for the second time."""

    case: Case
    twice: bool = False
    first: tuple[CaseResult, str] | None = None
    seconds: float = 0.0
    result: CaseResult | None = None


class _Asking:
    """What is asked next, what was asked and has no answer yet, and what is known; each in the order of the cases."""

    def __init__(
        self, cases: Sequence[Case], identity: Identity, options: RunOptions, stopped: Callable[[], bool]
    ) -> None:
        self._left = iter(cases)
        self._identity = identity
        self._options = options
        self._stopped = stopped
        self._random = random.Random(options.seed)
        self._begun: deque[_Asked] = deque()
        self._unanswered: deque[_Asked] = deque()
        self._again: deque[_Asked] = deque()

    def following(self) -> Request | None:
        """The next request: a case's second one first. None where no more is to be asked, as far as is known."""
        asked = self._again.popleft() if self._again else self._begin()
        if asked is None:
            return None
        self._unanswered.append(asked)
        return asked.case.request

    def _begin(self) -> _Asked | None:
        """The next case that has to be asked; those before it that need no asking are known."""
        for case in self._left:
            asked = _Asked(case, self._random.random() < self._options.repeat and self._identity.deterministic)
            self._begun.append(asked)
            feature = lacking(case, self._identity)
            if self._stopped():
                asked.result = CaseResult(case.id, "notrun", "the run was stopped")
            elif feature:
                asked.result = CaseResult(case.id, "unsupported", f"{feature} is not among its capabilities")
            else:
                return asked
        return None

    def take(self, answer: Answer | ImplementationError, seconds: float) -> None:
        """The answer to the oldest request without one, or how it broke, and the time that it took."""
        asked = self._unanswered.popleft()
        asked.seconds += seconds
        first, asked.first = asked.first, None
        result = self._judged(asked.case, answer) if first is None else _repeated(first, answer)
        if (
            first is None
            and asked.twice
            and not isinstance(answer, ImplementationError)
            and result.outcome not in NOT_TWICE
        ):
            asked.first = result, answer_digest(answer)
            self._again.append(asked)
        else:
            asked.result = replace(result, seconds=round(asked.seconds, 6))

    def _judged(self, case: Case, answer: Answer | ImplementationError) -> CaseResult:
        if isinstance(answer, ImplementationError):
            return CaseResult(case.id, answer.status, str(answer))
        if isinstance(answer, Unsupported) and answer.feature == NOT_RUN:
            return CaseResult(case.id, "notrun", answer.message or "there is no answer")
        return judge(case, answer, keep=self._options.keep)

    def known(self) -> Iterator[CaseResult]:
        """The results that no earlier case still keeps waiting."""
        while self._begun and (result := self._begun[0].result) is not None:
            self._begun.popleft()
            yield result


def _repeated(first: tuple[CaseResult, str], answer: Answer | ImplementationError) -> CaseResult:
    """The outcome of a case that was asked once more: other bits are an outcome of their own."""
    result, digest = first
    if isinstance(answer, ImplementationError):
        return CaseResult(result.id, answer.status, str(answer))
    second = answer_digest(answer)
    if second == digest:
        return result
    return CaseResult(result.id, "nondeterministic", "the same request twice gave two answers", digest=second)
