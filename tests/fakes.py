"""Liars: adapters that do one thing wrong, as real kernels do. The harness must catch each and name the rule.

Each derives from the reference's adapter and changes what it answers. Run one by hand:
    quantspec run --device py:tests/fakes.py:TiesToZero --only 'e2m1.native.b32-f32'
"""

import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Packed, Quantized, QuantspecError, Saturation, Scheme
from quantspec.blocks import amax, spread
from quantspec.choice import raw_scale
from quantspec.quantize import effective_scale
from quantspec.rounding import to_float, widen
from quantspec_conformance.adapters import Arrays
from quantspec_conformance.adapters.reference import ReferenceAdapter

__all__ = ["LIARS"]

Bits = npt.NDArray[np.uint32]


def _replaced(q: Quantized, **parts: Any) -> Quantized:
    """A record with some of its parts changed."""
    kept = {
        "codes": q.codes, "scale_codes": q.scale_codes, "tensor_scale_code": q.tensor_scale_code,
        "saturation": q.saturation,
    }  # fmt: skip
    return Quantized(q.scheme, **{**kept, **parts})


def _scales_of(q: Quantized) -> npt.NDArray[np.float32]:
    s = effective_scale(q.scheme, q.scale_codes, q.tensor_scale_code)
    return s if q.scheme.block is None else spread(s, q.shape, q.scheme.extents(len(q.shape)))


class Liar(ReferenceAdapter):
    """The reference until a method is replaced."""

    def identity(self) -> Mapping[str, Any]:
        """The liar's name."""
        return {"name": type(self).__name__}

    def quantize(self, x: npt.NDArray[Any], scheme: Scheme, **given: Any) -> Quantized:
        """The reference's, through `lie`."""
        return self.lie(x, super().quantize(x, scheme, **given))

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        """What becomes of a quantized tensor."""
        return q

    def encoded(self, q: Quantized, quotients: npt.NDArray[np.float32], x: npt.NDArray[Any]) -> Quantized:
        """The tensor with its codes encoded from other quotients; NaN and zero scales as they were."""
        s = _scales_of(q)
        codes = quantspec.encode(quotients, q.scheme.value, table=q.scheme.table)
        usable = np.isfinite(quotients) & np.isfinite(s) & (s != 0)
        return _replaced(q, codes=np.where(usable, codes, q.codes))


class TiesToZero(Liar):
    """Rounds ties toward zero instead of to the even code."""

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        with np.errstate(all="ignore"):
            quotients = np.asarray(to_float(widen(x)) / _scales_of(q), np.float32)
        smaller = (quotients.view(np.uint32) - np.uint32(1)).view(np.float32)
        larger = (quotients.view(np.uint32) + np.uint32(1)).view(np.float32)
        row = q.scheme.value
        low, high = (quantspec.encode(np.where(quotients == 0, np.float32(0), near), row) for near in (smaller, larger))
        middle = (quantspec.decode(low, row).astype(np.float64) + quantspec.decode(high, row)) / 2
        tied = (low != high) & (quotients == middle) & ~np.bool_(q.scheme.is_lookup)
        return _replaced(q, codes=np.where(tied, low, q.codes))


class Reciprocal(Liar):
    """Multiplies by the reciprocal of the scale instead of dividing."""

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        with np.errstate(all="ignore"):
            inverse = np.asarray(np.float32(1) / _scales_of(q), np.float32)
            return self.encoded(q, np.asarray(to_float(widen(x)) * inverse, np.float32), x)


class FlushToZero(Liar):
    """A device that flushes subnormal inputs and results of dequantization, and knows no subnormal scale."""

    def dequantize(self, quantized: Quantized, dtype: str) -> npt.NDArray[Any]:
        y = super().dequantize(quantized, dtype)
        if dtype != "f32":
            return y
        bits = np.array(y).view(np.uint32)
        return np.where((bits & np.uint32(0x7F800000)) == 0, bits & np.uint32(0x80000000), bits).view(np.float32)


