"""The element of the tensor that goes in which an entry of a result belongs to. A hint where to cut, no more."""

import numpy as np

from quantspec import QuantspecError, Scheme
from quantspec.words import stored_axes, words_shape

from ..compare import Difference
from ..suite.blame import element_of
from ..suite.case import Case
from .frame import Frame, Index, index_at, output_scheme

__all__ = ["place_of"]


def place_of(case: Case, frame: Frame, part: str, difference: Difference) -> Index | None:
    """The element that a differing entry belongs to; None where that is not known."""
    if 0 in frame.shape:
        return None
    if part == "bytes":
        element = _of_byte(frame, difference.flat)
    elif case.op in _BACK:
        element = _turned(case, frame, part, difference.index)
    else:
        element = element_of(case, part, difference.index)
        if element is None and part == "scale_codes":
            element = _first_of(frame.scheme, difference.index)
    if element is None or len(element) != len(frame.shape):
        return None
    return tuple(max(0, min(i, size - 1)) for i, size in zip(element, frame.shape, strict=True))


def _first_of(scheme: Scheme | None, block: Index) -> Index | None:
    """The first element of a block."""
    if scheme is None or scheme.block is None or len(scheme.block.extents) > len(block):
        return None
    return tuple(i * extent for i, extent in zip(block, scheme.extents(len(block)), strict=True))


def _of_byte(frame: Frame, flat: int) -> Index | None:
    """The first element of the word, or of the block scale, that a byte is in. Rule LAY-1."""
    scheme = frame.scheme
    if scheme is None:
        return None
    try:
        words = words_shape(scheme, frame.shape)
    except QuantspecError:
        return None
    count, axes = scheme.store.codes_per_word(scheme.value.bits), stored_axes(scheme, len(frame.shape))
    word = flat // (count * scheme.value.bits // 8)
    if word < int(np.prod(words, dtype=np.int64)) and axes:
        *line, last = index_at(word, words)
        stored = (*line, last * count)
        return tuple(stored[axis] for axis in axes)
    if scheme.block is None:
        return None
    grid = tuple(-(-size // e) for size, e in zip(frame.shape, scheme.extents(len(frame.shape)), strict=True))
    behind = flat - int(np.prod(words, dtype=np.int64)) * (count * scheme.value.bits // 8)
    return _first_of(scheme, index_at(behind // scheme.block.scale.size, grid))


#: Operations that move elements.
_BACK = ("permute", "flip", "slice")


def _turned(case: Case, frame: Frame, part: str, index: Index) -> Index | None:
    """Where an entry of a layout operation's result came from. Rules OPS-2, OPS-3, OPS-6."""
    element = index if part == "codes" else _first_of(output_scheme(case), index)
    if element is None or len(element) != len(frame.shape):
        return None
    try:
        numbers = {name: tuple(map(int, text.split(","))) for name, text in case.words.items() if name in _NUMBERS}
        if case.op == "permute":
            return _permuted(element, numbers["axes"])
        axis = numbers["axis"][0]
        at = numbers["range"][0] + element[axis] if case.op == "slice" else frame.shape[axis] - 1 - element[axis]
    except (KeyError, ValueError, IndexError):
        return None
    return (*element[:axis], at, *element[axis + 1 :]) if axis >= 0 else None


_NUMBERS = ("axes", "axis", "range")


def _permuted(element: Index, axes: Index) -> Index:
    found = [0] * len(element)
    for place, axis in enumerate(axes):
        found[axis] = element[place]
    return tuple(found)
