"""What a case is about: the value format or scale type that it belongs to in the matrix, and its scheme."""

from collections.abc import Iterable

from quantspec import SCALES, VALUES, QuantspecError, Scheme

from ..suite.case import Case

__all__ = ["OTHER", "format_of", "in_order", "scheme_of"]

#: Cases that are about no format: texts that are refused, sizes.
OTHER = "other"


def format_of(case: Case | None, case_id: str) -> str:
    """The value format of a case, else its scale type; of a case that is not known, the format that its id names."""
    known = (*VALUES, *SCALES)
    words = {} if case is None else case.words
    for prefix in ("value:", "scale:"):
        found = [name.removeprefix(prefix) for name in (case.features if case else ()) if name.startswith(prefix)]
        if found and found[0] in known:
            return found[0]
    for guess in (words.get("scheme", "").partition(".")[0], *case_id.split(".")[:3]):
        if guess in known:
            return guess
    return OTHER


def in_order(formats: Iterable[str]) -> list[str]:
    """Value formats, scale types, the rest, in the order of the tables."""
    order = [*VALUES, *SCALES]
    return sorted(set(formats), key=lambda name: (order.index(name) if name in order else len(order), name))


def scheme_of(case: Case, *, result: bool = False) -> Scheme | None:
    """The scheme of a case, None where it has none that parses; `result`: that of its outputs (requantize changes it)."""
    text = case.words.get("new_scheme", "") if result else ""
    table = case.inputs.get("table")
    try:
        return Scheme.parse(text or case.words["scheme"], tables=[] if table is None else [table.array()])
    except (KeyError, QuantspecError):
        return None
