"""Codecs: how one number becomes a code, where stacks differ. Rules POL-2, POL-11, POL-12, POL-13.

The canonical codec is `values` and `tables`; the others are the rows of presets.toml, executed here.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import UnsupportedError
from .rounding import F32, INF, MAGNITUDE, Bits, is_nan, order_key, round_significand, scaled, split_fields, to_bits
from .rounding import to_float as floats
from .rows import Row, rows, undefined
from .tracing import note, rule

if TYPE_CHECKING:
    from .values import ValueFormat

__all__ = ["CANONICAL_CODEC", "CODECS", "Codec", "encode_by", "read_by", "require_canonical_codec", "require_codec"]

ROUNDINGS = ("even", "away", "toward-zero", "half-up", "down", "thresholds")
OVERFLOWS = ("saturate", "ieee")
NANS = ("format", "positive", "max", "zero", "signed-zero", "inverted-zero", "negative-zero", "signed-max", "ones",
        "positive-ones", "negative-ones")  # fmt: skip
NAN_INTEGERS = ("zero", "lowest", "highest")
ZERO_SIGNS = ("keep", "underflow", "drop")
READS = ("keep", "drop")
_HEX_FLOAT = re.compile(r"-?0x[01](?:\.[0-9a-f]+)?p[+-][0-9]+")
Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Codec:
    """How one number becomes a code. Rules POL-2, POL-11, POL-12, POL-13."""

    name: str
    rounding: str = "even"  #: nearest, and where a tie goes; `down` is toward minus infinity, `thresholds` an own list
    overflow: str = "saturate"  #: what is beyond the range
    nan: str = "format"  #: the code of a NaN in a minifloat
    zero_sign: str = "keep"  #: which negative zeros a minifloat writes
    nan_integer: str = "zero"  #: the code of a NaN in an integer format
    negative_zero: str = "keep"  #: what a minifloat's negative zero reads as
    thresholds: tuple[float, ...] = ()  #: ascending; a number above k of them takes order[k]
    order: tuple[int, ...] = ()  #: the codes, in the order of their numbers
    signed: bool = False  #: thresholds are of magnitudes, the top bit of a field is the sign

    @classmethod
    def of(cls, codec: "Codec | str") -> "Codec":
        """A codec, or the row that a name stands for. Rule POL-2."""
        found = CODECS.get(codec) if isinstance(codec, str) else codec
        if not isinstance(found, Codec):
            raise undefined("POL-2", "codec", codec, CODECS)
        if found != CANONICAL_CODEC:
            note("POL-2")
            _check(found)
        return found

    @classmethod
    def read(cls, content: object) -> "Codec":
        """The codec of a row, members checked. Rule POL-2."""
        row = Row("codec", content, "POL-2")
        thresholds = [_number(row, text) for text in row.texts("thresholds")]
        codec = cls(
            row.name,
            row.text("rounding", "even"),
            row.text("overflow", "saturate"),
            row.text("nan", "format"),
            row.text("zero_sign", "keep"),
            row.text("nan_integer", "zero"),
            row.text("negative_zero", "keep"),
            tuple(thresholds),
            row.numbers("order"),
            row.flag("signed"),
        )
        row.done()
        _check(codec)
        return codec


def _number(row: Row, text: str) -> float:
    if not _HEX_FLOAT.fullmatch(text):
        raise row.fault("thresholds", text, "binary32 numbers in hexadecimal, such as 0x1.8p+1")
    number = float.fromhex(text)
    if float(np.float32(number)) != number:
        raise row.fault("thresholds", text, "numbers that binary32 has")
    return number


def _check(codec: Codec) -> None:
    """Refuse a codec whose members have no meaning. Rule POL-2."""
    for member, value, allowed in (
        ("rounding", codec.rounding, ROUNDINGS),
        ("overflow", codec.overflow, OVERFLOWS),
        ("nan", codec.nan, NANS),
        ("zero_sign", codec.zero_sign, ZERO_SIGNS),
        ("nan_integer", codec.nan_integer, NAN_INTEGERS),
        ("negative_zero", codec.negative_zero, READS),
    ):
        if value not in allowed:
            raise UnsupportedError(
                "POL-2", f"codec {codec.name!r} is not defined: {member}={value!r}; allowed: {', '.join(allowed)}"
            )
    own = codec.rounding == "thresholds"
    ascending = list(codec.thresholds) == sorted(set(codec.thresholds))
    whole = len(codec.order) == len(codec.thresholds) + 1 and sorted(codec.order) == list(range(len(codec.order)))
    if own != bool(codec.thresholds) or own != bool(codec.order) or (own and not (ascending and whole)):
        raise UnsupportedError(
            "POL-2",
            f"codec {codec.name!r}: {len(codec.thresholds)} thresholds and {len(codec.order)} codes; allowed: ascending "
            "thresholds and one code more than those, each once, with rounding='thresholds' and only there",
        )


#: Every codec by name, canonical first.
CODECS = {row.name: row for row in map(Codec.read, rows("codec"))}
CANONICAL_CODEC = CODECS["canonical"]


def require_canonical_codec(codec: "Codec | str") -> None:
    """Refuse any other codec where codecs have no part: scale codes have rules of their own. Rule POL-2."""
    if codec not in (CANONICAL_CODEC, CANONICAL_CODEC.name):
        raise UnsupportedError("POL-2", f"codec={Codec.of(codec).name!r} is not defined here; defined: canonical")


def require_codec(codec: Codec, value: "ValueFormat", *, lookup: bool) -> None:
    """Refuse a codec that has no meaning for a value format. Rule POL-10."""
    if codec == CANONICAL_CODEC:
        return
    note("POL-10")
    if codec.rounding != "thresholds" and (not lookup or codec.rounding == "even"):
        return
    fields = len(codec.order) * (2 if codec.signed else 1)
    if lookup and codec.rounding == "thresholds" and fields == 1 << value.bits:
        return
    kind = "lookup" if lookup else "symmetric"
    allowed = f"lookup with {fields} entries" if codec.rounding == "thresholds" else "symmetric schemes"
    raise UnsupportedError("POL-10", f"codec={codec.name!r} with {kind} {value.name}; the codec covers {allowed}")


@rule("POL-11")
def encode_by(bits: Bits, value: "ValueFormat", codec: Codec, *, lookup: bool) -> Codes:
    """Codes of binary32 patterns by a codec that is not canonical; not for lookup but by thresholds. Rule POL-11."""
    require_codec(codec, value, lookup=lookup)
    if codec.rounding == "thresholds":
        return _by_thresholds(bits, value, codec)
    return _integers(bits, value, codec) if value.is_integer else _minifloats(bits, value, codec)


@rule("POL-12")
def _by_thresholds(bits: Bits, value: "ValueFormat", codec: Codec) -> Codes:
    """The code in the place that counts the thresholds below a number; a NaN is above none. Rule POL-12."""
    invalid = is_nan(bits)
    looked = bits & MAGNITUDE if codec.signed else bits
    limits = order_key(to_bits(np.array(codec.thresholds, np.float32)))
    place = np.searchsorted(limits, order_key(looked), side="left")
    codes = np.array(codec.order, np.uint8)[np.where(invalid, 0, place)]
    if not codec.signed:
        return np.asarray(codes)
    negative = (order_key(bits) < 0) & ~invalid
    return np.asarray(codes | np.where(negative, np.uint8(value.sign_bit), np.uint8(0)), np.uint8)


@rule("POL-12", "POL-13")
def _integers(bits: Bits, value: "ValueFormat", codec: Codec) -> Codes:
    """The nearest integer by the codec's ties, saturating. Rules POL-12, POL-13."""
    invalid = is_nan(bits)
    x = np.clip(floats(np.where(invalid, np.uint32(0), bits)), np.float32(-1024), np.float32(1024)).astype(np.float64)
    low = np.floor(x)
    over = x - low  # exact in binary64; in binary32 the number just above -1/2 would be a tie
    higher = over > 0.5
    if codec.rounding == "down":
        higher = np.zeros(x.shape, bool)
    tie = over == 0.5
    up = {
        "even": low % 2 == 1,
        "away": x > 0,
        "toward-zero": x < 0,
        "half-up": np.ones(x.shape, bool),
        "down": np.zeros(x.shape, bool),
    }[codec.rounding]
    rounded = low + np.where(tie, up, higher)
    code = np.clip(rounded, value.lowest, value.highest)
    lost = {"zero": 0, "lowest": value.lowest, "highest": value.highest}[codec.nan_integer]
    return np.where(invalid, np.float64(lost), code).astype(np.int8).view(np.uint8)


