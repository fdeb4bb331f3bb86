"""Where a session works: its device, context and queue, what its verbs wait for, and memory that it shares with others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy.typing as npt
import pyopencl as cl

from quantspec import Packed, Quantized

from .arrays import DeviceArray
from .device import DeviceInfo
from .errors import ForeignArrayError
from .host import Machine
from .memory import borrowed, wrapped
from .opening import context_of, require_queue
from .packing import uploaded_words
from .quantize import uploaded
from .tensors import DevicePacked, DeviceQuantized

__all__ = ["Place"]


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A device with its programs built, and an in-order queue: every verb tells the queue what to do and returns.

    Only refusals that depend on data, `.get()`, and what says so wait. Threads may share a session; what each of them tells
    the queue is done in the order in which it was told.
    """

    machine: Machine
    build_options: tuple[str, ...] = ()

    @property
    def info(self) -> DeviceInfo:
        """What the device is and promises."""
        return self.machine.info

    @property
    def context(self) -> cl.Context:
        """The OpenCL context, for arrays of one's own."""
        return self.machine.context

    @property
    def queue(self) -> cl.CommandQueue:
        """The in-order queue that every verb uses."""
        return self.machine.queue

    def on(self, queue: cl.CommandQueue) -> Self:
        """This session on another in-order queue of its context and device; the programs are shared.

        Arrays and tensors made on one queue may be used on the other: the device waits for what wrote them. Memory given as
        `out=` is the caller's to guard: `wait_for` what still reads it. Raises DeviceError, ForeignArrayError.
        """
        require_queue(queue)
        if context_of(queue) != self.context or queue.device != self.queue.device:
            raise ForeignArrayError(
                "the queue is of another context or device; open_queue(queue) opens a session on it"
            )
        return replace(self, machine=self.machine.on(queue))

    def wait_for(self, events: Iterable[cl.Event]) -> None:
        """What verbs launch from now on waits, on the device, for these events."""
        listed = list(events)
        if listed:
            cl.enqueue_barrier(self.queue, wait_for=listed)

    def marker(self) -> cl.Event:
        """An event that is complete when everything launched so far is."""
        event = cl.enqueue_marker(self.queue)
        self.queue.flush()
        return event

    def finish(self) -> None:
        """Wait for everything launched so far."""
        self.machine.finish()

    def wrap(self, buffer: cl.Buffer, shape: Sequence[int], dtype: npt.DTypeLike, *, offset: int = 0) -> DeviceArray:
        """A buffer of one's own, from a byte on, as an array: as input, or to be written as `out=`. Nothing is copied.

        `offset` is a multiple of the device's alignment (128 bytes on most). Raises ForeignArrayError, ShapeError.
        """
        return wrapped(self.machine, buffer, shape, dtype, offset)

    def borrow(self, array: npt.NDArray[Any]) -> DeviceArray:
        """A numpy array's memory in place, on CPU devices: read only, and not to be changed before `finish()`.

        It starts at a multiple of the device's alignment, as `aligned_empty` and `np.memmap` give it: else a runtime would
        copy it unasked. The memory is kept until the queue no longer reads it. Raises ForeignArrayError.
        """
        return borrowed(self.machine, array)

    def put(self, tensor: Quantized) -> DeviceQuantized:
        """A record's arrays in the device's memory; the record checked them."""
        return uploaded(self.machine, tensor)

    def put_packed(self, tensor: Packed) -> DevicePacked:
        """A packed record's arrays in the device's memory; the record checked them."""
        return uploaded_words(self.machine, tensor)
