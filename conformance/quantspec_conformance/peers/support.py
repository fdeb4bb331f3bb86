"""What every adapter of a peer shares: messages to numpy arrays and back, rows of blocks, and saying no.

An adapter is a subclass of Peer with the methods that its library really has; nothing is computed here that the library is
asked for. A word or tensor that a method does not take is answered `unsupported`, and so is whatever raises Lacks.
"""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module, metadata
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from quantspec import QuantspecError, Scheme

from ..examples import Tensor
from ..protocol.messages import OPERATIONS, Answer, Hello, Identity, Ok, Rejected, Request, Unsupported

__all__ = [
    "MINIFLOATS", "NUMPY", "Array", "Given", "Lacks", "Made", "Peer", "Refuses", "blocks_of", "codes_of", "floats", "from_nibbles",
    "given_level", "library", "names", "nibbles", "patterns", "pick", "scalar", "shape_of", "signed",
]  # fmt: skip

Array = npt.NDArray[Any]
Given = Array | None
Made = dict[str, Array]
Rows = Callable[[Array], Array]
MINIFLOATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
#: Our names -> the numpy types that hold such patterns.
NUMPY: Mapping[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "q8f": np.int8,
    "q8s": np.int8,
    "q4f": np.int8,
}
#: Words that say what every library does anyway: numbers are read as f32.
_ALWAYS: Mapping[str, tuple[str, ...]] = {"to": ("f32",)}
#: Tensors that a request to pack or unpack holds too, and that change no word.
_LEVELS = ("scale_codes", "tensor_scale_code")
#: The tensor of an answer that has only one.
_SINGLE = {"encode": "codes", "decode": "y", "encode_scale": "scale_codes", "decode_scale": "y", "dequantize": "y",
           "pack": "words", "unpack": "codes", "to_bytes": "bytes"}  # fmt: skip


class Lacks(Exception):
    """The library does not do this: the answer is `unsupported` with this feature."""


class Refuses(Exception):
    """The library refuses the input itself: the kind of refusal, and what it said."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        super().__init__(message)


def library(name: str) -> Any:
    """A module of the peer. It has no types here: it is only there in the peer's own environment."""
    return import_module(name)


