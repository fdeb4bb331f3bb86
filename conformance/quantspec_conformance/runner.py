"""The run: the reference here, every device in a process of its own, the same batches for all of them.

The reference computes a batch once; devices may be a few batches apart. A crash is the outcome of the case that was running:
the device is started again and goes on with the next one, a few times. A device that hangs is out; the others go on.
"""

import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from quantspec import Scheme

from .adapters.reference import SharedReference
from .cases import Batch, Plan
from .chain import Broken, Refused, Result, perform
from .compare import EXPECTED, Mismatch, Outcome, compare
from .errors import DamagedError
from .failure import Failure, explain_failure
from .messages import result_of, results_of
from .process import Closed, Inbox, Worker
from .results import DeviceResult, RunResult
from .seat import CRASHES, Job, Seat
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
    path: str = "auto"
    repro: Sequence[str] = ()


class _Run:
    def __init__(self, targets: Sequence[Target], options: Options, on_case: Callable[[int], None]) -> None:
        self.options = options
        self.on_case = on_case
        self.inbox: Inbox = queue.Queue()
        self.number = 0
        self.stopped = False
        self.seats = [self._seat(target) for target in targets]

    def _seat(self, target: Target) -> Seat:
        hello = {
            "op": "hello",
            "device": target.address,
            "build_options": list(self.options.build_options),
            "path": self.options.path,
        }
        return Seat(target, self.inbox, hello, DeviceResult(target.label))

    @property
    def live(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.live]

    def greet(self) -> None:
        """Wait until every device has said what it is, or that it cannot be opened."""
        while any(not seat.ready for seat in self.live) and not self.stopped:
            self._pump(0.1)

    def submit(self, batch: Batch) -> None:
        """Compute the reference side of a batch and hand it to every device; wait while one is too far behind."""
        expected = _expected(batch)
        known: dict[int, list[Any]] = {}
        job = Job(self.number, batch, expected, [result_of(results, known) for results in expected])
        self.number += 1
        for seat in self.live:
            seat.take(job)
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

    def not_run(self, seat: Seat, schemes: Iterable[Scheme]) -> None:
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
                self._out(seat, "timeout", f"no answer for {limit:.0f} s", said=True)

    def _take(self, worker: Worker, message: dict[str, Any] | Closed) -> None:
        seat = next((seat for seat in self.live if seat.worker is worker), None)
        if seat is None:  # of a worker that was given up
            return
        seat.since = time.monotonic()
        match message:
            case Closed():
                self._crashed(seat, message.fault or f"the process ended: {worker.ended()}")
            case {"op": "hello", "identity": dict(identity)} if not seat.ready:
                seat.ready, seat.result.identity = True, seat.result.identity or identity
            case {"op": "unusable", "error": error, "message": text} if not seat.ready:
                self._out(seat, "crash", f"{error}: {text}")
            case {"op": "result", "id": int(number), "scheme": seat.answered, "steps": dict(steps)} if seat.awaits(
                number
            ):
                self._answered(seat, steps)
            case _:
                self._crashed(seat, f"an answer that was not asked for: {str(message)[:200]}")

    def _answered(self, seat: Seat, answer: dict[str, Any]) -> None:
        """Compare the next case of a device with the reference; an answer equal to the letter needs no decoding."""
        job, plan = seat.jobs[0], seat.jobs[0].batch.plan
        scheme, expected = plan.schemes[seat.answered], job.expected[seat.answered]
        try:
            actual = expected if answer == job.written[seat.answered] else results_of(answer)
        except (WireError, KeyError, TypeError, ValueError) as error:
            self._crashed(seat, f"an answer that is no message: {type(error).__name__}: {error}")
            return
        outcome = compare(expected, actual, scheme, plan.shape, keep=max(self.options.first, 1))
        self._record(seat, job.batch, scheme, outcome)
        seat.step()

    def _record(self, seat: Seat, batch: Batch, scheme: Scheme, outcome: Outcome) -> None:
        result = seat.result
        result.record(scheme.text, outcome.status)
        self.on_case(1)
        if outcome.status in EXPECTED:
            if outcome.rule:
                result.refusal_rules[outcome.rule] += 1
            return
        mismatch = outcome.mismatch
        result.families[batch.plan.family or "refused"] += 1
        where = f"{mismatch.step} {mismatch.part}".strip() if mismatch else ""
        result.failed[where or outcome.status] += 1
        if len(result.failures) < FAILURES_KEPT:
            result.failures.append(self._explained(seat, batch, scheme, outcome))

    def _explained(self, seat: Seat, batch: Batch, scheme: Scheme, outcome: Outcome) -> Failure:
        return explain_failure(batch, scheme, outcome, seat.target.label, self.options.seed, self.options.repro)

    def _crashed(self, seat: Seat, message: str) -> None:
        """The running case has that outcome; the device is started again for the next one, unless it crashed too often."""
        if not seat.ready or seat.crashes + 1 >= CRASHES:
            seat.crashes += seat.ready
            often = f" (crash {seat.crashes} of at most {CRASHES})" if seat.ready else ""
            self._out(seat, "crash", f"{message}{often}", said=True)
            return
        seat.crashes += 1
        seat.result.restarts += 1
        seat.worker.kill()
        self._failed(seat, "crash", _with(message, seat.said()))
        seat.restart()

    def _out(self, seat: Seat, status: str, message: str, *, said: bool = False) -> None:
        """A device that hangs, crashes too often or cannot be opened is out; its other cases were not run."""
        seat.leave()
        full = _with(message, seat.said()) if said else message
        if not seat.greeted:
            seat.result.unusable = full
        elif not seat.ready:
            seat.result.ended = f"{status}: it could not be started again: {full}"
        else:
            seat.result.ended = f"{status}: {message}"
            self._failed(seat, status, full)

    def _failed(self, seat: Seat, status: str, message: str) -> None:
        """The case that a device is at, if any, was ended by this."""
        if seat.running is None:
            return
        batch, scheme = seat.running
        outcome = Outcome("timeout" if status == "timeout" else "crash", Mismatch("", "", "error", message))
        self._record(seat, batch, scheme, outcome)
        seat.step()


def _with(message: str, said: str) -> str:
    return f"{message}\n{said}" if said else message


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
