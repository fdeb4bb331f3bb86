"""Implementations behind pipes, in files and in this process: each faulty adapter gives the outcome that is meant for it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from quantspec_conformance.doccases import load
from quantspec_conformance.errors import DeviceError, HarnessError, UsageError
from quantspec_conformance.examples import Tensor
from quantspec_conformance.implementations.address import open_implementation
from quantspec_conformance.implementations.errors import ImplementationError
from quantspec_conformance.implementations.files import NOTRUN, FilesImplementation, export_requests
from quantspec_conformance.implementations.gate import echo_gate
from quantspec_conformance.implementations.guard import Guard
from quantspec_conformance.implementations.law import OUTPUTS, Law
from quantspec_conformance.implementations.process import RESTARTS, ProcessImplementation
from quantspec_conformance.implementations.served import environment, open_served_process
from quantspec_conformance.protocol.bits import Bits
from quantspec_conformance.protocol.frames import answer_frame, identity_frame, request_frame
from quantspec_conformance.protocol.messages import (
    Answer,
    Failed,
    Hello,
    Identity,
    Implementation,
    Ok,
    Rejected,
    Request,
    Unsupported,
)  # fmt: skip
from quantspec_conformance.suite.case import Case

from .conftest import FAKES, liar

FAULTY = Path(__file__).parent / "faulty"
ECHO = Request("echo", {}, {"x": Tensor("u8", (4,), (1, 2, 3, 4))})
BOTH = pytest.mark.parametrize("wire", ["text", "frames"])


@contextmanager
def faulty(script: str, *arguments: str, timeout: float = 10.0, hello: float = 20.0) -> Iterator[ProcessImplementation]:
    """A faulty adapter."""
    command = [sys.executable, "-S", str(FAULTY / f"{script}.py"), *arguments]
    with ProcessImplementation(command, timeout=timeout, hello_timeout=hello) as implementation:
        yield implementation


def broken(implementation: Implementation, request: Request = ECHO) -> ImplementationError:
    """How a request ends that is not answered."""
    with pytest.raises(ImplementationError) as caught:
        implementation.handle(request)
    return caught.value


@pytest.mark.parametrize("script", ["text_wire", "frames_wire"])
def test_honest_scripts_answer(script: str) -> None:
    with faulty(script, "honest") as implementation:
        assert implementation.hello(Hello()).name == "faulty"
        assert implementation.handle(ECHO) == Ok(dict(ECHO.tensors))
        assert implementation.handle(Request("size", {"shape": "2"})) == Unsupported("op:size")
        assert echo_gate(implementation) == []


#: Fault -> parts of the message of the crash.
TEXT_CRASHES = {
    "exit-in-hello": ("during hello", "exit status 1"),
    "garbled-exit": ("during hello", "does not end with LF"),
    "noise-first": ("Hello from the runtime", "stdout belongs to the protocol"),
    "noise": ("compiling kernel 3 of 9", "stdout belongs to the protocol"),
    "no-text": (r"\xff\xfe", "bytes outside"),
    "no-utf-8": ("no UTF-8",),
    "wrong-shape": ("8 digits for 5 patterns",),
    "huge-shape": ("elements",),
    "wrong-id": ("id 999", "allowed: 1"),
    "no-id": ("lacks its id",),
    "unknown-verb": ("maybe", "no answer"),
    "unknown-kind": ("mood", "allowed: scheme"),
    "major": ("protocol 2.0", "must be equal"),
    "unknown-field": ("colour",),
}
FRAMES_CRASHES = {
    "ten-gigabytes": ("10737418240 bytes", "stdout belongs"),
    "ten-gigabytes-header": ("10737418240 bytes",),
    "one-gigabyte-tensor": ("1073741824 elements",),
    "truncated": ("ends early", "exit status 0"),
    "noise": ("Building", "stdout belongs to the protocol"),
    "odd-length": ("announces 17 bytes",),
    "no-json": ("no UTF-8",),
    "deep-json": ("brackets",),
    "deep-msg": ("brackets",),
    "no-msg": ("exactly the text `msg`",),
    "more-metadata": ("exactly the text `msg`",),
    "twice": ("stands twice",),
    "wrong-id": ("id 999",),
    "bool-id": ("no id",),
    "unknown-verb": ("maybe",),
    "unknown-key": ("mood",),
    "overlapping": ("overlaps the one before it",),
    "wrong-types": ("its patterns' width",),
    "floats": ("its patterns' width",),
    "unlisted": ("types",),
}
CRASHES = [("text_wire", *row) for row in TEXT_CRASHES.items()] + [
    ("frames_wire", *row) for row in FRAMES_CRASHES.items()
]


@pytest.mark.parametrize(
    ("script", "fault", "says"), CRASHES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_each_fault_is_a_crash_that_says_what_was_wrong(script: str, fault: str, says: tuple[str, ...]) -> None:
    started = time.monotonic()
    with faulty(script, fault) as implementation:
        error = broken(implementation)
    assert error.status == "crash"
    assert all(part in error.message for part in says), error.message
    assert time.monotonic() - started < 8


def test_a_claim_of_gigabytes_takes_no_memory() -> None:
    before = _largest_memory()
    for fault in ("ten-gigabytes", "ten-gigabytes-header", "one-gigabyte-tensor"):
        with faulty("frames_wire", fault) as implementation:
            assert broken(implementation).status == "crash"
    with faulty("frames_wire", "half-gigabyte-unsent", timeout=0.5) as implementation:
        assert broken(implementation).status == "timeout"
    assert _largest_memory() - before < 200 * 2**20


def _largest_memory() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("fault", ["silent", "hang"])
def test_a_hang_is_a_timeout(fault: str) -> None:
    started = time.monotonic()
    with faulty("text_wire", fault, timeout=0.3, hello=0.5 if fault == "silent" else 20) as implementation:
        error = broken(implementation)
    assert error.status == "timeout" and "no answer to" in error.message
    assert time.monotonic() - started < 5


def test_a_timeout_ends_the_whole_group() -> None:
    with faulty("text_wire", "hang-with-helper", timeout=0.5) as implementation:
        error = broken(implementation)
    state = Path(f"/proc/{int(error.stderr.removeprefix('helper '))}/stat")
    deadline = time.monotonic() + 5
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":  # ended; who adopted it reaps it
        assert time.monotonic() < deadline, "the helper still runs"
        time.sleep(0.02)


def test_ctrl_c_reaches_the_harness_alone() -> None:
    script = (
        "import sys\n"
        "from quantspec_conformance.implementations.process import ProcessImplementation\n"
        "from quantspec_conformance.protocol.messages import Hello, Request\n"
        "with ProcessImplementation(sys.argv[1:], timeout=60) as adapter:\n"
        "    print(adapter.hello(Hello()).name, flush=True)\n"
        "    try:\n"
        "        adapter.handle(Request('echo'))\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
    )
    command = [sys.executable, "-c", script, sys.executable, "-S", str(FAULTY / "text_wire.py"), "hang"]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as harness:
        assert harness.stdout is not None and harness.stdout.readline() == "faulty\n"
        time.sleep(0.3)
        os.killpg(harness.pid, signal.SIGINT)
        out, errors = harness.communicate(timeout=20)
    assert (out, errors, harness.returncode) == ("interrupted\n", "", 0)


def test_an_adapter_that_ended_is_noticed_while_its_child_holds_the_pipe() -> None:
    started = time.monotonic()
    with faulty("text_wire", "orphan", timeout=60) as implementation:
        error = broken(implementation)
    assert error.status == "crash" and "exit status 3" in error.message
    assert time.monotonic() - started < 10


def test_after_a_crash_the_next_request_is_answered() -> None:
    with faulty("text_wire", "crash-at", "3") as implementation:
        outcomes = []
        for _ in range(9):
            try:
                outcomes.append(implementation.handle(ECHO) == Ok(dict(ECHO.tensors)))
            except ImplementationError as error:
                assert error.status == "crash" and "exit status 7" in error.message
                assert error.stderr == "about to crash"
                outcomes.append(False)
    assert outcomes == [True, True, False] * 3


def test_restarts_have_a_cap() -> None:
    with faulty("text_wire", "exit-in-hello") as implementation:
        for _ in range(RESTARTS + 1):
            assert broken(implementation).status == "crash"
        error = broken(implementation)
    assert error.status == "error" and f"restarted {RESTARTS} times" in error.message


def test_another_identity_after_a_restart_is_refused(tmp_path: Path) -> None:
    with faulty("text_wire", "another-after-crash", str(tmp_path / "seen")) as implementation:
        assert broken(implementation).status == "crash"
        error = broken(implementation)
    assert error.status == "error" and "identity differs" in error.message


def test_a_later_minor_is_spoken_with() -> None:
    with faulty("text_wire", "later-minor") as implementation:
        assert implementation.hello(Hello()).protocol == (1, 9)


def test_answers_that_nobody_asked_for() -> None:
    with faulty("text_wire", "unasked") as implementation:
        assert "id 1" in broken(implementation).message


def test_stderr_is_kept_within_bounds() -> None:
    with faulty("text_wire", "flood") as implementation:
        assert implementation.handle(ECHO) == Ok(dict(ECHO.tensors))
        assert implementation.handle(ECHO) == Ok(dict(ECHO.tensors))
    with faulty("text_wire", "crash-at", "1") as implementation:
        error = broken(implementation)
        assert error.stderr.count("\n") < 64 and all(len(line) <= 500 for line in error.stderr.split("\n"))


def test_lies_that_only_a_comparison_finds() -> None:
    with faulty("text_wire", "random") as implementation:
        assert implementation.handle(ECHO) != implementation.handle(ECHO)
    with faulty("text_wire", "claims-all") as implementation:
        assert implementation.hello(Hello()).ops == ()
        assert isinstance(implementation.handle(Request("size", {"shape": "2"})), Unsupported)
    with faulty("text_wire", "other-shape") as implementation:
        assert implementation.handle(ECHO) == Ok({"x": Tensor("u8", (2, 2), (1, 2, 3, 4))})


def test_the_gate_finds_host_floats() -> None:
    with faulty("text_wire", "floats") as implementation:
        found = echo_gate(implementation)
    assert [line.split(":")[0] for line in found] == ["f16", "bf16", "f32", "scalar"]
    assert all("signaling NaNs became quiet" in line for line in found), found


class Echo:
    """An echo that does something to its tensors."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        self.change = change

    def hello(self, hello: Hello) -> Identity:
        return Identity(name="echo")

    def handle(self, request: Request) -> Answer:
        return Ok({name: self.change(tensor) for name, tensor in request.tensors.items()})

    def close(self) -> None:
        pass


