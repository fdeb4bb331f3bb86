"""A host that flushes subnormals is refused, not trusted. Rule CNF-6."""

import ctypes
import ctypes.util
import platform
from collections.abc import Iterator

import numpy as np
import pytest

import quantspec as qs

MXCSR = 28  # offset of the SSE control word in glibc's x86-64 fenv_t
FTZ, DAZ = 1 << 15, 1 << 6


@pytest.fixture(params=[FTZ, DAZ, FTZ | DAZ], ids=["ftz", "daz", "both"])
def flushing(request: pytest.FixtureRequest) -> Iterator[None]:
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        pytest.skip(f"needs glibc on x86-64 to set FTZ, this is {platform.libc_ver()[0]} on {platform.machine()}")
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    before = (ctypes.c_uint8 * 32)()
    libm.fegetenv(before)
    changed = (ctypes.c_uint8 * 32).from_buffer_copy(before)
    word = int.from_bytes(bytes(changed[MXCSR : MXCSR + 4]), "little") | int(request.param)
    changed[MXCSR : MXCSR + 4] = list(word.to_bytes(4, "little"))
    libm.fesetenv(changed)
    try:
        yield
    finally:
        libm.fesetenv(before)


def test_arithmetic_is_refused_while_the_process_flushes_subnormals(flushing: None) -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(qs.HostError, match=r"flushes subnormal numbers.*\[CNF-6\]"):
        qs.quantize(x, "q8s.native.t-f32")


def test_codecs_need_no_float_arithmetic_and_stay_right(flushing: None) -> None:
    tiny = np.array([1, 0x00400000, 0x80000001], np.uint32).view(np.float32)
    assert qs.encode_scale(tiny[:2], "ue8m0").tolist() == [0, 0]
    assert qs.encode_scale(tiny[:2], "bf16").tolist() == [1, 0x40]
    assert qs.decode_scale(np.array([0], np.uint8), "ue8m0").view(np.uint32).tolist() == [0x00400000]
    assert qs.encode(tiny, "e2m1").tolist() == [0, 0, 8]
    table = qs.Table.of(np.array([1, 0x00400000, 0x3F800000, 0x40000000], np.uint32).view(np.float32))
    assert table.thresholds.tolist() == [0x00200000, 0x3F000000, 0x3FC00000]
    half = np.array([1], np.uint16).view(np.float16)
    assert qs.encode_scale(half, "f32").tolist() == [0x33800000]


def test_the_host_of_this_test_run_is_accepted_otherwise() -> None:
    qs.quantize(np.ones(4, np.float32), "q8s.native.t-f32")
