"""Examples of the harness itself: how answers are compared, what a run may claim, what the host must do. CNF-1 to CNF-6."""

from typing import Any

import numpy as np

from quantspec import Scheme
from quantspec.rounding import multiply

from .chain import Refused, Result
from .compare import compare as compare_answers
from .coverage import is_whole
from .examples import Entry, Example, ExampleError, Tensor

__all__ = ["compare", "host", "judge"]

#: What kind of mismatch it is, where the comparison tells -> the rule by which it fails.
KINDS = {"padding": "CNF-2", "unwritten": "CNF-3"}


def _given(example: Example, name: str, default: str | None = None) -> str:
    entry = example.given.get(name, None if default is None else Entry(default))
    if entry is None or isinstance(entry.content, Tensor):
        raise ExampleError(f"{example.place}: {example.id}: needs a line `{name}` of words")
    return entry.content


def _answer(example: Example, name: str) -> Result:
    """An answer: a tensor, or `refused RULE kind`."""
    content = example.given[name].content
    if isinstance(content, Tensor):
        return {_given(example, "part"): content.array()}
    words = content.split(maxsplit=3)
    if len(words) < 3 or words[0] != "refused":
        raise ExampleError(f"{example.place}: {example.id}: {name} is a tensor or `refused RULE kind`")
    return Refused(f"{words[2].capitalize()}Error", words[1], " ".join(words[3:]))


def compare(example: Example) -> dict[str, Any]:
    """The outcome of a step whose `expected` and `actual` answers are given, and the rule it fails by."""
    shape = tuple(int(size) for size in _given(example, "shape").split(","))
    step = _given(example, "step")
    scheme = Scheme.parse(_given(example, "scheme"))
    outcome = compare_answers({step: _answer(example, "expected")}, {step: _answer(example, "actual")}, scheme, shape)
    made: dict[str, Any] = {"outcome": outcome.status, "rules": ("CNF-1",)}
    if outcome.mismatch is not None:
        rule = outcome.mismatch.rule or "CNF-1"
        unsupported = ("CNF-5",) if outcome.status == "unsupported" else ()
        kind = KINDS.get(outcome.mismatch.kind)
        made |= {"rule": rule, "rules": ("CNF-1", *((kind,) if kind else ()), *unsupported, rule)}
    return made


def judge(example: Example) -> dict[str, Any]:
    """Whether a run with these counts and options is a conformance run. Rule CNF-4."""
    counts = {name: int(_given(example, name)) for name in ("schemes", "matrix")}
    whole = is_whole(
        counts,
        of_matrix=_given(example, "data", "matrix") == "matrix",
        quick=_given(example, "quick", "no") == "yes",
        build_options=_given(example, "build_options", "").split(),
    )
    return {"outcome": "conformance run" if whole else "not a conformance run", "rules": ("CNF-4",)}


def host(example: Example) -> dict[str, Any]:
    """The product of two numbers on this host, refused where it flushes subnormals. Rule CNF-6."""
    factors = [example.given[name].content for name in ("x", "by")]
    x, by = (factor.array() for factor in factors if isinstance(factor, Tensor))
    return {"y": np.asarray(multiply(x, by)), "rules": ("CNF-6",)}
