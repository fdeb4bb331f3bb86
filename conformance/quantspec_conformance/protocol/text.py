"""The text wire: one message a line, a verb and `key=value` tokens with single spaces between them. ASCII, ended by LF.

    run id=17 op=encode value=e2m1 x=f32:2:3FE00000BFA00000

A tensor is `dtype:shape:hex`, the shape `2x3`, empty for a scalar, the patterns upper-case and of fixed width. A word is
percent-encoded (bytes outside 21 to 7E and `%`); one that would look like a tensor has its first colon encoded.
"""

import binascii
import re
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

import numpy as np

from ..examples import DTYPES, Tensor
from .bits import Bits, bits_of
from .envelope import Envelope, Message, answer_of, envelope_of, introduction_of, request_of
from .identity import fields_of_hello, hello_of
from .limits import (
    AXES,
    COUNT_OF_WORDS,
    ID,
    LINE,
    TENSORS,
    WORD,
    StrayError,
    check_id,
    check_shape,
    check_text,
    excerpt,
)
from .messages import Answer, Hello, Identity, ProtocolError, check_name

__all__ = [
    "answer_line", "hello_line", "identity_line", "line_of", "read_answer", "read_hello", "read_identity", "read_request",
    "request_line",
]  # fmt: skip

_TOKENS = COUNT_OF_WORDS + TENSORS + 2
_SHAPE_LENGTH = 19 * AXES
_PRINTED = bytes(range(0x20, 0x7F))
_PLAIN = "".join(chr(c) for c in range(0x21, 0x7F) if c != 0x25)
_HEX = b"0123456789ABCDEF"
_VERB = re.compile(rb"[a-z][a-z0-9_]{0,31}")
_KEY = re.compile(rb"_?[a-z][a-z0-9_.-]{0,63}")
_NUMBER = re.compile(rb"0|[1-9][0-9]{0,15}")
_TENSOR = re.compile(rb"(" + "|".join(DTYPES).encode() + rb"):([^:]*):([^:]*)")
_SHAPE = re.compile(rb"(?:(?:0|[1-9][0-9]{0,17})(?:x(?:0|[1-9][0-9]{0,17}))*)?")
_BAD_PERCENT = re.compile(rb"%(?![0-9A-F]{2})")
#: First words of a line that an adapter may send.
_SPOKEN = (b"ok", b"unsupported", b"rejected", b"known", b"failed")


def hello_line(hello: Hello) -> bytes:
    """The line that the harness begins with, on either wire."""
    return _line(Envelope("hello", None, fields_of_hello(hello)))


def identity_line(identity: Identity) -> bytes:
    """The line that answers hello."""
    return _line(envelope_of(None, identity))


def line_of(number: int, message: Message | Answer) -> bytes:
    """A request or an answer as a line."""
    return _line(envelope_of(number, message))


def request_line(number: int, message: Message) -> bytes:
    """A request, ping or stop as a line."""
    return line_of(number, message)


def answer_line(number: int, answer: Answer) -> bytes:
    """An answer as a line."""
    return line_of(number, answer)


def read_hello(line: bytes) -> Hello:
    """The hello of a line."""
    envelope = _envelope(line)
    if envelope.verb != "hello":
        raise ProtocolError(f"the first line is {excerpt(line)}; allowed: hello protocol=1.0 suite=...")
    return hello_of(envelope.fields)


def read_identity(line: bytes) -> Identity:
    """The identity of a line that answers hello."""
    return introduction_of(_envelope(_spoken(line)))


def read_request(line: bytes) -> tuple[int, Message]:
    """Id and request of a line; an unknown verb is no error."""
    return request_of(_envelope(line))


def read_answer(line: bytes) -> tuple[int, Answer]:
    """Id and answer of a line."""
    return answer_of(_envelope(_spoken(line)))


def _spoken(line: bytes) -> bytes:
    """A line that begins as an answer does; anything else was not meant for the protocol."""
    if line.split(b" ", 1)[0].rstrip(b"\n") not in _SPOKEN:
        raise StrayError(f"{excerpt(line)} is no answer")
    return line


def _line(envelope: Envelope) -> bytes:
    tokens = [envelope.verb.encode()]
    if envelope.id is not None:
        tokens.append(b"id=%d" % envelope.id)
    tokens += [name.encode() + b"=" + _quoted(text) for name, text in envelope.fields.items()]
    tokens += [name.encode() + b"=" + _quoted(text) for name, text in envelope.words.items()]
    for name, tensor in envelope.tensors.items():
        tokens.append(name.encode() + b"=" + _patterns(tensor, name))
    if sum(map(len, tokens)) + len(tokens) > LINE:
        raise ProtocolError(f"the line is longer than {LINE} bytes; the other wire, frames, carries more")
    tokens[-1] += b"\n"
    return b" ".join(tokens)