class FlushScales(Liar):
    """Flushes subnormal input, so that tiny blocks get a zero scale."""

    def quantize(self, x: npt.NDArray[Any], scheme: Scheme, **given: Any) -> Quantized:
        bits = widen(x)
        flushed = np.where((bits & np.uint32(0x7F800000)) == 0, bits & np.uint32(0x80000000), bits)
        return super().quantize(flushed.view(np.float32), scheme, **given)


class NanSignLost(Liar):
    """Writes the positive NaN code for every NaN."""

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        row = q.scheme.value
        if row.nan_code is None or q.scheme.is_lookup:
            return q
        codes = np.where(q.codes == (row.nan_code | row.sign_bit), np.uint8(row.nan_code), q.codes)
        return _replaced(q, codes=codes)


class StaleScale(Liar):
    """Every block gets the scale of the block before it; the codes are right."""

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        if q.scale_codes is None:
            return q
        return _replaced(q, scale_codes=np.roll(q.scale_codes.reshape(-1), 1).reshape(q.scale_codes.shape))


class ScalesToNearest(Liar):
    """Rounds a block's scale to nearest instead of up."""

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        if q.scale_codes is None or q.scheme.block is None or q.scheme.tensor is not None:
            return q
        raw = to_float(raw_scale(amax(widen(x), q.scheme.extents(x.ndim)), q.scheme))
        return _replaced(q, scale_codes=quantspec.encode_scale(raw, q.scheme.block.scale, "nearest"))


class NoSaturationReport(Liar):
    """Never reports a saturated scale."""

    def lie(self, x: npt.NDArray[Any], q: Quantized) -> Quantized:
        return _replaced(q, saturation=Saturation())


class HighNibbleFirst(Liar):
    """Packs the fields of a word from the highest bits down."""

    def pack(self, quantized: Quantized) -> Packed:
        packed = super().pack(quantized)
        scheme = quantized.scheme
        n, w = scheme.store.codes_per_word(scheme.value.bits), scheme.store.field_bits(scheme.value.bits)
        words = packed.words.astype(np.uint64)
        turned = np.zeros_like(words)
        for i in range(n):
            turned |= ((words >> np.uint64(i * w)) & np.uint64((1 << w) - 1)) << np.uint64((n - 1 - i) * w)
        return _Unchecked(packed, turned.astype(packed.words.dtype))


class _Unchecked(Packed):
    """A packed record whose words are not looked at."""

    def __init__(self, packed: Packed, words: npt.NDArray[Any]) -> None:
        super().__init__(packed.scheme, packed.shape, packed.words, packed.scale_codes, packed.tensor_scale_code)
        object.__setattr__(self, "words", words)


class DirtyPadding(Liar):
    """Leaves ones in the padding fields and the unused bits of a line's last word."""

    def pack(self, quantized: Quantized) -> Packed:
        packed = super().pack(quantized)
        scheme, words = quantized.scheme, packed.words.copy()
        row = scheme.value
        n, w = scheme.store.codes_per_word(row.bits), scheme.store.field_bits(row.bits)
        line = quantized.shape[scheme.packed_axis(len(quantized.shape))] if quantized.shape else 1
        used = (line - 1) % n + 1 if line else 0
        everything = 2 ** (8 * scheme.store.word_bytes(row.bits)) - 1
        if words.size:
            words[..., -1] |= words.dtype.type(everything & ~((1 << used * w) - 1))
        return _Unchecked(packed, words)


class Unwritten(Liar):
    """Does not write the last entries of the codes: the poison is still there."""

    def fetch(self, handle: Any) -> Arrays:
        parts = super().fetch(handle)
        if "codes" in parts and parts["codes"].size > 4:
            codes = parts["codes"].copy()
            codes.reshape(-1)[-3:] = 0xA5
            parts["codes"] = codes
        return parts


