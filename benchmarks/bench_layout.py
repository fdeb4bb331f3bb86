"""Layout operations on packed tensors against the best copy of the machine, in one run.

    python benchmarks/bench_layout.py [--device pocl] [--elements 2^24] [--only repack] [--path fast]

As bench_kernels.py: the launches of a verb are recorded and repeated next to three copies. The bytes counted are the words and
scales of source and result, each once; launches that look for dirty padding are left out. Between repetitions the copies empty
the caches. "cpu" is the ratio of CPU times.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import quantspec_cl as qc
from bench_kernels import copies, recorded, replay, seconds
from store import Store, elements_of, run

SIDE = 4096
CHECKS = ("any_unused_bit", "any_dirty_end")  #: kernels of reading, not of moving

Verb = Callable[[qc.Session, qc.DevicePacked], qc.DevicePacked]


@dataclass(frozen=True)
class Row:
    """An operation on a packed matrix of SIDE rows, or on one of so many axes."""

    name: str
    scheme: str
    verb: Verb
    lead: tuple[int, ...] = ()  #: axes that the rows are cut into


MXFP4, Q4 = "e2m1.packed_native_0.b32-ue8m0", "q4s.packed_u32_0.b32-f16"
ROWS = (
    Row("repack to d=1", MXFP4, lambda s, t: s.repack(t, "packed_native_1")),
    Row("repack to d=0", "e2m1.packed_native_1.b32-ue8m0", lambda s, t: s.repack(t, "packed_native_0")),
    Row("repack to d=1", Q4, lambda s, t: s.repack(t, "packed_u32_1")),
    Row("repack to d=1", "q2s.packed_u32_0.b32-f16", lambda s, t: s.repack(t, "packed_u32_1")),
    Row("repack to d=1", "q8s.packed_u32_0.b32-f16", lambda s, t: s.repack(t, "packed_u32_1")),
    Row("repack to d=1", "e3m2.packed_native_0.b32-ue8m0", lambda s, t: s.repack(t, "packed_native_1")),
    Row("repack to bytes", Q4, lambda s, t: s.repack(t, "packed_native_0")),
    Row("repack to native", Q4, lambda s, t: s.repack(t, "native")),
    Row("transpose", MXFP4, lambda s, t: s.transpose(t, -1, -2)),
    Row("transpose", "e4m3.native.b32-ue8m0", lambda s, t: s.transpose(t, -1, -2)),
    Row("permute 1,0,2", MXFP4, lambda s, t: s.permute(t, (1, 0, 2)), (16,)),
    Row("slice rows", MXFP4, lambda s, t: s.slice_axis(t, 0, 1, SIDE)),
    Row("slice inside words", "q4s.packed_u32_0.t-f32", lambda s, t: s.slice_axis(t, 1, 3, t.shape[1])),
    Row("take rows", MXFP4, lambda s, t: s.take(t, 0, range(SIDE)[::-1])),
    Row("concatenate columns", MXFP4, lambda s, t: s.concatenate([t, t], 1)),
    Row("flip rows", MXFP4, lambda s, t: s.flip(t, 0)),
    Row("flip columns", MXFP4, lambda s, t: s.flip(t, 1)),
)


def packed(session: qc.Session, row: Row, count: int) -> qc.DevicePacked:
    """Any codes and scales."""
    columns = max(count // SIDE, 32)
    few = np.random.default_rng(0).standard_normal((64, columns)).astype(np.float32)
    x = np.concatenate([few] * (SIDE // 64))
    return session.quantize_packed(x.reshape(*row.lead, SIDE // int(np.prod(row.lead)), columns), row.scheme)


def bytes_of(tensor: qc.DevicePacked) -> int:
    """Of words and block scales."""
    return tensor.words.nbytes + (0 if tensor.scale_codes is None else tensor.scale_codes.nbytes)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as quantspec_cl.open_device takes it")
    parser.add_argument("--elements", type=elements_of, default="2^24", help="a number, or 2^n (default 2^24)")
    parser.add_argument("--only", default="", help="rows whose name or scheme contains this")
    parser.add_argument("--path", default="fast", choices=("fast", "auto", "generic"))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path, default=Path("build/bench_layout.json"), help="where to save the results")
    options = parser.parse_args()
    count = options.elements
    session = qc.open_device(options.device, path=options.path)
    copy = copies(session, count)
    store = Store(options.json, f"{session.info.platform}, {session.info.name}: {count} elements")
    table = Table(title=store.title, title_justify="left")
    for heading in ("operation", "scheme", "path", "GB/s", "ratio", "cpu"):
        table.add_column(heading)
    for row in ROWS:
        if options.only not in f"{row.name} {row.scheme}":
            continue
        tensor = packed(session, row, count)
        with recorded() as launches:
            made = row.verb(session, tensor)
            session.finish()
        moves = [each for each in launches if each[0].function_name not in CHECKS]
        taken, best = [], []
        for _ in range(options.repeats):
            around = [seconds(each) for each in copy.values()]
            taken.append(seconds(partial(replay, session, moves)))
            around += [seconds(each) for each in copy.values()]
            best.append((min(wall for wall, _ in around), min(cpu for _, cpu in around)))
        moved = bytes_of(tensor) + bytes_of(made)
        ratio = statistics.median((moved / t) / (2 * count / c) for (t, _), (c, _) in zip(taken, best, strict=True))
        cpu = (moved / min(c for _, c in taken)) / (2 * count / min(c for _, c in best))
        fastest = moved / min(wall for wall, _ in taken) / 1e9
        path = made.words.path.name if made.words.path is not None else "?"
        table.add_row(row.name, row.scheme, path, f"{fastest:.2f}", f"{ratio:.2f}", f"{cpu:.2f}")
        named = {"name": row.name, "scheme": row.scheme, "path": path}
        store.add({**named, "giga_bytes": fastest, "ratio": ratio, "cpu_ratio": cpu})
    Console(width=120).print(table)


if __name__ == "__main__":
    raise SystemExit(run(main))
