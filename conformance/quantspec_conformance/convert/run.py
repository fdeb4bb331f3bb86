"""`quantspec convert`: from the options to a file and the lines about it."""

import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import quantspec
from quantspec.packing import Strictness

from ..cases import shape_text
from ..errors import UsageError
from ..outside import printable
from ..tensors import LIMIT
from ..wholefile import check_target, write_whole
from .dialects import Dialect, dialect
from .exact import Conversion, convert_source, numbers_that_differ
from .parts import cut, parts_of
from .source import Names, Source, metadata_of, read_source
from .tensorfile import Raw, file_of

__all__ = ["Request", "run_convert"]

SHOWN = 8  #: numbers in a line
NUMBERS = "y"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command."""

    source: Path
    target: Path
    scheme: str | None
    shape: str | None
    source_name: str | None
    target_name: str
    to_store: str | None
    name: str | None
    words: str | None
    scales: str | None
    tensor_scale: str | None
    padding: Strictness
    ue4m3_bit7: Strictness
    numbers: str | None
    max_elements: int | None
    force: bool
    as_json: bool


def run_convert(request: Request) -> Iterator[str]:
    """Convert, check, write; the lines to print. UsageError, InexactError or QuantspecError before anything is written."""
    shown = f"OUT {printable(repr(str(request.target)))}"
    _require_free(request, shown)
    place = check_target(request.target, shown)
    target = dialect(request.target_name, "--to")
    names = Names(request.name, (request.words, request.scales, request.tensor_scale))
    limit = LIMIT if request.max_elements is None else request.max_elements
    source = read_source(
        request.source, names, scheme=request.scheme, shape=request.shape, source=request.source_name, limit=limit
    )
    made = convert_source(
        source, target, store=request.to_store, padding=request.padding, ue4m3_bit7=request.ue4m3_bit7
    )
    y = None if request.numbers is None else quantspec.dequantize(quantspec.unpack(made.read), request.numbers)
    differ = numbers_that_differ(made, target) if source.dialect.recipe is not None else None
    content = _content(request, made, source.dialect, y)
    _require_free(request, shown)  # again: the work took time
    write_whole(place, content, shown)
    report = _report(request, source, target, made, differ, y)
    if request.as_json:
        yield json.dumps(report, indent=1)
    else:
        yield from _lines(report, y)


def _require_free(request: Request, shown: str) -> None:
    if os.path.lexists(request.target) and not request.force:
        raise UsageError(f"{shown} is there already; allowed: a new file, or --force to write over it")


def _content(request: Request, made: Conversion, read_by: Dialect, y: npt.NDArray[Any] | None) -> bytes:
    """The bytes of OUT, by its suffix."""
    suffix = request.target.suffix
    if suffix == ".npy":
        out = io.BytesIO()
        np.save(out, np.frombuffer(made.data, np.uint8), allow_pickle=False)
        return out.getvalue()
    if suffix != ".safetensors":
        return made.data
    written = made.written
    tensors = cut(parts_of(written.scheme, written.shape, written.container), made.data)
    if y is not None:
        patterns = y.view(f"u{y.dtype.itemsize}")
        little = patterns.astype(patterns.dtype.newbyteorder("<"))
        tensors[NUMBERS] = Raw((request.numbers or "").upper(), y.shape, little.tobytes())
    return file_of(tensors, metadata_of(written.scheme, written.shape, written.container, read_by))


def _report(
    request: Request,
    source: Source,
    target: Dialect,
    made: Conversion,
    differ: int | None,
    y: npt.NDArray[Any] | None,
) -> dict[str, Any]:
    written = made.written
    return {
        "schema": "convert-1",
        "in": str(request.source),
        "out": str(request.target),
        "scheme": source.scheme.text,
        "scheme_out": written.scheme.text,
        "shape": list(source.shape),
        "from": source.dialect.text,
        "to": target.text,
        "words": int(made.read.words.size),
        "block_scales": 0 if written.scale_codes is None else int(written.scale_codes.size),
        "tensor_scales": 0 if written.tensor_scale_code is None else 1,
        "bytes_in": len(source.data),
        "bytes_out": len(made.data),
        "back_is_same": made.cleared == 0,
        "bytes_cleared": made.cleared,
        "recipe": None if source.dialect.recipe is None else source.dialect.recipe.name,
        "codec": None if source.dialect.codec is None else source.dialect.codec.name,
        "numbers_that_differ": differ,
        "numbers": None if y is None else {"type": request.numbers, "first": _first(y)},
    }


def _first(y: npt.NDArray[Any]) -> list[str]:
    """The first numbers, as texts: a NaN has no JSON."""
    return [f"{number:.9g}" for number in y.reshape(-1)[:SHOWN].astype(np.float32).tolist()]


def _lines(report: dict[str, Any], y: npt.NDArray[Any] | None) -> Iterator[str]:
    counts = [
        f"{report[key]} {noun}{'s' * (report[key] > 1)}"
        for key, noun in (("words", "word"), ("block_scales", "block scale"), ("tensor_scales", "tensor scale"))
        if report[key]
    ]
    held = ", ".join(counts) or "no words"
    if report["back_is_same"]:
        back = "converting back gives the same bytes [POL-18]"
    else:
        back = (
            f"converting back gives the same but for {report['bytes_cleared']} bytes of IN, cleared as the options say"
        )
    yield printable(
        f"{report['in']}: {held} of {report['scheme']} {shape_text(tuple(report['shape']))}, from {report['from']} to "
        f"{report['to']}; wrote {report['out']}, {report['bytes_out']} bytes; {back}"
    )
    if report["scheme_out"] != report["scheme"]:
        yield f"store    {report['scheme_out']}"
    if report["numbers_that_differ"]:
        total = int(np.prod(report["shape"], dtype=np.int64))
        yield (
            f"note     {report['to']} reads {report['numbers_that_differ']} of {total} of these codes as other numbers than "
            f"{report['from']}: the same codes and scale codes mean something else there. Bytes are converted, never numbers"
        )
    if y is not None:
        more = f" and {y.size - SHOWN} more" if y.size > SHOWN else ""
        yield f"numbers  {report['numbers']['type']} {' '.join(report['numbers']['first'])}{more}"
