"""The programs of the fast quantizers: what each is told, from the tables. A fact is a number or a row, never a format's name."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import cycle, product

from quantspec import SCALES, STORES, VALUES, ScaleType, Scheme

from .choice import Fixed
from .cuts import Cut, cut
from .formats import FLOATS, INDEX, binary32, format_rows
from .program import Program, register
from .trust import Trust

__all__ = ["Facts", "amax_program", "facts_of", "program_of", "programs"]

FILES = ("prelude.cl", "steps.cl", "load_fast.cl", "vectors.cl", "quantize_fast.cl")
AMAX_FILES = ("prelude.cl", "load_fast.cl", "amax_fast.cl")
POWER_OF_TWO, BY_FMA, BY_DIVISION, BY_INTEGERS = range(4)  #: as in vectors.cl
LARGEST_INPUT, LARGEST_RAW = Fraction(2) ** 128, Fraction(2) ** 126  # SCL-10

Facts = dict[str, int | str]


def facts_of(row: ScaleType, scheme: Scheme, found: Cut, given: Fixed, trusted: Trust) -> Facts:
    """What the program is told; no name of a format is among it."""
    value, table = scheme.value, scheme.table
    block = None if scheme.block is None else scheme.block.scale
    scale = scheme.tensor if block is None else block
    if scale is None:
        raise AssertionError("a scheme has at least one level")
    one_level = scheme.tensor is None or block is None
    clamped = given.blocks is not None or block is None
    return {
        **inputfacts_of(row),
        **{"INPUT_ROW": _row(row.name), "VALUE_ROW": _row(value.name)},
        **{"VALUE_INTEGER": int(value.is_integer and table is None), "VALUE_LOOKUP": int(table is not None)},
        **{"VALUE_BITS": value.bits, "VALUE_MANTISSA": 0 if value.is_integer else value.mantissa_bits},
        **{"VALUE_BIAS": value.bias, "VALUE_LARGEST": value.largest_code},
        **{"VALUE_BELOW": -value.lowest, "VALUE_HIGHEST": value.highest},
        **(
            {}
            if table is None
            else {"VALUE_ENTRIES": len(table.bits), "THRESHOLDS": _numbers(table.thresholds.tolist())}
        ),
        **{"SCALE_ROW": _row(scale.name), "SCALE_POWER": int(not scale.has_zero), "SCALE_SIZE": scale.size},
        **{"SCALE_MANTISSA": scale.mantissa_bits, "SCALE_BIAS": scale.bias, "SCALE_LARGEST": scale.largest_code},
        **{"HALF_RANGE": binary32(scheme.half_range), "HAS_BLOCK": int(block is not None)},
        **{
            "HAS_TENSOR": int(scheme.tensor is not None),
            "GIVEN": int(given.blocks is not None),
            "CLAMPED": int(clamped),
        },
        "QUOTIENT": _quotient(trusted, one_level and not scale.has_zero),
        "SATURABLE": int(_can_saturate(scheme, given)),
        **found.facts,
    }


def inputfacts_of(row: ScaleType) -> Facts:
    """What load_fast.cl is told of an input type."""
    infinity = row.infinity_code or 0
    return {
        "INPUT_SIZE": row.size,
        "INPUT_MANTISSA": row.mantissa_bits,
        "INPUT_BIAS": row.bias,
        "INPUT_INFINITY": infinity,
    }


def _quotient(trusted: Trust, power: bool) -> int:
    if not (trusted.sums and trusted.products):
        return BY_INTEGERS
    if power:
        return POWER_OF_TWO
    # CPUs divide eight numbers about as fast as they do the four steps by fma, and PoCL calls fma as a function
    return BY_DIVISION if trusted.quotients else BY_FMA if trusted.fma else BY_INTEGERS


def _can_saturate(scheme: Scheme, given: Fixed) -> bool:
    """Whether a chosen block scale can lie above the largest of its type and count. Rule SCL-24."""
    if scheme.block is None or given.blocks is not None:
        return False
    block, tensor = scheme.block.scale, scheme.tensor
    if tensor is None:
        return bool(LARGEST_INPUT / scheme.half_range > block.largest)
    return given.single is not None or bool(LARGEST_RAW / Fraction(block.block_top) > tensor.largest)


def _row(name: str) -> str:
    return _numbers(format_rows()[INDEX[name]].item())


def _numbers(numbers: Iterable[int]) -> str:
    return ",".join(str(number) if number < 1 << 31 else f"{number}u" for number in numbers)


def _definitions(facts: Iterable[tuple[str, int | str]]) -> tuple[str, ...]:
    """Facts as the compiler takes them: unsigned where they are not negative."""
    return tuple(
        f"-D{name}={fact}u" if isinstance(fact, int) and fact >= 0 else f"-D{name}={fact}" for name, fact in facts
    )


def program_of(kernel: str, facts: Iterable[tuple[str, int | str]]) -> Program:
    """The program of a kernel that is told these facts."""
    return Program((*FILES, f"{kernel}.cl"), _definitions(facts))


def amax_program(row: ScaleType) -> Program:
    """The program that finds the amax of a whole tensor of an input type."""
    return Program(AMAX_FILES, _definitions(inputfacts_of(row).items()))


@register
def programs() -> list[Program]:
    """A program of every kind: each value with a scale type and a store, both kernels, every input and kind of arithmetic."""
    found = [amax_program(row) for row in FLOATS.values()]
    trusted = (
        Trust(True, True, quotients, fma, True, True, "")
        for quotients, fma in ((True, True), (False, True), (False, False))
    )
    rows, arithmetic = cycle(FLOATS.values()), cycle(trusted)
    for value, (store, scale, extents) in zip(
        VALUES, cycle(product(STORES, SCALES, ((32,), (32, 1), (16, 16)))), strict=False
    ):
        text = f"{store}_{int(extents[-1] == 1)}" if STORES[store].packed else store
        for tensor in (None, "f32"):
            scheme = Scheme(value, text, block=(extents, scale), tensor=tensor)
            cutting = cut(scheme, (1024, 1024), words=True)
            if not isinstance(cutting, str):
                facts = facts_of(next(rows), scheme, cutting, Fixed(None, None), next(arithmetic))
                found.append(program_of(cutting.kernel, facts.items()))
    return found
