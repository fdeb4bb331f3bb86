"""The kernels of chains and products at small sizes, and those that read words of several lines, compared with the reference."""

from collections.abc import Callable
from typing import Any

import numpy as np

import quantspec as qs
import quantspec_cl as qc

__all__ = ["fuse"]

#: Weights packed along either axis and not at all, scales for each column, for some and for all, and a shape that no vector fits.
_WEIGHTS: tuple[tuple[str, tuple[int, int]], ...] = (
    ("e2m1.packed_native_1.b32x1-ue8m0", (64, 24)),
    ("e2m1.packed_native_0.b16-ue4m3.t-f32", (64, 16)),
    ("q4s.packed_u32_1.b32x1-f16", (32, 16)),
    ("q2s.packed_u32_1.b8x8-bf16", (32, 16)),
    ("q8s.native.t-f32", (32, 8)),
    ("e5m2.native.b3x2-f32", (30, 7)),
)
_ROWS = (1, 3)


def fuse(session: qc.Session, same: Callable[[str, Any, Any], None]) -> None:
    """A chain with every kind of operand, products from words and from codes, words read as numbers."""
    rng = np.random.Generator(np.random.Philox(5))
    for text, shape in _WEIGHTS:
        w = qs.quantize(rng.standard_normal(shape).astype(np.float32), text)
        words = session.put_packed(qs.pack(w))
        for dtype in ("f32", "f16"):
            same(f"{text} dequantize_packed", session.dequantize_packed(words, dtype).get(), qs.dequantize(w, dtype))
        for rows in _ROWS:
            x = rng.standard_normal((rows, shape[0])).astype(np.float32)
            x[0, :3] = 0, 1e-30, -0.0
            expected, what = qs.product(x, w), f"{text}, {rows} rows:"
            same(f"{what} product of words", session.product(x, words).get(), expected)
            same(f"{what} product of codes", session.product(x, w).get(), expected)
            q = qs.quantize(x, "q8s.native.b16-f32")
            found = session.product_codes(session.put(q), words).get()
            same(f"{what} product_codes", found, qs.product_codes(q, w))
    tensor = qs.quantize(rng.standard_normal((2, 2, 19)).astype(np.float32), "e2m1.packed_u32_1.b2x3-ue8m0")
    row, column = (rng.standard_normal(size).astype(np.float32) for size in ((19,), (2, 1)))
    mask = rng.integers(0, 2, (2, 19), np.uint8)
    steps: list[Any] = [
        ("mul", row),
        ("add", column),
        "neg",
        ("rdiv", 3),
        ("cast", "f16"),
        ("select", 1.5, mask),
        ("max", row),
    ]
    for dtype in ("f32", "bf16"):
        same("chain", session.chain(tensor, steps, dtype).get(), qs.chain(tensor, steps, dtype))
