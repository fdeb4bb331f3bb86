"""Which rule a wrong bit broke: the law is run again with tracing, and elements that differ are compared with those that do not."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from quantspec import QuantspecError, Scheme
from quantspec.recipes import RECIPES
from quantspec.words import stored_axes

from ..implementations.law import Told, tell
from .case import Case

__all__ = ["SUMS", "Blame", "blame", "element_of", "usual_rule"]

SAMPLE = 256
#: Operations whose result is a matrix of sums: no entry of it belongs to an entry of what goes in.
SUMS = ("product", "product_codes")
#: Rules to name, the first that fired, where the usual one of a part did not and nothing stands out.
_INSTEAD = (
    "SCL-12", "SCL-11", "SCL-8", "SCL-20", "SCL-21", "QNT-4", "QNT-3", "QNT-2", "QNT-7", "QNT-8", "VAL-9", "VAL-10", "VAL-6",
)  # fmt: skip
#: Rules that few elements meet, the most telling first.
_RARE = (
    "VAL-7", "VAL-10", "VAL-9", "QNT-8", "QNT-2", "QNT-3", "QNT-4", "VAL-13", "VAL-3", "QNT-11", "VAL-8", "SCL-7", "SCL-9",
    "SCL-13", "SCL-3", "QNT-10", "VAL-11",
)  # fmt: skip
#: Operation -> areas whose rules fix its results, and the rule that is named where none stands out.
_AREAS: dict[str, tuple[tuple[str, ...], str]] = {
    "encode": (("VAL-", "QNT-7", "QNT-8"), "VAL-6"),
    "decode": (("VAL-", "QNT-11", "SCH-4"), "VAL-12"),
    "encode_scale": (("SCL-",), "SCL-15"),
    "decode_scale": (("SCL-", "QNT-11"), "SCL-1"),
    "dequantize": (("QNT-", "VAL-", "SCL-14", "SCL-18"), "QNT-9"),
    "pack": (("PAK-",), "PAK-4"),
    "unpack": (("PAK-", "VAL-4"), "PAK-4"),
    "to_bytes": (("LAY-", "PAK-"), "LAY-1"),
    "split": (("LAY-", "PAK-", "VAL-4"), "LAY-6"),
    "scheme": (("SCH-",), "SCH-15"),
    "to_burn": (("SCH-",), "SCH-17"),
    "size": (("LAY-", "PAK-"), "LAY-1"),
    "repack": (("OPS-13", "PAK-", "VAL-4"), "OPS-13"),
    "chain": (("OPS-", "QNT-9", "QNT-10"), "OPS-15"),
    "product": (("PRD-", "QNT-10"), "PRD-5"),
    "product_codes": (("PRD-", "QNT-10"), "PRD-13"),
}
_QUANTIZE = {
    "scale_codes": (("SCL-", "BLK-"), "SCL-8"),
    "tensor_scale_code": (("SCL-", "BLK-"), "SCL-8"),
    "codes": (("QNT-", "VAL-"), "QNT-5"),
}


@dataclass(frozen=True, slots=True)
class Blame:
    """The rule that the differences point to, the rules that fixed the first of them, what they share, counts by rule."""

    rule: str
    rules: tuple[str, ...]
    pattern: str
    buckets: dict[str, int]


def _scheme(case: Case) -> Scheme | None:
    table = case.inputs.get("table")
    try:
        return Scheme.parse(case.words["scheme"], tables=[] if table is None else [table.array()])
    except (KeyError, QuantspecError):
        return None


def element_of(case: Case, part: str, index: tuple[int, ...]) -> tuple[int, ...] | None:
    """The element of the tensor that an entry of a part belongs to: itself, its block's or its word's first. None: unknown."""
    if case.op in SUMS and part == "y":  # rows and columns: the leading axes of x are one
        lead = case.outputs[part].shape[:-1]
        return (int(np.ravel_multi_index(index[:-1], lead)) if lead else 0, *index[-1:])
    if part in ("codes", "y") or case.op in ("encode_scale", "decode_scale"):
        return index
    scheme = _scheme(case)
    if scheme is None:
        return None
    shape = next((case.inputs[name].shape for name in ("x", "codes") if name in case.inputs), None)
    if part == "scale_codes" and scheme.block is not None and shape is not None and len(index) == len(shape):
        return tuple(i * extent for i, extent in zip(index, scheme.extents(len(shape)), strict=True))
    if part == "words" and shape:
        per_word = scheme.store.codes_per_word(scheme.value.bits)
        stored = (*index[:-1], min(index[-1] * per_word, shape[scheme.packed_axis(len(shape))] - 1))
        return tuple(stored[axis] for axis in stored_axes(scheme, len(shape)))
    return None


def _spread(total: int) -> Iterable[int]:
    chosen = min(total, SAMPLE)
    return [place * (total - 1) // max(chosen - 1, 1) for place in range(chosen)]


def blame(case: Case, part: str, flats: Sequence[int], told: Told | None = None) -> Blame:
    """The rule that entries at these flat positions of a part point to."""
    areas, usual = (_QUANTIZE if case.op in ("quantize", "requantize") else {}).get(part, _areas(case.op))
    told = tell(case.request) if told is None else told
    expected = case.outputs[part]
    shape = expected.shape
    usual = _usual_step(case, told.rules, usual)
    if "recipe" in case.policies:  # its steps stand in the place of the rules that canonical results have
        areas, usual = (*areas, "POL-"), _step_rule(case, part)

    def rules(flat: int) -> tuple[str, ...]:
        index = tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()
        element = element_of(case, part, index)
        return tuple(rule for rule in told.trace.rules(element) if rule.startswith(areas))

    wrong = {int(flats[i]): None for i in _spread(len(flats))}
    try:
        fired = {flat: set(rules(flat)) for flat in wrong}
        first = rules(int(flats[0]))
        others = [set(rules(flat)) for flat in _spread(len(expected.patterns)) if flat not in wrong]
    except QuantspecError:
        return Blame(usual, (usual,), "", {})
    followed = "recipe" in case.policies and not others  # every block differs: the recipe's own step tells more
    rule, pattern = ("", "") if followed else _telling(list(fired.values()), others)
    chosen = rule or (usual if usual in first or not first else _narrowest(first, usual))
    return Blame(chosen, first if chosen in first else (*first, chosen), pattern, _buckets(fired.values(), others))


def _areas(op: str) -> tuple[tuple[str, ...], str]:
    return _AREAS.get(op, (("OPS-", "LAY-", "PAK-"), _of_operation(op)))


def usual_rule(op: str) -> str:
    """The rule that is named for an operation where nothing else stands out."""
    return _areas(op)[1]


def _of_operation(op: str) -> str:
    """The rule that defines a layout operation; they are numbered in this order from OPS-2 on."""
    order = ("permute", "slice", "take", "select", "flip", "expand", "concatenate", "reshape")
    return f"OPS-{order.index(op) + 2}" if op in order else "OPS-12"


#: The steps of a chain by the rule of each kind.
_STEPS = ("OPS-17", "OPS-18", "OPS-19", "OPS-20", "OPS-21")


def _usual_step(case: Case, rules: Iterable[str], usual: str) -> str:
    """The rule of the step of a chain that has one; `usual` for any other."""
    kinds = [rule for rule in rules if rule in _STEPS]
    alone = "steps" in case.words and "," not in case.words["steps"]
    return kinds[0] if alone and len(kinds) == 1 else usual


def _step_rule(case: Case, part: str) -> str:
    """The rule of the steps that make a part under a recipe: of a power of two where one is among them, else POL-6."""
    stages = {"tensor_scale_code": ("tensor", "single"), "scale_codes": ("block", "single")}.get(part, ())
    scheme = _scheme(case)
    both = scheme is not None and scheme.block is not None and scheme.tensor is not None
    steps = [
        step for stage in stages if (stage != "single") == both for step in RECIPES[case.words["recipe"]].steps(stage)
    ]
    rules = {step.rule for step in steps}
    return next((rule for rule in ("POL-20", "POL-7") if rule in rules), "POL-6")


def _narrowest(first: Sequence[str], usual: str) -> str:
    return next((rule for rule in _INSTEAD if rule in first), usual)


def _telling(fired: Sequence[set[str]], others: Sequence[set[str]]) -> tuple[str, str]:
    """The rule that fires for every differing element and most rarely for the rest; and that in words."""
    shared = set.intersection(*fired) if fired else set()
    if not others:  # every element differs: what happens to few elements elsewhere tells most
        rule = next((rule for rule in _RARE if rule in shared), "")
        return rule, f"{rule} fires for every element" if rule else ""
    counts = {rule: sum(rule in rest for rest in others) for rule in shared}
    telling = {rule: count for rule, count in counts.items() if count < len(others)}
    if not telling and "VAL-7" not in shared:
        return "", ""
    # where all that differ are ties, that explains them, however many other ties came out right
    rule = "VAL-7" if "VAL-7" in shared else min(telling, key=lambda name: (telling[name], name))
    share = 100 * counts[rule] / len(others)
    return rule, f"{rule} fires for every differing element looked at, and for {share:.0f} % of the others"


def _buckets(fired: Iterable[set[str]], others: Sequence[set[str]]) -> dict[str, int]:
    """Differing elements by the rules that fire for them and not for everything."""
    always = set.intersection(*others) if others else set()
    return dict(Counter(" ".join(sorted(rules - always)) or "-" for rules in fired).most_common(8))
