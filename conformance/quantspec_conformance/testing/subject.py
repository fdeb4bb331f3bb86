"""The implementation that the items of one process share: greeted with the first case, closed with the session."""

import platform
import zlib
from dataclasses import asdict, dataclass, field

import numpy as np

from ..errors import HarnessError, UsageError
from ..expect.check import run_info
from ..implementations.address import open_implementation
from ..implementations.errors import ImplementationError
from ..outside import printable
from ..protocol.messages import Answer, Hello, Identity, Implementation, ProtocolError, Request
from ..suite.case import Case
from ..suite.outcome import CaseResult
from ..suite.run import RunOptions, run_suite
from .source import digest

__all__ = ["Subject"]

#: Differences of a failure that are kept.
KEEP = 8


@dataclass(frozen=True, slots=True)
class _Greeted:
    """An implementation that was greeted already: `run_suite` greets once a run, and here a run is one case."""

    inner: Implementation
    identity: Identity

    def hello(self, hello: Hello) -> Identity:
        """What it said when it was greeted."""
        return self.identity

    def handle(self, request: Request) -> Answer:
        """Its answer."""
        return self.inner.handle(request)

    def close(self) -> None:
        """Let go."""
        self.inner.close()


@dataclass(slots=True)
class Subject:
    """An address, and once it is needed the implementation behind it."""

    address: str
    timeout: float
    _opened: Implementation | None = field(default=None, init=False)
    _greeted: _Greeted | None = field(default=None, init=False)

    def open(self) -> Implementation:
        """The implementation, not greeted. No process starts yet. UsageError, DeviceError."""
        if self._opened is None:
            self._opened = open_implementation(self.address, timeout=self.timeout)
        return self._opened

    def greet(self) -> None:
        """Have it say who it is, once. UsageError, with all that it said, where it cannot be used."""
        if self._greeted is not None:
            return
        try:
            opened = self.open()
            self._greeted = _Greeted(opened, opened.hello(Hello(suite=digest())))
        except (HarnessError, ImplementationError, ProtocolError, OSError) as error:
            said = printable(str(error), keep="\n")
            raise UsageError(f"--qs-impl: the implementation cannot be used: {said}") from None

    def ask(self, case: Case) -> CaseResult:
        """The result of a case. UsageError where the implementation cannot be used at all.

        Whether a case is asked twice depends on its id alone, so that a run split over workers asks what one does.
        """
        self.greet()
        if self._greeted is None:
            raise AssertionError("greeted without an identity")
        options = RunOptions(seed=zlib.crc32(case.id.encode()), keep=KEEP)
        return next(iter(run_suite([case], self._greeted, options)))

    @property
    def info(self) -> dict[str, str]:
        """What conditions of expectations ask of a run; {} before the first case."""
        if self._greeted is None:
            return {}
        host = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": platform.machine(),
            "platform": platform.platform(),
        }
        return run_info({"implementation": asdict(self._greeted.identity), "host": host})

    def close(self) -> None:
        """Close the implementation, if it was opened."""
        opened, self._opened, self._greeted = self._opened, None, None
        if opened is not None:
            opened.close()
