"""The record of a quantized tensor: scheme, codes, scale codes of each level. Rules QNT-12, SCL-19, SCL-21, SCL-22."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from . import blocks
from .codecs import CANONICAL_CODEC, Codec
from .errors import DtypeError, ScaleError, ShapeError
from .recipes import CANONICAL, Recipe
from .scales import ScaleCodes, ScaleType, check_scale_codes
from .scheme import Scheme
from .tracing import note, rule
from .values import Codes, check_codes

__all__ = ["Quantized", "Saturation", "check_levels", "level_shapes", "require_grid", "require_record"]


@dataclass(frozen=True, slots=True)
class Saturation:
    """Scales whose number before rounding was above the largest finite one. Rule SCL-24."""

    count: int = 0  #: block scales that saturated
    first: tuple[int, ...] | None = None  #: grid index of the first of them, row-major
    tensor: bool = False  #: the tensor scale saturated


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """A quantized tensor: its scheme, a code an element, the scale codes of each level. Rules VAL-4, VAL-5, BLK-2, QNT-12.

    `codes` is uint8 of the tensor's shape; `scale_codes` has the scale grid's shape, `tensor_scale_code` shape (); each
    is None for a level that the scheme lacks. Arrays are copied in and checked. Equal when all bits are.
    """

    scheme: Scheme
    codes: Codes
    scale_codes: ScaleCodes | None = None
    tensor_scale_code: ScaleCodes | None = None
    recipe: Recipe = CANONICAL
    saturation: Saturation = Saturation()
    codec: Codec = CANONICAL_CODEC

    @rule("QNT-12")
    def __post_init__(self) -> None:
        object.__setattr__(self, "recipe", Recipe.of(self.recipe))
        object.__setattr__(self, "codec", Codec.of(self.codec))
        object.__setattr__(self, "scheme", Scheme.of(self.scheme))
        shape = blocks.check_array_shape(np.shape(self.codes), argument="codes.shape")
        self.scheme.require_shape(shape)
        codes = check_codes(self.codes, self.scheme.value, lookup=self.scheme.is_lookup)
        scale_codes, tensor_code = check_levels(self.scheme, shape, self.scale_codes, self.tensor_scale_code)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "scale_codes", scale_codes)
        object.__setattr__(self, "tensor_scale_code", tensor_code)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.codes.shape

    @property
    def values_view(self) -> npt.NDArray[Any]:
        """The codes under the numpy or ml_dtypes dtype that reads them (no copy); lookup indices stay uint8."""
        return self.codes if self.scheme.is_lookup else self.codes.view(self.scheme.value.dtype)

    @property
    def scales_view(self) -> npt.NDArray[Any] | None:
        """The block scales under the dtype that reads them (no copy)."""
        return _view(self.scale_codes, None if self.scheme.block is None else self.scheme.block.scale)

    @property
    def tensor_scale_view(self) -> npt.NDArray[Any] | None:
        """The tensor scale, shape (), under the dtype that reads it (no copy)."""
        return _view(self.tensor_scale_code, self.scheme.tensor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantized):
            return NotImplemented
        return (
            self.scheme == other.scheme
            and self.recipe == other.recipe
            and self.codec == other.codec
            and np.array_equal(self.codes, other.codes)
            and _same(self.scale_codes, other.scale_codes)
            and _same(self.tensor_scale_code, other.tensor_scale_code)
        )

    __hash__ = None  # type: ignore[assignment]


def _view(codes: ScaleCodes | None, scale: ScaleType | None) -> npt.NDArray[Any] | None:
    if codes is None or scale is None:
        return None
    return codes.view(np.dtype(getattr(ml_dtypes, scale.ml_dtype, scale.ml_dtype)))


def _same(a: ScaleCodes | None, b: ScaleCodes | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))


def require_record(value: object, record: type, *, argument: str = "tensor") -> None:
    """Refuse, by name, an array or bytes where a record of a tensor is meant. Rule QNT-12."""
    if not isinstance(value, record):
        raise DtypeError(
            "QNT-12", f"{argument} is a {type(value).__name__}; allowed: {record.__name__}, which has the scheme"
        )


def level_shapes(scheme: Scheme, shape: tuple[int, ...]) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Shapes of the block scales and of the tensor scale, None for a level that the scheme lacks. Rules BLK-2, BLK-5."""
    grid = None if scheme.block is None else blocks.grid_shape(shape, scheme.extents(len(shape)))
    if scheme.tensor is None:
        return grid, None
    note("BLK-5")
    return grid, ()


def check_levels(
    scheme: Scheme,
    shape: tuple[int, ...],
    scale_codes: npt.ArrayLike | None,
    tensor_scale_code: npt.ArrayLike | None,
) -> tuple[ScaleCodes | None, ScaleCodes | None]:
    """The scale codes of each level of the scheme, checked; a missing or surplus level is refused. SCL-19, SCL-21, SCL-22."""
    grid, single = level_shapes(scheme, shape)
    block_type = None if scheme.block is None else scheme.block.scale
    found: list[ScaleCodes | None] = []
    for argument, given, expected, scale in (
        ("scale_codes", scale_codes, grid, block_type),
        ("tensor_scale_code", tensor_scale_code, single, scheme.tensor),
    ):
        if (given is None) != (scale is None):
            state = "is missing" if given is None else "is given"
            raise ScaleError(
                "SCL-22", f"{argument} {state}; {scheme.text} has {'no such' if scale is None else 'that'} level"
            )
        if given is None or scale is None or expected is None:
            found.append(None)
            continue
        codes = check_scale_codes(given, scale, argument=argument)
        found.append(require_grid(codes, expected, argument))
    return found[0], found[1]


@rule("SCL-19")
def require_grid(scales: npt.NDArray[Any], expected: tuple[int, ...], argument: str) -> npt.NDArray[Any]:
    """Scales shaped exactly like the grid; a tensor scale is one element of any shape. Rule SCL-19."""
    if expected == () and scales.size == 1:
        return scales.reshape(())
    if scales.shape != expected:
        raise ShapeError(
            "SCL-19", f"{argument} has shape {scales.shape}; allowed: exactly {expected}, one scale a block"
        )
    return scales
