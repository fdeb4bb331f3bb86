"""What a list of plans covers, counted: schemes, cases, shapes, families, triples, steps."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from . import matrix
from .cases import Plan
from .families import FAMILIES, SHAPES

__all__ = ["count", "is_whole", "sentence"]


def count(plans: Sequence[Plan]) -> dict[str, Any]:
    """Counts for the header and for the result file."""
    steps: Counter[str] = Counter()
    schemes: set[str] = set()
    shapes: set[tuple[int, ...]] = set()
    families: set[str] = set()
    triples: set[tuple[str, str | None, str | None, str]] = set()
    accepted = refused = 0
    for plan in plans:
        schemes.update(scheme.text for scheme in plan.schemes)
        shapes.add(plan.shape)
        for step in plan.steps:
            steps[step] += len(plan.schemes)
        if plan.family is None:
            refused += len(plan.schemes)
            continue
        accepted += len(plan.schemes)
        if 0 not in plan.shape:
            families.add(plan.family)
            triples.add((plan.group.row, plan.group.tensor, plan.group.block, plan.family))
    return {
        "schemes": len(schemes),
        "matrix": sum(matrix.SIZES),
        "cases": accepted + refused,
        "accepted": accepted,
        "refused": refused,
        "shapes": len(shapes),
        "families": len(families),
        "triples": len(triples),
        "steps": dict(sorted(steps.items())),
    }


def sentence(counts: dict[str, Any]) -> str:
    """The counts in words."""
    return (
        f"{counts['schemes']} of {counts['matrix']} schemes, {counts['cases']} cases a device ({counts['refused']} of them "
        f"shapes that both sides must refuse), {counts['shapes']} of {len(SHAPES)} shapes, {counts['families']} of "
        f"{len(FAMILIES)} data families, {counts['triples']} (value, scale choice, family) triples"
    )


def is_whole(counts: Mapping[str, Any], *, of_matrix: bool, quick: bool, build_options: Sequence[str]) -> bool:
    """True for the whole matrix with nothing changed: a conformance run, if it reaches its end. Rule CNF-4."""
    return of_matrix and counts["schemes"] == counts["matrix"] and not quick and not build_options
