"""encode and quantize at the extremes: blocks of zeros, amax in every part of binary32, elements that vanish beside amax, numbers
and quotients far beyond every code.

Implementations that are right in the middle are wrong here: a logarithm that rounds to a whole number, an exponent that wraps, a
reciprocal that overflows, a cast of an integer that wraps, a shift by more than a word, zero by zero. Each family is one place of
that kind, for every format and scale type, and under the recipes whose scales depend on amax alone.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from quantspec import SCALES, TABLES, VALUES, Codec, Preset, Scheme, ValueFormat

from .common import Ask, Place, Plan, bits32, f32, positives, two
from .recipes import CODECS, named, presets_of
from .schemes import ask
from .values import SIGN, Bits, beside, both_signs, evenly, finite_numbers

__all__ = ["plans"]

#: Block lengths that formats with such scales have.
WIDTHS = {"ue8m0": 32, "ue4m3": 16}
INFINITY = np.uint32(0x7F800000)
#: Exponents of amax: the ends of binary32, of its normal numbers and of ue8m0, and what lies between, near 1 more densely.
EXPONENTS = (
    -149, -148, -138, -127, -126, -125, -120, -119, -118, -100, -64, -32, -20, -1,
    0, 1, 9, 10, 20, 32, 64, 100, 118, 120, 126, 127,
)  # fmt: skip
#: Exponents about the ends of machine integers, where casts wrap, and of binary32.
FAR = (7, 8, 15, 16, 23, 24, 30, 31, 32, 53, 62, 63, 64, 100, 126, 127)
#: Elements of a case of level 1 at most.
MOST = 4096
#: Scales that are given: 1; the smallest normal number, under which quotients overflow; one without an exact reciprocal.
GIVEN = (0x3F800000, 0x00800000, 0x3DCCCCCD)


def plans(level: int) -> Iterator[Plan]:
    """The suites of level 1."""
    if level != 1:
        return
    families: dict[str, Callable[[ValueFormat], Iterator[Ask]]] = {
        "zeros": _zeros, "binades": _binades, "underflow": _underflow, "beyond": _beyond,
    }  # fmt: skip
    for row in VALUES.values():
        for suite, make in families.items():
            yield positives(Place(row.name, "quantize", suite, 1), partial(make, row))
        yield positives(Place(row.name, "encode", "above", 1), partial(_above, row))


def _blocks(row: ValueFormat, tensor: str | None = None) -> Iterator[Scheme]:
    """Schemes in rows of blocks: a scale type each; in one level also a registered table each."""
    for scale in SCALES:
        yield Scheme(row, "native", block=(WIDTHS.get(scale, 32), scale), tensor=tensor)
    for table in TABLES.values():
        if row.is_integer and len(table.bits) == 1 << row.bits and tensor is None:
            yield Scheme(row, "native", mode="lookup", block=(32, "f32"), table=table)


def _rows(scheme: Scheme, heads: npt.NDArray[np.uint32]) -> Bits:
    """A block a row that begins with these numbers, zeros after them; of long blocks as many as a case of level 1 may hold."""
    width = 32 if scheme.block is None else scheme.block.extents[-1]
    heads = heads[evenly(len(heads), MOST // width)]
    x = np.zeros((len(heads), width), np.uint32)
    x[:, : heads.shape[1]] = heads
    return x


def _asked(scheme: Scheme, slug: str, title: str, x: Bits, *bugs: str, **words: str) -> Ask:
    return ask(scheme, slug, title, {"x": f32(x, x.shape)}, *bugs, **words)


# ---------------------------------------------------------------- zeros


def _zeros(row: ValueFormat) -> Iterator[Ask]:
    """Nothing but zeros, of one sign and of both; a block of zeros beside another. In one level and in two."""
    for tensor in (None, "f32"):
        for scheme in _blocks(row, tensor):
            plus = _rows(scheme, np.zeros((2, 1), np.uint32))
            signed = plus.copy()
            signed[:, ::2] = SIGN
            beside_others = plus.copy()
            beside_others[0, :3] = bits32([1.5, -3, 0.25])
            yield _asked(scheme, "all", "a tensor of zeros", plus, "zero-block")
            yield _asked(scheme, "signed", "a tensor of zeros of both signs", signed, "zero-block", "neg-zero")
            yield _asked(scheme, "one-block", "a block of zeros beside another", beside_others, "zero-block")


# ---------------------------------------------------------------- amax


def amaxes() -> Bits:
    """Each power of two of EXPONENTS with both neighbours, 1.75 times it and what lies next above; the ends of binary32.

    They are even in number, so that an implementation that stumbles over odd ones shows here what else it does.
    """
    powers = bits32([two(exponent) for exponent in EXPONENTS])
    parts = bits32([1.75 * two(exponent) for exponent in EXPONENTS if exponent >= -126])
    found = np.concatenate([beside(powers).reshape(-1), parts, parts + np.uint32(1), [np.uint32(0x7F7FFFFF)]])
    found = np.unique(found[found > 0]).astype(np.uint32)
    return found if len(found) % 2 == 0 else np.append(found, np.uint32(0x7F7FFFFE))


def _binades(row: ValueFormat) -> Iterator[Ask]:
    """amax next to powers of two all over binary32; beside it a number of half the size and the other sign."""
    peaks = amaxes()
    halves = np.where(peaks >> 23 > 1, peaks - np.uint32(1 << 23), peaks >> np.uint32(1)) | SIGN
    heads = np.stack([peaks, halves], 1)
    bugs = ("scale-rounding", "scale-underflow", "scale-overflow", "subnormal", "ftz")
    title = "amax next to powers of two"
    for scheme in _blocks(row):
        yield _asked(scheme, "canonical", title, _rows(scheme, heads), *bugs)
    for preset, schemes in presets_of(row.name):
        for scheme in schemes:
            if _by_amax(preset, scheme):
                yield _asked(scheme, preset.name, title, _rows(scheme, heads), *bugs, **named(preset))


def _by_amax(preset: Preset, scheme: Scheme) -> bool:
    """True where a block's scale follows from its amax alone, and every finite block has one."""
    recipe = preset.recipe
    return scheme.tensor is None and not recipe.given_only and recipe.amax != "absmean" and not recipe.refuse


