"""The selection language: terms and, commas or, hyphens not; every mistake has a position and what is allowed."""

import pytest

from quantspec_conformance.errors import UsageError
from quantspec_conformance.suite.case import Case
from quantspec_conformance.suite.select import TERMS, select

from .suites import shipped


def ids(expression: str) -> set[str]:
    return {case.id for case in select(shipped(), expression)}


@pytest.mark.parametrize(("wrong", "near"), [("ocp-mxx", "ocp-mx"), ("ptxx", "ptx"), ("ggml_q8_0", "ggml-q8_0")])
def test_a_policy_that_no_row_has_is_said_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"position 19: policy:{wrong} is none; allowed: canonical, .*near: {near}"):
        select(shipped(), f"op:quantize policy:{wrong}")


def test_patterns_of_policies_and_rows_without_cases_select_as_before() -> None:
    assert ids("policy:ocp-*") == ids("policy:ocp-mx") != set()
    assert ids("policy:no-such-*") == set()


def test_nothing_selects_everything_in_order() -> None:
    assert select(shipped(), "  ") == shipped()


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("op:encode", lambda c: c.op == "encode"),
        ("op:encode,decode", lambda c: c.op in ("encode", "decode")),
        ("value:e2m1,e4m3", lambda c: "value:e2m1" in c.features or "value:e4m3" in c.features),
        ("store:packed_u32", lambda c: "store:packed_u32" in c.features),
        ("scale:ue8m0", lambda c: "scale:ue8m0" in c.features),
        ("mode:lookup", lambda c: "mode:lookup" in c.features),
        ("rule:VAL-7", lambda c: "VAL-7" in c.rules),
        ("rule:val-7", lambda c: "VAL-7" in c.rules),
        ("rule:OPS", lambda c: any(r.startswith("OPS-") for r in c.rules)),
        ("level:0", lambda c: c.level == 0),
        ("level:0-1", lambda c: True),
        ("level:1,2", lambda c: c.level == 1),
        ("kind:negative", lambda c: c.refusal is not None),
        ("-kind:negative", lambda c: c.refusal is None),
        ("strength:POLICY", lambda c: c.strength == "POLICY"),
        ("bug:tie", lambda c: "tie" in c.bugs),
        ("id:encode.e2m1.*", lambda c: c.id.startswith("encode.e2m1.")),
        ("suite:boundary", lambda c: c.suite.endswith("/boundary")),
        ("suite:e2m1/*", lambda c: c.suite.startswith("e2m1/")),
        ("feature:axis:1", lambda c: "axis:1" in c.features),
        ("feature:axis:?", lambda c: any(f.startswith("axis:") for f in c.features)),
        ("provenance:metamorphic:*", lambda c: c.provenance.startswith("metamorphic:")),
        ("Middle", lambda c: "middle" in c.title.lower() or "middle" in c.id),
        ("zeros,subnormals", lambda c: any(w in c.id or w in c.title.lower() for w in ("zeros", "subnormals"))),
        ("op:quantize -rule:SCL-12 bug:tie", lambda c: c.op == "quantize" and "SCL-12" not in c.rules and "tie" in c.bugs),
        ("-op:encode,decode level:1", lambda c: c.op not in ("encode", "decode") and c.level == 1),
    ],
)  # fmt: skip
def test_a_selection_is_what_it_says(expression: str, holds) -> None:  # type: ignore[no-untyped-def]
    expected = {case.id for case in shipped() if holds(case)}
    assert ids(expression) == expected
    assert expected


@pytest.mark.parametrize(
    ("expression", "position", "message"),
    [
        ("opp:encode", 0, "'opp' is the name of no term; allowed: op, kind"),
        ("op:encode valeu:e2m1", 10, "near: value"),
        ("op:encoed", 3, "op:encoed is none; allowed: encode, decode"),
        ("level:0 op:encode,frobnicate", 18, "op:frobnicate is none"),
        ("level:3", 6, "level:3 is none; allowed: a level, 0 to 2, a range such as 0-1"),
        ("level:1-0", 6, "level:1-0 is none"),
        ("level:one", 6, "level:one is none"),
        ("rule:VAL-99", 5, "there is no rule VAL-99; allowed: VAL-1 to VAL-13, or VAL"),
        ("rule:XYZ", 5, "there is no rule XYZ; allowed: SCH, VAL"),
        ("-", 0, "a hyphen with nothing behind it"),
        ("op:", 3, "an alternative is empty"),
        ("op:encode,,decode", 10, "an alternative is empty"),
        ("-kind:maybe", 6, "kind:maybe is none; allowed: positive, negative, control"),
    ],
)
def test_a_mistake_has_a_position_and_what_is_allowed(expression: str, position: int, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        select(shipped(), expression)
    assert str(refused.value).startswith(f"selection, position {position}: ")
    assert message in str(refused.value)


def test_every_term_selects_something_and_not_everything() -> None:
    tries = {
        "op": "pack", "kind": "control", "strength": "POLICY", "policy": "ocp-mx", "bug": "axis", "value": "q4s", "store": "native",
        "scale": "f16", "mode": "lookup", "rule": "PAK-7", "level": "0", "id": "pack.*", "suite": "first",
        "provenance": "metamorphic:*", "feature": "level:both", "rank": "3", "axis": "1",
    }  # fmt: skip
    assert set(tries) == set(TERMS)
    for name, text in tries.items():
        assert 0 < len(ids(f"{name}:{text}")) < len(shipped()), name


def test_a_case_without_anything_is_no_trouble() -> None:
    bare = Case(id="encode.e2m1.x.y", title="t", op="encode", level=0)
    assert select([bare], "op:encode -rule:VAL") == (bare,)
    assert select([bare], "value:e2m1") == ()
