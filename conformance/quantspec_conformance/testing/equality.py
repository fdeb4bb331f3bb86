"""`assert_bits_equal` for tests of others: patterns are compared, never numbers; there is no tolerance. Rule CNF-1."""

from collections import Counter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .arrays import host_array, patterns_of
from .formats import CLASSES, ILLEGAL, NAN, PATTERN, Format, format_of, usual_format

__all__ = ["RELATIONS", "assert_bits_equal"]

#: `bits`: every pattern; `nan-class`: every pattern, but one NaN is as good as another.
RELATIONS = ("bits", "nan-class")
#: Differences that a message lists, and buckets.
FIRST = 5
MOST_BUCKETS = 12
Relation = Literal["bits", "nan-class"]


def assert_bits_equal(actual: Any, expected: Any, fmt: str | None = None, *, relation: Relation = "bits") -> None:
    """Raise AssertionError unless both have the same shape, dtype and patterns.

    Arrays of numpy, tensors of torch and JAX, and whatever has __array__ or DLPack are taken. `fmt` says what patterns stand
    for, in the message and for `nan-class`: a value format (e2m1), a scale type (ue8m0), f32, f16, bf16 or f64; the dtype tells
    it for floats. ValueError or TypeError for arguments that cannot be compared.
    """
    __tracebackhide__ = True
    message = difference(actual, expected, fmt, relation=relation)
    if message:
        raise AssertionError(message)


def difference(actual: Any, expected: Any, fmt: str | None = None, *, relation: Relation = "bits") -> str:
    """How two arrays differ; "" where they do not."""
    if relation not in RELATIONS:
        raise ValueError(f"relation={relation!r}; allowed: {', '.join(RELATIONS)}")
    given, wanted = host_array(actual, "actual"), host_array(expected, "expected")
    named = None if fmt is None else format_of(fmt)
    wrong = _outside(given, wanted)
    if wrong:
        return wrong
    meaning = usual_format(wanted.dtype.newbyteorder("=")) if named is None else named
    if meaning.size != wanted.dtype.itemsize:
        raise ValueError(f"fmt={fmt!r} has patterns of {meaning.size} bytes; the arrays are {wanted.dtype}")
    left, right = patterns_of(wanted), patterns_of(given)
    unequal = np.asarray(left != right)
    both_nan = np.asarray(unequal & (meaning.classes(left) == NAN) & (meaning.classes(right) == NAN))
    if relation == "nan-class":
        if meaning.name == f"u{8 * meaning.size}":
            raise ValueError(f"relation='nan-class' needs fmt: {wanted.dtype} does not tell what a NaN is")
        unequal = unequal & ~both_nan
    return _message(left, right, unequal, int(both_nan.sum()), meaning) if unequal.any() else ""


def _outside(given: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> str:
    """Shape and dtype, which must be equal before bits are looked at."""
    wrong = []
    if given.shape != wanted.shape:
        wrong.append(f"shape {given.shape}; expected {wanted.shape}")
    if given.dtype.newbyteorder("=") != wanted.dtype.newbyteorder("="):
        wrong.append(f"dtype {given.dtype.name}; expected {wanted.dtype.name}")
    return "; ".join(wrong)


def _message(
    left: npt.NDArray[Any], right: npt.NDArray[Any], unequal: npt.NDArray[np.bool_], nans: int, meaning: Format
) -> str:
    """The count, the first differences in full, and all of them by class and sign."""
    flats = np.flatnonzero(unequal)
    lines = [f"{len(flats)} of {unequal.size} patterns differ ({meaning.name})"]
    wanted, given = left.reshape(-1)[flats], right.reshape(-1)[flats]
    for flat, expected, actual in zip(flats[:FIRST], wanted, given, strict=False):
        index = tuple(int(i) for i in np.unravel_index(flat, left.shape)) if left.shape else ()
        lines.append(f" index {index}, flat {int(flat)}")
        lines += [f"  expected  {meaning.show(int(expected))}", f"  actual    {meaning.show(int(actual))}"]
    if len(flats) > FIRST:
        lines.append(f" and {len(flats) - FIRST} more")
    counted = Counter(zip(_buckets(wanted, meaning), _buckets(given, meaning), strict=True)).most_common()
    for (before, after), count in counted[:MOST_BUCKETS]:
        lines.append(f" {count:6d}  expected {before}, actual {after}")
    if len(counted) > MOST_BUCKETS:
        rest = counted[MOST_BUCKETS:]
        lines.append(f" {sum(count for _, count in rest):6d}  in {len(rest)} other buckets")
    if nans and nans == len(flats):
        lines.append(" every difference is between two NaNs: relation='nan-class' lets one NaN stand for another")
    return "\n".join(lines)


def _buckets(codes: npt.NDArray[Any], meaning: Format) -> list[str]:
    """Sign and class of each pattern, in words."""
    signs = meaning.negative(codes)
    signed = meaning.sign_bit != 0
    unsigned = (ILLEGAL, PATTERN)
    return [
        ("-" if negative else "+") + CLASSES[kind] if signed and kind not in unsigned else CLASSES[kind]
        for negative, kind in zip(signs.tolist(), meaning.classes(codes).tolist(), strict=True)
    ]
