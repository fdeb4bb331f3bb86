"""The run: the reference here, every device in a process of its own, the same batches for all of them.

The reference computes a batch once; devices may be a few batches apart. A device that crashes or hangs is out, with the
case that was running; the others go on.
"""

import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from quantspec import Scheme

from .adapters.reference import SharedReference
from .cases import Batch, Plan
from .chain import Broken, Refused, Result, perform
from .compare import EXPECTED, Mismatch, Outcome, compare
from .errors import DamagedError
from .failure import Failure, explain_failure
from .messages import message_of, result_of, results_of
from .process import Closed, Inbox, Worker
from .results import DeviceResult, RunResult
from .targets import Target
from .wire import WireError

__all__ = ["Options", "run"]

WINDOW = 16  #: batches a device may have in flight
HELLO_SECONDS = 180.0  #: a first build may take long
FAILURES_KEPT = 200
STOPPING = (signal.SIGINT, signal.SIGTERM)  #: after these what was done is still reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run: `first` differences are kept of a failure, `repro` are the options that a repro line needs."""

    seed: int = 0
    first: int = 5
    timeout: float = 60.0
    build_options: Sequence[str] = ()
    repro: Sequence[str] = ()


@dataclass(slots=True)
class _Job:
    """A batch in flight, with what the reference says."""

    number: int
    batch: Batch
    expected: list[dict[str, Result]]
    written: list[dict[str, Any]]  #: the same as messages


@dataclass(slots=True)
class _Seat:
    """A device in the run: its worker, its jobs in flight and how far the first of them is."""

    target: Target
    result: DeviceResult
    worker: Worker
    jobs: deque[_Job] = field(default_factory=deque)
    answered: int = 0
    since: float = field(default_factory=time.monotonic)
    ready: bool = False
    live: bool = True

    def awaits(self, number: int) -> bool:
        """True where the next answer belongs to the batch of this number."""
        return bool(self.jobs) and self.jobs[0].number == number


class _Run:
    def __init__(self, targets: Sequence[Target], options: Options, on_case: Callable[[int], None]) -> None:
        self.options = options
        self.on_case = on_case
        self.inbox: Inbox = queue.Queue()
        self.number = 0
        self.stopped = False
        self.seats = [self._seat(target) for target in targets]

    def _seat(self, target: Target) -> _Seat:
        worker = Worker(self.inbox, target.variables)
        worker.send({"op": "hello", "device": target.address, "build_options": list(self.options.build_options)})
        return _Seat(target, DeviceResult(target.label), worker)

    @property
    def live(self) -> list[_Seat]:
        return [seat for seat in self.seats if seat.live]

    def greet(self) -> None:
        """Wait until every device has said what it is, or that it cannot be opened."""
        while any(not seat.ready for seat in self.live) and not self.stopped:
            self._pump(0.1)

    def submit(self, batch: Batch) -> None:
        """Compute the reference side of a batch and hand it to every device; wait while one is too far behind."""
        expected = _expected(batch)
        known: dict[int, list[Any]] = {}
        job = _Job(self.number, batch, expected, [result_of(results, known) for results in expected])
        message = message_of(batch, self.number)
        self.number += 1
        for seat in self.live:
            if not seat.jobs:
                seat.since = time.monotonic()
            seat.jobs.append(job)
            seat.worker.send(message)
        self._pump(0)
        while any(len(seat.jobs) >= WINDOW for seat in self.live) and not self.stopped:
            self._pump(0.1)

    def drain(self) -> None:
        """Wait for the answers that are still out."""
        while any(seat.jobs for seat in self.live) and not self.stopped:
            self._pump(0.1)

    def close(self) -> None:
        """Stop every worker; cases in flight were not run."""
        for seat in self.seats:
            for position, job in enumerate(seat.jobs):
                self.not_run(seat, job.batch.plan.schemes[seat.answered if position == 0 else 0 :])
            if self.stopped:
                seat.worker.kill()
            else:
                seat.worker.stop()

    def not_run(self, seat: _Seat, schemes: Iterable[Scheme]) -> None:
        """Count cases that a device did not get to; one that never opened has none."""
        for scheme in schemes if not seat.result.unusable else ():
            seat.result.record(scheme.text, "notrun")
            self.on_case(1)

    def _pump(self, wait: float) -> None:
        """Take what has arrived; wait at most so long for the first message."""
        try:
            item = self.inbox.get(timeout=wait) if wait else self.inbox.get_nowait()
            while True:
                self._take(*item)
                item = self.inbox.get_nowait()
        except queue.Empty:
            pass
        now = time.monotonic()
        for seat in self.live:
            limit = self.options.timeout if seat.ready else max(HELLO_SECONDS, self.options.timeout)
            if (seat.jobs or not seat.ready) and now - seat.since > limit:
                self._lost(seat, "timeout", f"no answer for {limit:.0f} s")

    def _take(self, worker: Worker, message: dict[str, Any] | Closed) -> None:
        seat = next(seat for seat in self.seats if seat.worker is worker)
        if not seat.live:
            return
        seat.since = time.monotonic()
        match message:
            case Closed():
                self._lost(seat, "crash", message.fault or f"the process ended: {worker.ended()}")
            case {"op": "hello", "identity": dict(identity)} if not seat.ready:
                seat.ready, seat.result.identity = True, identity
            case {"op": "unusable", "error": error, "message": text} if not seat.ready:
                seat.live, seat.ready = False, True
                seat.result.unusable = f"{error}: {text}"
            case {"op": "result", "id": int(number), "scheme": seat.answered, "steps": dict(steps)} if seat.awaits(
                number
            ):
                self._answered(seat, steps)
            case _:
                self._lost(seat, "crash", f"an answer that was not asked for: {str(message)[:200]}")

    def _answered(self, seat: _Seat, answer: dict[str, Any]) -> None:
        """Compare the next case of a device with the reference; an answer equal to the letter needs no decoding."""
        job, plan = seat.jobs[0], seat.jobs[0].batch.plan
        scheme, expected = plan.schemes[seat.answered], job.expected[seat.answered]
        try:
            actual = expected if answer == job.written[seat.answered] else results_of(answer)
        except (WireError, KeyError, TypeError, ValueError) as error:
            self._lost(seat, "crash", f"an answer that is no message: {type(error).__name__}: {error}")
            return
        outcome = compare(expected, actual, scheme, plan.shape, keep=max(self.options.first, 1))
        self._record(seat, job.batch, scheme, outcome)
        seat.answered += 1
        if seat.answered == len(plan.schemes):
            seat.jobs.popleft()
            seat.answered = 0

    def _record(self, seat: _Seat, batch: Batch, scheme: Scheme, outcome: Outcome) -> None:
        result = seat.result
        result.record(scheme.text, outcome.status)
        self.on_case(1)
        if outcome.status in EXPECTED:
            if outcome.rule:
                result.refusal_rules[outcome.rule] += 1
            return
        mismatch = outcome.mismatch
        result.families[batch.plan.family or "refused"] += 1
        result.failed[f"{mismatch.step} {mismatch.part}".strip() if mismatch else outcome.status] += 1
        if len(result.failures) < FAILURES_KEPT:
            result.failures.append(self._explained(seat, batch, scheme, outcome))

    def _explained(self, seat: _Seat, batch: Batch, scheme: Scheme, outcome: Outcome) -> Failure:
        return explain_failure(batch, scheme, outcome, seat.target.label, self.options.seed, self.options.repro)

    def _lost(self, seat: _Seat, status: str, message: str) -> None:
        """A device that crashed or hangs is out: the running case has that outcome, its other cases were not run."""
        seat.live = False
        seat.worker.kill()
        noise = ("Extension modules", "<frozen runpy>")
        said = [line for line in seat.worker.stderr().splitlines() if line and not any(word in line for word in noise)]
        tail = "\n".join(said[-16:])
        full = f"{message}\n{tail}" if tail else message
        if not seat.ready:
            seat.result.unusable = full
            return
        seat.result.ended = f"{status}: {message}"
        if not seat.jobs:
            return
        batch = seat.jobs[0].batch
        running = batch.plan.schemes[seat.answered]
        outcome = Outcome("timeout" if status == "timeout" else "crash", Mismatch("", "", "error", full))
        self._record(seat, batch, running, outcome)
        seat.answered += 1


