"""`quantspec convert`: checkpoints there and back byte for byte, every container against the oracle, liars, hostile files."""

import json
import random
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import load_file, save_file

import quantspec as qs
from quantspec.containers import CONTAINERS
from quantspec_conformance.cli import main
from quantspec_conformance.convert import exact
from quantspec_conformance.convert.dialects import dialect, scheme_of
from quantspec_conformance.errors import UsageError
from quantspec_conformance.spec import spec_root

from .. import oracle_containers
from .. import strategies as g
from ..bridge import reference_scheme
from ..oracle import S
from ..oracle_containers import K

FILE = Path(__file__).parents[1] / "cases" / "checkpoints.json"
CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in json.loads(FILE.read_text("utf-8"))["cases"]}
MXFP4 = ("--scheme", "e2m1.packed_native_0.b32-ue8m0", "--shape", "2x64", "--from", "ggml-mxfp4")


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["convert", *(str(word) for word in words)], prog_name="quantspec")


def told(case: dict[str, Any]) -> list[str]:
    """What the options say of a checkpoint."""
    return ["--scheme", case["scheme"], "--shape", "x".join(map(str, case["shape"])), "--from", name_of(case)]


def name_of(case: dict[str, Any]) -> str:
    return str(case["preset"] or case["container"])


@pytest.fixture
def mxfp4(tmp_path: Path) -> Path:
    path = tmp_path / "in.bin"
    path.write_bytes(bytes.fromhex(CASES["gguf-MXFP4"]["bytes"]))
    return path


# ---------------------------------------------------------------- there and back


