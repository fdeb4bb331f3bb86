"""chain: every step on special numbers and about its roundings, what a compiler would join, narrowing, broadcasting, refusals."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from quantspec import Scheme

from ...examples import Tensor
from ...implementations.law import tell
from ...protocol.messages import Ok, Request
from ..case import Case
from .common import (
    Ask,
    Place,
    Plan,
    bits32,
    changed,
    f32,
    positives,
    rng_of,
    shape_slug,
    slug_of,
    typed,
    with_refusals,
)
from .numbers import CARRIER, about_ties, any_numbers, carried, close_to, negated, quantized, random_bits
from .schemes import ask, by_value, covered, first_schemes, readable, scheme_of
from .values import Bits

__all__ = ["ARITHMETIC", "plans"]

ARITHMETIC = ("add", "sub", "rsub", "mul", "div", "rdiv")
TWO = (*ARITHMETIC, "min", "max")
#: What the cases of a step hunt.
BUGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ARITHMETIC, ("ftz", "nan-code", "sat-vs-inf", "neg-zero")),
    "div": ("reciprocal", "ftz", "nan-code"),
    "rdiv": ("reciprocal", "ftz", "nan-code"),
    **dict.fromkeys(("min", "max", "neg", "abs"), ("neg-zero", "nan-code")),
    "select": ("nan-code",),
    "cast": ("double-rounding", "tie", "sat-vs-inf"),
}
#: Name -> steps that other schemes, shapes and types are tried with; their operands are those of `_operands`.
STEPS = {
    "bias": "add:a",
    "scaled": "mul:a,add:b",
    "clipped": "min:a,max:b,neg",
    "halves": "div:a,cast:f16,rsub:b",
    "masked": "select:b:m,abs,rdiv:a",
}
CHAIN_SHAPES = ((2, 11), (19,), (3, 2, 5), (2, 3, 2, 4), (1, 1), ())


def plans(level: int) -> Iterator[Plan]:
    """The suites of chain."""
    if level == 0:
        yield positives(Place("scheme", "chain", "first", 0), _first)
        yield Plan(Place("scheme", "chain", "refused", 0), _refused)
        for name, group in by_value(first_schemes()):
            yield positives(Place(name, "chain", "first", 0), partial(_schemes, group))
    elif level == 1:
        for suite, make in SUITES.items():
            yield positives(Place("scheme", "chain", suite, 1), make)
        yield positives(Place("scheme", "chain", "pairwise", 1), _pairwise)
    else:
        yield positives(Place("scheme", "chain", "large", 2), _large)


def _carrier(
    slug: str, title: str, patterns: Any, steps: str, given: Mapping[str, Tensor], *bugs: str,
    shape: tuple[int, ...] | None = None, **words: str,
) -> Ask:  # fmt: skip
    """A chain on any binary32 numbers."""
    return ask(Scheme.parse(CARRIER), slug, title, {**carried(patterns, shape), **given}, *bugs, steps=steps, **words)


#: A number of each class, and operands that meet them in other pairs.
_FEW = (0x00000000, 0x80000000, 0x3FC00000, 0xC0000000, 0x7F800000, 0xFFA00001, 0x00000001, 0x7F7FFFFF)
_OTHERS = (0x80000000, 0x00000000, 0xBFC00000, 0x3F800001, 0x7F800000, 0x3F800000, 0x00000003, 0x7F7FFFFF)


def _first() -> Iterator[Ask]:
    """Each step on eight numbers; none, two, and every type of a result."""
    a, m = f32(_OTHERS), typed("u8", [0, 1, 2, 0x80, 0xFF, 0, 1, 0])
    for op in TWO:
        yield _carrier(op, f"{op} of two numbers", _FEW, f"{op}:a", {"a": a}, *BUGS[op])
    for op in ("neg", "abs"):
        yield _carrier(op, f"{op}: the sign alone", _FEW, op, {}, *BUGS[op])
    yield _carrier("select", "a mask of bytes", _FEW, "select:a:m", {"a": a, "m": m}, *BUGS["select"])
    ties = (0x477FF000, 0x477FEFFF, 0x3F801000, 0x3F803000, 0x33000000, 0x33000001, 0x3F808000, 0x7F7FFFFF)
    for to in ("f32", "f16", "bf16"):
        yield _carrier(f"cast-{to}", f"cast to {to}", ties, f"cast:{to}", {}, *BUGS["cast"])
        yield _carrier(f"none-to-{to}", f"no step, to {to}", ties, "()", {}, "double-rounding", to=to)
    yield _carrier("row", "a number for a column, a row, a scalar", [*_FEW[2:4]] * 3, "mul:a,add:b,sub:c", {
        "a": f32(bits32([[0.3], [0.7]])), "b": typed("bf16", [0x3F80, 0x4000, 0x4040]), "c": typed("f16", [0x3555], ()),
    }, "axis", shape=(2, 3))  # fmt: skip
    yield _carrier("contracted", "a * a - fl(a * a) is 0", [0x3F800800], "mul:a,add:b", {
        "a": f32([0x3F800800], ()), "b": f32([0xBF801000], ()),
    }, "contraction")  # fmt: skip
    sixty_four = ",".join(["add:a", "mul:b", "neg", "sub:a"] * 16)
    yield _carrier(
        "longest", "64 steps", _FEW, sixty_four, {"a": f32(bits32(0.3), ()), "b": f32(bits32(1.1), ())}, "length"
    )


def _operands(key: str, shape: tuple[int, ...], kind: str = "f32") -> dict[str, Tensor]:
    """A row of numbers not far from 1, a number, and a mask of the tensor's shape."""
    rng = rng_of(key)
    last = shape[-1:]
    row = ((rng.integers(1, 128, last) - 64) << (0 if kind == "f16" else 1)) + {
        "f32": 0x1FC,
        "f16": 0xF0,
        "bf16": 0x1FC,
    }[kind]
    shift = {"f32": 21, "f16": 6, "bf16": 5}[kind]
    mask = rng.integers(0, 3, shape)
    return {
        "a": typed(kind, np.asarray(row << shift) | np.asarray(rng.integers(0, 2, last)) << (31 if kind == "f32" else 15)),
        "b": f32(bits32(0.3), ()),
        "m": typed("u8", mask, shape),
    } if shape else {"a": f32(bits32(-1.7), ()), "b": f32(bits32(0.3), ()), "m": typed("u8", [1], ())}  # fmt: skip


