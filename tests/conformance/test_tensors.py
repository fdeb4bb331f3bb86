"""Tensors from files: real ones are read bit for bit, hostile ones get a message and never a traceback."""

import json
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import quantspec
from quantspec_conformance.errors import UsageError
from quantspec_conformance.statistics import measure
from quantspec_conformance.tensors import read_tensor

from .conftest import Quantspec

X = np.arange(24, dtype=np.float32).reshape(4, 6) - 7


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_safetensors_are_read_bit_for_bit(tmp_path: Path, dtype: str) -> None:
    x = X.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    save_file({"w": x, "other": X}, tmp_path / "m.safetensors")
    name, found = read_tensor(str(tmp_path / "m.safetensors"), "w")
    assert (name, found.dtype) == ("w", x.dtype)
    assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f2"])
def test_npy_files_of_any_order_are_read(tmp_path: Path, dtype: str) -> None:
    np.save(tmp_path / "w.npy", np.asfortranarray(X.astype(dtype)))
    _, found = read_tensor(str(tmp_path / "w.npy"))
    assert np.array_equal(found, X)


def _header(shape: str, descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00v\x00" + text.ljust(117).encode() + b"\n"


def _safetensors(header: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _npy_of(array: np.ndarray) -> bytes:
    import io

    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "pickle": ("x.npy", pickle.dumps([1, 2]), "pickled Python objects, which are never loaded"),
    "object array": ("x.npy", _npy_of(np.array([{}, {}], object)), "pickled Python objects"),
    "empty npy": ("x.npy", b"", "cannot be read"),
    "huge npy": ("x.npy", _header("(1000000000, 1000000)"), "1000000000000000 elements; allowed: at most"),
    "overflowing npy": ("x.npy", _header("(9223372036854775807, 9223372036854775807)"), "allowed: at most"),
    "negative npy": ("x.npy", _header("(-1, 4)"), "cannot be read"),
    "npy code": ("x.npy", _header("(__import__('os').system('touch /tmp/pwned'),)"), "cannot be read"),
    "lying npy": ("x.npy", _header("(1000, 1000)"), "0 bytes of data for an array (1000, 1000)"),
    "truncated npy": ("x.npy", _npy_of(X)[:-4], "cannot be read"),
    "f64 npy": ("x.npy", _npy_of(X.astype(np.float64)), "has dtype float64; allowed: float32, float16, bfloat16"),
    "bf16 npy": ("x.npy", _npy_of(X.astype(ml_dtypes.bfloat16)), "save it as .safetensors"),
    "int npy": ("x.npy", _npy_of(X.astype(np.int8)), "has dtype int8"),
    "garbage": ("x.safetensors", b"\xff" * 64, "is not a whole .safetensors file"),
    "empty": ("x.safetensors", b"", "is not a whole .safetensors file"),
    "lying length": ("x.safetensors", (2**63).to_bytes(8, "little") + b"{}", "is not a whole .safetensors file"),
    "truncated": (
        "x.safetensors",
        _safetensors({"w": {"dtype": "F32", "shape": [4, 6], "data_offsets": [0, 96]}}, X.tobytes()[:-8]),
        "is not a whole .safetensors file",
    ),
    "offsets beyond": (
        "x.safetensors",
        _safetensors({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 2**60]}}, b"0" * 16),
        "is not a whole .safetensors file",
    ),
    "int tensor": (
        "x.safetensors",
        _safetensors({"w": {"dtype": "I8", "shape": [4], "data_offsets": [0, 4]}}, b"0" * 4),
        "w has dtype I8; allowed: float32, float16, bfloat16",
    ),
    "two tensors": (
        "x.safetensors",
        _safetensors({name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in ("a", "b")}),
        "holds 2 tensors; choose one with --name: a, b",
    ),
    "other suffix": ("x.bin", b"", "allowed are .npy and .safetensors files"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_get_a_message(tmp_path: Path, kind: str) -> None:
    file, content, message = HOSTILE[kind]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(UsageError) as error:
        read_tensor(str(tmp_path / file))
    assert message in str(error.value)
    assert str(tmp_path / file) in str(error.value)
    assert not Path("/tmp/pwned").exists()


def test_missing_files_names_and_large_tensors(tmp_path: Path) -> None:
    file = str(tmp_path / "m.safetensors")
    with pytest.raises(UsageError, match="no such file"):
        read_tensor(file)
    save_file({"w": X}, file)
    with pytest.raises(UsageError, match=r"--name 'v' is not in .*; it holds w"):
        read_tensor(file, "v")
    with pytest.raises(
        UsageError, match=r"24 elements; allowed: at most 23 \(quantspec run raises it with --max-elements\)"
    ):
        read_tensor(file, limit=23)
    np.save(tmp_path / "w.npy", X)
    with pytest.raises(UsageError, match=r"a \.npy file holds one tensor"):
        read_tensor(str(tmp_path / "w.npy"), "w")


def test_a_tensor_is_run_measured_and_plotted(quantspec_command: Quantspec, tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((48, 96)).astype(ml_dtypes.bfloat16)
    save_file({"layer.weight": weights, "bias": X}, tmp_path / "m.safetensors")
    file = str(tmp_path / "m.safetensors")
    done = quantspec_command("run", "--device", "reference", "--tensor", file, "--name", "layer.weight")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tensor layer.weight, bfloat16 of shape (48, 96)" in done.stdout
    assert "e2m1.packed_native_0.b16-ue4m3.t-f32" in done.stdout
    assert "log10 of the RMS error, over bits an element" in done.stdout
    assert "\x1b" not in done.stdout
    missing = quantspec_command("run", "--device", "reference", "--tensor", file, "--name", "nope")
    assert missing.returncode == 2
    assert missing.stderr.startswith("quantspec: --name 'nope' is not in ")


def test_a_liar_fails_on_a_tensor_and_the_repro_names_it(quantspec_command: Quantspec, tmp_path: Path) -> None:
    from .conftest import liar

    np.save(tmp_path / "w.npy", np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32))
    file = str(tmp_path / "w.npy")
    done = quantspec_command(
        "run", "--device", liar("HighNibbleFirst"), "--tensor", file, "--only", "q4s.packed_native_0.t-f32"
    )
    assert done.returncode == 1
    assert "rule PAK-4" in done.stdout
    assert f"--tensor {file} --only q4s.packed_native_0.t-f32" in done.stdout


def test_statistics_of_a_tensor_that_is_held_exactly() -> None:
    found = measure(np.array([-7, -3, 0, 7], np.float32), quantspec.Scheme.parse("q4s.native.t-f32"))
    assert (found.largest_error, found.rms_error, found.clipped, found.saturated) == (0, 0, 0, 0)
    assert found.codes_used == 4 / 15
    assert found.bits == 16


def test_statistics_of_special_tensors() -> None:
    scheme = quantspec.Scheme.parse("q8s.native.b2-f16")
    large = np.array([3e38, 1], np.float32)
    for x in (np.zeros((0, 3), np.float32), np.array([np.nan, np.inf, 0], np.float32), large):
        assert np.isfinite([measure(x, scheme).rms_error, measure(x, scheme).largest_error]).all()
    assert measure(large, scheme).saturated == 1
