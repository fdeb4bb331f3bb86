"""The echo gate: what passes through an implementation's host code must come back bit for bit, NaNs and -0 included.

Runs before any format is tested: a host that holds patterns as floats changes some of them on the way.
"""

import numpy as np
import numpy.typing as npt

from ..examples import DTYPES, Tensor
from ..protocol.bits import Bits, bits_of
from ..protocol.messages import Implementation, Ok, ProtocolError, Request, Unsupported

__all__ = ["UNKNOWN", "echo_gate", "probes"]

#: How the line begins that says that nothing is known, as there is no echo.
UNKNOWN = "echo is unsupported"

_F32 = (
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, 0x00400000,
    0x3F800000, 0xBF800000, 0x3FC00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
    0x7FC00000, 0xFFC00000, 0x7FC00001, 0xFFC00001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FD55555, 0xFFEAAAAA, 0x7FE01234,
    0x7F800001, 0xFF800001, 0x7FBFFFFF, 0xFFBFFFFF, 0x7FA00000, 0xFFA00000, 0x7F812345, 0xFF9ABCDE, 0x7F900000,
)  # fmt: skip
_SHOWN = 3
_QUIET = {"f32": 0x00400000, "f16": 0x0200, "bf16": 0x0040}
_SIGN = {"f32": 0x80000000, "f16": 0x8000, "bf16": 0x8000}
_EXPONENT = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80}
_NORMAL = {"f32": 0x00800000, "f16": 0x0400, "bf16": 0x0080}


def probes() -> dict[str, Tensor]:
    """What is sent: every pattern of f16 and of bf16, patterns of f32 that floats of a host lose, every byte, wide integers."""
    every = np.arange(2**16, dtype=np.uint16)
    whole = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0x01000001, 0xFFFFFFFF, 0x12345678], np.uint32)
    return {
        "f16": Bits("f16", (256, 256), every),
        "bf16": Bits("bf16", (65536,), every),
        "f32": Bits("f32", (len(_F32),), np.array(_F32, np.uint32)),
        "u8": Bits("u8", (256,), np.arange(256, dtype=np.uint8)),
        "u16": Bits("u16", (2**16,), every),
        "u32": Bits("u32", whole.shape, whole),
        "scalar": Bits("f32", (), np.array(0xFF800001, np.uint32)),
        "empty": Bits("f32", (2, 0), np.zeros((2, 0), np.uint32)),
    }


def echo_gate(implementation: Implementation) -> list[str]:
    """What comes back changed, a line each with what that hints at; empty where everything comes back.

    ImplementationError of an implementation in a process goes through.
    """
    found: list[str] = []
    for name, tensor in probes().items():
        answer = implementation.handle(Request("echo", {}, {name: tensor}))
        if isinstance(answer, Unsupported):
            return [f"{UNKNOWN}: that patterns pass unchanged is not known ({answer.message or answer.feature})"]
        if not isinstance(answer, Ok):
            found.append(f"{name}: {type(answer).__name__.lower()}: {getattr(answer, 'message', '')[:200]}")
        elif set(answer.tensors) != {name}:
            found.append(f"{name}: it gave {', '.join(answer.tensors) or 'no tensor'}; allowed: the tensor it was sent")
        else:
            found += _changed(name, tensor, answer.tensors[name])
    return found


def _changed(name: str, sent: Tensor, came: Tensor) -> list[str]:
    if (sent.dtype, sent.shape) != (came.dtype, came.shape):
        return [f"{name}: {sent.dtype} of shape {sent.shape} came back as {came.dtype} of shape {came.shape}"]
    try:
        before, after = bits_of(sent, name).reshape(-1), bits_of(came, name).reshape(-1)
    except ProtocolError as error:
        return [f"{name}: {error}"]
    places = np.flatnonzero(before != after)
    if not places.size:
        return []
    digits, _ = DTYPES[sent.dtype]
    pairs = [f"{int(before[i]):0{digits}X} as {int(after[i]):0{digits}X}" for i in places[:_SHOWN]]
    hint = _hint(sent.dtype, before[places], after[places])
    return [f"{name}: {places.size} of {before.size} patterns came back changed: {', '.join(pairs)}{hint}"]


def _hint(dtype: str, before: npt.NDArray[np.unsignedinteger], after: npt.NDArray[np.unsignedinteger]) -> str:
    """What a host does that changes exactly these patterns."""
    if dtype not in _QUIET:
        return "; integers pass through floats"
    exponent, sign = np.uint32(_EXPONENT[dtype]), np.uint32(_SIGN[dtype])
    sent, came = before.astype(np.uint32), after.astype(np.uint32)
    magnitude = sent & ~sign
    if np.all(magnitude > exponent):
        if np.array_equal(came, sent | np.uint32(_QUIET[dtype])):
            return "; signaling NaNs became quiet: patterns pass through host floats"
        return "; NaNs lost payload or sign: patterns pass through host floats"
    if np.all((magnitude < np.uint32(_NORMAL[dtype])) & (magnitude > 0)):
        return "; subnormals are flushed: the host's float settings"
    if np.all(magnitude == 0):
        return "; -0 lost its sign"
    return "; patterns pass through host floats, or bytes are swapped"
