"""The page that lists the rules. `pages` returns {docname: Markdown}."""

from ..records import rendered
from ..spec import rules
from .render import render

__all__ = ["pages"]


def pages() -> dict[str, str]:
    """`rules`: every rule in the order of the chapters, and the rules of each policy axis."""
    listed = list(rules().values())
    axes: dict[str, list[str]] = {}
    for rule in listed:
        if rule.axis:
            axes.setdefault(rule.axis, []).append(rule.id)
    places = {rule_id: page for rule_id, (page, _) in rendered().items()}
    return {"rules": render("rules", rules=listed, axes=sorted(axes.items()), places=places)}
