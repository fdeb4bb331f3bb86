"""Codecs on a device: a row's members as the numbers that codecs.cl takes. Rules POL-2, POL-10 to POL-13."""

import struct
from collections.abc import Iterator

import pyopencl as cl

from quantspec import CANONICAL_CODEC, Codec, ValueFormat
from quantspec.codecs import require_codec

from .geometry import Shape
from .host import Machine
from .program import Program, register

__all__ = ["POLICIES", "codec_numbers", "covered", "is_plain", "reads_plainly"]

#: The kernels of codecs and of scale codes, which are told a row as numbers.
POLICIES = Program(("prelude.cl", "steps.cl", "codecs.cl", "policies.cl"))

BY_FORMAT, BY_ROUNDING, BY_THRESHOLDS = range(3)
ROUNDINGS = {"even": 0, "away": 1, "toward-zero": 2, "half-up": 3, "down": 4, "thresholds": 0}
SIGN_DROPPED, SIGN_KEPT, SIGN_INVERTED = range(3)
ZEROS = {"keep": 0, "underflow": 1, "drop": 2}


@register
def _programs() -> Iterator[Program]:
    yield POLICIES


def is_plain(codec: Codec, *, lookup: bool) -> bool:
    """True where a codec encodes as the canonical one: a table's nearest entry is one rule. Rule POL-11."""
    return codec == CANONICAL_CODEC or (lookup and codec.rounding == "even")


def reads_plainly(codec: Codec) -> bool:
    """True where a codec decodes as the canonical one. Rule POL-13."""
    return codec.negative_zero == "keep"


def covered(codec: Codec, value: ValueFormat, *, lookup: bool) -> None:
    """Refuse a codec that cannot encode a value format, as the reference does where it encodes. Rule POL-10."""
    if not is_plain(codec, lookup=lookup):
        require_codec(codec, value, lookup=lookup)


def codec_numbers(machine: Machine, codec: Codec, value: ValueFormat, *, lookup: bool) -> cl.Buffer:
    """The buffer that codecs.cl reads a codec from."""
    return machine.constant(_numbers(codec, value, lookup=lookup))


def _numbers(codec: Codec, value: ValueFormat, *, lookup: bool) -> Shape:
    kind = BY_THRESHOLDS if codec.rounding == "thresholds" else BY_ROUNDING
    if is_plain(codec, lookup=lookup):
        kind = BY_FORMAT
    nan, sign = _nan(codec, value)
    special = [code for code in (value.infinity_code, value.nan_code) if code is not None]
    beyond = special[0] if codec.overflow == "ieee" and special else value.largest_code
    read = int(not reads_plainly(codec))
    head = (kind, ROUNDINGS[codec.rounding], beyond, nan, sign, ZEROS[codec.zero_sign], read, int(codec.signed))
    return (*head, len(codec.thresholds), *map(_order_key, codec.thresholds), *codec.order)


def _nan(codec: Codec, value: ValueFormat) -> tuple[int, int]:
    """The code of a NaN without its sign, and what becomes of that. Rule POL-13."""
    if value.is_integer:
        code = {"zero": 0, "lowest": value.lowest, "highest": value.highest}[codec.nan_integer]
        return code & 0xFF, SIGN_DROPPED
    if codec.nan.endswith("ones"):
        return _ones(codec, value)
    if codec.nan in ("max", "signed-max"):
        return value.largest_code, SIGN_KEPT if codec.nan == "signed-max" else SIGN_DROPPED
    if codec.nan == "positive":
        return value.largest_code if value.nan_code is None else value.nan_code, SIGN_DROPPED
    if value.nan_code is not None:
        return value.nan_code, SIGN_KEPT
    if codec.nan == "negative-zero":
        return value.sign_bit, SIGN_DROPPED
    signs = {"signed-zero": SIGN_KEPT, "inverted-zero": SIGN_INVERTED}
    return 0, signs.get(codec.nan, SIGN_DROPPED)


def _ones(codec: Codec, value: ValueFormat) -> tuple[int, int]:
    """A NaN whose field is all ones but for the sign; the largest number, or zero, where a format has no NaN. Rule POL-13."""
    negative = value.sign_bit if codec.nan == "negative-ones" else 0
    if value.nan_code is None:
        return (0 if codec.nan == "ones" else value.largest_code | negative), SIGN_DROPPED
    return (value.mask >> 1) | negative, SIGN_KEPT if codec.nan == "ones" else SIGN_DROPPED


def _order_key(number: float) -> int:
    """The integer that orders as the number does, as 64 bits without a sign; its low 32 are what the kernel takes."""
    pattern: int
    (pattern,) = struct.unpack("<I", struct.pack("<f", number))
    key = pattern & 0x7FFFFFFF
    return (-key if pattern >> 31 else key) % 2**64
