"""A trace of steps as lines of at most 100 columns, a step a line: text, bits, number, rule."""

import re
import textwrap
from collections.abc import Iterator

from .steptrace import StepTrace, Value

__all__ = ["WIDTH", "trace_lines", "wrapped"]

WIDTH = 100
#: Columns before the steps; the name of a stage stands there.
MARGIN = 11
_NAMES = {"scale_codes": "scale code", "tensor_scale_code": "tensor scale", "codes": "code"}


def wrapped(label: str, text: str, *, indent: str = " ") -> Iterator[str]:
    """A label and its text, broken between words."""
    rows = textwrap.wrap(text, WIDTH - MARGIN, break_long_words=False, break_on_hyphens=False) or [""]
    wide = 10 - len(indent)
    yield from (f"{indent}{'' if number else label:{wide}s} {row}" for number, row in enumerate(rows))


def trace_lines(trace: StepTrace, *, parts: str = "", actual: str = "", indent: str = " ") -> Iterator[str]:
    """The lines of a trace; where `parts` is what a stage gives, what the implementation has stands below it."""
    rows = [_text(value) for stage in trace.stages for value in (*stage.found, *stage.steps)]
    width = max(22, *map(len, rows)) if rows else 22
    for stage in trace.stages:
        label = stage.name
        for value in (*stage.found, *stage.steps):
            yield f"{indent}{label:{10 - len(indent)}s} {_text(value):{width}s}  {value.bits:10s}  {value.number:15s}  {value.rule}"
            label = ""
        here = bool(actual) and parts == stage.gives
        side = ", expected" if here else ", the same" if parts else ""
        yield f"{'':10s} {_NAMES.get(stage.gives, stage.gives) + side:{width}s}  {_short(stage.result)}"
        if here:
            name = f"{_NAMES.get(stage.gives, stage.gives)}, actual"
            yield f"{'':10s} {name:{width}s}  {_short(actual)}   <- here"


def _text(value: Value) -> str:
    """A step, or a name with its meaning."""
    return f"{value.text}: {value.meaning}" if value.meaning else value.text


def _short(shown: str) -> str:
    """A pattern without the fields that make it long, and without the exact number that the bits are already."""
    columns = shown.split("  ")
    kept = [column for column in columns if not (len(column) > 16 and set(column) <= set("01|"))]
    return re.sub(r" \(-?0x1[0-9a-f.]*p[-+]?[0-9]+\)", "", "  ".join(kept))
