"""Devices: which there are in this process, what they are, and what they promise (`probe` measures whether they keep it)."""

from dataclasses import dataclass

import pyopencl as cl

from .errors import NoDeviceError
from .runtimes import find_runtimes

__all__ = ["DeviceInfo", "describe_device", "find_device", "list_devices"]

SIMULATORS = ("oclgrind",)  #: never chosen unless named: thousands of times slower


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceInfo:
    """One device of this process, or a platform that failed (`error` says how; the rest is unknown)."""

    index: str  #: "p:d", platform and device
    platform: str
    name: str = ""
    vendor: str = ""
    driver: str = ""
    version: str = ""
    c_version: str = ""
    kind: str = ""  #: "cpu", "gpu", "accelerator" or "other"
    simulator: bool = False
    address_bits: int = 0
    little_endian: bool = True
    compute_units: int = 0
    max_work_group: int = 0
    global_memory: int = 0
    max_allocation: int = 0
    local_memory: int = 0
    denorm: bool = False  #: promises to keep binary32 subnormals
    fma: bool = False  #: promises fma in hardware
    correctly_rounded_divide: bool = False  #: promises correctly rounded division and square root
    fp64: bool = False
    fp16: bool = False
    int64: bool = False
    lanes: int = 8  #: elements that a vector of the fast kernels holds: 8, or 16 where that is known to be faster
    error: str | None = None

    @property
    def usable(self) -> bool:
        """True where the device answered when asked what it is."""
        return self.error is None


def list_devices() -> list[DeviceInfo]:
    """Every OpenCL device found in this process; a platform that fails is an entry with its error."""
    return [info for info, _ in _devices()]


def find_device(spec: str | None) -> tuple[DeviceInfo, cl.Device]:
    """The device that `spec` names: "p:d", or part of a platform's or device's name; None: the first that is no simulator.

    Raises NoDeviceError, which lists the devices there are and runtimes that are installed but not seen by this process.
    """
    if spec is not None and not isinstance(spec, str):
        raise NoDeviceError(f'device={spec!r} is a {type(spec).__name__}; allowed: None, "p:d" or part of a name')
    found = [(info, device) for info, device in _devices() if device is not None]
    for info, device in found:
        if _answers(info, spec):
            return info, device
    names = ", ".join(f"{info.index} {info.platform} / {info.name}" for info, _ in found) or "none"
    failed = "".join(f"; platform {info.platform!r} failed: {info.error}" for info in list_devices() if not info.usable)
    others = "".join(
        f"; {runtime.name} is installed: start Python with {name}={value}"
        for runtime in find_runtimes()
        if not runtime.listed
        for name, value in runtime.variables.items()
    )
    raise NoDeviceError(f"device={spec!r} is not an OpenCL device of this process; devices: {names}{failed}{others}")


def describe_device(device: cl.Device) -> DeviceInfo:
    """A device of the caller's own; its index is "-:-" where no platform lists it, as of a part of a device."""
    found = (info for info, listed in _devices() if listed is not None and listed == device)
    return next(found, None) or _describe("-:-", device.platform, device)


def _answers(info: DeviceInfo, spec: str | None) -> bool:
    if spec is None:
        return not info.simulator
    return spec == info.index or (
        spec != "" and spec.lower() in f"{info.platform}\n{info.version}\n{info.name}".lower()
    )


def _devices() -> list[tuple[DeviceInfo, cl.Device | None]]:
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return []  # the loader's answer where no runtime is installed
    found: list[tuple[DeviceInfo, cl.Device | None]] = []
    for p, platform in enumerate(platforms):
        name = f"platform {p}"
        try:
            name = platform.name
            for d, device in enumerate(platform.get_devices()):
                found.append((_describe(f"{p}:{d}", platform, device), device))
        except cl.Error as error:
            found.append((DeviceInfo(index=f"{p}:-", platform=name, error=str(error)), None))
    return found


def _describe(index: str, platform: cl.Platform, device: cl.Device) -> DeviceInfo:
    single = device.single_fp_config
    extensions = device.extensions.split()
    return DeviceInfo(
        index=index,
        platform=platform.name,
        name=device.name.strip(),
        vendor=device.vendor,
        driver=device.driver_version,
        version=device.version,
        c_version=device.opencl_c_version.strip(),
        kind=_kind(device),
        simulator=any(name in platform.name.lower() for name in SIMULATORS),
        address_bits=device.address_bits,
        little_endian=bool(device.endian_little),
        compute_units=device.max_compute_units,
        max_work_group=device.max_work_group_size,
        global_memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        local_memory=device.local_mem_size,
        denorm=bool(single & cl.device_fp_config.DENORM),
        fma=bool(single & cl.device_fp_config.FMA),
        correctly_rounded_divide=bool(single & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT),
        fp64="cl_khr_fp64" in extensions,
        fp16="cl_khr_fp16" in extensions,
        int64="EMBEDDED" not in device.profile or "cles_khr_int64" in extensions,
        lanes=_lanes(device),
    )


def _lanes(device: cl.Device) -> int:
    """16 on a device with such vectors whose compiler asks for scalars: it is known to take explicit vectors as they are.

    PoCL asks for vectors of sixteen, yet takes them apart.
    """
    wide = (device.native_vector_width_float, device.preferred_vector_width_float) == (16, 1)
    return 16 if wide and device.type & cl.device_type.CPU else 8


def _kind(device: cl.Device) -> str:
    for name, bit in (
        ("cpu", cl.device_type.CPU),
        ("gpu", cl.device_type.GPU),
        ("accelerator", cl.device_type.ACCELERATOR),
    ):
        if device.type & bit:
            return name
    return "other"
