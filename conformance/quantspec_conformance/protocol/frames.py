"""The frames wire: a u64 little-endian length, a multiple of 8, then one safetensors blob of that length.

The blob's metadata has one key, `msg`: JSON with the verb, the id, the verb's fields, words, and the dtype of each tensor.
Its tensors are patterns, U8, U16, U32 or U64. Spaces at the end of the blob's header make the length a multiple of 8.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..examples import DTYPES, Tensor
from .bits import Bits, bits_of
from .envelope import FIELDS, Envelope, Message, answer_of, envelope_of, introduction_of, request_of
from .jsontext import json_object, json_text
from .limits import BLOB, HEADER, PLAIN, TENSORS, StrayError, check_id, check_shape, check_text, excerpt
from .messages import Answer, Identity, ProtocolError, check_dtype, check_name

__all__ = [
    "Part", "answer_frame", "frame_parts", "identity_frame", "read_answer", "read_blob", "read_identity",
    "read_length", "read_request",
    "read_whole", "request_frame",
]  # fmt: skip

#: Safetensors dtype -> bytes of a pattern.
_STORED = {"U8": 1, "U16": 2, "U32": 4, "U64": 8}
_NAMES = {width: name for name, width in _STORED.items()}
_ANNOUNCED = 8  #: bytes of a length

Take = Callable[[int], bytes]
Part = bytes | memoryview


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor of a header: its name, dtype and shape, and its bytes among the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def identity_frame(identity: Identity) -> bytes:
    """The frame that answers hello."""
    return b"".join(_frame(envelope_of(None, identity)))


def request_frame(number: int, message: Message) -> bytes:
    """A request, ping or stop as a frame."""
    return b"".join(frame_parts(number, message))


def answer_frame(number: int, answer: Answer) -> bytes:
    """An answer as a frame."""
    return b"".join(frame_parts(number, answer))


def frame_parts(number: int, message: Message | Answer) -> list[Part]:
    """A request or an answer as the parts of a frame, the tensors as they lie in memory: to be sent one after another."""
    return _frame(envelope_of(number, message))


def read_identity(frame: bytes) -> Identity:
    """The identity of a frame that answers hello."""
    return introduction_of(_whole(frame))


def read_request(frame: bytes) -> tuple[int, Message]:
    """Id and request of a frame; an unknown verb is no error."""
    return request_of(_whole(frame))


def read_answer(frame: bytes) -> tuple[int, Answer]:
    """Id and answer of a frame."""
    return answer_of(_whole(frame))


def _whole(frame: bytes) -> Envelope:
    length = read_length(frame[:_ANNOUNCED])
    if len(frame) != _ANNOUNCED + length:
        raise ProtocolError(f"{len(frame) - _ANNOUNCED} bytes for a frame of {length}")
    return read_whole(frame[_ANNOUNCED:])


def read_length(raw: bytes) -> int:
    """The length that a frame announces; nothing is allocated for one that no frame has."""
    if len(raw) < _ANNOUNCED:
        if raw and all(byte in PLAIN for byte in raw):
            raise StrayError(f"{excerpt(raw)} is no answer, and too short for the length of a frame")
        raise ProtocolError(f"the frame ends within its length, after {excerpt(raw)}")
    length = int.from_bytes(raw, "little")
    if length % 8 or not 16 <= length <= BLOB:
        if all(byte in PLAIN for byte in raw):
            raise StrayError(f"{excerpt(raw)} is no length of a frame")
        raise StrayError(f"a frame announces {length} bytes; allowed: multiples of 8 from 16 to {BLOB}")
    return length


def _frame(envelope: Envelope) -> list[Part]:
    header: dict[str, Any] = {"__metadata__": {}}
    parts: list[Part] = []
    place = 0
    bits = {name: bits_of(tensor, name) for name, tensor in envelope.tensors.items()}
    # the widest first, as the format's own writer does it
    for name, array in sorted(bits.items(), key=lambda item: -item[1].itemsize):
        end = place + array.nbytes
        stored = _NAMES[array.itemsize]
        header[name] = {"dtype": stored, "shape": list(array.shape), "data_offsets": [place, end]}
        parts.append(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
        place = end
    header["__metadata__"] = {"msg": json_text(_written(envelope))}
    written = json_text(header).encode()
    written += b" " * (-(len(written) + place) % 8)
    length = _ANNOUNCED + len(written) + place
    if len(written) > HEADER or length > BLOB:
        raise ProtocolError(f"the frame has {length} bytes, {len(written)} of header; allowed: {BLOB}, {HEADER}")
    return [length.to_bytes(8, "little") + len(written).to_bytes(8, "little") + written, *parts]


def _written(envelope: Envelope) -> dict[str, Any]:
    """What `msg` holds."""
    message: dict[str, Any] = {"verb": envelope.verb}
    if envelope.id is not None:
        message["id"] = envelope.id
    if envelope.verb == "ok" and envelope.id is None:
        message["identity"] = dict(envelope.fields)
    else:
        message |= envelope.fields
    if envelope.words:
        message["words"] = dict(envelope.words)
    if envelope.tensors:
        message["types"] = {name: tensor.dtype for name, tensor in envelope.tensors.items()}
    return message


def read_whole(blob: bytes) -> Envelope:
    """The parts of a blob that is here; its tensors are views of it."""
    begin = _ANNOUNCED + _header_size(blob[:_ANNOUNCED], len(blob))
    envelope, places = _message(blob[_ANNOUNCED:begin], len(blob) - begin)
    return _with_tensors(envelope, places, blob, begin)


def read_blob(length: int, take: Take) -> Envelope:
    """The parts of a blob of checked length, its bytes taken piece by piece: data only after the header asked for them."""
    written = take(_header_size(take(_ANNOUNCED), length))
    left = length - _ANNOUNCED - len(written)
    envelope, places = _message(written, left)
    return _with_tensors(envelope, places, take(left), 0)


def _header_size(announced: bytes, length: int) -> int:
    size = int.from_bytes(announced, "little")
    if not 2 <= size <= min(HEADER, length - _ANNOUNCED):
        raise ProtocolError(f"the header of a frame announces {size} bytes; allowed: at most {HEADER}, and the frame's")
    return size


def _message(written: bytes, held: int) -> tuple[Envelope, list[_Place]]:
    """The envelope of a header, without its tensors, and their places; they must fill the `held` bytes of data."""
    header = json_object(written, "the header of a frame")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or set(metadata) != {"msg"} or not isinstance(metadata["msg"], str):
        raise ProtocolError("the metadata of a frame are not exactly the text `msg`")
    message = json_object(metadata["msg"].encode("utf-8", "surrogatepass"), "msg")
    types = _types(message, header)
    places = [_place(name, header[name], dtype) for name, dtype in types.items()]
    _check_dense(places, held)
    return _envelope(message), places


def _check_dense(places: Sequence[_Place], held: int) -> None:
    """Every byte of the data is that of one tensor: nothing overlaps, nothing is left over, nothing lies beyond."""
    claimed = sum(place.end - place.start for place in places)
    if claimed != held:
        raise ProtocolError(f"the tensors of a frame have {claimed} bytes; it holds {held}")
    end = 0
    for place in sorted(places, key=lambda place: (place.start, place.end)):
        if place.start != end:
            wrong = "overlaps the one before it" if place.start < end else f"leaves a gap after byte {end}"
            raise ProtocolError(f"{place.name} at bytes {place.start} to {place.end} of the data {wrong}")
        end = place.end


def _with_tensors(envelope: Envelope, places: Sequence[_Place], memory: bytes, begin: int) -> Envelope:
    """The envelope with its tensors as views of the memory, where the data begin at `begin`; numbers that lie askew are copied."""
    tensors: dict[str, Tensor] = {}
    for place in places:
        width = DTYPES[place.dtype][1].itemsize
        count = (place.end - place.start) // width
        # from an empty buffer frombuffer takes nothing
        stored = np.frombuffer(memory, f"<u{width}", count, begin + place.start) if count else np.empty(0, f"u{width}")
        tensors[place.name] = Bits.over(place.dtype, place.shape, np.require(stored, f"u{width}", "A"))
    return Envelope(envelope.verb, envelope.id, envelope.fields, envelope.words, tensors)


def _place(name: str, entry: Any, dtype: str) -> _Place:
    """Where a tensor of the header says it lies."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ProtocolError(f"{name} has not exactly dtype, shape and data_offsets")
    width = _STORED.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if width is None or width != DTYPES[dtype][1].itemsize:
        raise ProtocolError(
            f"{name} of {dtype} is stored as {str(entry['dtype'])[:20]!r}; allowed: its patterns' width"
        )
    if not isinstance(entry["shape"], list):
        raise ProtocolError(f"{name} has no list of sizes")
    count = check_shape(entry["shape"], name)
    offsets = entry["data_offsets"]
    if not isinstance(offsets, list) or len(offsets) != 2 or any(type(o) is not int or o < 0 for o in offsets):
        raise ProtocolError(f"{name} has no two offsets")
    if offsets[1] - offsets[0] != count * width:
        raise ProtocolError(f"{name} has offsets {offsets} for {count} patterns of {width} bytes")
    return _Place(name, dtype, tuple(entry["shape"]), offsets[0], offsets[1])


