"""The two wires as one: messages to bytes, and bytes of a stream to messages, read piece by piece within the limits."""

import re
from typing import BinaryIO, Protocol

from . import frames, text
from .envelope import Envelope, Message, answer_of, introduction_of, request_of
from .frames import Part
from .limits import HEADER, LINE, PLAIN
from .messages import Answer, Identity, MalformedError, ProtocolError

__all__ = ["FRAMES", "TEXT", "WIRES", "Peekable", "Wire", "find_wire", "read_line"]

_PIECE = 2**24  #: bytes asked of a stream at once: no more than that is allocated for bytes that only were announced


class Peekable(Protocol):
    """A binary stream whose next bytes can be looked at, as those of io.BufferedReader."""

    def peek(self, size: int = 0, /) -> bytes:
        """The next bytes, which stay in the stream; none at its end."""
        ...


class Wire(Protocol):
    """One spelling of the messages. Reading gives None where the stream ends between messages, ProtocolError within one."""

    name: str

    def write_identity(self, identity: Identity) -> bytes:
        """The answer to hello."""
        ...

    def read_identity(self, stream: BinaryIO) -> Identity | None:
        """The answer to hello."""
        ...

    def write_request(self, number: int, message: Message) -> bytes:
        """A request, ping or stop."""
        ...

    def parts(self, number: int, message: Message | Answer) -> list[Part]:
        """A request or an answer in parts to be sent one after another: big tensors are not copied."""
        ...

    def read_request(self, stream: BinaryIO) -> tuple[int, Message] | None:
        """A request, ping or stop; an unknown verb comes back as Unknown."""
        ...

    def write_answer(self, number: int, answer: Answer) -> bytes:
        """An answer."""
        ...

    def read_answer(self, stream: BinaryIO) -> tuple[int, Answer] | None:
        """An answer."""
        ...


def read_line(stream: BinaryIO) -> bytes | None:
    """A line of a stream, LF included. ProtocolError for one that is too long or not ended."""
    line = stream.readline(LINE + 1)
    if len(line) > LINE:
        raise ProtocolError(f"a line is longer than {LINE} bytes")
    return line or None


class TextWire:
    """One message a line."""

    name = "text"

    def write_identity(self, identity: Identity) -> bytes:
        """The answer to hello."""
        return text.identity_line(identity)

    def read_identity(self, stream: BinaryIO) -> Identity | None:
        """The answer to hello."""
        line = read_line(stream)
        return None if line is None else text.read_identity(line)

    def write_request(self, number: int, message: Message) -> bytes:
        """A request, ping or stop."""
        return text.request_line(number, message)

    def parts(self, number: int, message: Message | Answer) -> list[Part]:
        """A request or an answer, whole."""
        return [text.line_of(number, message)]

    def read_request(self, stream: BinaryIO) -> tuple[int, Message] | None:
        """A request, ping or stop."""
        line = read_line(stream)
        try:
            return None if line is None else text.read_request(line)
        except ProtocolError as error:
            raise _numbered(error, re.search(rb" id=([0-9]{1,16})(?=[ \n])", line or b"")) from None

    def write_answer(self, number: int, answer: Answer) -> bytes:
        """An answer."""
        return text.answer_line(number, answer)

    def read_answer(self, stream: BinaryIO) -> tuple[int, Answer] | None:
        """An answer."""
        line = read_line(stream)
        return None if line is None else text.read_answer(line)


def _numbered(error: ProtocolError, found: re.Match[bytes] | None) -> ProtocolError:
    """The error with the number of the request, where that can be told: then it can be answered."""
    return error if found is None else MalformedError(str(error), int(found[1]))


def _pieces(stream: BinaryIO, count: int) -> bytes:
    """Exactly so many bytes of a stream."""
    pieces: list[bytes] = []
    missing = count
    while missing:
        piece = stream.read(min(missing, _PIECE))
        if not piece:
            raise ProtocolError(f"the frame ends early: {missing} of {count} bytes are missing")
        pieces.append(piece)
        missing -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class FramesWire:
    """One safetensors blob a message, its length before it."""

    name = "frames"

    def write_identity(self, identity: Identity) -> bytes:
        """The answer to hello."""
        return frames.identity_frame(identity)

    def read_identity(self, stream: BinaryIO) -> Identity | None:
        """The answer to hello."""
        envelope = self._envelope(stream)
        return None if envelope is None else introduction_of(envelope)

    def write_request(self, number: int, message: Message) -> bytes:
        """A request, ping or stop."""
        return frames.request_frame(number, message)

    def parts(self, number: int, message: Message | Answer) -> list[Part]:
        """A request or an answer, the tensors as they lie in memory."""
        return frames.frame_parts(number, message)

    def read_request(self, stream: BinaryIO) -> tuple[int, Message] | None:
        """A request, ping or stop."""
        announced = stream.read(8)
        if not announced:
            return None
        length = frames.read_length(announced)
        if length > _PIECE:
            return request_of(frames.read_blob(length, lambda count: _pieces(stream, count)))
        blob = _pieces(stream, length)
        try:
            return request_of(frames.read_whole(blob))
        except ProtocolError as error:
            raise _numbered(error, re.search(rb'\\"id\\":([0-9]{1,16})(?=[,}])', blob[:HEADER])) from None

    def write_answer(self, number: int, answer: Answer) -> bytes:
        """An answer."""
        return frames.answer_frame(number, answer)

    def read_answer(self, stream: BinaryIO) -> tuple[int, Answer] | None:
        """An answer."""
        envelope = self._envelope(stream)
        return None if envelope is None else answer_of(envelope)

    def _envelope(self, stream: BinaryIO) -> Envelope | None:
        announced = stream.read(8)
        if not announced:
            return None
        length = frames.read_length(announced)
        if length <= _PIECE:
            return frames.read_whole(_pieces(stream, length))
        return frames.read_blob(length, lambda count: _pieces(stream, count))


TEXT: Wire = TextWire()
FRAMES: Wire = FramesWire()
WIRES: dict[str, Wire] = {wire.name: wire for wire in (TEXT, FRAMES)}


def find_wire(stream: Peekable) -> Wire | None:
    """The wire of an adapter, by the first byte that it sends; None where it sends nothing.

    A length of a frame is a multiple of 8, which no first letter of an answer is. What begins as plain text does is read as
    text, so that stray words are shown whole; an identity is not so long that its length would look like that.
    """
    first = stream.peek(8)[:8]
    if not first:
        return None
    if len(first) >= 4 and all(byte in PLAIN for byte in first):
        return TEXT
    return FRAMES if first[0] % 8 == 0 else TEXT
