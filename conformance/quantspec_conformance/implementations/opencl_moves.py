"""The layout operations of a session behind the protocol, and the tensors of requests on its device."""

from collections.abc import Callable
from typing import Any

from quantspec import Scheme
from quantspec_cl import DeviceArray, DevicePacked, DeviceQuantized, Session

from ..examples import Tensor
from ..protocol.messages import Answer, Ok
from ..state import State
from .methods import part

__all__ = ["MOVES", "MOVE_WORDS", "fetched", "levels_of", "record_of", "words_of"]


def record_of(session: Session, state: State, suffix: str = "", **policies: Any) -> DeviceQuantized:
    """The given tensor, or one whose parts have names that end in `_2` and the like; by a recipe and a codec."""
    other = f"scheme{suffix}"
    scheme = Scheme.parse(state.word(other)) if suffix and other in state.example.given else state.scheme
    levels = state.array(f"scale_codes{suffix}"), state.array(f"tensor_scale_code{suffix}")
    return session.quantized(scheme, state.need(f"codes{suffix}"), *levels, **policies)


def words_of(session: Session, state: State) -> DevicePacked:
    levels = state.array("scale_codes"), state.array("tensor_scale_code")
    by = state.policies("container")
    return session.packed(state.scheme, state.numbers("shape"), state.need("words"), *levels, **by)


def fetched(**arrays: DeviceArray | None) -> dict[str, Tensor]:
    return {name: part(array.get()) for name, array in arrays.items() if array is not None}


def levels_of(made: DeviceQuantized) -> dict[str, Tensor]:
    return fetched(codes=made.codes, scale_codes=made.scale_codes, tensor_scale_code=made.tensor_scale_code)


def _moved(made: DeviceQuantized) -> Answer:
    return Ok(levels_of(made), {"text": made.scheme.text})


def _permute(session: Session, state: State) -> Answer:
    return _moved(session.permute(record_of(session, state), state.numbers("axes")))


def _slice(session: Session, state: State) -> Answer:
    (axis,), (start, stop) = state.numbers("axis"), state.numbers("range")
    return _moved(session.slice_axis(record_of(session, state), axis, start, stop))


def _take(session: Session, state: State) -> Answer:
    return _moved(session.take(record_of(session, state), state.numbers("axis")[0], state.numbers("indices")))


def _select(session: Session, state: State) -> Answer:
    return _moved(session.select(record_of(session, state), *state.numbers("axis"), *state.numbers("index")))


def _flip(session: Session, state: State) -> Answer:
    return _moved(session.flip(record_of(session, state), *state.numbers("axis")))


def _expand(session: Session, state: State) -> Answer:
    return _moved(session.expand(record_of(session, state), state.numbers("new_shape")))


def _reshape(session: Session, state: State) -> Answer:
    return _moved(session.reshape(record_of(session, state), state.numbers("new_shape")))


def _requantize(session: Session, state: State) -> Answer:
    return Ok(levels_of(session.requantize(record_of(session, state), state.word("new_scheme"))))


def _concatenate(session: Session, state: State) -> Answer:
    parts = [record_of(session, state)]
    while f"codes_{len(parts) + 1}" in state.example.given:
        parts.append(record_of(session, state, f"_{len(parts) + 1}"))
    return _moved(session.concatenate(parts, int(state.word("axis"))))


def _repack(session: Session, state: State) -> Answer:
    """Words come back as words, codes as codes."""
    if "words" in state.example.given:
        packed = session.repack(words_of(session, state), state.word("new_store"))
        return Ok(fetched(words=packed.words), {"text": packed.scheme.text})
    return _moved(session.repack(record_of(session, state), state.word("new_store")))


#: Words that a layout operation has an argument for.
MOVE_WORDS: dict[str, tuple[str, ...]] = {
    "permute": ("scheme", "axes"),
    "slice": ("scheme", "axis", "range"),
    "take": ("scheme", "axis", "indices"),
    "select": ("scheme", "axis", "index"),
    "flip": ("scheme", "axis"),
    "expand": ("scheme", "new_shape"),
    "concatenate": ("scheme", "axis", "scheme_2"),
    "reshape": ("scheme", "new_shape"),
    "requantize": ("scheme", "new_scheme"),
    "repack": ("scheme", "new_store", "shape"),
}
MOVES: dict[str, Callable[[Session, State], Answer]] = {
    "permute": _permute,
    "slice": _slice,
    "take": _take,
    "select": _select,
    "flip": _flip,
    "expand": _expand,
    "concatenate": _concatenate,
    "reshape": _reshape,
    "requantize": _requantize,
    "repack": _repack,
}
