"""What an implementation says it does, against the names that there are: a name that is none is never asked for."""

import difflib
from collections.abc import Mapping

from quantspec import SCALES, STORES, VALUES
from quantspec.codecs import CODECS
from quantspec.containers import CONTAINERS
from quantspec.recipes import RECIPES

from .outside import printable
from .protocol.messages import OPERATIONS, Identity

__all__ = ["NAMES", "POLICIES", "strange_names"]

#: List of an identity -> every name that it may hold.
NAMES: Mapping[str, tuple[str, ...]] = {
    "ops": OPERATIONS,
    "values": tuple(VALUES),
    "stores": tuple(STORES),
    "scales": tuple(SCALES),
    "modes": ("symmetric", "lookup"),
    "levels": ("tensor", "block", "both"),
}
#: Axis of a policy -> its rows. An axis that is none of them is a choice that a rule leaves open: any text.
POLICIES: Mapping[str, tuple[str, ...]] = {"recipe": (*RECIPES,), "codec": (*CODECS,), "container": (*CONTAINERS,)}


def strange_names(identity: Identity) -> list[str]:
    """The names that are none, a line for each list that holds some."""
    found: list[str] = []
    for attribute, allowed in NAMES.items():
        strange = [item for item in getattr(identity, attribute) if item not in allowed]
        if strange:
            shown = ", ".join(printable(repr(str(item)))[:80] for item in strange[:8])
            found.append(f"{attribute} lists {shown}; allowed: {', '.join(allowed)}")
    for axis, rows in POLICIES.items():
        listed = [name.strip() for name in identity.policies.get(axis, "").split(",")]
        strange = [name for name in listed if name and name not in rows]
        if strange:
            shown = ", ".join(printable(repr(name))[:80] for name in strange[:8])
            near = difflib.get_close_matches(strange[0][:80], rows, 1)
            hint = f"near: {near[0]}" if near else f"allowed: {', '.join(rows)}"
            found.append(f"policy.{axis} lists {shown}; {hint}")
    return found
