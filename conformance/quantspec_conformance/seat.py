"""A device in a run: its worker process, the batches in flight, and how it goes on after a crash."""

import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from quantspec import Scheme

from .cases import Batch
from .chain import Result
from .messages import message_of
from .process import Inbox, Worker
from .results import DeviceResult
from .targets import Target

__all__ = ["CRASHES", "Job", "Seat"]

#: Crashes after which a device is out: each costs a start, and what crashes so often is not worth a verdict on the rest.
CRASHES = 5
#: Lines of a worker's stderr that a message shows, and those of faulthandler that say nothing of the runtime.
_SHOWN = 16
_NOISE = ("Extension modules", "<frozen runpy>")


@dataclass(frozen=True, slots=True)
class Job:
    """A batch in flight, with what the reference says."""

    number: int
    batch: Batch
    expected: list[dict[str, Result]]
    written: list[dict[str, Any]]  #: the same as messages

    def after(self, count: int) -> "Job | None":
        """What is left of the batch after so many of its cases; None where nothing is."""
        plan = self.batch.plan
        if count == len(plan.schemes):
            return None
        batch = replace(self.batch, plan=replace(plan, schemes=plan.schemes[count:]))
        return Job(self.number, batch, self.expected[count:], self.written[count:])


@dataclass(slots=True)
class Seat:
    """A target with its result, its worker, its jobs in flight and how far the first of them is."""

    target: Target
    inbox: Inbox
    hello: dict[str, Any]
    result: DeviceResult
    worker: Worker = field(init=False)
    jobs: deque[Job] = field(default_factory=deque)
    answered: int = 0
    since: float = field(default_factory=time.monotonic)
    ready: bool = False  #: the worker that runs now has said what it is
    live: bool = True
    crashes: int = 0

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.worker = Worker(self.inbox, self.target.variables)
        self.since = time.monotonic()
        self.worker.send(self.hello)

    @property
    def greeted(self) -> bool:
        """True once the device was opened, by whichever of its workers."""
        return self.ready or self.crashes > 0

    def take(self, job: Job) -> None:
        """Hand a batch to the worker."""
        if not self.jobs:
            self.since = time.monotonic()
        self.jobs.append(job)
        self.worker.send(message_of(job.batch, job.number))

    def awaits(self, number: int) -> bool:
        """True where the next answer belongs to the batch of this number."""
        return bool(self.jobs) and self.jobs[0].number == number

    @property
    def running(self) -> tuple[Batch, Scheme] | None:
        """The case that the device is at; None where it has nothing to do."""
        return (self.jobs[0].batch, self.jobs[0].batch.plan.schemes[self.answered]) if self.jobs else None

    def step(self) -> None:
        """The case that it was at is done."""
        self.answered += 1
        if self.answered == len(self.jobs[0].batch.plan.schemes):
            self.jobs.popleft()
            self.answered = 0

    def said(self) -> str:
        """The last lines that the worker, or its runtime, wrote to stderr. Asked for after its end."""
        lines = [line for line in self.worker.stderr().splitlines() if line and not any(n in line for n in _NOISE)]
        return "\n".join(lines[-_SHOWN:])

    def leave(self) -> None:
        """Out: what is in flight will not be answered."""
        self.live = False
        self.worker.kill()

    def restart(self) -> None:
        """A new worker in place of one that was killed; it gets what that one left undone, whose answers belong to nobody."""
        self.ready = False
        self._start()
        if self.jobs:
            left = self.jobs.popleft().after(self.answered)
            self.answered = 0
            if left is not None:
                self.jobs.appendleft(left)
        for job in self.jobs:
            self.worker.send(message_of(job.batch, job.number))
