"""From a wrong bit to a sentence: which rules fixed the element that differs, and which of them the differences share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quantspec import QuantspecError, Scheme, Trace
from quantspec.words import stored_axes

from .cases import Batch
from .chain import traced
from .compare import Difference, Mismatch

__all__ = ["Diagnosis", "diagnose", "element_of"]

#: Areas whose rules fix a part, and the rule that is named where no other stands out.
_AREAS: dict[str, tuple[tuple[str, ...], str]] = {
    "tensor_scale_code": (("SCL-", "BLK-"), "SCL-8"),
    "scale_codes": (("SCL-", "BLK-"), "SCL-8"),
    "codes": (("QNT-", "VAL-"), "QNT-5"),
    "words": (("PAK-",), "PAK-4"),
    "bytes": (("LAY-", "PAK-"), "LAY-1"),
    "y": (("QNT-", "VAL-", "SCL-14", "SCL-18"), "QNT-9"),
}
_SPLIT = (("LAY-", "PAK-", "VAL-4"), "LAY-6")
SAMPLE = 256


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The rule that the differences point to, the rules that fixed the first of them, and what they have in common."""

    rule: str
    rules: tuple[str, ...]
    pattern: str


def diagnose(batch: Batch, scheme: Scheme, mismatch: Mismatch) -> Diagnosis:
    """Re-run the failing step of the reference with tracing and compare the elements that differ with the others."""
    if not mismatch.first:
        rule = mismatch.rule or "CNF-1"
        return Diagnosis(rule, (rule,), "")
    areas, usual = _SPLIT if mismatch.step.endswith("split") else _AREAS[mismatch.part]
    if mismatch.step in ("dequantize.f16", "dequantize.bf16", "drawn.dequantize.f16", "drawn.dequantize.bf16"):
        usual = "QNT-10"
    trace = traced(scheme, batch, mismatch.step)
    fixed = _Fixed(trace, areas, lambda index: element_of(mismatch, index, scheme, batch.x.shape))
    rules = fixed.rules(mismatch.first[0].index)
    suspect, pattern = _in_common(fixed, mismatch, _others(batch, scheme, mismatch))
    rule = mismatch.rule or suspect or usual
    return Diagnosis(rule, rules if rule in rules else (*rules, rule), pattern)


class _Fixed:
    """The rules of some areas that fired for an element of a part."""

    def __init__(
        self, trace: Trace, areas: tuple[str, ...], element: Callable[[tuple[int, ...]], tuple[int, ...] | None]
    ) -> None:
        self._trace = trace
        self._areas = areas
        self._element = element

    def rules(self, index: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(rule for rule in self._trace.rules(self._element(index)) if rule.startswith(self._areas))


def element_of(
    mismatch: Mismatch, index: tuple[int, ...], scheme: Scheme, shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The tensor index of an element that a differing entry of a part belongs to: itself, its block's or word's first."""
    if mismatch.part in ("codes", "y"):
        return index
    if mismatch.part == "scale_codes" and scheme.block is not None:
        return tuple(i * extent for i, extent in zip(index, scheme.extents(len(shape)), strict=True))
    if mismatch.part == "words" and shape:
        last = min(
            index[-1] * scheme.store.codes_per_word(scheme.value.bits), shape[scheme.packed_axis(len(shape))] - 1
        )
        stored = (*index[:-1], last)
        return tuple(stored[axis] for axis in stored_axes(scheme, len(shape)))
    return None


def _others(batch: Batch, scheme: Scheme, mismatch: Mismatch) -> list[tuple[int, ...]]:
    """Indices of the part, thinned to a sample, to compare the differing ones with."""
    shape = batch.x.shape
    if mismatch.part == "scale_codes" and scheme.block is not None:
        shape = tuple(-(-size // extent) for size, extent in zip(shape, scheme.extents(len(shape)), strict=True))
    elif mismatch.part not in ("codes", "y"):
        return []
    total = int(np.prod(shape, dtype=int))
    flat = np.unique(np.linspace(0, total - 1, min(total, SAMPLE)).astype(int))
    return list(zip(*(axis.tolist() for axis in np.unravel_index(flat, shape)), strict=True)) if total and shape else []


def _in_common(fixed: _Fixed, mismatch: Mismatch, others: Sequence[tuple[int, ...]]) -> tuple[str | None, str]:
    """The rule that fires for every differing element (of those kept) and most rarely elsewhere, and that in words."""
    try:
        shared = set.intersection(*(set(fixed.rules(difference.index)) for difference in mismatch.first))
        counts = dict.fromkeys(shared, 0)
        for index in others:
            for rule in shared.intersection(fixed.rules(index)):
                counts[rule] += 1
    except QuantspecError:
        return None, ""
    telling = {rule: count for rule, count in counts.items() if count < len(others)}
    if not telling:
        return None, ""
    rule = min(telling, key=lambda name: (telling[name], name))
    share = 100 * telling[rule] / len(others)
    return rule, f"{rule} fires for every differing element shown, and for {share:.0f} % of all"


def codes_apart(difference: Difference, scheme: Scheme) -> str:
    """How far two codes lie from each other on the grid of magnitudes, where that says something."""
    row = scheme.value
    if row.is_integer or scheme.is_lookup:
        left, right = (int(np.uint8(code).view(np.int8)) for code in (difference.expected, difference.actual))
    else:
        left, right = (
            (-1 if code & row.sign_bit else 1) * (code & (row.sign_bit - 1))
            for code in (difference.expected, difference.actual)
        )
    steps = abs(left - right)
    return f"{steps} code{'s' if steps != 1 else ''} apart" if steps else "the sign of zero differs"
