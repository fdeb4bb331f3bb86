"""Envelopes: a message as a verb, an id, the protocol's own fields, words and tensors; what the two wires spell out.

Words and tensors are those of the operation. `id`, `op` and names that begin with `_` are the protocol's.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..examples import Tensor
from .control import Ping, Stop, Unknown
from .identity import fields_of_identity, identity_of
from .limits import COUNT_OF_WORDS, TENSORS, check_id, check_text
from .messages import (
    KINDS,
    Answer,
    Failed,
    Identity,
    Known,
    Ok,
    ProtocolError,
    Rejected,
    Request,
    Unsupported,
    check_name,
)  # fmt: skip

__all__ = ["ANSWERS", "FIELDS", "Envelope", "Message", "answer_of", "envelope_of", "introduction_of", "request_of"]

Message = Request | Ping | Stop | Unknown
#: Verb -> the fields it must have, and those it may have.
FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": (("op",), ()),
    "ping": ((), ()),
    "stop": ((), ()),
    "ok": ((), ()),
    "unsupported": (("feature",), ("message",)),
    "rejected": (("kind",), ("rule", "argument", "message")),
    "known": (("url",), ("message",)),
    "failed": (("message",), ()),
}
ANSWERS: dict[str, type[Unsupported] | type[Rejected] | type[Known] | type[Failed]] = {
    "unsupported": Unsupported,
    "rejected": Rejected,
    "known": Known,
    "failed": Failed,
}
_VERBS = {kind: verb for verb, kind in ANSWERS.items()}
RESERVED = ("id", "op")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message taken apart. An identity is an `ok` without an id, everything in its fields."""

    verb: str
    id: int | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


def envelope_of(number: int | None, message: Message | Answer | Identity) -> Envelope:
    """The envelope of a message, checked. ProtocolError for what no wire may carry."""
    if number is not None:
        check_id(number)
    match message:
        case Identity():
            return Envelope("ok", None, fields_of_identity(message))
        case Request():
            check_name(message.op, "operation")
            _check_content(message.words, message.tensors)
            return Envelope("run", number, {"op": message.op}, message.words, message.tensors)
        case Ok():
            _check_content(message.words, message.tensors)
            return Envelope("ok", number, {}, message.words, message.tensors)
        case Ping():
            return Envelope("ping", number)
        case Stop():
            return Envelope("stop")
        case Unknown():
            raise ProtocolError(f"{message.verb[:40]!r} is no verb of this protocol")
    verb = _VERBS[type(message)]
    must, may = FIELDS[verb]
    fields = {name: check_text(getattr(message, name), name) for name in (*must, *may)}
    return Envelope(verb, number, {name: text for name, text in fields.items() if text or name in must})


def _check_content(words: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    if len(words) > COUNT_OF_WORDS or len(tensors) > TENSORS:
        raise ProtocolError(f"{len(words)} words, {len(tensors)} tensors; allowed: {COUNT_OF_WORDS}, {TENSORS}")
    for name, text in words.items():
        check_text(text, check_name(name, "word"))
    for name in tensors:
        check_name(name, "tensor")
    twice = [name for name in words if name in tensors]
    if twice:
        raise ProtocolError(f"{twice[0]!r} is the name of a word and of a tensor")
    taken = [name for name in (*words, *tensors) if name in RESERVED]
    if taken:
        raise ProtocolError(f"{taken[0]!r} is the protocol's; it is no name of a word or tensor")


def _checked(envelope: Envelope) -> Envelope:
    """An envelope that came in: its fields are those of its verb, words and tensors are allowed."""
    must, may = FIELDS[envelope.verb]
    missing = [name for name in must if name not in envelope.fields]
    surplus = [name for name in envelope.fields if name not in (*must, *may)]
    if missing or surplus:
        wrong = f"lacks {missing[0]!r}" if missing else f"has {surplus[0][:40]!r}"
        raise ProtocolError(f"{envelope.verb!r} {wrong}; its fields are {', '.join((*must, *may)) or 'none'}")
    if envelope.verb not in ("run", "ok") and (envelope.words or envelope.tensors):
        raise ProtocolError(f"{envelope.verb!r} holds words or tensors; allowed: none")
    for name, text in envelope.fields.items():
        check_text(text, name)
    _check_content(envelope.words, envelope.tensors)
    return envelope


def _id(envelope: Envelope) -> int:
    if envelope.id is None:
        raise ProtocolError(f"{envelope.verb!r} lacks its id")
    return envelope.id


def request_of(envelope: Envelope) -> tuple[int, Message]:
    """Id and request of an envelope; a verb that is none of this protocol comes back as Unknown, a stop with id 0."""
    match envelope.verb:
        case "stop":
            return 0, Stop()
        case "ping":
            return _id(_checked(envelope)), Ping()
        case "run":
            _checked(envelope)
            op = check_name(envelope.fields["op"], "operation")
            return _id(envelope), Request(op, envelope.words, envelope.tensors)
    return _id(envelope), Unknown(envelope.verb)


def answer_of(envelope: Envelope) -> tuple[int, Answer]:
    """Id and answer of an envelope. ProtocolError for a verb that is no answer."""
    if envelope.verb != "ok" and envelope.verb not in ANSWERS:
        raise ProtocolError(f"{envelope.verb[:40]!r} is no answer; allowed: ok, {', '.join(ANSWERS)}")
    number = _id(envelope)
    _checked(envelope)
    if envelope.verb == "ok":
        return number, Ok(envelope.tensors, envelope.words)
    if envelope.verb == "rejected" and envelope.fields["kind"] not in KINDS:
        raise ProtocolError(f"rejected: kind={envelope.fields['kind'][:40]!r}; allowed: {', '.join(KINDS)}")
    return number, ANSWERS[envelope.verb](**envelope.fields)


def introduction_of(envelope: Envelope) -> Identity:
    """The identity of an envelope. ProtocolError for anything else."""
    if envelope.verb != "ok" or envelope.id is not None or envelope.words or envelope.tensors:
        raise ProtocolError(
            f"{envelope.verb[:40]!r} is no answer to hello; allowed: ok with the identity, without an id"
        )
    return identity_of(envelope.fields)
