"""`adapter check`: what must hold of an adapter before its bits mean anything, looked at before any run. Rules CNF-1, CNF-5."""

import shlex
from collections.abc import Callable, Iterator, Sequence

from .adapter_bits import check_answers
from .adapter_talk import check_process
from .findings import Finding, count_line, exit_code, finding_lines, row_lines
from .implementations.address import open_implementation
from .implementations.errors import ImplementationError
from .implementations.process import ProcessImplementation
from .protocol.messages import Implementation
from .suite.case import Case

__all__ = ["check_adapter", "count_line", "exit_code", "finding_lines", "row_lines"]


def check_adapter(
    adapter: str | Sequence[str],
    cases: Sequence[Case],
    *,
    timeout: float = 10.0,
    on_finding: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """What is found of an address (`exec:COMMAND`, `py:...`, ...) or of a command as a list of words; of `cases` those of
    level 0 that it claims are asked. A command is also checked as a process. `on_finding` is called with each finding as
    soon as it is known. UsageError for an address that is none."""
    found: list[Finding] = []
    for finding in _found(adapter, cases, timeout):
        found.append(finding)
        if on_finding is not None:
            on_finding(finding)
    return found


def _found(adapter: str | Sequence[str], cases: Sequence[Case], timeout: float) -> Iterator[Finding]:
    command = _command(adapter)
    address = adapter if isinstance(adapter, str) else f"exec:{shlex.join(adapter)}"
    if command is not None:
        for finding in check_process(command, timeout=timeout):
            yield finding
            if finding.check == "start" and finding.bad:
                return
        opened: Implementation = ProcessImplementation(command, timeout=timeout)
    else:
        opened = open_implementation(address, timeout=timeout)
    try:
        yield from check_answers(opened, cases, address)
    except ImplementationError as error:
        yield Finding("start", "bad", str(error), "it must say who it is: hello")
    finally:
        opened.close()


def _command(adapter: str | Sequence[str]) -> list[str] | None:
    """The words of a command; None for an address of another kind."""
    if not isinstance(adapter, str):
        return list(adapter)
    if not adapter.startswith("exec:"):
        return None
    try:
        words = shlex.split(adapter.removeprefix("exec:"))
    except ValueError:
        words = []
    return words or None  # what is none is refused where addresses are opened
