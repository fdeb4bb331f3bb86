"""A small language that picks cases: terms separated by white space, all of which must hold.

    op:encode value:e2m1,e4m3 rule:VAL-7 level:0-1 -kind:negative id:encode.e2m1.* bug:tie feature:axis:1 midpoints

A comma means or, a hyphen in front means not. A term without a name is a word that id or title holds. `rule:VAL` is any rule
of the area, `level:0-1` a range; `id`, `suite`, `provenance`, `feature` and `policy` take the wildcards * and ?.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from quantspec import CODECS, RECIPES, SCALES, STORES, VALUES
from quantspec.containers import CONTAINERS

from ..errors import UsageError
from ..protocol.messages import OPERATIONS
from ..spec import AREAS, rules
from .case import BUGS, KINDS, LEVELS, Case

__all__ = ["TERMS", "select"]

Test = Callable[[Case], bool]
#: Terms whose alternatives are of a list: name -> what a case has of it, and all that there is.
_LISTED: dict[str, tuple[Callable[[Case], Sequence[str]], tuple[str, ...]]] = {
    "op": (lambda case: (case.op,), OPERATIONS),
    "kind": (lambda case: (case.kind,), KINDS),
    "strength": (lambda case: (case.strength,), ("MUST", "SHOULD", "MAY", "POLICY")),
    "bug": (lambda case: case.bugs, BUGS),
    "value": (lambda case: _features(case, "value"), tuple(VALUES)),
    "store": (lambda case: _features(case, "store"), tuple(STORES)),
    "scale": (lambda case: _features(case, "scale"), tuple(SCALES)),
    "mode": (lambda case: _features(case, "mode"), ("symmetric", "lookup")),
}
#: Terms whose alternatives are patterns.
_PATTERNS: dict[str, Callable[[Case], Sequence[str]]] = {
    "id": lambda case: (case.id,),
    "suite": lambda case: (case.suite, case.suite.rpartition("/")[2]),
    "provenance": lambda case: (case.provenance,),
    "feature": lambda case: case.features,
    "policy": lambda case: tuple(case.policies.values()) or ("canonical",),
    "rank": lambda case: _features(case, "rank"),
    "axis": lambda case: _features(case, "axis"),
}
#: Rows that the term `policy` can name; one that is written without a wildcard is one of them.
_POLICIES = tuple(dict.fromkeys((*RECIPES, *CODECS, *CONTAINERS)))
#: Every name that a term may begin with.
TERMS = (*_LISTED, "rule", "level", *_PATTERNS)


def _features(case: Case, name: str) -> tuple[str, ...]:
    return tuple(what for kind, _, what in (feature.partition(":") for feature in case.features) if kind == name)


def select(cases: Iterable[Case], expression: str) -> tuple[Case, ...]:
    """The cases for which every term holds, in their order. UsageError names the position and what is allowed there."""
    tests = [_term(match[0], match.start()) for match in re.finditer(r"\S+", expression)]
    return tuple(case for case in cases if all(test(case) for test in tests))


def _fail(position: int, message: str, value: str = "", allowed: Sequence[str] = ()) -> UsageError:
    near = difflib.get_close_matches(value, allowed, 1) if value else []
    hint = f" (near: {near[0]})" if near else ""
    listed = f"; allowed: {', '.join(allowed)}" if allowed else ""
    return UsageError(f"selection, position {position}: {message}{listed}{hint}")


def _term(text: str, position: int) -> Test:
    """The test of one term; a hyphen in front turns it round."""
    if text.startswith("-"):
        if len(text) == 1:
            raise _fail(position, "a hyphen with nothing behind it")
        denied = _term(text[1:], position + 1)
        return lambda case: not denied(case)
    name, colon, rest = text.partition(":")
    if not colon:
        return _any([_word(part) for part, _ in _parts(text, position)])
    if name not in TERMS:
        raise _fail(position, f"{name!r} is the name of no term", name, TERMS)
    parts = _parts(rest, position + len(name) + 1)
    return _any([_alternative(name, part, place) for part, place in parts])


def _parts(text: str, position: int) -> list[tuple[str, int]]:
    """The alternatives with their positions; none may be empty."""
    found = []
    for part in text.split(","):
        if not part:
            raise _fail(position, "an alternative is empty")
        found.append((part, position))
        position += len(part) + 1
    return found


def _any(tests: Sequence[Test]) -> Test:
    return lambda case: any(test(case) for test in tests)


def _word(word: str) -> Test:
    lower = word.lower()
    return lambda case: lower in case.id or lower in case.title.lower()


def _alternative(name: str, text: str, position: int) -> Test:
    if name == "rule":
        return _rule(text.upper(), position)
    if name == "level":
        return _level(text, position)
    if name in _LISTED:
        having, allowed = _LISTED[name]
        if text not in allowed:
            raise _fail(position, f"{name}:{text} is none", text, allowed)
        return lambda case: text in having(case)
    if name == "policy" and not set(text) & set("*?[") and text not in _POLICIES:
        raise _fail(position, f"policy:{text} is none", text, _POLICIES)
    found = _PATTERNS[name]
    return lambda case: any(fnmatchcase(entry, text) for entry in found(case))


def _rule(text: str, position: int) -> Test:
    if text in AREAS:
        return lambda case: any(rule_id.startswith(f"{text}-") for rule_id in case.rules)
    if text not in rules():
        area = text.partition("-")[0]
        known = [rule_id for rule_id in rules() if rule_id.startswith(f"{area}-")]
        what = (f"{known[0]} to {known[-1]}, or {area}",) if known else AREAS
        raise _fail(position, f"there is no rule {text}", text, what)
    return lambda case: text in case.rules


def _level(text: str, position: int) -> Test:
    """A level of the suite; or what a scheme's scales are on, since a case's features spell that `level:block`."""
    if text in ("tensor", "block", "both"):
        return lambda case: text in _features(case, "level")
    match = re.fullmatch(r"([0-9])(?:-([0-9]))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last or first not in LEVELS or last not in LEVELS:
        raise _fail(
            position, f"level:{text} is none", "", ("a level, 0 to 2", "a range such as 0-1", "tensor", "block", "both")
        )
    return lambda case: first <= case.level <= last
