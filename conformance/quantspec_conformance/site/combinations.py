"""Every value x mode x store kind x scale choice, with the rules that define it or the rule that refuses it.

The rule sets are observed, not listed: `probes` runs the reference and sees which rules fire. SCH-1, SCH-8.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

from quantspec import SCALES, VALUES, Scheme
from quantspec.stores import STORES

from ..matrix import MATRIX_TABLES
from ..spec import rule_key
from .probes import Numeric, rules_of_bytes, rules_of_numbers

__all__ = ["MODES", "Combination", "combinations", "rule_set", "scale_choices"]

MODES = ("symmetric", "lookup")


@dataclass(frozen=True, slots=True)
class Combination:
    """One value, mode, store kind and scale choice; `rules` in the order of the areas, empty where `refused_by` says why."""

    value: str
    mode: str
    store: str
    tensor: str | None
    block: str | None
    rules: tuple[str, ...]
    refused_by: str | None


def scale_choices() -> tuple[tuple[str | None, str | None], ...]:
    """Tensor and block scale types: 5 tensor only, 5 block only, 25 of both. Rule SCH-5."""
    types: list[str | None] = list(SCALES)
    return (*product(types, [None]), *product([None], types), *product(types, types))


@cache
def combinations() -> tuple[Combination, ...]:
    """All combinations, in the order value, mode, store, scale choice. Each is defined, or refused by one rule. SCH-1."""
    found: list[Combination] = []
    for value, mode in product(VALUES, MODES):
        numeric = [Numeric(value, mode, tensor, block) for tensor, block in scale_choices()]
        numbers = [rules_of_numbers(part) for part in numeric]
        for store in STORES:
            for part, (fired, refused_by) in zip(numeric, numbers, strict=True):
                rules: tuple[str, ...] = ()
                if refused_by is None:
                    rules = tuple(sorted(fired | rules_of_bytes(part, store), key=rule_key))
                found.append(Combination(value, mode, store, part.tensor, part.block, rules, refused_by))
    return tuple(found)


def rule_set(scheme_text: str) -> tuple[str, ...]:
    """The rules of the combination that a scheme belongs to; its extents, packed axis and table do not matter."""
    scheme = Scheme.parse(scheme_text, tables=MATRIX_TABLES.values())
    tensor = None if scheme.tensor is None else scheme.tensor.name
    block = None if scheme.block is None else scheme.block.scale.name
    return _by_members()[scheme.value.name, scheme.mode, scheme.store.kind, tensor, block].rules


@cache
def _by_members() -> dict[tuple[str, str, str, str | None, str | None], Combination]:
    return {(row.value, row.mode, row.store, row.tensor, row.block): row for row in combinations()}
