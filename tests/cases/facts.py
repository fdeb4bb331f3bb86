"""The case files, the numbers in them as arrays of patterns, and the register of the cases that tests take.

Floats of `bug_cases.json` are hexadecimal and exact in binary32; those of `burn_golden.json` are decimal, to be read as
binary32. Comparisons are of integers: a list of patterns against a list of patterns.
"""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import quantspec as qs

from .. import oracle

Case = dict[str, Any]
F32 = npt.NDArray[np.float32]

HERE = Path(__file__).parent


def load(name: str) -> Any:
    """One of the JSON files beside this module."""
    return json.loads((HERE / name).read_text("utf-8"))


def by_id(cases: Sequence[Case]) -> dict[str, Case]:
    """Cases by their id, in the order of the file; no id twice."""
    found = {case["id"]: case for case in cases}
    if len(found) != len(cases):
        raise AssertionError("two cases share an id")
    return found


BUGS = by_id(load("bug_cases.json"))
BURN = by_id(load("burn_golden.json")["cases"])
FORMATS: dict[str, Any] = load("formats.json")

#: Ids that some test takes; the decorators below fill them when the test modules are imported.
TESTED: dict[str, set[str]] = {"bugs": set(), "burn": set()}


def bug(*ids: str) -> pytest.MarkDecorator:
    """Parametrise a test's `case` over reported faults, one item a case."""
    TESTED["bugs"].update(ids)
    return pytest.mark.parametrize("case", [BUGS[i] for i in ids], ids=ids)


def burn(*kinds: str, left_out: Sequence[str] = (), only: Sequence[str] | None = None) -> pytest.MarkDecorator:
    """Parametrise a test's `case` over upstream's cases of some kinds (or the ones named), one item a case."""
    ids = [i for i, case in BURN.items() if case["kind"] in kinds and i not in left_out]
    if only is not None:
        ids = [i for i in ids if i in only]
    if not ids:
        raise AssertionError(f"no case of {kinds}")
    TESTED["burn"].update(ids)
    return pytest.mark.parametrize("case", [BURN[i] for i in ids], ids=ids)


# ---------------------------------------------------------------- numbers of the files


def leaves(nested: Any) -> Iterator[Any]:
    """The entries of nested lists, row-major."""
    if isinstance(nested, list):
        for part in nested:
            yield from leaves(part)
    else:
        yield nested


def mapped(nested: Any, function: Any) -> Any:
    """Nested lists with a function applied to each entry."""
    return [mapped(part, function) for part in nested] if isinstance(nested, list) else function(nested)


def number(text: str) -> np.float32:
    """A hexadecimal float, which must be a binary32 number."""
    exact = float.fromhex(text)
    single = np.float32(exact)
    assert single == exact or exact != exact, f"{text} is not a binary32 number"
    return single


def f32(texts: Any) -> F32:
    """Hexadecimal floats, nested as the result's axes are."""
    return np.array(mapped(texts, number), np.float32)


def f32_of_bits(patterns: Any) -> F32:
    """Patterns (integers or hexadecimal strings) as binary32, payloads kept."""
    return np.array(mapped(patterns, as_int), np.uint32).view(np.float32)


def as_int(text: str | int) -> int:
    """A hexadecimal string of the files as an integer."""
    return int(text, 16) if isinstance(text, str) else text


def hexes(texts: Any) -> Any:
    """Hexadecimal strings as integers, nested alike."""
    return mapped(texts, as_int)


def code_bytes(codes: Any) -> npt.NDArray[np.uint8]:
    """Codes as bytes: negative integers in two's complement, hexadecimal strings and the rest as they are."""
    return np.array(mapped(codes, lambda code: as_int(code) & 0xFF), np.uint8)


def single(decimals: Any) -> F32:
    """Decimal floats read as binary32, nested as the result's axes are."""
    return np.array(decimals, np.float64).astype(np.float32)


# ---------------------------------------------------------------- patterns


def bits_of(array: npt.NDArray[Any]) -> Any:
    """The patterns of an array's numbers, nested like the array."""
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32}[array.dtype.itemsize]
    return np.ascontiguousarray(array).view(unsigned).reshape(array.shape).tolist()


def expected_bits(texts: Any) -> Any:
    """The patterns of hexadecimal floats as decode and dequantize write them: every NaN is 7FC00000."""
    return mapped(texts, lambda text: 0x7FC00000 if text == "nan" else int(number(text).view(np.uint32)))


def exact(array: npt.NDArray[Any]) -> list[Fraction]:
    """The exact numbers of a float array, row-major; all finite."""
    return [Fraction(float(entry)) for entry in array.ravel()]


def product_bits(scale: int, values: Sequence[Fraction | int]) -> list[int]:
    """scale * value, each rounded once to binary32, by exact arithmetic; a zero product takes the scale's sign."""
    return [oracle.multiply32(scale, oracle.rn32(Fraction(value))) for value in values]


FLOAT_DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def tensor_scheme(value: str, store: str = "native", scale: str = "f32") -> qs.Scheme:
    """A scheme with a tensor level only."""
    return qs.Scheme(value, store, tensor=scale)


def refusal(error: pytest.ExceptionInfo[qs.QuantspecError]) -> tuple[str, str]:
    """Rule id and message of a refusal."""
    return error.value.rule, error.value.message


# ---------------------------------------------------------------- upstream's numbers


def half_digit(decimal: float) -> Fraction:
    """Half a unit of the last digit that a decimal number shows."""
    exponent = Decimal(repr(decimal)).as_tuple().exponent
    assert isinstance(exponent, int)
    return Fraction(10) ** exponent / 2


def shows(decimal: float, number: Fraction) -> bool:
    """An exact number is the one that a decimal shows, to its last digit (how upstream's approximate numbers are read)."""
    return abs(number - Fraction(repr(decimal))) <= half_digit(decimal)


def formula_bits(formula: tuple[int, float, int]) -> int:
    """Upstream's scale formula [k, a, d]: k * a / d, each step rounded to binary32."""
    k, a, d = formula
    product = oracle.multiply32(oracle.rn32(Fraction(k)), int(single(a).view(np.uint32)))
    return oracle.divide32(product, oracle.rn32(Fraction(d)))


def arange_input(case: Case) -> F32:
    """The ascending input of a case, divided in binary32 where the case says so, in the case's shape."""
    x = np.arange(case["input_arange"], dtype=np.float32) / np.float32(case.get("input_div", 1))
    return x.reshape(case["shape"])


def within(y: npt.NDArray[Any], x: npt.NDArray[Any], *, absolute: float = 0, relative: float = 0) -> bool:
    """Upstream's bound on a round trip: |y - x| at most the absolute or the relative tolerance, in exact arithmetic."""
    most, share = Fraction(repr(absolute)), Fraction(repr(relative))
    return all(abs(b - a) <= max(most, share * abs(a)) for a, b in zip(exact(x), exact(y), strict=True))
