"""How fast the reference is: each verb as a ratio to a numpy copy of the same tensor, taken in turn in one run.

    make bench                        # or: python benchmarks/bench_reference.py --elements 2^24 --repeats 5

A ratio of 0.05 means that the verb handles elements at a twentieth of the rate at which numpy copies them. Memory is what
the verb allocates at its peak, result included, as a multiple of the input. The bar that the project set itself:
quantize at least 0.03, dequantize at least 0.10, memory below 12.
"""

import argparse
import platform
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import quantspec as qs

SCHEMES = {
    "MXFP4": "e2m1.packed_native_0.b32-ue8m0",
    "NVFP4": "e2m1.packed_native_0.b16-ue4m3.t-f32",
    "MXFP8": "e4m3.native.b32-ue8m0",
    "MXFP6": "e3m2.packed_native_0.b32-ue8m0",
    "Q8 block": "q8s.native.b32-f32",
    "Q4 block": "q4s.packed_u32_0.b32-f16",
    "NF4": "q4f.packed_native_0.lut-nf4.b64-f32",
}


def seconds(call: Callable[[], object]) -> float:
    """Time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio(call: Callable[[], object], copy: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Best copy over best call, the two in turn; and the best call in seconds."""
    pairs = [(seconds(copy), seconds(call)) for _ in range(repeats)]
    best = min(pair[1] for pair in pairs)
    return min(pair[0] for pair in pairs) / best, best


def peak(call: Callable[[], object]) -> int:
    """Bytes allocated at the peak of one call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", default="2^24", help="a number, or 2^n (default 2^24)")
    parser.add_argument("--repeats", type=int, default=5, help="of which the best counts (default 5)")
    options = parser.parse_args()
    base, _, exponent = options.elements.partition("^")
    count = int(base) ** int(exponent or 1)
    x = np.random.default_rng(0).standard_normal((count // 4096, 4096)).astype(np.float32)

    table = Table(
        title=f"reference, {x.size} elements, numpy {np.__version__}, {platform.machine()}", title_justify="left"
    )
    for heading in (
        "scheme",
        "text",
        "quantize",
        "ns/elem",
        "memory",
        "dequantize",
        "ns/elem",
        "pack + bytes",
        "split",
    ):
        table.add_column(heading, justify="left" if heading in ("scheme", "text") else "right")
    for name, text in SCHEMES.items():
        q = qs.quantize(x, text)
        data = qs.to_bytes(q)
        verbs: list[Callable[[], object]] = [
            lambda text=text: qs.quantize(x, text),  # type: ignore[misc]
            lambda q=q: qs.dequantize(q),  # type: ignore[misc]
            lambda q=q: qs.to_bytes(q),  # type: ignore[misc]
            lambda data=data, text=text: qs.split(data, text, x.shape),  # type: ignore[misc]
        ]
        found = [ratio(verb, x.copy, options.repeats) for verb in verbs]
        table.add_row(
            name, text,
            f"{found[0][0]:.3f}", f"{found[0][1] / x.size * 1e9:.1f}", f"{peak(verbs[0]) / x.nbytes:.1f}x",
            f"{found[1][0]:.3f}", f"{found[1][1] / x.size * 1e9:.1f}",
            f"{found[2][0]:.3f}", f"{found[3][0]:.3f}",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
