"""Layout operations: fast paths, memory, and any three operations on words. OPS-1 to OPS-13."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.host import Machine

from .agreement import same_error
from .conftest import opened
from .steps import LEVELS, Step, same_made, with_scale_of
from .test_packing import VALUES, stores, tensor

pytestmark = pytest.mark.opencl


@pytest.mark.parametrize("value", ["q2s", "q4s", "e2m1", "e4m3"])
@pytest.mark.parametrize("shape", [(64, 96), (65, 64), (33, 512), (3, 40, 128), (512, 33), (16, 16)])
def test_the_fast_paths_give_the_same_bits(value: str, shape: tuple[int, ...]) -> None:
    session, taken, rank = opened(path="fast"), set(), len(shape)
    for store, level in itertools.product(
        ("packed_u32_0", "packed_u32_1", "packed_native_0"), ("b8-f16", "b4x1-ue8m0.t-f32")
    ):
        q = tensor(qs.Scheme.parse(f"{value}.{store}.{level}"), shape)
        packed, kind = session.pack(q), store[:-2]
        for verb, *arguments in (
            *(("repack", f"{kind}_{d}") for d in range(rank)),
            *(("repack", "packed_u32_0"), ("transpose", -1, -2), ("flip", 0) if shape[0] % 4 == 0 else ("flip", -1)),
            *(("slice_axis", -2, 8, shape[-2]), ("slice_axis", -1, 8, shape[-1] - 5), ("expand", (3, *shape))),
            *((("take", 0, (2, 0, 2)),) if level == "b8-f16" or rank > 2 else ()),
        ):
            expected = qs.pack(getattr(qs, verb)(q, *arguments))
            found = getattr(session, verb)(packed, *arguments)
            same_made(found, expected, f"{verb}{arguments} of {q.scheme.text} {shape}")
            taken.add(found.path.name)
        half = with_scale_of(q, tensor(q.scheme, (8, *shape[1:]), 3))
        for parts in ([half, q], [half, half, half]):
            found = session.concatenate([session.pack(part) for part in parts])
            same_made(found, qs.pack(qs.concatenate(parts)), f"concatenate {q.scheme.text} {shape}")
    assert {"copy_lines", "turn"} <= taken


def test_an_operation_takes_no_memory_but_for_its_result(session: qc.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = session.pack(tensor(qs.Scheme.parse("q4s.packed_u32_0.b8x32-f16.t-f32"), (256, 512)))
    sizes: list[int] = []
    empty = Machine.empty

    def counted(machine: Machine, shape: Sequence[int], dtype: Any) -> qc.DeviceArray:
        array = empty(machine, shape, dtype)
        sizes.append(array.nbytes)
        return array

    monkeypatch.setattr(Machine, "empty", counted)
    for verb, *arguments in (
        ("repack", "packed_u32_1"),
        ("flip", 1),
        ("slice_axis", 0, 8, 256),
        ("reshape", (8, 32, 512)),
    ):
        made = getattr(session, verb)(packed, *arguments)
        assert made.scale_codes is not None
        assert sum(sizes) <= 1.01 * (made.words.nbytes + made.scale_codes.nbytes)
        sizes.clear()
    kept = session.transpose(packed, 0, 1)
    assert kept.words.buffer is packed.words.buffer and kept.path is not None and kept.path.name == "kept"


@st.composite
def drawn_step(draw: st.DrawFn, q: qs.Quantized) -> Step:
    rank = len(q.shape)
    axis = draw(st.integers(-rank, max(rank - 1, 0)))
    n = q.shape[axis] if rank else 1
    extent = q.scheme.extents(rank)[axis] if rank and q.scheme.block is not None else 1
    start = draw(st.integers(0, n // extent)) * extent
    choices: list[Step] = [
        *(
            ("permute", draw(st.permutations(range(rank)))),
            ("slice_axis", axis, start, draw(st.integers(start, max(n, start)))),
        ),
        *(
            ("take", axis, draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=6))),
            ("select", axis, n // 2),
            ("flip", axis),
        ),
        *(("expand", (2, *(3 if n == 1 else n for n in q.shape))), ("repack", draw(st.sampled_from(stores(rank))))),
        *(
            ("reshape", (q.codes.size,)),
            ("reshape", (*q.shape[:-1], 1, *q.shape[-1:])),
            ("reshape", (*q.shape[:1], -1)),
        ),
        ("reshape", (*q.shape[:-1], q.shape[-1] // extent, extent) if rank and n % extent == 0 else q.shape),
    ]
    return draw(st.sampled_from(choices))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_three_operations_on_words(data: st.DataObject) -> None:
    session = opened(path=data.draw(st.sampled_from(("auto", "generic"))))
    shape = tuple(data.draw(st.lists(st.integers(0, 9) | st.sampled_from((16, 32)), max_size=3)))
    value, level = data.draw(st.sampled_from(VALUES)), data.draw(st.sampled_from(LEVELS[: 4 if shape else 2]))
    scheme = qs.Scheme.parse(f"{value}.{data.draw(st.sampled_from(stores(len(shape))))}.{level}")
    q = tensor(scheme, shape, data.draw(st.integers(0, 2**32)))
    words = session.pack(q)
    for _ in range(3):
        verb, *arguments = data.draw(drawn_step(q))
        call = partial(getattr(session, verb), words, *arguments)
        try:
            q = getattr(qs, verb)(q, *arguments)
        except qs.QuantspecError:
            same_error(call, partial(getattr(qs, verb), q, *arguments))
            return
        words = call()
        same_made(words, qs.pack(q), f"{verb}{arguments}")
