"""The matrix has the schemes it claims, and the cases cover what the help says they cover."""

from collections import defaultdict

import numpy as np
import pytest

from quantspec import SCALES, VALUES
from quantspec_conformance import coverage, matrix
from quantspec_conformance.cases import plan_case, plans, refuses
from quantspec_conformance.errors import UsageError
from quantspec_conformance.families import FAMILIES, SHAPES


def test_sizes() -> None:
    found = matrix.schemes()
    assert len(found) == 2695 + 1470
    assert len({scheme for _, scheme in found.values()}) == len(found)


def test_every_store_and_scale_choice_of_every_value() -> None:
    seen = defaultdict(set)
    for group, scheme in matrix.schemes().values():
        seen[group.row].add((scheme.store.text, group.tensor, group.block))
    assert {row: len(found) for row, found in seen.items()} == dict.fromkeys(seen, 7 * 35)
    assert len(seen) == len(VALUES) + sum(row.is_integer for row in VALUES.values())


def test_extents_meet_every_value_and_every_scale_choice() -> None:
    by_value, by_choice = defaultdict(set), defaultdict(set)
    for group in matrix.groups():
        if group.block is not None:
            by_value[group.row].add(group.extents)
            by_choice[group.tensor, group.block].add(group.extents)
    assert all(found == set(matrix.EXTENTS) for found in (*by_value.values(), *by_choice.values()))
    assert len(by_choice) == len(SCALES) * (len(SCALES) + 1)


def test_mxfp4_and_nvfp4_are_members() -> None:
    assert {"e2m1.packed_native_0.b32-ue8m0", "e2m1.packed_native_0.b16-ue4m3.t-f32"} <= set(matrix.schemes())


def test_tables_have_duplicates_and_are_unsorted() -> None:
    for bits in (2, 8):
        entries = list(matrix.MATRIX_TABLES[bits].bits)
        assert len(set(entries)) < len(entries) == 1 << bits
        assert list(matrix.MATRIX_TABLES[bits].entries) != sorted(matrix.MATRIX_TABLES[bits].entries)
    assert {0x00000000, 0x80000000} <= set(matrix.MATRIX_TABLES[8].bits)


def test_every_scheme_meets_every_shape_and_every_family() -> None:
    shapes, families = defaultdict(set), defaultdict(set)
    for plan in plans(matrix.select([])):
        for scheme in plan.schemes:
            shapes[scheme.text].add(plan.shape)
            assert refuses(scheme, plan.shape) == (plan.family is None)
            if plan.family is not None and 0 not in plan.shape:
                families[scheme.text].add(plan.family)
    full = set(matrix.schemes())
    assert set(shapes) == set(families) == full
    assert all(found == set(SHAPES) for found in shapes.values())
    assert all(found == set(FAMILIES) for found in families.values())


def test_wide_families_meet_wide_shapes_and_steps_take_turns() -> None:
    steps: dict[str, set[str]] = defaultdict(set)
    for plan in plans(matrix.select(["e2m1.*", "q4s.*lut*"])):
        if plan.family is not None and FAMILIES[plan.family].wide and 0 not in plan.shape:
            assert np.prod(plan.shape) > 30
        if plan.family is not None:
            for scheme in plan.schemes:
                steps[scheme.text].update(plan.steps)
    assert {len(found) for found in steps.values()} == {13}


def test_counts() -> None:
    counts = coverage.count(list(plans(matrix.select([]))))
    assert counts["schemes"] == counts["matrix"] == 4165
    assert counts["triples"] == 17 * 35 * len(FAMILIES)
    assert (counts["shapes"], counts["families"]) == (len(SHAPES), len(FAMILIES)) == (15, 16)
    assert counts["cases"] == counts["accepted"] + counts["refused"]


def test_quick_meets_every_value_store_scale_choice_shape_and_family() -> None:
    selected = matrix.select([], quick=True)
    assert len(selected) == 238
    assert len({group.row for group, _ in selected.values()}) == 17
    assert len({(group.tensor, group.block) for group, _ in selected.values()}) == 35
    assert len({scheme.store for _, scheme in selected.values()}) == 7
    counts = coverage.count(list(plans(selected, quick=True)))
    assert (counts["shapes"], counts["families"]) == (15, 16)


def test_only_takes_globs_and_whole_schemes_outside_the_matrix() -> None:
    assert len(matrix.select(["e2m1.*"])) == 245
    assert list(matrix.select(["e2m1.packed_native_0.b48-ue8m0"])) == ["e2m1.packed_native_0.b48-ue8m0"]
    with pytest.raises(UsageError, match=r"'e9m9\.\*' matches none of the 4165 schemes"):
        matrix.select(["e9m9.*"])
    with pytest.raises(UsageError) as error:
        matrix.select(["e2m1.packd.t-f32"])
    assert str(error.value).endswith("\n  e2m1.packd.t-f32\n       ^")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q8s.native.t-f32", "write scheme/shape/family"),
        ("q8s.native.t-f32/3y4/ties", "'3y4' of the case is not a shape"),
        ("q8s.native.t-f32/3x4/tyes", "'tyes' is not a data family; there are normal, ties"),
        ("q8s.native.t-f32/99999x99999/ties", "more than 2\\^24 elements"),
        ("q8t.native.t-f32/3/ties", "position 0: 'q8t' is not a value format"),
    ],
)
def test_case_ids_that_name_nothing(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_case(text)


def test_case_ids_round_trip() -> None:
    for plan in plans(matrix.select(["q2s.packed_u32_1.*"])):
        for scheme in plan.schemes:
            again = plan_case(plan.case_id(scheme))
            assert (again.schemes, again.shape, again.family) == ((scheme,), plan.shape, plan.family)
