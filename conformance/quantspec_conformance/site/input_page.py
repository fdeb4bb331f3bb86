"""The page of same inputs: each question with its different answers, and who gives them. `pages` returns {docname: Markdown}."""

import html

import numpy as np

from quantspec import PRESETS

from ..examples import Entry, Example, Tensor
from .boxes import numbers
from .cells import table
from .inputs import Answer, Question, answers, questions
from .render import render
from .stacks import by_member, linked_source, stack_page

__all__ = ["pages"]


def pages() -> dict[str, str]:
    """`same-input`."""
    sections = [(question, _asked(question), _table(question)) for question in questions().values()]
    return {"same-input": render("same-input", sections=sections)}


def _asked(question: Question) -> str:
    """What is asked, on one line."""
    example = question.example()
    return "; ".join([" ".join(example.do), *(f"{name} {entry.text}" for name, entry in example.given.items())])


def _table(question: Question) -> str:
    example = question.example()
    rows = [_row(question, example, answer) for answer in answers(question)]
    by = f"by {question.by}" if question.by else "by rule"
    return table(["answer", "reads as", by, "run", "read or reported"], rows)


def _row(question: Question, example: Example, answer: Answer) -> list[str]:
    several = len(question.show) > 1
    bits = [_bits(name, entry, several) for name, entry in answer.entries.items()]
    reads = [_reads(example, name, entry) for name, entry in answer.entries.items()]
    run: dict[str, None] = {}
    for row in answer.run:
        stack = by_member("peers")[row.peer]
        run.setdefault(f"[{row.peer}](stacks/{stack.slug}.md) {row.version}")
    return [
        "<br>".join(bits) or "no answer: it fails or refuses",
        "<br>".join(text for text in reads if text),
        ", ".join(_rule(question, name) for name in answer.rows),
        ", ".join(run),
        "; ".join(_said(said.stack, said.evidence, said.source) for said in answer.said),
    ]


def _rule(question: Question, name: str) -> str:
    """A row that gives an answer, with the page of its stack where a preset has one."""
    if name == "canonical":
        return "**canonical**"
    if question.by == "preset":
        return f"[`{name}`](stacks/{by_member('presets')[name].slug}.md) {PRESETS[name].version}"
    return f"`{name}`"


def _bits(name: str, entry: Entry, several: bool) -> str:
    tensor = entry.content
    text = entry.text.partition(" ")[2] if isinstance(tensor, Tensor) else entry.text
    return f"{name.replace('_', ' ').removesuffix('s' if ' ' not in text else '')} `{text}`" if several else f"`{text}`"


def _reads(example: Example, name: str, entry: Entry) -> str:
    return html.escape(", ".join(map(_power, numbers(example, name, entry))))


def _power(text: str) -> str:
    """A number that is not shown in full, as a power of two where it is one."""
    if not text.startswith("≈"):
        return text
    mantissa, exponent = np.frexp(np.float32(text[1:]))
    return f"2^{exponent - 1}" if mantissa == 0.5 else text


def _said(stack: str, evidence: str, source: str) -> str:
    page = stack_page(stack)
    named = stack if page is None else f"[{stack}]({page}.md)"
    address = linked_source(source)
    return f"{named} ({evidence}: {f'[{source}]({address})' if address else source})"
