"""Streams: host tensors of any size through a device, in pieces of whole blocks, to host records with the same bits.

A tensor scale needs the whole tensor's amax, so its schemes are gone through twice. Rules SCL-5, SCL-13, SCL-24.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import EncodingError, Packed, Quantized, Saturation, Scheme
from quantspec.blocks import check_array_shape
from quantspec.recipes import require_canonical
from quantspec.tensor import require_record

from . import dequantize
from .blocks import largest, tensor_amax
from .choice import Fixed, Given, chosen_single, fix
from .geometry import blocks_along, lines_of
from .host import DeviceArray, Machine
from .inputs import ArrayInput, Numbers, take_numbers, typed_numbers
from .packing import Strictness
from .pieces import Piece, cut_up
from .tensors import DevicePacked, DeviceQuantized, Flags, saturation_of

if TYPE_CHECKING:
    from .session import Session

__all__ = ["PIECE_BYTES", "Progress", "Stream"]

Progress = Callable[[int, int], object]

PIECE_BYTES = 1 << 28  #: of the largest array of a piece, unless the device takes less
ELEMENT_BYTES = 4  #: most that an element has in any array of a verb
Host = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A session's verbs for host arrays larger than the device takes; results are host arrays and records.

    `progress(done, total)` is called after every piece, in elements, of both passes where there are two. It may raise: as after
    an interrupt, the session is as good as before, since no piece is left in flight in the host's memory.
    """

    session: "Session"
    progress: Progress | None = None
    piece_bytes: int = PIECE_BYTES

    def quantize(
        self,
        x: ArrayInput,
        scheme: Scheme | str,
        *,
        scales: ArrayInput | None = None,
        scale_codes: ArrayInput | None = None,
        tensor_scale: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
    ) -> Quantized:
        """As `Session.quantize(...).get()`."""
        block = Given("scales", scales, "scale_codes", scale_codes)
        single = Given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code)
        pass_ = _Pass.of(self, x, Scheme.of(scheme), block, single, words=False)
        codes, blocks, tensor = self._run(pass_, pass_.x.shape, np.dtype(np.uint8))
        return Quantized(pass_.scheme, codes, blocks, tensor, saturation=pass_.saturation())

    def quantize_packed(
        self,
        x: ArrayInput,
        scheme: Scheme | str,
        *,
        scales: ArrayInput | None = None,
        scale_codes: ArrayInput | None = None,
        tensor_scale: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
    ) -> Packed:
        """As `Session.quantize_packed(...).get()`."""
        block = Given("scales", scales, "scale_codes", scale_codes)
        single = Given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code)
        pass_ = _Pass.of(self, x, Scheme.of(scheme), block, single, words=True)
        lines, store = lines_of(pass_.scheme, pass_.x.shape), pass_.scheme.store
        words, blocks, tensor = self._run(pass_, lines.words_shape, store.word_dtype(pass_.scheme.value.bits))
        return Packed(pass_.scheme, pass_.x.shape, words, blocks, tensor)

    def dequantize(self, tensor: Quantized, dtype: npt.DTypeLike = "f32") -> Host:
        """As `Session.dequantize(...).get()`."""
        require_record(tensor, Quantized, argument="tensor")
        machine, y = self.session.machine, np.empty(tensor.shape, dequantize.output_dtype(dtype))
        for piece in self._pieces(tensor.scheme, tensor.shape, words=False):
            codes = machine.upload(tensor.codes[piece.elements])
            part = DeviceQuantized(
                tensor.scheme, codes, *_levels(machine, tensor, piece), tensor.recipe, codec=tensor.codec
            )
            y[piece.elements] = self.session.dequantize(part, dtype).get()
        return y

    def dequantize_packed(
        self, packed: Packed, dtype: npt.DTypeLike = "f32", *, padding: Strictness = "refuse"
    ) -> Host:
        """As `Session.dequantize_packed(...).get()`."""
        require_record(packed, Packed, argument="packed")
        require_canonical(container=packed.container)  # pieces are cut out of canonical lines
        machine, y = self.session.machine, np.empty(packed.shape, dequantize.output_dtype(dtype))
        for piece in self._pieces(packed.scheme, packed.shape, words=True):
            words, levels = machine.upload(packed.words[piece.words]), _levels(machine, packed, piece)
            part = DevicePacked(packed.scheme, piece.shape, words, *levels, packed.recipe, codec=packed.codec)
            try:
                y[piece.elements] = self.session.dequantize_packed(part, dtype, padding=padding).get()
            except EncodingError:
                quantspec.unpack(packed, padding=padding)  # refuses with the place in the whole tensor
                raise
        return y

    def _run(
        self, pass_: "_Pass", shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> tuple[Host, Host | None, Host | None]:
        """Codes or words, and the scale codes of both levels."""
        scheme, size, found, blocks = pass_.scheme, pass_.x.size, np.empty(shape, dtype), None
        if scheme.block is not None:
            blocks = np.empty(blocks_along(pass_.x.shape, scheme), scheme.block.scale.code_dtype)
        first = size if pass_.looks_first else 0
        if pass_.looks_first:
            pass_.look(self._pieces(scheme, pass_.x.shape, words=pass_.words, total=2 * size))
        for piece in self._pieces(scheme, pass_.x.shape, words=pass_.words, done=first, total=first + size):
            part, block_codes = pass_.piece(piece)
            found[piece.words if pass_.words else piece.elements] = part.get()
            if blocks is not None and block_codes is not None:
                blocks[piece.blocks] = block_codes.get()
        single = pass_.fixed.single
        return found, blocks, None if single is None else single.codes.get()

    def _pieces(
        self, scheme: Scheme, shape: tuple[int, ...], *, words: bool, done: int = 0, total: int | None = None
    ) -> Iterator[Piece]:
        """The pieces in turn; progress is told of each when the next is asked for."""
        most = max(min(self.piece_bytes, self.session.info.max_allocation) // ELEMENT_BYTES, 1)
        for piece in cut_up(scheme, shape, most, words=words):
            yield piece
            done += piece.size
            if self.progress is not None:
                self.progress(done, math.prod(shape) if total is None else total)


@dataclass(slots=True)
class _Pass:
    """Quantizing a tensor piece by piece: what holds for the whole of it, and what was found so far."""

    session: "Session"
    x: Host
    scheme: Scheme
    fixed: Fixed
    chosen: bool  #: the tensor scale is
    words: bool
    given: Host | None = None  #: codes of given block scales
    count: int = 0
    first: tuple[int, ...] | None = None

    @classmethod
    def of(cls, stream: Stream, x: ArrayInput, scheme: Scheme, block: Given, single: Given, *, words: bool) -> "_Pass":
        """The arguments, checked in the reference's order; the given scales, for the whole tensor."""
        machine = stream.session.machine
        array, row = typed_numbers(machine, x)
        host = array.get() if isinstance(array, DeviceArray) else array
        scheme.require_shape(check_array_shape(host.shape, argument="x.shape"))
        shaped = DeviceArray(
            machine, machine.formats, host.shape, host.dtype.newbyteorder("=")
        )  # only its shape is used
        fixed = fix(Numbers(shaped, row), scheme, block, single)
        given = None if fixed.blocks is None else fixed.blocks.codes.get()
        chosen = scheme.tensor is not None and fixed.single is None
        return cls(stream.session, host, scheme, fixed, chosen, words, given)

    @property
    def looks_first(self) -> bool:
        """True where the tensor scale has to be chosen before any piece can be quantized."""
        return self.chosen and self.fixed.single is None

    def look(self, pieces: Iterator[Piece]) -> None:
        """The tensor scale, of the largest amax of all pieces. Rules SCL-5, SCL-11, SCL-13."""
        machine = self.session.machine
        found = [tensor_amax(take_numbers(machine, self.x[piece.elements])).get() for piece in pieces]
        amax = largest(machine.upload(np.concatenate([np.zeros(1, np.uint32), *found])))
        self.fixed = replace(self.fixed, single=chosen_single(self.scheme, amax))

    def piece(self, piece: Piece) -> tuple[DeviceArray, DeviceArray | None]:
        """Codes or words of a piece, and the codes of its block scales."""
        single = self.fixed.single
        verb = self.session.quantize_packed if self.words else self.session.quantize
        made = verb(
            self.x[piece.elements],
            self.scheme,
            scale_codes=None if self.given is None else self.given[piece.blocks],
            tensor_scale_code=None if single is None else single.codes,
        )
        report = made.saturation
        if report.count and report.first is not None:
            where = tuple(a + b for a, b in zip(piece.first_block, report.first, strict=True))
            self.count += report.count
            self.first = where if self.first is None else min(self.first, where)
        return made.words if isinstance(made, DevicePacked) else made.codes, made.scale_codes

    def saturation(self) -> Saturation:
        """The report of the whole tensor. Rule SCL-24."""
        blocks, single = self.fixed.blocks, self.fixed.single
        flag = None if single is None else single.saturated
        if blocks is not None:
            grid = blocks.codes.shape
            return saturation_of(None if blocks.saturated is None else Flags(blocks.saturated, grid), flag)
        tensor = saturation_of(None, flag)
        if self.count == 0 or (self.chosen and not tensor.tensor):
            return tensor  # relative to a chosen tensor scale, block scales count where that saturated
        return Saturation(self.count, self.first, tensor.tensor)


def _levels(
    machine: Machine, tensor: Quantized | Packed, piece: Piece
) -> tuple[DeviceArray | None, DeviceArray | None]:
    """The scale codes of a piece, and of the tensor."""
    blocks, single = tensor.scale_codes, tensor.tensor_scale_code
    return (
        None if blocks is None else machine.upload(blocks[piece.blocks]),
        None if single is None else machine.upload(single),
    )
