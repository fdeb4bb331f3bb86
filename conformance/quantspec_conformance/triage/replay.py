"""One case again: all of it, one block, or one element."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from ..errors import DeviceError, UsageError
from ..implementations.errors import ImplementationError
from ..outside import printable
from ..protocol.messages import Implementation
from ..suite.case import Case
from ..suite.run import RunOptions, run_suite
from .block import failure_block, failure_json, repro_line
from .crop import boxed, cut_error
from .frame import Frame, Index, frame_of, index_at

__all__ = ["index_of", "part_of", "replay"]


def index_of(text: str, option: str) -> Index:
    """An index that was typed, `3,5` or `17`; `()` is the empty one. UsageError."""
    if text.strip() == "()":
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in parts):
        raise UsageError(f"{option} {printable(text[:60])!r}; allowed: an index, for example 17 or 3,5")
    return tuple(map(int, parts))


def _place(index: Index, sizes: Index, option: str, what: str) -> Index:
    """An index inside these sizes; one number may count row-major."""
    total = math.prod(sizes)
    if len(index) == 1 and len(sizes) != 1 and index[0] < total:
        return index_at(index[0], sizes)
    if len(index) != len(sizes) or any(i >= size for i, size in zip(index, sizes, strict=True)):
        text = ",".join(map(str, index)) or "()"
        raise UsageError(f"{option} {text}: the case has {what} {sizes}; allowed: an index of it")
    return index


def part_of(case: Case, *, block: Index | None = None, element: Index | None = None) -> tuple[Case, tuple[str, ...]]:
    """The case cut down to one block or one element, and remarks. UsageError where it cannot be cut so.

    Scales that the rest of the tensor had a say in are given to the part as the law chose them for the whole.
    """
    if block is not None and element is not None:
        raise UsageError("--block and --element go each alone")
    frame = frame_of(case)
    if frame is None:
        raise UsageError(f"{case.id}: {case.op} has no elements to cut; replay it whole")
    if block is not None:
        if frame.scheme is None or frame.scheme.block is None:
            raise UsageError(f"{case.id} has no blocks; allowed: --element")
        return _block(case, frame, block)
    place = _place(element or (), frame.shape, "--element", "a tensor of shape")
    if frame.scheme is not None and case.op not in ("quantize", "dequantize"):
        low = frame.unit_of(place)
        box, hold = frame.box(low, tuple(i + 1 for i in low)), False
    else:
        box, hold = tuple(slice(i, i + 1) for i in place), frame.scheme is not None
    part = boxed(case, frame, box, hold=hold)
    if part is None:
        raise UsageError(f"{case.id}: --element: {cut_error(case, frame, box, hold=hold)}")
    remark = (
        f"element {place} alone"
        if hold or frame.scheme is None
        else f"the unit {_spelled(box)} that holds element {place}"
    )
    return part, (remark, *_given(case, part))


def _block(case: Case, frame: Frame, block: Index) -> tuple[Case, tuple[str, ...]]:
    if frame.scheme is None:
        raise UsageError(f"{case.id} has no blocks; allowed: --element")
    extents = frame.scheme.extents(len(frame.shape))
    grid = tuple(-(-size // extent) for size, extent in zip(frame.shape, extents, strict=True))
    place = _place(block, grid, "--block", "a grid of")
    low = tuple(i * extent for i, extent in zip(place, extents, strict=True))
    unit = frame.unit_of(low)
    box = frame.box(unit, tuple(i + 1 for i in unit))
    hold = frame.scheme.tensor is not None
    if hold:  # the tensor scale is given; block scales are chosen again under it
        kept = {name: tensor for name, tensor in case.outputs.items() if name != "scale_codes"}
        part = boxed(replace(case, outputs=kept) if case.op == "quantize" else case, frame, box, hold=True)
    else:
        part = boxed(case, frame, box)
    if part is None:
        raise UsageError(f"{case.id}: --block: {cut_error(case, frame, box, hold=hold)}")
    wider = "" if frame.extents == extents else f", in the unit {_spelled(box)} of whole words"
    return part, (f"block {place} alone{wider}", *_given(case, part))


def _spelled(box: tuple[slice, ...]) -> str:
    return ", ".join(f"{part.start}:{part.stop}" for part in box) or "()"


def _given(case: Case, part: Case) -> tuple[str, ...]:
    """The scales that the part is given and the case was not."""
    names = [name for name in part.inputs if name not in case.inputs]
    return (f"given as the law chose them for the whole: {', '.join(names)}",) if names else ()


def replay(
    case: Case,
    implementation: Implementation,
    *,
    address: str = "",
    block: Index | None = None,
    element: Index | None = None,
    first: int = 3,
    options: RunOptions | None = None,
    as_json: bool = False,
) -> tuple[list[str], int]:
    """Run one case again, asked twice; the lines to print, and the exit code: 1 where it is wrong, else 0.

    Raises UsageError for a part that cannot be cut, DeviceError where the implementation does not open.
    """
    remarks: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    if block is not None or element is not None:
        extra = ("--block", _typed(block)) if block is not None else ("--element", _typed(element))
        case, remarks = part_of(case, block=block, element=element)
    asked = RunOptions(repeat=1.0, keep=max(first, 8)) if options is None else replace(options, repeat=1.0)
    try:
        result = next(iter(run_suite([case], implementation, asked)))
    except ImplementationError as error:
        raise DeviceError(f"{printable(address)}: {printable(str(error), keep=chr(10))}") from None
    repro = repro_line("replay", case.id, address, extra)
    code = int(result.bad)
    if as_json:
        record = failure_json(case, result, address, first=first, repro=repro)
        return [json.dumps({**record, "remarks": list(remarks)}, ensure_ascii=False)], code
    if result.bad:
        lines = failure_block(case, result, address, first=first, repro=repro).splitlines()
    else:
        reason = f"  {printable(result.reason[:500])}" if result.reason else ""
        lines = [f"{result.outcome.upper()} {case.id}   impl={printable(address)}{reason}"]
    return [*lines[:1], *(f" part      {remark}" for remark in remarks), *lines[1:]], code


def _typed(index: Sequence[int] | None) -> str:
    return ",".join(map(str, index or ())) or "()"
