"""Real devices through the whole harness: every runtime found, each in its own process, plain and hostile builds."""

import json
from pathlib import Path

import jsonschema
import pytest

from quantspec_conformance.resultfile import run_schema

from .conftest import Quantspec

pytest.importorskip("quantspec_cl", reason="pyopencl is not installed: pip install 'quantspec[cl-cpu]'")

pytestmark = pytest.mark.opencl


@pytest.fixture(scope="module")
def labels() -> list[str]:
    """The devices of this machine."""
    from quantspec_conformance.devices import survey

    found = [row["label"] for row in survey(measure=False) if not row.get("error") and not row.get("simulator")]
    if not found:
        pytest.skip("no OpenCL device: pip install 'quantspec[cl-cpu]'")
    return found


def test_every_device_found_is_run_and_agrees(quantspec_command: Quantspec, labels: list[str], tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    done = quantspec_command(
        "run", "--quick", "--only", "e2m1.*", "--only", "q4s.*lut*", "--only", "q8f.*", "--json", str(file)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads(file.read_text())
    jsonschema.validate(content, run_schema())
    assert [device["label"] for device in content["devices"]] == labels
    assert all(device["as_expected"] and device["totals"]["pass"] > 100 for device in content["devices"])


@pytest.mark.parametrize("option", ["-cl-denorms-are-zero", "-cl-fast-relaxed-math", "-cl-opt-disable"])
def test_hostile_builds_give_the_same_bits(quantspec_command: Quantspec, labels: list[str], option: str) -> None:
    schemes = ("--only", "e2m1.packed_native_0.b16-ue4m3.t-f32", "--only", "q8s.native.b16-f32")
    done = quantspec_command("run", "--device", labels[0], *schemes, "--build-option", option)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"a part of the suite, built with {option}" in done.stdout


def test_a_build_that_fails_is_an_unusable_device(quantspec_command: Quantspec, labels: list[str]) -> None:
    schemes = ("--only", "q8s.native.t-f32")
    done = quantspec_command(
        "run", "--device", labels[0], *schemes, "--build-option=-include", "--build-option=nothing.h"
    )
    assert done.returncode == 3
    assert "unusable" in done.stdout
    assert "BuildError" in done.stdout


def test_devices_lists_promises_and_measurements(quantspec_command: Quantspec, labels: list[str]) -> None:
    done = quantspec_command("devices")
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    for label in labels:
        assert label in done.stdout
    assert "subnormal" in done.stdout
    rows = json.loads(quantspec_command("devices", "--json").stdout)["devices"]
    assert {row["label"] for row in rows} >= set(labels)
    measured = [row for row in rows if row["label"] in labels]
    assert all(
        row["measured"] and all({"name", "ok", "detail"} <= set(each) for each in row["measured"]) for row in measured
    )


def test_a_device_that_is_not_there(quantspec_command: Quantspec, labels: list[str]) -> None:
    done = quantspec_command("run", "--device", "no such device")
    assert done.returncode == 3
    assert "--device 'no such device' names no device; there are " in done.stderr
    assert "also: reference, py:FILE.py:CLASS" in done.stderr
