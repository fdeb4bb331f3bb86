"""One Markdown page of what bench.py measured: bars first, then a table for each step."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from peer_rows import DIRECTIONS, FORMATS

__all__ = ["SECTIONS", "Standing", "page", "standings"]

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Standing:
    """A format and direction against the fastest peer that does the same work."""

    format: str
    direction: str
    bar: float | None
    peer: str  #: "" where none was measured
    times: float  #: of our kernels
    times_verb: float
    copy_ratio: float
    copy_times: float  #: of a copy of the same bytes: more than that many times the peer is faster than memory

    @property
    def verdict(self) -> str:
        """Met, missed, or what is missing for either."""
        if not self.peer:
            return "no peer measured that does the same work"
        if self.bar is None:
            return "no bar"
        if self.times < self.bar:
            return "**MISSED**" if self.copy_times >= self.bar else "**MISSED**, as a copy would"
        return "met" if self.times_verb >= self.bar else "met by the kernels, missed by the verb"


def standings(rows: Rows) -> list[Standing]:
    """The fastest peer of each format and direction: the one whose time is the fewest times ours."""
    found = []
    for form in FORMATS:
        for direction in DIRECTIONS:
            own = [r for r in rows if (r["format"], r["direction"]) == (form.name, direction) and not r["reason"]]
            same = [r for r in own if not r["less"]]
            best = min(same, key=lambda r: float(r["times"]), default=None)
            if best is not None:
                name = f"{best['peer']} {best['version']}"
                ratio = median(float(r["copy_ratio"]) for r in own)
                copied = 1 / float(best["peer_copy_ratio"])
                times = best["times"], best["times_verb"]
                found.append(Standing(form.name, direction, form.bar, name, *times, ratio, copied))
            else:
                found.append(Standing(form.name, direction, form.bar, "", math.nan, math.nan, math.nan, math.nan))
    return found


def table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A table; numbers with three digits, aligned at the right."""
    rows = [list(row) for row in rows]
    numeric = [any(isinstance(row[n], float) for row in rows) for n in range(len(headings))]
    lines = ["| " + " | ".join(headings) + " |", "|" + "|".join("---:" if each else "---" for each in numeric) + "|"]
    return lines + ["| " + " | ".join(_cell(each) for each in row) + " |" for row in rows]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _bars(rows: Rows) -> list[str]:
    shown = [
        (
            s.format,
            s.direction,
            s.copy_ratio,
            s.peer,
            s.times,
            s.times_verb,
            s.copy_times,
            "" if s.bar is None else f"{s.bar:g}",
            s.verdict,
        )
        for s in standings(rows)
    ]
    return table(
        ("format", "direction", "of copy", "fastest peer, same work", "x", "x (verb)", "x (copy)", "bar", ""), shown
    )


def _peers(rows: Rows) -> list[str]:
    measured = [
        (r["format"], r["direction"], f"{r['peer']} {r['version']}", "; ".join(filter(None, (r["note"], r["less"]))),
         1e3 * r["kernel_seconds"], 1e3 * r["peer_seconds"], r["copy_ratio"], r["peer_copy_ratio"], r["times"], r["times_verb"])
        for r in rows if not r["reason"]
    ]  # fmt: skip
    why: dict[tuple[str, str], list[str]] = {}
    for r in rows:
        if r["reason"]:
            why.setdefault((r["peer"], r["reason"]), []).append(f"{r['format']} {r['direction']}")
    headings = ("format", "direction", "peer", "", "ours ms", "peer ms", "of copy", "peer of copy", "x", "x (verb)")
    left_out = table(
        ("peer", "not measured", "because"), [(p, ", ".join(each), reason) for (p, reason), each in why.items()]
    )
    return ["### Bars", "", *_bars(rows), "", "### Every row", "", *table(headings, measured), "", *left_out]


