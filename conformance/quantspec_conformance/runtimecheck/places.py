"""Places: where each runtime of the check lives, what a process needs to load it, and how it is installed.

A runtime is looked for where pip or the system put it, then in a folder of our own, into which `devices --prepare` puts
what is missing, without root and without an .icd file that every other program on the machine would see.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from quantspec_cl.runtimes import SYSTEM_VENDORS, Runtime, find_runtimes

__all__ = ["PLACES", "Place", "folder", "libraries", "place_of", "prepared", "system_places"]

PREPARE = "quantspec devices --prepare"
LIBCLC = Path("/usr/lib/clc/spirv64-mesa3d-.spv")  #: rusticl looks for it here and nowhere else

Variables = Mapping[str, str]


def folder() -> Path:
    """Where `--prepare` puts runtimes: QUANTSPEC_RUNTIMES, or a folder in the user's cache."""
    given = os.environ.get("QUANTSPEC_RUNTIMES")
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(given) if given else Path(cache) / "quantspec-runtimes"


def prepared(name: str) -> Path:
    """The folder of one prepared runtime or tool set."""
    return folder() / name


def libraries(name: str) -> list[Path]:
    """The library folders of packages that were unpacked into a prepared folder."""
    root = prepared(name) / "usr" / "lib"
    return [
        each for each in (root / f"{os.uname().machine}-linux-gnu", *sorted(root.glob("llvm-*/lib"))) if each.is_dir()
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """A runtime: its name, what to set so that a process sees it and nothing else (None: not installed), how to install it."""

    name: str
    find: Callable[[], Variables | None]
    install: tuple[str, ...]


def _found(name: str, sources: Sequence[str]) -> Runtime | None:
    return next((each for each in find_runtimes() if each.name == name and each.source in sources), None)


def _of_pip(name: str) -> Callable[[], Variables | None]:
    def find() -> Variables | None:
        runtime = _found(name, ("pyopencl", "environment"))
        return None if runtime is None else dict(runtime.variables)

    return find


def _of_debian(icd: str, unpacked: str, library: str, extra: Callable[[], Variables]) -> Callable[[], Variables | None]:
    def find() -> Variables | None:
        system = SYSTEM_VENDORS / f"{icd}.icd"
        if system.is_file():
            return {"OCL_ICD_VENDORS": str(system)}
        for path in libraries(unpacked):
            for found in sorted(path.glob(library)):
                search = os.pathsep.join(map(str, libraries(unpacked)))
                return {"OCL_ICD_VENDORS": str(found), "LD_LIBRARY_PATH": search, **extra()}
        return None

    return find


def _pipes() -> Variables:
    """Where Mesa's unpacked packages have their drivers."""
    return {"GALLIUM_PIPE_SEARCH_DIR": str(libraries("rusticl")[0] / "gallium-pipe")}


def _rusticl() -> Variables | None:
    found = _of_debian("rusticl", "rusticl", "libRusticlOpenCL.so.1", _pipes)()
    return {**found, "RUSTICL_ENABLE": "llvmpipe"} if found is not None and LIBCLC.is_file() else None


def _oclgrind() -> Variables | None:
    runtime = _found("oclgrind", ("pyopencl", "system"))
    if runtime is not None:
        return dict(runtime.variables)
    for library in sorted(prepared("oclgrind").glob("pyopencl/.libs/liboclgrind-rt-icd*.so")):
        return {"OCL_ICD_VENDORS": str(library)}
    return None


_APT = "apt-get install -y --no-install-recommends"
_PIP = f"{Path(sys.executable).name} -m pip install"

#: Every runtime of the check.
PLACES: dict[str, Place] = {
    place.name: place
    for place in (
        Place("pocl", _of_pip("pocl"), (f'{_PIP} "quantspec[cl-cpu]"',)),
        Place("intel", _of_pip("intel"), (f'{_PIP} "quantspec[cl,cl-intel]"',)),
        Place(
            "pocl-debian",
            _of_debian("pocl", "pocl-debian", "libpocl.so.*.*", dict),
            (PREPARE, f"{_APT} pocl-opencl-icd"),
        ),
        Place("rusticl", _rusticl, (f"{PREPARE}, as root (it needs libclc in /usr/lib)", f"{_APT} mesa-opencl-icd")),
        Place("oclgrind", _oclgrind, (PREPARE, f'{_PIP} "pyopencl[oclgrind]"')),
    )
}

#: .icd files of the system that a place above looks for, or that show no device of their own.
_KNOWN = ("pocl", "rusticl", "mesa", "oclgrind")


def system_places() -> list[Place]:
    """Runtimes of the system that no row names, such as a GPU's driver: each is a row of its own."""
    found = [icd for icd in sorted(SYSTEM_VENDORS.glob("*.icd")) if icd.stem not in _KNOWN]
    return [Place(f"system-{icd.stem}", partial(_listed, str(icd)), ()) for icd in found]


def _listed(icd: str) -> Variables:
    return {"OCL_ICD_VENDORS": icd}


def place_of(name: str) -> Place:
    """A place of the table, or of the system."""
    return PLACES.get(name) or {place.name: place for place in system_places()}[name]
