"""Comparison of what an adapter answered with what the reference did: bits, shapes, dtypes, refusals. No tolerance.

Rules CNF-1 (bits), CNF-2 (padding is told apart), CNF-3 (poison left in an output), CNF-5 (unsupported is no pass).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Scheme

from .chain import Broken, Refused, Result
from .wire import bits

__all__ = ["EXPECTED", "OUTCOMES", "SHAPE_RULES", "Difference", "Mismatch", "Outcome", "compare", "kind_of"]

Status = Literal[
    "pass", "refused", "fail", "reject-missing", "wrong-error", "unsupported", "error", "crash", "timeout", "notrun"
]
OUTCOMES: tuple[Status, ...] = (
    "pass", "refused", "fail", "reject-missing", "wrong-error", "unsupported", "error", "crash", "timeout", "notrun",
)  # fmt: skip
#: Outcomes that are as expected: equal bits, and a refusal by the same rule on both sides.
EXPECTED: tuple[Status, ...] = ("pass", "refused")

Kind = Literal["bits", "padding", "unwritten", "shape", "refusal", "error"]
POISON = 0xA5
#: The rule that fixes the shape of a part.
SHAPE_RULES = {
    "words": "PAK-3",
    "bytes": "LAY-4",
    "scale_codes": "BLK-2",
    "tensor_scale_code": "BLK-5",
    "codes": "VAL-4",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One element that differs: where, and both patterns."""

    index: tuple[int, ...]
    flat: int
    expected: int
    actual: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first step of a case that went wrong, and how."""

    step: str
    part: str
    kind: Kind
    message: str
    count: int = 0
    total: int = 0
    first: tuple[Difference, ...] = ()
    rule: str | None = None  #: where the comparison alone tells it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case."""

    status: Status
    mismatch: Mismatch | None = None
    rule: str | None = None  #: of a refusal on both sides


def compare(
    expected: Mapping[str, Result],
    actual: Mapping[str, Result],
    scheme: Scheme,
    shape: tuple[int, ...],
    *,
    keep: int = 8,
) -> Outcome:
    """The outcome of a case: the first step, in the reference's order, that is not as expected. `keep` differences stay."""
    for step, wanted in expected.items() if actual is not expected else ():
        outcome = _step(step, wanted, actual.get(step), scheme, shape, keep)
        if outcome is not None:
            return outcome
    refusals = [result.rule for result in expected.values() if isinstance(result, Refused)]
    if refusals and not any(isinstance(result, Mapping) for result in expected.values()):
        return Outcome("refused", rule=refusals[0])
    return Outcome("pass")


def _step(
    step: str, wanted: Result, got: Result | None, scheme: Scheme, shape: tuple[int, ...], keep: int
) -> Outcome | None:
    """None where the step is as expected."""
    if got is None:
        return Outcome("error", Mismatch(step, "", "error", "the step was not answered"))
    if isinstance(got, Broken):
        return Outcome("error", Mismatch(step, "", "error", got.message))
    if isinstance(wanted, Broken):
        return Outcome("error", Mismatch(step, "", "error", f"the reference itself failed: {wanted.message}"))
    if isinstance(wanted, Refused) or isinstance(got, Refused):
        return _refusals(step, wanted, got)
    mismatch = _parts(step, wanted, got, scheme, shape, keep)
    return None if mismatch is None else Outcome("fail", mismatch)


def _refusals(step: str, wanted: Result, got: Result) -> Outcome | None:
    """Both must refuse, with the same class by the same rule."""
    if not isinstance(got, Refused) and isinstance(wanted, Refused):
        text = f"not refused; the reference refuses with {wanted.error} [{wanted.rule}]: {wanted.message}"
        return Outcome("reject-missing", Mismatch(step, "", "refusal", text, rule=wanted.rule))
    if isinstance(got, Refused) and not isinstance(wanted, Refused):
        text = f"refused with {got.error} [{got.rule}]: {got.message}; the reference does not refuse"
        status: Status = "unsupported" if got.error == "UnsupportedError" else "wrong-error"
        return Outcome(status, Mismatch(step, "", "refusal", text, rule=got.rule))
    if (
        isinstance(got, Refused)
        and isinstance(wanted, Refused)
        and (got.error, got.rule) != (wanted.error, wanted.rule)
    ):
        text = (
            f"refused with {got.error} [{got.rule}]: {got.message}; the reference with {wanted.error} [{wanted.rule}]"
        )
        return Outcome("wrong-error", Mismatch(step, "", "refusal", text, rule=wanted.rule))
    return None


def _parts(
    step: str,
    wanted: Mapping[str, npt.NDArray[Any]],
    got: Mapping[str, npt.NDArray[Any]],
    scheme: Scheme,
    shape: tuple[int, ...],
    keep: int,
) -> Mismatch | None:
    """The first part whose bits differ; scales before the codes that follow from them."""
    if set(wanted) != set(got):
        return Mismatch(step, "", "shape", f"parts {sorted(got)}; expected {sorted(wanted)}")
    order = ("tensor_scale_code", "scale_codes", "saturation")
    for part in sorted(wanted, key=lambda name: order.index(name) if name in order else len(order)):
        mismatch = _part(step, part, wanted[part], got[part], scheme, shape, keep)
        if mismatch is not None:
            return mismatch
    return None


