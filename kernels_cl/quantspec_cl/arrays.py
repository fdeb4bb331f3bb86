"""Arrays in a device's memory, and the ways out of it: a copy, a pyopencl array, DLPack."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import pyopencl.array as cl_array

from . import dlpack
from .geometry import Shape
from .paths import Path

if TYPE_CHECKING:
    from .host import Machine

__all__ = ["DeviceArray", "Loan", "patterns_of"]


class Loan:
    """The host's memory, lent to a device: kept until every queue that may read it has been waited for."""

    def __init__(self, array: npt.NDArray[Any], queue: cl.CommandQueue) -> None:
        self.array, self.queues = array, [queue]

    def __del__(self) -> None:
        for queue in self.queues:
            queue.finish()


@dataclass(frozen=True, slots=True, eq=False)
class DeviceArray:
    """A C-ordered array in a device's memory; its session is the one whose verb returned it.

    `.get()` copies it to the host. `.as_pyopencl()` and DLPack (`np.from_dlpack`, `torch.from_dlpack`) share its memory.
    """

    machine: "Machine"
    buffer: cl.Buffer
    shape: Shape
    dtype: np.dtype[Any]
    path: Path | None = None  #: which kernels wrote it, where there was a choice
    owner: Loan | None = None  #: of borrowed memory, kept alive with the array

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
        return replace(self, shape=shape)

    def written_by(self, path: Path) -> "DeviceArray":
        """The same memory, with the path that wrote it."""
        return replace(self, path=path)

    def as_pyopencl(self) -> cl_array.Array:
        """The same memory as a pyopencl array on the session's queue: nothing is copied or waited for."""
        found = cl_array.Array(self.machine.queue, self.shape, self.dtype, data=self.buffer)
        if self.owner is not None:
            vars(found)["owner"] = self.owner  # borrowed memory stays
        return found

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0), the host, on CPU devices; (4, 0), OpenCL, on others."""
        return (dlpack.CPU, 0) if self.machine.info.kind == "cpu" else (dlpack.OPENCL, 0)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The memory itself, mapped, on CPU devices; a copy where the consumer asks for one, or for the host's memory.

        Waits for the kernels that write it. Shared memory is written by both sides: write to it only once the verbs that
        read the array are done (`session.finish()`).
        """
        return dlpack.exported(self, stream, max_version, dl_device, copy)


def patterns_of(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array's bits as unsigned integers in this host's byte order, so that no conversion can touch a number."""
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    if array.dtype.isnative:
        return array.view(unsigned)
    return array.view(unsigned.newbyteorder("S")).astype(unsigned)
