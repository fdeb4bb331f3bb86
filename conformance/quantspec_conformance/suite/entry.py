"""One line of a suite file as a case, every member checked: what is not exactly of its kind is refused with ValueError."""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..examples import DTYPES, Tensor
from ..protocol.messages import KINDS as REFUSALS
from ..protocol.messages import OPERATIONS
from ..spec import RULE_ID
from .blob import WIDTHS
from .case import BUGS, CASE_ID, KINDS, LEVELS, Case, Refusal, policies_of

__all__ = ["Entries", "case_of", "names_of"]

KEYS = (
    "id", "title", "op", "level", "kind", "strength", "words", "in", "out", "told", "equal", "intermediates", "refusal",
    "control", "rules", "features", "bugs", "provenance",
)  # fmt: skip
STRENGTHS = ("MUST", "SHOULD", "MAY", "POLICY")
RELATIONS = ("bits",)
_ONE_OF: dict[str, tuple[Any, ...]] = {"op": OPERATIONS, "level": LEVELS, "kind": KINDS, "strength": STRENGTHS}
MOST_ELEMENTS = 1 << 24
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_PART = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*")
_FEATURE = re.compile(r"[a-z]+(:[a-z0-9_.-]+)?")
_HEX = {digits: re.compile(rf"([0-9A-F]{{{digits}}}( [0-9A-F]{{{digits}}})*)?") for digits in (2, 4, 8, 16)}


def names_of(suite: Any, form: Any, op: Any) -> None:
    """ValueError where the names of a suite cannot be parts of a path and of an id."""
    for name, what in ((suite, "suite"), (form, "format"), (op, "op")):
        if not isinstance(name, str) or not _PART.fullmatch(name) or len(name) > 100:
            raise ValueError(f"{what} {str(name)[:60]!r}: allowed: lower-case letters, digits, _ and -")
    if op not in OPERATIONS:
        raise ValueError(f"op {op!r}: allowed: {', '.join(OPERATIONS)}")


