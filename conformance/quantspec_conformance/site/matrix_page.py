"""The page of all peers by format: counts, shares and a bar a cell. `pages` returns {docname: Markdown}."""

import html
from collections.abc import Mapping

from .render import render
from .results import KINDS, matrix, share, tally
from .stacks import by_member

__all__ = ["pages"]

#: Operation of a group -> its heading, in the order of the page.
OPERATIONS = {
    "encode": "Numbers to codes", "decode": "Codes to numbers", "encode_scale": "Numbers to scale codes",
    "decode_scale": "Scale codes to numbers", "quantize": "Quantize", "dequantize": "Dequantize",
    "doc": "Worked examples of the spec, by chapter",
    "echo": "Schemes read and written again",
}  # fmt: skip


def pages() -> dict[str, str]:
    """`stacks/matrix`."""
    found = matrix()
    names = [row["peer"] for row in found["peers"]]
    sections: dict[str, list[str]] = {}
    for group in found["groups"]:
        operation = str(group).partition(".")[0]
        sections.setdefault(OPERATIONS.get(operation, operation), []).append(group)
    order = [*OPERATIONS.values(), *sections]
    return {
        "stacks/matrix": render(
            "matrix", date=found["date"], level=found["level"], peers=[_peer(row) for row in found["peers"]],
            totals=_total(found["peers"]),
            sections=[(name, _table(sections[name], names)) for name in dict.fromkeys(order) if name in sections],
        )
    }  # fmt: skip


def _peer(row: Mapping[str, str]) -> tuple[str, str, str]:
    return row["peer"], row["version"], row["status"]


def _link(name: str) -> str:
    stack = by_member("peers").get(name)
    return html.escape(name) if stack is None else f'<a href="{stack.slug}.html">{html.escape(name)}</a>'


def _scrolling(label: str, head: str, body: str) -> str:
    """A table in a box that scrolls by itself; its first column stays."""
    table = f"<table class='docutils qs-matrix'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"```{{raw}} html\n<div class='qs-scroll' tabindex='0' role='region' aria-label='{label}'>{table}</div>\n```"


def _total(rows: list[Mapping[str, dict[str, int]]]) -> str:
    """A row a peer: right, other, not supported."""
    body = ""
    for row in rows:
        counts = tally(row["outcomes"])
        cells = "".join(f"<td>{counts[kind]}</td>" for kind in KINDS)
        body += f"<tr><th scope='row'>{_link(str(row['peer']))} {html.escape(str(row['version']))}</th>"
        body += f"{cells}<td>{share(counts)}{_bar(counts)}</td><td>{html.escape(str(row['status']))}</td></tr>"
    names = ("peer", *KINDS, "passes, of those answered", "against what is known")
    return _scrolling("All cases by peer", "".join(f"<th scope='col'>{name}</th>" for name in names), body)


def _table(groups: list[str], names: list[str]) -> str:
    head = "<th scope='col'>format</th>" + "".join(f"<th scope='col'>{_link(name)}</th>" for name in names)
    body = ""
    for group in groups:
        cells = "".join(_cell(matrix()["groups"][group].get(name)) for name in names)
        body += f"<tr><th scope='row'><code>{html.escape(group.partition('.')[2])}</code></th>{cells}</tr>"
    return _scrolling("Cases by format and peer", head, body)


def _cell(outcomes: Mapping[str, int] | None) -> str:
    if outcomes is None:
        return "<td class='qs-none' title='not supported'>none</td>"
    counts = tally(outcomes)
    answered = counts["pass"] + counts["differ"]
    said = " ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    return f"<td title='{html.escape(said)}'>{counts['pass']} of {answered}<br>{share(counts)}{_bar(counts)}</td>"


def _bar(counts: Mapping[str, int]) -> str:
    """Right from the left, other from the right, hatched."""
    answered = counts["pass"] + counts["differ"]
    if not answered:
        return ""
    wide = 100 * counts["pass"] / answered
    return f"<span class='qs-bar' aria-hidden='true'><i style='width:{wide:.3g}%'></i></span>"
