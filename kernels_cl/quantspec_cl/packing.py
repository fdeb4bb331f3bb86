"""Packing on a device: codes to words and back. Rules PAK-1 to PAK-8."""

from typing import Literal

import numpy as np

from quantspec import CANONICAL_CONTAINER, Container, EncodingError, Packed, Quantized, UnsupportedError
from quantspec.recipes import require_canonical
from quantspec.tensor import require_record

from .formats import INDEX
from .geometry import Lines, lines_of
from .host import CHUNK, DeviceArray, Machine
from .quantize import uploaded
from .tensors import DevicePacked, DeviceQuantized, adopted
from .values import check_codes

__all__ = ["Strictness", "clean", "pack", "require_readable", "require_strictness", "unpack", "uploaded_words"]

Strictness = Literal["refuse", "ignore"]


def pack(
    machine: Machine,
    tensor: Quantized | DeviceQuantized,
    container: Container = CANONICAL_CONTAINER,
    out: DeviceArray | None = None,
) -> DevicePacked:
    """Codes in words, scales unchanged. As `quantspec.pack`."""
    quantized = uploaded(machine, tensor)
    scheme, codes = quantized.scheme, quantized.codes
    if isinstance(tensor, Quantized):
        check_codes(codes, scheme.value, lookup=scheme.is_lookup)
    require_canonical(recipe=quantized.recipe, container=container)
    lines = lines_of(scheme, codes.shape)
    words = machine.empty(lines.words_shape, scheme.store.word_dtype(scheme.value.bits), out)
    machine.launch(
        "pack",
        words.size,
        *(machine.formats, INDEX[scheme.value.name], codes, words, lines.word_size, lines.width, lines.fields),
        *(machine.constant(lines.walk), lines.length, lines.step, lines.words, words.size),
    )
    return DevicePacked(
        *(scheme, codes.shape, words, quantized.scale_codes, quantized.tensor_scale_code, quantized.recipe, container),
        *(quantized.saturated, quantized.tensor_saturated),
    )


def unpack(
    machine: Machine, packed: Packed | DevicePacked, padding: Strictness = "refuse", out: DeviceArray | None = None
) -> DeviceQuantized:
    """The inverse of `pack`; non-zero padding is refused or ignored. As `quantspec.unpack`."""
    own = uploaded_words(machine, packed, argument="packed")
    require_strictness(padding)
    scheme = own.scheme
    lines = lines_of(scheme, own.shape)
    if padding == "refuse":
        _require_clean(own.words, lines)
    codes = machine.empty(own.shape, np.uint8, out)
    machine.launch(
        "unpack",
        own.words.size,
        *(machine.formats, INDEX[scheme.value.name], int(scheme.is_lookup), own.words),
        *(lines.word_size, lines.width, lines.fields, codes),
        *(machine.constant(lines.walk), lines.length, lines.step, lines.words, own.words.size),
    )
    if lines.width != scheme.value.bits:
        check_codes(codes, scheme.value, lookup=scheme.is_lookup)  # a field of fewer bits is always a code
    return DeviceQuantized(scheme, codes, own.scale_codes, own.tensor_scale_code, own.recipe)


def require_readable(machine: Machine, packed: DevicePacked, padding: Strictness = "refuse") -> None:
    """Refuse the words that `unpack` refuses. Rules PAK-7, PAK-8, VAL-5."""
    require_strictness(padding)
    scheme, lines = packed.scheme, lines_of(packed.scheme, packed.shape)
    if padding == "refuse":
        _require_clean(packed.words, lines)
    if lines.width != scheme.value.bits:  # a word is a code, in tensor order: a native store exchanges no axes
        check_codes(packed.words.reshaped(packed.shape), scheme.value, lookup=scheme.is_lookup)


def clean(machine: Machine, packed: DevicePacked, padding: Strictness = "refuse") -> DevicePacked:
    """Words in which every bit that holds no code is 0: refused, or cleared where `padding="ignore"`. Rules PAK-7, PAK-8.

    Native bytes that are no codes are refused either way (VAL-5).
    """
    require_strictness(padding)
    scheme, lines = packed.scheme, lines_of(packed.scheme, packed.shape)
    if padding == "ignore" and not _is_full(lines):
        return pack(machine, unpack(machine, packed, padding), packed.container)
    _require_clean(packed.words, lines)
    if lines.width != scheme.value.bits:  # a word is a code, in tensor order: a native store exchanges no axes
        check_codes(packed.words.reshaped(packed.shape), scheme.value, lookup=scheme.is_lookup)
    return packed


def require_strictness(padding: Strictness) -> None:
    """Refuse what says neither "refuse" nor "ignore". Rule PAK-8."""
    if padding not in ("refuse", "ignore"):
        raise UnsupportedError("PAK-8", f"padding={padding!r}; allowed: 'refuse', 'ignore'")


def _is_full(lines: Lines) -> bool:
    """True where every bit of every word holds a code."""
    return lines.padding == 0 and lines.fields * lines.width == 8 * lines.word_size


def _is_dirty(words: DeviceArray, lines: Lines) -> bool:
    """True where a bit that holds no code is not zero: one pass at the memory's speed, since most words are clean."""
    machine = words.machine
    if words.size == 0:
        return False
    dirty = machine.upload(np.zeros(1, np.uint32))
    unused = (1 << 8 * lines.word_size) - (1 << lines.fields * lines.width)
    if unused:
        machine.launch("any_unused_bit", -(-words.size // CHUNK), words, unused, dirty, words.size, CHUNK)
    if lines.padding:
        head = (words, lines.word_size, lines.width, lines.fields, lines.length, lines.words)
        machine.launch("any_dirty_end", lines.count, *head, dirty, lines.count)
    return machine.element(dirty, 0) != 0


def _require_clean(words: DeviceArray, lines: Lines) -> None:
    """Refuse bits that hold no code and are not zero, with byte offset, line and field. Rule PAK-7."""
    machine = words.machine
    head = (words, lines.word_size, lines.width, lines.fields, lines.length, lines.words)
    if _is_full(lines) or not _is_dirty(words, lines):
        return
    first = machine.search("first_dirty_word", words.size, *head)
    if first is None:
        return
    lowest = machine.empty((), np.uint32)
    machine.launch("lowest_dirty_bit", 1, *head, first, lowest)
    bit = machine.element(lowest, 0)
    line, place = divmod(first, lines.words)
    raise EncodingError(
        "PAK-7",
        f"byte {first * lines.word_bytes + bit // 8}: line {line}, word {place} of the line, field {bit // lines.width} of the "
        "word: bits that hold no code are not 0 (padding='ignore' reads them anyway)",
    )


def uploaded_words(machine: Machine, packed: Packed | DevicePacked, *, argument: str = "tensor") -> DevicePacked:
    """A packed tensor of this session; an array or bytes in its place is refused. Rule QNT-12."""
    if isinstance(packed, DevicePacked):
        return adopted(machine, packed)
    require_record(packed, Packed, argument=argument)
    return DevicePacked(
        packed.scheme,
        packed.shape,
        machine.upload(packed.words),
        None if packed.scale_codes is None else machine.upload(packed.scale_codes),
        None if packed.tensor_scale_code is None else machine.upload(packed.tensor_scale_code),
        packed.recipe,
        packed.container,
    )
