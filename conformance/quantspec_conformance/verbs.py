"""The operations of examples: each takes what it needs from the state and adds what it makes."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from quantspec import Packed, Preset, Quantized, Recipe, Scheme, Step, quantize

from . import judgement
from .state import State

__all__ = ["VERBS", "steps_of"]


def _encode(state: State) -> None:
    x = state.need("x")
    codec = state.policies("codec")
    state.made["codes"] = state.verbs.encode(x, state.word("value"), table=state.table, **codec)


def _decode(state: State) -> None:
    codec = state.policies("codec")
    state.made["y"] = state.verbs.decode(state.need("codes"), state.word("value"), table=state.table, **codec)


def _encode_scale(state: State) -> None:
    rounding: Any = state.word("rounding", "up")
    state.made["scale_codes"] = state.verbs.encode_scale(state.need("x"), state.word("type"), rounding)


def _decode_scale(state: State) -> None:
    bit7 = state.word("ue4m3_bit7", "refuse")
    state.made["y"] = state.verbs.decode_scale(state.need("scale_codes"), state.word("type"), ue4m3_bit7=bit7)


def _quantize(state: State) -> None:
    levels = ("scales", "scale_codes", "tensor_scale", "tensor_scale_code")
    given: dict[str, Any] = {name: state.array(name) for name in levels}
    state.take(state.verbs.quantize(state.need("x"), state.scheme, **given, **state.policies("recipe", "codec")))


def _dequantize(state: State) -> None:
    to: Any = state.word("to", "f32")
    state.tensor = state.quantized()
    state.made["y"] = state.verbs.dequantize(state.quantized(), to, **state.policies("codec"))


def _preset(state: State) -> None:
    """A preset by name, and the rows that it joins; with a scheme, only if it covers that."""
    preset = Preset.of(state.word("preset"))
    if "scheme" in state.example.given:
        preset.require(state.scheme)
    names = {"recipe": preset.recipe.name, "codec": preset.codec.name, "container": preset.container.name}
    state.made |= {**names, "version": preset.version}


def _follow(state: State) -> None:
    """quantize by a recipe whose stage for one level is given, as steps with a semicolon between."""
    lines = [part.strip() for part in state.word("steps").split(";")]
    amax = state.word("amax", "finite")
    recipe = Recipe("example", amax, single=lines, element=["q = div(x, s)"], decode=["y = mul(s, v)"])
    state.take(quantize(state.need("x"), state.scheme, recipe=recipe))


def _pack(state: State) -> None:
    packed = state.verbs.pack(state.quantized(), **state.policies("container"))
    state.packed = packed
    state.made |= {"words": packed.words}


def _convert(state: State) -> None:
    """The words in another container, and with `back` in the first one again."""
    source = state.packed or state.verbs.pack(state.quantized(), **state.policies("container"))
    packed = state.verbs.convert(source, state.word("new_container"))
    if state.word("back", "no") == "yes":
        packed = state.verbs.convert(packed, source.container)
    state.packed = packed
    state.made |= {"words": packed.words}


def _read_options(state: State) -> dict[str, Any]:
    return {name: state.word(name) for name in ("padding", "ue4m3_bit7") if name in state.example.given}


def _given_words(state: State) -> Packed:
    """The tensor whose words are given."""
    block, tensor = state.array("scale_codes"), state.array("tensor_scale_code")
    by = state.policies("recipe", "container", "codec")
    return Packed(state.scheme, state.numbers("shape"), state.need("words"), block, tensor, **by)


def _unpack(state: State) -> None:
    if state.packed is None:
        state.packed = _given_words(state)
    state.take(state.verbs.unpack(state.packed, **_read_options(state)))


def _to_bytes(state: State) -> None:
    source = state.packed or state.quantized()
    data = state.verbs.to_bytes(source, **state.policies("container"))
    state.made |= {"bytes": np.frombuffer(data, np.uint8), "scheme": source.scheme, "shape": source.shape}


def _raw(state: State) -> tuple[npt.NDArray[np.uint8], Scheme, tuple[int, ...]]:
    """Bytes, scheme and shape that a read takes."""
    scheme, shape = state.made.get("scheme"), state.made.get("shape")
    data = np.asarray(state.need("bytes"), np.uint8)
    return data, scheme or state.scheme, state.numbers("shape") if shape is None else shape


def _carried(state: State) -> dict[str, Any]:
    """What a stream of bytes does not say: recipe, container and codec, where they are given."""
    return state.policies("recipe", "container", "codec")


def _from_bytes(state: State) -> None:
    packed = state.verbs.from_bytes(*_raw(state), **_read_options(state), **_carried(state))
    state.packed = packed
    state.made |= {"words": packed.words}
    for name in ("scale_codes", "tensor_scale_code"):
        code = getattr(packed, name)
        if code is not None:
            state.made[name] = code


def _split(state: State) -> None:
    state.take(state.verbs.split(*_raw(state), **_read_options(state), **_carried(state)))


def _to_burn(state: State) -> None:
    """Upstream's JSON of the scheme."""
    scheme = state.made.get("scheme") or state.scheme
    state.made |= {"scheme": scheme, "burn": json.dumps(scheme.to_burn(), separators=(",", ":"))}


