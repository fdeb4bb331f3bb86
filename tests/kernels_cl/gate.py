"""A gate: holds a device, so that a test sees whether the host waits for it."""

import threading

import pyopencl as cl

import quantspec_cl as qc


class Gate:
    """An event that holds the queues that wait for it until the block ends, or for so long that the host has waited."""

    def __init__(self, session: qc.Session) -> None:
        self.event, self.waited = cl.UserEvent(session.context), False
        self.timer = threading.Timer(10, self.late)

    def late(self) -> None:
        self.waited = True
        self.event.set_status(cl.command_execution_status.COMPLETE)

    def __enter__(self) -> cl.UserEvent:
        self.timer.start()
        return self.event

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        assert not self.waited, "the host waited for the device"
        self.event.set_status(cl.command_execution_status.COMPLETE)
