"""Frames against text: the served reference's echo at three sizes, both wires in one run. Then many small cases, the Python
template asked one at a time and with eight requests in flight.

    python benchmarks/bench_wires.py [--rounds 100]

The two sides of each comparison take turns, and the ratio is that of their fastest rounds, so that other work on the machine
weighs on both alike. Exit code 1 where frames are not at least 10 times as fast at 1 MiB.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import quantspec_conformance
from quantspec_conformance.implementations.process import ProcessImplementation
from quantspec_conformance.implementations.served import open_served_process
from quantspec_conformance.protocol.bits import Bits
from quantspec_conformance.protocol.messages import Hello, Ok, Request
from quantspec_conformance.protocol.wires import WIRES
from quantspec_conformance.suite.run import RunOptions, run_suite
from quantspec_conformance.suite.store import load_all, vectors_root

SIZES = {"64 B": 2**6, "4 KiB": 2**12, "1 MiB": 2**20}
TURN = 5  #: rounds in a row on one wire: the first of a turn finds the caches filled with the other's data
FLIGHTS: tuple[int, ...] = (1, 8)
SMALL = 64  #: elements of a case whose time is mostly waiting
REPEATED = 40
BAR = 10.0  #: at the largest size


def seconds(implementation: ProcessImplementation, request: Request) -> float:
    """One echo there and back; what comes back must be what was sent."""
    started = time.perf_counter()
    answer = implementation.handle(request)
    taken = time.perf_counter() - started
    if answer != Ok(dict(request.tensors)):
        raise AssertionError("the echo changed its tensor")
    return taken


def fastest(served: dict[str, ProcessImplementation], request: Request, rounds: int) -> dict[str, float]:
    """The fastest of so many echoes on each wire, taking turns."""
    best = dict.fromkeys(served, float("inf"))
    for _ in range(0, rounds, TURN):
        for name, implementation in served.items():
            best[name] = min(best[name], *(seconds(implementation, request) for _ in range(TURN)))
    return best


def in_flight(rounds: int) -> None:
    """Print what requests in flight give: cases a second of whole runs, judging included."""
    template = (Path(str(quantspec_conformance.__file__)).parent / "templates" / "python" / "adapter.py").read_text(
        "utf-8"
    )
    cases = [
        case for case in load_all(vectors_root()) if case.op in ("encode", "decode") and "value:e2m1" in case.features
    ]
    cases = [case for case in cases if case.elements <= SMALL and "mode:lookup" not in case.features] * REPEATED
    best = dict.fromkeys(FLIGHTS, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        served: dict[int, ProcessImplementation] = {}
        for number in FLIGHTS:
            file = Path(folder) / f"adapter_{number}.py"
            file.write_text(template.replace(" modes=symmetric", f" modes=symmetric max_in_flight={number}"), "utf-8")
            served[number] = ProcessImplementation([sys.executable, "-S", str(file)])
        try:
            for _ in range(rounds):
                for number, implementation in served.items():
                    started = time.perf_counter()
                    if any(result.bad for result in run_suite(cases, implementation, RunOptions(repeat=0))):
                        raise AssertionError("the template fails a case")
                    best[number] = min(best[number], time.perf_counter() - started)
        finally:
            for implementation in served.values():
                implementation.close()
    print(f"{len(cases)} small cases on the Python template, text wire")
    for number, taken in best.items():
        ratio = best[FLIGHTS[0]] / taken
        print(f"{number:>2} in flight {len(cases) / taken:10.0f} cases/s {ratio:8.2f}")


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    rounds = max(parser.parse_args().rounds, 1)
    served = {name: open_served_process("reference", wire=name, timeout=60) for name in WIRES}
    ratio = 0.0
    try:
        for implementation in served.values():
            implementation.hello(Hello())
        print(f"{'tensor':>8} {'text ms':>10} {'frames ms':>10} {'ratio':>8}")
        for label, size in SIZES.items():
            array = np.random.default_rng(size).integers(0, 2**32, size // 4, np.uint32)
            request = Request("echo", {}, {"x": Bits("f32", array.shape, array)})
            best = fastest(served, request, rounds)
            ratio = best["text"] / best["frames"]
            print(f"{label:>8} {1e3 * best['text']:10.3f} {1e3 * best['frames']:10.3f} {ratio:8.2f}")
    finally:
        for implementation in served.values():
            implementation.close()
    in_flight(max(rounds // 20, 1))
    print(f"bar: frames at least {BAR:g} times as fast as text at 1 MiB: {'met' if ratio >= BAR else 'MISSED'}")
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
