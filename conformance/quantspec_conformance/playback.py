"""Examples played on the reference: what each operation makes, the steps in between, the refusal, and the rules that fired.

A state holds everything made so far by the name an example uses for it. An operation takes what it needs from the state and
adds what it makes; a quantity in between (amax, raw, s, q, ...) is worked out where an example asks for it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Codec, Container, Packed, Quantized, QuantspecError, Recipe, Scheme, Table
from quantspec.recipes import CODECS, CONTAINERS, RECIPES

from . import judgement, steps
from .examples import Entry, Example, ExampleError, Tensor

__all__ = ["Played", "play", "problems"]


@dataclass(frozen=True, slots=True)
class Played:
    """What an example gives when it is played: the entries it asks for, and the rules that fired."""

    entries: Mapping[str, Tensor | str]
    rules: tuple[str, ...]


@dataclass(slots=True)
class _State:
    """What is given, and what has been made."""

    example: Example
    verbs: Any = quantspec
    made: dict[str, Any] = field(default_factory=dict)
    tensor: Quantized | None = None
    packed: Packed | None = None

    def word(self, name: str, default: str | None = None) -> str:
        """A given entry of words."""
        entry = self.example.given.get(name)
        if entry is None:
            if default is None:
                raise ExampleError(f"{self.example.place}: {self.example.id}: needs a line `{name}`")
            return default
        return entry.text

    def array(self, name: str) -> npt.NDArray[Any] | None:
        """A given tensor, or one made before; None where there is none."""
        entry = self.example.given.get(name)
        if entry is None or name in self.made:
            made = self.made.get(name)
            return None if made is None else np.asarray(made)
        if isinstance(entry.content, str):
            raise ExampleError(f"{self.example.place}: {self.example.id}: {name} is no tensor")
        return entry.content.array()

    def need(self, name: str) -> npt.NDArray[Any]:
        """A tensor that must be there."""
        array = self.array(name)
        if array is None:
            raise ExampleError(f"{self.example.place}: {self.example.id}: needs a line `{name}`")
        return array

    def numbers(self, name: str) -> tuple[int, ...]:
        """A given list of whole numbers, `2,3`; `()` is the empty one."""
        text = self.word(name)
        return () if text == "()" else tuple(int(part) for part in text.split(","))

    @property
    def table(self) -> Table | None:
        """The given table, if any."""
        entries = self.array("table")
        return None if entries is None else Table.of(entries)

    @property
    def scheme(self) -> Scheme:
        """The given scheme."""
        table = self.table
        return Scheme.parse(self.word("scheme"), tables=[] if table is None else [table])

    def policies(self, *names: str) -> dict[str, Any]:
        """Given recipe, codec and container, as arguments of a verb; a name without a row is one of no meaning."""
        kinds: dict[str, tuple[Mapping[str, Any], Callable[[str], Any]]] = {
            "recipe": (RECIPES, Recipe),
            "codec": (CODECS, lambda name: Codec(name, "", "", "", "")),
            "container": (CONTAINERS, lambda name: Container(name, "", 0, "", "")),
        }
        given = {name: self.word(name) for name in names if name in self.example.given}
        return {name: kinds[name][0].get(text) or kinds[name][1](text) for name, text in given.items()}

    def take(self, tensor: Quantized) -> None:
        """Make a quantized tensor the current one."""
        self.tensor = tensor
        self.packed = None
        self.made |= {"codes": tensor.codes, "scheme": tensor.scheme, "shape": tensor.shape}
        for name in ("scale_codes", "tensor_scale_code"):
            code = getattr(tensor, name)
            self.made.pop(name, None)
            if code is not None:
                self.made[name] = code

    def quantized(self, suffix: str = "") -> Quantized:
        """The current quantized tensor, or the one whose codes are given."""
        if self.tensor is None or suffix:
            other = f"scheme{suffix}"
            scheme = Scheme.parse(self.word(other)) if other in self.example.given else self.scheme
            return Quantized(
                scheme,
                self.need(f"codes{suffix}"),
                self.array(f"scale_codes{suffix}"),
                self.array(f"tensor_scale_code{suffix}"),
                **self.policies("recipe"),
            )
        return self.tensor


def _encode(state: _State) -> None:
    x = state.need("x")
    codec = state.policies("codec")
    state.made["codes"] = state.verbs.encode(x, state.word("value"), table=state.table, **codec)


def _decode(state: _State) -> None:
    codec = state.policies("codec")
    state.made["y"] = state.verbs.decode(state.need("codes"), state.word("value"), table=state.table, **codec)


def _encode_scale(state: _State) -> None:
    rounding: Any = state.word("rounding", "up")
    state.made["scale_codes"] = state.verbs.encode_scale(state.need("x"), state.word("type"), rounding)


def _decode_scale(state: _State) -> None:
    bit7 = state.word("ue4m3_bit7", "refuse")
    state.made["y"] = state.verbs.decode_scale(state.need("scale_codes"), state.word("type"), ue4m3_bit7=bit7)


def _quantize(state: _State) -> None:
    levels = ("scales", "scale_codes", "tensor_scale", "tensor_scale_code")
    given: dict[str, Any] = {name: state.array(name) for name in levels}
    state.take(state.verbs.quantize(state.need("x"), state.scheme, **given, **state.policies("recipe", "codec")))


def _dequantize(state: _State) -> None:
    to: Any = state.word("to", "f32")
    state.tensor = state.quantized()
    state.made["y"] = state.verbs.dequantize(state.quantized(), to, **state.policies("codec"))


def _pack(state: _State) -> None:
    packed = state.verbs.pack(state.quantized(), **state.policies("container"))
    state.packed = packed
    state.made |= {"words": packed.words}


def _read_options(state: _State) -> dict[str, Any]:
    return {name: state.word(name) for name in ("padding", "ue4m3_bit7") if name in state.example.given}


def _unpack(state: _State) -> None:
    if state.packed is None:
        shape = state.numbers("shape")
        block, tensor = state.array("scale_codes"), state.array("tensor_scale_code")
        state.packed = Packed(state.scheme, shape, state.need("words"), block, tensor)
    state.take(state.verbs.unpack(state.packed, **_read_options(state)))


def _to_bytes(state: _State) -> None:
    source = state.packed or state.quantized()
    data = state.verbs.to_bytes(source, **state.policies("container"))
    state.made |= {"bytes": np.frombuffer(data, np.uint8), "scheme": source.scheme, "shape": source.shape}


def _raw(state: _State) -> tuple[npt.NDArray[np.uint8], Scheme, tuple[int, ...]]:
    """Bytes, scheme and shape that a read takes."""
    scheme, shape = state.made.get("scheme"), state.made.get("shape")
    data = np.asarray(state.need("bytes"), np.uint8)
    return data, scheme or state.scheme, state.numbers("shape") if shape is None else shape


def _from_bytes(state: _State) -> None:
    packed = state.verbs.from_bytes(*_raw(state), **_read_options(state))
    state.packed = packed
    state.made |= {"words": packed.words}
    for name in ("scale_codes", "tensor_scale_code"):
        code = getattr(packed, name)
        if code is not None:
            state.made[name] = code


def _split(state: _State) -> None:
    state.take(state.verbs.split(*_raw(state), **_read_options(state)))


def _to_burn(state: _State) -> None:
    """Upstream's JSON of the scheme."""
    scheme = state.made.get("scheme") or state.scheme
    state.made |= {"scheme": scheme, "burn": json.dumps(scheme.to_burn(), separators=(",", ":"))}


