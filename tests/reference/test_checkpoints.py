"""Tensors from files that other libraries wrote: read to the numbers that they give, and written back byte for byte."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quantspec as qs
from quantspec import Preset

FILE = Path(__file__).parents[1] / "cases" / "checkpoints.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["cases"]


def policies(case: dict[str, Any]) -> dict[str, Any]:
    """What a stream of bytes does not say."""
    if not case["preset"]:
        return {"container": case["container"]}
    preset = Preset.of(case["preset"])
    preset.require(case["scheme"])
    return {"recipe": preset.recipe, "codec": preset.codec, "container": preset.container}


def test_the_bytes_are_of_three_libraries_and_small() -> None:
    assert {case["source"].split(" ")[0] for case in CASES} == {"gguf", "mlx", "compressed-tensors"}
    assert FILE.stat().st_size < 20_000


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_checkpoint_reads_to_the_numbers_of_its_library(case: dict[str, Any]) -> None:
    packed = qs.from_bytes(bytes.fromhex(case["bytes"]), case["scheme"], case["shape"], **policies(case))
    y = qs.dequantize(qs.unpack(packed), case["to"])
    assert np.ascontiguousarray(y).tobytes().hex() == case["y"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_checkpoint_is_written_back_byte_for_byte(case: dict[str, Any]) -> None:
    by = policies(case)
    packed = qs.from_bytes(bytes.fromhex(case["bytes"]), case["scheme"], case["shape"], **by)
    assert qs.to_bytes(packed).hex() == case["bytes"]
    again = qs.pack(qs.unpack(packed), container=by["container"])
    assert qs.to_bytes(again).hex() == case["bytes"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_another_container_reads_other_numbers(case: dict[str, Any]) -> None:
    """The liar: bytes that any container would read alike would show nothing."""
    by = policies(case)
    name = qs.Container.of(by["container"]).name
    if name == "canonical" or name == "mlx-u32":  # four bits a code: the same words
        return
    other = {**by, "container": "canonical"}
    try:
        packed = qs.from_bytes(bytes.fromhex(case["bytes"]), case["scheme"], case["shape"], **other)
    except qs.QuantspecError:
        return
    y = qs.dequantize(qs.unpack(packed), case["to"])
    assert np.ascontiguousarray(y).tobytes().hex() != case["y"]
