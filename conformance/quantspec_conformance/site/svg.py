"""The few marks that drawings are made of: SVG text that takes its colours from the page.

Lines and letters are `currentColor`; fills are classes `qs-…`, and nothing is filled where a page has no style for them.
"""

from collections.abc import Iterable
from html import escape

__all__ = ["box", "document", "label", "legend"]

WIDTH = 320
TEXT = 12


def document(title: str, height: float, marks: Iterable[str], *, width: int = WIDTH) -> str:
    """A whole drawing: the width of a text column on a phone, never wider than what it stands in."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" class="qs-drawing" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" style="max-width:100%;height:auto" font-size="{TEXT}" fill="currentColor">'
        f"<title>{escape(title)}</title>{''.join(marks)}</svg>"
    )


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    style: str,
    *,
    says: str = "",
    data: dict[str, object] | None = None,
) -> str:
    """A rectangle of a class, with what it says when pointed at and what it stands for."""
    facts = "".join(f' data-{name}="{escape(str(value))}"' for name, value in (data or {}).items())
    shape = (
        f'<rect class="{style}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="none" '
        f'stroke="currentColor" stroke-opacity="0.55"{facts}'
    )
    return f"{shape}><title>{escape(says)}</title></rect>" if says else f"{shape}/>"


def label(x: float, y: float, text: str, *, anchor: str = "middle", size: int = TEXT, mono: bool = False) -> str:
    """A line of text; `y` is its base line."""
    face = ' font-family="ui-monospace, monospace"' if mono else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}"{face}>{escape(text)}</text>'


def legend(y: float, entries: Iterable[tuple[str, str]]) -> tuple[list[str], float]:
    """Lines of a swatch and a text, and the height below them."""
    marks: list[str] = []
    for style, text in entries:
        marks += [box(2, y, 14, 14, style), label(22, y + 11, text, anchor="start")]
        y += 20
    return marks, y
