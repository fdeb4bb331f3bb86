"""Cases by id."""

import difflib
from collections.abc import Iterable

from ..errors import UsageError
from ..outside import printable
from ..suite.case import Case

__all__ = ["find_case"]

MOST_NEAR = 5


def find_case(cases: Iterable[Case], case_id: str) -> Case:
    """The case of an id. UsageError names the ids that are near, or that hold what was typed."""
    known = {case.id: case for case in cases}
    if case_id in known:
        return known[case_id]
    typed = printable(case_id[:120])
    near = difflib.get_close_matches(case_id[:120], known, MOST_NEAR, 0.6)
    holding = [name for name in known if case_id and case_id in name][:MOST_NEAR]
    hint = f"; near: {', '.join(dict.fromkeys([*holding, *near]))}" if near or holding else f" among {len(known)} cases"
    raise UsageError(f"no case {typed!r}{hint}")