def _without(dtype: str, test: Callable[[int], bool], become: Callable[[int], int]) -> Callable[[Tensor], Tensor]:
    def change(tensor: Tensor) -> Tensor:
        if tensor.dtype != dtype:
            return tensor
        return Tensor(dtype, tensor.shape, tuple(become(p) if test(p) else p for p in tensor.patterns))

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_without("f32", lambda p: p == 0x80000000, lambda p: 0), "-0 lost its sign"),
        (
            _without("f32", lambda p: 0 < p & 0x7FFFFFFF < 0x00800000, lambda p: p & 0x80000000),
            "subnormals are flushed",
        ),
        (_without("f32", lambda p: p & 0x7FFFFFFF > 0x7F800000, lambda p: 0x7FC00000), "payload or sign"),
        (_without("bf16", lambda p: True, lambda p: p >> 8 | (p & 255) << 8), "bytes are swapped"),
        (_without("u32", lambda p: p == 0xFFFFFFFF, lambda p: 0x7FFFFFFF), "integers pass through floats"),
        (lambda tensor: Tensor(tensor.dtype, (len(tensor.patterns),), tensor.patterns), "came back as"),
    ],
    ids=["zero", "subnormal", "nan", "swapped", "integers", "shape"],
)
def test_the_gate_has_liars(change: Callable[[Tensor], Tensor], says: str) -> None:
    assert any(says in line for line in echo_gate(Echo(change)))
    assert echo_gate(Echo(lambda tensor: tensor)) == []


