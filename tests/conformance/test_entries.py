"""How far two patterns lie apart, in the unit that the part is made of."""

import pytest

from quantspec import Scheme
from quantspec_conformance.compare import Difference
from quantspec_conformance.entries import apart

SCHEME = Scheme.parse("e2m1.native.b2-ue4m3.t-f32")


@pytest.mark.parametrize(
    ("part", "dtype", "expected", "actual", "said"),
    [
        ("y", "f32", 0x3F800000, 0x3F800003, "3 f32 values apart"),
        ("y", "bf16", 0x3F80, 0x3F81, "1 bf16 value apart"),
        ("y", "f16", 0x0000, 0x8000, "the sign of zero differs"),
        ("y", "f32", 0x3F800000, 0x7FC00000, ""),
        ("codes", "u8", 2, 4, "2 codes apart"),
        ("scale_codes", "u8", 0x38, 0x39, "1 code apart"),
        ("tensor_scale_code", "u32", 0x3F800000, 0x3F800001, "1 code apart"),
        ("words", "u8", 0x12, 0x13, "they differ in the bits 0x01"),
    ],
)
def test_distances_are_told_in_the_unit_of_the_part(
    part: str, dtype: str, expected: int, actual: int, said: str
) -> None:
    assert apart(Difference((0,), 0, expected, actual), part, SCHEME, dtype) == said