class ScalesNotSwapped(Liar):
    """Writes block scales in tensor axes although the packed axis is not the innermost."""

    def to_bytes(self, packed: Packed) -> bytes:
        data = super().to_bytes(packed)
        if packed.scale_codes is None or packed.scheme.block is None:
            return data
        tail = packed.scale_codes.astype(packed.scale_codes.dtype.newbyteorder("<")).tobytes()
        end = len(data) - (packed.scheme.tensor.size if packed.scheme.tensor else 0)
        return data[: end - len(tail)] + tail + data[end:]


class WrongAxis(Liar):
    """Packs the innermost axis whatever the scheme says."""

    def pack(self, quantized: Quantized) -> Packed:
        packed = super().pack(quantized)
        scheme = quantized.scheme
        if scheme.store.d == 0 or len(set(quantized.shape)) == 1:
            return packed
        other = Scheme(scheme.value, f"{scheme.store.kind}_0", mode=scheme.mode, tensor="f32", table=scheme.table)
        words = quantspec.pack_codes(quantized.codes, other)
        return _Unchecked(packed, words)


class DoubleRounding(Liar):
    """Rounds bf16 output through f16."""

    def dequantize(self, quantized: Quantized, dtype: str) -> npt.NDArray[Any]:
        y = super().dequantize(quantized, dtype)
        if dtype != "bf16":
            return y
        with np.errstate(all="ignore"):
            return super().dequantize(quantized, "f32").astype(np.float16).astype(y.dtype)


class NanPayload(Liar):
    """Lets a NaN keep a payload on the way out."""

    def dequantize(self, quantized: Quantized, dtype: str) -> npt.NDArray[Any]:
        y = super().dequantize(quantized, dtype)
        if dtype != "f32":
            return y
        bits = np.array(y).view(np.uint32)
        return np.where(bits == 0x7FC00000, bits | np.uint32(0x80000001), bits).view(np.float32)


class ClaimsTooMuch(Liar):
    """Refuses nothing: takes shapes that the scheme does not fit, and dirty padding."""

    def quantize(self, x: npt.NDArray[Any], scheme: Scheme, **given: Any) -> Quantized:
        try:
            return super().quantize(x, scheme, **given)
        except QuantspecError:
            return super().quantize(x, Scheme(scheme.value, tensor="f32"))

    def split(self, data: bytes, scheme: Scheme, shape: tuple[int, ...]) -> Quantized:
        try:
            return super().split(data, scheme, shape)
        except QuantspecError:
            if len(data) == 0:
                return Quantized(
                    Scheme(scheme.value, tensor="f32"), np.zeros(shape, np.uint8), None, np.zeros((), np.uint32)
                )
            return quantspec.split(data, scheme, shape, padding="ignore")


class WrongRule(Liar):
    """Refuses a shape, but by another rule."""

    def quantize(self, x: npt.NDArray[Any], scheme: Scheme, **given: Any) -> Quantized:
        try:
            return super().quantize(x, scheme, **given)
        except QuantspecError as error:
            raise type(error)("SCH-6", error.message) from None


class Declines(Liar):
    """Does not support lookup, and says so."""

    def quantize(self, x: npt.NDArray[Any], scheme: Scheme, **given: Any) -> Quantized:
        if scheme.is_lookup:
            raise quantspec.UnsupportedError("CNF-5", "lookup is not implemented")
        return super().quantize(x, scheme, **given)


class Raises(Liar):
    """Fails with an error of its own."""

    def pack(self, quantized: Quantized) -> Packed:
        raise RuntimeError("CL_OUT_OF_RESOURCES")


class Aborts(Liar):
    """Takes its process down after a few cases, as a compiler of a runtime does."""

    def __init__(self) -> None:
        self.calls = 0

    def pack(self, quantized: Quantized) -> Packed:
        self.calls += 1
        if self.calls > 20:
            os.write(2, b"LLVM ERROR: Cannot emit physreg copy instruction\n")
            os.abort()
        return super().pack(quantized)


