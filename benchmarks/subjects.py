"""Our side of a measurement: a verb on given numbers as a call whose launches can be repeated, and turns with other calls."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import quantspec_cl as qc
from bench_kernels import recorded, replay
from kernel_rows import Call, Row
from peer_calls import Array

__all__ = ["Subject", "Timed", "loops_for", "median_ratio", "rows_in_turn", "subject", "timed"]

#: A call that gives its own seconds.
Timed = Callable[[], float]
#: A call of a verb, given where its result goes.
Into = Callable[[Any], Any]
SHORTEST = 2e-3  #: seconds that one timing takes at least: shorter calls are repeated inside it


@dataclass(frozen=True, slots=True)
class Subject:
    """A verb on given numbers."""

    kernels: Call  #: its launches again, on the same buffers
    verb: Call  #: the whole verb, checks included, into the memory of an earlier result
    elements: int
    moved: int  #: bytes of inputs and outputs, each once
    path: str


def _bytes(session: qc.Session, row: Row, x: Array) -> tuple[Into, int]:
    """The call of a verb on x, and the bytes of its codes and scales."""
    if row.verb in ("encode", "decode"):
        numbers = session.machine.upload(x)
        codes = session.encode(numbers, row.scheme)
        casts: dict[str, Into] = {
            "encode": lambda out: session.encode(numbers, row.scheme, out=out),
            "decode": lambda out: session.decode(codes, row.scheme, out=out),
        }
        return casts[row.verb], codes.nbytes
    packed = session.quantize_packed(x, row.scheme)
    levels = [each.nbytes for each in (packed.scale_codes, packed.tensor_scale_code) if each is not None]
    size = packed.words.nbytes + sum(levels)
    if row.verb == "quantize_packed":
        given = session.machine.upload(x) if row.dtype == "f32" else session.dequantize_packed(packed, row.dtype)
        return lambda out: session.quantize_packed(given, row.scheme, out=out), size
    if row.verb == "dequantize_packed":
        return lambda out: session.dequantize_packed(packed, row.dtype, out=out), size
    if row.verb == "dequantize":
        unpacked = session.unpack(packed)
        return lambda out: session.dequantize(unpacked, row.dtype, out=out), unpacked.codes.nbytes + sum(levels)
    raise ValueError(f"verb {row.verb!r}; allowed: encode, decode, quantize_packed, dequantize_packed, dequantize")


def subject(session: qc.Session, row: Row, x: Array) -> Subject:
    """A row's verb on x, called once."""
    call, size = _bytes(session, row, x)
    with recorded() as launches:
        result = call(None)
        session.finish()

    into = getattr(result, "words", result)  # where the result is a record: its codes are most of it

    def verb() -> None:
        call(into)
        session.finish()

    path = getattr(result, "path", None)
    moved = size + x.size * (4 if row.dtype == "f32" else 2)
    return Subject(partial(replay, session, launches), verb, x.size, moved, "?" if path is None else path.name)


def timed(call: Call, loops: int = 1) -> Timed:
    """The call as one that gives its seconds: of so many in a row, divided."""

    def run() -> float:
        start = time.perf_counter()
        for _ in range(loops):
            call()
        return max(time.perf_counter() - start, 1e-9) / loops

    return run


def loops_for(call: Call) -> int:
    """How often a call is repeated inside one timing."""
    timed(call)()
    return max(math.ceil(SHORTEST / timed(call)()), 1)


def rows_in_turn(calls: Mapping[str, Timed], repeats: int, budget: float = math.inf) -> dict[str, list[float]]:
    """Seconds of every call in every repetition, one after the other; three repetitions at least, though `budget` is spent."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    started = time.monotonic()
    for repetition in range(repeats):
        if repetition >= 3 and time.monotonic() - started > budget:
            break
        for name, call in calls.items():
            found[name].append(call())
    return found


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median over repetitions of the quotient in each."""
    return float(np.float64(statistics.median(a / b for a, b in zip(over, under, strict=True))))
