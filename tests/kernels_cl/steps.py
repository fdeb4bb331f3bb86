"""Layout operations for the kernel tests: arguments for a tensor, and the comparison of codes and words with the reference."""

import itertools
from functools import partial
from typing import Any

import quantspec as qs
import quantspec_cl as qc

from .agreement import same_bits, same_error
from .test_packing import VALUES, stores

Step = tuple[Any, ...]
SHAPES: tuple[tuple[int, ...], ...] = (
    *((), (1,), (9,), (32,), (5, 7), (8, 64), (1, 6), (0, 3), (4, 0)),
    *((2, 5, 8), (3, 1, 4), (2, 0, 3), (2, 3, 4, 5), (1, 16, 1, 32)),
)
LEVELS = ("t-f32", "b1-ue8m0", "b2-f16", "b4-ue4m3.t-f32", "b3x2-f32", "b4x1-bf16", "b2x1x2-ue8m0.t-f16")


def steps(q: qs.Quantized) -> list[Step]:
    """Operations with arguments that are done and some that are refused, for a tensor's shape and blocks."""
    shape, rank = q.shape, len(q.shape)
    found: list[Step] = [
        ("permute", order) for order in itertools.islice(itertools.permutations(range(rank)), 0, 24, 5)
    ]
    found += [("permute", tuple(range(rank))[::-1]), ("permute", (0, 0)), ("permute", 3), ("transpose", 0, -1)]
    found += [("expand", (2, *shape)), ("expand", tuple(5 if n == 1 else n for n in shape)), ("expand", shape[1:])]
    found += [("reshape", (q.codes.size,)), ("reshape", (1, *shape)), ("reshape", (7,)), ("reshape", (-1,))]
    found += [("reshape", (*shape[:-2], q.codes.size)) if 0 in shape else ("reshape", (q.codes.size, 1))]
    found += [("reshape", (shape[0] * shape[1], *shape[2:])), ("reshape", shape[::-1])] if rank > 1 else []
    found += [("repack", store) for store in stores(rank + 1)]
    for axis in {0, rank - 1, -1, rank}:
        n = shape[axis] if -rank <= axis < rank else 2
        found += [("slice_axis", axis, a, b) for a, b in ((0, n), (4, n), (1, n), (3, 3), (0, max(n - 1, 0)), (2, 1))]
        found += [("take", axis, chosen) for chosen in ((), (n - 1, 0, n - 1), (n,), 5)]
        found += [("select", axis, n // 2), ("select", axis, True), ("flip", axis)]
    return found


def same_made(found: qc.DeviceQuantized | qc.DevicePacked, expected: qs.Quantized | qs.Packed, what: str) -> None:
    """The parts of a result are the reference's."""
    assert (found.scheme, found.shape, found.recipe) == (expected.scheme, expected.shape, expected.recipe), what
    assert found.saturation == qs.Saturation(), what
    for part in ("codes", "words", "scale_codes", "tensor_scale_code"):
        same_bits(getattr(found, part, None), getattr(expected, part, None), f"{what}: {part}")


def same_step(session: qc.Session, q: Any, verb: str, *arguments: Any) -> qs.Quantized | None:
    """Codes and words give what the reference gives, or all three refuse; the reference's result."""
    parts = q if verb == "concatenate" else [q]
    words = [session.put_packed(qs.pack(part)) for part in parts]
    codes = [session.put(part) for part in parts]
    calls = [
        partial(getattr(session, verb), each if verb == "concatenate" else each[0], *arguments)
        for each in (codes, words)
    ]
    expected = partial(getattr(qs, verb), q, *arguments)
    what = f"{verb}{arguments} of {parts[0].scheme.text} {[part.shape for part in parts]}"
    try:
        result: qs.Quantized = expected()
    except qs.QuantspecError:
        for call in calls:
            same_error(call, expected)
        return None
    same_made(calls[0](), result, what)
    same_made(calls[1](), qs.pack(result), what)
    return result


def schemes(value: str, shape: tuple[int, ...]) -> list[qs.Scheme]:
    """Every store, with levels in turn that the rank allows."""
    fitting = [
        level for level in LEVELS if level.partition("-")[0].count("x") < max(len(shape), level[:2] in ("t-", "b1"))
    ]
    pairs = zip(
        stores(len(shape)), itertools.cycle(fitting[VALUES.index(value) % len(fitting) :] + fitting), strict=False
    )
    return [qs.Scheme.parse(f"{value}.{store}.{level}") for store, level in pairs]


def with_scale_of(first: qs.Quantized, other: qs.Quantized) -> qs.Quantized:
    return qs.Quantized(other.scheme, other.codes, other.scale_codes, first.tensor_scale_code)
