"""The steps of a case, run on any adapter: quantize, pack, to_bytes, split, dequantize, and their variants.

A step yields the parts that it wrote, a refusal, or a breakdown. A step whose input is missing is left out: the step
that broke first is the one that counts.
"""

import contextlib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import QuantspecError, Scheme, Trace

from .adapters import Adapter, Arrays
from .cases import Batch

__all__ = ["STEPS", "Broken", "Refused", "Result", "perform", "spoil", "traced"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal: the error class, the rule that refuses and the message."""

    error: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An error that is no refusal: its last lines."""

    message: str


Result = Mapping[str, npt.NDArray[Any]] | Refused | Broken


class _Missing(Exception):
    """The step that makes the input of this one did not."""


class _Chain:
    """One scheme on one batch: handles by the name of what they are."""

    def __init__(self, adapter: Adapter, scheme: Scheme, batch: Batch) -> None:
        self.adapter = adapter
        self.scheme = scheme
        self.batch = batch
        self.made: dict[str, Any] = {}

    def need(self, name: str) -> Any:
        if name not in self.made:
            raise _Missing(name)
        return self.made[name]

    def drawn(self) -> Any:
        """The drawn codes, uploaded once."""
        if "drawn" not in self.made:
            batch = self.batch
            if batch.codes is None:
                raise _Missing("drawn")
            self.made["drawn"] = self.adapter.quantized(
                self.scheme, batch.codes, batch.scale_codes, batch.tensor_scale_code
            )
        return self.made["drawn"]

    def quantize(self, given: bool) -> Any:
        """Codes and scales of the batch's input, the scales chosen or given as the drawn codes."""
        batch = self.batch
        block, tensor = (batch.scale_codes, batch.tensor_scale_code) if given else (None, None)
        return self.adapter.quantize(batch.x, self.scheme, scale_codes=block, tensor_scale_code=tensor)

    def split(self, data: Any) -> Any:
        """Codes and scales of a byte stream of the batch's shape."""
        return self.adapter.split(data, self.scheme, self.batch.x.shape)

    def spoiled(self) -> bytes:
        """The byte stream that to_bytes made, its padding dirty; there is none where nothing is padded."""
        data = self.adapter.fetch(self.need("to_bytes"))["bytes"].tobytes()
        dirty = spoil(data, self.scheme, self.batch.x.shape)
        if dirty == data:
            raise _Missing("padding")
        return dirty


Make = Callable[[_Chain], Any]


def _dequantize(dtype: str) -> tuple[Make, Make]:
    """Steps that dequantize the case's own codes and the drawn ones."""
    return (
        lambda chain: chain.adapter.dequantize(chain.need("quantize"), dtype),
        lambda chain: chain.adapter.dequantize(chain.drawn(), dtype),
    )


#: Every step by name. `drawn` steps start from codes drawn over all legal ones, `given` quantizes with drawn scale
#: codes, `spoiled` reads a stream whose padding is dirty, `empty` one without bytes.
STEPS: dict[str, Make] = {
    "quantize": lambda chain: chain.quantize(False),
    "pack": lambda chain: chain.adapter.pack(chain.need("quantize")),
    "to_bytes": lambda chain: chain.adapter.to_bytes(chain.need("pack")),
    "split": lambda chain: chain.split(chain.need("to_bytes")),
    "given.quantize": lambda chain: chain.quantize(True),
    "drawn.split": lambda chain: chain.split(chain.adapter.to_bytes(chain.adapter.pack(chain.drawn()))),
    "spoiled.split": lambda chain: chain.split(chain.spoiled()),
    "empty.split": lambda chain: chain.split(b""),
    **{f"dequantize.{dtype}": _dequantize(dtype)[0] for dtype in ("f32", "f16", "bf16")},
    **{f"drawn.dequantize.{dtype}": _dequantize(dtype)[1] for dtype in ("f32", "f16", "bf16")},
}


#: Steps that make the input of a step, by the first word of its name.
NEEDS: dict[str, tuple[str, ...]] = {
    "pack": ("quantize",),
    "to_bytes": ("quantize", "pack"),
    "split": ("quantize", "pack", "to_bytes"),
    "spoiled": ("quantize", "pack", "to_bytes"),
    "dequantize": ("quantize",),
}


def perform(adapter: Adapter, scheme: Scheme, batch: Batch) -> dict[str, Result]:
    """Every step of the batch's plan under one scheme. A step without input is absent from the result."""
    chain = _Chain(adapter, scheme, batch)
    results: dict[str, Result] = {}
    for step in batch.plan.steps:
        try:
            chain.made[step] = STEPS[step](chain)
            results[step] = _own(adapter.fetch(chain.made[step]), step)
        except _Missing:
            continue
        except QuantspecError as error:
            chain.made.pop(step, None)
            results[step] = Refused(type(error).__name__, error.rule, error.message)
        except Exception:  # an implementation may raise anything: that is a result, not a fault of the harness
            chain.made.pop(step, None)
            results[step] = Broken("".join(traceback.format_exc().splitlines(keepends=True)[-6:]).strip())
    return results


def traced(scheme: Scheme, batch: Batch, step: str) -> Trace:
    """The reference's trace of one step; the steps that make its input are not traced."""
    from .adapters.reference import ReferenceAdapter

    chain = _Chain(ReferenceAdapter(), scheme, batch)
    made: Trace = Trace()
    with contextlib.suppress(QuantspecError, _Missing):
        if step.startswith("drawn"):
            chain.drawn()
        for before in NEEDS.get(step.partition(".")[0], ()):
            chain.made[before] = STEPS[before](chain)
        with np.errstate(all="ignore"), quantspec.trace() as made:
            STEPS[step](chain)
    return made


def _own(parts: Arrays, step: str) -> Arrays:
    """The parts that this step itself fixes: only `quantize` reports saturation."""
    return parts if step.endswith("quantize") else {name: part for name, part in parts.items() if name != "saturation"}


def spoil(data: bytes, scheme: Scheme, shape: tuple[int, ...]) -> bytes:
    """A byte stream with one bit of its padding, or of its unused bits, set; unchanged where it has neither."""
    bits = scheme.value.bits
    per_word, width = scheme.store.codes_per_word(bits), scheme.store.field_bits(bits)
    size = scheme.store.word_bytes(bits)
    words = quantspec.words_shape(scheme, shape)
    if not scheme.store.packed or np.prod(words, dtype=int) == 0:
        return data
    line = shape[scheme.packed_axis(len(shape))] if shape else 1
    if line % per_word:
        bit = ((words[-1] - 1) * 8 * size) + (per_word - 1) * width
    elif per_word * width < 8 * size:
        bit = per_word * width
    else:
        return data
    spoiled = bytearray(data)
    spoiled[bit // 8] ^= 1 << bit % 8
    return bytes(spoiled)
