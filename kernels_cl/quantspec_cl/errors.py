"""What can go wrong with a device. Refusals of data are quantspec's own errors, with their rule ids."""

__all__ = ["BuildError", "DeviceError", "ForeignArrayError", "NoDeviceError"]


class DeviceError(RuntimeError):
    """Base of everything that a device, its runtime or its compiler does wrong."""


class NoDeviceError(DeviceError):
    """No device answers to the name, or the one that does cannot run the kernels."""


class BuildError(DeviceError):
    """The kernels did not compile; `log` is what the compiler said."""

    def __init__(self, message: str, log: str) -> None:
        self.log = log
        super().__init__(message, log)

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.log}"


class ForeignArrayError(DeviceError):
    """A device array that belongs to another session, or whose memory this session's context cannot read."""
