"""For tests of others: the pytest plugin, `assert_bits_equal`, Hypothesis strategies, profiles. PYTEST_DONT_REWRITE"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .equality import assert_bits_equal as assert_bits_equal

__all__ = ["assert_bits_equal"]


def __getattr__(name: str) -> Any:
    """`assert_bits_equal` when it is asked for: pytest loads this package in every run, and numpy is heavy."""
    if name != "assert_bits_equal":
        raise AttributeError(name)
    from .equality import assert_bits_equal

    return assert_bits_equal
