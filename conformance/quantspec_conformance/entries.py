"""One entry of a tensor as text, by what it stands for: a code, a scale, a word, a float; and how far two lie apart."""

from quantspec import SCALES, ScaleType, Scheme

from .compare import Difference
from .diagnose import codes_apart
from .examples import DTYPES
from .patterns import binary32, hexadecimal, output_pattern, scale_code, value_code

__all__ = ["apart", "shown", "width_of"]

FLOATS = ("f32", "f16", "bf16")


def width_of(part: str, scheme: Scheme | None, dtype: str) -> int:
    """Bits of an entry of a part; `dtype` is that of its tensor."""
    scale = _scale(part, scheme)
    if part == "words" and scheme is not None:
        return 8 * scheme.store.word_bytes(scheme.value.bits)
    return 4 * DTYPES[dtype][0] if scale is None else 8 * scale.size


def shown(code: int, part: str, scheme: Scheme | None, dtype: str) -> str:
    """A pattern with its fields and number, as far as part, scheme and dtype tell what it is."""
    width, scale = width_of(part, scheme, dtype), _scale(part, scheme)
    if scheme is not None and part.partition("_")[0] == "codes" and dtype == "u8":
        return value_code(code, scheme)
    if scale is not None and dtype not in FLOATS:
        return scale_code(code, scale)
    if dtype in FLOATS:
        return output_pattern(code, dtype) if part == "y" or dtype != "f32" else binary32(code)
    if width > 8:
        return hexadecimal(code, width) + (_cut(code, scheme) if part == "words" and scheme is not None else "")
    return f"{hexadecimal(code, width)}  {code:08b}"


def _cut(word: int, scheme: Scheme) -> str:
    """The fields of a word, the lowest first. Rule PAK-4."""
    count, width = scheme.store.codes_per_word(scheme.value.bits), scheme.store.field_bits(scheme.value.bits)
    if count == 1:
        return ""
    cut = " ".join(hexadecimal(word >> i * width & (1 << width) - 1, width) for i in range(count))
    return f"  fields from the lowest {cut}"


def _scale(part: str, scheme: Scheme | None) -> ScaleType | None:
    """The type of a part that holds scale codes."""
    if scheme is None:
        return None
    if part == "scale_codes":
        return None if scheme.block is None else scheme.block.scale
    return scheme.tensor if part == "tensor_scale_code" else None


def apart(difference: Difference, part: str, scheme: Scheme | None, dtype: str) -> str:
    """How far two patterns lie from each other, where that says something."""
    scale = SCALES[dtype] if dtype in FLOATS else _scale(part, scheme)
    if scheme is not None and part.partition("_")[0] == "codes" and dtype == "u8":
        return codes_apart(difference, scheme)
    if scale is not None:
        return _floats_apart(difference, scale, f"{dtype} value" if dtype in FLOATS else "code")
    changed = hexadecimal(difference.expected ^ difference.actual, width_of(part, scheme, dtype))
    return f"they differ in the bits {changed}"


def _floats_apart(difference: Difference, scale: ScaleType, unit: str) -> str:
    """Steps on the grid of the type; a NaN has no place on it. Patterns of a float are values, those of a scale codes."""
    places = []
    for code in (difference.expected, difference.actual):
        magnitude = code & scale.magnitude_mask
        if magnitude >= scale.first_nan_code:
            return ""
        places.append(-magnitude if code & scale.sign_bit else magnitude)
    steps = abs(places[0] - places[1])
    return f"{steps} {unit}{'s' if steps != 1 else ''} apart" if steps else "the sign of zero differs"
