"""Trained weights through the command: the same comparison as made-up data, and statistics of the errors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import save_file

from quantspec_conformance.cli import main

from ..weights import trained_weights


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "g2p.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in trained_weights().items()}, path)
    return path


@pytest.mark.opencl
@pytest.mark.parametrize("name", ["dec_w_hh", "enc_emb", "fc_b"])
def test_trained_weights_agree_under_every_named_scheme(file: Path, name: str, tmp_path: Path) -> None:
    written = tmp_path / "run.json"
    done = CliRunner().invoke(
        main, ["run", "--device", "pocl", "--tensor", str(file), "--name", name, "--json", str(written)]
    )
    assert done.exit_code == 0, done.output
    (device,) = json.loads(written.read_text())["devices"]
    assert device["as_expected"]
    assert len(device["schemes"]) >= 10 or name == "fc_b"  # a bias has rank 1: two-dimensional blocks are refused
    rows = dict(re.findall(r"^ *[A-Z] +(\S+) +(.*)$", done.output, re.MULTILINE))
    assert "e2m1.packed_native_0.b16-ue4m3.t-f32" in rows


def test_more_bits_mean_less_error_on_trained_weights(file: Path) -> None:
    done = CliRunner().invoke(main, ["run", "--device", "reference", "--tensor", str(file), "--name", "dec_w_hh"])
    assert done.exit_code == 0, done.output
    found = re.findall(r"^ *[A-Z] +(\S+) +([\d.]+) +([\d.]+) +([\d.]+)", done.output, re.MULTILINE)
    rms = {scheme: float(row[-1]) for scheme, *row in found}
    order = ("q8s.native.b32-f16", "e2m3.packed_native_0.b32-ue8m0", "e2m1.packed_native_0.b16-ue4m3.t-f32",
             "q2s.packed_u32_0.b16-f16")  # fmt: skip
    assert [rms[scheme] for scheme in order] == sorted(rms[scheme] for scheme in order)


def test_a_name_that_the_file_lacks_is_refused_with_those_it_has(file: Path) -> None:
    done = CliRunner().invoke(main, ["run", "--device", "reference", "--tensor", str(file), "--name", "dec_w_hx"])
    assert done.exit_code == 2
    assert "dec_w_hh" in done.output
