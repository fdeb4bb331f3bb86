"""A run of the suite on one implementation: every case asked, judged and handed on as soon as it is known.

A crash or a time-out is the outcome of its case; the implementation is started anew and the next case goes on.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ..implementations.errors import ImplementationError
from ..protocol.messages import Answer, Hello, Identity, Implementation, Unsupported
from .case import Case, lacking
from .judge import judge
from .outcome import CaseResult, answer_digest

__all__ = ["RunOptions", "run_suite"]

#: What `files:` says it lacks where a lab has not answered yet.
NOT_RUN = "notrun"


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
    chosen = random.Random(options.seed)
    for case in cases:
        again = chosen.random() < options.repeat
        if stopped():
            yield CaseResult(case.id, "notrun", "the run was stopped")
            continue
        feature = lacking(case, identity)
        if feature:
            yield CaseResult(case.id, "unsupported", f"{feature} is not among its capabilities")
            continue
        yield _asked(case, implementation, identity, options, again)


def _asked(
    case: Case, implementation: Implementation, identity: Identity, options: RunOptions, again: bool
) -> CaseResult:
    started = time.monotonic()
    try:
        answer = implementation.handle(case.request)
        if isinstance(answer, Unsupported) and answer.feature == NOT_RUN:
            return CaseResult(case.id, "notrun", answer.message or "there is no answer")
        result = judge(case, answer, keep=options.keep)
        if again and identity.deterministic and result.outcome not in ("unsupported", "known"):
            result = _repeated(case, implementation, answer, result)
    except ImplementationError as error:
        result = CaseResult(case.id, error.status, str(error))
    seconds = time.monotonic() - started
    return CaseResult(
        result.id,
        result.outcome,
        result.reason,
        result.rule,
        result.rules,
        result.mismatch,
        result.digest,
        round(seconds, 6),
    )


def _repeated(case: Case, implementation: Implementation, answer: Answer, result: CaseResult) -> CaseResult:
    """The same request once more: other bits are an outcome of their own."""
    second = answer_digest(implementation.handle(case.request))
    if second == answer_digest(answer):
        return result
    return CaseResult(case.id, "nondeterministic", "the same request twice gave two answers", digest=second)
