"""How the cost of an element grows with the size of a tensor, and with the block size, each next to the best copy of that size.

    python benchmarks/bench_growth.py [--device pocl] [--largest 2^28] [--blocks-at 2^24] [--only mxfp4] [--path auto]

Sizes are 2^12, 2^14 and so on. At small sizes a launch costs more than its work: it is counted, for the copies too. A size that
needs more than half of the memory that is free, or more than the device allocates at once, is a row with that reason. Then, at
one size, blocks of 16 to 128 and a scale for the tensor.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import quantspec_cl as qc
from bench_kernels import copies
from kernel_rows import Row
from peer_calls import data
from peer_rows import DIRECTIONS, FORMATS
from store import Store, elements_of, free_memory, run
from subjects import loops_for, median_ratio, rows_in_turn, subject, timed

SIZED = ("mxfp4", "mxfp8", "nvfp4", "int8", "int4")
SMALLEST, STEP = 2**12, 4
BLOCKS = (16, 32, 64, 128, 0)  #: 0: a scale for the tensor
#: Name, value and store, scale type of a block, of a tensor.
BLOCKED = (
    ("e2m1", "e2m1.packed_native_0", "ue8m0", "ue8m0"),
    ("e4m3", "e4m3.native", "ue8m0", "ue8m0"),
    ("int8", "q8s.native", "f32", "f32"),
    ("int4", "q4s.packed_u32_0", "f16", "f16"),
)
BUDGET = 12.0  #: seconds of a row
NEEDED = 34  #: bytes an element: numbers on host and device, four arrays of the copies, results


@dataclass(frozen=True)
class Result:
    """One point."""

    kind: str  #: "size" or "block"
    name: str
    scheme: str
    direction: str
    elements: int
    block: int  #: 0: a scale for the tensor
    reason: str  #: "" where it was measured
    path: str = ""
    nanoseconds: float = 0.0  #: an element, median
    copy_nanoseconds: float = 0.0  #: of the best copy of as many f32 numbers
    ratio: float = 0.0  #: bytes a second over those of the best copy


def points(largest: int, blocks_at: int) -> Iterator[Result]:
    """What is measured, numbers left out."""
    size = SMALLEST
    while size <= largest:
        for form in FORMATS:
            for direction in DIRECTIONS if form.name in SIZED else ():
                width = int(form.scheme.partition(".b")[2].partition("-")[0])
                yield Result("size", form.name, form.scheme, direction, size, width, "")
        size *= STEP
    for name, start, block_scale, tensor_scale in BLOCKED:
        for width in BLOCKS:
            scheme = f"{start}.b{width}-{block_scale}" if width else f"{start}.t-{tensor_scale}"
            for direction in DIRECTIONS:
                yield Result("block", name, scheme, direction, blocks_at, width, "")


def refusal(session: qc.Session, elements: int, free: int) -> str:
    """Why a size is left out; "" where it fits."""
    needed, most = NEEDED * elements, session.info.max_allocation
    if needed > free // 2:
        return f"it needs {needed / 2**30:.1f} GiB, more than half of the {free / 2**30:.1f} GiB that are free"
    if 4 * elements > most:
        return f"an array takes {4 * elements} bytes, more than the device allocates: {most}"
    return ""


def measure(session: qc.Session, point: Result, repeats: int, free: int) -> Result:
    """One point, next to three copies in every repetition."""
    reason = refusal(session, point.elements, free)
    if reason:
        return Result(**{**asdict(point), "reason": reason})
    row = Row(point.name, point.scheme, f"{point.direction}_packed")
    ours = subject(session, row, data(point.elements))
    copy = {f"copy {name}": call for name, call in copies(session, 4 * ours.elements).items()}
    calls = {name: timed(call, loops_for(call)) for name, call in {**copy, "kernels": ours.kernels}.items()}
    found = rows_in_turn(calls, repeats, BUDGET)
    best = [min(each) for each in zip(*(found[name] for name in copy), strict=True)]
    numbers = {
        "path": ours.path,
        "nanoseconds": 1e9 * median(found["kernels"]) / ours.elements,
        "copy_nanoseconds": 1e9 * median(best) / ours.elements,
        "ratio": ours.moved / (8 * ours.elements) * median_ratio(best, found["kernels"]),
    }
    return Result(**{**asdict(point), **numbers})


def report(results: Sequence[Result], title: str) -> None:
    """The table."""
    table = Table(title=title, title_justify="left")
    for heading in ("scheme", "direction", "elements", "ns/elem", "copy ns/elem", "ratio", "path or why not"):
        table.add_column(heading, justify="right" if "elem" in heading or heading == "ratio" else "left")
    for r in results:
        shown = ["", "", ""] if r.reason else [f"{n:.3f}" for n in (r.nanoseconds, r.copy_nanoseconds, r.ratio)]
        table.add_row(r.scheme, r.direction, f"2^{r.elements.bit_length() - 1}", *shown, r.reason or r.path)
    Console(width=150).print(table)


def main() -> int:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as quantspec_cl.open_device takes it")
    parser.add_argument("--largest", type=elements_of, default="2^28", help="the most elements (default 2^28)")
    parser.add_argument(
        "--blocks-at", type=elements_of, default="2^24", help="elements of the block sizes (default 2^24)"
    )
    parser.add_argument("--only", default="", help="points whose kind, scheme or direction contains this")
    parser.add_argument("--path", default="auto", choices=("fast", "auto", "generic"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path, default=Path("build/bench_growth.json"), help="where to save the results")
    options = parser.parse_args()
    session, free = qc.open_device(options.device, path=options.path), free_memory()
    title = f"{session.info.platform}, {session.info.name}: {free / 2**30:.1f} GiB free"
    store, results = Store(options.json, title), []
    for point in points(options.largest, options.blocks_at):
        if options.only in f"{point.kind} {point.name} {point.scheme} {point.direction}":
            results.append(measure(session, point, options.repeats, free))
            store.add(asdict(results[-1]))
    report(results, title)
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))
