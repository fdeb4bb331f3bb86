"""Public fault reports: every case of the file is tested, and the ledger says true things about them.

The tests themselves are beside this module, a module a kind of fault.
"""

from typing import Any

from . import test_bug_layout, test_bug_opencl, test_bug_packing, test_bug_scales, test_bug_values
from .facts import BUGS, TESTED
from .ledger import BUG_CHOSEN, BUG_DIFFERS, BUG_LEFT_OUT, BUG_REDUCED

MODULES = (test_bug_values, test_bug_scales, test_bug_packing, test_bug_layout, test_bug_opencl)


def choices(expected: Any) -> list[str]:
    """The conditions of every answer that a case's expectation offers."""
    if isinstance(expected, list):
        return [when for part in expected for when in choices(part)]
    if not isinstance(expected, dict):
        return []
    return [answer["when"] for answer in expected.get("one_of", ())]


def test_every_case_is_tested_or_left_out() -> None:
    assert all(module.__doc__ for module in MODULES), "imported, so their cases are registered"
    assert TESTED["bugs"] | set(BUG_LEFT_OUT) == set(BUGS)
    assert not TESTED["bugs"] & set(BUG_LEFT_OUT)


def test_every_choice_is_written_down() -> None:
    offered = {i: choices(case["expected"]) for i, case in BUGS.items()}
    assert set(BUG_CHOSEN) == {i for i, answers in offered.items() if answers}
    for i, (when, rule) in BUG_CHOSEN.items():
        assert when in offered[i]
        assert rule.partition("-")[0] in ("SCH", "VAL", "SCL", "QNT", "PAK", "LAY")


def test_the_ledger_names_cases_that_are_tested() -> None:
    assert set(BUG_DIFFERS) | set(BUG_REDUCED) <= TESTED["bugs"]
    floors = {i for i, reason in BUG_DIFFERS.items() if "floor rule" in reason}
    named = {
        i for i, case in BUGS.items() if "floor" in (str(case["expected"]) + str(case["scheme"]) + case["note"]).lower()
    }
    # under both rules alike: BC-065 by its numbers, BC-029 because its canonical answer is listed
    assert floors == named - {"BC-029", "BC-065"}
    assert BUGS["BC-065"]["expected"]["ocp_floor"] == BUGS["BC-065"]["expected"]["rceil"]
