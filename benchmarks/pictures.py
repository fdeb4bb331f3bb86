"""Pictures of what the benchmarks wrote, as SVG by matplotlib: the roof and the kernels under it, growth, peers."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["PICTURES", "draw"]

#: Colour of a direction, of a scheme; how lines of a direction look.
COLOURS = {"quantize": "#bf5700", "dequantize": "#0b62a4"}
SCHEMES = ("#0b62a4", "#bf5700", "#2da44e", "#8250df", "#cf222e")
LINES = {"quantize": "--", "dequantize": "-"}
GREY = "#57606a"

Found = Mapping[str, Any]


def _figure(width: float, height: float, panels: int = 1) -> tuple[Any, Any]:
    """A figure and its axes; text stays text, and the same numbers make the same file."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "quantspec", "font.size": 9, "font.sans-serif": ["DejaVu Sans"]}
    )
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, panels, figsize=(width, height), layout="constrained")
    for each in [axes] if panels == 1 else axes:
        each.grid(True, which="major", color="#d8dee4", linewidth=0.6)
        each.set_axisbelow(True)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, path: Path, title: str) -> None:
    import matplotlib.pyplot as plt

    figure.suptitle("\n".join(textwrap.wrap(title, 110)), fontsize=9, color=GREY)
    made = io.StringIO()
    figure.savefig(made, format="svg", metadata={"Date": None})
    plt.close(figure)
    short = re.sub(r"(\d\.\d)\d+", r"\1", re.sub(r"\n\s+", "\n", made.getvalue()))  # a tenth of a point is enough
    path.write_text(short, "utf-8")


def _direction(verb: str) -> str:
    return "quantize" if verb.startswith("quantize") else "dequantize"


def roofline(found: Found, path: Path) -> None:
    """Operations a second over operations a byte: the roof's lines, each kernel a point with its name."""
    figure, axes = _figure(10, 6.5)
    roof, rows = found["roof"], found["results"]
    left = min([row["intensity"] for row in rows] + [roof["float"] / roof["copy"]]) / 2
    right = 2 * max([row["intensity"] for row in rows] + [roof["float"] / roof["copy"]])
    for name, style in (("copy", "-"), ("read", ":")):
        knee = roof["integer"] / roof[name]
        told = f"{name} {roof[name] / 1e9:.1f} GB/s"
        axes.plot([left, knee], [left * roof[name] / 1e9, roof["integer"] / 1e9], style, color=GREY, label=told)
    for name, style in (("integer", "-"), ("float", "--")):
        told = f"{name} {roof[name] / 1e9:.0f} Gop/s"
        start = roof[name] / roof["copy"]
        axes.plot([start, right], [roof[name] / 1e9] * 2, style, color=GREY, linewidth=1.6, label=told)
    for direction, colour in COLOURS.items():
        chosen = [row for row in rows if _direction(row["verb"]) == direction]
        xs, ys = [row["intensity"] for row in chosen], [row["reached"] / 1e9 for row in chosen]
        axes.scatter(xs, ys, s=18, color=colour, label=direction, zorder=3)
        for row, x, y in zip(chosen, xs, ys, strict=True):
            axes.annotate(
                row["name"], (x, y), (3, -9), textcoords="offset points", fontsize=6.5, color=colour, rotation=-35
            )
    axes.set(xscale="log", yscale="log", xlabel="operations a byte that must move (measured in cache, at peak speed)")
    low = min([row["reached"] for row in rows]) / 2e9
    axes.set(ylabel="G operations a second", xlim=(left, right), ylim=(low, 1.5 * roof["float"] / 1e9))
    from matplotlib.ticker import LogLocator

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.legend(loc="lower right", frameon=False)
    _save(figure, path, found["title"])


