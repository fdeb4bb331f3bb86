"""Faults of a run that are not results: each class carries the exit code that the command ends with."""

__all__ = ["INTERRUPTED", "DamagedError", "DeviceError", "HarnessError", "UsageError"]

#: The exit code of a command that was cut short, as a shell says of SIGINT.
INTERRUPTED = 130


class HarnessError(Exception):
    """Base: a run that cannot start or go on; `exit_code` is the command's."""

    exit_code = 1


class UsageError(HarnessError):
    """An argument, pattern or file that names nothing or cannot be read."""

    exit_code = 2


class DeviceError(HarnessError):
    """No usable device or adapter."""

    exit_code = 3


class DamagedError(HarnessError):
    """The suite itself is damaged: rule texts, schemas or the matrix are not what they must be."""

    exit_code = 4
