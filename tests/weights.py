"""Real trained weights for the tests: the GRU that the package g2p-en ships as an .npz (its code is not imported)."""

from importlib.metadata import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Weights = dict[str, npt.NDArray[np.float32]]


def trained_weights() -> Weights:
    """Every array of the model by name: embeddings, recurrent matrices, biases; f32, at most 768 x 256."""
    found = [file for file in files("g2p-en") or () if file.name == "checkpoint20.npz"]
    archive: Any = np.load(Path(str(found[0].locate())), allow_pickle=False)
    return {name: archive[name] for name in archive.files}