@pytest.mark.parametrize("suffix", [".bin", ".npy", ".safetensors"])
@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_goes_to_canonical_and_back_byte_for_byte(tmp_path: Path, name: str, suffix: str) -> None:
    case, here, there, back = CASES[name], tmp_path / "in", tmp_path / f"out{suffix}", tmp_path / "back"
    here.write_bytes(bytes.fromhex(case["bytes"]))
    gone = invoke(here, there, *told(case), "--to", "canonical")
    assert gone.exit_code == 0, gone.output
    assert "converting back gives the same bytes [POL-18]" in gone.output
    scheme = told(case)[:4] if suffix != ".safetensors" else []
    source = ["--from", "canonical"] if suffix != ".safetensors" else []
    came = invoke(there, back, *scheme, *source, "--to", name_of(case))
    assert came.exit_code == 0, came.output
    assert back.read_bytes().hex() == case["bytes"]


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_is_dequantized_to_the_numbers_of_its_library(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    (tmp_path / "in").write_bytes(bytes.fromhex(case["bytes"]))
    out = tmp_path / "out.safetensors"
    result = invoke(tmp_path / "in", out, *told(case), "--to", "canonical", "--dequantize", case["to"])
    assert result.exit_code == 0, result.output
    assert load_file(out)["y"].tobytes().hex() == case["y"]
    assert f"numbers  {case['to']} " in result.output and "and 120 more" in result.output
    again = invoke(out, tmp_path / "again.safetensors", "--to", "canonical", "--dequantize", case["to"])
    assert again.exit_code == 0, again.output  # recipe and codec lie in the file
    assert load_file(tmp_path / "again.safetensors")["y"].tobytes().hex() == case["y"]


COVERED = {
    "canonical": S("e3m2", "packed_native", 1, block=(3,), block_type="bf16"),
    "high-nibble": S("e2m1", "packed_native", 0, block=(3,), block_type="f16", tensor="f32"),
    "split-half": S("e2m1", "packed_native", 0, block=(8,), block_type="ue4m3", tensor="f32"),
    "ggml-blocks": S("e2m1", "packed_native", 0, block=(32,), block_type="ue8m0"),
    "ggml-q4_0": S("q4f", "packed_native", 0, block=(32,), block_type="f16"),
    "ggml-q8_0": S("q8s", "native", 0, block=(32,), block_type="f16"),
    "compressed-tensors-i32": S("q4f", "packed_u32", 0, block=(32,), block_type="bf16"),
    "gptq-i32": S("q4f", "packed_u32", 1, block=(2, 1), block_type="f16"),
    "awq-i32": S("q4f", "packed_u32", 0, block=(32,), block_type="f16"),
    "mlx-u32": S("e3m2", "packed_u32", 0, block=(32,), block_type="ue8m0"),
    "cublas-128x4": S("e2m1", "packed_native", 0, block=(16,), block_type="ue4m3", tensor="f32"),
}
SHAPE = (9, 64)


def drawn(name: str) -> tuple[S, K, bytes, bytes]:
    """A scheme, a container, and the bytes of one tensor, canonical and in it, by the oracle alone."""
    s, source = COVERED[name], random.Random(name)
    row = CONTAINERS[name]
    k = K(*(getattr(row, member) for member in K.__dataclass_fields__))
    q = g.content(s, SHAPE, source)
    return s, k, oracle_containers.to_bytes(q, SHAPE, s, K("canonical")), oracle_containers.to_bytes(q, SHAPE, s, k)


def test_every_container_is_tried() -> None:
    assert set(COVERED) == set(CONTAINERS)


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_is_written_and_read_as_the_oracle_says(tmp_path: Path, name: str) -> None:
    s, _, canonical, own = drawn(name)
    assert (canonical != own) == (name != "canonical")
    (tmp_path / "in").write_bytes(canonical)
    words = ["--scheme", reference_scheme(s).text, "--shape", "9x64"]
    for suffix in ("bin", "safetensors"):
        result = invoke(
            tmp_path / "in", tmp_path / f"o.{suffix}", *words, "--from", "canonical", "--to", f"container:{name}"
        )
        assert result.exit_code == 0, result.output
    assert (tmp_path / "o.bin").read_bytes() == own
    for there, rest in (("o.bin", [*words, "--from", f"container:{name}"]), ("o.safetensors", [])):
        result = invoke(tmp_path / there, tmp_path / "back", *rest, "--to", "container:canonical", "--force")
        assert result.exit_code == 0, result.output
        assert (tmp_path / "back").read_bytes() == canonical


FP4 = qs.Preset.of("bnb-fp4").table
assert FP4 is not None
EDGES = (
    ("q4f.packed_native_0.t-f32", (), "canonical", "high-nibble"),
    ("q4f.packed_native_0.b32-f16", (2, 0), "canonical", "ggml-q4_0"),
    ("q8s.native.t-f32", (0, 3), "canonical", "container:canonical"),
    ("e2m3.packed_native_0.b8-ue4m3", (3, 5), "canonical", "high-nibble"),
    ("q4s.packed_native_0.lut-nf4.b64-f32", (2, 64), "canonical", "bnb-nf4"),
    (f"q4s.packed_native_0.lut-{FP4.name}.b64-f32", (2, 64), "canonical", "bnb-fp4"),
)


@pytest.mark.parametrize(("scheme", "shape", "here", "there"), EDGES, ids=[edge[0] for edge in EDGES])
def test_scalars_empty_tensors_words_of_three_bytes_and_tables(
    tmp_path: Path, scheme: str, shape: tuple[int, ...], here: str, there: str
) -> None:
    own = scheme_of(scheme)
    x = np.linspace(-3, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    data = qs.to_bytes(qs.quantize(x, own))
    (tmp_path / "in").write_bytes(data)
    words = ["--scheme", scheme, "--shape", "x".join(map(str, shape)) or "scalar", "--from", here]
    gone = invoke(tmp_path / "in", tmp_path / "o.safetensors", *words, "--to", there, "--dequantize", "f16")
    assert gone.exit_code == 0, gone.output
    assert load_file(tmp_path / "o.safetensors")["y"].shape == shape
    came = invoke(tmp_path / "o.safetensors", tmp_path / "back", "--to", here)
    assert came.exit_code == 0, came.output
    assert (tmp_path / "back").read_bytes() == data


def test_codes_move_to_another_store(tmp_path: Path, mxfp4: Path) -> None:
    out = tmp_path / "m.safetensors"
    result = invoke(mxfp4, out, *MXFP4, "--to", "mlx-mxfp4", "--to-store", "packed_u32_0")
    assert result.exit_code == 0, result.output
    assert "store    e2m1.packed_u32_0.b32-ue8m0" in result.output
    found = load_file(out)
    assert found["words"].dtype == np.uint32 and found["words"].shape == (2, 8)
    back = invoke(out, tmp_path / "back", "--to", "ggml-mxfp4", "--to-store", "packed_native_0")
    assert back.exit_code == 0, back.output
    assert (tmp_path / "back").read_bytes() == mxfp4.read_bytes()
    refused = invoke(mxfp4, tmp_path / "no", *MXFP4, "--to", "mlx-mxfp4")
    assert refused.exit_code == 2 and "[POL-10]" in refused.output and not (tmp_path / "no").exists()


def test_another_meaning_of_the_same_scale_codes_is_said(tmp_path: Path) -> None:
    """compressed-tensors divides by its tensor scale, torchao multiplies: the bytes are the same, the numbers are not."""
    case = CASES["ct-nvfp4"]
    (tmp_path / "in").write_bytes(bytes.fromhex(case["bytes"]))
    other = invoke(tmp_path / "in", tmp_path / "a", *told(case), "--to", "nvfp4-torchao")
    assert other.exit_code == 0 and "of these codes as other numbers" in other.output
    assert (tmp_path / "a").read_bytes() == (tmp_path / "in").read_bytes()
    same = invoke(tmp_path / "in", tmp_path / "b", *told(case), "--to", "nvfp4-compressed-tensors")
    assert same.exit_code == 0 and "other numbers" not in same.output


# ---------------------------------------------------------------- tensors apart


def test_words_and_scales_apart_as_checkpoints_keep_them(tmp_path: Path) -> None:
    for name, dtype, parts in (
        ("mlx-nvfp4", "<u4", ("w", "s", "g")),
        ("ct-nvfp4", "u1", ("weight_packed", "weight_scale", "weight_global_scale")),
        ("ct-int4", "<i4", ("weight_packed", "weight_scale")),
    ):
        case, data = CASES[name], bytes.fromhex(CASES[name]["bytes"])
        grid = "<f4" if name == "ct-int4" else "u1"
        words = np.frombuffer(data[:64], dtype).reshape(2, -1)
        scales = np.frombuffer(data[64 : 64 + (16 if name == "ct-int4" else 8)], grid).reshape(2, -1)
        tensors = dict(zip(parts, (words, scales, np.frombuffer(data[72:76], "<f4")), strict=False))
        save_file({**tensors, "other": np.zeros(3)}, tmp_path / f"{name}.safetensors")
        options = [w for pair in zip(("--words", "--scales", "--tensor-scale"), parts, strict=False) for w in pair]
        result = invoke(tmp_path / f"{name}.safetensors", tmp_path / name, *told(case), *options, "--to", name_of(case))
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).read_bytes() == data


def apart(tmp_path: Path, **tensors: np.ndarray[Any, Any]) -> Path:
    path = tmp_path / "apart.safetensors"
    data = np.frombuffer(bytes.fromhex(CASES["ct-mxfp4"]["bytes"]), np.uint8)
    save_file({"w": data[:64].reshape(2, 32), "s": data[64:].reshape(2, 2), **tensors}, path)
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "choose the stream with --name, or its parts with --words, --scales, --tensor-scale: half, s, turned, w"),
        (["--words", "w"], "--scales is missing: the scheme has that level"),
        (["--words", "w", "--scales", "z"], "--scales 'z' is not in"),
        (["--words", "w", "--scales", "s", "--tensor-scale", "s"], "--tensor-scale 's': the scheme has no such level"),
        (["--words", "w", "--scales", "half"], "--scales 'half' has dtype F16; the scale_codes are one of U8, F8_E8M0"),
        (["--words", "turned", "--scales", "s"], "--words 'turned' is U8 of shape (32, 2), 64 bytes; allowed: 64 bytes, (2, 32)"),
        (["--words", "s", "--scales", "s"], "--words 's' is U8 of shape (2, 2), 4 bytes; allowed: 64 bytes"),
        (["--name", "w", "--scales", "s"], "--name is the whole stream, --scales a part of it"),
        (["--name", "half"], "--name 'half' has dtype F16; a stream is U8"),
        (["--name", "w"], "has 64 bytes; e2m1.packed_native_0.b32-ue8m0 of shape 2x64 in container 'canonical' has exactly 68"),
    ],
)  # fmt: skip
def test_tensors_apart_are_never_cut_up(tmp_path: Path, options: list[str], message: str) -> None:
    turned, half = np.zeros((32, 2), np.uint8), np.zeros((2, 1), np.float16)
    path = apart(tmp_path, turned=turned, half=half)
    result = invoke(path, tmp_path / "out", *told(CASES["ct-mxfp4"]), *options, "--to", "canonical")
    assert result.exit_code == 2 and message in result.output, result.output
    assert not (tmp_path / "out").exists()


