"""Classes that follow adapters.Adapter (methods and handles) behind the protocol: quantize, dequantize, pack, to_bytes, split;
and what they have of adapters.Fused: chain, product, product_codes, repack."""

from collections.abc import Callable
from typing import Any

import numpy as np

from quantspec import Scheme

from ..adapters import Adapter, Arrays
from ..examples import Tensor
from ..protocol.messages import Answer, Hello, Identity, Ok, ProtocolError, Request, Unsupported
from ..state import State
from ..verbs import steps_of
from .law import example_of

__all__ = ["MethodImplementation", "lacks", "part"]

_QUANTIZED = ("codes", "scale_codes", "tensor_scale_code")
#: Words of a request that mean something to these operations.
_WORDS = {
    "quantize": {"scheme"},
    "dequantize": {"scheme", "to"},
    "pack": {"scheme"},
    "to_bytes": {"scheme"},
    "split": {"scheme", "shape"},
    "chain": {"scheme", "steps", "to"},
    "product": {"scheme", "to"},
    "product_codes": {"scheme", "scheme_2", "to"},
    "repack": {"scheme", "new_store"},
}
#: Tensors of a request that mean something to them; a chain's operands have names of their own.
_SECOND = {"codes_2", "scale_codes_2", "tensor_scale_code_2"}
_TENSORS = {"x", "codes", "scale_codes", "tensor_scale_code", "table", "bytes", "levels"}


def lacks(request: Request, allowed: set[str], tensors: set[str]) -> str:
    """The first word or tensor of a request that an implementation has no argument for; "" where there is none."""
    return next((name for name in request.words if name not in allowed), "") or next(
        (name for name in request.tensors if name not in tensors), ""
    )


def part(array: Any) -> Tensor:
    """A part of a handle as a tensor. ProtocolError for a dtype that no tensor has."""
    array = np.asarray(array)
    try:
        return Tensor.of(array)
    except StopIteration:
        raise ProtocolError(f"an array of {array.dtype} is no tensor of the protocol") from None


def report(saturation: Any) -> str:
    """The word `saturated` of an adapter's report: count, tensor, then the first block's index."""
    count, tensor, *first = (int(number) for number in np.asarray(saturation).reshape(-1))
    index = "none" if not count else ",".join(map(str, first)) or "()"
    return f"{count} first {index} tensor {'yes' if tensor else 'no'}"


class MethodImplementation:
    """An adapter with methods as an implementation; every operation that it has no method for is Unsupported."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def hello(self, hello: Hello) -> Identity:
        """The adapter's identity; it does the operations that it has methods for."""
        told = {str(key): str(value) for key, value in self._adapter.identity().items()}
        rest = " ".join(f"{key}={value}" for key, value in told.items() if key not in ("name", "version", "driver"))
        return Identity(
            name=told.get("name", type(self._adapter).__name__),
            version=told.get("version", ""),
            language="Python",
            driver=told.get("driver", ""),
            build=rest,
            ops=(*(op for op in _WORDS if hasattr(self._adapter, op)), "echo"),
        )

    def handle(self, request: Request) -> Answer:
        """One operation by the adapter's methods. What they raise goes through."""
        if request.op == "echo":
            return Ok(dict(request.tensors))
        if request.op not in _WORDS or not hasattr(self._adapter, request.op):
            return Unsupported(f"op:{request.op}", "the adapter has no such method")
        named = {"chain": set(request.tensors) - {"words"}, "product_codes": _SECOND}.get(request.op, set())
        missing = lacks(request, _WORDS[request.op], _TENSORS | named)
        if missing:
            return Unsupported(missing, f"the adapter's {request.op} has no such argument")
        return _OPERATIONS[request.op](self._adapter, State(example_of(request)))

    def close(self) -> None:
        """Nothing to let go of."""


def _record(adapter: Adapter, state: State) -> Any:
    levels = state.array("scale_codes"), state.array("tensor_scale_code")
    return adapter.quantized(state.scheme, state.need("codes"), *levels)


def _chosen(parts: Arrays, *names: str) -> dict[str, Tensor]:
    return {name: part(parts[name]) for name in names if name in parts}


def _quantize(adapter: Adapter, state: State) -> Answer:
    levels = {name: state.array(name) for name in ("scale_codes", "tensor_scale_code")}
    parts = adapter.fetch(adapter.quantize(state.need("x"), state.scheme, **levels))
    words = {"saturated": report(parts["saturation"])} if "saturation" in parts else {}
    return Ok(_chosen(parts, *_QUANTIZED), words)


def _dequantize(adapter: Adapter, state: State) -> Answer:
    numbers = adapter.dequantize(_record(adapter, state), state.word("to", "f32"))
    return Ok(_chosen(adapter.fetch(numbers), "y"))


def _pack(adapter: Adapter, state: State) -> Answer:
    return Ok(_chosen(adapter.fetch(adapter.pack(_record(adapter, state))), "words"))


def _to_bytes(adapter: Adapter, state: State) -> Answer:
    return Ok(_chosen(adapter.fetch(adapter.to_bytes(adapter.pack(_record(adapter, state)))), "bytes"))


def _split(adapter: Adapter, state: State) -> Answer:
    data = state.need("bytes")
    if data.dtype != np.uint8 or data.ndim != 1:
        return Unsupported("bytes", "the adapter takes bytes, which have one axis")
    return Ok(_chosen(adapter.fetch(adapter.split(data.tobytes(), state.scheme, state.numbers("shape"))), *_QUANTIZED))


def _second(adapter: Any, state: State) -> Any:
    """The tensor whose parts have names that end in `_2`."""
    levels = state.array("scale_codes_2"), state.array("tensor_scale_code_2")
    return adapter.quantized(Scheme.parse(state.word("scheme_2")), state.need("codes_2"), *levels)


def _chain(adapter: Any, state: State) -> Answer:
    made = adapter.chain(_record(adapter, state), steps_of(state), state.word("to", "f32"))
    return Ok(_chosen(adapter.fetch(made), "y"))


def _product(adapter: Any, state: State) -> Answer:
    made = adapter.product(state.need("x"), _record(adapter, state), state.word("to", "f32"))
    return Ok(_chosen(adapter.fetch(made), "y"))


def _product_codes(adapter: Any, state: State) -> Answer:
    made = adapter.product_codes(_record(adapter, state), _second(adapter, state), state.word("to", "f32"))
    return Ok(_chosen(adapter.fetch(made), "y"))


def _repack(adapter: Any, state: State) -> Answer:
    """Codes come back as codes; the text follows from what was asked."""
    own, store = state.scheme, state.word("new_store")
    made = adapter.fetch(adapter.repack(_record(adapter, state), store))
    scheme = Scheme(own.value, store, mode=own.mode, tensor=own.tensor, block=own.block, table=own.table)
    return Ok(_chosen(made, *_QUANTIZED), {"text": scheme.text})


_OPERATIONS: dict[str, Callable[[Any, State], Answer]] = {
    "quantize": _quantize,
    "dequantize": _dequantize,
    "pack": _pack,
    "to_bytes": _to_bytes,
    "split": _split,
    "chain": _chain,
    "product": _product,
    "product_codes": _product_codes,
    "repack": _repack,
}
