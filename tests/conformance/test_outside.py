"""What comes from outside, and what goes there: odd paths, hostile files, a report that nobody takes, signals, odd options."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import save_file

import quantspec
from quantspec_conformance import command as run_module
from quantspec_conformance import wire
from quantspec_conformance.cli import main
from quantspec_conformance.errors import UsageError
from quantspec_conformance.outside import printable
from quantspec_conformance.resultfile import check_writable
from quantspec_conformance.shelltext import quoted
from quantspec_conformance.statistics import measure
from quantspec_conformance.tensors import read_tensor

from .conftest import ROOT, Quantspec, command, environment, liar

CASE = "q8s.native.t-f32"


def invoke(*arguments: str) -> tuple[int, str]:
    """The command in this process: exit code and everything printed."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def json_run(path: Path | str) -> tuple[int, str]:
    return invoke("run", "--device", "reference", "--only", CASE, "--json", str(path))


def header(text: str) -> bytes:
    """A version 2 .npy file with this text as its header."""
    return b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text.encode()


def test_a_result_is_not_written_onto_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    (tmp_path / "device").symlink_to(os.devnull)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, message in (
        ("fifo", "is a FIFO; allowed: a regular file"),
        ("link", "is a FIFO"),
        ("device", "is a device"),
        (".", "is a folder"),
        ("loop", "cannot be written"),
        ("a" * 300, "cannot be written"),
    ):
        with pytest.raises(UsageError, match=message):  # never the command: it must not get as far as writing
            check_writable(tmp_path / name)
    code, output = json_run(tmp_path / "fifo")
    assert (code, "is a FIFO" in output) == (2, True)
    assert (tmp_path / "fifo").is_fifo()


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(Path("there") / "r.json")
    for _ in range(2):  # dangling, then not
        assert json_run(tmp_path / "link")[0] == 0
        assert (tmp_path / "link").is_symlink()
        assert json.loads((tmp_path / "there" / "r.json").read_text())["schema"] == "run-1"
    assert len(list((tmp_path / "there").iterdir())) == 1


def test_a_folder_that_takes_no_file_is_refused_before_the_run() -> None:
    code, output = json_run("/proc/x.json")
    assert code == 2
    assert "'/proc/x.json': the folder cannot be written: " in output
    assert "covers" not in output


