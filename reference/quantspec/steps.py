"""Steps: the language of recipes, each step one binary32 operation. Rules POL-5, POL-6, POL-7.

A stage is a list of assignments, `raw = div(a, H)`; every name is given once, and the last assignment gives the stage's
result. Here they are read and checked; `interpreter` runs them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .errors import UnsupportedError
from .outputs import OUTPUTS
from .scales import SCALES
from .tracing import rule

__all__ = [
    "CONDITIONS",
    "FACTS",
    "FOUND",
    "LOGARITHMS",
    "POW2",
    "STAGES",
    "Assignment",
    "check",
    "program",
]

#: Rules that give a power of two from the exact exponent (POL-7), and from a logarithm in binary32 (POL-20).
LOGARITHMS = ("logfloor", "logceil")
POW2 = ("floor", "ceil", "rceil", "even", "even1", "fit", *LOGARITHMS)
#: Names of facts about the scheme that a step may take.
FACTS = ("H", "max", "emax", "top")
#: Stage -> the name of its result, and the names that it finds.
STAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "single": ("scale", ("a",)),
    "tensor": ("tensor_scale", ("A",)),
    "block": ("block_scale", ("A", "a", "g")),
    "element": ("q", ("x", "s", "g", "b", "a", "A")),
    "decode": ("y", ("v", "s", "g", "b")),
}
#: What stages find -> the rule that it comes from.
FOUND: dict[str, str] = {
    "A": "POL-8", "a": "POL-8", "g": "POL-9", "b": "POL-9", "s": "SCL-14", "x": "QNT-1", "v": "VAL-12",
    "H": "SCL-4", "max": "POL-5", "emax": "POL-5", "top": "SCL-11",
}  # fmt: skip
#: The stages that choose a scale.
CHOOSING = ("single", "tensor", "block")
#: The constant that is a name.
INFINITY = "inf"
#: Name of an operation -> its arguments (n a number, c a condition) and its result.
OPERATIONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("mul", "div", "add", "sub", "min", "max", "fmin", "fmax"), ("nn", "n")),
    **dict.fromkeys(("abs", "neg", "up", "rne", "narrow", "pow2"), ("n", "n")),
    **dict.fromkeys(("eq0", "isnan", "isfinite", "gt0"), ("n", "c")),
    "sel": ("cnn", "n"),
}
#: Operations that give a condition.
CONDITIONS = tuple(name for name, (_, result) in OPERATIONS.items() if result == "c")
#: Name of an operation -> what may stand in its brackets; the other operations have none. T is the type of the scale
#: that the stage chooses.
BRACKETS: dict[str, tuple[str, ...]] = {
    "up": ("T", *SCALES),
    "rne": ("T", *SCALES),
    "narrow": tuple(name for name in OUTPUTS if name != "f32"),
    "pow2": POW2,
}
MOST_STEPS = 64
_STEP = re.compile(r"([a-z][a-z0-9_]*) = ([a-z][a-z0-9]*)(?:\[([A-Za-z0-9]+)\])?\(([^()]*)\)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_HEX_FLOAT = re.compile(r"-?0x[01](?:\.[0-9a-f]+)?p[+-][0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class Assignment:
    """One step: `name = op[kind](args)`."""

    name: str
    op: str
    args: tuple[str, ...]
    kind: str = ""

    @classmethod
    @rule("POL-5")
    def of(cls, text: "str | Assignment") -> "Assignment":
        """The step of a text. Rule POL-5."""
        if isinstance(text, Assignment):
            return text
        match = _STEP.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise UnsupportedError("POL-5", f"step {text!r}; allowed: name = op(arg, arg), or name = op[kind](arg)")
        return cls(match[1], match[2], tuple(part.strip() for part in match[4].split(",")), match[3] or "")

    @property
    def text(self) -> str:
        """The step as a recipe spells it."""
        kind = f"[{self.kind}]" if self.kind else ""
        return f"{self.name} = {self.op}{kind}({', '.join(self.args)})"

    @property
    def rule(self) -> str:
        """The rule that says what the operation gives."""
        return "POL-6" if self.op != "pow2" else "POL-20" if self.kind in LOGARITHMS else "POL-7"

    def __str__(self) -> str:
        return self.text


Program = tuple[Assignment, ...]


def program(lines: Iterable["str | Assignment"]) -> Program:
    """The steps of a stage's lines."""
    return tuple(Assignment.of(line) for line in lines)


def _fail(where: str, step: Assignment, what: str) -> UnsupportedError:
    return UnsupportedError("POL-5", f"{where}: step {step.text!r}: {what}")


@rule("POL-5")
def check(stage: str, steps: Program, where: str) -> None:
    """Refuse a stage that is no program: names, kinds of arguments, single assignment, the result at the end. Rule POL-5."""
    result, found = STAGES[stage]
    kinds = {**dict.fromkeys(FACTS, "n"), **dict.fromkeys(found, "n")}
    if len(steps) > MOST_STEPS:
        raise UnsupportedError("POL-5", f"{where}: {len(steps)} steps; allowed: at most {MOST_STEPS}")
    for step in steps:
        if step.op not in OPERATIONS:
            raise _fail(where, step, f"no operation {step.op!r}; allowed: {', '.join(OPERATIONS)}")
        takes, gives = OPERATIONS[step.op]
        if step.kind not in BRACKETS.get(step.op, ("",)):
            allowed = (
                ", ".join(f"{step.op}[{kind}]" for kind in BRACKETS.get(step.op, ())) or f"{step.op} without brackets"
            )
            raise _fail(where, step, f"[{step.kind}]; allowed: {allowed}")
        if step.kind == "T" and stage not in CHOOSING:
            raise _fail(where, step, f"T has a meaning only where a scale is chosen: {', '.join(CHOOSING)}")
        if len(step.args) != len(takes):
            raise _fail(where, step, f"{len(step.args)} arguments; {step.op} takes {len(takes)}")
        for argument, kind in zip(step.args, takes, strict=True):
            known = "n" if _constant(argument, where, step) is not None else kinds.get(argument)
            if known is None:
                raise _fail(where, step, f"no name {argument!r}; known here: {', '.join(kinds)}")
            if known != kind:
                raise _fail(
                    where,
                    step,
                    f"{argument!r} is {'a number' if known == 'n' else 'a condition'}; {step.op} takes the other",
                )
        if step.name in kinds or step.name == INFINITY:
            raise _fail(where, step, f"{step.name!r} has a meaning already")
        if (step.name == result) != (step is steps[-1]):
            raise _fail(where, step, f"the last step, and no other, gives {result!r}")
        kinds[step.name] = gives
    if steps and kinds[result] != "n":
        raise _fail(where, steps[-1], f"{result!r} is a condition; it must be a number")


def _constant(text: str, where: str, step: Assignment) -> np.float32 | None:
    """The number of a constant; None for a name."""
    if text == INFINITY:
        return np.float32(np.inf)
    if not _HEX_FLOAT.fullmatch(text):
        if not _NAME.fullmatch(text):
            raise _fail(where, step, f"{text!r} is neither a name nor a number such as 0x1.8p+1")
        return None
    number = float.fromhex(text)
    if abs(number) >= 2.0**128 or float(np.float32(number)) != number:
        raise _fail(where, step, f"{text} is no binary32 number")
    return np.float32(number)


# ---------------------------------------------------------------- facts
