"""An implementation that broke instead of answering."""

__all__ = ["ImplementationError"]


class ImplementationError(Exception):
    """A crash or a time-out: `status` is the outcome of the case that was running, `stderr` the last that was said."""

    def __init__(self, status: str, message: str, stderr: str = "") -> None:
        self.status = status
        self.message = message
        self.stderr = stderr
        super().__init__(f"{message}\n{stderr}" if stderr else message)
