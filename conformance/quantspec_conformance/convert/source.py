"""IN of `quantspec convert`: which tensor it is, by the options or by what the file says of itself, and its stream of bytes."""

import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quantspec import Codec, Container, Recipe, Scheme
from quantspec.layout import byte_count

from ..cases import read_shape, shape_text
from ..errors import UsageError
from ..outside import open_regular, printable, read_regular
from ..tensors import npy_header
from .dialects import Dialect, dialect, scheme_of
from .parts import NAMES, STREAM, Part, parts_of
from .tensorfile import TensorFile, read_header

__all__ = ["SCHEMA", "Names", "Source", "metadata_of", "read_source"]

SCHEMA = "convert-1"
OPTIONS = ("--words", "--scales", "--tensor-scale")  #: in the order of NAMES


@dataclass(frozen=True, slots=True)
class Names:
    """Tensors of a .safetensors file that the options choose: a stream, or its parts."""

    stream: str | None = None
    parts: tuple[str | None, str | None, str | None] = (None, None, None)

    def given(self) -> list[str]:
        """The options that were given."""
        pairs = [("--name", self.stream), *zip(OPTIONS, self.parts, strict=True)]
        return [option for option, value in pairs if value is not None]


@dataclass(frozen=True, slots=True)
class Source:
    """A stream of bytes and what it is."""

    scheme: Scheme
    shape: tuple[int, ...]
    dialect: Dialect
    data: bytes


def metadata_of(scheme: Scheme, shape: tuple[int, ...], container: Container, read_by: Dialect) -> dict[str, str]:
    """What a file says of itself, so that it needs no options; recipe and codec where they are known."""
    said = {"quantspec": SCHEMA, "scheme": scheme.text, "shape": shape_text(shape), "container": container.name}
    if read_by.recipe is not None and read_by.codec is not None:
        said |= {"recipe": read_by.recipe.name, "codec": read_by.codec.name}
    return said


def read_source(
    path: Path, names: Names, *, scheme: str | None, shape: str | None, source: str | None, limit: int
) -> Source:
    """Read IN. UsageError for a file that is missing, damaged or too large, for options that are missing or contradict it;
    QuantspecError where the scheme, the shape or the container is refused.
    """
    file = read_header(path) if path.suffix == ".safetensors" else None
    if file is None and names.given():
        raise UsageError(f"{names.given()[0]} goes with a .safetensors file; {str(path)!r} is none")
    said = {} if file is None or file.metadata.get("quantspec") != SCHEMA else file.metadata
    text, sizes = _one("--scheme", scheme, said.get("scheme")), _one("--shape", shape, said.get("shape"))
    own, extents = scheme_of(text), read_shape(sizes, "")
    if math.prod(extents) > limit:
        raise UsageError(
            f"--shape {sizes}: {math.prod(extents)} elements; allowed: at most {limit} (--max-elements raises it)"
        )
    kind = _dialect(source, said)
    kind.require(own)
    total = byte_count(own, extents, kind.container)
    if file is not None:
        data = _of_file(file, names, parts_of(own, extents, kind.container), ours=bool(said))
    else:
        data = _of_npy(path, total) if path.suffix == ".npy" else _of_raw(path, total)
    if len(data) != total:
        raise UsageError(
            f"{str(path)!r} has {_bytes(len(data), total)}; {own.text} of shape {sizes} in container {kind.container.name!r} has "
            f"exactly {total} [LAY-4]"
        )
    return Source(own, extents, kind, data)


def _bytes(count: int, total: int) -> str:
    return f"{count} bytes" if count <= total else f"more than {total} bytes"


def _one(option: str, given: str | None, said: str | None) -> str:
    """An option, or what the file says; they may not contradict one another."""
    if given is None and said is None:
        raise UsageError(f"{option} is missing: IN does not say it (a .safetensors file that convert wrote does)")
    if given is not None and said is not None and given != said:
        raise UsageError(f"{option} {given!r}, but the file says {printable(repr(said))}; leave it out")
    return given if given is not None else said or ""


