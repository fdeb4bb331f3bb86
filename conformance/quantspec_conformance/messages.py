"""Batches and results as messages of the wire: what `worker` and `runner` both speak."""

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from . import matrix
from .cases import Batch, Plan
from .chain import Broken, Refused, Result
from .matrix import group_of
from .wire import WireError, pack_array, unpack_array

__all__ = ["batch_of", "message_of", "result_of", "results_of"]

_ARRAYS = ("x", "codes", "scale_codes", "tensor_scale_code")


def message_of(batch: Batch, number: int) -> dict[str, Any]:
    """A batch as a request."""
    plan = batch.plan
    arrays = {name: getattr(batch, name) for name in _ARRAYS}
    return {
        "op": "case",
        "id": number,
        "schemes": [scheme.text for scheme in plan.schemes],
        "family": plan.family,
        "steps": list(plan.steps),
        **{name: pack_array(array) for name, array in arrays.items() if array is not None},
    }


def batch_of(message: Mapping[str, Any]) -> Batch:
    """The batch of a request."""
    try:
        schemes = tuple(matrix.parse(text) for text in message["schemes"])
        arrays = {name: unpack_array(message[name]) for name in _ARRAYS if name in message}
        shape = arrays["x"].shape
        plan = Plan(group_of(schemes[0]), schemes, shape, message["family"], tuple(message["steps"]))
        return Batch(plan, **arrays)
    except (KeyError, TypeError) as error:
        raise WireError(f"not a request: {type(error).__name__}: {error}") from None


def result_of(results: Mapping[str, Result], known: dict[int, list[Any]] | None = None) -> dict[str, Any]:
    """The results of one scheme as JSON. `known` keeps arrays already written, by identity, for schemes that share them."""
    known = {} if known is None else known
    written: dict[str, Any] = {}
    for step, result in results.items():
        if isinstance(result, Refused):
            written[step] = {"refused": [result.error, result.rule, result.message]}
        elif isinstance(result, Broken):
            written[step] = {"broken": result.message}
        else:
            written[step] = {"parts": {name: _once(part, known) for name, part in result.items()}}
    return written


def _once(array: npt.NDArray[Any], known: dict[int, list[Any]]) -> list[Any]:
    if id(array) not in known:
        known[id(array)] = pack_array(array)
    return known[id(array)]


def results_of(message: Mapping[str, Any]) -> dict[str, Result]:
    """The results of one scheme from JSON."""
    read: dict[str, Result] = {}
    for step, written in message.items():
        if "refused" in written:
            read[step] = Refused(*written["refused"])
        elif "broken" in written:
            read[step] = Broken(written["broken"])
        else:
            read[step] = {name: unpack_array(part) for name, part in written["parts"].items()}
    return read
