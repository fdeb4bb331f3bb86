"""Layout operations that lie: kernels that break one rule each, which the comparison with the reference must notice."""

from collections.abc import Sequence
from typing import Any

import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl import operations
from quantspec_cl.fields import View
from quantspec_cl.opening import open_machine
from quantspec_cl.program import source_of

from .steps import same_step
from .test_packing import tensor

pytestmark = pytest.mark.opencl


def moves(session: qc.Session) -> None:
    """A few operations that show every planted fault."""
    for text in ("q4s.packed_native_0.b1-ue8m0", "e3m2.packed_u32_1.b1-f16"):
        q = tensor(qs.Scheme.parse(text), (5, 7), 3)
        for verb, *arguments in (("permute", (1, 0)), ("repack", "packed_native_1"), ("take", 0, (3, 1)), ("flip", 1)):
            same_step(session, q, verb, *arguments)


FAULTS = {
    "PAK-4 fields from the top": "-DFIELD(field,width,fields)=(((fields)-1u-(field))*(width))",
    "PAK-3 padding holds ones": "-DEMPTY_WORD=0xFFFFFFFFu",
    "OPS-2 lines stay in order": "-DLINE_OFFSET(line,lines)=(line)",
    "OPS-4 the first indices are taken": "-DPICKED(picks,i)=(i)",
}


def test_the_kernels_move_as_the_reference_does(session: qc.Session) -> None:
    moves(session)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_rule_is_noticed(session: qc.Session, fault: str) -> None:
    source = source_of("prelude.cl", "steps.cl", "values.cl", "blocks.cl", "packing.cl", "operations.cl")
    spoiled_session = qc.Session(open_machine(session.info.index, (FAULTS[fault],), True, source=source))
    with pytest.raises(AssertionError):
        moves(spoiled_session)


def test_scales_left_behind_are_noticed(session: qc.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stale(View):
        def permuted(self, order: Sequence[int]) -> View:
            return self.flattened(super().permuted(order).shape)

    views = operations._views

    def stale(source: Any) -> tuple[View, View]:
        codes, grid = views(source)
        return codes, Stale(grid.shape, grid.axes, grid.origin)

    monkeypatch.setattr(operations, "_views", stale)
    with pytest.raises(AssertionError, match="scale_codes"):
        moves(session)