def growth(found: Found, path: Path) -> None:
    """Nanoseconds of an element and the ratio to a copy over the size; the ratio over the block size."""
    figure, panels = _figure(14, 5, 3)
    rows = [row for row in found["results"] if not row["reason"]]
    for axes, kind, over, value in (
        (panels[0], "size", "elements", "nanoseconds"),
        (panels[1], "size", "elements", "ratio"),
        (panels[2], "block", "block", "ratio"),
    ):
        names = list(dict.fromkeys(row["name"] for row in rows if row["kind"] == kind))
        for name, colour in zip(names, SCHEMES, strict=False):
            for direction, style in LINES.items():
                at = [r for r in rows if (r["kind"], r["name"], r["direction"]) == (kind, name, direction)]
                xs = [row[over] or 256 for row in at]  # a scale for the tensor: right of all blocks
                told = f"{name} {direction}"
                axes.plot(xs, [r[value] for r in at], style, linewidth=1, color=colour, label=told)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="elements of a block; at the right a scale for the tensor" if over == "block" else "elements")
    copied = {row["elements"]: row["copy_nanoseconds"] for row in rows if row["kind"] == "size"}
    panels[0].plot(list(copied), list(copied.values()), ":", color="black", label="best copy")
    panels[0].set(yscale="log", ylabel="ns an element")
    panels[0].minorticks_off()
    panels[1].set(ylabel="bytes a second over those of the best copy")
    panels[2].set(ylabel="bytes a second over those of the best copy")
    panels[2].set_xticks([16, 32, 64, 128, 256], ["16", "32", "64", "128", "tensor"])
    panels[0].legend(frameon=False, fontsize=7)
    panels[2].legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    _save(figure, path, found["title"])


def _ticks(axes: Any, at: Sequence[tuple[float, int]], half: float, colour: str) -> None:
    """Upright strokes as one broken line: one path of the file."""
    xs = [x for value, _ in at for x in (value, value, math.nan)]
    ys = [y for _, place in at for y in (place - half, place + half, math.nan)]
    axes.plot(xs, ys, color=colour, linewidth=1.2)


def against(found: Found, path: Path) -> None:
    """How many times a peer's time is ours: a bar for each row that was measured, the bars to reach as lines."""
    from peer_rows import FORMATS

    rows = [row for row in found["results"] if not row["reason"]]
    bars = {form.name: form.bar for form in FORMATS}
    figure, axes = _figure(10, 1 + 0.2 * len(rows))
    places = range(len(rows))[::-1]
    for pale in (False, True):
        for direction, colour in COLOURS.items():
            own = [
                (p, r)
                for p, r in zip(places, rows, strict=True)
                if (bool(r["less"]), r["direction"]) == (pale, direction)
            ]
            axes.barh(
                [p for p, _ in own], [r["times"] for _, r in own], color=colour, alpha=0.45 if pale else 1.0, height=0.7
            )
    _ticks(axes, [(r["times_verb"], p) for p, r in zip(places, rows, strict=True)], 0.35, "#1f2328")
    barred = [(bars[r["format"]], p) for p, r in zip(places, rows, strict=True) if bars[r["format"]]]
    _ticks(axes, [(bar, p) for bar, p in barred if bar is not None], 0.5, "#cf222e")
    names = [f"{r['format']} {r['direction']}: {r['peer']}" + (f" ({r['less']})" if r["less"] else "") for r in rows]
    axes.set_yticks(places, names, fontsize=7)
    axes.set(
        xscale="log", xlabel="peer's time over ours; black: over our whole verb; red: the bar; pale: leaves work out"
    )
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", left=False)
    axes.minorticks_off()
    axes.axvline(1, color=GREY, linewidth=0.8)
    axes.margins(y=0.01)
    _save(figure, path, found["title"])


#: Step of bench.py -> what draws its file.
PICTURES: dict[str, Callable[[Found, Path], None]] = {"roofline": roofline, "growth": growth, "peers": against}


def draw(step: str, found: Found, path: Path) -> str:
    """Draw a step's picture; "" or why there is none."""
    if not found["results"]:
        return "nothing was measured"
    try:
        PICTURES[step](found, path)
    except ModuleNotFoundError as error:
        return f"{error.name} is not installed: pip install --group bench"
    return ""