def _types(message: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, str]:
    """The dtype of each tensor; exactly those that the blob has."""
    types = message.get("types", {})
    if not isinstance(types, dict) or set(types) != set(header):
        raise ProtocolError("types does not name exactly the tensors of the frame")
    if len(types) > TENSORS:
        raise ProtocolError(f"{len(types)} tensors; allowed: {TENSORS}")
    return {check_name(name, "tensor"): check_dtype(check_text(dtype, name)) for name, dtype in types.items()}


def _envelope(message: dict[str, Any]) -> Envelope:
    """The envelope of `msg`, without its tensors. Keys that begin with _ are for later minor protocols."""
    verb = check_name(check_text(message.get("verb"), "verb"), "verb")
    number = check_id(message["id"]) if "id" in message else None
    if verb not in FIELDS:
        return Envelope(verb, number)
    introduces = verb == "ok" and number is None
    rest = {name: value for name, value in message.items() if not name.startswith("_")}
    rest = {name: value for name, value in rest.items() if name not in ("verb", "id", "types")}
    words = {} if introduces else _texts(rest.pop("words", {}), "words")
    if introduces:
        identity = _texts(rest.pop("identity", {}), "identity")
        if rest:
            raise ProtocolError(f"an identity has {next(iter(rest))[:40]!r} beside it; allowed: nothing")
        return Envelope(verb, None, identity)
    return Envelope(verb, number, _texts(rest, verb), words)


def _texts(value: Any, what: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} is no object")
    return {name: check_text(text, name[:40]) for name, text in value.items()}
