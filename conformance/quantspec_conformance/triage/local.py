"""Boxes of a case whose results are parts of the known ones: made block by block, so that the law need not be asked for each."""

from collections.abc import Mapping

from quantspec import QuantspecError, Scheme

from ..examples import Tensor
from ..suite.case import Case
from .crop import GRIDS, TENSOR_LEVEL, Box, cut, grid_of, words_box
from .frame import Frame

__all__ = ["local_outputs"]

#: Operations of one element each.
ALONE = ("encode", "decode", "encode_scale", "decode_scale")


def local_outputs(case: Case, frame: Frame, box: Box, given: Mapping[str, Tensor]) -> dict[str, Tensor] | None:
    """What is due for a box whose inputs are `given`, cut out of what is due for the whole.

    None where the rest of the tensor has a say in it: then only the law can tell.
    """
    if case.refusal is not None or not case.outputs:
        return None
    if frame.scheme is None:
        return {name: cut(tensor, box) for name, tensor in case.outputs.items()} if case.op in ALONE else None
    try:
        frame.scheme.require_shape(tuple(part.stop - part.start for part in box))
    except QuantspecError:
        return None
    if not _apart(case.op, frame, box, given):
        return None
    return _cut_outputs(case, frame.scheme, frame, box)


def _apart(op: str, frame: Frame, box: Box, given: Mapping[str, Tensor]) -> bool:
    """True where the box's results hang on nothing outside it."""
    scheme = frame.scheme
    if scheme is None:
        return False
    extents = (1,) * len(box) if scheme.block is None else scheme.extents(len(box))
    if any(part.start % extent for part, extent in zip(box, extents, strict=True)):
        return False
    whole = all(
        part.stop % extent == 0 or part.stop == size
        for part, extent, size in zip(box, extents, frame.shape, strict=True)
    )
    if op == "quantize":
        held = scheme.block is None or any(name in given for name in GRIDS)
        return (whole or held) and (scheme.tensor is None or any(name in given for name in TENSOR_LEVEL))
    return op in ("dequantize", "unpack") or (op == "pack" and words_box(scheme, frame.shape, box) is not None)


def _cut_outputs(case: Case, scheme: Scheme, frame: Frame, box: Box) -> dict[str, Tensor] | None:
    found = {}
    for name, tensor in case.outputs.items():
        if name in TENSOR_LEVEL:
            found[name] = tensor
        elif name in GRIDS:
            found[name] = cut(tensor, grid_of(scheme, box))
        else:
            part = words_box(scheme, frame.shape, box) if name == "words" else box
            if part is None:
                return None
            found[name] = cut(tensor, part)
    return found
