"""DLPack both ways: tensors of frameworks as inputs, results as tensors, without a framework."""

import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.dlpack import imported, tensor_of

from .agreement import needs_host_memory, same_bits, same_quantized
from .data import SPECIAL, floats, numbers, patterns

pytestmark = pytest.mark.opencl

SCHEME = "e2m1.packed_native_0.b32-ue8m0"


class Tensor:
    """A framework's tensor, as DLPack sees it: numpy's capsule with the type code of a dtype that numpy lacks."""

    def __init__(self, array: Any, code: int = 0, *, device: int = 1, versioned: bool = True) -> None:
        self.array, self.code, self.device, self.versioned = array, code, device, versioned

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        if "max_version" in options and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        capsule = self.array.__dlpack__(**options)
        if self.code:
            tensor = tensor_of(capsule)
            assert tensor is not None
            tensor.dtype.code = self.code
        return capsule


@pytest.mark.parametrize("versioned", [True, False])
def test_tensors_of_frameworks_are_inputs(session: qc.Session, versioned: bool) -> None:
    x = numbers(11, (6, 64))
    same_quantized(session.quantize(Tensor(x, versioned=versioned), SCHEME), qs.quantize(x, SCHEME), SCHEME)
    turned = x.T  # strides travel too
    same_bits(session.encode(Tensor(turned, versioned=versioned), "e4m3"), qs.encode(turned, "e4m3"), "strided")
    bf16 = patterns(floats(SPECIAL))[:, None].view(np.uint16)
    expected = qs.encode(bf16.view(ml_dtypes.bfloat16), "e5m2")
    same_bits(session.encode(Tensor(bf16, 4, versioned=versioned), "e5m2"), expected, "bf16")


def test_tensors_of_8_bit_floats_are_codes_of_their_own_format(session: qc.Session) -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(2, 128)
    same_bits(session.decode(Tensor(codes, 10), "e4m3"), qs.decode(codes, "e4m3"), "e4m3")
    same_bits(session.decode(Tensor(codes, 12), "e5m2"), qs.decode(codes, "e5m2"), "e5m2")
    same_bits(session.decode_scale(Tensor(codes, 14), "ue8m0"), qs.decode_scale(codes, "ue8m0"), "ue8m0")
    made = session.quantized("e5m2.native.b64-ue8m0", Tensor(codes, 12), Tensor(codes[:, :2], 14))
    same_bits(made.codes, codes, "codes")
    with pytest.raises(qs.DtypeError, match=r"float8_e5m2.*\[VAL-4\]"):
        session.decode(Tensor(codes, 12), "e4m3")
    with pytest.raises(qs.DtypeError, match=r"float8_e4m3fn.*\[QNT-1\]"):
        session.encode(Tensor(codes, 10), "e4m3")


def test_tensors_that_cannot_be_read_are_refused(session: qc.Session) -> None:
    class Silent(Tensor):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("it requires grad")

    class Odd(Tensor):
        def __dlpack__(self, **_: Any) -> Any:
            return 5

    x = np.ones(4, np.float32)
    for tensor, says in (
        (Tensor(x, device=2), "device type 2"),
        (Silent(x), "requires grad"),
        (Odd(x), "no DLPack capsule"),
        (Tensor(x.view(np.uint8), 17), "type code 17 of 8 bits"),
    ):
        with pytest.raises(qc.ForeignArrayError, match=says):
            session.encode(tensor, "e4m3")


def test_results_are_dlpack_tensors_in_place(session: qc.Session) -> None:
    needs_host_memory(session)
    codes = session.encode(numbers(12, (5, 64)), "e4m3")
    assert codes.__dlpack_device__() == (1, 0)
    host = np.from_dlpack(codes)
    same_bits(codes, host, "codes")
    host[0] = 3  # one memory
    assert (codes.get()[0] == 3).all() and (
        session.decode(codes, "e4m3").get()[0] == qs.decode(np.uint8(3), "e4m3")
    ).all()
    copy = np.from_dlpack(codes, copy=True)
    copy[...] = 4
    assert not (codes.get() == 4).all()
    expected = codes.get()
    del codes
    gc.collect()
    same_bits(host, expected, "after the device array is gone")
    assert np.from_dlpack(session.encode(np.zeros((0, 3), np.float32), "e4m3")).shape == (0, 3)


def test_bfloat16_leaves_by_dlpack_too(session: qc.Session) -> None:
    needs_host_memory(session)
    y = session.dequantize(session.quantize(numbers(13, (4, 64)), SCHEME), "bf16")
    same_bits(imported(y), y.get(), "versioned")
    plain = tensor_of(y.__dlpack__())
    assert plain is not None and plain.dtype.code == 4


def test_what_dlpack_cannot_have_is_a_buffer_error(session: qc.Session) -> None:
    codes = session.encode(np.ones(4, np.float32), "e4m3")
    stream: Any = 1
    with pytest.raises(BufferError, match="stream"):
        codes.__dlpack__(stream=stream)
    with pytest.raises(BufferError, match="device's memory"):
        codes.__dlpack__(dl_device=(2, 0))