def _part(
    step: str,
    part: str,
    wanted: npt.NDArray[Any],
    got: npt.NDArray[Any],
    scheme: Scheme,
    shape: tuple[int, ...],
    keep: int,
) -> Mismatch | None:
    if wanted.shape != got.shape or wanted.dtype.name != got.dtype.name:
        if part == "saturation":
            text = f"reported {saturation_text(got)}; expected {saturation_text(wanted)}"
            return Mismatch(step, part, "bits", text, rule="SCL-24")
        text = f"{got.dtype.name} of shape {got.shape}; expected {wanted.dtype.name} of shape {wanted.shape}"
        return Mismatch(step, part, "shape", text, rule=SHAPE_RULES.get(part))
    left, right = bits(wanted), bits(got)
    if np.array_equal(left, right):
        return None
    if part == "saturation":
        text = f"reported {saturation_text(got)}; expected {saturation_text(wanted)}"
        return Mismatch(step, part, "bits", text, rule="SCL-24")
    differs = left != right
    where = np.argwhere(differs)
    flats = np.flatnonzero(differs)
    first = tuple(
        Difference(tuple(map(int, index)), int(flat), int(left[tuple(index)]), int(right[tuple(index)]))
        for index, flat in zip(where[:keep], flats[:keep], strict=True)
    )
    kind, rule = kind_of(part, left, right, differs, scheme, shape)
    return Mismatch(step, part, kind, "", len(flats), left.size, first, rule)


def saturation_text(report: npt.NDArray[Any]) -> str:
    """A saturation report in words."""
    if report.size < 2:
        return f"{report.tolist()}"
    first = f", first {tuple(map(int, report[2:]))}" if report[0] else ""
    return (
        f"{int(report[0])} saturated block scales{first}, tensor scale {'saturated' if report[1] else 'not saturated'}"
    )


def kind_of(
    part: str,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    differs: npt.NDArray[np.bool_],
    scheme: Scheme,
    shape: tuple[int, ...],
) -> tuple[Kind, str | None]:
    """Poison left in place, dirty padding, or wrong bits; and the rule where that tells it."""
    poison = int.from_bytes(bytes([POISON]) * left.dtype.itemsize, "little")
    if (right[differs] == poison).all() and differs.sum() * left.dtype.itemsize > 1:
        return "unwritten", "CNF-3"
    if part == "words":
        return _words_kind(left, right, scheme, shape)
    if part == "bytes":
        size = scheme.store.word_bytes(scheme.value.bits)
        stored = quantspec.words_shape(scheme, shape)
        end = int(np.prod(stored, dtype=int)) * size
        if differs[end:].any():
            same = sorted(left[end:].tolist()) == sorted(right[end:].tolist())
            return "bits", "LAY-3" if same and not differs[:end].any() else "LAY-1"
        return _words_kind(_words(left[:end], size, stored), _words(right[:end], size, stored), scheme, shape)
    return "bits", None


def _words(raw: npt.NDArray[Any], size: int, stored: tuple[int, ...]) -> npt.NDArray[Any]:
    each = raw.reshape(*stored, size).astype(np.uint32) << (np.arange(size, dtype=np.uint32) * np.uint32(8))
    return np.asarray(np.bitwise_or.reduce(each, axis=-1), np.uint32)


def _words_kind(
    left: npt.NDArray[Any], right: npt.NDArray[Any], scheme: Scheme, shape: tuple[int, ...]
) -> tuple[Kind, str | None]:
    """Words that differ in padding or unused bits only are dirty padding; else the order of fields, axes or values."""
    per_word, width = scheme.store.codes_per_word(scheme.value.bits), scheme.store.field_bits(scheme.value.bits)
    line = shape[scheme.packed_axis(len(shape))] if shape else 1
    field = np.arange(left.shape[-1])[:, np.newaxis] * per_word + np.arange(per_word)
    ones = np.uint64((1 << width) - 1) << (np.arange(per_word, dtype=np.uint64) * np.uint64(width))
    used = np.bitwise_or.reduce(ones)
    codes = np.bitwise_or.reduce(np.where(field < line, ones, np.uint64(0)), axis=-1)
    wrong = left.astype(np.uint64) ^ right.astype(np.uint64)
    if not (wrong & codes).any():
        return "padding", "PAK-3" if (wrong & used).any() else "PAK-5"
    cut = [(words.astype(np.uint64)[..., np.newaxis] & ones) >> _shifts(per_word, width) for words in (left, right)]
    if np.array_equal(np.sort(cut[0], axis=-1), np.sort(cut[1], axis=-1)):
        return "bits", "PAK-4"
    if np.array_equal(np.sort(cut[0], axis=None), np.sort(cut[1], axis=None)):
        return "bits", "PAK-2"
    return "bits", "PAK-4"


def _shifts(per_word: int, width: int) -> npt.NDArray[np.uint64]:
    return np.arange(per_word, dtype=np.uint64) * np.uint64(width)