class Entries:
    """The tensors of a data file, and which of them were asked for."""

    def __init__(self, data: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> None:
        self.data = data
        self.used: dict[tuple[str, str], Tensor] = {}

    def tensor(self, row: Any, where: str) -> Tensor:
        """The tensor of an entry: inline, or by its key."""
        if not isinstance(row, dict) or list(row) not in (["dtype", "shape", "bits"], ["dtype", "shape", "key"]):
            raise ValueError(f"{where}: allowed: dtype, shape, and bits or key")
        dtype, shape = row["dtype"], row["shape"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise ValueError(f"{where}: dtype {str(dtype)[:20]!r}; allowed: {', '.join(DTYPES)}")
        if not isinstance(shape, list) or len(shape) > 64 or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
            raise ValueError(f"{where}: shape {str(shape)[:60]}; allowed: a list of whole numbers")
        count = math.prod(shape)
        if count > MOST_ELEMENTS:
            raise ValueError(f"{where}: {count} elements; allowed: at most {MOST_ELEMENTS}")
        if "key" in row:
            return self._kept(row["key"], dtype, tuple(shape), where)
        digits, _ = DTYPES[dtype]
        bits = row["bits"]
        if (
            not isinstance(bits, str)
            or not _HEX[digits].fullmatch(bits)
            or len(bits) != max(count * (digits + 1) - 1, 0)
        ):
            raise ValueError(f"{where}: bits are not {count} patterns of {digits} upper-case hexadecimal digits")
        return Tensor(dtype, tuple(shape), tuple(int(pattern, 16) for pattern in bits.split()))

    def _kept(self, key: Any, dtype: str, shape: tuple[int, ...], where: str) -> Tensor:
        if not isinstance(key, str) or key not in self.data:
            raise ValueError(f"{where}: no tensor {str(key)[:80]!r} in the data file")
        kind, kept, raw = self.data[key]
        width = DTYPES[dtype][0] // 2
        if WIDTHS[kind] != width or kept != shape:
            raise ValueError(f"{where}: {dtype} {shape}; the data file has {kind} {kept}")
        if (key, dtype) not in self.used:
            self.used[key, dtype] = Tensor(dtype, shape, tuple(np.frombuffer(raw, f"<u{width}").tolist()))
        return self.used[key, dtype]

    def require_all_used(self) -> None:
        """ValueError for a tensor that no case asks for."""
        used = {key for key, _ in self.used}
        spare = [key for key in self.data if key not in used]
        if spare:
            raise ValueError(f"no case uses the tensor {spare[0][:80]!r}")


def case_of(row: Any, entries: Entries, suite: str) -> Case:
    """The case of a line. ValueError says what is wrong with which case."""
    if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not CASE_ID.fullmatch(row["id"]):
        raise ValueError(f"{str(row)[:60]}: a case is an object with an id such as encode.e2m1.first.ties")
    case_id = row["id"]
    if tuple(name for name in row if name != "policies") != KEYS:
        odd = sorted(set(row) ^ set(KEYS)) or list(row)
        raise ValueError(f"{case_id}: members {str(odd)[:120]}; allowed: exactly {', '.join(KEYS)}, in this order")
    for what, allowed in _ONE_OF.items():
        _one_of(case_id, what, row[what], allowed)
    tensors = {
        part: {name: entries.tensor(entry, f"{case_id}: {name}") for name, entry in _named(case_id, part, row).items()}
        for part in ("in", "out", "intermediates")
    }
    texts = {part: _texts(case_id, part, row) for part in ("words", "told", "equal")}
    if row.get("policies", {}) != policies_of(texts["words"]) or row.get("policies") == {}:
        raise ValueError(f"{case_id}: policies {str(row.get('policies'))[:60]}; allowed: those that the words name")
    refusal = _refusal(case_id, row["refusal"])
    _check_kind(case_id, row, refusal)
    _check_texts(case_id, row, tensors["out"], texts["equal"])
    return Case(
        id=case_id,
        title=row["title"],
        op=row["op"],
        level=row["level"],
        kind=row["kind"],
        strength=row["strength"],
        words=texts["words"],
        inputs=tensors["in"],
        outputs=tensors["out"],
        told=texts["told"],
        equal=texts["equal"],
        intermediates=tensors["intermediates"],
        refusal=refusal,
        control=row["control"],
        rules=_list(case_id, "rules", row["rules"], RULE_ID),
        features=_list(case_id, "features", row["features"], _FEATURE),
        bugs=_list(case_id, "bugs", row["bugs"], re.compile("|".join(BUGS))),
        provenance=row["provenance"],
        suite=suite,
    )


def _check_texts(case_id: str, row: Mapping[str, Any], out: Mapping[str, Tensor], equal: Mapping[str, str]) -> None:
    """Every output has a relation; the case has a title."""
    if set(equal) != set(out) or not set(equal.values()) <= set(RELATIONS):
        raise ValueError(f"{case_id}: equal has a relation ({', '.join(RELATIONS)}) for every output and nothing else")
    if not isinstance(row["title"], str) or not row["title"] or not isinstance(row["provenance"], str):
        raise ValueError(f"{case_id}: title and provenance are texts")


def _one_of(case_id: str, what: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if type(value) is not type(allowed[0]) or value not in allowed:
        raise ValueError(f"{case_id}: {what} {str(value)[:40]!r}; allowed: {', '.join(map(str, allowed))}")


def _named(case_id: str, part: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """An object whose members have names of words and tensors."""
    found = row[part]
    if not isinstance(found, dict) or not all(_NAME.fullmatch(name) for name in found):
        raise ValueError(f"{case_id}: {part} is no object of named entries")
    return found


def _texts(case_id: str, part: str, row: Mapping[str, Any]) -> dict[str, str]:
    found = _named(case_id, part, row)
    if not all(isinstance(text, str) for text in found.values()):
        raise ValueError(f"{case_id}: {part} holds texts")
    return found


def _list(case_id: str, what: str, found: Any, form: re.Pattern[str]) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(text, str) and form.fullmatch(text) for text in found):
        raise ValueError(f"{case_id}: {what} {str(found)[:80]}; each is to be of the form {form.pattern[:60]}")
    if len(set(found)) != len(found):
        raise ValueError(f"{case_id}: {what}: one stands twice")
    return tuple(found)


def _refusal(case_id: str, row: Any) -> Refusal | None:
    if row is None:
        return None
    if not isinstance(row, dict) or list(row) != ["kind", "rule", "argument"] or row["kind"] not in REFUSALS:
        raise ValueError(f"{case_id}: refusal: allowed: null, or kind ({', '.join(REFUSALS)}), rule, argument")
    if not isinstance(row["rule"], str) or not RULE_ID.fullmatch(row["rule"]) or not isinstance(row["argument"], str):
        raise ValueError(
            f"{case_id}: refusal: rule {str(row['rule'])[:40]!r} is the id of no rule, or argument no text"
        )
    return Refusal(row["kind"], row["rule"], row["argument"])


def _check_kind(case_id: str, row: Mapping[str, Any], refusal: Refusal | None) -> None:
    """A negative case has a refusal and a control and no output; any other has an output and neither."""
    control = row["control"]
    if (
        not isinstance(control, str)
        or bool(control) != (row["kind"] == "negative")
        or (control and not CASE_ID.fullmatch(control))
    ):
        raise ValueError(f"{case_id}: control {str(control)[:60]!r}; negative cases have one, others none")
    answered = bool(row["out"] or row["told"])
    if (refusal is not None) != (row["kind"] == "negative") or answered == (refusal is not None):
        raise ValueError(
            f"{case_id}: a {row['kind']} case has {'a refusal' if row['kind'] == 'negative' else 'outputs'} only"
        )