def _quoted(text: str) -> bytes:
    raw = text.encode()
    quoted = quote_from_bytes(raw, _PLAIN).encode()
    return quoted.replace(b":", b"%3A", 1) if _TENSOR.fullmatch(quoted) else quoted


def _patterns(tensor: Tensor, name: str) -> bytes:
    bits = bits_of(tensor, name)
    shape = "x".join(map(str, tensor.shape)).encode()
    digits = binascii.hexlify(np.ascontiguousarray(bits, bits.dtype.newbyteorder(">")).reshape(-1).view(np.uint8).data)
    return b":".join((tensor.dtype.encode(), shape, digits.upper()))


def _envelope(line: bytes) -> Envelope:
    """The parts of a line. ProtocolError says what was wrong."""
    if len(line) > LINE:
        raise ProtocolError(f"the line is longer than {LINE} bytes")
    if not line.endswith(b"\n"):
        raise ProtocolError(f"the line {excerpt(line)} does not end with LF")
    if line[:-1].translate(None, _PRINTED):
        raise ProtocolError(f"the line {excerpt(line)} holds bytes outside 20 to 7E")
    verb, *tokens = line[:-1].split(b" ", _TOKENS + 1)
    if not _VERB.fullmatch(verb):
        raise ProtocolError(f"the line {excerpt(line)} does not begin with a verb and one space")
    if len(tokens) > _TOKENS:
        raise ProtocolError(
            f"more than {_TOKENS} tokens; allowed: {COUNT_OF_WORDS} words, {TENSORS} tensors, id and op"
        )
    pairs: dict[bytes, bytes] = {}
    for token in tokens:
        key, equals, value = token.partition(b"=")
        if not equals or not _KEY.fullmatch(key):
            raise ProtocolError(f"{excerpt(token)} is no key=value")
        if key in pairs:
            raise ProtocolError(f"{key.decode()!r} stands twice")
        pairs[key] = value
    number = _id(pairs.pop(b"id")) if b"id" in pairs else None
    return _sorted(verb.decode(), number, {key.decode(): value for key, value in pairs.items() if key[:1] != b"_"})


def _id(value: bytes) -> int:
    if not _NUMBER.fullmatch(value) or int(value) >= ID:
        raise ProtocolError(f"id={excerpt(value)}; allowed: whole numbers from 0 to 2^53-1")
    return check_id(int(value))


def _sorted(verb: str, number: int | None, pairs: dict[str, bytes]) -> Envelope:
    """The envelope of keys and values: words and tensors belong to `run`, and to `ok` with an id."""
    if verb not in ("run", "ok", "unsupported", "rejected", "known", "failed", "ping", "stop", "hello"):
        return Envelope(verb, number)  # a later protocol's: nothing in it can be read
    if verb != "run" and not (verb == "ok" and number is not None):
        return Envelope(verb, number, {key: _text(value, key) for key, value in pairs.items()})
    fields = {"op": _text(pairs.pop("op"), "op")} if verb == "run" and "op" in pairs else {}
    words: dict[str, str] = {}
    tensors: dict[str, Tensor] = {}
    for key, value in pairs.items():
        match = _TENSOR.fullmatch(value)
        if match is None:
            words[check_name(key, "word")] = _text(value, key)
        else:
            tensors[check_name(key, "tensor")] = _tensor(match, key)
    return Envelope(verb, number, fields, words, tensors)


def _text(value: bytes, key: str) -> str:
    if len(value) > 3 * WORD:
        raise ProtocolError(f"{key} has more than {WORD} bytes")
    if _BAD_PERCENT.search(value):
        raise ProtocolError(f"{key}={excerpt(value)}: % is followed by two upper-case hexadecimal digits")
    try:
        return check_text(unquote_to_bytes(value).decode(), key)
    except UnicodeDecodeError:
        raise ProtocolError(f"{key}={excerpt(value)}: the bytes are no UTF-8") from None


def _tensor(match: re.Match[bytes], key: str) -> Tensor:
    dtype, written, digits = match[1].decode(), match[2], match[3]
    if len(written) > _SHAPE_LENGTH or not _SHAPE.fullmatch(written):
        raise ProtocolError(f"{key}: {excerpt(written)} is no shape; allowed: sizes with x between them, 2x3")
    shape = tuple(int(size) for size in written.split(b"x")) if written else ()
    width, numbers = DTYPES[dtype]
    count = check_shape(shape, key)
    if len(digits) != count * width:
        raise ProtocolError(f"{key}: {len(digits)} digits for {count} patterns of {width} digits each")
    if digits.translate(None, _HEX):
        raise ProtocolError(f"{key}: {excerpt(digits)}; allowed: upper-case hexadecimal digits")
    big: Any = np.frombuffer(binascii.unhexlify(digits), f">u{numbers.itemsize}")
    return Bits.over(dtype, shape, big.astype(f"u{numbers.itemsize}"))