def _size(state: _State) -> None:
    """Bytes of a tensor of the given shape."""
    shape = state.numbers("shape")
    state.made |= {"scheme": state.scheme, "shape": shape, "size": state.verbs.byte_count(state.scheme, shape)}


def _concatenate(state: _State) -> None:
    parts = [state.quantized()]
    while f"codes_{len(parts) + 1}" in state.example.given:
        parts.append(state.quantized(f"_{len(parts) + 1}"))
    state.take(state.verbs.concatenate(parts, int(state.word("axis"))))


def _layout(operation: Callable[[_State, Quantized], Quantized]) -> Callable[[_State], None]:
    return lambda state: state.take(operation(state, state.quantized()))


def _scheme(state: _State) -> None:
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
VERBS: dict[str, Callable[[_State], None]] = {
    "encode": _encode,
    "decode": _decode,
    "encode_scale": _encode_scale,
    "decode_scale": _decode_scale,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "pack": _pack,
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
    "compare": lambda state: state.made.update(judgement.compare(state.example)),
    "judge": lambda state: state.made.update(judgement.judge(state.example)),
    "host": lambda state: state.made.update(judgement.host(state.example)),
}


#: Entries that only a refusal gives.
REFUSAL = ("refused", "position", "says")


def play(example: Example, verbs: Any = quantspec) -> Played:
    """What the example gives, done by the verbs of `quantspec` or of another that has the same ones.

    Raises ExampleError for an example that cannot be played.
    """
    state = _State(example, verbs)
    made: dict[str, Tensor | str] = {}
    fired: dict[str, None] = {}
    with np.errstate(all="ignore"), quantspec.trace() as trace:
        try:
            for verb in example.do:
                if verb not in VERBS:
                    raise ExampleError(f"{example.place}: {verb!r} is no operation; there are {', '.join(VERBS)}")
                VERBS[verb](state)
        except QuantspecError as error:
            made |= _refusal(error)
            fired[error.rule] = None
    fired = dict.fromkeys([*trace.rules(), *state.made.get("rules", ()), *fired])
    asked = {} if "refused" in made else example.gives
    made |= {name: _asked(state, name, entry) for name, entry in asked.items() if name not in REFUSAL}
    return Played(made, tuple(fired))