def blocks_of(shape: tuple[int, ...], scheme: Scheme, width: int = 0) -> tuple[Rows, Rows, Rows]:
    """Rows of whole blocks and back, for blocks along the last axis alone; blocks are filled up with zeros to `width`.

    Three functions: an array to rows of shape (blocks, width); such rows to the shape; one entry a block to the grid.
    """
    if scheme.block is None or not shape or 0 in shape:
        raise Lacks("blocks of an empty tensor, of a scalar, or none")
    *lead, extent = scheme.block.extents or (1,)
    if any(size != 1 for size in lead) or len(lead) >= len(shape):
        raise Lacks("blocks along other axes than the last")
    if width and extent > width:
        raise Lacks(f"blocks of more than {width}")
    *rows, last = shape
    extent = min(extent, last + last % 2)  # a block that is longer than the axis; many take even ones alone
    many = -(-last // extent)

    def to_rows(array: Array) -> Array:
        whole = np.zeros((*rows, many * extent), array.dtype)
        whole[..., :last] = array
        filled = np.zeros((whole.size // extent, width or extent), array.dtype)
        filled[:, :extent] = whole.reshape(-1, extent)
        return filled

    def from_rows(filled: Array) -> Array:
        whole: Array = filled[:, :extent].reshape(*rows, many * extent)
        return whole[..., :last]

    return to_rows, from_rows, lambda column: np.asarray(column).reshape(*rows, many)


def nibbles(codes: Array) -> Array:
    """Two codes a byte along the last axis, the first in the low half: for a library that takes its fp4 packed."""
    packed: Array = codes[..., 0::2] | codes[..., 1::2] << 4
    return packed


def from_nibbles(packed: Array) -> Array:
    """`nibbles` undone."""
    pairs: Array = np.stack([packed & 15, packed >> 4], axis=-1)
    flat: Array = pairs.reshape(*packed.shape[:-1], -1)
    return flat


def signed(fields: Array) -> Array:
    """Fields of four bits as codes of an integer format: bytes with the sign of the field."""
    codes: Array = ((fields & 15 ^ 8).astype("i1") - 8).view("u1")
    return codes


def names(scheme: Scheme) -> tuple[str, str, str]:
    """The names of a scheme's value format, of its block scale and of its tensor scale, "" for a level that it lacks."""
    return (
        scheme.value.name,
        scheme.block.scale.name if scheme.block else "",
        scheme.tensor.name if scheme.tensor else "",
    )


def shape_of(text: str) -> tuple[int, ...]:
    """A shape as requests write it."""
    return tuple(int(size) for size in text.split(",")) if text != "()" else ()


class Peer:
    """Base of the adapters. `hello` reads these names; `handle` calls the method that is called like the operation."""

    name = ""
    distribution = ""  #: whose version is told; the name where it is empty
    values: tuple[str, ...] = ()
    scales: tuple[str, ...] = ()
    levels: tuple[str, ...] = ("block",)
    modes: tuple[str, ...] = ("symmetric",)
    stores: tuple[str, ...] = ()
    max_elements = 0
    policies: Mapping[str, str] = {}
    #: Word (recipe, codec, container) -> names that say what the library does anyway; any other is a word that it lacks.
    ways: Mapping[str, tuple[str, ...]] = {}

    def hello(self, hello: Hello) -> Identity:
        """Who it is: the operations are those that the class has a method of."""
        return Identity(
            name=self.name, version=metadata.version(self.distribution or self.name), language="Python",
            ops=(*(op for op in OPERATIONS if callable(getattr(self, op, None))), "echo"), values=self.values,
            scales=self.scales, levels=self.levels, stores=self.stores, modes=self.modes, max_elements=self.max_elements,
            policies=self.policies,
        )  # fmt: skip

    def handle(self, request: Request) -> Answer:
        """The library's answer to one request. Whatever it raises is the harness's to report."""
        if request.op == "echo":
            return Ok(request.tensors)
        method = getattr(self, request.op, None)
        said = {word: (*_ALWAYS.get(word, ()), *self.ways.get(word, ())) for word in request.words}
        words = {word: text for word, text in request.words.items() if text not in said[word]}
        unread = _LEVELS if request.op in ("pack", "unpack") else ()
        arrays = {name: tensor.array() for name, tensor in request.tensors.items() if name not in unread}
        given: dict[str, Any] = arrays | words
        try:
            if method is None or ("codes" in given and given["codes"].dtype != np.uint8):
                raise TypeError(
                    "codes are bytes here: a tensor of another width is nothing that the library could be given"
                )
            inspect.signature(method).bind(**given)
        except TypeError as error:
            return Unsupported(f"message:{request.op}", str(error)[:200])
        try:
            if "scheme" in given:
                table = given.get("table")
                given["scheme"] = Scheme.parse(given["scheme"], tables=[] if table is None else [table])
            with np.errstate(all="ignore"):
                made = method(**given)
        except (Lacks, QuantspecError) as lacking:
            return Unsupported(str(lacking)[:80] or "request")
        except Refuses as refused:
            return Rejected(refused.kind, message=str(refused)[:200])
        made = made if isinstance(made, dict) else {_SINGLE[request.op]: made}
        return Ok(
            {name: Tensor.of(np.ascontiguousarray(array).reshape(np.shape(array))) for name, array in made.items()}
        )

    def close(self) -> None:
        """Nothing is held."""


def pick(table: Mapping[Any, Any], name: str | tuple[str, ...]) -> Any:
    """What a table has for a name, or for several together. Lacks where it has nothing."""
    if name not in table:
        raise Lacks(f"{name if isinstance(name, str) else '-'.join(filter(None, name))} alone")
    return table[name]


def patterns(codes: Array, name: str) -> Array:
    """Codes as the numbers of numpy's type for a format. Lacks for codes of another width."""
    if codes.dtype.itemsize != np.dtype(pick(NUMPY, name)).itemsize:
        raise Lacks(f"{name} in {codes.dtype}")
    return codes.view(NUMPY[name])


def codes_of(array: Array) -> Array:
    """The patterns of an array, unsigned."""
    return array.view(f"u{array.dtype.itemsize}")


def scalar(x: Any, scheme: Scheme) -> Array:
    """A tensor's scale that is given: one number of f32. Lacks for anything else."""
    if x.dtype != np.float32 or x.size != 1 or scheme.tensor is None or scheme.tensor.name != "f32":
        raise Lacks("a given tensor scale of another type or number")
    return np.asarray(x).reshape(())


def given_level(scheme: Scheme, number: Given, code: Given) -> Given:
    """The tensor scale that a request gives, as a number or as a code; None where it gives none. Lacks for other types than f32."""
    if code is not None and code.dtype != np.uint32:
        raise Lacks("a given tensor scale of another type")
    given = number if code is None else code.view("f4")
    return None if given is None else scalar(given, scheme)


def floats(x: Array, *allowed: str) -> Array:
    """x, if its dtype is one of these names. Lacks for another."""
    if x.dtype not in [NUMPY[name] for name in allowed]:
        raise Lacks(f"x of {x.dtype}")
    return x
