"""Where each kernel stands under the machine's roof: its operations, its bytes, and which of the two holds it back.

    python benchmarks/bench_roofline.py [--device pocl] [--elements 2^24] [--only mxfp4] [--json FILE]

The roof is measured here: the best copy's bytes per second, the best reader's, and the peak of vector operations, integer (add
and xor) and float (multiply and add, which the compiler joins), by kernels that touch no memory. Operations of a kernel cannot
be counted portably, so they are measured too: the time of an element whose data lie in the cache, which is the slope between two
sizes that fit (a launch's own cost falls out), times the integer peak. These are operations as if every one went at peak speed;
what stalls counts as work, and where memory costs nothing more than the cache, all of the time does. Intensity is operations
over bytes that must move. The roof is the lower of the peak and intensity times the copy's bytes per second; a kernel's point is
the share of it that it reaches with its data in memory. The integer peak and the copies take turns with every kernel, and the
share is a median over repetitions, so that other work on the machine weighs on both.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyopencl as cl
from rich.console import Console
from rich.table import Table

import quantspec_cl as qc
from bench_kernels import copies
from bench_products import readers
from kernel_rows import ROWS, Call, Row
from peer_calls import data
from quantspec_cl.program import BUILD_OPTIONS
from store import Store, elements_of, run
from subjects import loops_for, rows_in_turn, subject, timed

#: Two sizes whose data fit a core's cache.
CACHED = (2**17, 2**19)
ITEMS, ROUNDS, CHAINS, LANES = 4096, 4096, 8, 16
#: Name of a peak -> type, step of a chain, operations of a step and lane.
PEAKS = {"integer": ("uint16", "a{0} = (a{0} + k) ^ m;", 2), "float": ("float16", "a{0} = a{0} * m + k;", 2)}
#: Operations of one call.
WORK = {name: ITEMS * ROUNDS * CHAINS * LANES * each[2] for name, each in PEAKS.items()}
LEAST = 1e-13  #: seconds of an element: noise may make a slope negative
READ_BYTES = 64 << 20
BUDGET = 10.0


@dataclass(frozen=True)
class Result:
    """A kernel under the roof."""

    name: str
    scheme: str
    verb: str
    dtype: str
    path: str
    elements: int
    bytes_per_element: float
    memory_rate: float  #: elements a second, data in memory
    cached_rate: float  #: data in the cache
    operations: float  #: an element, as if all went at the integer peak
    intensity: float  #: operations a byte
    reached: float  #: operations a second, data in memory: that share of the roof
    of_roof: float  #: over what the roof allows at this intensity, median over repetitions
    bound: str  #: "memory" or "operations": the part of the roof above the point


def peak_source() -> str:
    """A kernel for each peak: chains that do not wait for each other."""
    kernels = []
    for name, (kind, step, _) in PEAKS.items():
        start = " ".join(f"{kind} a{n} = ({kind})(get_local_id(0) + {n});" for n in range(CHAINS))
        steps = " ".join(step.format(n) for n in range(CHAINS))
        found = " + ".join(f"a{n}" for n in range(CHAINS))
        scalar = kind.removesuffix("16")
        kernels.append(
            f"__kernel void peak_{name}(__global {kind}* out, {scalar} k0, {scalar} m0, uint rounds) {{ {kind} k = k0, m = m0; "
            f"{start} for (uint r = 0; r < rounds; ++r) {{ {steps} }} out[get_global_id(0)] = {found}; }}"
        )
    return "\n".join(kernels)


def peaks(session: qc.Session) -> dict[str, Call]:
    """A call for each peak."""
    program = cl.Program(session.context, peak_source()).build([*BUILD_OPTIONS])
    out = session.machine.empty((ITEMS, LANES), np.uint32)

    def spin(kernel: cl.Kernel, numbers: tuple[np.generic, np.generic]) -> None:
        kernel(session.queue, (ITEMS,), (64,), out.buffer, *numbers, np.uint32(ROUNDS))
        session.finish()

    given = {"integer": (np.uint32(0x9E3779B9), np.uint32(0x5BD1E995)), "float": (np.float32(0.25), np.float32(0.5))}
    return {name: partial(spin, cl.Kernel(program, f"peak_{name}"), given[name]) for name in PEAKS}


def roof(session: qc.Session, elements: int) -> dict[str, float]:
    """Bytes and operations per second: the fastest of a few."""

    def best(calls: Sequence[Call]) -> float:
        return min(timed(call, loops_for(call))() for call in calls for _ in range(5))

    found = {"copy": 8 * elements / best(list(copies(session, 4 * elements).values()))}
    found["read"] = READ_BYTES / best(readers(session, READ_BYTES))
    for name, call in peaks(session).items():
        found[name] = WORK[name] / best([call])
    return found


def measure(session: qc.Session, row: Row, elements: int, repeats: int, over: Mapping[str, float]) -> Result:
    """A kernel at three sizes, in turn with the copies and the integer peak."""
    sized = {str(n): subject(session, row, data(n)) for n in (*CACHED, elements)}
    copy = copies(session, 4 * elements)
    calls = {name: each.kernels for name, each in sized.items()} | copy | {"peak": peaks(session)["integer"]}
    found = rows_in_turn({name: timed(call, loops_for(call)) for name, call in calls.items()}, repeats, BUDGET)
    few, more, whole = (found[name] for name in sized)
    large = sized[str(elements)]
    memory = [each / large.elements for each in whole]
    step = [(b - a) / (CACHED[1] - CACHED[0]) for a, b in zip(few, more, strict=True)]
    cached = [min(max(a, LEAST), b) for a, b in zip(step, memory, strict=True)]
    peak = [WORK["integer"] / each for each in found["peak"]]
    copied = [8 * elements / min(each) for each in zip(*(found[name] for name in copy), strict=True)]
    moved, operations = large.moved / large.elements, median(a * b for a, b in zip(cached, peak, strict=True))
    intensity = operations / moved
    # reached over the lower of two limits is the larger of two quotients; the peak falls out of the first
    turns = zip(memory, cached, copied, strict=True)
    share = median(max(least / taken, moved / taken / wide) for taken, least, wide in turns)
    allowed = min(over["integer"], over["copy"] * intensity)
    return Result(
        *(row.name, row.scheme, row.verb, row.dtype, large.path, large.elements, moved),
        *(1 / median(memory), 1 / median(cached), operations, intensity, share * allowed, share),
        "memory" if allowed < over["integer"] else "operations",
    )


def report(results: Sequence[Result], title: str) -> None:
    """The table."""
    table = Table(title=title, title_justify="left")
    for heading in (
        "scheme",
        "verb",
        "to",
        "G elem/s",
        "in cache",
        "bytes/elem",
        "ops/elem",
        "ops/byte",
        "of roof",
        "bound",
    ):
        table.add_column(heading, justify="left" if heading in ("scheme", "verb", "to", "bound") else "right")
    for r in results:
        numbers = (r.memory_rate / 1e9, r.cached_rate / 1e9, r.bytes_per_element, r.operations, r.intensity, r.of_roof)
        table.add_row(f"{r.name}: {r.scheme}", r.verb, r.dtype, *(f"{n:.2f}" for n in numbers), r.bound)
    Console(width=165).print(table)


def main() -> int:
    """Measure, save and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as quantspec_cl.open_device takes it")
    parser.add_argument(
        "--elements", type=elements_of, default="2^24", help="in memory: a number, or 2^n (default 2^24)"
    )
    parser.add_argument("--only", default="", help="rows whose name, scheme or verb contains this")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--json", type=Path, default=Path("build/bench_roofline.json"), help="where to save the results"
    )
    options = parser.parse_args()
    session = qc.open_device(options.device, path="fast")
    over = roof(session, options.elements)
    told = ", ".join(f"{name} {each / 1e9:.1f} G/s" for name, each in over.items())
    store = Store(options.json, f"{session.info.platform}, {session.info.name}: {told}", more={"roof": over})
    results = []
    for row in ROWS:
        if options.only in f"{row.name} {row.scheme} {row.verb}":
            results.append(measure(session, row, options.elements, options.repeats, over))
            store.add(asdict(results[-1]))
    report(results, store.title)
    return 0


if __name__ == "__main__":
    raise SystemExit(run(main))
