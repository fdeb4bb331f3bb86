"""Devices: what is listed, how one is named, what is refused, poison, and the self-test."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl.device import find_device

from .agreement import same_bits, same_error
from .conftest import BUILDS, DEVICE, opened

pytestmark = pytest.mark.opencl

ROOT = Path(__file__).parents[2]


def test_every_device_says_what_it_is(session: qc.Session) -> None:
    found = qc.list_devices()
    assert session.info in found
    for info in found:
        assert info.usable and info.index.count(":") == 1 and info.address_bits in (32, 64)
        assert info.compute_units > 0 and info.max_work_group > 0 and info.max_allocation > 0


def test_a_device_is_named_by_index_or_part_of_its_name(session: qc.Session) -> None:
    for spec in (session.info.index, session.info.platform.upper()[:9], session.info.name):
        assert find_device(spec)[0] == session.info
    assert not find_device(None)[0].simulator


@pytest.mark.parametrize("spec", ["99:0", "no such device", ""])
def test_an_unknown_device_is_refused_with_those_there_are(session: qc.Session, spec: str) -> None:
    with pytest.raises(qc.NoDeviceError, match=session.info.index) as raised:
        qc.open_device(spec)
    assert repr(spec) in str(raised.value)


def test_a_build_that_fails_shows_the_compilers_log(session: qc.Session) -> None:
    with pytest.raises(qc.BuildError) as raised:
        qc.open_device(session.info.index, build_options=["-DTIE(q)=undeclared_name"])
    assert "undeclared_name" in raised.value.log and "prelude.cl" in raised.value.log


@pytest.mark.parametrize("spec", [5, b"pocl", ("0", "0")])
def test_a_device_that_is_no_text_is_refused_by_name(spec: Any) -> None:
    with pytest.raises(qc.NoDeviceError, match=f"is a {type(spec).__name__}; allowed: None"):
        qc.open_device(spec)


BAD_OPTION = """
import sys, quantspec_cl as qc
for runtime in qc.find_runtimes():
    if runtime.name == sys.argv[1]:
        qc.use_runtime(runtime)
try:
    qc.open_device(build_options=["-not-an-option"])
except qc.BuildError as error:
    print("REFUSED", error)
