"""echo: patterns that pass through an implementation unchanged, NaN above all."""

from collections.abc import Iterator

import numpy as np

from .common import Ask, Place, Plan, f32, positives, typed

__all__ = ["plans"]


def plans(level: int) -> Iterator[Plan]:
    """The suites of echo."""
    if level == 0:
        yield positives(Place("scheme", "echo", "first", 0), _patterns)
    elif level == 1:
        yield positives(Place("scheme", "echo", "patterns", 1), _every_nan)


def _patterns() -> Iterator[Ask]:
    """NaN patterns that a host's floats change on the way."""
    yield Ask(
        slug="nan",
        title="Signalling NaN, payloads, -0, subnormals",
        words={},
        tensors={"x": f32([0x7F800001, 0xFFABCDEF, 0x80000000, 1, 0x007FFFFF, 0x7FC00000])},
        bugs=("nan-code", "ftz"),
    )
    yield Ask(
        slug="widths",
        title="Patterns of every width",
        words={},
        tensors={
            "a": typed("u8", [0, 255, 0x81]),
            "b": typed("f16", [0x7C01, 0x8000]),
            "c": typed("bf16", [0x7F81]),
            "d": typed("u32", [2**32 - 1], ()),
            "e": typed("f64", [0x7FF0000000000001]),
        },
        bugs=("endianness", "nan-code"),
    )
    yield Ask(
        slug="shapes",
        title="No elements, a scalar, four axes",
        words={},
        tensors={
            "a": typed("u8", [], (3, 0)),
            "b": typed("u16", [0x1234], ()),
            "c": typed("u8", range(16), (2, 2, 2, 2)),
        },
        bugs=("endianness",),
    )


def _every_nan() -> Iterator[Ask]:
    """Every NaN of binary16 and bfloat16, and a spread of those of binary32."""
    for dtype, first in (("f16", 0x7C01), ("bf16", 0x7F81)):
        nans = np.arange(first, 0x8000)
        yield Ask(
            slug=f"{dtype}-nan",
            title=f"Every NaN of {dtype}",
            words={},
            tensors={"x": typed(dtype, np.concatenate([nans, nans | 0x8000]))},
            bugs=("nan-code",),
        )
    spread = np.arange(0x7F800001, 0x80000000, 8209)
    yield Ask(
        slug="f32-nan",
        title="NaN of binary32 over their payloads",
        words={},
        tensors={"x": f32(np.concatenate([spread, spread | 0x80000000]))},
        bugs=("nan-code",),
    )
