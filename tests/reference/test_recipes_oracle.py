"""Recipes against the oracle: every row where its scales and codes turn, given scales, refusals. POL-5 to POL-10."""

import itertools
import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import quantspec as qs

from .. import oracle, oracle_codecs, oracle_recipes, recipe_data
from .. import strategies as g
from ..bridge import (
    REFERENCE,
    Mismatch,
    Verbs,
    agree,
    floats,
    reference_scheme,
    require_bits,
    require_content,
    scale_codes_array,
)
from ..oracle import Q, S, Shape
from ..oracle_codecs import C
from ..oracle_recipes import R

DATA = tomllib.loads((files(qs) / "presets.toml").read_text("utf-8"))
RECIPES: dict[str, dict[str, Any]] = {row["name"]: row for row in DATA["recipe"]}
CODECS: dict[str, dict[str, Any]] = {row["name"]: row for row in DATA["codec"]}


@cache
def recipe(name: str) -> R:
    return R.of(RECIPES[name])


@cache
def codec(name: str) -> C:
    return C.of(CODECS[name])


def codecs_of(name: str) -> list[str]:
    """The codecs that presets join to a recipe; canonical for a recipe of no preset."""
    return sorted({row["codec"] for row in DATA["preset"] if row["recipe"] == name}) or ["canonical"]


NF4, FP4 = g.LOOKUPS["nf4"].table, tuple(
    oracle_codecs.pattern_of(text) for text in next(row["table"] for row in DATA["preset"] if row["name"] == "bnb-fp4")
)  # fmt: skip
TYPES = tuple(oracle.SCALE_BYTES)


def schemes_of(name: str) -> list[S]:
    """Schemes that a recipe covers: of each value format, scale type and number of levels, in blocks of `WIDTH`."""
    row = RECIPES[name]
    values = row.get("values", ("q8f", "q4s", "q2f", "e4m3", "e2m1"))
    found: list[S] = []
    for i, value in enumerate(values):
        tables: list[tuple[int, ...] | None] = [NF4] if name == "canonical" and value == "q4s" else []
        tables = [NF4, FP4] if row.get("modes") == ["lookup"] else [None, *tables] if tables else [None]
        types = row.get("scales", (TYPES[i % 5],))
        for kind, table in ((kind, table) for kind in types for table in tables):
            block: dict[str, Any] = {"block": (recipe_data.WIDTH,), "block_type": kind}
            if "single" in row:
                found += [S(value, "native", table=table, **block), S(value, "native", tensor=kind, table=table)]
            if "block" in row:
                tensor = row.get("tensor_scales", ("f32", "f16"))[0]
                found.append(S(value, "native", tensor=tensor, table=table, **block))
    return found


# ---------------------------------------------------------------- comparison


def check(
    xbits: Sequence[int],
    shape: Shape,
    s: S,
    r: R,
    c: C,
    *,
    row: qs.Recipe | str | None = None,
    coding: qs.Codec | str | None = None,
    verbs: Verbs = REFERENCE,
    scales: Sequence[int] | None = None,
    tensor_scale: int | None = None,
) -> Q | None:
    """Quantize and dequantize on both sides; None where both refuse."""
    row, coding = r.name if row is None else row, c.name if coding is None else coding
    given: dict[str, Any] = {}
    if scales is not None:
        given["scales"] = floats(scales, "f32", oracle.grid(shape, s))
    if tensor_scale is not None:
        given["tensor_scale"] = floats([tensor_scale], "f32", ())
    what = f"quantize {r.name} {c.name} {s} {shape}"
    both = agree(
        what,
        lambda: oracle_recipes.quantize(xbits, shape, s, r, c, scales=scales, tensor_scale=tensor_scale),
        lambda: verbs.quantize(floats(xbits, "f32", shape), reference_scheme(s), recipe=row, codec=coding, **given),
    )
    if both is None:
        return None
    require_content(what, both[0], both[1], shape, s, xbits)
    check_decode(both[0], shape, s, r, c, row, coding, verbs)
    return both[0]


