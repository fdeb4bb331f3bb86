"""Outputs: the float types that numbers are written in, and the one rounding on the way there. Rules QNT-10, QNT-11."""

from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .errors import DtypeError
from .rounding import F32, SIGN, is_nan, narrow, to_bits
from .scales import SCALES, ScaleType
from .tracing import note

__all__ = ["OUTPUTS", "Output", "narrowed", "output_dtype", "output_type"]

Output = Literal["f32", "f16", "bf16"]

#: the types that numbers are written in: the scale types that are IEEE formats, by name
OUTPUTS = {name: row for name, row in SCALES.items() if row.infinity_code is not None}


def output_type(dtype: npt.DTypeLike | Output) -> ScaleType:
    """The row of the float type that an output is written in. Rule QNT-10."""
    if isinstance(dtype, str) and dtype in OUTPUTS:
        return OUTPUTS[dtype]
    try:
        return {output_dtype(row): row for row in OUTPUTS.values()}[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise DtypeError("QNT-10", f"dtype={dtype!r}; allowed: 'f32', 'f16', 'bf16' or the dtypes of those") from None


def narrowed(y: F32, out: ScaleType) -> npt.NDArray[Any]:
    """y in the output type, rounded once, nearest-even, overflow to Inf. Rules QNT-10, QNT-11."""
    if out.mantissa_bits == 23:
        return y
    note("QNT-10")
    bits = to_bits(y)
    if out.infinity_code is None:
        raise AssertionError("an output type has infinities")
    code = narrow(bits, mantissa_bits=out.mantissa_bits, bias=out.bias, infinity=out.infinity_code, nan=out.nan_code)
    sign = np.where(is_nan(bits), np.uint32(0), bits & SIGN) >> np.uint32(16)
    return np.asarray(code | sign, np.uint16).view(output_dtype(out))


def output_dtype(out: ScaleType) -> np.dtype[Any]:
    """The dtype of an output type."""
    return np.dtype(getattr(ml_dtypes, out.ml_dtype, out.ml_dtype))
