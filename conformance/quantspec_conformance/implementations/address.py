"""Addresses: what `--impl` names, as an implementation.

reference                the law
py:FILE.py:CLASS, py:NAME   a class in this process, NAME an installed entry point
exec:COMMAND ARGUMENTS   a command that speaks the protocol; split as a shell would, never run by one
opencl:N, opencl:LABEL   a device as `quantspec devices` lists them, in a process of its own
files:FOLDER             answers that were made elsewhere
"""

import shlex
from pathlib import Path

from ..errors import DeviceError, UsageError
from ..outside import printable
from ..protocol.messages import Implementation
from .process import ProcessImplementation

__all__ = ["ALLOWED", "open_implementation"]

ALLOWED = "reference, py:FILE.py:CLASS, py:NAME, exec:COMMAND, opencl:N, opencl:LABEL, files:FOLDER"
#: Seconds for a command to start, and for a device to be opened and its first kernels to be built.
_HELLO, _DEVICE_HELLO = 30.0, 120.0


def open_implementation(address: str, *, timeout: float = 10.0) -> Implementation:
    """The implementation of an address; processes start when they are first asked. UsageError, DeviceError."""
    kind, colon, rest = address.partition(":")
    if address == "reference":
        from .law import Law

        return Law()
    if not colon or not rest.strip() or kind not in ("py", "exec", "opencl", "files"):
        raise UsageError(f"{printable(address)!r} is no address of an implementation; allowed: {ALLOWED}")
    if kind == "py":
        from .python import open_python

        return open_python(address)
    if kind == "exec":
        return ProcessImplementation(_command(rest), timeout=timeout, hello_timeout=_HELLO)
    if kind == "files":
        from .files import FilesImplementation

        return FilesImplementation(Path(rest))
    return _device(rest, timeout)


def _command(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"exec:{printable(text)}: {error}; words are split as a shell does it") from None
    if not words or not words[0] or "\0" in text:
        raise UsageError(f"exec:{printable(text)} names no command; allowed: exec:COMMAND ARGUMENTS")
    return words


def _device(spec: str, timeout: float) -> Implementation:
    """A device by its number in the list of `quantspec devices`, or as find_targets knows it."""
    from .served import open_served_process

    if spec.isascii() and spec.isdigit():
        from ..devices import INSTALL, survey

        rows = [row for row in survey(measure=False) if not row.get("error")]
        if not rows:
            raise DeviceError(INSTALL)
        if int(spec[:9]) >= len(rows):
            names = ", ".join(f"opencl:{n} ({row['label']})" for n, row in enumerate(rows))
            raise DeviceError(f"opencl:{spec[:9]}: there are {names}")
        local, variables = rows[int(spec)]["local"], rows[int(spec)]["variables"]
    else:
        from ..targets import find_targets

        if spec == "reference" or spec.startswith("py:"):
            raise UsageError(f"opencl:{printable(spec)} names no device; allowed: {ALLOWED}")
        (target,), _ = find_targets([spec])
        local, variables = target.address, target.variables
    return open_served_process(f"opencl:{local}", timeout=timeout, hello_timeout=_DEVICE_HELLO, variables=variables)
