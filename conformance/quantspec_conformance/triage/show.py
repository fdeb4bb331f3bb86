"""Everything about a case: what is asked, what is due, by which rules, and where it comes from."""

from collections.abc import Iterator

from ..entries import FLOATS, shown
from ..examples import DTYPES, Tensor
from ..outside import printable
from ..protocol.messages import ProtocolError
from ..protocol.text import request_line
from ..spec import rule_line
from ..suite.case import Case
from .frame import input_scheme, output_scheme, second_scheme

__all__ = ["show_lines"]

#: Entries of a tensor and characters of a request that are shown.
MOST_ENTRIES, MOST_REQUEST = 16, 2000


def show_lines(case: Case, *, entries: int = MOST_ENTRIES, request: int = MOST_REQUEST) -> list[str]:
    """The lines that show a case; tensors and the request are cut where they are long."""
    return [printable(line) for line in _lines(case, entries, request)]


def _lines(case: Case, entries: int, request: int) -> Iterator[str]:
    yield f"{case.id}  {case.title}".rstrip()
    yield f"{case.op}, level {case.level}, {case.kind}, {case.strength}" + (
        f", suite {case.suite}" if case.suite else ""
    )
    for label, text in (
        ("features", " ".join(case.features)),
        ("hunts", " ".join(case.bugs)),
        ("control", f"{case.control}  the same, accepted" if case.control else ""),
        ("from", case.provenance),
    ):
        if text:
            yield f"{label:10s} {text}"
    yield ""
    yield from _request(case, request)
    yield ""
    yield "given"
    yield from (f"  {name:18s} {word}" for name, word in case.words.items())
    for name, tensor in case.inputs.items():
        yield from _tensor(name, tensor, case, entries, due=False)
    yield ""
    if case.refusal is not None:
        argument = f", argument {case.refusal.argument}" if case.refusal.argument else ""
        yield f"due        refused as {case.refusal.kind}{argument}: {rule_line(case.refusal.rule)}"
    else:
        yield "due"
        yield from (f"  {name:18s} {word}" for name, word in case.told.items())
        for name, tensor in case.outputs.items():
            yield from _tensor(name, tensor, case, entries, due=True)
    yield from _between(case, entries)
    if case.rules:
        yield ""
        yield "rules"
        yield from (f"  {rule_line(rule)}" for rule in case.rules)


def _request(case: Case, most: int) -> Iterator[str]:
    """The request on the text wire, to paste into an adapter."""
    try:
        line = request_line(1, case.request).decode("ascii").rstrip("\n")
    except ProtocolError as error:
        yield f"request    not on the text wire: {error}"
        return
    if len(line) > most:
        yield f"request    {line[:most]} ... ({len(line)} characters)"
    else:
        yield f"request    {line}"


def _between(case: Case, entries: int) -> Iterator[str]:
    if case.intermediates:
        yield ""
        yield "between"
        for name, tensor in case.intermediates.items():
            yield from _tensor(name, tensor, case, entries, due=False)


def _tensor(name: str, tensor: Tensor, case: Case, most: int, *, due: bool) -> Iterator[str]:
    """A tensor's patterns, and below each what it stands for."""
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    yield f"  {name:18s} {tensor.dtype} {shape}"
    part, second = name.removesuffix("_2"), name.endswith("_2")
    scheme = output_scheme(case) if due else second_scheme(case) if second else input_scheme(case)
    digits = DTYPES[tensor.dtype][0]
    for flat, pattern in enumerate(tensor.patterns[:most]):
        plain = tensor.dtype not in FLOATS and scheme is None
        text = f"0x{pattern:0{digits}X}" if plain else shown(pattern, part, scheme, tensor.dtype)
        yield f"    [{flat}] {text}"
    if len(tensor.patterns) > most:
        yield f"    ... and {len(tensor.patterns) - most} more"