def _underflow(row: ValueFormat) -> Iterator[Ask]:
    """Beside amax 1, numbers of every exponent below it, of either sign: most of them become a zero with their sign."""
    fields = np.arange(127, dtype=np.uint32)
    small = both_signs(
        (fields << np.uint32(23)) | ((fields * np.uint32(0x2545F5)) & np.uint32(0x7FFFFF)) | np.uint32(1)
    )
    for scheme in _blocks(row):
        width = 32 if scheme.block is None else scheme.block.extents[-1]
        rows = -(-len(small) // (2 * (width - 1))) * 2
        x = _rows(scheme, np.full((rows, 1), 0x3F800000, np.uint32))
        x[:, 1:] = np.resize(small, (rows, width - 1))
        yield _asked(scheme, "exponents", "numbers of every exponent beside 1", x, "neg-zero", "subnormal", "ftz")


# ---------------------------------------------------------------- beyond every code


def far() -> Bits:
    """Powers of two about the ends of machine integers with both neighbours, the largest number, Inf; both signs."""
    near = beside(bits32([two(exponent) for exponent in FAR])).reshape(-1)
    return both_signs(np.concatenate([near, [np.uint32(0x7F7FFFFF), INFINITY]]).astype(np.uint32))


def _beyond(row: ValueFormat) -> Iterator[Ask]:
    """Quotients up to Inf under scales that are given, and under the largest scale that a type has."""
    numbers = far()
    bugs = ("sat-vs-inf", "scale-overflow")
    scheme = Scheme(row, "native", tensor="f32")
    for pattern in GIVEN:
        title = f"numbers up to Inf over a given scale of {pattern:08X}"
        given = {"x": f32(numbers), "tensor_scale": f32([pattern], ())}
        yield ask(scheme, f"s-{pattern:08x}", title, given, *bugs)
    scheme = Scheme(row, "native", block=(4, "f32"))
    scales = np.repeat(np.array(GIVEN, np.uint32), len(numbers) // 4)
    given = {"x": f32(np.tile(numbers, len(GIVEN)), (len(scales), 4)), "scales": f32(scales, (len(scales), 1))}
    yield ask(scheme, "given", "numbers up to Inf over given block scales", given, *bugs)
    for scheme in _blocks(row):
        if scheme.table is None and scheme.block is not None:
            largest = float(scheme.block.scale.largest) * float(row.half_range)
            peaks = [largest * two(exponent) for exponent in (0, 1, *FAR) if largest * two(exponent) < two(127)]
            if len(peaks) > 2:
                yield _asked(
                    scheme, "amax", "amax up to where no scale of the type reaches", _peaks(scheme, peaks), *bugs
                )


def _peaks(scheme: Scheme, peaks: Sequence[float]) -> Bits:
    """A row for each, an even number of them, with 1 and the negative beside it."""
    even = peaks[: len(peaks) // 2 * 2]
    with np.errstate(all="ignore"):
        heads = np.asarray(even, np.float64).astype(np.float32).view(np.uint32)
    return _rows(scheme, np.stack([heads, np.full(heads.shape, 0x3F800000, heads.dtype), heads | SIGN], 1))


def _above(row: ValueFormat) -> Iterator[Ask]:
    """Numbers between the largest of the format and eight times it, 32 a binade, with both neighbours; far ones; Inf."""
    top = np.abs(finite_numbers(row).view(np.float32)).max()
    first = math.frexp(float(top))[1] - 1
    exponents = range(first, first + 4)
    steps = [np.ldexp(np.float64(32 + part), exponent - 5) for exponent in exponents for part in range(32)]
    x = both_signs(np.concatenate([beside(bits32(steps)).reshape(-1), far()[::2]]).astype(np.uint32))
    title = f"{row.name}: numbers from the largest on, up to Inf"
    codecs = [name for name, values in CODECS.items() if row.name in values]
    for name in ("canonical", *codecs):
        words = {"value": row.name} | ({} if name == "canonical" else {"codec": Codec.of(name).name})
        yield Ask(slug=name, title=title, words=words, tensors={"x": f32(x)}, bugs=("sat-vs-inf", "nan-code"))
