"""A trace of steps as lines of at most 100 columns, a step a line: text, bits, number."""

import textwrap
from collections.abc import Iterator

from .steptrace import StepTrace, Value

__all__ = ["WIDTH", "trace_lines", "wrapped"]

WIDTH = 100
#: Columns before the steps; the name of a stage stands there.
MARGIN = 11


def wrapped(label: str, text: str) -> Iterator[str]:
    """A label and its text, broken between words."""
    rows = textwrap.wrap(text, WIDTH - MARGIN, break_long_words=False, break_on_hyphens=False) or [""]
    yield from (f" {label if not number else '':9s} {row}" for number, row in enumerate(rows))


def trace_lines(trace: StepTrace, *, parts: str = "", actual: str = "") -> Iterator[str]:
    """The lines of a trace; where `parts` is what a stage gives, what the implementation has stands below it."""
    rows = [value for stage in trace.stages for value in (*stage.found, *stage.steps)]
    width = max((len(value.text) for value in rows), default=0)
    for stage in trace.stages:
        label = stage.name
        for value in (*stage.found, *stage.steps):
            yield _row(label, value, width)
            label = ""
        due, here = ("expected", "actual") if parts == stage.gives and actual else ("", "")
        same = "   the same in both" if parts and not due else ""
        yield f" {'':9s} {_named(stage.gives, due):{width}s}  {stage.result}{same}"
        if here:
            yield f" {'':9s} {_named(stage.gives, here):{width}s}  {actual}   <- it parts here"


def _named(part: str, side: str) -> str:
    names = {"scale_codes": "scale code", "tensor_scale_code": "tensor scale code", "codes": "code"}
    return f"{names.get(part, part)}{f', {side}' if side else ''}"


def _row(label: str, value: Value, width: int) -> str:
    meaning = f"   {value.meaning}" if value.meaning else ""
    return f" {label:9s} {value.text:{width}s}  {value.bits:10s}  {value.number}{meaning}"