def _used(steps: str, operands: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The operands that the steps name."""
    named = {name for step in steps.split(",") for name in step.split(":")[1:]}
    return {name: tensor for name, tensor in operands.items() if name in named}


def _schemes(group: list[Scheme]) -> Iterator[Ask]:
    """A chain on a tensor of each of the first schemes."""
    for number, scheme in enumerate(group):
        if readable(scheme, "chain"):
            name = tuple(STEPS)[number % len(STEPS)]
            yield _on_scheme(scheme, (2, 9), name, "f32", "f32")


def _on_scheme(scheme: Scheme, shape: tuple[int, ...], name: str, kind: str, to: str, family: str = "normal") -> Ask:
    key = f"chain.{scheme.text}.{shape_slug(shape)}"
    given = {**quantized(key, scheme, shape, family), **_used(STEPS[name], _operands(key, shape, kind))}
    return ask(
        scheme,
        f"{name}-{kind}-to-{to}-{shape_slug(shape)}",
        f"{STEPS[name]} on {shape}",
        given,
        "contraction", "axis", "block-index", "decode-order",
        steps=STEPS[name],
        to=to,
    )  # fmt: skip


def _pairwise() -> Iterator[Ask]:
    """Members of schemes, shapes, steps, types of operand and result: every two of them meet."""
    rows = covered(
        shape=CHAIN_SHAPES,
        extents=((16,), (), (2,), (2, 3), (3,), (2, 3, 4), None),
        steps=tuple(STEPS),
        kind=("f32", "f16", "bf16"),
        to=("f32", "f16", "bf16"),
    )
    for row in rows:
        yield _on_scheme(scheme_of(row), row["shape"], row["steps"], row["kind"], row["to"])


def _pairs() -> Iterator[Ask]:
    """Every two special numbers, as element and operand."""
    numbers = any_numbers()
    scheme = Scheme.parse(f"q8s.native.b{len(numbers)}-f32")
    shape = (len(numbers), len(numbers))
    given = {"codes": typed("u8", np.ones(shape, np.uint8)), "scale_codes": typed("u32", numbers, (len(numbers), 1))}
    for op in TWO:
        yield ask(
            scheme, op, f"every two special numbers, {op}", {**given, "a": f32(numbers)}, *BUGS[op], steps=f"{op}:a"
        )
    for op in ("neg", "abs", "cast:f16", "cast:bf16"):
        yield _carrier(op.replace(":", "-"), f"special numbers, {op}", numbers, op, {}, *BUGS[op.partition(":")[0]])
    masks = typed("u8", [0, 1, 2, 0x7F, 0x80, 0xFF] * len(numbers), (len(numbers), 6))
    yield ask(
        Scheme.parse("q8s.native.b6-f32"), "select", "special numbers, kept and replaced", {
            "codes": typed("u8", np.ones((len(numbers), 6), np.uint8)),
            "scale_codes": typed("u32", numbers, (len(numbers), 1)),
            "a": f32(numbers[::-1], (len(numbers), 1)),
            "m": masks,
        }, *BUGS["select"], steps="select:a:m",
    )  # fmt: skip


#: Exponent fields of the other factor, or of the divisor, that lead to subnormal results and to results about the largest.
_OTHER = {
    ("mul", "small"): (75, 125), ("mul", "large"): (117, 144),
    **{(op, "small"): (128, 180) for op in ("div", "rdiv")}, **{(op, "large"): (97, 135) for op in ("div", "rdiv")},
}  # fmt: skip


def _rounding() -> Iterator[Ask]:
    """Random numbers about the roundings of each operation: near ones, subnormal results, results about the largest."""
    for op in ARITHMETIC:
        for name, window in (("ordinary", (100, 154)), ("small", (0, 40)), ("large", (220, 255))):
            y = random_bits(f"chain.{op}.{name}", 192, *window)
            others = _OTHER.get((op, name))
            a = (
                close_to(f"chain.{op}.{name}.a", y)
                if others is None
                else random_bits(f"chain.{op}.{name}.a", 192, *others)
            )
            y, a = (a, y) if op == "rdiv" else (y, a)
            yield _carrier(f"{op}-{name}", f"{name} numbers, {op}", y, f"{op}:a", {"a": f32(a)}, "tie", *BUGS[op])


def _dequantized(scheme: Scheme, given: Mapping[str, Tensor]) -> Bits:
    """The numbers that a chain begins with."""
    answer = tell(Request("dequantize", {"scheme": scheme.text}, dict(given))).answer
    if not isinstance(answer, Ok):
        raise AssertionError(str(answer))
    return np.array(answer.tensors["y"].patterns, np.uint32)


def _contraction() -> Iterator[Ask]:
    """What compilers join, fold and leave out. The numbers are those for which it shows."""
    y, a = random_bits("chain.contraction.y", 96, 110, 140), random_bits("chain.contraction.a", 96, 110, 140)
    product = (y.view(np.float32) * a.view(np.float32)).view(np.uint32)
    for op, b in (("add", negated(product)), ("sub", product), ("rsub", product)):
        yield _carrier(
            f"mul-{op}",
            f"what mul rounded off is lost to {op}",
            y,
            f"mul:a,{op}:b",
            {"a": f32(a), "b": f32(b)},
            "contraction",
        )
    for text in ("q8s.native.b1-f32", "e4m3.native.b1-f32", "e2m1.native.b1-f32.t-f32", "q4s.packed_u32_0.b1-bf16"):
        scheme = Scheme.parse(text)
        given = quantized(f"chain.dequantize.{text}", scheme, (96,), "heavy")
        if scheme.tensor is None and scheme.block is not None and scheme.block.scale.name == "f32":
            given["scale_codes"] = typed("u32", random_bits(f"chain.scales.{text}", 96, 110, 140))
        for op in ("add", "sub"):
            start = _dequantized(scheme, given)
            b = negated(start) if op == "add" else start
            yield ask(
                scheme, f"dequantize-{op}", f"what dequantize rounded off is lost to {op}", {**given, "a": f32(b)},
                "contraction", steps=f"{op}:a",
            )  # fmt: skip
        yield ask(
            scheme, "scale-folded", "no constant is multiplied into a scale", {**given, "a": f32(bits32(0.7), ())},
            "contraction", steps="mul:a",
        )  # fmt: skip
    third, seventh = f32(bits32(3.0), ()), f32(bits32(0.7), ())
    for slug, title, steps, given in (
        ("mul-mul", "two factors are not one", "mul:a,mul:b", {"a": third, "b": seventh}),
        ("add-add", "two addends are not one", "add:a,add:b", {"a": third, "b": seventh}),
        ("div-div", "two divisors are not one", "div:a,div:b", {"a": third, "b": seventh}),
        ("div-mul", "a division is not undone", "div:a,mul:a", {"a": third}),
        ("div", "a division is no product", "div:a", {"a": f32(a)}),
        ("div-number", "a division by a number is no product", "div:a", {"a": third}),
        ("rdiv-rdiv", "the reciprocal of the reciprocal", "rdiv:a,rdiv:a", {"a": third}),
        ("add-sub", "what was added and taken away", "add:a,sub:a", {"a": third}),
        ("cast-cast", "two casts are not one", "cast:bf16,cast:f16", {}),
        ("cast-to", "a cast before a narrowing", "cast:f16,mul:a", {"a": seventh}),
    ):
        yield _carrier(
            slug, title, y, steps, given, "contraction", "reciprocal", to="f16" if slug == "cast-to" else "f32"
        )
    zero, one = f32([0], ()), f32([0x3F800000], ())
    for slug, title, steps, given in (
        ("add-zero", "+0 is added: -0 becomes +0", "add:a", {"a": zero}),
        ("sub-zero", "+0 is taken away: -0 stays", "sub:a", {"a": zero}),
        ("mul-one", "times 1: NaN becomes canonical", "mul:a", {"a": one}),
        ("mul-zero", "times 0: zeros keep signs, infinities become NaN", "mul:a", {"a": zero}),
        ("neg-neg", "the sign turned twice: NaN has one pattern", "neg,neg", {}),
        ("min-max", "a range", "max:a,min:b", {"a": zero, "b": one}),
        ("sub-same", "an infinity minus itself", "sub:a", {"a": f32(any_numbers())}),
        ("div-same", "zero over zero", "div:a", {"a": f32(any_numbers())}),
    ):
        yield _carrier(slug, title, any_numbers(), steps, given, "contraction", "neg-zero", "nan-code")


def _narrowing() -> Iterator[Ask]:
    """Numbers about the ties of f16 and bf16: as a cast, as the result, and after a step that makes them."""
    half = f32([0x3F000000], ())
    for to in ("f16", "bf16"):
        numbers = about_ties(to)
        bugs = ("tie", "double-rounding", "sat-vs-inf", "subnormal", "nan-code")
        yield _carrier(f"cast-{to}", f"cast about the ties of {to}", numbers, f"cast:{to}", {}, *bugs)
        yield _carrier(f"to-{to}", f"a result about the ties of {to}", numbers, "()", {}, *bugs, to=to)
        yield _carrier(f"half-to-{to}", "halved, then rounded once", numbers, "mul:a", {"a": half}, *bugs, to=to)
        other = {"f16": "bf16", "bf16": "f16"}[to]
        yield _carrier(
            f"cast-{other}-to-{to}", "a cast to the other type first", numbers, f"cast:{other}", {}, *bugs, to=to
        )


def _broadcast() -> Iterator[Ask]:
    """Operands and masks of every shape that a tensor takes; of f16 and bf16; no elements, a scalar."""
    for shape, others in (
        ((2, 3, 4), ((), (1,), (4,), (3, 1), (2, 1, 4), (1, 1, 1), (2, 3, 4), (3, 4), (1, 3, 1), (2, 1, 1))),
        ((2, 1, 3, 1), ((1, 3, 1), (2, 1, 1, 1), (3, 1), (1,))),
        ((5,), ((), (1,), (5,))),
        ((), ((),)),
        ((0,), ((0,), (1,))),
        ((2, 0), ((2, 1), (0,), (2, 0))),
    ):
        count = int(np.prod(shape))
        y = random_bits(f"chain.broadcast.{shape_slug(shape)}", count, 120, 134)
        for number, other in enumerate(others):
            size = int(np.prod(other))
            key = f"chain.broadcast.{shape_slug(shape)}.{shape_slug(other)}"
            kind = ("f32", "f16", "bf16")[number % 3]
            a = random_bits(key, size, 120, 134)
            narrowed = {
                "f32": a,
                "bf16": a >> np.uint32(16),
                "f16": (a >> np.uint32(16) & np.uint32(0x83FF)) | np.uint32(0x3C00),
            }
            mask = rng_of(f"{key}.m").integers(0, 3, other)
            given = {"a": typed(kind, narrowed[kind], other), "m": typed("u8", mask, other)}
            yield _carrier(
                f"{shape_slug(shape)}-{shape_slug(other)}", f"an operand of {other} for {shape}", y, "sub:a,select:a:m,mul:a",
                given, "axis", "dtype", shape=shape,
            )  # fmt: skip


SUITES = {
    "pairs": _pairs,
    "rounding": _rounding,
    "contraction": _contraction,
    "narrowing": _narrowing,
    "broadcast": _broadcast,
}


def _large() -> Iterator[Ask]:
    for name, steps in STEPS.items():
        scheme = Scheme.parse("e2m1.packed_native_0.b16-ue4m3.t-f32")
        shape = (64, 1023)
        key = f"chain.large.{name}"
        given = {**quantized(key, scheme, shape), **_used(steps, _operands(key, shape))}
        yield ask(scheme, name, f"{steps} on {shape}", given, "contraction", steps=steps)


def _refused(place: Place) -> Iterator[Case]:
    """Steps that there are not, operands and masks that are none or do not fit; a refused step behind others."""
    y = random_bits("chain.refused", 6, 120, 134)
    numbers, row = f32(y, (2, 3)), f32(y[:3])
    good = _carrier(
        "accepted", "accepted", y, "neg,add:a,select:b:m", {"a": row, "b": f32(y[:1], ()), "m": typed("u8", [1, 0, 1])},
        shape=(2, 3),
    )  # fmt: skip
    plain = {name: good.tensors[name] for name in ("codes", "scale_codes")}

    def bad(slug: str, title: str, steps: str, *bugs: str, **entries: Tensor) -> Ask:
        return Ask(
            slug=slug,
            title=title,
            words={**good.words, "steps": steps},
            tensors={**plain, **entries},
            bugs=bugs,
            part=good.part,
        )

    mask = typed("u8", [1, 0, 1])
    yield from with_refusals(
        place,
        good,
        [
            bad("unknown", "a step that there is not", "neg,exp"),
            bad("unknown-case", "names are in lower case", "Neg"),
            bad("fma", "no step joins two", "neg,fma:a:b", a=row, b=row),
            bad("no-operand", "a step without its operand", "neg,add"),
            bad("no-operand-cast", "a cast without a type", "cast"),
            bad("surplus-operand", "neg takes no operand", "neg:a", a=row),
            bad("no-mask", "select without a mask", "select:a", a=row),
            bad("surplus-mask", "add takes no mask", "add:a:m", a=row, m=mask),
            bad("surplus-mask-cast", "cast takes no mask", "cast:f16:m", m=mask),
            bad("65-steps", "more than 64 steps", ",".join(["neg"] * 65), "length"),
            bad("cast-f64", "no cast to binary64", "abs,cast:f64", "dtype"),
            bad("cast-e4m3", "no cast to a value format", "cast:e4m3", "dtype"),
            bad("mask-f32", "a mask of floats", "select:a:m", "dtype", a=row, m=row),
            bad("mask-u16", "a mask of 16 bits", "select:a:m", "dtype", a=row, m=typed("u16", [1, 0, 1])),
            bad("operand-f64", "an operand of binary64", "neg,mul:a", "dtype", a=typed("f64", [0x3FF0000000000000], ())),
            bad("operand-u8", "an operand of bytes", "add:a", "dtype", a=typed("u8", [1, 2, 3])),
            bad("operand-i32", "an operand of integers", "div:a", "dtype", a=typed("i32", [1, 2, 3])),
            bad("operand-axis", "an operand with an axis more", "max:a", "axis", a=f32(y, (1, 2, 3))),
            bad("operand-larger", "an operand that enlarges the tensor", "abs,sub:a", a=f32(y[:4])),
            bad("operand-column", "a column too long", "sub:a", a=f32(y, (6, 1))),
            bad("operand-turned", "rows and columns exchanged", "add:a", "axis", a=f32(y, (3, 2))),
            bad("operand-empty", "an operand without elements", "add:a", a=f32([], (0,))),
            bad("mask-larger", "a mask that enlarges the tensor", "select:a:m", a=row, m=typed("u8", [1] * 4)),
            bad("mask-axis", "a mask with an axis more", "select:a:m", "axis", a=numbers, m=typed("u8", [1] * 6, (1, 2, 3))),
            changed(good, "to-f64", "no such output", "dtype", to="f64"),
            changed(good, "byte-80", "byte 80 is no code", "extension", codes=typed("u8", [0x80] * 6, (2, 3)),
                    scheme="q4s.native.b1-f32"),
            changed(good, "scales-missing", "a level without scales", scale_codes=None),
        ],
    )  # fmt: skip
    one = f32([0x3F800000], (1,))
    empty = Ask(
        slug="accepted-empty", title="no elements and an operand of one", words={"scheme": CARRIER, "steps": "add:a"},
        tensors={**carried([], (2, 0)), "a": one}, part=slug_of(CARRIER),
    )  # fmt: skip
    yield from with_refusals(
        place, empty, [changed(empty, "empty-operand-two", "no elements, and an operand of two", a=f32([0, 0], (2,)))]
    )
