"""Programs: the kernels' text, their build, and what each kernel's arguments are.

Two kinds. The generic program serves every scheme: format facts are rows of a table in device memory. Specialised programs
serve one kind of scheme each, fast: the same facts become `-D` definitions, and every such program of the package is
listed by `all_programs`. A program is built once a context; what was compiled is kept on disk (`cache`).
"""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from uuid import uuid4

import numpy as np
import pyopencl as cl

from . import cache as disk
from .errors import BuildError

__all__ = ["BUILD_OPTIONS", "GENERIC", "SOURCES", "Program", "all_programs", "build", "register", "source_of"]

#: The files that make the program, in the order in which they use one another.
SOURCES = (
    *("prelude.cl", "steps.cl", "values.cl", "scales.cl", "blocks.cl", "amax.cl", "quantize.cl", "packing.cl"),
    *("layout.cl", "operations.cl"),
)
BUILD_OPTIONS = ("-cl-std=CL1.2", "-Werror")

ScalarType = type[np.uint32] | type[np.uint64] | None


@dataclass(frozen=True, slots=True)
class Program:
    """Kernel files, in the order in which they use one another, and the definitions that specialise them."""

    files: tuple[str, ...]
    definitions: tuple[str, ...] = ()  #: "-DNAME=VALUE"

    @property
    def source(self) -> str:
        """The text that is compiled."""
        return source_of(*self.files)


GENERIC = Program(SOURCES)

_FAMILIES: list[Callable[[], Iterable[Program]]] = []


def register(family: Callable[[], Iterable[Program]]) -> Callable[[], Iterable[Program]]:
    """Add the programs of a module to `all_programs`; a decorator."""
    _FAMILIES.append(family)
    return family


def all_programs() -> list[Program]:
    """Every program that this package can build, each once: what is compiled offline and gone through by the checkers."""
    return list(dict.fromkeys([GENERIC, *(program for family in _FAMILIES for program in family())]))


@cache
def source_of(*names: str) -> str:
    """The text of kernel files, each numbered as its own so that a compiler's message names file and line."""
    folder = resources.files("quantspec_cl") / "cl"
    return "".join(f'#line 1 "{name}"\n{(folder / name).read_text(encoding="utf-8")}\n' for name in names)


def build(
    context: cl.Context, source: str, options: Sequence[str] = (), device: cl.Device | None = None
) -> Mapping[str, cl.Kernel]:
    """The kernels of a source, by name, with the types of their scalar arguments set. Raises BuildError with the log."""
    arguments, told = _arguments(source), [*BUILD_OPTIONS, *options]
    with warnings.catch_warnings():
        # PoCL's log is never empty; real warnings are errors by -Werror
        warnings.simplefilter("ignore", cl.CompilerWarning)
        try:
            kernels = _kernels(context, context.devices[0] if device is None else device, source, told, list(arguments))
        except cl.Error as error:
            if error.code == cl.status_code.INVALID_KERNEL_NAME:
                raise BuildError("the program lacks kernels, compiled a second time too", str(error)) from error
            raise BuildError(f"the kernels did not build with options {told}", str(error)) from error
    for name, kernel in kernels.items():
        kernel.set_scalar_arg_dtypes(arguments[name])
    return kernels


def _kernels(
    context: cl.Context, device: cl.Device, source: str, options: list[str], names: Sequence[str]
) -> dict[str, cl.Kernel]:
    """The kernels, from disk or compiled; twice where the runtime's own cache gives a program without kernels.

    PoCL's does after a process was killed, or its compiler aborted, half-way: another text is another entry of it.
    """
    key = disk.key_of(device, source, options)
    binary = disk.load(key)
    if binary is not None:
        with suppress(cl.Error):  # of another build of the runtime, or spoilt: as if it were not there
            return _named(cl.Program(context, [device], [binary]), device, options, names)[1]
    try:
        program, kernels = _named(cl.Program(context, source), device, options, names)
    except cl.Error as error:
        if error.code != cl.status_code.INVALID_KERNEL_NAME:
            raise
        again = f"{source}\n__constant int again_{uuid4().hex} = 0;\n"
        program, kernels = _named(cl.Program(context, again), device, options, names)
    devices: Any = program.get_info(cl.program_info.DEVICES)
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    disk.store(key, binaries[devices.index(device)])
    return kernels


def _named(
    program: cl.Program, device: cl.Device, options: list[str], names: Sequence[str]
) -> tuple[cl.Program, dict[str, cl.Kernel]]:
    disk.spare_pyopencl()
    without: Any = False  # pyopencl takes it for its own cache, though its signature says str
    program.build(options, devices=[device], cache_dir=without)
    return program, {name: cl.Kernel(program, name) for name in names}


@cache
def _arguments(source: str) -> dict[str, list[ScalarType]]:
    """Kernel name to the type of each argument, None for a buffer, read from the signatures."""
    found: dict[str, list[ScalarType]] = {}
    for name, signature in re.findall(r"__kernel\s+void\s+(\w+)\s*\(([^)]*)\)", source):
        found[name] = [_argument(part.split()) for part in signature.split(",")]
    return found


def _argument(words: Sequence[str]) -> ScalarType:
    if any("*" in word for word in words):
        return None
    return np.uint32 if words[0] == "uint" else np.uint64
