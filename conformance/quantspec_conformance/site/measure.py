"""`python -m quantspec_conformance.site.measure`: ask every installed peer the questions of inputs.toml, and write measured.toml.

A peer that is not installed keeps what it gave before.
"""

import json
import shlex
from collections.abc import Iterator

from ..implementations.errors import ImplementationError
from ..implementations.process import ProcessImplementation
from ..peers.environment import address, ready
from ..peers.table import Peer, peers
from ..protocol.messages import Hello, Ok, Unsupported
from ..protocol.text import request_line
from ..suite.case import Case, features_of, lacking
from .inputs import FAILED, Measured, Question, measured, measured_file, questions, request_of

__all__ = ["asked", "request_text"]

HEAD = "# What peers gave to the questions of inputs.toml. Written by `python -m quantspec_conformance.site.measure`.\n"


def request_text(question: Question, peer: str) -> str:
    """The request as a line of the wire, without its number."""
    return request_line(1, request_of(question, peer)).decode().strip().replace(" id=1", "", 1)


def asked(peer: Peer) -> Iterator[Measured]:
    """What the peer gives to each question that it answers at all."""
    where, env = address(peer)
    with ProcessImplementation(
        shlex.split(where.removeprefix("exec:")), timeout=60, hello_timeout=300, env=env
    ) as process:
        identity = process.hello(Hello())
        for question in questions().values():
            request = request_of(question, peer.name)
            case = Case(
                id=question.id, title=question.title, op=request.op, level=0, words=request.words, inputs=request.tensors,
                features=features_of(request),
            )  # fmt: skip
            if lacking(case, identity):
                continue
            try:
                answer = process.handle(request)
            except ImplementationError:
                answer = None
            if isinstance(answer, Unsupported):
                continue
            made = answer.tensors if isinstance(answer, Ok) else {}
            whole = all(name in made for name in question.show)
            gives = "; ".join(f"{name} {made[name].text}" for name in question.show) if whole else FAILED
            yield Measured(question.id, peer.name, identity.version, request_text(question, peer.name), gives)


def main() -> None:
    """Ask, and write the file."""
    before = measured() if measured_file().exists() else ()
    rows: list[Measured] = []
    for peer in peers():
        found = [*asked(peer)] if ready(peer) else [row for row in before if row.peer == peer.name]
        rows += found
        print(f"{peer.name:<19} {len(found)} answers{'' if ready(peer) else ', as before: not installed'}")
    order = [*questions()]
    rows.sort(key=lambda row: order.index(row.input) if row.input in order else len(order))
    blocks = [
        "\n".join(["[[answer]]", *(f"{name} = {json.dumps(getattr(row, name))}" for name in Measured.__slots__)])
        for row in rows
    ]
    measured_file().write_text("\n\n".join([HEAD, *blocks]) + "\n", "utf-8")


if __name__ == "__main__":
    main()
