"""Templates put into pages: everything printed is made harmless and escaped, and a page may load and run nothing but its own."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..spec import RULE_ID
from ..suite.outcome import BAD
from .book import Book
from .text import clean, markup_of, share

__all__ = ["Pages"]

_HERE = Path(__file__).parent
#: Outcome -> what is drawn beside its name: colour alone says nothing.
_SYMBOLS = {"pass": "✓", "known": "!", "unsupported": "-", "skipped": "-", "notrun": "·"}


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) else clean(str(value))


def _policy(style: str, script: str) -> str:
    """What a page may load: its own style and script, by their digests."""
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    parts = ("default-src 'none'", f"style-src 'sha256-{digests[0]}'", f"script-src 'sha256-{digests[1]}'")
    return "; ".join((*parts, "base-uri 'none'", "form-action 'none'"))


def _symbol(outcome: str) -> str:
    return "✗" if outcome in BAD else _SYMBOLS.get(outcome, "?")


def _tested(outcome: str) -> str:
    """The colour of the outcome of a test, in pytest's words."""
    return "pass" if outcome == "passed" else "bad" if outcome in ("failed", "error", "xpassed") else "skipped"


def _colour(outcome: str) -> str:
    return "bad" if outcome in BAD else outcome if outcome in _SYMBOLS else "unknown"


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(_HERE / "templates"), undefined=StrictUndefined, autoescape=True, finalize=_finalize,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    found.filters |= {
        "share": share,
        "linked": markup_of,
        "symbol": _symbol,
        "colour": _colour,
        "tested": _tested,
        "clean": clean,
    }
    style = (_HERE / "static" / "report.css").read_text("utf-8")
    script = (_HERE / "static" / "filter.js").read_text("utf-8")
    found.globals |= {"style": Markup(style), "script": Markup(script), "policy": _policy(style, script)}
    return found


class Pages:
    """The templates, with the book that all of them look things up in."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._shared = {"book": book, "rule_link": self._rule_link, "case_link": self._case_link, "ruled": self._ruled}

    def page(self, template: str, **context: object) -> str:
        """The page that `templates/<template>.html.jinja` makes of these values."""
        return _environment().get_template(f"{template}.html.jinja").render(**self._shared, **context)

    def _rule_link(self, rule_id: str) -> Markup:
        page = self._book.rule_page(rule_id)
        if not page:
            return Markup("<code>{}</code>").format(clean(rule_id))
        return Markup('<a class="rule" href="{}" title="{}">{}</a>').format(
            page, self._book.rule_title(rule_id), rule_id
        )

    def _case_link(self, case_id: str) -> Markup:
        page = self._book.page(case_id)
        form = '<a class="case" href="{1}">{0}</a>' if page else '<span class="case">{0}</span>'
        return Markup(form).format(clean(case_id), page)

    def _ruled(self, text: str) -> Markup:
        """A text of the spec: paragraphs, with links where it names rules. Tables and lists keep their lines."""
        found: list[Markup] = []
        for paragraph in text.strip().split("\n\n"):
            kept = any(line.startswith(("|", "- ", "* ", "    ")) for line in paragraph.splitlines())
            parts: list[Markup] = []
            end = 0
            for match in RULE_ID.finditer(paragraph):
                parts += [Markup("{}").format(clean(paragraph[end : match.start()])), self._rule_link(match[0])]
                end = match.end()
            parts.append(Markup("{}").format(clean(paragraph[end:])))
            marked = Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", Markup("").join(parts)))
            found.append(Markup("<pre>{}</pre>" if kept else "<p>{}</p>").format(marked))
        return Markup("\n").join(found)