def test_an_echo_that_is_not_there_is_said_to_be() -> None:
    class Mute(Echo):
        def handle(self, request: Request) -> Answer:
            return Unsupported("op:echo")

    (line,) = echo_gate(Mute(lambda tensor: tensor))
    assert "echo is unsupported" in line


@BOTH
def test_big_tensors_pass_both_ways_at_once(wire: str) -> None:
    array = np.random.default_rng(1).integers(0, 2**32, 2**21, np.uint32)
    big = Bits("f32", (2**10, 2**11), array)
    with open_served_process("reference", wire=wire) as implementation:
        assert implementation.handle(Request("echo", {}, {"x": big})) == Ok({"x": big})
        assert implementation.handle(ECHO) == Ok(dict(ECHO.tensors))


def doc_requests() -> list[tuple[str, Request]]:
    """The examples of the spec that do one operation."""
    found = []
    for case in load()["cases"]:
        if len(case["do"]) != 1 or case["do"][0] not in OUTPUTS:
            continue
        words = {name: entry for name, entry in case["given"].items() if isinstance(entry, str)}
        tensors = {
            name: Tensor(entry["dtype"], tuple(entry["shape"]), tuple(int(bits, 16) for bits in entry["bits"].split()))
            for name, entry in case["given"].items()
            if not isinstance(entry, str)
        }
        found.append((case["id"], Request(case["do"][0], words, tensors)))
    return found