def test_a_container_with_scales_among_its_words_has_no_parts(tmp_path: Path) -> None:
    result = invoke(apart(tmp_path), tmp_path / "out", *MXFP4, "--words", "w", "--scales", "s", "--to", "canonical")
    assert result.exit_code == 2 and "each scale before its words; name the stream with --name" in result.output


# ---------------------------------------------------------------- liars

Liar = Callable[[qs.Packed, qs.Container], qs.Packed]


def without_bias(packed: qs.Packed, container: qs.Container) -> qs.Packed:
    honest = qs.convert(packed, container)
    forgot = qs.convert(packed, replace(container, bias="none"))
    return replace(honest, words=forgot.words)


def swapped_nibbles(packed: qs.Packed, container: qs.Container) -> qs.Packed:
    honest = qs.convert(packed, container)
    low, high = honest.words & honest.words.dtype.type(0x0F), honest.words >> honest.words.dtype.type(4)
    return replace(honest, words=(low << low.dtype.type(4)) | (high & low.dtype.type(0x0F)))


def one_scale_off(packed: qs.Packed, container: qs.Container) -> qs.Packed:
    honest = qs.convert(packed, container)
    assert honest.scale_codes is not None
    codes = honest.scale_codes.copy()
    codes.flat[-1] ^= 1
    return replace(honest, scale_codes=codes)


