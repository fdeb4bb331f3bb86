"""Cases one a line."""

import json
from collections.abc import Iterable

from ..outside import printable
from ..suite.case import Case

__all__ = ["list_lines"]


def list_lines(cases: Iterable[Case], as_json: bool = False) -> list[str]:
    """A line a case: id, operation, level, kind, elements, title; or a JSON object a line, with rules, bugs and features."""
    rows = list(cases)
    if as_json:
        return [json.dumps(_record(case), ensure_ascii=False) for case in rows]
    columns = [
        (case.id, case.op, str(case.level), case.kind, str(case.elements), printable(case.title)) for case in rows
    ]
    widths = [max((len(column[place]) for column in columns), default=0) for place in range(5)]
    return ["  ".join([*map(str.ljust, column, widths), column[5]]).rstrip() for column in columns]


def _record(case: Case) -> dict[str, object]:
    return {
        "id": case.id,
        "title": case.title,
        "op": case.op,
        "level": case.level,
        "kind": case.kind,
        "strength": case.strength,
        "suite": case.suite,
        "elements": case.elements,
        "rules": list(case.rules),
        "features": list(case.features),
        "bugs": list(case.bugs),
        "control": case.control,
        "provenance": case.provenance,
    }
