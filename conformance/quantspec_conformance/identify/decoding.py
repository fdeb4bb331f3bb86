"""The operation dequantize: which steps make a number of a code and its scales, and how a negative zero is read."""

import numpy as np

from quantspec.codecs import READS, Codec, read_by
from quantspec.following import Following, facts_of
from quantspec.recipes import RECIPES, Recipe
from quantspec.rounding import is_nan, to_bits
from quantspec.scales import ScaleType
from quantspec.steps import Program
from quantspec.values import decode_codes

from ..protocol.messages import Implementation, Ok, Request
from .asking import Budget, send, under, wire
from .layout import Array, Layout
from .predictions import effective
from .single import judge_single
from .verdict import PartFound

__all__ = ["identify_decode"]

BLOCKS = 64
TENSORS = 6  #: of a scheme with a scale of the tensor


def _scales(scale: ScaleType | None, shape: tuple[int, ...], random: np.random.Generator, *, ends: bool) -> Array:
    """Codes about 1, and the ends of the type where those are wanted."""
    if scale is None:
        return np.zeros(shape, np.int64)
    one, wide = scale.bias << scale.mantissa_bits, 5 << scale.mantissa_bits
    codes = random.integers(one - wide, one + wide, shape).astype(np.int64)
    if ends:
        flat = codes.reshape(-1)
        special = np.array([0, 1, scale.largest_code, scale.nan_code, scale.largest_code - 1])[: flat.size]
        flat[: len(special)] = special
    return codes


def identify_decode(
    implementation: Implementation, layout: Layout, budget: Budget, op: str, named: str = ""
) -> PartFound | None:
    """The steps of decode; None where dequantize is not offered."""
    random = np.random.default_rng(5)
    scheme = layout.scheme
    groups: dict[Program, list[str]] = {}
    for recipe in RECIPES.values():
        if recipe.steps("decode"):
            groups.setdefault(recipe.steps("decode"), []).append(recipe.name)
    ways = [(program, names, read) for program, names in groups.items() for read in READS]
    ways = [way for way in ways if way[2] == READS[0] or not (scheme.value.is_integer or scheme.is_lookup)]
    rows: list[list[Array]] = [[] for _ in ways]
    came: list[Array] = []
    asked: list[tuple[Array, Array, int]] = []
    for turn in range(1 if layout.together else TENSORS):
        count = BLOCKS if layout.together else layout.blocks
        codes = _codes(layout, count, random)
        scales = _scales(None if scheme.block is None else scheme.block.scale, (count,), random, ends=turn == 0)
        tensor = _scales(scheme.tensor, (1,), random, ends=False)
        got = _ask(implementation, layout, budget, op, codes, scales, tensor, named)
        if got is None:
            continue
        came.append(got)
        asked += [(codes[i], scales[i], int(tensor[0])) for i in range(count)]
        found = effective(layout, np.repeat(tensor, count), scales.reshape(count, 1))
        for place, (program, _, read) in enumerate(ways):
            rows[place].append(_numbers(layout, program, read, codes, found))
    if not came:
        return None
    labels = [{"decode": names[0], **({"negative zero": read} if len(READS) > 1 else {})} for _, names, read in ways]

    def shown(place: int) -> tuple[str, ...]:
        codes, scale, tensor = asked[place // layout.size]
        levels = [f"scale {scale:X}"] if scheme.block is not None else []
        levels += [f"tensor scale {tensor:X}"] if scheme.tensor is not None else []
        return (f"code {int(codes[place % layout.size]):02X}", *levels)

    predicted = np.stack([np.concatenate(row) for row in rows]).astype(np.int64)
    return judge_single(
        "dequantize", labels, predicted, np.concatenate(came).astype(np.int64), shown, 8, _domains(layout, asked)
    )


def _domains(layout: Layout, asked: list[tuple[Array, Array, int]]) -> dict[str, tuple[Array, str]]:
    """Where the reading of a scale is known to leave the rules: its NaN code, and the one below all others."""
    block = layout.scheme.block
    if block is None:
        return {}
    codes = np.repeat(np.array([int(scale) for _, scale, _ in asked]), layout.size)
    return {
        "scale NaN": (codes == block.scale.nan_code, "the scale's NaN code"),
        "scale least": (codes == 0, "the scale's code 0"),
    }


def _codes(layout: Layout, count: int, random: np.random.Generator) -> Array:
    """Legal codes, all of them where there is room."""
    value = layout.scheme.value
    fields = np.resize(np.arange(1 << value.bits), (count, layout.size))
    fields = random.permuted(fields, axis=1)
    if value.is_integer and not layout.scheme.is_lookup and value.bits < 8:
        fields = np.where(fields & value.sign_bit, fields | (0xFF & ~value.mask), fields)
    return fields.astype(np.uint8)


def _ask(
    implementation: Implementation,
    layout: Layout,
    budget: Budget,
    op: str,
    codes: Array,
    scales: Array,
    tensor: Array,
    named: str,
) -> Array | None:
    scheme = layout.scheme
    tensors = {"codes": wire(layout.tensor(codes))}
    if scheme.block is not None:
        tensors["scale_codes"] = wire(scales.astype(scheme.block.scale.code_dtype).reshape(layout.grid(len(codes))))
    if scheme.tensor is not None:
        tensors["tensor_scale_code"] = wire(tensor.reshape(()).astype(scheme.tensor.code_dtype))
    if scheme.table is not None:
        tensors["table"] = wire(np.asarray(scheme.table.entries).view(np.uint32), "f32")
    if not budget.take(len(codes)):
        return None
    answer = send(implementation, Request(op, {"scheme": scheme.text, **under(named)}, tensors))
    if not isinstance(answer, Ok) or "y" not in answer.tensors or answer.tensors["y"].dtype != "f32":
        return None
    got = np.array(answer.tensors["y"].patterns, np.uint32)
    return _one_nan(got) if got.size == codes.size else None


def _numbers(layout: Layout, program: Program, read: str, codes: Array, found: dict[str, Array]) -> Array:
    """y by the steps, as patterns."""
    scheme = layout.scheme
    recipe = Recipe("found", given_only=True, element=("q = div(x, s)",), decode=program)
    following = Following(scheme, recipe, facts_of(scheme), {})
    for name, numbers in found.items():
        following.names[name] = np.array(np.broadcast_to(numbers, codes.shape))
    v = read_by(decode_codes(codes, scheme.value, scheme.table), Codec("found", negative_zero=read))
    return _one_nan(to_bits(np.ascontiguousarray(following.numbers(v, lambda scale: scale)))).reshape(-1)


def _one_nan(bits: Array) -> Array:
    return np.where(is_nan(bits), np.uint32(0x7FC00000), bits)
