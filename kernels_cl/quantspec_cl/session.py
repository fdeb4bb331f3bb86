"""Sessions: a device with its kernels built, and the verbs on it, with the reference's names, arguments and refusals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy.typing as npt
import pyopencl as cl

from quantspec import (
    CANONICAL,
    CANONICAL_CODEC,
    CANONICAL_CONTAINER,
    Codec,
    Container,
    Packed,
    Quantized,
    Recipe,
    ScaleType,
    Scheme,
    ValueFormat,
)

from . import assemble, chain, dequantize, products, quantize, quantize_words, scales, values
from .chain import StepInput
from .choice import Given
from .host import DeviceArray
from .inputs import ArrayInput
from .memory import Output, destination
from .opening import machine_on, open_machine
from .paths import PathChoice
from .probe import Measurement, measure
from .products import MatrixInput
from .scales import Rounding, Strictness
from .storage import StorageVerbs
from .stream import PIECE_BYTES, Progress, Stream
from .tensors import DevicePacked, DeviceQuantized
from .values import TableInput

__all__ = ["Session", "open_device", "open_queue", "self_test"]


def open_device(
    spec: str | None = None,
    *,
    build_options: Sequence[str] = (),
    poison: bool = False,
    path: PathChoice = "auto",
    max_allocation: int | None = None,
) -> "Session":
    """A session on the device that `spec` names: "p:d", part of its platform's or its own name, None for the first.

    `build_options` are added to the compiler's; `poison` fills every buffer with A5 before a kernel writes it, so that a
    byte that none writes shows. `path` says when specialised kernels may run: results name theirs as `.path`.
    `max_allocation` is the largest array, in bytes, where it is to be less than the device's.
    Raises NoDeviceError, BuildError, DeviceError.
    """
    machine = open_machine(spec, build_options, poison, choice=path, max_allocation=max_allocation)
    return Session(machine, tuple(build_options))


def open_queue(
    queue: cl.CommandQueue,
    *,
    build_options: Sequence[str] = (),
    poison: bool = False,
    path: PathChoice = "auto",
    max_allocation: int | None = None,
) -> "Session":
    """A session on an in-order queue of the caller's own, whose context the caller keeps. As `open_device`."""
    machine = machine_on(queue, build_options, poison, choice=path, max_allocation=max_allocation)
    return Session(machine, tuple(build_options))


