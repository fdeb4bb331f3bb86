"""The host's side of a device: context, queue, buffers, launches. It moves and measures memory; it computes no value."""

import math
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from quantspec import Table, UnsupportedError

from .device import DeviceInfo, find_device
from .errors import NoDeviceError
from .formats import format_rows
from .geometry import Shape
from .paths import Path, PathChoice
from .program import GENERIC, Program, build

__all__ = ["CHUNK", "DeviceArray", "Lookup", "Machine", "open_machine"]

CHUNK = 512  #: elements that one work-item of a search or a fold looks at
NOWHERE = 2**64 - 1
LOCAL_SIZE = 64  #: one size for every launch: PoCL compiles a kernel anew for each
POISON = np.array([0xA5], np.uint8)
SMALL = np.full(2**16, POISON)  #: poison for a small array
MOST_CONSTANTS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """A C-ordered array in a device's memory; its session is the one whose verb returned it."""

    machine: "Machine"
    buffer: cl.Buffer
    shape: Shape
    dtype: np.dtype[Any]
    path: Path | None = None  #: which kernels wrote it, where there was a choice

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes."""
        return self.size * self.dtype.itemsize

    def get(self) -> npt.NDArray[Any]:
        """A copy in the host's memory; waits for the kernels that write it."""
        return self.machine.read(self)

    def reshaped(self, shape: Shape) -> "DeviceArray":
        """The same memory under another shape of as many elements."""
        return DeviceArray(self.machine, self.buffer, shape, self.dtype, self.path)

    def written_by(self, path: Path) -> "DeviceArray":
        """The same memory, with the path that wrote it."""
        return DeviceArray(self.machine, self.buffer, self.shape, self.dtype, path)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A lookup table as the kernels take it: patterns of the entries, thresholds, indices."""

    buffer: cl.Buffer
    entries: int
    thresholds: int

    @property
    def arguments(self) -> tuple[cl.Buffer, int, int]:
        """The three arguments of a kernel that may look a table up."""
        return self.buffer, self.entries, self.thresholds


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Machine:
    """A device with its programs built. Every buffer comes from here, poisoned if asked, and every launch goes through here.

    Threads may share it: an OpenCL kernel object holds its arguments until it is enqueued, so a lock holds both together,
    and the caches too.
    """

    info: DeviceInfo
    context: cl.Context
    queue: cl.CommandQueue
    kernels: Mapping[str, cl.Kernel]
    local_size: int
    poison: bool
    formats: cl.Buffer
    options: tuple[str, ...] = ()  #: of the compiler, for every program
    choice: PathChoice = "auto"
    constants: dict[Shape, cl.Buffer] = field(default_factory=dict)
    tables: dict[Table, "Lookup"] = field(default_factory=dict)
    programs: dict[Program, Mapping[str, cl.Kernel]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __repr__(self) -> str:
        return f"<{self.info.index} {self.info.platform} / {self.info.name}>"

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike) -> DeviceArray:
        """An array that a kernel is going to write; CNF-3: poisoned first, if the session was opened so."""
        plain = np.dtype(dtype)
        size = self._allowed(math.prod(shape) * plain.itemsize)
        if self.poison and size <= SMALL.size:  # made poisoned: a fill would be one more launch
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            return DeviceArray(self, cl.Buffer(self.context, flags, hostbuf=SMALL[:size]), tuple(shape), plain)
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)
        if self.poison:
            cl.enqueue_fill_buffer(self.queue, buffer, POISON, 0, size)
        return DeviceArray(self, buffer, tuple(shape), plain)

    def _allowed(self, size: int) -> int:
        """Bytes of a buffer: at least one, since OpenCL has none of no bytes, and no more than the device takes. CNF-5."""
        if size > self.info.max_allocation:
            raise UnsupportedError(
                "CNF-5",
                f"an array of {size} bytes is more than {self.info.name} allocates; allowed: {self.info.max_allocation}",
            )
        return max(size, 1)

    def upload(self, array: npt.NDArray[Any]) -> DeviceArray:
        """A host array of any strides and byte order, its bits unchanged, in this host's byte order."""
        plain = np.ascontiguousarray(_patterns(array))
        dtype = array.dtype.newbyteorder("=")
        if plain.size == 0:
            return self.empty(array.shape, dtype)
        self._allowed(plain.nbytes)
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=plain)
        return DeviceArray(self, buffer, array.shape, dtype)

    def read(self, array: DeviceArray) -> npt.NDArray[Any]:
        """The host's copy of a device array."""
        host = np.empty(array.shape, array.dtype)
        if host.size:
            cl.enqueue_copy(self.queue, host.reshape(-1).view(np.uint8), array.buffer)
        return host

    def element(self, array: DeviceArray, index: int) -> int:
        """The pattern of one element, by its flat index."""
        host = np.empty(1, f"u{array.dtype.itemsize}")
        cl.enqueue_copy(self.queue, host.view(np.uint8), array.buffer, src_offset=index * array.dtype.itemsize)
        return int(host[0])

    def constant(self, numbers: Shape) -> cl.Buffer:
        """A buffer of 64-bit numbers that kernels only read, kept for the next call with the same geometry."""
        with self.lock:
            buffer = self.constants.get(numbers)
            if buffer is None:
                if len(self.constants) >= MOST_CONSTANTS:
                    self.constants.clear()
                buffer = self._fixed(np.array(numbers, np.uint64))
                self.constants[numbers] = buffer
            return buffer

    def lookup(self, table: Table | None) -> "Lookup":
        """A lookup table in the device's memory, kept for the next call; without a table, one of no entries."""
        if table is None:
            return Lookup(self.formats, 0, 0)
        with self.lock:
            found = self.tables.get(table)
            if found is None:
                numbers = [
                    np.array(table.bits, np.uint32).view(np.int32),
                    table.thresholds,
                    table.indices.astype(np.int32),
                ]
                if len(self.tables) >= MOST_CONSTANTS:
                    self.tables.clear()
                found = Lookup(self._fixed(np.concatenate(numbers)), len(table.bits), table.thresholds.size)
                self.tables[table] = found
            return found

    def _fixed(self, host: npt.NDArray[Any]) -> cl.Buffer:
        return cl.Buffer(self.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=host)

    def launch(self, name: str, items: int, *arguments: "DeviceArray | cl.Buffer | int") -> None:
        """Run a kernel over `items` work-items, one more work-group's worth at most; none for an empty tensor."""
        if items == 0:
            return
        size = -(-items // self.local_size) * self.local_size
        self._enqueue(self.kernels[name], (size,), (self.local_size,), arguments)

    def run(
        self,
        program: Program,
        name: str,
        sizes: Sequence[int],
        *arguments: "DeviceArray | cl.Buffer | int",
        local: Sequence[int] | None = None,
    ) -> None:
        """Run a kernel of a specialised program over exactly `sizes` work-items; none where one of them is 0.

        `local` is the work-group, whose sizes divide those; None leaves it to the runtime.
        """
        if 0 not in sizes:
            self._enqueue(self.built(program)[name], tuple(sizes), None if local is None else tuple(local), arguments)

    def built(self, program: Program) -> Mapping[str, cl.Kernel]:
        """The kernels of a specialised program, built at its first use. Raises BuildError."""
        with self.lock:
            found = self.programs.get(program)
            if found is None:
                found = build(self.context, program.source, (*program.definitions, *self.options))
                self.programs[program] = found
            return found

    def _enqueue(
        self,
        kernel: cl.Kernel,
        sizes: Shape,
        local: Shape | None,
        arguments: Sequence["DeviceArray | cl.Buffer | int"],
    ) -> None:
        plain = [each.buffer if isinstance(each, DeviceArray) else each for each in arguments]
        with self.lock:
            kernel(self.queue, sizes, local, *plain)

    def search(self, name: str, items: int, *arguments: "DeviceArray | cl.Buffer | int") -> int | None:
        """The first index, of `items`, where a kernel of the kind FIRST_WHERE finds what it looks for."""
        if items == 0:
            return None
        firsts = self.empty((-(-items // CHUNK),), np.uint64)
        self.launch(name, firsts.size, *arguments, firsts, items, CHUNK)
        first = self.element(self.fold("fold_first", firsts), 0)
        return None if first == NOWHERE else first

    def fold(self, name: str, array: DeviceArray) -> DeviceArray:
        """One number of many: a row of chunks at a time, until one is left."""
        while array.size > 1:
            folded = self.empty((-(-array.size // CHUNK),), array.dtype)
            self.launch(name, folded.size, array, folded, array.size, CHUNK)
            array = folded
        return array

    def finish(self) -> None:
        """Wait for everything launched so far."""
        self.queue.finish()


def _patterns(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array's bits as unsigned integers in this host's byte order, so that no conversion can touch a number."""
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    if array.dtype.isnative:
        return array.view(unsigned)
    return array.view(unsigned.newbyteorder("S")).astype(unsigned)


def open_machine(
    spec: str | None,
    options: Sequence[str],
    poison: bool,
    *,
    source: str | None = None,
    choice: PathChoice = "auto",
) -> Machine:
    """Context, queue, built kernels and the tables of a device. Raises NoDeviceError, BuildError.

    `source` is for tests that spoil the kernels' text to see that the spoiled rule is noticed.
    """
    info, device = find_device(spec)
    if not info.little_endian or sys.byteorder != "little":
        raise NoDeviceError(
            f"device {info.index} {info.name!r} or this host is big-endian; the two exchange little-endian arrays"
        )
    if not info.int64:
        raise NoDeviceError(f"device {info.index} {info.name!r} has no 64-bit integers; indices need them")
    context = cl.Context([device])
    rows = format_rows()
    formats = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=rows.view(np.uint32))
    return Machine(
        info=info,
        context=context,
        queue=cl.CommandQueue(context),
        kernels=build(context, source or GENERIC.source, options),
        local_size=min(LOCAL_SIZE, info.max_work_group),
        poison=poison,
        formats=formats,
        options=tuple(options),
        choice=choice,
    )
