"""Compiled programs on disk, so that a process starts at once. Whatever is wrong with the disk or a file, it compiles instead.

A file is written whole under another name and then renamed, and starts with a digest of the rest: processes that start or die
at once cannot harm one another, no lock is waited for, and a damaged file is one that is not there.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pyopencl as cl

__all__ = ["folder", "key_of", "load", "spare_pyopencl", "store"]

OFF = "PYOPENCL_NO_CACHE"  #: set: nothing is read from disk or written there
DIGEST = 32
#: What changes the code that a runtime makes, or the options that pyopencl adds, and shows in no name of the device.
CHANGING = ("CL_CONFIG_", "POCL_", "OCLGRIND_", "PYOPENCL_BUILD_OPTIONS")


def folder() -> Path | None:
    """Where compiled programs are kept; None where there is no such place, or it is switched off."""
    if os.environ.get(OFF):
        return None
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return (Path(given) if given else Path.home() / ".cache") / "quantspec" / "programs"
    except RuntimeError:
        return None  # no home: a container whose user has no entry


def key_of(device: cl.Device, source: str, options: Sequence[str]) -> str:
    """A digest of all that a compiled program depends on."""
    platform = device.platform
    names = (platform.vendor, platform.name, platform.version, device.vendor, device.name, device.version)
    changing = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(CHANGING))
    parts = (cl.VERSION_TEXT, sys.platform, *names, device.driver_version, *changing, *options, source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def spare_pyopencl() -> None:
    """Switch pyopencl's own caches off where they cannot be written: they stop a kernel there, instead of doing without."""
    place = folder()
    try:
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return
    except OSError:
        pass
    setattr(cl, f"_{OFF}", True)  # as the variable does, which pyopencl reads only once


def load(key: str) -> bytes | None:
    """A compiled program, if it is on disk as it was written."""
    place = folder()
    if place is None:
        return None
    try:
        data = (place / key).read_bytes()
    except OSError:
        return None
    digest, binary = data[:DIGEST], data[DIGEST:]
    return binary if hashlib.sha256(binary).digest() == digest else None


def store(key: str, binary: bytes) -> None:
    """Keep a compiled program, if the disk lets us."""
    place = folder()
    if place is None or not binary:
        return
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(binary).digest() + binary)
            os.replace(name, place / key)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
