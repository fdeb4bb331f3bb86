"""Kernels against the scalar oracle itself, without the reference between them: constructed rows, any content, bytes."""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import quantspec_cl as qc

from .. import strategies as made
from ..bridge import Verbs, check_bytes, check_dequantize, check_quantize
from ..oracle import S

pytestmark = pytest.mark.opencl

PAIRS = (
    [(None, t) for t in made.SCALE_TYPES]
    + [(b, None) for b in made.SCALE_TYPES]
    + list(product(made.SCALE_TYPES, made.SCALE_TYPES))
)


def fetched(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A session's verb with its result brought to the host."""
    return lambda *arguments, **options: verb(*arguments, **options).get()


def verbs_of(session: qc.Session) -> Verbs:
    return Verbs(**{name: fetched(getattr(session, name)) for name in Verbs.__dataclass_fields__})


@pytest.mark.parametrize(("block", "tensor"), PAIRS)
def test_constructed_blocks(session: qc.Session, block: str | None, tensor: str | None) -> None:
    verbs = verbs_of(session)
    for value in ("q8f", "q2s", "e4m3", "e2m1"):
        s = S(value, "native", tensor=tensor, block=None if block is None else (8,), block_type=block)
        if block is not None and tensor is not None:
            tensors = made.two_level_tensors(s, 1, 10, 3, 8)
        else:
            tensors = [made.Rows(s, 2, 8).rows(15)] if block else [[row] for row in made.Rows(s, 2, 8).rows(15)]
        for rows in tensors:
            q = check_quantize([x for row in rows for x in row], (len(rows), 8), s, verbs=verbs)
            assert q is not None
            check_dequantize(q, (len(rows), 8), s, verbs=verbs, outputs=made.OUTPUTS)


@pytest.mark.parametrize("value", made.VALUES)
def test_any_content_and_its_bytes(session: qc.Session, value: str) -> None:
    verbs, source = verbs_of(session), random.Random(value)
    for kind, shape in product(("native", "packed_native", "packed_u32"), ((), (11,), (3, 5), (2, 3, 9))):
        for d in range(max(len(shape), 1) if kind != "native" else 1):
            block = (2,) * min(len(shape), 2)
            s = S(value, kind, d=d, tensor="ue4m3", block=block, block_type="bf16")
            q = made.content(s, shape, source)
            check_bytes(q, shape, s, verbs=verbs)
            check_dequantize(q, shape, s, verbs=verbs, outputs=made.OUTPUTS)
