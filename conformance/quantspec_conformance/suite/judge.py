"""An answer against a case: bits, shapes, refusals. There is no tolerance. Rules CNF-1, CNF-2, CNF-3, CNF-5."""

from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import QuantspecError, Scheme

from ..compare import SHAPE_RULES, Difference, kind_of
from ..examples import Tensor
from ..protocol.messages import Answer, Failed, Known, Ok, Rejected, Unsupported
from .blame import blame, usual_rule
from .case import Case
from .monotone import CODES, breaks, points
from .outcome import CaseResult, SuiteMismatch, answer_digest

__all__ = ["judge"]

#: Parts in the order in which a wrong one explains the others.
ORDER = ("tensor_scale_code", "scale_codes", "codes", "words", "bytes", "y")
#: Words that only cases about them ask for: most implementations report nothing (feature `report`).
ON_REQUEST = ("saturated",)


def judge(case: Case, answer: Answer, *, keep: int = 8) -> CaseResult:
    """The outcome of a case. `keep` differences are kept, all are counted."""
    match answer:
        case Unsupported(feature, message):
            return CaseResult(case.id, "unsupported", f"{feature}: {message}" if message else feature)
        case Known(url, message):
            return CaseResult(case.id, "known", f"{url} {message}".strip(), digest=answer_digest(answer))
        case Failed(message):
            return CaseResult(case.id, "error", message, digest=answer_digest(answer))
        case Rejected():
            return _rejected(case, answer)
        case Ok() if case.refusal is not None:
            reason = f"not refused; {case.refusal.rule} refuses it ({case.refusal.kind})"
            digest = answer_digest(answer)
            return CaseResult(case.id, "reject-missing", reason, case.refusal.rule, (case.refusal.rule,), digest=digest)
        case Ok():
            return _compared(case, answer, keep)


def _rejected(case: Case, answer: Rejected) -> CaseResult:
    said = f"refused ({answer.kind}{f', {answer.rule}' if answer.rule else ''}): {answer.message}"
    if case.refusal is None:
        return CaseResult(
            case.id, "wrong-error", f"{said}; the law does not refuse it", answer.rule, digest=answer_digest(answer)
        )
    wanted = case.refusal
    wrong = [
        f"{name} {theirs!r} where {ours!r} is due"
        for name, theirs, ours in (
            ("kind", answer.kind, wanted.kind),
            ("rule", answer.rule or wanted.rule, wanted.rule),
            ("argument", answer.argument or wanted.argument, wanted.argument or answer.argument),
        )
        if theirs != ours
    ]
    if wrong:
        digest = answer_digest(answer)
        return CaseResult(
            case.id, "wrong-error", f"{said}; {', '.join(wrong)}", wanted.rule, (wanted.rule,), digest=digest
        )
    return CaseResult(case.id, "pass")


def _compared(case: Case, answer: Ok, keep: int) -> CaseResult:
    ranked = sorted(case.outputs, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
    for part in ranked:
        found = _part(case, part, answer.tensors.get(part), keep)
        if found is not None:
            return _failed(case, answer, *found)
    surplus = sorted(set(answer.tensors) - set(case.outputs))
    if surplus:
        text = f"{', '.join(surplus)} may not be there"
        return _failed(case, answer, SuiteMismatch(surplus[0], "surplus", text), "SCL-22", ())
    for name, expected in case.told.items():
        if name in ON_REQUEST and name not in answer.words and "report" not in case.features:
            continue
        actual = answer.words.get(name)
        if actual != expected:
            text = f"{name} is {actual!r}; expected {expected!r}" if actual is not None else f"{name} is missing"
            rule = "SCL-24" if name == "saturated" else usual_rule(case.op)
            return _failed(case, answer, SuiteMismatch(name, "words", text), rule, ())
    return CaseResult(case.id, "pass")


def _failed(case: Case, answer: Ok, mismatch: SuiteMismatch, rule: str, rules: tuple[str, ...]) -> CaseResult:
    reason = mismatch.message or f"{mismatch.count} of {mismatch.total} entries of {mismatch.part} differ"
    if mismatch.kind == "bits" and CODES.get(case.op) == mismatch.part:
        found = (breaks(ordered) for ordered in points(case, answer.tensors[mismatch.part]))
        reason += "".join(f"; {broken}" for broken in found if broken is not None)
    return CaseResult(
        case.id, "fail", reason, rule, rules or ((rule,) if rule else ()), mismatch, answer_digest(answer)
    )


def _part(case: Case, part: str, got: Tensor | None, keep: int) -> tuple[SuiteMismatch, str, tuple[str, ...]] | None:
    """How a part differs, the rule and the rules; None where it is equal."""
    wanted = case.outputs[part]
    shape_rule = SHAPE_RULES.get(part, "CNF-1")
    if got is None:
        return SuiteMismatch(part, "missing", f"the answer has no {part}"), "CNF-1", ()
    if got == wanted:
        return None
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        kind = "shape" if got.shape != wanted.shape else "dtype"
        text = f"{part} is {got.dtype} of shape {got.shape}; expected {wanted.dtype} of shape {wanted.shape}"
        return SuiteMismatch(part, kind, text), shape_rule, ()
    left, right = _patterns(wanted), _patterns(got)
    differs = left != right
    flats = np.flatnonzero(differs)
    first = tuple(
        Difference(_index(flat, wanted.shape), int(flat), int(left.reshape(-1)[flat]), int(right.reshape(-1)[flat]))
        for flat in flats[:keep]
    )
    kind, rule = _kind(case, part, left, right, differs)
    found = blame(case, part, flats.tolist())
    chosen = rule or found.rule
    rules = found.rules if chosen in found.rules else (*found.rules, chosen)
    mismatch = SuiteMismatch(part, kind, "", len(flats), left.size, first, found.buckets, found.pattern)
    return mismatch, chosen, rules


def _told_shape(case: Case) -> tuple[int, ...] | None:
    """The shape that goes in as a word, beside words or bytes."""
    text = case.words.get("shape", "")
    parts = [] if text == "()" else text.split(",")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else None


def _patterns(tensor: Tensor) -> npt.NDArray[Any]:
    array = tensor.array()
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(tensor.shape)


def _index(flat: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()


def _kind(
    case: Case, part: str, left: npt.NDArray[Any], right: npt.NDArray[Any], differs: npt.NDArray[np.bool_]
) -> tuple[str, str | None]:
    """Dirty padding, poison left in place, an order that tells itself; else plain bits."""
    table = case.inputs.get("table")
    shape = next((case.inputs[name].shape for name in ("codes", "x") if name in case.inputs), _told_shape(case))
    try:
        scheme = Scheme.parse(
            case.told.get("text", case.words["scheme"]), tables=[] if table is None else [table.array()]
        )
    except (KeyError, QuantspecError):
        return "bits", None
    if shape is None:
        return "bits", None
    kind, rule = kind_of(part, left, right, differs, scheme, shape)
    return kind, rule