def check_decode(
    q: Q, shape: Shape, s: S, r: R, c: C, row: qs.Recipe | str, coding: qs.Codec | str, verbs: Verbs = REFERENCE
) -> None:
    blocks = None if q.scale_codes is None else scale_codes_array(s.block_type, q.scale_codes, oracle.grid(shape, s))
    whole = None if q.tensor_scale_code is None else scale_codes_array(s.tensor, [q.tensor_scale_code], ())
    made = qs.Recipe.of(row), qs.Codec.of(coding)
    what = f"dequantize {r.name} {c.name} {s} {shape}"

    def dequantize() -> Any:
        codes = np.array(q.codes, np.uint8).reshape(shape)
        return verbs.dequantize(qs.Quantized(reference_scheme(s), codes, blocks, whole, made[0], codec=made[1]))

    both = agree(what, lambda: oracle_recipes.dequantize(q, shape, s, r, c), dequantize)
    if both is not None:
        require_bits(what, both[0], both[1], q.codes)


def check_row(name: str, verbs: Verbs = REFERENCE) -> int:
    """A row over all its schemes and data; the number of tensors that were quantized."""
    r, done = recipe(name), 0
    for s, coding in itertools.product(schemes_of(name), codecs_of(name)):
        c = codec(coding)
        if s.tensor is not None and s.block is not None:
            tensors = recipe_data.two_levels(r, s, c)
        else:
            rows = recipe_data.one_level(r, s, c)
            size = 8 if r.refuse else len(rows)  # a refusal is of the whole tensor
            blocks = [rows[i : i + size] for i in range(0, len(rows), size)]
            tensors = blocks if s.block is not None else [[row] for row in rows[::41]]
        for rows in tensors:
            flat = [x for row in rows for x in row]
            done += check(flat, (len(rows), recipe_data.WIDTH), s, r, c, verbs=verbs) is not None
    return done


@pytest.mark.parametrize("name", [name for name, row in RECIPES.items() if not row.get("given_only")])
def test_every_row_where_scales_and_codes_turn(name: str) -> None:
    assert check_row(name) > 0


