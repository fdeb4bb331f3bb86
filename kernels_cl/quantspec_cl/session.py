"""Sessions: a device with its kernels built, and the verbs on it, with the reference's names, arguments and refusals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

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

from . import assemble, chain, dequantize, layout, packing, products, quantize, quantize_words, scales, values
from .chain import StepInput
from .choice import Given
from .device import DeviceInfo
from .errors import DeviceError
from .host import DeviceArray
from .inputs import ArrayInput
from .layout import BytesInput
from .opening import open_machine
from .paths import PathChoice
from .probe import Measurement, measure
from .products import MatrixInput
from .scales import Rounding, Strictness
from .tensors import DevicePacked, DeviceQuantized
from .values import TableInput
from .verbs import LayoutVerbs

__all__ = ["Session", "open_device", "self_test"]


def open_device(
    spec: str | None = None,
    *,
    build_options: Sequence[str] = (),
    poison: bool = False,
    path: PathChoice = "auto",
) -> "Session":
    """A session on the device that `spec` names: "p:d", part of its platform's or its own name, None for the first.

    `build_options` are added to the compiler's; `poison` fills every buffer with A5 before a kernel writes it, so that a
    byte that none writes shows. `path` says when specialised kernels may run: results name theirs as `.path`.
    Raises NoDeviceError, BuildError, DeviceError.
    """
    if path not in get_args(PathChoice):
        raise DeviceError(f"path={path!r}; allowed: {', '.join(map(repr, get_args(PathChoice)))}")
    return Session(open_machine(spec, build_options, poison, choice=path), tuple(build_options))


@dataclass(frozen=True, slots=True, eq=False)
class Session(LayoutVerbs):
    """The verbs of quantspec on one device. Inputs are host arrays and records or this session's own; results stay there.

    `.get()` of a result is the numpy array or quantspec record. Refusals are the reference's, rule ids and texts included;
    those that depend on data are found by kernels. Rules of each verb: the function of the same name in quantspec.
    """

    build_options: tuple[str, ...] = ()

    @property
    def info(self) -> DeviceInfo:
        """What the device is and promises."""
        return self.machine.info

    @property
    def context(self) -> cl.Context:
        """The OpenCL context, for arrays of one's own."""
        return self.machine.context

    @property
    def queue(self) -> cl.CommandQueue:
        """The in-order queue that every verb uses."""
        return self.machine.queue

    def finish(self) -> None:
        """Wait for everything launched so far."""
        self.machine.finish()

    def put(self, tensor: Quantized) -> DeviceQuantized:
        """A record's arrays in the device's memory; the record checked them."""
        return quantize.uploaded(self.machine, tensor)

    def put_packed(self, tensor: Packed) -> DevicePacked:
        """A packed record's arrays in the device's memory; the record checked them."""
        return packing.uploaded_words(self.machine, tensor)

    def quantized(
        self,
        scheme: Scheme | str,
        codes: ArrayInput,
        scale_codes: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
    ) -> DeviceQuantized:
        """A quantized tensor of one's own parts, checked on the device. Rules VAL-4, VAL-5, SCL-2, SCL-19 to SCL-22."""
        return assemble.quantized(self.machine, scheme, codes, scale_codes, tensor_scale_code)

    def packed(
        self,
        scheme: Scheme | str,
        shape: Sequence[int],
        words: ArrayInput,
        scale_codes: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
    ) -> DevicePacked:
        """A packed tensor of one's own parts, checked on the device. Rules PAK-1, LAY-4, SCL-2, SCL-19 to SCL-22.

        Bits that hold no code are looked at by the verbs that read the words, as their `padding` says.
        """
        return assemble.packed(self.machine, scheme, shape, words, scale_codes, tensor_scale_code)

    def encode(
        self, x: ArrayInput, value: str | ValueFormat, *, table: TableInput = None, codec: Codec = CANONICAL_CODEC
    ) -> DeviceArray:
        """Codes of f32, f16 or bf16 numbers: uint8 of x's shape. Rules VAL-6 to VAL-11, QNT-7, QNT-8."""
        return values.encode(self.machine, x, value, table, codec)

    def decode(
        self, codes: ArrayInput, value: str | ValueFormat, *, table: TableInput = None, codec: Codec = CANONICAL_CODEC
    ) -> DeviceArray:
        """Numbers of codes: f32 of their shape. Rules VAL-1 to VAL-5, VAL-12, VAL-13."""
        return values.decode(self.machine, codes, value, table, codec)

    def encode_scale(
        self, x: ArrayInput, scale: str | ScaleType, rounding: Rounding = "up", *, codec: Codec = CANONICAL_CODEC
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
        recipe: Recipe = CANONICAL,
        codec: Codec = CANONICAL_CODEC,
    ) -> DeviceQuantized:
        """Codes and scales of a tensor; `scales` and the like fix those of a level. Rules SCL-4 to SCL-24, QNT-1 to QNT-8."""
        block = Given("scales", scales, "scale_codes", scale_codes)
        tensor = Given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code)
        return quantize.quantize(self.machine, x, scheme, block, tensor, recipe, codec)

    def quantize_packed(
        self,
        x: ArrayInput,
        scheme: Scheme | str,
        *,
        scales: ArrayInput | None = None,
        scale_codes: ArrayInput | None = None,
        tensor_scale: ArrayInput | None = None,
        tensor_scale_code: ArrayInput | None = None,
        recipe: Recipe = CANONICAL,
        codec: Codec = CANONICAL_CODEC,
        container: Container = CANONICAL_CONTAINER,
    ) -> DevicePacked:
        """Words and scales of a tensor, as `pack` of `quantize` gives them. Rules QNT-1 to QNT-8, PAK-1 to PAK-6."""
        block = Given("scales", scales, "scale_codes", scale_codes)
        tensor = Given("tensor_scale", tensor_scale, "tensor_scale_code", tensor_scale_code)
        return quantize_words.quantize_packed(self.machine, x, scheme, block, tensor, recipe, codec, container)

    def dequantize(
        self, tensor: Quantized | DeviceQuantized, dtype: npt.DTypeLike = "f32", *, codec: Codec = CANONICAL_CODEC
    ) -> DeviceArray:
        """Numbers of a quantized tensor in f32, f16 or bf16. Rules QNT-9 to QNT-12."""
        return dequantize.dequantize(self.machine, tensor, dtype, codec)

    def dequantize_packed(
        self, packed: Packed | DevicePacked, dtype: npt.DTypeLike = "f32", *, padding: Strictness = "refuse"
    ) -> DeviceArray:
        """Numbers of a packed tensor, as `dequantize` of `unpack` gives them. Rules PAK-1 to PAK-8, QNT-9 to QNT-12."""
        return dequantize.dequantize_packed(self.machine, packed, dtype, padding)

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

    def pack(self, tensor: Quantized | DeviceQuantized, *, container: Container = CANONICAL_CONTAINER) -> DevicePacked:
        """Codes in words. Rules PAK-1 to PAK-6, QNT-12."""
        return packing.pack(self.machine, tensor, container)

    def unpack(self, packed: Packed | DevicePacked, *, padding: Strictness = "refuse") -> DeviceQuantized:
        """Words to codes. Rules PAK-1 to PAK-8, VAL-5, QNT-12."""
        return packing.unpack(self.machine, packed, padding)

    def to_bytes(
        self,
        tensor: Packed | Quantized | DevicePacked | DeviceQuantized,
        *,
        container: Container = CANONICAL_CONTAINER,
    ) -> DeviceArray:
        """The byte stream of a tensor, uint8 of one axis; dirty words are refused. Rules LAY-1 to LAY-5, PAK-7, VAL-5."""
        return layout.to_bytes(self.machine, tensor, container)

    def from_bytes(
        self,
        data: BytesInput,
        scheme: Scheme | str,
        shape: Sequence[int],
        *,
        padding: Strictness = "refuse",
        ue4m3_bit7: Strictness = "refuse",
        recipe: Recipe = CANONICAL,
        container: Container = CANONICAL_CONTAINER,
    ) -> DevicePacked:
        """Words and scale codes of a byte stream. Rules LAY-1 to LAY-5, LAY-7, SCL-2, PAK-7, PAK-8, VAL-5."""
        return layout.from_bytes(self.machine, data, scheme, shape, padding, ue4m3_bit7, recipe, container)

    def split(
        self,
        data: BytesInput,
        scheme: Scheme | str,
        shape: Sequence[int],
        *,
        padding: Strictness = "refuse",
        ue4m3_bit7: Strictness = "refuse",
        recipe: Recipe = CANONICAL,
        container: Container = CANONICAL_CONTAINER,
    ) -> DeviceQuantized:
        """Bytes to codes and scale codes, for every scheme. Rules LAY-6, LAY-7."""
        return layout.split(self.machine, data, scheme, shape, padding, ue4m3_bit7, recipe, container)


def self_test(session: Session) -> tuple[Measurement, ...]:
    """What the device's arithmetic really does under the session's build options, against IEEE 754 and OpenCL C.

    Nothing here needs to be ok for the verbs to be right but the lines named "integer ...": kernels use no floats.
    """
    return measure(session.machine, session.build_options)
