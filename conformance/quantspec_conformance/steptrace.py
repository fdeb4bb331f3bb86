"""The steps of a recipe with the value and the rule of each, for one element: the names that the interpreter leaves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import numpy.typing as npt

from quantspec import Codec, Container, Quantized, ScaleType
from quantspec.blocks import spread
from quantspec.codecs import read_by
from quantspec.following import Following
from quantspec.interpreter import run
from quantspec.quantize import effective_scale
from quantspec.rounding import F32, Bits, to_bits, to_float
from quantspec.steps import FACTS, FOUND, STAGES
from quantspec.values import decode_codes

from .patterns import decimal, hexadecimal, scale_code, value_code

__all__ = ["Stage", "StepTrace", "Value", "following", "policy_text", "trace_back", "trace_forth"]

Index = tuple[int, ...]
#: Names that a stage finds -> what they are.
MEANING = {
    "A": "amax of the tensor", "a": "amax", "g": "tensor scale", "b": "block scale", "s": "effective scale",
    "x": "input", "v": "number of the code", "H": "half the range", "max": "largest number", "emax": "exponent of max",
    "top": "top of block scales",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """A step, or a name that its stage finds, and its value: a pattern and its number, or yes and no of a condition."""

    text: str
    bits: str
    number: str
    rule: str  #: that gives it
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a recipe on one element or one block: what it finds, its steps, and the code or the pattern it ends in."""

    name: str
    found: tuple[Value, ...]
    steps: tuple[Value, ...]
    gives: str  #: the part of the result that the stage makes
    result: str


@dataclass(frozen=True, slots=True)
class StepTrace:
    """A recipe on one element: the stages that were run, in order."""

    recipe: str
    amax: str
    element: Index
    block: Index | None
    stages: tuple[Stage, ...]


def policy_text(policy: Codec | Container) -> str:
    """A codec or a container on one line: its name, and what it does otherwise than the canonical one."""
    kind = type(policy)
    plain = kind(policy.name)
    own = [
        f"{field.name} {_short(getattr(policy, field.name))}"
        for field in fields(kind)
        if getattr(policy, field.name) != getattr(plain, field.name)
    ]
    return f"{policy.name}: {', '.join(own)}" if own else policy.name


def _short(member: object) -> str:
    """A member; of a list no more than four entries."""
    if not isinstance(member, tuple):
        return "yes" if member is True else str(member)
    most = 4
    return " ".join(map(str, member)) if len(member) <= most else f"of {len(member)} entries"


def trace_forth(
    q: Quantized, bits: Bits, element: Index, given: tuple[str, ...] = (), until: str = "codes"
) -> StepTrace:
    """The stages by which an element of a tensor of these patterns was quantized to `q`; `given` are scales not chosen.

    The last stage is the one that makes the part `until`.
    """
    own, place = following(q, bits), _block(q, element)
    parts = _choosing(q, given)
    stages = [_chosen(own, q, stage, () if stage == "tensor" else place or ()) for stage in parts]
    gives = [each.gives for each in stages]
    if until in gives:
        stages = stages[: gives.index(until) + 1]
    else:
        names = {**own.found("element", _spreading(q)), "x": to_float(bits)}
        code = value_code(int(q.codes[element]), q.scheme)
        stages.append(_stage(own, "element", names, element, None, "codes", code))
    return StepTrace(q.recipe.name, q.recipe.amax, element, place, tuple(stages))


def trace_back(q: Quantized, codec: Codec, element: Index, result: str) -> StepTrace:
    """The stage by which the number of an element comes back; `result` is that number in the type of the output."""
    own = following(q, None)
    v = read_by(decode_codes(q.codes, q.scheme.value, q.scheme.table), codec)
    names = {**own.found("decode", _spreading(q)), "v": v}
    stage = _stage(own, "decode", names, element, None, "y", result)
    return StepTrace(q.recipe.name, q.recipe.amax, element, _block(q, element), (stage,))


def following(q: Quantized, bits: Bits | None) -> Following:
    """The recipe of a tensor after its scales are chosen."""
    own = Following.of(q.scheme, q.recipe, q.shape)
    if bits is not None:
        own.measure(bits)
    own.stored(q.scale_codes, q.tensor_scale_code, effective_scale(q.scheme, q.scale_codes, q.tensor_scale_code))
    return own


def _spreading(q: Quantized) -> "partial[F32]":
    """The way from scales on the grid to one of each element."""
    if q.scheme.block is None:
        return partial(np.asarray)
    return partial(spread, shape=q.shape, extents=q.scheme.extents(len(q.shape)))


def _block(q: Quantized, element: Index) -> Index | None:
    if q.scheme.block is None:
        return None
    return tuple(i // extent for i, extent in zip(element, q.scheme.extents(len(element)), strict=True))


def _choosing(q: Quantized, given: tuple[str, ...]) -> Iterator[str]:
    """The stages that chose a scale. Rule POL-9: one level by `single`, two by `tensor` and `block`."""
    block, tensor = q.scheme.block is not None, q.scheme.tensor is not None
    block_given = any(name in given for name in ("scales", "scale_codes"))
    tensor_given = any(name in given for name in ("tensor_scale", "tensor_scale_code"))
    if block and tensor:
        yield from () if tensor_given or block_given else ("tensor",)
        yield from () if block_given else ("block",)
    elif not (block_given if block else tensor_given):
        yield "single"


def _chosen(own: Following, q: Quantized, stage: str, place: Index) -> Stage:
    whole = stage == "tensor" or q.scheme.block is None
    scale = q.scheme.tensor if whole else q.scheme.block.scale if q.scheme.block is not None else None
    codes = q.tensor_scale_code if whole else q.scale_codes
    names = {name: own.names[name] for name in STAGES[stage][1] if name in own.names}
    shown = (
        "" if scale is None or codes is None else f"{scale_code(int(np.asarray(codes)[place]), scale)}   {scale.name}"
    )
    return _stage(own, stage, names, place, scale, "tensor_scale_code" if whole else "scale_codes", shown)


def _stage(
    own: Following, stage: str, names: Mapping[str, F32], place: Index, scale: ScaleType | None, gives: str, result: str
) -> Stage:
    steps = own.recipe.steps(stage)
    ran = run(steps, names, own.facts, scale)
    used = {argument for step in steps for argument in step.args} - {step.name for step in steps}
    found = [name for name in (*STAGES[stage][1], *FACTS) if name in used]
    return Stage(
        stage,
        tuple(_value(name, ran.names[name], place, FOUND[name], _meaning(name, own)) for name in found),
        tuple(_value(step.text, ran.names[step.name], place, step.rule) for step in steps),
        gives,
        result,
    )


def _meaning(name: str, own: Following) -> str:
    of = " of the block" if own.scheme.block is not None else " of the tensor"
    return f"{MEANING[name]}{of}" if name == "a" else MEANING[name]


def _value(text: str, values: npt.NDArray[np.bool_] | F32, place: Index, rule: str, meaning: str = "") -> Value:
    """One entry of the values of a step; those made of facts alone have one for all."""
    entry = np.asarray(values if np.ndim(values) == 0 else values[place])
    if entry.dtype == np.bool_:
        return Value(text, "", "yes" if entry else "no", rule, meaning)
    bits = int(to_bits(np.asarray(entry, np.float32)))
    return Value(text, hexadecimal(bits, 32), decimal(bits), rule, meaning)
