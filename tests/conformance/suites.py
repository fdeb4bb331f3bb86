"""What the tests of the suite share: the cases, answers compared, and implementations that know nothing."""

from collections.abc import Callable
from functools import cache

from quantspec_conformance.examples import DTYPES, Tensor
from quantspec_conformance.protocol.messages import Answer, Ok, Rejected
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.store import load_all, vectors_root


@cache
def shipped() -> tuple[Case, ...]:
    """Every case that is shipped, the examples of the spec apart."""
    return tuple(case for case in load_all(vectors_root()) if case.suite != "doc")


def passes(case: Case, answer: Answer) -> bool:
    """Whether an answer is the expected one, bit for bit; saturated scales may go unsaid but in cases about them."""
    if case.refusal is not None:
        return isinstance(answer, Rejected) and (answer.kind, answer.rule) == (case.refusal.kind, case.refusal.rule)
    unsaid = {} if "report" in case.features else {"saturated": case.told.get("saturated")}
    if not isinstance(answer, Ok) or dict(answer.tensors) != dict(case.outputs):
        return False
    return {**unsaid, **answer.words} == {**unsaid, **case.told}


def _words(case: Case, text: str) -> dict[str, str]:
    """Words that say nothing; of saturated scales nothing at all, which only cases about them ask for."""
    return {name: text for name in case.told if name != "saturated"}


def zeros(case: Case) -> Answer:
    """Zeros of the right dtypes and shapes, and words that say nothing."""
    return Ok(
        {name: Tensor(t.dtype, t.shape, (0,) * len(t.patterns)) for name, t in case.outputs.items()},
        _words(case, "0"),
    )


def ones(case: Case) -> Answer:
    """The pattern 1 everywhere."""
    return Ok(
        {name: Tensor(t.dtype, t.shape, (1,) * len(t.patterns)) for name, t in case.outputs.items()},
        _words(case, "1"),
    )


def echo(case: Case) -> Answer:
    """What it is given: a tensor of the same name, else the first one, in the right dtype and shape; the scheme's text as words."""
    found = {}
    for name, tensor in case.outputs.items():
        given = case.inputs.get(name) or next(iter(case.inputs.values()), tensor)
        patterns = (*given.patterns, *[0] * len(tensor.patterns))[: len(tensor.patterns)]
        patterns = tuple(pattern % 16 ** DTYPES[tensor.dtype][0] for pattern in patterns)
        found[name] = Tensor(tensor.dtype, tensor.shape, patterns)
    return Ok(found, _words(case, case.words.get("scheme", "")))


IGNORANT: dict[str, Callable[[Case], Answer]] = {"zeros": zeros, "ones": ones, "echo": echo}
