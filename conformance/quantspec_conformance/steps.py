"""Quantities between the input of an operation and its result, as the rules name them: amax, raw, g, s, q and so on."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Quantized
from quantspec.blocks import amax, spread
from quantspec.choice import LARGEST_RAW, raw_scale
from quantspec.quantize import effective_scale, quotient
from quantspec.rounding import Bits, divide, to_bits, to_float, widen

__all__ = ["STEPS", "widened", "words_of"]

Array = npt.NDArray[Any]


def widened(x: Array) -> Bits:
    """The binary32 patterns of an input. Rule QNT-1."""
    return widen(x)


def _input(bits: Bits | None) -> Bits:
    if bits is None:
        raise quantspec.UnsupportedError("CNF-5", "this quantity needs the input x")
    return bits


def _amax(tensor: Quantized, bits: Bits | None) -> Array:
    """Largest finite magnitude of each block, or of the tensor (shape ()). Rule SCL-5."""
    x = _input(bits)
    if tensor.scheme.block is None:
        finite = x & np.uint32(0x7FFFFFFF)
        return to_float(np.asarray(np.max(finite, where=finite < np.uint32(0x7F800000), initial=np.uint32(0))))
    return to_float(amax(x, tensor.scheme.extents(x.ndim)))


def _raw(tensor: Quantized, bits: Bits | None) -> Array:
    """amax / H. Rules SCL-6, SCL-7."""
    return to_float(raw_scale(to_bits(_amax(tensor, bits)), tensor.scheme))


def _bounded(tensor: Quantized, bits: Bits | None) -> Array:
    """raw' of two levels. Rule SCL-10."""
    return to_float(np.minimum(to_bits(_raw(tensor, bits)), LARGEST_RAW))


def _g(tensor: Quantized, bits: Bits | None) -> Array:
    """The decoded tensor scale. Rule SCL-14."""
    if tensor.scheme.tensor is None or tensor.tensor_scale_code is None:
        raise quantspec.ScaleError("SCL-22", "the scheme has no tensor level")
    return quantspec.decode_scale(tensor.tensor_scale_code, tensor.scheme.tensor)


def _b(tensor: Quantized, bits: Bits | None) -> Array:
    """The decoded block scales. Rule SCL-14."""
    if tensor.scheme.block is None or tensor.scale_codes is None:
        raise quantspec.ScaleError("SCL-22", "the scheme has no block level")
    return quantspec.decode_scale(tensor.scale_codes, tensor.scheme.block.scale)


def _u(tensor: Quantized, bits: Bits | None) -> Array:
    """raw' / g, before it is rounded up. Rule SCL-12."""
    bounded = _bounded(tensor, bits)
    u = to_bits(divide(bounded, _g(tensor, bits)))
    return to_float(np.where((u == 0) & (bounded > 0), np.uint32(1), u))


def _s(tensor: Quantized, bits: Bits | None) -> Array:
    """The effective scale, of each block or of the tensor. Rule SCL-14."""
    return effective_scale(tensor.scheme, tensor.scale_codes, tensor.tensor_scale_code)


def _spread(tensor: Quantized) -> Array:
    s = _s(tensor, None)
    return s if tensor.scheme.block is None else spread(s, tensor.shape, tensor.scheme.extents(len(tensor.shape)))


def _q(tensor: Quantized, bits: Bits | None) -> Array:
    """The quotient of each element. Rules QNT-2 to QNT-5."""
    return to_float(quotient(_input(bits), np.asarray(_spread(tensor), np.float32)))


def _v(tensor: Quantized, bits: Bits | None) -> Array:
    """The number that each code stands for. Rules VAL-12, SCH-4."""
    return quantspec.decode(tensor.codes, tensor.scheme.value, table=tensor.scheme.table)


#: Quantities in the order in which the rules make them.
STEPS: dict[str, Callable[[Quantized, Bits | None], Array]] = {
    "amax": _amax,
    "raw": _raw,
    "bounded": _bounded,
    "g": _g,
    "u": _u,
    "b": _b,
    "s": _s,
    "q": _q,
    "v": _v,
}


def words_of(name: str, tensor: Quantized | None, made: Mapping[str, Any]) -> str:
    """An entry of words: a scheme's text or JSON, a shape, a number of bytes, a report, a verdict."""
    if name == "text":
        return str(made["scheme"].text)
    if name == "equal":
        return "yes" if made["scheme"] == made["scheme_2"] else "no"
    if name == "shape":
        return ",".join(map(str, made["shape"])) or "()"
    if name == "size" and name not in made:
        return str(quantspec.byte_count(made["scheme"], made["shape"]))
    if name == "saturated" and tensor is not None:
        report = tensor.saturation
        first = "none" if report.first is None else ",".join(map(str, report.first)) or "()"
        return f"{report.count} first {first} tensor {'yes' if report.tensor else 'no'}"
    return str(made[name])