@contextmanager
def _interruptible(run: _Run) -> Iterator[None]:
    """While open, the first Ctrl-C or SIGTERM only asks the run to stop; a second one does what it always does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPPING}

    def ask(number: int, frame: FrameType | None) -> None:
        run.stopped = True
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number in STOPPING:
        signal.signal(number, ask)
    try:
        yield
    finally:
        restore()


def _expected(batch: Batch) -> list[dict[str, Result]]:
    """What the reference says to each scheme of a batch. DamagedError where it fails, or cannot be trusted on this host."""
    shared = SharedReference()
    expected = [perform(shared, scheme, batch) for scheme in batch.plan.schemes]
    for scheme, results in zip(batch.plan.schemes, expected, strict=True):
        for step, result in results.items():
            if isinstance(result, Broken) or (isinstance(result, Refused) and result.error == "HostError"):
                raise DamagedError(
                    f"the reference failed at {batch.plan.case_id(scheme)}, step {step}: {result.message}"
                )
    return expected


def run(
    plans: Sequence[Plan],
    make: Callable[[Plan], Batch],
    targets: Sequence[Target],
    options: Options,
    *,
    on_ready: Callable[[Sequence[DeviceResult]], None] = lambda devices: None,
    on_case: Callable[[int], None] = lambda count: None,
) -> RunResult:
    """Run plans on every target; `make` gives each its data. `on_ready` sees the devices once they are open, `on_case`
    counts finished cases, one a device. Raises DamagedError where the reference itself fails.
    """
    begun = time.monotonic()
    state = _Run(targets, options, on_case)
    with _interruptible(state):
        try:
            state.greet()
            on_ready([seat.result for seat in state.seats])
            for plan in plans:
                out = state.seats if state.stopped else [seat for seat in state.seats if not seat.live]
                for seat in out:
                    state.not_run(seat, plan.schemes)
                if len(out) < len(state.seats):
                    state.submit(make(plan))
            state.drain()
        finally:
            state.close()
    return RunResult([seat.result for seat in state.seats], state.stopped, time.monotonic() - begun)
