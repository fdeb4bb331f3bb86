"""A file that is written whole or not at all: through a temporary file beside it, then renamed."""

import os
import tempfile
from pathlib import Path

from .errors import UsageError
from .outside import kind_of, reason_of

__all__ = ["check_target", "write_whole"]


def check_target(path: Path, shown: str) -> Path:
    """The file to write, behind symbolic links; `shown` names the argument. UsageError for what cannot be written, before
    the work and not after it.
    """
    if str(path) == "-":  # elsewhere that is stdout; here the report goes there
        raise UsageError(f"{shown} is no file: stdout has the report; allowed: a regular file, or a new one")
    try:
        kind = kind_of(path.stat().st_mode)  # of the path as given: behind /dev/stdout lies a name that no file has
    except FileNotFoundError:
        kind = None
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown} cannot be written: {reason_of(error)}") from None
    if kind is not None:
        raise UsageError(f"{shown} is {kind}; allowed: a regular file, or a new one")
    try:
        target = path.resolve()
        if not target.parent.is_dir():
            raise UsageError(f"{shown}: no folder {str(target.parent)!r}")
        handle, name = _temporary(target)
        os.close(handle)
        Path(name).unlink()
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError
        raise UsageError(f"{shown}: the folder cannot be written: {reason_of(error)}") from None
    return target


def write_whole(target: Path, data: bytes, shown: str) -> None:
    """Write, then rename: a reader sees all of it or what was there before. `target` is what `check_target` returned.

    UsageError where the system refuses.
    """
    try:
        _write(target, data)
    except OSError as error:
        raise UsageError(f"{shown} cannot be written: {reason_of(error)}") from None


def _temporary(path: Path) -> tuple[int, str]:
    return tempfile.mkstemp(prefix=".quantspec-", suffix=".tmp", dir=path.parent)


def _write(path: Path, data: bytes) -> None:
    handle, name = _temporary(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
