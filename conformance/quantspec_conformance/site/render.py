"""Templates put into pages: one environment for all of them, in which a name without a value is an error."""

import re
from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..spec import rule_key

__all__ = ["render"]


def render(template: str, **context: object) -> str:
    """The page that `templates/<template>.md.jinja` makes of these values."""
    return _ENVIRONMENT.get_template(f"{template}.md.jinja").render(**context)


def _plain(text: str) -> str:
    """Text in which no character means anything to markdown, back quotes apart."""
    return re.sub(r"([\\*_|<$\[\]])", r"\\\1", text)


def _by_area(ids: Iterable[str]) -> str:
    """Rules in reading order, a semicolon between areas."""
    areas: dict[str, list[str]] = {}
    for rule_id in sorted(ids, key=rule_key):
        areas.setdefault(rule_id[:3], []).append(rule_id)
    return "; ".join(", ".join(members) for members in areas.values())


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), undefined=StrictUndefined, autoescape=False,
    trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
)  # fmt: skip
_ENVIRONMENT.filters |= {"by_area": _by_area, "plain": _plain}