def _dialect(given: str | None, said: dict[str, str]) -> Dialect:
    """The dialect of IN."""
    asked = None if given is None else dialect(given, "--from")
    if "container" not in said:
        if asked is None:
            raise UsageError("--from is missing: IN does not say it (a .safetensors file that convert wrote does)")
        return asked
    known = "recipe" in said and "codec" in said
    told = Dialect(
        name=said["container"],
        container=Container.of(said["container"]),
        recipe=Recipe.of(said["recipe"]) if known else None,
        codec=Codec.of(said["codec"]) if known else None,
    )
    if asked is None:
        return told
    for member, mine, theirs in (
        ("container", asked.container, told.container),
        ("recipe", asked.recipe or told.recipe, told.recipe or asked.recipe),
        ("codec", asked.codec or told.codec, told.codec or asked.codec),
    ):
        if mine != theirs and mine is not None and theirs is not None:
            raise UsageError(f"--from {given!r} has {member} {mine.name!r}, but the file says {theirs.name!r}")
    return asked if asked.recipe is not None else told


def _of_raw(path: Path, total: int) -> bytes:
    with open_regular(path, what="", allowed="a regular file") as file:
        return file.read(total + 1)


def _of_npy(path: Path, total: int) -> bytes:
    raw = read_regular(path, total + (1 << 16), what="", allowed="a regular file")  # a header has at most 64 KiB
    try:
        with warnings.catch_warnings(), open_regular(path, what="", allowed="a regular file") as file:
            warnings.simplefilter("ignore")  # numpy's remarks on a header are about a file that is refused anyway
            shape, dtype = npy_header(file)
            data = raw[file.tell() :]
    except UsageError:
        raise
    except Exception as error:  # numpy hands a header to Python's tokenizer and parser, which raise what they like
        raise UsageError(f"{str(path)!r} cannot be read: {error or type(error).__name__}") from None
    if dtype != np.uint8 or len(shape) != 1:
        raise UsageError(f"{str(path)!r} has dtype {dtype} and shape {shape}; allowed: uint8 of one axis, the stream")
    if len(data) != shape[0]:
        raise UsageError(f"{str(path)!r} cannot be read: {len(data)} bytes of data for an array {shape}")
    return data


def _of_file(file: TensorFile, names: Names, parts: tuple[Part, ...], *, ours: bool) -> bytes:
    """The stream of a .safetensors file: one tensor, or its parts one after another."""
    total = sum(part.size for part in parts)
    by_name = {part.name: part for part in parts}
    if ours and not names.given():
        own = [name if name in by_name else None for name in NAMES]
        names = Names(STREAM) if STREAM in by_name else Names(None, (own[0], own[1], own[2]))
    if names.stream is not None and any(names.parts):
        raise UsageError(f"--name is the whole stream, {names.given()[1]} a part of it; allowed: the one or the other")
    if not any(names.parts):
        return _stream(file, names.stream, total)
    if STREAM in by_name:
        raise UsageError(
            f"{names.given()[0]}: this container has each scale before its words; name the stream with --name"
        )
    data = b""
    for option, name, there in zip(OPTIONS, NAMES, names.parts, strict=True):
        part = by_name.get(name)
        if part is None and there is not None:
            raise UsageError(f"{option} {printable(there)!r}: the scheme has no such level")
        if part is not None and there is None:
            raise UsageError(f"{option} is missing: the scheme has that level; the file holds {file.names()}")
        if part is not None and there is not None:
            data += part.check(file.read(there, option, total), f"{option} {printable(there)!r}")
    return data


def _stream(file: TensorFile, name: str | None, total: int) -> bytes:
    if name is None and len(file.places) != 1:
        raise UsageError(
            f"{str(file.path)!r} holds {len(file.places)} tensors; choose the stream with --name, or its parts with "
            f"{', '.join(OPTIONS)}: {file.names()}"
        )
    chosen = name if name is not None else next(iter(file.places))
    raw = file.read(chosen, "--name", max(total, 1))
    if raw.dtype not in ("U8", "I8"):
        raise UsageError(
            f"--name {printable(chosen)!r} has dtype {raw.dtype}; a stream is U8 (parts: {', '.join(OPTIONS)})"
        )
    return raw.data
