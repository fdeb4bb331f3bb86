"""Frames against text: the served reference's echo at three sizes, both wires in one run.

    python benchmarks/bench_wires.py [--rounds 100]

The two wires take turns, and the ratio is that of their fastest rounds, so that other work on the machine weighs on both
alike. Exit code 1 where frames are not at least 10 times as fast at 1 MiB.
"""

import argparse
import time

import numpy as np

from quantspec_conformance.implementations.process import ProcessImplementation
from quantspec_conformance.implementations.served import open_served_process
from quantspec_conformance.protocol.bits import Bits
from quantspec_conformance.protocol.messages import Hello, Ok, Request
from quantspec_conformance.protocol.wires import WIRES

SIZES = {"64 B": 2**6, "4 KiB": 2**12, "1 MiB": 2**20}
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
    for _ in range(rounds):
        for name, implementation in served.items():
            best[name] = min(best[name], seconds(implementation, request))
    return best


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
    print(f"bar: frames at least {BAR:g} times as fast as text at 1 MiB: {'met' if ratio >= BAR else 'MISSED'}")
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
