"""The number that a pattern of an example stands for, as its entry says."""

from collections.abc import Sequence

import numpy as np

import quantspec
from quantspec import SCALES, QuantspecError, ScaleType, Scheme

from .. import patterns
from ..examples import DTYPES, Entry, Example, Tensor

__all__ = ["MEANINGS", "numbers", "rows"]

#: What an entry is, for the reader.
MEANINGS = {
    "x": "input",
    "amax": "largest finite magnitude",
    "raw": "raw scale",
    "bounded": "raw', bounded",
    "g": "tensor scale, decoded",
    "u": "raw' / g",
    "b": "block scale, decoded",
    "s": "effective scale",
    "q": "quotient",
    "v": "number of the code",
    "y": "result",
    "codes": "codes",
    "scale_codes": "block scale codes",
    "tensor_scale_code": "tensor scale code",
    "scales": "given block scales",
    "tensor_scale": "given tensor scale",
    "words": "words",
    "bytes": "bytes",
    "table": "table",
}
FLOATS = ("f32", "f16", "bf16")


def _scheme(example: Example) -> Scheme | None:
    entry = example.given.get("scheme")
    table = example.given.get("table")
    tables = [table.content.array()] if table is not None and isinstance(table.content, Tensor) else []
    try:
        return None if entry is None else Scheme.parse(entry.text, tables=tables)
    except QuantspecError:
        return None


def _scale_of(example: Example, name: str) -> ScaleType | None:
    """The type of the scale codes of an entry."""
    scheme = _scheme(example)
    if scheme is None:
        entry = example.given.get("type")
        return None if entry is None else SCALES.get(entry.text)
    if name.startswith("tensor_scale"):
        return scheme.tensor
    return None if scheme.block is None else scheme.block.scale


def _value_scheme(example: Example) -> Scheme | None:
    """A scheme under which codes of the example read as numbers."""
    entry, table = example.given.get("value"), example.given.get("table")
    if entry is None or entry.text not in quantspec.VALUES:
        return _scheme(example)
    try:
        entries = table.content.array() if table is not None and isinstance(table.content, Tensor) else None
        return Scheme(entry.text, mode="symmetric" if entries is None else "lookup", table=entries)
    except QuantspecError:
        return None


def numbers(example: Example, name: str, entry: Entry) -> Sequence[str]:
    """The number of each pattern of an entry; empty where patterns are no numbers (words, bytes)."""
    tensor = entry.content
    if isinstance(tensor, str):
        return ()
    name = name.rsplit("_", 1)[0] if name[-2:-1] == "_" and name[-1].isdigit() else name
    if tensor.dtype in FLOATS:
        return [_short(patterns.output_pattern(bits, tensor.dtype)) for bits in tensor.patterns]
    if tensor.dtype not in ("u8", "u16", "u32"):
        return [str(number) for number in tensor.array().reshape(-1).tolist()]
    if name == "codes":
        scheme = _value_scheme(example)
        return () if scheme is None else [_short(patterns.value_code(bits, scheme)) for bits in tensor.patterns]
    scale = _scale_of(example, name) if name in ("scale_codes", "tensor_scale_code") else None
    if scale is None or DTYPES[tensor.dtype][1].itemsize != scale.size:
        return ()
    return [_short(patterns.scale_code(bits, scale)) for bits in tensor.patterns]


def _short(line: str) -> str:
    """The number at the end of a pattern's line: no plus sign, and `≈` where the decimals are not all of it."""
    text = line.split("  ")[-1].strip()
    text = text if text.startswith("+I") else text.removeprefix("+")
    rounded, _, exactly = text.partition(" (")
    return f"≈{rounded}" if exactly.lstrip("-").startswith("0x") else text


def rows(tensor: Tensor) -> list[list[int]]:
    """Positions of the entries, a list for each run along the last axis."""
    flat = np.arange(len(tensor.patterns))
    last = tensor.shape[-1] if tensor.shape else 1
    return [list(map(int, row)) for row in flat.reshape(-1, last)] if flat.size and last else []
