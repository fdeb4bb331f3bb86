"""Hello and identity as fields: the same names and spellings on both wires."""

import re
from collections.abc import Mapping
from typing import Any

from .limits import COUNT_OF_WORDS, check_text
from .messages import PROTOCOL, Hello, Identity, ProtocolError, check_name, negotiate

__all__ = ["fields_of_hello", "fields_of_identity", "hello_of", "identity_of"]

_TEXTS = ("name", "version", "language", "source", "issues", "build", "device", "driver")
_LISTS = ("ops", "values", "stores", "scales", "modes", "levels")
_NUMBERS = ("max_rank", "max_elements", "max_in_flight")
_POLICY = "policy."
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)
_ITEM = re.compile(r"[A-Za-z0-9_.:+-]{1,64}")
_AXIS = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}", re.ASCII)
_YES = {"yes": True, "no": False}


def _version(fields: Mapping[str, str]) -> tuple[int, int]:
    match = _VERSION.fullmatch(fields.get("protocol", ""))
    if match is None:
        raise ProtocolError(f"protocol={fields.get('protocol', '')[:40]!r}; allowed: two numbers, like 1.0")
    return int(match[1]), int(match[2])


def fields_of_hello(hello: Hello) -> dict[str, str]:
    """The fields of a hello; an option may not have the name of one."""
    taken = [name for name in hello.options if name in ("protocol", "suite", "id", "op")]
    if taken:
        raise ProtocolError(f"option {taken[0]!r} has the name of a field of hello")
    return {
        "protocol": ".".join(map(str, hello.protocol)),
        "suite": check_text(hello.suite, "suite"),
        **{check_name(name, "option"): check_text(text, name) for name, text in hello.options.items()},
    }


def hello_of(fields: Mapping[str, str]) -> Hello:
    """The hello of its fields. What is neither protocol nor suite is an option."""
    options = {name: text for name, text in fields.items() if name not in ("protocol", "suite")}
    return Hello(_version(fields), fields.get("suite", ""), options)


def fields_of_identity(identity: Identity) -> dict[str, str]:
    """The fields of an identity; what says nothing is left out."""
    fields = {"protocol": ".".join(map(str, identity.protocol))}
    fields |= {name: check_text(getattr(identity, name), name) for name in _TEXTS if getattr(identity, name)}
    for name in _LISTS:
        items: tuple[str, ...] = getattr(identity, name)
        if items:
            fields[name] = ",".join(_item(item, name) for item in items)
    fields |= {name: str(getattr(identity, name)) for name in _NUMBERS if getattr(identity, name)}
    fields["deterministic"] = "yes" if identity.deterministic else "no"
    fields |= {_POLICY + _axis(axis): check_text(text, axis) for axis, text in identity.policies.items()}
    return fields


def identity_of(fields: Mapping[str, str]) -> Identity:
    """The identity of its fields. ProtocolError for another major protocol, for fields that are missing or wrong.

    An unknown field is one of a later minor protocol, and is refused where the implementation does not speak one.
    """
    protocol = _version(fields)
    negotiate(protocol)
    if len(fields) > COUNT_OF_WORDS:
        raise ProtocolError(f"an identity has {len(fields)} fields; allowed: {COUNT_OF_WORDS}")
    known = {"protocol", "deterministic", *_TEXTS, *_LISTS, *_NUMBERS}
    unknown = [name for name in fields if name not in known and not name.startswith(_POLICY)]
    if unknown and protocol <= PROTOCOL:
        raise ProtocolError(f"{unknown[0][:40]!r} is no field of an identity; allowed: {', '.join(sorted(known))}")
    if not fields.get("name"):
        raise ProtocolError("an identity needs a name")
    found: dict[str, Any] = {name: fields[name] for name in _TEXTS if name in fields}
    for name in _LISTS:
        text = fields.get(name, "")
        found[name] = tuple(_item(item, name) for item in text.split(",")) if text else ()
    found |= {name: _number(fields[name], name) for name in _NUMBERS if name in fields}
    if found.get("max_in_flight") == 0:
        raise ProtocolError("max_in_flight=0; allowed: numbers from 1 on")
    if "deterministic" in fields:
        if fields["deterministic"] not in _YES:
            raise ProtocolError(f"deterministic={fields['deterministic'][:20]!r}; allowed: yes, no")
        found["deterministic"] = _YES[fields["deterministic"]]
    policies = {name.removeprefix(_POLICY): text for name, text in fields.items() if name.startswith(_POLICY)}
    found["policies"] = {_axis(axis): text for axis, text in policies.items()}
    return Identity(protocol=protocol, **found)


def _item(item: str, name: str) -> str:
    if not _ITEM.fullmatch(item):
        raise ProtocolError(f"{name} lists {item[:40]!r}; allowed: names with commas between them")
    return item


def _axis(axis: str) -> str:
    if not _AXIS.fullmatch(axis):
        raise ProtocolError(f"{axis[:40]!r} is no policy axis; allowed: lower-case letters, digits, - and _")
    return axis


def _number(text: str, name: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ProtocolError(f"{name}={text[:40]!r}; allowed: a whole number")
    return int(text)
