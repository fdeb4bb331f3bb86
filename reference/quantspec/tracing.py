"""Which rule fixed which element: rule citations that cost nothing until somebody traces.

`@rule("SCL-6")` on a function and `note("QNT-4", mask)` in its body are the citations. Inside `with trace() as t:` each
is recorded with the elements it concerned; `t.rules(index)` then lists, in order, the rules that fixed one element.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

__all__ = ["Trace", "note", "on_grid", "rule", "trace"]

P = ParamSpec("P")
R = TypeVar("R")
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_active: ContextVar["Trace | None"] = ContextVar("quantspec_trace", default=None)


@dataclass(frozen=True, slots=True)
class Event:
    """One firing: the rule, the elements it concerned (None: all), the extents of the blocks the mask counts, its origin."""

    rule: str
    mask: Mask | None
    extents: tuple[int, ...]
    origin: tuple[int, ...]


@dataclass(slots=True)
class Trace:
    """The rules that fired while the trace was open."""

    events: list[Event] = field(default_factory=list)
    extents: tuple[int, ...] = ()
    origin: tuple[int, ...] = ()

    def rules(self, index: tuple[int, ...] | None = None) -> tuple[str, ...]:
        """Ids of the rules that fired for the element at `index` (for any element where None), first firing first."""
        fired: dict[str, None] = {}
        for event in self.events:
            if _concerns(event, index):
                fired.setdefault(event.rule)
        return tuple(fired)


def _concerns(event: Event, index: tuple[int, ...] | None) -> bool:
    if event.mask is None:
        return True
    if index is None or event.mask.ndim == 0:
        return bool(event.mask.any())
    extents = event.extents or (1,) * len(index)
    origin = event.origin or (0,) * len(index)
    if len(extents) != len(index) or event.mask.ndim != len(index):
        return bool(event.mask.any())
    block = tuple((i - o) // e for i, o, e in zip(index, origin, extents, strict=True))
    inside = all(0 <= i < size for i, size in zip(block, event.mask.shape, strict=True))
    return inside and bool(event.mask[block])


@contextmanager
def trace() -> Iterator[Trace]:
    """Record every rule that fires in the block (in this thread or task only).

    >>> import quantspec as qs
    >>> with qs.trace() as t:
    ...     codes = qs.encode([1.75, 9.0], "e2m1")
    >>> t.rules((0,)), t.rules((1,))
    (('SCH-2', 'QNT-1', 'VAL-4', 'VAL-2', 'VAL-6', 'VAL-7'), ('SCH-2', 'QNT-1', 'VAL-4', 'VAL-2', 'VAL-6', 'VAL-8'))
    """
    opened = Trace()
    token = _active.set(opened)
    try:
        yield opened
    finally:
        _active.reset(token)


@contextmanager
def on_tile(tile: tuple[slice, ...]) -> Iterator[None]:
    """While open, masks given to `note` cover this part of the tensor."""
    current = _active.get()
    if current is None:
        yield
        return
    outer, current.origin = current.origin, tuple(part.start for part in tile)
    try:
        yield
    finally:
        current.origin = outer


@contextmanager
def on_grid(extents: tuple[int, ...]) -> Iterator[None]:
    """While open, masks given to `note` count blocks of these extents instead of elements."""
    current = _active.get()
    if current is None:
        yield
        return
    outer, current.extents = current.extents, extents
    try:
        yield
    finally:
        current.extents = outer


def note(rule_id: str, mask: "Mask | Callable[[], Mask] | None" = None) -> None:
    """Record that `rule_id` fixed the elements of `mask` (a function is called only when tracing)."""
    current = _active.get()
    if current is not None:
        found = mask() if callable(mask) else mask
        mask_copy = None if found is None else np.array(found, bool)
        current.events.append(Event(rule_id, mask_copy, current.extents, current.origin))


def rule(*ids: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cite the rules that a function as a whole implements; they fire, for all elements, when it is called."""

    def cite(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def cited(*args: P.args, **kwargs: P.kwargs) -> R:
            if _active.get() is not None:
                for rule_id in ids:
                    note(rule_id)
            return function(*args, **kwargs)

        return cited

    return cite
