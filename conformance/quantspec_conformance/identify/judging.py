"""From a search to a verdict: what is left, what refutes each alternative, which rows that is, or what comes nearest."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from quantspec import QuantspecError, Scheme
from quantspec.codecs import CODECS, Codec
from quantspec.presets import PRESETS
from quantspec.recipes import RECIPES, Recipe
from quantspec.stores import STORES
from quantspec.values import encode_bits

from .asking import Lacking
from .axes import ALONE
from .domains import DOMAINS, blocks_in
from .layout import Array
from .narrowing import agreement
from .predictions import ANY, NO_NUMBER, Codes, Scales
from .quantizing import Quantizing, StageLeft
from .smallest import Disagreement, smallest
from .verdict import (
    CHANGES,
    EXCEPT,
    IDENTIFIED,
    NONE,
    SILENT,
    Counterexample,
    Exempt,
    Found,
    Nearest,
    PartFound,
    Refuted,
)

__all__ = ["judge"]

NEAREST = 3  #: sets of ways that disagree on the same questions
GROUPED = 64
_TITLES = {
    "tensor": "tensor scale",
    "block": "block scale",
    "single": "scale",
    "code": "codes",
    "NaN": "codes of NaN",
    "joint": "codes",
}


def judge(search: Quantizing) -> Found:
    """The verdict of quantize under one scheme."""
    scheme = search.layout.scheme.text
    evidence = search.evidence
    found = Found(scheme, SILENT, given=bool(search.asking.given), refusals=dict(search.asking.said))
    if not search.silent:
        found.parts = [_part(search, left) for left in _told(search)]
        outcomes = [part.outcome for part in found.parts]
        found.outcome = next(outcome for outcome in (NONE, EXCEPT, IDENTIFIED) if outcome in outcomes)
        for which, what in ((evidence.changed, "got other bits"), (evidence.lost, "got no answer")):
            if which:
                found.outcome = CHANGES
                shown, count = _block(evidence.pool.bits[which[0]]), len(set(which))
                questions = "question" if count == 1 else "questions"
                found.notes.append(f"{count} {questions} {what} the second time, as x = {' '.join(shown)}")
        found.recipes = _recipes(search)
        found.codecs = [name for name, codec in CODECS.items() if _is_codec(search, codec)]
        schemes = _stored(search.layout.scheme)
        presets = [one for one in PRESETS.values() if any(one.covers(scheme) for scheme in schemes)]
        found.presets = [
            one.id for one in presets if one.recipe.name in found.recipes and one.codec.name in found.codecs
        ]
    found.path = [_step(search, place) for place in range(len(search.path))]
    found.blocks, found.requests = search.asking.budget.used, search.asking.budget.requests
    return found


def _stored(scheme: Scheme) -> list[Scheme]:
    """The scheme in every store along the innermost axis: codes are asked for, and those do not depend on it."""
    levels: dict[str, Any] = {
        "mode": scheme.mode,
        "tensor": scheme.tensor,
        "block": scheme.block,
        "table": scheme.table,
    }
    kinds = [kind.name if not kind.packed else f"{kind.name}_0" for kind in STORES.values()]
    return [scheme, *(Scheme(scheme.value, kind, **levels) for kind in kinds)]


def _told(search: Quantizing) -> list[StageLeft]:
    """The stages of the report: where codes are known, those of NaN tell the rest of their axes too."""
    return [left for left in search.stages if left.name != "code" or not _absorbed(search)]


def _absorbed(search: Quantizing) -> bool:
    last = search.stages[-1]
    return last.name == "NaN" and bool(last.alive) and bool(search.stages[-2].alive)


def _step(search: Quantizing, place: int) -> dict[str, Any]:
    step, evidence = search.path[place], search.evidence
    answers = evidence.answers
    row = step.question
    width = search.layout.scheme.value.bits
    told = {"x": _block(evidence.pool.bits[row]), "family": evidence.pool.families[row]}
    got = {
        "tensor_scale": f"{int(answers.tensor[row]):X}" if search.layout.scheme.tensor is not None else "",
        "scales": " ".join(f"{int(code):02X}" for code in answers.scales[row])
        if search.layout.scheme.block is not None
        else "",
        "codes": " ".join(f"{int(code):0{2 if width > 4 else 1}X}" for code in answers.codes[row].reshape(-1)),
    }
    counts = {"before": step.before, "kinds": step.kinds, "after": step.after}
    return {"part": _TITLES[step.stage], **told, **counts, **got}


def _block(bits: Array) -> tuple[str, ...]:
    return tuple(f"{int(pattern):08X}" for pattern in bits.reshape(-1))


# ---------------------------------------------------------------- parts


def _part(search: Quantizing, left: StageLeft) -> PartFound:
    part = PartFound("codes" if left.name == "NaN" and _absorbed(search) else _TITLES[left.name], NONE)
    which = search.evidence.answered
    part.tried = len(which)
    if left.alive:
        part.outcome = EXCEPT if left.exempt else IDENTIFIED
        part.exempt = [_exempt(search, left, name) for name in left.exempt]
        part.ways = [dict(left.stage.label(index)) for index in left.alive]
        part.refuted = _refutations(search, left)
        return part
    agrees = agreement(left.stage, range(left.count), search.evidence, which)
    if left.name == "NaN" and _code(search).alive and not _code(search).exempt:
        return _but_nan(search, left, part, agrees)
    order = np.argsort(-agrees.sum(axis=1), kind="stable")
    families = np.array(search.evidence.pool.families)[which]
    groups: dict[bytes, list[int]] = {}
    for index in order[:GROUPED]:
        groups.setdefault(agrees[index].tobytes(), []).append(int(index))
    for alike in list(groups.values())[:NEAREST]:
        agreed = agrees[alike[0]]
        counts = {}
        for family in dict.fromkeys(families):
            mine = agreed[families == family]
            if not mine.all():
                counts[str(family)] = (int(mine.sum()), len(mine))
        ways = [dict(left.stage.label(index)) for index in alike]
        part.nearest.append(Nearest(ways, int(agreed.sum()), len(which), counts))
    part.counterexample = _counterexample(search, left, int(order[0]), which[~agrees[order[0]]])
    return part


def _code(search: Quantizing) -> StageLeft:
    return next(left for left in search.stages if left.name in ("code", "joint"))


def _but_nan(search: Quantizing, left: StageLeft, part: PartFound, agrees: Array) -> PartFound:
    """Codes of numbers are known, those of NaN quotients follow no rule: the nearest of them, and where it fails."""
    best = int(np.argmax(agrees.sum(axis=1)))
    wrong = search.evidence.answered[~agrees[best]]
    by = _counterexample(search, left, best, wrong)
    part.outcome, part.ways = EXCEPT, [dict(left.stage.label(best))]
    part.exempt = [Exempt("NaN quotient", "whatever quotient is a NaN", int(agrees[best].sum()), len(agrees[best]), by)]
    return part


def _exempt(search: Quantizing, left: StageLeft, domain: str) -> Exempt:
    """How the best of the ways that are left fares inside one domain, the others left out."""
    evidence = search.evidence
    which = evidence.answered
    which = which[blocks_in((domain,), search.layout, evidence.pool.bits[which]).any(axis=1)]
    others = tuple(name for name in left.exempt if name != domain)
    agrees = agreement(left.stage, left.alive, evidence, which, others)
    best = int(np.argmax(agrees.sum(axis=1)))
    by = _counterexample(search, left, left.alive[best], which[~agrees[best]]) if not agrees[best].all() else None
    return Exempt(domain, DOMAINS[domain][1], int(agrees[best].sum()), len(which), by)


def _weight(bits: Array) -> Array:
    """How hard questions are to look at: the numbers that are not 0; questions with NaN or Inf come last."""
    special = ((bits & 0x7FFFFFFF) >= 0x7F800000).any(axis=(1, 2))
    return np.asarray((bits != 0).sum(axis=(1, 2)) + special * bits[0].size if len(bits) else np.zeros(0))


def _counterexample(search: Quantizing, left: StageLeft, way: int, wrong: Array) -> Counterexample | None:
    evidence = search.evidence
    numbers = _weight(evidence.pool.bits[wrong])
    question = int(wrong[np.argmin(numbers)])
    given = None
    if evidence.given is not None:
        given = evidence.scales(np.array([question]))
    try:
        found = smallest(left.stage, way, evidence.pool.bits[question], search.asking, given)
    except Lacking:
        found = None
    family = evidence.pool.families[question]
    return _shown(search, left, found, family) if found is not None else _at(search, left, way, question)


def _shown(search: Quantizing, left: StageLeft, one: Disagreement, family: str) -> Counterexample:
    place, digits = _place(search, left, one.place, one.bits, one.tensor, one.scales)
    return Counterexample(_block(one.bits), place, _hex(one.expected, digits), _hex(one.got, digits), family)


def _at(search: Quantizing, left: StageLeft, way: int, question: int) -> Counterexample | None:
    """Where an answered question differs from a way."""
    evidence = search.evidence
    which = np.array([question])
    answers = evidence.answers.at(which)
    predicted = left.stage.predict([way], evidence.measured.take(which), answers.tensor, answers.scales)[0, 0]
    observed = left.stage.observed(answers.tensor, answers.scales, answers.codes)[0]
    wrong = np.flatnonzero((predicted != observed) & (predicted != ANY))
    if not len(wrong):
        return None
    place = int(wrong[0])
    one = Disagreement(
        evidence.pool.bits[question],
        place,
        int(predicted[place]),
        int(observed[place]),
        answers.scales[0],
        int(answers.tensor[0]),
    )
    return _shown(search, left, one, evidence.pool.families[question])


def _place(search: Quantizing, left: StageLeft, place: int, bits: Array, tensor: int, scales: Array) -> tuple[str, int]:
    """Where in the answer, in words, and the digits of a code there."""
    layout = search.layout
    if isinstance(left.stage, Scales):
        size = left.stage.scale.size * 2
        if left.stage.stage == "tensor" or layout.scheme.block is None:
            return "tensor scale", size
        return "scale" if layout.blocks == 1 else f"scale of block {place}", size
    block, element = divmod(place, layout.size)
    known = [f"tensor scale {tensor:X}"] if layout.scheme.tensor is not None else []
    known += [f"scale {int(scales[block]):X}"] if layout.scheme.block is not None else []
    where = f"x[{element}]" if layout.blocks == 1 else f"x[{element}] of block {block}"
    return f"{where} = {int(bits[block, element]):08X} under {', '.join(known)}", 2


def _hex(code: int, digits: int) -> str:
    return "no number of the type" if code == NO_NUMBER else f"{code:0{digits}X}"


# ---------------------------------------------------------------- alternatives


def _refutations(search: Quantizing, left: StageLeft) -> list[Refuted]:
    """For each other way along each axis: the way that is as found in all else, and the question that refutes it."""
    if left.name != "NaN":
        return _refuted(search, left, left.alive)
    code = next(other for other in search.stages if other.name == "code")
    found = _refuted(search, code, _like(code, left)) if code.alive else []
    return [*found, *_refuted(search, left, left.alive, only="nan")]


def _like(code: StageLeft, nan: StageLeft) -> list[int]:
    """The pairs of codes that those of NaN go back to."""
    wanted = [{axis: way for axis, way in nan.stage.label(index) if axis != "nan"} for index in nan.alive]
    return [index for index in code.alive if dict(code.stage.label(index)) in wanted] or code.alive


def _refuted(search: Quantizing, left: StageLeft, alive: Sequence[int], only: str = "") -> list[Refuted]:
    labels = [dict(left.stage.label(index)) for index in range(left.count)]
    base = labels[alive[0]]
    living = [labels[index] for index in alive]
    chosen: dict[tuple[str, str], int] = {}
    for index, label in enumerate(labels):
        for axis, way in label.items():
            if (
                (only and axis != only)
                or any(other.get(axis) == way for other in living)
                or label.keys() != base.keys()
            ):
                continue
            if all(label[other] == base[other] for other in label if other != axis):
                chosen.setdefault((axis, way), index)
    which = search.evidence.answered
    numbers = _weight(search.evidence.pool.bits[which])
    found = []
    indices = list(chosen.values())
    agrees = agreement(left.stage, indices, search.evidence, which, left.exempt)
    for ((axis, way), index), row in zip(chosen.items(), agrees, strict=True):
        wrong = np.flatnonzero(~row)
        if len(wrong):
            question = int(which[wrong[np.argmin(numbers[wrong])]])
            by = _at(search, left, index, question)
            if by is not None:
                found.append(Refuted(axis, way, by))
    return found


# ---------------------------------------------------------------- rows


def _recipes(search: Quantizing) -> list[str]:
    """Rows whose every stage is among those that are left, under the row's own kind of amax."""
    names = []
    for recipe in RECIPES.values():
        if bool(search.asking.given) == recipe.given_only:
            alone = f"{recipe.name} {ALONE}"  # its block stage, for a block without a tensor's scale
            listed = (recipe.name,) if recipe.given_only else (recipe.name, alone)
            names += [name for name in listed if _is_recipe(search, recipe, name)][:1]
    return names


