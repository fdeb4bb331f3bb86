"""The conversion itself, and the check that nothing was lost: codes and scale codes read again, and the way back. Rule POL-18."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec import Container, Packed, Quantized, QuantspecError, convert, from_bytes, pack, repack, to_bytes, unpack
from quantspec.packing import Strictness

from ..errors import HarnessError
from .dialects import Dialect
from .source import Source

__all__ = ["Conversion", "InexactError", "convert_source", "numbers_that_differ", "require_exact"]

RULE = "POL-18"


class InexactError(HarnessError):
    """What was written does not hold the codes and scale codes that were read, or does not lead back. Exit code 1."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A tensor as it was read, its recipe and codec with it, and as it is written."""

    read: Packed
    written: Packed
    data: bytes  #: the stream of `written`
    cleared: int  #: bytes of IN that are not those of `read`: bits that hold no code, bit 7 of a scale


def convert_source(
    source: Source,
    target: Dialect,
    *,
    store: str | None = None,
    padding: Strictness = "refuse",
    ue4m3_bit7: Strictness = "refuse",
) -> Conversion:
    """Read, convert, and check. QuantspecError for what a rule refuses; InexactError where the check finds a difference."""
    kept = {} if source.dialect.recipe is None else {"recipe": source.dialect.recipe, "codec": source.dialect.codec}
    read = from_bytes(
        source.data,
        source.scheme,
        source.shape,
        padding=padding,
        ue4m3_bit7=ue4m3_bit7,
        container=source.dialect.container,
        **kept,  # type: ignore[arg-type]
    )
    written = _converted(read, target.container, store)
    target.require(written.scheme)
    data = to_bytes(written)
    require_exact(read, written, data)
    clean = np.frombuffer(to_bytes(read), np.uint8)
    cleared = int(np.count_nonzero(clean != np.frombuffer(source.data, np.uint8)))
    return Conversion(read, written, data, cleared)


def _converted(read: Packed, container: Container, store: str | None) -> Packed:
    if store is None:
        return convert(read, container)
    return pack(repack(unpack(read), store), container=container)


def require_exact(read: Packed, written: Packed, data: bytes) -> None:
    """Read `data` as what it is said to be: the same codes and scale codes, and by the way back the bytes that were read.

    InexactError otherwise. Rule POL-18.
    """
    try:
        again = from_bytes(data, written.scheme, read.shape, container=written.container)
        own, other = unpack(read), unpack(again)
        back = to_bytes(pack(repack(other, read.scheme.store), container=read.container))
    except QuantspecError as error:
        raise InexactError(f"the converted bytes cannot be read again: {error}; nothing is written [{RULE}]") from None
    for name, before, after in (
        ("codes", own.codes, other.codes),
        ("scale_codes", own.scale_codes, other.scale_codes),
        ("tensor_scale_code", own.tensor_scale_code, other.tensor_scale_code),
    ):
        _require_same(name, before, after)
    _require_same("bytes of the way back", _array(to_bytes(read)), _array(back))


def _array(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _require_same(name: str, before: npt.NDArray[np.generic] | None, after: npt.NDArray[np.generic] | None) -> None:
    if before is None and after is None:
        return
    if before is None or after is None or before.shape != after.shape:
        raise InexactError(f"{name} have another shape after the conversion; nothing is written [{RULE}]")
    wrong = np.argwhere(before != after)
    if wrong.size or not np.array_equal(before, after):
        place = tuple(int(i) for i in wrong[0])
        raise InexactError(
            f"{len(wrong)} of {before.size} {name} differ after the conversion, first {list(place)}: "
            f"{before[place]!s} read, {after[place]!s} written; nothing is written [{RULE}]"
        )


def numbers_that_differ(made: Conversion, target: Dialect) -> int | None:
    """How many f32 numbers differ where the target's recipe and codec read the same codes; None where one is not known.

    Bytes are converted, never numbers: stacks give the same scale code another meaning, a reciprocal for example.
    """
    if target.recipe is None or target.codec is None:
        return None
    q = unpack(made.written)
    theirs = Quantized(q.scheme, q.codes, q.scale_codes, q.tensor_scale_code, target.recipe, codec=target.codec)
    ours, other = (quantspec.dequantize(one).view(np.uint32) for one in (q, theirs))
    return int(np.count_nonzero(ours != other))
