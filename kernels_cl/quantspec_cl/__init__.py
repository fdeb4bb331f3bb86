"""quantspec_cl: the rules of quantspec on OpenCL devices, bit for bit.

Kernels compute everything in integers, in plain OpenCL C 1.2; tables and records come from `quantspec`, arithmetic does not.

    >>> import quantspec_cl  # doctest: +SKIP
    >>> session = quantspec_cl.open_device("pocl")  # doctest: +SKIP
    >>> session.quantize(x, "e2m1.packed_native_0.b32-ue8m0").get()  # doctest: +SKIP
"""

from .device import DeviceInfo as DeviceInfo
from .device import list_devices as list_devices
from .errors import BuildError as BuildError
from .errors import DeviceError as DeviceError
from .errors import ForeignArrayError as ForeignArrayError
from .errors import NoDeviceError as NoDeviceError
from .host import DeviceArray as DeviceArray
from .memory import Output as Output
from .memory import aligned_empty as aligned_empty
from .paths import Path as Path
from .paths import PathChoice as PathChoice
from .probe import Measurement as Measurement
from .runtimes import Runtime as Runtime
from .runtimes import find_runtimes as find_runtimes
from .runtimes import use_runtime as use_runtime
from .session import Session as Session
from .session import open_device as open_device
from .session import open_queue as open_queue
from .session import self_test as self_test
from .stream import Stream as Stream
from .tensors import DevicePacked as DevicePacked
from .tensors import DeviceQuantized as DeviceQuantized
