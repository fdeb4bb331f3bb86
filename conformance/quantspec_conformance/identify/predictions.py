"""What every way would answer to questions, by the reference: scales from x, codes from x and the scales that were answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from quantspec import QuantspecError
from quantspec.amax import amax_of
from quantspec.codecs import Codec
from quantspec.following import Following, facts_of
from quantspec.interpreter import Facts, run
from quantspec.quantize import effective_scale
from quantspec.rounding import INF, MAGNITUDE, is_nan, to_bits
from quantspec.scales import ScaleType, decode_codes, round_up
from quantspec.values import encode_bits

from .axes import CodecWay, Way, recipe_of
from .layout import Array, Layout

__all__ = ["ANY", "NO_NUMBER", "Codes", "Measured", "Scales", "effective", "quotients"]

ANY = -1  #: nothing is predicted
NO_NUMBER = -2  #: the scale type has no such number: the implementation could not answer


@dataclass(slots=True)
class Measured:
    """Questions, with every kind of amax of them that was wanted."""

    bits: Array  #: (count, blocks, size)
    _found: dict[tuple[str, str], Array] = field(default_factory=dict)
    _whole: "tuple[Measured, Array] | None" = None

    def take(self, which: Array) -> "Measured":
        """Some of the questions."""
        return Measured(self.bits[which], {}, (self, which))

    def turned(self) -> "Measured":
        """The same numbers with the other sign, measured as these are."""
        return Measured(self.bits ^ np.uint32(0x80000000), self._found, (self, np.arange(len(self.bits))))

    def amax(self, name: str, kind: str) -> Array:
        """A, shape (count, 1), or a, shape (count, blocks)."""
        key = (name, kind)
        if key not in self._found and self._whole is not None:
            whole, which = self._whole
            self._found[key] = whole.amax(name, kind)[which]
        if key not in self._found:
            count, blocks, size = self.bits.shape
            width = size if name == "a" else blocks * size
            lines = self.bits.reshape(-1, width)
            self._found[key] = amax_of(lines, (1, width), kind).reshape(count, -1)
        return self._found[key]


def stored(number: Array, scale: ScaleType) -> Array:
    """The code of each number, one for every NaN; NO_NUMBER where the type lacks it. Rule POL-9."""
    bits = to_bits(np.ascontiguousarray(number).reshape(number.shape))
    magnitude = bits & MAGNITUDE
    codes, _ = round_up(magnitude, scale)
    if scale.infinity_code is not None:
        codes = np.where(magnitude == INF, scale.code_dtype.type(scale.infinity_code), codes)
    codes = codes | np.where(bits != magnitude, scale.sign_bit, 0).astype(scale.code_dtype)
    codes = np.where(magnitude > INF, scale.code_dtype.type(scale.nan_code), codes)
    kept = (to_bits(decode_codes(codes, scale)) == bits) | (magnitude > INF)
    return np.where(kept, codes.astype(np.int64), NO_NUMBER)


def _numbers(codes: Array, scale: ScaleType) -> Array:
    return np.asarray(decode_codes(codes.astype(scale.code_dtype), scale))


@dataclass(frozen=True, slots=True)
class Scales:
    """A stage that chooses a scale, `tensor`, `block` or `single`, along its ways."""

    layout: Layout
    stage: str
    ways: Sequence[Way]
    facts: Facts

    @property
    def scale(self) -> ScaleType:
        """The type of the scale."""
        scheme = self.layout.scheme
        level = scheme.block.scale if self.stage != "tensor" and scheme.block is not None else scheme.tensor
        if level is None:
            raise AssertionError("a stage has a level")
        return level

    def predict(self, which: Sequence[int], at: Measured, tensor: Array, scales: Array) -> Array:
        """Codes of shape (ways, count, blocks or 1)."""
        small = "A" if self.stage == "tensor" else "a"
        rows = []
        for way in (self.ways[index] for index in which):
            amax = at.amax(small, way.amax)
            names = {small: amax}
            if self.stage == "single":
                names |= {
                    "g": np.ones(amax.shape, np.float32),
                    "A": np.broadcast_to(at.amax("A", way.amax), amax.shape),
                }
            if self.stage == "block" and self.layout.scheme.tensor is not None:
                names["A"] = np.broadcast_to(at.amax("A", way.amax), amax.shape)
                g = _numbers(tensor, self.layout.scheme.tensor)
                names["g"] = np.broadcast_to(g[:, np.newaxis], amax.shape)
            number = run(way.program, names, self.facts, self.scale).result
            rows.append(stored(np.broadcast_to(number, amax.shape), self.scale))
        return np.stack(rows)

    def observed(self, tensor: Array, scales: Array, codes: Array) -> Array:
        """What was answered, in the shape of a prediction."""
        alone = self.stage == "tensor" or self.layout.scheme.block is None
        return tensor[:, np.newaxis] if alone else scales

    def label(self, index: int) -> tuple[tuple[str, str], ...]:
        """Axes and ways of one of the ways."""
        way = self.ways[index]
        name = {"tensor": "tensor scale", "block": "block scale", "single": "scale"}[self.stage]
        return (("amax", way.amax), (name, way.label))


def effective(layout: Layout, tensor: Array, scales: Array) -> dict[str, Array]:
    """g, b and s of questions: shape (count, blocks)."""
    scheme = layout.scheme
    found: dict[str, Array] = {}
    if scheme.tensor is not None:
        found["g"] = np.broadcast_to(_numbers(tensor, scheme.tensor)[:, np.newaxis], scales.shape)
    if scheme.block is not None:
        found["b"] = _numbers(scales, scheme.block.scale)
    if scheme.tensor is not None and scheme.block is not None:
        rows = [
            effective_scale(
                scheme, row.astype(scheme.block.scale.code_dtype), np.asarray(code).astype(scheme.tensor.code_dtype)
            )
            for row, code in zip(scales, tensor, strict=True)
        ]
        found["s"] = np.stack(rows) if rows else np.zeros(scales.shape, np.float32)
    else:
        found["s"] = found["b"] if scheme.block is not None else found["g"]
    return found


def quotients(layout: Layout, way: Way, at: Measured, found: dict[str, Array]) -> Array:
    """q of each element as patterns, shape (count, blocks, size)."""
    shape = at.bits.shape
    used = {name for step in way.program for name in step.args}
    following = Following(layout.scheme, recipe_of(way), facts_of(layout.scheme), {})
    for name in ("g", "b", "s"):
        if name in found and name in used | {"s"}:
            following.names[name] = _spread(found[name], shape)
    for name in ("A", "a"):
        if name in used:
            following.names[name] = _spread(at.amax(name, way.amax or "finite"), shape)
    return np.asarray(following.quotient(at.bits.reshape(-1, shape[-1]), lambda scale: scale)).reshape(shape)


def _spread(numbers: Array, shape: tuple[int, ...]) -> Array:
    return np.array(np.broadcast_to(numbers[..., np.newaxis], shape)).reshape(-1, shape[-1])


@dataclass(frozen=True, slots=True)
class Codes:
    """The stage that makes codes: every way to form a quotient under every codec.

    `nan`: NaN quotients alone, all others, or None: all of them.
    """

    layout: Layout
    pairs: Sequence[tuple[Way, CodecWay]]
    nan: bool | None

    def predict(self, which: Sequence[int], at: Measured, tensor: Array, scales: Array) -> Array:
        """Codes of shape (pairs, count, blocks * size); ANY where nothing is predicted."""
        scheme = self.layout.scheme
        found = effective(self.layout, tensor, scales)
        grouped: dict[Way, list[int]] = {}
        for place, index in enumerate(which):
            grouped.setdefault(self.pairs[index][0], []).append(place)
        count = len(at.bits)
        out = np.full((len(which), count, at.bits[0].size if count else 0), ANY, np.int16)
        for way, places in grouped.items():
            q = quotients(self.layout, way, at, found).reshape(count, -1)
            unique, inverse = np.unique(q, return_inverse=True)
            silent = np.zeros(unique.shape, bool) if self.nan is None else is_nan(unique) != self.nan
            for place in places:
                codec: Codec = self.pairs[which[place]][1].codec
                try:
                    codes = encode_bits(unique, scheme.value, scheme.table, codec).astype(np.int16)
                except QuantspecError:
                    codes = np.full(unique.shape, NO_NUMBER, np.int16)
                out[place] = np.where(silent, np.int16(ANY), codes)[inverse.reshape(q.shape)]
        return out

    def observed(self, tensor: Array, scales: Array, codes: Array) -> Array:
        """What was answered, in the shape of a prediction."""
        return codes.reshape(len(codes), -1).astype(np.int16)

    def label(self, index: int) -> tuple[tuple[str, str], ...]:
        """Axes and ways of one of the pairs."""
        way, codec = self.pairs[index]
        looked = (("amax of the element", way.amax),) if way.amax else ()
        return (("element", way.label), *looked, *codec.ways)
