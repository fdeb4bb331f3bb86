"""Every liar of fused uses fails the case that is there for it, by the rule that it breaks; its twin that does not lie passes."""

from functools import cache

import pytest

from quantspec_conformance.implementations.law import Law
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.judge import judge
from quantspec_conformance.triage.element import explain_case
from quantspec_conformance.triage.replay import part_of, replay
from quantspec_conformance.triage.show import show_lines
from quantspec_conformance.triage.shrink import shrink

from ..fakes_fused import MEANT, Lying, Product
from .suites import shipped

OPERATIONS = ("chain", "product", "product_codes", "repack")


@cache
def by_id() -> dict[str, Case]:
    return {case.id: case for case in shipped() if case.op in OPERATIONS}


@pytest.mark.parametrize("liar", MEANT, ids=lambda liar: liar.__name__)
def test_a_liar_fails_the_case_that_is_there_for_it(liar: type[Lying]) -> None:
    case_id, rules = MEANT[liar]
    case = by_id()[case_id]
    result = judge(case, liar().handle(case.request))
    assert (result.outcome, result.mismatch is not None) == ("fail", True)
    assert result.rule in rules, f"it names {result.rule}"
    lines, code = replay(case, liar(), address="liar")
    assert code == 1
    assert any(case_id in line for line in lines)
    found = shrink(case, liar(), address="liar", budget=40)
    assert found.result.outcome == "fail"
    assert found.case.elements <= case.elements
    if case.op == "chain":
        assert found.elements <= 4, found.summary
        explained = explain_case(found.case)
        assert any(line.startswith("y ") for line in explained), explained


def test_a_product_of_the_liars_that_has_no_fault_is_right() -> None:
    """The steps that they share are those of the reference."""
    honest = Product()
    cases = [case for case in by_id().values() if case.op == "product" and case.refusal is None]
    assert [case.id for case in cases if judge(case, honest.handle(case.request)).outcome != "pass"] == []


def test_sizes_about_the_end_of_a_run_tell_runs_apart() -> None:
    """Beyond 32 each size of drawn numbers shows another length of run; at 32 and below none does."""
    for liar in MEANT:
        if liar.__name__ == "WholeK":
            for size in (31, 32, 33, 63, 64, 65, 97):
                case = by_id()[f"product.q8s-native-b1-f32.runs.k-{size}"]
                outcome = judge(case, liar().handle(case.request)).outcome
                assert outcome == ("pass" if size <= 32 else "fail"), size


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_case_can_be_shown(op: str) -> None:
    cases = [case for case in by_id().values() if case.op == op]
    assert len(cases) > 100
    for case in cases:
        lines = show_lines(case)
        assert lines[0].startswith(case.id)
        given = case.inputs.get("codes") or case.inputs["words"]
        if case.outputs and all(tensor.patterns for tensor in (given, *case.outputs.values())):
            assert explain_case(case)[0].startswith(case.id)


def test_the_law_replays_a_case_of_each() -> None:
    for op in OPERATIONS:
        case = next(case for case in by_id().values() if case.op == op and case.refusal is None)
        assert replay(case, Law(), address="reference")[1] == 0


def test_an_element_of_a_chain_takes_its_operands_along() -> None:
    case = next(case for key, case in by_id().items() if key.endswith("broadcast.2x3x4-3x1"))
    part, _ = part_of(case, element=(1, 2, 3))
    assert part.outputs["y"].patterns == (case.outputs["y"].patterns[-1],)
    assert {part.inputs[name].shape for name in ("a", "m")} == {(1, 1)}