@BOTH
def test_the_reference_answers_over_a_wire_as_it_does_here(wire: str) -> None:
    law = Law()
    requests = doc_requests()
    assert len(requests) > 100
    with open_served_process("reference", wire=wire) as implementation:
        assert replace(implementation.hello(Hello()), max_in_flight=1) == law.hello(Hello())  # a pipe may run ahead
        for case_id, request in requests:
            assert implementation.handle(request) == law.handle(request), case_id
        assert isinstance(implementation.handle(Request("fold")), Unsupported)
        assert echo_gate(implementation) == []


@pytest.mark.opencl
def test_a_device_answers_as_the_reference_does() -> None:
    law, seen = Law(), set[str]()
    implementation = open_implementation("opencl:0", timeout=60)
    try:
        assert implementation.hello(Hello()).name == "quantspec_cl"
        for case_id, request in doc_requests():
            answer, expected = implementation.handle(request), law.handle(request)
            if isinstance(answer, Unsupported):
                continue
            seen.add(request.op)
            if isinstance(expected, Rejected):
                assert isinstance(answer, Rejected), case_id
                assert (answer.kind, answer.rule) == (expected.kind, expected.rule), case_id
            else:
                assert answer == expected, case_id
    finally:
        implementation.close()
    assert seen >= {"encode", "decode", "encode_scale", "decode_scale", "quantize", "dequantize", "pack", "to_bytes"}


def test_a_served_implementation_may_print(tmp_path: Path) -> None:
    file = tmp_path / "noisy.py"
    file.write_text(
        "import os\n"
        "from quantspec_conformance.implementations.law import Law\n"
        "class Noisy(Law):\n"
        "    def handle(self, request):\n"
        "        print('compiling'); os.write(1, b'still compiling\\n')\n"
        "        return super().handle(request)\n"
    )
    with open_served_process(f"py:{file}:Noisy", wire="text") as implementation:
        assert implementation.handle(ECHO) == Ok(dict(ECHO.tensors))


@pytest.mark.parametrize(
    ("address", "says"),
    [("py:missing.py:A", "no file"), ("nonsense", "cannot be served"), (f"py:{FAKES}:CannotOpen", "cannot be opened")],
)
def test_what_cannot_be_served_says_why_on_stderr(address: str, says: str) -> None:
    with open_served_process(address) as implementation, pytest.raises(ImplementationError) as caught:
        implementation.hello(Hello())
    assert caught.value.status == "crash" and says in caught.value.stderr