def tensor_scale_off(packed: qs.Packed, container: qs.Container) -> qs.Packed:
    honest = qs.convert(packed, container)
    assert honest.tensor_scale_code is not None
    return replace(honest, tensor_scale_code=honest.tensor_scale_code ^ np.uint32(1))


def test_another_tensor_scale_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "convert", tensor_scale_off)
    (tmp_path / "in").write_bytes(bytes.fromhex(CASES["ct-nvfp4"]["bytes"]))
    result = invoke(tmp_path / "in", tmp_path / "out", *told(CASES["ct-nvfp4"]), "--to", "high-nibble")
    assert result.exit_code == 1 and "1 of 1 tensor_scale_code differ" in result.output, result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("liar", "says"),
    [
        (without_bias, "128 of 128 codes differ"),
        (swapped_nibbles, "codes differ"),
        (one_scale_off, "1 of 4 scale_codes differ"),
    ],
)
def test_a_liar_is_caught_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, liar: Liar, says: str
) -> None:
    case = CASES["gguf-Q4_0"]
    canonical, out = tmp_path / "c.safetensors", tmp_path / "out"
    (tmp_path / "in").write_bytes(bytes.fromhex(case["bytes"]))
    assert invoke(tmp_path / "in", canonical, *told(case), "--to", "canonical").exit_code == 0
    assert invoke(canonical, out, "--to", "ggml-q4_0").exit_code == 0
    out.unlink()
    monkeypatch.setattr(exact, "convert", liar)
    result = invoke(canonical, out, "--to", "ggml-q4_0")
    assert result.exit_code == 1, result.output
    assert says in result.output and "nothing is written [POL-18]" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.safetensors", "in"]


def test_a_liar_on_the_way_back_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mxfp4: Path) -> None:
    """The codes are right, and the bytes of the way back are not those that were read."""
    honest = qs.to_bytes
    calls = iter(range(100))
    monkeypatch.setattr(exact, "to_bytes", lambda packed: honest(packed)[::-1] if next(calls) == 1 else honest(packed))
    result = invoke(mxfp4, tmp_path / "out", *MXFP4, "--to", "canonical")
    assert result.exit_code == 1 and "bytes of the way back differ" in result.output
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- padding


