"""What every part of the generator uses: places, plans, and cases made by asking the law."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import TABLES, Scheme

from ...draws import Draws
from ...errors import DamagedError
from ...examples import Tensor
from ...families import FAMILIES, draw_codes, draw_scale_codes
from ...implementations.law import tell
from ...protocol.messages import Ok, Rejected, Request
from ...spec import rule_key, rules
from ..case import CASE_ID, Case, Refusal, features_of, policies_of
from ..store import Suite

__all__ = [
    "Ask",
    "Place",
    "Plan",
    "accepted",
    "as_answered",
    "bits32",
    "changed",
    "codes_of",
    "data_for",
    "drawn",
    "f32",
    "positives",
    "rng_of",
    "scheme_request",
    "shape_slug",
    "shape_text",
    "slug_of",
    "tensors",
    "two",
    "typed",
    "with_refusals",
]  # fmt: skip

#: Intermediates of a case are kept up to so many patterns in all.
MOST_BETWEEN = 160


@dataclass(frozen=True, slots=True)
class Place:
    """The suite that a case belongs to."""

    format: str
    op: str
    name: str
    level: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A suite that has not been made yet: making it takes the law."""

    place: Place
    make: Callable[[Place], Iterable[Case]]

    def suite(self) -> Suite:
        """Its cases. DamagedError where two have one id."""
        place = self.place
        cases = tuple(self.make(place))
        if len({case.id for case in cases}) != len(cases):
            raise DamagedError(f"{place}: two cases have one id")
        return Suite(format=place.format, op=place.op, name=place.name, level=place.level, cases=cases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request to make a case of. `part` is the second part of the id where it is not the format."""

    slug: str
    title: str
    words: Mapping[str, str]
    tensors: Mapping[str, Tensor]
    bugs: tuple[str, ...] = ()
    part: str = ""
    provenance: str = ""
    features: tuple[str, ...] = ()  #: beside those of the request


def _case(place: Place, ask: Ask, kind: str, control: str) -> Case:
    """The case of a request: answer, rules and quantities in between are the law's. DamagedError where it answers otherwise."""
    case_id = f"{place.op}.{ask.part or place.format}.{place.name}.{ask.slug}"
    if not CASE_ID.fullmatch(case_id):
        raise DamagedError(f"{case_id} is not the id of a case")
    request = Request(place.op, dict(sorted(ask.words.items())), dict(sorted(ask.tensors.items())))
    told = tell(request, intermediates=True)
    answer, refusal = told.answer, None
    if kind == "negative" and isinstance(answer, Rejected):
        named = answer.argument in request.words or answer.argument in request.tensors
        refusal = Refusal(answer.kind, answer.rule, answer.argument if named else "")
    elif kind == "negative" or not isinstance(answer, Ok):
        raise DamagedError(f"{case_id}: meant as {kind}; the law says {str(answer)[:300]}")
    known = rules()
    policy = refusal is not None and known[refusal.rule].level == "POLICY"
    fired = sorted((rule_id for rule_id in told.rules if rule_id in known), key=rule_key)
    between = told.intermediates
    if sum(len(tensor.patterns) for tensor in between.values()) > MOST_BETWEEN:
        between = {}
    outputs = dict(answer.tensors) if isinstance(answer, Ok) else {}
    return Case(
        id=case_id,
        title=ask.title,
        op=place.op,
        level=place.level,
        kind=kind,
        strength="POLICY" if policy or policies_of(request.words) else "MUST",
        words=request.words,
        inputs=request.tensors,
        outputs=outputs,
        told=dict(answer.words) if isinstance(answer, Ok) else {},
        equal=dict.fromkeys(outputs, "bits"),
        intermediates=between,
        refusal=refusal,
        control=control,
        rules=tuple(fired),
        features=(*features_of(request), *ask.features),
        bugs=ask.bugs,
        provenance=ask.provenance,
        suite=f"{place.format}/{place.op}/{place.name}",
    )


def accepted(place: Place, asks: Iterable[Ask]) -> Iterator[Case]:
    """Positive cases."""
    for ask in asks:
        yield _case(place, ask, "positive", "")


def with_refusals(place: Place, good: Ask, bad: Iterable[Ask]) -> Iterator[Case]:
    """An accepted request as the control of refused ones; these inherit its part and ask for `refusal` first."""
    control = _case(place, good, "control", "")
    yield control
    for ask in bad:
        bugs = tuple(dict.fromkeys(["refusal", *ask.bugs]))
        yield _case(place, replace(ask, bugs=bugs, part=ask.part or good.part), "negative", control.id)


def as_answered(place: Place, good: Ask, asks: Iterable[Ask]) -> Iterator[Case]:
    """An accepted request first, then others: negative cases, with the first as their control, where the law refuses them."""
    yield (first := _case(place, good, "positive", ""))
    for ask in asks:
        told = tell(Request(place.op, ask.words, ask.tensors)).answer
        if isinstance(told, Rejected):
            yield _case(place, replace(ask, bugs=tuple(dict.fromkeys(["refusal", *ask.bugs]))), "negative", first.id)
        else:
            yield _case(place, ask, "positive", "")


def changed(good: Ask, slug: str, title: str, *bugs: str, **entries: "str | Tensor | None") -> Ask:
    """The request of a control with entries changed, added or, where None, left out."""
    both: dict[str, str | Tensor | None] = {**good.words, **good.tensors, **entries}
    words = {name: entry for name, entry in both.items() if isinstance(entry, str)}
    tensors = {name: entry for name, entry in both.items() if isinstance(entry, Tensor)}
    return Ask(slug=slug, title=title, words=words, tensors=tensors, bugs=bugs, part=good.part)


def positives(place: Place, asks: Callable[[], Iterable[Ask]]) -> Plan:
    """The plan of a suite of positive cases."""
    return Plan(place, lambda at: accepted(at, asks()))


def bits32(numbers: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Binary32 patterns of numbers that are exactly such."""
    return np.ascontiguousarray(np.asarray(numbers, np.float32)).view(np.uint32)


def typed(dtype: str, patterns: npt.ArrayLike, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of these patterns, one axis unless a shape is given."""
    flat = np.asarray(patterns)
    return Tensor(
        dtype, tuple(flat.shape) if shape is None else tuple(shape), tuple(map(int, flat.reshape(-1).tolist()))
    )


def two(exponent: int) -> float:
    """The power of two, exactly: no power function is asked."""
    return math.ldexp(1.0, exponent)


def f32(patterns: npt.ArrayLike, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of binary32 patterns."""
    return typed("f32", patterns, shape)


def codes_of(codes: npt.ArrayLike, shape: Sequence[int] | None = None) -> Tensor:
    """A tensor of code bytes."""
    return typed("u8", codes, shape)


def rng_of(text: str) -> Draws:
    """Draws whose stream is fixed by a text, a case's id as a rule."""
    return Draws(np.random.Philox(key=int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")))


def data_for(key: str, family: str, shape: Sequence[int], scheme: Scheme) -> Tensor:
    """Data of a family, drawn from a stream that the key fixes."""
    with np.errstate(all="ignore"):
        made = FAMILIES[family].make(rng_of(key), tuple(shape), scheme)
    return Tensor.of(np.asarray(made).reshape(tuple(shape)))


def shape_text(shape: Sequence[int]) -> str:
    """A list of whole numbers as a word."""
    return ",".join(map(str, shape)) or "()"


def shape_slug(shape: Sequence[int]) -> str:
    """A shape as a part of an id."""
    return "x".join(map(str, shape)) or "scalar"


def slug_of(text: str) -> str:
    """A scheme's text as a part of an id."""
    return text.replace(".", "-")


def scheme_request(scheme: Scheme) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The word and, for a table without a registered name, the tensor that say a scheme."""
    table = scheme.table
    return {"scheme": scheme.text}, {} if table is None or table.name in TABLES else {
        "table": f32(np.array(table.bits))
    }


def drawn(key: str, scheme: Scheme, shape: Sequence[int], *, finite: bool = False) -> dict[str, Tensor]:
    """Codes and scale codes drawn over the legal ones; NaN in at most every other scale, so that codes still count."""
    rng = rng_of(key)
    found = {"codes": Tensor.of(draw_codes(rng, scheme, tuple(shape)))}
    if scheme.block is not None:
        extents = scheme.extents(len(shape))
        grid = tuple(-(-size // extent) for size, extent in zip(shape, extents, strict=True))
        found["scale_codes"] = Tensor.of(np.asarray(draw_scale_codes(rng, scheme.block.scale, grid, finite=finite)))
    if scheme.tensor is not None:
        row = scheme.tensor
        code = np.asarray(row.bias << row.mantissa_bits, row.code_dtype)  # 1: what the blocks say stays to be seen
        if scheme.block is None and not finite:
            code = np.asarray(draw_scale_codes(rng, row, (), finite=True), row.code_dtype)
        found["tensor_scale_code"] = Tensor.of(code.reshape(()))
    return found


def tensors(found: Mapping[str, Any]) -> dict[str, Tensor]:
    """Arrays as tensors."""
    return {name: Tensor.of(np.asarray(array)) for name, array in found.items()}