def test_methods_become_an_implementation() -> None:
    implementation, law = open_implementation(liar("Liar")), Law()
    seen = set()
    for case_id, request in doc_requests():
        answer, expected = implementation.handle(request), law.handle(request)
        if isinstance(answer, Unsupported) or isinstance(expected, Failed):
            continue
        seen.add(request.op)
        assert answer == expected, case_id
    assert seen >= {"quantize", "dequantize", "pack", "to_bytes", "split"}
    assert isinstance(implementation.handle(Request("encode", {"value": "e2m1"})), Unsupported)
    given = {"x": Tensor("f32", (2,), (0, 0)), "scales": Tensor("f32", (1,), (0x3F800000,))}
    assert implementation.handle(Request("quantize", {"scheme": "q4s.native.b2-f32"}, given)) == Unsupported(
        "scales", "the adapter's quantize has no such argument"
    )
    implementation.close()


def test_a_liar_lies_through_the_bridge() -> None:
    x = Tensor("f32", (4,), (0x40C00000, 0x40200000, 0x3FE00000, 0x3F800000))
    request = Request("quantize", {"scheme": "e2m1.native.b4-f32"}, {"x": x})
    assert open_implementation(liar("TiesToZero")).handle(request) != Law().handle(request)
    raised = open_implementation(liar("Raises")).handle(
        Request(
            "pack",
            {"scheme": "q4s.packed_u32_0.t-f32"},
            {"codes": Tensor("u8", (8,), (0,) * 8), "tensor_scale_code": Tensor("u32", (), (0x3F800000,))},
        )
    )
    assert isinstance(raised, Failed) and "CL_OUT_OF_RESOURCES" in raised.message
    declined = open_implementation(liar("Declines")).handle(
        Request("quantize", {"scheme": "q4f.native.lut-nf4.t-f32"}, {"x": x})
    )
    assert isinstance(declined, Unsupported)


@pytest.mark.parametrize(
    ("given", "says"),
    [(7, "gave a int"), (Ok({"x": Tensor("u8", (1,), (256,))}), "malformed"), (Ok({"X": 1}), "malformed")],  # type: ignore[dict-item]
    ids=["int", "pattern", "name"],
)
def test_what_is_no_answer_becomes_a_failure(given: Answer, says: str) -> None:
    class Careless(Echo):
        def handle(self, request: Request) -> Answer:
            return given

    answer = Guard(Careless(lambda tensor: tensor), "careless").handle(ECHO)
    assert isinstance(answer, Failed) and says in answer.message


@pytest.mark.parametrize(
    ("address", "error", "says"),
    [
        ("", UsageError, "allowed: reference"),
        ("torch", UsageError, "allowed: reference"),
        ("oci:image", UsageError, "allowed: reference"),
        ("py:", UsageError, "allowed: reference"),
        ("exec:", UsageError, "allowed: reference"),
        ("exec:a 'b", UsageError, "quotation"),
        ("exec:''", UsageError, "names no command"),
        ("py:nothing-of-the-kind", DeviceError, "names no implementation"),
        ("py:a.txt:A", DeviceError, "names no class"),
        ("py:a.py", DeviceError, "names no class"),
        ("py:a.py:", DeviceError, "names no class"),
        (f"py:{FAKES}:Nobody", DeviceError, "has no class"),
        (f"py:{FAKES}:CannotOpen", DeviceError, "DEVICE_NOT_AVAILABLE"),
        (f"py:{FAKES.parent}:A", DeviceError, "names no class"),
        ("files:/nowhere/at/all", UsageError, "manifest.json is missing"),
        ("opencl:py:a", UsageError, "no device"),
    ],
)  # fmt: skip
def test_addresses_that_name_nothing(address: str, error: type[HarnessError], says: str) -> None:
    with pytest.raises(error, match=says):
        open_implementation(address)


def test_an_entry_point_names_an_implementation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[quantspec.implementations]\nlab = quantspec_conformance.implementations.law:Law\nbad = no_such_module_here:X\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert open_implementation("py:lab").hello(Hello()).name == "reference"
    with pytest.raises(DeviceError, match="cannot be imported"):
        open_implementation("py:bad")


