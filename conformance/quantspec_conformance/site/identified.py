"""What `quantspec identify` found of a peer that was told nothing: peers/results/identify.json beside peers/identify.toml."""

from functools import cache
from typing import Any

from ..peers.identifying import Documented, documented, recorded
from .cells import table

__all__ = ["findings"]

#: Names with the same bits on a format that are listed; the others are counted.
LISTED = 3


@cache
def _known() -> dict[tuple[str, str, str], Documented]:
    return {(row.peer, row.scheme, row.asked_as): row for row in documented()}


@cache
def findings(peer: str) -> dict[str, Any] | None:
    """The tables of a peer: what was found for each format, and where it leaves that. None where it was not asked."""
    answers = [one for one in recorded()["answers"] if one["peer"] == peer]
    if not answers:
        return None
    header = ["format", "outcome", "recipe", "codec", "blocks asked"]
    leaves = [row for one in answers for row in _leaves(one)]
    second = ["format", "of", "where", "agrees", "smallest input (others 0): what is wrong", "by the rule", "given"]
    return {
        "table": table(header, [_row(one) for one in answers]),
        "leaves": table(second, leaves) if leaves else "",
        "texts": [*dict.fromkeys(row.text for row in _known().values() if row.peer == peer)],
        "version": answers[0]["version"],
    }  # fmt: skip


def _format(one: dict[str, Any]) -> str:
    return f"`{one['scheme']}`" + (f", asked as `{one['as']}`" if one["as"] else "")


def _row(one: dict[str, Any]) -> list[str]:
    known = _known().get((one["peer"], one["scheme"], one["as"]))
    recipe, codec = (known.recipe, known.codec) if known else ("", "")
    return [
        _format(one), one["outcome"], _names(one["recipes"], recipe), _names(one["codecs"], codec), str(one["blocks"]),
    ]  # fmt: skip


def _names(found: list[str], first: str) -> str:
    """Names that cannot be told apart here, the one that the peer is known by first."""
    ordered = sorted(found, key=lambda name: name != first)
    more = len(ordered) - LISTED
    return " or ".join(f"`{name}`" for name in ordered[:LISTED]) + (f" or {more} more" if more > 0 else "")


def _leaves(one: dict[str, Any]) -> list[list[str]]:
    """A row for each part and domain that leaves the rule, and for each part that follows none."""
    rows = []
    for part in one["parts"]:
        for place in part["except"]:
            head = [_format(one), part["part"], place["domain"], f"{place['agrees']} of {place['of']}"]
            rows.append([*head, *_question(place["by"])])
        if "nearest" in part:
            near = ", ".join(f"{member} `{name}`" for member, name in part["nearest"].items())
            rows.append([_format(one), part["part"], f"none of the known; nearest: {near}", "", *_question(part["by"])])
    return rows


def _question(by: dict[str, Any] | None) -> list[str]:
    """The smallest input and what of the answer is wrong, the bits by the rule and those given."""
    if by is None:
        return ["", "", ""]
    numbered = [
        f"x[{place}] = `{bits}`" if place.isdigit() and " " not in bits else bits for place, bits in by["x"].items()
    ]
    place = "" if by["place"].startswith("[") else by["place"]  # an index into all codes that were read
    shown = ", ".join(numbered) + (f": {place}" if place else "")
    return [shown, f"`{by['expected']}`", f"`{by['got']}`"]
