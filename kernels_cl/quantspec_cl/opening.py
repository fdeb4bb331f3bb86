"""Opening: a device by its name, or a context and queue of the caller's own, as a machine with its programs built."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import pyopencl as cl

from .device import DeviceInfo, describe_device, find_device
from .errors import DeviceError, NoDeviceError
from .formats import format_rows
from .host import LOCAL_SIZE, Machine
from .paths import PathChoice
from .program import GENERIC, build

__all__ = ["context_of", "machine_on", "open_machine", "require_queue"]


def open_machine(
    spec: str | None,
    options: Sequence[str],
    poison: bool,
    *,
    source: str | None = None,
    choice: PathChoice = "auto",
    max_allocation: int | None = None,
    lanes: int | None = None,
) -> Machine:
    """Context, queue, built kernels and the tables of a device. Raises NoDeviceError, BuildError, DeviceError.

    For tests: `source`, the kernels' text, spoiled to see that the spoiled rule is noticed; `lanes`, of the fast kernels'
    vectors, as another device would have them.
    """
    info, device = find_device(spec)
    _require_usable(info)
    info = info if lanes is None else replace(info, lanes=lanes)
    context = cl.Context([device])  # named: Intel's queues do not keep theirs alive
    queue = cl.CommandQueue(context)
    return machine_on(queue, options, poison, source=source, choice=choice, max_allocation=max_allocation, info=info)


def machine_on(
    queue: cl.CommandQueue,
    options: Sequence[str],
    poison: bool,
    *,
    source: str | None = None,
    choice: PathChoice = "auto",
    max_allocation: int | None = None,
    info: DeviceInfo | None = None,
) -> Machine:
    """Built kernels and the tables on a queue. Raises DeviceError, NoDeviceError, BuildError."""
    if choice not in get_args(PathChoice):
        raise DeviceError(f"path={choice!r}; allowed: {', '.join(map(repr, get_args(PathChoice)))}")
    require_queue(queue)
    if info is None:
        info = describe_device(queue.device)
        _require_usable(info)
    context = context_of(queue)
    rows = format_rows()
    formats = cl.Buffer(context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=rows.view(np.uint32))
    return Machine(
        info=_limited(info, max_allocation),
        context=context,
        queue=queue,
        kernels=build(context, source or GENERIC.source, options, queue.device),
        local_size=min(LOCAL_SIZE, info.max_work_group),
        poison=poison,
        formats=formats,
        options=tuple(options),
        choice=choice,
    )


def require_queue(queue: cl.CommandQueue) -> None:
    """Refuse what runs commands in another order than it was given them."""
    if not isinstance(queue, cl.CommandQueue):
        raise DeviceError(f"queue is a {type(queue).__name__}; allowed: a pyopencl.CommandQueue")
    if queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        raise DeviceError(
            "the queue runs its commands out of order; allowed: an in-order queue of the same context "
            "(cl.CommandQueue(context, device)), with session.wait_for(events) before and session.marker() after"
        )


def context_of(queue: cl.CommandQueue) -> cl.Context:
    """The context of a queue, kept alive from here on. Raises DeviceError where it is gone already: Intel's queues let it go."""
    try:
        return queue.context
    except cl.Error as error:
        raise DeviceError(f"the queue's context is gone ({error}); keep the cl.Context as long as the queue") from error


def _require_usable(info: DeviceInfo) -> None:
    if not info.little_endian or sys.byteorder != "little":
        raise NoDeviceError(
            f"device {info.index} {info.name!r} or this host is big-endian; the two exchange little-endian arrays"
        )
    if not info.int64:
        raise NoDeviceError(f"device {info.index} {info.name!r} has no 64-bit integers; indices need them")


def _limited(info: DeviceInfo, most: int | None) -> DeviceInfo:
    """The device with its largest allocation taken for no more than `most` bytes."""
    if most is None:
        return info
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise DeviceError(f"max_allocation={most!r}; allowed: a number of bytes, 1 or more")
    return replace(info, max_allocation=min(info.max_allocation, most))
