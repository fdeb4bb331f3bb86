"""Which OpenCL runtimes this machine has: found as files, without loading any of them.

The loader inside pyopencl's wheel reads /etc/OpenCL/vendors/*.icd and pyopencl/.libs/*.icd. Intel's runtime from PyPI is
in neither (its own .icd holds an unrelocated path), so it is looked for in the environment's lib folder. Where
OCL_ICD_VENDORS names one runtime, the loader sees no other, and so nothing else is found.
"""

import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import DeviceError

__all__ = ["Runtime", "find_runtimes", "use_runtime"]

SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
PIP_LIBRARIES = {"intel": "libintelocl.so"}


@dataclass(frozen=True, slots=True)
class Runtime:
    """One installed runtime. `variables`, set before a process looks for devices, make that process see only this one."""

    name: str  #: the .icd file's stem, or the vendor of a library that pip installed
    path: str  #: the .icd file or the library
    source: str  #: "system", "pyopencl", "environment", or "variable" for one that only OCL_ICD_VENDORS names
    listed: bool  #: the loader finds it with no variable set

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for a process of its own; runtimes that abort take their whole process down."""
        return {"OCL_ICD_VENDORS": self.path}


def find_runtimes() -> list[Runtime]:
    """Every runtime installed, or the one that OCL_ICD_VENDORS names; no context is created and no library opened."""
    vendors = Path(os.environ.get("OPENCL_VENDOR_PATH") or SYSTEM_VENDORS)
    found = [Runtime(icd.stem, str(icd), "system", True) for icd in _icds(vendors)]
    found += [Runtime(icd.stem, str(icd), "pyopencl", True) for icd in _icds(_pyopencl_libraries())]
    known = {_library(Path(runtime.path)) for runtime in found}
    for name, library in PIP_LIBRARIES.items():
        path = Path(sys.prefix) / "lib" / library
        if path.is_file() and str(path) not in known:
            found.append(Runtime(name, str(path), "environment", False))
    chosen = os.environ.get("OCL_ICD_VENDORS", "")
    if not Path(chosen).is_file():
        return found
    named = [runtime for runtime in found if runtime.path == chosen]
    return named or [Runtime(Path(chosen).name.partition(".")[0], chosen, "variable", True)]


def use_runtime(runtime: Runtime) -> None:
    """Make this process see only `runtime`; raises DeviceError where another choice of runtimes was made in it."""
    for name, value in runtime.variables.items():
        if os.environ.get(name, value) != value:
            raise DeviceError(
                f"runtime={runtime.name!r}: {name} is already {os.environ[name]!r} in this process; use another process"
            )
        os.environ[name] = value


def _icds(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*.icd")) if folder is not None and folder.is_dir() else []


def _pyopencl_libraries() -> Path | None:
    spec = importlib.util.find_spec("pyopencl")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / ".libs"


def _library(icd: Path) -> str:
    """The library that an .icd file names."""
    try:
        return icd.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
