"""The kernels of the layout operations at small sizes, compared with the reference."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import quantspec as qs
import quantspec_cl as qc

__all__ = ["move"]

_TEXTS = ("e2m1.packed_native_0.b8-ue8m0", "q4s.packed_u32_1.b2x8-f16", "e3m2.packed_u32_0.b8-ue4m3.t-f32")
_STEPS: tuple[tuple[Any, ...], ...] = (
    *(
        ("transpose", 0, 1),
        ("permute", (1, 0)),
        ("flip", 1),
        ("slice_axis", 1, 8, 61),
        ("select", 0, 2),
        ("take", 0, (5, 0, 5)),
    ),
    *(("expand", (2, 6, 72)), ("reshape", (3, 2, 72)), ("reshape", (24, 18)), ("reshape", (432,))),
    *(("repack", "native"), ("repack", "packed_native_1"), ("repack", "packed_u32_0"), ("repack", "packed_u32_1")),
)


def move(
    session: qc.Session,
    same: Callable[[str, Any, Any], None],
    agreed: Callable[[str, Callable[[], Any], Callable[[], Any]], None],
) -> None:
    """Every layout operation on codes and on words; what the reference refuses is refused alike."""
    x = np.linspace(-7, 5, 432, dtype=np.float32).reshape(6, 72)
    for text in _TEXTS:
        q = qs.quantize(x, text)
        pairs: tuple[tuple[Any, str], ...] = ((q, f"{text} codes"), (session.pack(q), f"{text} words"))
        for given, what in pairs:
            for verb, *arguments in _STEPS:
                ours, theirs = (
                    partial(getattr(session, verb), given, *arguments),
                    partial(getattr(qs, verb), q, *arguments),
                )
                try:
                    expected = theirs()
                except qs.QuantspecError:
                    agreed(f"{what} {verb}", ours, theirs)
                else:
                    same(f"{what} {verb}", ours().get(), expected if given is q else qs.pack(expected))
            joined = qs.concatenate([q, q])
            parts: list[Any] = [given, given]
            found: Any = session.concatenate(parts)
            same(f"{what} concatenate", found.get(), joined if given is q else qs.pack(joined))