@rule("POL-12", "POL-13")
def _minifloats(bits: Bits, value: "ValueFormat", codec: Codec) -> Codes:
    """The nearest minifloat by the codec's ties; overflow, NaN and zeros by the codec. Rules POL-12, POL-13."""
    magnitude = bits & MAGNITUDE
    invalid = magnitude > INF
    negative = (bits != magnitude) & ~invalid
    code = _nearest(np.where(invalid, np.uint32(0), magnitude), negative, value, codec.rounding)
    sign = np.where(negative, np.uint32(value.sign_bit), np.uint32(0))
    beyond = (code > value.largest_code) | (magnitude == INF)
    code = np.where(beyond, np.uint32(_overflow(value, codec)), code)
    if codec.zero_sign != "keep":
        dropped = code == 0 if codec.zero_sign == "drop" else magnitude == 0
        sign = np.where(dropped, np.uint32(0), sign)
    return np.where(invalid, _nan_codes(bits, value, codec), code | sign).astype(np.uint8)


def _overflow(value: "ValueFormat", codec: Codec) -> int:
    """The magnitude code of what is beyond the range. Rule POL-13."""
    special = [code for code in (value.infinity_code, value.nan_code) if code is not None]
    return special[0] if codec.overflow == "ieee" and special else value.largest_code