def test_bits_that_hold_no_code_are_refused_or_cleared_and_counted(tmp_path: Path) -> None:
    here, words = tmp_path / "in", ["--scheme", "e2m1.packed_native_0.b16-ue4m3", "--shape", "3"]
    here.write_bytes(bytes.fromhex("c2f7ff"))
    refused = invoke(
        here, tmp_path / "a", *words, "--from", "canonical", "--to", "high-nibble", "--ue4m3-bit7", "ignore"
    )
    assert refused.exit_code == 2 and "[PAK-7]" in refused.output and not (tmp_path / "a").exists()
    refused = invoke(here, tmp_path / "a", *words, "--from", "canonical", "--to", "high-nibble", "--padding", "ignore")
    assert refused.exit_code == 2 and "[SCL-2]" in refused.output
    both = ("--padding", "ignore", "--ue4m3-bit7", "ignore")
    taken = invoke(here, tmp_path / "a", *words, "--from", "canonical", "--to", "high-nibble", *both, "--json")
    assert taken.exit_code == 0, taken.output
    report = json.loads(taken.output)
    assert (report["bytes_cleared"], report["back_is_same"]) == (2, False)
    assert (tmp_path / "a").read_bytes().hex() == "2c707f"
    text = invoke(here, tmp_path / "b", *words, "--from", "canonical", "--to", "high-nibble", *both)
    assert "converting back gives the same but for 2 bytes of IN" in text.output


# ---------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "ggml-mxfp5", "--to", "canonical"], "--from 'ggml-mxfp5' is no preset and no container (near: ggml-mxfp4"),
        (["--from", "ggml-mxfp4", "--to", "cannonical"], "--to 'cannonical' is no preset and no container (near: canonical)"),
        (["--from", "ggml-mxfp4@0", "--to", "canonical"], "the version defined is ggml-mxfp4@0.19.0 [POL-19]"),
        (["--from", "preset:ggml-blocks", "--to", "canonical"], "'preset:ggml-blocks' is no preset and no container"),
        (["--from", "ggml-mxfp4", "--to", "ggml-q4_0"], "[POL-10]"),
        (["--from", "ggml-mxfp4", "--to", "nvfp4-te"], "preset='nvfp4-te@d0067d0' with e2m1.packed_native_0.b32-ue8m0"),
        (["--from", "nvfp4-te", "--to", "canonical"], "preset='nvfp4-te@d0067d0' with e2m1.packed_native_0.b32-ue8m0"),
        (["--to", "canonical"], "--from is missing: IN does not say it"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--shape", "2x65"], "[POL-10]"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--shape", "4x64"], "has 68 bytes; e2m1.packed_native_0"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--shape", "1x64"], "more than 34 bytes;"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--shape", "2,64"], "shape '2,64' is not a shape; write 3x70"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--shape", "99999x99999"], "allowed: at most 16777216 (--max-elements"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--max-elements", "127"], "128 elements; allowed: at most 127"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--scheme", "e2m1.packed_natve_0.b32-ue8m0"], "[SCH-15]"),
        (["--from", "ggml-mxfp4", "--to", "canonical", "--words", "w"], "--words goes with a .safetensors file"),
        (["--from", "ggml-mxfp4", "--to", "mlx-u32", "--to-store", "u32"], "[SCH-3]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_nothing_is_written(
    tmp_path: Path, mxfp4: Path, words: list[str], message: str
) -> None:
    result = invoke(mxfp4, tmp_path / "out", "--scheme", MXFP4[1], "--shape", "2x64", *words)
    assert result.exit_code == 2, result.output
    assert message in result.output and "Traceback" not in result.output, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["in.bin"]


def test_a_name_of_both_is_the_preset_unless_it_says_container() -> None:
    assert dialect("ggml-q8_0", "--to").preset is not None
    assert dialect("container:ggml-q8_0", "--to").preset is None
    assert dialect("ggml-mxfp4@0.19.0", "--to").text == "ggml-mxfp4@0.19.0 (ggml-blocks)"
    with pytest.raises(UsageError, match="no preset and no container"):
        dialect("container:ggml-mxfp4", "--to")


