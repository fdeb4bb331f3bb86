"""Fewer elements that are not zero, and those next to each other."""

from collections.abc import Sequence

import numpy as np

from quantspec.rounding import widen

from ..examples import Tensor
from ..protocol.messages import Request
from .crop import GRIDS, Patterns, patterns_of, tensor_of
from .frame import MAIN, Frame, frame_of
from .probe import Search
from .side import failing, room

__all__ = ["drop_elements", "trim"]

Chosen = frozenset[int]
#: Differing elements, and subsets, that are looked at.
MOST_PLACES, MOST_SUBSETS = 8, 512
#: Round trips that are left to the steps after this one.
SPARE = 16


def drop_elements(search: Search) -> None:
    """Zero out what the failure does not need: nothing left, the differing ones alone, with the one that sets the scale, fewer."""
    main = search.main
    if main is None:
        return
    patterns = patterns_of(main)
    if _everything(search, patterns):
        return
    kept = frozenset(np.flatnonzero(patterns).tolist())
    chosen = _subsets(search, patterns, kept)
    _first(search, patterns, chosen, few=6)
    _bisect(search)


def _everything(search: Search, patterns: Patterns) -> bool:
    """All zero: zeros themselves fail, or the same entries whatever they hold."""
    return bool(patterns.any()) and search.attempt(search.with_main(np.zeros_like(patterns)), any_rule=True)


def _only(patterns: Patterns, kept: Chosen) -> Patterns:
    """The entries of these places, zero elsewhere."""
    result = np.zeros_like(patterns).reshape(-1)
    places = list(kept)
    result[places] = patterns.reshape(-1)[places]
    return result.reshape(patterns.shape)


def _subsets(search: Search, patterns: Patterns, kept: Chosen) -> list[Chosen]:
    """Small sets of places worth trying, the smallest first: differing ones, the largest, pairs of them, each alone."""
    places = [place for place in _flat_places(search, patterns) if place in kept][:MOST_PLACES]
    largest = [place for place in _largest(search) if place in kept]
    others = sorted(kept)[:MOST_SUBSETS]
    single = [frozenset([place]) for place in (*places, *largest, *others)]
    pairs = [frozenset([place, other]) for place in (*places, *others) for other in largest]
    triples = [frozenset([place, *largest]) for place in places] if len(largest) > 1 else []
    unique = dict.fromkeys(chosen for chosen in (*single, *pairs, *triples) if len(chosen) < len(kept))
    most = min(MOST_SUBSETS, max(room(search), 16))
    return sorted(list(unique)[:most], key=len)


def _flat_places(search: Search, patterns: Patterns) -> list[int]:
    return [
        int(np.ravel_multi_index(place, patterns.shape))
        for place in search.places()
        if len(place) == patterns.ndim and all(i < size for i, size in zip(place, patterns.shape, strict=True))
    ]


def _largest(search: Search) -> list[int]:
    """Where the largest finite magnitudes are: of the tensor, and of the unit that fails. Rule SCL-5."""
    if search.case.op != "quantize":
        return []
    x = widen(search.case.inputs["x"].array()) & np.uint32(0x7FFFFFFF)
    finite = np.where(x < np.uint32(0x7F800000), x, np.uint32(0))
    found = [int(np.argmax(finite))] if finite.size else []
    frame, places = frame_of(search.case), search.places()
    if frame is not None and places and frame.scheme is not None and frame.scheme.block is not None:
        unit = frame.unit_of(places[0])
        inside = np.zeros(finite.shape, bool)
        inside[frame.box(unit, tuple(i + 1 for i in unit))] = True
        found.append(int(np.argmax(np.where(inside, finite + np.uint32(1), np.uint32(0)))))
    return list(dict.fromkeys(found))


def _first(search: Search, patterns: Patterns, subsets: Sequence[Chosen], *, few: int) -> bool:
    """Take the first of these sets that fails: all asked at once where they can lie side by side, else a few alone."""
    fit = room(search)
    several = fit > 1 and len(subsets) > 1
    hints = failing(search, [_only(patterns, chosen) for chosen in subsets[:fit]]) if several else []
    numbers = hints[:few] or range(min(few, len(subsets)))
    return any(search.attempt(search.with_main(_only(patterns, subsets[number]))) for number in numbers)


def _bisect(search: Search) -> None:
    """Delta debugging over the entries that are not zero: each part alone, each rest, ever finer."""
    parts = 2
    while search.left > SPARE:
        main = search.main
        if main is None:
            return
        patterns = patterns_of(main)
        kept = np.flatnonzero(patterns).tolist()
        if len(kept) < 2:
            return
        cut = [frozenset(part.tolist()) for part in np.array_split(kept, min(parts, len(kept)))]
        rests = [frozenset(kept) - part for part in cut] if len(cut) > 2 else []
        if _first(search, patterns, [*cut, *rests], few=4 if room(search) > 1 else len(cut)):
            parts = 2
        elif parts >= len(kept):
            return
        else:
            parts *= 2


def trim(search: Search) -> None:
    """A shorter tensor: the entries that are not zero next to each other, or no more than up to the last of them."""
    frame, main = frame_of(search.case), search.main
    if frame is None or main is None or main.shape != frame.shape or not frame.shape:
        return
    patterns = patterns_of(main)
    kept = patterns.reshape(-1)[np.flatnonzero(patterns)]
    if not len(kept):
        kept = np.zeros(1, patterns.dtype)
    if frame.units == 1 and len(kept) < patterns.size and (frame.scheme is None or len(kept) <= frame.extents[-1]):
        for shape in dict.fromkeys([(len(kept),), (*(1,) * (patterns.ndim - 1), len(kept))]):
            if search.attempt(_reshaped(search, kept.reshape(shape), frame)):
                return
    places = np.argwhere(patterns) if patterns.any() else np.array(search.places()[:1] or [(0,) * patterns.ndim])
    ends = tuple(int(i) + 1 for i in places.max(axis=0))
    if ends != patterns.shape:
        search.cut(tuple(slice(0, end) for end in ends))


def _reshaped(search: Search, patterns: Patterns, frame: Frame) -> Request:
    """The request with a main tensor of another shape, and its scales on a grid of one."""
    case = search.case
    inputs = dict(case.inputs)
    for name in GRIDS if frame.scheme is not None else ():
        if name in inputs and len(inputs[name].patterns) == 1:
            inputs[name] = Tensor(inputs[name].dtype, (1,) * patterns.ndim, inputs[name].patterns)
    inputs[MAIN[case.op]] = tensor_of(case.inputs[MAIN[case.op]].dtype, patterns)
    return Request(case.op, case.words, inputs)