class AbortsOnEmpty(Liar):
    """Takes its process down for every tensor without elements, and for nothing else."""

    def pack(self, quantized: Quantized) -> Packed:
        if 0 in quantized.shape:
            os.abort()
        return super().pack(quantized)


class AbortsSecondTime(Aborts):
    """Aborts after a few cases, and then cannot be opened again: a file says that it was."""

    def __init__(self) -> None:
        super().__init__()
        mark = os.environ["QUANTSPEC_TEST_MARK"]
        if os.path.exists(mark):
            raise RuntimeError("clCreateContext failed: DEVICE_LOST")
        with open(mark, "w"):
            pass


class Hangs(Aborts):
    """Does not come back after a few cases."""

    def pack(self, quantized: Quantized) -> Packed:
        self.calls += 1
        if self.calls > 20:
            time.sleep(600)
        return ReferenceAdapter.pack(self, quantized)


class Slow(Liar):
    """Takes its time, so that a test can interrupt it."""

    def pack(self, quantized: Quantized) -> Packed:
        time.sleep(0.02)
        return super().pack(quantized)


class Noisy(Liar):
    """Prints to stdout and to descriptor 1, as runtimes do."""

    def pack(self, quantized: Quantized) -> Packed:
        print("compiling ... {")
        os.write(1, b'{"op":"result","id":0}\n')
        return super().pack(quantized)


class CannotOpen(Liar):
    """Cannot be opened."""

    def __init__(self) -> None:
        raise RuntimeError("clCreateContext failed: DEVICE_NOT_AVAILABLE")


class AbortsOnOpen(Liar):
    """Takes its process down when it is opened."""

    def __init__(self) -> None:
        os.abort()


#: Each liar, the schemes on which it lies, and the rules of which its failures must name one.
LIARS: dict[type[Liar], tuple[str, frozenset[str]]] = {
    TiesToZero: ("e2m1.native.b32-f32", frozenset({"VAL-7"})),
    Reciprocal: ("q8s.native.b32-f32", frozenset({"QNT-5", "VAL-7"})),
    FlushToZero: ("e4m3.native.b32-ue8m0", frozenset({"QNT-9"})),
    FlushScales: ("q8s.native.b16-f32", frozenset({"SCL-5", "SCL-6", "SCL-7", "SCL-8"})),
    NanSignLost: ("e5m2.native.b32-f16", frozenset({"VAL-9", "QNT-2"})),
    StaleScale: ("q4s.native.b3-f16", frozenset({"SCL-8"})),
    ScalesToNearest: ("q4s.native.b3-f16", frozenset({"SCL-8"})),
    NoSaturationReport: ("q8s.native.b16-f16", frozenset({"SCL-24"})),
    HighNibbleFirst: ("q4s.packed_native_0.b32-f32", frozenset({"PAK-4"})),
    DirtyPadding: ("e2m1.packed_u32_0.t-f32", frozenset({"PAK-3"})),
    Unwritten: ("e4m3.native.t-f32", frozenset({"CNF-3"})),
    ScalesNotSwapped: ("q8s.packed_u32_1.b3-f16", frozenset({"LAY-3"})),
    WrongAxis: ("q4s.packed_u32_1.t-f32", frozenset({"PAK-2", "PAK-3"})),
    DoubleRounding: ("e4m3.native.b16-f32", frozenset({"QNT-10"})),
    NanPayload: ("e4m3.native.b16-f16", frozenset({"QNT-11"})),
    ClaimsTooMuch: ("q4s.packed_u32_1.b2x16-f16", frozenset({"SCH-13", "SCH-14", "PAK-7"})),
    WrongRule: ("q4s.packed_u32_2.t-f32", frozenset({"SCH-14"})),
    Declines: ("q4f.native.lut-nf4.t-f32", frozenset({"CNF-5"})),
}
