"""The implementations that the cases run on: the numpy reference, and the kernels on the CPU device that pip installs."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ..bridge import REFERENCE, Verbs

if TYPE_CHECKING:
    from quantspec_cl import Session


@pytest.fixture(scope="session")
def session() -> "Session":
    """PoCL's CPU device, every buffer poisoned before a kernel writes it (CNF-3)."""
    quantspec_cl = pytest.importorskip("quantspec_cl", exc_type=ImportError)
    try:
        opened: Session = quantspec_cl.open_device("pocl", poison=True)
    except quantspec_cl.NoDeviceError as error:
        pytest.skip(str(error))
    return opened


def host(verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """A device verb's result as the reference's own kind: record, array or bytes."""
    return verb(*arguments, **options).get()


def device_verbs(session: "Session") -> Verbs:
    """The verbs of a session with results on the host."""
    names = (
        "encode",
        "decode",
        "encode_scale",
        "decode_scale",
        "quantize",
        "dequantize",
        "pack",
        "unpack",
        "from_bytes",
        "split",
    )
    wrapped = {name: partial(host, getattr(session, name)) for name in names}
    return Verbs(to_bytes=lambda *a, **k: session.to_bytes(*a, **k).get().tobytes(), **wrapped)


@pytest.fixture(params=["reference", pytest.param("device", marks=pytest.mark.opencl)])
def verbs(request: pytest.FixtureRequest) -> Verbs:
    """The eleven verbs of each implementation in turn."""
    if request.param == "reference":
        return REFERENCE
    return device_verbs(request.getfixturevalue("session"))
