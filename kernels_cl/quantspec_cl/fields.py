"""Fields: where the numbers of a tensor lie in memory, and where an operation's result takes each of its own from.

Whole numbers only; no element is looked at. Number p of an array is field p % fields of word p // fields: see operations.cl.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from quantspec import Scheme

from .geometry import Shape, lines_of, stored_order, strides_of, walk_of

__all__ = ["Fields", "Move", "View"]


@dataclass(frozen=True, slots=True)
class Fields:
    """How the numbers of a tensor lie in words, line after line."""

    size: int  #: bytes of a word in memory
    width: int  #: bits of a number
    fields: int  #: numbers a word
    shape: Shape  #: the tensor's
    order: Shape  #: its axes as they are stored, the lines' axis last
    pitch: int  #: fields from one line to the next
    array_shape: Shape  #: of the array in which they are

    @classmethod
    def of_numbers(cls, shape: Shape, size: int) -> "Fields":
        """Of numbers of so many bytes in tensor order: codes, scale codes."""
        return cls(size, 8 * size, 1, shape, tuple(range(len(shape))), shape[-1] if shape else 1, shape)

    @classmethod
    def of_words(cls, scheme: Scheme, shape: Shape) -> "Fields":
        """Of packed codes. Rules PAK-1 to PAK-6."""
        lines = lines_of(scheme, shape)
        pitch = lines.words * lines.fields
        order = stored_order(scheme, len(shape))
        return cls(lines.word_size, lines.width, lines.fields, shape, order, pitch, lines.words_shape)

    @property
    def words(self) -> int:
        """Words of the whole array."""
        return math.prod(self.shape[axis] for axis in self.order[:-1]) * (self.pitch // self.fields)

    @property
    def strides(self) -> Shape:
        """Fields from one index to the next along each axis of the tensor."""
        stored = strides_of((*(self.shape[axis] for axis in self.order[:-1]), self.pitch))
        strides = [0] * len(self.order)
        for axis, stride in zip(self.order, stored, strict=False):
            strides[axis] = stride
        return tuple(strides)

    @property
    def dense(self) -> bool:
        """True where no bit of a word is outside its fields."""
        return self.fields * self.width == 8 * self.size

    @property
    def padded(self) -> bool:
        """True where some bits of the array hold no number."""
        return not self.dense or self.words * self.fields != math.prod(self.shape)

    @property
    def whole(self) -> bool:
        """True where the array is whole words of four bytes, without a bit that is in no field."""
        return self.dense and self.width <= 32 and self.words * self.size % 4 == 0

    @property
    def wide(self) -> "Fields":
        """The same numbers at the same p, in words of four bytes; the array is whole ones."""
        return replace(self, size=4, fields=32 // self.width)

    def widened(self, source: "Fields") -> "tuple[Fields, Fields]":
        """This result and its source in words of four bytes, where memory allows it, and the result's lines begin with one."""
        fits = self.whole and self.pitch % (32 // self.width) == 0
        if self.width == source.width:
            return (self.wide, source.wide) if fits and source.whole else (self, source)
        return self.wide if fits else self, source.wide if source.whole else source


@dataclass(frozen=True, slots=True)
class View:
    """Which element of a source each element of a result is: linear in its indices, but for picked ones."""

    shape: Shape  #: of the result
    axes: tuple[int | None, ...]  #: of the source, for each of the result's; None: the same for every index
    origin: Shape  #: index in the source of the result's first element
    back: int | None = None  #: the result's axis that runs backwards
    picked: tuple[int, Shape] | None = None  #: an axis of the result whose indices are picked, and what they are
    flat: bool = False  #: the elements in row-major order; nothing else holds then

    @classmethod
    def of(cls, shape: Shape) -> "View":
        """The source as it is."""
        return cls(shape, tuple(range(len(shape))), (0,) * len(shape))

    def permuted(self, order: Sequence[int]) -> "View":
        """Axis i is axis order[i]."""
        return replace(self, shape=tuple(self.shape[axis] for axis in order), axes=tuple(order))

    def cut(self, axis: int, start: int, count: int) -> "View":
        """So many indices of an axis."""
        shape, origin = list(self.shape), list(self.origin)
        shape[axis], origin[axis] = count, start
        return replace(self, shape=tuple(shape), origin=tuple(origin))

    def dropped(self, axis: int, index: int) -> "View":
        """One index of an axis, the axis left out."""
        one = self.cut(axis, index, 1)
        kept = [i for i in range(len(self.shape)) if i != axis]
        return replace(one, shape=tuple(self.shape[i] for i in kept), axes=tuple(kept))

    def reversed(self, axis: int) -> "View":
        """An axis in reverse."""
        origin = list(self.origin)
        origin[axis] = max(self.shape[axis] - 1, 0)
        return replace(self, origin=tuple(origin), back=axis)

    def spread(self, shape: Shape) -> "View":
        """Axes of size 1 repeated, new ones before them."""
        added = len(shape) - len(self.shape)
        axes = [axis if size == shape[axis + added] else None for axis, size in enumerate(self.shape)]
        return replace(self, shape=shape, axes=(*[None] * added, *axes))

    def picks(self, axis: int, indices: Shape) -> "View":
        """These indices of an axis."""
        return replace(self.cut(axis, 0, len(indices)), picked=(axis, indices))

    def flattened(self, shape: Shape) -> "View":
        """Another shape of as many elements."""
        return replace(self, shape=shape, flat=True)

    def strides(self, source: Shape) -> Shape:
        """From one index of the result to the next, where the source has these strides."""
        if self.flat:
            return strides_of(self.shape)
        found = [0 if axis is None else source[axis] for axis in self.axes]
        if self.back is not None:
            found[self.back] = -found[self.back]
        return tuple(found)

    def offset(self, source: Shape) -> int:
        """Where the first element is."""
        return 0 if self.flat else sum(i * stride for i, stride in zip(self.origin, source, strict=True))


@dataclass(frozen=True, slots=True)
class Move:
    """What the kernels take: see operations.cl. In fields of the source, but `targets` and `target`: words of the result."""

    own: Fields
    result: Fields
    lines: Shape
    targets: Shape
    source: Shape  #: from positions in row-major order to fields, where the view is flat
    indices: Shape
    inner: int  #: lines from one index of the picked axis to the next; 0: it is the lines' own
    stride: int  #: fields from one index of the picked axis to the next
    offset: int
    start: int
    length: int
    step: int
    a_line: int
    target: int
    items: int

    @classmethod
    def of(cls, own: Fields, result: Fields, view: View, axis: int, start: int) -> "Move":
        """The part of a result that begins at `start` of an axis; all of it where the axis is -1."""
        shape, strides, fields = view.shape, view.strides(own.strides), result.fields
        along, outer = (result.order[-1], result.order[:-1]) if result.order else (-1, ())
        length, step = (shape[along], strides[along]) if shape else (1, 1)
        inside = start if axis == along else 0
        a_line = -(-(inside + length) // fields) - inside // fields
        sizes = [shape[i] for i in outer]
        indices: Shape = ()
        inner, stride, own_strides = 0, 0, list(strides)
        if view.picked is not None:
            chosen, indices = view.picked
            if chosen != along:
                inner = math.prod(sizes[outer.index(chosen) + 1 :])
                stride, own_strides[chosen] = strides[chosen], 0
        return cls(
            own=own,
            result=result,
            lines=walk_of(sizes, [own_strides[i] for i in outer]),
            targets=walk_of(sizes, [result.strides[i] // fields for i in outer]),
            source=walk_of(own.shape, own.strides) if view.flat else (),
            indices=indices,
            inner=inner,
            stride=stride,
            offset=view.offset(own.strides),
            start=inside,
            length=length,
            step=1 if length == 1 else step,
            a_line=a_line,
            target=0 if axis < 0 or axis == along else start * result.strides[axis] // fields,
            items=math.prod(sizes) * a_line,
        )

    @property
    def straight(self) -> bool:
        """True where fields of the source are counted as positions in row-major order are, or as the strides say."""
        return self.source[2:] in ((), (1,))

    @property
    def linear(self) -> bool:
        """True where both sides have words and fields alike, and the numbers of a line lie evenly apart in the source."""
        alike = (self.own.size, self.own.width, self.own.fields) == (
            self.result.size,
            self.result.width,
            self.result.fields,
        )
        return alike and self.straight and (self.inner > 0 or not self.indices)
