"""The header of a result file: which suite, which spec, which implementation, on which host, asked for how."""

import hashlib
import platform
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np

import quantspec

from ..protocol.messages import PROTOCOL, Identity
from ..spec import rules
from .record import TEXT, WORD, clip

__all__ = ["implementation_json", "make_header", "now", "spec_digest"]

#: Bounds of result.schema.json.
LIST, POLICIES = 256, 64
#: Characters of a whole command line that are kept.
COMMAND = 32768


@cache
def spec_digest() -> str:
    """SHA-256 of what binds in every rule, in reading order: another digest, another spec."""
    return hashlib.sha256("".join(f"{rule.id} {rule.digest}\n" for rule in rules().values()).encode()).hexdigest()


def now() -> str:
    """The time as the file holds it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def _words(values: Iterable[Any]) -> list[str]:
    return [clip(str(value), WORD) for value in list(values)[:LIST]]


def implementation_json(address: str, identity: Identity) -> dict[str, Any]:
    """An identity for the header. It comes from outside: texts and lists are cut to the bounds of the schema."""
    texts = {
        name: clip(str(getattr(identity, name)), TEXT if name == "build" else WORD)
        for name in ("name", "version", "language", "source", "issues", "build", "device", "driver")
    }
    lists = {name: _words(getattr(identity, name)) for name in ("ops", "values", "stores", "scales", "modes", "levels")}
    counts = {name: _count(getattr(identity, name)) for name in ("max_rank", "max_elements", "max_in_flight")}
    policies = {clip(str(k), WORD): clip(str(v), WORD) for k, v in list(identity.policies.items())[:POLICIES]}
    major, minor = identity.protocol
    return {
        "address": clip(address),
        **texts,
        "protocol": f"{_count(major) % 10000}.{_count(minor) % 10000}",
        **lists,
        **counts,
        "deterministic": bool(identity.deterministic),
        "policies": policies,
    }


def _command(words: Sequence[str]) -> list[str]:
    """A command line; one that is longer than anybody reads loses its end, and says so."""
    kept: list[str] = []
    room = COMMAND
    for word in words:
        if len(kept) == LIST - 1 or room < len(word):
            return [*kept, f"[cut: {len(words) - len(kept)} more]"]
        kept.append(clip(word))
        room -= len(word)
    return kept


def make_header(
    *,
    suite: tuple[str, str, int],
    address: str,
    identity: Identity,
    command: Sequence[str],
    expression: str = "",
    levels: Sequence[int] = (),
    profile: str = "",
    seed: int = 0,
    quick: bool = False,
) -> dict[str, Any]:
    """The header of a run that starts now. `suite` is its digest, its version and how many cases it has in all."""
    digest, version, cases = suite
    return {
        "record": "header",
        "schema": "result-1",
        "run": secrets.token_hex(8),
        "started": now(),
        "suite": {"digest": digest, "version": version, "cases": cases},
        "spec": {"version": quantspec.__version__, "digest": spec_digest()},
        "protocol": ".".join(map(str, PROTOCOL)),
        "implementation": implementation_json(address, identity),
        "selection": {"expression": clip(expression), "levels": list(levels), "profile": clip(profile, WORD)},
        "command": _command(command),
        "seed": seed,
        "host": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "platform": clip(platform.platform(), WORD),
            "machine": platform.machine(),
        },
        "quick": quick,
    }
