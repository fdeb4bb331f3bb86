"""`quantspec explain`: one number, one code or one element of a file under a scheme, down to the bit and to the rule."""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

import quantspec
from quantspec import Codec, Recipe, ScaleType, Scheme
from quantspec.blocks import amax, spread
from quantspec.quantize import effective_scale, quotient
from quantspec.rounding import widen
from quantspec.values import extend

from . import patterns
from .errors import UsageError
from .explain_steps import explained_steps, shaped
from .families import legal_codes
from .numbertext import bits_of, fraction_of
from .spec import rules
from .tensors import is_tensor_file, read_tensor

__all__ = ["explain", "reflowed"]

_CODE = re.compile(r"(?:code:(?:0[xX])?|c)([0-9a-fA-F]{1,2})")


def explain(
    scheme: Scheme,
    text: str,
    *,
    name: str | None = None,
    index: Sequence[int] | None = None,
    recipe: str | None = None,
    codec: str | None = None,
    given: Mapping[str, str | None] | None = None,
    width: int = 100,
) -> list[str]:
    """The lines that explain a value, a code, or an element of a file; under a recipe or a codec, each step of it.

    `given` are scales as typed, by the argument of quantize. UsageError for a text that is none of them, UnsupportedError for
    a name without a row or a scheme that is not covered.
    """
    code = _CODE.fullmatch(text)
    followed = recipe is not None or codec is not None
    for option, typed in (("--name", name), ("--index", None if followed else index)):
        if typed is not None and not is_tensor_file(text):
            raise UsageError(f"{option} goes with a file; {text!r} is none")
    scales = {argument: number for argument, number in (given or {}).items() if number is not None}
    if scales and not followed:
        raise UsageError("--scale and --tensor-scale go with --recipe, --codec or --preset")
    if followed and code is not None:
        raise UsageError(f"--recipe and --codec go with values or a file; {text!r} is a code, which has no scale alone")
    if followed:
        lines = _followed(scheme, text, name, index, recipe or "canonical", codec or "canonical", scales, width)
    elif is_tensor_file(text):
        lines = _file(scheme, text, name, index, width)
    elif code is not None:
        lines = _code(scheme, int(code[1], 16), width)
    else:
        lines = _value(scheme, text, width)
    return [*_scheme_lines(scheme), *lines]


def _scheme_lines(scheme: Scheme) -> Iterator[str]:
    row = scheme.value
    kind = f"minifloat, 1|{row.exponent_bits}|{row.mantissa_bits}, bias {row.bias}"
    if row.is_integer:
        kind = f"integers {row.lowest} to {row.highest}"
    if scheme.is_lookup:
        kind = f"indices into a table of {1 << row.bits} numbers"
    yield f"scheme     {scheme.text}"
    yield f"value      {row.name}: {row.bits} bits, {kind}; H = {patterns.exact(scheme.half_range)}"
    store = scheme.store
    codes, size = store.codes_per_word(row.bits), store.word_bytes(row.bits)
    yield f"store      {store.text}: {codes} code{'s' * (codes > 1)} in a word of {size} byte{'s' * (size > 1)}"
    if scheme.block is not None:
        extents = "x".join(map(str, scheme.block.extents or (1,)))
        yield f"block      extents {extents}, scales in {_scale_type(scheme.block.scale)}"
    if scheme.tensor is not None:
        yield f"tensor     scale in {_scale_type(scheme.tensor)}"


def _scale_type(scale: ScaleType) -> str:
    return f"{scale.name}, at most {patterns.exact(scale.largest)}"


def _value(scheme: Scheme, text: str, width: int) -> Iterator[str]:
    bits, remark = bits_of(text)
    yield ""
    yield f"input      {patterns.binary32(bits)}"
    if (bits & 0x7FFFFFFF) < 0x7F800000:
        yield f"           exactly {patterns.exact(abs(fraction_of(bits & 0x7FFFFFFF)) * (-1 if bits >> 31 else 1))}"
    if remark:
        yield f"           {remark}"
    x = np.array(bits, np.uint32).view(np.float32)
    with quantspec.trace() as trace:
        code = int(quantspec.encode(x, scheme.value, table=scheme.table))
    yield f"encodes to {patterns.value_code(code, scheme)}   at scale 1"
    yield from _neighbours(scheme, code)
    yield from _decoded(scheme, code, bits)
    yield from _rule_lines(trace.rules(), width)


def _decoded(scheme: Scheme, code: int, bits: int) -> Iterator[str]:
    y = quantspec.decode(np.array([code], np.uint8), scheme.value, table=scheme.table)
    yield f"decodes to {patterns.binary32(int(y.view(np.uint32)[0]))}"
    if (bits & 0x7FFFFFFF) < 0x7F800000 and np.isfinite(y[0]):
        error = Fraction(float(y[0])) - Fraction(float(np.array([bits], np.uint32).view(np.float32)[0]))
        yield f"error      {patterns.exact(error)}"


def _neighbours(scheme: Scheme, code: int) -> Iterator[str]:
    """The codes below and above on the number line, and the midpoints where the choice changes."""
    codes = legal_codes(scheme)
    numbers = quantspec.decode(codes, scheme.value, table=scheme.table)
    usable = np.isfinite(numbers)
    if scheme.value.is_integer and not scheme.is_lookup:
        usable &= numbers >= scheme.value.lowest
    by_number = {float(numbers[i]): int(codes[i]) for i in np.flatnonzero(usable)[::-1]}
    own = float(numbers[list(codes).index(code)])
    if own not in by_number:
        return
    ordered = sorted(by_number)
    place = ordered.index(own)
    for label, other in (("below", place - 1), ("above", place + 1)):
        if not 0 <= other < len(ordered):
            yield f"{label:10s} none: {'lower' if label == 'below' else 'higher'} numbers saturate here"
            continue
        middle = (Fraction(ordered[other]) + Fraction(own)) / 2
        shown = patterns.value_code(by_number[ordered[other]], scheme)
        yield f"{label:10s} {shown}   midpoint {patterns.exact(middle)}"


