"""Between the records of `quantspec` and those of the oracle, and the comparison that holds one to the other.

Everything is compared as integers. A check takes `Verbs`, so that the same check runs over the reference, over a liar
(which it must catch) and over any other implementation with the same verbs. A refusal is an outcome like any other:
both sides refuse or neither does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

import quantspec as qs

from . import oracle
from .oracle import Q, S, Shape

E = TypeVar("E")
A = TypeVar("A")

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}
FLOATS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


class Mismatch(AssertionError):
    """The implementation and the oracle differ."""


@dataclass(frozen=True)
class Verbs:
    """The functions under test, with the signatures of `quantspec`."""

    encode: Callable[..., Any] = qs.encode
    decode: Callable[..., Any] = qs.decode
    encode_scale: Callable[..., Any] = qs.encode_scale
    decode_scale: Callable[..., Any] = qs.decode_scale
    quantize: Callable[..., Any] = qs.quantize
    dequantize: Callable[..., Any] = qs.dequantize
    pack: Callable[..., Any] = qs.pack
    unpack: Callable[..., Any] = qs.unpack
    to_bytes: Callable[..., Any] = qs.to_bytes
    from_bytes: Callable[..., Any] = qs.from_bytes
    split: Callable[..., Any] = qs.split


REFERENCE = Verbs()


# ---------------------------------------------------------------- arrays and patterns


def patterns(array: Any) -> list[int]:
    """The bit pattern of each number, row-major."""
    contiguous = np.ascontiguousarray(array)
    result: list[int] = contiguous.view(UNSIGNED[contiguous.dtype.itemsize]).ravel().tolist()
    return result


def floats(bits: Sequence[int], kind: str = "f32", shape: Shape | None = None) -> npt.NDArray[Any]:
    """Patterns as an array of a float type; no conversion, so NaN payloads survive."""
    dtype = np.dtype(FLOATS[kind])
    array: npt.NDArray[Any] = np.array(bits, UNSIGNED[dtype.itemsize]).view(dtype)
    return array if shape is None else array.reshape(shape)


def scale_codes_array(kind: str | None, codes: Sequence[int], shape: Shape) -> npt.NDArray[Any]:
    """Scale codes in the code dtype of their type."""
    return np.array(codes, UNSIGNED[oracle.SCALE_BYTES.get(kind or "", 1)]).reshape(shape)


def widened(pattern: int, kind: str) -> int:
    """The binary32 pattern of an input, where the sign of a NaN counts (the oracle's `widen` gives the canonical NaN)."""
    wide = oracle.widen(pattern, kind)
    return wide | oracle.SIGN32 if oracle.is_nan(wide) and pattern & oracle.wide_sign(kind) else wide


@cache
def all_widened(kind: str) -> tuple[int, ...]:
    """Every f16 or bf16 number as binary32, in the order of the patterns."""
    return tuple(widened(pattern, kind) for pattern in range(1 << 16))


# ---------------------------------------------------------------- records


@cache
def reference_scheme(s: S) -> qs.Scheme:
    """The oracle's scheme as one of quantspec; raises what quantspec raises."""
    block = None if s.block is None or s.block_type is None else (s.block, s.block_type)
    return qs.Scheme(
        s.value,
        s.store if s.store == "native" else f"{s.store}_{s.d}",
        mode="symmetric" if s.table is None else "lookup",
        tensor=s.tensor,
        block=block,
        table=None if s.table is None else floats(s.table),
    )


def oracle_scheme(scheme: qs.Scheme) -> S:
    """A scheme of quantspec as one of the oracle."""
    return S(
        scheme.value.name,
        scheme.store.kind,
        scheme.store.d,
        None if scheme.tensor is None else scheme.tensor.name,
        None if scheme.block is None else scheme.block.extents,
        None if scheme.block is None else scheme.block.scale.name,
        None if scheme.table is None else scheme.table.bits,
    )


def reference_tensor(q: Q, shape: Shape, s: S) -> qs.Quantized:
    """The oracle's content as a quantized tensor; raises what quantspec raises."""
    codes = np.array(q.codes, np.uint8).reshape(shape)
    blocks = None if q.scale_codes is None else scale_codes_array(s.block_type, q.scale_codes, oracle.grid(shape, s))
    tensor = None if q.tensor_scale_code is None else scale_codes_array(s.tensor, [q.tensor_scale_code], ())
    return qs.Quantized(reference_scheme(s), codes, blocks, tensor)


# ---------------------------------------------------------------- comparison


@dataclass(frozen=True)
class Refusal:
    """The outcome of a call that refused."""

    reason: str


def outcome(call: Callable[[], E]) -> E | Refusal:
    """What a call gives, a refusal included; any other exception is a fault and passes through."""
    try:
        return call()
    except (oracle.Refused, qs.QuantspecError) as refusal:
        return Refusal(f"{type(refusal).__name__}: {refusal}")


def agree(what: str, expected: Callable[[], E], actual: Callable[[], A]) -> tuple[E, A] | None:
    """Both results, or None where both refuse; a Mismatch where only one does."""
    want, have = outcome(expected), outcome(actual)
    if isinstance(want, Refusal):
        if not isinstance(have, Refusal):
            raise Mismatch(f"{what}: accepted, but the oracle refuses: {want.reason}")
        return None
    if isinstance(have, Refusal):
        raise Mismatch(f"{what}: refused, but the oracle accepts: {have.reason}")
    return want, have


def require_same(what: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise Mismatch(f"{what}: {actual!r}, the oracle has {expected!r}")


def require_bits(what: str, expected: Sequence[int], actual: Any, inputs: Sequence[int] | None = None) -> None:
    """Patterns equal to those of an array, all of them; the Mismatch shows the first that differs."""
    have = patterns(actual)
    require_same(f"{what}: number of elements", len(expected), len(have))
    if have != list(expected):
        wrong = [i for i, (want, got) in enumerate(zip(expected, have, strict=True)) if want != got]
        i = wrong[0]
        source = f" for input {inputs[i]:08x}" if inputs is not None and len(inputs) == len(have) else ""
        raise Mismatch(f"{what}: [{i}]{source} is {have[i]:x}, the oracle has {expected[i]:x}; {len(wrong)} differ")


def require_content(
    what: str, expected: Q, actual: qs.Quantized, shape: Shape, s: S, inputs: Sequence[int] | None = None
) -> None:
    """A quantized tensor bit for bit: scheme, shapes, dtypes, codes and the scale codes of both levels."""
    require_same(f"{what}: scheme", s, oracle_scheme(actual.scheme))
    require_same(f"{what}: shape", shape, actual.codes.shape)
    require_same(f"{what}: dtype", np.dtype(np.uint8), actual.codes.dtype)
    tensor = None if expected.tensor_scale_code is None else [expected.tensor_scale_code]
    for level, kind, codes, array, level_shape in (
        ("tensor scale", s.tensor, tensor, actual.tensor_scale_code, ()),
        ("block scales", s.block_type, expected.scale_codes, actual.scale_codes, oracle.grid(shape, s)),
    ):
        require_same(f"{what}: no {level}", codes is None, array is None)
        if codes is not None and array is not None and kind is not None:
            require_same(f"{what}: shape of {level}", level_shape, array.shape)
            require_same(f"{what}: bytes of {level}", oracle.SCALE_BYTES[kind], array.dtype.itemsize)
            require_bits(f"{what}: {level}", codes, array)
    require_bits(f"{what}: codes", expected.codes, actual.codes, inputs)


# ---------------------------------------------------------------- checks of whole verbs


def check_quantize(
    xbits: Sequence[int],
    shape: Shape,
    s: S,
    *,
    verbs: Verbs = REFERENCE,
    x: Any = None,
    scales: Sequence[int] | None = None,
    scale_codes: Sequence[int] | None = None,
    tensor_scale: int | None = None,
    tensor_scale_code: int | None = None,
) -> Q | None:
    """Quantize on both sides: codes, scale codes, saturation report. The oracle's content, None where both refuse.

    `x` is passed instead of the binary32 array of `xbits`: the same numbers in another dtype or with other strides.
    """
    given: dict[str, Any] = {
        "scales": scales, "scale_codes": scale_codes, "tensor_scale": tensor_scale, "tensor_scale_code": tensor_scale_code
    }  # fmt: skip
    what = f"quantize {s} shape {shape} given { {k: v for k, v in given.items() if v is not None} }"
    if x is None:
        x = floats(xbits, "f32", shape)

    def run() -> qs.Quantized:
        cells = oracle.grid(shape, s)
        arrays: dict[str, Any] = {}
        if scales is not None:
            arrays["scales"] = floats(scales, "f32", cells if len(scales) == np.prod(cells, dtype=int) else None)
        if scale_codes is not None:
            fits = len(scale_codes) == np.prod(cells, dtype=int)
            arrays["scale_codes"] = scale_codes_array(s.block_type, scale_codes, cells if fits else (len(scale_codes),))
        if tensor_scale is not None:
            arrays["tensor_scale"] = floats([tensor_scale], "f32", ())
        if tensor_scale_code is not None:
            arrays["tensor_scale_code"] = scale_codes_array(s.tensor, [tensor_scale_code], ())
        result: qs.Quantized = verbs.quantize(x, reference_scheme(s), **arrays)
        return result

    both = agree(what, lambda: oracle.quantize(xbits, shape, s, **given), run)
    if both is None:
        return None
    expected, actual = both
    require_content(what, expected, actual, shape, s, xbits)
    report = (expected.saturated_count, expected.saturated_first, expected.tensor_saturated)
    found = actual.saturation
    require_same(f"{what}: saturation", report, (found.count, found.first, found.tensor))
    return expected


def _dequantized(verbs: Verbs, q: Q, shape: Shape, s: S, out: str) -> Any:
    return verbs.dequantize(reference_tensor(q, shape, s), out)


def check_dequantize(q: Q, shape: Shape, s: S, *, verbs: Verbs = REFERENCE, outputs: Sequence[str] = ("f32",)) -> None:
    """Dequantize on both sides, to each of the outputs: the oracle's binary32 numbers are narrowed by the oracle."""
    wide = outcome(lambda: oracle.dequantize(q, shape, s))
    for out in outputs:
        what = f"dequantize {s} shape {shape} to {out}"
        have = outcome(partial(_dequantized, verbs, q, shape, s, out))
        if isinstance(wide, Refusal) or isinstance(have, Refusal):
            require_same(f"{what}: refused", isinstance(wide, Refusal), isinstance(have, Refusal))
            continue
        require_same(f"{what}: dtype", np.dtype(FLOATS[out]), have.dtype)
        require_same(f"{what}: shape", shape, have.shape)
        require_bits(what, wide if out == "f32" else [oracle.narrow(y, out) for y in wide], have, q.codes)


def check_bytes(q: Q, shape: Shape, s: S, *, verbs: Verbs = REFERENCE) -> None:
    """Words, bytes, and the way back by split and by from_bytes and unpack."""
    what = f"bytes of {s} shape {shape}"
    both = agree(
        what, lambda: oracle.to_bytes(q, shape, s), lambda: bytes(verbs.to_bytes(reference_tensor(q, shape, s)))
    )
    if both is None:
        return
    data, actual = both
    require_same(what, data.hex(), actual.hex())
    scheme = reference_scheme(s)
    packed = verbs.pack(reference_tensor(q, shape, s))
    require_bits(f"{what}: words", oracle.pack(q.codes, shape, s), packed.words)
    require_same(f"{what}: bytes of the packed tensor", data.hex(), bytes(verbs.to_bytes(packed)).hex())
    read = oracle.split(data, shape, s)
    require_same(f"{what}: byte count", oracle.byte_length(shape, s), qs.byte_count(scheme, shape))
    for way, tensor in (
        ("split", verbs.split(data, scheme, shape)),
        ("unpack", verbs.unpack(packed)),
        ("from_bytes", verbs.unpack(verbs.from_bytes(data, scheme, shape))),
    ):
        require_content(f"{what}: {way}", read, tensor, shape, s)
