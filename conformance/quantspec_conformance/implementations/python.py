"""`py:FILE.py:CLASS` and `py:NAME`: implementations in Python, in this process.

NAME is an entry point of the group `quantspec.implementations`. A class with `hello` and `handle` is taken as it is, one
with the methods of adapters.Adapter through a bridge. Loading one runs its code: name only files that you trust.
"""

import importlib.util
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ..errors import DeviceError
from ..outside import kind_of, printable
from ..protocol.messages import Implementation
from .guard import Guard
from .methods import MethodImplementation

__all__ = ["GROUP", "open_python"]

GROUP = "quantspec.implementations"
_WRITE = "write py:FILE.py:CLASS, or py:NAME of an installed implementation"


def open_python(address: str) -> Implementation:
    """The implementation of an address. DeviceError where there is none or it cannot be made."""
    name = address.removeprefix("py:")
    made = _made(address, _from_file(address, name) if ":" in name or name.endswith(".py") else _entry(address, name))
    if callable(getattr(made, "hello", None)) and callable(getattr(made, "handle", None)):
        return Guard(made, printable(address))
    lacking = [method for method in ("identity", "quantize", "quantized", "fetch") if not hasattr(made, method)]
    if lacking:
        raise DeviceError(
            f"{printable(address)} has neither hello and handle nor the methods of an adapter ({lacking[0]} is missing)"
        )
    return Guard(MethodImplementation(made), printable(address))


def _made(address: str, maker: Any) -> Any:
    """What a class or factory gives. Whatever it raises is a device that cannot be opened."""
    try:
        return maker()
    except (Exception, SystemExit) as error:
        raise DeviceError(f"{printable(address)} cannot be opened: {_said(error)}") from None


def _said(error: BaseException) -> str:
    return printable(f"{type(error).__name__}: {str(error)[:500]}")


def _entry(address: str, name: str) -> Any:
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        names = ", ".join(sorted(found)) or "none"
        raise DeviceError(f"{printable(address)} names no implementation; installed: {printable(names)}; {_WRITE}")
    try:
        return found[name].load()
    except (Exception, SystemExit) as error:
        raise DeviceError(f"{printable(address)} cannot be imported: {_said(error)}") from None


def _from_file(address: str, text: str) -> Any:
    path, _, name = text.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise DeviceError(f"{printable(address)} names no class; {_WRITE}")
    file = Path(path)
    try:
        kind = kind_of(file.stat().st_mode)
    except (OSError, ValueError):
        kind = "no file that can be read"
    if kind is not None:
        raise DeviceError(f"{printable(path)} is {kind}; {_WRITE}")
    spec = importlib.util.spec_from_file_location(f"quantspec_py_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise DeviceError(f"{printable(path)} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles of the file look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise DeviceError(f"{printable(path)} cannot be imported: {_said(error)}") from None
    if not hasattr(module, name):
        raise DeviceError(f"{printable(path)} has no class {name!r}")
    return getattr(module, name)
