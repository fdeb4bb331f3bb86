"""What an implementation says it does, against the names that there are: a name that is none is never asked for."""

from collections.abc import Mapping

from quantspec import SCALES, STORES, VALUES

from .outside import printable
from .protocol.messages import OPERATIONS, Identity

__all__ = ["NAMES", "strange_names"]

#: List of an identity -> every name that it may hold.
NAMES: Mapping[str, tuple[str, ...]] = {
    "ops": OPERATIONS,
    "values": tuple(VALUES),
    "stores": tuple(STORES),
    "scales": tuple(SCALES),
    "modes": ("symmetric", "lookup"),
    "levels": ("tensor", "block", "both"),
}


def strange_names(identity: Identity) -> list[str]:
    """The names that are none, a line for each list that holds some."""
    found: list[str] = []
    for attribute, allowed in NAMES.items():
        strange = [item for item in getattr(identity, attribute) if item not in allowed]
        if strange:
            shown = ", ".join(printable(repr(str(item)))[:80] for item in strange[:8])
            found.append(f"{attribute} lists {shown}; allowed: {', '.join(allowed)}")
    return found
