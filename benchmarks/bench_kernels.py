"""Kernels against the best copy of the machine, in one run.

    python benchmarks/bench_kernels.py [--device pocl] [--elements 2^24] [--only mxfp4] [--path fast] [--json FILE]

A verb is called once and the launches that it makes are recorded; then these are repeated, on the same buffers, each time
next to three copies: a kernel's, the runtime's, and memcpy in two threads. The ratio is the bytes that the kernels must move
(inputs and outputs, each once) per second, over those that the best copy moves (what it reads and writes). The median over
repetitions of the ratio in each is reported, so that other work on the machine weighs on both sides. "cpu" is the same ratio
with the process's CPU time in place of the wall's, against the copy that takes the least: on a CPU that others use, it is what
can be compared between runs. Rows are those of kernel_rows.py.

Intel's runtime: OCL_ICD_VENDORS=.venv/lib/libintelocl.so python benchmarks/bench_kernels.py
"""

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from rich.console import Console
from rich.table import Table

import quantspec_cl as qc
from kernel_rows import ROWS, Call, Row, prepared
from quantspec_cl.host import Machine
from quantspec_cl.program import BUILD_OPTIONS
from store import Store, elements_of, run

COPY = """__kernel void copy(__global const uint* a, __global uint* b) {
    size_t i = get_global_id(0);
    vstore8(vload8(i, a), i, b);
}"""


@contextmanager
def recorded() -> Iterator[list[tuple[Any, ...]]]:
    """Every launch made inside, as the arguments of a kernel's call."""
    made: list[tuple[Any, ...]] = []
    enqueue = Machine._enqueue

    def record(machine: Machine, kernel: cl.Kernel, sizes: Any, local: Any, arguments: Sequence[Any]) -> None:
        made.append((kernel, machine.queue, sizes, local, *(getattr(each, "buffer", each) for each in arguments)))
        enqueue(machine, kernel, sizes, local, arguments)

    machine: Any = Machine
    machine._enqueue = record
    try:
        yield made
    finally:
        machine._enqueue = enqueue


def replay(session: qc.Session, launches: Sequence[tuple[Any, ...]]) -> None:
    """The recorded launches once more."""
    for kernel, *arguments in launches:
        kernel(*arguments)
    session.finish()


def copies(session: qc.Session, size: int) -> dict[str, Call]:
    """Three ways to copy so many bytes, by name."""
    host = np.ones(size, np.uint8)
    other = np.ones(size, np.uint8)
    source, target = session.machine.upload(host), session.machine.upload(other)
    kernel = cl.Kernel(cl.Program(session.context, COPY).build([*BUILD_OPTIONS]), "copy")
    pool, half = ThreadPoolExecutor(2), size // 2

    def by_kernel() -> None:
        kernel(session.queue, (size // 32,), (256,), source.buffer, target.buffer)
        session.finish()

    def by_runtime() -> None:
        cl.enqueue_copy(session.queue, target.buffer, source.buffer, byte_count=size)
        session.finish()

    def by_host() -> None:
        list(pool.map(lambda part: np.copyto(other[part], host[part]), (slice(0, half), slice(half, size))))

    return {"kernel": by_kernel, "runtime": by_runtime, "memcpy": by_host}


def seconds(call: Call) -> tuple[float, float]:
    """Wall and CPU time of one call."""
    start, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, max(time.process_time() - cpu, 1e-9)


@dataclass(frozen=True)
class Result:
    """A row, measured."""

    name: str
    scheme: str
    verb: str
    dtype: str
    path: str
    elements: int
    giga_elements: float  #: a second, of the fastest repetition
    giga_bytes: float
    ratio: float  #: median over repetitions, each against the best copy in it
    best_ratio: float  #: fastest repetition against the fastest copy
    cpu_ratio: float  #: least CPU time against that of the copy that takes the least
    verb_seconds: float  #: the whole verb, allocation and checks included


def measure(session: qc.Session, row: Row, count: int, repeats: int, copy: dict[str, Call], copied: int) -> Result:
    """Repetitions of a row's launches, each next to every copy."""
    call, size, moved = prepared(session, row, count)
    call()  # the first call of a session also measures what the device's arithmetic is trusted with
    with recorded() as launches:
        result = call()
        session.finish()

    def whole() -> None:
        call()
        session.finish()

    verb_seconds = seconds(whole)[0]
    ratios, kernels, best = [], [], []
    for _ in range(repeats):
        around = [seconds(each) for each in copy.values()]
        kernels.append(seconds(lambda: replay(session, launches)))
        around += [seconds(each) for each in copy.values()]
        best.append((min(wall for wall, _ in around), min(cpu for _, cpu in around)))
        ratios.append((moved / kernels[-1][0]) / (copied / best[-1][0]))
    fastest, least = (min(each) for each in zip(*kernels, strict=True))
    best_copy, least_copy = (min(each) for each in zip(*best, strict=True))
    path = result.path.name if result.path is not None else "?"
    return Result(
        *(row.name, row.scheme, row.verb, row.dtype, path, size, size / fastest / 1e9, moved / fastest / 1e9),
        *(statistics.median(ratios), (moved / fastest) / (copied / best_copy), (moved / least) / (copied / least_copy)),
        verb_seconds,
    )


def report(results: Sequence[Result], title: str) -> None:
    """The table."""
    table = Table(title=title, title_justify="left")
    for heading in ("scheme", "verb", "to", "path"):
        table.add_column(heading)
    for heading in ("G elem/s", "GB/s", "ratio", "best", "cpu", "verb ms"):
        table.add_column(heading, justify="right")
    for r in results:
        numbers = (r.giga_elements, r.giga_bytes, r.ratio, r.best_ratio, r.cpu_ratio)
        shown = [f"{number:.2f}" for number in numbers]
        table.add_row(f"{r.name}: {r.scheme}", r.verb, r.dtype, r.path, *shown, f"{1e3 * r.verb_seconds:.1f}")
    Console(width=150).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as quantspec_cl.open_device takes it")
    parser.add_argument("--elements", type=elements_of, default="2^24", help="a number, or 2^n (default 2^24)")
    parser.add_argument("--only", default="", help="rows whose name, scheme or verb contains this")
    parser.add_argument("--path", default="fast", choices=("fast", "auto", "generic"))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path, default=Path("build/bench_kernels.json"), help="where to save the results")
    options = parser.parse_args()
    count = options.elements
    session = qc.open_device(options.device, path=options.path)
    copied = count * 4
    copy = copies(session, copied)
    rates = ", ".join(
        f"{n} {2 * copied / min(seconds(c)[0] for _ in range(5)) / 1e9:.1f} GB/s" for n, c in copy.items()
    )
    title = f"{session.info.platform}, {session.info.name}: {count} elements; copies: {rates}"
    store, results = Store(options.json, title), []
    for row in ROWS:
        if options.only in f"{row.name} {row.scheme} {row.verb}":
            results.append(measure(session, row, count, options.repeats, copy, 2 * copied))
            store.add(asdict(results[-1]))
    report(results, title)


if __name__ == "__main__":
    raise SystemExit(run(main))