def test_out_is_not_written_over_without_force(tmp_path: Path, mxfp4: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"mine")
    refused = invoke(mxfp4, out, *MXFP4, "--to", "canonical")
    assert refused.exit_code == 2 and "is there already; allowed: a new file, or --force" in refused.output
    assert out.read_bytes() == b"mine"
    same = invoke(mxfp4, mxfp4, *MXFP4, "--to", "canonical")
    assert same.exit_code == 2 and "is there already" in same.output
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    assert invoke(mxfp4, link, *MXFP4, "--to", "canonical").exit_code == 2
    assert invoke(mxfp4, out, *MXFP4, "--to", "canonical", "--force").exit_code == 0
    assert len(out.read_bytes()) == 68
    for other, why in (
        (tmp_path, "is a folder"),
        (Path("/dev/null"), "is a device"),
        (tmp_path / "no/out", "no folder"),
    ):
        result = invoke(mxfp4, other, *MXFP4, "--to", "canonical", "--force")
        assert result.exit_code == 2 and why in result.output, result.output


# ---------------------------------------------------------------- files that say what they hold


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scheme", "e2m1.native.b32-ue8m0"], "--scheme 'e2m1.native.b32-ue8m0', but the file says"),
        (["--shape", "64x2"], "--shape '64x2', but the file says '2x64'"),
        (["--from", "high-nibble"], "--from 'high-nibble' has container 'high-nibble', but the file says 'canonical'"),
        (["--from", "ocp-mx"], "--from 'ocp-mx' has recipe 'ocp-mx', but the file says 'ggml-mxfp4'"),
    ],
)
def test_options_may_not_contradict_the_file(tmp_path: Path, mxfp4: Path, words: list[str], message: str) -> None:
    file = tmp_path / "f.safetensors"
    assert invoke(mxfp4, file, *MXFP4, "--to", "canonical").exit_code == 0
    result = invoke(file, tmp_path / "out", *words, "--to", "canonical")
    assert result.exit_code == 2 and message in result.output, result.output
    agreeing = invoke(file, tmp_path / "out", *MXFP4[:4], "--from", "container:canonical", "--to", "canonical")
    assert agreeing.exit_code == 0, agreeing.output


def raw_file(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def row(*offsets: int, dtype: str = "U8", shape: Any = (68,)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


BODY = bytes(68)
META = {"quantspec": "convert-1", "scheme": MXFP4[1], "shape": "2x64", "container": "canonical"}
HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "0 bytes, with a header of 0"),
    "lying length": ((2**63).to_bytes(8, "little") + b"{}", "with a header of 9223372036854775808"),
    "no JSON": (raw_file(b"\xff{"), "its header cannot be read"),
    "deep": (raw_file(b"[" * 100_000), "its header cannot be read"),
    "a list": (raw_file([1]), "its header is no object"),
    "twice": (raw_file(b'{"a": 1, "a": 2}'), "a key stands twice"),
    "no number": (raw_file(b'{"a": NaN}'), "NaN is no number of JSON"),
    "no row": (raw_file({"w": 3}), "w: allowed: dtype, shape, data_offsets"),
    "negative": (raw_file({"w": row(-4, 64)}, BODY), "lists of whole numbers"),
    "booleans": (raw_file({"w": row(0, 1, shape=[True])}, b"0"), "lists of whole numbers"),
    "beyond": (raw_file({"w": row(0, 2**40)}, BODY), "its tensors take 1099511627776 bytes, 68 are there"),
    "overlap": (raw_file({"v": row(0, 68), "w": row(4, 68)}, BODY), "expected to begin at 68"),
    "hole": (raw_file({"w": row(4, 68)}, BODY), "expected to begin at 0"),
    "backwards": (raw_file({"v": row(0, 68), "w": row(68, 2)}, BODY), "bytes 68 to 2"),
    "three offsets": (raw_file({"w": row(0, 4, 68)}, BODY), "two offsets, at most 64 axes"),
    "truncated": (raw_file({"w": row(0, 68)}, BODY[:-1]), "its tensors take 68 bytes, 67 are there"),
    "wrong shape": (raw_file({"w": row(0, 68, shape=[67])}, BODY), "68 bytes for U8 of shape (67,)"),
    "other dtype": (raw_file({"w": row(0, 68, dtype="F4\x1b")}, BODY), r"has dtype F4\x1b; allowed: U8"),
    "no texts": (raw_file({"__metadata__": {"a": 1}}), "is no object of texts"),
    "larger": (raw_file({"w": row(0, 96, shape=[96])}, bytes(96)), "has 96 bytes; allowed: at most 68"),
    "a path": (raw_file({"../../x": row(0, 64, shape=[64])}, bytes(64)), "has 64 bytes"),
    "metadata without words": (raw_file({"__metadata__": META, "w": row(0, 68)}, BODY), "'words' is not in"),
    "unknown container": (raw_file({"__metadata__": {**META, "container": "x"}, "w": row(0, 68)}, BODY), "container='x' is not"),
    "huge shape": (raw_file({"__metadata__": {**META, "shape": "9" * 30}, "w": row(0, 68)}, BODY), "but the file says"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_safetensors_get_a_message(tmp_path: Path, kind: str) -> None:
    content, message = HOSTILE[kind]
    (tmp_path / "x.safetensors").write_bytes(content)
    words = ["--scheme", MXFP4[1], "--shape", "2x64", "--from", "container:canonical"]
    result = invoke(tmp_path / "x.safetensors", tmp_path / "out", *words, "--to", "canonical")
    assert result.exit_code == 2 and isinstance(result.exception, SystemExit), result.output
    assert message in result.output, result.output
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(67, np.uint8), "has 67 bytes; e2m1"),
        (np.zeros(17, np.uint32), "has dtype uint32 and shape (17,); allowed: uint8 of one axis"),
        (np.zeros((2, 34), np.uint8), "allowed: uint8 of one axis"),
        (np.array([{}], object), "allowed: uint8 of one axis"),
        (np.zeros(100_000, np.uint8), "is longer than"),
    ],
)
def test_other_npy_files_are_refused(tmp_path: Path, array: np.ndarray[Any, Any], message: str) -> None:
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    result = invoke(tmp_path / "x.npy", tmp_path / "out", *MXFP4, "--to", "canonical")
    assert result.exit_code == 2 and message in result.output, result.output


