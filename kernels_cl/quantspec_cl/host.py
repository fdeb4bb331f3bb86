"""The host's side of a device: context, queue, buffers, launches. It moves and measures memory; it computes no value."""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from quantspec import Table, UnsupportedError

from .arrays import DeviceArray, patterns_of
from .device import DeviceInfo
from .errors import ForeignArrayError
from .geometry import Shape
from .paths import PathChoice
from .program import Program, build

__all__ = ["CHUNK", "DeviceArray", "Lookup", "Machine"]

CHUNK = 512  #: elements that one work-item of a search or a fold looks at
NOWHERE = 2**64 - 1
LOCAL_SIZE = 64  #: one size for every launch: PoCL compiles a kernel anew for each
POISON = np.array([0xA5], np.uint8)
SMALL = np.full(2**16, POISON)  #: poison for a small array
MOST_CONSTANTS = 4096


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
    measured: dict[str, object] = field(default_factory=dict)  #: what was found out about the device, by whom
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __repr__(self) -> str:
        return f"<{self.info.index} {self.info.platform} / {self.info.name}>"

    def on(self, queue: cl.CommandQueue) -> "Machine":
        """The same programs, tables and lock on another queue of the same context."""
        return replace(self, queue=queue)

    def adopt(self, array: DeviceArray) -> DeviceArray:
        """An array of this context as this queue's: what follows here waits for what its own queue was told so far."""
        if array.machine is self:
            return array
        if array.machine.context != self.context:
            raise ForeignArrayError("the array belongs to another session; pass its .get()")
        self.follow(array.machine.queue)
        if array.owner is not None:
            array.owner.queues.append(self.queue)
        return replace(array, machine=self)

    def follow(self, queue: cl.CommandQueue) -> None:
        """What this queue is told from now on waits for what another was told so far; the host waits for neither."""
        if queue != self.queue:
            done = cl.enqueue_marker(queue)
            queue.flush()
            cl.enqueue_barrier(self.queue, wait_for=[done])

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike, out: DeviceArray | None = None) -> DeviceArray:
        """An array that a kernel is going to write, or `out`; CNF-3: poisoned first, if the session was opened so."""
        plain = np.dtype(dtype)
        if out is not None:
            return self._fitting(out, tuple(shape), plain)
        size = self._allowed(math.prod(shape) * plain.itemsize)
        if self.poison and size <= SMALL.size:  # made poisoned: a fill would be one more launch
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            return DeviceArray(self, cl.Buffer(self.context, flags, hostbuf=SMALL[:size]), tuple(shape), plain)
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)
        if self.poison:
            cl.enqueue_fill_buffer(self.queue, buffer, POISON, 0, size)
        return DeviceArray(self, buffer, tuple(shape), plain)

    def _fitting(self, out: DeviceArray, shape: Shape, dtype: np.dtype[Any]) -> DeviceArray:
        if (out.shape, out.dtype) != (shape, dtype):
            raise ForeignArrayError(
                f"out is {out.dtype} of shape {out.shape}; allowed here: exactly {dtype} of shape {shape}"
            )
        if self.poison and out.nbytes:
            cl.enqueue_fill_buffer(self.queue, out.buffer, POISON, 0, out.nbytes)
        return out

    def _allowed(self, size: int) -> int:
        """Bytes of a buffer: at least one, since OpenCL has none of no bytes, and no more than the device takes. CNF-5."""
        if size > self.info.max_allocation:
            raise UnsupportedError(
                "CNF-5",
                f"an array of {size} bytes is more than {self.info.name} allocates; allowed: {self.info.max_allocation} "
                "(session.stream() takes larger host arrays in parts)",
            )
        return max(size, 1)

    def upload(self, array: npt.NDArray[Any]) -> DeviceArray:
        """A host array of any strides and byte order, its bits unchanged, in this host's byte order."""
        plain = np.ascontiguousarray(patterns_of(array))
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

    def launch(
        self, name: str, items: int, *arguments: "DeviceArray | cl.Buffer | int", program: Program | None = None
    ) -> None:
        """Run a kernel over `items` work-items, one more work-group's worth at most; none for an empty tensor.

        The kernel is the generic program's, or that of the program named.
        """
        if items:
            kernels = self.kernels if program is None else self.built(program)
            self._enqueue(kernels[name], self.items(items), (self.local_size,), arguments)

    def items(self, count: int) -> Shape:
        """Whole work-groups of `count` work-items."""
        return (-(-count // self.local_size) * self.local_size,)

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
                found = build(self.context, program.source, (*program.definitions, *self.options), self.queue.device)
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

    def search(
        self, name: str, items: int, *arguments: "DeviceArray | cl.Buffer | int", program: Program | None = None
    ) -> int | None:
        """The first index, of `items`, where a kernel of the kind FIRST_WHERE finds what it looks for."""
        if items == 0:
            return None
        firsts = self.empty((-(-items // CHUNK),), np.uint64)
        self.launch(name, firsts.size, *arguments, firsts, items, CHUNK, program=program)
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
