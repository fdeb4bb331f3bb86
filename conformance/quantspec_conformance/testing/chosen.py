"""The cases that options choose."""

from collections.abc import Sequence

from ..errors import UsageError
from ..outside import printable
from ..suite.case import Case
from ..suite.select import select as selected
from .profiles import PROFILES

__all__ = ["chosen"]


def chosen(cases: Sequence[Case], *, select: str = "", profile: str = "") -> list[Case]:
    """The cases of a profile that an expression selects. UsageError for an unknown name, and where nothing is left."""
    if profile and profile not in PROFILES:
        raise UsageError(f"--qs-profile: {printable(profile)[:80]!r} is no profile; there are {', '.join(PROFILES)}")
    found = [case for case in cases if not profile or PROFILES[profile].holds(case)]
    if select:
        try:
            found = list(selected(found, select))
        except UsageError as error:
            raise UsageError(f"--qs-select: {printable(str(error))}") from None
    if not found:
        option = f"--qs-select: {printable(select)[:120]!r}" if select else f"--qs-profile: {profile}"
        raise UsageError(f"{option} selects none of the {len(cases)} cases")
    return found
