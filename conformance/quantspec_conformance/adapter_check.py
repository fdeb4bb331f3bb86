"""`adapter check`: what must hold of an adapter before its bits mean anything, looked at before any run. Rules CNF-1, CNF-5."""

import shlex
from collections.abc import Sequence

from .adapter_bits import check_answers
from .adapter_talk import check_process
from .findings import Finding, exit_code, finding_lines
from .implementations.address import open_implementation
from .implementations.errors import ImplementationError
from .implementations.process import ProcessImplementation
from .protocol.messages import Implementation
from .suite.case import Case

__all__ = ["check_adapter", "exit_code", "finding_lines"]


def check_adapter(adapter: str | Sequence[str], cases: Sequence[Case], *, timeout: float = 10.0) -> list[Finding]:
    """What is found of an address (`exec:COMMAND`, `py:...`, ...) or of a command as a list of words; of `cases` those of
    level 0 that it claims are asked. A command is also checked as a process. UsageError for an address that is none."""
    command = _command(adapter)
    if command is not None:
        found = check_process(command, timeout=timeout)
        if found[0].bad:
            return found
        opened: Implementation = ProcessImplementation(command, timeout=timeout)
    else:
        found, opened = [], open_implementation(str(adapter), timeout=timeout)
    try:
        return [*found, *check_answers(opened, cases)]
    except ImplementationError as error:
        return [Finding("start", "bad", str(error).splitlines()[0], "it must say who it is: hello")]
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
