"""Adapters on the frames wire, each with one fault:  python frames_wire.py FAULT.

`honest` has none. All of them echo, and decode nothing. The shortest reader and writer of frames that there is.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
IDENTITY: Message = {"verb": "ok", "identity": {"protocol": "1.0", "name": "faulty", "ops": "echo"}}


def say(raw: bytes) -> None:
    """Write to stdout at once."""
    sys.stdout.buffer.write(raw)
    sys.stdout.buffer.flush()


def blob(header: bytes, data: bytes = b"") -> bytes:
    """A frame of a header and its data."""
    header += b" " * (-(len(header) + len(data)) % 8)
    whole = len(header).to_bytes(8, "little") + header + data
    return len(whole).to_bytes(8, "little") + whole


def frame(message: Message, tensors: dict[str, Any] | None = None, data: bytes = b"") -> bytes:
    """A frame of a message and the header's entries of its tensors."""
    return blob(json.dumps({"__metadata__": {"msg": json.dumps(message)}, **(tensors or {})}).encode(), data)


def listen() -> tuple[Message, dict[str, Any], bytes]:
    """The next message, the entries of its tensors, its data. The process ends with its input, and at `stop`."""
    announced = sys.stdin.buffer.read(8)
    if not announced:
        sys.exit(0)
    whole = sys.stdin.buffer.read(int.from_bytes(announced, "little"))
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    message = json.loads(header.pop("__metadata__")["msg"])
    if message["verb"] == "stop":
        sys.exit(0)
    return message, header, whole[8 + size :]


def serve(answer: Callable[[Message, dict[str, Any], bytes], bytes]) -> None:
    """Say who it is, then answer everything."""
    sys.stdin.buffer.readline()
    say(frame(IDENTITY))
    while True:
        say(answer(*listen()))


def echo(message: Message, tensors: dict[str, Any], data: bytes) -> bytes:
    """The honest answer."""
    if message.get("op") != "echo":
        return frame({"verb": "unsupported", "id": message["id"], "feature": f"op:{message.get('op', '')}"})
    return frame({"verb": "ok", "id": message["id"], "types": message.get("types", {})}, tensors, data)


def lying(size: int) -> bytes:
    """A frame whose header claims a tensor of so many bytes, and that announces it."""
    entry = {"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    header = json.dumps({"__metadata__": {"msg": json.dumps({"verb": "ok", "id": 1, "types": {"x": "u8"}})}, **entry})
    written = header.encode() + b" " * (-(len(header) + size) % 8)
    return (8 + len(written) + size).to_bytes(8, "little") + len(written).to_bytes(8, "little") + written


def truncated(message: Message, tensors: dict[str, Any], data: bytes) -> bytes:
    """Half an answer, and the end."""
    whole = echo(message, tensors, data)
    say(whole[: len(whole) // 2])
    sys.exit(0)


def printing(message: Message, tensors: dict[str, Any], data: bytes) -> bytes:
    """Text before the answer."""
    return b"Building kernels: done\n" + echo(message, tensors, data)


def overlapping(message: Message, tensors: dict[str, Any], data: bytes) -> bytes:
    """Two tensors over the same bytes, and a hole behind them."""
    entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    types = {"x": "u8", "y": "u8"}
    return frame({"verb": "ok", "id": message["id"], "types": types}, {"x": entry, "y": entry}, bytes(8))


def wrong_types(message: Message, tensors: dict[str, Any], data: bytes) -> bytes:
    """Says that bytes are f32."""
    entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    return frame({"verb": "ok", "id": message["id"], "types": {"x": "f32"}}, {"x": entry}, bytes(4))


def floats(message: Message, tensors: dict[str, Any], data: bytes) -> bytes:
    """Stores numbers instead of patterns."""
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    return frame({"verb": "ok", "id": message["id"], "types": {"x": "f32"}}, {"x": entry}, bytes(4))


FAULTS: dict[str, Callable[[Message, dict[str, Any], bytes], bytes]] = {
    "honest": echo,
    "ten-gigabytes": lambda message, tensors, data: (10 * 2**30).to_bytes(8, "little"),
    "ten-gigabytes-header": lambda message, tensors, data: (
        b"\x10" + bytes(7) + (10 * 2**30).to_bytes(8, "little") + bytes(8)
    ),
    "one-gigabyte-tensor": lambda message, tensors, data: lying(2**30),
    "half-gigabyte-unsent": lambda message, tensors, data: lying(2**26),
    "truncated": truncated,
    "noise": printing,
    "odd-length": lambda message, tensors, data: (17).to_bytes(8, "little") + bytes(17),
    "no-json": lambda message, tensors, data: blob(b"\xff\xfe\xfd"),
    "deep-json": lambda message, tensors, data: blob(b'{"a":' + b"[" * 100000 + b"]" * 100000 + b"}"),
    "deep-msg": lambda message, tensors, data: blob(
        json.dumps({"__metadata__": {"msg": '{"verb":"ok","id":1,"words":' + "[" * 50000}}).encode()
    ),
    "no-msg": lambda message, tensors, data: blob(b'{"__metadata__":{"message":"{}"}}'),
    "more-metadata": lambda message, tensors, data: blob(b'{"__metadata__":{"msg":"{}","format":"np"}}'),
    "twice": lambda message, tensors, data: blob(
        b'{"__metadata__":{"msg":"{\\"verb\\":\\"ok\\",\\"verb\\":\\"ok\\"}"}}'
    ),
    "wrong-id": lambda message, tensors, data: frame({"verb": "ok", "id": 999}),
    "bool-id": lambda message, tensors, data: frame({"verb": "ok", "id": True}),
    "unknown-verb": lambda message, tensors, data: frame({"verb": "maybe", "id": message["id"]}),
    "unknown-key": lambda message, tensors, data: frame({"verb": "ok", "id": message["id"], "mood": "good"}),
    "overlapping": overlapping,
    "wrong-types": wrong_types,
    "floats": floats,
    "unlisted": lambda message, tensors, data: frame({"verb": "ok", "id": message["id"]}, tensors, data),
}

if __name__ == "__main__":
    serve(FAULTS[sys.argv[1]])
