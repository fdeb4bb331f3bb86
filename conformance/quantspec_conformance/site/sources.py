"""The source of the reference as pages. `pages` returns {docname: Markdown}."""

import ast
import re
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import quantspec

from .render import render

__all__ = ["pages"]


def pages() -> dict[str, str]:
    """`source/<module>` for every module of the reference, and `source/index`.

    Line n of a module has the anchor `L-<n>` (pygments writes `<a id="L-12" ...>` before the line), and its number links
    to it. Colours are classes under `.highlight`.
    """
    formatter = HtmlFormatter(lineanchors="L", linenos="inline", anchorlinenos=True, wrapcode=True)
    found, index = {}, []
    for path in sorted(Path(quantspec.__file__).parent.glob("*.py")):
        text = path.read_text("utf-8")
        html = re.sub(r'(<a id="L-\d+") name="L-\d+"', r"\1", highlight(text, PythonLexer(), formatter))
        found[f"source/{path.stem}"] = render("source", module=path.stem, html=html.rstrip())
        index.append((path.stem, (ast.get_docstring(ast.parse(text)) or "").split("\n")[0], text.count("\n")))
    return found | {"source/index": render("source-index", modules=index)}
