"""`quantspec run --impl`: the suite on one implementation, from address to verdict."""

import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from types import FrameType

from .capabilities import strange_names
from .errors import INTERRUPTED, DeviceError, UsageError
from .expect import Applied, Compared, Expectations, apply, read, run_info, unfinished
from .implementations.address import open_implementation
from .implementations.errors import ImplementationError
from .implementations.gate import UNKNOWN, echo_gate
from .outside import printable
from .protocol.messages import Identity, Implementation
from .report import console, progress
from .resultset.header import make_header
from .resultset.record import CaseRecord
from .resultset.writer import ResultWriter, target_of
from .suite.case import Case
from .suite.outcome import CaseResult
from .suite.run import RunOptions, run_suite
from .suite.select import select
from .suite.store import SUITE_VERSION, load_all, suite_digest, vectors_root
from .suitereport import Told, print_run
from .testing.profiles import PROFILES

__all__ = ["SuiteOptions", "chosen_cases", "run_suite_command", "shipped"]

#: Seconds a request, unless said otherwise.
TIMEOUT = 10.0
#: Outcomes that need no expectation.
FINE = ("pass", "unsupported")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """The options of `quantspec run --impl`."""

    address: str
    select: str = ""
    level: int = 0
    profile: str = ""
    expect: Path | None = None
    out: Path | None = None
    timeout: float = TIMEOUT
    repeat: float = 0.02
    seed: int = 0
    first: int = 5


@dataclass(slots=True)
class _Run:
    """What is known of a run so far."""

    options: SuiteOptions
    cases: Sequence[Case]
    suite: tuple[str, str, int]
    expectations: Expectations | None
    today: date
    identity: Identity | None = None
    writer: ResultWriter | None = None
    results: list[CaseResult] = field(default_factory=list)
    gate: list[str] = field(default_factory=list)
    stopped: bool = False

    def info(self) -> Mapping[str, str]:
        """What conditions of expectations ask of this run."""
        return {} if self.writer is None else run_info(self.writer.run.header)

    def greeted(self, identity: Identity) -> None:
        """The implementation said who it is: the result file begins."""
        if self.identity is not None:
            return
        self.identity, options = identity, self.options
        header = make_header(
            suite=self.suite, address=options.address, identity=identity, command=["quantspec", *sys.argv[1:]],
            expression=options.select, levels=range(options.level + 1), profile=options.profile, seed=options.seed,
            quick=options.level == 0,
        )  # fmt: skip
        self.writer = ResultWriter(options.out, header, planned=[case.id for case in self.cases])

    def take(self, result: CaseResult) -> None:
        """A case is known: it is written down at once."""
        self.results.append(result)
        if self.writer is None:
            return
        row = Compared(result, "pass", "")
        if self.expectations is not None:
            row = apply(self.expectations, [result], self.info(), self.today).results[0]
        self.writer.write(CaseRecord.of(result, expected=row.expected, comparison=row.comparison))


@cache
def shipped() -> tuple[Case, ...]:
    """Every case that is shipped, read once a process."""
    return load_all(vectors_root())


def chosen_cases(expression: str = "", *, level: int = 0, profile: str = "") -> list[Case]:
    """The cases of the levels up to this one that an expression, or a profile, selects. UsageError where none is."""
    if profile and profile not in PROFILES:
        raise UsageError(f"--profile {profile!r} is no profile; there are {', '.join(PROFILES)}")
    cases: Sequence[Case] = [case for case in shipped() if case.level <= level]
    whole = len(cases)
    if profile:
        cases = [case for case in cases if PROFILES[profile].holds(case)]
    found = list(select(cases, expression)) if expression else list(cases)
    if not found:
        raise UsageError(_none(expression or f"profile {profile}", level, whole))
    return found


def _none(expression: str, level: int, whole: int) -> str:
    """That nothing is selected, and at which level something would be."""
    higher = [case for case in shipped() if case.level > level]
    try:
        there = select(higher, expression)
    except UsageError:  # the name of a profile is no expression
        there = ()
    hint = f"; --level {min(case.level for case in there)} has some" if there else ""
    return f"{printable(expression)[:200]!r} selects none of the {whole} cases up to level {level}{hint}"


@contextmanager
def _interruptible(run: _Run) -> Iterator[None]:
    """While open, the first Ctrl-C or SIGTERM asks the run to stop; a second one does what it always does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: FrameType | None) -> None:
        run.stopped = True
        restore()

    for number in before:
        signal.signal(number, ask)
    try:
        yield
    finally:
        restore()


def run_suite_command(options: SuiteOptions) -> int:
    """Run and report; the exit code. Raises HarnessError for what keeps a run from starting."""
    if options.out is not None:
        target_of(options.out)
    root = vectors_root()
    cases = chosen_cases(options.select, level=options.level, profile=options.profile)
    expectations = None if options.expect is None else read(options.expect)
    suite = (suite_digest(root), SUITE_VERSION, len(shipped()))
    run = _Run(options, cases, suite, expectations, datetime.now(UTC).date())
    implementation = open_implementation(options.address, timeout=options.timeout)
    try:
        _go(run, implementation)
    except ImplementationError as error:
        raise DeviceError(f"--impl {options.address!r} cannot be used: {error}") from None
    finally:
        implementation.close()
    applied = _applied(run)
    code = _exit_code(run, applied)
    unwritten: UsageError | None = None
    if run.writer is not None:
        try:
            run.writer.close(interrupted=run.stopped)
        except UsageError as error:
            unwritten = error
    extra = () if options.timeout == TIMEOUT else ("--timeout", f"{options.timeout:g}")
    told = Told(options.address, run.identity, run.results, cases, run.gate, run.stopped, extra, _warnings(run))
    print_run(console(), told, suite, applied,
              first=options.first, level=options.level, profile=options.profile, out_file=options.out, code=code)  # fmt: skip
    if unwritten is not None:
        raise unwritten
    return code


def _go(run: _Run, implementation: Implementation) -> None:
    """Look whether patterns come back as they went, then ask every case under a progress bar."""
    options = run.options
    how = RunOptions(repeat=options.repeat, seed=options.seed, keep=max(options.first, 8), suite=run.suite[0])

    def known(identity: Identity) -> None:
        run.greeted(identity)
        try:
            run.gate = echo_gate(implementation)
        except ImplementationError as error:
            run.gate = [f"it broke: {error}"]

    with _interruptible(run), progress(len(run.cases)) as bar:
        bar.start()
        for result in run_suite(run.cases, implementation, how, on_identity=known, stopped=lambda: run.stopped):
            run.take(result)
            bar.advance(bar.task_ids[0])


def _warnings(run: _Run) -> list[str]:
    """What the implementation and the expectations say that means nothing, or nothing yet."""
    names = [] if run.identity is None else strange_names(run.identity)
    undecided = [] if run.expectations is None else unfinished(run.expectations)
    return [*(f"identity  {line}: never asked for" for line in names), *(f"expect    {line}" for line in undecided)]


def _applied(run: _Run) -> Applied | None:
    if run.expectations is None:
        return None
    ids = [case.id for case in shipped()]
    return apply(run.expectations, run.results, run.info(), run.today, suite_ids=ids)


def _exit_code(run: _Run, applied: Applied | None) -> int:
    """0 as expected, 1 an unexpected outcome, 130 a run cut short, whatever it found until then."""
    if run.stopped:
        return INTERRUPTED
    if any(not line.startswith(UNKNOWN) for line in run.gate):
        return 1
    if applied is not None:
        return applied.exit_code
    return 0 if all(result.outcome in FINE for result in run.results) else 1