"""


@pytest.mark.skipif(DEVICE != "portable", reason="this is the process of another runtime")
@pytest.mark.parametrize("runtime", qc.find_runtimes(), ids=lambda each: each.name)
def test_a_build_option_that_is_none_is_a_build_error(runtime: qc.Runtime) -> None:
    """On every runtime, each in a process of its own, and without the variable that pyopencl's cache reads."""
    clean = {name: value for name, value in os.environ.items() if name != "PYOPENCL_CACHE_FAILURE_FATAL"}
    run = subprocess.run(
        [sys.executable, "-c", BAD_OPTION, runtime.name],
        cwd=ROOT,
        env=clean | {"PYTHONPATH": os.pathsep.join(("reference", "kernels_cl"))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0 and "REFUSED" in run.stdout and "-not-an-option" in run.stdout, run.stdout + run.stderr


def test_runtimes_are_found_without_opening_one() -> None:
    runtimes = qc.find_runtimes()
    assert runtimes and all(Path(runtime.path).exists() and runtime.variables for runtime in runtimes)


def test_the_choice_of_a_runtime_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    first = qc.find_runtimes()[0]
    monkeypatch.setenv("OCL_ICD_VENDORS", "another")
    with pytest.raises(qc.DeviceError, match="another"):
        qc.use_runtime(first)


def test_outputs_are_poisoned(session: qc.Session) -> None:
    assert session.machine.empty((3, 5), np.uint16).get().tolist() == [[0xA5A5] * 5] * 3


def test_an_array_that_the_device_cannot_hold_is_refused(session: qc.Session) -> None:
    with pytest.raises(qs.UnsupportedError, match=str(session.info.max_allocation)):
        session.machine.empty((session.info.max_allocation + 1,), np.uint8)


def test_arrays_of_another_session_are_refused(session: qc.Session) -> None:
    other = opened(*BUILDS["unoptimised"])
    quantized = other.quantize(np.ones(4, np.float32), "q8s.native.t-f32")
    for call in (
        lambda: session.dequantize(quantized),
        lambda: session.pack(quantized),
        lambda: session.unpack(other.pack(quantized)),
        lambda: session.decode(quantized.codes, "q8s"),
    ):
        with pytest.raises(qc.ForeignArrayError):
            call()


def test_parts_are_put_together(session: qc.Session) -> None:
    quantized = qs.quantize(np.arange(12, dtype=np.float32).reshape(3, 4), "q4s.packed_u32_0.b2-ue4m3")
    made = session.quantized(quantized.scheme, session.put(quantized).codes, quantized.scale_codes)
    same_bits(session.dequantize(made), qs.dequantize(quantized), "made of codes")
    packed = qs.pack(quantized)
    again = session.packed(packed.scheme, packed.shape, packed.words, packed.scale_codes)
    same_bits(session.unpack(again).codes, quantized.codes, "made of words")


def test_parts_are_refused_as_the_records_refuse_them(session: qc.Session) -> None:
    quantized = qs.quantize(np.arange(12, dtype=np.float32).reshape(3, 4), "q4s.packed_u32_0.b2-ue4m3")
    scheme, codes, scales, words = quantized.scheme, quantized.codes, quantized.scale_codes, qs.pack(quantized).words
    assert scales is not None
    of_codes: list[tuple[Any, ...]] = [
        *((codes, None), (codes | 8, scales), (codes[0, 0], scales), (codes, scales[1:]), (codes, scales | 0x80)),
        *((codes, scales.view("i1")), (codes, scales, np.uint8(1)), (codes.astype(int), scales)),
    ]
    for parts in of_codes:
        same_error(partial(session.quantized, scheme, *parts), partial(qs.Quantized, scheme, *parts))
    of_words: list[tuple[Any, ...]] = [
        *(((3, 5), words, scales), ((3, 4), codes, scales), ((3, 4), words[1:], scales), ((-3, 4), words, scales)),
        *(((3, 4), words, None), ((3, 4), words, scales | 0x80), ((3, 4), words.astype(float), scales)),
    ]
    for parts in of_words:
        same_error(partial(session.packed, scheme, *parts), partial(qs.Packed, scheme, *parts))


def test_wrong_words_are_of_the_layout(session: qc.Session) -> None:
    scheme = qs.Scheme.parse("q4s.packed_u32_0.t-f32")
    parts = (scheme, (9,), np.zeros(3, np.uint32), None, np.zeros((), np.uint32))
    assert "[LAY-4]" in same_error(partial(session.packed, *parts), partial(qs.Packed, *parts))


@pytest.mark.parametrize("name", BUILDS)
def test_integers_are_exact_whatever_floats_do(name: str) -> None:
    measured = {each.name: each for each in qc.self_test(opened(*BUILDS[name]))}
    assert all(each.ok for each in measured.values() if each.name.startswith("integer")), measured
    assert measured["a * b + c is not contracted (FP_CONTRACT OFF)"].ok


def test_the_self_test_sees_a_device_that_flushes(session: qc.Session) -> None:
    """PoCL and Intel's runtime really flush when told so; a runtime that ignores the option shows the same as before."""
    plain = {each.name: each.ok for each in qc.self_test(session)}
    flushing = {each.name: each.ok for each in qc.self_test(opened(*BUILDS["flushing"]))}
    assert plain.keys() == flushing.keys()
    if session.info.platform in ("Portable Computing Language", "Intel(R) OpenCL"):
        assert plain["subnormal results are kept"] and not flushing["subnormal results are kept"]


OTHERS = [pytest.param(each, id=each.name) for each in qc.find_runtimes() if not each.listed]
ABSENT = pytest.param(None, id="none", marks=pytest.mark.skip(reason="no second runtime; pip install '.[cl-intel]'"))


@pytest.mark.skipif(DEVICE != "portable", reason="this is the process of another runtime")
@pytest.mark.parametrize("runtime", OTHERS or [ABSENT])
def test_the_same_tests_on_every_other_runtime(runtime: qc.Runtime) -> None:
    """Each in a process of its own: a runtime that aborts takes its process with it."""
    chosen = [
        f"tests/kernels_cl/{name}"
        for name in ("test_arithmetic.py", "test_faults.py::test_the_kernels_pass_every_check")
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen],
        cwd=ROOT,
        env=os.environ | {"QUANTSPEC_DEVICE": runtime.name},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0 and "passed" in run.stdout and "skipped" not in run.stdout, run.stdout + run.stderr