def _refusal(error: QuantspecError) -> dict[str, Tensor | str]:
    """The entries of a refusal: rule and kind, the position in a text, the message."""
    kind = type(error).__name__.removesuffix("Error").lower()
    position = getattr(error, "position", None)
    entries: dict[str, Tensor | str] = {"refused": f"{error.rule} {kind}", "says": error.message}
    return entries if position is None else {**entries, "position": str(position)}


def _asked(state: _State, name: str, entry: Entry) -> Tensor | str:
    """One entry that the example asks for, from the state or worked out."""
    made = state.made
    if name in ("text", "outcome", "rule", "equal", "burn", "shape", "size", "saturated"):
        return steps.words_of(name, state.tensor, made)
    if name in made:
        return Tensor.of(np.asarray(made[name]))
    if name in steps.STEPS and state.tensor is not None:
        x = state.example.given.get("x")
        bits = None if x is None or isinstance(x.content, str) else steps.widened(x.content.array())
        return Tensor.of(steps.STEPS[name](state.tensor, bits))
    raise ExampleError(
        f"{state.example.place}: {state.example.id}: nothing makes {name!r} (asked as {entry.text[:40]!r})"
    )


def problems(example: Example, verbs: Any = quantspec) -> list[str]:
    """What is wrong with an example: entries that differ; on the reference also rules that it shows and that did not fire."""
    played = play(example, verbs)
    found: list[str] = []
    for name, entry in example.gives.items():
        actual = played.entries.get(name)
        if name == "says" and isinstance(actual, str):
            lacking = [part.strip() for part in entry.text.split(";") if part.strip() not in actual]
            found += [f"{example.id}: the refusal does not say {part!r}: {actual}" for part in lacking]
        elif actual is None:
            found.append(f"{example.id}: {name} is not given; it gives {', '.join(played.entries) or 'nothing'}")
        elif actual != entry.content:
            shown = actual if isinstance(actual, str) else actual.text
            found.append(f"{example.id}: {name} is written as {entry.text}; the reference gives {shown}")
    if "refused" in played.entries and "refused" not in example.gives:
        found.append(f"{example.id}: refused: {played.entries['refused']}: {played.entries['says']}")
    if verbs is quantspec:
        silent = [rule_id for rule_id in example.shows if rule_id not in played.rules]
        found += [f"{example.id}: shows {rule_id}, which does not fire" for rule_id in silent]
    return found
