"""Packing on a device: codes to words and back. Rules PAK-1 to PAK-8, POL-14, POL-15, POL-18."""

from typing import Literal

import numpy as np

from quantspec import CANONICAL_CONTAINER, Container, EncodingError, Packed, Quantized, UnsupportedError
from quantspec.tensor import require_record

from .containers import CONTAINERS, box_of
from .formats import INDEX
from .geometry import Lines, lines_of
from .host import CHUNK, DeviceArray, Machine
from .quantize import uploaded
from .tensors import DevicePacked, DeviceQuantized, adopted
from .values import check_codes

__all__ = [
    "Strictness",
    "clean",
    "convert",
    "pack",
    "require_readable",
    "require_strictness",
    "unpack",
    "uploaded_words",
]

Strictness = Literal["refuse", "ignore"]


def pack(
    machine: Machine,
    tensor: Quantized | DeviceQuantized,
    container: Container | str = CANONICAL_CONTAINER,
    out: DeviceArray | None = None,
) -> DevicePacked:
    """Codes in words, scales unchanged. As `quantspec.pack`."""
    quantized = uploaded(machine, tensor)
    container = Container.of(container)
    scheme, codes = quantized.scheme, quantized.codes
    if isinstance(tensor, Quantized):
        check_codes(codes, scheme.value, lookup=scheme.is_lookup)
    if container != CANONICAL_CONTAINER:
        return _record(quantized, _packed_by(machine, quantized, container, out), container)
    lines = lines_of(scheme, codes.shape)
    words = machine.empty(lines.words_shape, scheme.store.word_dtype(scheme.value.bits), out)
    machine.launch(
        "pack",
        words.size,
        *(machine.formats, INDEX[scheme.value.name], codes, words, lines.word_size, lines.width, lines.fields),
        *(machine.constant(lines.walk), lines.length, lines.step, lines.words, words.size),
    )
    return _record(quantized, words, container)


def _record(quantized: DeviceQuantized, words: DeviceArray, container: Container) -> DevicePacked:
    return DevicePacked(
        *(quantized.scheme, quantized.shape, words, quantized.scale_codes, quantized.tensor_scale_code),
        *(quantized.recipe, container, quantized.saturated, quantized.tensor_saturated, quantized.codec),
    )


def _packed_by(
    machine: Machine, quantized: DeviceQuantized, container: Container, out: DeviceArray | None = None
) -> DeviceArray:
    """Words of a container that is not canonical. Rules POL-14, POL-15."""
    scheme, box = quantized.scheme, box_of(container, quantized.scheme, quantized.shape)
    lines, words = box.lines, machine.empty(box.words_shape, scheme.store.word_dtype(scheme.value.bits), out)
    walks = (machine.constant(lines.walk), machine.constant(box.order))
    head = (quantized.codes, words, lines.word_size, machine.constant(box.numbers), *walks)
    tail = (lines.length, lines.step, lines.words, words.size)
    machine.launch("pack_by", words.size, *head, *tail, program=CONTAINERS)
    return words


def _unpacked_by(
    machine: Machine, own: DevicePacked, padding: Strictness, out: DeviceArray | None = None
) -> DeviceQuantized:
    """Codes of the words of a container that is not canonical. Rules POL-14, POL-15, PAK-7."""
    scheme, box = own.scheme, box_of(own.container, own.scheme, own.shape)
    lines, codes = box.lines, machine.empty(own.shape, np.uint8, out)
    walks = (machine.constant(lines.walk), machine.constant(box.order))
    head = (machine.formats, INDEX[scheme.value.name], int(scheme.is_lookup), own.words, lines.word_size)
    tail = (lines.length, lines.step, lines.words, codes.size)
    machine.launch(
        "unpack_by", codes.size, *head, machine.constant(box.numbers), *walks, codes, *tail, program=CONTAINERS
    )
    if lines.width != scheme.value.bits:
        check_codes(codes, scheme.value, lookup=scheme.is_lookup)
    levels = own.scale_codes, own.tensor_scale_code
    made = DeviceQuantized(scheme, codes, *levels, own.recipe, codec=own.codec)
    if padding == "refuse" and own.container.padding == "refuse":
        _require_same(machine, own, _packed_by(machine, made, own.container), lines.word_size)
    return made


def _require_same(machine: Machine, own: DevicePacked, clean: DeviceArray, size: int) -> None:
    """Refuse words with bits that hold no code and are not 0. Rule PAK-7."""
    words = own.words
    first = machine.search("first_other_word", words.size, words, clean, size, program=CONTAINERS)
    if first is not None:
        index = [int(i) for i in np.unravel_index(first, words.shape)]
        raise EncodingError(
            "PAK-7",
            f"words{index} is 0x{machine.element(words, first):X}, its codes give 0x{machine.element(clean, first):X} in "
            f"container {own.container.name!r}: bits that hold no code are not 0 (padding='ignore' reads them anyway)",
        )


def convert(machine: Machine, packed: Packed | DevicePacked, container: Container | str) -> DevicePacked:
    """The same codes and scales in another container. As `quantspec.convert`. Rule POL-18."""
    own = uploaded_words(machine, packed, argument="packed")
    return pack(machine, unpack(machine, own), container)


def unpack(
    machine: Machine, packed: Packed | DevicePacked, padding: Strictness = "refuse", out: DeviceArray | None = None
) -> DeviceQuantized:
    """The inverse of `pack`; non-zero padding is refused or ignored. As `quantspec.unpack`."""
    own = uploaded_words(machine, packed, argument="packed")
    require_strictness(padding)
    scheme = own.scheme
    if own.container != CANONICAL_CONTAINER:
        return _unpacked_by(machine, own, padding, out)
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
    return DeviceQuantized(scheme, codes, own.scale_codes, own.tensor_scale_code, own.recipe, codec=own.codec)


def require_readable(machine: Machine, packed: DevicePacked, padding: Strictness = "refuse") -> None:
    """Refuse the words that `unpack` refuses. Rules PAK-7, PAK-8, VAL-5."""
    require_strictness(padding)
    if packed.container != CANONICAL_CONTAINER:
        _unpacked_by(machine, packed, padding)
        return
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
    if packed.container != CANONICAL_CONTAINER:
        codes = _unpacked_by(machine, packed, padding)
        kept = padding == "refuse" and packed.container.padding == "refuse"
        return packed if kept else pack(machine, codes, packed.container)
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
        codec=packed.codec,
    )
