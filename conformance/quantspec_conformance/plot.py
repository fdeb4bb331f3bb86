"""A scatter plot in characters."""

from collections.abc import Sequence
from typing import Any

import plotext

__all__ = ["scatter"]

_plotext: Any = plotext  # it has no types


def scatter(points: Sequence[tuple[str, float, float]], *, width: int, height: int, title: str, label: str) -> str:
    """Points (marker, x, y) as lines of plain characters, no control codes."""
    figure = _plotext.figure
    figure.clear()
    figure.theme("colorless")
    figure.plot_size(width, height)
    for marker, x, y in points:
        figure.draw(figure.signal([x], [y], marker=marker))
    figure.title(title)
    figure.label(label)
    return "\n".join(line.rstrip() for line in _plotext.uncolorize(str(figure.build())).splitlines())
