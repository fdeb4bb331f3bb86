"""Evidence: the questions of one scheme, what was answered, and what is believed of the scales of those still open."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .asking import ANSWERED, NOT_ASKED, REFUSED, Answers, Asking
from .layout import Array, Layout
from .pool import Pool
from .predictions import Measured, Scales

__all__ = ["Evidence"]


@dataclass(slots=True)
class Evidence:
    """Questions and answers. `beliefs`: for each stage of scales the way that is taken for true."""

    asking: Asking
    pool: Pool
    given: Callable[[int], tuple[Array, Array]] | None = None  #: scales of so many questions, where they are given
    beliefs: dict[str, tuple[Scales, int]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  #: the questions asked, the first first
    answers: Answers = field(init=False)
    measured: Measured = field(init=False)
    changed: list[int] = field(default_factory=list)  #: questions that got other bits the second time
    lost: list[int] = field(default_factory=list)  #: questions that were answered, and refused the second time
    _given: tuple[Array, Array] | None = None

    def __post_init__(self) -> None:
        self.answers = Answers.none(len(self.pool.bits), self.layout)
        self.measured = Measured(self.pool.bits)
        if self.given is not None:
            self._given = self.given(len(self.pool.bits))

    @property
    def layout(self) -> Layout:
        """How questions lie in tensors."""
        return self.asking.layout

    def add(self, pool: Pool, given: tuple[Array, Array] | None = None) -> Array:
        """Further questions; their numbers."""
        first = len(self.pool.bits)
        self.pool = self.pool.joined(pool)
        self.answers = self.answers.joined(Answers.none(len(pool.bits), self.layout))
        self.measured = Measured(self.pool.bits)
        if self._given is not None and self.given is not None:
            more = self.given(len(pool.bits)) if given is None else given
            self._given = (np.concatenate([self._given[0], more[0]]), np.concatenate([self._given[1], more[1]]))
        return np.arange(first, len(self.pool.bits))

    def ask(self, which: Array) -> None:
        """Ask the questions that are still open."""
        which = which[self.answers.status[which] == NOT_ASKED]
        if len(which):
            found = self._put(which)
            self.answers.put(which, found)
            self.order += [int(index) for index in which[found.status != NOT_ASKED]]

    def forget(self) -> None:
        """Take what was asked for open again."""
        self.answers, self.order = Answers.none(len(self.pool.bits), self.layout), []

    def again(self, which: Array) -> None:
        """Ask answered questions once more: other bits are noted, and answers where there was none, or none where one was."""
        found, before = self._put(which), self.answers.at(which)
        differ = found.differ(before) & (found.status != NOT_ASKED)
        lost = differ & (before.status == ANSWERED) & (found.status == REFUSED)
        self.changed += [int(index) for index in which[differ & ~lost]]
        self.lost += [int(index) for index in which[lost]]

    def _put(self, which: Array) -> Answers:
        tensor, scales = (None, None) if self._given is None else (self._given[0][which], self._given[1][which])
        return self.asking.ask(self.pool.bits[which], scales, tensor)

    @property
    def open(self) -> Array:
        """Questions that were not asked."""
        return np.flatnonzero(self.answers.status == NOT_ASKED)

    @property
    def answered(self) -> Array:
        """Questions with an answer, in the order of asking."""
        order = np.array(self.order, int)
        return np.asarray(order[self.answers.status[order] == ANSWERED])

    def scales(self, which: Array) -> tuple[Array, Array]:
        """Tensor and block scales of questions: as answered, or else as believed or given."""
        tensor, scales = self.answers.tensor[which].copy(), self.answers.scales[which].copy()
        asked = self.answers.status[which] == ANSWERED
        if self._given is not None:
            given = self._given[0][which], self._given[1][which]
            return np.where(asked, tensor, given[0]), np.where(asked[:, np.newaxis], scales, given[1])
        if asked.all():
            return tensor, scales
        believed = self.believed(self.measured.take(which))
        return np.where(asked, tensor, believed[0]), np.where(asked[:, np.newaxis], scales, believed[1])

    def believed(self, at: Measured) -> tuple[Array, Array]:
        """Tensor and block scales that the believed ways give to any blocks."""
        count, blocks, _ = at.bits.shape
        tensor, scales = np.zeros(count, np.int64), np.zeros((count, blocks), np.int64)
        for stage in ("tensor", "single", "block"):
            if stage not in self.beliefs:
                continue
            scale, index = self.beliefs[stage]
            found = np.maximum(scale.predict([index], at, tensor, scales)[0], 0)
            if stage == "tensor" or self.layout.scheme.block is None:
                tensor = found[:, 0]
            else:
                scales = found
        return tensor, scales