def _code(scheme: Scheme, code: int, width: int) -> Iterator[str]:
    if code not in legal_codes(scheme):
        row = scheme.value
        kind = "zero" if scheme.is_lookup or not row.is_integer else "sign"
        field = np.array([code & row.mask], np.uint8)
        extended = int(extend(field, row, lookup=scheme.is_lookup)[0])
        raise UsageError(
            f"code 0x{code:02X} is no code byte of {scheme.text}: a code is its field of {row.bits} bits, {kind}-extended to a "
            f"byte [VAL-5]; the field 0x{code & row.mask:X} is the byte 0x{extended:02X}"
        )
    yield ""
    yield f"code       {patterns.value_code(code, scheme)}"
    with quantspec.trace() as trace:
        y = quantspec.decode(np.array([code], np.uint8), scheme.value, table=scheme.table)
    bits = int(y.view(np.uint32)[0])
    yield f"decodes to {patterns.binary32(bits)}"
    if np.isfinite(y[0]):
        yield f"           exactly {patterns.exact(Fraction(float(y[0])))}"
        yield from _neighbours(scheme, code)
    yield from _rule_lines(trace.rules(), width)


def _file(scheme: Scheme, file: str, name: str | None, index: Sequence[int] | None, width: int) -> Iterator[str]:
    """One element of a tensor, with the scale of its block and how that came about."""
    found, x = read_tensor(file, name)
    if not x.size:
        raise UsageError(f"{file!r}: {found} has shape {x.shape}: there is no element to explain")
    place = tuple(index) if index is not None else (0,) * x.ndim
    if len(place) != x.ndim or any(not 0 <= i < size for i, size in zip(place, x.shape, strict=True)):
        raise UsageError(
            f"--index {','.join(map(str, place)) or '()'}: {found} has shape {x.shape}; allowed: an index of it"
        )
    with quantspec.trace() as trace:
        q = quantspec.quantize(x, scheme)
    y = quantspec.dequantize(q)
    bits = widen(x)
    s = effective_scale(scheme, q.scale_codes, q.tensor_scale_code)
    yield ""
    yield f"tensor     {found}: {x.dtype.name} of shape {x.shape}, {quantspec.byte_count(scheme, x.shape)} bytes under the scheme"
    yield f"element    {place}"
    yield f"input      {patterns.binary32(int(bits[place]))}"
    if scheme.block is not None and q.scale_codes is not None:
        extents = scheme.extents(x.ndim)
        block = tuple(i // e for i, e in zip(place, extents, strict=True))
        yield f"block      {block} of {q.scale_codes.shape}"
        yield f"amax       {patterns.binary32(int(amax(bits, extents)[block]))}"
        yield f"scale      {patterns.scale_code(int(q.scale_codes[block]), scheme.block.scale)}   ({scheme.block.scale.name})"
        s = spread(s, x.shape, extents)
    if scheme.tensor is not None and q.tensor_scale_code is not None:
        yield f"tensor     {patterns.scale_code(int(q.tensor_scale_code), scheme.tensor)}   ({scheme.tensor.name})"
    effective = np.asarray(np.broadcast_to(s, x.shape)[place])
    yield f"effective  {patterns.binary32(int(effective.view(np.uint32)))}"
    yield f"quotient   {patterns.binary32(int(quotient(np.asarray(bits[place]), effective)))}"
    yield f"code       {patterns.value_code(int(q.codes[place]), scheme)}"
    yield f"back       {patterns.binary32(int(y.view(np.uint32)[place]))}"
    yield from _rule_lines(trace.rules(place), width)


def _followed(
    scheme: Scheme,
    text: str,
    name: str | None,
    index: Sequence[int] | None,
    recipe: str,
    codec: str,
    given: Mapping[str, str],
    width: int,
) -> Iterator[str]:
    """One element of a file, or of values with commas between, under a recipe and a codec, step by step."""
    by, encoding = Recipe.of(recipe), Codec.of(codec)
    if is_tensor_file(text):
        label, x = read_tensor(text, name)
    else:
        x, label = shaped(scheme, [bits_of(part.strip())[0] for part in text.split(",")], by)
    lines, fired = explained_steps(scheme, x, by, encoding, index, label, given)
    yield ""
    yield from lines
    yield from _rule_lines(fired, width)


def _rule_lines(fired: Sequence[str], width: int) -> Iterator[str]:
    """The rules that fired, with their texts."""
    known = rules()
    yield ""
    yield "rules, in the order in which they fixed it:"
    for rule_id in fired:
        rule = known.get(rule_id)
        if rule is None:
            yield f"  {rule_id}"
            continue
        yield f"  {rule.id} {rule.title} [{rule.level}]"
        yield from reflowed(rule.text, width)


def reflowed(text: str, width: int) -> Iterator[str]:
    """Paragraphs wrapped anew and indented; the rows of a table keep their shape."""
    for paragraph in text.split("\n\n"):
        rows = paragraph.splitlines()
        if any(row.startswith(("|", "- ", "* ", "    ")) for row in rows):
            yield from (f"      {row}" for row in rows)
        else:
            yield from textwrap.wrap(" ".join(rows), width, initial_indent="      ", subsequent_indent="      ")
