"""Sessions for the kernel tests: PoCL by default, another device by QUANTSPEC_DEVICE (part of its name, or of its runtime's)."""

import importlib.util
import os
from functools import cache
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import quantspec_cl as qc
    from quantspec_cl.paths import PathChoice

MISSING = importlib.util.find_spec("pyopencl") is None
if MISSING:
    collect_ignore_glob = ["*.py"]

DEVICE = os.environ.get("QUANTSPEC_DEVICE", "portable")

#: Builds under which the same bits must come out: each plays a device that does less than IEEE 754 asks for.
BUILDS = {
    "plain": (),
    "flushing": ("-cl-denorms-are-zero",),
    "sloppy": ("-cl-fast-relaxed-math",),
    "unoptimised": ("-cl-opt-disable",),
}


@cache
def opened(*options: str, path: "PathChoice" = "auto") -> "qc.Session":
    """A poisoned session on the chosen device, one for each set of build options and choice of path."""
    import quantspec_cl as qc

    for runtime in qc.find_runtimes():
        if not runtime.listed and runtime.name == DEVICE:
            qc.use_runtime(runtime)
    try:
        return qc.open_device(DEVICE, build_options=options, poison=True, path=path)
    except qc.NoDeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def session() -> "qc.Session":
    """The device under test, every output poisoned."""
    return opened()


@pytest.fixture(scope="session", params=list(BUILDS))
def build(request: pytest.FixtureRequest) -> "qc.Session":
    """The device under test under each build."""
    return opened(*BUILDS[request.param])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line that says why no kernel test was collected, where that is so."""
    if MISSING:
        terminalreporter.write_line(
            "tests/kernels_cl SKIPPED: pyopencl is not installed (pip install 'quantspec[cl-cpu]')"
        )
