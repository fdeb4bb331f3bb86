"""Arrays of others: queues and events, buffers, pyopencl arrays and borrowed memory in place, and what is refused."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
import pytest

import quantspec as qs
import quantspec_cl as qc

from .agreement import needs_host_memory, same_bits, same_quantized
from .data import numbers
from .gate import Gate

pytestmark = pytest.mark.opencl

SCHEME = "e2m1.packed_native_0.b32-ue8m0"
LARGE = (96, 1024)  # enough for the specialised kernels


def buffer_of(session: qc.Session, array: Any) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(session.context, flags, hostbuf=np.ascontiguousarray(array).view(np.uint8))


def same_memory(first: qc.DeviceArray, second: qc.DeviceArray) -> bool:
    return first.buffer.int_ptr == second.buffer.int_ptr


def test_a_session_opens_on_a_queue_of_ones_own(session: qc.Session) -> None:
    context = cl.Context([session.queue.device])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    own, x = qc.open_queue(queue, poison=True), numbers(1, (5, 64))
    assert own.queue == queue and own.context == context and own.info == session.info
    same_quantized(own.quantize(x, SCHEME), qs.quantize(x, SCHEME), SCHEME)


def test_a_queue_out_of_order_is_refused(session: qc.Session) -> None:
    try:
        queue = cl.CommandQueue(session.context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
    except cl.Error:
        pytest.skip("the device has no such queue")
    calls: tuple[Callable[[Any], object], ...] = (qc.open_queue, session.on)
    for call in calls:
        with pytest.raises(qc.DeviceError, match="in-order"):
            call(queue)


def test_what_is_no_queue_or_of_another_context_is_refused(session: qc.Session) -> None:
    not_one: Any = "queue"
    with pytest.raises(qc.DeviceError, match="is a str"):
        qc.open_queue(not_one)
    context = cl.Context([session.queue.device])
    with pytest.raises(qc.ForeignArrayError, match="another context"):
        session.on(cl.CommandQueue(context))
    with pytest.raises(qc.DeviceError, match="path='quick'"):
        wrong: Any = "quick"
        qc.open_queue(session.queue, path=wrong)


def test_arrays_go_from_queue_to_queue_without_the_host_waiting(session: qc.Session) -> None:
    """Each step runs on the other queue, behind a gate that is opened last: the device alone keeps the order."""
    other = session.on(cl.CommandQueue(session.context))
    assert other.machine.programs is session.machine.programs and other.machine.lock is session.machine.lock
    x = numbers(2, LARGE)
    for scheme in (SCHEME, "q8s.native.t-f32"):
        session.dequantize(session.unpack(session.quantize_packed(x, scheme), padding="ignore"))  # all programs built
        with Gate(session) as gate:
            session.wait_for([gate])
            quantized = session.quantize(x, scheme)
            packed = other.pack(quantized)
            y = session.dequantize(other.unpack(packed, padding="ignore"))
        assert y.machine is session.machine and packed.words.machine is other.machine
        expected = qs.quantize(x, scheme)
        same_bits(y, qs.dequantize(expected), scheme)
        same_bits(packed.words, qs.pack(expected).words, scheme)


def test_events_are_waited_for_and_given(session: qc.Session) -> None:
    complete = cl.command_execution_status.COMPLETE
    with Gate(session) as gate:
        session.wait_for([gate])
        codes = session.encode(numbers(3, (64,)), "e4m3")
        done = session.marker()
        assert done.command_execution_status != complete
    done.wait()
    assert done.command_execution_status == complete
    same_bits(codes, qs.encode(numbers(3, (64,)), "e4m3"), "codes")
    session.wait_for([])


def test_a_buffer_is_an_input_where_it_lies(session: qc.Session) -> None:
    x = numbers(4, (6, 64))
    buffer = buffer_of(session, np.concatenate([np.zeros(64, np.float32), x.reshape(-1)]))
    array = session.wrap(buffer, (6, 64), "f32", offset=256)
    same_quantized(session.quantize(array, SCHEME), qs.quantize(x, SCHEME), SCHEME)
    part = session.wrap(array.buffer, (5, 64), np.float32, offset=256)  # a part of a part
    same_bits(part, x[1:], "part of a part")
    assert session.wrap(buffer, (), np.uint32).get() == 0


@pytest.mark.parametrize(
    ("shape", "dtype", "offset", "says"),
    [
        ((17,), np.float32, 0, "has 64 bytes"),
        ((1,), np.float32, -128, "starts at -128"),
        ((1,), np.float32, 4, "multiples of"),
        ((1,), np.float64, 0, "1, 2 or 4 bytes"),
        ((1,), ">f4", 0, "byte order"),
    ],
)
def test_a_buffer_that_does_not_hold_the_array_is_refused(
    session: qc.Session, shape: tuple[int, ...], dtype: Any, offset: int, says: str
) -> None:
    with pytest.raises(qc.ForeignArrayError, match=says):
        session.wrap(buffer_of(session, np.zeros(16, np.float32)), shape, dtype, offset=offset)


def test_memory_of_another_context_is_refused(session: qc.Session) -> None:
    context = cl.Context([session.queue.device])
    with pytest.raises(qc.ForeignArrayError, match="another context"):
        session.wrap(cl.Buffer(context, cl.mem_flags.READ_WRITE, 4), (1,), np.uint32)
    not_one: Any = np.zeros(4)
    with pytest.raises(qc.ForeignArrayError, match="is a ndarray"):
        session.wrap(not_one, (1,), np.uint32)


@pytest.mark.parametrize(
    ("scheme", "shape"),
    [(SCHEME, LARGE), (SCHEME, (3, 64)), ("q4s.packed_u32_1.b16-f16", (3, 64)), ("e4m3.native.t-f32", (3, 64))],
)
def test_every_out_is_written_in_place(session: qc.Session, scheme: str, shape: tuple[int, ...]) -> None:
    x = numbers(5, shape)
    q = qs.quantize(x, scheme)
    p = qs.pack(q)
    own, words = session.put(q), session.put_packed(p)
    calls: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
        (q.codes, lambda out: session.quantize(x, scheme, out=out).codes),
        (p.words, lambda out: session.quantize_packed(x, scheme, out=out).words),
        (p.words, lambda out: session.pack(own, out=out).words),
        (q.codes, lambda out: session.unpack(words, out=out).codes),
        (qs.dequantize(q), lambda out: session.dequantize(own, out=out)),
        (qs.dequantize(q, "bf16"), lambda out: session.dequantize_packed(words, "bf16", out=out)),
        (qs.decode(q.codes, q.scheme.value), lambda out: session.decode(q.codes, q.scheme.value, out=out)),
        (qs.encode(x, "e5m2"), lambda out: session.encode(x, "e5m2", out=out)),
        (np.frombuffer(qs.to_bytes(q), np.uint8), lambda out: session.to_bytes(own, out=out)),
    )
    for expected, call in calls:
        whole = session.wrap(
            buffer_of(session, np.full(expected.nbytes + 256, 7, np.uint8)), (expected.nbytes + 256,), "u1"
        )
        out = session.wrap(whole.buffer, expected.shape, expected.dtype, offset=128)
        result = call(out)
        assert same_memory(result, out)
        same_bits(out, expected, scheme)
        around = whole.get()
        assert (around[:128] == 7).all() and (around[128 + expected.nbytes :] == 7).all()


def test_out_may_be_a_pyopencl_array(session: qc.Session) -> None:
    x, out = numbers(6, (4, 32)), cl_array.empty(session.queue, (4, 32), np.uint8)
    session.encode(x, "e4m3", out=out)
    same_bits(out.get(), qs.encode(x, "e4m3"), "out")
    with pytest.raises(qc.ForeignArrayError, match="not C-ordered"):
        session.encode(x[:, ::2], "e4m3", out=out[:, ::2])


def test_an_out_that_does_not_fit_is_refused(session: qc.Session) -> None:
    x = np.ones((4, 32), np.float32)
    q = session.quantize(x, "q8s.native.t-f32")
    wrong: list[tuple[Any, str]] = [
        (session.encode(x[:2], "e4m3"), r"allowed here: exactly uint8 of shape \(4, 32\)"),
        (session.dequantize(q), "out is float32"),
        (q.codes.buffer, "is a Buffer"),
        (np.empty((4, 32), np.uint8), "is a ndarray"),
    ]
    if session.info.kind == "cpu":
        wrong.append((session.borrow(qc.aligned_empty((4, 32), np.uint8)), "borrowed"))
    for out, says in wrong:
        with pytest.raises(qc.ForeignArrayError, match=says):
            session.encode(x, "e4m3", out=out)
    with pytest.raises(qc.ForeignArrayError, match="overlaps"):
        session.dequantize(q, out=session.wrap(q.codes.buffer, (4, 8), np.float32))


def test_pyopencl_arrays_of_another_queue_are_waited_for_on_the_device(session: qc.Session) -> None:
    x, queue = numbers(7, (8, 64)), cl.CommandQueue(session.context)
    given: Any = cl_array.empty(queue, x.shape, x.dtype)
    with Gate(session) as gate:
        cl.enqueue_barrier(queue, wait_for=[gate])
        copied = cl.enqueue_copy(queue, given.data, x, is_blocking=False)
        codes = session.encode(given, "e5m2")
    copied.wait()
    same_bits(codes, qs.encode(x, "e5m2"), "codes")


def test_a_result_is_a_pyopencl_array_in_place(session: qc.Session) -> None:
    codes = session.encode(numbers(8, (3, 40)), "e4m3")
    shared: Any = codes.as_pyopencl()
    assert shared.queue == session.queue and shared.base_data is codes.buffer
    cl.enqueue_fill_buffer(session.queue, shared.data, np.array([9], np.uint8), 0, shared.nbytes)
    assert (codes.get() == 9).all()
    same_bits(session.decode(shared, "e4m3"), qs.decode(np.full((3, 40), 9, np.uint8), "e4m3"), "decode")
    assert session.encode(np.float32(1), "e4m3").as_pyopencl().get().shape == ()


def test_borrowed_memory_is_read_in_place(session: qc.Session) -> None:
    needs_host_memory(session)
    x = qc.aligned_empty(LARGE, np.float32)
    x[...] = numbers(9, LARGE)
    lent = session.borrow(x)
    same_quantized(session.quantize(lent, SCHEME), qs.quantize(x, SCHEME), SCHEME)
    session.finish()
    x[:, 0] = 1  # seen: it is one memory
    same_quantized(session.on(cl.CommandQueue(session.context)).quantize(lent, SCHEME), qs.quantize(x, SCHEME), SCHEME)
    x.flags.writeable = False
    assert session.borrow(x).get().tobytes() == x.tobytes()


def test_borrowed_memory_outlives_its_last_name(session: qc.Session) -> None:
    needs_host_memory(session)
    expected = numbers(10, LARGE)
    x = qc.aligned_empty(LARGE, np.float32)
    x[...] = expected
    lent = session.borrow(x)
    del x
    with Gate(session) as gate:
        session.wait_for([gate])
        result = session.encode(lent, "e4m3")
    del lent  # waits for the kernel that reads it
    gc.collect()
    same_bits(result, qs.encode(expected, "e4m3"), "codes")


def test_memory_that_a_runtime_would_copy_is_not_borrowed(session: qc.Session) -> None:
    needs_host_memory(session)
    memory = qc.aligned_empty((4096,), np.uint32)
    for array, says in (
        (memory[1:], "4 bytes past a multiple"),
        (memory[::2], "C-ordered"),
        (memory.view(np.uint64), "1, 2 or 4 bytes"),
        (memory.view(">u4"), "native"),
    ):
        with pytest.raises(qc.ForeignArrayError, match=says):
            session.borrow(array)
    assert session.borrow(memory[:0]).get().size == 0
