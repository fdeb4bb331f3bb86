"""Where the cases of the plugin come from: the shipped suites, up to a level."""

from functools import cache

from ..suite.case import Case
from ..suite.store import load_all, suite_digest, vectors_root

__all__ = ["digest", "load_cases"]


@cache
def _all() -> tuple[Case, ...]:
    return load_all(vectors_root())


def load_cases(level: int) -> tuple[Case, ...]:
    """The cases of the levels up to this one, in the order of the suite, the same in every process. DamagedError."""
    return tuple(case for case in _all() if case.level <= level)


@cache
def digest() -> str:
    """The digest of the suite, for the hello. DamagedError."""
    return suite_digest(vectors_root())
