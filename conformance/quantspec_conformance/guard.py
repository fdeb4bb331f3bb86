"""What every command does around its work: a fault of the harness is one line on stderr and an exit code, never a traceback."""

import errno
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, ParamSpec, TypeVar

import click

import quantspec

from .errors import INTERRUPTED, HarnessError, UsageError
from .outside import printable, reason_of

__all__ = ["guarded"]

P = ParamSpec("P")
R = TypeVar("R")

NEWLINE = "\n"
READER_LEFT = 141
TERMINATED = 143
UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _fail(error: HarnessError) -> NoReturn:
    with suppress(OSError):
        click.echo(f"quantspec: {printable(str(error), keep=NEWLINE)}", err=True)
    sys.exit(error.exit_code)


def _unwritable(error: OSError) -> NoReturn:
    """End where stdout takes no more: 141, as a shell says of SIGPIPE, where its reader left; a usage error otherwise."""
    with suppress(OSError, ValueError):  # what is still buffered would fail again at the end of the process
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        sys.exit(READER_LEFT)
    _fail(UsageError(f"cannot write the report: {reason_of(error)}"))


def _end_on_sigterm() -> None:
    """Let SIGTERM end the command as an exception, so that what it started is ended too."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(TERMINATED))


def _flush() -> None:
    if sys.stdout is not None:  # None where the process was started without one
        sys.stdout.flush()


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """End with the exit code of a fault of the harness, its message on stderr and no traceback."""

    @functools.wraps(command)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        _end_on_sigterm()
        try:
            try:
                return command(*args, **kwargs)
            finally:
                _flush()
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            _unwritable(error)
        except HarnessError as error:
            _fail(error)
        except quantspec.QuantspecError as error:
            _fail(UsageError(str(error)))

    return inner
