"""One TOSA operator through the command line model of tosa-tools: its Python binding gives fp4, fp6 and ue8m0 back empty (B7)."""

import sys
import tempfile
import warnings
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np

from .support import Array, library

__all__ = ["operate"]


def operate(name: str, inputs: list[tuple[Array, Any]], outputs: list[tuple[Any, Any]], *size: int) -> list[Array]:
    """Run CAST, CAST_TO_BLOCK_SCALED or CAST_FROM_BLOCK_SCALED. Inputs: array and dtype; outputs: shape and dtype."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its serializer module calls itself deprecated
        ts = library("serializer.tosa_serializer")
    with tempfile.TemporaryDirectory() as folder:
        graph, attribute = ts.TosaSerializer(folder), ts.TosaSerializerAttribute()
        getattr(attribute, "".join(part.capitalize() for part in name.split("_")) + "Attribute")(*size)
        shapes = [array.shape for array, _ in inputs]
        if len(inputs) == 2:  # codes arrive packed; the graph knows how many they are
            shapes[0] = outputs[0][0]
        ins = [graph.addPlaceholder(list(s), kind, None).name for s, (_, kind) in zip(shapes, inputs, strict=True)]
        outs = [graph.addOutput(list(shape), kind).name for shape, kind in outputs]
        graph.addOperator(getattr(library("tosa.Op").Op, name), ins, outs, attribute)
        for at, (array, _) in zip(ins, inputs, strict=True):
            np.save(Path(folder, f"{at}.npy"), array)
        Path(folder, "one.tosa").write_bytes(graph.serialize())
        command = [
            str(Path(sys.executable).with_name("tosa_reference_model")),
            "--tosa_file=one.tosa",
            "--tosa_level=NONE",
        ]
        command += [f"--flatbuffer_dir={folder}", f"--output_dir={folder}"]
        for flag, names in (("ifm", ins), ("ofm", outs)):
            command += [f"--{flag}_name={','.join(names)}", f"--{flag}_file={','.join(f'{n}.npy' for n in names)}"]
        done = run(command, capture_output=True, timeout=30, text=True)
        if done.returncode:
            raise RuntimeError(f"tosa_reference_model: {(done.stdout + done.stderr)[-300:]}")
        return [np.load(Path(folder, f"{at}.npy")) for at in outs]
