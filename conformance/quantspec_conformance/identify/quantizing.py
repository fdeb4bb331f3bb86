"""Quantize of one scheme: the ways of each stage of scales, then of the quotient and its code, then of NaN."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from quantspec.amax import AMAX
from quantspec.following import facts_of
from quantspec.rounding import to_float
from quantspec.scales import ScaleType

from .asking import ANSWERED, GIVEN, Asking, Lacking
from .axes import CodecWay, Way, codec_ways, element_ways, nan_ways, scale_ways
from .domains import DOMAINS
from .evidence import Evidence
from .layout import Array, Layout
from .narrowing import Step, agreement, excepted, keep, narrow, splits
from .pool import Pool, element_pool, full, random_pool, scale_pool
from .predictions import NO_NUMBER, Codes, Measured, Scales, effective, quotients

__all__ = ["Quantizing", "StageLeft"]

ROUNDS = 3  #: of drawing further questions where ways are still alike
DRAWN = 96  #: questions of a round
ORDINARY = 12  #: questions of ordinary numbers, before nothing more is asked
ALONE = 8  #: questions that are expected to be refused
TRIED = 6  #: of those that tell ways apart


@dataclass(slots=True)
class StageLeft:
    """A stage and the ways that agree with every answer."""

    name: str
    stage: "Scales | Codes"
    alive: list[int]
    count: int  #: ways that it began with
    exempt: tuple[str, ...] = ()  #: domains in which they need not agree, because no way agrees everywhere


@dataclass(slots=True)
class Quantizing:
    """The search under one scheme."""

    asking: Asking
    seed: int = 0
    path: list[Step] = field(default_factory=list)
    stages: list[StageLeft] = field(default_factory=list)
    evidence: Evidence = field(init=False)
    _based: list[int] = field(default_factory=list)  #: the pairs of codes whose rule for NaN was looked for

    @property
    def layout(self) -> Layout:
        """How questions lie in tensors."""
        return self.asking.layout

    def run(self) -> None:
        """Ask, until one way is left or nothing tells the others apart. Lacking where quantize is not offered."""
        scheme, layout = self.layout.scheme, self.layout
        facts = facts_of(scheme)
        few = layout.levels == 2 or scheme.block is None
        last = scheme.tensor if scheme.block is None else scheme.block.scale
        if last is None:
            raise AssertionError("a scheme has a level")
        self.evidence = Evidence(self.asking, scale_pool(layout, facts, last, self.seed, few=few))
        names = ("tensor", "block") if layout.levels == 2 else ("single",)
        chooses = self._chooses()
        if self._mute():
            return
        if chooses:
            for name in names:
                self._scales(Scales(layout, name, scale_ways(name, scheme, facts), facts))
        self._add_ties(60 if few else 120, self.seed)
        codecs = codec_ways(scheme)
        pairs = [(way, codec) for way in element_ways(scheme, self._kinds()) for codec in codecs]
        self._narrow("code", Codes(layout, pairs, nan=False))
        self._nan()
        self._sweep()
        self._join()
        self._search()
        if (
            self.stages[-1].name == "NaN" and self._based != self.stages[-2].alive
        ):  # other pairs are left than looked at
            self.stages.pop()
            self._nan()
            self._look()
            self._join()

    # ------------------------------------------------------------ scales

    def _chooses(self) -> bool:
        """True where it chooses scales; otherwise they are given from here on. Lacking where it takes no such tensor."""
        start = np.flatnonzero(np.array(self.evidence.pool.families) == "full significands")[:1]
        try:
            self.evidence.ask(start)
        except Lacking as first:
            for self.asking.given in GIVEN:
                self.evidence = Evidence(self.asking, self._given_pool(), self._given_scales)
                try:
                    self.evidence.ask(np.arange(1))
                except Lacking:
                    continue
                return False
            raise first from None
        return True

    def _mute(self) -> bool:
        """True where not one of several ordinary questions is answered."""
        ordinary = np.flatnonzero(np.isin(self.evidence.pool.families, ["full significands", "random"]))
        for question in ordinary[:ORDINARY]:
            if not self.silent:
                return False
            self.evidence.ask(np.array([question]))
        again = self.layout.together and not (self.asking.even or self.asking.dead)
        if self.silent and again:  # some take no odd number of rows
            self.asking.even = True
            self.asking.said.clear()
            self.evidence.forget()
            return self._mute()
        return self.silent

    def _given_pool(self) -> Pool:
        """Questions for who is given scales: specials first of all, ties come later."""
        random = np.random.default_rng(self.seed)
        bits = full(random, 24 * self.layout.blocks * self.layout.size, -10, 4)
        bits = bits.reshape(24, self.layout.blocks, self.layout.size)
        for row, special in enumerate((0x7FC00000, 0xFFC00000, 0x7F800000, 0xFF800000, 0, 0x80000000)):
            bits[row + 1, 0, row % self.layout.size] = special
        return Pool(bits, ["random"] + ["NaN and Inf"] * 6 + ["random"] * 17)

    def _given_scales(self, count: int) -> tuple[Array, Array]:
        """Scale codes about 1: powers of two and full significands."""
        random = np.random.default_rng(self.seed + count)
        scheme = self.layout.scheme

        def drawn(scale: ScaleType | None, shape: tuple[int, ...]) -> Array:
            if scale is None:
                return np.zeros(shape, np.int64)
            one = scale.bias << scale.mantissa_bits
            wide = 6 << scale.mantissa_bits
            codes = random.integers(one - wide, one + wide, shape)
            return np.asarray(np.where(random.random(shape) < 0.1, one, codes), np.int64)

        tensor = drawn(scheme.tensor, (count,))
        scales = drawn(None if scheme.block is None else scheme.block.scale, (count, self.layout.blocks))
        return tensor, scales

    def _scales(self, stage: Scales) -> None:
        self._narrow(stage.stage, stage)
        left = self.stages[-1]
        if not left.alive:
            self._sweep(2)
            self._except(left)
        self.evidence.beliefs[stage.stage] = (stage, self._best(left))

    def _best(self, left: StageLeft) -> int:
        """A way that agrees with everything, or else the one that agrees most often."""
        if left.alive:
            return left.alive[0]
        agrees = agreement(left.stage, range(left.count), self.evidence, self.evidence.answered)
        return int(np.argmax(agrees.sum(axis=1)))

    def _kinds(self) -> Sequence[str]:
        """Kinds of amax that the quotient may look at: those that the scales have left."""
        kinds = [dict(left.stage.label(index))["amax"] for left in self.stages for index in left.alive]
        return list(dict.fromkeys(kinds)) or AMAX

    # ------------------------------------------------------------ codes

    def _narrow(self, name: str, stage: "Scales | Codes") -> None:
        count = len(stage.ways if isinstance(stage, Scales) else stage.pairs)
        alive = narrow(name, stage, list(range(count)), self.evidence, self.path)
        self.stages.append(StageLeft(name, stage, alive, count))

    def _nan(self) -> None:
        """The rule for NaN, of the pairs that are left or the nearest one."""
        left = self.stages[-1]
        if not isinstance(left.stage, Codes):
            raise AssertionError("codes come before NaN")
        chosen = left.alive or [self._best(left)]
        self._based = list(left.alive)
        pairs: list[tuple[Way, CodecWay]] = []
        for way, codec in (left.stage.pairs[index] for index in chosen):
            for nan in nan_ways(self.layout.scheme, codec.codec):
                pairs.append((way, CodecWay(nan.codec, (*codec.ways, *nan.ways))))
        self._narrow("NaN", Codes(self.layout, pairs, nan=True))

    def _join(self) -> None:
        """One stage of all codes in the place of those of numbers and of NaN, where only together they agree but for domains."""
        nan, code = self.stages[-1], self.stages[-2]
        stage = code.stage
        if nan.name != "NaN" or not isinstance(stage, Codes):
            return
        if all(left.alive and not left.exempt for left in (code, nan)):
            return
        chosen = keep(stage, range(code.count), self.evidence, self.evidence.answered, tuple(DOMAINS))
        pairs = [
            (way, CodecWay(one.codec, (*codec.ways, *one.ways)))
            for way, codec in (stage.pairs[index] for index in chosen)
            for one in nan_ways(self.layout.scheme, codec.codec)
        ]
        whole = StageLeft("joint", Codes(self.layout, pairs, nan=None), [], len(pairs))
        self._except(whole)
        if whole.alive:
            self.stages[-2:] = [whole]

    def _add_ties(self, count: int, seed: int) -> Array:
        """Further questions about codes: blocks of ties under the scales that are believed."""
        layout, random = self.layout, np.random.default_rng(seed + 1)
        amax = full(random, count * layout.blocks).reshape(count, layout.blocks)
        amax[: count // 4] &= np.uint32(0xFFF00000)
        if layout.blocks > 1:
            amax[:, 1:] = _below(random, amax[:, :1], layout.blocks - 1)
        given = self.evidence.given(count) if self.evidence.given is not None else None
        lone = np.zeros((count, layout.blocks, layout.size), np.uint32)
        lone[..., 0] = amax
        pool = element_pool(layout, amax, self._lines(lone, given, seed), seed)
        means = any("absmean" in dict(left.stage.label(i)).values() for left in self.stages for i in left.alive)
        if means and given is None:
            pool = self._settled(pool, amax, seed)
        return self.evidence.add(pool, given)

    def _lines(self, bits: Array, given: tuple[Array, Array] | None, seed: int) -> Array:
        """What to multiply a wanted quotient with, for each block, (count, blocks)."""
        at = Measured(bits)
        tensor, scales = given if given is not None else self.evidence.believed(at)
        found = effective(self.layout, tensor, scales)
        way = self._some_way(seed)
        largest = np.argmax(np.where((bits & 0x7FFFFFFF) < 0x7F800000, bits & 0x7FFFFFFF, 0), axis=-1)[..., np.newaxis]
        x = np.take_along_axis(to_float(bits), largest, -1)[..., 0].astype(np.float64)
        with np.errstate(all="ignore"):
            plus, minus = (
                np.take_along_axis(to_float(quotients(self.layout, way, one, found)), largest, -1)[..., 0]
                for one in (at, at.turned())
            )
            factor = 2 * x / (plus.astype(np.float64) - minus.astype(np.float64))
        return np.where(np.isfinite(factor) & (factor != 0), factor, 1.0)

    def _some_way(self, seed: int) -> Way:
        """A way to form a quotient: one that is left."""
        for left in self.stages:
            if isinstance(left.stage, Codes) and left.alive:
                return left.stage.pairs[left.alive[seed % len(left.alive)]][0]
        own = {
            self.evidence.beliefs[name][0].ways[self.evidence.beliefs[name][1]].rows[0]
            for name in self.evidence.beliefs
        }
        ways = element_ways(self.layout.scheme, self._kinds())
        return next((way for way in ways if own & set(way.rows)), ways[0])

    def _settled(self, pool: Pool, amax: Array, seed: int) -> Pool:
        """Ties again, where a scale depends on every element: a quarter of each block, moved until its scale stays."""
        random = np.random.default_rng(seed + 2)
        bits = full(random, pool.bits.size, -2, 2).reshape(pool.bits.shape)
        chosen = random.random(bits.shape) < 0.25
        for _ in range(16):
            drawn = element_pool(self.layout, amax, self._lines(bits, None, seed), seed).bits
            bits = np.where(chosen, drawn, bits)
        return Pool(np.concatenate([pool.bits, bits]), [*pool.families, *(["ties in means"] * len(bits))])

    # ------------------------------------------------------------ everything

    def _sweep(self, share: int = 1) -> None:
        """Ask what is open, first of all what was asked before, all in one, and let every stage look again."""
        evidence = self.evidence
        asked = np.array(evidence.order[:40], int)
        if share == 1 and len(asked):
            evidence.again(asked[::-1] if self.layout.together else asked[:8])
        left = evidence.open
        random = np.random.default_rng(self.seed + 3)
        left = random.permutation(left)
        most = int(evidence.asking.budget.left * 0.8) // self.layout.blocks
        left = left[: most // share]
        hopeless = self.hopeless(left)
        for question in left[hopeless][:ALONE]:
            evidence.ask(np.array([question]))
        left = left[~hopeless]
        families = np.array(evidence.pool.families)[left]
        for family in dict.fromkeys(families):  # what is refused is refused by the family
            evidence.ask(left[families == family])
        self._look()

    def hopeless(self, which: Array) -> Array:
        """Questions whose scale is no number of its type, as is believed: one by one, or all with them would be refused."""
        evidence, found = self.evidence, np.zeros(len(which), bool)
        for stage, index in evidence.beliefs.values():
            if stage.stage != "block":
                at = evidence.measured.take(which)
                tensor, scales = np.zeros(len(which), np.int64), np.zeros((len(which), self.layout.blocks), np.int64)
                found |= (stage.predict([index], at, tensor, scales)[0] == NO_NUMBER).any(axis=-1)
        return found

    def _look(self) -> None:
        for left in self.stages:
            which = self.evidence.answered
            if not left.exempt:
                left.alive = keep(left.stage, left.alive, self.evidence, which)
            if not left.alive or left.exempt:
                self._except(left)

    def _except(self, left: StageLeft) -> None:
        """The ways that agree everywhere but in a few domains, where none agrees everywhere."""
        left.alive, left.exempt = excepted(left.stage, left.count, self.evidence, self.evidence.answered)

    def _search(self) -> None:
        """Draw further questions for ways that are still alike."""
        for turn in range(ROUNDS):
            open_stages = [left for left in self.stages if len(left.alive) > 1]
            if not open_stages or self.asking.budget.left < self.layout.blocks:
                return
            for left in open_stages:
                self._draw(left, self.seed + 100 + turn)
            self._look()

    def _draw(self, left: StageLeft, seed: int) -> None:
        evidence = self.evidence
        before = len(evidence.pool.bits)
        if isinstance(left.stage, Codes):
            self._add_ties(DRAWN, seed)
        if evidence.given is None:
            evidence.add(random_pool(self.layout, DRAWN, seed))
        which = np.arange(before, len(evidence.pool.bits))
        tensor, scales = evidence.scales(which)
        keys = splits(left.stage, left.alive, evidence.measured.take(which), tensor, scales)
        apart = which[(keys != keys[:1]).any(axis=0)]
        evidence.ask(apart[~self.hopeless(apart)][:TRIED])

    @staticmethod
    def sample(layout: Layout) -> Array:
        """A question, as what an implementation offers is asked for."""
        return np.full((layout.blocks, layout.size), 0x3F800000, np.uint32)

    @property
    def silent(self) -> bool:
        """True where nothing was answered at all."""
        return not (self.evidence.answers.status == ANSWERED).any()


def _below(random: np.random.Generator, amax: Array, count: int) -> Array:
    """Patterns of magnitudes below the largest of a tensor."""
    drop = random.integers(0, 12, (len(amax), count)) << 23
    wide = (amax & 0x7FFFFFFF).astype(np.int64) - drop - random.integers(0, 2**23, drop.shape)
    return np.maximum(wide, 0).astype(np.uint32)
