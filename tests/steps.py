"""Layout operations as data: one step for the oracle, for the implementation under test and for an array of numbers.

With a small domain of tensors and arguments to exhaust, and Hypothesis draws of arguments for any tensor.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import quantspec as qs

from . import oracle
from . import strategies as g
from .bridge import agree, patterns, reference_scheme, reference_tensor, require_bits, require_content, require_same
from .oracle import S, Shape, T


@dataclass(frozen=True)
class Operations:
    """The functions under test."""

    permute: Callable[..., Any] = qs.permute
    transpose: Callable[..., Any] = qs.transpose
    slice_axis: Callable[..., Any] = qs.slice_axis
    take: Callable[..., Any] = qs.take
    select: Callable[..., Any] = qs.select
    flip: Callable[..., Any] = qs.flip
    expand: Callable[..., Any] = qs.expand
    concatenate: Callable[..., Any] = qs.concatenate
    reshape: Callable[..., Any] = qs.reshape
    requantize: Callable[..., Any] = qs.requantize


REFERENCE = Operations()


@dataclass(frozen=True)
class Step:
    """One operation with its arguments, for the oracle, for the implementation and for an array of numbers."""

    text: str
    expected: Callable[[T], T]
    actual: Callable[[Operations, Any], Any]
    host: Callable[[Any], Any] | None = None


def permute(axes: Sequence[int]) -> Step:
    return Step(
        f"permute{tuple(axes)}",
        lambda t: oracle.permute(*t, axes),
        lambda o, q: o.permute(q, axes),
        lambda y: np.transpose(y, axes),
    )


def transpose(a: int, b: int) -> Step:
    def axes(rank: int) -> list[int]:
        oracle.refuse_if(not (0 <= a < rank and 0 <= b < rank), "axis")
        order = list(range(rank))
        order[a], order[b] = b, a
        return order

    return Step(
        f"transpose({a}, {b})",
        lambda t: oracle.permute(*t, axes(len(t[1]))),
        lambda o, q: o.transpose(q, a, b),
        lambda y: np.swapaxes(y, a, b),
    )


def slice_axis(axis: int, start: int, stop: int) -> Step:
    return Step(
        f"slice_axis({axis}, {start}, {stop})",
        lambda t: oracle.slice_axis(*t, axis, start, stop),
        lambda o, q: o.slice_axis(q, axis, start, stop),
        lambda y: y[(slice(None),) * axis + (slice(start, stop),)],
    )


def take(axis: int, which: Sequence[int]) -> Step:
    return Step(
        f"take({axis}, {which})",
        lambda t: oracle.take(*t, axis, which),
        lambda o, q: o.take(q, axis, which),
        lambda y: np.take(y, np.array(which, int), axis),
    )


def select(axis: int, index: int) -> Step:
    return Step(
        f"select({axis}, {index})",
        lambda t: oracle.select(*t, axis, index),
        lambda o, q: o.select(q, axis, index),
        lambda y: np.take(y, index, axis),
    )


def flip(axis: int) -> Step:
    return Step(
        f"flip({axis})", lambda t: oracle.flip(*t, axis), lambda o, q: o.flip(q, axis), lambda y: np.flip(y, axis)
    )


def expand(shape: Shape) -> Step:
    return Step(
        f"expand{shape}",
        lambda t: oracle.expand(*t, shape),
        lambda o, q: o.expand(q, shape),
        lambda y: np.broadcast_to(y, shape),
    )


def reshape(shape: Shape) -> Step:
    return Step(
        f"reshape{shape}",
        lambda t: oracle.reshape(*t, shape),
        lambda o, q: o.reshape(q, shape),
        lambda y: np.reshape(y, shape),
    )


def requantize(new: S) -> Step:
    def expected(t: T) -> T:
        oracle.check(new, t[1])
        return oracle.quantize(oracle.dequantize(*t), t[1], new), t[1], new

    return Step(f"requantize {new}", expected, lambda o, q: o.requantize(q, reference_scheme(new)))


def concatenate(axis: int, others: Sequence[T], place: int) -> Step:
    """The tensor joined with others, itself at `place` among them."""

    def parts(own: Any, rest: Sequence[Any]) -> list[Any]:
        return [*rest[:place], own, *rest[place:]]

    return Step(
        f"concatenate(axis {axis}, place {place}, others {others})",
        lambda t: oracle.concatenate(parts(t, others), axis),
        lambda o, q: o.concatenate(parts(q, [reference_tensor(*other) for other in others]), axis),
        lambda y: np.concatenate(parts(y, [qs.dequantize(reference_tensor(*other)) for other in others]), axis),
    )


def check_step(t: T, step: Step, operations: Operations = REFERENCE) -> T | None:
    """One operation on both sides; what the oracle gives, or None where both refuse."""
    what = f"{step.text} of {t[2]} shape {t[1]} scales {t[0].scale_codes}"
    q = reference_tensor(*t)
    both = agree(what, lambda: step.expected(t), lambda: step.actual(operations, q))
    if both is None:
        return None
    (content, shape, s), actual = both
    require_content(what, content, actual, shape, s)
    if step.host is not None:
        host = step.host(qs.dequantize(q))
        require_same(f"{what}: shape on the host", host.shape, actual.shape)
        require_bits(f"{what}: dequantized after, against before", patterns(host), qs.dequantize(actual))
        require_same(f"{what}: saturation", qs.Saturation(), actual.saturation)
    return content, shape, s


# ---------------------------------------------------------------- a small domain, exhausted

SMALL: dict[Shape, tuple[Shape | None, ...]] = {
    (): (None, ()),
    (0,): (None, (2,)),
    (5,): (None, (), (2,), (3,), (5,), (9,)),
    (6,): ((1,), (2,), (4,)),
    (1, 4): ((2,), (2, 3), (3, 1)),
    (4, 1): ((2,), (2, 1), (3, 2)),
    (0, 3): (None, (2, 2)),
    (2, 6): (None, (), (3,), (2, 1), (2, 4)),
    (4, 6): ((2,), (4, 1), (3, 2), (4, 6), (4, 3)),
    (1, 1, 3): ((2, 1, 2), (2,)),
    (3, 1, 4): ((2, 1, 1), (3, 4), (2, 2, 2), ()),
    (2, 3, 4): (None, (2,), (3, 4), (2, 2, 3), (2, 3, 4), (2, 1, 2), (3, 1)),
    (2, 2, 1, 2): ((2, 2, 1, 1), (2, 1, 2), None),
}


@cache
def small_tensors() -> tuple[T, ...]:
    """Each small shape and block, levels and packed axes in turn; scale codes of every sort."""
    source, found = random.Random(12), []
    kinds, d = itertools.cycle(g.SCALE_TYPES), itertools.count()
    for shape, blocks in SMALL.items():
        for block, two in itertools.product(blocks, (False, True)):
            block_type = None if block is None else next(kinds)
            store = source.choice(("packed_native", "packed_u32"))
            tensor = next(kinds) if two or block is None else None
            value, table = g.LOOKUPS["nf4"] if source.random() < 0.2 else (source.choice(g.VALUES), None)
            s = S(value, store, next(d) % max(len(shape), 1), tensor, block, block_type, table)
            found.append((g.content(s, shape, source), shape, s))
    return tuple(found)


def factors(count: int, rank: int) -> Iterator[Shape]:
    """All shapes of a rank with this many elements."""
    if rank == 0:
        if count == 1:
            yield ()
    elif rank == 1:
        yield (count,)
    elif count == 0:
        yield from (shape for shape in itertools.product((0, 2, 3), repeat=rank) if 0 in shape)
    else:
        for n in range(1, count + 1):
            if count % n == 0:
                yield from ((n, *rest) for rest in factors(count // n, rank - 1))


def steps_permute(t: T) -> Iterator[Step]:
    rank = len(t[1])
    yield from (permute(axes) for axes in itertools.permutations(range(rank)))
    yield from (transpose(a, b) for a in range(rank + 1) for b in range(rank))
    yield from (permute(axes) for axes in ((0,) * rank, range(rank + 1), range(1, rank + 1)))


def steps_slice(t: T) -> Iterator[Step]:
    for axis, n in enumerate((*t[1], 1)):
        yield from (slice_axis(axis, a, b) for a in range(-1, n + 2) for b in range(-1, n + 2))


def steps_take(t: T) -> Iterator[Step]:
    for axis, n in enumerate((*t[1], 1)):
        yield from (select(axis, i) for i in range(n + 1))
        yield from (take(axis, which) for which in ([], [0], [n - 1, 0], [0, 0, n // 2], [n], list(range(n))))


def steps_flip(t: T) -> Iterator[Step]:
    yield from (flip(axis) for axis in range(len(t[1]) + 1))


def steps_expand(t: T) -> Iterator[Step]:
    shape = t[1]
    yield from (
        expand(new)
        for new in (shape, (3, *shape), (0, 2, *shape), (1, 1, *shape), shape[1:], tuple(n + 1 for n in shape))
    )
    for n in (0, 2, 5):
        yield expand(tuple(n if size == 1 else size for size in shape))
    for axis in range(len(shape)):
        yield expand(oracle.replaced(shape, axis, 4))


def steps_reshape(t: T) -> Iterator[Step]:
    count = math.prod(t[1])
    yield from (reshape(new) for rank in range(5) for new in factors(count, rank))
    yield from (reshape(new) for new in ((count + 1,), (2, count), (1,) * 6 + (count,)))


def steps_concatenate(t: T) -> Iterator[Step]:
    """Every cut of every axis, put together again; others of every size; other scales, schemes and shapes."""
    q, shape, s = t
    source = random.Random(str(t))
    for axis, n in enumerate(shape):
        for size, place in itertools.product(sorted({0, 1, 2, 3, n + 1}), (0, 1)):
            other_shape = oracle.replaced(shape, axis, size)
            other = replace(g.content(s, other_shape, source), tensor_scale_code=q.tensor_scale_code)
            yield concatenate(axis, [(other, other_shape, s)], place)
            if size < 2:
                empty = oracle.replaced(shape, axis, 0)
                yield concatenate(
                    axis, [(g.content(s, empty, source), empty, s), (other, other_shape, s)], source.randrange(3)
                )
        yield concatenate(axis, [(g.content(s, shape, source), shape, s)], 0)  # tensor scales that differ, mostly
        other_s = replace(s, store="native", d=0)
        yield concatenate(axis, [(q, shape, other_s)], 0)
        taller = (*shape[:axis], n, *(m + 1 for m in shape[axis + 1 :]))
        yield concatenate(axis, [(g.content(s, taller, source), taller, s)], 0)
        higher = (1, *shape)
        yield concatenate(axis, [(g.content(s, higher, source), higher, s)], 1)
    yield concatenate(len(shape), [], 0)
    yield concatenate(0, [], 0)


STEPS = {
    "permute": steps_permute,
    "slice": steps_slice,
    "take": steps_take,
    "flip": steps_flip,
    "expand": steps_expand,
    "reshape": steps_reshape,
    "concatenate": steps_concatenate,
}


def check_small(name: str, operations: Operations = REFERENCE) -> tuple[int, int]:
    """All arguments over all small tensors; how many were accepted and refused."""
    accepted = refused = 0
    for t in small_tensors():
        for step in STEPS[name](t):
            if check_step(t, step, operations) is None:
                refused += 1
            else:
                accepted += 1
    return accepted, refused


# ---------------------------------------------------------------- drawn


def draw_axis(draw: st.DrawFn, shape: Shape) -> int:
    return draw(st.integers(0, max(len(shape) - 1, 0) if draw(st.integers(0, 9)) else len(shape)))


def draw_permute(draw: st.DrawFn, t: T) -> Step:
    return permute(draw(st.permutations(range(len(t[1])))))


def draw_slice(draw: st.DrawFn, t: T) -> Step:
    axis = draw_axis(draw, t[1])
    n = t[1][axis] if axis < len(t[1]) else 2
    e = min(oracle.extents(t[2], len(t[1]))[axis], n + 1) if axis < len(t[1]) else 1
    start = draw(st.integers(0, n // e)) * e if draw(st.booleans()) else draw(st.integers(-1, n + 1))
    return slice_axis(axis, start, draw(st.integers(min(start, n), n + 1)))


def draw_take(draw: st.DrawFn, t: T) -> Step:
    axis = draw_axis(draw, t[1])
    n = t[1][axis] if axis < len(t[1]) else 2
    return take(axis, draw(st.lists(st.integers(0, max(n - 1, 0)), max_size=5)))


def draw_select(draw: st.DrawFn, t: T) -> Step:
    axis = draw_axis(draw, t[1])
    return select(axis, draw(st.integers(0, t[1][axis] if axis < len(t[1]) else 2)))


def draw_flip(draw: st.DrawFn, t: T) -> Step:
    return flip(draw_axis(draw, t[1]))


def draw_expand(draw: st.DrawFn, t: T) -> Step:
    lead = draw(st.lists(st.integers(0, 3), max_size=2))
    return expand((*lead, *(draw(st.integers(0, 4)) if n == 1 or not draw(st.integers(0, 19)) else n for n in t[1])))


def draw_reshape(draw: st.DrawFn, t: T) -> Step:
    """Axes merged and split with their order kept, ones put in and left out; now and then a wrong count."""
    parts = list(t[1])
    for _ in range(draw(st.integers(0, 3))):
        i = draw(st.integers(0, len(parts)))
        how = draw(st.sampled_from(("merge", "split", "one")))
        if how == "merge" and i + 1 < len(parts):
            parts[i : i + 2] = [parts[i] * parts[i + 1]]
        elif how == "split" and i < len(parts) and parts[i] > 1:
            n = draw(st.sampled_from([f for f in range(1, parts[i] + 1) if parts[i] % f == 0]))
            parts[i : i + 1] = [n, parts[i] // n]
        elif how == "one":
            parts[i:i] = [1]
    if not draw(st.integers(0, 19)):
        parts.append(draw(st.integers(0, 2)))
    return reshape(tuple(parts))


def draw_concatenate(draw: st.DrawFn, t: T) -> Step:
    q, shape, s = t
    axis = draw_axis(draw, shape)
    others: list[T] = []
    for _ in range(draw(st.integers(0, 2))):
        n = draw(st.integers(0, 4))
        e = oracle.extents(s, len(shape))[axis] if axis < len(shape) else 1
        sizes = (
            oracle.replaced(shape, axis, n * e if e < 5 and draw(st.booleans()) else n) if axis < len(shape) else shape
        )
        other = g.content(s, sizes, random.Random(draw(g.seeds)))
        if draw(st.integers(0, 9)):
            other = replace(other, tensor_scale_code=q.tensor_scale_code)
        others.append((other, sizes, s))
    return concatenate(axis, others, draw(st.integers(0, len(others))))


def draw_requantize(draw: st.DrawFn, t: T) -> Step:
    return requantize(draw(g.schemes(max(len(t[1]) - draw(st.integers(0, 1)), 0))))


DRAWS = {
    "permute": draw_permute,
    "slice": draw_slice,
    "take": draw_take,
    "select": draw_select,
    "flip": draw_flip,
    "expand": draw_expand,
    "reshape": draw_reshape,
    "concatenate": draw_concatenate,
    "requantize": draw_requantize,
}