def _nan_codes(bits: Bits, value: "ValueFormat", codec: Codec) -> npt.NDArray[Any]:
    """The code of each NaN, by its sign bit where the codec looks at that. Rule POL-13."""
    sign = np.where(bits > MAGNITUDE, np.uint32(value.sign_bit), np.uint32(0))
    lacks = value.nan_code is None
    own = np.uint32(value.nan_code or 0)
    top = np.uint32(value.largest_code)
    if codec.nan.endswith("ones"):
        code = {"ones": 0, "positive-ones": value.largest_code, "negative-ones": value.largest_code | value.sign_bit}
        ones = np.uint32(value.mask >> 1)
        signs: dict[str, Any] = {
            "ones": sign,
            "positive-ones": np.uint32(0),
            "negative-ones": np.uint32(value.sign_bit),
        }
        return np.broadcast_to(np.uint32(code[codec.nan]) if lacks else ones | signs[codec.nan], bits.shape)
    if codec.nan == "signed-max":
        return top | sign
    if codec.nan == "max":
        return np.full(bits.shape, top)
    if codec.nan == "zero" and lacks:
        return np.zeros(bits.shape, np.uint32)
    if codec.nan == "positive":
        return np.full(bits.shape, top if lacks else own)
    if not lacks:
        return own | sign
    return {
        "format": np.zeros(bits.shape, np.uint32),
        "signed-zero": sign,
        "inverted-zero": sign ^ np.uint32(value.sign_bit),
        "negative-zero": np.full(bits.shape, np.uint32(value.sign_bit)),
    }[codec.nan]


def _nearest(
    magnitude: Bits, negative: npt.NDArray[np.bool_], value: "ValueFormat", rounding: str
) -> npt.NDArray[np.uint32]:
    """Magnitude codes in a format whose exponent range has no upper end; up to twice the largest number is looked at."""
    shape = {"mantissa_bits": value.mantissa_bits, "bias": value.bias}
    twice = scaled(*split_fields(np.array([value.largest_code + (1 << value.mantissa_bits)], np.uint32), **shape))
    seen = np.minimum(magnitude, twice)
    high = round_significand(seen, up=True, **shape)
    exact = scaled(*split_fields(high, **shape)) == seen
    low = np.where(exact, high, high - np.uint32(1))
    if rounding == "down":
        return np.where(negative, high, low)
    middle = (floats(scaled(*split_fields(low, **shape))) + floats(scaled(*split_fields(high, **shape)))) / 2  # exact
    x = floats(seen)
    up = {
        "even": low % 2 == 1,
        "away": np.ones(seen.shape, bool),
        "toward-zero": np.zeros(seen.shape, bool),
        "half-up": ~negative,
    }[rounding]
    return np.where((x > middle) | ((x == middle) & up), high, low)


def read_by(numbers: F32, codec: Codec) -> F32:
    """Numbers of codes, a negative zero read as the codec reads it. Rule POL-13."""
    if codec.negative_zero == "keep":
        return numbers
    note("POL-13")
    return np.where(numbers == 0, np.float32(0), numbers)
