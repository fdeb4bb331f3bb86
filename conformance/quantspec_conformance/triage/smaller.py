"""Fewer units and fewer elements that are not zero: the steps of shrinking that take something away."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from quantspec.rounding import widen

from ..examples import Tensor
from ..suite.case import Case
from .crop import GRIDS, answered, boxed
from .frame import MAIN, Frame, Index, frame_of
from .probe import Patterns, Search, patterns_of, tensor_of

__all__ = ["cut_units", "drop_elements", "trim"]

Chosen = frozenset[int]
#: Differing elements, and subsets, that are looked at.
MOST_PLACES, MOST_SUBSETS = 8, 512


def cut_units(search: Search) -> None:
    """Down to one unit where that still fails, else to the fewest next to each other that do."""
    frame, places = frame_of(search.case), search.places()
    if frame is None or frame.units <= 1:
        return
    if places:
        one = frame.unit_of(places[0])
        for low, high in _around(frame, one):
            if search.attempt(boxed(search.case, frame, frame.box(low, high))) or _held(search, frame, low, high):
                break
    _halve(search)


def _around(frame: Frame, one: Index) -> list[tuple[Index, Index]]:
    """A unit; it and the one before or behind it; everything up to it."""
    upper = tuple(i + 1 for i in one)
    found = [(one, upper)]
    for axis, size in enumerate(frame.grid):
        if one[axis] > 0:
            found.append((_moved(one, axis, -1), upper))
        if upper[axis] < size:
            found.append((one, _moved(upper, axis, 1)))
    return [*found, ((0,) * len(one), upper)]


def _moved(place: Index, axis: int, by: int) -> Index:
    return (*place[:axis], place[axis] + by, *place[axis + 1 :])


def _held(search: Search, frame: Frame, low: Index, high: Index) -> bool:
    """The same units under the tensor scale of the whole, for quantize on two levels or one for the tensor."""
    scheme, case = frame.scheme, search.case
    if case.op != "quantize" or scheme is None or scheme.tensor is None:
        return False
    outputs = {name: tensor for name, tensor in case.outputs.items() if name != "scale_codes"}
    return search.attempt(boxed(replace(case, outputs=outputs), frame, frame.box(low, high), hold=True))


def _halve(search: Search) -> None:
    """Take units away from either end of each axis, half of them at first, as long as what is left fails."""
    axis, share, spare = 0, 2, search.left // 2
    while search.left > spare:
        frame = frame_of(search.case)
        if frame is None or axis >= len(frame.grid):
            return
        size = frame.grid[axis]
        step = max(size // share, 1)
        zero, top = (0,) * len(frame.grid), frame.grid
        if size > 1 and (
            search.attempt(boxed(search.case, frame, frame.box(zero, _moved(top, axis, -step))))
            or search.attempt(boxed(search.case, frame, frame.box(_moved(zero, axis, step), top)))
        ):
            continue
        axis, share = (axis + 1, 2) if step == 1 or size <= 1 else (axis, share * 2)


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
    single = [frozenset([place]) for place in (*places, *largest, *sorted(kept))]
    pairs = [frozenset([place, other]) for place in (*places, *sorted(kept)) for other in largest]
    triples = [frozenset([place, *largest]) for place in places] if len(largest) > 1 else []
    unique = dict.fromkeys(chosen for chosen in (*single, *pairs, *triples) if len(chosen) < len(kept))
    most = min(MOST_SUBSETS, max(search.room(), 16))
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
    mains = [_only(patterns, chosen) for chosen in subsets]
    room = search.room()
    failing = search.failing(mains[:room]) if room > 1 and len(mains) > 1 else []
    numbers = failing[:few] or range(min(few, len(mains)))
    return any(search.attempt(search.with_main(mains[number])) for number in numbers)


def _bisect(search: Search) -> None:
    """Delta debugging over the entries that are not zero: each part alone, each rest, ever finer."""
    parts = 2
    while search.left > 2:
        main = search.main
        if main is None:
            return
        patterns = patterns_of(main)
        kept = np.flatnonzero(patterns).tolist()
        if len(kept) < 2:
            return
        cut = [frozenset(part.tolist()) for part in np.array_split(kept, min(parts, len(kept)))]
        rests = [frozenset(kept) - part for part in cut] if len(cut) > 2 else []
        if _first(search, patterns, [*cut, *rests], few=4 if search.room() > 1 else len(cut)):
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
        search.attempt(boxed(search.case, frame, tuple(slice(0, end) for end in ends)))


def _reshaped(search: Search, patterns: Patterns, frame: Frame) -> Case | None:
    """The case with a main tensor of another shape, and its scales on a grid of one."""
    case = search.case
    inputs = dict(case.inputs)
    for name in GRIDS if frame.scheme is not None else ():
        if name in inputs and len(inputs[name].patterns) == 1:
            inputs[name] = Tensor(inputs[name].dtype, (1,) * patterns.ndim, inputs[name].patterns)
    inputs[MAIN[case.op]] = tensor_of(case.inputs[MAIN[case.op]].dtype, patterns)
    return answered(case, case.words, inputs)
