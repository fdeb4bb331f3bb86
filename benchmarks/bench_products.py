"""Products against the machine's reading speed, and against dequantize-then-numpy, in one run.

    python benchmarks/bench_products.py [--device pocl] [--size 4096] [--only mxfp4] [--rows 1,4,16] [--json FILE]

One row of x (a matrix-vector product) reads every packed weight once: its bytes per second are reported over those that the
best reader of the machine reads, a kernel or numpy in two threads, measured next to it in every repetition. For more rows the
time is compared with what one would do without the verb: dequantize on the same device, copy to the host, numpy's matmul (whose
bits are those of no rule). The median over repetitions is reported.

Intel's runtime: OCL_ICD_VENDORS=.venv/lib/libintelocl.so python benchmarks/bench_products.py
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from rich.console import Console
from rich.table import Table

import quantspec_cl as qc
from quantspec_cl.program import BUILD_OPTIONS
from store import Store, run

READ = """__kernel void read(__global const uint8* a, __global uint* found, uint each) {
    size_t i = get_global_id(0), start = i * each;
    uint8 some = 0, other = 0;
    for (uint k = 0; k < each; k += 2) some |= a[start + k], other |= a[start + k + 1];
    some |= other;
    found[i] = some.s0 | some.s1 | some.s2 | some.s3 | some.s4 | some.s5 | some.s6 | some.s7;
}"""
PIECE = 1024  #: vectors of 32 bytes that a work-item of it reads

Call = Callable[[], Any]

#: What is measured: name, scheme of [K, N].
SCHEMES = (
    ("mxfp4", "e2m1.packed_native_1.b32x1-ue8m0"),
    ("mxfp4 across", "e2m1.packed_native_0.b32-ue8m0"),
    ("nvfp4", "e2m1.packed_native_1.b16x1-ue4m3.t-f32"),
    ("q4 f16", "q4s.packed_u32_1.b32x1-f16"),
    ("q4 f32", "q4f.packed_u32_1.b32x1-f32"),
    ("q4 bf16 across", "q4s.packed_u32_0.b32-bf16"),
    ("mxfp8", "e4m3.packed_u32_1.b32x1-ue8m0"),
    ("q8 f16", "q8s.packed_u32_1.b32x1-f16"),
    ("q8 tensor", "q8s.native.t-f32"),
)


@dataclass(frozen=True)
class Result:
    """One measurement."""

    name: str
    scheme: str
    rows: int
    path: str
    milliseconds: float
    giga_bytes: float  #: of packed words and scales, a second, of the fastest repetition
    reading: float  #: over the machine's reading speed: median over repetitions, each against the readers in it
    best_reading: float  #: fastest repetition against the fastest reader
    times_faster: float  #: than dequantize, copy and numpy


def seconds(call: Call) -> float:
    """Time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def readers(session: qc.Session, size: int) -> tuple[Call, ...]:
    """Ways to read so many bytes."""
    host = np.ones(size // 8, np.uint64)
    items = size // (32 * PIECE)
    source, found = session.machine.upload(host), session.machine.empty((items,), np.uint32)
    kernel = cl.Kernel(cl.Program(session.context, READ).build([*BUILD_OPTIONS]), "read")
    pool, half = ThreadPoolExecutor(2), host.size // 2

    def by_kernel() -> None:
        kernel(session.queue, (items,), (1,), source.buffer, found.buffer, np.uint32(PIECE))
        session.finish()

    def by_host() -> None:
        list(pool.map(lambda part: int(host[part].max()), (slice(0, half), slice(half, None))))

    return by_kernel, by_host


def measure(session: qc.Session, name: str, scheme: str, size: int, rows: int, repeats: int) -> Result:
    """Repetitions of one product, each next to the readers and to dequantize-then-numpy."""
    rng = np.random.default_rng(0)
    packed = session.quantize_packed(rng.standard_normal((size, size)).astype(np.float32) / 64, scheme)
    x = rng.standard_normal((rows, size)).astype(np.float32)
    given = session.machine.upload(x)
    moved = packed.words.nbytes + (0 if packed.scale_codes is None else packed.scale_codes.nbytes)
    read_bytes = 64 << 20
    read = readers(session, read_bytes)

    def plain() -> None:
        np.matmul(x, session.dequantize_packed(packed).get())

    def fast() -> None:
        session.product(given, packed)
        session.finish()

    result = session.product(given, packed)
    fast()
    plain()
    times, readings, ratios = [], [], []
    for _ in range(5 * repeats):  # apart from numpy, whose threads keep spinning for a while
        best = min(seconds(each) for each in read)
        times.append(seconds(fast))
        readings.append(best)
        ratios.append((moved / times[-1]) / (read_bytes / best))
    typical, fastest = statistics.median(times), min(times)
    faster = statistics.median(seconds(plain) for _ in range(repeats)) / typical
    path = result.path.name if result.path is not None else "?"
    return Result(
        *(name, scheme, rows, path, 1e3 * typical, moved / fastest / 1e9, statistics.median(ratios)),
        *((moved / fastest) / (read_bytes / min(readings)), faster),
    )


def report(results: Sequence[Result], title: str) -> None:
    """The table."""
    table = Table(title=title, title_justify="left")
    for heading in ("scheme", "path"):
        table.add_column(heading)
    for heading in ("rows", "ms", "GB/s", "of reading", "best", "x faster"):
        table.add_column(heading, justify="right")
    for r in results:
        numbers = (f"{r.milliseconds:.2f}", f"{r.giga_bytes:.1f}", f"{r.reading:.2f}", f"{r.best_reading:.2f}")
        table.add_row(f"{r.name}: {r.scheme}", r.path, str(r.rows), *numbers, f"{r.times_faster:.1f}")
    Console(width=120).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as quantspec_cl.open_device takes it")
    parser.add_argument("--size", type=int, default=4096, help="K and N")
    parser.add_argument("--only", default="", help="schemes whose name or text contains this")
    parser.add_argument("--rows", default="1,4,16")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--json", type=Path, default=Path("build/bench_products.json"), help="where to save the results"
    )
    options = parser.parse_args()
    session = qc.open_device(options.device, path="fast")
    size = 64 << 20
    rates = max(size / min(seconds(each) for _ in range(5)) for each in readers(session, size)) / 1e9
    title = f"{session.info.platform}, {session.info.name}: {options.size} x {options.size}; reading {rates:.1f} GB/s"
    store, results = Store(options.json, title), []
    for name, scheme in SCHEMES:
        for rows in options.rows.split(",") if options.only in f"{name} {scheme}" else ():
            results.append(measure(session, name, scheme, options.size, int(rows), options.repeats))
            store.add(asdict(results[-1]))
    report(results, title)


if __name__ == "__main__":
    raise SystemExit(run(main))
