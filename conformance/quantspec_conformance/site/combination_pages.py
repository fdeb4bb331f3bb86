"""Pages of all combinations: the rule set of each, or the rule that refuses it, and every distinct set once.

`pages` returns {docname: Markdown}. The sets are those that `combinations` observed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from quantspec import VALUES
from quantspec.stores import STORES

from ..errors import DamagedError
from .combinations import MODES, Combination, combinations, scale_choices
from .render import render

__all__ = ["Sets", "choice_label", "numbered", "pages"]

Rules = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sets:
    """The distinct rule sets, numbered from 1 in the order in which combinations() meets them, and their three parts.

    A set is `core`, the part of its value and mode, and the part of its scale choice, together: exactly.
    """

    numbers: dict[Rules, int]
    core: frozenset[str]
    of_value: dict[tuple[str, str], frozenset[str]]
    of_choice: dict[tuple[str | None, str | None], frozenset[str]]
    of_set: dict[Rules, list[Combination]]


def numbered(rows: Iterable[Combination]) -> Sets:
    """The sets of the defined combinations. DamagedError where one is not the union of its three parts."""
    defined = [row for row in rows if row.refused_by is None]
    members: dict[Rules, list[Combination]] = {}
    for row in defined:
        members.setdefault(row.rules, []).append(row)
    core = frozenset.intersection(*map(frozenset, members))
    by_value = _shared(((row.value, row.mode), row.rules) for row in defined)
    by_choice = _shared(((row.tensor, row.block), row.rules) for row in defined)
    for row in defined:
        if core | by_value[row.value, row.mode] | by_choice[row.tensor, row.block] != set(row.rules):
            raise DamagedError(f"the rules of {row} are not those of its value, its mode and its scale choice")
    return Sets(
        {key: number for number, key in enumerate(members, 1)}, core,
        {key: part - core for key, part in by_value.items()}, {key: part - core for key, part in by_choice.items()},
        members,
    )  # fmt: skip


def _shared(pairs: Iterable[tuple[Any, Rules]]) -> dict[Any, frozenset[str]]:
    """The rules that all entries of a key have."""
    found: dict[Any, frozenset[str]] = {}
    for key, ids in pairs:
        found[key] = found.get(key, frozenset(ids)) & frozenset(ids)
    return found


def choice_label(tensor: str | None, block: str | None) -> str:
    """`b-ue4m3 t-f32`: the scale types as the parts of a scheme's text spell them."""
    return " ".join([f"b-{block}"] * (block is not None) + [f"t-{tensor}"] * (tensor is not None))


def pages(rows: tuple[Combination, ...] | None = None) -> dict[str, str]:
    """`combinations`, a cell for each combination, and `combinations-sets`, each set once with the anchor `set-<n>`."""
    rows = combinations() if rows is None else rows
    sets = numbered(rows)
    counts = {
        "total": len(rows), "defined": sum(row.refused_by is None for row in rows), "distinct": len(sets.numbers),
        "refused": sum(row.refused_by is not None for row in rows), "refusing": {*_refusing(rows)},
        "values": len(VALUES), "modes": len(MODES), "stores": len(STORES), "choices": len(scale_choices()),
    }  # fmt: skip
    cells = {(r.value, r.mode, r.store, r.tensor, r.block): _cell(r, sets) for r in rows}
    columns = [(mode, store) for mode in MODES for store in STORES]
    tables = {
        value: [
            (choice_label(*choice), [cells[value, mode, store, *choice] for mode, store in columns])
            for choice in scale_choices()
        ]
        for value in VALUES
    }
    heads = [f"{mode} {store.replace('_', '_<wbr>')}" for mode, store in columns]
    return {
        "combinations": render("combinations", heads=heads, tables=tables, **counts),
        "combinations-sets": render("combinations-sets", sets=sets, **_parts(sets), **counts),
    }


def _refusing(rows: Iterable[Combination]) -> Iterator[str]:
    return (row.refused_by for row in rows if row.refused_by is not None)


def _cell(row: Combination, sets: Sets) -> str:
    number = sets.numbers.get(row.rules)
    return row.refused_by or f"[S{number}](#set-{number})"


def _parts(sets: Sets) -> dict[str, Any]:
    """The parts of values and of scale choices with names (V1, C1), and for each set its two."""
    values = {part: f"V{i}" for i, part in enumerate(dict.fromkeys(sets.of_value.values()), 1)}
    choices = {part: f"C{i}" for i, part in enumerate(dict.fromkeys(sets.of_choice.values()), 1)}
    listed = []
    for ids, number in sets.numbers.items():
        rows = sets.of_set[ids]
        first = rows[0]
        parts = (values[sets.of_value[first.value, first.mode]], choices[sets.of_choice[first.tensor, first.block]])
        listed.append((number, len(rows), parts, set(ids) - sets.core))
    return {
        "value_parts": [(name, _keys(sets.of_value, part, " ".join), part) for part, name in values.items()],
        "choice_parts": [
            (name, _keys(sets.of_choice, part, lambda key: choice_label(*key)), part) for part, name in choices.items()
        ],
        "listed": listed,
    }  # fmt: skip


def _keys(parts: Mapping[Any, frozenset[str]], part: frozenset[str], label: Callable[[Any], str]) -> str:
    return ", ".join(label(key) for key, own in parts.items() if own == part)