def _kernels(rows: Rows) -> list[str]:
    shown = [
        (r["name"], f"`{r['scheme']}`", r["verb"], r["dtype"], r["giga_elements"], r["giga_bytes"], r["ratio"],
         r["cpu_ratio"], 1e3 * r["verb_seconds"])
        for r in rows
    ]  # fmt: skip
    return table(("", "scheme", "verb", "to", "G elem/s", "GB/s", "of copy", "of copy, CPU", "verb ms"), shown)


def _growth(rows: Rows) -> list[str]:
    lines: list[str] = []
    for kind, over, name in (("size", "elements", "2^{}"), ("block", "block", "{}")):
        own = [r for r in rows if r["kind"] == kind]
        columns = sorted({r[over] for r in own}, key=lambda n: n or math.inf)
        heads = [name.format(n.bit_length() - 1 if kind == "size" else n or "tensor") for n in columns]
        keys = dict.fromkeys((r["name"], r["direction"]) for r in own)
        shown = []
        for key in keys:
            at = {r[over]: r for r in own if (r["name"], r["direction"]) == key}
            cells = ["" if n not in at else _point(at[n]) for n in columns]
            shown.append((*key, *cells))
        lines += [
            f"ns an element (ratio to the best copy), by {kind}",
            "",
            *table(("", "direction", *heads), shown),
            "",
        ]
        lines += sorted({f"- {r['elements']} elements: {r['reason']}" for r in own if r["reason"]})
    return lines


def _point(row: Mapping[str, Any]) -> str:
    return "not measured" if row["reason"] else f"{_cell(float(row['nanoseconds']))} ({row['ratio']:.2f})"


def _roofline(rows: Rows) -> list[str]:
    shown = [
        (r["name"], r["verb"], r["dtype"], r["memory_rate"] / 1e9, r["cached_rate"] / 1e9, r["bytes_per_element"],
         r["operations"], r["intensity"], r["of_roof"], r["bound"])
        for r in rows
    ]  # fmt: skip
    heads = ("", "verb", "to", "G elem/s", "in cache", "bytes/elem", "ops/elem", "ops/byte", "of roof", "roof above it")
    return table(heads, shown)


def _products(rows: Rows) -> list[str]:
    shown = [
        (r["name"], f"`{r['scheme']}`", r["rows"], r["milliseconds"], r["giga_bytes"], r["reading"], r["times_faster"])
        for r in rows
    ]
    return table(("", "scheme", "rows", "ms", "GB/s", "of reading", "x dequantize and numpy"), shown)


def _layout(rows: Rows) -> list[str]:
    shown = [(r["name"], f"`{r['scheme']}`", r["giga_bytes"], r["ratio"], r["cpu_ratio"]) for r in rows]
    return table(("operation", "scheme", "GB/s", "of copy", "of copy, CPU"), shown)


#: Step -> its heading and its tables.
SECTIONS: dict[str, tuple[str, Callable[[Rows], list[str]]]] = {
    "peers": ("Peers", _peers),
    "kernels": ("Kernels and copies", _kernels),
    "roofline": ("Roofline", _roofline),
    "growth": ("Growth", _growth),
    "products": ("Products", _products),
    "layout": ("Layout operations", _layout),
}


def page(devices: Mapping[str, Mapping[str, Mapping[str, Any]]], pictures: Mapping[tuple[str, str], str]) -> str:
    """The page: device -> step -> its file; (device, step) -> the path of a picture, from the page."""
    lines = ["# Benchmarks", ""]
    for device, steps in devices.items():
        told = next(iter(steps.values()))["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
        lines += [
            f"## {device}",
            "",
            f"{told['cpu']}, {told['cpus']} CPUs, {told['memory']}; {told['system']}; ",
        ]
        lines += [f"Python {told['python']}, {versions}.", ""]
        for step, (heading, tables) in SECTIONS.items():
            if step in steps:
                found, at = steps[step], steps[step]["machine"]
                said = f"{found['title']}. {at['date']}, commit {at['commit'] or 'unknown'}."
                lines += [f"## {heading} ({device})", "", said, "", *tables(found["results"]), ""]
                if (device, step) in pictures:
                    lines += [f"![{heading}]({pictures[device, step]})", ""]
    return "\n".join(lines)
