"""The fields of a pattern: S|E|M of floats, codes and scale codes, the codes of a word, padding and extension."""

from dataclasses import dataclass

from quantspec import SCALES, VALUES, ScaleType, Scheme
from quantspec.values import ValueFormat

from ..examples import DTYPES
from ..suite.case import Case
from .formats import scheme_of

__all__ = ["Field", "layout_of"]

WIDEST = 64


@dataclass(frozen=True, slots=True)
class Field:
    """Some neighbouring bits, high to low: a short name, what it is, a class of colour, how many."""

    short: str
    name: str
    colour: str
    bits: int


def _float(sign: int, exponent: int, mantissa: int) -> list[Field]:
    return [
        Field("S", "sign", "sign", sign),
        Field("E", "exponent", "exponent", exponent),
        Field("M", "mantissa", "mantissa", mantissa),
    ]


def _scale(row: ScaleType) -> list[Field]:
    sign = int(row.signed)
    fields = _float(sign, row.bits - sign - row.mantissa_bits, row.mantissa_bits)
    return [Field("0", "not used, zero", "pad", 8 * row.size - row.bits), *fields]


def _value(row: ValueFormat, *, lookup: bool) -> list[Field]:
    """A code in a byte: the extension above the field."""
    if lookup:
        return [Field("0", "extension, zero", "pad", 8 - row.bits), Field("I", "index", "integer", row.bits)]
    if row.is_integer:
        return [
            Field("X", "extension of the sign", "pad", 8 - row.bits),
            Field("I", "two's complement", "integer", row.bits),
        ]
    return [Field("0", "extension, zero", "pad", 8 - row.bits), *_float(1, row.exponent_bits, row.mantissa_bits)]


def _word(scheme: Scheme, width: int) -> list[Field]:
    """Codes from the last, in the high bits, to the first."""
    bits, per_word = scheme.store.field_bits(scheme.value.bits), scheme.store.codes_per_word(scheme.value.bits)
    unused = width - bits * per_word
    if unused < 0:
        return []
    fields = [Field(str(n), f"code {n} of the word", f"code{n % 4}", bits) for n in reversed(range(per_word))]
    return [Field("-", "not used, zero", "pad", unused), *fields]


def _named(case: Case, part: str, width: int) -> list[Field]:
    """The fields that the part of a case has by what it is; empty where it is plain bytes."""
    scheme = scheme_of(case, result=True)
    if part == "codes":
        row = VALUES.get(case.words.get("value", "")) if scheme is None else scheme.value
        return [] if row is None else _value(row, lookup="table" in case.inputs)
    if part in ("scale_codes", "tensor_scale_code"):
        if scheme is None:
            scale = SCALES.get(case.words.get("type", ""))
        elif part == "tensor_scale_code":
            scale = scheme.tensor
        else:
            scale = None if scheme.block is None else scheme.block.scale
        return [] if scale is None else _scale(scale)
    return _word(scheme, width) if part == "words" and scheme is not None else []


def layout_of(case: Case | None, part: str, largest: int) -> list[Field]:
    """The fields of an entry of a part, high to low; as wide as the largest pattern takes where the case is not known."""
    expected = case.outputs.get(part) if case is not None else None
    if case is None or expected is None or largest >> 4 * DTYPES[expected.dtype][0]:
        width = next((width for width in (8, 16, 32) if largest >> width == 0), WIDEST)
        return [Field("", "bits", "plain", width)]
    width = 4 * DTYPES[expected.dtype][0]
    fields = _named(case, part, width)
    if expected.dtype in SCALES and expected.dtype.startswith(("f", "b")):
        fields = _scale(SCALES[expected.dtype])
    if expected.dtype == "f64":
        fields = _float(1, 11, 52)
    fields = [field for field in fields if field.bits > 0]
    return fields if sum(field.bits for field in fields) == width else [Field("", "bits", "plain", width)]