def test_a_command_is_split_and_never_run_by_a_shell(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    implementation = open_implementation(
        f"exec:{sys.executable} -S {FAULTY / 'text_wire.py'} honest ';' touch {marker} '$(touch {marker})'"
    )
    assert implementation.handle(ECHO) == Ok(dict(ECHO.tensors))
    implementation.close()
    assert not marker.exists()
    error = broken(open_implementation("exec:/no/such/command"))
    assert error.status == "error" and "cannot be started" in error.message


def test_the_environment_finds_our_packages() -> None:
    paths = environment({"A": "b"})["PYTHONPATH"].split(os.pathsep)
    assert len(set(paths)) == len(paths) and environment({"A": "b"})["A"] == "b"


# ---------------------------------------------------------------- the offline lab


def lab(folder: Path) -> list[Case]:
    """An exported folder of three cases, the first and the second answered."""
    cases = [
        Case(id=f"echo.u8.lab.n{n}", title="", op="echo", level=0, inputs={"x": Tensor("u8", (1,), (n,))})
        for n in range(3)
    ]
    assert export_requests(cases, folder, hello=Hello(suite="abc")) == 3
    for number in (1, 2):
        answer = Ok(dict(cases[number - 1].inputs))
        (folder / "answers" / f"{number:06d}.frame").write_bytes(answer_frame(number, answer))
    return cases


def test_a_lab_answers_what_it_was_sent(tmp_path: Path) -> None:
    cases = lab(tmp_path / "lab")
    implementation = open_implementation(f"files:{tmp_path / 'lab'}")
    assert implementation.hello(Hello()).name == "files"
    assert [implementation.handle(case.request) for case in cases[:2]] == [Ok(dict(case.inputs)) for case in cases[:2]]
    assert implementation.handle(cases[2].request) == Unsupported(NOTRUN, "there is no answers/000003.frame")
    assert implementation.handle(ECHO) == Unsupported(NOTRUN, "the request was not exported")
    manifest = json.loads((tmp_path / "lab" / "manifest.json").read_text())
    assert [row["case"] for row in manifest["requests"]] == [case.id for case in cases] and manifest["suite"] == "abc"
    assert (tmp_path / "lab" / "requests" / "000002.frame").read_bytes() == request_frame(2, cases[1].request)
    assert (tmp_path / "lab" / "hello.txt").read_bytes().startswith(b"hello protocol=1.0 suite=abc")
    (tmp_path / "lab" / "answers" / "identity.frame").write_bytes(identity_frame(Identity(name="bench 3")))
    assert implementation.hello(Hello()).name == "bench 3"
    with pytest.raises(UsageError, match="not empty"):
        export_requests(cases, tmp_path / "lab")


def test_a_lab_is_hostile(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    cases = lab(folder)
    outside = tmp_path / "outside.frame"
    outside.write_bytes(answer_frame(3, Ok()))
    answers = folder / "answers"
    (answers / "000003.frame").symlink_to(outside)
    implementation = FilesImplementation(folder)
    with pytest.raises(UsageError, match="links are not followed"):
        implementation.handle(cases[2].request)
    (answers / "000003.frame").unlink()
    os.mkfifo(answers / "000003.frame")
    with pytest.raises(UsageError, match="FIFO"):
        implementation.handle(cases[2].request)
    (answers / "000001.frame").write_bytes(answer_frame(2, Ok()))
    assert "answers request 2" in broken(implementation, cases[0].request).message
    (answers / "000001.frame").write_bytes(b"\x10" + bytes(7))
    assert broken(implementation, cases[0].request).status == "crash"
    answers.rename(tmp_path / "moved")
    answers.symlink_to(tmp_path / "moved")
    with pytest.raises(UsageError, match="links are not followed"):
        implementation.handle(cases[1].request)


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "[" * 100000, '{"schema":"other"}', '{"schema":"lab-requests-1"}',
     '{"schema":"lab-requests-1","requests":[{"digest":"a","number":"../../x"}]}',
     '{"schema":"lab-requests-1","requests":[{"digest":"a","number":-1}]}'],
)  # fmt: skip
def test_a_manifest_that_is_none(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(UsageError, match="manifest"):
        FilesImplementation(tmp_path)


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(ImplementationError, match="empty"):
        ProcessImplementation([])
