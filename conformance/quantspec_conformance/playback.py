"""Examples played on the reference: what each operation makes, the steps in between, the refusal, and the rules that fired.

A state holds everything made so far by the name an example uses for it. An operation takes what it needs from the state and
adds what it makes; a quantity in between (amax, raw, s, q, ...) is worked out where an example asks for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import quantspec
from quantspec import QuantspecError

from . import steps
from .examples import Entry, Example, ExampleError, Tensor
from .state import State
from .verbs import VERBS

__all__ = ["Played", "play", "problems"]


@dataclass(frozen=True, slots=True)
class Played:
    """What an example gives when it is played: the entries it asks for, and the rules that fired."""

    entries: Mapping[str, Tensor | str]
    rules: tuple[str, ...]


#: Entries that only a refusal gives.
REFUSAL = ("refused", "position", "says")
#: Entries that a preset gives.
JOINED = ("recipe", "codec", "container", "version")


def play(example: Example, verbs: Any = quantspec) -> Played:
    """What the example gives, done by the verbs of `quantspec` or of another that has the same ones.

    Raises ExampleError for an example that cannot be played.
    """
    state = State(example, verbs)
    made: dict[str, Tensor | str] = {}
    fired: dict[str, None] = {}
    with np.errstate(all="ignore"), quantspec.trace() as trace:
        try:
            for verb in example.do:
                if verb not in VERBS:
                    raise ExampleError(f"{example.place}: {verb!r} is no operation; there are {', '.join(VERBS)}")
                VERBS[verb](state)
        except QuantspecError as error:
            made |= _refusal(error)
            fired[error.rule] = None
    fired = dict.fromkeys([*trace.rules(), *state.made.get("rules", ()), *fired])
    asked = {} if "refused" in made else example.gives
    made |= {name: _asked(state, name, entry) for name, entry in asked.items() if name not in REFUSAL}
    return Played(made, tuple(fired))


def _refusal(error: QuantspecError) -> dict[str, Tensor | str]:
    """The entries of a refusal: rule and kind, the position in a text, the message."""
    kind = type(error).__name__.removesuffix("Error").lower()
    position = getattr(error, "position", None)
    entries: dict[str, Tensor | str] = {"refused": f"{error.rule} {kind}", "says": error.message}
    return entries if position is None else {**entries, "position": str(position)}


def _asked(state: State, name: str, entry: Entry) -> Tensor | str:
    """One entry that the example asks for, from the state or worked out."""
    made = state.made
    if name in ("text", "outcome", "rule", "equal", "burn", "shape", "size", "saturated", *JOINED):
        return steps.words_of(name, state.tensor, made)
    if name in made:
        return Tensor.of(np.asarray(made[name]))
    if name in steps.STEPS and state.tensor is not None:
        x = state.example.given.get("x")
        bits = None if x is None or isinstance(x.content, str) else steps.widened(x.content.array())
        return Tensor.of(steps.STEPS[name](state.tensor, bits))
    raise ExampleError(
        f"{state.example.place}: {state.example.id}: nothing makes {name!r} (asked as {entry.text[:40]!r})"
    )


def problems(example: Example, verbs: Any = quantspec) -> list[str]:
    """What is wrong with an example: entries that differ; on the reference also rules that it shows and that did not fire."""
    played = play(example, verbs)
    found: list[str] = []
    for name, entry in example.gives.items():
        actual = played.entries.get(name)
        if name == "says" and isinstance(actual, str):
            lacking = [part.strip() for part in entry.text.split(";") if part.strip() not in actual]
            found += [f"{example.id}: the refusal does not say {part!r}: {actual}" for part in lacking]
        elif actual is None:
            found.append(f"{example.id}: {name} is not given; it gives {', '.join(played.entries) or 'nothing'}")
        elif actual != entry.content:
            shown = actual if isinstance(actual, str) else actual.text
            found.append(f"{example.id}: {name} is written as {entry.text}; the reference gives {shown}")
    if "refused" in played.entries and "refused" not in example.gives:
        found.append(f"{example.id}: refused: {played.entries['refused']}: {played.entries['says']}")
    if verbs is quantspec:
        silent = [rule_id for rule_id in example.shows if rule_id not in played.rules]
        found += [f"{example.id}: shows {rule_id}, which does not fire" for rule_id in silent]
    return found
