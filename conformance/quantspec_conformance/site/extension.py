"""The Sphinx extension of the spec's site."""

from typing import Any

from sphinx.application import Sphinx

from . import mathml
from .directives import DeviationDirective, ExampleDirective, FaultDirective, RuleDirective
from .links import link_document

__all__ = ["setup"]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, the links and the renderer of formulas."""
    app.add_directive("rule", RuleDirective)
    app.add_directive("example", ExampleDirective)
    app.add_directive("deviation", DeviationDirective)
    app.add_directive("fault", FaultDirective)
    app.connect("doctree-resolved", link_document, priority=900)
    mathml.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
