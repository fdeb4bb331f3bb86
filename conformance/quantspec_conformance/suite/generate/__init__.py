"""The generator of the suite, and the only writer of its files: every expected bit is the law's, nothing is written by hand."""

from collections.abc import Iterator

from ...errors import DamagedError
from ..case import LEVELS
from ..store import Suite
from . import (
    chain,
    echo,
    extremes,
    layout,
    operations,
    packing,
    products,
    quantize,
    recipes,
    repack,
    scales,
    scheme,
    values,
)
from .common import Place, Plan

__all__ = ["Place", "Plan", "generate", "plans"]

#: Modules by what their cases are about, in the order of the chapters.
PARTS = (
    scheme,
    values,
    scales,
    quantize,
    packing,
    layout,
    operations,
    repack,
    chain,
    products,
    recipes,
    extremes,
    echo,
)


def plans(level: int) -> tuple[Plan, ...]:
    """The suites of a level, not made yet. DamagedError where two would be one file."""
    if level not in LEVELS:
        raise DamagedError(f"level {level}; there are {', '.join(map(str, LEVELS))}")
    found: dict[Place, Plan] = {}
    for part in PARTS:
        for plan in part.plans(level):
            if plan.place in found:
                raise DamagedError(f"{plan.place}: two suites at one place")
            found[plan.place] = plan
    return tuple(found.values())


def generate(level: int) -> Iterator[Suite]:
    """Every suite of a level that has cases. Levels 0 and 1 are shipped, level 2 is made when it is asked for."""
    for plan in plans(level):
        suite = plan.suite()
        if suite.cases:
            yield suite
