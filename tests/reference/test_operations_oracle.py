"""Layout operations against the oracle: both accept or both refuse, codes and scales bit for bit.

And a check that needs no oracle: dequantize(op(q)) equals op(dequantize(q)) on the host array.
"""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec as qs

from .. import oracle
from .. import strategies as g
from ..bridge import agree, reference_tensor
from ..oracle import Q, S, T
from ..steps import DRAWS, STEPS, check_small, check_step, expand, factors, permute, reshape, select


@pytest.mark.parametrize("name", STEPS)
def test_small_tensors(name: str) -> None:
    accepted, refused = check_small(name)
    assert accepted > 100 and refused > 20


@pytest.mark.parametrize("count", [1, 2, 4, 6, 8, 12])
def test_reshape_of_every_grid(count: int) -> None:
    """Every shape of up to three axes, every block on it, to every shape of up to four axes (a drawn part of the largest)."""
    source = random.Random(count)
    cases = []
    for shape in itertools.chain(*(factors(count, rank) for rank in range(4))):
        for block in itertools.product(*(sorted({1, 2, 3, n, n + 1} & set(range(1, n + 2))) for n in shape)):
            for new in itertools.chain(*(factors(count, rank) for rank in range(5))):
                cases.append((shape, block, new))
    for shape, block, new in source.sample(cases, min(len(cases), 600)):
        s = S("q2f", "packed_native", source.randrange(max(len(shape), 1)), None, block, "ue8m0")
        check_step((g.content(s, shape, source), shape, s), reshape(new))


def test_six_axes_and_five_extents() -> None:
    """A block of one extent becomes one of six when its axis goes first: refused by the block rule."""
    source = random.Random(6)
    shape = (2, 1, 2, 1, 2, 2)
    for block in ((2,), (2, 1), (2, 1, 2, 1, 1), (2, 1, 1, 1, 2), ()):
        s = S("e2m1", "packed_u32", 3, None, block, "ue8m0")
        t = (g.content(s, shape, source), shape, s)
        for axes in source.sample(list(itertools.permutations(range(6))), 60):
            check_step(t, permute(axes))
        for new in ((2, 2, 2, 2), (16,), (1, *shape), (2, 2, 1, 1, 2, 2), (4, 2, 2), (2, 2, 2, 1, 1, 1, 2)):
            check_step(t, reshape(new))
        check_step(t, expand((3, *shape)))
        for axis in range(6):
            check_step(t, select(axis, 0))


def runs_away(t: T) -> bool:
    return math.prod(t[1]) > 400 or len(t[1]) > 7


@pytest.mark.parametrize("name", DRAWS)
@settings(g.PROPERTY, max_examples=100)
@given(data=st.data(), t=g.tensors())
def test_any_operation(name: str, data: st.DataObject, t: T) -> None:
    check_step(t, data.draw(st.composite(DRAWS[name])(t)))


@settings(g.PROPERTY, max_examples=200)
@given(data=st.data(), t=g.tensors())
def test_any_chain(data: st.DataObject, t: T) -> None:
    """Operations one after another, refused ones left out."""
    for name in data.draw(st.lists(st.sampled_from(list(DRAWS)), min_size=2, max_size=5)):
        after = check_step(t, data.draw(st.composite(DRAWS[name])(t)))
        if after is not None and not runs_away(after):
            content, shape, s = after
            t = Q(content.codes, content.scale_codes, content.tensor_scale_code), shape, s


@settings(g.PROPERTY, max_examples=100)
@given(t=g.tensors(), data=st.data())
def test_there_and_back(t: T, data: st.DataObject) -> None:
    """permute with its inverse, flip twice and cut and join give the very tensor."""
    q = reference_tensor(*t)
    rank = len(t[1])
    axes = data.draw(st.permutations(range(rank)))
    back = [axes.index(axis) for axis in range(rank)]
    whole = agree("permute", lambda: oracle.permute(*t, axes), lambda: qs.permute(q, axes))
    if whole is not None:
        assert qs.permute(whole[1], back) == q
    for axis in range(rank):
        e, n = oracle.extents(t[2], rank)[axis], t[1][axis]
        if n % e == 0 or n <= e:
            assert qs.flip(qs.flip(q, axis), axis) == q
        cut = data.draw(st.integers(0, n // e)) * e
        if math.prod(t[1]):
            assert qs.concatenate([qs.slice_axis(q, axis, 0, cut), qs.slice_axis(q, axis, cut, n)], axis) == q
