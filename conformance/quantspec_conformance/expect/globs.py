"""Ids against globs: which ids a glob matches, and the fewest globs that match some ids and none of the others."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from fnmatch import translate

__all__ = ["Ids", "cover"]

_WILD = re.compile(r"[*?\[]")
_SEPARATOR = re.compile(r"[.-]")


class Ids:
    """Ids in order, so that a glob looks only at those that begin as it does."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.all = sorted(set(ids))

    def matching(self, glob: str) -> tuple[str, ...]:
        """The ids that a glob matches. `*` matches dots too; case counts."""
        wild = _WILD.search(glob)
        prefix = glob if wild is None else glob[: wild.start()]
        first = bisect_left(self.all, prefix)
        if wild is None:
            return (glob,) if first < len(self.all) and self.all[first] == glob else ()
        matches = re.compile(translate(glob)).match
        found = []
        for name in self.all[first:]:
            if not name.startswith(prefix):
                break
            if matches(name):
                found.append(name)
        return tuple(found)


def cover(wanted: Collection[str], others: Iterable[str]) -> tuple[str, ...]:
    """Globs and ids, sorted, that match every wanted id and none of the others. Globs end at a dot or a hyphen."""
    within = frozenset(wanted)
    if not within:
        return ()
    begin = _shared([min(within), max(within)])
    foreign = sorted({name for name in others if name.startswith(begin) and name not in within})
    found: list[str] = []
    open_ = [sorted(within)]
    while open_:
        names = open_.pop()
        prefix = _shared(names)
        if len(names) == 1:
            found.append(names[0])
        elif prefix and not _begins(foreign, prefix):
            found.append(f"{prefix}*")
        else:
            open_ += _split(names, len(prefix))
    return tuple(sorted(found))


def _begins(names: list[str], prefix: str) -> bool:
    first = bisect_left(names, prefix)
    return first < len(names) and names[first].startswith(prefix)


def _shared(names: list[str]) -> str:
    """The beginning that sorted names share, up to a separator."""
    low, high = names[0], names[-1]
    length = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    ends = [match.end() for match in _SEPARATOR.finditer(low, 0, length)]
    return low[: ends[-1]] if ends else ""


def _split(names: list[str], at: int) -> list[list[str]]:
    """Names by their next part, its separator included: `tie` and `tie-` are two."""
    groups: dict[str, list[str]] = {}
    for name in names:
        match = _SEPARATOR.search(name, at)
        groups.setdefault(name if match is None else name[: match.end()], []).append(name)
    return list(groups.values())
