"""Reshape on a device: the grid of a new shape, worked out without looking at an element. OPS-9."""

import itertools
from importlib import import_module

import pytest

import quantspec as qs
from quantspec_cl.reshape import Regrid

from .test_packing import tensor


def factors(count: int, rank: int) -> list[tuple[int, ...]]:
    if rank == 0:
        return [()] if count == 1 else []
    return [(n, *rest) for n in range(1, count + 1) if count % n == 0 for rest in factors(count // n, rank - 1)]


@pytest.mark.parametrize("count", [1, 4, 6, 8, 12])
def test_the_grid_of_a_reshape_is_that_of_its_blocks(count: int) -> None:
    """Every shape of up to three axes, small extents and those near a size, every new shape: one decision, one set of extents."""
    reference = import_module("quantspec.reshape")
    done = 0
    shapes = [shape for rank in range(4 if count < 12 else 3) for shape in factors(count, rank)]
    for shape in shapes:
        for extents in itertools.product(*({1, 2, 3, max(n - 1, 1), n, n + 1} for n in shape)):
            scheme = qs.Scheme("q8s", block=(extents, "ue8m0"))
            q = tensor(scheme, shape)
            for new in shapes:
                found = Regrid.of(shape, scheme.extents(len(shape)), new)
                try:
                    expected, first = reference._regridded(q, new)
                except qs.LayoutError as error:
                    assert not found.fits and f"(extents {found.extents} from" in str(error)
                else:
                    done += 1
                    assert found.fits and found.extents == expected
                    assert first.reshape(-1).tolist() == list(range(first.size))
    assert done


def test_a_reshape_of_more_elements_than_memory_holds_is_decided() -> None:
    big = Regrid.of((2**30, 2**26), (2**15, 2**26), (2**41, 2**15))
    assert big.fits and big.extents == (2**26, 2**15)
    assert not Regrid.of((2**30, 3**15), (1, 3**7 + 1), (3**15, 2**30)).fits
