"""Cases: which scheme meets which shape with which data, and the data itself.

A case is `scheme/shape/family`; its data follow from that text without the store, and the seed: never from a position.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import QuantspecError, Scheme

from . import matrix
from .errors import UsageError
from .families import FAMILIES, SHAPES, Family, Shape, draw_codes, draw_scale_codes
from .matrix import Group

__all__ = [
    "REFUSALS",
    "Batch",
    "Plan",
    "case_steps",
    "data",
    "drawn",
    "plan_case",
    "plans",
    "read_shape",
    "refuses",
    "shape_text",
]

Selection = Mapping[str, tuple[Group, Scheme]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Schemes of one group that meet the same shape with the same data. `family` None: all of them refuse the shape."""

    group: Group
    schemes: tuple[Scheme, ...]
    shape: Shape
    family: str | None
    steps: tuple[str, ...]

    def case_id(self, scheme: Scheme) -> str:
        """`scheme/shape/family`, the family of a refused shape spelled `refused`."""
        return f"{scheme.text}/{shape_text(self.shape)}/{self.family or 'refused'}"


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A plan with its data: what an adapter is given. Drawn codes are None where the shape is refused."""

    plan: Plan
    x: npt.NDArray[Any]
    codes: npt.NDArray[np.uint8] | None = None
    scale_codes: npt.NDArray[Any] | None = None
    tensor_scale_code: npt.NDArray[Any] | None = None


def shape_text(shape: Shape) -> str:
    """`3x70`; a scalar's shape is `scalar`."""
    return "x".join(map(str, shape)) or "scalar"


def read_shape(text: str, where: str = "of the case ") -> Shape:
    """The inverse of `shape_text`. UsageError for a text that is no shape."""
    if text == "scalar":
        return ()
    parts = text.split("x")
    if len(parts) > 8 or not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise UsageError(f"shape {text!r} {where}is not a shape; write 3x70, or scalar")
    return tuple(map(int, parts))


#: Steps of every case (chain.STEPS says what each is), and those that take turns.
ALWAYS = ("quantize", "pack", "to_bytes", "split")
TURNS = (
    ("dequantize.f32", "drawn.dequantize.f16"),
    ("dequantize.f16", "drawn.dequantize.f32", "spoiled.split"),
    ("dequantize.bf16", "drawn.dequantize.bf16", "given.quantize"),
    ("drawn.dequantize.f32", "drawn.split"),
)
REFUSALS = ("quantize", "empty.split")


def refuses(scheme: Scheme, shape: Shape) -> bool:
    """True where the reference refuses the shape for this scheme. Rules SCH-13, SCH-14."""
    try:
        scheme.require_shape(shape)
    except QuantspecError:
        return True
    return False


@cache
def _pairs(first: Scheme, number: int) -> tuple[tuple[Shape, str], ...]:
    """Accepted shapes and families of a scheme: each of both at least once, wide families on wide shapes."""
    accepted = [shape for shape in SHAPES if not refuses(first, shape)]
    wide = [shape for shape in accepted if np.prod(shape, dtype=int) > 30]
    small = [shape for shape in accepted if 0 < np.prod(shape, dtype=int) <= 30]
    empty = [shape for shape in accepted if np.prod(shape, dtype=int) == 0]
    narrow = [name for name, family in FAMILIES.items() if not family.wide]
    turned = narrow[number % len(narrow) :] + narrow[: number % len(narrow)]
    pairs = list(zip(small, turned, strict=False))
    rest = [name for name, family in FAMILIES.items() if family.wide] + turned[len(small) :]
    pairs += [(wide[(i + number) % len(wide)], name) for i, name in enumerate(rest)]
    return tuple(pairs + [(shape, "zero") for shape in empty])


