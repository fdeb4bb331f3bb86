"""A verdict as the command prints it."""

from collections.abc import Iterator

from ..protocol.messages import Identity
from .verdict import EXCEPT, IDENTIFIED, LACKING, Counterexample, Found, PartFound, by_axis

__all__ = ["found_lines", "head_line", "last_line"]

_SHOWN = 4  #: numbers of a question
_STEPS = 24
_NAMED = 3  #: ways of an axis


def head_line(identity: Identity) -> str:
    """Who is asked."""
    return " ".join(part for part in (identity.name, identity.version, identity.device) if part)


def block_text(x: tuple[str, ...] | list[str]) -> str:
    """A question: its numbers that are not 0, the first of them by place."""
    listed = [(place, bits) for place, bits in enumerate(x) if bits != "00000000"]
    if len(x) < 3 or any(len(bits) != 8 for bits in x):
        return " ".join(x)
    if not listed:
        return f"{len(x)} zeros"
    text = " ".join(f"x[{place}]={bits}" for place, bits in listed[:_SHOWN])
    more = len(listed) - _SHOWN
    return f"{text} and {more} more of {len(x)}" if more > 0 else f"{text} of {len(x)}"


def _ways(axes: dict[str, list[str]]) -> str:
    return ", ".join(f"{axis} {_alike(ways)}" for axis, ways in axes.items())


def _alike(ways: list[str]) -> str:
    """Ways that are equal on everything tried, the first of them by name."""
    if len(ways) <= _NAMED:
        return " or ".join(ways)
    return f"{' or '.join(ways[:_NAMED])} or {len(ways) - _NAMED} more"


def _differs(one: Counterexample) -> str:
    return f"{block_text(one.x)}; {one.place}: expected {one.expected}, got {one.got}"


def found_lines(found: Found, *, brief: bool = False) -> Iterator[str]:
    """One format. `brief`: without the path and without what refutes the others."""
    yield f"{found.scheme}  {found.outcome}{f' (asked as {found.asked_as})' if found.asked_as else ''}"
    if found.outcome == LACKING:
        yield from (f"  {note}" for note in found.notes)
        return
    if any(part.part in ("codes", "scale", "block scale") for part in found.parts):
        none = "none of the known"
        yield f"  recipe        {_alike(found.recipes) or none}{' (scales given)' * found.given}"
        yield f"  codec         {_alike(found.codecs) or none}"
    if found.presets:
        yield f"  preset        {' or '.join(found.presets)}"
    for part in found.parts:
        yield from _part_lines(part)
    yield from (f"  note          {note}" for note in found.notes)
    yield from (f"  refused       {count} blocks: {why}" for why, count in found.refusals.items())
    yield f"  asked         {found.blocks} blocks in {found.requests} requests"
    if brief:
        return
    told = [(number, step) for number, step in enumerate(found.path, 1) if step["after"] < step["before"]]
    if told:
        yield "  path"
        for number, step in told[:_STEPS]:
            answer = step["tensor_scale"] if step["part"] == "tensor scale" else step["scales"] or step["tensor_scale"]
            got = f"codes {_short(step['codes'])}" if step["part"].startswith("codes") else f"scale {_short(answer)}"
            yield f"    {number:<3} {step['part']:<13} {block_text(step['x'])}: {got}; {step['before']} -> {step['after']} ways"
    if any(part.refuted for part in found.parts):
        yield "  refuted by"
        for part in found.parts:
            for one in part.refuted:
                yield f"    {part.part:<13} {one.axis} {one.way}: {_differs(one.by)}"


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:24].rstrip() + " ..."


def _part_lines(part: PartFound) -> Iterator[str]:
    if part.outcome in (IDENTIFIED, EXCEPT):
        yield f"  {part.part:<13} {_ways(part.axes)}"
        for place in part.exempt:
            yield f"    except      {place.domain} ({place.what}): agrees in {place.agrees} of {place.of}"
            if place.by is not None:
                yield f"      smallest  {_differs(place.by)}"
        return
    yield f"  {part.part:<13} {part.outcome}"
    for one in part.nearest:
        worst = ", ".join(f"{family} {good}/{count}" for family, (good, count) in one.families.items())
        yield f"    nearest     {_ways(by_axis(one.ways))}: {one.agrees} of {one.of}" + (
            f"; less than all of: {worst}" if worst else ""
        )
    if part.counterexample is not None:
        yield f"    smallest    {_differs(part.counterexample)}"


def last_line(found: list[Found]) -> str:
    """Formats by outcome."""
    counts: dict[str, int] = {}
    for one in found:
        counts[one.outcome] = counts.get(one.outcome, 0) + 1
    return "; ".join(f"{count} {outcome}" for outcome, count in counts.items())