def _size(state: State) -> None:
    """Bytes of a tensor of the given shape."""
    shape = state.numbers("shape")
    size = state.verbs.byte_count(state.scheme, shape, **state.policies("container"))
    state.made |= {"scheme": state.scheme, "shape": shape, "size": size}


def _concatenate(state: State) -> None:
    parts = [state.quantized()]
    while f"codes_{len(parts) + 1}" in state.example.given:
        parts.append(state.quantized(f"_{len(parts) + 1}"))
    state.take(state.verbs.concatenate(parts, int(state.word("axis"))))


def _repack(state: State) -> None:
    """The words, where the tensor is given or made as words; else the codes."""
    if state.packed is None and "words" in state.example.given:
        state.packed = _given_words(state)
    if state.packed is None:
        state.take(state.verbs.repack(state.quantized(), state.word("new_store")))
        return
    packed = state.verbs.repack(state.packed, state.word("new_store"))
    state.packed, state.tensor = packed, None
    state.made |= {"words": packed.words, "scheme": packed.scheme, "shape": packed.shape}


def _step(state: State, text: str) -> Step:
    """A step from its text: `neg`, `add:a`, `select:a:m` with the names of given tensors, `cast:f16` with that of a type."""
    op, *names = text.split(":")
    return Step(op, *(names if op == "cast" else [state.need(name) for name in names]))


def steps_of(state: State) -> list[Step]:
    """The given steps of a chain, with commas between them; `()` is none."""
    text = state.word("steps")
    return [] if text == "()" else [_step(state, part) for part in text.split(",")]


def _chain(state: State) -> None:
    to: Any = state.word("to", "f32")
    state.made["y"] = state.verbs.chain(state.quantized(), steps_of(state), to)


def _product(state: State) -> None:
    to: Any = state.word("to", "f32")
    state.made["y"] = state.verbs.product(state.need("x"), state.quantized(), to)


def _product_codes(state: State) -> None:
    to: Any = state.word("to", "f32")
    state.made["y"] = state.verbs.product_codes(state.quantized(), state.quantized("_2"), to)


def _layout(operation: Callable[[State, Quantized], Quantized]) -> Callable[[State], None]:
    return lambda state: state.take(operation(state, state.quantized()))


def _scheme(state: State) -> None:
    """A scheme from its text, from upstream's JSON, or from its members; then met with a shape where one is given."""
    members = {name: state.word(name) for name in ("mode", "tensor") if name in state.example.given}
    if "json" in state.example.given:
        scheme = Scheme.from_burn(state.word("json"), table=state.table)
    elif "value" in state.example.given:
        block = None
        if "block" in state.example.given:
            extents, scale = state.word("block").split()
            block = (() if extents == "()" else tuple(int(e) for e in extents.split(",")), scale)
        table = state.array("table")
        scheme = Scheme(state.word("value"), state.word("store", "native"), block=block, table=table, **members)
    else:
        scheme = state.scheme
    if "shape" in state.example.given:
        scheme.require_shape(state.numbers("shape"))
    state.made |= {"scheme": scheme, "scheme_2": None}
    if "scheme_2" in state.example.given:
        state.made["scheme_2"] = Scheme.parse(state.word("scheme_2"))


#: The operations that an example may do, by name.
VERBS: dict[str, Callable[[State], None]] = {
    "encode": _encode,
    "decode": _decode,
    "encode_scale": _encode_scale,
    "decode_scale": _decode_scale,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "preset": _preset,
    "follow": _follow,
    "pack": _pack,
    "convert": _convert,
    "unpack": _unpack,
    "to_bytes": _to_bytes,
    "from_bytes": _from_bytes,
    "split": _split,
    "scheme": _scheme,
    "to_burn": _to_burn,
    "size": _size,
    "permute": _layout(lambda state, t: state.verbs.permute(t, state.numbers("axes"))),
    "transpose": _layout(lambda state, t: state.verbs.transpose(t, *state.numbers("axes"))),
    "slice": _layout(lambda state, t: state.verbs.slice_axis(t, *state.numbers("axis"), *state.numbers("range"))),
    "take": _layout(lambda state, t: state.verbs.take(t, state.numbers("axis")[0], state.numbers("indices"))),
    "select": _layout(lambda state, t: state.verbs.select(t, *state.numbers("axis"), *state.numbers("index"))),
    "flip": _layout(lambda state, t: state.verbs.flip(t, *state.numbers("axis"))),
    "expand": _layout(lambda state, t: state.verbs.expand(t, state.numbers("new_shape"))),
    "reshape": _layout(lambda state, t: state.verbs.reshape(t, state.numbers("new_shape"))),
    "requantize": _layout(lambda state, t: state.verbs.requantize(t, state.word("new_scheme"))),
    "concatenate": _concatenate,
    "repack": _repack,
    "chain": _chain,
    "product": _product,
    "product_codes": _product_codes,
    "compare": lambda state: state.made.update(judgement.compare(state.example)),
    "judge": lambda state: state.made.update(judgement.judge(state.example)),
    "host": lambda state: state.made.update(judgement.host(state.example)),
}