def plans(selection: Selection, *, quick: bool = False) -> Iterator[Plan]:
    """The cases of a selection, schemes of a group side by side. `quick` takes a third of the families of each scheme."""
    by_group: dict[str, tuple[Group, list[Scheme]]] = {}
    for group, scheme in selection.values():
        by_group.setdefault(_key(scheme), (group, []))[1].append(scheme)
    for count, (group, members) in enumerate(by_group.values()):
        number = max(group.number, 0)
        for d in sorted({scheme.store.d for scheme in members}):
            chosen = tuple(scheme for scheme in members if scheme.store.d == d)
            for i, (shape, family) in enumerate(_pairs(chosen[0], number)):
                if not quick or i % 3 == count % 3:
                    yield Plan(group, chosen, shape, family, ALWAYS + TURNS[(i + number) % len(TURNS)])
            for shape in SHAPES:
                if refuses(chosen[0], shape):
                    yield Plan(group, chosen, shape, None, REFUSALS)


def plan_case(text: str) -> Plan:
    """The plan of one case id, with every step. Raises UsageError."""
    parts = text.split("/")
    if len(parts) != 3:
        raise UsageError(
            f"--case {text!r} is not a case; write scheme/shape/family, for example q8s.native.t-f32/3x70/ties"
        )
    scheme, shape = matrix.parse(parts[0]), read_shape(parts[1])
    if np.prod(shape, dtype=float) > 2**24:
        raise UsageError(f"--case {text!r}: the shape has more than 2^24 elements")
    if refuses(scheme, shape):
        return Plan(matrix.group_of(scheme), (scheme,), shape, None, REFUSALS)
    if parts[2] not in FAMILIES:
        raise UsageError(f"--case {text!r}: {parts[2]!r} is not a data family; there are {', '.join(FAMILIES)}")
    return Plan(matrix.group_of(scheme), (scheme,), shape, parts[2], case_steps())


def case_steps() -> tuple[str, ...]:
    """Every step of an accepted shape."""
    return ALWAYS + tuple(dict.fromkeys(step for turn in TURNS for step in turn))


def _key(scheme: Scheme) -> str:
    """The scheme's text without its store: what its data follow from."""
    head, _, tail = scheme.text.partition(".")
    return f"{head}.{tail.partition('.')[2]}"


def data(plan: Plan, seed: int) -> Batch:
    """The input and the drawn codes of a plan."""
    scheme = plan.schemes[0]
    if plan.family is None:
        return Batch(plan, np.zeros(plan.shape, np.float32))
    text = f"{seed}/{_key(scheme)}/{shape_text(plan.shape)}/{plan.family}"
    digest = hashlib.sha256(text.encode()).digest()
    # a seed, not a key: with a key numpy asks the system for entropy that it then does not use
    rng = np.random.Generator(np.random.Philox(int.from_bytes(digest[:16], "little")))
    family = FAMILIES[plan.family]
    return drawn(plan, _input(family, rng, plan.shape, scheme), rng)


def _input(family: Family, rng: np.random.Generator, shape: Shape, scheme: Scheme) -> npt.NDArray[Any]:
    if np.prod(shape, dtype=int) == 0:
        return np.zeros(shape, np.float32)
    return family.make(rng, shape, matrix.group_of(scheme).scheme("native"))


def drawn(plan: Plan, x: npt.NDArray[Any], rng: np.random.Generator) -> Batch:
    """A batch of the input x with codes and scale codes drawn over all legal ones."""
    scheme = plan.schemes[0]
    codes = draw_codes(rng, scheme, plan.shape)
    block = tensor = None
    if scheme.block is not None:
        extents = scheme.extents(len(plan.shape))
        grid = tuple(-(-size // extent) for size, extent in zip(plan.shape, extents, strict=True))
        block = draw_scale_codes(rng, scheme.block.scale, grid)
    if scheme.tensor is not None:
        # with two levels a special tensor scale hides every block scale: most of the time it is an ordinary one
        tensor = draw_scale_codes(rng, scheme.tensor, (), finite=block is not None and rng.random() < 0.75)
    return Batch(plan, x, codes, block, tensor)
