"""Threads and processes: many on one session, and many starting at once on one cache, a spoilt one or none."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import quantspec as qs
import quantspec_cl as qc
from quantspec_cl import cache
from quantspec_cl.program import build

from .agreement import same_bits, same_quantized
from .conftest import DEVICE, opened
from .data import numbers

pytestmark = pytest.mark.opencl

ROOT = Path(__file__).parents[2]
LARGE, SMALL = (64, 1056), (7, 96)
SCHEMES = (
    "e2m1.packed_native_0.b32-ue8m0",
    "q4s.packed_u32_0.b32-f16",
    "e2m1.packed_native_0.b16-ue4m3.t-f32",
)


def mixed(session: qc.Session, seed: int) -> None:
    """Verbs of all kinds, small and large: kernels of the generic program and of specialised ones."""
    for turn in range(6):
        scheme, shape = SCHEMES[(seed + turn) % 3], LARGE if (seed + turn) % 3 == 0 else SMALL
        x = numbers(100 * seed + turn, shape)
        expected = qs.quantize(x, scheme)
        found = session.quantize(x, scheme)
        packed = session.quantize_packed(x, scheme)
        same_quantized(found, expected, scheme)
        same_bits(packed.words, qs.pack(expected).words, scheme)
        same_bits(session.dequantize_packed(packed, "f16"), qs.dequantize(expected, "f16"), scheme)
        assert session.to_bytes(found).get().tobytes() == qs.to_bytes(expected)
        same_bits(session.encode(x, "e5m2"), qs.encode(x, "e5m2"), "encode")


@pytest.mark.parametrize("queues", ["one queue", "a queue each"])
def test_eight_threads_share_a_session(queues: str) -> None:
    """Opened anew: the programs are built while others wait for them."""
    session = qc.open_device(opened().info.index, poison=True)

    def work(seed: int) -> None:
        mixed(session if queues == "one queue" else session.on(cl.CommandQueue(session.context)), seed)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


SOURCE = "__kernel void fill(__global uint* y, uint value) { y[get_global_id(0)] = value; }\n"
STARTED = """
import sys, numpy as np, pyopencl as cl, quantspec_cl as qc
from quantspec_cl.device import find_device
from quantspec_cl.program import build
for runtime in qc.find_runtimes():
    if not runtime.listed and runtime.name == sys.argv[1]:
        qc.use_runtime(runtime)
context = cl.Context([find_device(sys.argv[1])[1]])
queue = cl.CommandQueue(context)
y = np.zeros(8, np.uint32)
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, y.nbytes)
build(context, sys.argv[2])["fill"](queue, (8,), None, buffer, 5)
cl.enqueue_copy(queue, y, buffer)
print("FILLED", y.tolist())
"""
ANSWER = "FILLED [5, 5, 5, 5, 5, 5, 5, 5]"


def start(**environment: str) -> "subprocess.Popen[str]":
    kept = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "PYOPENCL_NO_CACHE")
    }
    paths = os.pathsep.join(str(ROOT / name) for name in ("reference", "kernels_cl"))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", STARTED, DEVICE, SOURCE],
        env=kept | {"PYTHONPATH": paths} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def answers(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0 and ANSWER in said, said


def test_two_processes_start_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    places = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "POCL_CACHE_DIR": str(tmp_path / "pocl"),
        "HOME": str(tmp_path),
    }
    answers(start(**places), start(**places))
    kept = list((tmp_path / "cache" / "quantspec" / "programs").iterdir())
    assert len(kept) == 1 and not kept[0].name.startswith("."), kept


@pytest.mark.parametrize("home", ["absent", "a file", "read-only"])
def test_no_home_is_needed(home: str, tmp_path: Path) -> None:
    pocl = {"POCL_CACHE_DIR": str(tmp_path / "pocl")}
    if home == "absent":
        answers(start(**pocl))
        return
    place = tmp_path / "home"
    if home == "a file":
        place.write_text("")
    else:
        place.mkdir(mode=0o500)
    answers(start(HOME=str(place), **pocl))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(cache.OFF, raising=False)
    return tmp_path / "quantspec" / "programs"


def filled(session: qc.Session, source: str = SOURCE) -> int:
    kernel = build(session.context, source, (), session.queue.device)["fill"]
    out = session.machine.empty((8,), np.uint32)
    kernel(session.queue, (8,), None, out.buffer, 5)
    return int(out.get()[7])


def test_what_is_on_disk_is_taken_and_what_is_damaged_is_not(session: qc.Session, programs: Path) -> None:
    assert filled(session) == 5
    (file,) = programs.iterdir()
    whole = file.read_bytes()
    assert filled(session) == 5 and file.read_bytes() == whole
    for damaged in (b"", whole[:100], whole[:-1] + b"\0", whole[:-1]):
        file.write_bytes(damaged)
        assert filled(session) == 5
        assert len(file.read_bytes()) >= cache.DIGEST + 100  # written anew


def test_a_program_of_other_kernels_is_compiled_again(session: qc.Session, programs: Path) -> None:
    """What a poisoned cache gives: a program that loads, and lacks the kernel."""
    assert filled(session) == 5
    (file,) = programs.iterdir()
    build(session.context, SOURCE.replace("fill", "other"), (), session.queue.device)
    (other,) = set(programs.iterdir()) - {file}
    file.write_bytes(other.read_bytes())
    assert filled(session) == 5
    file.write_bytes(hashlib.sha256(b"no program").digest() + b"no program")
    if session.info.platform == "Portable Computing Language":
        assert filled(session) == 5


def test_a_runtime_whose_own_cache_is_poisoned_is_asked_with_another_text(
    session: qc.Session, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = cl.Kernel, list[str]()

    def kernel(program: Any, name: str) -> Any:
        seen.append(name)
        return real(program, name if len(seen) > 1 else "absent")

    monkeypatch.setattr(cl, "Kernel", kernel)
    build(session.context, SOURCE, (), session.queue.device)
    assert seen == ["fill", "fill"] and len(list(programs.iterdir())) == 1


def test_the_cache_can_be_switched_off(session: qc.Session, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.OFF, "1")
    assert filled(session) == 5 and not programs.exists()
