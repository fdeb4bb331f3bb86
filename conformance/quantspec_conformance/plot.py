"""A scatter plot in characters. plotext changed its interface between 5 and 6; both are served."""

from collections.abc import Sequence
from typing import Any

import plotext

__all__ = ["scatter"]

_plotext: Any = plotext


def scatter(points: Sequence[tuple[str, float, float]], *, width: int, height: int, title: str, label: str) -> str:
    """Points (marker, x, y) as lines of plain characters, no control codes."""
    if hasattr(_plotext, "scatter"):
        _plotext.clear_figure()
        _plotext.plotsize(width, height)
        _plotext.theme("clear")
        for marker, x, y in points:
            _plotext.scatter([x], [y], marker=marker)
        _plotext.title(title)
        _plotext.xlabel(label)
        built = _plotext.build()
    else:
        figure = _plotext.figure
        figure.clear()
        figure.theme("colorless")
        figure.plot_size(width, height)
        for marker, x, y in points:
            figure.draw(figure.signal([x], [y], marker=marker))
        figure.title(title)
        figure.label(label)
        built = str(figure.build())
    return "\n".join(line.rstrip() for line in _plotext.uncolorize(built).splitlines())