def _is_recipe(search: Quantizing, recipe: Recipe, name: str) -> bool:
    """True where each stage has a way that is left under this name of a row."""
    for left in search.stages:
        if isinstance(left.stage, Scales):
            ways = [left.stage.ways[index] for index in left.alive]
            if not any(name in way.rows and way.amax == recipe.amax for way in ways):
                return False
    pairs = _pairs(search)
    return any(recipe.name in way.rows and way.amax in ("", recipe.amax) for way, _ in pairs)


def _pairs(search: Quantizing) -> list[tuple[Any, Any]]:
    last = search.stages[-1]
    if last.name == "NaN" and not last.alive and not _code(search).exempt:
        last = _code(search)
    known = isinstance(last.stage, Codes) and (last.name != "NaN" or _code(search).alive)
    return [last.stage.pairs[index] for index in last.alive] if known and isinstance(last.stage, Codes) else []


def _is_codec(search: Quantizing, codec: Codec) -> bool:
    """True for a row that gives the codes of one of those that are left to everything."""
    scheme = search.layout.scheme
    nan = bool(search.stages[-1].alive)  # a rule for NaN that is not known is none that a row must have
    probe = np.concatenate([np.arange(0, 2**32, 2**17, dtype=np.uint64).astype(np.uint32), _QUARTERS, _EDGES])
    probe = probe if nan else probe[(probe & 0x7FFFFFFF) <= 0x7F800000]
    try:
        own = encode_bits(probe, scheme.value, scheme.table, codec)
        return any(
            np.array_equal(own, encode_bits(probe, scheme.value, scheme.table, way.codec)) for _, way in _pairs(search)
        )
    except QuantspecError:
        return False


_QUARTERS = (np.arange(-1100, 1100, dtype=np.float32) / 8).view(np.uint32)
_EDGES = np.array([0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 0x00000001, 0x80000001], np.uint32)
