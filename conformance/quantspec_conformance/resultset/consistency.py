"""What holds within the record of a case, and between it and the case of the suite: a judge writes nothing else."""

import math
from collections.abc import Iterator

from ..spec import rules
from ..suite.case import Case
from ..suite.outcome import SuiteMismatch
from .record import CaseRecord

__all__ = ["against_case", "within"]

#: Kinds of mismatch whose entries are counted.
COUNTED = ("bits", "padding", "unwritten")
#: Outcomes -> whether there was an answer, whose digest is kept (None: either).
DIGEST = {
    "pass": False, "fail": True, "reject-missing": True, "wrong-error": True, "nondeterministic": True, "error": None,
    "crash": False, "timeout": False, "known": True, "unsupported": False, "skipped": False, "notrun": False,
}  # fmt: skip


def within(record: CaseRecord, *, known_rules: bool) -> Iterator[str]:
    """What a record says that cannot be. `known_rules`: the spec of the run is this one, so each rule must be one of it."""
    outcome, found = record.outcome, record.mismatch
    if (found is not None) != (outcome == "fail"):
        yield f"{outcome} {'with' if found is not None else 'without'} a mismatch"
    if outcome == "pass" and (record.reason or record.rule or record.rules):
        yield "pass with a reason or a rule"
    if outcome in ("unsupported", "notrun", "skipped", "nondeterministic") and not record.reason:
        yield f"{outcome} without a reason"
    if outcome in ("fail", "reject-missing") and record.rule not in record.rules:
        yield f"{outcome} by {record.rule or 'no rule'}, which is not among its rules"
    if DIGEST[outcome] is not None and bool(record.digest) != DIGEST[outcome]:
        yield f"{outcome} {'with' if record.digest else 'without'} the digest of a wrong answer"
    if known_rules:
        named = dict.fromkeys([*record.rules, *([record.rule] if record.rule else [])])
        yield from (f"{rule} is no rule of the spec" for rule in named if rule not in rules())
    fault = _comparison(record)
    if fault:
        yield fault
    if found is not None:
        yield from _mismatch(found)


def _comparison(record: CaseRecord) -> str:
    """How outcome, expectation and their comparison contradict each other; "" where they do not."""
    outcome, expected = record.outcome, record.expected
    allowed = {
        "": expected == "pass" or outcome in ("pass", "notrun", "skipped"),  # a flaky case may pass
        "xfail": outcome == expected != "pass",
        "xpass": outcome == "pass" != expected,
        "changed": "pass" not in (outcome, expected),
        "waived": outcome == expected != "pass",
    }
    if allowed[record.comparison]:
        return ""
    return f"comparison {record.comparison or 'none'!r} of outcome {outcome} with {expected} expected"


def _mismatch(found: SuiteMismatch) -> Iterator[str]:
    """What the counts and entries of a mismatch contradict."""
    if found.kind not in COUNTED:
        if found.count or found.total or found.first or found.buckets:
            yield f"a mismatch of kind {found.kind} with entries"
        if not found.message:
            yield f"a mismatch of kind {found.kind} without a message"
        return
    if not max(1, len(found.first)) <= found.count <= found.total:
        yield f"{len(found.first)} entries shown, {found.count} counted, {found.total} in all"
    if sum(found.buckets.values()) > found.count:
        yield f"buckets of {sum(found.buckets.values())} entries, {found.count} counted"
    flats = [row.flat for row in found.first]
    if flats != sorted(set(flats)):
        yield "its entries are not in order, or one stands twice"
    for row in found.first:
        if row.expected == row.actual:
            yield f"entry {row.flat} does not differ: 0x{row.expected:X}"
        if row.flat >= found.total:
            yield f"entry {row.flat} lies outside of {found.total}"


def against_case(record: CaseRecord, case: Case) -> Iterator[str]:
    """What a record contradicts in the case that it is the outcome of."""
    outcome, refused = record.outcome, case.refusal
    if outcome == "reject-missing" and (refused is None or record.rule != refused.rule):
        yield "reject-missing, but " + (
            "the case is not to be refused" if refused is None else f"{refused.rule} refuses it"
        )
    if outcome == "fail" and refused is not None:
        yield "fail, but the case is to be refused"
    found = record.mismatch
    if found is None or found.kind not in COUNTED:
        return
    wanted = case.outputs.get(found.part)
    if wanted is None:
        yield f"differences of {found.part!r}, which the case has not"
        return
    if found.total != len(wanted.patterns):
        yield f"{found.part} has {len(wanted.patterns)} entries, not {found.total}"
        return
    for row in found.first:
        if row.flat < found.total and row.expected != wanted.patterns[row.flat]:
            yield f"{found.part} entry {row.flat}: expected 0x{row.expected:X}; the suite has 0x{wanted.patterns[row.flat]:X}"
        if _flat(row.index, wanted.shape) != row.flat:
            yield f"{found.part} entry {row.flat} is not at {list(row.index)} of shape {list(wanted.shape)}"


def _flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """The position of an index in row-major order; -1 where it is none of the shape."""
    if len(index) != len(shape) or any(i >= size for i, size in zip(index, shape, strict=True)):
        return -1
    return sum(i * math.prod(shape[axis + 1 :]) for axis, i in enumerate(index))