@dataclass(frozen=True, slots=True, eq=False)
class Session(StorageVerbs):
    """The verbs of quantspec on one device. Inputs are host arrays and records or this session's own; results stay there.

    `.get()` of a result is the numpy array or quantspec record. Refusals are the reference's, rule ids and texts included;
    those that depend on data are found by kernels. Rules of each verb: the function of the same name in quantspec.
    """

    def stream(self, progress: Progress | None = None, *, piece_bytes: int = PIECE_BYTES) -> Stream:
        """`quantize`, `quantize_packed` and their inverses for host arrays of any size, in pieces; results are on the host."""
        return Stream(self, progress, piece_bytes)

    def quantized(
        self,
        scheme: Scheme | str,
        codes: ArrayInput,
        scale_codes: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
        *,
        recipe: Recipe | str = CANONICAL,
        codec: Codec | str = CANONICAL_CODEC,
    ) -> DeviceQuantized:
        """A quantized tensor of one's own parts, checked on the device. Rules VAL-4, VAL-5, SCL-2, SCL-19 to SCL-22."""
        levels = scale_codes, tensor_scale_code
        return assemble.quantized(self.machine, scheme, codes, *levels, recipe, codec)

    def packed(
        self,
        scheme: Scheme | str,
        shape: Sequence[int],
        words: ArrayInput,
        scale_codes: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
        *,
        recipe: Recipe | str = CANONICAL,
        container: Container | str = CANONICAL_CONTAINER,
        codec: Codec | str = CANONICAL_CODEC,
    ) -> DevicePacked:
        """A packed tensor of one's own parts, checked on the device. Rules PAK-1, LAY-4, SCL-2, SCL-19 to SCL-22.

        Bits that hold no code are looked at by the verbs that read the words, as their `padding` says.
        """
        levels = scale_codes, tensor_scale_code
        return assemble.packed(self.machine, scheme, shape, words, *levels, recipe, container, codec)

    def encode(
        self,
        x: ArrayInput,
        value: str | ValueFormat,
        *,
        table: TableInput = None,
        codec: Codec | str = CANONICAL_CODEC,
        out: Output | None = None,
    ) -> DeviceArray:
        """Codes of f32, f16 or bf16 numbers: uint8 of x's shape. Rules VAL-6 to VAL-11, QNT-7, QNT-8."""
        return values.encode(self.machine, x, value, table, codec, destination(self.machine, out, x))

    def decode(
        self,
        codes: ArrayInput,
        value: str | ValueFormat,
        *,
        table: TableInput = None,
        codec: Codec | str = CANONICAL_CODEC,
        out: Output | None = None,
    ) -> DeviceArray:
        """Numbers of codes: f32 of their shape. Rules VAL-1 to VAL-5, VAL-12, VAL-13."""
        return values.decode(self.machine, codes, value, table, codec, destination(self.machine, out, codes))

    def encode_scale(
        self, x: ArrayInput, scale: str | ScaleType, rounding: Rounding = "up", *, codec: Codec | str = CANONICAL_CODEC
    ) -> DeviceArray:
        """Scale codes of numbers, rounded up or to nearest. Rules SCL-15 to SCL-17, SCL-20."""
        return scales.encode_scale(self.machine, x, scale, rounding, codec)

    def decode_scale(
        self, codes: ArrayInput, scale: str | ScaleType, *, ue4m3_bit7: Strictness = "refuse"
    ) -> DeviceArray:
        """Numbers of scale codes: f32 of their shape. Rules SCL-1 to SCL-3, SCL-18."""
        return scales.decode_scale(self.machine, codes, scale, ue4m3_bit7)

    def quantize(
        self,
        x: ArrayInput,
        scheme: Scheme | str,
        *,
        scales: ArrayInput | None = None,
        scale_codes: ArrayInput | None = None,
        tensor_scale: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
        recipe: Recipe | str = CANONICAL,
        codec: Codec | str = CANONICAL_CODEC,
        out: Output | None = None,
    ) -> DeviceQuantized:
        """Codes and scales of a tensor; `scales` and the like fix those of a level. Rules SCL-4 to SCL-24, QNT-1 to QNT-8."""
        block = Given("scales", scales, "scale_codes", scale_codes)
        tensor = Given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code)
        into = destination(self.machine, out, x, scales, scale_codes, tensor_scale, tensor_scale_code)
        return quantize.quantize(self.machine, x, scheme, block, tensor, recipe, codec, into)

    def quantize_packed(
        self,
        x: ArrayInput,
        scheme: Scheme | str,
        *,
        scales: ArrayInput | None = None,
        scale_codes: ArrayInput | None = None,
        tensor_scale: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
        recipe: Recipe | str = CANONICAL,
        codec: Codec | str = CANONICAL_CODEC,
        container: Container | str = CANONICAL_CONTAINER,
        out: Output | None = None,
    ) -> DevicePacked:
        """Words and scales of a tensor, as `pack` of `quantize` gives them. Rules QNT-1 to QNT-8, PAK-1 to PAK-6."""
        block = Given("scales", scales, "scale_codes", scale_codes)
        tensor = Given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code)
        into = destination(self.machine, out, x, scales, scale_codes, tensor_scale, tensor_scale_code)
        return quantize_words.quantize_packed(self.machine, x, scheme, block, tensor, recipe, codec, container, into)

    def dequantize(
        self,
        tensor: Quantized | DeviceQuantized,
        dtype: npt.DTypeLike = "f32",
        *,
        codec: Codec | str | None = None,
        out: Output | None = None,
    ) -> DeviceArray:
        """Numbers of a quantized tensor in f32, f16 or bf16, by its recipe and codec. Rules QNT-9 to QNT-12, POL-13."""
        return dequantize.dequantize(self.machine, tensor, dtype, codec, destination(self.machine, out, tensor))

    def dequantize_packed(
        self,
        packed: Packed | DevicePacked,
        dtype: npt.DTypeLike = "f32",
        *,
        padding: Strictness = "refuse",
        out: Output | None = None,
    ) -> DeviceArray:
        """Numbers of a packed tensor, as `dequantize` of `unpack` gives them. Rules PAK-1 to PAK-8, QNT-9 to QNT-12."""
        into = destination(self.machine, out, packed)
        return dequantize.dequantize_packed(self.machine, packed, dtype, padding, into)

    def chain(
        self, tensor: Quantized | DeviceQuantized, steps: Iterable[StepInput], dtype: npt.DTypeLike = "f32"
    ) -> DeviceArray:
        """The dequantized numbers after each of the steps in turn. Rules OPS-14 to OPS-23."""
        return chain.chain(self.machine, tensor, steps, dtype)

    def product(self, x: ArrayInput, w: MatrixInput, dtype: npt.DTypeLike = "f32") -> DeviceArray:
        """x [..., K] times quantized w [K, N], which may be packed: it is read as it lies. Rules PRD-1 to PRD-9."""
        return products.product(self.machine, x, w, dtype)

    def product_codes(
        self, x: Quantized | DeviceQuantized, w: MatrixInput, dtype: npt.DTypeLike = "f32"
    ) -> DeviceArray:
        """Quantized x [..., K] times quantized w [K, N], from codes. Rules PRD-8, PRD-10 to PRD-17."""
        return products.product_codes(self.machine, x, w, dtype)


def self_test(session: Session) -> tuple[Measurement, ...]:
    """What the device's arithmetic really does under the session's build options, against IEEE 754 and OpenCL C.

    Nothing here needs to be ok for the verbs to be right but the lines named "integer ...": kernels use no floats.
    """
    return measure(session.machine, session.build_options)