def test_a_result_that_cannot_be_written_leaves_the_report(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(path: Path, content: object) -> None:
        raise UsageError(f"--json: {str(path)!r} cannot be written: No space left on device")

    monkeypatch.setattr(run_module, "write_json", full)
    code, output = json_run(tmp_path / "r.json")
    assert code == 2
    assert "reference: " in output
    assert "as expected" in output
    assert "No space left on device" in output
    assert "result written" not in output


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_tensors_of_either_byte_order_are_the_same(quantspec_command: Quantspec, tmp_path: Path, dtype: str) -> None:
    x = np.array([[1.5, -0.0, np.inf, 3e-7], [np.nan, 0.25, -7, 12]], dtype)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    x.view(unsigned)[1, 0] += 5  # a NaN's payload survives
    np.save(tmp_path / "w.npy", x.astype(x.dtype.newbyteorder(">")))
    _, found = read_tensor(str(tmp_path / "w.npy"))
    assert found.dtype.isnative
    assert found.tobytes() == x.tobytes()
    swapped = x.astype(x.dtype.newbyteorder(">"))
    assert wire.pack_array(swapped) == wire.pack_array(x)
    assert np.array_equal(wire.bits(swapped), x.view(unsigned))
    if dtype == "float32":
        done = quantspec_command("run", "--device", liar("Noisy"), "--tensor", str(tmp_path / "w.npy"), "--only", CASE)
        assert done.returncode == 0, done.stdout


def test_numbers_that_overflow_are_measured_and_not_plotted(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.full((4, 32), np.finfo(np.float32).max))
    file = str(tmp_path / "w.npy")
    arguments = ("run", "--device", "reference", "--tensor", file, "--json", str(tmp_path / "r.json"))
    code, output = invoke(*arguments)
    assert code == 0, output
    assert (tmp_path / "r.json").exists()
    assert "log10 of the RMS error" in output  # of the schemes that hold the tensor
    assert measure(np.load(file), quantspec.Scheme.parse(CASE)).rms_error == np.inf
    code, output = invoke(*arguments, "--only", CASE)
    assert code == 0, output
    assert "log10" not in output


HOSTILE = {
    "tokenizer": header("(" * 9000),
    "parser": header("{'descr': '<f4', 'fortran_order': False, 'shape': " + "-" * 9000 + "1}"),
    "bool shape": header("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 4)}") + bytes(16),
    "rank 70": header("{'descr': '<f4', 'fortran_order': False, 'shape': " + str((1,) * 70) + "}") + bytes(16),
    "overflow": header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2361183241434822606848)}"),
    "descr": header("{'descr': [('a',)], 'fortran_order': False, 'shape': (1,)}"),
    "nul": header("\0"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_headers_get_a_message(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.npy").write_bytes(HOSTILE[kind])
    file = str(tmp_path / "x.npy")
    for arguments in (("explain", CASE, file), ("run", "--device", "reference", "--tensor", file)):
        code, output = invoke(*arguments)
        assert code == 2, output
        assert f"{file!r} cannot be read: " in output


def test_odd_paths_are_called_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "fifo.npy")
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    for name, message in (("folder", "is a folder"), ("fifo", "is a FIFO"), ("loop", "symbolic links")):
        with pytest.raises(UsageError, match=message):
            read_tensor(str(tmp_path / f"{name}.npy"))


def test_a_report_that_nobody_reads_ends_quietly(tmp_path: Path) -> None:
    for arguments in (("explain", CASE, "0.3"), ("run", "--device", "reference", "--only", CASE)):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(
            command(*arguments), env=environment(), cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False
        )
        os.close(write)
        assert (done.returncode, done.stderr) == (141, b"")


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    words = shlex.join(command("explain", CASE, "0.3"))
    with (tmp_path / "out").open("wb") as out:  # a file that may not grow stands for a full device
        done = subprocess.run(
            ["bash", "-c", f"ulimit -f 0; exec {words}"],
            env=environment(), cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.stderr == "quantspec: cannot write the report: File too large\n"
    assert done.returncode == 2


def test_sigterm_is_an_interruption_even_where_the_whole_group_gets_it(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    process = subprocess.Popen(
        command("run", "--device", liar("Slow"), "--only", "q8s.*", "--json", str(file)),
        env=environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("device "):
            break
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGTERM)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert "interrupted: what was done until then is shown" in output
    content: dict[str, Any] = json.loads(file.read_text())
    assert content["interrupted"]
    assert "crash" not in content["devices"][0]["totals"]
    with pytest.raises(ProcessLookupError):  # no worker is left in the group
        os.killpg(process.pid, 0)


def test_escapes_in_names_of_a_file_are_not_printed(tmp_path: Path) -> None:
    name = "w\x1b[31m\n\u202ex"
    save_file({name: np.ones((2, 32), ml_dtypes.bfloat16)}, tmp_path / "m.safetensors")
    save_file({name: np.ones(2, np.int8)}, tmp_path / "i.safetensors")
    save_file({name: np.ones(2, np.float32), "v": np.ones(2, np.float32)}, tmp_path / "two.safetensors")
    shown = r"w\x1b[31m\n\u202ex"
    for arguments in (
        ("explain", CASE, str(tmp_path / "m.safetensors")),
        ("explain", CASE, str(tmp_path / "i.safetensors")),
        ("explain", CASE, str(tmp_path / "two.safetensors")),
        ("run", "--device", "reference", "--only", CASE, "--tensor", str(tmp_path / "m.safetensors")),
    ):
        _, output = invoke(*arguments)
        assert shown in output
        assert "\x1b" not in output
        assert "\u202e" not in output
    assert printable("a\nb\x07", keep="\n") == "a\nb\\x07"
    assert quoted("a b") == "'a b'"
    assert subprocess.run(
        ["bash", "-c", f"printf %s {quoted(name)}"],
        capture_output=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"},
    ).stdout == name.encode()  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--device", "reference", "--timeout", "nan"], "nan is no number of seconds"),
        (["run", "--device", "reference", "--timeout", "inf"], "inf is no number of seconds"),
        (["run", "--device", ""], "--device is empty"),
        (["run", "--build-option="], "--build-option is empty"),
        (["run", "--device", "reference", "--max-elements", "5"], "--max-elements goes with --tensor"),
        (["explain", CASE, "1.5", "--index", "3"], "--index goes with a file; '1.5' is none"),
        (["explain", CASE, "c7", "--name", "q"], "--name goes with a file"),
        (["explain", CASE, "٣"], "'٣' is no value"),
        (["explain", CASE, "w.npy", "--index", "٣"], "is not an index"),
    ],
)
def test_odd_options_are_usage_errors(arguments: list[str], message: str) -> None:
    code, output = invoke(*arguments)
    assert message in output
    assert code == 2


def test_an_adapter_without_a_class_is_told_so() -> None:
    code, output = invoke("run", "--device", "py:mk.py", "--only", CASE)
    assert code == 3
    assert "names no class; write py:FILE.py:CLASS" in output


def test_an_empty_tensor_has_nothing_to_explain(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.zeros((0, 3), np.float32))
    code, output = invoke("explain", CASE, str(tmp_path / "w.npy"))
    assert code == 2
    assert "there is no element to explain" in output
    assert "--index" not in output
