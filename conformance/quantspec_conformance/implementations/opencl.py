"""A session of quantspec_cl behind the protocol, every output poisoned before a launch. Rule CNF-3.

Runs in the process that `serve` is; a runtime that aborts takes nobody else with it. The device checks what it is given, and
what it answers is fetched as it is, without the checks of the reference's records.
"""

from collections.abc import Callable, Sequence
from typing import Any

import quantspec_cl
from quantspec import CODECS, CONTAINERS, RECIPES
from quantspec_cl import Session

from ..errors import DeviceError
from ..outside import printable
from ..protocol.messages import Answer, Hello, Identity, Implementation, Ok, Request, Unsupported
from ..state import State
from ..verbs import steps_of
from .guard import Guard
from .law import example_of
from .methods import part, report
from .opencl_moves import MOVE_WORDS, MOVES, fetched, levels_of, record_of, words_of

__all__ = ["SessionImplementation", "open_session"]


def open_session(spec: str, *, build_options: Sequence[str] = ()) -> Implementation:
    """The device of this process that `spec` names, `p:d` or a part of a name, "" for the first. DeviceError."""
    try:
        session = quantspec_cl.open_device(spec or None, build_options=build_options, poison=True)
    except quantspec_cl.DeviceError as error:
        raise DeviceError(f"opencl:{printable(spec)}: {error}") from None
    return Guard(SessionImplementation(session), f"opencl:{printable(spec)}")


class SessionImplementation:
    """The verbs of a session. What it has no kernel for is Unsupported."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def hello(self, hello: Hello) -> Identity:
        """What the device says it is."""
        info = self._session.info
        return Identity(
            name="quantspec_cl",
            version=info.version,
            language="OpenCL C 1.2",
            device=f"{info.platform} / {info.name}",
            driver=info.driver,
            build=" ".join(self._session.build_options),
            ops=(*_OPERATIONS, "echo"),
            policies={"recipe": ",".join(RECIPES), "codec": ",".join(CODECS), "container": ",".join(CONTAINERS)},
        )

    def handle(self, request: Request) -> Answer:
        """One operation on the device. Refusals and faults go through."""
        if request.op == "echo":
            return Ok(dict(request.tensors))
        if request.op not in _OPERATIONS:
            return Unsupported(f"op:{request.op}", "there is no kernel for it")
        surplus = next((name for name in request.words if name not in _WORDS[request.op]), "")
        if surplus:
            return Unsupported(surplus, f"the session's {request.op} has no such argument")
        return _OPERATIONS[request.op](self._session, State(example_of(request)))

    def close(self) -> None:
        """Wait for what was launched."""
        self._session.finish()


def _encode(session: Session, state: State) -> Answer:
    options = state.policies("codec")
    return Ok(fetched(codes=session.encode(state.need("x"), state.word("value"), table=state.table, **options)))


def _decode(session: Session, state: State) -> Answer:
    options = state.policies("codec")
    return Ok(fetched(y=session.decode(state.need("codes"), state.word("value"), table=state.table, **options)))


def _encode_scale(session: Session, state: State) -> Answer:
    rounding: Any = state.word("rounding", "up")
    return Ok(fetched(scale_codes=session.encode_scale(state.need("x"), state.word("type"), rounding)))


def _decode_scale(session: Session, state: State) -> Answer:
    bit7: Any = state.word("ue4m3_bit7", "refuse")
    return Ok(fetched(y=session.decode_scale(state.need("scale_codes"), state.word("type"), ue4m3_bit7=bit7)))


def _quantize(session: Session, state: State) -> Answer:
    names = ("scales", "scale_codes", "tensor_scale", "tensor_scale_code")
    given: dict[str, Any] = {name: state.array(name) for name in names}
    made = session.quantize(state.need("x"), state.scheme, **given, **state.policies("recipe", "codec"))
    found = made.saturation
    return Ok(levels_of(made), {"saturated": report([found.count, int(found.tensor), *(found.first or ())])})


def _dequantize(session: Session, state: State) -> Answer:
    record = record_of(session, state, **state.policies("recipe", "codec"))
    numbers = session.dequantize(record, state.word("to", "f32"))
    return Ok(fetched(y=numbers))


def _pack(session: Session, state: State) -> Answer:
    return Ok(fetched(words=session.pack(record_of(session, state), **state.policies("container")).words))


def _unpack(session: Session, state: State) -> Answer:
    padding: Any = state.word("padding", "refuse")
    return Ok(fetched(codes=session.unpack(words_of(session, state), padding=padding).codes))


def _to_bytes(session: Session, state: State) -> Answer:
    data = session.to_bytes(record_of(session, state), **state.policies("container"))
    return Ok({"bytes": part(data.get())})


def _split(session: Session, state: State) -> Answer:
    options: dict[str, Any] = {name: state.word(name, "refuse") for name in ("padding", "ue4m3_bit7")}
    options |= state.policies("recipe", "container", "codec")
    return Ok(levels_of(session.split(state.need("bytes"), state.scheme, state.numbers("shape"), **options)))


def _chain(session: Session, state: State) -> Answer:
    return Ok(fetched(y=session.chain(record_of(session, state), steps_of(state), state.word("to", "f32"))))


def _product(session: Session, state: State) -> Answer:
    return Ok(fetched(y=session.product(state.need("x"), record_of(session, state), state.word("to", "f32"))))


def _product_codes(session: Session, state: State) -> Answer:
    x, w = record_of(session, state), record_of(session, state, "_2")
    return Ok(fetched(y=session.product_codes(x, w, state.word("to", "f32"))))


#: Words that an operation of a session has an argument for.
_WORDS = {
    "encode": ("value", "codec"),
    "decode": ("value", "codec"),
    "encode_scale": ("type", "rounding"),
    "decode_scale": ("type", "ue4m3_bit7"),
    "quantize": ("scheme", "recipe", "codec"),
    "dequantize": ("scheme", "to", "recipe", "codec"),
    "pack": ("scheme", "container"),
    "unpack": ("scheme", "shape", "padding", "container"),
    "to_bytes": ("scheme", "container"),
    "split": ("scheme", "shape", "padding", "ue4m3_bit7", "recipe", "container", "codec"),
    **MOVE_WORDS,
    "chain": ("scheme", "steps", "to"),
    "product": ("scheme", "to"),
    "product_codes": ("scheme", "scheme_2", "to"),
}
_OPERATIONS: dict[str, Callable[[Session, State], Answer]] = {
    "encode": _encode,
    "decode": _decode,
    "encode_scale": _encode_scale,
    "decode_scale": _decode_scale,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "pack": _pack,
    "unpack": _unpack,
    "to_bytes": _to_bytes,
    "split": _split,
    **MOVES,
    "chain": _chain,
    "product": _product,
    "product_codes": _product_codes,
}
