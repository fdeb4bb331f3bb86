"""Values on a device: encode and decode. Rules VAL-1 to VAL-13, QNT-7, QNT-8."""

import numpy as np
import numpy.typing as npt

from quantspec import CANONICAL_CODEC, Codec, EncodingError, Table, ValueFormat
from quantspec.codecs import require_codec
from quantspec.values import table_for, value_format

from . import values_fast
from .codecs import POLICIES, codec_numbers, covered, is_plain, reads_plainly
from .formats import INDEX
from .host import DeviceArray, Machine
from .inputs import ArrayInput, take_code_bytes, take_numbers
from .paths import Path

__all__ = ["check_codes", "decode", "encode"]

TableInput = Table | npt.ArrayLike | None


def encode(
    machine: Machine,
    x: ArrayInput,
    value: str | ValueFormat,
    table: TableInput = None,
    codec: Codec | str = CANONICAL_CODEC,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Codes of numbers, uint8 of x's shape. As `quantspec.encode`."""
    row = value_format(value)
    codec = Codec.of(codec)
    entries = None if table is None else table_for(table, row)
    lookup = machine.lookup(entries)
    numbers, indexed = take_numbers(machine, x), table is not None
    covered(codec, row, lookup=indexed)
    codes = machine.empty(numbers.array.shape, np.uint8, out)
    head = (machine.formats, numbers.row, INDEX[row.name], *lookup.arguments)
    if not is_plain(codec, lookup=indexed):
        policy = codec_numbers(machine, codec, row, lookup=indexed)
        machine.launch("encode_codes", codes.size, *head, policy, numbers.array, codes, codes.size, program=POLICIES)
        return codes
    done = values_fast.encoded(numbers, row, entries, codes)
    if not isinstance(done, Path):
        return done
    machine.launch("encode", codes.size, *head, numbers.array, codes, codes.size)
    return codes.written_by(done)


def decode(
    machine: Machine,
    codes: ArrayInput,
    value: str | ValueFormat,
    table: TableInput = None,
    codec: Codec | str = CANONICAL_CODEC,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Numbers of codes, f32 of their shape. As `quantspec.decode`."""
    row = value_format(value)
    codec = Codec.of(codec)
    entries = None if table is None else table_for(table, row)
    require_codec(codec, row, lookup=entries is not None)
    taken = take_code_bytes(machine, codes, row)
    check_codes(taken, row, lookup=entries is not None)
    y = machine.empty(taken.shape, np.float32, out)
    head = (machine.formats, INDEX[row.name], *machine.lookup(entries).arguments)
    if not reads_plainly(codec):
        policy = codec_numbers(machine, codec, row, lookup=entries is not None)
        machine.launch("decode_codes", y.size, *head[:-1], policy, taken, y, y.size, program=POLICIES)
        return y
    done = values_fast.decoded(taken, row, entries, y)
    if not isinstance(done, Path):
        return done
    machine.launch("decode", y.size, *head, taken, y, y.size)
    return y.written_by(done)


def check_codes(codes: DeviceArray, value: ValueFormat, *, lookup: bool, argument: str = "codes") -> None:
    """Refuse a byte that is not the extension of its own field; one of eight bits always is. Rule VAL-5."""
    machine = codes.machine
    if value.mask == 0xFF:
        return
    first = machine.search("first_wrong_code", codes.size, machine.formats, INDEX[value.name], int(lookup), codes)
    if first is None:
        return
    index = [int(i) for i in np.unravel_index(first, codes.shape)]
    kind = "zero" if lookup or not value.is_integer else "sign"
    raise EncodingError(
        "VAL-5",
        f"{argument}{index} is the byte 0x{machine.element(codes, first):02X}, which is not a {value.bits}-bit code of "
        f"{value.name} {kind}-extended to a byte",
    )
