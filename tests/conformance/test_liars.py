"""Every liar is caught, by a failure that names the rule it breaks; the honest adapter is not."""

import pytest

from quantspec import Scheme
from quantspec_conformance import matrix
from quantspec_conformance.adapters import Adapter
from quantspec_conformance.adapters.reference import ReferenceAdapter
from quantspec_conformance.cases import Batch, data, plans
from quantspec_conformance.chain import perform
from quantspec_conformance.compare import EXPECTED, Outcome, compare
from quantspec_conformance.failure import Failure, explain_failure

from ..fakes import LIARS, Liar


def judged(adapter: Adapter, text: str, seed: int = 0) -> list[tuple[Batch, Scheme, Outcome]]:
    """Every case of one scheme, in this process."""
    found = []
    for plan in plans(matrix.select([text])):
        batch = data(plan, seed)
        for scheme in plan.schemes:
            expected = perform(ReferenceAdapter(), scheme, batch)
            actual = perform(adapter, scheme, batch)
            found.append((batch, scheme, compare(expected, actual, scheme, plan.shape)))
    return found


def failures(adapter: Adapter, text: str) -> list[Failure]:
    """The failure blocks of one scheme."""
    return [
        explain_failure(batch, scheme, outcome, "liar", 0)
        for batch, scheme, outcome in judged(adapter, text)
        if outcome.status not in EXPECTED
    ]


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_liar_is_caught_and_the_rule_is_named(liar: type[Liar]) -> None:
    text, rules = LIARS[liar]
    found = failures(liar(), text)
    assert found, f"{liar.__name__} was not caught on {text}"
    named = {failure.rule for failure in found}
    assert named & rules, f"{liar.__name__} on {text}: the failures name {named}, none of {set(rules)}"
    for failure in found:
        assert f"--case '{failure.case}'" in failure.repro or failure.case in failure.repro
        assert failure.text().startswith(f"FAIL {failure.case}   device=liar")


@pytest.mark.parametrize("text", sorted({text for text, _ in LIARS.values()}))
def test_the_honest_adapter_passes(text: str) -> None:
    outcomes = [(batch.plan.case_id(scheme), outcome) for batch, scheme, outcome in judged(Liar(), text)]
    assert [case for case, outcome in outcomes if outcome.status not in EXPECTED] == []
