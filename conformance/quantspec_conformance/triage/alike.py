"""Whose bits the wrong ones are: the law is asked again under every other preset, recipe, codec or container.

Nothing is guessed: a name is given only where every wrong entry that is known, and the number of wrong ones, are the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import PRESETS
from quantspec.recipes import CODECS, CONTAINERS, RECIPES

from ..implementations.law import tell
from ..protocol.messages import Ok
from ..suite.case import Case
from ..suite.outcome import CaseResult, SuiteMismatch, answer_digest

__all__ = ["alike"]

#: Names of one kind that are listed, and elements of a case for which others are tried at all.
MOST_NAMES, MOST_ELEMENTS = 4, 1 << 14
#: Operations -> the policies that they take.
TAKES = {
    **dict.fromkeys(("quantize", "dequantize"), ("recipe", "codec")),
    **dict.fromkeys(("encode", "decode"), ("codec",)),
    **dict.fromkeys(("pack", "unpack", "to_bytes", "split"), ("container",)),
}
ROWS: dict[str, Mapping[str, Any]] = {"recipe": RECIPES, "codec": CODECS, "container": CONTAINERS}
WHOLE = "in the whole answer"
Patterns = npt.NDArray[Any]


def alike(case: Case, result: CaseResult) -> tuple[str, ...]:
    """The presets, recipes, codecs or containers that give the bits that came, a line a kind."""
    mismatch = result.mismatch
    if mismatch is None or mismatch.kind != "bits" or not mismatch.first or case.elements > MOST_ELEMENTS:
        return ()
    with np.errstate(all="ignore"):
        return tuple(_policy_lines(case, result, mismatch))


def _policy_lines(case: Case, result: CaseResult, mismatch: SuiteMismatch) -> list[str]:
    """Other rows that give the bits, a line a kind; where some give the whole answer, those alone."""
    found: dict[str, dict[str, list[str]]] = {}
    known: set[str] = set()
    for kind, name, words in _other_policies(case):
        far = "" if kind != "preset" and words[kind] in known else _answers_alike(case, result, mismatch, words)
        if far:
            found.setdefault(far, {}).setdefault(kind, []).append(name)
            known |= {words["recipe"]} if kind == "preset" else set()
    far = WHOLE if WHOLE in found else next(iter(found), "")
    return [f"{kind}{'s' * (len(names) > 1)} {_listed(names)}, {far}" for kind, names in found.get(far, {}).items()]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _how_far(mismatch: SuiteMismatch) -> str:
    """What was compared. All of a part is known where all of its wrong entries are."""
    if mismatch.count <= len(mismatch.first):
        return f"in every entry of {mismatch.part}"
    return (
        f"in the first {len(mismatch.first)} wrong entries of {mismatch.part}, and {mismatch.count} are wrong there too"
    )


def _same(case: Case, mismatch: SuiteMismatch, patterns: Patterns) -> bool:
    """True where a part has the bits that came, as far as they are known: where it is wrong, and with what."""
    due = np.array(case.outputs[mismatch.part].patterns, np.uint64)
    flat = patterns.reshape(-1).astype(np.uint64)
    known = all(flat[each.flat] == each.actual for each in mismatch.first)
    return known and flat.shape == due.shape and int((flat != due).sum()) == mismatch.count


# ---------------------------------------------------------------- other policies


def _other_policies(case: Case) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Other rows for the policies that the operation takes: kind, name, words of the request."""
    takes = TAKES.get(case.op, ())
    own = {axis: case.words.get(axis, "canonical") for axis in takes}
    tried = [own]
    presets = [(row.name, row) for row in PRESETS.values()] if "recipe" in takes else []
    for name, row in presets:
        words = {"recipe": row.recipe.name, "codec": row.codec.name}
        if words != own:
            tried.append(words)
            yield "preset", name, words
    for axis in takes:
        for name in ROWS[axis]:
            words = {**own, axis: name}
            if words not in tried:
                yield axis, name, words


def _answers_alike(case: Case, result: CaseResult, mismatch: SuiteMismatch, words: Mapping[str, str]) -> str:
    """How far the law's answer under other policies is the one that came; "" where it is not."""
    answer = tell(replace(case.request, words={**case.words, **words})).answer
    part = answer.tensors.get(mismatch.part) if isinstance(answer, Ok) else None
    if not isinstance(answer, Ok) or part is None or part.shape != case.outputs[mismatch.part].shape:
        return ""
    if not _same(case, mismatch, np.array(part.patterns, np.uint64)):
        return ""
    whole = result.digest in (answer_digest(answer), answer_digest(Ok(answer.tensors, {})))
    return WHOLE if whole else _how_far(mismatch)
