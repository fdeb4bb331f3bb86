"""Links that nobody writes: every rule id in a text, and each term where a page, or a rule, first uses it."""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from ..records import rendered
from ..spec import RULE_ID

__all__ = ["link_document"]

#: Text in these is left as it is.
CLOSED = (nodes.reference, nodes.literal, nodes.literal_block, nodes.raw, nodes.math, nodes.math_block, nodes.title,
          addnodes.pending_xref, nodes.rubric)  # fmt: skip
NO_TERMS = (nodes.term, nodes.table)
#: Terms that everyday English uses in other senses too (the verb stores, lower case): their first uses are not linked.
EVERYDAY = {
    "case",
    "cases",
    "claim",
    "claims",
    "stores",
    "split",
    "swap",
    "swaps",
    "swapped",
    "size",
    "sizes",
    "index",
    "raw",
    "h",
}
#: Boxes of these classes are dense already.
DENSE = {"qs-example", "qs-level", "qs-facts"}


def link_document(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn rule ids and first uses of terms in a resolved page into links."""
    terms = _terms(app)
    pattern = _pattern(terms)
    linked: dict[int, set[str]] = {}
    for text in list(doctree.findall(nodes.Text)):
        above = list(_above(text))
        if any(isinstance(node, CLOSED) for node in above):
            continue
        rule = next(
            (node for node in above if isinstance(node, nodes.section) and "qs-rule" in node["classes"]), doctree
        )
        seen = linked.setdefault(id(rule), {*rule.get("ids", ())} if rule is not doctree else set())
        use_terms = not any(isinstance(node, NO_TERMS) or DENSE & {*node.get("classes", ())} for node in above)
        found = list(_pieces(app, docname, str(text), pattern, terms, seen, use_terms))
        if len(found) > 1 or (found and not isinstance(found[0], nodes.Text)):
            text.parent.replace(text, found)


def _above(node: nodes.Node) -> Iterator[Any]:
    while node.parent is not None:
        node = node.parent
        yield node


def _terms(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Lower-case term -> page and anchor."""
    objects = app.env.domains.standard_domain.objects
    return {name.lower(): place for (kind, name), place in objects.items() if kind == "term"}


def _pattern(terms: dict[str, tuple[str, str]]) -> re.Pattern[str]:
    longest = sorted(terms, key=len, reverse=True)
    words = "|".join(re.escape(term).replace(r"\ ", r"\s+") for term in longest)
    return re.compile(rf"{RULE_ID.pattern}|(?<![\w-])(?:{words or '(?!)'})(?![\w-])", re.IGNORECASE)


def _pieces(
    app: Sphinx,
    docname: str,
    text: str,
    pattern: re.Pattern[str],
    terms: dict[str, tuple[str, str]],
    seen: set[str],
    use_terms: bool,
) -> Iterator[nodes.Node]:
    """The text cut into plain text and links."""
    last = 0
    for match in pattern.finditer(text):
        word = match[0]
        target, kind = _target(word, terms, seen, use_terms)
        if target is None:
            continue
        page, anchor = target
        if last < match.start():
            yield nodes.Text(text[last : match.start()])
        uri = f"{app.builder.get_relative_uri(docname, page)}#{anchor}"
        yield nodes.reference("", word, internal=True, refuri=uri, classes=[kind])
        last = match.end()
    if last < len(text):
        yield nodes.Text(text[last:])


def _target(
    word: str, terms: dict[str, tuple[str, str]], seen: set[str], use_terms: bool
) -> tuple[tuple[str, str] | None, str]:
    """Page and anchor of a word, and the class of its link; None where it stays plain."""
    if RULE_ID.fullmatch(word):
        page = rendered().get(word)
        return (None if page is None or word in seen else (page[0], word)), "qs-ruleref"
    key = " ".join(word.lower().split())
    place = None if key in EVERYDAY else terms.get(key)
    if place is None or not use_terms or place[1] in seen:
        return None, ""
    seen.add(place[1])
    return place, "qs-term"
