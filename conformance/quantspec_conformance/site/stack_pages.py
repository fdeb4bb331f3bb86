"""A page a stack, and their index: what it follows, where it leaves that, where it gives other bits, what it was asked.

`pages` returns {docname: Markdown}. Everything is read from presets, deviations, faults and results.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from quantspec import CODECS, CONTAINERS, PRESETS, RECIPES, Codec, Container, Preset, Recipe
from quantspec.steps import STAGES

from ..peers.table import Peer, peers
from ..records import Deviation, deviations
from ..spec import CHAPTERS
from ..suitecommand import chosen_cases
from .cells import table
from .faults import faults
from .identified import findings
from .inputs import measured, questions
from .render import render
from .results import share, summary, tally
from .stacks import Stack, linked_source, stacks

__all__ = ["pages"]

#: Rule of an operation that has one of its own; the others are POL-6.
STEP_RULES = {"pow2": "POL-7, POL-20", "up": "POL-6, SCL-15", "rne": "POL-6, SCL-16"}
#: Member -> what it settles, and the rule.
CODEC_MEMBERS = {
    "rounding": ("rounding", "POL-12"), "overflow": ("overflow", "POL-13"), "nan": ("NaN", "POL-13"),
    "nan_integer": ("NaN of integers", "POL-13"), "zero_sign": ("sign of zero", "POL-13"),
    "negative_zero": ("-0 read", "POL-13"),
}  # fmt: skip
CONTAINER_MEMBERS = {
    "field_order": ("fields", "POL-14"), "bias": ("bias", "POL-14"), "word_order": ("words", "POL-15"),
    "scale_layout": ("scales", "POL-16"), "stream": ("stream", "POL-17"), "ue4m3_bit7": ("bit 7 of ue4m3", "POL-18"),
}  # fmt: skip
EVIDENCE = {"defined": "defined here", "measured": "measured: it was run", "read": "read in its source"}


def pages(listed: Sequence[Stack] | None = None) -> dict[str, str]:
    """`stacks/<slug>` for each stack, and `stacks/index`."""
    every = stacks() if listed is None else listed
    rows = {peer.name: peer for peer in peers()}
    found = {f"stacks/{stack.slug}": _page(stack, rows) for stack in every}
    header = ["stack", "follows", "run as", "pass, of those answered", "other bits", "faults"]
    index = table(header, [_index_row(stack, rows) for stack in every])
    text = render("stacks", table=index, pages=[stack.slug for stack in every], count=len(every))
    return found | {"stacks/index": text}


def _index_row(stack: Stack, rows: dict[str, Peer]) -> list[str]:
    results = [found for name in stack.peers if (found := summary(name)) is not None]
    passed = []
    for found in results:
        counts = tally(found["outcomes"])
        passed.append(f"{counts['pass']} of {counts['pass'] + counts['differ']}, {share(counts)}")
    own = [fault for fault in faults().values() if fault.peer in (*stack.peers, *stack.faults)]
    return [
        f"[{stack.title}]({stack.slug}.md)",
        " ".join(f"`{name}`" for name in (*stack.presets, *stack.recipes, *stack.codecs, *stack.containers)),
        ", ".join(f"{rows[name].name} {rows[name].version}" for name in stack.peers),
        ", ".join(passed), str(len(_deviations(stack)) or ""), str(len(own) or ""),
    ]  # fmt: skip


def _deviations(stack: Stack) -> list[Deviation]:
    return [row for row in deviations() if row.stack in stack.deviations]


def _page(stack: Stack, rows: dict[str, Peer]) -> str:
    mine = [fault for fault in faults().values() if fault.peer in (*stack.peers, *stack.faults)]
    shared: set[str] = set()
    policies = [_preset(PRESETS[name], shared) for name in stack.presets]
    policies += [("recipe", name, _recipe(RECIPES[name])) for name in stack.recipes]
    policies += [("codec", name, _codec(CODECS[name])) for name in stack.codecs]
    policies += [("container", name, _container(CONTAINERS[name])) for name in stack.containers]
    found = _deviations(stack)
    chapters = [(name, [row.id for row in found if row.rules[0].startswith(area)]) for name, area in CHAPTERS.items()]
    return render(
        "stack", title=stack.title, about=[rows[name].notes for name in stack.peers], facts=_facts(stack, rows),
        policies=policies, faults=[(fault.id, _case_line(fault.case, fault.missing)) for fault in mine],
        chapters=[(name.capitalize(), ids) for name, ids in chapters if ids], deviations=len(found),
        inputs=_inputs(stack), results=[_result(name) for name in stack.peers if summary(name) is not None],
        identified=[(name, said) for name in stack.peers if (said := findings(name)) is not None],
    )  # fmt: skip


def _facts(stack: Stack, rows: dict[str, Peer]) -> str:
    """Versions, evidence and places, a row for each way in which the stack is known."""
    cells: list[list[str]] = []
    for name in stack.peers:
        peer = rows[name]
        cells.append([f"run: peer `{name}`", peer.version, f"[source]({peer.source}), [issues]({peer.issues})"])
    for name in stack.presets:
        preset = PRESETS[name]
        address = linked_source(preset.source)
        source = f"[{preset.source}]({address})" if address else preset.source
        cells.append([f"preset `{name}`, {EVIDENCE[preset.evidence]}", preset.version, source])
    versions: dict[str, None] = {}
    for row in _deviations(stack):
        versions.setdefault(f"{row.evidence}\0{row.version or 'not stated'}")
    evidence: dict[str, list[str]] = {}
    for pair in versions:
        kind, _, version = pair.partition("\0")
        evidence.setdefault(kind, []).append(version)
    for kind, listed in evidence.items():
        cells.append([f"other bits, {kind}", "; ".join(listed), "each box below says where"])
    if stack.source:
        cells.append(["its own pages", "", f"<{stack.source}>"])
    return table(["known by", "version", "where"], cells)


def _preset(preset: Preset, shared: set[str]) -> tuple[str, str, str]:
    """Kind, name and text of a preset: the three rows that it joins. What an earlier preset has shown is not shown again."""
    cells = [
        ["stack", preset.stack], ["version", preset.version], ["evidence", EVIDENCE[preset.evidence]],
        ["schemes", " ".join(f"`{pattern}`" for pattern in preset.schemes)],
        ["recipe", f"`{preset.recipe.name}`"], ["codec", f"`{preset.codec.name}`"],
        ["container", f"`{preset.container.name}`"],
    ]  # fmt: skip
    parts = [table(["member", "is"], cells), preset.note]
    for kind, name, text in (
        ("recipe", preset.recipe.name, _recipe(preset.recipe)),
        ("codec", preset.codec.name, _codec(preset.codec)),
        ("container", preset.container.name, _container(preset.container)),
    ):
        if name == "canonical":
            continue
        again = f"{kind} {name}" in shared
        shared.add(f"{kind} {name}")
        parts.append(f"The {kind} `{name}` is the one shown above." if again else f"The {kind} `{name}`:\n\n{text}")
    return "preset", preset.name, "\n\n".join(parts)


def _recipe(recipe: Recipe) -> str:
    """The kind of amax and each step, with the rule that says what it does."""
    cells = [["amax", f"`{recipe.amax}`", "POL-8"]]
    for stage in STAGES:
        steps = recipe.steps(stage)
        cells += [
            [stage if number == 0 else "", f"`{step.text}`", STEP_RULES.get(step.op, "POL-6")]
            for number, step in enumerate(steps)
        ]
    cells += [["refuse", f"`{text}`", "POL-10"] for text in recipe.refuse]
    return table(["stage", "step", "rules"], cells)


def _members(row: Codec | Container, base: Codec | Container, members: dict[str, tuple[str, str]]) -> str:
    """The members that differ from canonical."""
    cells = [
        [label, f"`{getattr(row, member)}`", f"`{getattr(base, member)}`", rule]
        for member, (label, rule) in members.items()
        if getattr(row, member) != getattr(base, member)
    ]
    if isinstance(row, Container) and row.fields:
        cells.append(["order of the fields", " ".join(map(str, row.fields)), "", "POL-14"])
    if isinstance(row, Codec) and row.thresholds:
        listed = " ".join(f"`{each.hex()}`" for each in row.thresholds)
        cells.append(["thresholds", listed, "", "POL-12"])
    return table(["member", "here", "canonical", "rules"], cells)


def _codec(codec: Codec) -> str:
    return _members(codec, CODECS["canonical"], CODEC_MEMBERS)


def _container(container: Container) -> str:
    return _members(container, CONTAINERS["canonical"], CONTAINER_MEMBERS)


def _case_line(case: str, missing: str) -> str:
    """The rules of the case that shows a fault, or why there is none."""
    if not case:
        return f"No case of the suite shows it: {missing}."
    rules = next((found.rules for found in chosen_cases(level=1) if found.id == case), ())
    return f"Rules of that case: {', '.join(rules)}."


def _inputs(stack: Stack) -> list[tuple[str, str]]:
    """The questions that the stack answers on the page of same inputs."""
    names = {stack.title, *stack.deviations}
    asked = {row.input for row in measured() if row.peer in stack.peers}
    asked |= {each.id for each in questions().values() if any(said.stack in names for said in each.said)}
    return [(each.id, each.title) for each in questions().values() if each.id in asked]


def _result(peer: str) -> dict[str, Any]:
    """What is shown of a peer's result."""
    found = summary(peer) or {}
    cells = [[f"`{group}`", *_counted(outcomes)] for group, outcomes in found["formats"].items()]
    causes = [
        [str(row["cases"]), row["kind"], f"`{row['first']}`", row["reason"]]
        for row in sorted(found["causes"], key=lambda row: -row["cases"])
    ]
    return {
        "peer": peer, "version": found["version"], "date": found["date"], "suite": found["suite"]["version"],
        "cases": found["suite"]["cases"], "counts": tally(found["outcomes"]), "share": share(tally(found["outcomes"])),
        "table": table(["operation and format", "pass", "differ", "share that passes"], cells),
        "causes": table(["cases", "kind", "such as", "why the bits differ"], causes) if causes else "",
        "unexplained": len(found["unexplained"]),
    }  # fmt: skip


def _counted(outcomes: dict[str, int]) -> Iterator[str]:
    counts = tally(outcomes)
    yield str(counts["pass"])
    yield str(counts["differ"])
    yield share(counts)
