"""Values, fast: encode and decode are quantize and dequantize under a tensor scale of 1. VAL-1 to VAL-13, QNT-7, QNT-8.

x / 1 is x and 1 * v is v, a NaN's sign and a zero's kept, so the kernels of those verbs give the same codes and numbers.
"""

import numpy as np

from quantspec import SCALES, Scheme, Table, ValueFormat

from . import dequantize_fast, quantize_fast
from .choice import Fixed
from .host import DeviceArray, Machine
from .inputs import Numbers
from .paths import Path
from .scales import Encoded
from .tensors import DeviceQuantized

__all__ = ["decoded", "encoded"]

POWER = SCALES["ue8m0"]  #: a type of powers of two: no kernel divides


def _scheme(value: ValueFormat, table: Table | None) -> Scheme:
    return Scheme(value, mode="symmetric" if table is None else "lookup", table=table, tensor=POWER)


def _one(machine: Machine) -> DeviceArray:
    """The code of the scale 1, its bias: the first byte of a number that stays on the device."""
    return DeviceArray(machine, machine.constant((POWER.bias,)), (), POWER.code_dtype)


def encoded(numbers: Numbers, value: ValueFormat, table: Table | None, codes: DeviceArray) -> DeviceArray | Path:
    """Codes of numbers, written into `codes`; or why the generic path has to do it."""
    array = numbers.array
    flat = Numbers(array.reshaped((array.size,)), numbers.row)
    scheme, given = _scheme(value, table), Fixed(None, Encoded(_one(array.machine), None))
    planned = quantize_fast.plan(flat, scheme, given, words=False)
    if isinstance(planned, Path):
        return planned
    quantize_fast.run(planned, flat, scheme, given, codes.reshaped((codes.size,)))
    return codes.written_by(planned.path)


def decoded(codes: DeviceArray, value: ValueFormat, table: Table | None, y: DeviceArray) -> DeviceArray | Path:
    """Numbers of codes that were checked, written into `y`; or why the generic path has to do it."""
    machine, scheme, flat = codes.machine, _scheme(value, table), codes.reshaped((codes.size,))
    planned = dequantize_fast.plan(machine, scheme, flat.shape, np.dtype(np.float32), words=False)
    if isinstance(planned, Path):
        return planned
    tensor = DeviceQuantized(scheme, flat, None, _one(machine))
    dequantize_fast.run(machine, planned, flat, tensor, y.reshaped(flat.shape))
    return y.written_by(planned.path)
