"""A smaller tensor: the unit that fails, or the fewest next to each other; in the end nothing that can go from either end."""

from .crop import Box
from .frame import Frame, Index, frame_of
from .probe import Search

__all__ = ["cut_units", "settle"]


def cut_units(search: Search) -> None:
    """Down to one unit where that still fails, else to few next to each other that do."""
    frame, places = frame_of(search.case), search.places()
    if frame is None or frame.units <= 1:
        return
    for low, high in _around(frame, frame.unit_of(places[0])) if places else ():
        box = frame.box(low, high)
        if search.cut(box) or _held(search, frame, box):
            return
    spare = search.left // 2
    while search.left > spare and any(_halved(search, axis) for axis in range(len(frame.grid))):
        pass


def _around(frame: Frame, one: Index) -> list[tuple[Index, Index]]:
    """A unit; it and the one before or behind it; everything up to it, along all axes, then along one.

    What is wrong at one place of memory, whatever lies there, needs all that is stored before that place.
    """
    upper, zero = tuple(i + 1 for i in one), (0,) * len(one)
    found = [(one, upper)]
    for axis, size in enumerate(frame.grid):
        if one[axis] > 0:
            found.append((_moved(one, axis, -1), upper))
        if upper[axis] < size:
            found.append((one, _moved(upper, axis, 1)))
    found.append((zero, upper))
    found += [(zero, (*frame.grid[:axis], upper[axis], *frame.grid[axis + 1 :])) for axis in range(len(one))]
    return [(low, high) for low, high in dict.fromkeys(found) if (low, high) != (zero, frame.grid)]


def _moved(place: Index, axis: int, by: int) -> Index:
    return (*place[:axis], place[axis] + by, *place[axis + 1 :])


def _held(search: Search, frame: Frame, box: Box) -> bool:
    """The same units under the tensor scale of the whole, for quantize on two levels or one for the tensor."""
    scheme, case = frame.scheme, search.case
    if case.op != "quantize" or scheme is None or scheme.tensor is None:
        return False
    return search.cut(box, hold=True)


def settle(search: Search) -> None:
    """Until no axis can lose the least that can go, or half of it, from either end: a local minimum.

    The least first, innermost axes first: what was cut before leaves little, and each of these may be as large as the case.
    """
    taken = True
    while taken and search.left > 0:
        frame = frame_of(search.case)
        axes = range(0 if frame is None else len(frame.shape))
        lessened = [_lessened(search, axis) for axis in reversed(axes)]
        taken = True in lessened or any(_halved(search, axis) for axis in axes)


def _halved(search: Search, axis: int) -> bool:
    """Half of an axis, time and again; whole blocks as long as there are two. True where anything went."""
    taken = False
    while True:
        frame = frame_of(search.case)
        if frame is None or axis >= len(frame.shape) or frame.shape[axis] <= 1 or search.left <= 0:
            return taken
        size, extent = frame.shape[axis], _step(frame, axis)
        half = -(-size // extent) // 2 * extent
        if not (_end(search, frame, axis, size - half) or _start(search, frame, axis, half)):
            return taken
        taken = True


def _lessened(search: Search, axis: int) -> bool:
    """Elements less at the end; whole blocks less at the start, so that blocks stay where they are. One, then ever more."""
    taken = [_more(search, axis, from_end) for from_end in (True, False)]
    return any(taken)


def _more(search: Search, axis: int, from_end: bool) -> bool:
    """Take away one, then twice as many as long as that goes, then half as many: in the end not even one."""
    if not _taken(search, axis, 1, from_end):
        return False
    if from_end:
        _taken(search, axis, _rest(search, axis), from_end)
    by = 2
    while _taken(search, axis, by, from_end):
        by *= 2
    while by > 1:
        by //= 2
        _taken(search, axis, by, from_end)
    return True


def _rest(search: Search, axis: int) -> int:
    """All elements of the last block but one: a fault of the block, of its scale above all, needs no more of it."""
    frame = frame_of(search.case)
    return 0 if frame is None else (frame.shape[axis] - 1) % frame.block[axis]


def _taken(search: Search, axis: int, by: int, from_end: bool) -> bool:
    frame = frame_of(search.case)
    if frame is None or axis >= len(frame.shape):
        return False
    if from_end:
        return _end(search, frame, axis, frame.shape[axis] - by)
    return _start(search, frame, axis, by * _step(frame, axis))


def _step(frame: Frame, axis: int) -> int:
    """What may go from the start of an axis: blocks as long as there are two, then elements."""
    return frame.block[axis] if frame.shape[axis] > frame.block[axis] else 1


def _end(search: Search, frame: Frame, axis: int, stop: int) -> bool:
    """Take the elements of an axis before `stop`."""
    return stop > 0 and search.cut(_box(frame, axis, slice(0, stop)))


def _start(search: Search, frame: Frame, axis: int, start: int) -> bool:
    """Take the elements of an axis from `start` on."""
    return start < frame.shape[axis] and search.cut(_box(frame, axis, slice(start, frame.shape[axis])))


def _box(frame: Frame, axis: int, part: slice) -> Box:
    whole = [slice(0, size) for size in frame.shape]
    return (*whole[:axis], part, *whole[axis + 1 :])