def test_damaged_and_missing_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(68, np.uint8))
    whole = (tmp_path / "x.npy").read_bytes()
    for name, content, message in (
        ("cut.npy", whole[:-1], "67 bytes of data for an array (68,)"),
        ("head.npy", whole[:20], "cannot be read"),
        ("pickle.npy", b"\x80\x04N.", "pickled Python objects"),
        ("cut.bin", bytes(67), "has 67 bytes; e2m1.packed_native_0.b32-ue8m0 of shape 2x64"),
        ("long.bin", bytes(69), "has more than 68 bytes;"),
    ):
        (tmp_path / name).write_bytes(content)
        result = invoke(tmp_path / name, tmp_path / "out", *MXFP4, "--to", "canonical")
        assert result.exit_code == 2 and message in result.output, result.output
    for path, message in ((tmp_path / "no.bin", "there is no such file"), (tmp_path, "is a folder")):
        result = invoke(path, tmp_path / "out", *MXFP4, "--to", "canonical")
        assert result.exit_code == 2 and message in result.output, result.output


# ---------------------------------------------------------------- the page


def session() -> list[tuple[str, str]]:
    """The commands of the session on the page, each with what it prints."""
    text = (spec_root() / "10-policies.md").read_text("utf-8")
    block = next(part for part in text.split("```")[1::2] if "$ quantspec convert" in part)
    turns = [turn.partition("\n") for turn in block.split("\n$ ")[1:]]
    return [(command, printed.rstrip("\n")) for command, _, printed in turns]


def play(turns: list[tuple[str, str]], folder: Path) -> list[str]:
    """The commands that print something else."""
    wrong = []
    for line, printed in turns:
        words = shlex.split(line)
        if words[0] == "quantspec":
            found = CliRunner().invoke(main, words[1:], prog_name="quantspec").output
        else:
            found = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=True).stdout
        wrong += [] if found.rstrip("\n") == printed else [found]
    return wrong


def test_the_session_on_the_page_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(session()) == 5
    assert play(session(), tmp_path) == []


def test_the_player_sees_a_wrong_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    turns = [(command, printed.replace("-8 -7", "-8 -6")) for command, printed in session()]
    assert len(play(turns, tmp_path)) == 1
