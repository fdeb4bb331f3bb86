"""Chains, products and the change of store: the public functions against the oracle's independent ones."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quantspec

from .. import oracle
from .. import oracle_products as op
from ..bridge import floats, patterns, reference_tensor
from ..oracle import INF32, MAX32, NAN32, SIGN32, Q, S, Shape, T
from ..oracle_products import ONE, Array, Step
from ..strategies import (
    LOOKUPS,
    OUTPUTS,
    PROPERTY,
    SCALE_TYPES,
    SPECIAL,
    VALUES,
    around,
    bits,
    content,
    random_patterns,
    scale_code,
    seeds,
    shapes,
    stepped,
    tensors,
)

STORES = ("native", "packed_native", "packed_u32")
SYMMETRIC: list[tuple[str, tuple[int, ...] | None]] = [(v, None) for v in VALUES]
WITH_LOOKUP = [*SYMMETRIC, *((n.value, n.table) for n in LOOKUPS.values() if len(n.table) <= 16)]

#: 40 patterns: special ones, neighbours of 1, of 2^24 and of the edges, full mantissas.
FORTY = tuple(sign | p for sign in (0, SIGN32) for p in (
    0, 1, 2, 0x3FFFFF, 0x7FFFFF, 0x800000, 0x800001, 0x1F800000, 0x337FFFFF, 0x33800000, 0x3EAAAAAB, 0x3F7FFFFF,
    ONE, ONE + 1, 0x40490FDB, 0x4B800001, 0x5F800000, 0x7EFFFFFF, MAX32, INF32,
))  # fmt: skip
NANS = (NAN32, 0xFFC00000, 0x7F800001, 0xFFABCDEF)


# ---------------------------------------------------------------- calling and comparing


def public(name: str) -> Callable[..., Any]:
    return getattr(quantspec, name)  # type: ignore[no-any-return]


def reference(t: T) -> Any:
    return reference_tensor(*t)


def expect(what: str, expected: Sequence[int], shape: Shape, kind: str, actual: Any) -> None:
    assert isinstance(actual, np.ndarray), f"{what}: result is a {type(actual).__name__}"
    assert actual.shape == shape, f"{what}: shape {actual.shape}, expected {shape}"
    assert actual.dtype == floats([], kind).dtype, f"{what}: dtype {actual.dtype}, expected {kind}"
    got = patterns(actual)
    for index, want, have in zip(oracle.indices(shape), expected, got, strict=True):
        assert want == have, f"at {index}: oracle {want:08x}, reference {have:08x}: {what}"


def public_number(a: Array, form: int) -> Any:
    """A number as a Python float, an array of rank 0 or a numpy scalar."""
    array = floats(list(a.bits), a.kind, ())
    return (float(array), array, array[()])[form]


def public_step(step: Step, form: int = 0) -> tuple[Any, ...]:
    result: list[Any] = [step[0]]
    for part in step[1:]:
        if isinstance(part, str):
            result.append(part)
        elif part.kind == "mask":
            array = np.array(part.bits, np.uint8).reshape(part.shape)
            result.append(array.astype(bool) if set(part.bits) <= {0, 1} and form else array)
        elif part.shape == () and part.kind == "f32":
            result.append(public_number(part, form))
        else:
            result.append(floats(list(part.bits), part.kind, part.shape))
    return tuple(result)


def check_chain(t: T, steps: Sequence[Step], out: str = "f32", form: int = 0) -> None:
    expected = op.chain(t, steps, out)
    actual = public("chain")(reference(t), [public_step(step, form) for step in steps], out)
    expect(f"chain {[step[0] for step in steps]} of {t}", expected, t[1], out, actual)


def check_product(x: Array, w: T, out: str = "f32", view: Callable[[Any], Any] = lambda x: x) -> None:
    expected, shape = op.product(x, w, out)
    actual = public("product")(view(floats(list(x.bits), x.kind, x.shape)), reference(w), out)
    expect(f"product of {x} and {w}", expected, shape, out, actual)


def check_product_codes(x: T, w: T, out: str = "f32") -> None:
    expected, shape = op.product_codes(x, w, out)
    actual = public("product_codes")(reference(x), reference(w), out)
    expect(f"product_codes of {x} and {w}", expected, shape, out, actual)


def refusing(call: Callable[[], object], mine: Callable[[], object]) -> None:
    assert oracle.refused(mine), "the oracle accepts"
    with pytest.raises(quantspec.QuantspecError):
        call()


# ---------------------------------------------------------------- data


def plain(source: random.Random, spread: int = 4) -> int:
    return bits(source.gauss(0, 1) * 2.0 ** source.randint(-spread, spread))


def few_bits(source: random.Random) -> int:
    """Small whole numbers and numbers about 2^24: sums cancel to nothing and halfway cases abound."""
    return bits(
        Fraction(source.choice((0, 1, 1, 2, 3, 5, 2**12 + 1, 2**23 + 1, 2**24 - 1, 2**24))) / source.choice((1, 1, 2))
    ) ^ (source.getrandbits(1) << 31)


def against(source: random.Random, total: int, factor: int) -> int:
    """x for which x * factor + total cancels, or lands on or beside the middle between two binary32 numbers."""
    if not oracle.is_finite(total) or not oracle.is_finite(factor) or oracle.is_zero(factor) or oracle.is_zero(total):
        return source.choice((plain(source), few_bits(source)))
    if source.random() < 0.3:
        x = oracle.divide32(total ^ SIGN32, factor)
    else:
        exponent = max((total >> 23 & 0xFF) - 127 - 24, -149)
        half = oracle.power2(exponent) * source.choice((1, 1, 1, 3, 5)) * source.choice((1, -1))
        x = oracle.divide32(oracle.rn32(half), factor)
    return stepped(x, source.choice((0, 0, 1, -1))) if oracle.is_finite(x) else plain(source)


def adapted(source: random.Random, factors: Sequence[int]) -> list[int]:
    """Numbers chosen one by one against the sum so far of their products with the factors."""
    row: list[int] = []
    p = 0
    for k, factor in enumerate(factors):
        p = 0 if k % 32 == 0 else p
        row.append(against(source, p, factor) if source.random() < 0.8 else plain(source))
        p = op.fma32(row[-1], factor, p)
    return row


MOODS = ("plain", "few bits", "adapted", "mirrored", "special", "patterns", "huge", "tiny")


def x_row(mood: str, source: random.Random, factors: Sequence[int]) -> list[int]:
    size = len(factors)
    if mood == "adapted":
        return adapted(source, factors)
    if mood == "mirrored":  # the second of two runs takes the first away
        row = [source.choice((plain, few_bits))(source) for _ in range(size)]
        return [row[k] if k // 32 % 2 == 0 else row[k - 32] ^ SIGN32 for k in range(size)]
    rare = (*SPECIAL, *FORTY, *NANS)
    makers: dict[str, Callable[[], int]] = {
        "plain": lambda: plain(source),
        "few bits": lambda: few_bits(source),
        "special": lambda: source.choice(rare) if source.random() < 2 / (size + 1) else plain(source),
        "patterns": lambda: source.getrandbits(32),
        "huge": lambda: (MAX32 - source.randrange(3) * 0x800000 - source.randrange(3)) ^ source.getrandbits(1) << 31,
        "tiny": lambda: source.choice((1, 3, 0x800000, source.randrange(0x1000000))) ^ source.getrandbits(1) << 31,
    }
    return [makers[mood]() for _ in range(size)]


SCALE_MOODS = ("one", "powers", "near", "near", "edges", "huge", "tiny", "rare")


def scale_of(kind: str, mood: str, source: random.Random) -> int:
    if mood == "edges" or (mood == "rare" and source.random() < 0.03):
        return scale_code(kind, source)
    signed = source.getrandbits(1) << 31 if kind in oracle.WIDE and source.random() < 0.3 else 0
    if mood in ("huge", "tiny"):
        end = oracle.largest_finite(kind) if mood == "huge" else oracle.decode_scale(kind, 1)
        factor = Fraction(source.randrange(1, 17), 16) if mood == "huge" else Fraction(source.randrange(1, 17))
        return oracle.encode_scale(kind, oracle.rn32(oracle.value(end) * factor) | signed, "nearest")
    value = {
        "one": Fraction(1),
        "powers": Fraction(2) ** source.randint(-3, 3),
    }.get(mood, Fraction(source.uniform(1, 2)) * Fraction(2) ** source.randint(-4, 4))
    return oracle.encode_scale(kind, oracle.rn32(value) | (signed if mood != "one" else 0), "nearest")


def codes_of(s: S, shape: Shape, source: random.Random) -> list[int]:
    """Any codes, finite ones, or one of three finite ones; sometimes with a period of 32 on the first axis."""
    legal = oracle.valid_codes(s.value, s.table is not None)
    finite = [code for code in legal if oracle.is_finite(oracle.decode(s.value, code, s.table))]
    count = math.prod(shape)
    choice = source.random()
    if choice < 0.15:
        codes = source.choices(legal, k=count)
    elif choice < 0.3 and len(legal) > len(finite):  # one that is not finite, mostly
        rest = [code for code in legal if code not in finite]
        codes = source.choices(finite, k=count)
        for _ in range(source.randrange(1, 4) if count else 0):
            codes[source.randrange(count)] = source.choice((*rest, finite[0]))
    else:
        codes = source.choices(finite if choice < 0.7 else source.sample(finite, 3), k=count)
    if len(shape) == 2 and source.random() < 0.4:
        period = 32 * shape[1]
        codes = [codes[i % period] for i in range(count)]
    return codes


def filled(s: S, shape: Shape, source: random.Random) -> T:
    cells = math.prod(oracle.grid(shape, s))
    blocks, tensor = source.choice(SCALE_MOODS), source.choice(SCALE_MOODS)
    return (
        Q(
            codes_of(s, shape, source),
            None if s.block_type is None else [scale_of(s.block_type, blocks, source) for _ in range(cells)],
            None if s.tensor is None else scale_of(s.tensor, tensor, source),
        ),
        shape,
        s,
    )


depths = st.one_of(st.sampled_from((0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 97, 100)), st.integers(0, 100))
narrow_sizes = st.one_of(st.integers(1, 3), st.integers(0, 3))
extents = st.one_of(st.sampled_from((1, 2, 3, 5, 7, 16, 31, 32, 33, 40, 64, 2**31 - 1)), st.integers(1, 100))
scale_types = st.sampled_from(SCALE_TYPES)
outputs = st.sampled_from(("f32", "f32", "f16", "bf16"))


@st.composite
def schemes_on(draw: st.DrawFn, rank: int, elements: Sequence[tuple[str, tuple[int, ...] | None]] = SYMMETRIC) -> S:
    """A scheme for this rank, with extents that need not divide anything."""
    value, table = draw(st.sampled_from(elements))
    tensor, block_type = draw(st.one_of(st.none(), scale_types)), draw(st.one_of(st.none(), scale_types, scale_types))
    block = None if block_type is None else tuple(draw(st.lists(extents, max_size=rank)))
    store = draw(st.sampled_from(STORES))
    return S(value, store, 0 if store == "native" else draw(st.integers(0, rank - 1)), tensor, block, block_type, table)


def leads(largest_rank: int = 2) -> st.SearchStrategy[Shape]:
    return st.lists(narrow_sizes, max_size=largest_rank).map(tuple)


# ---------------------------------------------------------------- the oracle itself


@PROPERTY
@given(seeds)
def test_the_oracle_rounds_to_the_nearest(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(20):
        a, b = (source.choice((source.choice(FORTY), source.getrandbits(32), plain(source))) for _ in range(2))
        c = source.choice((op.negate32(oracle.multiply32(a, b)), source.getrandbits(32), source.choice(FORTY)))
        if source.random() < 0.5 and oracle.is_finite(c):
            b = against(source, c, a)
        if all(oracle.is_finite(p) for p in (a, b, c)):
            x, y, z = op.plain_value(a), op.plain_value(b), op.plain_value(c)
            results = [(x * y + z, op.fma32(a, b, c)), (x + y, op.add32(a, b)), (x - y, op.subtract32(a, b))]
            for exact, result in results:
                if exact != 0:
                    op.require_nearest(exact, result)
                else:
                    assert oracle.is_zero(result)
        assert op.fma32(a, ONE, c) == op.add32(a, c)
        if not oracle.is_zero(oracle.multiply32(a, b)):
            assert op.fma32(a, b, 0) == op.fma32(a, b, SIGN32) == oracle.multiply32(a, b)


# ---------------------------------------------------------------- chains


def rows_of(pattern_list: Sequence[int], columns: int) -> T:
    """A tensor whose row i is pattern i throughout: codes 1, an f32 scale a row."""
    s = S("q8s", "native", 0, None, (max(columns, 2),), "f32")
    count = len(pattern_list)
    return Q([1] * (count * columns), list(pattern_list), None), (count, columns), s


def numbers_of(pattern_list: Sequence[int]) -> T:
    """A tensor of given numbers: codes 1, an f32 scale each."""
    s = S("q4s", "native", 0, None, (), "f32")
    return Q([1] * len(pattern_list), list(pattern_list), None), (len(pattern_list),), s


EVERY = (*FORTY, *NANS)


@pytest.mark.parametrize("name", op.WITH_OPERAND)
def test_each_op_on_all_pairs_of_special_numbers(name: str) -> None:
    t = rows_of(EVERY, len(EVERY))
    for out in OUTPUTS:
        check_chain(t, [(name, Array(EVERY, (len(EVERY),)))], out)
    for kind in ("f16", "bf16"):
        edges = [m | s for m in (0, 1, 0x80, 0x3FF, 0x400, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0x7E01, 0x7F7F, 0x7F80, 0x7FC1)
                 for s in (0, 0x8000)]  # fmt: skip
        check_chain(rows_of(EVERY, len(edges)), [(name, Array(edges, (1, len(edges)), kind))])


@pytest.mark.parametrize("name", op.WITH_OPERAND)
def test_each_op_with_each_special_number_as_a_number(name: str) -> None:
    t = numbers_of(EVERY)
    for form, p in itertools.product(range(3), FORTY):
        check_chain(t, [(name, op.number(p))], form=form)


@pytest.mark.parametrize("form", range(3))
def test_a_number_may_be_nan(form: int) -> None:
    for name in op.WITH_OPERAND:
        check_chain(numbers_of(EVERY), [(name, op.number(NAN32))], form=form)
    mask = Array([i % 2 for i in range(len(EVERY))], (len(EVERY),), "mask")
    check_chain(numbers_of(EVERY), [("select", op.number(NAN32), mask)], form=form)


def test_each_op_without_operand_on_special_numbers() -> None:
    t = numbers_of(EVERY)
    steps: list[Step] = [("neg",), ("abs",), *(("cast", kind) for kind in OUTPUTS)]
    for out in OUTPUTS:
        for step in steps:
            check_chain(t, [step], out)
        check_chain(t, [], out)


def test_select_on_all_pairs_of_special_numbers() -> None:
    n = len(EVERY)
    other = Array(EVERY, (n,))
    for values in ((0, 1), (0, 2, 255, 128)):
        mask = Array([values[(i * 7 + i // n) % len(values)] for i in range(n * n)], (n, n), "mask")
        for form in (0, 1):
            check_chain(rows_of(EVERY, n), [("select", other, mask)], form=form)
            check_chain(rows_of(EVERY, n), [("select", op.number(SIGN32), mask)], form=form)
    check_chain(rows_of(EVERY, n), [("select", other, Array([0, 1] * (n // 2), (n, 1), "mask"))])
    check_chain(rows_of(EVERY, n), [("select", other, Array([0], (), "mask"))])


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_cast_at_every_sort_of_middle(kind: str) -> None:
    exponent_bits, fraction_bits = oracle.WIDE[kind]
    source = random.Random(16)
    codes = {c + j for e in range(2**exponent_bits - 1) for c in (e << fraction_bits,) for j in (-1, 0, 1)}
    codes |= {source.randrange(oracle.wide_inf(kind)) for _ in range(300)}
    ends = [oracle.widen(c, kind) for c in sorted(codes) if 0 <= c < oracle.wide_inf(kind)]
    one_up = [oracle.widen(c + 1, kind) for c in sorted(codes) if 0 <= c < oracle.wide_inf(kind) - 1]
    middles = [oracle.rn32((oracle.value(a) + oracle.value(b)) / 2) for a, b in zip(ends, one_up, strict=False)]
    top = oracle.value(ends[-1]) + oracle.value(oracle.rn32(oracle.power2((ends[-1] >> 23) - 127 - fraction_bits - 1)))
    everything = around([*ends, *middles, oracle.rn32(top)])
    t = numbers_of([p ^ (SIGN32 * (i % 2)) for i, p in enumerate(everything)])
    check_chain(t, [("cast", kind)])
    check_chain(t, [("cast", kind), ("cast", "bf16" if kind == "f16" else "f16")])
    check_chain(t, [], kind)


@pytest.mark.parametrize("name", op.WITH_OPERAND)
def test_each_op_on_random_pairs(name: str) -> None:
    source = random.Random(name)
    ys = (
        random_patterns(len(name), 500)
        + [plain(source, 80) for _ in range(1000)]
        + [few_bits(source) for _ in range(300)]
    )
    others = [source.choice((y ^ SIGN32, stepped(y, 1) ^ SIGN32, source.getrandbits(32), plain(source), few_bits(source),
                             against(source, y, ONE))) for y in (p if oracle.is_finite(p) else ONE for p in ys)]  # fmt: skip
    check_chain(numbers_of(ys), [(name, Array(others, (len(ys),)))])


@pytest.mark.parametrize("out", OUTPUTS)
def test_each_op_at_rank_0(out: str) -> None:
    """The result is an array, as that of dequantize is, whatever the step."""
    t = Q([1], None, bits("1.7")), (), S("q4s", "packed_u32", 0, "f32")
    one, mask = op.number(ONE), Array([1], (), "mask")
    steps: list[Step] = [*((name, one) for name in op.WITH_OPERAND), ("neg",), ("abs",), ("select", one, mask)]
    check_chain(t, [], out)
    for step in (*steps, *(("cast", kind) for kind in OUTPUTS)):
        check_chain(t, [step], out)


@st.composite
def chains(draw: st.DrawFn, t: T) -> list[Step]:
    """Steps whose operands are often chosen against the values they meet."""
    q, shape, s = t
    source = random.Random(draw(seeds))
    ys = oracle.dequantize(q, shape, s)
    steps: list[Step] = []

    def operand() -> Array:
        kind = source.choice(("f32", "f32", "f16", "bf16"))
        drop = source.choice((0, 0, 1, len(shape)))
        lead = min(drop, len(shape))
        own = tuple(1 if source.random() < 0.3 else n for n in shape[lead:])
        count = math.prod(own)
        if source.random() < 0.3:
            return op.number(source.choice((*FORTY, few_bits(source), plain(source))))
        near = ys or [ONE]
        made = [
            source.choice(
                (
                    plain(source),
                    few_bits(source),
                    source.choice(EVERY),
                    near[i % len(near)],
                    near[i % len(near)] ^ SIGN32,
                    against(source, near[i % len(near)], ONE),
                )
            )
            for i in range(count)
        ]
        return Array([p if kind == "f32" else oracle.narrow(p, kind) for p in made], own, kind)

    for _ in range(draw(st.integers(0, 6))):
        name = draw(st.sampled_from(op.OPS))
        step: Step
        if name in op.WITHOUT_OPERAND:
            step = (name,)
        elif name == "cast":
            step = (name, source.choice(OUTPUTS))
        elif name == "select":
            other = operand()
            own = tuple(1 if source.random() < 0.3 else n for n in shape[source.randint(0, len(shape)) :])
            step = (
                name,
                other,
                Array([source.choice((0, 0, 1, 1, 2, 255)) for _ in range(math.prod(own))], own, "mask"),
            )
        else:
            step = (name, operand())
        ys = op.one_step(ys, shape, step)
        steps.append(step)
    return steps


@settings(PROPERTY, max_examples=200)
@given(st.data(), seeds, outputs, st.integers(0, 1))
def test_chain(data: st.DataObject, seed: int, out: str, form: int) -> None:
    shape = data.draw(shapes(largest_rank=3, largest_size=5))
    if shape:
        t = filled(data.draw(schemes_on(len(shape), WITH_LOOKUP)), shape, random.Random(seed))
    else:
        t = data.draw(tensors(st.just(shape)))
    check_chain(t, data.draw(chains(t)), out, form)


def test_longest_chain_and_one_step_more() -> None:
    t = numbers_of(FORTY)
    steps: list[Step] = [("add", op.number(ONE)), ("mul", op.number(bits("0.75")))] * 32
    check_chain(t, steps)
    more = [*steps, ("neg",)]
    refusing(lambda: public("chain")(reference(t), [public_step(s) for s in more]), lambda: op.chain(t, more))


def test_steps_as_records_and_lists() -> None:
    step = public("Step")
    t = rows_of(FORTY, 3)
    mask = np.array([0, 1, 2], np.uint8)
    expected = op.chain(
        t, [("rsub", op.number(ONE)), ("select", op.number(0), Array([0, 1, 2], (3,), "mask")), ("abs",)]
    )
    for steps in (
        [step("rsub", 1.0), step("select", 0, mask), step("abs")],
        (["rsub", 1], ["select", 0.0, mask], ["abs"]),
        [step("rsub", operand=np.float32(1)), step("select", operand=0.0, mask=mask), ("abs",)],
    ):
        expect("chain", expected, t[1], "f32", public("chain")(reference(t), steps))


# ---------------------------------------------------------------- products


@settings(PROPERTY, max_examples=300)
@given(leads(), depths, narrow_sizes, schemes_on(2, WITH_LOOKUP), st.sampled_from(MOODS), outputs, outputs, seeds)
def test_product(lead: Shape, depth: int, n: int, s: S, mood: str, kind: str, out: str, seed: int) -> None:
    source = random.Random(seed)
    w = filled(s, (depth, n), source)
    ws = oracle.dequantize(*w)
    columns = [ws[c::n] for c in range(n)] or [[ONE] * depth]
    rows = [x_row(mood, source, columns[i % len(columns)]) for i in range(math.prod(lead))]
    made = [p if kind == "f32" else oracle.narrow(p, kind) for row in rows for p in row]
    check_product(Array(made, (*lead, depth), kind), w, out)


@settings(PROPERTY, max_examples=100)
@given(st.integers(1, 70), st.sampled_from(("adapted", "mirrored")), st.booleans(), seeds)
def test_product_near_ties(depth: int, mood: str, tiny: bool, seed: int) -> None:
    """Weights of full mantissas: what an fma by a double product and a double sum would round twice."""
    source = random.Random(seed)
    low, high = (-149, -120) if tiny else (-2, 2)
    scales = [bits(source.gauss(0, 1) * 2.0 ** source.randint(low, high)) for _ in range(depth)]
    w = Q([1] * depth, scales), (depth, 1), S("q8s", "native", 0, None, (), "f32")
    check_product(Array([p for _ in range(4) for p in x_row(mood, source, scales)], (4, depth)), w)


def test_product_of_every_triple_of_special_numbers() -> None:
    """fma(a, b, c) for all of the forty: x rows (c, a), w columns (1, b)."""
    triples = FORTY + NANS[:1]
    n = len(triples)
    w = Q([1] * (2 * n), [ONE] * n + list(triples)), (2, n), S("q8s", "native", 0, None, (), "f32")
    x = Array([p for c in triples for a in triples for p in (c, a)], (n, n, 2))
    check_product(x, w)


@pytest.mark.parametrize("depth", [1, 2])
def test_product_of_all_pairs_of_e2m1(depth: int) -> None:
    rows = list(itertools.product(range(16), repeat=depth))
    w_codes = [row[k] for k in range(depth) for row in rows]
    w = Q(w_codes, None, ONE + 1), (depth, len(rows)), S("e2m1", "packed_native", 1, "f32")
    xs = [oracle.decode("e2m1", code) for row in rows for code in row]
    check_product(Array(xs, (len(rows), depth)), w)
    x = (
        Q([code for row in rows for code in row], None, bits("0.3")),
        (len(rows), depth),
        S("e2m1", "packed_u32", 0, "f32"),
    )
    check_product_codes(x, w)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_product_takes_any_strides(kind: str) -> None:
    source = random.Random(5)
    w = filled(S("q4s", "packed_u32", 1, "f32", (3,), "bf16"), (40, 3), source)
    made = [oracle.narrow(plain(source), kind) if kind != "f32" else plain(source) for _ in range(120)]
    x = Array(made, (3, 40), kind)
    check_product(x, w, view=lambda a: np.asfortranarray(a))
    check_product(x, w, view=lambda a: a[::-1, ::-1].copy()[::-1, ::-1])
    check_product(x, w, view=lambda a: np.stack([a, a], -1).reshape(3, 80)[:, ::2])
    row = Array([made[0]] * 40, (40,), kind)
    check_product(row, w, view=lambda a: np.broadcast_to(a[:1], (40,)))


def test_product_takes_any_byte_order() -> None:
    source = random.Random(6)
    w = filled(S("q4s", "native", 0, "f32"), (40, 3), source)
    check_product(Array([plain(source) for _ in range(80)], (2, 40)), w, view=lambda a: a.astype(">f4"))
    halves = Array([oracle.narrow(plain(source), "f16") for _ in range(80)], (2, 40), "f16")
    check_product(halves, w, view=lambda a: a.astype(">f2"))


@settings(PROPERTY, max_examples=40)
@given(schemes_on(2, WITH_LOOKUP), st.integers(0, 40), st.integers(0, 3), seeds)
def test_product_of_permuted_weights(s: S, depth: int, n: int, seed: int) -> None:
    source = random.Random(seed)
    stored = filled(s, (n, depth), source)
    x = Array([plain(source) for _ in range(2 * depth)], (2, depth))
    expected, shape = op.product(x, oracle.permute(*stored, (1, 0)))
    actual = public("product")(floats(list(x.bits), "f32", x.shape), quantspec.permute(reference(stored), (1, 0)))
    expect(f"product of {x} and permuted {stored}", expected, shape, "f32", actual)


# ---------------------------------------------------------------- products of codes


@settings(PROPERTY, max_examples=250)
@given(st.data(), leads(), depths, narrow_sizes, outputs, seeds)
def test_product_codes(data: st.DataObject, lead: Shape, depth: int, n: int, out: str, seed: int) -> None:
    source = random.Random(seed)
    x = filled(data.draw(schemes_on(len(lead) + 1)), (*lead, depth), source)
    w = filled(data.draw(schemes_on(2)), (depth, n), source)
    check_product_codes(x, w, out)


@settings(PROPERTY, max_examples=100)
@given(st.sampled_from(VALUES), st.sampled_from(VALUES), st.integers(1, 100), extents, st.booleans(), seeds)
def test_product_codes_near_ties(xv: str, wv: str, depth: int, extent: int, tiny: bool, seed: int) -> None:
    """Block scales chosen against the sum so far."""
    source = random.Random(seed)
    extent = min(extent, 8)
    x_shape, w_shape = (depth,), (depth, 1)
    xs, ws = S(xv, "native", 0, "f32"), S(wv, "packed_u32", 1, None, (extent, 1), "f32")
    x = Q(codes_of(xs, x_shape, source), None, source.choice((ONE, bits(-3), 0x00800001 if tiny else ONE)))
    w_codes = codes_of(ws, w_shape, source)
    decoded = [(oracle.decode(xv, a), oracle.decode(wv, b)) for a, b in zip(x.codes, w_codes, strict=True)]
    sums = [op.exact_sum(decoded[start : start + extent]) for start in range(0, depth, extent)]
    check_product_codes((x, x_shape, xs), (Q(w_codes, adapted(source, sums)), w_shape, ws))


@settings(PROPERTY, max_examples=60)
@given(
    st.sampled_from((("e5m2", "e5m2"), ("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "q8f"), ("e3m2", "e3m2"))), seeds
)
def test_long_segments_are_summed_exactly(pair: tuple[str, str], seed: int) -> None:
    """Sums of up to 100 products that need more bits than a binary32, or a binary64, has; halfway cases too."""
    source = random.Random(seed)
    depth = source.randrange(2, 101)
    codes = []
    for v in pair:
        finite = [c for c in oracle.valid_codes(v) if oracle.is_finite(oracle.decode(v, c))]
        largest = sorted(finite, key=lambda c: abs(oracle.value(oracle.decode(v, c))))
        codes.append([source.choice((largest[-1], largest[-2], largest[-5], largest[1], largest[2], largest[3],
                                     source.choice(finite), source.choice(largest))) for _ in range(depth)])  # fmt: skip
    if source.random() < 0.7:  # the large ones cancel, a small rest stays
        half = depth // 2

        def flip(code: int) -> int:
            if pair[1] == "q8f":
                return -code & 0xFF if code != 0x80 else code
            return code ^ 1 << oracle.BITS[pair[1]] - 1

        for i in range(half - source.randrange(2)):
            codes[0][half + i], codes[1][half + i] = codes[0][i], flip(codes[1][i])
    x = Q(codes[0], None, ONE), (depth,), S(pair[0], "native", 0, "f32")
    w = Q(codes[1], None, ONE), (depth, 1), S(pair[1], "native", 0, "f32")
    check_product_codes(x, w)


def test_sums_are_rounded_once() -> None:
    """2^30 or the number above, half of its last place, and a rest beside it that a binary64 sum would lose."""
    power = {e: (e + 15) << 2 for e in range(-14, 16)} | {-16: 1, -15: 2}  # e5m2 codes
    for odd, sign, rest, order in itertools.product((0, 1), (0, 0x80), (0, 1, -1), itertools.permutations(range(4))):
        pairs = [
            (power[15] | sign, power[15]),
            (power[4] | sign, power[3]) if odd else (0, 0),
            (power[3] | sign, power[3]),
            (power[-16] | sign, power[-16] | (0x80 if rest < 0 else 0)) if rest else (0, 0x80),
        ]
        pairs = [pairs[i] for i in order]
        x = Q([a for a, _ in pairs], None, ONE), (4,), S("e5m2", "native", 0, "f32")
        w = Q([b for _, b in pairs], None, ONE), (4, 1), S("e5m2", "native", 0, "f32")
        whole = 2**30 + odd * 2**7 + (1 + (rest if rest else odd)) // 2 * 2**7
        expected = oracle.rn32(Fraction(-whole if sign else whole))
        assert op.product_codes(x, w)[0] == [expected]
        check_product_codes(x, w)


@pytest.mark.parametrize("extent", [1, 2])
def test_special_codes_meet_in_all_pairs(extent: int) -> None:
    """Zeros, ones, infinities and NaN of both signs, two terms, in one segment and in two."""
    special = (0, 0x80, 0x3C, 0xBC, 0x7C, 0xFC, 0x7E, 0xFF)
    rows = list(itertools.product(special, repeat=2))
    n = len(rows)
    for scale in (0x3C00, 0xBC00, 0, 0x7C00):
        w = (
            Q([row[k] for k in range(2) for row in rows], [scale] * (2 // extent) * n),
            (2, n),
            S("e5m2", "native", 0, None, (extent, 1), "f16"),
        )
        x = Q([code for row in rows for code in row], None, ONE), (n, 2), S("e5m2", "native", 0, "f32")
        check_product_codes(x, w)


@pytest.mark.parametrize("second", [0xFC, 0x7C, 0x7E])
def test_infinities_far_apart_in_a_segment(second: int) -> None:
    """Opposite ones are NaN, without a warning, wherever they stand."""
    for first, last in itertools.product((0, 17, 31), (32, 63, 64, 70, 99)):
        codes = [0x3C] * 100
        codes[first], codes[last] = 0x7C, second
        x = Q(codes, None, ONE), (100,), S("e5m2", "native", 0, "f32")
        w = Q([1] * 100, None, ONE), (100, 1), S("q8f", "native", 0, "f32")
        check_product_codes(x, w)


@pytest.mark.parametrize(
    ("xv", "wv"),
    [("e4m3", "e5m2"), ("e5m2", "e5m2"), ("e3m2", "e2m3"), ("q4f", "q2s"), ("q8s", "q4s"), ("e4m3", "e2m1")],
)
def test_product_codes_of_all_pairs(xv: str, wv: str) -> None:
    xs, ws = oracle.valid_codes(xv), oracle.valid_codes(wv)
    x = Q(xs, None, bits("0.7")), (len(xs), 1), S(xv, "native", 0, "f32")
    w = Q(ws, None, bits("-1.1")), (1, len(ws)), S(wv, "native", 0, "f32")
    check_product_codes(x, w)


def test_product_codes_of_all_pairs_of_special_scales() -> None:
    """c_j = b_x * b_w, then g_x * g_w, for all pairs of special numbers; D is 0, 1 and -1."""
    n = len(FORTY) + 1
    scales = [*FORTY, NAN32]
    for x_code, w_code in ((1, 1), (0, 1), (1, 0xFF)):
        x = Q([x_code] * n, scales), (n, 1), S("q8s", "native", 0, None, (), "f32")
        w = Q([w_code] * n, scales), (1, n), S("q8s", "native", 0, None, (), "f32")
        check_product_codes(x, w)
    for g in FORTY[::3]:
        x = Q([1, 0xFF, 0], None, g), (3, 1), S("q8s", "native", 0, "f32")
        for h in (*FORTY, NAN32):
            w = Q([1, 0], None, h), (1, 2), S("q8s", "native", 0, "f32")
            check_product_codes(x, w)


@pytest.mark.parametrize("kind", SCALE_TYPES)
def test_products_without_terms(kind: str) -> None:
    """K = 0: +0 in `product`, the product of the tensor scales times +0 in `product_codes`."""
    source = random.Random(kind)
    for _ in range(12):
        s = S("q4s", "native", 0, kind)
        w = Q([], None, scale_code(kind, source)), (0, 2), s
        check_product(Array([], (3, 0)), w)
        for x_kind in (None, *SCALE_TYPES):
            x_scheme = S("e2m1", "native", 0, x_kind, None if x_kind else (2,), None if x_kind else "f16")
            x = Q([], None if x_kind else [], scale_code(x_kind, source) if x_kind else None), (2, 0), x_scheme
            for out in OUTPUTS:
                check_product_codes(x, w, out)


@settings(PROPERTY, max_examples=60)
@given(extents, extents, st.integers(1, 100), seeds)
def test_where_segments_are_cut(x_extent: int, w_extent: int, depth: int, seed: int) -> None:
    """Products large enough that a sum cut elsewhere rounds elsewhere; ordinary scales; more than 32 segments too."""
    source = random.Random(seed)
    x_scheme = S("e5m2", "native", 0, "f16", (x_extent,), "bf16")
    w_scheme = S("e5m2", "packed_native", 1, "bf16", (w_extent, source.choice((1, 2, 3))), "f16")

    def finite(count: int) -> list[int]:
        return [source.choice((0, 0x80)) | source.choice((0x7B, 0x7A, source.randrange(0x7C))) for _ in range(count)]

    def scales(kind: str, count: int) -> list[int]:
        return [scale_of(kind, "near", source) for _ in range(count)]

    x_shape, w_shape = (2, depth), (depth, 3)
    x = Q(finite(2 * depth), scales("bf16", math.prod(oracle.grid(x_shape, x_scheme))), 0x3C00), x_shape, x_scheme
    w = Q(finite(3 * depth), scales("f16", math.prod(oracle.grid(w_shape, w_scheme))), 0x3F80), w_shape, w_scheme
    check_product_codes(x, w)


# ---------------------------------------------------------------- another store


def new_stores(rank: int) -> list[tuple[str, int]]:
    return [("native", 0), *((store, d) for store in STORES[1:] for d in range(max(rank, 1)))]


def store_text(store: str, d: int) -> str:
    return store if store == "native" else f"{store}_{d}"


@settings(PROPERTY, max_examples=150)
@given(st.data())
def test_repack(data: st.DataObject) -> None:
    q, shape, s = data.draw(tensors())
    store, d = data.draw(st.sampled_from(new_stores(len(shape))))
    want_q, _, want_s = op.repack((q, shape, s), store, d)
    want = oracle.to_bytes(want_q, shape, want_s)
    given_tensor = reference((q, shape, s))
    for target in (quantspec.Store(store, d), store_text(store, d)):
        got = public("repack")(given_tensor, target)
        assert isinstance(got, quantspec.Quantized) and got.scheme == reference((want_q, shape, want_s)).scheme
        assert patterns(got.codes) == q.codes and quantspec.to_bytes(got) == want
        packed = public("repack")(quantspec.pack(given_tensor), target)
        assert isinstance(packed, quantspec.Packed) and packed.scheme == got.scheme and packed.shape == shape
        assert quantspec.to_bytes(packed) == want
        assert patterns(packed.words) == patterns(quantspec.pack(got).words)
    assert op.repack_bytes(oracle.to_bytes(q, shape, s), shape, s, store, d) == want
    back = public("repack")(public("repack")(given_tensor, quantspec.Store(store, d)), given_tensor.scheme.store)
    assert quantspec.to_bytes(back) == oracle.to_bytes(q, shape, s)


@settings(PROPERTY, max_examples=100)
@given(st.sampled_from(SYMMETRIC), shapes(), st.data(), seeds)
def test_repacked_words(element: tuple[str, None], shape: Shape, data: st.DataObject, seed: int) -> None:
    old, new = (data.draw(st.sampled_from(new_stores(len(shape)))) for _ in range(2))
    s = S(element[0], *old, "f32")
    q = content(s, shape, random.Random(seed))
    words = op.repack_words(oracle.pack(q.codes, shape, s), shape, s, *new)
    got = public("repack")(quantspec.pack(reference((q, shape, s))), quantspec.Store(*new))
    size = quantspec.Store(*new)
    data_bytes = oracle.words_to_bytes(words, replace(s, store=new[0], d=new[1]))
    assert quantspec.to_bytes(got)[: len(data_bytes)] == data_bytes, f"{s} to {size}"


# ---------------------------------------------------------------- refusals


def small(shape: Shape, **changes: Any) -> T:
    s = replace(S("q4s", "native", 0, "f32"), **changes)
    return content(replace(s), shape, random.Random(1)), shape, s


def zeros(shape: Shape) -> Array:
    return Array([0] * math.prod(shape), shape)


@pytest.mark.parametrize(
    ("x_shape", "w_shape"),
    [
        ((), (4, 2)),
        ((4,), (4,)),
        ((4,), (1, 4, 2)),
        ((3,), (4, 2)),
        ((2, 3), (2, 3)),
        ((1,), (4, 2)),
        ((4,), ()),
        ((0,), (1, 1)),
    ],
)
def test_shapes_that_products_refuse(x_shape: Shape, w_shape: Shape) -> None:
    x, w = zeros(x_shape), small(w_shape)
    refusing(lambda: public("product")(floats(list(x.bits), "f32", x_shape), reference(w)), lambda: op.product(x, w))
    xq = small(x_shape)
    refusing(lambda: public("product_codes")(reference(xq), reference(w)), lambda: op.product_codes(xq, w))


def test_product_codes_refuses_lookup() -> None:
    lookup = small((4, 4), table=LOOKUPS["nf4"].table)
    for x, w in ((lookup, small((4, 4))), (small((4, 4)), lookup), (lookup, lookup)):
        refusing(lambda: public("product_codes")(reference(x), reference(w)), lambda: op.product_codes(x, w))  # noqa: B023


@pytest.mark.parametrize("dtype", ["f64", "i8", "u8", "i32", "bool", "c64", "object"])
def test_dtypes_that_are_refused(dtype: str) -> None:
    names = {"f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32, "bool": np.bool_, "c64": np.complex64,
             "object": np.object_}  # fmt: skip
    x: Any = np.ones((2, 4), names[dtype])
    w = reference(small((4, 2)))
    with pytest.raises(quantspec.QuantspecError):
        public("product")(x, w)
    with pytest.raises(quantspec.QuantspecError):
        public("chain")(reference(small((2, 4))), [("add", x)])
    with pytest.raises(quantspec.QuantspecError):
        public("product")(np.ones((2, 4), np.float32), w, dtype if dtype != "object" else "q8s")
    with pytest.raises(quantspec.QuantspecError):
        public("product_codes")(reference(small((2, 4))), w, dtype if dtype != "object" else "q8s")
    with pytest.raises(quantspec.QuantspecError):
        public("chain")(w, [], dtype if dtype != "object" else "q8s")


@pytest.mark.parametrize(
    "step",
    [
        ("add",), ("neg", 1.0), ("abs", 1.0), ("pow", 2.0), ("sqrt",), ("ADD", 1.0), ("cast",), ("cast", "f64"), ("cast", 1.0),
        ("cast", "q8s"), ("add", 0.1), ("add", 1e39), ("add", 2**24 + 1), ("add", 1e-46), ("add", 10**400), ("select", 1.0),
        ("add", "1"), ("add", 1.0, np.ones(3, np.uint8)), ("add", np.ones(2, np.float32)), ("add", np.ones((1, 2, 3), np.float32)),
        ("add", np.ones((2, 2), np.float32)), ("add", np.ones((0,), np.float32)), ("select", 1.0, np.ones(2, np.uint8)),
        ("select", 1.0, np.ones(3, np.float32)), ("select", 1.0, np.ones(3, np.int32)), ("select", 1.0, np.ones((3, 2, 3), bool)),
        ("select", np.ones(2, np.float32), np.ones(3, np.bool_)), ("cast", "f16", np.ones(3, np.uint8)), (), 1.0, None,
        ("add", None), ("select", None, np.ones(3, np.uint8)), ("add", 1.0, None, None), ("add", 1j),
    ],
    ids=repr,
)  # fmt: skip
def test_steps_that_are_refused(step: Any) -> None:
    with pytest.raises(quantspec.QuantspecError):
        public("chain")(reference(small((2, 3))), [step])


def test_an_operand_does_not_enlarge_the_tensor() -> None:
    for shape, other in (
        ((1, 3), (2, 3)),
        ((3,), (1, 3)),
        ((), (1,)),
        ((0, 3), (0, 0)),
        ((2, 1), (2, 2)),
        ((2, 1), (0,)),
    ):
        t, a = small(shape), zeros(other)
        refusing(
            lambda: public("chain")(reference(t), [public_step(("add", a))]),  # noqa: B023
            lambda: op.chain(t, [("add", a)]),  # noqa: B023
        )


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_stores_that_repack_refuses(shape: Shape) -> None:
    t = small(shape)
    for store in STORES[1:]:
        d = max(len(shape), 1)
        for tensor in (reference(t), quantspec.pack(reference(t))):
            refusing(
                lambda: public("repack")(tensor, quantspec.Store(store, d)),  # noqa: B023
                lambda: op.repack(t, store, d),  # noqa: B023
            )
    with pytest.raises(quantspec.QuantspecError):
        public("repack")(reference(t), "packed_u64_0")