@pytest.mark.parametrize("name", RECIPES)
def test_every_row_decodes_codes_under_every_sort_of_scale(name: str) -> None:
    """Zeros, subnormals, negative scales, infinities and NaN at each level, under sixteen codes."""
    for s, coding in itertools.product(schemes_of(name), codecs_of(name)):
        legal = oracle.valid_codes(s.value, s.table is not None)
        row = [*legal[:: -(-len(legal) // 15)], legal[-1]] * 4
        edge = (None,) if s.block_type is None else g.edge_scale_codes(s.block_type)
        wholes = [None] if s.tensor is None else list(g.edge_scale_codes(s.tensor))[:: 3 if s.block_type else 1]
        for whole in wholes:
            shape = (len(edge), 2 * recipe_data.WIDTH)
            cells = [code for code in edge if code is not None for _ in range(2)]
            codes = row[: shape[1]] * len(edge)
            q = Q(codes, cells if s.block is not None else None, whole)
            check_decode(q, shape, s, recipe(name), codec(coding), name, coding)


GIVEN_SCALES = (*tuple(g.bits(n) for n in ("0", "1", "0.3", "1e-40", "3e38")), oracle.INF32, oracle.NAN32, g.bits(-2))


@pytest.mark.parametrize("name", RECIPES)
def test_every_row_takes_given_scales(name: str) -> None:
    """In the place of a stage, with the element and decode steps of the row; a bad one is refused on both sides."""
    source = random.Random(name)
    for s, coding in itertools.product(schemes_of(name) or GIVEN_SCHEMES, codecs_of(name)):
        width = recipe_data.WIDTH
        for scale in GIVEN_SCALES:
            xs = [p for row in g.Rows(s, source.randrange(99), width).rows(2) for p in row]
            wholes = [] if s.tensor is None else [scale]
            for blocks in [None] if s.block is None else [None, [scale, source.choice(GIVEN_SCALES[:3])]]:
                for whole in [*wholes, None]:
                    check(xs, (2, width), s, recipe(name), codec(coding), scales=blocks, tensor_scale=whole)


GIVEN_SCHEMES = [
    S("q8f", "native", tensor="f32"),
    S("e4m3", "native", block=(recipe_data.WIDTH,), block_type="f16"),
    S("q4s", "native", tensor="f32", block=(recipe_data.WIDTH,), block_type="ue8m0"),
]


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_row_does_not_cover_is_refused(name: str) -> None:
    """Each value format, scale type, mode, number of levels and shape: refused on both sides, or by neither."""
    r, c = recipe(name), codec(codecs_of(name)[0])
    for value, kind, whole, table in itertools.product(
        ("q8s", "q4f", "q2s", "e2m1", "e4m3", "e3m2"), TYPES, ("f32", "f16", None), (None, NF4)
    ):
        if table is not None and value != "q4f":
            continue
        s = S(value, "native", tensor=whole, block=(4,), block_type=kind, table=table)
        for scheme, shape in ((s, (8,)), (s, (7,)), (S(value, "native", tensor=kind, table=table), (8,))):
            check([g.ONE] * shape[0], shape, scheme, r, c)


# ---------------------------------------------------------------- liars


def stage_changed(stage: str, change: Callable[[str], str]) -> Verbs:
    """quantize and dequantize by a row with one stage written differently."""

    def lying(row: qs.Recipe) -> qs.Recipe:
        lines = [change(line) for line in RECIPES[row.name][stage]]
        changed: dict[str, Any] = {stage: lines}
        return replace(row, **changed)

    def quantize(x: Any, scheme: qs.Scheme, *, recipe: str, **more: Any) -> qs.Quantized:
        return qs.quantize(x, scheme, recipe=lying(qs.Recipe.of(recipe)), **more)

    def dequantize(tensor: qs.Quantized) -> Any:
        return qs.dequantize(replace(tensor, recipe=lying(tensor.recipe)))

    return replace(REFERENCE, quantize=quantize, dequantize=dequantize)


def instead(old: str, new: str) -> Callable[[str], str]:
    return lambda line: line.replace(old, new)


LIARS: dict[str, tuple[str, str, Callable[[str], str]]] = {
    "ceil for floor": ("ocp-mx", "single", instead("pow2[floor]", "pow2[ceil]")),
    "even1 for even": ("even", "single", instead("pow2[even]", "pow2[even1]")),
    "even for fit": ("fit", "single", instead("pow2[fit]", "pow2[even]")),
    "rceil for the product with the reciprocal": ("nvidia-mx", "single", instead("up[ue8m0](ratio)", "pow2[rceil](a)")),
    "nearest for up": ("canonical", "single", instead("up[T]", "rne[T]")),
    "up for nearest": ("nvfp4-te", "block", instead("rne[T]", "up[T]")),
    "division for the reciprocal": ("burn-flex", "element", instead("mul(x, inverse)", "div(x, s)")),
    "the clamp first": ("nvfp4-torchao", "block", instead("div(a, 0x1.8p+2)", "mul(a, 0x1.555556p-3)")),
    "g before a/6": ("nvfp4-compressed-tensors", "block", instead("mul(g, sixth)", "mul(sixth, 0x1p+0)")),
    "b * g for b / g": ("nvfp4-compressed-tensors", "decode", instead("div(b, g)", "mul(b, g)")),
    "another order of decoding": ("nvfp4-te", "decode", instead("mul(v, b)", "mul(v, g)")),
    "the stored scale for the raw one": ("ggml-q8_0", "element", instead("div(a, 0x1.fcp+6)", "abs(s)")),
    "floor of a sum in one step": ("ggml-q4_0", "element", instead("sub(shifted, 0x1p+3)", "add(ratio, 0x1p-1)")),
    "the sum of zero scales": ("bnb-4bit-cpu", "element", instead("max(s, 0x1.b38fb8p-127)", "abs(s)")),
    "multiplied, not divided": ("bitnet-absmean", "decode", instead("div(v, s)", "mul(v, s)")),
}  # fmt: skip


@pytest.mark.parametrize("liar", LIARS)
def test_steps_that_lie_are_caught(liar: str) -> None:
    name, stage, change = LIARS[liar]
    with pytest.raises(Mismatch):
        check_row(name, stage_changed(stage, change))


@pytest.mark.parametrize(
    ("name", "kind"), [("ocp-mx", "ignore-nan"), ("nvidia-mx", "all"), ("ggml-q4_0", "all"), ("burn-absmean", "finite")]
)
def test_an_amax_that_lies_is_caught(name: str, kind: str) -> None:
    def quantize(x: Any, scheme: qs.Scheme, *, recipe: str, **more: Any) -> qs.Quantized:
        return qs.quantize(x, scheme, recipe=replace(qs.Recipe.of(recipe), amax=kind), **more)

    with pytest.raises(Mismatch):
        check_row(name, replace(REFERENCE, quantize=quantize))
